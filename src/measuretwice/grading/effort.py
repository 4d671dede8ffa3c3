"""How long a report takes to mark, from its length: said beforehand, so that an evening can be planned.

A rule of thumb, with its numbers in sight. It knows how much there is to read, not how well it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

# Prose with numbers that are to be compared with a key is read at about half the usual pace.
WORDS_A_MINUTE = 120
MINUTES_A_CRITERION = 0.5
MINUTES_A_PLACE_TO_LOOK_AT = 1.0
MINUTES_TO_BEGIN = 1.0


def marking_minutes(answers: Iterable[str], criteria: int, look_at: int) -> int:
    """Whole minutes for a report: `criteria` are those still open, `look_at` lines on what is odd."""
    words = sum(len(answer.split()) for answer in answers)
    minutes = (
        MINUTES_TO_BEGIN
        + words / WORDS_A_MINUTE
        + criteria * MINUTES_A_CRITERION
        + look_at * MINUTES_A_PLACE_TO_LOOK_AT
    )
    return math.ceil(minutes)


def rule() -> str:
    """The rule in words."""
    return (
        f"{WORDS_A_MINUTE} words a minute, {MINUTES_A_CRITERION:g} minutes for each criterion that is open, "
        f"{MINUTES_A_PLACE_TO_LOOK_AT:g} for each line that is odd, {MINUTES_TO_BEGIN:g} to begin"
    )
