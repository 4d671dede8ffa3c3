"""Lab books in hand-ins: what counts of a prediction and a diagnosis; old ones and hostile ones."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab
from example_class import copy_run, write_plan

from measuretwice.book.lab_book import read_notes
from measuretwice.book.prediction import has_reason, has_unit
from measuretwice.grading.answers import read_books
from measuretwice.grading.reader import read_submission
from measuretwice.lab import Lab, load_lab, read_plan

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
SAMPLES = ROOT / "sample-data/01-mathis"
TITLE = "# Lab book: The macroscopic behaviour of TCP: the Mathis model\n\n- Seed: 1\n"


def case_run(name: str, target: Path, *, own: bool = False) -> Path:
    """A recorded run of a case as ./lab run --case makes it; `own`: as its student's own change."""
    recorded = next(iter(sorted((SAMPLES / name).glob("trial-*"))))
    folder = copy_run(recorded, target / "work", 1)
    document = json.loads((recorded / "plan.json").read_text())
    plan = replace(read_plan(LAB, document, name), **({"stage": None} if own else {}))
    final = target / "mathis" / plan.folder_name
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, final)
    write_plan(final, plan, LAB)
    shutil.rmtree(target / "work")
    return final


def book(*entries: str, case: int = 5) -> str:
    return f"{TITLE}\n## Case {case}: as it is seen\n\n" + "\n".join(
        f"- {entry}" for entry in entries
    )


ARGUED = "Prediction: 87 Mbit/s, since the model says 73 and Linux reaches more than that"


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one case: the first try, and the student's own change."""
    folder = tmp_path_factory.mktemp("solved")
    case_run("case-05-broken", folder)
    case_run("case-05-fixed", folder, own=True)
    return folder


def graded(root: Path, folder: Path) -> dict[str, Any]:
    done = call_lab("grade", folder, "--lab", "mathis", "--json", MEASURETWICE_ROOT=str(root))
    assert done.returncode in (0, 1), done.stderr
    return {student["name"]: student for student in json.loads(done.stdout)["students"]}


def marks(student: dict[str, Any], case: int = 5) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = (mark for mark in student["marks"] if mark["case"] == case)
    return (first, second) if first["predicted"] else (second, first)


def test_a_class(solved: Path, bare: Path, tmp_path: Path) -> None:
    """The same runs with other lab books: what is certain and what is possible follows the book."""
    books = {
        "argued": book(
            ARGUED, "Run: x: 30 Mbit/s", "Hint: 1", "Diagnosis: the interface", "Hint: 3"
        ),
        "told": book(ARGUED, "Run: x: 30 Mbit/s", "Hint: 2", "Hint: 3", "Diagnosis: the MTU"),
        "number": book("Prediction: 87 Mbit/s", "Run: x: 30 Mbit/s", "Diagnosis: the interface"),
        "unitless": book("Prediction: 87", "Run: x: 30 Mbit/s", "Diagnosis: the interface"),
        "late": book("Prediction: none", "Run: x: 30 Mbit/s", ARGUED, "Diagnosis: the interface"),
        "wrong": book(ARGUED.replace("87", "9000"), "Run: x: 30", "Diagnosis: the interface"),
        "empty": TITLE,
    }
    for name, text in books.items():
        shutil.copytree(solved / "mathis", tmp_path / "in" / name / "mathis")
        (tmp_path / "in" / name / "mathis/lab-book.md").write_text(text)
    shutil.copytree(solved / "mathis", tmp_path / "in/no-book/mathis")
    students = graded(bare, tmp_path / "in")
    predictions = {name: marks(student)[0] for name, student in students.items()}
    ladders = {name: marks(student)[1] for name, student in students.items()}
    assert {name: (mark["low"], mark["high"]) for name, mark in predictions.items()} == {
        "argued": (0.25, 0.5),
        "told": (0.25, 0.5),
        "number": (0.25, 0.25),
        "unitless": (0, 0),
        "late": (0, 0),
        # Nobody is marked by luck.
        "wrong": (0.25, 0.5),
        "empty": (0, 0),
        "no-book": (0, 0.5),
    }
    assert "after the first run" in predictions["late"]["predicted"]
    assert "ask for it" in predictions["no-book"]["predicted"]
    # All have the student's own change: the whole ladder is possible, but for a hint that told it.
    assert {name: mark["high"] for name, mark in ladders.items()} == {
        **dict.fromkeys(books, 1.5),
        "told": 1.125,
        "no-book": 1.5,
    }
    assert all(mark["low"] == 0.375 for mark in ladders.values())
    assert "after hint 3; 25% off" in ladders["told"]["diagnosed"]
    assert "after hint 1" in ladders["argued"]["diagnosed"]
    assert all(mark["fixed"].startswith("yes, case-05-trial-09") for mark in ladders.values())
    page = (tmp_path / "in-grades/grades.html").read_text()
    assert "Nobody is marked by luck" in page


def test_shown_is_not_fixed(bare: Path, tmp_path: Path) -> None:
    case_run("case-05-broken", tmp_path / "in/ada")
    case_run("case-05-fixed", tmp_path / "in/ada")
    text = book(ARGUED, "Run: x: 30", "Diagnosis: the interface", "Shown: the fixed run")
    (tmp_path / "in/ada/mathis/lab-book.md").write_text(text)
    _, ladder = marks(graded(bare, tmp_path / "in")["ada"])
    assert ladder["fixed"].startswith("no: shown, not the student's own change")
    assert ladder["high"] == 0.75


def test_a_mistake_in_a_set_may_be_fixed_by_the_shown_runs(bare: Path, tmp_path: Path) -> None:
    for stage in ("broken", "fixed"):
        for run in sorted((SAMPLES / f"case-13-{stage}").glob("trial-*")):
            shutil.copytree(run, tmp_path / f"in/ada/mathis/{stage}-{run.name}")
    _, ladder = marks(graded(bare, tmp_path / "in")["ada"], 13)
    assert ladder["fixed"].startswith("yes, shown: by hand")
    assert ladder["high"] == ladder["points"]


def test_an_old_hand_in_loses_nothing(bare: Path, tmp_path: Path) -> None:
    """Made by --pitfall and --stage, before there were cases and books."""
    for stage in ("broken", "fixed"):
        recorded = next(iter((SAMPLES / f"case-05-{stage}").glob("trial-*")))
        copy_run(recorded, tmp_path / "in/ada/mathis", 1)
    reported = call_lab("report", tmp_path / "in/ada/mathis", "--author", "Ada")
    assert reported.returncode == 0, reported.stderr
    ada = graded(bare, tmp_path / "in")["ada"]
    prediction, ladder = marks(ada)
    assert (prediction["low"], prediction["high"]) == (0, prediction["points"])
    assert "nothing is lost by that" in prediction["predicted"]
    assert ladder["fixed"].startswith("yes, ")
    assert ladder["low"] == 0.375
    assert any("before there were lab books" in line for line in ada["notes"])
    done = call_lab("grade", tmp_path / "in", "--lab", "mathis", MEASURETWICE_ROOT=str(bare))
    assert done.returncode == 0, done.stdout
    assert "no point is lost" in done.stdout


@pytest.mark.parametrize("kind", ["report.md", "report.html"])
def test_the_report_carries_the_book(solved: Path, bare: Path, tmp_path: Path, kind: str) -> None:
    """Who hands in the report and the runs without the book loses nothing."""
    shutil.copytree(solved / "mathis", tmp_path / "mathis")
    diagnosis = "the interface <b>&amp;</b> ``` <!-- end of the lab book -->"
    text = book(ARGUED, "Run: x: 30 Mbit/s", "Hint: 1", f"Diagnosis: {diagnosis}")
    (tmp_path / "mathis/lab-book.md").write_text(
        f"{text}\n\n```\nmy notes\n```\n\n<script>x</script>\n"
    )
    done = call_lab("report", tmp_path / "mathis", "--author", "Ada")
    assert done.returncode == 0, done.stderr
    assert "<script>x" not in (tmp_path / "mathis/report.html").read_text()
    alone, both = tmp_path / "alone/ada/mathis", tmp_path / "both/ada/mathis"
    for target in (alone, both):
        shutil.copytree(tmp_path / "mathis", target, ignore=shutil.ignore_patterns("report.*"))
        shutil.copyfile(tmp_path / "mathis" / kind, target / kind)
    (alone / "lab-book.md").unlink()
    read = [
        read_submission(ROOT, [folder.parent], tmp_path / name)
        for folder, name in ((alone, "a"), (both, "b"))
    ]
    assert read[0].books == read[1].books
    (case,) = read[0].books["mathis"]
    assert case.diagnosis is not None
    assert case.diagnosis.startswith(diagnosis)
    assert (case.first, case.number, case.unit, case.reason) == (True,) * 4
    assert not read[1].written


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _large(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(100 * 2**20)


def _long(path: Path) -> None:
    path.write_text(book(ARGUED) + "\n" + "x" * 2**21)


def _binary(path: Path) -> None:
    path.write_bytes(os.urandom(4000))


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _folder(path: Path) -> None:
    path.mkdir()


def _utf16(path: Path) -> None:
    path.write_text(book(ARGUED), encoding="utf-16")


@pytest.mark.parametrize("make", [_fifo, _large, _long, _binary, _link, _folder, _utf16])
def test_a_hostile_book_is_said_in_words_and_the_rest_graded(
    solved: Path, bare: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    shutil.copytree(solved / "mathis", tmp_path / "in/ada/mathis")
    make(tmp_path / "in/ada/mathis/lab-book.md")
    ada = graded(bare, tmp_path / "in")["ada"]
    prediction, ladder = marks(ada)
    assert prediction["low"] == 0
    # What could not be read stays possible.
    assert ladder["low"] == 0.375
    assert ladder["high"] == 1.5
    if make is not _folder:
        assert prediction["high"] == 0.5
        assert len(ada["says"]) == 1
        assert "lab-book.md" in ada["says"][0]
        assert str(tmp_path) not in ada["says"][0]


def test_what_stands_in_a_book_is_text(solved: Path, bare: Path, tmp_path: Path) -> None:
    shutil.copytree(solved / "mathis", tmp_path / "in/ada/mathis")
    hostile = '<script>alert(1)</script><img src=x onerror="x">\x1b[31m 5 Mbit/s =1+1 because of it'
    text = book(f"Prediction: {hostile}", "Run: x: 1", f"Diagnosis: {hostile}" * 3)
    (tmp_path / "in/ada/mathis/lab-book.md").write_text(text + "\n## Case 99: none\n- Hint: 9\n")
    done = call_lab("grade", tmp_path / "in", "--lab", "mathis", MEASURETWICE_ROOT=str(bare))
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "in-grades/grades.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page + done.stdout


def test_books_of_several_labs_and_of_none(tmp_path: Path) -> None:
    buffers = load_lab(ROOT, "buffers")
    files = {
        "runs/mathis/lab-book.md": book(ARGUED),
        "loose/lab-book.md": book(ARGUED, case=2).replace(TITLE, f"# Lab book: {buffers.file.lab.title}\n"),
        "other/lab-book.md": "# My shopping\n\n## Case 1: milk\n- Prediction: 3 l\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    found, problems = read_books(ROOT, [tmp_path / name for name in files], {}, tmp_path)
    assert {lab: [case.case for case in cases] for lab, cases in found.items()} == {
        "mathis": [5],
        "buffers": [2],
    }
    assert problems == ["other/lab-book.md: it isn't clear which lab's book it is"]


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        ("66 Mbit/s", True, False),
        ("66", False, False),
        ("66 because the model says so", False, True),
        ("about 60 to 70 Mbit/s, as half of the packets are lost", True, True),
        ("1.5 %", True, False),
        ("16%, by p", True, False),
        ("twice as much, since the delay is halved", False, True),
        ("0.157, for that is what was set on the router", False, True),
        ("1,200 B", True, False),
        ("3e-4", False, False),
        ("", False, False),
    ],
)
def test_what_looks_like_a_unit_and_a_reason(text: str, unit: bool, reason: bool) -> None:
    assert (has_unit(text), has_reason(text)) == (unit, reason)


def test_order_in_the_book_counts() -> None:
    text = book("Prediction: none", "Prediction: 5 s", "Run: x: 1", "Hint: 2", "Diagnosis: none",
                "Hint: 3", "Diagnosis: it", "Diagnosis: it, better")  # fmt: skip
    notes = read_notes(text)[5]
    assert notes.predicted_first
    assert (notes.hints, notes.hints_before_diagnosis) == (3, 3)
    assert notes.diagnosis == "it, better"


def test_dealt_seeds_give_other_numbers_than_the_pages(tmp_path: Path) -> None:
    """No dealt seed is 1, whose numbers pages, solutions and keys have; and most cases vary by it."""
    (tmp_path / "class.csv").write_text(
        "Student ID,Name\n" + "".join(f"{n},N {n}\n" for n in range(200))
    )
    out = tmp_path / "dealt.csv"
    done = call_lab(
        "deal", tmp_path / "class.csv", "--lab", "mathis", "--term", "x", "--out", out, "--json"
    )
    seeds = [row["seed"] for row in json.loads(done.stdout)]
    assert len(set(seeds)) == 200
    assert min(seeds) >= 100
    assert _names_no_cause(LAB, out.read_text())
    for pitfall in LAB.file.pitfalls:
        values = [LAB.varied_by(pitfall, seed) for seed in (1, *seeds)]
        assert values[0] == {}
        if pitfall.vary and not pitfall.trials:
            # Values are round numbers: two of so many may have drawn the same.
            assert len({json.dumps(value) for value in values}) > 180


def _names_no_cause(lab: Lab, text: str) -> bool:
    return "--pitfall" not in text and not any(f" {p.id} " in text for p in lab.file.pitfalls)


@pytest.mark.slow
@pytest.mark.kernel
def test_a_hand_in_from_the_first_run_on(tmp_path: Path) -> None:
    """What a student types, and then what their lecturer does: with a dealt seed, on the real kernel."""
    (tmp_path / "class.csv").write_text("Student ID,Name\nada,Ada Lovelace\ngrace,Grace Hopper\n")
    call_lab("deal", tmp_path / "class.csv", "--lab", "mathis", "--term", "x")
    dealt = tmp_path / "class-mathis-seeds.csv"
    seed = dealt.read_text().split(",mathis,")[1].split(",")[0]
    out = tmp_path / "runs"
    ran = call_lab("run", "mathis", "--case", "7", "--seed", seed, "--out", out)
    assert ran.returncode == 0, ran.stderr
    (run,) = (out / "mathis").glob("case-07-*")
    recorded = next((SAMPLES / "case-07-broken").glob("trial-*"))
    assert (
        json.loads((run / "result.json").read_text())["measured"]
        != (json.loads((recorded / "result.json").read_text())["measured"])
    )
    path = out / "mathis/lab-book.md"
    prediction = "66 Mbit/s, as the model says 55 and Linux reaches 1.2 times that"
    path.write_text(path.read_text().replace("Prediction: none", f"Prediction: {prediction}"))
    call_lab("check", run, "--hint", "1")
    path.write_text(path.read_text() + "- Diagnosis: each direction waits the whole time\n")
    plan = json.loads((run / "plan.json").read_text())
    change = f"delay_ms={plan['params']['rtt_ms'] / 2}"
    fixed = call_lab("run", "mathis", "--case", "7", "--set", change, "--out", out)
    assert fixed.returncode == 0, fixed.stderr
    (own,) = set((out / "mathis").glob("case-07-*")) - {run}
    assert "nothing is off any more" in call_lab("check", own).stdout
    assert call_lab("report", out / "mathis", "--author", "Ada").returncode == 0
    (tmp_path / "in").mkdir()
    with zipfile.ZipFile(tmp_path / "in/ada.zip", "w") as packed:
        for file in sorted(out.rglob("*")):
            packed.write(file, file.relative_to(out))
    done = call_lab("grade", tmp_path / "in", "--deal", dealt, "--json")
    ada = next(student for student in json.loads(done.stdout)["students"] if student["handed_in"])
    assert ada["remarks"] == []
    predicted, ladder = marks(ada, 7)
    assert predicted["predicted"].startswith("yes (number and unit, a reason)")
    assert "in the lab book after hint 1" in ladder["diagnosed"]
    assert ladder["fixed"].startswith("yes, case-07")
    assert ladder["again"].startswith("yes")
    assert ladder["low"] > 0
    assert ladder["high"] == ladder["points"]
