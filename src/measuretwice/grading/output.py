"""Grades for the instructor: one HTML page of the class, and CSV for its learning management system."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from measuretwice.grading.contents import OurRun
from measuretwice.grading.copies import lines
from measuretwice.grading.deal import COLUMNS as DEALT_COLUMNS
from measuretwice.grading.graded import AnyRun, Graded, Mark
from measuretwice.grading.roster import Roster, Student, csv_text
from measuretwice.grading.unpack import shown
from measuretwice.report.markdown import clean
from measuretwice.report.render import environment
from measuretwice.report.tables import Table

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Part:
    """One student's part of the page."""

    id: str
    name: str
    about: str
    look_at: list[str]
    notes: list[str]
    predictions: Table
    mistakes: Table
    others: Table
    runs: Table


@dataclass(frozen=True)
class Page:
    title: str
    made: datetime
    submissions: str
    summary: Table
    others: list[str]
    students: list[Part]


def make_page(
    lab: str, points: float, graded: list[Graded], others: list[str], made: datetime
) -> Page:
    """Return the page on a class; `others` are lines on what was taken for no submission."""
    handed_in = sum(entry.handed_in for entry in graded)
    look_at = sum(entry.odd for entry in graded)
    return Page(
        title=f"Grades: {lab}",
        made=made,
        submissions=f"{handed_in} submission{'s' if handed_in != 1 else ''}, {look_at} to look at first",
        summary=Table(
            f"One line a student. Predicted, shown, answered, mended and run again count cases; points of {points:g}.",
            ["student", "id", "runs", "predicted", "shown", "answered", "mended", "run again", "points certain",
             "points possible", "look at first"],
            [row(entry) for entry in graded],
            frozenset(range(2, 10)),
            links=[f"student-{number}" for number in range(1, len(graded) + 1)],
        ),
        others=others,
        students=[_part(number, entry) for number, entry in enumerate(graded, start=1)],
    )  # fmt: skip


def row(entry: Graded) -> list[str]:
    """A student's line: counts, points, and whether there is something to look at."""
    if not entry.handed_in:
        return [entry.name, entry.student or "", "0", *["–"] * 7, "nothing handed in"]
    counts = [
        str(entry.count(rung)) for rung in ("predicted", "shown", "diagnosed", "mended", "again")
    ]
    return [
        entry.name,
        entry.student or "",
        str(len(entry.runs) + len(entry.brought)),
        *counts,
        f"{entry.low:g}",
        f"{entry.high:g}",
        "yes" if entry.odd else "–",
    ]


def _part(number: int, entry: Graded) -> Part:
    odd = lines([remark for remark in entry.remarks if not remark.proves_nothing])
    predictions = [mark for mark in entry.marks if mark.predicted]
    mistakes = [mark for mark in entry.marks if mark.pitfall and not mark.predicted]
    if entry.handed_in:
        about = f"{entry.low:g} points certain, {entry.high:g} possible"
    else:
        about = "Nothing handed in, or nothing that the roster's names lead to"
    return Part(
        id=f"student-{number}",
        name=entry.name,
        about=(f"{entry.student}. " if entry.student else "") + about + ".",
        look_at=[*([entry.problem] if entry.problem else []), *odd],
        notes=[*entry.says, *entry.notes, *lines([remark for remark in entry.remarks if remark.proves_nothing])],
        predictions=Table(
            "Predictions: what each has, and what it is worth. Nobody is marked by luck",
            ["case", "question", "predicted", "certain", "possible", "of"],
            [
                [_case(m), str(m.question), m.predicted, f"{m.low:g}", f"{m.high:g}", f"{m.points:g}"]
                for m in predictions
            ],
            frozenset({1, 3, 4, 5}),
        ),
        mistakes=Table(
            "Cases: what was seen of each rung, and what it is worth",
            ["case", "question", "shown", "diagnosed", "mended", "run again", "certain", "possible", "of"],
            [_mistake(mark) for mark in mistakes],
            frozenset({1, 6, 7, 8}),
        ),
        others=Table(
            "Criteria that only a person can judge",
            ["criterion", "question", "answer", "possible", "of"],
            [
                [m.title, str(m.question), m.answer, f"{m.high:g}", f"{m.points:g}"]
                for m in entry.marks
                if not m.pitfall
            ],
            frozenset({1, 3, 4}),
        ),
        runs=Table(
            "Every run that was read, with its findings computed now",
            ["run", "trial", "stage", "seed", "settings changed", "findings"],
            [*map(_run, entry.runs), *map(_run, entry.brought)],
            frozenset({1, 3}),
        ),
    )  # fmt: skip


def _case(mark: Mark) -> str:
    return f"{mark.case}, {mark.pitfall}"


def _mistake(mark: Mark) -> list[str]:
    return [
        _case(mark),
        str(mark.question),
        mark.shown,
        mark.diagnosed,
        mark.mended,
        mark.again,
        f"{mark.low:g}",
        f"{mark.high:g}",
        f"{mark.points:g}",
    ]


def _run(run: AnyRun) -> list[str]:
    findings = "; ".join(f"{found.id} (measured {found.measured})" for found in run.findings)
    if isinstance(run, OurRun):
        seed, changed, problem = shown(run.seed), ", ".join(run.changed), None
    else:
        seed, changed, problem = "–", "", run.problem
    return [
        run.name,
        str(run.trial),
        f"{run.pitfall}, {run.stage}" if run.pitfall else "–",
        seed,
        shown(changed) or "–",
        problem or findings or "none",
    ]


def render(page: Page) -> str:
    """Return the page as HTML; every string in it is escaped, as in the report."""
    return environment(TEMPLATES, finalize=clean).get_template("grades.html.j2").render(page=page)


# CSV


CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def canvas_csv(roster: Roster | None, graded: list[Graded], assignment: str, points: float) -> str:
    """Grades as Canvas' gradebook imports them: its five columns, then the assignment.

    The second line has the points possible. A student is found by ID, or by entry of the SIS
    columns, which only count as a pair (lib/gradebook_importer.rb in instructure/canvas-lms).
    """
    rows = [[*CANVAS_COLUMNS, assignment], ["    Points Possible", *[""] * 4, f"{points:g}"]]
    for student, entry in _rows(roster, graded):
        cells = [student.row.get(column, "") for column in CANVAS_COLUMNS]
        cells[0] = cells[0] or student.name
        if not any(cells[1:4]):
            cells[2] = student.id
        rows.append([*cells, _points(entry)])
    return csv_text(rows)


def moodle_csv(roster: Roster | None, graded: list[Graded], assignment: str) -> str:
    """Grades for Moodle's CSV import, where one says which column is what: id, points, feedback."""
    columns = [name for name in roster.columns if name not in DEALT_COLUMNS] if roster else []
    rows = [[*(columns or ["Student"]), assignment, "Points possible by hand", "Feedback"]]
    for student, entry in _rows(roster, graded):
        cells = [student.row[column] for column in columns] or [student.name]
        high = f"{entry.high:g}" if entry and entry.handed_in and not entry.problem else ""
        rows.append([*cells, _points(entry), high, feedback(entry)])
    return csv_text(rows)


def _rows(roster: Roster | None, graded: list[Graded]) -> list[tuple[Student, Graded | None]]:
    """The roster's students, or, without entry, whoever handed in."""
    if roster is None:
        return [(Student(entry.name, entry.name, {}), entry) for entry in graded]
    by_id = {entry.student: entry for entry in graded}
    return [(student, by_id.get(student.id)) for student in roster.students]


def _points(entry: Graded | None) -> str:
    """The certain points; nothing, which changes no grade, where nothing could be read."""
    return f"{entry.low:g}" if entry and entry.handed_in and not entry.problem else ""


def feedback(entry: Graded | None) -> str:
    """What a student may read of it: no word of whose runs are like theirs."""
    if entry is None or not entry.handed_in:
        return ""
    if entry.problem:
        return entry.problem
    parts = []
    for rung in ("predicted", "shown", "mended"):
        cases = [str(m.case) for m in entry.marks if m.case and getattr(m, rung).startswith("yes")]
        called = {0: "none", 1: "case "}.get(len(cases), "cases ")
        parts.append(f"{rung}: {called}{', '.join(cases)}")
    return "; ".join([*parts, "so far by machine; the rest is marked by hand"])
