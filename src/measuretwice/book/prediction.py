"""Predictions: their numbers, units and reasons; and how far one was off from what was measured.

Text and numbers in, words out. A factor stands only between two values of one unit: where what was
predicted is of another kind, the words say so instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from measuretwice.lab.schema.cases import Predict
from measuretwice.measure.fields import unit_of

# A number as people write it: 66, 66.5 and, in many languages, 66,5; 1,200, where three digits follow; 3e-4.
NUMBER = re.compile(
    r"[-+]?(?:(?P<grouped>[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?)|\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
)
# A number, and the word behind it, which is its unit where it is none of these.
MEASURE = re.compile(r"(?<![\w.])\d[\d.,]*+(?:[eE][-+]?\d+)?+\s?([%‰×]|[A-Za-zµμ][A-Za-zµμ/²]*)")
NO_UNITS = frozenset(
    "a about again all also and as at because but by for from if in is it more of or since so than that "
    "the then to was when which with".split()
)
# Of a text that is longer, the rest is no prediction's.
MAX_CHARACTERS = 4000
REASON_WORDS = 4
# The unit of a share.
SHARE = "0 to 1"
OF_ALL = "(1 = all)"
TIMES = "times"
# Further off, a factor says nothing.
LEAST_FACTOR = 0.01
# A text whose first number stands behind nothing else begins with it.
BEFORE_THE_FIRST = re.compile(
    r"(?:[\W_]|\b(?:about|around|approximately|approx|roughly|circa|ca|some|nearly|almost|maybe|perhaps|probably"
    r"|i|think|guess|expect|predict|say|it|is|will|be)\b)*",
    re.IGNORECASE,
)
# What people write behind a number, by what it measures: how much of the first one it is.
# Bits and bytes differ in their capital alone, so that short forms are told by it.
KINDS: dict[str, dict[str, float]] = {
    "rate": {
        "bit/s": 1, "bits/s": 1, "bps": 1, "b/s": 1,
        "kbit/s": 1e3, "kbits/s": 1e3, "kbit": 1e3, "kbps": 1e3, "kb/s": 1e3, "Kb/s": 1e3,
        "mbit/s": 1e6, "mbits/s": 1e6, "mbit": 1e6, "mbps": 1e6, "Mb/s": 1e6, "mb/s": 1e6,
        "gbit/s": 1e9, "gbits/s": 1e9, "gbit": 1e9, "gbps": 1e9, "Gb/s": 1e9, "gb/s": 1e9,
        "B/s": 8, "bytes/s": 8, "kB/s": 8e3, "KB/s": 8e3, "MB/s": 8e6, "GB/s": 8e9,
    },
    "size": {
        "B": 1, "byte": 1, "bytes": 1, "kB": 1e3, "KB": 1e3, "kbyte": 1e3, "kbytes": 1e3, "MB": 1e6, "mbyte": 1e6,
        "mbytes": 1e6, "KiB": 2**10, "MiB": 2**20, "bit": 1 / 8, "bits": 1 / 8,
    },
    "time": {
        "s": 1e3, "sec": 1e3, "second": 1e3, "seconds": 1e3, "ms": 1, "msec": 1, "millisecond": 1, "milliseconds": 1,
        "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "usec": 1e-3, "microseconds": 1e-3, "ns": 1e-6,
    },
    "count": dict.fromkeys(
        ["packet", "packets", "pkt", "pkts", "segment", "segments", "loss", "losses", "drop", "drops", "ping", "pings"], 1.0
    ),
    "ratio": {
        "%": 0.01, "percent": 0.01, "per cent": 0.01, "‰": 0.001, TIMES: 1, "time": 1, "x": 1, "×": 1, OF_ALL: 1,
        "(1=all)": 1, "of all": 1, "of them": 1, SHARE: 1,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """What a case asks for: its name, its unit, and by what a measured value is multiplied to be in it."""

    name: str
    unit: str
    scale: float = 1.0

    @property
    def label(self) -> str:
        """Return the label of the field for a prediction."""
        unit = f"{SHARE}, or in %" if self.unit in (OF_ALL, SHARE) else self.unit
        return f"{self.name} ({unit})" if unit else self.name


def quantity_of(asked: Predict) -> Quantity:
    """Return what a case's question asks for."""
    scale, unit = display_unit(asked.value)
    return Quantity(asked.name, OF_ALL if asked.unit == SHARE else asked.unit or unit, scale)


def measured_by(asked: Predict) -> Quantity:
    """Return what is measured: what the question asks for, or where it asks for something else the value beside it."""
    if asked.compared:
        return quantity_of(asked)
    scale, unit = display_unit(asked.value)
    return Quantity(asked.value, unit, scale)


def display_unit(name: str) -> tuple[float, str]:
    """Return by what to multiply a measured value, and its unit then."""
    if name.endswith("_bps"):
        return 1e-6, "Mbit/s"
    unit = unit_of(name)
    return 1.0, OF_ALL if unit == SHARE else unit


def how_far_off(prediction: str, value: float | None, unit: str) -> str:
    """Return what stands behind a measured value: how many times the prediction it is, or why that can't be said.

    Nothing where no number was predicted, or one with which this hardly compares.
    """
    stated = stated_number(prediction, unit)
    if value is None or stated is None:
        return ""
    number, kind, scale = stated
    if kind not in (None, _kind(unit)):
        asked = f"{SHARE}, or in %" if unit == OF_ALL else unit or "a number without a unit"
        return f". The question asks for {asked}, so the two can't be compared"
    number *= scale / (KINDS[kind].get(_as_known(unit, kind) or "", 1.0) if kind else 1.0)
    # A share above all of them was meant otherwise.
    if not number or (unit == OF_ALL and number > 1):
        return ""
    factor = value / number
    if not LEAST_FACTOR <= factor <= 1 / LEAST_FACTOR:
        return ""
    return f", {factor:.{2 if factor >= 10 else 3}g} times that"


def stated_number(prediction: str, unit: str = "") -> tuple[float, str | None, float] | None:
    """Return the number that a prediction states, what its unit measures (None without one), and how much of that
    kind's first unit it is; None where none is stated, as in a calculation (25.7*0.93).

    It is the number that the text begins with (`about 5`, too), unless that one's unit is of another kind than `unit`
    and a later one's isn't. Else it is the last with a unit of that kind, else the last.
    """
    text = prediction[:MAX_CHARACTERS]
    numbers = list(_outside_sums(text))
    if not numbers:
        return None
    start, _, after = numbers[0]
    quantities = [(value, *_unit_behind(rest, unit)) for _, value, rest in numbers]
    fitting = [
        number for number in quantities if number[1] is not None and number[1] == _kind(unit)
    ]
    begins = BEFORE_THE_FIRST.fullmatch(text[:start]) and not after.startswith("=")
    if begins and (quantities[0][1] is None or quantities[0] in fitting or not fitting):
        return quantities[0]
    return (fitting or quantities)[-1]


def _outside_sums(text: str) -> Iterator[tuple[int, float, str]]:
    """Yield each number that is no part of a calculation: where it begins, its value, and the text behind it."""
    for match, value in number_matches(text):
        before, after = text[: match.start()], text[match.end() :]
        if not re.match(r"\s*(?:[*·/^+]|[x×]\s*\d)", after) and not re.search(
            r"(?:[*·/^+]|\d\s*[x×])\s*$", before
        ):
            yield match.start(), value, after.lstrip()


def _unit_behind(after: str, wanted: str) -> tuple[str | None, float]:
    """Return the kind that a text's first word is a unit of, the wanted kind first, and the word's size in the
    kind's first unit."""
    kinds = sorted(KINDS, key=lambda kind: kind != _kind(wanted))
    for kind in kinds:
        if unit := _as_known(after, kind):
            return kind, KINDS[kind][unit]
    return None, 1.0


def _as_known(text: str, kind: str) -> str | None:
    """The longest unit of a kind that a text begins with; in other letters' case where that is no other unit."""
    for same in (str, str.casefold):
        for unit in sorted(KINDS[kind], key=len, reverse=True):
            if same(text).startswith(same(unit)) and not re.match(r"[\w/]", text[len(unit) :]):
                return unit
    return None


def _kind(unit: str) -> str | None:
    """Return the kind of quantity that a unit measures: a number without one compares with shares and multiples."""
    return next((kind for kind in KINDS if _as_known(unit, kind)), "ratio" if not unit else None)


def has_unit(words: str) -> bool:
    """Return whether a unit stands behind a number of a prediction."""
    return any(
        match[1].casefold() not in NO_UNITS for match in MEASURE.finditer(words[:MAX_CHARACTERS])
    )


def has_reason(words: str) -> bool:
    """Return whether there are words beside the number and its unit, enough for a reason. If it is one, a person
    says."""
    rest = MEASURE.sub(_without_unit, words[:MAX_CHARACTERS])
    return len(re.findall(r"[^\W\d_]{2,}", rest)) >= REASON_WORDS


def _without_unit(match: re.Match[str]) -> str:
    return f" {match[1]} " if match[1].casefold() in NO_UNITS else " "


def number_matches(words: str) -> Iterator[tuple[re.Match[str], float]]:
    """Yield each number of a prediction: where it stands, and its value."""
    for match in NUMBER.finditer(words[:MAX_CHARACTERS]):
        yield match, float(match[0].replace(",", "" if match["grouped"] else "."))


def numbers_in(words: str) -> list[float]:
    """Return all numbers of a prediction, in order."""
    return [value for _, value in number_matches(words)]


def number_in(words: str) -> float | None:
    """Return the first number of a prediction; None where it has none."""
    return next(iter(numbers_in(words)), None)
