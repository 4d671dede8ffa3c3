"""Whether values, or an interval, are within what a claim allows."""

from __future__ import annotations

import math
from collections.abc import Iterable

from measuretwice.facts.values import Interval


def judge(
    values: Iterable[float] | Interval, *, least: float = -math.inf, most: float = math.inf
) -> bool | None:
    """Return True where all values lie from `least` to `most`, False where all lie below or all above, and None otherwise:
    then these runs can't tell. Of an interval its ends are judged. Same units throughout."""
    low, high = values.both_ends if isinstance(values, Interval) else _extremes(values)
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None


def _extremes(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    return min(known), max(known)
