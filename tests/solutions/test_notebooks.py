"""Each solution notebook runs from first to last cell on the recorded data."""

import contextlib
import re
import tempfile
from pathlib import Path

import pytest

from measuretwice.site.notebooks import notebook_pages

ROOT = Path(__file__).parents[2]
# What the instructors' site takes instead of running a notebook again.
KEPT = ROOT / "build/keys"
NOTEBOOKS = sorted((ROOT / "solutions").glob("[0-9]*.py"))
NIGHTLY = pytest.mark.nightly("three others, which take the same from solutions/common.py")


def test_every_recorded_lab_has_a_solution() -> None:
    recorded = {folder.name for folder in (ROOT / "sample-data").iterdir() if folder.is_dir()}
    assert recorded
    assert recorded <= {path.stem for path in NOTEBOOKS}


# Those that take longest.
OTHERS = ("01-mathis", "02-buffers", "04-variants")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, id=source.stem, marks=NIGHTLY if source.stem in OTHERS else [])
        for source in NOTEBOOKS
    ],
)
def test_notebook_runs_whole(source: Path) -> None:
    """It runs here, whatever was kept before; then the tests of the instructors' site take its page."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        pages = notebook_pages(ROOT, [source], Path(folder))
        [made] = (Path(folder) / source.stem).iterdir()
        (KEPT / source.stem).mkdir(exist_ok=True)
        with contextlib.suppress(OSError):  # the same is there already
            made.rename(KEPT / source.stem / made.name)
    assert sum(name.endswith(".svg") for name in pages) >= 2
    text = pages[f"{source.stem}.md"].decode()
    assert len(text) > 5_000
    # The code stands folded, and so indented.
    shown = [line for line in text.splitlines() if not line.startswith("    ")]
    assert "nan" not in " ".join(shown).lower().split()


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_question_is_answered_and_points_add_up_to_100(source: Path) -> None:
    text = (ROOT / "labs" / source.stem / "questions.md").read_text()
    numbers = re.findall(r"^(\d+)\. \*\*", text, re.M)
    points = [int(n) for n in re.findall(r"\((\d+) points\)", text)]
    assert len(points) == len(numbers)
    assert sum(points) == 100
    solution = source.read_text()
    for number in numbers:
        assert re.search(rf"^# ## Question {number}\b", solution, re.M), number
    assert solution.count("*Full marks.*") >= len(numbers)
