"""A class that never was, graded: for the tests, and recorded for the page on grading.

    make site-assets
    PYTHONPATH=src .venv/bin/python tests/support/example_class.py

Its runs are recorded ones: their raw files as they are, their plans rewritten to seeds that were
dealt, as if the students had run them. Only one is handed in as it was recorded.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from measuretwice.book.lab_book import BOOK, with_entry
from measuretwice.cli.grade import print_grades
from measuretwice.grading.evidence import Recorded
from measuretwice.grading.gradebook import FILE, add_lines, mark_lines
from measuretwice.grading.integrity import find_remarks
from measuretwice.grading.output import ClassGrades, all_files
from measuretwice.grading.reader import read_all
from measuretwice.grading.results import Graded, contents_of, grade
from measuretwice.grading.roster import deal_seeds, dealt_file, read_roster
from measuretwice.grading.rubric import read_rubric
from measuretwice.grading.submission import find_submissions
from measuretwice.grading.text_table import csv_text
from measuretwice.lab import Lab, Plan, load_lab, read_plan, read_questions
from measuretwice.report.report import make_report, render_markdown
from measuretwice.runs.folder import DONE, command_again, raw_folder
from measuretwice.runs.remeasure import read_run

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs/includes/graded-class"
LAB = "mathis"
PITFALLS = ("mtu", "offload", "rtt-doubling", "netem-limit", "timestamps")
WIDTH = 112
TERM = "a word of your own"
MADE = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CLASS = [
    ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"],
    ["Lovelace, Ada", "101", "s1815", "ada", "Tuesday"],
    ["Hopper, Grace", "102", "s1906", "grace", "Tuesday"],
    ["Euler, Leonhard", "103", "s1707", "leonhard", "Tuesday"],
    ["Noether, Emmy", "104", "s1882", "emmy", "Friday"],
    ["Gauss, Carl", "105", "s1777", "carl", "Friday"],
    ["Turing, Alan", "106", "s1912", "alan", "Friday"],
]


def copy_run(recorded: Path, target: Path, seed: int) -> Path:
    """Write a recorded run to `target` as ./lab run makes it, with another seed in its plan.

    One of a case becomes one of its pitfall's stages: with another seed a case has other numbers.
    """
    target.mkdir(parents=True, exist_ok=True)
    document = json.loads((recorded / "plan.json").read_text(encoding="utf-8"))
    lab = load_lab(ROOT, document["lab"])
    plan = replace(read_plan(lab, document, str(recorded)), seed=seed)
    if plan.case:
        pitfall = lab.case(plan.case)
        plan = replace(plan, case=None, pitfall=pitfall.id, stage=plan.stage or "broken")
    folder = target / plan.folder_name
    with raw_folder(recorded) as raw:
        shutil.copytree(raw, folder / "raw")
    for name in ("provenance.json", "result.json"):
        shutil.copyfile(recorded / name, folder / name)
    write_plan(folder, plan, lab)
    (folder / DONE).touch()
    return folder


def write_plan(run: Path, plan: Plan, lab: Lab) -> None:
    """Give a run's folder a plan, and what follows from it in provenance.json and result.json."""
    provenance, result = (
        json.loads((run / name).read_text(encoding="utf-8"))
        for name in ("provenance.json", "result.json")
    )
    settings = {name: getattr(plan, name) for name in ("pitfall", "stage", "case", "seed")}
    settings["params"] = dict(plan.params)
    command = command_again(plan, lab, "")
    documents = {
        "plan.json": plan.to_json(),
        "provenance.json": {**provenance, "plan_digest": plan.digest, "command": command},
        "result.json": {**result, **settings},
    }
    for name, document in documents.items():
        (run / name).write_text(json.dumps(document), encoding="utf-8")


def make_class(root: Path, lab: Lab, pitfalls: Sequence[str], folder: Path) -> tuple[Path, Path]:
    """Write the class's submissions and dealt roster below `folder`; return where they are.

    Of five `pitfalls`, the first two are Ada's, and so Leonhard's; then Grace's, Emmy's, Carl's.
    """
    roster_file = folder / "class.csv"
    roster_file.write_text(csv_text(CLASS), encoding="utf-8")
    roster = read_roster(roster_file)
    seeds = deal_seeds(roster.students, lab.name, TERM)
    dealt = folder / "dealt.csv"
    dealt.write_bytes(dealt_file(roster, lab, seeds))
    handed, work = folder / "submissions", folder / "work"
    handed.mkdir()

    def runs(who: str, seed: int, chosen: Sequence[str], stages: Sequence[str]) -> Path:
        for pitfall in chosen:
            for stage in stages:
                recorded = _recorded(root, lab, f"{pitfall}-{stage}")
                copy_run(recorded, work / who / "runs" / lab.name, seed)
        return work / who

    both = ("broken", "fixed")
    ada = runs("ada", seeds["s1815"], pitfalls[:2], both)
    (ada / "report.md").write_text(_report(root, lab, pitfalls[0], ada), encoding="utf-8")
    book = _book(lab, pitfalls[:2], seeds["s1815"])
    (ada / "runs" / lab.name / BOOK).write_text(book, encoding="utf-8")
    _pack(ada, handed / "lovelaceada_101_9001_mathis.zip")
    # A zip in a zip, late, and no report.
    inner = work / "grace.zip"
    _pack(runs("grace", seeds["s1906"], pitfalls[2:3], both), inner)
    with zipfile.ZipFile(handed / "hoppergrace_LATE_102_9002_all.zip", "w") as outer:
        outer.write(inner, "homework/final (2).zip")
    # Ada's runs, as they are.
    shutil.copytree(ada / "runs", work / "leonhard" / "runs")
    _pack(work / "leonhard", handed / "eulerleonhard_103_9003_runs.zip")
    # The course's own run.
    recorded = _recorded(root, lab, f"{pitfalls[3]}-broken")
    _pack(copy_run(recorded, work / "emmy", 1).parent, handed / "noetheremmy_104_9004_run.zip")
    carl = handed / "gausscarl_105_9005_x.zip"
    _pack(runs("carl", seeds["s1777"], pitfalls[4:5], ("broken",)), carl)
    _spoil(carl)
    return handed, dealt


def _recorded(root: Path, lab: Lab, name: str) -> Path:
    folder = root / "sample-data" / lab.folder.name / lab.set_name(name)
    return next(iter(sorted(folder.glob("trial-*"))))


def _pack(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            packed.write(path, path.relative_to(folder).as_posix())


def _spoil(target: Path) -> None:
    """What no student should hand in: a way out, a link, and a bomb."""
    with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("../../.bashrc", "echo gone")
        link = zipfile.ZipInfo("notes.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
        packed.writestr("big.txt", bytes(30 * 2**20))


def _book(lab: Lab, chosen: Sequence[str], seed: int) -> str:
    """A lab book: one case argued and found, one with a bare number, and its cause told by the hints."""
    text = f"# Lab book: {lab.file.lab.title}\n\n- Seed: {seed}\n"
    books = (
        [
            ("Prediction", "87 Mbit/s, as the model says 73 and Linux reaches 1.2 times that"),
            ("Run", "the first try: 30.6 Mbit/s"),
            ("Hint", "1"),
            ("Diagnosis", "the segments are smaller than asked for: an interface limits them"),
        ],
        [("Prediction", "20"), ("Run", "the first try: 60 Mbit/s"), ("Hint", "1"), ("Hint", "3")],
    )
    for pitfall, entries in zip(chosen, books, strict=True):
        number = lab.case_number(lab.pitfall(pitfall))
        for kind, words in entries:
            text = with_entry(text, number, lab.case(number).symptom, kind, words)
    return text


def _report(root: Path, lab: Lab, pitfall: str, folder: Path) -> str:
    """A report with an answer to the first mistake's question, and none to the others."""
    found = sorted(path.parent for path in folder.rglob("plan.json"))
    read = [read_run(root, path, path.name) for path in found]
    rubric = read_rubric(lab)
    assert rubric is not None  # what the page is about
    questions = read_questions(lab)
    asked = next(c.question for c in rubric.criteria if c.pitfall == pitfall)
    broken = next(r for r in read if (r.plan.pitfall, r.plan.stage) == (pitfall, "broken"))
    finding, line = broken.result.findings[0], broken.excerpts[0].text.strip()
    answer = f"It is {finding.id}: {finding.measured}, not {finding.expected}.\n\n    {line}"
    report = make_report(
        read,
        title=None,
        author="Ada Lovelace",
        made=MADE,
        answers={questions[asked - 1]: answer},
    )
    return render_markdown(report)


def graded_class(root: Path) -> dict[str, str]:
    """Make the class, deal, grade, and return the files of it that a page shows, by name."""
    lab = load_lab(root, LAB)
    rubric = read_rubric(lab)
    assert rubric is not None  # what the page is about
    with tempfile.TemporaryDirectory(prefix="measuretwice-class-") as name:
        handed, dealt = make_class(root, lab, PITFALLS, Path(name))
        roster = read_roster(dealt)
        submissions, others = find_submissions(handed, roster)
        by_index = dict(read_all(root, [submission.counted for submission in submissions], 1))
        readings = [by_index[index] for index in range(len(submissions))]
        emmy = next(r for s, r in zip(submissions, readings, strict=True) if "Emmy" in s.name)
        # All of these runs are recorded ones; only hers shall count as such.
        recorded = Recorded(frozenset(run.digest for run in emmy.contents.runs))
        contents = contents_of(lab, readings)
        remarks = find_remarks(lab, submissions, contents, roster, recorded, {})
        graded = grade(lab, rubric, submissions, readings, roster, remarks)
        out = io.StringIO()
        grades = ClassGrades(lab, rubric, {}, roster, graded, others, MADE)
        _, export = all_files(
            grades, f"Measure Twice: {lab.name}", {}, Path(name) / "out", named=False
        )
        print_grades(
            Console(file=out, width=WIDTH, highlight=False),
            grades,
            [],
            export,
            Path("submissions-grades"),
        )
        texts = {
            "roster.csv": csv_text(CLASS),
            "dealt.csv": _short(dealt.read_text(encoding="utf-8")),
            "listing.txt": "\n".join(path.name for path in sorted(handed.iterdir())),
            "terminal.txt": out.getvalue(),
            "import.csv": export.content.decode(),
            "marks.csv": _marks(graded),
        }
    return {file: _plain(text) for file, text in texts.items()}


def _marks(graded: Sequence[Graded]) -> str:
    """The first lines of the file that the lecturer's marks go into, with two of them filled in."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-marks-") as name:
        path = Path(name) / FILE
        add_lines(path, mark_lines(graded))
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    ada = [row for row in rows if row[0] == "s1815"]
    first = next(row for row in ada if row[3].startswith("Case 5: ") and "prediction" not in row[3])
    first[-2:] = ["1,5", "The line is the right one. What should have stood there?"]
    ada[-1][-2:] = ["-2", "Two days late."]
    return csv_text([rows[0], first, ada[-1]])


def _short(text: str) -> str:
    """The first two students of a dealt roster, and the first two of each one's commands."""
    rows = list(csv.reader(io.StringIO(text)))[:3]
    for row in rows[1:]:
        row[-1] = "\n".join([*row[-1].split("\n")[:2], "..."])
    return csv_text(rows)


def _plain(text: str) -> str:
    """Lines without spaces at their end."""
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip("\n").split("\n"))


if __name__ == "__main__":
    RECORDED.mkdir(parents=True, exist_ok=True)
    for file, text in graded_class(ROOT).items():
        (RECORDED / file).write_text(text, encoding="utf-8")
