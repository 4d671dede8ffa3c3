"""Answers to the questions of cases, in hand-ins: judged by the runs that came with them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab
from example_class import copy_run, write_plan

from measuretwice.book.lab_book import read_notes
from measuretwice.book.prediction import number_of
from measuretwice.grading.reader import read_submission
from measuretwice.lab import load_lab, read_plan
from measuretwice.runs.result import Result, read_result

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "queues")
RECORDED = ROOT / "sample-data/05-queues/case-02-broken"
PREDICTED = "Prediction: 90 ms, since a pfifo_fast has room for so many packets"


def hand_in(target: Path, *entries: str) -> Path:
    """Both runs of the case, as ./lab run --case makes them, and a lab book."""
    place = target / "queues"
    place.mkdir(parents=True)
    for recorded in sorted(RECORDED.glob("trial-*")):
        folder = copy_run(recorded, target / "work", 1)
        document = json.loads((recorded / "plan.json").read_text())
        plan = replace(read_plan(LAB, document, recorded.name), pitfall=None, stage=None, case=2)
        final = place / plan.folder_name
        shutil.move(folder, final)
        write_plan(final, plan, LAB)
    items = "".join(f"- {entry}\n" for entry in (PREDICTED, "Run: x: 93 ms", *entries))
    title = f"# Lab book: {LAB.file.lab.title}\n\n- Seed: 1\n"
    (place / "lab-book.md").write_text(f"{title}\n## Case 2: as it is seen\n\n{items}")
    return target.parent


def given() -> float:
    results: list[Result] = [
        result for run in RECORDED.glob("trial-*") if (result := read_result(run, LAB))
    ]
    judgement = LAB.case(2).judgement
    assert judgement is not None
    assert judgement.number is not None
    number = number_of(judgement.number, results)
    assert number is not None
    return number


def mark(root: Path, folder: Path) -> dict[str, Any]:
    done = call_lab("grade", folder, "--lab", "queues", "--json", MEASURETWICE_ROOT=str(root))
    assert done.returncode in (0, 1), done.stderr
    [student] = json.loads(done.stdout)["students"]
    marks = [mark for mark in student["marks"] if mark["case"] == 2 and not mark["predicted"]]
    [ladder] = marks
    return dict(ladder)


@pytest.mark.slow
def test_a_right_answer_stands_for_a_fixed_run(bare: Path, tmp_path: Path) -> None:
    right = f"Judgement: c, {given():.3g}"
    found = mark(bare, hand_in(tmp_path / "right" / "ada", "Diagnosis: the delay", right))
    assert found["fixed"].startswith("yes, answered right: c, "), found
    assert found["again"].startswith("yes"), found
    # Somebody else's number is no answer of these runs'.
    wrong = f"Judgement: c, {2 * given():.3g}"
    missed = mark(bare, hand_in(tmp_path / "wrong" / "ada", "Diagnosis: the delay", wrong))
    assert missed["fixed"].startswith("no: answered c, "), missed
    assert missed["high"] < found["high"]


def test_what_a_book_says_is_judged_anew(tmp_path: Path) -> None:
    """An outcome that somebody wrote themselves is none."""
    folder = hand_in(
        tmp_path / "in", "Diagnosis: x", "Judgement: a, 3", "Outcome: answered right: all of it"
    )
    read = read_submission(ROOT, [folder / "in"], tmp_path / "tree")
    [notes] = read.books["queues"]
    assert notes.answers == ("a, 3",)
    assert not notes.answered


def book_alone(target: Path, *entries: str) -> Path:
    """A hand-in of somebody who ran nothing: a lab book."""
    place = target / "queues"
    place.mkdir(parents=True)
    items = "".join(f"- {entry}\n" for entry in entries)
    title = f"# Lab book: {LAB.file.lab.title}\n\n- Seed: 1\n"
    (place / "lab-book.md").write_text(f"{title}\n## Case 2: as it is seen\n\n{items}")
    return target.parent


@pytest.mark.slow
def test_an_answer_by_the_recorded_runs_is_marked_as_one(tmp_path: Path) -> None:
    """A page judges by them where it has no run of the reader's own; a mark for that is the lecturer's."""
    diagnosed = "Diagnosis: the sum can't differ"
    right = f"Judgement: c, {given():.3g} times (by the recorded runs)"
    found = mark(ROOT, book_alone(tmp_path / "right" / "ada", diagnosed, right))
    assert found["fixed"].startswith("in part, answered right, but not by own runs: c, "), found
    assert (found["low"], found["high"]) == (0, found["points"] / 2)
    wrong = f"Judgement: c, {2 * given():.3g} times (by the recorded runs)"
    unmarked = f"Judgement: c, {given():.3g} times"
    for name, entries in (
        ("wrong", (diagnosed, wrong)),
        ("unmarked", (diagnosed, unmarked)),
        ("undiagnosed", (right,)),
    ):
        found = mark(ROOT, book_alone(tmp_path / name / "ada", *entries))
        assert found["high"] == 0, (name, found)


def test_an_answer_is_read_as_it_was_written() -> None:
    notes = read_notes("## Case 2: x\n\n- Judgement: b, 3.1 times\n- Judgement: c\n")[2]
    assert notes.judgements == ["b, 3.1 times", "c"]
    assert not notes.fixed
