"""What can't be true of a table's row by itself.

Numbers are rounded: each is taken for the interval that its last digit leaves open, and a row is named only where
no numbers in these intervals would do.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from measuretwice.audit.cells import Number
from measuretwice.audit.columns import NAMES
from measuretwice.stats.intervals import jains_index

# What arithmetic of floats adds to a difference.
FLOATS = 1e-9
# How far arrived may be above sent, by what each end's clock covers; rounded means from their parts; an index in a row.
ENDS, MEANS = 0.1, 0.01
# In a table of so few rows most say nothing; per cent, and a number above 1 that may well be per cent.
FEW, PERCENT, PERHAPS_PERCENT = 2, 0.01, 1.5
# What a rule yields: the kind of what is off, and a text for a person.
Offences = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Row:
    """A row: its line in the file, what it is called, its numbers in bit/s, seconds and ones by
    name, how each is to be shown, the lines of those that stand in lines of their own, and what each was multiplied by."""

    line: int
    label: str
    numbers: Mapping[str, Number]
    texts: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)

    def lines_of(self, text: str) -> tuple[int, ...]:
        """Return the lines of the numbers that a text is about, by their names or as they stand there; else the row's."""
        lines = {
            line
            for name, line in self.lines.items()
            if re.search(rf"\b{name}\b", text) or self.texts.get(name) in text.split()
        }
        return tuple(sorted(lines)) or (self.line,)

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]

    def has(self, *names: str) -> bool:
        return self.numbers.keys() >= set(names)

    def positive(self, *names: str) -> bool:
        """Return whether a row has these, and each is more than 0 whatever its last digit leaves open."""
        return self.has(*names) and min(self[name].low for name in names) > 0

    def shown(self, name: str) -> str:
        """The number as the table has it, with the sign of per cent where it is."""
        return (
            f"{self.texts[name]}{self._percent(name)}"
            if self.texts.get(name)
            else f"{self.numbers[name].value:.6g}"
        )

    def as_shown(self, value: float, name: str, digits: int = 6) -> str:
        """A value in the unit in which the table has a name's."""
        percent = " %" if "%" in self.texts.get(name, "") else self._percent(name)
        return f"{value / self.factors.get(name, 1.0):.{digits}g}{percent}"

    def _percent(self, name: str) -> str:
        """The sign of per cent, where the cell hasn't got it itself."""
        of_hundred = name in self.numbers and math.isclose(self.factors.get(name, 1.0), PERCENT)
        return " %" if of_hundred and "%" not in self.texts.get(name, "") else ""


# What is no more than another: the name, the other, how far above it may be, which of the row is said, the kind, and what
# is said where it is more. `%` is the first in per cent of the other.
AT_MOST = (
    *((name, "sent_rate", ENDS, "sent", "{0} arrived, and {1} was sent") for name in ("goodput", "total")),
    *((name, "offered_rate", ENDS, "offered", "{0} arrived, and {1} was offered") for name in ("goodput", "total")),
    *((name, "link", 0.0, "link", f"{name} is {{2:.2f}} % of the link") for name in ("total", "goodput", "per_flow")),
    *(("base_rtt", name, MEANS, "rtt", f"{name} {{1}} is less than the {{0}} that was set") for name in ("min rtt", "rtt")),
    *((name, "segments", 0.0, "counts", f"{{0}} {name}, of {{1}} segments") for name in ("losses", "halvings")),
    ("received", "segments", 0.0, "counts", "{0} packets received, of {1} sent"),
    # A window is halved for a loss, once for all losses of a round trip.
    ("halvings", "losses", 0.0, "halvings", "{1} losses, and {0} halvings: each takes a loss at least"),
    ("c_by_halvings", "c_by_losses", 0.0, "halvings",
     "C is {1} by losses and {0} by halvings: some flow had fewer losses than halvings"),
)  # fmt: skip
# What is the quotient of two others.
QUOTIENTS = (
    ("losses_per_halving", "losses", "halvings"),
    ("drops_per_halving", "drops", "halvings"),
    ("loss_ratio", "losses", "segments"),
    ("halving_ratio", "halvings", "segments"),
    ("delivered", "received", "segments"),
)
RULES: list[Callable[[Row], Offences]] = []


def rule(function: Callable[[Row], Offences]) -> Callable[[Row], Offences]:
    RULES.append(function)
    return function


def off_in(row: Row) -> list[tuple[str, str]]:
    """Return what is off in a row, each kind once: the rule that stands first says it."""
    offences: dict[str, str] = {}
    for check in RULES:
        for kind, text in check(row):
            offences.setdefault(kind, text)
    return list(offences.items())


@rule
def numbers_by_themselves(row: Row) -> Offences:
    """Look for what is below 0, what can't be 0, and flows that are no whole number."""
    for name, number in row.numbers.items():
        if number.value < 0:
            yield "negative", f"{name} {row.shown(name)} is less than nothing"
        elif name in ("flows", "asked") and number.value % 1:
            yield "flows", f"{row.shown(name)} flows are no whole number"
        elif name.startswith("c_by_") and number.high <= 0:
            yield "constant", f"{NAMES[name].help}: {row.shown(name)}; it is more than 0"
        elif number.value == 0 and name in ("flows", "mss", "link", "rtt"):
            # A round-trip time of 0 ms may be one of 0.4.
            if name != "rtt" or number.high < 1e-6:
                yield "zero", f"{name} is 0"
        elif number.value == 0 and name in ("total", "goodput") and carried_something(row):
            yield "zero", f"{name} is 0: nothing was carried"
    if row.has("total", "squares") and row["total"].value > 0 and row["squares"].value == 0:
        yield "squares", f"squares are 0, and the total is {row.shown('total')}"


def carried_something(row: Row) -> bool:
    """Return whether a row has more than a flow that stalled, which may send again and carry nothing."""
    names = ("flows", "segments", "received", "bytes", "halvings")
    return any(row.has(name) and row[name].value > 0 for name in names)


@rule
def order_of_statistics(row: Row) -> Offences:
    """No least is above a mean, no mean above the most, no percentile below a lower one."""
    by_name: dict[str, list[tuple[float, str]]] = {}
    for key in row.numbers:
        statistic, _, name = key.rpartition(" ")
        if statistic and (place := place_of(statistic)) is not None:
            by_name.setdefault(name, []).append((place, key))
    for name, keys in by_name.items():
        for place, key in sorted(keys):
            above = [other for further, other in keys if further > place]
            below = [key]
            if row.has(name) and place == PLACE["min"]:
                above.append(name)
            elif row.has(name) and place == PLACE["max"]:
                below, above = [name], [key]
            for less in below:
                for more in above:
                    if row[less].low > row[more].high:
                        a, b = (_statistic(row, key) for key in (less, more))
                        yield "order", f"{a} {row.shown(less)} is more than {b} {row.shown(more)}"


def _statistic(row: Row, key: str) -> str:
    """Return what a statistic is called: of values that have no name of their own, by itself."""
    middle = "median" if row.has("median value") else "mean"
    return middle if key == "value" else key.removesuffix(" value")


PLACE = {"min": 0.0, "low": 0.0, "lower": 0.0, "median": 50.0, "high": 1e3, "upper": 1e3, "max": 1e3}  # fmt: skip


def place_of(statistic: str) -> float | None:
    match = re.fullmatch(r"p(\d{1,3})|(\d\d)th", statistic)
    digits = (match[1] or match[2]) if match else ""
    # p999 is 99.9 %.
    return float(f"{digits[:2]}.{digits[2:]}") if digits else PLACE.get(statistic)


@rule
def flows_side_by_side(row: Row) -> Offences:
    """Flows of one run in columns beside each other: their sum, and their index."""
    flows = [number for name, number in row.numbers.items() if re.fullmatch(r"\d+ goodput", name)]
    if len(flows) < 2 or min(flow.value for flow in flows) < 0:
        return
    total = Number.sum_of(flows)
    if row.positive("link") and total.low > row["link"].high:
        yield "link", f"together {100 * total.value / row['link'].value:.2f} % of the link"
    if row.has("total") and apart(row["total"], total, MEANS):
        again = row.as_shown(total.value, "total")
        yield (
            "sum",
            f"total {row.shown('total')}; the {len(flows)} rates beside it add up to {again}",
        )
    if row.has("index") and total.value > 0 and index_apart(row["index"], flows):
        again = f"from the row's {len(flows)} flows {jains_index([f.value for f in flows]):.4g}"
        yield "index", f"index {row.shown('index')}; recomputed {again}"


def index_apart(stated: Number, flows: Sequence[Number]) -> bool:
    """Return whether no rates within what their last digits leave open have the index."""
    total = math.fsum(flow.value for flow in flows)
    squares = math.fsum(flow.value**2 for flow in flows)
    again = jains_index([flow.value for flow in flows])
    halves = [((flow.high - flow.low) / 2, flow.value) for flow in flows]
    # To the first order, and what the second may add.
    first = math.fsum(half * abs(1 / total - value / squares) for half, value in halves)
    slack = 2 * again * first + 3 * (math.fsum(half for half, _ in halves) / total) ** 2 + FLOATS
    return apart(stated, Number(again, again - slack, again + slack))


@rule
def mean_of_flows(row: Row) -> Offences:
    if not row.has("total") or not row.positive("per_flow", "flows"):
        return
    if apart(row["total"], row["per_flow"] * row["flows"].value, MEANS):
        parts = f"{row.shown('flows')} flows of {row.shown('per_flow')} each"
        yield "sum", f"{parts}, and the total is {row.shown('total')}"


@rule
def utilisation(row: Row) -> Offences:
    if row.has("utilisation") and row["utilisation"].low > 1 + MEANS:
        yield "link", f"utilisation {row.shown('utilisation')} is more than all of the link"


def utilisations_off(rows: Sequence[Row]) -> tuple[list[tuple[Row, str]], bool]:
    """Return the rows whose utilisation isn't the rate over the link's, within a few per cent, since the link's may count
    headers; and whether it is so in so many that nothing is said of any.

    The rate may be one flow's, and the utilisation of all: of so many flows as most rows have it. Where most have
    it of no number of flows, it is of something else, unless there are hardly rows to tell.
    """
    name = next((n for n in ("total", "goodput", "per_flow") if any(r.has(n) for r in rows)), "")
    having = [r for r in rows if r.has(name) and r.positive("utilisation", "link")]
    parts = {r.line: r[name] * (1 / r["link"].value) for r in having}
    quotients = [
        r["utilisation"].value / parts[r.line].value for r in having if parts[r.line].value
    ]
    if not quotients:
        return [], False
    alike = max(1.0, round(statistics.median(quotients)))
    meanings = [{r.line: n for r in having} for n in dict.fromkeys((1.0, alike))]
    meanings.insert(1, {r.line: r["flows"].value if r.has("flows") else 1.0 for r in having})
    off = [
        [r for r in having if apart(r["utilisation"], parts[r.line] * flows[r.line], ENDS)]
        for flows in meanings
    ]
    wrong, flows = min(zip(off, meanings, strict=True), key=lambda pair: len(pair[0]))
    if len(wrong) * 2 >= len(having) > FEW:
        return [], True
    again = {
        r.line: r.as_shown(parts[r.line].value * flows[r.line], "utilisation", 4) for r in wrong
    }
    return [
        (r, f"utilisation {r.shown('utilisation')}; recomputed {again[r.line]}") for r in wrong
    ], False


@rule
def index_of_sum_and_squares(row: Row) -> Offences:
    """For rates x >= 0 of n flows: (sum x)^2 / n <= sum x^2 <= (sum x)^2, and Jain's index is (sum x)^2 / (n sum x^2)."""
    if not row.positive("total", "squares"):
        return
    total, squares = row["total"], row["squares"]
    if squares.low > total.high**2:
        yield (
            "squares",
            f"squares {row.shown('squares')} are more than the total's own square, "
            f"{row.shown('total')}²: no flows have both",
        )
    if not row.has("flows") or row["flows"].value <= 0:
        return
    n = row["flows"].value
    again = Number(
        total.value**2 / (n * squares.value),
        total.low**2 / (n * squares.high),
        total.high**2 / (n * squares.low),
    )
    printed = f"index {row.shown('index')}; " if row.has("index") else ""
    if again.low > 1 + FLOATS:
        yield (
            "index",
            f"{printed}recomputed {again.value:.6g}, and none is more than 1: no {n:.0f} flows have this total and "
            "these squares",
        )
    elif printed and apart(row["index"], again):
        yield "index", f"{printed}recomputed {again.value:.6g}"


@rule
def index_bounds(row: Row) -> Offences:
    if not row.has("index") or (row.has("total") and row["total"].value == 0):
        return
    index, shown = row["index"], f"index {row.shown('index')}"
    flows = row["flows"].value if row.has("flows") else 0
    if index.low > 1:
        percent = f"; {index.value:g} % would be {index.value / 100:g}"
        yield (
            "index",
            f"{shown} is more than 1{percent if PERHAPS_PERCENT < index.value <= 100 else ''}",
        )
    elif flows > 0 and index.high < 1 / flows:
        least = f"{flows:.0f} flows can't come below {1 / flows:.4g}"
        yield "index", f"{shown} is less than 1/n: {least}"
    elif index.high <= 0:
        yield "index", f"{shown}: no flows have it; the least is 1/n"


@rule
def ratios(row: Row) -> Offences:
    """A share of something is between 0 and 1."""
    for name in ("share", "fair_share", "loss_ratio", "halving_ratio", "delivered"):
        if row.has(name) and row[name].low > 1:
            text, value = row.shown(name), row[name].value
            of_hundred = "%" in text or math.isclose(row.factors.get(name, 1.0), PERCENT)
            percent = f"; {text} % would be {value / 100:g}" if value <= 100 else ""
            more = "100 %" if of_hundred else f"1{percent}"
            yield "share", f"{NAMES[name].help}: {text} is more than {more}"


@rule
def no_more_than(row: Row) -> Offences:
    for name, other, slack, kind, text in AT_MOST:
        # BBR halves nothing: what is counted of it are recoveries, and one may end before anything was sent again.
        exempt = kind == "halvings" and "bbr" in row.label.lower()
        more = row.has(name, other) and row[name].low > row[other].high * (1 + slack) and not exempt
        if more and (row[other].value > 0 or kind in ("counts", "halvings")):
            share = 100 * row[name].value / row[other].value if row[other].value else math.inf
            yield kind, text.format(row.shown(name), row.shown(other), share)


@rule
def router(row: Row) -> Offences:
    """A router passes more than it drops: of TCP, which sends less where half is lost; not so of UDP, without losses."""
    tcp = row.has("halvings") or row.has("losses")
    if tcp and row.has("drops", "sent") and row["drops"].low > row["sent"].high:
        text = f"the router dropped {row.shown('drops')}, and sent only {row.shown('sent')}"
        yield "counts", text


@rule
def flows_asked(row: Row) -> Offences:
    if row.has("flows", "asked") and row["flows"].value != row["asked"].value:
        flows, asked = row["flows"].value, row["asked"].value
        yield "flows", f"{flows:.0f} flows of {asked:.0f} that were asked for"


@rule
def received_of_sent(row: Row) -> Offences:
    if row.has("received", "loss_ratio") and row.positive("segments") and not row.has("losses"):
        again = 1 - row["received"].value / row["segments"].value
        if again >= 0 and apart(row["loss_ratio"], Number(again, again, again), ENDS):
            yield (
                "quotient",
                f"{row.shown('received')} of {row.shown('segments')} packets received is a loss of "
                f"{row.as_shown(again, 'loss_ratio', 4)}, but the table has {row.shown('loss_ratio')}",
            )


@rule
def quotients(row: Row) -> Offences:
    """Divide again what was divided."""
    for name, above, below in QUOTIENTS:
        if row.has(name, above) and row.positive(below) and row[above].value > 0:
            again = row[above].over(row[below])
            stated = f"{NAMES[name].help}: {row.shown(name)}"
            if apart(row[name], again) and not apart(row[name] * 0.01, again):
                yield "percent", f"{stated} is per cent; as a ratio {again.value:.4g}"
            elif apart(row[name], again):
                yield "quotient", f"{stated}; recomputed {row.as_shown(again.value, name)}"


@rule
def both_by_segments(row: Row) -> Offences:
    """Losses and halvings over the same segments: their quotient needs no segments."""
    if row.has("segments") or not row.positive("losses", "halvings", "loss_ratio", "halving_ratio"):
        return
    if apart(row["loss_ratio"].over(row["halving_ratio"]), row["losses"].over(row["halvings"])):
        yield (
            "quotient",
            f"{row.shown('losses')} losses for {row.shown('halvings')} halvings, and their ratios to the "
            f"segments sent are {row.shown('loss_ratio')} and {row.shown('halving_ratio')}",
        )


def apart(stated: Number, again: Number, slack: float = FLOATS) -> bool:
    """Return whether no value of the first is one of the second, by more than a share of it."""
    return stated.high < again.low * (1 - slack) or stated.low > again.high * (1 + slack)


# Per cent

# How near a sum of shares must be to the whole, and what utilisation may be where it is wrong; above, it is per cent.
NEAR, LARGEST_UTILISATION = 0.02, 1.5
# What other ratios follow from, where they aren't counted over counted things.
PERCENT_OF = (
    *QUOTIENTS,
    ("utilisation", "total", "link"),
    ("utilisation", "goodput", "link"),
    ("utilisation", "per_flow", "link"),
)


def as_ratios(rows: Sequence[Row], without_unit: Mapping[str, str]) -> tuple[list[Row], list[str]]:
    """The rows with each column of ratios from 0 to 1, and a remark on those that were read as per cent; `without_unit`
    has the headings of columns that name none, by name.

    A column whose heading may mean a share as well as a count is a count where it can be no share.
    """
    notes: list[str] = []
    for name in (
        "loss_ratio",
        "halving_ratio",
        "share",
        "fair_share",
        "index",
        "utilisation",
        "delivered",
    ):
        having = [row for row in rows if row.has(name)]
        values = [row[name].value for row in having if row[name].value >= 0]
        if name not in without_unit or not values:
            continue
        heading, most = without_unit[name], max(values)
        bare = not re.search("rate|ratio|prob|frac|share", heading.lower())
        beside = any(row.has("segments") or row.has("halvings") for row in rows)
        if (
            name == "loss_ratio"
            and bare
            and most > 1
            and all(value % 1 == 0 for value in values)
            and (most > 100 or beside)
        ):
            if not any(row.has("losses") for row in rows):
                rows = [_renamed(row, name, "losses") for row in rows]
        elif 1 <= most <= 100 and (why := _why_percent(having, name, values, heading)):
            rows = [
                replace(
                    row,
                    numbers={**row.numbers, name: row[name] * 0.01},
                    factors={**row.factors, name: row.factors.get(name, 1.0) * 0.01},
                )
                if row.has(name)
                else row
                for row in rows
            ]
            notes.append(f"{heading} was read as per cent: {why}")
    return list(rows), notes


def _is_a_slip(values: Sequence[float], heading: str) -> bool:
    """Return whether a value above 1 stands among small ones, below a heading of ratios, as M-Lab's LossRate is."""
    named = heading == "LossRate" or re.search(r"(?i)ratio|fraction|prob", heading)
    above = sum(value > 1 for value in values)
    return bool(named) and 0 < above * 4 <= len(values) > 3 and statistics.median(values) < 0.05


def _renamed(row: Row, name: str, other: str) -> Row:
    if not row.has(name):
        return row
    numbers = {other if key == name else key: number for key, number in row.numbers.items()}
    return replace(row, numbers=numbers, texts={**row.texts, other: row.texts.get(name, "")})


def _why_percent(having: Sequence[Row], name: str, values: Sequence[float], heading: str) -> str:
    """Return why a column without a unit is per cent; empty where it isn't."""
    all_above = "all of it is more than 1" if min(values) > 1 else ""
    if name == "share":
        sums: dict[str, float] = defaultdict(float)
        for row in having:
            sums[row.texts.get("group", "")] += row[name].value
        hundreds = sum(abs(total / 100 - 1) < NEAR for total in sums.values())
        return "it adds up to 100" if hundreds * 2 > len(sums) else all_above
    votes = [vote for row in having if (vote := _vote(row, name)) is not None]
    if votes:
        return "100 times what it follows from" if sum(votes) * 2 > len(votes) else ""
    if name == "loss_ratio":
        return "" if _is_a_slip(values, heading) else "a loss of 1 would leave nothing"
    if name == "utilisation":
        return "it is far more than 1" if max(values) > LARGEST_UTILISATION else ""
    return all_above if len(values) > 1 else ""


def _vote(row: Row, name: str) -> bool | None:
    """Return whether a ratio is 100 times what it follows from; None where it follows from nothing, or from something else."""
    again = 0.0
    if name == "index" and row.positive("total", "squares", "flows"):
        again = row["total"].value ** 2 / (row["flows"].value * row["squares"].value)
    for ratio, above, below in PERCENT_OF:
        if name == ratio and again == 0 and row.has(above) and row.positive(below):
            again = row[above].value / row[below].value
    if again <= 0 or row[name].value <= 0:
        return None
    return abs(math.log(row[name].value / again / 100)) < abs(math.log(row[name].value / again))
