"""The class: who is in it, as a learning management system exports it, and whose seed is which.

A dealt roster is the same file with a lab, a seed and commands behind each student. The file's
form is kept: whatever is written of a roster goes back into the system that it came from.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.grading.systems import (
    SHORTENED,
    headings,
    id_kind,
    is_heading_line,
    name_columns,
    normalize_heading,
    participant_number,
)
from measuretwice.grading.text_table import (
    Line,
    TextTable,
    clean_name,
    is_formula,
    read_table,
)

LAB_COLUMN, SEED_COLUMN, COMMANDS_COLUMN = "lab", "seed", "commands"
# A student's seeds are this many in a row: a stage that repeats takes the next ones.
SEEDS_EACH = 100
MAX_STUDENTS = 5000
# Where a heading may stand: lists of universities have a title and a date above it.
MAX_LINES_ABOVE = 12
# Canvas' lines that are of nobody: its points, how they are posted, a made-up student.
NOBODY = re.compile(r"\s*(points possible|manual posting|muted|\(read only\))", re.IGNORECASE)
TEST_STUDENT = {"studenttest", "teststudent"}


@dataclass(frozen=True)
class Student:
    """One of the class. `row` is their line of the roster by heading, `seed` the first of their seeds,
    `line` where they stand, `number` what Moodle calls them in this assignment, `status` what it says
    of what they handed in."""

    id: str
    name: str
    row: dict[str, str]
    seed: int | None = None
    line: int = 0
    number: str | None = None
    status: str = ""

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + SEEDS_EACH) if self.seed is not None else range(0)

    @property
    def keys(self) -> set[str]:
        """What a system may call this student by: ids and the address's first part."""
        ids = {
            value.casefold().lstrip("#")
            for name, value in self.row.items()
            if id_kind(name) is not None and participant_number(value) is None
        }
        return {key for known in ids for key in (known, known.split("@")[0]) if len(key) > 1}

    @property
    def names(self) -> set[str]:
        """The name's ways of being written, squashed: first name first, and last name first."""
        words = re.split(r"\s*,\s*", self.name, maxsplit=1)
        if len(words) == 1:
            words = self.name.rsplit(maxsplit=1)
        return {squash("".join(words)), squash("".join(reversed(words)))} - {""}


@dataclass(frozen=True)
class Roster:
    """A class's file: its students, the line with its headings, and what to tell of how it was read."""

    table: TextTable
    heading: Line
    students: list[Student]
    lab: str | None = None
    by_seed: dict[int, Student] = field(default_factory=dict)
    says: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.table.path

    def owner(self, seed: int) -> Student | None:
        """Whose seed was this dealt to?"""
        return self.by_seed.get(seed // SEEDS_EACH)


def squash(text: str) -> str:
    """Letters and digits only, without accents, small: what systems leave of a name in a path."""
    bare = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in bare.casefold() if sign.isalnum())


def read_roster(path: Path) -> Roster:
    """Read a roster, dealt or not; UserError says what is wrong with it, and in which line."""
    table = read_table(path)
    filled = [line for line in table.lines if not line.is_blank]
    if not filled:
        raise UserError(f"{path}: is empty; expected a heading and a line for each student")
    heading = next((line for line in filled[:MAX_LINES_ABOVE] if is_heading_line(line.cells)), None)
    if heading is None:
        raise UserError(
            f"{path}, line {filled[0].number}: no column with an id; expected one called 'Student ID', "
            "'SIS User ID', 'ID number', 'Username' or 'Email address', or the same in German, French, "
            "Spanish, Dutch, Portuguese or Italian"
        )
    columns = [clean_name(text) for text in heading.cells]
    _refuse_twice(path, heading, columns)
    full, first, last = name_columns(columns)
    kinds = {
        place: kind for place, text in enumerate(columns) if (kind := id_kind(text)) is not None
    }
    about = sorted({*kinds, *(place for place in (full, first, last) if place is not None)})
    rows: list[tuple[Line, list[str]]] = []
    unknown: list[int] = []
    for line in table.lines[table.lines.index(heading) + 1 :]:
        cells = [text.strip() for text in line.cells]
        cells += [""] * (len(columns) - len(cells))
        if line.is_blank or _is_nobodys(cells, about):
            continue
        if not any(cells[place] for place in about):
            unknown.append(line.number)
            continue
        if extra := [text for text in cells[len(columns) :] if text]:
            raise UserError(
                f"{path}, line {line.number}: {len(columns) + len(extra)} cells under {len(columns)} "
                "headings; is there a delimiter in a name that stands in no quotes?"
            )
        rows.append((line, cells))
    if not rows:
        raise UserError(f"{path}: has no students under the headings of line {heading.number}")
    if len(rows) > MAX_STUDENTS:
        raise UserError(f"{path}: more than {MAX_STUDENTS} students; give one class's file")
    at = _id_column(path, columns, kinds, rows)
    students = [_student(path, columns, line, cells, at) for line, cells in rows]
    return _checked(table, heading, students, unknown)


def _refuse_twice(path: Path, heading: Line, columns: list[str]) -> None:
    """A heading that stands twice matters only where something is read below it."""
    for place, name in enumerate(columns):
        known = id_kind(name) is not None or name in (SEED_COLUMN, LAB_COLUMN)
        if known and name in columns[:place]:
            raise UserError(f"{path}, line {heading.number}: the heading {name!r} stands twice")


def _is_nobodys(cells: Sequence[str], about: Sequence[int]) -> bool:
    """A line of the file that is of no student: points possible, a made-up one, a sum at the end."""
    first = next((text for text in cells if text), "")
    known = [cells[place] for place in about if cells[place]]
    if NOBODY.match(first) and len(known) <= 1:
        return True
    return any(squash("".join(known[:many])) in TEST_STUDENT for many in (1, 2))


def _id_column(
    path: Path, columns: list[str], kinds: dict[int, int], rows: list[tuple[Line, list[str]]]
) -> int:
    """The place of the first kind of id that every student has, each another."""
    gaps = []
    for place in sorted(kinds, key=lambda place: (_is_number_only(rows, place), kinds[place])):
        by_id: dict[str, list[int]] = defaultdict(list)
        for line, cells in rows:
            by_id[cells[place].casefold()].append(line.number)
        if "" in by_id:
            gaps.append((len(by_id[""]), f"line {by_id[''][0]} has no {columns[place]}"))
            continue
        for lines in by_id.values():
            if len(lines) > 1:
                raise UserError(
                    f"{path}, lines {' and '.join(map(str, lines[:4]))} have the same {columns[place]}; "
                    "leave one of them"
                )
        return place
    fewest = min(gaps)[1]
    raise UserError(f"{path}: {fewest}, and there is no other column with an id for everybody")


def _is_number_only(rows: list[tuple[Line, list[str]]], place: int) -> bool:
    """Does it hold Moodle's numbers of this assignment alone? Then any other id is better."""
    return any(participant_number(cells[place]) for _, cells in rows)


def _student(path: Path, columns: list[str], line: Line, cells: list[str], at: int) -> Student:
    where = f"{path}, line {line.number}"
    row: dict[str, str] = {}
    for name, text in zip(columns, cells, strict=False):
        row.setdefault(name, text)
    id = clean_name(cells[at])
    if is_formula(id) or is_formula(cells[at]):
        raise UserError(f"{where}: the id {id!r} begins like a formula; correct it")
    if SHORTENED.fullmatch(id):
        raise UserError(
            f"{where}: the id {id} was shortened by a spreadsheet; export the file again, and don't save "
            "it from there"
        )
    full, first, last = (None if p is None else clean_name(cells[p]) for p in name_columns(columns))
    name = full or " ".join(part for part in (first, last) if part) or id
    numbers = [number for text in cells if (number := participant_number(text))]
    status = next(
        (text for key, text in row.items() if normalize_heading(key) in headings("status")), ""
    )
    return Student(
        id.lstrip("#") or id,
        name,
        row,
        _seed(where, row),
        line.number,
        numbers[0] if numbers else None,
        clean_name(status),
    )


def _seed(where: str, row: dict[str, str]) -> int | None:
    text = row.get(SEED_COLUMN)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) % SEEDS_EACH:
        raise UserError(f"{where}: the seed {text!r} is none that ./lab deal makes")
    return int(text)


def _checked(
    table: TextTable, heading: Line, students: list[Student], unknown: list[int]
) -> Roster:
    dealt = any(student.seed is not None for student in students)
    labs = {student.row.get(LAB_COLUMN, "") for student in students} if dealt else {""}
    if len(labs) > 1:
        raise UserError(
            f"{table.path}: seeds of several labs ({', '.join(sorted(labs))}); one file each"
        )
    by_seed: dict[int, Student] = {}
    for student in students:
        if student.seed is None:
            continue
        other = by_seed.setdefault(student.seed // SEEDS_EACH, student)
        if other is not student:
            raise UserError(
                f"{table.path}, lines {other.line} and {student.line}: two students have the same seed; deal again"
            )
    says = [f"{table.path.name}: {table.guess}"] if table.guess else []
    if unknown:
        lines = ", ".join(map(str, unknown[:4])) + (" ..." if len(unknown) > 4 else "")
        says.append(
            f"{table.path.name}, line {lines}: neither an id nor a name; taken for no student"
        )
    return Roster(table, heading, students, labs.pop() or None, by_seed, tuple(says))
