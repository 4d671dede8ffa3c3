"""Looking at runs: raw files made readable, two runs side by side, any run over time. No verdicts.

Here is the value that the modules return for ./lab show: blocks of named values, each with unit and meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from measuretwice.parse.fields import UNKNOWN, Meaning

Cell = float | int | str | bool | None


@dataclass(frozen=True)
class Row:
    """One field: its name as the tool prints it, a value for each of its block's columns."""

    name: str
    values: tuple[Cell, ...]
    meaning: Meaning = UNKNOWN


@dataclass(frozen=True)
class Block:
    """One object of a raw file: a qdisc, a connection, a node's counters.

    `place` is where it stands: the file, and the line or the JSON path in it. `notes` are lines for
    its reader. By `rank` blocks of a word come in order: those that tell most first.
    """

    title: str
    place: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    rank: tuple[int, ...] = ()

    @property
    def sources(self) -> list[str]:
        """The sources of the meanings of its fields."""
        return list(dict.fromkeys(row.meaning.source for row in self.rows if row.meaning.source))

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "place": self.place,
            "fields": [_field(row, self.columns) for row in self.rows],
            "notes": list(self.notes),
        }


def _field(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    meaning = row.meaning
    return {
        "name": row.name,
        **dict(zip(columns, row.values, strict=True)),
        "unit": meaning.unit,
        "meaning": meaning.text,
        "source": meaning.source,
    }


@dataclass
class Shown:
    """What became of the files that a word means: blocks, and what can't be shown, in words."""

    blocks: list[Block] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def difference(before: Cell, after: Cell) -> Cell:
    """After less before, where both are numbers; a bool is none."""
    if isinstance(before, bool) or isinstance(after, bool):
        return None
    if isinstance(before, int | float) and isinstance(after, int | float):
        return after - before
    return None
