"""Numbers as pages show them: rounded, with their unit, never with an exponent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from measuretwice import facts
from measuretwice.facts import notation
from measuretwice.facts.notation import SPACE
from measuretwice.site.words.registry import number_filter
from measuretwice.stats.intervals import mean_interval, mean_interval_within, median_interval

sig = number_filter("x | sig(3)")(notation.sig)
count = number_filter("x | count")(notation.count)


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
    return str(facts.seconds(value, digits))


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
