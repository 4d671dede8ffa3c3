"""Numbers as pages show them: rounded, with their unit, never with an exponent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from measuretwice.site.words.registry import number_filter
from measuretwice.stats.intervals import mean_interval, mean_interval_within, median_interval

# Between a number and its unit, and between groups of three digits: lines don't break there.
SPACE = "\u00a0"
THIN = "\u202f"


@number_filter("x | sig(3)")
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


@number_filter("x | count")
def count(value: float) -> str:
    """A whole number in groups of three: 1 302 324."""
    return _grouped(f"{value:.0f}")


@number_filter("x | mbit")
def mbit(value: float, digits: int = 3) -> str:
    """Bit/s as Mbit/s."""
    return f"{sig(value / 1e6, digits)}{SPACE}Mbit/s"


@number_filter("x | ms")
def ms(value: float, digits: int = 4) -> str:
    """Milliseconds, with four significant digits."""
    return f"{sig(value, digits)}{SPACE}ms"


@number_filter("x | seconds")
def seconds(value: float, digits: int = 3) -> str:
    """Seconds; from two minutes on minutes, from two hours on hours."""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if value >= 2 * size:
            return f"{sig(value / size, digits)}{SPACE}{unit}"
    return f"{sig(value, digits)}{SPACE}s"


@number_filter("x | percent")
def percent(value: float, digits: int = 3) -> str:
    """A ratio in percent: 0.1566 becomes 15.7 %."""
    return f"{sig(100 * value, digits)}{SPACE}%"


@number_filter("x | bytes", name="bytes")
def size(value: float) -> str:
    """Bytes, whole: 1448 B."""
    return f"{count(value)}{SPACE}B"


@number_filter("x | times")
def times(value: float, digits: int = 3) -> str:
    """A factor: 12.9 times."""
    return f"{sig(value, digits)}{SPACE}times"


@number_filter("x | day")
def day(iso: str) -> str:
    """A date as in 21 November 2026."""
    return datetime.fromisoformat(iso).strftime("%d %B %Y").lstrip("0")


@number_filter("values | mean")
def mean(values: Iterable[float]) -> float:
    """Of a list, the mean: `{{ runs("acks-delayed") | map(attribute="ratio") | mean | sig }}`."""
    return mean_interval(list(values))[0]


@number_filter("values | interval")
def interval(
    values: Iterable[float], low: float | None = None, high: float | None = None
) -> tuple[float, float]:
    """Of a list, the two ends of the mean's 95 % interval; of what is always in low..high, both: `interval(0, 1)`."""
    if low is None or high is None:
        return mean_interval(list(values))[1:]
    return mean_interval_within(list(values), low, high)[1:]


@number_filter("values | median")
def median(values: Iterable[float | None]) -> tuple[float, float, float]:
    """Of a list, the median and the two ends of its 95 % interval. None, what did not come to its end, is
    infinite."""
    return median_interval([math.inf if value is None else value for value in values])
