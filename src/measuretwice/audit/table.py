"""From a table's lines of cells, rows of numbers in bit/s, seconds, bytes and ones; summary rows apart from the others."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.beside import start_and_end, time_between
from measuretwice.audit.cells import (
    BETWEEN,
    NOTHING,
    RATE,
    Number,
    Unit,
    read_cell,
    words_of,
)
from measuretwice.audit.columns import Column, Known, quantity_of
from measuretwice.audit.markup import Line
from measuretwice.audit.report import Problem
from measuretwice.audit.rules import Row, as_ratios
from measuretwice.audit.sheets import Table
from measuretwice.audit.sums import Summary, kinds_of
from measuretwice.base.errors import UserError

# A unit that follows another column's, where it names none: which column's, and to which power.
FOLLOWS = {
    "squares": (("total",), 2),
    "link": (("total", "goodput"), 1),
    "total": (("link",), 1),
    "goodput": (("link", "max goodput", "min goodput"), 1),
    "rtt": (("base_rtt", "max rtt", "min rtt"), 1),
    "base_rtt": (("rtt",), 1),
    "sent_rate": (("goodput", "total"), 1),
    "per_flow": (("total", "goodput"), 1),
    "model_by_losses": (("goodput",), 1),
    "model_by_halvings": (("goodput",), 1),
}
UNIT_EXAMPLES = {"rate": "Mbit/s", "time": "ms"}
# What the first of two is compared with, and between which of their quotients most rows are, where units are the same.
SAME_UNIT = (
    *((name, "link", 1e-3, 1.2) for name in ("total", "goodput", "per_flow")),
    *((name, "sent_rate", 1e-3, 2.0) for name in ("total", "goodput")),
    *((name, "base_rtt", 0.5, 300.0) for name in ("rtt", "min rtt")),
)
# Without these a row is as good as left out.
MEASURED_NAMES = (
    "goodput",
    "total",
    "index",
    "squares",
    "losses",
    "halvings",
    "rtt",
    "bytes",
    "share",
)
# A line with less than this share of the values that lines usually have is no row of results.
MOSTLY_EMPTY = 0.25
WHOLE = re.compile(r"\d+(?:\.0*)?")
# A part of a whole, with its per cent or without: 12/3456 (0.35 %).
PART = re.compile(r"(\d+)\s*/\s*(\d+)(?:\s*\((\d+(?:[.,]\d+)?)\s*%\))?")
NO_NUMBER = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
LINK_RATE = re.compile(rf"(\d+(?:\.\d+)?)\s*(?:([GM])(?:b?E|ig)\b|(?:{RATE.pattern}))")
# Where more cells of a column than this are `nan`, that is how the table says that there is no value.
OFTEN = 0.25
# A whole time of so many seconds, or more, is what was asked for rather than rounded.
NOMINAL = 5
# A cell that stands for several flows: 1-4, 6, 8.
SEVERAL = re.compile(
    r"\d+ ?(?:[-\u2013\u2014,&]|and|to) ?\d+(?: ?(?:[-\u2013\u2014,&]|and|to) ?\d+)*"
)
ELIDED = {"..", "...", "\N{HORIZONTAL ELLIPSIS}", "\u22ee"}


@dataclass(frozen=True)
class Given:
    """What a person says of all rows: the link's rate in bit/s, bytes of data in a segment, the round-trip time in s."""

    rate_bps: float | None = None
    mss_bytes: float | None = None
    rtt_s: float | None = None


@dataclass(frozen=True)
class Reading:
    """A table's rows and its summary rows; what was off in their cells; remarks; cells
    that weren't read; and the columns and units that all was read by."""

    rows: list[Row]
    summaries: list[Summary]
    problems: list[Problem]
    notes: list[str]
    unread: list[str]
    columns: Known
    units: Mapping[str, Unit]


def read_rows(table: Table, by_name: Known, given: Given) -> Reading:
    """Read the columns that are known. UserError where a unit that is needed isn't known, or no row has a number."""
    by_name = _numbers_only(table, by_name)
    links = [c for c in by_name.get("flow", ()) if words_of(c.heading)[0] == "connection"]
    if links and not any(
        re.search(r"\d", line.cell(c.place)) for c in links for line in table.lines
    ):
        # A connection by wire or by radio is no flow.
        others = [column for column in by_name["flow"] if column not in links]
        by_name = {**by_name, "label": [*by_name.get("label", ()), *links], "flow": others}
    by_name = {name: columns for name, columns in by_name.items() if columns}
    several = any(
        SEVERAL.fullmatch(line.cell(column.place))
        for column in by_name.get("flow", ())
        for line in table.lines
    )
    if several:
        by_name = {name: columns for name, columns in by_name.items() if name != "flow"}
    lines, notes = _with_values(table, by_name)
    numeric = _numeric(by_name)
    units = {
        column.name: unit
        for column in numeric
        if (unit := column.unit or _unit_in_cells(table, column))
    }
    _ask_for_units(table.source, by_name, units, given)
    kinds = kinds_of(lines, _text_places(table, by_name))
    reader = _Reader(table, by_name, units, lines)
    rows: list[Row] = []
    summaries: list[Summary] = []
    problems: list[Problem] = []
    for line in lines:
        kind = kinds.get(line.number, "")
        if kind == "left out":
            continue
        row, wrong = reader.row(line, pad=bool(kind))
        problems += [Problem((line.number,), row.label, "cell", text) for text in wrong]
        if kind:
            summaries.append(Summary(row, kind, len(rows)))
        else:
            rows.append(row)
    _ask_where_units_differ(table.source, by_name, units, rows)
    rows, remarks = as_ratios(
        rows, {column.name: column.heading for column in numeric if not column.unit}
    )
    values = sum(len(row.texts.keys() & row.numbers.keys()) for row in rows)
    if not problems and (not values or values * 2 < len(reader.unread)):
        words = f", but such as {reader.unread[0]}" if reader.unread else ""
        raise UserError(f"{table.source}: no row has a number in the columns that are known{words}")
    elided = any(cell in ELIDED for line in table.lines for cell in line.cells)
    left_out = [line.number for line in lines if kinds.get(line.number) == "left out"]
    if left_out:
        notes.append(
            f"statistics beside the means are no rows of results: {table.place} {_listed(left_out)}"
        )
    notes += _without_values(table, rows)
    return Reading(
        [_with_given(row, given) for row in rows], [] if elided or several else summaries, problems,
        [*notes, *remarks, *reader.notes()], reader.unread, by_name, units,
    )  # fmt: skip


def _without_values(table: Table, rows: Sequence[Row]) -> list[str]:
    """A remark on the rows in which a rate, an index or a time has no value, though others of its column have one."""
    lacking: dict[tuple[int, ...], list[str]] = {}
    for name in MEASURED_NAMES:
        lines = tuple(row.line for row in rows if name not in row.texts)
        if 0 < len(lines) < len(rows):
            lacking.setdefault(lines, []).append(name)
    return [
        f"no value of {', '.join(names)} in {len(lines)} of {len(rows)} rows: {table.place} {_listed(lines)}"
        for lines, names in lacking.items()
    ]


def _with_given(row: Row, given: Given) -> Row:
    """The row with the link's rate, where it has numbers and none of its own."""
    if given.rate_bps is None or not row.numbers or row.has("link"):
        return row
    link = Number(given.rate_bps, given.rate_bps, given.rate_bps)
    return replace(row, numbers={**row.numbers, "link": link})


def _numeric(by_name: Known) -> list[Column]:
    return [columns[0] for name, columns in by_name.items() if quantity_of(name) != "text"]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")


def _numbers_only(table: Table, by_name: Known) -> Known:
    """The columns without those that hold words: a link's name is a setting, not its rate."""
    remaining: Known = {}
    words: list[Column] = []
    for name, columns in by_name.items():
        if quantity_of(name) == "text" or any(
            _holds_number(table, columns[0], line) for line in table.lines
        ):
            remaining[name] = columns
        elif len(table.lines) > 1 and any(
            line.cell(columns[0].place).lower() not in NOTHING for line in table.lines
        ):
            words += [replace(column, name="setting", unit=None) for column in columns]
        else:
            remaining[name] = columns
    if words:
        remaining["setting"] = [*remaining.get("setting", ()), *words]
    if not _numeric(remaining):
        return by_name
    return remaining


def _holds_number(table: Table, column: Column, line: Line) -> bool:
    if NO_NUMBER.fullmatch(line.cell(column.place)):
        return True
    try:
        return bool(_read(line.cell(column.place), column, table.decimal_comma)[0])
    except ValueError:
        return False


def _with_values(table: Table, by_name: Known) -> tuple[list[Line], list[str]]:
    """The lines that are rows of results, and a remark on those that hardly have a value in them; without those that stand
    for lines left out."""
    numeric = _numeric(by_name)
    lines = [line for line in table.lines if not set(line.cells) - {""} <= ELIDED]
    filled = [sum(bool(line.cell(column.place)) for column in numeric) for line in lines]
    least = statistics.median(filled or [0]) * MOSTLY_EMPTY
    counted = list(zip(lines, filled, strict=True))
    rows = [line for line, count in counted if count > least or not least]
    left = [line.number for line, count in counted if least and count <= least]
    return rows, [f"left out, with hardly a value: {table.place} {_listed(left)}"] if left else []


def _unit_in_cells(table: Table, column: Column) -> Unit | None:
    """The unit that most cells of a column have; None where none has."""
    units_in_cells: Counter[Unit] = Counter()
    for line in table.lines:
        try:
            _, _, unit = _read(line.cell(column.place), column, table.decimal_comma)
        except ValueError:
            continue
        if unit and unit.quantity == quantity_of(column.name).split()[0]:
            units_in_cells[unit] += 1
    return units_in_cells.most_common(1)[0][0] if units_in_cells else None


def _text_places(table: Table, by_name: Known) -> list[int]:
    numeric = {column.place for column in _numeric(by_name)}
    return [place for place in range(len(table.headings)) if place not in numeric]


def _ask_for_units(source: str, by_name: Known, units: Mapping[str, Unit], given: Given) -> None:
    """UserError where a computation can be made but for a unit that neither heading nor cells name."""
    needed: set[str] = set()
    if given.rate_bps is not None:
        needed |= {"goodput", "total"}
    for model, counted in (
        ("model_by_losses", ({"loss_ratio"}, {"losses", "segments"})),
        ("model_by_halvings", ({"halving_ratio"}, {"halvings", "segments"})),
    ):
        has_mss = "mss" in by_name or given.mss_bytes is not None
        if model not in by_name and has_mss and any(names <= set(by_name) for names in counted):
            needed |= {"goodput", "rtt"} if {"goodput", "rtt"} <= set(by_name) else set()
    unclear = [by_name[name][0] for name in sorted(needed) if name in by_name and name not in units]
    if unclear:
        raise UserError(f"{source}: {_question(unclear)}")


def _question(unclear: Sequence[Column]) -> str:
    choices = ",".join(
        f"{column.name.split()[-1]}={column.heading}:{UNIT_EXAMPLES[quantity_of(column.name)]}"
        for column in unclear
    )
    headings = " and ".join(repr(column.heading) for column in unclear)
    return f"{headings}: in which unit? Say it, such as --columns '{choices}'"


def _ask_where_units_differ(
    source: str, by_name: Known, units: Mapping[str, Unit], rows: Sequence[Row]
) -> None:
    """UserError where most rows would be impossible in the unit that a column without one was read in."""
    for name, other, least, most in SAME_UNIT:
        unclear = [by_name[n][0] for n in (name, other) if n in by_name and n not in units]
        quotients = [
            row[name].value / row[other].value
            for row in rows
            if row.has(name, other) and row[name].value > 0 and row[other].value > 0
        ]
        if unclear and quotients and not least <= statistics.median(quotients) <= most:
            times = f"{statistics.median(quotients):.3g} times {by_name[other][0].heading!r}"
            raise UserError(
                f"{source}: {by_name[name][0].heading!r} is mostly {times}, so their units differ. {_question(unclear)}"
            )


def _read(
    text: str, column: Column, decimal_comma: bool
) -> tuple[Number | None, dict[str, Number], Unit | None]:
    """A cell's number, what else it holds, and its unit; ValueError says what the text is not."""
    quantity = quantity_of(column.name)
    if column.name in ("losses", "loss_ratio") and (match := PART.fullmatch(text)):
        part, whole = Number.of(match[1]), Number.of(match[2])
        counts = {"losses": _exact(part), "segments": _exact(whole)}
        if match[3]:
            counts["loss_ratio"] = Number.of(match[3].replace(",", ".")) * 0.01
        return counts.get(column.name), counts, Unit("", 1.0, quantity)
    others: dict[str, Number] = {}
    if quantity == "time" and text.count("/") in (2, 3):
        # As ping has it: least, mean, most, deviation.
        least, text, most = (part.strip() for part in text.split("/")[:3])
        ends = (("min", least), ("max", most.split(" ")[0])) if column.name == "rtt" else ()
        cells = [(end, read_cell(cell, decimal_comma)[0]) for end, cell in ends]
        others = {f"{end} rtt": number for end, number in cells if number}
    if column.name == "duration" and (match := BETWEEN.fullmatch(text)):
        start, end = (Number.of(match[n].replace(",", ".")) for n in (1, 2))
        if end.value > start.value:
            _, unit = read_cell(f"1 {match[3]}", decimal_comma)
            return (
                Number(end.value - start.value, end.low - start.high, end.high - start.low),
                {},
                unit,
            )
    try:
        number, unit = read_cell(text, decimal_comma)
    except ValueError:
        # A link's column may say more of it: `10 Mbit/s, 20 ms`, `1GbE`.
        match = LINK_RATE.search(text) if column.name == "link" else None
        if not match:
            raise
        number, unit = read_cell(
            f"{match[1]} {match[2]}bit/s" if match[2] else match[0], decimal_comma
        )
    if number and (
        column.name == "link"
        or (column.name == "duration" and number.value >= NOMINAL and number.value % 1 == 0)
    ):
        number = _exact(number)
    return number, others, unit


def _exact(number: Number) -> Number:
    return Number(number.value, number.value, number.value)


class _Reader:
    """Reads the rows of one table; what was off in cells that aren't numbers stays in it."""

    def __init__(
        self, table: Table, by_name: Known, units: Mapping[str, Unit], lines: Sequence[Line]
    ) -> None:
        self.table, self.known, self.units = table, by_name, units
        self.numeric = _numeric(by_name)
        self.unread: list[str] = []
        self._without_value: Counter[str] = Counter()
        # A label that several rows share is the run's; else each row has its own.
        labels = [self._texts_of(line, "label") for line in lines]
        self._shared = len(set(labels)) < len(labels)
        timed = "bytes" in by_name and "duration" not in by_name
        self._ends = start_and_end(table) if timed else []
        self._settings = [
            place for place in range(len(table.headings)) if self._is_setting(place, lines)
        ]
        self._often_nan = {
            column.name
            for column in self.numeric
            if (count := sum(bool(NO_NUMBER.fullmatch(line.cell(column.place))) for line in lines))
            > 1
            and count > OFTEN * len(lines)
        }

    def _is_setting(self, place: int, lines: Sequence[Line]) -> bool:
        """Return whether each of a column's values stands in several rows, so that it may be what was set."""
        if any(
            place == c.place
            for name in ("goodput", "flow", "bytes")
            for c in self.known.get(name, ())
        ):
            return False
        counts = Counter(line.cell(place) for line in lines)
        return len(counts) > 1 and min(counts.values()) > 1

    def _texts_of(self, line: Line, *names: str) -> str:
        cells = (line.cell(column.place) for name in names for column in self.known.get(name, ()))
        return ", ".join(filter(None, cells))

    def _texts(self, line: Line) -> dict[str, str]:
        """Return what a row is called, whose it is, and to which run it belongs: by what is known, and by all that was set."""
        settings = [c.place for c in self.known.get("duration", ()) if c.place in self._settings]
        named = self._texts_of(
            line,
            "run",
            "section",
            "setting",
            "offered",
            "base_rtt",
            "buffer",
            "flows",
            *(("label",) if self._shared else ()),
        )
        group = ", ".join(filter(None, (named, *(line.cell(place) for place in settings))))
        own = self._texts_of(line, "label", "algorithm", "run") or self._texts_of(line, "flow")
        return {
            "label": own, "who": self._texts_of(line, "algorithm", "label", "flow"),
            "flow": self._texts_of(line, "flow"), "group": group,
            "shared": self._texts_of(line, "label") if self._shared else "",
            "settings": "\t".join((group, *(line.cell(place) for place in self._settings))),
        }  # fmt: skip

    def row(self, line: Line, *, pad: bool) -> tuple[Row, list[str]]:
        """A line's row, and what is off in its cells. Of a line of another length no number counts: it
        isn't known which stands where."""
        texts = self._texts(line)
        count, cells = len(self.table.headings), list(line.cells)
        while len(cells) > count and not cells[-1]:
            cells.pop()
        if pad and len(cells) < count:
            cells += [""] * (count - len(cells))
        if len(cells) != count:
            return Row(line.number, texts["label"], {}, texts), [
                f"{len(cells)} cells for {count} headings"
            ]
        numbers: dict[str, Number] = {}
        factors: dict[str, float] = {}
        wrong: list[str] = []
        for column in self.numeric:
            text = cells[column.place]
            try:
                number, others, unit = _read(text, column, self.table.decimal_comma)
            except ValueError as error:
                if not NO_NUMBER.fullmatch(text):
                    self.unread.append(
                        f"{self.table.place} {line.number}: {column.heading}: {error}"
                    )
                elif column.name not in self._often_nan:
                    wrong.append(f"{column.heading}: {error}")
                continue
            if number is None:
                self._without_value[text] += bool(re.search(r"\d", text))
                continue
            texts[column.name] = text
            if scaled := self._in_unit(number, unit, column, line):
                numbers[column.name] = scaled
                factors[column.name] = scaled.value / number.value if number.value else 1.0
                texts |= {name: f"{n.value:g}" for name, n in others.items() if " " in name}
            if "loss_ratio" in others and "loss_ratio" not in numbers:
                texts["loss_ratio"] = f"{others['loss_ratio'].value * 100:g}%"
                factors["loss_ratio"] = 0.01
            for name, value in others.items():
                # Statistics of the cell are in its unit; counts have none.
                factor = factors.get(column.name, 1.0) if " " in name else 1.0
                numbers.setdefault(name, value * factor)
        if time := time_between(cells, self._ends, self.table.decimal_comma):
            numbers["duration"], texts["duration"] = time
        own = {
            c.name: line.numbers[c.place]
            for c in self.numeric
            if line.numbers and c.name in numbers
        }
        return Row(line.number, texts["label"], numbers, texts, own, factors), wrong

    def _in_unit(
        self, number: Number, unit: Unit | None, column: Column, line: Line
    ) -> Number | None:
        """The number in bit/s, seconds, bytes or ones; None, and a remark, where its unit can't be told."""
        quantity = quantity_of(column.name)
        if quantity == "count" and number.value % 1 == 0 and number.high - number.low <= 1:
            number = _exact(number)
        if unit and unit.quantity in (quantity, "count"):
            return number.times(unit)
        if unit and column.unit:
            self.unread.append(
                f"{self.table.place} {line.number}: {unit.name} is no unit of {column.heading}"
            )
            return None
        if column.unit:
            return number.times(column.unit)
        if column.name in self.units and number.value:
            text = f"{self.table.place} {line.number}: {column.heading} has no unit, but others of its column have one"
            if text not in self.unread:
                self.unread.append(text)
            return None
        statistic, _, of = column.name.rpartition(" ")
        names, power = ((of,), 1) if statistic else FOLLOWS.get(of, ((), 1))
        followed = next((self.units[name] for name in names if name in self.units), None)
        return number * (followed.factor**power if followed else 1.0)

    def notes(self) -> list[str]:
        """Remarks on cells that hold a number and no value."""
        texts = [text for text in self._without_value if self._without_value[text]]
        if not texts:
            return []
        shown = ", ".join(texts[:3]) + (", ..." if len(texts) > 3 else "")
        return [
            f"read as no value: {shown} (a bound, or what Linux holds where nothing was measured yet)"
        ]
