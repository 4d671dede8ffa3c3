"""What can't be true of a table's rows together: copied rows, shares, indices and totals beside the flows they are of;
and the constant C of the Mathis model that they give."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from measuretwice.audit.cells import Number, significant_digits
from measuretwice.audit.columns import NAMES
from measuretwice.audit.rules import Row, index_apart
from measuretwice.audit.table import Given
from measuretwice.stats.intervals import jains_index, slope_through_zero
from measuretwice.tcp.model import mathis_bandwidth_bps

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
# What sums of rounded parts may differ by from a total that was rounded elsewhere.
ROUNDING = 0.005
INDEX_SLACK = 0.003
# A packet in a queue, and how many times what a full buffer takes a round-trip time may be longer than the least.
FRAME_BYTES, FAR_LONGER, SHORT_S = 1514, 3.0, 0.05
# So many digits of a mean are hardly met again.
LONG_DIGITS = 7
# From how many rows of one number of flows a common ceiling is told, and how far below the others' best.
CEILING_ROWS = 3
CEILING_GAP = 0.02


def copied(rows: Sequence[Row]) -> Iterator[tuple[Row, Row, list[str]]]:
    """Rows that have all they measured in common with an earlier one: row, the earlier one, names.

    Only where chance would hardly do it: each value's chance to be met again is how often others of
    its column are, or, where none is, what its digits leave open.
    """
    names = [name for name in MEASURED if any(row.has(name) for row in rows)]
    if any(row.has("bytes", "duration") for row in rows):
        # A rate that is their quotient has no digits of its own.
        names = [name for name in names if name not in ("goodput", "total")] + ["bytes", "duration"]
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


def groups_of(rows: Sequence[Row], *names: str) -> list[list[Row]]:
    """Rows that belong to one run: of the same run and settings, and with the same text in the columns of names.

    Where each flow stands in them several times, each time is another run. Where only some do, a port is used on
    several hosts.
    """
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.texts.get(name, "") for name in ("group", *names))].append(row)
    return [run for group in groups.values() for run in _runs_of(group)]


def _runs_of(group: Sequence[Row]) -> list[list[Row]]:
    counts = Counter(row.texts.get("flow", "") for row in group)
    if "" in counts or len(counts) < 2 or len(set(counts.values())) > 1:
        return [list(group)]
    runs: list[list[Row]] = [[] for _ in range(max(counts.values()))]
    seen: Counter[str] = Counter()
    for row in group:
        runs[seen[row.texts["flow"]]].append(row)
        seen[row.texts["flow"]] += 1
    return runs


# What a table of flows may have beside each flow, of all flows of its run.
OF_ALL = ("index", "total", "flows")


def flows_of_runs(rows: Sequence[Row]) -> list[list[Row]]:
    """The flows of each run, where what is said of all is the same in the rows of several flows; else nothing."""
    beside = [name for name in OF_ALL if any(row.has(name) for row in rows)]
    groups = groups_of(rows, *beside)
    several = sum(len(group) > 1 for group in groups)
    # A run of one flow may be among them, where flows are counted.
    counted = all(any(map(str.isdigit, row.texts.get("flow", ""))) for row in rows)
    enough = several == len(groups) or (counted and several * 2 >= len(groups))
    return groups if beside and groups and enough else []


def said_of_all(group: Sequence[Row]) -> Iterator[str]:
    """Yield what stands beside each flow of a run and isn't true of them all."""
    first, flows = group[0], [row["goodput"] for row in group if row.has("goodput")]
    sent = [row["sent_rate"] for row in group if row.has("sent_rate")]
    if len(flows) < len(group) or min(flow.value for flow in flows) < 0 or _some_are_missing(group):
        return
    total = math.fsum(flow.value for flow in flows)
    if total <= 0:
        return
    if first.has("index") and not any(
        _near(first["index"], rates) for rates in (flows, sent) if len(rates) == len(group)
    ):
        again = jains_index([flow.value for flow in flows])
        yield f"index {first.shown('index')}; recomputed from its {len(flows)} flows {again:.6g}"
    if first.has("total"):
        low, high = math.fsum(flow.low for flow in flows), math.fsum(flow.high for flow in flows)
        if first["total"].high < low * (1 - ROUNDING) or first["total"].low > high * (1 + ROUNDING):
            share = total / first["total"].value if first["total"].value else math.inf
            yield f"total {first.shown('total')}; its {len(flows)} flows add up to {share:.4g} times as much"


def _near(index: Number, rates: Sequence[Number]) -> bool:
    """Return whether rates have an index, but for what comes of other ends and other times of the same flows."""
    wider = Number(index.value, index.low - INDEX_SLACK, index.high + INDEX_SLACK)
    return math.fsum(rate.value for rate in rates) <= 0 or not index_apart(wider, rates)


def _some_are_missing(group: Sequence[Row]) -> bool:
    """Return whether a table says that there were other flows than those that it lists."""
    return group[0].has("flows") and group[0]["flows"].value != len(group)


def longer_than_buffers(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a remark where round-trip times are far longer than the rows' buffers take to empty."""
    having = [row for row in rows if row.has("buffer", "rtt", "link") and row["link"].value > 0]
    least = min((row["rtt"].value for row in having), default=0.0)
    times = {row.line: row["buffer"].value * FRAME_BYTES * 8 / row["link"].value for row in having}
    long = [
        row for row in having if row["rtt"].value - least > FAR_LONGER * times[row.line] + SHORT_S
    ]
    if long and len(long) < len(having):
        row = long[0]
        yield (
            f"{len(long)} of {len(rows)} round-trip times are far longer than their buffers take to empty (line {row.line}: "
            f"{row.shown('rtt')} behind {row.shown('buffer')} packets, which are {times[row.line] * 1e3:.3g} ms of the link): "
            "another queue is on the path"
        )


def repeated_to_the_last_digit(rows: Sequence[Row]) -> Iterator[str]:
    """Means of measured times that are the same in several rows, though what else was measured differs."""
    for name in ("rtt", "goodput", "total"):
        having = [row for row in rows if row.has(name) and row.has("goodput") | row.has("total")]
        counts = Counter(row.texts.get(name, "") for row in having)
        for text, times in counts.items():
            if times < 3 or significant_digits(text) < LONG_DIGITS or times > len(having) / 2 + 1:
                continue
            same = [row for row in having if row.texts.get(name) == text]
            others = {
                tuple(row.texts.get(other, "") for other in MEASURED if other != name)
                for row in same
            }
            if len(others) == len(same):
                lines = ", ".join(str(row.line) for row in same[:10])
                yield f"{name} is {text} to the last digit in rows {lines}, while the rest differs: hardly measured"


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


# C of flows, by losses and by halvings

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


def fits(rows: Sequence[Row], given: Given) -> tuple[list[Fit], list[tuple[str, bool]]]:
    """Return the constants that a table of flows gives; why it gives no others, and whether an option would help.

    Flows without a loss, or a halving, have no place in the model and are left out.
    """
    fitted, missing = [], []
    for title, model, ratio, count in WAYS:
        points = [
            (expected, row["goodput"].value)
            for row in rows
            if row.has("goodput")
            and row["goodput"].value >= 0
            and (expected := _model(row, model, ratio, count, given))
        ]
        if points:
            slope, low, high = slope_through_zero(points)
            has = math.isfinite(low) and math.isfinite(high)
            ends = (low, high) if has else (None, None)
            left_out = len(rows) - len(points)
            fitted.append(Fit(title, slope, ends[0], ends[1], len(points), left_out))
        else:
            lacking = _lacks(rows, ratio, count, given)
            why = (
                f"it has no {', '.join(lacking)}"
                if lacking
                else f"no flow has {model} or {ratio} above 0"
            )
            by_option = bool(lacking) and all(name.endswith(")") for name in lacking)
            missing.append((f"{title}: not recomputed, {why}", by_option))
    return fitted, missing


def _model(row: Row, model: str, ratio: str, count: str, given: Given) -> float | None:
    """Return what the model gives a flow with C = 1; None where it gives nothing finite."""
    if row.has(model):
        return row[model].value if row[model].value > 0 else None
    mss = row["mss"].value if row.has("mss") else given.mss_bytes
    rtt_s = row["rtt"].value if row.has("rtt") else given.rtt_s
    if row.has(ratio):
        p = row[ratio].value
    elif row.has(count, "segments") and row["segments"].value > 0:
        p = row[count].value / row["segments"].value
    else:
        return None
    if mss is None or rtt_s is None or not 0 < p <= 1 or rtt_s <= 0 or mss <= 0:
        return None
    return mathis_bandwidth_bps(mss, rtt_s * 1e3, p)


def _lacks(rows: Sequence[Row], ratio: str, count: str, given: Given) -> list[str]:
    """Return what a table lacks for it, with the option that gives it, where one does."""

    def has(name: str) -> bool:
        return any(row.has(name) for row in rows)

    lacking = [] if has("goodput") else ["goodput"]
    if not has("rtt") and given.rtt_s is None:
        lacking.append("rtt (or --rtt)")
    if not has(ratio):
        lacking += [name for name in (count, "segments") if not has(name)]
    if not has("mss") and given.mss_bytes is None:
        lacking.append("mss (or --mss)")
    return lacking
