"""What every parser asks of a text before it reads it."""

from __future__ import annotations

import re

from measuretwice.parse.errors import ParseError, TruncatedError

# Control characters, what decoders put in place of bytes that are no UTF-8, and lone surrogates.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ud800-\udfff]")
# No tool counts so far: it wouldn't fit into 64 bits, nor 128.
_TOO_LONG = re.compile(r"\d{40}")
# The same of a text in ASCII, which most are, ten times as fast: what isn't in it, and all digits as one.
_TEXT = bytes({*b"\t\n\r", *range(0x20, 0x7F)})
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)

# What the labs' samplers write before a sample. EPOCHREALTIME has the locale's decimal mark.
SAMPLE_MARK = re.compile(r"# t=(\d+)[.,](\d{9})")

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
