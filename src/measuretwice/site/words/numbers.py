"""Numbers as pages show them: rounded, with their unit, never with an exponent."""

from __future__ import annotations

from datetime import datetime

from measuretwice import facts
from measuretwice.facts import notation
from measuretwice.facts.notation import SPACE
from measuretwice.site.words.registry import number_filter

WORDS = "none one two three four five six seven eight nine ten eleven twelve".split()

sig = number_filter("x | sig(3)")(notation.sig)
count = number_filter("x | count")(notation.count)


@number_filter("x | mbit")
def mbit(value: float, digits: int = 3) -> str:
    """Bit/s as Mbit/s."""
    return f"{sig(value / 1e6, digits)}{SPACE}Mbit/s"


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


@number_filter("x | day")
def day(iso: str) -> str:
    """A date as in 21 November 2026."""
    return datetime.fromisoformat(iso).strftime("%d %B %Y").lstrip("0")


@number_filter("n | in_words")
def in_words(number: int) -> str:
    """A small whole number in words, 0 as none; from 13 on in digits."""
    return WORDS[number] if number < len(WORDS) else str(number)
