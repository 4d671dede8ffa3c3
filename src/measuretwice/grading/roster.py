"""The class: who is in it, as a learning management system exports it, and whose seed is which.

A dealt roster is the same file with a lab, a seed and commands behind each student. Seeds follow
from a word that the instructor keeps and the student's id: dealt again, they are the same.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError

# In which column the id stands: the first of these that every student has, each another.
ID_COLUMNS = (
    "student id", "sis user id", "id number", "username", "sis login id", "id",
    "email address", "email", "e-mail",
)  # fmt: skip
NAME_COLUMNS = ("student", "name", "full name", "student name")
FIRST_AND_LAST = (("first name", "last name"), ("first name", "surname"), ("firstname", "lastname"))
LAB_COLUMN, SEED_COLUMN, COMMANDS_COLUMN = "lab", "seed", "commands"
# A student's seeds are this many in a row: a stage that repeats takes the next ones.
SEEDS_EACH = 100
# Not the first block: recorded runs have their seeds there, and so has who sets none.
FIRST_BLOCK, LAST_BLOCK = 1, (2**31 - 1) // SEEDS_EACH - 1
MAX_BYTES = 16 * 2**20
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Student:
    """One of the class. `row` is their line of the roster, `seed` the first of their seeds."""

    id: str
    name: str
    row: dict[str, str]
    seed: int | None = None

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + SEEDS_EACH) if self.seed is not None else range(0)

    @property
    def keys(self) -> set[str]:
        """What a system may call this student by: ids and the address's first part."""
        ids = {value.casefold() for name, value in self.row.items() if _plain(name) in ID_COLUMNS}
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
    path: Path
    columns: list[str]
    students: list[Student]
    lab: str | None = None
    by_seed: dict[int, Student] = field(default_factory=dict)

    def owner(self, seed: int) -> Student | None:
        """Whose seed was this dealt to?"""
        return self.by_seed.get(seed // SEEDS_EACH)


def squash(text: str) -> str:
    """Letters and digits only, without accents, small: what systems leave of a name in a path."""
    bare = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in bare.casefold() if sign.isalnum())


def cell(text: object) -> str:
    """Text as a spreadsheet shows it: never a formula, never a control character."""
    plain = "".join(" " if unicodedata.category(s) == "Cc" and s != "\n" else s for s in str(text))
    return f"'{plain}" if plain.startswith(FORMULA) else plain


def csv_text(rows: list[list[str]]) -> str:
    """Rows as CSV; the first has the headings. Cells that begin like a formula get an apostrophe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[cell(text) for text in row] for row in rows])
    return out.getvalue()


def read_roster(path: Path) -> Roster:
    """Read a roster, dealt or not; UserError says what is wrong with it, and where."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path}: larger than {MAX_BYTES >> 20} MiB: no roster")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8; save it as 'CSV UTF-8'") from None
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise UserError(f"{path}: not a CSV ({error})") from None
    if not lines or not any(lines[0]):
        raise UserError(f"{path}: is empty; expected a heading and a line for each student")
    columns = [heading.strip() for heading in lines[0]]
    if len(set(columns)) != len(columns):
        raise UserError(f"{path}: a heading stands twice: {', '.join(columns)}")
    rows = [
        dict(zip(columns, (text.strip() for text in (*line, *[""] * len(columns))), strict=False))
        for line in lines[1:]
        # Canvas' second line has the points, its last a made-up student.
        if any(text.strip() for text in line)
        and "points possible" not in line[0].casefold()
        and line[0].strip() != "Student, Test"
    ]
    if not rows:
        raise UserError(f"{path}: has no students")
    return _roster(path, columns, rows)


def _roster(path: Path, columns: list[str], rows: list[dict[str, str]]) -> Roster:
    id_column = _id_column(path, columns, rows)
    labs = {row.get(LAB_COLUMN, "") for row in rows} if SEED_COLUMN in columns else {""}
    if len(labs) > 1:
        raise UserError(f"{path}: seeds of several labs ({', '.join(sorted(labs))}); one file each")
    students, by_seed = [], {}
    for line, row in enumerate(rows, start=2):
        if row[id_column].startswith(FORMULA):
            raise UserError(f"{path}: the id {row[id_column]!r} begins like a formula; mend it")
        student = Student(row[id_column], _name(row, id_column), row, _seed(path, line, row))
        students.append(student)
        if student.seed is not None:
            by_seed[student.seed // SEEDS_EACH] = student
    if len(by_seed) != len(students) and SEED_COLUMN in columns:
        raise UserError(f"{path}: two students have one seed; deal anew")
    return Roster(path, columns, students, labs.pop() or None, by_seed)


def _id_column(path: Path, columns: list[str], rows: list[dict[str, str]]) -> str:
    known = {_plain(column): column for column in columns}
    for wanted in ID_COLUMNS:
        values = [row[known[wanted]] for row in rows] if wanted in known else [""]
        if all(values) and len(set(values)) == len(values):
            return known[wanted]
    tried = ", ".join(known[column] for column in ID_COLUMNS if column in known)
    if tried:
        raise UserError(f"{path}: {tried}: a student has none there, or two have the same")
    raise UserError(
        f"{path}: no column with an id; expected one called 'Student ID', 'SIS User ID', "
        "'ID number', 'Username' or 'Email address'"
    )


def _plain(column: str) -> str:
    return column.casefold().replace("_", " ").strip()


def _name(row: dict[str, str], id_column: str) -> str:
    cells = {_plain(column): value for column, value in row.items()}
    name = next((cells[column] for column in NAME_COLUMNS if cells.get(column)), "")
    for first, last in FIRST_AND_LAST:
        if not name and (first in cells or last in cells):
            name = f"{cells.get(first, '')} {cells.get(last, '')}".strip()
    # The apostrophe that cell() put there.
    if name.startswith("'") and name[1:].startswith(FORMULA):
        name = name[1:]
    return name or row[id_column]


def _seed(path: Path, line: int, row: dict[str, str]) -> int | None:
    text = row.get(SEED_COLUMN)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) % SEEDS_EACH:
        raise UserError(f"{path}, line {line}: the seed {text!r} is none that ./lab deal makes")
    return int(text)


def deal(students: list[Student], lab: str, word: str) -> dict[str, int]:
    """Return each student's first seed by id: from the word, the lab and the id alone.

    Where two ids would meet (rarely: there are 21 million places), the one that comes later in
    the alphabet takes another. The word keeps students from working out who has which seed.
    """
    taken: set[int] = set()
    seeds = {}
    for student in sorted(students, key=lambda student: student.id):
        for attempt in range(1000):
            text = f"{lab}\n{student.id}\n{attempt}"
            made = hmac.new(word.encode(), text.encode(), hashlib.sha256).digest()
            block = FIRST_BLOCK + int.from_bytes(made[:8], "big") % (LAST_BLOCK - FIRST_BLOCK + 1)
            if block not in taken:
                break
        taken.add(block)
        seeds[student.id] = block * SEEDS_EACH
    return seeds
