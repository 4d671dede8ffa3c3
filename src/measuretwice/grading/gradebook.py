"""Marks in and out: the lecturer's own in marks.csv, and all marks in the roster's file, for import.

marks.csv has a line for each student and criterion. ./lab grade reads it and only ever adds lines:
nothing that was written into it is changed, whatever spreadsheet saved it.

Canvas, Moodle, Blackboard and Brightspace each import the file that they export. So nothing but the
marks may change in it, and a cell without a mark stays as it was: that changes no grade.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.grading.results import Graded
from measuretwice.grading.roster import Roster, cells_without_deal
from measuretwice.grading.scoring import Mark
from measuretwice.grading.systems import assignment_titles, headings, normalize_heading
from measuretwice.grading.text_table import (
    Form,
    Line,
    TextTable,
    clean_name,
    format_lines,
    read_table,
)

FILE = "marks.csv"
HEADINGS = ("id", "student", "question", "criterion", "of", "points", "remark")
# The criterion of the line about the whole: points to add or take off (a late report), and a word.
WHOLE = "the whole report"
_POINTS = re.compile(r"[+-]?[0-9]{1,6}([.,][0-9]{1,4})?")

_MARK_CELL = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?%?|-|N/A|EX", re.IGNORECASE)
_POINTS_POSSIBLE = re.compile(r"\s*points possible", re.IGNORECASE)
_READ_ONLY = re.compile(r"\s*\(read only\)\s*", re.IGNORECASE)
# Brightspace's last column stays the last.
_LAST_HEADING = "end-of-line indicator"

Key = tuple[str, str, str]


# The lecturer's marks


@dataclass(frozen=True)
class GivenMark:
    """What the lecturer wrote for one criterion: points, or None where none yet, and a remark."""

    points: float | None = None
    remark: str = ""

    def __bool__(self) -> bool:
        return self.points is not None or bool(self.remark)


@dataclass(frozen=True)
class MarkLine:
    """A criterion of one student, as marks.csv names it. `of` is None for the whole report."""

    student: str
    question: int | None
    criterion: str
    of: float | None
    name: str = ""

    @property
    def key(self) -> Key:
        return _key(
            self.student, "" if self.question is None else str(self.question), self.criterion
        )


@dataclass(frozen=True)
class LecturerMarks:
    """All that the file has. `says` are lines on what in it belongs to nothing."""

    given: Mapping[Key, GivenMark] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    def of(self, line: MarkLine) -> GivenMark:
        return self.given.get(line.key, GivenMark())


def _key(student: str, question: str, criterion: str) -> Key:
    return student.casefold(), question.removesuffix(".0"), " ".join(criterion.casefold().split())


def mark_lines(graded: Iterable[Graded]) -> list[MarkLine]:
    """Return the lines for the lecturer's marks of all who handed in."""
    return [
        line
        for entry in graded
        if entry.handed_in
        for line in (*(_line(entry, mark) for mark in entry.marks), _whole_line(entry))
    ]


def _line(entry: Graded, mark: Mark) -> MarkLine:
    return MarkLine(entry.id, mark.question, mark.title, mark.points, entry.name)


def _whole_line(entry: Graded) -> MarkLine:
    return MarkLine(entry.id, None, WHOLE, None, entry.name)


def with_marks(entry: Graded, marks: LecturerMarks) -> Graded:
    """Return a submission with what the lecturer gave it."""
    given = [marks.of(_line(entry, mark)) for mark in entry.marks]
    whole = marks.of(_whole_line(entry))
    return replace(
        entry,
        marks=tuple(
            replace(mark, given=its_mark.points, remark=its_mark.remark)
            for mark, its_mark in zip(entry.marks, given, strict=True)
        ),
        added=whole.points,
        remark=whole.remark,
    )


def read_marks(path: Path, lines: Iterable[MarkLine]) -> LecturerMarks:
    """Read what the lecturer wrote for `lines`; UserError names the line that can't be understood."""
    if not path.exists():
        return LecturerMarks()
    wanted = {line.key: line for line in lines}
    given: dict[Key, GivenMark] = {}
    number_by_key: dict[Key, int] = {}
    unknown = []
    table = read_table(path)
    columns, rows = _rows(table)
    for number, key, cells in rows:
        mark = GivenMark(
            _points(path, number, cells[columns["points"]]), clean_name(cells[columns["remark"]])
        )
        if key not in wanted:
            if mark:
                unknown.append(number)
            continue
        of = wanted[key].of
        if mark.points is not None and of is not None and not 0 <= mark.points <= of:
            raise UserError(
                f"{path}, line {number}: {mark.points:g} points for a criterion of {of:g}; nothing is changed. "
                f"Points that you add or take off are in the line of {WHOLE!r}"
            )
        if key in given and mark and given[key] and given[key] != mark:
            id = clean_name(cells[columns["id"]])
            raise UserError(
                f"{path}, lines {number_by_key[key]} and {number}: two marks for one criterion of {id}; leave one"
            )
        if mark or key not in given:
            given[key], number_by_key[key] = mark, number
    if not unknown:
        return LecturerMarks(given)
    where = ", ".join(map(str, unknown[:5])) + (" ..." if len(unknown) > 5 else "")
    says = (
        f"{path.name}, line {where}: of no student or criterion that is graded here; not counted, "
        "and left as it is"
    )
    return LecturerMarks(given, (says,))


def _rows(table: TextTable) -> tuple[dict[str, int], list[tuple[int, Key, list[str]]]]:
    """Return the columns' indexes by heading; and each line's number, key and cells, padded."""
    heading = next((line for line in table.lines if not line.is_blank), None)
    names = [text.strip().casefold() for text in heading.cells] if heading else []
    missing = [name for name in HEADINGS if name not in names and name not in ("student", "of")]
    if heading is None or missing:
        raise UserError(
            f"{table.path}: has no column {' or '.join(missing or HEADINGS)}; it is the file that ./lab grade "
            "makes: put the heading back, or move the file away"
        )
    columns = {name: names.index(name) for name in HEADINGS if name in names}
    rows = []
    for line in table.lines[table.lines.index(heading) + 1 :]:
        cells = [*line.cells, *[""] * len(names)]
        id, question, criterion = (
            clean_name(cells[columns[name]]) for name in ("id", "question", "criterion")
        )
        rows.append((line.number, _key(id, question, criterion), cells))
    return columns, rows


def _points(path: Path, number: int, text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    if not _POINTS.fullmatch(text):
        raise UserError(
            f"{path}, line {number}: {clean_name(text)[:30]!r} is no number of points; nothing is changed"
        )
    return float(text.replace(",", "."))


def add_lines(path: Path, lines: Sequence[MarkLine]) -> int:
    """Add those of the lines that the file lacks; return how many.

    What is there stays as it is, to the byte. UserError where it can't be written.
    """
    if path.exists():
        table = read_table(path)
        columns, rows = _rows(table)
        width = len(next(line for line in table.lines if not line.is_blank).cells)
        keys = {key for _, key, _ in rows}
        before, form = path.read_bytes(), table.form
    else:
        columns, width, keys = (
            {name: index for index, name in enumerate(HEADINGS)},
            len(HEADINGS),
            set(),
        )
        # Spreadsheets need this mark to read UTF-8.
        form = Form(mark=b"\xef\xbb\xbf")
        before = b""
    new = [_cells(line, columns, width) for line in lines if line.key not in keys]
    if not new:
        return 0
    heading = [] if before else [list(HEADINGS)]
    before = before or form.mark
    newline = form.newline.encode(form.encoding)
    gap = b"" if before == form.mark or before.endswith(newline) else newline
    try:
        added = format_lines([*heading, *new], form).encode(form.encoding)
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
    return len(new)


def _cells(line: MarkLine, columns: Mapping[str, int], width: int) -> list[str]:
    texts = {
        "id": line.student,
        "student": line.name,
        "question": "" if line.question is None else str(line.question),
        "criterion": line.criterion,
        "of": "" if line.of is None else f"{line.of:g}",
    }
    cells = [""] * width
    for heading, text in texts.items():
        if heading in columns:
            cells[columns[heading]] = text
    return cells


# The roster's file with marks, for import


@dataclass(frozen=True)
class Export:
    """A file for import: its name, its bytes, and which column has the marks."""

    name: str
    content: bytes
    column: str
    added: bool


def fill_marks(
    roster: Roster, marks: Mapping[str, float | None], title: str, points: float, *, named: bool
) -> Export:
    """Return the roster's file with the marks in the column of the assignment called `title`.

    `marks` are points by the student's id; None leaves the cell. `named` says that the lecturer gave
    the title, else it is ours. UserError where it fits several columns.
    """
    lines = cells_without_deal(roster)
    heading = next(cells for line, cells in lines if line is roster.heading)
    students = {student.line: student.id for student in roster.students}
    existing = _find_column(roster, heading, lines, title, named)
    column = _new_column(heading) if existing is None else existing
    comma = _has_decimal_commas(roster.table)
    filled = []
    for line, cells in lines:
        mark = marks.get(students.get(line.number, ""))
        text = None if mark is None else _format_points(mark, comma)
        if existing is not None:
            if text is not None:
                cells = _padded(cells, column + 1)
                cells[column] = text
        elif any(cell.strip() for cell in cells):
            if line is roster.heading:
                text = title
            elif line.number not in students and _is_points_possible(cells):
                text = _format_points(points, comma)
            cells = _padded(cells, len(heading))
            cells.insert(column, text or "")
        filled.append(cells)
    return Export(
        f"grades-for-import{roster.path.suffix or '.csv'}",
        roster.table.to_bytes(filled),
        title if existing is None else heading[column].strip(),
        existing is None,
    )


def _is_points_possible(cells: list[str]) -> bool:
    return bool(_POINTS_POSSIBLE.match(next(cell for cell in cells if cell.strip())))


def _padded(cells: list[str], width: int) -> list[str]:
    return [*cells, *[""] * (width - len(cells))]


def _format_points(value: float, comma: bool) -> str:
    text = f"{round(value, 2):g}"
    return text.replace(".", ",") if comma else text


def _has_decimal_commas(table: TextTable) -> bool:
    """Return whether this file writes 1,5: by its cells, or else where commas don't divide them."""
    cells = [text.strip() for line in table.lines for text in line.cells]
    commas = sum(bool(re.fullmatch(r"[0-9]+,[0-9]{1,2}", text)) for text in cells)
    points = sum(bool(re.fullmatch(r"[0-9]+\.[0-9]{1,2}", text)) for text in cells)
    return commas > points or (commas == points and table.form.delimiter == ";")


def _find_column(
    roster: Roster,
    heading: list[str],
    lines: Sequence[tuple[Line, list[str]]],
    title: str,
    named: bool,
) -> int | None:
    """Return the assignment's column: called so, or, where no title was given, the only one for a grade."""
    students = {student.line for student in roster.students}
    rows = [cells for line, cells in lines if line.number in students]
    columns = range(len(heading))
    candidates = [column for column in columns if heading[column].strip() == title.strip()] or [
        column
        for column in columns
        if normalize_heading(title) in assignment_titles(heading[column])
    ]
    if not candidates and not named:
        candidates = [c for c in columns if normalize_heading(heading[c]) in headings("grade")]
        if len(candidates) != 1 or not _takes_marks(rows, candidates[0]):
            return None
    if not candidates:
        return None
    if len(candidates) > 1:
        which = ", ".join(repr(heading[column].strip()) for column in candidates[:3])
        raise UserError(
            f"--assignment {title!r}: {roster.path} has {which}; give the whole heading"
        )
    column = candidates[0]
    if not _takes_marks(rows, column):
        raise UserError(
            f"--assignment {title!r}: {roster.path} has words in the column {heading[column]!r}; name another"
        )
    if any(column < len(cells) and _READ_ONLY.fullmatch(cells[column]) for _, cells in lines):
        raise UserError(
            f"--assignment {title!r}: the column {heading[column]!r} is read-only; name another"
        )
    return column


def _takes_marks(rows: Sequence[list[str]], column: int) -> bool:
    cells = [row[column].strip() for row in rows if column < len(row)]
    return all(not text or _MARK_CELL.fullmatch(text) for text in cells)


def _new_column(heading: list[str]) -> int:
    """Return the column behind the last heading; before Brightspace's mark for the end."""
    last = max((column for column, text in enumerate(heading) if text.strip()), default=-1)
    return last if normalize_heading(heading[last]) == _LAST_HEADING else last + 1
