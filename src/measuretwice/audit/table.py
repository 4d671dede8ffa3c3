"""A table as people have it, CSV of any spreadsheet, encoding and decimal mark: read as lines of cells, and from
these as rows of numbers in bit/s, seconds and ones."""

from __future__ import annotations

import csv
import io
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.columns import NAMES, Column, Number, Unit, read_cell
from measuretwice.audit.rules import Row
from measuretwice.base.errors import UserError

# Lines of cells

# What a file that is no text begins with, and what to do about it.
NO_TEXT = (
    (b"PK\x03\x04", "a workbook or a zip; save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old workbook; save the sheet as CSV"),
    (b"\x1f\x8b", "compressed; unpack it with gunzip"),
    (b"%PDF", "a PDF; copy the table out of it into a CSV"),
)
DELIMITERS = ",;\t|"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*%?")
NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?\s*%?")
MOST_COLUMNS = 500


@dataclass(frozen=True)
class Line:
    """A line of the table: its number in the file, from 1, and its cells."""

    number: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A file's table: headings and lines, which may have fewer cells or more than the headings."""

    source: str
    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    decimal_comma: bool


def read_table(content: bytes, source: str) -> Table:
    """Read a file's table; UserError says why it is none."""
    lines = _lines(_text(content, source), source)
    if not lines:
        raise UserError(
            f"{source}: is empty; expected a line of headings, then a line for each row"
        )
    (head, *rest) = lines
    named = [cell for cell in head.cells if cell]
    if sum(bool(NUMBER.fullmatch(cell)) for cell in named) * 2 > len(named):
        raise UserError(
            f"{source}: line {head.number} has numbers where headings are expected; put a line of "
            "column names before it"
        )
    if len(head.cells) > MOST_COLUMNS:
        raise UserError(f"{source}: {len(head.cells)} columns are no table of results")
    if not rest:
        raise UserError(f"{source}: has headings and no rows")
    return Table(source, head.cells, tuple(rest), _has_decimal_comma(rest))


def _text(content: bytes, source: str) -> str:
    for start, what in NO_TEXT:
        if content.startswith(start):
            raise UserError(f"{source}: is no text but {what}")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in content[:4096]:
        # UTF-16 without a mark: every other byte of digits is zero.
        encoding = "utf-16-be" if content[0] == 0 else "utf-16-le"
    else:
        encoding = "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8-sig":
            raise UserError(f"{source}: is no text; save the table as CSV") from None
        # Every byte stands for something: what spreadsheets of Western Europe used to write.
        text = content.decode("latin-1")
    if "\0" in text:
        raise UserError(f"{source}: is no text; save the table as CSV")
    return text


def _lines(text: str, source: str) -> list[Line]:
    """Cells of each line that has any; remarks, which begin with #, are left out.

    Where no other line has headings, the last remark before the table may.
    """
    first = next((line for line in text.splitlines() if line.strip() and line[:1] != "#"), "")
    delimiter = max(DELIMITERS, key=first.count)
    words = not first.count(delimiter)
    rows: list[Line] = []
    remark: Line | None = None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in reader:
            if words:
                cells = " ".join(cells).split()
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if cells[0].startswith("#"):
                bare = [cells[0].lstrip("# "), *cells[1:]]
                remark = Line(reader.line_num, tuple(cell for cell in bare if cell))
                if rows or not _heads(remark, first, delimiter, words):
                    remark = None
                continue
            if remark and not rows:
                rows.append(remark)
            rows.append(Line(reader.line_num, tuple(cells)))
    except csv.Error as error:
        raise UserError(f"{source}, line {reader.line_num}: no table ({error})") from None
    return rows


def _heads(remark: Line, first: str, delimiter: str, words: bool) -> bool:
    """Whether a remark is the line of headings: as many names as the first line has numbers."""
    cells = first.split() if words else first.split(delimiter)
    numbers = sum(bool(NUMBER.fullmatch(cell.strip())) for cell in cells)
    return numbers * 2 > len(cells) and len(remark.cells) == len(cells)


def _has_decimal_comma(lines: list[Line]) -> bool:
    """Whether 95,75 stands for 95.75: where some cells are written so and none with a point."""
    commas = points = 0
    for line in lines:
        for cell in line.cells:
            commas += bool(DECIMAL_COMMA.fullmatch(cell))
            points += bool(re.fullmatch(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", cell))
    return commas > 0 and points * 10 < commas


# Rows of numbers

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


def _cell(line: Line, index: int) -> str:
    return line.cells[index] if index < len(line.cells) else ""


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
        choices = ",".join(
            f"{column.name}={column.heading}:{UNIT_EXAMPLES[NAMES[column.name].quantity]}"
            for column in unclear
        )
        headings = " and ".join(repr(column.heading) for column in unclear)
        raise UserError(
            f"{source}: {headings}: in which unit? Say it, such as --columns '{choices}'"
        )


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
