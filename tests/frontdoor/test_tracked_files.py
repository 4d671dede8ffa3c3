"""What holds for every file of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from measuretwice import __version__

ROOT = Path(__file__).parents[2]


def tracked_texts() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    texts = {}
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data:
                # Files that people bring may be in any encoding.
                texts[name] = data.decode(errors="replace")
    return texts


def test_no_path_of_this_machine() -> None:
    """The checkout's own folder and the home folder stand in no file."""
    places = {str(ROOT), str(ROOT.resolve()), os.path.expanduser("~")}
    # A folder directly under / may have a name that is a word of its own, such as /src.
    places = {place for place in places if place.count("/") > 1 or place == "/root"}
    anywhere = "|".join(map(re.escape, sorted(places)))
    if not anywhere:
        pytest.skip("the checkout's path is too short to look for")
    pattern = re.compile(rf"(?<![\w.$}}/])(?:{anywhere})(?:/\w|$)", re.MULTILINE)
    found = {
        name: hits for name, text in tracked_texts().items() if (hits := pattern.findall(text))
    }
    assert found == {}


def test_scripts_that_are_started_may_be_executed() -> None:
    for name in ("lab", ".ci/run", ".ci/as-user"):
        assert os.access(ROOT / name, os.X_OK), name


LISTS = ("requirements.txt", *(f"requirements-{name}.txt" for name in ("cluster", "docs", "dev")))


def requirements(name: str) -> list[str]:
    return [line for line in (ROOT / name).read_text().splitlines() if line and line[0] != "#"]


@pytest.mark.parametrize("name", LISTS)
def test_requirements_are_exact(name: str) -> None:
    lines = requirements(name)
    assert lines
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", line), line


def test_requirements_name_each_package_once() -> None:
    lines = [line for name in LISTS for line in requirements(name)]
    names = [line.split("==")[0].lower().replace("_", "-") for line in lines]
    assert sorted(names) == sorted(set(names))


def test_the_version_stands_in_one_place() -> None:
    """In the package. A citation names it too, and the log of changes says what is new in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {__version__}," in (ROOT / "CHANGELOG.md").read_text()
