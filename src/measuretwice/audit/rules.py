"""What can't be true of a table's row by itself.

Numbers are rounded: each is taken for the interval that its last digit leaves open, and a row is named only where
no numbers in these intervals would do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from measuretwice.audit.cells import Number
from measuretwice.audit.columns import NAMES
from measuretwice.stats.intervals import jains_index

# What arithmetic of floats adds to a difference.
FLOATS = 1e-9
# How far arrived may be above sent, by what each end's clock covers; rounded means from their parts; an index in a row.
ENDS, MEANS = 0.1, 0.01
# What a rule yields: the kind of what is off, and a text for a person.
Offences = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Row:
    """A row: its line in the file, what it is called, its numbers in bit/s, seconds and ones by
    name, and how each is to be shown."""

    line: int
    label: str
    numbers: Mapping[str, Number]
    texts: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]

    def has(self, *names: str) -> bool:
        return self.numbers.keys() >= set(names)

    def shown(self, name: str) -> str:
        """The number as the table has it."""
        return self.texts.get(name) or f"{self.numbers[name].value:.6g}"


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
def negative(row: Row) -> Offences:
    for name, number in row.numbers.items():
        if number.value < 0:
            yield "negative", f"{name} {row.shown(name)} is less than nothing"


@rule
def zero(row: Row) -> Offences:
    """Look for what can't be 0, and for shares and indices of nothing."""
    for name in ("flows", "rtt", "mss", "link"):
        # A round-trip time of 0 ms may be one of 0.4.
        if row.has(name) and row[name].value == 0 and (name != "rtt" or row[name].high < 1e-6):
            yield "zero", f"{name} is 0"
    for name in ("total", "goodput"):
        if row.has(name) and row[name].value == 0 and carried_something(row):
            yield "zero", f"{name} is 0: nothing was carried"
    if row.has("total", "squares") and row["total"].value > 0 and row["squares"].value == 0:
        yield "squares", f"squares are 0, and the total is {row.shown('total')}"


def carried_something(row: Row) -> bool:
    """Return whether a row has what only flows that ran can have."""
    return any(
        row.has(name) and row[name].value > 0
        for name in ("flows", "segments", "losses", "bytes", "halvings")
    )


@rule
def order_of_statistics(row: Row) -> Offences:
    """No least is above a mean, no mean above the most, no percentile below a lower one."""
    by_name: dict[str, list[tuple[float, str]]] = {}
    for key in row.numbers:
        statistic, _, name = key.rpartition(" ")
        if statistic and (place := _place_of(statistic)) is not None:
            by_name.setdefault(name, []).append((place, key))
    for name, keys in by_name.items():
        for place, key in sorted(keys):
            above = [(other, further) for further, other in keys if further > place]
            if row.has(name) and key != name and place != PLACE["median"]:
                if place in (PLACE["min"], PLACE["low"]):
                    above.append((name, PLACE["median"]))
                elif place in (PLACE["max"], PLACE["high"]) and row[name].low > row[key].high:
                    yield "order", f"{name} {row.shown(name)} is more than {key} {row.shown(key)}"
            for other, _ in above:
                if row[key].low > row[other].high:
                    yield "order", f"{key} {row.shown(key)} is more than {other} {row.shown(other)}"


PLACE = {
    "min": 0.0,
    "low": 0.0,
    "lower": 0.0,
    "median": 50.0,
    "high": 1e3,
    "upper": 1e3,
    "max": 1e3,
}


def _place_of(statistic: str) -> float | None:
    if statistic in PLACE:
        return PLACE[statistic]
    match = re.fullmatch(r"p(\d{1,3})|(\d\d)th", statistic)
    digits = (match[1] or match[2]) if match else ""
    # p999 is 99.9 %.
    return float(f"{digits[:2]}.{digits[2:]}") if digits else None


@rule
def arrived_of_sent(row: Row) -> Offences:
    for name in ("goodput", "total"):
        if row.has("sent_rate", name) and row[name].low > row["sent_rate"].high * (1 + ENDS):
            yield "sent", f"{row.shown(name)} arrived, and {row.shown('sent_rate')} was sent"


@rule
def round_trip_time(row: Row) -> Offences:
    """No packet is back before the path lets it."""
    for name in ("min rtt", "rtt"):
        if row.has("base_rtt", name) and 0 < row[name].high < row["base_rtt"].low * (1 - MEANS):
            yield (
                "rtt",
                f"{name} {row.shown(name)} is less than the {row.shown('base_rtt')} that was set",
            )


@rule
def flows_side_by_side(row: Row) -> Offences:
    """Flows of one run in columns beside each other: their sum, and their index."""
    flows = [number for name, number in row.numbers.items() if re.fullmatch(r"\d+ goodput", name)]
    if len(flows) < 2 or min(flow.value for flow in flows) < 0:
        return
    low, total = math.fsum(flow.low for flow in flows), math.fsum(flow.value for flow in flows)
    high = math.fsum(flow.high for flow in flows)
    if row.has("link") and low > row["link"].high > 0:
        yield "link", f"together {100 * total / row['link'].value:.2f} % of the link"
    if row.has("total") and _apart(row["total"], low * (1 - MEANS), high * (1 + MEANS)):
        yield (
            "sum",
            f"total {row.shown('total')}; the {len(flows)} flows add up to {_as_shown(total, row, 'total')}",
        )
    if row.has("index") and total > 0 and index_apart(row["index"], flows):
        again = jains_index([flow.value for flow in flows])
        yield (
            "index",
            f"index {row.shown('index')}; recomputed from the row's {len(flows)} flows {again:.4g}",
        )


def index_apart(stated: Number, flows: Sequence[Number]) -> bool:
    """Return whether no rates within what their last digits leave open have the index."""
    total = math.fsum(flow.value for flow in flows)
    squares = math.fsum(flow.value**2 for flow in flows)
    again = jains_index([flow.value for flow in flows])
    halves = [((flow.high - flow.low) / 2, flow.value) for flow in flows]
    # To the first order, and what the second may add.
    first = math.fsum(half * abs(1 / total - value / squares) for half, value in halves)
    slack = 2 * again * first + 3 * (math.fsum(half for half, _ in halves) / total) ** 2 + FLOATS
    return _apart(stated, again - slack, again + slack)


def _as_shown(value: float, row: Row, name: str) -> str:
    """A value in the unit in which the row shows a name's."""
    try:
        factor = float(row.shown(name)) / row[name].value
    except (ValueError, ZeroDivisionError):
        factor = 1.0
    return f"{value * factor:.6g}"


@rule
def mean_of_flows(row: Row) -> Offences:
    if row.has("per_flow", "flows", "total") and row["flows"].value > 0:
        low, high = (getattr(row["per_flow"], end) * row["flows"].value for end in ("low", "high"))
        if _apart(row["total"], low * (1 - MEANS), high * (1 + MEANS)):
            yield (
                "sum",
                f"{row.shown('flows')} flows of {row.shown('per_flow')} each, and the total is {row.shown('total')}",
            )


@rule
def utilisation(row: Row) -> Offences:
    """Compare with the rate over the link's; within a few per cent, since the link's may count headers."""
    if row.has("utilisation") and row["utilisation"].low > 1 + MEANS:
        yield "link", f"utilisation {row.shown('utilisation')} is more than all of the link"
    for name in ("total", "goodput"):
        if (
            row.has("utilisation", "link", name)
            and row["link"].value > 0
            and row["utilisation"].low > 0
        ):
            again = row[name] * (1 / row["link"].value)
            if _apart(row["utilisation"], again.low * (1 - ENDS), again.high * (1 + ENDS)):
                yield (
                    "quotient",
                    f"utilisation {row.shown('utilisation')}; recomputed {again.value:.4g}",
                )
            return


@rule
def flows_are_whole(row: Row) -> Offences:
    for name in ("flows", "asked"):
        if row.has(name) and row[name].value % 1:
            yield "flows", f"{row.shown(name)} flows are no whole number"


@rule
def squares_of_some_flows(row: Row) -> Offences:
    """For rates x >= 0 of n flows: (sum x)^2 / n <= sum x^2 <= (sum x)^2."""
    if not row.has("total", "squares") or min(row["squares"].value, row["total"].value) <= 0:
        return
    total, squares = row["total"], row["squares"]
    if squares.low > total.high**2:
        yield (
            "squares",
            f"squares {row.shown('squares')} are more than the total's own square, "
            f"{row.shown('total')}²: no flows have both",
        )
    if row.has("flows") and row["flows"].value > 0:
        most = total.low**2 / (row["flows"].value * squares.high) if squares.high > 0 else 0.0
        if most > 1 + FLOATS:
            index = total.value**2 / (row["flows"].value * squares.value)
            printed = f"index {row.shown('index')}; " if row.has("index") else ""
            yield (
                "index",
                f"{printed}recomputed {index:.6g}, and none is more than 1: no "
                f"{row['flows'].value:.0f} flows have this total and these squares",
            )


@rule
def index_recomputes(row: Row) -> Offences:
    if not row.has("index", "total", "squares", "flows"):
        return
    index, total, squares, flows = (row[n] for n in ("index", "total", "squares", "flows"))
    if flows.value <= 0 or squares.low <= 0 or total.low <= 0:
        return
    low = total.low**2 / (flows.value * squares.high)
    high = total.high**2 / (flows.value * squares.low)
    if _apart(index, low, high):
        again = total.value**2 / (flows.value * squares.value)
        yield "index", f"index {row.shown('index')}; recomputed {again:.6g}"


@rule
def index_bounds(row: Row) -> Offences:
    if not row.has("index") or (row.has("total") and row["total"].value == 0):
        return
    index = row["index"]
    if index.low > 1:
        percent = (
            f"; {index.value:g} % would be {index.value / 100:g}" if 1 < index.value <= 100 else ""
        )
        yield "index", f"index {row.shown('index')} is more than 1{percent}"
    flows = row["flows"].value if row.has("flows") else 0
    if flows > 0 and index.high < 1 / flows:
        yield (
            "index",
            (
                f"index {row.shown('index')} is less than 1/n: {flows:.0f} flows can't come below {1 / flows:.4g}"
            ),
        )
    elif index.high <= 0:
        yield "index", f"index {row.shown('index')}: no flows have it; the least is 1/n"


@rule
def ratios(row: Row) -> Offences:
    """A share of something is between 0 and 1."""
    for name in ("share", "fair_share", "loss_ratio", "halving_ratio"):
        if row.has(name) and row[name].low > 1:
            percent = f"; {row.shown(name)} % would be {row[name].value / 100:g}"
            more = "100 %" if "%" in row.shown(name) else "1"
            yield (
                "share",
                (
                    f"{NAMES[name].help}: {row.shown(name)} is more than {more}"
                    f"{percent if row[name].value <= 100 and more == '1' else ''}"
                ),
            )


@rule
def link(row: Row) -> Offences:
    for name in ("total", "goodput", "per_flow"):
        if row.has("link", name) and row["link"].value > 0 and row[name].low > row["link"].high:
            share = row[name].value / row["link"].value
            yield "link", f"{name} is {100 * share:.2f} % of the link"


@rule
def flows_asked(row: Row) -> Offences:
    if row.has("flows", "asked") and row["flows"].value != row["asked"].value:
        yield (
            "flows",
            f"{row['flows'].value:.0f} flows of {row['asked'].value:.0f} that were asked for",
        )


@rule
def losses_and_halvings(row: Row) -> Offences:
    """A window is halved for a loss, once for all losses of a round trip."""
    if row.has("losses", "halvings") and row["losses"].high < row["halvings"].low:
        yield (
            "halvings",
            f"{row.shown('losses')} losses, and {row.shown('halvings')} halvings: each takes a loss at least",
        )
    elif row.has("c_by_losses", "c_by_halvings") and (
        row["c_by_losses"].high < row["c_by_halvings"].low
    ):
        yield (
            "halvings",
            f"C is {row.shown('c_by_losses')} by losses and {row.shown('c_by_halvings')} by halvings: "
            "some flow had fewer losses than halvings",
        )


@rule
def parts_of_segments(row: Row) -> Offences:
    for part in ("losses", "halvings"):
        if row.has(part, "segments") and row[part].low > row["segments"].high:
            yield "counts", f"{row.shown(part)} {part}, of {row.shown('segments')} segments"


@rule
def received_of_sent(row: Row) -> Offences:
    if not row.has("received", "segments") or row["segments"].value <= 0:
        return
    sent, received = row["segments"], row["received"]
    if received.low > sent.high:
        yield "counts", f"{row.shown('received')} packets received, of {row.shown('segments')} sent"
    elif row.has("loss_ratio") and not row.has("losses"):
        again = 1 - received.value / sent.value
        wider = Number(again, again * (1 - ENDS), again * (1 + ENDS))
        if row["loss_ratio"].high < wider.low or row["loss_ratio"].low > wider.high:
            yield (
                "quotient",
                f"{row.shown('received')} of {row.shown('segments')} packets received is a loss of "
                f"{again:.4g}, and it says {row.shown('loss_ratio')}",
            )


@rule
def quotients(row: Row) -> Offences:
    """Divide again what was divided."""
    for name, above, below in (
        ("losses_per_halving", "losses", "halvings"),
        ("drops_per_halving", "drops", "halvings"),
        ("loss_ratio", "losses", "segments"),
        ("halving_ratio", "halvings", "segments"),
    ):
        if not row.has(name, above, below) or min(row[above].value, row[below].low) <= 0:
            continue
        low, high = row[above].low / row[below].high, row[above].high / row[below].low
        stated, again = row[name], row[above].value / row[below].value
        if not _apart(stated, low, high):
            continue
        if not _apart(stated * 0.01, low, high):
            yield (
                "percent",
                f"{NAMES[name].help}: {row.shown(name)} is per cent; as a ratio {again:.4g}",
            )
        else:
            yield "quotient", f"{NAMES[name].help}: {row.shown(name)}; recomputed {again:.6g}"


@rule
def both_by_segments(row: Row) -> Offences:
    """Losses and halvings over the same segments: their quotient needs no segments."""
    names = ("losses", "halvings", "loss_ratio", "halving_ratio")
    if not row.has(*names) or row.has("segments") or min(row[n].low for n in names) <= 0:
        return
    losses, halvings, p, q = (row[name] for name in names)
    if _apart(
        Number(1, p.low / q.high, p.high / q.low),
        losses.low / halvings.high,
        losses.high / halvings.low,
    ):
        yield (
            "quotient",
            f"{row.shown('losses')} losses for {row.shown('halvings')} halvings, and their ratios to the "
            f"segments sent are {row.shown('loss_ratio')} and {row.shown('halving_ratio')}",
        )


def _apart(stated: Number, low: float, high: float) -> bool:
    return stated.high < low * (1 - FLOATS) or stated.low > high * (1 + FLOATS)


@rule
def constants_are_positive(row: Row) -> Offences:
    for name in ("c_by_losses", "c_by_halvings"):
        if row.has(name) and row[name].high <= 0:
            yield "constant", f"{NAMES[name].help}: {row.shown(name)}; it is more than 0"
