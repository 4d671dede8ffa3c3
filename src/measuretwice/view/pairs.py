"""Snapshots in pairs: what a node's tool printed before the test, and after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.view.source import RawFile

_WHEN = re.compile(r"(?<![a-z])(before|after)(?![a-z])")


@dataclass(frozen=True)
class Pair:
    """One node's file, taken before, after, or (as `after` alone) at some time."""

    node: str
    before: RawFile | None
    after: RawFile | None

    @property
    def both(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def names(self) -> str:
        """The files' names."""
        return ", ".join(file.name for file in (self.before, self.after) if file)


def pairs(files: Sequence[RawFile]) -> list[Pair]:
    """Return the files in pairs whose names differ by `before` and `after` only, in order."""
    found: dict[str, dict[str, RawFile]] = {}
    for file in files:
        when = _WHEN.search(file.base)
        key = _WHEN.sub("*", file.name) if when else file.name
        found.setdefault(key, {})[when[1] if when else "after"] = file
    return [
        Pair(next(iter(these.values())).node, these.get("before"), these.get("after"))
        for these in found.values()
    ]
