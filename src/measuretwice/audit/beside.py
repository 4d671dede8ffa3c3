"""What follows from columns beside each other by their headings' words alone, whatever was measured: means and totals of
numbered columns, changes, the order of statistics, what arrived of what was sent."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from measuretwice.audit.cells import Number, number_in, plain_words, words_of
from measuretwice.audit.columns import ARRIVED, SENT, name_of
from measuretwice.audit.markup import Line
from measuretwice.audit.report import Problem
from measuretwice.audit.rules import place_of
from measuretwice.audit.sheets import Table
from measuretwice.audit.sums import MEAN_TOLERANCE, PICKS, WORDS, means_of, meets

# Words of columns that compare the two before them, and how people do: in per cent of the first or the second, or times.
CHANGE = re.compile(
    r"\b(?:changes?|diff\w*|delta|gain|improvements?|increase|decrease|reduction|speed ?up|ratio|overhead|slow ?down|efficiency|vs)\b"
)
CHANGES: tuple[Callable[[float, float], float], ...] = (
    lambda a, b: b / a - 1, lambda a, b: 1 - b / a, lambda a, b: a / b - 1, lambda a, b: 1 - a / b,
    lambda a, b: b / a, lambda a, b: a / b, lambda a, b: b - a, lambda a, b: a - b,
)  # fmt: skip
UNSIGNED = CHANGES[:4]


# What sums up columns that stand beside it.
ROW_KINDS = ("mean", "total", "sum", "median", "min", "max")


def columns_off(table: Table) -> tuple[list[Problem], int, set[int]]:
    """Return the lines whose mean, total or median isn't that of the numbered columns beside it, as of trials 1 to 5, where
    it is so in most lines; else the columns are of something else; how many were compared, and the columns' places."""
    plain = [words_of(heading)[0] for heading in table.headings]
    stems: dict[str, list[int]] = {}
    for place, words in enumerate(plain):
        if re.search(r"\b\d+\b", words):
            stems.setdefault(re.sub(r"\b\d+\b", "", words).strip(), []).append(place)
    groups = [(s, places) for s, places in stems.items() if len(places) > 1 and "flow" not in s]
    problems, compared, used = list[Problem](), 0, set[int]()
    for place, words in enumerate(plain):
        for stem, places in groups if len(groups) == 1 else ():
            beside = set(words.split()) - set(stem.split())
            if place in places or not beside <= {*ROW_KINDS, "rate", "throughput"}:
                continue
            kind = next((WORDS[word] for word in words.split() if word in ROW_KINDS), "")
            off = [
                Problem((line.number,), line.cells[0], "summary", text)
                for line in table.lines
                if kind and (text := _column_off(table, line, kind, place, places))
            ]
            if kind and len(off) * 2 <= len(table.lines) > 1:
                problems += off
                compared += len(table.lines)
                used |= {place, *places}
    return problems, compared, used


@dataclass(frozen=True)
class _Change:
    """A change as a line states it, and the two numbers that it may be of, with what these are called."""

    line: Line
    stated: Number
    a: Number
    b: Number
    whose: str


def changes_off(table: Table) -> tuple[list[Problem], int, set[int]]:
    """Return the lines whose change isn't that of two columns beside it, or of a column from a line above, where it is so
    in most lines; how many were compared, and the places of the columns."""
    problems: list[Problem] = []
    compared, places = 0, set[int]()
    named = [n for n, heading in enumerate(table.headings) if CHANGE.search(words_of(heading)[0])]
    for place in [n for n in named if name_of(table.headings[n])[0] in ("", "goodput", "rtt")]:
        of_column = _changes_of(table, place)
        if not of_column:
            continue
        change, rows, wrong, used = of_column
        compared += len(rows)
        places |= {place, *used}
        for row in wrong:
            again = change(row.a.value, row.b.value)
            cell = row.line.cell(place)
            percent = "%" in cell or "%" in table.headings[place]
            shown = f"{100 * again:.4g} %" if percent else f"{again:.4g}"
            text = f"{table.headings[place]} {cell}; of {row.whose} {shown}"
            problems.append(Problem((row.line.number,), row.line.cells[0], "quotient", text))
    return problems, compared, places


def _changes_of(
    table: Table, place: int
) -> tuple[Callable[[float, float], float], list[_Change], list[_Change], set[int]] | None:
    """Return what a column of changes is of: how it is computed, the lines that state one, those in which it isn't that, and the
    columns; None where it is of nothing that stands there in most lines."""
    full = [
        n for n in range(len(table.headings)) if len(list(table.numbers(n))) == len(table.lines)
    ]
    numeric = [n for n in full if n != place]
    before = [n for n in numeric if n < place][-2:]
    pairs = [tuple(before)] if len(before) == 2 else []
    pairs += [pair for pair in pairwise(numeric) if pair not in pairs]
    sets = [(_beside(table, place, a, b), {a, b}) for a, b in pairs]
    sets += [(_from_above(table, place, column), {column}) for column in numeric]
    for number, (rows, places) in enumerate(sets):
        # Of what stands elsewhere only what agrees to its last digit.
        slack = MEAN_TOLERANCE if number < 1 and pairs and len(before) == 2 else MEAN_TOLERANCE / 5
        for change in CHANGES if len(rows) > 2 else ():
            wrong = [row for row in rows if not _is_change(row, change, slack)]
            right = [row for row in rows if row not in wrong and row.stated.value]
            if len(wrong) * 3 <= len(rows) and len({row.stated.value for row in right}) > 1:
                return change, rows, wrong, places
    return None


def _beside(table: Table, place: int, first: int, second: int) -> list[_Change]:
    rows = []
    which = (
        "the two columns before it"
        if (first, second) < (place, place) and second == place - 1
        else (f"{table.headings[first]!r} and {table.headings[second]!r}")
    )
    for line in table.lines:
        stated = _stated(table, line, place)
        a, b = (_number_at(table, line, n) for n in (first, second))
        if stated and a and b and min(a.low, b.low) > 0:
            rows.append(_Change(line, stated, a, b, which))
    return rows


def _from_above(table: Table, place: int, column: int) -> list[_Change]:
    """The changes of a column from the last line that states none, or 0."""
    rows, base = [], None
    for line in table.lines:
        stated, own = _stated(table, line, place), _number_at(table, line, column)
        if stated is None or stated.value == 0:
            base = (line, own)
        elif base and base[1] and own and min(base[1].low, own.low) > 0:
            cells = f"{line.cell(column)} after {base[0].cell(column)} in line {base[0].number}"
            whose = f"{table.headings[column]}, {cells},"
            rows.append(_Change(line, stated, base[1], own, whose))
    return rows


def _stated(table: Table, line: Line, place: int) -> Number | None:
    """The change that a cell states, as a ratio where it is per cent: +17.8 %, 2.1x, 12 % faster."""
    cell = line.cell(place).replace("\u2212", "-").lower()
    # Points of per cent, or a difference in a unit, are none.
    behind = r"\s*(%?)\s*(?:x|\u00d7|times|faster|slower|higher|lower|better|worse|more|less)?"
    match = re.fullmatch(rf"[^\d+.-]{{0,3}}([+-]?[\d.,]+){behind}", cell)
    number = number_in(match[1], table.decimal_comma)[0] if match else None
    if number is None or not match:
        return None
    return number * 0.01 if match[2] or "%" in table.headings[place] else number


def _number_at(table: Table, line: Line, place: int) -> Number | None:
    number, unit = number_in(line.cell(place), table.decimal_comma)
    return number.times(unit) if number and unit else number


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
    # Settings may be per cent as well, as of loss: only beside a named statistic are they percentiles.
    if len(lines) > 2 and not sets and not all("%" in line.cells[0] for line in lines.values()):
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
    if re.fullmatch(r"p[1-46-9]", english):
        return None
    return {"mean": MEAN, "p0": 0.0, "p100": 1e3}.get(english, place_of(english))


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


def lists_off(table: Table) -> tuple[list[Problem], int, set[int]]:
    """Return the lines in which a cell with several statistics, as avg/max, has them in the wrong order, or in which a median
    or a mean isn't that of the runs in one cell; how many were compared, and the places of the columns."""
    problems, compared, places = list[Problem](), 0, set[int]()
    for place, heading in enumerate(table.headings):
        parts = [plain_words(part).split() for part in heading.split("/")]
        orders = [
            next((o for w in part if (o := _order_of(w)) is not None), None) for part in parts
        ]
        listed = {line: _numbers_in(line.cell(place), table) for line in table.lines}
        if len(orders) > 1 and None not in orders:
            rows = [(x, n) for x, n in listed.items() if len(n) == len(orders)]
            names = {
                o: f"{part[-1]} of {heading}"
                for o, part in zip(orders, parts, strict=True)
                if o is not None
            }
            for line, numbers in rows:
                cells = {
                    o: f"{n.value:g}" for o, n in zip(orders, numbers, strict=True) if o is not None
                }
                if text := _unordered(names, cells, table):
                    problems.append(Problem((line.number,), line.cells[0], "order", text))
            compared, places = compared + len(rows), places | ({place} if rows else set())
            continue
        if sum(len(numbers) > 2 for numbers in listed.values()) * 3 < len(table.lines) * 2:
            continue
        for other, name in enumerate(table.headings):
            kind = next((w for w in plain_words(name).split() if w in ROW_KINDS), "")
            rows = [(x, n) for x, n in listed.items() if len(n) > 2 and _number_at(table, x, other)]
            off = [(x, again) for x, n in rows if (again := _not_of(table, x, other, kind, n))]
            if kind and other != place and rows and len(off) * 3 <= len(rows):
                problems += [
                    Problem(
                        (x.number,),
                        x.cells[0],
                        "summary",
                        f"{name} {x.cell(other)}; the {kind} of {x.cell(place)} is {again}",
                    )
                    for x, again in off
                ]
                compared, places = compared + len(rows), places | {place, other}
    return problems, compared, places


def _numbers_in(cell: str, table: Table) -> list[Number]:
    """Return the numbers of a cell that holds several between commas or strokes; none of another."""
    parts = [part for part in re.split(r"\s*[/;]\s*|,\s+", cell.strip("[](){} ")) if part]
    numbers = [
        number_in(re.sub(r"(?<=\d)\s*[a-zA-Z%]+$", "", part), table.decimal_comma)[0]
        for part in parts
    ]
    held = [number for number in numbers if number]
    return held if len(held) == len(parts) > 1 else []


def _not_of(table: Table, line: Line, place: int, kind: str, numbers: Sequence[Number]) -> str:
    """Return what the median, mean, least, most or sum of a line's list is, where the column's isn't it; else nothing."""
    stated = number_in(line.cell(place), table.decimal_comma)[0]
    values = [number.value for number in numbers]
    pick = PICKS.get(kind, statistics.fmean if kind == "mean" else sum)
    again = pick(values)
    if stated is None or not kind:
        return ""
    half = max(n.high - n.low for n in numbers) / 2 + (stated.high - stated.low)
    kinds = means_of(values) if kind == "mean" else [again]
    near = any(abs(stated.value - value) <= half + MEAN_TOLERANCE * abs(value) for value in kinds)
    return "" if near else f"{again:.4g}"


def intervals_off(table: Table) -> tuple[list[Problem], int, set[int]]:
    """Return the lines whose mean isn't within the interval beside it, where most are, each interval in one cell; how many
    were compared, and the places of the columns."""
    for place, heading in enumerate(table.headings):
        if not re.search(r"\b(?:ci|confidence|range)\b", plain_words(heading)):
            continue
        ends = {line: _ends_in(line.cell(place), table) for line in table.lines}
        numeric = [n for n in range(len(table.headings)) if n != place and len(table.values(n)) > 1]
        for column in sorted(numeric, key=lambda n: (n > place, abs(place - n))):
            means = {line: _number_at(table, line, column) for line in table.lines}
            rows = [
                (line, mean, pair) for line, mean in means.items() if mean and (pair := ends[line])
            ]
            wrong = [
                line
                for line, mean, (low, high) in rows
                if mean.high < low.low or mean.low > high.high
            ]
            if len(rows) < LEAST_INTERVALS or len(wrong) * 3 > len(rows):
                continue
            text = "{0} {1} isn't within its {2}, {3}"
            names = table.headings[column], heading
            problems = [
                Problem(
                    (line.number,),
                    line.cells[0],
                    "order",
                    text.format(names[0], line.cell(column), names[1], line.cell(place)),
                )
                for line in wrong
            ]
            return problems, len(rows), {place, column}
    return [], 0, set()


LEAST_INTERVALS = 3


def _ends_in(cell: str, table: Table) -> tuple[Number, Number] | None:
    """Return the two numbers of an interval: 9288.5-9391.7, [93, 95], 12 to 14."""
    bare = cell.strip("[]() ")
    match = re.fullmatch(r"(\d[\d.]*)\s*(?:-|\u2013|,|;|to|\.\.)\s*(\d[\d.]*)(?:\s*\D+)?", bare)
    if match:
        low, high = (number_in(match[n], table.decimal_comma)[0] for n in (1, 2))
        return (low, high) if low and high and low.value <= high.value else None
    return None


def start_and_end(table: Table) -> list[tuple[int, float]]:
    """Return the places of the columns that say when each row began and ended, and how many seconds their units are; empty
    where there are none, or no unit is known."""
    named = {words_of(heading)[0]: place for place, heading in enumerate(table.headings)}
    places = [named[word] for word in ("start", "end") if word in named]
    units = [unit for place in places if (unit := words_of(table.headings[place])[1])]
    if len(units) < 2 or {unit.quantity for unit in units} != {"time"}:
        return []
    return [(place, unit.factor) for place, unit in zip(places, units, strict=True)]


def time_between(
    cells: Sequence[str], ends: Sequence[tuple[int, float]], decimal_comma: bool
) -> tuple[Number, str] | None:
    """Return how long a row took, in seconds, and how to show it; None where it isn't known."""
    pairs = [(number_in(cells[place], decimal_comma)[0], factor) for place, factor in ends]
    times = [number * factor for number, factor in pairs if number]
    if len(times) < 2 or times[1].low <= times[0].high:
        return None
    start, end = times
    time = Number(end.value - start.value, end.low - start.high, end.high - start.low)
    return time, f"{cells[ends[0][0]]} to {cells[ends[1][0]]}"


def totals_off(table: Table, places_read: Collection[int]) -> tuple[list[Problem], int]:
    """Return the lines whose total isn't that of the columns before it, where it is so in most lines, of columns that
    aren't read; and how many were compared."""
    named = [
        n for n, heading in enumerate(table.headings) if words_of(heading)[0] in ("total", "sum")
    ]
    for place in named:
        before = [n for n in range(place) if len(list(table.numbers(n))) == len(table.lines)]
        for first in range(len(before) - 1):
            parts = before[first:]
            rows = [(line, _column_off(table, line, "total", place, parts)) for line in table.lines]
            wrong = [row for row in rows if row[1]]
            if len(rows) > 2 and len(wrong) * 3 <= len(rows) and not set(parts) & set(places_read):
                problems = [
                    Problem((line.number,), line.cells[0], "sum", text) for line, text in wrong
                ]
                return problems, len(rows)
    return [], 0


def ends_off(table: Table) -> tuple[list[Problem], int, set[int]]:
    """Return the lines in which more arrived than was sent, in columns of the same words but for those, where it is so in
    few; how many lines were compared, and the places of the columns."""
    ends: dict[str, dict[bool, int]] = {}
    for place, heading in enumerate(table.headings):
        words = words_of(heading)[0]
        arrived = bool(ARRIVED.search(words))
        if arrived != bool(SENT.search(words)) and re.search(
            r"\bbytes|octets|size|volume\b", heading.lower()
        ):
            rest = " ".join((ARRIVED if arrived else SENT).sub("", words).split())
            ends.setdefault(rest, {})[arrived] = place
    problems, compared, places = [], 0, set[int]()
    for pair in ends.values():
        rows: list[tuple[Line, Number, Number]] = []
        for line in table.lines if len(pair) > 1 else ():
            cells = [number_in(line.cell(pair[end]), table.decimal_comma) for end in (False, True)]
            numbers = [number.times(unit) if unit else number for number, unit in cells if number]
            rows += [(line, numbers[0], numbers[1])] if len(numbers) > 1 else []
        wrong = [line for line, sent, arrived in rows if sent.high > 0 and arrived.low > sent.high]
        if rows and len(wrong) * 2 < max(len(rows), 2):
            compared += len(rows)
            places |= set(pair.values())
            text = "{0} arrived, and {1} was sent"
            problems += [
                Problem(
                    (line.number,),
                    line.cells[0],
                    "sent",
                    text.format(line.cell(pair[True]), line.cell(pair[False])),
                )
                for line in wrong
            ]
    return problems, compared, places


def _is_change(row: _Change, change: Callable[[float, float], float], slack: float) -> bool:
    ends = [change(x, y) for x in (row.a.low, row.a.high) for y in (row.b.low, row.b.high)]
    slack *= max(1.0, abs(row.stated.value))
    low, high = min(ends) - slack, max(ends) + slack
    stated = row.stated
    # What is better may be less, so the sign may be left out.
    return (stated.high >= low and stated.low <= high) or (
        change in UNSIGNED and stated.high >= -high and stated.low <= -low
    )


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
        abs(stated.value - mean) <= half + MEAN_TOLERANCE * abs(mean) for mean in means_of(values)
    )
    if pick := PICKS.get(kind):
        ends = [pick([getattr(n, end) for n in column]) for end in ("value", "low", "high")]
        total = Number(*ends)
    if near if kind == "mean" else meets(stated, total):
        return ""
    again = statistics.fmean(values) if kind == "mean" else total.value
    factor = cells[0][1].factor if cells[0][1] else 1.0
    return f"{table.headings[place]} {line.cells[place]}; the {kind} of the columns beside it is {again / factor:.6g}"
