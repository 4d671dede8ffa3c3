"""Numbers as pages show them: rounded, with their unit, never with an exponent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from measuretwice.stats.intervals import mean_interval, median_interval

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


def _grouped(text: str) -> str:
    whole, point, part = text.partition(".")
    return f"{int(whole):,}".replace(",", THIN) + point + part if len(whole) > 4 else text


def count(value: float) -> str:
    """A whole number in groups of three: 1 302 324."""
    return _grouped(f"{value:.0f}")


def mbit(value: float, digits: int = 3) -> str:
    """Bit/s as Mbit/s."""
    return f"{sig(value / 1e6, digits)}{SPACE}Mbit/s"


def ms(value: float, digits: int = 4) -> str:
    """Milliseconds."""
    return f"{sig(value, digits)}{SPACE}ms"


def seconds(value: float, digits: int = 3) -> str:
    """Seconds; from two minutes on minutes, from two hours on hours."""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if value >= 2 * size:
            return f"{sig(value / size, digits)}{SPACE}{unit}"
    return f"{sig(value, digits)}{SPACE}s"


def percent(value: float, digits: int = 3) -> str:
    """A ratio in percent: 0.1566 becomes 15.7 %."""
    return f"{sig(100 * value, digits)}{SPACE}%"


def size(value: float) -> str:
    """Bytes: 1448 B."""
    return f"{count(value)}{SPACE}B"


def times(value: float, digits: int = 3) -> str:
    """A factor: 12.9 times."""
    return f"{sig(value, digits)}{SPACE}times"


def day(iso: str) -> str:
    """A date as in 21 November 2026."""
    return datetime.fromisoformat(iso).strftime("%d %B %Y").lstrip("0")


def mean(values: Iterable[float]) -> float:
    """The mean."""
    return mean_interval(list(values))[0]


def interval(values: Iterable[float]) -> tuple[float, float]:
    """The ends of the mean's 95 % interval."""
    return mean_interval(list(values))[1:]


def median(values: Iterable[float | None]) -> tuple[float, float, float]:
    """The median and the ends of its 95 % interval. None, what did not come to its end, is infinite."""
    return median_interval([math.inf if value is None else value for value in values])


FILTERS: dict[str, Callable[..., Any]] = {
    "sig": sig,
    "count": count,
    "mbit": mbit,
    "ms": ms,
    "seconds": seconds,
    "percent": percent,
    "bytes": size,
    "times": times,
    "day": day,
    "mean": mean,
    "interval": interval,
    "median": median,
}
