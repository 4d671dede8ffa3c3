"""The kernel's counters as nstat prints them (iproute2; see nstat(8))."""

from __future__ import annotations

import re

from measuretwice.parse._json import JsonObject, load
from measuretwice.parse._text import clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError

_EXPECTED = "the output of `nstat -az` or `nstat -az -j`"
_ROW = re.compile(r"([A-Za-z]\w*)\s+(-?\d+)\s+-?\d+(?:\.\d+)?\s*")


def parse_nstat(text: str, source: str) -> dict[str, int]:
    """Counter names (`TcpRetransSegs`, `TcpExtTCPOFODrop`, ...) and their values.

    Accepts the JSON (`-j`) and the text form. Whether a value counts since boot or since the last
    call is nstat's own (`-a`); the rate in the third column is left out. The counters are
    explained in the kernel's Documentation/networking/snmp_counter.rst.

    Raises ParseError for anything else.
    """
    text = clean(text, source, _EXPECTED)
    if text.lstrip().startswith("{"):
        return _from_json(text, source)
    lines = text.split("\n")
    if not lines[0].startswith("#"):
        raise foreign(text, source, _EXPECTED)
    if lines.pop():
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    counters: dict[str, int] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        row = _ROW.fullmatch(line)
        if not row:
            raise ParseError(
                source, f"line {number}", f"found {excerpt(line)}; expected NAME VALUE RATE"
            )
        counters[row[1]] = int(row[2])
    return counters


def _from_json(text: str, source: str) -> dict[str, int]:
    document = JsonObject.of(load(text, source, _EXPECTED), "$", source)
    kernel = document.child("kernel")
    if kernel is None:
        raise foreign(text, source, _EXPECTED)
    return {name: kernel.need_integer(name) for name in kernel.data}
