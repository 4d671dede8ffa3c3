"""Numbers as readers see them: rounded, in groups of three digits, never with an exponent."""

from __future__ import annotations

import math

# Between a number and its unit, and between groups of three digits: lines don't break there.
SPACE = "\u00a0"
THIN = "\u202f"


def sig(value: float, digits: int = 3) -> str:
    """`value` with that many significant digits: 0.005730706937 becomes 0.00573."""
    if not math.isfinite(value):
        return "∞" if value == math.inf else str(value)
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    # What is whole was set, and stays so; of what was measured zeros at the end count.
    whole = math.isclose(value, round(value), rel_tol=1e-9)
    return _grouped(f"{round(value, places):.{0 if whole else max(places, 0)}f}")


def count(value: float) -> str:
    """A whole number in groups of three: 1 302 324."""
    return _grouped(f"{value:.0f}")


def _grouped(text: str) -> str:
    whole, point, part = text.partition(".")
    return f"{int(whole):,}".replace(",", THIN) + point + part if len(whole) > 4 else text
