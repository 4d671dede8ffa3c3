"""Honest raw folders of every lab, brought as anybody's files: none may be blamed."""

from pathlib import Path
from typing import Any

import pytest

from measuretwice.base.files import read_object
from measuretwice.course.findings import DeclaredRun, check_brought
from measuretwice.lab import load_lab
from measuretwice.runs.folder import PLAN, raw_folder

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "sample-data"
# Runs that were as they should be, some of each lab: with the lab's own settings, and fixed ones.
SETS = (
    "00-calibrate/readings", "01-mathis/case-0*-fixed", "01-mathis/offloads-off", "02-buffers/each-once",
    "03-scale/edge-once", "04-variants/signatures", "04-variants/case-0[1-5]-fixed", "05-queues/disciplines-once",
    "06-latency/home-tails",
)  # fmt: skip
MOST_OF_A_SET = 12
OTHERS = pytest.mark.nightly("one run of each of these sets")


def folders() -> list[Path]:
    found = []
    for pattern in SETS:
        runs = sorted(RECORDED.glob(f"{pattern}/trial-*"))
        found += runs[:: max(1, len(runs) // MOST_OF_A_SET)][:MOST_OF_A_SET]
    return found


def label(run: Path) -> str:
    return "/".join(run.parts[-3:])


def test_there_are_as_many_as_were_tried_once() -> None:
    """A reviewer had brought 54, and nine were blamed."""
    names = {run.parts[-3] for run in folders()}
    assert names == {path.name for path in (ROOT / "labs").glob("0*")}
    assert len(folders()) >= 54


def day_and_night() -> list[Any]:
    """The first run of each set by day."""
    seen: set[Path] = set()
    found = []
    for run in folders():
        marks = [OTHERS] if run.parent in seen else []
        seen.add(run.parent)
        found.append(pytest.param(run, id=label(run), marks=marks))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("run", day_and_night())
def test_an_honest_folder_gets_no_finding(run: Path) -> None:
    plan = read_object(run / PLAN)
    lab = load_lab(ROOT, str(plan["lab"]))
    trial, params = int(plan["trial"]), dict(plan["params"])
    own = {**lab.defaults(), **lab.trials[trial].set}
    # Where a choice sets other parameters, those are said as well.
    changes = tuple(f"{name}={value}" for name, value in params.items() if own.get(name) != value)
    with raw_folder(run) as raw:
        document = check_brought(ROOT, [raw], DeclaredRun(lab.name, str(trial), changes), None)
    assert [(each["id"], each["measured"]) for each in document["findings"]] == []
