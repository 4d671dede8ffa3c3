"""A file's tables as people have them: CSV of any spreadsheet, encoding and decimal mark, columns between blanks, and those
that marks make. A file may have several, and they may lie on their side or have a line for each value."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.cells import (
    NOTHING,
    Number,
    Unit,
    find_unit,
    has_decimal_comma,
    in_older_encoding,
    number_in,
)
from measuretwice.audit.columns import STATISTIC, name_of, quantity_of
from measuretwice.audit.markup import (
    FRAMES,
    NUMBER,
    RULE,
    Line,
    is_row,
    pairs_in,
    records_in,
    tables_in,
)
from measuretwice.base.errors import UserError

# What a file that is no table begins with, and what to do about it.
NO_TABLE = (
    (b"PK\x03\x04", "no text but a workbook or a zip; save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "no text but an old workbook; save the sheet as CSV"),
    (b"\x1f\x8b", "no text but compressed; unpack it with gunzip"),
    (b"%PDF", "no text but a PDF; copy the table out of it into a CSV"),
    (b"<", "HTML or XML; copy the table out of it into a CSV"),
    (b"{", "JSON and no table; write its values as CSV. What iperf3 printed is read by ./lab check"),
    (b"[{", "JSON and no table; write its values as CSV"),
    (b"Connecting to host", "what iperf3 printed and no table; ./lab check reads it"),
    (b"-----------------------------------------------------------\n", "what iperf printed and no table; ./lab check reads it"),
)  # fmt: skip
# What tools print, and what else is no table: by lines that only these have, and what to do about it.
PRINTED = (
    (r"^\[ ?ID\] *Interval", "has what iperf printed and no table; ./lab check reads it"),
    (r"^PING \S+|^Pinging |^--- .* ping statistics", "has what ping printed and no table; ./lab check reads it"),
    (r"^(?:qdisc|class) \w+ \S+:", "has what tc printed and no table; ./lab check reads it"),
    (r"\bcwnd:\d+", "has what ss printed and no table; ./lab check reads it"),
    (r"^set (?:term(?:inal)?|output|[xy]label|title|style|key)\b", "is a gnuplot script and no table; write its data as CSV, with a line of headings"),
    (r"^#(?:import|show|set|table)\b", "is a Typst document in which no table is read; write its table as CSV, with a line of headings"),
)  # fmt: skip
DELIMITERS = ",;\t|"
# Lines that programs put around a table: its size, and of which type its columns are.
OF_PROGRAM = re.compile(
    r"\[?\(?\d+ (?:rows?|records?)(?: x \d+ columns| in set.*|s? selected.*)?\)?\]?|(?:<\w+> ?)+|# A tibble: .*"
)
MOST_COLUMNS = 500
# By so many lines a column's unit is told.
ENOUGH_LINES = 500
# Of so many lines and more, this share has as many cells as each other; else it is prose.
FEW_LINES, ALIKE = 6, 0.4
SECOND_LINE = re.compile(r"(?i)\W*(?:mean|std|min|max|median|avg)\W*")
# How iperf 2 prints rows for programs (-y C), which have no headings.
IPERF2 = re.compile(r"\d{14}(?:\.\d+)?(?:,[^,]*){3},\d+,-?\d+,\d+\.\d+-\d+\.\d+,\d+,-?\d+\s*")
IPERF2_HEADINGS = (
    "time,server,server_port,client,client_port,flow,interval,transferred_bytes,bits_per_second"
)


@dataclass(frozen=True)
class Table:
    """A table: headings and lines, which may have fewer cells or more than the headings. `place` is what a line's number
    counts: a line of the file, or a column of a table that lies on its side, which is `lying` as it stood."""

    source: str
    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    decimal_comma: bool
    title: str = ""
    place: str = "line"
    lying: Table | None = None

    def numbers(self, place: int) -> Iterator[tuple[Number, Unit | None]]:
        """Yield the numbers of a column, by its index, and their units, without the cells that hold none."""
        for line in self.lines:
            number, unit = number_in(line.cell(place), self.decimal_comma)
            if number:
                yield number, unit

    def values(self, place: int) -> list[float]:
        """Return the values of a column in its own units, without the cells that hold no number."""
        return [n.value * (unit.factor if unit else 1.0) for n, unit in self.numbers(place)]

    def unit_of(self, place: int) -> Unit | None:
        """Return the unit that most cells of a column have; None where few have one."""
        sample = replace(self, lines=self.lines[:ENOUGH_LINES])
        units = [unit for _, unit in sample.numbers(place) if unit and unit.quantity != "count"]
        quantities = Counter(unit.quantity for unit in units).most_common(1)
        if not quantities or quantities[0][1] * 2 <= len(sample.lines):
            return None
        return next(unit for unit in units if unit.quantity == quantities[0][0])


def read_tables(content: bytes, source: str) -> list[Table]:
    """Read a file's tables; UserError says why there is none."""
    if records := records_in(content):
        headings = tuple(dict.fromkeys(key for _, record in records for key in record))
        rows = tuple(Line(n, tuple(r.get(key, "") for key in headings)) for n, r in records)
        return [_upright(Table(source, headings, rows, decimal_comma=False))]
    text = _text(content, source).translate(FRAMES)
    blocks, marked = _blocks_of(text, source)
    tables = []
    for title, lines in blocks:
        (head, *rest) = lines[1:] if len(lines) > 1 and not any(lines[0].cells) else lines
        named = [cell for cell in head.cells if cell]
        if is_row(head, rest):
            raise UserError(
                f"{source}: line {head.number} has a row's values where headings are expected ({', '.join(named[:4])}); put a line of "
                "column names before it, such as name, goodput (Mbit/s)"
            )
        # Values of what was set may stand over columns, where marks say that they do.
        of_settings = (
            marked
            and named
            and not NUMBER.fullmatch(named[0])
            and all("%" in cell for cell in named[1:])
        )
        if 2 * sum(bool(NUMBER.fullmatch(cell)) for cell in named) > len(named) and not of_settings:
            if len(blocks) > 1:
                continue
            raise UserError(
                f"{source}: line {head.number} has numbers where headings are expected; put a line of "
                "column names before it"
            )
        if len(head.cells) > MOST_COLUMNS:
            raise UserError(f"{source}: {len(head.cells)} columns are no table of results")
        headings, rest = _of_title(title, *_whole_headings(head.cells, rest))
        rest = [line for line in rest if line.cells != head.cells]
        if len(rest) > 1 and all(
            len(line.cells) == len(headings) + 1 and line.cells[-1] for line in rest
        ):
            # As pandas and R print it: rows have names, and these no heading.
            headings = ("", *headings)
        if rest:
            tables.append(
                Table(
                    source,
                    headings,
                    tuple(rest),
                    has_decimal_comma(cell for line in rest for cell in line.cells),
                    title,
                )
            )
    if not tables:
        raise UserError(f"{source}: has no table, or headings and no rows")
    return [_upright(table) for table in _joined(tables)]


def _blocks_of(text: str, source: str) -> tuple[list[tuple[str, list[Line]]], bool]:
    """Return the tables of a text, each with its title, and whether marks make them; UserError says why there is none."""
    blocks = tables_in(text)
    marked = bool(blocks)
    if not blocks and (pairs := pairs_in(text)):
        blocks = [("", pairs)]
    if not blocks:
        for marks, what in PRINTED:
            if re.search(marks, text, re.MULTILINE):
                raise UserError(f"{source}: {what}")
        plain = [line for line in _lines(text, source) if not _of_program(line)]
        if plain and all(len(x.cells) == 1 and NUMBER.fullmatch(x.cells[0]) for x in plain):
            raise UserError(
                f"{source}: has {len(plain)} numbers and no heading, so it isn't said what they are, and in which unit; put a line of column "
                "names before them, such as goodput (Mbit/s)"
            )
        if _is_prose(plain):
            raise UserError(
                f"{source}: is text and no table: its lines have from one cell to many; save it as CSV, with one line of headings"
            )
        blocks = list(_blocks(plain))
    if not any(lines for _, lines in blocks):
        raise UserError(
            f"{source}: {'has remarks and no table' if text.strip() else 'is empty'}; expected a line of headings, then a line for "
            "each row"
        )
    return blocks, marked


def _text(content: bytes, source: str) -> str:
    for start, what in NO_TABLE:
        if content.startswith(b"{|") or (start == b"<" and content.lower().count(b"<tr") > 1):
            continue
        if content.lstrip(b"\xef\xbb\xbf \r\n").startswith(start):
            raise UserError(f"{source}: is {what}")
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
        text = in_older_encoding(content)
    if "\0" in text:
        raise UserError(f"{source}: is no text; save the table as CSV")
    if not IPERF2.fullmatch(text.split("\n", 1)[0]):
        return text
    # Its flow -1 is the sum of all.
    rows = re.sub(r"(?m)^((?:[^,\n]*,){5})-1,", r"\1SUM,", text)
    return f"{IPERF2_HEADINGS}\n{rows}"


# CSV, and columns between blanks


def _lines(text: str, source: str) -> list[Line]:
    """Cells of each line that has any; remarks, which begin with #, are left out.

    Where no other line has headings, the last remark before the table may.
    """
    plain = [line for line in text.splitlines() if line.strip() and line[:1] != "#"]
    # A title above the table has no delimiter, and a heading may have another.
    counts = {
        mark: Counter(n for line in plain[:20] if (n := line.count(mark))) for mark in DELIMITERS
    }
    first = next(iter(plain), "")
    delimiter = max(
        DELIMITERS, key=lambda mark: max(((k, n) for n, k in counts[mark].items()), default=(0, 0))
    )
    words = not counts[delimiter]
    split = _word_splitter(plain) if words else None
    rows: list[Line] = []
    remark: Line | None = None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        for cells in reader:
            if split:
                cells = split.split(" ".join(cells).strip())
            cells = [cell.strip() for cell in cells]
            if not any(cells) or (RULE.fullmatch(" ".join(cells)) and not set(cells) <= NOTHING):
                continue
            if cells[0].startswith("#") and not (
                cells[0] == "#" and not rows and len(cells) > 1 and not words
            ):
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


def _of_program(line: Line) -> bool:
    return bool(OF_PROGRAM.fullmatch(" ".join(filter(None, line.cells))))


def _is_prose(lines: Sequence[Line]) -> bool:
    """Return whether lines have no number of cells in common."""
    widths = Counter(len(line.cells) for line in lines if len(line.cells) > 1)
    most = max(widths.values(), default=0)
    return len(lines) >= FEW_LINES and most < ALIKE * len(lines)


def _word_splitter(lines: Sequence[str]) -> re.Pattern[str]:
    """Between columns are two blanks and more, where that gives all lines as many cells; else one."""
    wide = re.compile(r"\s{2,}")
    counts = Counter(
        len(wide.split(line.strip())) for line in lines if not RULE.fullmatch(line.strip())
    )
    [(cells, times)] = counts.most_common(1) or [(0, 0)]
    return wide if cells > 1 and times >= 0.8 * counts.total() else re.compile(r"\s+")


def _heads(remark: Line, first: str, delimiter: str, words: bool) -> bool:
    """Return whether a remark is the line of headings: as many names as the first line has numbers."""
    cells = first.split() if words else first.split(delimiter)
    numbers = sum(bool(NUMBER.fullmatch(cell.strip())) for cell in cells)
    return numbers * 2 > len(cells) and len(remark.cells) == len(cells)


def _blocks(lines: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Lines parted into tables: a line of one text is a title, a line of names in the middle has new headings."""
    width = max((sum(map(bool, line.cells)) for line in lines), default=0)
    title, block = "", list[Line]()
    for line in lines:
        cells = [cell for cell in line.cells if cell]
        if (
            len(cells) == 1
            and line.cells[0]
            and width > 1
            and not NUMBER.fullmatch(cells[0])
            and cells[0].lower() not in NOTHING
        ):
            if len(block) > 1:
                yield title, block
                block = block[:1]
            title = cells[0][:60]
        elif len(block) > 1 and line.cells != block[0].cells and _is_head(line, block[0]):
            yield title, block
            title, block = "", [line]
        elif len(block) == 1 and title and _is_head(line, block[0]):
            block = [line]
        else:
            block.append(line)
    if len(block) > 1 or width <= 1 or not title:
        yield title, block


def _is_head(line: Line, head: Line) -> bool:
    """Return whether a line below others has headings: names and no number, and some that are known."""
    cells = [cell for cell in line.cells if cell]
    if not any(head.cell(place) for place, cell in enumerate(line.cells) if cell):
        return False  # names of a table's rows, below its columns' names
    if len(cells) < 2 or any(
        re.match(r"[+-]?\d", cell) or cell.lower() in NOTHING for cell in cells
    ):
        return False
    count = sum(bool(name_of(cell)[0]) for cell in cells)
    return (
        count > 1
        and count * 2 >= len(cells)
        and sum(bool(name_of(cell)[0]) for cell in head.cells) > 0
    )


def _whole_headings(head: tuple[str, ...], rest: list[Line]) -> tuple[tuple[str, ...], list[Line]]:
    """Headings with the lines of them below: of units or statistics, of what one heading for several columns is parted by,
    or of names where there were none."""
    while len(rest) > 1 and len(rest[0].cells) == len(head):
        below = rest[0].cells
        filled = [(above, cell) for above, cell in zip(head, below, strict=True) if cell]
        if not filled or any(NUMBER.fullmatch(cell) for _, cell in filled):
            break
        telling = sum(bool(SECOND_LINE.fullmatch(cell) or _is_unit(cell)) for _, cell in filled)
        parted = not below[0] and len(set(filled)) == len(filled) > len(
            {above for above, _ in filled}
        )
        if telling * 2 <= len(filled) and not parted and any(above for above, _ in filled):
            break
        head = tuple(
            f"{above} ({cell})" if _is_unit(cell) else f"{above} {cell}".strip()
            for above, cell in zip(head, below, strict=True)
        )
        rest = rest[1:]
    return head, rest


def _of_title(
    title: str, headings: tuple[str, ...], rest: list[Line]
) -> tuple[tuple[str, ...], list[Line]]:
    """Headings that aren't known, with the rate that the title above the table says, where no other heading has one."""
    name, unit = name_of(title)
    if (
        name != "goodput"
        or unit is None
        or any(name_of(heading)[0] == name for heading in headings)
    ):
        return headings, rest
    whole = [
        heading and not name_of(heading)[0] and all(NUMBER.fullmatch(line.cell(n)) for line in rest)
        for n, heading in enumerate(headings)
    ]
    named = (f"{h}, {title}" if is_rate else h for h, is_rate in zip(headings, whole, strict=True))
    return tuple(named), rest


def _is_unit(text: str) -> bool:
    unit, around = find_unit(text)
    return unit is not None and not re.search(r"\w", around)


def _joined(tables: Sequence[Table]) -> Iterator[Table]:
    """Tables with the same headings as one, with what stands above each in a column of its own."""
    by_headings: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        by_headings.setdefault(table.headings, []).append(table)
    for headings, alike in by_headings.items():
        if len(alike) == 1:
            yield alike[0]
            continue
        lines = [
            replace(line, cells=(*line.cells, table.title or f"table {number}"))
            for number, table in enumerate(alike, 1)
            for line in table.lines
        ]
        comma = any(table.decimal_comma for table in alike)
        yield Table(alike[0].source, (*headings, "section"), tuple(lines), comma)


# Tables that lie on their side, or have a line for each value


def _upright(table: Table) -> Table:
    """A table with a column for each thing that was measured, also where they stand in lines."""
    numeric = [_measured(heading) for heading in table.headings]
    width = len(table.headings)
    if (
        width < 2
        or sum(map(bool, numeric)) > 1
        or any(len(line.cells) != width for line in table.lines)
    ):
        return table
    full = [len(list(table.numbers(n))) > 0.9 * len(table.lines) for n in range(width)]
    for index in range(width - 1):
        cells = [line.cells[index] for line in table.lines]
        names = [name for cell in cells if (name := _measured(cell))]
        least = 2 if index or any(numeric) or width == 2 else 1
        if numeric[index] or len(set(names)) < least or len(names) * 3 < len(cells):
            continue
        if len(set(cells)) == len(cells) and index == 0 and not any(numeric):
            return _turned(table)
        held = [n for n in range(width) if n != index and full[n]]
        of_settings = len(held) > 1 and not any(
            STATISTIC.search(table.headings[n].lower()) for n in held
        )
        if of_settings or (held and len(set(cells)) < len(cells)):
            named = [n for n in held if re.search(r"(?i)val|result|mean", table.headings[n])]
            held = named[:1] or held
            keys = [n for n in range(width) if n not in (index, *held) and not numeric[n]]
            return _wide(table, index, held, keys)
    return table


def _measured(heading: str) -> str:
    """Return what a heading is called here, where it is something measured; else nothing."""
    name, _ = name_of(heading)
    return name if name and quantity_of(name) != "text" else ""


# Columns of a table that lies on its side which hold no run.
NO_RUN = re.compile(
    r"(?i)^(?:delta|diff\w*|change|gain|improvement|speed ?up|ratio|notes?|remarks?|comments?|status|target|pass\w*|\u0394|vs\b).*"
)


def _units_place(table: Table) -> int:
    """The column that has each line's unit; one behind the last where there is none."""
    names = [heading.lower() in ("unit", "units") for heading in table.headings]
    return names.index(True) if any(names) else len(names)


def _with_its_unit(line: Line, place: int, units: int) -> str:
    return f"{line.cells[place]} ({line.cell(units)})" if line.cell(units) else line.cells[place]


def _turned(table: Table) -> Table:
    """Return a table with a line for each column but the first, which has the column's heading for a name."""
    units = _units_place(table)
    lines = tuple(
        Line(place + 1, (heading, *(line.cells[place] for line in table.lines)))
        for place, heading in enumerate(table.headings)
        if place and place != units and not NO_RUN.match(heading)
    )
    headings = ("name", *(_with_its_unit(line, 0, units) for line in table.lines))
    return (
        replace(table, headings=headings, lines=lines, place="column", lying=table)
        if lines
        else table
    )


def _wide(table: Table, metric: int, held: Sequence[int], keys: Sequence[int]) -> Table:
    """Of lines with a value each, or one for each setting, one for all values of a run: those with the same other cells,
    in their order. An empty cell is as the one above."""
    units = _units_place(table)
    keys = [key for key in keys if key != units]
    names = {line: _with_its_unit(line, metric, units) for line in table.lines}
    rows: dict[tuple[tuple[str, ...], int], dict[str, tuple[int, str]]] = {}
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    above = [""] * len(keys)
    for line, name in names.items():
        above = [line.cells[place] or cell for place, cell in zip(keys, above, strict=True)]
        for value in held:
            key = (*above, *([table.headings[value]] if len(held) > 1 else ()))
            rows.setdefault((key, seen[key, name]), {})[name] = line.number, line.cells[value]
            seen[key, name] += 1
    metrics = list(dict.fromkeys(names.values()))
    lines = []
    for (key, _), values in rows.items():
        first, _ = next(iter(values.values()))
        cells = [*((first, cell) for cell in key), *(values.get(m, (first, "")) for m in metrics)]
        lines.append(Line(first, tuple(c for _, c in cells), tuple(n for n, _ in cells)))
    settings = ["setting"] if len(held) > 1 else []
    headings = (*(table.headings[key] for key in keys), *settings, *metrics)
    return replace(table, headings=headings, lines=tuple(lines))
