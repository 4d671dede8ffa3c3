"""Each solution notebook runs from first to last cell on the recorded data."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "solutions"))
from build import build  # noqa: E402

NOTEBOOKS = sorted((ROOT / "solutions").glob("[0-9]*.py"))


def test_every_recorded_lab_has_a_solution() -> None:
    recorded = {folder.name for folder in (ROOT / "sample-data").iterdir() if folder.is_dir()}
    assert recorded
    assert recorded <= {path.stem for path in NOTEBOOKS}


@pytest.mark.slow
@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_whole(source: Path, tmp_path: Path) -> None:
    notebook = build(source, tmp_path)
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert (tmp_path / f"{source.stem}.ipynb").stat().st_size > 10_000
    assert sum("image/svg+xml" in out.get("data", {}) for out in outputs) >= 2
    said = "".join(str(out.get("data", {}).get("text/markdown", "")) for out in outputs)
    assert "nan" not in said.lower().split()


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
    assert solution.count("*Full marks:*") >= len(numbers)
