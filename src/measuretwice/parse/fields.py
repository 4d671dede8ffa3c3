"""What a field of a tool's output is: its name, its unit, its meaning, and where that is written down.

Each tool has one table, beside its parser: what its classes declare by `printed`, and rows of what is only
shown. The parser, the words of ./lab show and what pages explain follow from it. The unit is the one in which the
tool prints the value. No entry judges a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Meaning:
    """One field: its unit (empty for counts without one, and words), what it is, and who says so."""

    unit: str
    text: str
    source: str


# By the name that the tool prints.
Meanings = dict[str, Meaning]
# Of a field that no table has.
UNKNOWN = Meaning("", "", "")


def table(source: str, rows: dict[str, tuple[str, str]]) -> Meanings:
    """Return the meanings of rows of a name with its unit and its text."""
    return {name: Meaning(unit, text, source) for name, (unit, text) in rows.items()}


def printed(
    name: str, unit: str, text: str, read: Callable[[str], object] | None = None, **options: Any
) -> Any:
    """Declare a dataclass's field as what a tool prints by this `name`.

    `read` makes a value of the tool's word; `options` are those of dataclasses.field.
    """
    row = {"name": name, "unit": unit, "text": text, "read": read}
    return dataclasses.field(metadata=row, **options)


def printed_by(kind: type) -> dict[str, str]:
    """Return the fields of a dataclass that its tool prints, by the tool's name for each."""
    return {row.metadata["name"]: row.name for row in dataclasses.fields(kind) if row.metadata}


def readers_of(kind: type) -> dict[str, tuple[str, Callable[[str], object]]]:
    """Return, by the tool's name, the field and the reader of each that has one."""
    return {
        row.metadata["name"]: (row.name, row.metadata["read"])
        for row in dataclasses.fields(kind)
        if row.metadata.get("read")
    }


def meanings_of(kind: type, source: str) -> Meanings:
    """Return what each field of a dataclass means, by the tool's name for it."""
    rows = (row.metadata for row in dataclasses.fields(kind) if row.metadata)
    return {row["name"]: Meaning(row["unit"], row["text"], source) for row in rows}
