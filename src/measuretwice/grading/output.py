"""What ./lab grade writes for the lecturer: the class's page, a page and a feedback each student, marks to import.

Beside the files stands a list of their digests. A file that isn't as it was written was edited: it is
moved out of the way under another name, and never written over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.grading.gradebook import FILE, Export, fill_marks
from measuretwice.grading.integrity import advice
from measuretwice.grading.results import MARKING_RULE, Graded
from measuretwice.grading.roster import Roster
from measuretwice.grading.rubric import Rubric
from measuretwice.grading.student_pages import TEMPLATES, make_pages, stems
from measuretwice.grading.text_table import csv_text
from measuretwice.lab import Lab
from measuretwice.report.markdown import clean
from measuretwice.report.report import environment
from measuretwice.report.tables import ReportTable

CLASS_PAGE = "grades.html"
LIST = ".written.json"


@dataclass(frozen=True)
class StudentSection:
    """What there is to say of one student on the class's page."""

    name: str
    link: str | None
    look_at: list[str]
    notes: list[str]


@dataclass(frozen=True)
class ClassPage:
    title: str
    made: datetime
    submissions: str
    minutes: str
    marked: str
    summary: ReportTable
    others: list[str]
    students: list[StudentSection]
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
        """A line, or none, on what to do about runs of which nothing in the folders tells whose they are."""
        return advice([remark for entry in self.graded for remark in entry.remarks])


def all_files(
    grades: ClassGrades, title: str, reports: Mapping[int, bytes], target: Path, *, named: bool
) -> tuple[dict[str, bytes], Export]:
    """Return every file to write, by its path below `target`, and the one to import.

    `reports` are those on each submission's runs, by its index; `title` is the assignment's, which the
    lecturer gave if it is `named`.
    """
    export = _export(grades, title, named)
    files: dict[str, bytes] = {}
    report_links: dict[int, str] = {}
    for stem, entry in zip(stems(grades.graded), grades.graded, strict=True):
        if entry.place is not None and entry.place in reports:
            files[f"reports/{stem}.html"] = reports[entry.place]
            report_links[entry.place] = f"../reports/{quote(stem)}.html"
    links = {
        file.path: quote(os.fsencode(os.path.relpath(file.path, target / "marking")))
        for entry in grades.graded
        for file in entry.files
    }
    pages = make_pages(
        grades.lab, grades.rubric, grades.key, grades.graded, report_links, grades.made, links
    )
    for page in pages:
        files[f"marking/{page.stem}.html"] = page.for_marking().encode()
        name = f"feedback/{page.feedback_name}"
        if name in files:
            name = f"feedback/{page.stem}.html"
        files[name] = page.feedback().encode()
    templates = environment(TEMPLATES, finalize=clean)
    class_page = _class_page(grades, export.name)
    files[CLASS_PAGE] = templates.get_template("grades.html.j2").render(page=class_page).encode()
    files[export.name] = export.content
    return files, export


def _export(grades: ClassGrades, title: str, named: bool) -> Export:
    points = grades.rubric.points
    if grades.roster is not None:
        marks = {entry.id: entry.total for entry in grades.graded}
        return fill_marks(grades.roster, marks, title, points, named=named)
    rows = [["student", title, "of"]]
    for entry in grades.graded:
        total = "" if entry.total is None else f"{round(entry.total, 2):g}"
        rows.append([entry.name, total, f"{points:g}"])
    return Export("grades.csv", csv_text(rows).encode(), title, True)


def _class_page(grades: ClassGrades, import_file: str) -> ClassPage:
    graded = grades.graded
    handed_in = [entry for entry in graded if entry.handed_in]
    minutes = sum(entry.minutes for entry in handed_in)
    duration = f"{minutes} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    links = [
        f"marking/{quote(stem)}.html" if entry.handed_in else ""
        for stem, entry in zip(stems(graded), graded, strict=True)
    ]
    return ClassPage(
        title=f"Grades: {grades.lab.name}",
        made=grades.made,
        submissions=f"{_count(len(handed_in), 'submission')}, {sum(entry.odd for entry in graded)} to look at first",
        minutes=f"About {duration} to mark: {MARKING_RULE}.",
        marked=progress_in_words(graded),
        summary=ReportTable(
            f"One line a student. Predicted, shown, answered, fixed and run again count cases; points are of {grades.rubric.points:g}.",
            ["student", "id", "runs", "predicted", "shown", "answered", "fixed", "run again", "certain", "possible", "so far",
             "left to judge", "minutes", "look at first"],
            [_table_row(entry) for entry in graded],
            frozenset(range(2, 13)),
            links=links,
        ),
        others=[*grades.others, *grades.advice],
        students=[
            StudentSection(entry.name, link or None, entry.odd_lines, entry.other_lines)
            for entry, link in zip(graded, links, strict=True)
        ],
        marks_file=FILE,
        import_file=import_file,
    )  # fmt: skip


def progress_in_words(graded: Sequence[Graded]) -> str:
    """Say how far the marking is."""
    handed_in = [entry for entry in graded if entry.handed_in]
    done = sum(entry.open == 0 and entry.total is not None for entry in handed_in)
    left = sum(entry.open for entry in handed_in)
    return f"{done} of {len(handed_in)} marked to the end, {_count(left, 'criterion', 'criteria')} left to judge"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def terminal_row(entry: Graded) -> list[str]:
    """Return a student's line: counts, points, and whether there is something to look at."""
    if not entry.handed_in:
        return [entry.name, entry.student or "", "0", *["–"] * 8, "nothing handed in"]
    rungs = ("predicted", "shown", "diagnosed", "fixed", "again")
    return [
        entry.name,
        entry.student or "",
        str(len(entry.all_runs)),
        *(str(entry.count(rung)) for rung in rungs),
        f"{entry.low:g}",
        f"{entry.high:g}",
        "–" if entry.total is None else f"{entry.total:g}",
        "yes" if entry.odd else "–",
    ]


def _table_row(entry: Graded) -> list[str]:
    *cells, look_at = terminal_row(entry)
    left, minutes = (str(entry.open), str(entry.minutes)) if entry.handed_in else ("–", "–")
    return [*cells, left, minutes, look_at]


# Files that a person may edit


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write files, by their path below the folder; return lines on edited ones that were moved away.

    Files of an earlier time that aren't made any more go, unless they were edited. UserError where
    something can't be written.
    """
    digests = _read_list(folder)
    moved = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(digests.keys() - files.keys()):
            path = folder / name
            if path.is_file() and _digest(path.read_bytes()) == digests[name]:
                path.unlink()
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and _digest(path.read_bytes()) not in (
                digests.get(name),
                _digest(content),
            ):
                other = _free_name(path)
                path.rename(other)
                where = other.relative_to(folder).as_posix()
                moved.append(f"{name} was edited since it was written: kept as {where}")
            _write(path, content)
        write_json(folder / LIST, {name: _digest(content) for name, content in files.items()})
    except OSError as error:
        raise UserError(
            f"--out {error.filename or folder}: can't be written ({error.strerror})"
        ) from None
    return moved


def _read_list(folder: Path) -> dict[str, str]:
    try:
        digests = read_object(folder / LIST)
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    # A name from that list is only ever one that lies below the folder.
    return {
        name: str(digest)
        for name, digest in digests.items()
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _free_name(path: Path) -> Path:
    number = 1
    while (other := path.with_name(f"{path.stem}.yours-{number}{path.suffix}")).exists():
        number += 1
    return other
