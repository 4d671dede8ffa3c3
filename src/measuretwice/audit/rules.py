"""What can't be true of a table's rows, each by itself and all together; and the constant C that they give.

Numbers are rounded: each is taken for the interval that its last digit leaves open, and a row is named only where
no numbers in these intervals would do.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from measuretwice.audit.columns import NAMES, Number, significant_digits
from measuretwice.stats.intervals import slope_through_zero
from measuretwice.tcp.model import mathis_bandwidth_bps

# A row by itself

# What arithmetic of floats adds to a difference.
FLOATS = 1e-9
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
    found: dict[str, str] = {}
    for check in RULES:
        for kind, text in check(row):
            found.setdefault(kind, text)
    return list(found.items())


@rule
def negative(row: Row) -> Offences:
    for name, number in row.numbers.items():
        if number.value < 0:
            yield "negative", f"{name} {row.shown(name)} is less than nothing"


@rule
def zero(row: Row) -> Offences:
    """Where nothing was carried, shares and indices are of nothing."""
    for name in ("flows", "rtt", "mss", "segments", "sent", "link"):
        if row.has(name) and row[name].value == 0:
            yield "zero", f"{name} is 0"
    for name in ("total", "goodput"):
        if row.has(name) and row[name].value == 0:
            yield "zero", f"{name} is 0: nothing was carried"
    if row.has("total", "squares") and row["total"].value > 0 and row["squares"].value == 0:
        yield "squares", f"squares are 0, and the total is {row.shown('total')}"


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
            yield (
                "share",
                (
                    f"{NAMES[name].help}: {row.shown(name)} is more than 1"
                    f"{percent if row[name].value <= 100 else ''}"
                ),
            )


@rule
def link(row: Row) -> Offences:
    for name in ("total", "goodput"):
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
def quotients(row: Row) -> Offences:
    """What was divided, divided again."""
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


# Rows together: sums, shares, copied rows, values that don't belong

# What was measured, where two rows that have it all in common were hardly measured twice.
MEASURED = (
    "goodput", "total", "squares", "index", "share", "rtt", "losses", "halvings", "drops", "sent",
    "segments", "c_by_losses", "c_by_halvings", "loss_ratio", "halving_ratio", "model_by_losses",
    "model_by_halvings",
)  # fmt: skip
# How many equal pairs chance may make in a table before two rows count as one, copied.
CHANCE = 1e-3
# The first digits of results that are alike say nothing.
ALIKE_DIGITS = 2
# How far from the others' a row's segment size may be, as a share, where it follows from rounded values.
MSS_TOLERANCE = 0.01
# From how many rows of one number of flows a common ceiling is told, and how far below the others' best.
CEILING_ROWS = 3
CEILING_GAP = 0.02


def copied(rows: Sequence[Row]) -> Iterator[tuple[Row, Row, list[str]]]:
    """Rows that have all they measured in common with an earlier one: row, the earlier one, names.

    Only where chance would hardly do it: each value's chance to be met again is how often others of
    its column are, or, where none is, what its digits leave open.
    """
    names = [name for name in MEASURED if any(row.has(name) for row in rows)]
    alike: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if sum(row.has(name) for name in names):
            alike[tuple(row.texts.get(name, "") for name in names)].append(row)
    pairs = len(rows) * (len(rows) - 1) / 2
    counts = {name: Counter(row.texts.get(name, "") for row in rows) for name in names}
    for texts, same in alike.items():
        if len(same) < 2:
            continue
        expected = pairs
        for name, text in zip(names, texts, strict=True):
            if not text:
                continue
            ours = len(same) * (len(same) - 1) / 2
            met = sum(count * (count - 1) / 2 for count in counts[name].values()) - ours
            digits = max(significant_digits(text) - ALIKE_DIGITS, 0)
            expected *= min(1.0, max(met / pairs, 10.0**-digits))
        if expected < CHANCE:
            shared = [name for name, text in zip(names, texts, strict=True) if text]
            for row in same[1:]:
                yield row, same[0], shared


def implied_segments(rows: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    """Rows whose model rate isn't MSS/(RTT sqrt(p)) with the segment size that the others have."""
    for model, ratio in (("model_by_losses", "loss_ratio"), ("model_by_halvings", "halving_ratio")):
        sizes = {
            row.line: row[model].value * row["rtt"].value * math.sqrt(row[ratio].value) / 8
            for row in rows
            if row.has(model, ratio, "rtt") and min(row[n].value for n in (model, ratio, "rtt")) > 0
        }
        if len(sizes) < 3:
            continue
        middle = statistics.median(sizes.values())
        for row in rows:
            if abs(sizes.get(row.line, middle) / middle - 1) > MSS_TOLERANCE:
                yield (
                    row,
                    f"{NAMES[model].help}: {row.shown(model)}; by RTT and ratio, with the segment size "
                    f"of the other rows, {row[model].value * middle / sizes[row.line]:.6g}",
                )


def parts_of_one(rows: Sequence[Row]) -> list[list[Row]]:
    """Groups of rows whose shares are parts of one whole: of one run, each of something else."""
    return [
        group
        for group in groups_of([row for row in rows if row.has("share")])
        if len({row.texts.get("who", "") for row in group}) == len(group) > 1
    ]


def shares_together(group: Sequence[Row]) -> tuple[float, float, float]:
    """Return what shares add up to, and the interval that their last digits leave open."""
    shares = [row["share"] for row in group]
    return (
        math.fsum(share.value for share in shares),
        math.fsum(share.low for share in shares),
        math.fsum(share.high for share in shares),
    )


def shares_recomputed(group: Sequence[Row], rate: str) -> Iterator[tuple[Row, float]]:
    """Rows of a group whose share isn't their part of all rates: row, the share recomputed."""
    if not all(row.has(rate) and row[rate].low >= 0 for row in group):
        return
    whole = math.fsum(row[rate].value for row in group)
    least = math.fsum(row[rate].low for row in group)
    most = math.fsum(row[rate].high for row in group)
    for row in group:
        if least <= 0:
            return
        low, high = row[rate].low / most, row[rate].high / least
        if row["share"].high < low or row["share"].low > high:
            yield row, row[rate].value / whole


def groups_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that belong to one run: of the same run and settings."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.texts.get("group", "")].append(row)
    return list(groups.values())


def missing_shares(rows: Sequence[Row], wrong: Collection[int]) -> dict[int, float]:
    """Return the share of flows that seem to be missing, by number of flows, where some do.

    A flow that never ran is counted in n and adds nothing: an index can then be no more than the
    share of flows that did run. So where every row of some number of flows, whatever the algorithm,
    stays below one ceiling that other rows exceed, that is what its distance from 1 may say.
    `wrong` has the lines whose index can't be true.
    """
    by_flows: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.has("index", "flows") and row.line not in wrong and 0 < row["index"].value <= 1:
            by_flows[int(row["flows"].value)].append(row["index"].value)
    best = max((max(values) for values in by_flows.values()), default=0.0)
    return {
        flows: 1 - max(values)
        for flows, values in sorted(by_flows.items())
        if len(values) >= CEILING_ROWS and max(values) < best - CEILING_GAP
    }


# C of a table of flows, by losses and by halvings

# By what C is counted: its title, the model's rate, the ratio, and the count of a table of flows.
WAYS = (
    ("C by losses", "model_by_losses", "loss_ratio", "losses"),
    ("C by halvings", "model_by_halvings", "halving_ratio", "halvings"),
)


@dataclass(frozen=True)
class Fit:
    """C of goodput = C * model by regression through zero over flows, and its 95 % interval, which a single flow
    doesn't have."""

    title: str
    value: float
    low: float | None
    high: float | None
    flows: int
    left_out: int


def fits(rows: Sequence[Row], mss_bytes: float | None) -> tuple[list[Fit], list[str]]:
    """Return the constants that a table of flows gives, and why it gives no others.

    Flows without a loss, or a halving, have no place in the model and are left out.
    """
    found, missing = [], []
    for title, model, ratio, count in WAYS:
        points = [
            (expected, row["goodput"].value)
            for row in rows
            if row.has("goodput")
            and row["goodput"].value >= 0
            and (expected := _model(row, model, ratio, count, mss_bytes))
        ]
        if points:
            slope, low, high = slope_through_zero(points)
            known = math.isfinite(low) and math.isfinite(high)
            ends = (low, high) if known else (None, None)
            left_out = len(rows) - len(points)
            found.append(Fit(title, slope, ends[0], ends[1], len(points), left_out))
        else:
            missing.append(
                f"{title}: not recomputed, {_lacks(rows, model, ratio, count, mss_bytes)}"
            )
    return found, missing


def _model(row: Row, model: str, ratio: str, count: str, mss_bytes: float | None) -> float | None:
    """What the model gives a flow with C = 1; None where it gives nothing finite."""
    if row.has(model):
        return row[model].value if row[model].value > 0 else None
    mss = row["mss"].value if row.has("mss") else mss_bytes
    if row.has(ratio):
        p = row[ratio].value
    elif row.has(count, "segments") and row["segments"].value > 0:
        p = row[count].value / row["segments"].value
    else:
        return None
    if mss is None or not row.has("rtt") or not 0 < p <= 1 or row["rtt"].value <= 0 or mss <= 0:
        return None
    return mathis_bandwidth_bps(mss, row["rtt"].value * 1e3, p)


def _lacks(rows: Sequence[Row], model: str, ratio: str, count: str, mss_bytes: float | None) -> str:
    """What a table lacks for it."""

    def known(name: str) -> bool:
        return any(row.has(name) for row in rows)

    lacking = [name for name in ("goodput", "rtt") if not known(name)]
    if not known(ratio):
        lacking += [name for name in (count, "segments") if not known(name)]
    if not known("mss") and mss_bytes is None:
        lacking.append("mss (or --mss)")
    return (
        f"it has no {', '.join(lacking)}" if lacking else f"no flow has {model} or {ratio} above 0"
    )
