"""What a check looks at, and what it says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from measuretwice.lab import Value
from measuretwice.measure.values import Measured

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """What was measured, what was expected instead, and why that matters.

    `hint` is one step of the ladder (where to look; what to compare; the cause) or None;
    `page` is where the site explains it, below the site's root.
    """

    id: str
    severity: Severity
    measured: str
    expected: str
    why: str
    hint: str | None = None
    page: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A run as the checks see it: what was wanted, and what was measured (None: not known)."""

    wanted: dict[str, Value]
    measured: Measured
    max_loss_ratio: float | None = None

    def want(self, name: str) -> float | None:
        value = self.wanted.get(name)
        return float(value) if isinstance(value, int | float) else None

    def got(self, name: str) -> float | None:
        return self.measured.get(name)
