"""Tables in the marks of a text: Markdown and drawn frames, LaTeX, HTML, AsciiDoc, wikis, Typst; columns below a rule; and
what stands as names with a value each."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from measuretwice.audit.cells import number_in
from measuretwice.audit.columns import FLOW_WORD, name_of

# Frames of tables that are drawn, as the plain marks that stand for them.
FRAMES = str.maketrans(
    "\u2502\u2503\u2551\u2500\u2501\u2550\u253c\u254b\u256a\u251c\u2524", "|||---+++||"
)
RULE = re.compile(r"[\s|:+=\-\u2500-\u257f]*(?:--|==|:-|-:|\|\s*-)[\s|:+=\-\u2500-\u257f]*")
# A rule below columns that blanks part, as PowerShell, tabulate and reStructuredText draw it.
COLUMNS_RULE = re.compile(r"\s*(?:-{2,}(?:\s+-{2,})+|={2,}(?:\s+={2,})+)\s*")
# A name and its value; several of a line, as logs have them.
PAIR = re.compile(
    r"\s*(?:[-*\u2022]\s+)?([A-Za-z\d][\w ()/%.,#-]{0,60}?)\s*(?::\s+|=\s*|\.{3,}\s*|\t+)(\S.*?)\s*"
)
PAIRS = re.compile(
    r"([A-Za-z_][\w.%/]*)=\"?([^\s,;\"]+(?: ?[KMG]?(?:bits?|bps|Bytes)(?:/s(?:ec)?)?\b)?)"
)
NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?\s*%?")
RUN_TITLE = re.compile(
    r"(?i)(?:experiment|run|test|trial|scenario|case|flow|simulation|iteration|config\w*)\s*#?\d+"
)
# So many values, and this share of the lines, make a text one of names and values.
FEW_PAIRS, MOSTLY_PAIRS = 3, 0.6


@dataclass(frozen=True)
class Line:
    """A line of the table: its number in the file, from 1, and its cells; and each cell's own number, where they stood in
    several lines."""

    number: int
    cells: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    def cell(self, place: int) -> str:
        return self.cells[place] if place < len(self.cells) else ""


def is_row(head: Line, rest: Sequence[Line]) -> bool:
    """Return whether a table's first line is a row like those below: numbers over numbers, and names that differ from those
    below them in digits alone."""
    pairs = [(cell, [line.cell(n) for line in rest]) for n, cell in enumerate(head.cells) if cell]
    numbers = [
        cell
        for cell, below in pairs
        if NUMBER.fullmatch(cell) and all(map(NUMBER.fullmatch, below))
    ]
    alike = [
        cell
        for cell, below in pairs
        if re.search(r"\d", cell)
        and {re.sub(r"\d+", "#", text) for text in below} == {re.sub(r"\d+", "#", cell)}
    ]
    return bool(numbers) and len(pairs) > 1 and len({*numbers, *alike}) == len(pairs) > len(numbers)


# Markdown, LaTeX


def _piped(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Tables between bars that have a rule below their headings, each with the heading above it."""
    title, block, ruled = "", list[Line](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = line.strip()
        if bare.startswith("||") and not block:
            # As in Jira, where bars are double around headings.
            bare, ruled = bare.replace("||", "|"), True
        if "|" in bare and not RULE.fullmatch(bare):
            inner = bare.removeprefix("|")
            inner = inner if inner.endswith("\\|") else inner.removesuffix("|")
            cells = re.split(r"(?<!\\)\|", inner)
            block.append(Line(number, tuple(map(_unmarked, cells))))
        elif RULE.fullmatch(bare) and (block or bare[:1] in "+|"):
            ruled = ruled or len(block) <= 1
        else:
            if block and ruled:
                yield title, block
                title = ""
            block, ruled = [], False
            if bare and not bare.startswith("```") and not RULE.fullmatch(bare):
                title = _unmarked(bare.lstrip("# "))[:60]


def _unmarked(cell: str) -> str:
    """A cell without Markdown's marks and HTML's."""
    cell = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[a-zA-Z/][^>]*>", " ", cell))
    cell = re.sub(r"\*\*|__|`|~~|[\u2600-\u27bf\U0001f300-\U0001faff\ufe0f]", "", cell)
    cell = re.sub(r"\\([\\|_*%&#$])", r"\1", cell.replace("&nbsp;", " "))
    return re.sub(r"^\*(.*)\*$", r"\1", " ".join(cell.split()))


def _repeated_cell(match: re.Match[str]) -> str:
    return " & ".join([match[2]] * int(match[1]))


def _of_latex(text: str) -> Iterator[tuple[str, list[Line]]]:
    """The rows of each tabular; all lines that have cells are rows."""
    rows = list[Line]()
    for number, line in enumerate([*text.splitlines(), r"\end{tabular}"], 1):
        if re.search(r"\\(?:begin|end)\{(?:tabular|table|longtable|array)", line):
            if rows:
                yield "", rows
            rows = []
            continue
        line = re.sub(r"\\multicolumn\{(\d)\}\{[^{}]*\}\{([^{}]*)\}", _repeated_cell, line)
        row = re.sub(
            r"\\(?:textbf|textit|emph|math[a-z]+|underline|num|multirow\{\d\}\{[^{}]*\})\{([^{}]*)\}",
            r"\1",
            line.replace("\\,", ""),
        )
        row = re.sub(
            r"\\\\.*|\\[a-z]*(?:rule|line)\b(?:\([^)]*\))?(?:\{[^}]*\})?", "", row
        ).replace("$", "")
        row = row.replace("\\pm", "\u00b1").replace("|", " ").replace("\\&", " and ")
        if "&" in row:
            cells = re.sub(r"\\([%_#])", r"\1", row).split("&")
            rows.append(Line(number, tuple(" ".join(cell.split()) for cell in cells)))


# Other marks


def tables_in(text: str) -> list[tuple[str, list[Line]]]:
    """Return the tables that a text's marks make: the title of each, and its lines of cells, headings first."""
    for marks, reader in READERS:
        if re.search(marks, text, re.MULTILINE):
            return [block for block in reader(text) if len(block[1]) > 1]
    if len(re.findall(r"&.*\\\\", text)) > 1:
        return list(_of_latex(text))
    return [*_piped(text), *_of_html(text)] or list(_below_rules(text))


def _rows(cells: Sequence[tuple[int, str]], width: int) -> list[Line]:
    """Cells with their lines' numbers, in rows of so many."""
    rows = [cells[n : n + width] for n in range(0, len(cells), width)] if width else []
    return [_line(row) for row in rows if len(row) == width]


def _line(row: Sequence[tuple[int, str]]) -> Line:
    return Line(row[0][0], tuple(cell for _, cell in row), tuple(number for number, _ in row))


def _of_asciidoc(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Tables between |===, in which a cell may have a line of its own."""
    title, width, cells = "", 0, list[tuple[int, str]]()
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("|==="):
            if inside:
                yield title, _rows(cells, width)
                title, width, cells = "", 0, []
            inside = not inside
        elif inside and bare:
            first, *new = re.split(r"(?<!\\)\|", bare)
            if cells and first.strip():
                cells[-1] = (cells[-1][0], f"{cells[-1][1]} {_unmarked(first)}".strip())
            # What stands before a bar may say how wide the next cell is.
            cells += [
                (number, _unmarked(re.sub(r"\s[\d.]*[+*^<>][.<>^]*[a-z]?$", "", c))) for c in new
            ]
            width = width or len(new)
        elif match := re.match(r"\[.*\bcols=\"?([^\"\]]+)", bare):
            times = re.match(r"(\d+)\*", match[1])
            width = int(times[1]) if times else match[1].count(",") + 1
        elif not inside and bare[:1] == "." and bare[1:2].isalnum():
            title = bare[1:61]


def _of_wiki(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Tables of MediaWiki, between {| and |}."""
    title, rows, inside = "", list[list[tuple[int, str]]](), False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("{|"):
            inside, rows = True, [[]]
        elif bare.startswith("|}"):
            if inside:
                yield title, [_line(row) for row in rows if row]
            inside, title = False, ""
        elif inside and bare.startswith("|+"):
            title = _unmarked(bare[2:])[:60]
        elif inside and bare.startswith("|-"):
            rows.append([])
        elif inside and bare[:1] in ("|", "!"):
            cells = re.split(r"\|\||!!" if bare[0] == "!" else r"\|\|", bare[1:])
            # Attributes may stand before a cell.
            plain = [re.sub(r"^[^|\[]*=[^|\[]*\|", "", cell).replace("'" * 3, "") for cell in cells]
            rows[-1] += [(number, _unmarked(cell)) for cell in plain]
        elif not inside and bare.startswith("="):
            title = bare.strip("= ")[:60]


def _of_typst(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Tables that a Typst document makes by table(columns: ..., [cell], ...)."""
    for match in re.finditer(r"\btable\(", text):
        depth, square, cells, head, start = 1, 0, list[tuple[int, str]](), "", match.end()
        for place in range(match.end(), len(text)):
            mark = text[place]
            if mark == "[":
                square += 1
                start = place + 1 if square == 1 else start
            elif mark == "]":
                square -= 1
                if square == 0:
                    number = text.count("\n", 0, start) + 1
                    cells.append((number, _unmarked(text[start:place].strip().strip("*_"))))
            elif square == 0:
                head += "" if cells else mark
                depth += {"(": 1, ")": -1}.get(mark, 0)
                if depth == 0:
                    break
        columns = re.search(
            r"columns:\s*(?:(\d+)|\(([^()]*(?:\([^()]*\)[^()]*)*)\)(?:\s*\*\s*(\d+))?)", head
        )
        if columns:
            listed = len([c for c in (columns[2] or "").split(",") if c.strip()])
            yield "", _rows(cells, int(columns[1] or listed * int(columns[3] or 1)))


def _of_html(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Tables of HTML, also within Markdown; none in which a cell stands in several rows."""
    for table in re.finditer(r"(?is)<table\b.*?</table>", text):
        if re.search(r"(?i)rowspan\s*=\s*[\"']?(?:[2-9]|1\d)", table[0]):
            continue
        lines = []
        for row in re.finditer(r"(?is)<tr\b.*?(?=</tr>|<tr\b|</table>)", table[0]):
            cells = list[tuple[int, str]]()
            for cell in re.finditer(r"(?is)<t[hd]\b([^>]*)>(.*?)(?=</t[hd]>|<t[hd]\b|$)", row[0]):
                number = text.count("\n", 0, table.start() + row.start() + cell.start()) + 1
                wide = re.search(r"colspan\s*=\s*[\"']?(\d)", cell[1])
                cells += [(number, _unmarked(html.unescape(cell[2])))] * int(wide[1] if wide else 1)
            lines += [_line(cells)] if cells else []
        caption = re.search(r"(?is)<caption[^>]*>(.*?)</caption>", table[0])
        yield _unmarked(html.unescape(caption[1]))[:60] if caption else "", lines


def _of_mtr(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Yield what mtr reports: a line for each hop."""
    rows = list[Line]()
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(r"Loss%\s+(?:Snt|Drop)\b.*", line):
            yield "", rows
            rows = [Line(number, ("Host", *match[0].split()))]
        elif rows and (match := re.match(r"\s*\d+\.\s*(?:\|--)?\s*(\S.*?)\s+(\d[\d.]*%.*)", line)):
            rows.append(Line(number, (match[1], *match[2].split())))
    yield "", rows


READERS = (
    (r"Loss%\s+(?:Snt|Drop)\b", _of_mtr),
    (r"^\|===", _of_asciidoc),
    (r"^\s*\{\|", _of_wiki),
    (r"\btable\(\s*(?:.*\n)?\s*columns:", _of_typst),
)


def _below_rules(text: str) -> Iterator[tuple[str, list[Line]]]:
    """Tables whose columns a rule of hyphens marks: cut where the rule and all lines are blank."""
    lines = [line.expandtabs() for line in text.splitlines()]
    for place, rule in enumerate(lines):
        if not COLUMNS_RULE.fullmatch(rule) or place == 0 or not lines[place - 1].strip():
            continue
        below = lines[place + 1 :]
        ends = [n for n, x in enumerate(below) if not x.strip() or COLUMNS_RULE.fullmatch(x)]
        body = [(place, lines[place - 1])]
        body += [
            (place + 2 + n, line) for n, line in enumerate(below[: min(ends, default=len(below))])
        ]
        spans = [match.span() for match in re.finditer(r"\S+", rule)]
        cuts = [0]
        for (_, end), (start, _) in pairwise(spans):
            blank = (n for n in range(end, start) if not any(x[n : n + 1].strip() for _, x in body))
            cuts += [n] if (n := max(blank, default=0)) else []
        ranges = list(pairwise([*cuts, None]))
        cells = [(n, [line[a:b].strip() for a, b in ranges]) for n, line in body]
        if len(cuts) < len(spans):
            # Words wider than the rule: by blanks, if only the last column has any in its cells.
            cells = [(n, line.split(maxsplit=len(spans) - 1)) for n, line in body]
        if all(len(row) == len(spans) for _, row in cells):
            yield "", [Line(n, tuple(row)) for n, row in cells]


# Names and values


def pairs_in(text: str) -> list[Line]:
    """Return the records of a text that has a name and a value in a line, or several, as headings and rows; none where it
    hasn't. A name that comes again, or a line of another kind, begins another record."""
    records: list[tuple[str, dict[str, tuple[int, str]]]] = []
    title, other, values, fresh = "", 0, 0, True
    for number, line in enumerate(text.splitlines(), 1):
        several = PAIRS.findall(line)
        match = PAIR.fullmatch(line)
        pairs = several if len(several) > 1 else [(match[1], match[2])] if match else []
        pairs = [
            (k, v) for k, v in pairs if re.match(r"\W?[\w.]", v) and k.count("(") == k.count(")")
        ]
        pairs = [] if pairs and RUN_TITLE.fullmatch(pairs[0][0]) and pairs is not several else pairs
        if not pairs:
            bare = (
                ""
                if line[:1].isspace() and fresh is False and line.strip()[0:1].isdigit()
                else line.strip(" \t-*=#:")
            )
            other += bool(bare) and not fresh
            title, fresh = (bare[:60], True) if bare else (title, fresh)
            continue
        if fresh or any(key in records[-1][1] for key, _ in pairs):
            records.append((title, {}))
            title = title if len(several) <= 1 else ""
        fresh = False
        for key, value in pairs:
            records[-1][1][key] = (number, value)
            values += bool(number_in(value.removesuffix("."), decimal_comma=False)[0])
    keys = list(dict.fromkeys(key for _, record in records for key in record))
    lines = len([line for line in text.splitlines() if line.strip()])
    names = {name for key in keys if (name := name_of(key)[0])}
    if values < FEW_PAIRS or len(names) < 2 or other > (1 - MOSTLY_PAIRS) * lines:
        return []
    titles = [title for title, _ in records]
    named = len(set(titles)) > 1
    flows = all(FLOW_WORD.match(title.lower()) for title in titles)
    head = ["flow" if flows else "name"] if named else []
    rows = [Line(1, (*head, *keys))]
    for title, record in records:
        first = min(number for number, _ in record.values())
        cells = [record.get(key, (first, "")) for key in keys]
        rows.append(_line([*([(first, title)] if named else []), *cells]))
    return rows


def records_in(content: bytes) -> list[tuple[int, dict[str, str]]]:
    """Return the records of a JSON list, or of lines of JSON, with the number or the line of each; none of other JSON."""
    try:
        text = content.decode("utf-8-sig") if content.lstrip()[:1] in (b"[", b"{") else ""
        numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        if text.lstrip().startswith("["):
            records = list(enumerate(json.loads(text, parse_int=str, parse_float=str), 1))
        else:
            records = [(n, json.loads(x, parse_int=str, parse_float=str)) for n, x in numbered]
    except (ValueError, RecursionError):
        return []
    named = [(n, record) for n, record in records if isinstance(record, dict)]
    if len(named) < len(records) or not any(name_of(key)[0] for _, r in named for key in r):
        return []
    return [(n, {k: v for k, v in r.items() if isinstance(v, str)}) for n, r in named]
