"""ping and iperf3 made readable."""

from __future__ import annotations

from collections.abc import Iterator

from measuretwice.parse import Iperf3Interval, Iperf3Run, ParseError, PingRun, parse_ping
from measuretwice.parse.fields import Meaning, printed_by
from measuretwice.parse.formats import format_of
from measuretwice.parse.iperf3 import ASKED, IPERF3
from measuretwice.parse.ping import PING
from measuretwice.view.blocks import Block, Cell, Row
from measuretwice.view.source import RawFile

# More intervals than that are left to --text and ./lab plot --over-time.
MOST_INTERVALS = 40
# A connection each: of more, the sums only.
MOST_STREAMS = 8


def ping_blocks(file: RawFile) -> list[Block]:
    """Return ping's counts and times, and over its replies the times of the first and last ten."""
    text = file.read()
    ping = parse_ping(text, file.name)
    values: dict[str, Cell] = {
        name: getattr(ping, field) for name, field in printed_by(PingRun).items()
    }
    values["target"] = ping.address or ping.target
    values["loss"] = None if ping.loss_ratio is None else round(ping.loss_ratio, 9)
    rows = tuple(Row(name, (value,), PING[name]) for name, value in values.items())
    lines = [n for n, line in enumerate(text.splitlines(), 1) if "packets transmitted" in line]
    return [Block(_title(file, "ping"), f"{file.name}, line {lines[-1]}", ("value",), rows)]


def iperf3_blocks(file: RawFile) -> list[Block]:
    """Return what was asked of iperf3, what both sides counted, and the intervals if they are few."""
    run = read_iperf3(file)
    blocks = [
        Block(_title(file, "what was asked"), file.name, ("value",), tuple(_asked(run))),
        Block(
            _title(file, "over the whole test"),
            f"{file.name}, 'end'",
            ("sent", "received"),
            tuple(_sums(run)),
            ("sent is the sending side's own count and time, received the other's",),
        ),
    ]
    if len(run.streams) > 1:
        blocks.append(_streams(file, run))
    if run.intervals:
        blocks.append(_intervals(file, run))
    return blocks


def read_iperf3(file: RawFile) -> Iperf3Run:
    """Read iperf3's JSON or text; ParseError where it is neither, or the test failed."""
    text = file.read()
    content = format_of(text, file.name).parse(text, file.name)
    # A server's text has each test that it served.
    runs = [
        one
        for one in (content if isinstance(content, tuple) else (content,))
        if isinstance(one, Iperf3Run)
    ]
    if len(runs) != 1:
        raise ParseError(file.name, "file", "none of iperf3's, or of several tests")
    if runs[0].error and text.lstrip().startswith("{"):
        raise ParseError(file.name, "error", f"iperf3 says: {runs[0].error}")
    return runs[0]


def _title(file: RawFile, what: str) -> str:
    return f"{file.node}: {what}" if file.node else what


def _asked(run: Iperf3Run) -> Iterator[Row]:
    for name, field in ASKED.items():
        if (value := getattr(run, field)) is not None:
            yield Row(name, (value,), IPERF3[name])
    for connection in run.connections[:MOST_STREAMS]:
        from_to = (
            f"{connection.local_host}:{connection.local_port} to "
            f"{connection.remote_host}:{connection.remote_port}"
        )
        yield Row(
            f"connected {connection.stream_id}",
            (from_to,),
            Meaning("", "a data connection", "iperf3(1)"),
        )


def _sums(run: Iperf3Run) -> Iterator[Row]:
    sums: dict[str, tuple[Cell, Cell]] = {
        "bytes": (run.sent_bytes, run.received_bytes),
        "seconds": (run.sent_seconds, run.received_seconds),
        "bits_per_second": (run.sent_rate_bps, run.received_rate_bps),
        "retransmits": (run.retransmits, None),
    }
    for name, values in sums.items():
        if any(value is not None for value in values):
            yield Row(name, values, IPERF3[name])


def _streams(file: RawFile, run: Iperf3Run) -> Block:
    columns = ("sent bytes", "received bytes", "received bit/s", "retransmits")
    rows = [
        Row(
            f"stream {stream.stream_id}",
            (
                stream.sender_bytes,
                stream.receiver_bytes,
                stream.receiver_rate_bps,
                stream.retransmits,
            ),
        )
        for stream in run.streams[:MOST_STREAMS]
    ]
    more = len(run.streams) - len(rows)
    notes = (f"{more} more streams",) if more > 0 else ()
    return Block(
        _title(file, "each connection"), f"{file.name}, 'end'", columns, tuple(rows), notes
    )


def _intervals(file: RawFile, run: Iperf3Run) -> Block:
    columns = ("bytes", "bit/s", "sent again", "cwnd (bytes)", "rtt (ms)")
    kept = run.intervals[:MOST_INTERVALS]
    several = len({interval.stream_id for interval in run.intervals}) > 1
    rows = [Row(_interval_name(each, several), _interval_values(each)) for each in kept]
    more = len(run.intervals) - len(kept)
    notes = (f"{more} more intervals, to {run.intervals[-1].end_s:g} s",) if more else ()
    return Block(
        _title(file, "interval by interval"),
        f"{file.name}, 'intervals'",
        columns,
        tuple(rows),
        notes,
    )


def _interval_name(interval: Iperf3Interval, several: bool) -> str:
    stream = f", stream {interval.stream_id}" if several else ""
    omitted = ", omitted" if interval.omitted else ""
    return f"{interval.start_s:.2f} to {interval.end_s:.2f} s{stream}{omitted}"


def _interval_values(interval: Iperf3Interval) -> tuple[Cell, ...]:
    rate = None if interval.rate_bps is None else round(interval.rate_bps)
    rtt = None if interval.rtt_us is None else interval.rtt_us / 1e3
    return (interval.bytes, rate, interval.retransmits, interval.snd_cwnd_bytes, rtt)
