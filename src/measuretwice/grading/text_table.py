"""A table of text as spreadsheets and learning management systems write it, read and written back.

Whatever it was written in (encoding, mark at the beginning, delimiter, quotes, ends of lines) is
found out, remembered, and used again: what comes out goes back where it came from.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from measuretwice.base.errors import UserError, is_control

MAX_BYTES = 16 * 2**20
MAX_LINES = 20_000
DELIMITERS = ",;\t|"
SEP = re.compile(r"\s*\"?sep=(?P<delimiter>[,;\t|])\"?\s*", re.IGNORECASE)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# A spreadsheet computes nothing from these, though they begin like a formula.
HARMLESS = re.compile(r"-|[+-]?[0-9]+([.,][0-9]+)?%?")
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What a spreadsheet writes where nobody asked for UTF-8: west, middle of Europe, an old Macintosh.
OLD_ENCODINGS = {
    "cp1252": "Windows, Western Europe",
    "cp1250": "Windows, Central Europe",
    "mac_roman": "Macintosh",
}


@dataclass(frozen=True)
class Form:
    """How a file is written. `mark` are the bytes before its text, `sep` Excel's line that names
    the delimiter, with its end."""

    encoding: str = "utf-8"
    mark: bytes = b""
    sep: str = ""
    delimiter: str = ","
    newline: str = "\n"
    quote_all: bool = False


@dataclass(frozen=True)
class Line:
    """One record: the number of the line on which it begins, from 1, and its cells."""

    number: int
    cells: tuple[str, ...]

    @property
    def is_blank(self) -> bool:
        return not any(cell.strip() for cell in self.cells)


@dataclass(frozen=True)
class TextTable:
    """A file's records and its form. `guess` says which encoding was guessed, and from what."""

    path: Path
    form: Form
    lines: list[Line]
    guess: str | None = None

    def to_bytes(self, lines: Sequence[Sequence[str]]) -> bytes:
        """Other lines in this file's form; UserError where its encoding lacks a sign."""
        text = self.form.sep + format_lines(lines, self.form)
        try:
            return self.form.mark + text.encode(self.form.encoding)
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise UserError(
                f"{self.path}: is written in {self.form.encoding}, which has no {sign!r}; "
                "save it as 'CSV UTF-8' and try again"
            ) from None


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet would compute this cell."""
    return text.startswith(FORMULA) and not HARMLESS.fullmatch(text)


def cell(text: object) -> str:
    """Return text for a spreadsheet's cell: never a formula, never a control character."""
    plain = "".join(" " if _controls(character) else character for character in str(text))
    return f"'{plain}" if is_formula(plain) or is_formula(str(text)) else plain


def clean_name(text: str) -> str:
    """Return a cell's text without control characters and cell()'s apostrophe."""
    plain = "".join("\ufffd" if _controls(character) else character for character in text).strip()
    return plain[1:] if plain.startswith("'") and is_formula(plain[1:]) else plain


def _controls(character: str) -> bool:
    return character != "\n" and is_control(character)


def format_lines(lines: Sequence[Sequence[str]], form: Form) -> str:
    """Return lines as text in a form. Cells that begin like a formula get an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=form.delimiter,
        lineterminator=form.newline,
        quoting=csv.QUOTE_ALL if form.quote_all else csv.QUOTE_MINIMAL,
    )
    writer.writerows([[cell(text) for text in line] for line in lines])
    return out.getvalue()


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as plain CSV; the first has the headings."""
    return format_lines(rows, Form())


def read_table(path: Path) -> TextTable:
    """Read a table; UserError says what is wrong with it, and in which line."""
    try:
        if path.is_dir() or not path.exists() or path.is_file():
            size = path.stat().st_size
        else:
            raise UserError(f"{path}: neither a file nor a folder; give the exported file itself")
        if size > MAX_BYTES:
            raise UserError(f"{path}: larger than {MAX_BYTES >> 20} MiB: no table of a class")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise UserError(f"{path}: a workbook; save it in the spreadsheet as 'CSV UTF-8'")
    text, form, guess = _decoded(path, data)
    first = text.splitlines(keepends=True)[0] if text else ""
    if match := SEP.fullmatch(first):
        form = replace(form, sep=first, delimiter=match["delimiter"])
        text = text[len(first) :]
    else:
        form = replace(form, delimiter=_delimiter(text))
    form = replace(form, newline="\r\n" if "\r\n" in text else "\n")
    if "\n" not in text:  # an old Macintosh's, which takes the others as well
        text = text.replace("\r", "\n")
    lines = _records(path, text, form)
    form = replace(form, quote_all=_all_quoted(text, form))
    return TextTable(path, form, lines, guess)


def _decoded(path: Path, data: bytes) -> tuple[str, Form, str | None]:
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _strictly(path, data[len(mark) :], encoding), Form(encoding, mark), None
    # Half of the bytes of UTF-16 are zero, where the text is mostly Latin.
    for encoding, zeros in (("utf-16-le", data[1:400:2]), ("utf-16-be", data[0:400:2])):
        if len(zeros) > 1 and zeros.count(0) > len(zeros) / 2:
            return _strictly(path, data, encoding), Form(encoding), None
    try:
        return data.decode("utf-8"), Form(), None
    except UnicodeDecodeError:
        return _guessed(path, data)


def _strictly(path: Path, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: begins as {encoding} and isn't, at byte {error.start}; export it again"
        ) from None


def _guessed(path: Path, data: bytes) -> tuple[str, Form, str]:
    """Decode by the old single-byte encoding in which the text looks least odd; say which."""
    texts = {}
    for encoding in OLD_ENCODINGS:
        try:
            texts[encoding] = data.decode(encoding)
        except UnicodeDecodeError:
            continue
    best = min(texts, key=lambda name: _oddness(texts[name]))
    if re.search(r"[^\W\x00-\x7f]{4}", texts[best]):
        raise UserError(
            f"{path}: not UTF-8, and no Western or Central European encoding either; "
            "save it as 'CSV UTF-8'"
        )
    word = next(iter(re.findall(r"\w*[^\W\x00-\x7f]\w*", texts[best])), "")
    guess = f"read as {OLD_ENCODINGS[best]} ({best})"
    if word:
        guess += f", where a name reads {word!r}; if that is wrong, save the file as 'CSV UTF-8'"
    return texts[best], Form(best), guess


def _oddness(text: str) -> int:
    """Count characters that no name has there: punctuation within a word, a capital after a small letter."""
    within = re.findall(r"(?<=[^\W\d_])[^\w\s\x00-\x7f]|[^\w\s\x00-\x7f](?=[^\W\d_])", text)
    digits = re.findall(r"[¹²³ªº](?=[^\W\d_])|(?<=[^\W\d_])[¹²³ªº]", text)
    capitals = sum(
        before.islower() and sign.isupper() and ord(sign) > 127 for before, sign in pairwise(text)
    )
    # The ligatures are rarer in names than what else has their places.
    return (
        len(within) + len(digits) + capitals + sum(text.count(character) for character in "œŒÿŸ¿¾")
    )


def _delimiter(text: str) -> str:
    """Return the delimiter of the first line that has something in its cells, outside of quotes."""
    default = ","
    for line in text.splitlines():
        bare = re.sub(r'"[^"]*"?', "x", line)
        counts = {delimiter: bare.count(delimiter) for delimiter in DELIMITERS}
        best = max(counts, key=lambda delimiter: counts[delimiter])
        if bare.strip(DELIMITERS + " "):
            return best if counts[best] else default
        # A line of delimiters alone: an empty one, as spreadsheets write them.
        default = best if counts[best] else default
    return default


def _records(path: Path, text: str, form: Form) -> list[Line]:
    """Split the text into records; UserError names the line that can't be read."""
    before = 1 if form.sep else 0
    lines: list[Line] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=form.delimiter, strict=True)
    begins = 1
    try:
        for cells in reader:
            lines.append(Line(begins + before, tuple(cells)))
            begins = reader.line_num + 1
            if len(lines) > MAX_LINES:
                raise UserError(f"{path}: more than {MAX_LINES} lines: no table of a class")
    except csv.Error as error:
        why = "a quote is opened and not closed" if "end of data" in str(error) else str(error)
        raise UserError(f"{path}, line {begins + before}: can't be read, because {why}") from None
    return lines


def _all_quoted(text: str, form: Form) -> bool:
    """Return whether every cell of the first line that isn't blank stands in quotes."""
    first = next((line for line in text.splitlines() if line.strip(form.delimiter + " ")), "")
    return bool(re.fullmatch(rf'"[^"]*"({re.escape(form.delimiter)}"[^"]*")*', first))
