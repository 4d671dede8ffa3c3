"""What follows from other numbers of a table: rows and columns that sum the others up (totals, means, medians, least and
most), and the rate that bytes over time make."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from measuretwice.audit.cells import NOTHING, Number, number_in, plain_words, words_of
from measuretwice.audit.columns import NAMES, name_of
from measuretwice.audit.markup import Line
from measuretwice.audit.report import Problem
from measuretwice.audit.rules import Row, place_of
from measuretwice.audit.sheets import Table

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
# Words of columns that compare the two before them, and how people do: in per cent of the first or the second, or times.
CHANGE = re.compile(
    r"\b(?:change|diff\w*|delta|gain|improvement|increase|speed ?up|ratio|overhead|slow ?down|vs)\b"
)
CHANGES: tuple[Callable[[float, float], float], ...] = (
    lambda a, b: b / a - 1, lambda a, b: 1 - b / a, lambda a, b: a / b - 1, lambda a, b: 1 - a / b,
    lambda a, b: b / a, lambda a, b: a / b, lambda a, b: b - a, lambda a, b: a - b,
)  # fmt: skip


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
    if "mean" in kinds.values() and not {"spread", "std"}.isdisjoint(kinds.values()):
        # As pandas describes a column: count, mean, std, min, 25%, 50%, 75%, max.
        for line in lines:
            if any(re.fullmatch(r"\d\d?\s?%", line.cell(place)) for place in places):
                kinds.setdefault(line.number, "spread")
    if len(kinds) * 2 <= len(lines):
        return kinds
    main_kind = next((kind for kind in ("mean", "total", "median") if kind in kinds.values()), "")
    return {number: "left out" for number, kind in kinds.items() if kind != main_kind}


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
        if any(_meets(number, again) for again in sums):
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
        kinds = [value for column in columns for value in _means([n.value for n in column])]
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
    if any(_meets(number, again) for again in picked):
        return ""
    return f"{name} {summary.row.shown(name)}; the rows' {summary.kind} is {summary.row.as_shown(picked[-1].value, name)}"


PICKS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "min": min,
    "max": max,
}


def _means(values: Sequence[float]) -> Iterator[float]:
    """The means that people take: arithmetic, geometric and harmonic, and the median."""
    yield statistics.fmean(values)
    yield statistics.median(values)
    if min(values) > 0:
        yield statistics.geometric_mean(values)
        yield statistics.harmonic_mean(values)


def columns_off(table: Table) -> Iterator[Problem]:
    """Yield the lines whose mean or total isn't that of the numbered columns beside it, as of trials 1 to 5, with the
    reason; nothing where it is so in most lines, since the columns are of something else then."""
    plain = [words_of(heading)[0] for heading in table.headings]
    stems: dict[str, list[int]] = {}
    for place, words in enumerate(plain):
        if re.search(r"\b\d+\b", words):
            stems.setdefault(re.sub(r"\b\d+\b", "", words).strip(), []).append(place)
    groups = [
        (stem, places) for stem, places in stems.items() if len(places) > 1 and "flow" not in stem
    ]
    for place, words in enumerate(plain):
        for stem, places in groups if len(groups) == 1 else ():
            if place in places or not set(words.split()) - set(stem.split()) <= {
                "mean",
                "total",
                "sum",
                "rate",
                "throughput",
            }:
                continue
            kind = next(
                (WORDS[word] for word in words.split() if word in ("mean", "total", "sum")), ""
            )
            off = [
                Problem((line.number,), line.cells[0], "summary", text)
                for line in table.lines
                if kind and (text := _column_off(table, line, kind, place, places))
            ]
            if len(off) * 2 <= len(table.lines) > 1:
                yield from off


def changes_off(table: Table) -> tuple[list[Problem], int]:
    """Return the lines whose change isn't that of the two columns of numbers before it, where it is so in most lines; and
    how many were compared."""
    problems, compared = [], 0
    named = [n for n, heading in enumerate(table.headings) if CHANGE.search(words_of(heading)[0])]
    for place in [n for n in named if not name_of(table.headings[n])[0]]:
        before = [n for n in range(place) if len(list(table.numbers(n))) == len(table.lines)][-2:]
        rows = []
        for line in table.lines if len(before) == 2 else ():
            cells = [line.cell(place).removeprefix("+"), *(line.cell(n) for n in before)]
            pairs = [number_in(cell, table.decimal_comma) for cell in cells]
            numbers = [n.times(unit) if unit else n for n, unit in pairs if n]
            if len(numbers) == 3 and min(numbers[1].low, numbers[2].low) > 0:
                rows.append((line, numbers))
        wrong = {c: [row for row in rows if not _is_change(row[1], c)] for c in CHANGES}
        change = min(wrong, key=lambda c: len(wrong[c]))
        if len(rows) < 3 or len(wrong[change]) * 3 > len(rows):
            continue
        compared += len(rows)
        for line, (_, a, b) in wrong[change]:
            again = change(a.value, b.value)
            shown = f"{100 * again:.4g} %" if "%" in line.cell(place) else f"{again:.4g}"
            stated = f"{table.headings[place]} {line.cell(place)}"
            text = f"{stated}; of the two columns before it {shown}"
            problems.append(Problem((line.number,), line.cells[0], "quotient", text))
    return problems, compared


def orders_off(table: Table, places_read: Collection[int]) -> tuple[list[Problem], int, set[int]]:
    """Return the lines in which a least is above a most, or a percentile above a higher one, in columns of the same words
    of which not all are read; or the columns in which it is so, where lines have the statistics; how many lines or
    columns were compared, and the places of the columns."""
    stems: dict[tuple[str, str], dict[float, int]] = {}
    for place, heading in enumerate(table.headings):
        words, unit, _ = words_of(heading)
        statistics_of = [word for word in words.split() if _order_of(word) is not None]
        stem = " ".join(word for word in words.split() if word not in statistics_of)
        order = (
            _order_of(statistics_of[0])
            if len(statistics_of) == 1
            else None
            if statistics_of
            else MEAN
        )
        if order is not None and not SPREAD_WORDS & set(stem.split()):
            stems.setdefault((stem, unit.name if unit else ""), {})[order] = place
    sets = [
        orders
        for (stem, _), orders in stems.items()
        if len(orders) > 1 and not set(orders.values()) <= set(places_read)
    ]
    problems, compared = [], 0
    for orders in sets:
        names = {order: table.headings[place] for order, place in orders.items()}
        rows = [
            (line, {o: line.cell(place) for o, place in orders.items()}) for line in table.lines
        ]
        wrong = [(line, text) for line, cells in rows if (text := _unordered(names, cells, table))]
        if len(wrong) * 2 > len(rows) > 1:
            continue  # They are of something else.
        compared += len(rows)
        problems += [Problem((line.number,), line.cells[0], "order", text) for line, text in wrong]
    lines = {o: line for line in table.lines if (o := _order_of(line.cells[0].lower())) is not None}
    if len(lines) > 2 and not sets:
        names = {order: line.cells[0] for order, line in lines.items()}
        for place, heading in enumerate(table.headings[1:], 1):
            cells = {order: line.cell(place) for order, line in lines.items()}
            if text := _unordered(names, cells, table):
                numbers = tuple(line.number for line in lines.values() if line.cells[0] in text)
                problems.append(Problem(numbers, heading, "order", text))
            compared += 1
    places = {place for orders in sets for place in orders.values()}
    return problems, compared, places if compared else set()


# Where a mean stands among the others: anywhere between the least and the most.
MEAN = -1.0
SPREAD_WORDS = set("std ci confidence error iqr range spread jitter".split())


def _order_of(word: str) -> float | None:
    """Return where a statistic stands among others, as a percentile, MEAN for a mean; None for no statistic."""
    if match := re.fullmatch(r"(\d\d)(?:\.0)?\s?%", word):
        return float(match[1])
    english = plain_words(word)
    # P1 and P8 may be of one sender and of eight.
    return (
        MEAN if english == "mean" else None if re.fullmatch(r"p\d", english) else place_of(english)
    )


def _unordered(names: Mapping[float, str], cells: Mapping[float, str], table: Table) -> str:
    """Return which of a line's values, or of a column's, are in the wrong order; empty where none is."""
    pairs = {order: number_in(cell, table.decimal_comma) for order, cell in cells.items()}
    numbers = {o: n.times(unit) if unit else n for o, (n, unit) in pairs.items() if n}
    ends = [o for o in (0.0, 1e3) if o in numbers]
    order = [o for o in sorted(numbers) if o != MEAN]
    around = [(0.0, MEAN), (MEAN, 1e3)] if MEAN in numbers else []
    for a, b in [
        *pairwise(order),
        *(p for p in around if set(p) - {MEAN} <= set(ends)),
    ]:
        if numbers[a].low > numbers[b].high:
            return f"{names[a]} {cells[a]} is more than {names[b]} {cells[b]}"
    return ""


def _is_change(numbers: Sequence[Number], change: Callable[[float, float], float]) -> bool:
    stated, a, b = numbers
    ends = [change(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    slack = MEAN_TOLERANCE * max(1.0, abs(stated.value))
    return stated.high >= min(ends) - slack and stated.low <= max(ends) + slack


def _column_off(table: Table, line: Line, kind: str, place: int, places: Sequence[int]) -> str:
    if len(line.cells) != len(table.headings):
        return ""
    cells = [number_in(line.cells[p], table.decimal_comma) for p in (place, *places)]
    numbers = [number.times(unit) if unit else number for number, unit in cells if number]
    if len(numbers) < len(cells):
        return ""
    stated, column = numbers[0], numbers[1:]
    total = Number.sum_of(column)
    half = (stated.high - stated.low) / 2 + max(n.high - n.low for n in column) / 2
    values = [n.value for n in column]
    near = any(
        abs(stated.value - mean) <= half + MEAN_TOLERANCE * abs(mean) for mean in _means(values)
    )
    if near if kind == "mean" else _meets(stated, total):
        return ""
    again = statistics.fmean(values) if kind == "mean" else total.value
    factor = cells[0][1].factor if cells[0][1] else 1.0
    return f"{table.headings[place]} {line.cells[place]}; the {kind} of the columns beside it is {again / factor:.6g}"


def _meets(stated: Number, again: Number) -> bool:
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
        elif _slip(Number(middle, middle * (1 - NEAR), middle * (1 + NEAR))):
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


def _slip(number: Number) -> bool:
    return any(_within(number, slip, NEAR) or _within(number, 1 / slip, NEAR) for slip in SLIPS)


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
