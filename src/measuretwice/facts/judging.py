"""Whether an interval is within what a claim allows."""

from __future__ import annotations

import math


def judge(
    ends: tuple[float, float], *, least: float = -math.inf, most: float = math.inf
) -> bool | None:
    """Return True where all of an interval lies from `least` to `most`, False where all of it lies outside, and None
    where a limit lies inside the interval: then these runs can't tell. Same units throughout."""
    low, high = ends
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None
