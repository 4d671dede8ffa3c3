"""iperf3's text output, a client's or a server's, as people bring it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime

from measuretwice.parse._reading import ParseError, clean, cut_off, excerpt, foreign
from measuretwice.parse.iperf3 import (
    Iperf3Connection,
    Iperf3Interval,
    Iperf3Run,
    Iperf3Stream,
    Total,
)

_EXPECTED = "the text output of an iperf3 client"
_EXPECTED_SERVER = "the text output of an iperf3 server"
_SCALE = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
# Searched for, not matched at a line's start: --timestamps puts anything before it.
_ROW = re.compile(
    r"\[ *(?P<id>\d+|SUM)\](?:\[(?P<role>[TR]X-[CS])\])?"
    r" +(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+) +sec"
    r" +(?P<size>[\d.]+|-?nan|-?inf) (?P<size_unit>[KMGT]?)Bytes"
    r" +(?P<rate>[\d.]+|-?nan|-?inf) (?P<rate_unit>[KMGT]?)(?P<rate_of>bits|Bytes)/sec(?P<rest>.*)"
)
_TCP_REST = re.compile(
    r"(?: +(?P<retransmits>\d+))?(?: +(?P<cwnd>[\d.]+) (?P<cwnd_unit>[KMGT]?)Bytes)?"
    r"(?: +(?P<omitted>\(omitted\)))?(?: +(?P<end>sender|receiver))? *"
)
_UDP_REST = re.compile(r" +[\d.]+ ms +-?\d+/-?\d+ ")
# A row so many times as long as the one before it isn't an interval.
_TOTAL_RATIO = 2.0
# Above the totals of iperf3 before 3.0.4, which marked no line of theirs.
_HEADED = re.compile(r"^\s*(Sent|Received)\s*$")
_UDP_END = re.compile(r" (sender|receiver) *$")
# What a post that shows only some of the lines lacks; no program says this.
NO_TOTALS = "the lines with its totals are missing"
_CONNECTED = re.compile(r"\[ *(\d+)\] local (\S+) port (\d+) connected to (\S+) port (\d+)")
_TEST = re.compile(
    r"Starting Test: protocol: (\w+), (\d+) streams, .*omitting (\d+) seconds(?:, (\d+) second)?"
)
_COMMAND = re.compile(r"\biperf3?(?:\.exe)?((?: +\S+)*? +-\w*c +\S.*)")
_LISTENS = re.compile(r"Server listening on \d")
_CPU = re.compile(
    r"CPU Utilization: local/\w+ (\d{1,9}(?:\.\d{1,9})?)%.*remote/\w+ (\d{1,9}(?:\.\d{1,9})?)%"
)
# What a terminal shows of Ctrl-C.
WHOLE_RATIO = 0.95
_STOPPED = re.compile(r"^\^C", re.M)
_VERSION = re.compile(r"^iperf (3\.\S+)", re.M)


@dataclass
class _Row:
    """A line of numbers; `retransmits` and `cwnd_bytes` are None where the line has none."""

    stream: str
    receives: bool
    start_s: float
    end_s: float
    bytes: int
    rate_bps: float | None
    retransmits: int | None = None
    cwnd_bytes: int | None = None
    omitted: bool = False
    total_of: str | None = None


@dataclass
class _Report:
    """What has been read so far."""

    connections: list[Iperf3Connection] = field(default_factory=list)
    intervals: list[_Row] = field(default_factory=list)
    totals: list[_Row] = field(default_factory=list)
    begun: bool = False
    done: bool = False
    server: bool = False
    datagrams: bool | None = None
    jitter: bool = False
    headed: str | None = None
    reverse: bool = False
    bidirectional: bool = False
    version: str | None = None
    start_time_s: float | None = None
    protocol: str | None = None
    num_streams: int | None = None
    omit_s: float | None = None
    duration_s: float | None = None
    mss_requested_bytes: int | None = None
    mss_default_bytes: int | None = None
    congestion_control: str | None = None
    bitrate_bps: float | None = None
    window_bytes: int | None = None
    own_cpu_percent: float | None = None
    other_cpu_percent: float | None = None
    error: str | None = None


def parse_iperf3_text(text: str, source: str, *, abridged: bool = False) -> Iperf3Run:
    """Read what `iperf3 -c HOST` printed, with or without -V, --timestamps and -f.

    As iperf3 means them, K, M and G are powers of 1024 before Bytes and Bytes/sec and powers of
    1000 before bits/sec (iperf3(1), option -f). It prints three digits, so that bytes and rates
    are good to about half a percent; use JSON where that matters. There is no rtt in this form.
    A run that ended with an error parses: the error's text is in `.error`. With `abridged` so does what a person has
    left of it: totals alone, or rows alone, of which NO_TOTALS is the error.

    Raises ParseError for another tool's text and for one without its last line ("iperf Done.").
    """
    text = clean(text, source, _EXPECTED)
    report = _Report()
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        _read_line(report, line, source, number)
    if not report.begun and not (abridged and (report.totals or report.intervals)):
        raise foreign(text, source, _EXPECTED)
    if report.error is None and not report.done and _STOPPED.search(text):
        report.error = "interrupt - stopped by hand (^C)"
    # The last line but for an empty one and "iperf Done.".
    report.done |= abridged and not report.error and bool(report.totals)
    if report.done and report.totals:
        # What went wrong before the test that ended well, or after it.
        report.error = None
    elif abridged and report.error is None and report.intervals:
        report.error = NO_TOTALS
    if report.error is None and not (report.done and report.totals):
        raise cut_off(source, len(lines), "the totals and 'iperf Done.' (was it killed?)")
    if report.error is not None and not text.endswith("\n"):
        raise cut_off(source, len(lines), "a whole line at the end")
    return _run(report)


def parse_abridged(text: str, source: str) -> Iperf3Run:
    """Return a client's test as a person posts it (`parse_iperf3_text`)."""
    return parse_iperf3_text(text, source, abridged=True)


def parse_iperf3_server_text(
    text: str, source: str, *, abridged: bool = False
) -> tuple[Iperf3Run, ...]:
    """Read what `iperf3 -s` printed: each test that it served, none where no client came.

    It knows what arrived (of a test with -R, what was sent), and the ports from its own end.
    Raises ParseError for another tool's text, TruncatedError where the last test has no totals; with `abridged` NO_TOTALS
    is the error of one that has rows.
    """
    text = clean(text, source, _EXPECTED_SERVER)
    waits: list[_Report] = []
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        accepted = "Accepted connection from " in line
        if _LISTENS.match(line) or (accepted and (not waits or waits[-1].totals)):
            waits.append(_Report(server=True, begun=accepted))
        elif waits:
            waits[-1].begun |= accepted
            _read_line(waits[-1], line, source, number)
    if not waits:
        raise foreign(text, source, _EXPECTED_SERVER)
    reports = [report for report in waits if report.begun]
    for report in reports:
        # It is printed before each wait, and so in the middle of what belongs to another test.
        version = _VERSION.search(text)
        report.version = version[1] if version else None
        several = len(report.connections) > 1
        whole = any(row.stream == "SUM" for row in report.totals) if several else report.totals
        if report.error is None and not whole:
            if not (abridged and report.intervals):
                raise cut_off(source, len(lines), "the test's totals (was it killed?)")
            report.error = NO_TOTALS
    return tuple(map(_run, reports))


def from_rows(run: Iperf3Run) -> Iperf3Run:
    """Return a test that lacks its totals (NO_TOTALS) with the sum of its rows in their place; any other as it is.

    Whoever shows some lines of a test leaves out its last ones first: what the rows show is so nevertheless.
    """
    sends = not run.server or any(row.retransmits is not None for row in run.intervals)
    rows = [row for row in run.intervals if not row.omitted and row.is_sender is not (not sends)]
    lasted_s = max((row.end_s for row in rows), default=0.0)
    if run.error != NO_TOTALS or not lasted_s or run.bidirectional:
        return run
    size = sum(row.bytes for row in rows)
    if not sends:
        return replace(
            run, error=None, received_bytes=size, received_seconds=lasted_s, received_rate_bps=8 * size / lasted_s
        )  # fmt: skip
    resent = [row.retransmits for row in rows]
    return replace(
        run, error=None, sent_bytes=size, sent_seconds=lasted_s, sent_rate_bps=8 * size / lasted_s,
        retransmits=None if None in resent else sum(filter(None, resent)),
    )  # fmt: skip


def left_out_of(text: str, run: Iperf3Run) -> list[str]:
    """Return which parts of iperf3's text a person has left out, and what isn't told without them."""
    if text.lstrip().startswith("{"):
        return []
    lacking = []
    ids = [(row["id"], row["rest"].split()[-1:]) for row in _ROW.finditer(text)]
    if {stream for stream, _ in ids} == {"SUM"}:
        lacking.append("the lines with sums ([SUM]) alone: of how many connections isn't told")
    if ids and all(last and last[0] in ("sender", "receiver") for _, last in ids):
        lacking.append(
            "the lines with its totals alone: how the test went from second to second isn't told"
        )
    if not run.connections and "Connecting to host" not in text:
        lacking.append(
            "its first lines are missing: between which hosts it was, and with which options, isn't told"
        )
    return lacking


def _read_line(report: _Report, line: str, source: str, number: int) -> None:
    row = _ROW.search(line)
    if row:
        _read_row(report, row, source, number, line)
    elif "/sec" in line and "[" in line:
        raise _unreadable(source, number, line)
    else:
        _read_remark(report, line, source, number)


def _read_row(report: _Report, match: re.Match[str], source: str, number: int, line: str) -> None:
    role = match["role"]
    report.bidirectional |= role is not None
    try:
        row = _Row(
            stream=match["id"],
            receives=role.startswith("RX") if role else report.reverse,
            start_s=float(match["start"]),
            end_s=float(match["end"]),
            bytes=_bytes(match["size"], match["size_unit"]),
            rate_bps=_rate_bps(match["rate"], match["rate_unit"], match["rate_of"]),
        )
        if report.datagrams is None and _UDP_REST.match(match["rest"]):
            report.datagrams = report.jitter = True
        if report.datagrams:
            end = _UDP_END.search(match["rest"])
            # iperf3 3.1 doesn't mark a client's UDP totals; only they have a jitter.
            unmarked = "sender" if report.jitter and not row.receives else None
            row.total_of = end[1] if end else unmarked
        else:
            rest = _TCP_REST.fullmatch(match["rest"])
            if not rest:
                raise _unreadable(source, number, line)
            if rest["retransmits"]:
                row.retransmits = int(rest["retransmits"])
            if rest["cwnd"]:
                row.cwnd_bytes = _bytes(rest["cwnd"], rest["cwnd_unit"])
            row.omitted = rest["omitted"] is not None
            row.total_of = rest["end"] or report.headed or _unmarked(report, row)
    except (ValueError, OverflowError):
        raise _unreadable(source, number, line) from None
    (report.intervals if row.total_of is None else report.totals).append(row)


def _unmarked(report: _Report, row: _Row) -> str | None:
    """Return whose total a row without a mark is, where it begins with the first and ends with the last of several of its
    stream's."""
    rows = [other for other in report.intervals if other.stream == row.stream and not other.omitted]
    if len(rows) < 2 or row.omitted or row.start_s > rows[0].start_s or row.end_s < rows[-1].end_s:
        return None
    if row.end_s - row.start_s < _TOTAL_RATIO * (rows[0].end_s - rows[0].start_s):
        return None
    first = not any(other.stream == row.stream for other in report.totals)
    return "sender" if first and not (report.server or report.reverse) else "receiver"


def _read_remark(report: _Report, line: str, source: str, number: int) -> None:
    connected = _CONNECTED.search(line)
    test = _TEST.search(line)
    if headed := _HEADED.match(line):
        report.headed = {"Sent": "sender", "Received": "receiver"}[headed[1]]
    elif connected:
        report.connections.append(
            Iperf3Connection(
                int(connected[1]),
                connected[2],
                int(connected[3]),
                connected[4],
                int(connected[5]),
            )
        )
    elif test:
        report.protocol, report.num_streams = test[1], int(test[2])
        report.omit_s = float(test[3])
        report.duration_s = float(test[4]) if test[4] else None
    elif re.search(r"\[ *ID\]", line):
        if report.server and report.datagrams is None:
            # A server sends with -R alone, and then its rows are a sender's.
            report.reverse = "Jitter" in line or not ("Retr" in line or "Datagrams" in line)
        report.datagrams = "Datagrams" in line
        report.jitter = "Jitter" in line
        report.bidirectional |= "[Role]" in line
    elif command := _COMMAND.search(line):
        _read_options(report, command[1])
    elif "Connecting to host " in line:
        if report.connections or report.done:
            raise ParseError(
                source, f"line {number}", "a second run begins here; expected one run a file"
            )
        report.begun = True
    elif "Reverse mode, " in line:
        report.reverse = True
    elif line.rstrip().endswith("iperf Done."):
        report.done = True
    elif error := re.search(r"iperf3: (?:error - (.*)|((?:interrupt|parameter error) - .*))", line):
        report.begun |= not report.server and "interrupt - the server" not in line
        report.error = (error[1] or error[2]).strip()
    elif mss := re.search(r"(Control connection|TCP) MSS:? (\d+)( \(default\))?", line):
        if mss[3] or mss[1] != "TCP":
            report.mss_default_bytes = int(mss[2])
        else:
            report.mss_requested_bytes = int(mss[2])
    elif rate := re.search(r"Target Bitrate: (\d{1,18})", line):
        report.bitrate_bps = float(rate[1])
    elif cpu := _CPU.search(line):
        report.own_cpu_percent, report.other_cpu_percent = float(cpu[1]), float(cpu[2])
    elif version := _VERSION.match(line):
        report.version = version[1]
    elif congestion := re.search(r"snd_tcp_congestion (\S+)", line):
        report.congestion_control = congestion[1]
    elif time := re.search(r"Time: (\w{3}, \d+ \w{3} \d{4} [\d:]+ GMT)", line):
        try:
            report.start_time_s = parsedate_to_datetime(time[1]).timestamp()
        except (ValueError, OverflowError):
            raise _unreadable(source, number, line) from None


def _read_options(report: _Report, words: str) -> None:
    """Take from a command line, as a terminal showed it, how fast (-b) a test was told to send, and with which buffer (-w)."""
    for option, number, unit in re.findall(
        r" -([bw]) *(\d{1,9}(?:\.\d{1,9})?)([KMGT]?)\b", words, re.I
    ):
        base = 1000.0 if option == "b" else 1024.0
        amount = float(number) * base ** _SCALE[unit.upper()]
        if option == "b":
            report.bitrate_bps = amount
        elif option == "w":
            report.window_bytes = round(amount)


def _run(report: _Report) -> Iperf3Run:
    sent = _sum(report, "sender")
    received = _sum(report, "receiver")
    if report.server and not (sent.bytes and received.bytes):
        # Old versions print zeros for what only the client knows.
        sent, received = (total if total.bytes else Total() for total in (sent, received))
    protocol = report.protocol
    if protocol is None and report.datagrams is not None:
        protocol = "UDP" if report.datagrams else "TCP"
    streams = list(dict.fromkeys(row.stream for row in report.totals if row.stream != "SUM"))
    return Iperf3Run(
        version=report.version,
        start_time_s=report.start_time_s,
        protocol=protocol,
        duration_s=report.duration_s,
        omit_s=report.omit_s,
        interval_s=None,
        num_streams=report.num_streams,
        # By a server's rows it is told which way the data went: towards it, without -R.
        reverse=report.reverse != report.server,
        bidirectional=report.bidirectional,
        mss_requested_bytes=report.mss_requested_bytes,
        mss_default_bytes=report.mss_default_bytes,
        congestion_control=report.congestion_control,
        error=report.error,
        connections=tuple(report.connections),
        intervals=tuple(_interval(row) for row in report.intervals if row.stream != "SUM"),
        streams=tuple(_stream(report, stream) for stream in streams),
        sent_bytes=sent.bytes,
        sent_seconds=sent.seconds,
        sent_rate_bps=sent.rate_bps,
        retransmits=sent.retransmits,
        received_bytes=received.bytes,
        received_seconds=received.seconds,
        received_rate_bps=received.rate_bps,
        server=report.server,
        bitrate_bps=report.bitrate_bps,
        window_bytes=report.window_bytes,
        own_cpu_percent=report.own_cpu_percent,
        other_cpu_percent=report.other_cpu_percent,
    )


def _total(report: _Report, stream: str, end: str, receives: bool) -> Total | None:
    for row in report.totals:
        if row.stream == stream and row.total_of == end and row.receives == receives:
            # A run that broke off has no results from its peer; iperf3 prints zeros for them.
            if report.error is not None and not row.bytes:
                return None
            return Total(row.bytes, row.end_s - row.start_s, row.rate_bps, row.retransmits)
    return None


def _sum(report: _Report, end: str) -> Total:
    """The [SUM] line, or the only stream's line where there is no sum; all streams' where somebody left that out."""
    receives = report.reverse and not report.bidirectional
    streams = {row.stream for row in report.totals if row.receives == receives}
    if len(streams) > 1:
        streams = streams & {"SUM"} or streams
    totals = [_total(report, stream, end, receives) or Total() for stream in sorted(streams)]
    if len(totals) == 1:
        return totals[0]
    if not totals or not all(total.bytes for total in totals):
        return Total()
    return Total(
        sum(total.bytes or 0 for total in totals),
        max(total.seconds or 0.0 for total in totals),
        sum(total.rate_bps or 0.0 for total in totals),
        sum(total.retransmits or 0 for total in totals),
    )


def _interval(row: _Row) -> Iperf3Interval:
    return Iperf3Interval(
        stream_id=int(row.stream),
        start_s=row.start_s,
        end_s=row.end_s,
        bytes=row.bytes,
        rate_bps=row.rate_bps,
        retransmits=row.retransmits,
        snd_cwnd_bytes=row.cwnd_bytes,
        rtt_us=None,
        rttvar_us=None,
        pmtu_bytes=None,
        omitted=row.omitted,
        is_sender=not row.receives,
    )


def _stream(report: _Report, stream: str) -> Iperf3Stream:
    receives = next(row.receives for row in report.totals if row.stream == stream)
    sender = _total(report, stream, "sender", receives) or Total()
    receiver = _total(report, stream, "receiver", receives) or Total()
    return Iperf3Stream(
        stream_id=int(stream),
        is_sender=not receives,
        sender_bytes=sender.bytes,
        sender_seconds=sender.seconds,
        sender_rate_bps=sender.rate_bps,
        retransmits=sender.retransmits,
        max_snd_cwnd_bytes=None,
        min_rtt_us=None,
        mean_rtt_us=None,
        max_rtt_us=None,
        receiver_bytes=receiver.bytes,
        receiver_seconds=receiver.seconds,
        receiver_rate_bps=receiver.rate_bps,
    )


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * 1024.0 ** _SCALE[unit])


def _rate_bps(number: str, unit: str, of: str) -> float | None:
    if number.lstrip("-") in ("nan", "inf"):
        return None
    if of == "Bytes":
        return float(number) * 8 * 1024.0 ** _SCALE[unit]
    # Written with an exponent, 33.2 Mbit/s is the float 33.2e6; a product may miss it by a bit.
    return float(f"{number}e{3 * _SCALE[unit]}")


def _unreadable(source: str, number: int, line: str) -> ParseError:
    return ParseError(
        source, f"line {number}", f"found {excerpt(line)}; expected interval, transfer and bitrate"
    )
