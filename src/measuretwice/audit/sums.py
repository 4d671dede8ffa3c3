"""What follows from other numbers of a table: rows and columns that sum the others up (totals, means, medians, least and
most), and the rate that bytes over time make."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from measuretwice.audit.cells import NOTHING, Number, plain_words
from measuretwice.audit.columns import NAMES
from measuretwice.audit.markup import Line
from measuretwice.audit.report import Problem
from measuretwice.audit.rules import Row

# Rows and columns that sum others up

WORDS = {
    "total": "total", "sum": "total", "aggregate": "total", "aggregated": "total", "overall": "spread", "combined": "spread",
    "subtotal": "total", "mean": "mean", "geomean": "mean", "gmean": "mean", "median": "median", "min": "min", "max": "max",
    "std": "std", "count": "spread", "ci": "spread", "range": "spread", "iqr": "spread", "p25": "spread",
    "p50": "median", "p75": "spread", "p90": "spread", "p95": "spread", "p99": "spread",
}  # fmt: skip
FILLERS = {
    "all", "flows", "flow", "of", "the", "grand", "row", "rows", "runs", "values", "per", "and", "for", "dev", "geral",
    "streams", "over", "geometric", "harmonic", "arithmetic", "throughput", "goodput", "value", "n",
}  # fmt: skip
PERCENTILE = re.compile(r"(?i)p\d{1,3}")
# What adds up over flows.
ADDITIVE = (
    "goodput",
    "total",
    "losses",
    "halvings",
    "drops",
    "sent",
    "segments",
    "bytes",
    "share",
    "flows",
)
# How far a mean may be from the rows' by rounding in between.
MEAN_TOLERANCE, SPREAD_TOLERANCE = 0.005, 0.3


@dataclass(frozen=True)
class Summary:
    """A summary row, its kind (total, mean, median, min, max, spread), and how many other rows stand before it."""

    row: Row
    kind: str
    before: int


def kinds_of(lines: Sequence[Line], places: Sequence[int]) -> dict[int, str]:
    """Return which lines are summaries, by number; of a table that has only such, means are rows, and others `left out`."""
    kinds: dict[int, str] = {}
    for line in lines:
        for place in places:
            if kind := _kind_of(line.cell(place)):
                kinds[line.number] = kind
                break
    percentiles = {
        line.number for line in lines if any(PERCENTILE.fullmatch(line.cell(p)) for p in places)
    }
    if len(percentiles) > FEW:
        kinds |= dict.fromkeys(percentiles, "spread")
    if "mean" in kinds.values() and not {"spread", "std"}.isdisjoint(kinds.values()):
        # As pandas describes a column: count, mean, std, min, 25%, 50%, 75%, max.
        for line in lines:
            if any(re.fullmatch(r"\d\d?\s?%", line.cell(place)) for place in places):
                kinds.setdefault(line.number, "spread")
    kinds = dict.fromkeys(_over_all(lines), "spread") | kinds
    if len(lines) - len(kinds) >= FEW:
        return kinds
    main_kind = next((kind for kind in ("mean", "total", "median") if kind in kinds.values()), "")
    return {number: "left out" for number, kind in kinds.items() if kind != main_kind}


SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*-\s*(\d+(?:\.\d+)?)(?:\s*s(?:ec)?)?")


def _over_all(lines: Sequence[Line]) -> list[int]:
    """Return the lines over the whole time of a table of intervals, by number, where most begin as another ends."""
    width = min((len(line.cells) for line in lines), default=0)
    for place in range(width):
        matches = {line.number: SPAN.fullmatch(line.cells[place]) for line in lines}
        spans = {n: (float(m[1]), float(m[2])) for n, m in matches.items() if m}
        if len(spans) < len(lines) or len(spans) <= FEW:
            continue
        first, last = min(a for a, _ in spans.values()), max(b for _, b in spans.values())
        over = [n for n, (a, b) in spans.items() if (a, b) == (first, last)]
        ends = {b for n, (_, b) in spans.items() if n not in over}
        follow = [a in ends or a == first for n, (a, _) in spans.items() if n not in over]
        if len(follow) >= FEW and all(follow):
            return over
    return []


def _kind_of(cell: str) -> str:
    if cell.lower() in NOTHING or len(cell) > 40 or not re.search(r"[^\W\d]", cell):
        return ""
    words = plain_words(cell).split()
    kinds = [WORDS[word] for word in words if word in WORDS]
    if not kinds or any(word not in WORDS and word not in FILLERS for word in words):
        return ""
    return next(
        (kind for kind in kinds if kind in ("spread", "std")),
        kinds[-1] if "total" in kinds[:1] else kinds[0],
    )


def summaries_off(rows: Sequence[Row], summaries: Sequence[Summary]) -> Iterator[Problem]:
    """Yield the summary rows that don't follow from the rows.

    A summary may be of all rows, of those before it, or of those since the last one of its kind.
    """
    for index, summary in enumerate(summaries):
        starts = {
            0,
            *(earlier.before for earlier in summaries[:index] if earlier.before < summary.before),
        }
        spans = [rows[start : summary.before] for start in sorted(starts)] + [rows]
        for name, number in summary.row.numbers.items():
            if NAMES.get(name) is None or name == "link":
                continue
            whole = [span for span in spans if span and all(row.has(name) for row in span)]
            if whole and (text := _off(summary, name, number, whole)):
                yield Problem(summary.row.lines_of(text), summary.row.label, "summary", text)


def _off(summary: Summary, name: str, number: Number, spans: Sequence[Sequence[Row]]) -> str:
    columns = [[row[name] for row in span] for span in spans]
    if summary.kind == "total":
        if name not in ADDITIVE:
            return ""
        sums = [Number.sum_of(column) for column in columns]
        if any(meets(number, again) for again in sums):
            return ""
        # Of a table of intervals the rate of all is a mean.
        is_mean = name in ("goodput", "total") and any(
            min(n.low for n in column) <= number.value <= max(n.high for n in column)
            for column in columns
            if len(column) > 1
        )
        if is_mean and not re.search(r"(?i)sum|soma", " ".join(summary.row.texts.values())):
            return ""
        return f"{name} {summary.row.shown(name)}; the rows add up to {summary.row.as_shown(sums[-1].value, name)}"
    if summary.kind == "mean":
        kinds = [value for column in columns for value in means_of([n.value for n in column])]
        half = max((n.high - n.low) / 2 for n in columns[-1]) + (number.high - number.low) / 2
        if any(abs(number.value - value) <= half + MEAN_TOLERANCE * abs(value) for value in kinds):
            return ""
        mean = statistics.fmean(n.value for n in columns[-1])
        return f"{name} {summary.row.shown(name)}; the mean of the rows is {summary.row.as_shown(mean, name)}"
    if summary.kind == "std":
        values = [n.value for n in columns[-1]]
        if (len(columns) > 1 and columns[0] != columns[-1]) or len(values) < 2:
            return ""
        most = statistics.stdev(values)
        half = max(n.high - n.low for n in columns[-1]) + (number.high - number.low) / 2
        spreads = (most, statistics.pstdev(values), most / len(values) ** 0.5, most**2)
        if any(abs(number.value - value) <= half + SPREAD_TOLERANCE * value for value in spreads):
            return ""
        again = summary.row.as_shown(most, name)
        return f"{name} {summary.row.shown(name)}; the rows' standard deviation is {again}"
    pick = PICKS.get(summary.kind)
    if pick is None:
        return ""
    picked = [
        Number(*(pick([getattr(n, end) for n in column]) for end in ("value", "low", "high")))
        for column in columns
    ]
    if any(meets(number, again) for again in picked):
        return ""
    return f"{name} {summary.row.shown(name)}; the rows' {summary.kind} is {summary.row.as_shown(picked[-1].value, name)}"


PICKS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "min": min,
    "max": max,
}


def means_of(values: Sequence[float]) -> Iterator[float]:
    """Yield the means that people take: arithmetic, geometric and harmonic, and the median."""
    yield statistics.fmean(values)
    yield statistics.median(values)
    if min(values) > 0:
        yield statistics.geometric_mean(values)
        yield statistics.harmonic_mean(values)


def meets(stated: Number, again: Number) -> bool:
    """Return whether two numbers may be the same, whatever their last digits leave open."""
    slack = 1e-9 * max(abs(stated.value), abs(again.value))
    return stated.low <= again.high + slack and again.low <= stated.high + slack


# Bytes over time

# How far bytes over time may be from a rate that is its own quotient, in rows beside others that are nearer.
TOLERANCE = 0.05
# How near most are where one that isn't is told from them; how near to a power of 1.024; rows that are too few for it.
TIGHT, MIXED, FEW = 0.01, 0.004, 2
# How near a factor must be to one of those below.
NEAR = 0.03
# Factors by which units slip: bits and bytes, thousands, and 1024 for thousands.
SLIPS = sorted(
    {8.0, *(10.0**n for n in range(1, 10)), *(1024.0**n for n in (1, 2, 3)), *(8 * 1000.0**n for n in (1, 2, 3)),
     *(1000.0**n / 8 for n in (1, 2, 3)), 60.0, 3600.0}
)  # fmt: skip
# By these all rows of a table may slip; by 10 000 they don't, since so many may have been carried.
UNITS = sorted(set(SLIPS) - {10.0**n for n in (4, 5, 7, 8)})
# Without a column of times, only by such factors: tests of 1, 10 and 60 s stand beside each other in honest tables.
LEAST_SLIP = 500.0
# Nobody's interval is shorter, where all rows have the same, in seconds.
SHORTEST_S = 0.01
# Rows that must agree before others are told from them.
AGREEING = 0.5


def bytes_off(rows: Sequence[Row], rate: str) -> tuple[list[Problem], list[str]]:
    """Return the rows whose bytes and rate contradict each other; and remarks on all of them."""
    having = [row for row in rows if row.positive("bytes", rate)]
    timed = [row for row in having if row.positive("duration")]
    if timed and len(timed) == len(having):
        return _by_time(timed, rate)
    return list(_by_each_other(having, rate)), []


def _by_time(rows: Sequence[Row], rate: str) -> tuple[list[Problem], list[str]]:
    # The rate over bytes by time.
    quotients = {row.line: row[rate].over(row["bytes"].over(row["duration"]) * 8) for row in rows}
    agree = [row for row in rows if _within(quotients[row.line], 1.0, TOLERANCE)]
    if len(agree) >= AGREEING * len(rows):
        apart = [row for row in rows if row not in agree]
    else:
        middle = statistics.median(quotient.value for quotient in quotients.values())
        alike = [row for row in rows if _within(quotients[row.line], middle, TOLERANCE)]
        if len(alike) < AGREEING * len(rows):
            apart = [row for row in rows if _slip(quotients[row.line])]
            apart = apart if len(agree) + len(apart) == len(rows) else []
        elif _slip(Number(middle, middle * (1 - NEAR), middle * (1 + NEAR)), UNITS):
            apart = alike
        else:
            times = f"{middle:.3g} times the bytes over the time"
            return [], [f"the rates are {times}: of other bytes, or of another time"]
    problems = []
    tight = [row for row in agree if _within(quotients[row.line], 1.0, TIGHT)]
    near = [row for row in agree if not _within(quotients[row.line], 1.0, 2 * TIGHT)]
    near = near if len(tight) > FEW and len(near) * 3 <= len(tight) and agree is not apart else []
    # A time that was asked for is a little shorter than what it took.
    asked = len({row["duration"].value for row in rows}) < len(rows)
    mixed = [row for row in near if _thousands(quotients[row.line].value) and not asked]
    remarks = [
        f"line {row.line}: {row.shown('bytes')} in {row.shown('duration')} is "
        f"{_rate(row[rate].value / quotients[row.line].value)}, and the rate is {row.shown(rate)}; the others agree "
        f"within {100 * TIGHT:.0f} %"
        for row in near
        if row not in mixed
    ]
    for row in [*apart, *mixed]:
        quotient = quotients[row.line]
        unit = ": as if 1024 and 1000 were mixed" if row in mixed else ""
        unit = f": {_times(quotient.value)}, as if a unit were wrong" if _slip(quotient) else unit
        text = (
            f"{row.shown('bytes')} in {row.shown('duration')} is {_rate(row[rate].value / quotient.value)}, and the rate "
            f"is {row.shown(rate)} ({_rate(row[rate].value)}){unit}"
        )
        problems.append(Problem(row.lines_of(text), row.label, "bytes", text))
    return problems, remarks


def _thousands(quotient: float) -> bool:
    """Return whether a quotient is one of 1024 and 1000, or of their squares or cubes."""
    size = abs(math.log(quotient))
    return any(abs(size - power * math.log(1.024)) < MIXED for power in (1, 2, 3))


def _by_each_other(rows: Sequence[Row], rate: str) -> Iterator[Problem]:
    """By the times that bytes and rates give, where these are the same in the rows but for a unit."""
    times = {row.line: (row["bytes"] * 8).over(row[rate]) for row in rows}
    clusters: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: times[row.line].value, reverse=True):
        if clusters and _within(times[row.line], times[clusters[-1][0].line].value, 0.1):
            clusters[-1].append(row)
        else:
            clusters.append([row])
    likely = [group for group in clusters if times[group[0].line].value >= SHORTEST_S]
    if len(rows) < 2 or (not likely and len(clusters) > 1):
        return
    alike = max(likely, key=len, default=[])
    reference = times[alike[0].line].value if alike else 0.0
    slipped = [
        row
        for row in rows
        if not alike or _slip_of(times[row.line].value / reference) >= LEAST_SLIP
    ]
    too_short = all(times[row.line].value < SHORTEST_S for row in slipped)
    if len(alike) + len(slipped) < AGREEING * len(rows) or (len(alike) < 2 and not too_short):
        return
    for row in slipped:
        lasts = times[row.line].value
        why = ": no interval is so short"
        if alike:
            less = _times(lasts / reference)
            why = f", {less} than the {_time(reference)} of others, as if a unit were wrong"
        text = f"{row.shown('bytes')} at {row.shown(rate)} take {_time(lasts)}{why}"
        yield Problem(row.lines_of(text), row.label, "bytes", text)


def _within(number: Number, value: float, tolerance: float) -> bool:
    return number.low <= value * (1 + tolerance) and number.high >= value * (1 - tolerance)


def _slip(number: Number, slips: Sequence[float] = SLIPS) -> bool:
    return any(_within(number, slip, NEAR) or _within(number, 1 / slip, NEAR) for slip in slips)


def _slip_of(ratio: float) -> float:
    """Return the large factor by which a unit slipped, 0 where none did; the other may be of 1000 where this is of 1024."""
    large = [slip for slip in SLIPS if slip >= LEAST_SLIP]
    return next((s for s in large if abs(math.log(max(ratio, 1 / ratio) / s)) < 0.12), 0.0)


def _times(factor: float) -> str:
    """Return in words how many times more or less, without the digits by which 1000 and 1024 differ."""
    more, value = ("more", factor) if factor > 1 else ("less", 1 / factor)
    slip = _slip_of(factor) or value
    return f"{'' if slip == value else 'about '}{slip:.4g} times {more}"


def _rate(bps: float) -> str:
    power = max((p for p in (0, 3, 6, 9) if bps >= 10**p), default=0)
    return f"{bps / 10**power:.4g} {['', 'k', 'M', 'G'][power // 3]}bit/s"


def _time(seconds: float) -> str:
    factor, unit = next(
        pair
        for pair in ((1, "s"), (1e3, "ms"), (1e6, "us"))
        if seconds * pair[0] >= 0.1 or pair[1] == "us"
    )
    return f"{seconds * factor:.3g} {unit}"
