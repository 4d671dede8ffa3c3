"""Learning management systems: how each names what is handed in, an assignment's column, and a roster's columns.

What is known of them stands in `systems/*.toml`, a file a system, and `headings.toml` for all of them; another system is
another file there.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from measuretwice.base.errors import UserError

FOLDER = Path(__file__).with_name("systems")
# Where an id stands: the first of these that every student has, each another.
ID_KINDS = (
    "student_id", "sis_id", "id_number", "username", "login_id", "user_id", "email", "identifier",
)  # fmt: skip
# A long number as a spreadsheet shortens it: 1,23E+11.
SHORTENED = re.compile(r"[0-9][.,][0-9]+E\+[0-9]+", re.IGNORECASE)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Files(_Part):
    """How a system names a file or folder that a student handed in.

    `name` is a regular expression for all of it. Its groups: `name` of the student, `number` the system's own of the
    student, `user` what ends in the username, `late`, `attempt` as attempts are put in order, and any others that the
    texts quote in braces. `number_in` is the roster's column that has the number, or "participant"; `when` says when it
    was handed in, `feedback` is the name under which the system takes a file back, and `note` a regular expression for
    what the system writes beside it.
    """

    name: re.Pattern[str]
    number_in: str = ""
    when: str = ""
    feedback: str = ""
    note: re.Pattern[str] | None = None


class Grades(_Part):
    """What a system puts around an assignment's title in a column's heading, as regular expressions."""

    around: tuple[re.Pattern[str], ...]


class Headings(_Part):
    """A roster's columns by what they hold: the headings of each, in any language."""

    student_id: tuple[str, ...] = ()
    sis_id: tuple[str, ...] = ()
    id_number: tuple[str, ...] = ()
    username: tuple[str, ...] = ()
    login_id: tuple[str, ...] = ()
    user_id: tuple[str, ...] = ()
    email: tuple[str, ...] = ()
    identifier: tuple[str, ...] = ()
    first_name: tuple[str, ...] = ()
    last_name: tuple[str, ...] = ()
    full_name: tuple[str, ...] = ()
    either_name: tuple[str, ...] = ()
    grade: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    # Not of headings but of cells: what stands before a student's number.
    participant: tuple[str, ...] = ()


class System(_Part):
    """One file of `systems/`."""

    files: Files | None = None
    grades: Grades | None = None
    headings: Headings = Headings()


@cache
def systems() -> dict[str, System]:
    """Return all systems, each by its file's name; UserError where a file isn't right."""
    by_name = {}
    for path in sorted(FOLDER.glob("*.toml")):
        try:
            by_name[path.stem] = System.model_validate(tomllib.loads(path.read_text("utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            raise UserError(f"{path}: {' '.join(str(error).split())}") from None
    return by_name


@cache
def headings(kind: str) -> frozenset[str]:
    """Return the headings of one kind of column, of all systems, as normalize_heading() gives them."""
    return frozenset(
        normalize_heading(heading)
        for system in systems().values()
        for heading in getattr(system.headings, kind)
    )


def normalize_heading(heading: str) -> str:
    """Return a heading without what doesn't tell it from others: accents, capitals, kinds of quotes, spaces."""
    text = unicodedata.normalize(
        "NFKD", heading.replace("\u2019", "'").replace("_", " ").casefold()
    )
    bare = "".join(letter for letter in text if not unicodedata.combining(letter))
    return " ".join(bare.strip(" \t\ufeff'\":.*").split())


def id_kind(heading: str) -> int | None:
    """Return which of ID_KINDS a heading is."""
    name = normalize_heading(heading)
    return next((n for n, kind in enumerate(ID_KINDS) if name in headings(kind)), None)


def is_heading_line(cells: Sequence[str]) -> bool:
    """Return whether this line has the headings: it has a column in which an id can stand."""
    return any(id_kind(text) is not None for text in cells)


def participant_number(text: str) -> str | None:
    """Return the number in 'Participant 1234', as Moodle writes it before a student's number."""
    match = re.fullmatch(r"(.*?)\s*([0-9]+)", normalize_heading(text))
    return match[2] if match and match[1] in headings("participant") else None


def name_columns(columns: Sequence[str]) -> tuple[int | None, int | None, int | None]:
    """Return the indexes of the full name, the first and the last name, each where there is one."""
    names = [normalize_heading(heading) for heading in columns]

    def index(kind: str) -> int | None:
        return next((n for n, name in enumerate(names) if name in headings(kind)), None)

    full, first, last = index("full_name"), index("first_name"), index("last_name")
    either = index("either_name")
    if either is not None:
        if first is not None and last is None:
            last = either
        elif last is not None and first is None:
            first = either
        elif full is None:
            full = either
    return full, first, last


def assignment_titles(heading: str) -> set[str]:
    """Return what an assignment in this column may be called: the heading, less what systems put around a title."""
    forms = [
        form for system in systems().values() if system.grades for form in system.grades.around
    ]
    titles = {heading.strip()}
    for _ in forms:
        titles |= {form.sub("", text) for form in forms for text in titles}
    return {normalize_heading(text) for text in titles}


@dataclass(frozen=True)
class FileName:
    """What a system's name of a handed-in file says, each where it does: see `Files`."""

    system: str = ""
    name: str | None = None
    number: str | None = None
    number_in: str = ""
    user: str | None = None
    late: bool = False
    attempt: str = ""
    when: str = ""
    feedback: str | None = None
    is_note: bool = False


def read_file_name(path: str) -> FileName:
    """Read the name of a file or folder, whichever system gave it."""
    for system, forms in systems().items():
        if forms.files and (match := forms.files.name.fullmatch(path)):
            groups = {key: text or "" for key, text in match.groupdict().items()} | {"path": path}
            files = forms.files
            return FileName(
                system=system,
                name=groups.get("name"),
                number=groups.get("number"),
                number_in=files.number_in,
                user=groups.get("user"),
                late=bool(groups.get("late")),
                attempt=groups.get("attempt", ""),
                when=files.when.format_map(groups),
                feedback=files.feedback.format_map(groups) or None,
                is_note=bool(files.note and files.note.fullmatch(path)),
            )
    return FileName()


@dataclass(frozen=True)
class HandedIn:
    """One file or folder that a student handed in, and whether it counts or a later attempt does."""

    path: Path
    named: FileName
    counts: bool = True

    @property
    def remark(self) -> str:
        """A remark on when it came, and whether it is marked; empty where there is nothing to say."""
        parts = [self.named.when] if self.named.when else []
        parts += ["late"] if self.named.late else []
        parts += [] if self.counts else ["an earlier attempt; not marked"]
        return ", ".join(parts)


def latest_attempts(paths: Sequence[Path]) -> list[HandedIn]:
    """Return a student's files with which of them count: where a system names attempts by their time, those of the last."""
    named = [(path, read_file_name(path.name)) for path in paths]
    last = max((name.attempt for _, name in named), default="")
    return [HandedIn(path, name, name.attempt in ("", last)) for path, name in named]
