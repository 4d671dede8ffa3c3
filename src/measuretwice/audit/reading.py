"""From a table's cells to rows of numbers in bit/s, seconds and ones."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.columns import NAMES, Column
from measuretwice.audit.numbers import Number, Unit, read_cell
from measuretwice.audit.rows import Row
from measuretwice.audit.table import Line, Table
from measuretwice.base.errors import UserError

Columns = Mapping[str, Sequence[Column]]
# A unit that follows another column's, where it names none: which column's, and to which power.
FOLLOWS = {
    "squares": ("total", 2),
    "link": ("total", 1),
    "model_by_losses": ("goodput", 1),
    "model_by_halvings": ("goodput", 1),
}
UNIT_EXAMPLES = {"rate": "Mbit/s", "time": "ms"}
PERCENT = Unit("%", 0.01, "ratio")
# A line with less than this share of the values that lines usually have is no row of results.
MOSTLY_EMPTY = 0.25
WHOLE = re.compile(r"\d+(?:\.0*)?")


@dataclass(frozen=True)
class Reading:
    """A table's rows; what was off in their cells, as lines, label, kind and text; remarks; and the
    columns and units that all was read by."""

    rows: list[Row]
    problems: list[tuple[tuple[int, ...], str, str, str]]
    notes: list[str]
    columns: Columns
    units: Mapping[str, Unit]
    mss_bytes: float | None

    def unit_of(self, name: str) -> Unit | None:
        """The unit that a column was read in; None where the table doesn't say."""
        return self.units.get(name)


def read_rows(
    table: Table, known: Columns, rate_bps: float | None, mss_bytes: float | None
) -> Reading:
    """Read the columns that are known. UserError where a unit that is needed isn't known."""
    lines, notes = _with_values(table, known)
    known = _as_their_values_say(table, known, lines, notes)
    numeric = _numeric(known)
    units = {column.name: column.unit for column in numeric if column.unit}
    _ask_for_units(table.source, known, rate_bps, mss_bytes)
    factors = {column.name: _factor(column, units) for column in numeric}
    # A label that several rows share is the run's; else each row has its own.
    labels = [_cells(line, known.get("label", ())) for line in lines]
    shared = len(set(labels)) < len(labels)
    rows: list[Row] = []
    problems: list[tuple[tuple[int, ...], str, str, str]] = []
    for line in lines:
        row, wrong = _row(line, table, numeric, factors, _texts(line, known, shared))
        if rate_bps is not None and row.numbers and not row.has("link"):
            link = Number(rate_bps, rate_bps, rate_bps)
            row = replace(row, numbers={**row.numbers, "link": link})
        rows.append(row)
        problems += [((line.number,), row.label, "cell", text) for text in wrong]
    return Reading(rows, problems, notes, known, units, mss_bytes)


def _numeric(known: Columns) -> list[Column]:
    return [columns[0] for name, columns in known.items() if NAMES[name].quantity != "text"]


def _cell(line: Line, place: int) -> str:
    return line.cells[place] if place < len(line.cells) else ""


def _cells(line: Line, columns: Sequence[Column]) -> str:
    return ", ".join(filter(None, (_cell(line, column.place) for column in columns)))


def _with_values(table: Table, known: Columns) -> tuple[list[Line], list[str]]:
    """The lines that are rows of results, and a remark on those that hardly have a value in them."""
    numeric = _numeric(known)
    filled = [sum(bool(_cell(line, column.place)) for column in numeric) for line in table.lines]
    least = statistics.median(filled) * MOSTLY_EMPTY
    rows = [
        line for line, count in zip(table.lines, filled, strict=True) if count > least or not least
    ]
    left = (
        [line.number for line in table.lines if line not in rows] if len(rows) < len(filled) else []
    )
    named = ", ".join(map(str, left[:10])) + (", ..." if len(left) > 10 else "")
    return rows, [f"left out, with hardly a value: line {named}"] if left else []


def _as_their_values_say(
    table: Table, known: Columns, lines: Sequence[Line], notes: list[str]
) -> Columns:
    """Columns whose heading fits a count as well as a ratio, or per cent, by their values."""

    def values(column: Column) -> list[float]:
        found = []
        for line in lines:
            try:
                number, _ = read_cell(_cell(line, column.place), table.decimal_comma)
            except ValueError:
                continue
            if number:
                found.append(number.value)
        return found

    changed = {name: list(columns) for name, columns in known.items()}
    if "loss_ratio" in changed and "losses" not in changed:
        column = changed["loss_ratio"][0]
        counts = values(column)
        if column.unit is None and counts and max(counts) > 1 and all(n % 1 == 0 for n in counts):
            changed["losses"] = [replace(column, name="losses")]
            del changed["loss_ratio"]
    if "share" in changed and changed["share"][0].unit is None:
        column = changed["share"][0]
        shares = values(column)
        if shares and min(shares) > 1 and max(shares) <= 100:
            changed["share"] = [replace(column, unit=PERCENT)]
            notes.append(f"{column.heading} was read as per cent: all of it is more than 1")
    return changed


def _factor(column: Column, units: Mapping[str, Unit]) -> float:
    """What a column's numbers are multiplied with; 1 where it has no unit."""
    name, power = FOLLOWS.get(column.name, ("", 1))
    unit = column.unit or units.get(name)
    return unit.factor**power if unit else 1.0


def _ask_for_units(
    source: str, known: Columns, rate_bps: float | None, mss_bytes: float | None
) -> None:
    """UserError where a computation can be made but for a unit that no heading names."""
    needed: set[str] = set()
    if rate_bps is not None:
        needed |= {"goodput", "total"}
    for model, counted in (
        ("model_by_losses", ({"loss_ratio"}, {"losses", "segments"})),
        ("model_by_halvings", ({"halving_ratio"}, {"halvings", "segments"})),
    ):
        has_mss = "mss" in known or mss_bytes is not None
        if model not in known and has_mss and any(names <= set(known) for names in counted):
            needed |= {"goodput", "rtt"} if {"goodput", "rtt"} <= set(known) else set()
    unclear = [
        known[name][0] for name in sorted(needed) if name in known and not known[name][0].unit
    ]
    if unclear:
        said = ",".join(
            f"{one.name}={one.heading}:{UNIT_EXAMPLES[NAMES[one.name].quantity]}" for one in unclear
        )
        headings = " and ".join(repr(one.heading) for one in unclear)
        raise UserError(f"{source}: {headings}: in which unit? Say it, such as --columns '{said}'")


def _texts(line: Line, known: Columns, shared_label: bool) -> dict[str, str]:
    """What a row is called, whose it is, and to which run it belongs."""

    def of(*names: str) -> str:
        return ", ".join(filter(None, (_cells(line, known.get(name, ())) for name in names)))

    group = of("run", "setting", "flows", *(("label",) if shared_label else ()))
    own = of("label", "algorithm", "run") or of("flow")
    return {"label": own, "who": of("algorithm", "label", "flow"), "group": group}


def _row(
    line: Line,
    table: Table,
    numeric: Sequence[Column],
    factors: Mapping[str, float],
    texts: dict[str, str],
) -> tuple[Row, list[str]]:
    """A line's row, and what is off in its cells. Of a line of another length no number counts: it
    isn't known which stands where."""
    count, cells = len(table.headings), list(line.cells)
    while len(cells) > count and not cells[-1]:
        cells.pop()
    if len(cells) != count:
        return Row(line.number, texts["label"], {}, texts), [
            f"{len(cells)} cells for {count} headings"
        ]
    numbers, wrong = {}, []
    for column in numeric:
        text = cells[column.place]
        try:
            number, unit = read_cell(text, table.decimal_comma)
        except ValueError as error:
            wrong.append(f"{column.heading}: {error}")
            continue
        if number is None:
            continue
        texts[column.name] = text
        if NAMES[column.name].quantity == "count" and WHOLE.fullmatch(text):
            number = Number(number.value, number.value, number.value)
        fits = unit is not None and unit.quantity == NAMES[column.name].quantity
        numbers[column.name] = number * (unit.factor if unit and fits else factors[column.name])
    return Row(line.number, texts["label"], numbers, texts), wrong
