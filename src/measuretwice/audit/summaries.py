"""Rows that sum the others up: totals, means, medians, least and most. They are no flows, and follow from the rest."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from measuretwice.audit.cells import NOTHING, Number, plain_words, read_cell, words_of
from measuretwice.audit.columns import NAMES
from measuretwice.audit.rules import Row
from measuretwice.audit.sheets import Line, Table

WORDS = {
    "total": "total", "sum": "total", "aggregate": "total", "aggregated": "total", "overall": "spread", "combined": "spread",
    "subtotal": "total", "mean": "mean", "median": "median", "min": "min", "max": "max",
    "std": "spread", "count": "spread", "ci": "spread", "range": "spread", "iqr": "spread", "p25": "spread",
    "p50": "median", "p75": "spread", "p90": "spread", "p95": "spread", "p99": "spread",
}  # fmt: skip
FILLERS = {
    "all", "flows", "flow", "of", "the", "grand", "row", "rows", "runs", "values", "per", "and", "for", "dev", "geral",
    "streams", "over", "throughput", "goodput", "value", "n",
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
MEAN_TOLERANCE = 0.005


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
            cell = line.cells[place] if place < len(line.cells) else ""
            if kind := _kind_of(cell):
                kinds[line.number] = kind
                break
    if {"mean", "spread"} <= set(kinds.values()):
        # As pandas describes a column: count, mean, std, min, 25%, 50%, 75%, max.
        for line in lines:
            if any(
                re.fullmatch(r"\d\d?\s?%", line.cells[place])
                for place in places
                if place < len(line.cells)
            ):
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
        (kind for kind in kinds if kind == "spread"),
        kinds[-1] if "total" in kinds[:1] else kinds[0],
    )


def summaries_off(rows: Sequence[Row], summaries: Sequence[Summary]) -> Iterator[tuple[Row, str]]:
    """Yield the summary rows that don't follow from the rows, with the reason.

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
                yield summary.row, text


def _off(summary: Summary, name: str, number: Number, spans: Sequence[Sequence[Row]]) -> str:
    columns = [[row[name] for row in span] for span in spans]
    if summary.kind == "total":
        if name not in ADDITIVE:
            return ""
        sums = [_added(column) for column in columns]
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
        return f"{name} {summary.row.shown(name)}; the rows add up to {_shown(sums[-1].value, summary.row, name)}"
    if summary.kind == "mean":
        kinds = [value for column in columns for value in _means([n.value for n in column])]
        half = max((n.high - n.low) / 2 for n in columns[-1]) + (number.high - number.low) / 2
        if any(abs(number.value - value) <= half + MEAN_TOLERANCE * abs(value) for value in kinds):
            return ""
        mean = statistics.fmean(n.value for n in columns[-1])
        return f"{name} {summary.row.shown(name)}; the mean of the rows is {_shown(mean, summary.row, name)}"
    pick = PICKS.get(summary.kind)
    if pick is None:
        return ""
    picked = [
        Number(*(pick([getattr(n, end) for n in column]) for end in ("value", "low", "high")))
        for column in columns
    ]
    if any(_meets(number, again) for again in picked):
        return ""
    return f"{name} {summary.row.shown(name)}; the rows' {summary.kind} is {_shown(picked[-1].value, summary.row, name)}"


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


def columns_off(table: Table) -> Iterator[tuple[Line, str]]:
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
                (line, text)
                for line in table.lines
                if kind and (text := _column_off(table, line, kind, place, places))
            ]
            if len(off) * 2 <= len(table.lines) > 1:
                yield from off


def _column_off(table: Table, line: Line, kind: str, place: int, places: Sequence[int]) -> str:
    if len(line.cells) != len(table.headings):
        return ""
    try:
        cells = [read_cell(line.cells[p], table.decimal_comma) for p in (place, *places)]
    except ValueError:
        return ""
    numbers = [number.times(unit) if unit else number for number, unit in cells if number]
    if len(numbers) < len(cells):
        return ""
    stated, column = numbers[0], numbers[1:]
    total = _added(column)
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


def _added(column: Sequence[Number]) -> Number:
    return Number(
        *(math.fsum(getattr(number, end) for number in column) for end in ("value", "low", "high"))
    )


def _meets(stated: Number, again: Number) -> bool:
    slack = 1e-9 * max(abs(stated.value), abs(again.value))
    return stated.low <= again.high + slack and again.low <= stated.high + slack


def _shown(value: float, row: Row, name: str) -> str:
    """A value in the unit in which the row shows its own."""
    own, shown = row[name].value, re.search(r"[\d.]+", row.shown(name).replace(",", ""))
    try:
        factor = float(shown[0]) / own if shown and own else 1.0
    except ValueError:
        factor = 1.0
    return f"{value * factor:.6g}"
