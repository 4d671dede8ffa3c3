"""Grades for the instructor: one HTML page of the class, and CSV for its learning management system."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from measuretwice.grading.copies import Run, lines
from measuretwice.grading.marks import Graded, Mark
from measuretwice.grading.roster import Roster, Student, csv_text
from measuretwice.grading.unpack import shown
from measuretwice.report.report import Table, clean, environment

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Part:
    """One student's part of the page."""

    id: str
    name: str
    about: str
    look_at: list[str]
    notes: list[str]
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
    handed_in = sum(one.handed_in for one in graded)
    look_at = sum(one.odd for one in graded)
    return Page(
        title=f"Grades: {lab}",
        made=made,
        submissions=f"{handed_in} submission{'s' if handed_in != 1 else ''}, {look_at} to look at first",
        summary=Table(
            f"One line a student. Shown, answered, mended and run again count mistakes; points of {points:g}.",
            ["student", "id", "runs", "shown", "answered", "mended", "run again", "points certain",
             "points possible", "look at first"],
            [row(one) for one in graded],
            frozenset(range(2, 9)),
            links=[f"student-{number}" for number in range(1, len(graded) + 1)],
        ),
        others=others,
        students=[_part(number, one) for number, one in enumerate(graded, start=1)],
    )  # fmt: skip


def row(one: Graded) -> list[str]:
    """A student's line: counts, points, and whether there is something to look at."""
    if not one.handed_in:
        return [one.name, one.student or "", "0", *["–"] * 6, "nothing handed in"]
    counts = [str(one.count(rung)) for rung in ("shown", "diagnosed", "mended", "again")]
    return [
        one.name,
        one.student or "",
        str(len(one.runs) + len(one.brought)),
        *counts,
        f"{one.low:g}",
        f"{one.high:g}",
        "yes" if one.odd else "–",
    ]


def _part(number: int, one: Graded) -> Part:
    odd = lines([remark for remark in one.remarks if not remark.proves_nothing])
    mistakes = [mark for mark in one.marks if mark.pitfall]
    if one.handed_in:
        about = f"{one.low:g} points certain, {one.high:g} possible"
    else:
        about = "Nothing handed in, or nothing that the roster's names lead to"
    return Part(
        id=f"student-{number}",
        name=one.name,
        about=(f"{one.student}. " if one.student else "") + about + ".",
        look_at=[*([one.problem] if one.problem else []), *odd],
        notes=[*one.says, *lines([remark for remark in one.remarks if remark.proves_nothing])],
        mistakes=Table(
            "Mistakes: what was seen of each rung, and what it is worth",
            ["mistake", "question", "shown", "diagnosed", "mended", "run again", "certain", "possible", "of"],
            [_mistake(mark) for mark in mistakes],
            frozenset({1, 6, 7, 8}),
        ),
        others=Table(
            "Criteria that only a person can judge",
            ["criterion", "question", "answer", "possible", "of"],
            [
                [m.title, str(m.question), m.answer, f"{m.high:g}", f"{m.points:g}"]
                for m in one.marks
                if not m.pitfall
            ],
            frozenset({1, 3, 4}),
        ),
        runs=Table(
            "Every run that was read, with its findings computed now",
            ["run", "trial", "stage", "seed", "settings changed", "findings"],
            [_run(run) for run in [*one.runs, *one.brought]],
            frozenset({1, 3}),
        ),
    )  # fmt: skip


def _mistake(mark: Mark) -> list[str]:
    return [
        str(mark.pitfall),
        str(mark.question),
        mark.shown,
        mark.diagnosed,
        mark.mended,
        mark.again,
        f"{mark.low:g}",
        f"{mark.high:g}",
        f"{mark.points:g}",
    ]


def _run(run: Run) -> list[str]:
    found = "; ".join(f"{f['id']} (measured {f['measured']})" for f in run["findings"])
    return [
        str(run.get("run") or run["folder"]),
        str(run["trial"]),
        f"{run['pitfall']}, {run['stage']}" if run["pitfall"] else "–",
        shown(run["seed"]) if "seed" in run else "–",
        shown(", ".join(run.get("changed", []))) or "–",
        run.get("problem") or found or "none",
    ]


def render(page: Page) -> str:
    """Return the page as HTML; every string in it is escaped, as in the report."""
    return environment(TEMPLATES, finalize=clean).get_template("grades.html.j2").render(page=page)


# CSV


CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def canvas_csv(roster: Roster | None, graded: list[Graded], assignment: str, points: float) -> str:
    """Grades as Canvas' gradebook imports them: its five columns, then the assignment.

    The second line has the points possible. A student is found by ID, or by one of the SIS
    columns, which only count as a pair (lib/gradebook_importer.rb in instructure/canvas-lms).
    """
    rows = [[*CANVAS_COLUMNS, assignment], ["    Points Possible", *[""] * 4, f"{points:g}"]]
    for student, one in _rows(roster, graded):
        own = [student.row.get(column, "") for column in CANVAS_COLUMNS]
        own[0] = own[0] or student.name
        if not any(own[1:4]):
            own[2] = student.id
        rows.append([*own, _points(one)])
    return csv_text(rows)


def moodle_csv(roster: Roster | None, graded: list[Graded], assignment: str) -> str:
    """Grades for Moodle's CSV import, where one says which column is what: id, points, feedback."""
    others = [c for c in roster.columns if c not in ("lab", "seed", "commands")] if roster else []
    head = [*(others or ["Student"]), assignment, "Points possible by hand", "Feedback"]
    rows = [head]
    for student, one in _rows(roster, graded):
        own = [student.row[column] for column in others] or [student.name]
        high = f"{one.high:g}" if one and one.handed_in and not one.problem else ""
        rows.append([*own, _points(one), high, feedback(one)])
    return csv_text(rows)


def _rows(roster: Roster | None, graded: list[Graded]) -> list[tuple[Student, Graded | None]]:
    """The roster's students, or, without one, whoever handed in."""
    if roster is None:
        return [(Student(one.name, one.name, {}), one) for one in graded]
    by_id = {one.student: one for one in graded}
    return [(student, by_id.get(student.id)) for student in roster.students]


def _points(one: Graded | None) -> str:
    """The certain points; nothing, which changes no grade, where nothing could be read."""
    return f"{one.low:g}" if one and one.handed_in and not one.problem else ""


def feedback(one: Graded | None) -> str:
    """What a student may read of it: no word of whose runs are like theirs."""
    if one is None or not one.handed_in:
        return ""
    if one.problem:
        return one.problem
    said = []
    for rung, words in (("shown", "shown"), ("mended", "mended")):
        names = [
            str(m.pitfall) for m in one.marks if m.pitfall and getattr(m, rung).startswith("yes")
        ]
        said.append(f"{words}: {', '.join(names) or 'none'}")
    return "; ".join([*said, "so far by machine; the rest is marked by hand"])
