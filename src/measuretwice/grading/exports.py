"""Marks back into the file that a class came in: the same lines, columns and encoding, one column filled.

Canvas, Moodle, Blackboard and Brightspace each import the file that they export. So nothing but the
marks may change in it, and a cell without a mark stays as it was: that changes no grade.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measuretwice.base.errors import UserError
from measuretwice.grading.deal import without_deal
from measuretwice.grading.roster import Roster
from measuretwice.grading.systems import assignment_titles, headings, normalize_heading
from measuretwice.grading.text_table import Line, TextTable

NUMBER_CELL = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?%?|-|N/A|EX", re.IGNORECASE)
POINTS_POSSIBLE = re.compile(r"\s*points possible", re.IGNORECASE)
READ_ONLY = re.compile(r"\s*\(read only\)\s*", re.IGNORECASE)
# Brightspace's last column stays the last.
LAST = "end-of-line indicator"


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
    lines = without_deal(roster)
    heading = next(cells for line, cells in lines if line is roster.heading)
    students = {student.line: student.id for student in roster.students}
    rows = [cells for line, cells in lines if line.number in students]
    found = _column(roster, heading, rows, lines, title, named)
    place = _place_for_new(heading) if found is None else found
    comma = _has_decimal_commas(roster.table)
    written = [
        _filled(cells, place, len(heading), _cell(roster, line, students, marks, title, points, comma), found is None)
        for line, cells in lines
    ]  # fmt: skip
    name = f"grades-for-import{roster.path.suffix or '.csv'}"
    column = title if found is None else heading[place].strip()
    return Export(name, roster.table.to_bytes(written), column, found is None)


def _cell(
    roster: Roster,
    line: Line,
    students: Mapping[int, str],
    marks: Mapping[str, float | None],
    title: str,
    points: float,
    comma: bool,
) -> tuple[str | None, str]:
    """What a line has in the column: what is written into it (None: nothing), and what stands in a new one."""
    if line is roster.heading:
        return None, title
    if line.number in students:
        mark = marks.get(students[line.number])
        return (None, "") if mark is None else (_number(mark, comma),) * 2
    first = next((text for text in line.cells if text.strip()), "")
    return None, _number(points, comma) if POINTS_POSSIBLE.match(first) else ""


def _filled(
    cells: list[str], place: int, width: int, marks: tuple[str | None, str], new: bool
) -> list[str]:
    """A line with its mark: in the column that is there, or in a new one before what stands at `place`."""
    mark, in_new = marks
    if new:
        if not cells or not any(text.strip() for text in cells):
            return cells
        padded = [*cells, *[""] * (width - len(cells))]
        return [*padded[:place], in_new, *padded[place:]]
    if mark is None:
        return cells
    padded = [*cells, *[""] * (place + 1 - len(cells))]
    return [*padded[:place], mark, *padded[place + 1 :]]


def _number(value: float, comma: bool) -> str:
    text = f"{round(value, 2):g}"
    return text.replace(".", ",") if comma else text


def _has_decimal_commas(table: TextTable) -> bool:
    """Does this file write 1,5? What stands in it decides, or else that commas don't divide its cells."""
    cells = [text.strip() for line in table.lines for text in line.cells]
    commas = sum(bool(re.fullmatch(r"[0-9]+,[0-9]{1,2}", text)) for text in cells)
    points = sum(bool(re.fullmatch(r"[0-9]+\.[0-9]{1,2}", text)) for text in cells)
    return commas > points or (commas == points and table.form.delimiter == ";")


def _column(
    roster: Roster,
    heading: list[str],
    rows: Sequence[list[str]],
    lines: Sequence[tuple[Line, list[str]]],
    title: str,
    named: bool,
) -> int | None:
    """The column of the assignment: called so, or, where no title was given, the only one for a grade."""
    exact = [place for place, text in enumerate(heading) if text.strip() == title.strip()]
    alike = [
        place
        for place, text in enumerate(heading)
        if normalize_heading(title) in assignment_titles(text)
    ]
    found = exact or alike
    if not found and not named:
        found = [
            place
            for place, text in enumerate(heading)
            if normalize_heading(text) in headings("grade")
        ]
        found = found if len(found) == 1 and _takes_marks(rows, found[0]) else []
    if len(found) > 1:
        which = ", ".join(repr(heading[place].strip()) for place in found[:3])
        raise UserError(
            f"--assignment {title!r}: {roster.path} has {which}; give the whole heading"
        )
    if found and not _takes_marks(rows, found[0]):
        raise UserError(
            f"--assignment {title!r}: {roster.path} has words in the column {heading[found[0]]!r}; name another"
        )
    if found and _is_read_only(lines, found[0]):
        raise UserError(
            f"--assignment {title!r}: the column {heading[found[0]]!r} is read-only; name another"
        )
    return found[0] if found else None


def _takes_marks(rows: Sequence[list[str]], place: int) -> bool:
    cells = [row[place].strip() for row in rows if place < len(row)]
    return all(not text or NUMBER_CELL.fullmatch(text) for text in cells)


def _is_read_only(lines: Sequence[tuple[Line, list[str]]], place: int) -> bool:
    return any(place < len(cells) and READ_ONLY.fullmatch(cells[place]) for _, cells in lines)


def _place_for_new(heading: list[str]) -> int:
    """Behind the last heading; before Brightspace's mark for the end."""
    last = max((place for place, text in enumerate(heading) if text.strip()), default=-1)
    return last if normalize_heading(heading[last]) == LAST else last + 1
