"""Which prepared pages are made again, and which stay as they are."""

import os
import shutil
from pathlib import Path

import pytest

from measuretwice.lab import read_lab
from measuretwice.site.build_cache import build_cache

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("labs/01-a/lab.toml", "sample-data/01-a/x.txt", "docs/a.md", "docs/b.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def made_again(root: Path) -> list[str]:
    """The pages that are not kept now; the next time all are noted."""
    with build_cache(root, root / "note.json") as cache:
        return [page for page in ("a.md", "b.md") if not cache.is_fresh(page, root / "docs" / page)]


def test_a_page_is_made_again_when_its_template_changes(root: Path) -> None:
    assert made_again(root) == ["a.md", "b.md"]
    assert made_again(root) == []
    (root / "docs/a.md").write_text("another text")
    assert made_again(root) == ["a.md"]
    assert made_again(root) == []


@pytest.mark.parametrize("name", ["labs/01-a/lab.toml", "sample-data/01-a/x.txt", "docs/c.md"])
def test_every_page_is_made_again_when_what_words_read_changes(root: Path, name: str) -> None:
    made_again(root)
    (root / name).write_text("longer than what stood here before, if anything")
    assert made_again(root) == ["a.md", "b.md"]


def test_every_page_is_made_again_after_a_failure(root: Path) -> None:
    made_again(root)
    with pytest.raises(ZeroDivisionError), build_cache(root, root / "note.json"):
        raise ZeroDivisionError
    assert made_again(root) == ["a.md", "b.md"]


def test_a_lab_is_read_again_when_a_file_of_it_changes(tmp_path: Path) -> None:
    folder = tmp_path / "labs/01-mathis"
    shutil.copytree(ROOT / "labs/01-mathis", folder)
    first = read_lab(folder)
    assert read_lab(folder) is first
    text = first.path.read_text()
    (folder / "lab.toml").unlink()
    first.path.write_text(text.replace(f'title = "{first.file.lab.title}"', 'title = "Another"', 1))
    assert read_lab(folder).file.lab.title == "Another"
    os.utime(first.path, ns=(1, 1))
    assert read_lab(folder) is not first
