"""The class: who is in it, as a learning management system exports it, and seeds dealt to each.

A dealt roster is the same file with a lab, a seed and commands behind each student. The file's
form is kept: whatever is written of a roster goes back into the system that it came from.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base import LAST_SEED
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
from measuretwice.lab import Lab

DEALT_COLUMNS = LAB_COLUMN, SEED_COLUMN, COMMANDS_COLUMN = "lab", "seed", "commands"
# A student's seeds are this many in a row: a stage that repeats takes the next ones.
SEEDS_EACH = 100
# Not the first block: recorded runs have their seeds there, and so has who sets none.
FIRST_BLOCK, LAST_BLOCK = 1, LAST_SEED // SEEDS_EACH - 1
MAX_STUDENTS = 5000
# Where a heading may stand: lists of universities have a title and a date above it.
MAX_LINES_ABOVE = 12
# Canvas' lines that are of nobody: its points, how they are posted, a made-up student.
NOBODY = re.compile(r"\s*(points possible|manual posting|muted|\(read only\))", re.IGNORECASE)
TEST_STUDENT = {"studenttest", "teststudent"}


@dataclass(frozen=True)
class Student:
    """One of the class. `row` is their line of the roster by heading, `line` its number, `seed` the first of
    their seeds, `number` Moodle's number of them in this assignment, `status` what it says of what they
    handed in."""

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
        """The names that a system may call this student by: ids and the address's first part."""
        ids = {
            value.casefold().lstrip("#")
            for name, value in self.row.items()
            if id_kind(name) is not None and participant_number(value) is None
        }
        return {
            key
            for student_id in ids
            for key in (student_id, student_id.split("@")[0])
            if len(key) > 1
        }

    @property
    def names(self) -> set[str]:
        """The name's ways of being written, squashed: first name first, and last name first."""
        words = re.split(r"\s*,\s*", self.name, maxsplit=1)
        if len(words) == 1:
            words = self.name.rsplit(maxsplit=1)
        return {squash("".join(words)), squash("".join(reversed(words)))} - {""}


@dataclass(frozen=True)
class Roster:
    """A class's file: its students, the line with its headings, and lines (`says`) on how it was read."""

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
        """Return the student whom this seed was dealt to; None for nobody's."""
        return self.by_seed.get(seed // SEEDS_EACH)


def squash(text: str) -> str:
    """Return letters and digits only, without accents, small: what systems leave of a name in a path."""
    text = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in text if character.isalnum())


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
    names = [clean_name(text) for text in heading.cells]
    _refuse_same_headings(path, heading, names)
    kind_by_column = {
        column: kind for column, name in enumerate(names) if (kind := id_kind(name)) is not None
    }
    identifying = sorted({*kind_by_column, *(c for c in name_columns(names) if c is not None)})
    rows: list[tuple[Line, list[str]]] = []
    unknown: list[int] = []
    for line in table.lines[table.lines.index(heading) + 1 :]:
        cells = [text.strip() for text in line.cells]
        cells += [""] * (len(names) - len(cells))
        if line.is_blank or _is_no_student(cells, identifying):
            continue
        if not any(cells[column] for column in identifying):
            unknown.append(line.number)
            continue
        if extra := [text for text in cells[len(names) :] if text]:
            raise UserError(
                f"{path}, line {line.number}: {len(names) + len(extra)} cells under {len(names)} "
                "headings; is there a delimiter in a name without quotes?"
            )
        rows.append((line, cells))
    if not rows:
        raise UserError(f"{path}: has no students under the headings of line {heading.number}")
    if len(rows) > MAX_STUDENTS:
        raise UserError(f"{path}: more than {MAX_STUDENTS} students; give one class's file")
    id_column = _id_column(path, names, kind_by_column, rows)
    students = [_student(path, names, line, cells, id_column) for line, cells in rows]
    return _roster(table, heading, students, unknown)


def _refuse_same_headings(path: Path, heading: Line, names: list[str]) -> None:
    """A heading that stands twice matters only where something is read below it."""
    for column, name in enumerate(names):
        has_role = id_kind(name) is not None or name in (SEED_COLUMN, LAB_COLUMN)
        if has_role and name in names[:column]:
            raise UserError(f"{path}, line {heading.number}: the heading {name!r} stands twice")


def _is_no_student(cells: Sequence[str], identifying: Sequence[int]) -> bool:
    """Return whether a line is of no student: points possible, a made-up one, a sum at the end."""
    first = next((text for text in cells if text), "")
    ids = [cells[column] for column in identifying if cells[column]]
    if NOBODY.match(first) and len(ids) <= 1:
        return True
    return any(squash("".join(ids[:count])) in TEST_STUDENT for count in (1, 2))


def _id_column(
    path: Path,
    names: list[str],
    kind_by_column: dict[int, int],
    rows: list[tuple[Line, list[str]]],
) -> int:
    """Return the column with the first kind of id that every student has, each another."""

    def rank(column: int) -> tuple[bool, int]:
        # Any other id is better than Moodle's numbers, which are of this assignment alone.
        has_numbers = any(participant_number(cells[column]) for _, cells in rows)
        return has_numbers, kind_by_column[column]

    gaps = []
    for column in sorted(kind_by_column, key=rank):
        lines_by_id: dict[str, list[int]] = defaultdict(list)
        for line, cells in rows:
            lines_by_id[cells[column].casefold()].append(line.number)
        if lacking := lines_by_id.get(""):
            gaps.append((len(lacking), f"line {lacking[0]} has no {names[column]}"))
            continue
        for lines in lines_by_id.values():
            if len(lines) > 1:
                raise UserError(
                    f"{path}, lines {' and '.join(map(str, lines[:4]))} have the same {names[column]}; "
                    "leave one of them"
                )
        return column
    fewest = min(gaps)[1]
    raise UserError(f"{path}: {fewest}, and there is no other column with an id for everybody")


def _student(path: Path, names: list[str], line: Line, cells: list[str], id_column: int) -> Student:
    where = f"{path}, line {line.number}"
    row: dict[str, str] = {}
    for heading, text in zip(names, cells, strict=False):
        row.setdefault(heading, text)
    id = clean_name(cells[id_column])
    if is_formula(id) or is_formula(cells[id_column]):
        raise UserError(f"{where}: the id {id!r} begins like a formula; correct it")
    if SHORTENED.fullmatch(id):
        raise UserError(
            f"{where}: the id {id} was shortened by a spreadsheet; export the file again, and don't save "
            "it from there"
        )
    full, first, last = (None if c is None else clean_name(cells[c]) for c in name_columns(names))
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


def _roster(table: TextTable, heading: Line, students: list[Student], unknown: list[int]) -> Roster:
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


# Seeds


def deal_seeds(students: list[Student], lab: str, word: str) -> dict[str, int]:
    """Return each student's first seed by id: from the word, the lab and the id alone.

    Where two ids would meet (rarely: there are 21 million blocks), the one that comes later in the
    alphabet takes another. The word keeps students from working out who has which seed.
    """
    dealt_blocks: set[int] = set()
    seeds = {}
    for student in sorted(students, key=lambda student: student.id):
        for attempt in range(1000):
            text = f"{lab}\n{student.id}\n{attempt}"
            digest = hmac.new(word.encode(), text.encode(), hashlib.sha256).digest()
            block = FIRST_BLOCK + int.from_bytes(digest[:8], "big") % (LAST_BLOCK - FIRST_BLOCK + 1)
            if block not in dealt_blocks:
                break
        dealt_blocks.add(block)
        seeds[student.id] = block * SEEDS_EACH
    return seeds


def refuse_other_seeds(path: Path, lab: Lab, seeds: Mapping[str, int]) -> list[str]:
    """Refuse to write over a file of seeds that students may already have; `seeds` are the new ones.

    The same seeds, and those of who joined since, may be written. Returns who isn't among the new.
    """
    if not path.exists():
        return []
    advice = f"give another file with --out, or move {path.name} away"
    try:
        before = read_roster(path)
    except UserError:
        raise UserError(f"{path}: is there already, and is no dealt roster; {advice}") from None
    if not before.by_seed:
        raise UserError(f"{path}: is there already, without seeds; {advice}")
    if before.lab != lab.name:
        raise UserError(f"{path}: has the seeds of {before.lab}, not of {lab.name}; {advice}")
    others = [s for s in before.students if s.id in seeds and seeds[s.id] != s.seed]
    if others:
        raise UserError(
            f"{path}: has other seeds for {len(others)} of {len(seeds)} students (the first in line "
            f"{others[0].line}), dealt with another word or another id; students may have them. Nothing is "
            f"written: {advice}"
        )
    return [student.name for student in before.students if student.id not in seeds]


def dealt_file(roster: Roster, lab: Lab, seeds: Mapping[str, int]) -> bytes:
    """Return the roster in its own form, with each student's lab, seed and commands behind."""
    seed_by_line = {student.line: seeds[student.id] for student in roster.students}
    dealt = _dealt_columns(roster)
    width = len(roster.heading.cells) - len(dealt)
    lines = []
    for line in roster.table.lines:
        cells = [text for column, text in enumerate(line.cells) if column not in dealt]
        seed = seed_by_line.get(line.number)
        added: list[str] = []
        if line is roster.heading:
            added = list(DEALT_COLUMNS)
        elif seed is not None:
            added = [lab.name, str(seed), "\n".join(commands(lab, seed))]
        if added:
            cells = [*cells[:width], *[""] * (width - len(cells)), *added]
        lines.append(cells)
    return roster.table.to_bytes(lines)


def cells_without_deal(roster: Roster) -> list[tuple[Line, list[str]]]:
    """Return every line of a roster with its cells, less those that ./lab deal put there."""
    dealt = _dealt_columns(roster) if SEED_COLUMN in roster.heading.cells else set()
    return [
        (line, [text for column, text in enumerate(line.cells) if column not in dealt])
        for line in roster.table.lines
    ]


def _dealt_columns(roster: Roster) -> set[int]:
    return {column for column, text in enumerate(roster.heading.cells) if text in DEALT_COLUMNS}


def commands(lab: Lab, seed: int) -> list[str]:
    """Return what a student with this seed runs: each case by its number, which tells no cause, or else
    all trials.

    The first run of a case writes the seed into the lab book, so that it holds for all later ones, too.
    """
    cases = [
        f"./lab run {lab.name} --case {number} --seed {seed}"
        for number in range(1, len(lab.file.pitfalls) + 1)
    ]
    return cases or [f"./lab run {lab.name} --seed {seed}"]
