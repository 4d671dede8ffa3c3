"""The CSV that iperf 2 writes (`iperf -c HOST -y C -i 1`, in old versions also `--reportstyle C`).

Nine columns without a heading: time (YYYYMMDDhhmmss; 1970 in a run without `-i`), source
address and port, destination address and port, connection, interval in seconds, bytes, bit/s. UDP
adds five more. After the intervals stands one row for the whole test: joined to a mean, it
counts everything twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise

from measuretwice.parse._text import clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError

_EXPECTED = "the output of `iperf -c HOST -y C -i 1` (iperf 2)"
_COLUMNS = (9, 14)
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
# iperf's own number for the sum over parallel connections.
_SUM = -1


@dataclass(frozen=True)
class Iperf2Row:
    """One row. `time` is the sender's clock as iperf printed it; `rate_bps` is None where iperf
    printed no number."""

    time: str
    from_address: str
    from_port: int
    to_address: str
    to_port: int
    connection: int
    start_s: float
    end_s: float
    bytes: int
    rate_bps: int | None


@dataclass(frozen=True)
class Iperf2Connection:
    """One connection: its intervals in order, and the row that sums the whole test up. "From" is the end
    that sends, also where a `server` says this."""

    from_address: str
    from_port: int
    to_address: str
    to_port: int
    intervals: tuple[Iperf2Row, ...]
    total: Iperf2Row
    udp: bool = False
    server: bool = False


def parse_iperf2_csv(text: str, source: str) -> tuple[Iperf2Connection, ...]:
    """Read a client's rows, by connection, in the order in which these first appear.

    ParseError for other text and for a row that is none; TruncatedError for a connection without
    its last row, which sums up (the run was killed).
    """
    text = clean(text, source, _EXPECTED)
    if "," not in text.split("\n", 1)[0]:
        raise foreign(text, source, _EXPECTED)
    lines = text.split("\n")
    if lines.pop():
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    rows = [_row(line, source, number) for number, line in enumerate(lines, start=1)]
    by_connection: dict[tuple[str, int, str, int, int], list[Iperf2Row]] = {}
    for row in rows:
        if row.connection != _SUM:
            key = (row.from_address, row.from_port, row.to_address, row.to_port, row.connection)
            by_connection.setdefault(key, []).append(row)
    if not by_connection:
        raise foreign(text, source, _EXPECTED)
    udp = any(line.count(",") + 1 == _COLUMNS[1] for line in lines)
    return tuple(connection_of(its, source, len(lines), udp=udp) for its in by_connection.values())


def connection_of(
    rows: list[Iperf2Row], source: str, lines: int, *, udp: bool = False, server: bool = False
) -> Iperf2Connection:
    """Return the connection of these rows, in the order in which they were printed.

    TruncatedError where the last one isn't the whole test's; `lines` is how many the file has.
    """
    *intervals, total = rows
    if intervals and (
        total.start_s != intervals[0].start_s
        or total.end_s < intervals[-1].end_s
        or any(a.end_s > b.start_s for a, b in pairwise(intervals))
    ):
        raise cut_off(source, lines, "a last row for the whole test (was it killed?)")
    first = rows[0]
    return Iperf2Connection(
        first.from_address, first.from_port, first.to_address, first.to_port, tuple(intervals), total,
        udp, server,
    )  # fmt: skip


def _row(line: str, source: str, number: int) -> Iperf2Row:
    fields = line.split(",")
    interval = _INTERVAL.fullmatch(fields[6]) if len(fields) in _COLUMNS else None
    try:
        if not interval or not re.fullmatch(r"\d{14}(\.\d+)?", fields[0]):
            raise ValueError
        row = Iperf2Row(
            time=fields[0],
            from_address=str(ip_address(fields[1])),
            from_port=int(fields[2]),
            to_address=str(ip_address(fields[3])),
            to_port=int(fields[4]),
            connection=int(fields[5]),
            start_s=float(interval[1]),
            end_s=float(interval[2]),
            bytes=int(fields[7]),
            rate_bps=None if fields[8].lstrip("-") in ("nan", "inf") else int(fields[8]),
        )
    except ValueError:
        raise ParseError(
            source,
            f"line {number}",
            f"found {excerpt(line)}; expected nine columns: time, addresses with ports, "
            "connection, interval, bytes, bit/s",
        ) from None
    if row.end_s < row.start_s or row.bytes < 0:
        raise ParseError(source, f"line {number}", f"an interval runs backwards: {fields[6]}")
    return row
