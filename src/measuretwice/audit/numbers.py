"""A cell's number, with the interval that its last digit leaves open, and its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from measuretwice.base.errors import UserError

# What people write where there is no value.
NOTHING = {"", "-", "--", "n/a", "na", "null", "none", "\N{EN DASH}", "\N{EM DASH}"}
CELL = re.compile(r"([+-]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d{1,6})?)\s*(\D{0,12})")
# A longer number was not measured.
MOST_DIGITS = 60
# Nor were these: within them a float holds every product that is computed here.
LARGEST, SMALLEST = 1e30, 1e-30

RATE = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kKMmGg]i?)?(?P<what>[bB]its?|[bB]ytes?|[bB])"
    r"(?:[pP][sS]|/s(?:ec)?|[ _]?per[ _]?(?:second|sec|s))(?![A-Za-z])"
    r"|(?<![A-Za-z])(?P<short>[kKMmGg])[bB]its?(?:[ _]s)?(?![A-Za-z])"
)
TIME = re.compile(
    r"(?<![A-Za-z'])(?:(?P<ms>ms|msecs?|milliseconds?)|(?P<us>us|\N{MICRO SIGN}s|usecs?|microseconds?)"
    r"|(?P<s>s|secs?|seconds?))(?![A-Za-z])"
)
PERCENT = re.compile(r"%|(?<![A-Za-z])(?:per ?cent|pct)(?![A-Za-z])", re.IGNORECASE)
PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 1024.0, "mi": 1024.0**2, "gi": 1024.0**3}


@dataclass(frozen=True)
class Unit:
    """A unit as it is written, and how many bit/s, seconds or ones it is."""

    name: str
    factor: float
    quantity: str


@dataclass(frozen=True)
class Number:
    """A number as it was printed, and the interval that its last digit leaves open."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> Number:
        """Read `95.75` or `1.02E+11`; ValueError for anything else, and for what nobody measures."""
        try:
            exact = Decimal(text.strip())
            half = Decimal(5).scaleb(int(exact.as_tuple().exponent) - 1)
            number = cls(float(exact), float(exact - half), float(exact + half))
        except (ArithmeticError, TypeError, ValueError):
            raise ValueError(f"{text!r} is no number") from None
        if number.high > LARGEST or number.low < -LARGEST or 0 < abs(number.value) < SMALLEST:
            raise ValueError(f"{text!r} is no number that can be measured")
        return number

    def __mul__(self, factor: float) -> Number:
        return Number(self.value * factor, self.low * factor, self.high * factor)


def find_unit(text: str) -> tuple[Unit | None, str]:
    """Find a unit in a heading or behind a number: the unit, and the text without it."""
    if match := RATE.search(text):
        prefix = (match["short"] or match["prefix"] or "").lower()
        # Bps and B/s are bytes; but who writes MBPS writes all in capitals.
        what = match["what"] or "bit"
        large = what == "B" and not match[0].isupper()
        bits = 8 if large or what.lower().startswith("byte") else 1
        unit = Unit(match[0], PREFIXES[prefix] * bits, "rate")
    elif match := TIME.search(text):
        factor = {"ms": 1e-3, "us": 1e-6, "s": 1.0}[match.lastgroup or "s"]
        unit = Unit(match[0], factor, "time")
    elif match := PERCENT.search(text):
        unit = Unit("%", 0.01, "ratio")
    else:
        return None, text
    return unit, f"{text[: match.start()]} {text[match.end() :]}"


def read_cell(text: str, decimal_comma: bool) -> tuple[Number | None, Unit | None]:
    """Read a cell: its number, none where it is empty, and the unit behind it, if any.

    Digits may stand in groups of three. ValueError says what the text is not.
    """
    if text.lower() in NOTHING:
        return None, None
    bare = re.sub("(?<=\\d)[ \u00a0\u202f'](?=\\d{3})", "", text)
    match = CELL.fullmatch(bare)
    if not match or len(bare) > MOST_DIGITS:
        raise ValueError(f"{text[:30]!r} is no number")
    digits, behind = match[1], match[2].strip()
    mark, group = (",", ".") if decimal_comma else (".", ",")
    digits = re.sub(rf"(?<=\d)\{group}(?=\d{{3}}(?:\D|$))", "", digits).replace(mark, ".")
    unit = None
    if behind:
        unit, rest = find_unit(f" {behind}")
        if unit is None or rest.strip():
            raise ValueError(f"{text[:30]!r} is no number")
    return Number.of(digits), unit


def read_rate_bps(text: str) -> float:
    """Read a link's rate, `10gbit` or `100 Mbit/s`; UserError for anything else."""
    try:
        number, unit = read_cell(text.strip(), decimal_comma=False)
    except ValueError:
        number, unit = None, None
    if number is None or unit is None or unit.quantity != "rate" or number.value <= 0:
        raise UserError(f"--rate {text}: expected a rate with its unit, such as 10gbit or 100mbit")
    return number.value * unit.factor


def significant_digits(text: str) -> int:
    """Return how many digits of a number say something: without zeros at either end."""
    digits = re.sub(r"\D", "", re.split(r"[eE]", text)[0])
    return len(digits.strip("0"))
