"""What ./lab grade writes for the lecturer: the class's page, a page and a feedback each student, marks to import."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from measuretwice.grading.effort import rule
from measuretwice.grading.exports import Export, fill_marks
from measuretwice.grading.graded import Graded
from measuretwice.grading.marking import FILE
from measuretwice.grading.pages import (
    TEMPLATES,
    Sheet,
    feedback_name,
    make_sheets,
    render_feedback,
    render_sheet,
    stems,
)
from measuretwice.grading.remarks import advice, lines
from measuretwice.grading.roster import Roster
from measuretwice.grading.rubric import Rubric
from measuretwice.grading.text_table import csv_text
from measuretwice.lab import Lab
from measuretwice.report.markdown import clean
from measuretwice.report.render import environment
from measuretwice.report.tables import ReportTable

CLASS_PAGE = "grades.html"


@dataclass(frozen=True)
class Part:
    """What there is to say of one student on the class's page."""

    name: str
    link: str | None
    look_at: list[str]
    notes: list[str]


@dataclass(frozen=True)
class Page:
    """The class's page."""

    title: str
    made: datetime
    submissions: str
    minutes: str
    marked: str
    summary: ReportTable
    others: list[str]
    students: list[Part]
    marks_file: str
    import_file: str


@dataclass(frozen=True)
class ClassGrades:
    """A class that is graded: what all its pages and files are made of."""

    lab: Lab
    rubric: Rubric
    key: Mapping[int, str]
    roster: Roster | None
    graded: Sequence[Graded]
    others: Sequence[str]
    made: datetime

    @property
    def advice(self) -> list[str]:
        """What to do about runs of which nothing in the folders tells whose they are: a line, or none."""
        return advice([remark for entry in self.graded for remark in entry.remarks])


def all_files(
    it: ClassGrades, title: str, reports: Mapping[int, bytes], target: Path, *, named: bool
) -> tuple[dict[str, bytes], Export]:
    """Return every file to write, by its path below the folder for grades, and the one to import.

    `reports` are those on each submission's runs, by its place; `title` is the assignment's, which the
    lecturer gave if it is `named`.
    """
    export = _export(it, title, named)
    files: dict[str, bytes] = {}
    links: dict[int, str] = {}
    for stem, entry in zip(stems(it.graded), it.graded, strict=True):
        if entry.place is not None and entry.place in reports:
            files[f"reports/{stem}.html"] = reports[entry.place]
            links[entry.place] = f"../reports/{quote(stem)}.html"
    handed = {
        file.path: _link(target / "marking", file.path) for e in it.graded for file in e.files
    }
    sheets = make_sheets(it.lab, it.rubric, it.key, it.graded, links, it.made, handed)
    for sheet in sheets:
        files[f"marking/{sheet.stem}.html"] = render_sheet(sheet).encode()
        name = f"feedback/{feedback_name(sheet)}"
        if name in files:
            name = f"feedback/{sheet.stem}.html"
        files[name] = render_feedback(sheet).encode()
    files[CLASS_PAGE] = render(make_page(it, sheets, export.name)).encode()
    files[export.name] = export.content
    return files, export


def _link(folder: Path, path: str) -> str:
    return quote(os.fsencode(os.path.relpath(path, folder)))


def _export(it: ClassGrades, title: str, named: bool) -> Export:
    if it.roster is not None:
        marks = {entry.id: entry.total for entry in it.graded}
        return fill_marks(it.roster, marks, title, it.rubric.points, named=named)
    rows = [["student", title, "of"]]
    for entry in it.graded:
        total = "" if entry.total is None else f"{round(entry.total, 2):g}"
        rows.append([entry.name, total, f"{it.rubric.points:g}"])
    return Export("grades.csv", csv_text(rows).encode(), title, True)


def make_page(it: ClassGrades, sheets: Sequence[Sheet], import_file: str) -> Page:
    """Return the class's page."""
    graded = it.graded
    handed_in = [entry for entry in graded if entry.handed_in]
    look_at = sum(entry.odd for entry in graded)
    pages = {id(sheet.entry): f"marking/{quote(sheet.stem)}.html" for sheet in sheets}
    return Page(
        title=f"Grades: {it.lab.name}",
        made=it.made,
        submissions=f"{_count(len(handed_in), 'submission')}, {look_at} to look at first",
        minutes=f"About {_hours(sum(entry.minutes for entry in handed_in))} to mark: {rule()}.",
        marked=in_words(graded),
        summary=ReportTable(
            f"One line a student. Predicted, shown, answered, mended and run again count cases; points are of {it.rubric.points:g}.",
            ["student", "id", "runs", "predicted", "shown", "answered", "mended", "run again", "certain", "possible", "so far",
             "left to judge", "minutes", "look at first"],
            [_row(entry) for entry in graded],
            frozenset(range(2, 13)),
            links=[pages.get(id(entry), "") for entry in graded],
        ),
        others=[*it.others, *it.advice],
        students=[_part(entry, pages.get(id(entry))) for entry in graded],
        marks_file=FILE,
        import_file=import_file,
    )  # fmt: skip


def in_words(graded: Sequence[Graded]) -> str:
    """How far the marking is."""
    handed_in = [entry for entry in graded if entry.handed_in]
    done = sum(entry.open == 0 and entry.total is not None for entry in handed_in)
    open_ = sum(entry.open for entry in handed_in)
    return f"{done} of {len(handed_in)} marked to the end, {_count(open_, 'criterion', 'criteria')} left to judge"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _hours(minutes: int) -> str:
    return f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def row(entry: Graded) -> list[str]:
    """A student's line for a terminal: counts, points, and whether there is something to look at."""
    if not entry.handed_in:
        return [entry.name, entry.student or "", "0", *["–"] * 8, "nothing handed in"]
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
        "–" if entry.total is None else f"{entry.total:g}",
        "yes" if entry.odd else "–",
    ]


def _row(entry: Graded) -> list[str]:
    *most, look_at = row(entry)
    if not entry.handed_in:
        return [*most, "–", "–", look_at]
    return [*most, str(entry.open), str(entry.minutes), look_at]


def _part(entry: Graded, link: str | None) -> Part:
    odd = lines([remark for remark in entry.remarks if remark.is_odd])
    return Part(
        name=entry.name,
        link=link,
        look_at=[*([entry.problem] if entry.problem else []), *odd],
        notes=[
            *entry.says,
            *entry.notes,
            *lines([remark for remark in entry.remarks if not remark.is_odd]),
        ],
    )


def render(page: Page) -> str:
    """Return the page as HTML; every string in it is escaped, as in the report."""
    return environment(TEMPLATES, finalize=clean).get_template("grades.html.j2").render(page=page)
