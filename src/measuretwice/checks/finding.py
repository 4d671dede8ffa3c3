"""What a check says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """What was measured, what was expected instead, and why that matters.

    `off` says what is off, and by how much, where `measured` and `expected` would say the cause:
    whoever is still looking for that reads it in their place. `hint` is one step of the ladder (where to look; what to compare; the cause) or None;
    `page` is where the site explains it, below the site's root. `consequences` are what else is off
    because of it.
    """

    id: str
    severity: Severity
    measured: str
    expected: str
    why: str
    hint: str | None = None
    page: str = ""
    off: str = ""
    consequences: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SetFinding:
    """A finding and the runs that it is about, by their place in the list that was given."""

    finding: Finding
    members: tuple[int, ...]
