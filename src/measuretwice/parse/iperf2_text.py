"""iperf 2's text output, a client's or a server's, versions 2.0 and 2.1."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from measuretwice.parse._text import clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError
from measuretwice.parse.iperf2 import Iperf2Connection, Iperf2Row, connection_of

_EXPECTED = "the text output of iperf (iperf 2)"
_BEGIN = re.compile(
    r"(?P<end>Client connecting to .*|Server listening on).*\b(?P<protocol>TCP|UDP) port"
)
_CONNECTED = re.compile(r"\[ *\*?(\d+)\] local (\S+) port (\d+) connected with (\S+) port (\d+)")
# 2.0 prints "0.0- 1.0 sec", 2.1 "0.0000-1.0000 sec"; what follows the rate differs with -e.
_ROW = re.compile(
    r"\[ *\*?(?P<id>\d+)\] +(?P<start>\d+\.\d+)- *(?P<end>\d+\.\d+) sec"
    r" +(?P<size>\d+(?:\.\d+)?) (?P<size_unit>[KMGT]?)Bytes?"
    r" +(?P<rate>\d+(?:\.\d+)?|-?nan|-?inf) (?P<rate_unit>[KMGT]?)(?P<rate_of>bits|Bytes?)/sec"
)
_SUM = re.compile(r"\[SUM")
_FAILED = re.compile(r"(?:tcp )?connect failed: .*|.*(?:error|failed): .*")
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
# Version 2.1 ends an interval at a whole number of seconds, and hardly ever a test.
_WHOLE = re.compile(r"\d+\.0000")


@dataclass
class _Ends:
    """A connection while it is read. `rows` are by the printed order."""

    own: tuple[str, int]
    other: tuple[str, int]
    rows: list[Iperf2Row] = field(default_factory=list)
    last_end: str = ""


def parse_iperf2_text(text: str, source: str) -> tuple[Iperf2Connection, ...]:
    """Read the connections that `iperf -c HOST` or `iperf -s` printed, in the order in which they began.

    As iperf means them, K, M and G are powers of 1024 before Bytes and of 1000 before bits; three
    digits are printed. `time` of a row is empty: there is none in this form.

    ParseError for other text and where iperf says that it couldn't connect; TruncatedError for a
    connection without its last row, which sums up (the run was killed).
    """
    text = clean(text, source, _EXPECTED)
    begin = _BEGIN.search(text)
    if not begin:
        raise foreign(text, source, _EXPECTED)
    server, udp = begin["end"].startswith("Server"), begin["protocol"] == "UDP"
    lines = text.rstrip().split("\n")
    connections: list[_Ends] = []
    current: dict[str, _Ends] = {}
    reported = False
    for number, line in enumerate(lines, start=1):
        if connected := _CONNECTED.match(line):
            ends = _Ends(
                (_host(connected[2]), int(connected[3])), (connected[4], int(connected[5]))
            )
            current[connected[1]] = ends
            connections.append(ends)
        elif "Server Report" in line:
            # What a UDP client got back from its server: the same time once more.
            reported = True
        elif row := _ROW.match(line):
            if row["id"] not in current:
                raise _unreadable(source, number, line, "a connection that was named above")
            if not reported:
                _take(current[row["id"]], row, server, source, number)
        elif _FAILED.fullmatch(line):
            raise ParseError(source, f"line {number}", f"iperf says: {line.strip()}")
        elif "/sec" in line and not _SUM.match(line) and "[" in line:
            raise _unreadable(source, number, line, "interval, transfer and bandwidth")
    for ends in connections:
        if not ends.rows or (len(ends.rows) == 1 and _WHOLE.fullmatch(ends.last_end)):
            raise cut_off(source, len(lines), "a last row for the whole test (was it killed?)")
    return tuple(
        connection_of(ends.rows, source, len(lines), udp=udp, server=server) for ends in connections
    )


def _take(ends: _Ends, match: re.Match[str], server: bool, source: str, number: int) -> None:
    sender, receiver = (ends.other, ends.own) if server else (ends.own, ends.other)
    start_s, end_s = float(match["start"]), float(match["end"])
    if end_s < start_s:
        raise _unreadable(source, number, match.group(), "an interval that runs forwards")
    ends.rows.append(
        Iperf2Row(
            time="",
            from_address=sender[0],
            from_port=sender[1],
            to_address=receiver[0],
            to_port=receiver[1],
            connection=int(match["id"]),
            start_s=start_s,
            end_s=end_s,
            bytes=round(float(match["size"]) * 1024.0 ** _POWER[match["size_unit"]]),
            rate_bps=_rate_bps(match),
        )
    )
    ends.last_end = match["end"]


def _rate_bps(match: re.Match[str]) -> int | None:
    if match["rate"].lstrip("-") in ("nan", "inf"):
        return None
    if match["rate_of"] == "bits":
        return round(float(match["rate"]) * 1000.0 ** _POWER[match["rate_unit"]])
    return round(float(match["rate"]) * 8 * 1024.0 ** _POWER[match["rate_unit"]])


def _host(text: str) -> str:
    """With -e an address has its interface: 127.0.0.1%lo."""
    return text.split("%")[0]


def _unreadable(source: str, number: int, line: str, expected: str) -> ParseError:
    return ParseError(source, f"line {number}", f"found {excerpt(line)}; expected {expected}")
