"""Predictions: their numbers, units and reasons; how far one was off from what was measured; and answers to what a case
asks once it is diagnosed.

Text and numbers in, words out. A factor stands only between two values of one unit: where what was
predicted is of another kind, the words say so instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from measuretwice.base.errors import UserError
from measuretwice.lab import Value
from measuretwice.lab.schema.cases import Asked, Judgement, NumberAsked, Predict
from measuretwice.measure.fields import Measured, members, number, unit_of
from measuretwice.stats.distributions import f_quantile
from measuretwice.stats.intervals import mean_and_deviation
from measuretwice.stats.two_samples import spread_of

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
# What some measured values are called where they stand in place of what a question asks for.
WORDS = {"ratio": "goodput over the model's", "goodput_bps": "goodput"}
# What stands in a lab book behind an answer of which that is so.
BY_RECORDED = "by the recorded runs"
# Further off, a factor says nothing.
LEAST_FACTOR = 0.01
# What a terminal was to be told, not what is predicted.
COMMAND = re.compile(r"^lab\s|\./lab\b|--[a-z]")
# From the first on a number is written without an exponent, up to the second.
LARGE, MOST_WHOLE = 1e4, 1e15
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
        ["packet", "packets", "pkt", "pkts", "segment", "segments", "loss", "losses", "drop", "drops", "ping", "pings", "row", "rows"], 1.0
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
    def has_unit(self) -> bool:
        """Return whether a number of it needs a unit: a ratio and a share have none."""
        return self.unit not in ("", TIMES, OF_ALL)

    @property
    def label(self) -> str:
        """Return the label of the field for a prediction."""
        unit = f"{SHARE}, or in %" if self.unit in (OF_ALL, SHARE) else self.unit
        return f"{self.name} ({unit})" if unit else self.name


def quantity_of(asked: Asked) -> Quantity:
    """Return what a case's question asks for."""
    scale, unit = (1.0, "") if asked.is_ratio else display_unit(asked.value)
    return Quantity(asked.name, OF_ALL if asked.unit == SHARE else asked.unit or unit, scale)


def measured_by(asked: Predict) -> Quantity:
    """Return what is measured: what the question asks for, or where it asks for something else the value beside it."""
    if asked.compared:
        return quantity_of(asked)
    scale, unit = display_unit(asked.value)
    return Quantity(WORDS.get(asked.value, asked.value), unit, scale)


def of_one_run(asked: Predict) -> Quantity:
    """Return what one run of several has to say to a question."""
    if not asked.is_ratio:
        return measured_by(asked)
    scale, unit = display_unit(asked.value)
    return Quantity(asked.value.removeprefix("*_"), unit, scale)


def display_unit(name: str) -> tuple[float, str]:
    """Return by what to multiply a measured value, and its unit then."""
    if name.endswith("_bps"):
        return 1e-6, "Mbit/s"
    unit = unit_of(name)
    return 1.0, OF_ALL if unit == SHARE else unit


def number_text(value: float) -> str:
    """Return a measured value with four digits, a count and a large number with all before the point."""
    whole = isinstance(value, int) or LARGE <= abs(value) < MOST_WHOLE
    return f"{value:.0f}" if whole else f"{value:.4g}"


def how_far_off(prediction: str, value: float | None, unit: str) -> str:
    """Return what stands behind a measured value: how many times the prediction it is, or why that can't be said.

    Nothing where no number was predicted, or one with which this hardly compares.
    """
    stated = stated_number(prediction, unit)
    if value is None or stated is None:
        return ""
    predicted, kind, scale = stated
    if kind not in (None, _kind(unit)):
        asked = f"{SHARE}, or in %" if unit == OF_ALL else unit or "a number without a unit"
        return f". The question asks for {asked}, so the two can't be compared"
    predicted = _in_unit(predicted, kind, scale, unit)
    # A share above all of them was meant otherwise.
    if not predicted or (unit == OF_ALL and predicted > 1):
        return ""
    factor = value / predicted
    if not LEAST_FACTOR <= factor <= 1 / LEAST_FACTOR:
        return ""
    if f"{factor:.3g}" == "1":
        return ", as predicted"
    return f", {factor:.{2 if factor >= 10 else 3}g} times that"


def _in_unit(value: float, kind: str | None, scale: float, unit: str) -> float:
    """A number whose own unit is `scale` of its kind's first, in `unit`."""
    return value * scale / (KINDS[kind].get(_as_known(unit, kind) or "", 1.0) if kind else 1.0)


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


def is_one_number(text: str, unit: str = "") -> bool:
    """Return whether a text reads as one number that is predicted: it begins with it, or has a unit behind it. A command that
    was typed too early doesn't, whatever numbers its paths have.
    """
    numbers = list(_outside_sums(text[:MAX_CHARACTERS]))
    if len(numbers) != 1 or len(numbers_in(text)) != 1 or COMMAND.search(text):
        return False
    start, _, after = numbers[0]
    has_unit_behind = _unit_behind(after, unit)[0] is not None
    return has_unit_behind or BEFORE_THE_FIRST.fullmatch(text[:start]) is not None


def known_units(unit: str) -> tuple[dict[str, float], list[str]]:
    """Return what may stand behind a number that is asked for in `unit`: each unit of its kind, with how much of `unit` it is;
    and the units of all other kinds, with which a number answers another question."""
    own = _kind(unit)
    fitting = (
        {text: _in_unit(1.0, own, size, unit) for text, size in KINDS[own].items()} if own else {}
    )
    others = {text for kind, units in KINDS.items() if kind != own for text in units}
    return fitting, sorted(others - {*fitting})


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


# What several runs say to a question, and answers that a case is solved by


class OneRun(Protocol):
    """What a question needs of a run: its seed, its settings, and all that was measured of it."""

    @property
    def seed(self) -> int: ...
    @property
    def params(self) -> Mapping[str, Value]: ...
    @property
    def values(self) -> Measured: ...


def number_of(asked: Asked, runs: Sequence[OneRun]) -> float | None:
    """Return what runs say to a question, in its unit; None where they lack what it asks for."""
    if asked.spread_by:
        return _ratio_of_variances(asked, runs)
    mean = _mean_of(asked.value, runs, asked.of)
    if not asked.over:
        scale = quantity_of(asked).scale
        return mean if mean is None or scale == 1 else mean * scale
    over = _mean_of(asked.value, runs, asked.over)
    return None if mean is None or not over else mean / over


def _mean_of(name: str, runs: Sequence[OneRun], settings: Mapping[str, Value]) -> float | None:
    of_these = [run for run in runs if settings.items() <= run.params.items()]
    values = [value for run in of_these if (value := number(run.values, name)) is not None]
    if not values or len(values) < len(of_these):
        return None
    # A count stays one.
    return values[0] if len(values) == 1 else fmean(values)


def _ratio_of_variances(asked: Asked, runs: Sequence[OneRun]) -> float | None:
    groups = spreads(asked, runs)
    if len(groups) != 2 or not all(deviation for _, deviation, _ in groups):
        return None
    (_, large, n), (_, small, m) = sorted(groups, key=lambda group: -group[1])
    test = spread_of(large, n, small, m)
    return test.statistic * (f_quantile(m - 1, n - 1, 0.975) if asked.upper else 1.0)


def spreads(asked: Asked, runs: Sequence[OneRun]) -> list[tuple[str, float, int]]:
    """Return how much a family's values spread, for each value of `asked.spread_by`: that value, the deviation in the unit
    that the family's name says, and of how many. A value with fewer than two is left out."""
    groups: dict[str, list[float]] = {}
    for run in runs:
        names = members(asked.value, run.values).values()
        of_run = [value for name in names if (value := number(run.values, name)) is not None]
        groups.setdefault(str(run.params.get(asked.spread_by or "")), []).extend(of_run)
    scale, _ = display_unit(asked.value)
    return [
        (by, mean_and_deviation(values)[1] * scale, len(values))
        for by, values in sorted(groups.items())
        if len(values) > 1
    ]


@dataclass(frozen=True)
class Answer:
    """What a student answers to a case's question: the letter of a choice, and a number, as they wrote them.

    `by_recorded`: it was judged by the recorded runs, since there were none of the student's own.
    """

    choice: str
    number: str = ""
    by_recorded: bool = False

    @property
    def text(self) -> str:
        """Return it as a lab book has it."""
        words = f"{self.choice}, {self.number}" if self.number else self.choice
        return f"{words} ({BY_RECORDED})" if self.by_recorded else words

    @staticmethod
    def read(text: str) -> Answer:
        """Return the answer that a lab book, or a page, has: a letter, and behind a comma a number."""
        words = text.strip().removesuffix(f"({BY_RECORDED})")
        choice, _, written = words.partition(",")
        return Answer(choice.strip().casefold(), written.strip(), words != text.strip())


def judged_numbers(judgement: Judgement, runs: Sequence[tuple[str, OneRun]]) -> list[float]:
    """Return what a student's runs of a case give for its question's number: for each way in which they changed the case (the
    first of each pair), and of that each seed by itself and all together."""
    asked = judgement.number
    if asked is None:
        return []
    groups: dict[tuple[str, int | None], list[OneRun]] = {}
    for changed, run in runs:
        for seed in (run.seed, None):
            groups.setdefault((changed, seed), []).append(run)
    numbers = (number_of(asked, group) for group in groups.values())
    return [value for value in numbers if value is not None]


def why_not(judgement: Judgement, answer: Answer, numbers: Iterable[float]) -> list[str]:
    """Return a line for each part of an answer that isn't right; none where all is.

    `numbers` are what the student's own runs give, each set of them that can be counted. UserError for a choice that
    isn't there.
    """
    chosen = judgement.choice(answer.choice)
    if chosen is None:
        letters = judgement.letters
        raise UserError(
            f"{answer.choice[:20]!r} is no answer: choose {letters[0]} to {letters[-1]}"
        )
    lines = [f"{answer.choice}: {chosen.why_not}"] if chosen.why_not else []
    if judgement.number and (line := _why_no_number(judgement.number, answer.number, [*numbers])):
        lines.append(line)
    return lines


def _why_no_number(asked: NumberAsked, written: str, numbers: Sequence[float]) -> str:
    """Return why a number isn't what runs give; empty where it is."""
    unit = quantity_of(asked).unit
    stated = stated_number(written, unit)
    if stated is None:
        missing = f"{written[:20]!r} has no number in it" if written else "A number is missing"
        return f"{missing}: {asked.ask}"
    value, kind, scale = stated
    if kind not in (None, _kind(unit)):
        return f"{written}: the question asks for {quantity_of(asked).label}."
    if not numbers:
        return "The number comes from your own runs, and not all that it needs are there."
    given = _in_unit(value, kind, scale, unit)
    if any(abs(given - own) <= asked.tolerance_ratio * abs(own) for own in numbers):
        return ""
    return f"{written}: your runs give another number, by more than {100 * asked.tolerance_ratio:g} %. {asked.ask}"
