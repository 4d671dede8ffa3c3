"""The lecturer's own marks and remarks: a CSV that ./lab grade reads, and only ever adds lines to.

A line for each student and criterion. Nothing that was written into it is changed, whatever spreadsheet
saved it; who hands in later, and criteria that are new, get lines at its end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.grading.graded import Graded, Mark
from measuretwice.grading.text_table import (
    Form,
    Line,
    TextTable,
    clean_name,
    read_table,
    written,
)

FILE = "marks.csv"
HEADINGS = ("id", "student", "question", "criterion", "of", "points", "remark")
# A line about the whole: points to add or take off (a late report), and a word to the student.
WHOLE = "the whole report"
NUMBER = re.compile(r"[+-]?[0-9]{1,6}([.,][0-9]{1,4})?")


@dataclass(frozen=True)
class Given:
    """What the lecturer wrote for one criterion: points, or None where none yet, and a remark."""

    points: float | None = None
    remark: str = ""

    def __bool__(self) -> bool:
        return self.points is not None or bool(self.remark)


@dataclass(frozen=True)
class Place:
    """A criterion of one student's: where points and a remark belong. `of` is None for the whole report."""

    student: str
    question: int | None
    criterion: str
    of: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        return _key(
            self.student, "" if self.question is None else str(self.question), self.criterion
        )


@dataclass(frozen=True)
class Marks:
    """All that the file has. `says` are lines on what in it belongs to nothing."""

    given: Mapping[tuple[str, str, str], Given] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    def of(self, place: Place) -> Given:
        return self.given.get(place.key, Given())


def _key(student: str, question: str, criterion: str) -> tuple[str, str, str]:
    return student.casefold(), question.removesuffix(".0"), " ".join(criterion.casefold().split())


def places_of(graded: Iterable[Graded]) -> list[tuple[Place, str]]:
    """Return where the lecturer's marks belong, with the student's name: of all who handed in."""
    return [
        (place, entry.name)
        for entry in graded
        if entry.handed_in
        for place in (*(_place(entry, mark) for mark in entry.marks), _whole(entry))
    ]


def _place(entry: Graded, mark: Mark) -> Place:
    return Place(entry.id, mark.question, mark.title, mark.points)


def _whole(entry: Graded) -> Place:
    return Place(entry.id, None, WHOLE, None)


def with_marks(entry: Graded, marks: Marks) -> Graded:
    """A submission with what the lecturer gave it."""
    given = [marks.of(_place(entry, mark)) for mark in entry.marks]
    whole = marks.of(_whole(entry))
    return replace(
        entry,
        marks=tuple(
            replace(mark, given=one.points, remark=one.remark)
            for mark, one in zip(entry.marks, given, strict=True)
        ),
        added=whole.points,
        remark=whole.remark,
    )


def read_marks(path: Path, places: Iterable[Place]) -> Marks:
    """Read what the lecturer wrote; UserError names the line that can't be understood."""
    if not path.exists():
        return Marks()
    table = read_table(path)
    heading, at = _columns(table)
    wanted = {place.key: place for place in places}
    given: dict[tuple[str, str, str], Given] = {}
    lines: dict[tuple[str, str, str], int] = {}
    unknown = []
    for line in table.lines[table.lines.index(heading) + 1 :]:
        cells = [*line.cells, *[""] * len(at)]
        id, question, criterion = (
            clean_name(cells[at[name]]) for name in ("id", "question", "criterion")
        )
        key = _key(id, question, criterion)
        here = Given(_points(path, line, cells[at["points"]]), clean_name(cells[at["remark"]]))
        if key not in wanted:
            if here:
                unknown.append(line.number)
            continue
        _refuse_too_many(path, line, here, wanted[key])
        if key in given and here and given[key] and given[key] != here:
            raise UserError(
                f"{path}, lines {lines[key]} and {line.number}: two marks for one criterion of {id}; leave one"
            )
        if here or key not in given:
            given[key], lines[key] = here, line.number
    says: tuple[str, ...] = ()
    if unknown:
        where = ", ".join(map(str, unknown[:5])) + (" ..." if len(unknown) > 5 else "")
        says = (
            f"{path.name}, line {where}: of no student or criterion that is graded here; not counted, "
            "and left as it is",
        )
    return Marks(given, says)


def _columns(table: TextTable) -> tuple[Line, dict[str, int]]:
    heading = next((line for line in table.lines if not line.is_blank), None)
    names = [text.strip().casefold() for text in heading.cells] if heading else []
    missing = [name for name in HEADINGS if name not in names and name not in ("student", "of")]
    if heading is None or missing:
        raise UserError(
            f"{table.path}: has no column {' or '.join(missing or HEADINGS)}; it is the file that ./lab grade "
            "makes: put the heading back, or move the file away"
        )
    return heading, {name: names.index(name) for name in HEADINGS if name in names}


def _points(path: Path, line: Line, text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    if not NUMBER.fullmatch(text):
        raise UserError(
            f"{path}, line {line.number}: {clean_name(text)[:30]!r} is no number of points; nothing is changed"
        )
    return float(text.replace(",", "."))


def _refuse_too_many(path: Path, line: Line, here: Given, place: Place) -> None:
    if here.points is None or place.of is None:
        return
    if not 0 <= here.points <= place.of:
        raise UserError(
            f"{path}, line {line.number}: {here.points:g} points for a criterion of {place.of:g}; nothing is changed. "
            f"What is added or taken off stands in the line of {WHOLE!r}"
        )


def add_places(path: Path, places: Sequence[tuple[Place, str]]) -> int:
    """Add a line for each place that has none, with the student's name; return how many.

    What is there stays as it is, to the byte. UserError where it can't be written.
    """
    if path.exists():
        table = read_table(path)
        heading, at = _columns(table)
        width = len(heading.cells)
        there = set()
        for line in table.lines[table.lines.index(heading) + 1 :]:
            cells = [*line.cells, *[""] * width]
            there.add(
                _key(*(clean_name(cells[at[name]]) for name in ("id", "question", "criterion")))
            )
        before = path.read_bytes()
        form = table.form
    else:
        at = {name: place for place, name in enumerate(HEADINGS)}
        width, there, before = len(HEADINGS), set(), b""
        # A spreadsheet takes UTF-8 for it only with this mark.
        form = Form(mark=b"\xef\xbb\xbf")
    rows = [_row(place, name, at, width) for place, name in places if place.key not in there]
    new = len(rows)
    if not rows:
        return 0
    if not before:
        rows.insert(0, list(HEADINGS))
        before = form.mark
    end = form.newline.encode(form.encoding)
    gap = b"" if before in (b"", form.mark) or before.endswith(end) else end
    try:
        added = written(rows, form).encode(form.encoding)
    except UnicodeEncodeError as error:
        raise UserError(
            f"{path}: was saved in {form.encoding}, which has no {error.object[error.start]!r} for a new line's name; "
            "save it as 'CSV UTF-8'"
        ) from None
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(before + gap + added)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"{path}: can't be written ({error.strerror})") from None
    return new


def _row(place: Place, name: str, at: Mapping[str, int], width: int) -> list[str]:
    known = {
        "id": place.student,
        "student": name,
        "question": "" if place.question is None else str(place.question),
        "criterion": place.criterion,
        "of": "" if place.of is None else f"{place.of:g}",
    }
    row = [""] * width
    for name_of, text in known.items():
        if name_of in at:
            row[at[name_of]] = text
    return row
