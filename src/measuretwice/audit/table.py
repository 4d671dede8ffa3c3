"""A table as people have it: CSV of any spreadsheet, encoding and decimal mark, made lines of cells."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

from measuretwice.base.errors import UserError

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
