"""What iperf 2 prints: CSV (`iperf -c HOST -y C -i 1`, in old versions also `--reportstyle C`), and text.

CSV is nine columns: time (YYYYMMDDhhmmss; 1970 in a run without `-i`), own address and port, the other end's
address and port, connection, interval in seconds, bytes, bit/s. UDP adds five more. With -e the zone stands before the
time (-0700:20240509154620.629) and more columns follow; since 2.2 a heading names all, and the interval is two columns.
After the intervals stands one row for the whole test: joined to a mean, it counts everything twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import ip_address
from itertools import pairwise

from measuretwice.parse._reading import ParseError, clean, cut_off, excerpt, foreign

_EXPECTED = "the output of `iperf -c HOST -y C -i 1` (iperf 2)"
_PLAIN, _PLAIN_UDP = 9, 14
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
_TIME = re.compile(r"(?P<zone>[+-]\d{4}:)?(?P<day>\d{8})(?P<clock>\d{6}(?:\.\d+)?)")
_HEADING = re.compile(r"time,srcadd\w*,.*")
# Of tests without -i.
_NO_TIME = "1970"
# Where a server listens, if nobody says otherwise.
_PORT = 5001
# iperf's own number for the sum over parallel connections.
_SUM = -1
_EXPECTED_TEXT = "the text output of iperf (iperf 2)"
_BEGIN = re.compile(
    r"(?P<end>Client connecting to .*|Server listening on).*\b(?P<protocol>TCP|UDP) port (?P<port>\d+)"
)
_CONNECTED = re.compile(r"\[ *\*?(\d+)\] local (\S+) port (\d+) connected with (\S+) port (\d+)")
# 2.0 prints "0.0- 1.0 sec", 2.1 "0.0000-1.0000 sec"; what follows the rate differs with -e.
_TEXT_ROW = re.compile(
    r"\[ *\*?(?P<id>\d+)\] +(?P<start>\d+\.\d+)- *(?P<end>\d+\.\d+) sec"
    r" +(?P<size>\d+(?:\.\d+)?) (?P<size_unit>[KMGT]?)Bytes?"
    r" +(?P<rate>\d+(?:\.\d+)?|-?nan|-?inf) (?P<rate_unit>[KMGT]?)(?P<rate_of>bits|Bytes?)/sec"
)
# What -e has behind the rate of a sender: blocks, resent, window and round-trip time.
_ENHANCED = re.compile(r"/sec +\d+/\d+(?:\(\d+\))? +(\d+) +(-?\d+)([KMG]?)/(\d+)")
# A handshake's round trip, in microseconds, or what -m says.
_MSS = re.compile(r"/mss/irtt=\d+/(\d+)/(\d+)|\[ *\*?(\d+)\] MSS size (\d+) bytes")
_WINDOW = re.compile(r"TCP window size: +(\d{1,9}(?:\.\d{1,9})?) ?([KMG]?)Bytes?(?! \(default\))")
# "using reno", "set to cubic using reno": the last word is what it had.
_ALGORITHM = re.compile(r"^TCP congestion control .*?(\w+)\s*$", re.M)
_UDP_ROW = re.compile(r"/sec +[\d.]+ ms +-?\d+/ *\d+")
_SUM_ROW = re.compile(r"\[SUM")
_FAILED = re.compile(r"(?:tcp )?connect failed: .*|.*(?:error|failed): .*")
_BOTH_WAYS = "a test in both directions at once (--full-duplex): each is in the other's way; bring a test of each direction by itself"
# What a post that shows the sums of its connections alone lacks.
LAST_ALONE = "alone ([SUM]), without connections and rows"
_OF_UDP = "a test of UDP, which has neither window nor recovery; bring a test of TCP"
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
# Version 2.1 ends an interval at a whole number of seconds, and hardly ever a test.
_WHOLE = re.compile(r"\d+\.0000")


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
    retransmits: int | None = None
    cwnd_bytes: int | None = None
    rtt_us: int | None = None


@dataclass(frozen=True)
class Iperf2Connection:
    """One connection: its intervals in order, and the row that sums the whole test up. "From" is the end
    that sends, also where a `server` says this. `span` is when it was on, in seconds or in lines, to compare with others'
    of its file; None where nothing says it. `mss_bytes` and `idle_rtt_us`, the handshake's round trip, are known with -e
    (-m), `has_total` says that iperf's own row for the whole test is there, `window_bytes`, the buffer that the system gave, where somebody asked for one (-w), `congestion_control`, what the
    client's host used, since version 2.2."""

    from_address: str
    from_port: int
    to_address: str
    to_port: int
    intervals: tuple[Iperf2Row, ...]
    total: Iperf2Row
    udp: bool = False
    server: bool = False
    span: tuple[float, float] | None = None
    mss_bytes: int | None = None
    idle_rtt_us: int | None = None
    window_bytes: int | None = None
    congestion_control: str | None = None
    has_total: bool = True


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
    by_connection: dict[tuple[str, int, str, int, int], list[Iperf2Row]] = {}
    heading: list[str] = []
    udp = False
    for number, line in enumerate(lines, start=1):
        if _HEADING.fullmatch(line):
            heading = line.split(",")
            udp = udp or "datagrams" in heading
        elif (
            line.strip() and not _FAILED.fullmatch(line) and (number > 1 or re.search(r"\d", line))
        ):
            row = _row(line, source, number)
            udp = udp or _is_udp(line, heading)
            if row.connection != _SUM:
                key = (row.from_address, row.from_port, row.to_address, row.to_port, row.connection)
                by_connection.setdefault(key, []).append(row)
    if not by_connection:
        raise foreign(text, source, _EXPECTED)
    return tuple(
        _of_server(connection)
        if connection.from_port == _PORT != connection.to_port
        else connection
        for rows in by_connection.values()
        for connection in [connection_of(rows, source, len(lines), udp=udp, span=_span(rows))]
    )


def _is_udp(line: str, heading: list[str]) -> bool:
    """Return whether a row has what only UDP has: jitter and lost datagrams."""
    fields = line.split(",")
    if heading or len(fields) <= _PLAIN:
        return False
    return (len(fields) == _PLAIN_UDP and fields[0][0] not in "+-") or "." in fields[_PLAIN]


def _span(rows: list[Iperf2Row]) -> tuple[float, float] | None:
    """Return when a connection began and ended by its rows' times, in seconds since any day; None without times."""
    begin_s, end_s = _seconds(rows[0].time), _seconds(rows[-1].time)
    return None if begin_s is None or end_s is None else (begin_s - rows[0].end_s, end_s)


def _seconds(time: str) -> float | None:
    parts = _TIME.fullmatch(time)
    if parts is None or parts["day"].startswith(_NO_TIME):
        return None
    try:
        day = datetime.strptime(parts["day"] + parts["clock"][:6], "%Y%m%d%H%M%S")
    except ValueError:
        return None
    return (day - datetime(2000, 1, 1)).total_seconds()


def _of_server(connection: Iperf2Connection) -> Iperf2Connection:
    """A server's word on a connection: it names itself first."""
    c = connection
    return replace(
        c, from_address=c.to_address, from_port=c.to_port,
        to_address=c.from_address, to_port=c.from_port, server=True,
    )  # fmt: skip


def connection_of(
    rows: list[Iperf2Row], source: str, lines: int, *,
    udp: bool = False, server: bool = False, span: tuple[float, float] | None = None,
) -> Iperf2Connection:  # fmt: skip
    """Return the connection of these rows, in the order in which they were printed.

    TruncatedError where the last one isn't the whole test's; `lines` is how many the file has.
    """
    *intervals, total = rows
    # What a test of UDP has lost its end of is one all the same.
    if (
        not udp
        and intervals
        and (
            total.start_s != intervals[0].start_s
            or total.end_s < intervals[-1].end_s
            or any(a.end_s > b.start_s for a, b in pairwise(intervals))
        )
    ):
        raise cut_off(source, lines, "a last row for the whole test (was it killed?)")
    first = rows[0]
    return Iperf2Connection(
        first.from_address, first.from_port, first.to_address, first.to_port, tuple(intervals), total,
        udp, server, span,
    )  # fmt: skip


def _row(line: str, source: str, number: int) -> Iperf2Row:
    fields = line.split(",")
    if len(fields) > _PLAIN and not _INTERVAL.fullmatch(fields[6]):
        # Since 2.2 the interval is two columns.
        fields[6:8] = ["-".join(fields[6:8])]
    interval = _INTERVAL.fullmatch(fields[6]) if len(fields) >= _PLAIN else None
    try:
        if not interval or not _TIME.fullmatch(fields[0]) or not _fits(fields):
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


def _fits(fields: list[str]) -> bool:
    """Return whether a row has as many columns as some version prints: with -e these differ."""
    return len(fields) in (_PLAIN, _PLAIN_UDP) or fields[0][0] in "+-"


# Text, a client's or a server's, versions 2.0 to 2.2.


@dataclass
class _Ends:
    """A connection while it is read. `rows` are by the printed order."""

    own: tuple[str, int]
    other: tuple[str, int]
    server: bool
    begin: int
    rows: list[Iperf2Row] = field(default_factory=list)
    last_end: str = ""
    end: int = 0
    mss_bytes: int | None = None
    idle_rtt_us: int | None = None
    window_bytes: int | None = None
    has_total: bool = True

    def take_sizes(self, line: str) -> None:
        """Take what a connection's first line says of its segments and of its handshake, which a listening socket doesn't time."""
        if (mss := _MSS.search(line)) and mss[1]:
            self.mss_bytes, self.idle_rtt_us = int(mss[1]), int(mss[2]) or None

    def sum_rows(self) -> None:
        """Add the row for the whole test that somebody left out, where several follow each other."""
        if len(self.rows) > 1 and all(a.end_s <= b.start_s for a, b in pairwise(self.rows)):
            first, last = self.rows[0], self.rows[-1]
            size = sum(row.bytes for row in self.rows)
            rate_bps = round(8 * size / (last.end_s - first.start_s)) if last.end_s else None
            self.rows.append(replace(last, start_s=first.start_s, bytes=size, rate_bps=rate_bps))
            self.has_total = False


def parse_iperf2_text(
    text: str, source: str, *, abridged: bool = False
) -> tuple[Iperf2Connection, ...]:
    """Read the connections that `iperf -c HOST` or `iperf -s` printed, in the order in which they began.

    As iperf means them, K, M and G are powers of 1024 before Bytes and of 1000 before bits; three
    digits are printed. `time` of a row is empty: there is none in this form. With `abridged` rows are read also where a
    person has left no line above them, and summed where their total is missing.

    ParseError for other text and where iperf says that it couldn't connect; TruncatedError for a
    connection without its last row, which sums up (the run was killed).
    """
    text = clean(text, source, _EXPECTED_TEXT)
    begins = [*_BEGIN.finditer(text)]
    if not begins and not (abridged and _TEXT_ROW.search(text)):
        raise (abridged and _remains(text, source)) or _never_began(text, source)
    _refuse_both_ways(text, source)
    udp = _is_of_udp(begins, text)
    ports = {int(begin["port"]) for begin in begins if begin["end"].startswith("Server")}
    # Where both ends wrote into one file, a connection's own port says which one it is of.
    both = any(begin["end"].startswith("Client") for begin in begins)
    lines, reported = text.rstrip().split("\n"), False
    connections, current = list[_Ends](), dict[str, _Ends]()
    window_bytes, algorithm = _windows(lines), None if ports else _ALGORITHM.search(text)
    for number, line in enumerate(lines, start=1):
        if connected := _CONNECTED.match(line):
            own, other = int(connected[3]), int(connected[5])
            server = own in ports if both else bool(ports)
            ends = _Ends((_host(connected[2]), own), (_host(connected[4]), other), server, number)
            ends.window_bytes = window_bytes.get(server)
            ends.take_sizes(line)
            current[connected[1]] = ends
            connections.append(ends)
        elif "Server Report" in line:  # Of a UDP client's server: the same time once more.
            reported = True
        elif row := _TEXT_ROW.match(line):
            if row["id"] not in current and not abridged:
                raise _unreadable(source, number, line, "a connection that was named above")
            if row["id"] not in current:
                connections.append(_Ends(("", len(current)), ("", 0), bool(ports), number))
                current[row["id"]] = connections[-1]
            if not reported:
                _take(current[row["id"]], row, source, number)
        elif (mss := _MSS.search(line)) and mss[3] in current:
            current[mss[3]].mss_bytes = int(mss[4])
        elif _FAILED.fullmatch(line):
            raise ParseError(source, f"line {number}", f"iperf says: {line.strip()}")
        elif "/sec" in line and not _SUM_ROW.match(line) and "[" in line:
            raise _unreadable(source, number, line, "interval, transfer and bandwidth")
    return tuple(
        replace(
            connection_of(
                ends.rows, source, len(lines), udp=udp, server=ends.server, span=(ends.begin, ends.end)
            ),
            has_total=ends.has_total,
            mss_bytes=ends.mss_bytes, idle_rtt_us=ends.idle_rtt_us, window_bytes=ends.window_bytes,
            congestion_control=algorithm[1] if algorithm else None,
        )
        for ends in _ended(connections, source, len(lines), udp=udp, abridged=abridged)
    )  # fmt: skip


def _is_of_udp(begins: list[re.Match[str]], text: str) -> bool:
    return any(begin["protocol"] == "UDP" for begin in begins[:1]) or bool(_UDP_ROW.search(text))


def _refuse_both_ways(text: str, source: str) -> None:
    if "(full-duplex)" in text or "\n[FD" in text:
        raise ParseError(source, "file", _BOTH_WAYS)


def _ended(
    connections: list[_Ends], source: str, lines: int, *, udp: bool, abridged: bool
) -> list[_Ends]:
    """Return the connections that have rows, summed if `abridged`; TruncatedError where one of TCP lacks its last row."""
    for ends in connections if abridged else ():
        ends.sum_rows()
    if udp and not any(ends.rows for ends in connections):
        raise ParseError(source, "file", _OF_UDP)
    connections = [ends for ends in connections if ends.rows or not udp]
    for ends in connections if not udp else ():
        if not ends.rows or (len(ends.rows) == 1 and _WHOLE.fullmatch(ends.last_end)):
            raise cut_off(source, lines, "a last row for the whole test (was it killed?)")
    return connections


def _remains(text: str, source: str) -> ParseError | None:
    """Return what a person has left of a test, where no row of a connection is among it; None where no line is iperf's."""
    if _FAILED.search(text):
        return None
    if "atagrams" in text or _UDP_ROW.search(text):
        return ParseError(source, "file", _OF_UDP)
    sums = re.findall(r"^\W*\[SUM\].*/sec", text, re.M)
    if sums:
        # iperf3 prints two decimals.
        of_iperf3 = sum(bool(re.search(r"\d\.\d\d- *\d+\.\d\d ", line)) for line in sums)
        few = "its last line" if len(sums) == 1 else f"{len(sums)} last lines"
        tools = (
            f" ({len(sums) - of_iperf3} of iperf 2 and {of_iperf3} of iperf3)"
            if of_iperf3
            else " of iperf 2"
        )
        return ParseError(
            source, "file", f"{few}{tools} {LAST_ALONE}; bring all that was printed, a file of each test"
        )  # fmt: skip
    return None


def _never_began(text: str, source: str) -> ParseError:
    """Return what is wrong with a text in which no test begins: what iperf says of it, else that it is none of iperf's."""
    if failed := _FAILED.search(text):
        number = text.count("\n", 0, failed.start()) + 1
        return ParseError(source, f"line {number}", f"iperf says: {failed[0].strip()}")
    return foreign(text, source, _EXPECTED_TEXT)


def _windows(lines: list[str]) -> dict[bool, int]:
    """Return the window that was asked for, in bytes, of a server (true) and of a client, where their heads say it."""
    windows: dict[bool, int] = {}
    of_server = False
    for line in lines:
        if begin := _BEGIN.match(line):
            of_server = begin["end"].startswith("Server")
        elif window := _WINDOW.match(line):
            windows[of_server] = round(float(window[1]) * 1024.0 ** _POWER[window[2]])
    return windows


def _take(ends: _Ends, match: re.Match[str], source: str, number: int) -> None:
    sender, receiver = (ends.other, ends.own) if ends.server else (ends.own, ends.other)
    ends.end = number
    start_s, end_s = float(match["start"]), float(match["end"])
    if end_s < start_s:
        raise _unreadable(source, number, match.group(), "an interval that runs forwards")
    more = _ENHANCED.match(match.string, match.end() - len("/sec"))
    cwnd_bytes = int(more[2]) * 1024 ** _POWER[more[3]] if more else 0
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
            retransmits=int(more[1]) if more else None,
            # Of a connection that is closed already it prints -1K and 0 us.
            cwnd_bytes=cwnd_bytes if cwnd_bytes > 0 else None,
            rtt_us=int(more[4]) or None if more else None,
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
