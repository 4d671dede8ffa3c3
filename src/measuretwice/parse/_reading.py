"""What every parser starts from: the error, a text that may be read, and JSON with the place of every mistake."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, NoReturn

# Control characters, what decoders put in place of bytes that are no UTF-8, and lone surrogates.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ud800-\udfff]")
# No tool counts so far: it wouldn't fit into 64 bits, nor 128.
_TOO_LONG = re.compile(r"\d{40}")
# The same of a text in ASCII, which most are, ten times as fast: what isn't in it, and all digits as one.
_TEXT = bytes({*b"\t\n\r", *range(0x20, 0x7F)})
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)

# What the labs' samplers write before a sample. EPOCHREALTIME has the locale's decimal mark.
SAMPLE_MARK = re.compile(r"# t=(\d+)[.,](\d{9})")

# Times of day, and times since a start, are smaller than that: they aren't Unix times.
UNIX_TIME_S = 1e8

_UNIX = r"(?P<unix>\d{10}(?:[.,]\d{1,9})?|\d{13}|\d{16}|\d{19})(?!\d|:\d)"
_CLOCK = r"(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d+)?)(?: *(?P<half>[AP])M\b)?"
_DATE = r"(?:(?P<date>\d{4}-\d\d-\d\d)|\d{4}/\d\d/\d\d)[T _]"
# A date in words, in any language: Fri Nov 15, or 15. nov. 2024.
_WORDS = r"(?:(?:[^\W\d]{2,9}|\d{1,2}|\d{4})[.,]{0,2} +){0,4}"
_ZONE = r"(?P<zone> ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?(?: [A-Z]{3,4}\b)?"
_ELAPSED = r"(?P<elapsed>\d+[.,]\d+)"
# With its unit whole seconds are a time, too: Time: 12 seconds.
_IN_SECONDS = r"(?P<elapsed>\d+[.,]\d+|\d+(?= ?s))(?: ?s(?:ecs?|econds?)?\b)?"
_BEFORE = re.compile(
    rf"[\[(<]? *(?:{_UNIX}|(?:{_DATE}|{_WORDS}){_CLOCK}{_ZONE}|\+?{_ELAPSED}s?(?=[\s,;|:\])]))[\])>]?[,;|:]?[ \t]?"
)
_ALONE = re.compile(
    rf"(?<![\d.]){_UNIX}|{_DATE}{_CLOCK}{_ZONE}|^\W*(?:[A-Za-z][\w ]*\W+)?{_IN_SECONDS}\W*$"
)
_CLOCK_ALONE = re.compile(rf"(?<!\d)(?<!\d:){_CLOCK}")

# How each tool's output begins: only to tell a person which file was taken by mistake.
_BEGINNINGS = (
    (re.compile(r'\{\s*"(start|event)"'), "iperf3 JSON"),
    (re.compile(r'\[\s*\{\s*"(kind|class)"'), "tc JSON"),
    (re.compile(r'\{\s*"kernel"'), "nstat JSON"),
    (re.compile(r"(State|Netid)\s+.*Recv-Q|Recv-Q\s"), "ss output"),
    (re.compile(r"# t=\d"), "ss samples"),
    (re.compile(r"(qdisc|class) \w+ [0-9a-f]*:"), "tc output"),
    (re.compile(r"PING6?[ (]"), "ping output"),
    (re.compile(r"#kernel"), "nstat output"),
    (re.compile(r"\d{14},[^,\n]*,\d+,"), "iperf 2's CSV"),
    (
        re.compile(r"-*\s*(Client connecting to|Server listening on (TCP|UDP))"),
        "iperf 2's text output",
    ),
    (re.compile(r"-*\s*Server listening on \d"), "an iperf3 server's text output"),
    (re.compile(r"Connecting to host|iperf 3|iperf3: "), "iperf3 text output"),
)

_NAN = re.compile(r"\b(?:nan|inf)\b")
# Strings are matched first, so that a "nan" inside of one is left alone.
_STRING_OR_NAN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\b(?:nan|inf)\b')
# Larger numbers aren't counted or measured by any tool; as 1e400 they would be infinite.
_MOST = 1e39


class ParseError(ValueError):
    """A file that is not what it should be, and the place where that shows.

    `source` is the file's name, `where` the place in it ("line 12", "line 3 column 5" or a JSON
    path such as "$.end.streams[0]"), `problem` what is wrong and what was expected there.
    The text is one line: "FILE, line 12: what is wrong; expected ...".
    """

    def __init__(self, source: str, where: str, problem: str) -> None:
        # All three go to the base class, so that the error survives pickling between workers.
        super().__init__(source, where, problem)
        self.source = source
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        text = " ".join(f"{self.source}, {self.where}: {self.problem}".split())
        return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class TruncatedError(ParseError):
    """A text that is right as far as it goes, and ends too early."""


def clean(text: str, source: str, expected: str) -> str:
    """The text without byte order mark and carriage returns.

    Raises ParseError if it is empty or holds what no tool prints as text, or numbers that none counts to.
    """
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").replace("\r\n", "\n")
    if not text or text.isspace():
        raise ParseError(source, "line 1", f"the file is empty; expected {expected}")
    if _is_plain(text):
        return text
    bad = _NO_TEXT.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        raise ParseError(
            source,
            f"line {line}",
            f"binary data (U+{ord(bad.group()):04X}), no text; expected {expected}",
        )
    if long := _TOO_LONG.search(text):
        line = text.count("\n", 0, long.start()) + 1
        problem = f"a number of 40 digits or more: no tool prints that; expected {expected}"
        raise ParseError(source, f"line {line}", problem)
    return text


def _is_plain(text: str) -> bool:
    """Is it ASCII without control characters and without such numbers?"""
    if not text.isascii():
        return False
    content = text.encode("ascii")
    return not content.translate(None, _TEXT) and b"0" * 40 not in content.translate(_DIGITS_ALIKE)


def foreign(text: str, source: str, expected: str, line: int = 1) -> ParseError:
    """The error for a text that is not this tool's, naming the tool if it can be told."""
    begin = text.lstrip()
    for pattern, tool in _BEGINNINGS:
        if pattern.match(begin):
            return ParseError(source, f"line {line}", f"this is {tool}; expected {expected}")
    return ParseError(source, f"line {line}", f"found {excerpt(begin)}; expected {expected}")


def cut_off(source: str, line: int, expected: str) -> TruncatedError:
    """The error for a text that ends too early."""
    return TruncatedError(
        source, f"line {line}", f"the file ends here, cut off; expected {expected}"
    )


def excerpt(text: str) -> str:
    """The beginning of a text, quoted, short enough for a message."""
    line = text.split("\n", 1)[0].strip()
    return ascii(line if len(line) <= 60 else line[:57] + "...")


def _as_json_nan(match: re.Match[str]) -> str:
    # The same number of characters, so that lines and columns in messages stay right.
    token = match.group()
    return token if token.startswith('"') else "NaN".rjust(len(token))


def as_numbers(text: str) -> str:
    """The text with C's nan and inf as JSON's NaN, of the same length."""
    # Most documents have neither, and a search for the letters costs nothing.
    if ("nan" in text or "inf" in text) and _NAN.search(text):
        return _STRING_OR_NAN.sub(_as_json_nan, text)
    return text


def load(text: str, source: str, expected: str) -> object:
    """The one JSON document of a text; NaN and infinity (C's `-nan`, `inf` too) become None.

    Raises ParseError with line and column for a text that is cut off, not JSON, or followed by a
    second document.
    """
    text = as_numbers(text)
    try:
        value: object = json.loads(text, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            problem = "a second document or other text begins here; expected one document"
        elif error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            problem = f"the file ends in the middle of the document, cut off; expected {expected}"
        else:
            problem = f"not JSON ({error.msg}); expected {expected}"
        raise ParseError(source, f"line {error.lineno} column {error.colno}", problem) from None
    except (RecursionError, ValueError):
        # Nested too deeply, or a number of thousands of digits: no tool writes that.
        raise ParseError(source, "line 1", f"not readable JSON; expected {expected}") from None
    return value


@dataclass(frozen=True)
class JsonObject:
    """A JSON object that knows where in which file it stands.

    The methods give None for a key that is absent or null, and raise ParseError with the JSON
    path for a value of another type; `need_…` raise it for an absent one too.
    """

    data: dict[str, object]
    path: str
    source: str

    @classmethod
    def of(cls, value: object, path: str, source: str) -> JsonObject:
        if not isinstance(value, dict):
            raise _ill_typed(source, path, value, "an object")
        return cls(value, path, source)

    def child(self, key: str) -> JsonObject | None:
        value = self.data.get(key)
        if value is None:
            return None
        return JsonObject.of(value, f"{self.path}.{key}", self.source)

    def children(self, key: str) -> tuple[JsonObject, ...]:
        """The objects of an array; none if the key is absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        path = f"{self.path}.{key}"
        if not isinstance(value, list):
            raise _ill_typed(self.source, path, value, "an array")
        return tuple(
            JsonObject.of(item, f"{path}[{i}]", self.source) for i, item in enumerate(value)
        )

    def text(self, key: str) -> str | None:
        value = self.data.get(key)
        if value is not None and not isinstance(value, str):
            raise _ill_typed(self.source, f"{self.path}.{key}", value, "a string")
        return value

    def flag(self, key: str) -> bool | None:
        """A truth value; iperf3 writes some as 0 and 1."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise _ill_typed(self.source, f"{self.path}.{key}", value, "true or false")

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        if isinstance(value, str) and value.lower().lstrip("-") in ("nan", "inf"):
            return None
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST:
            return value
        raise _ill_typed(self.source, f"{self.path}.{key}", value, "a number")

    def integer(self, key: str) -> int | None:
        value = self.number(key)
        if value is None:
            return None
        # Large whole numbers may be written with an exponent.
        whole = int(value)
        if whole != value:
            raise _ill_typed(self.source, f"{self.path}.{key}", value, "a whole number")
        return whole

    def need_child(self, key: str) -> JsonObject:
        child = self.child(key)
        if child is None:
            self._missing(key)
        return child

    def need_text(self, key: str) -> str:
        text = self.text(key)
        if text is None:
            self._missing(key)
        return text

    def need_number(self, key: str) -> float:
        number = self.number(key)
        if number is None:
            self._missing(key)
        return number

    def need_integer(self, key: str) -> int:
        integer = self.integer(key)
        if integer is None:
            self._missing(key)
        return integer

    def _missing(self, key: str) -> NoReturn:
        raise ParseError(self.source, f"{self.path}.{key}", "missing; expected a value")


def _ill_typed(source: str, path: str, value: object, expected: str) -> ParseError:
    return ParseError(source, path, f"found {excerpt(json.dumps(value))}; expected {expected}")


# Times in logs, in any of the usual forms: before a line, or on a line of their own.


class Stamp(NamedTuple):
    """A time before a line (s), and the rest of that line."""

    time_s: float
    rest: str


def stamp_of(line: str) -> Stamp | None:
    """Return the time that a line begins with, as `ts` writes it; None where there is none."""
    mark = _BEFORE.match(line)
    return Stamp(_time_s(mark), line[mark.end() :]) if mark else None


def time_in(line: str) -> float | None:
    """Return the time that a line of its own has (s), as `date` and `watch` write it; None where there is none."""
    mark = _ALONE.search(line) or _CLOCK_ALONE.search(line)
    return _time_s(mark) if mark else None


def _time_s(mark: re.Match[str]) -> float:
    """A line's time: Unix time where it says that, else that of its clock (s since midnight, or since a start)."""
    parts = mark.groupdict()
    if unix := parts.get("unix"):
        whole, _, rest = unix.replace(",", ".").partition(".")
        return float(f"{whole[:10]}.{whole[10:]}{rest}")
    if elapsed := parts.get("elapsed"):
        # 0 stands for no time at all.
        return float(elapsed.replace(",", ".")) or 0.001
    hour, minute = int(parts["hour"]), int(parts["minute"])
    second = float(parts["second"].replace(",", "."))
    if half := parts.get("half"):
        hour = hour % 12 + (12 if half == "P" else 0)
    clock_s = hour * 3600 + minute * 60 + second
    date, zone = parts.get("date"), (parts.get("zone") or "").strip()
    if not date or not zone:
        return clock_s
    try:
        day = datetime.fromisoformat(f"{date}T00:00:00{'+00:00' if zone[0] in 'ZUG' else zone}")
    except ValueError:
        return clock_s
    return day.timestamp() + clock_s
