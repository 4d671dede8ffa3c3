"""The types of a fact: a number with its unit, several numbers, an interval, a probability, a judgement, a table, or words.

A fact's text is what a page shows where it quotes the fact by name.
"""

from __future__ import annotations

import difflib
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from measuretwice.base import in_groups
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import mean_interval, mean_interval_within
from measuretwice.stats.two_samples import difference_interval

# Between a number and its unit: lines don't break there.
SPACE = "\u00a0"


def sig(value: float, digits: int = 3) -> str:
    """`value` with that many significant digits: 0.005730706937 becomes 0.00573."""
    if not math.isfinite(value):
        return "∞" if value == math.inf else str(value)
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    # What is whole was set, and stays so; of what was measured zeros at the end count.
    whole = math.isclose(value, round(value), rel_tol=1e-9)
    return in_groups(f"{round(value, places):.{0 if whole else max(places, 0)}f}")


def count(value: float) -> str:
    """A whole number in groups of three: 1 302 324."""
    return in_groups(f"{value:.0f}")


# Instead of a number of significant digits: a whole number.
WHOLE = 0


@dataclass(frozen=True)
class Number:
    """A number in `unit` (empty: none), shown with so many significant digits, or WHOLE."""

    value: float
    unit: str = ""
    digits: int = 3

    @property
    def bare(self) -> str:
        """The number without its unit."""
        return count(self.value) if self.digits == WHOLE else sig(self.value, self.digits)

    def __str__(self) -> str:
        return f"{self.bare}{SPACE}{self.unit}" if self.unit else self.bare


def whole(value: float, unit: str = "") -> Number:
    """Return a number that is shown whole, as counts and bytes are."""
    return Number(value, unit, WHOLE)


def ms(value_ms: float, digits: int = 4) -> Number:
    """Return a time in milliseconds."""
    return Number(value_ms, "ms", digits)


def seconds(value_s: float, digits: int = 3) -> Number:
    """Return a time in seconds; from two minutes on in minutes, from two hours on in hours."""
    for size_s, unit in ((3600, "hours"), (60, "minutes")):
        if value_s >= 2 * size_s:
            return Number(value_s / size_s, unit, digits)
    return Number(value_s, "s", digits)


def us(value_us: float) -> Number:
    """Return a time in microseconds; from a tenth of a millisecond on in milliseconds."""
    return whole(value_us, "µs") if value_us < 100 else Number(value_us / 1e3, "ms", 2)


def mbit(rate_bps: float, digits: int = 3) -> Number:
    """Return a rate, given in bit/s, in Mbit/s."""
    return Number(rate_bps / 1e6, "Mbit/s", digits)


def size(size_bytes: float) -> Number:
    """Return a size in bytes."""
    return whole(size_bytes, "B")


def percent(ratio: float, digits: int = 3) -> Number:
    """Return a ratio in percent."""
    return Number(100 * ratio, "%", digits)


@dataclass(frozen=True)
class Interval:
    """A value, and the two ends between which it is by 95 %, all three in `unit`; `n`: of how many values it is."""

    middle_value: float
    low_value: float
    high_value: float
    unit: str = ""
    digits: int = 3
    n: int | None = None

    @classmethod
    def of_mean(
        cls,
        values: Sequence[float],
        unit: str = "",
        digits: int = 3,
        *,
        within: tuple[float, float] | None = None,
    ) -> Interval:
        """Return the mean of independent values and its interval; `within`: what no value can leave."""
        ends = (
            mean_interval_within(list(values), *within) if within else mean_interval(list(values))
        )
        return cls(*ends, unit, digits, len(values))

    @classmethod
    def of_difference(
        cls, a: Sequence[float], b: Sequence[float], unit: str = "", digits: int = 3
    ) -> Interval:
        """Return the difference of two means, a's less b's, and its interval (Welch's)."""
        low, high = difference_interval(a, b)
        return cls(statistics.fmean(a) - statistics.fmean(b), low, high, unit, digits)

    @classmethod
    def around(cls, ends: tuple[float, float], unit: str = "", digits: int = 3) -> Interval:
        """Return the interval between two ends, its value amid them."""
        low, high = ends
        return cls((low + high) / 2, low, high, unit, digits)

    def __contains__(self, value: float) -> bool:
        return self.low_value <= value <= self.high_value

    @property
    def both_ends(self) -> tuple[float, float]:
        """Both ends as they are, in `unit`."""
        return self.low_value, self.high_value

    @property
    def middle(self) -> Number:
        """The value itself."""
        return Number(self.middle_value, self.unit, self.digits)

    @property
    def low(self) -> Number:
        """The lower end."""
        return Number(self.low_value, self.unit, self.digits)

    @property
    def high(self) -> Number:
        """The upper end."""
        return Number(self.high_value, self.unit, self.digits)

    @property
    def ends(self) -> str:
        """Both ends without their unit: 43.1 to 44.9."""
        return f"{self.low.bare} to {self.high.bare}"

    def __str__(self) -> str:
        text = f"{self.middle.bare} ({self.ends})"
        return f"{text}{SPACE}{self.unit}" if self.unit else text


@dataclass(frozen=True)
class Numbers:
    """The same of several runs, in `unit`: 1.41, 1.52 and 1.59."""

    values: tuple[float, ...]
    unit: str = ""
    digits: int = 3

    @classmethod
    def of(cls, numbers: Sequence[Number]) -> Numbers:
        """Return several numbers as one fact; ValueError where their units differ."""
        units = {(number.unit, number.digits) for number in numbers}
        if len(units) != 1:
            raise ValueError(f"{len(units)} units: {numbers}")
        return cls(tuple(number.value for number in numbers), *units.pop())

    @property
    def least(self) -> Number:
        """The smallest of them."""
        return Number(min(self.values), self.unit, self.digits)

    @property
    def most(self) -> Number:
        """The largest of them."""
        return Number(max(self.values), self.unit, self.digits)

    @property
    def ends(self) -> str:
        """The smallest and the largest without their unit: 1.41 to 1.59."""
        return f"{self.least.bare} to {self.most.bare}"

    @property
    def n(self) -> Number:
        """The number of values."""
        return Number(len(self.values))

    def __str__(self) -> str:
        *others, last = (str(Number(value, self.unit, self.digits)) for value in self.values)
        return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True)
class Probability:
    """How probable something as extreme is by chance alone (a p-value), 0 to 1."""

    value: float

    def __str__(self) -> str:
        return "< 0.001" if self.value < 0.001 else f"{self.value:.2g}"


Cell = str | Number | Numbers | Interval | Probability


@dataclass(frozen=True)
class Table:
    """Columns' headings and rows of as many cells; a column with more numbers than words stands to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(f"{len(row)} cells below {len(self.headings)} headings: {row}")

    def __str__(self) -> str:
        columns = [
            [cell for cell in column if cell != ""] for column in zip(*self.rows, strict=True)
        ]
        worded = [2 * sum(map(_is_words, cells)) >= len(cells) for cells in columns]
        lines = [
            "| " + " | ".join(self.headings) + " |",
            "|" + "|".join("---" if words else "---:" for words in worded) + "|",
        ]
        lines += ["| " + " | ".join(map(str, row)) + " |" for row in self.rows]
        return "\n".join(lines)


def _is_words(cell: Cell) -> bool:
    """Return whether a cell is words. A number that was published stands as it was, as text."""
    return isinstance(cell, str) and not cell.replace(".", "").isdigit()


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Return a table; ValueError where a row has another number of cells than there are headings."""
    return Table(tuple(headings), tuple(map(tuple, rows)))


@dataclass(frozen=True)
class Excerpt:
    """Lines of a raw file of a recorded set's run, verbatim. `lines` says which, and of which run, as
    `site/macros/excerpts.py` names it: `{"grep": "qdisc", "last": 2, "trial": 21}`. With `"explained": "ss"`, a tool's name,
    each field is explained where it stands; with `"counters": ["TcpInSegs"]`, of a node's nstat.after.json, these are
    shown before and after the run."""

    of_set: str
    file: str
    lines: Mapping[str, Any]


def excerpt(of_set: str, file: str, **lines: Any) -> Excerpt:
    """Return an excerpt: `excerpt("mtu-broken", "juliet/ss.txt", grep="mss:", last=1)`."""
    return Excerpt(of_set, file, lines)


# True, False, or None where the runs can't tell.
Judgement = bool | None
Fact = Number | Numbers | Interval | Probability | Table | Excerpt | Judgement | str


def _source(setter: FrameType, within: str) -> str:
    """Return the source of a fact: the docstring of the function that sets it, leaving out those that set a value for
    others; where that has none, the case, or the function's name."""
    frame: FrameType | None = setter
    while frame is not None and frame.f_code.co_name != "facts":
        function = frame.f_globals.get(frame.f_code.co_name)
        words = " ".join((getattr(function, "__doc__", None) or "").split())
        if words and not words.startswith("Set "):
            return words
        if not words:
            break
        frame = frame.f_back
    if within:
        return f"Of the case {within.rstrip('.')}."
    name = setter.f_code.co_name.strip("_").removeprefix("set_").replace("_", " ")
    return f"{name.capitalize()}."


class Facts:
    """A lab's facts by name, in the order in which they were set: `f.longest_wait = Number(44.1, "ms")`.

    Each remembers what it is of: the docstring of the function that set it.
    """

    def __init__(
        self, facts: Mapping[str, Fact] | None = None, sources: Mapping[str, str] | None = None
    ) -> None:
        self.__dict__["known"] = dict(facts or {})
        self.__dict__["sources"] = dict(sources or {})
        self.__dict__["within"] = ""

    def case(self, pitfall: str) -> Facts:
        """Return the facts of one case, or of one page, named for themselves: what is set there stands in all of them as
        `mtu.goodput`, and what the case hasn't is looked up in all of them."""
        facts = Facts()
        shared = {name: self.__dict__[name] for name in ("known", "sources")}
        facts.__dict__.update(shared, within=f"{pitfall}.")
        return facts

    def joined(self, others: Facts) -> Facts:
        """Return these facts, and others' where these have none of that name."""
        facts, sources = (
            {**others.__dict__[name], **self.__dict__[name]} for name in ("known", "sources")
        )
        return Facts(facts, sources)

    def __setattr__(self, name: str, value: Fact) -> None:
        facts: dict[str, Fact] = self.__dict__["known"]
        name = self.__dict__["within"] + name
        if name in facts:
            raise ValueError(f"the fact {name!r} is set twice")
        facts[name] = value
        self.__dict__["sources"][name] = _source(sys._getframe(1), self.__dict__["within"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Fact:
        facts: dict[str, Fact] = self.__dict__["known"]
        case, dot, of_case = name.partition(".")
        # Pages say it as in {{ f.wrong_metric.ping }}.
        of_another = case.replace("_", "-") + dot + of_case if dot else name
        for called in (self.__dict__["within"] + name, name, of_another):
            if called in facts:
                return facts[called]
        near = self._near(name)
        suggestion = (
            f"; is it {_as_quoted(near[0])!r}{self._source_in_brackets(near[0])}?" if near else ""
        )
        raise UserError(
            f"there is no fact {name!r}{suggestion} (facts.json, beside the recorded sets, lists them)"
        )

    def _near(self, name: str) -> list[str]:
        """Return the fact that `name` resembles most: first among those of the same page, then among all; none, or one."""
        facts, within = self.__dict__["known"], self.__dict__["within"]
        own = [called.removeprefix(within) for called in facts]
        # Whoever copies `missing-flows.index` from facts.json writes a subtraction: jinja looks for `missing`.
        begins = [called for called in own if called.startswith(f"{name}-") and "." in called]
        of_page = [called for called in own if "." not in called]
        return (
            difflib.get_close_matches(name, of_page, n=1)
            or begins[:1]
            or difflib.get_close_matches(name, own, n=1)
        )

    def _source_in_brackets(self, name: str) -> str:
        sources = self.__dict__["sources"]
        source = sources.get(self.__dict__["within"] + name) or sources.get(name)
        return f" ({source.rstrip('.')})" if source else ""

    def source(self, name: str) -> str:
        """Return what a fact is of, in words; empty where that isn't known."""
        return str(self.__dict__["sources"].get(name, ""))

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["known"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__["known"])

    def items(self) -> Iterator[tuple[str, Fact]]:
        """All facts, each with its name."""
        return iter(self.__dict__["known"].items())

    def holds(self, name: str) -> Judgement:
        """Return a judgement; UserError where the fact of that name is none."""
        fact = self[name]
        if fact is None or isinstance(fact, bool):
            return fact
        raise UserError(f"the fact {name!r} is no judgement, true or false, but {fact}")


def _as_quoted(name: str) -> str:
    """Return a fact's name as pages write it behind `f.`: a case's hyphens are underscores there."""
    case, dot, of_case = name.rpartition(".")
    return case.replace("-", "_") + dot + of_case


def judge(
    values: Iterable[float] | Interval, *, least: float = -math.inf, most: float = math.inf
) -> bool | None:
    """Return True where all values lie from `least` to `most`, False where all lie below or all above, and None otherwise:
    then these runs can't tell. Of an interval its ends are judged. Same units throughout."""
    low, high = values.both_ends if isinstance(values, Interval) else _extremes(values)
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None


def agreed(verdicts: Iterable[Judgement]) -> Judgement:
    """Return the verdict that several sets of runs share, of each wait say; None where they differ."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else None


def _extremes(values: Iterable[float]) -> tuple[float, float]:
    numbers = list(values)
    return min(numbers), max(numbers)
