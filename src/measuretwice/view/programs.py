"""ping, iperf3 and ss made readable; of ss which connections a file has, and the one with the data, field by field."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from measuretwice.base.errors import UserError
from measuretwice.measure.imported import busiest_port
from measuretwice.parse import (
    Iperf3Interval,
    Iperf3Run,
    ParseError,
    PingRun,
    SsSample,
    SsSocket,
    parse_ping,
    parse_ss_samples,
)
from measuretwice.parse.fields import UNKNOWN, Meaning, printed_by
from measuretwice.parse.formats import format_of
from measuretwice.parse.iperf3 import ASKED, IPERF3
from measuretwice.parse.ping import PING
from measuretwice.parse.ss import as_sampled
from measuretwice.parse.ss_fields import FIELDS, SS
from measuretwice.view import Block, Cell, Row
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
    return [
        Block(_title(file, "ping"), f"{file.name}, line {max(lines, default=1)}", ("value",), rows)
    ]


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
        run
        for run in (content if isinstance(content, tuple) else (content,))
        if isinstance(run, Iperf3Run)
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
    shown = run.intervals[:MOST_INTERVALS]
    several = len({interval.stream_id for interval in run.intervals}) > 1
    rows = [
        Row(_interval_name(interval, several), _interval_values(interval)) for interval in shown
    ]
    more = len(run.intervals) - len(shown)
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


# What is summed up over a connection's samples.
OVER_TIME = "cwnd ssthresh unacked rtt minrtt mss lost send pacing_rate delivery_rate".split()
# More connections than that are counted only.
MOST_LISTED = 12


@dataclass(frozen=True)
class Log:
    """A file of ss: its samples, and which of its connections carry the test's data.

    `why` says how these were told from others.
    """

    file: RawFile
    text: str
    samples: tuple[SsSample, ...]
    ports: tuple[int, ...]
    why: str


def is_sampled(text: str) -> bool:
    """Return whether each sample stands after its time."""
    return text.startswith("# t=")


def read_log(file: RawFile, files: Sequence[RawFile]) -> Log:
    """Read a file of ss. The data's ports are those that iperf3's files of the same node name;
    without any, the port that sent most. ParseError where it is none of ss's."""
    text = file.read()
    samples = samples_of(text, file.name)
    there = {socket.local_port for sample in samples for socket in sample.sockets}
    for name, ports in data_ports(file.node, files).items():
        if own_ports := tuple(port for port in ports if port in there):
            return Log(file, text, samples, own_ports, f"{name} names it ('connected')")
    return Log(file, text, samples, tuple(busiest_port(samples)), "it sent most of those here")


def samples_of(
    text: str, source: str, ports: Collection[int] | None = None
) -> tuple[SsSample, ...]:
    """The samples of a text of ss; where no line says when, at time 0. With `ports`, only these."""
    sampled = as_sampled(text, source)
    return parse_ss_samples(sampled, source, allow_truncated_tail=True, local_ports=ports)


def data_ports(node: str, files: Sequence[RawFile]) -> dict[str, list[int]]:
    """By the name of each of a node's iperf3 files, the ports of its data connections; where it sent any, of these alone."""
    by_name = {
        file.name: ends_in(file)
        for file in files
        # In a live lab a person may have called it anything.
        if file.node == node and ("iperf3" in file.base or file.base.endswith(".json"))
    }
    # All connections to a server share its port, iperf3's control connection, too.
    sending = any(ends.ports and ends.sent for ends in by_name.values())
    return {
        name: ends.ports
        for name, ends in by_name.items()
        if ends.ports and (ends.sent or not sending)
    }


class Ends(NamedTuple):
    """A node's own ports of iperf3's data connections, and whether it sent on them."""

    ports: list[int]
    sent: bool


def ends_in(file: RawFile) -> Ends:
    """The ports of iperf3's data connections; none where the file can't say."""
    try:
        run = format_of(text := file.read(), file.name).parse(text, file.name)
    except (ParseError, UserError):
        return Ends([], False)
    if not isinstance(run, Iperf3Run):
        return Ends([], False)
    sent = bool(run.bidirectional) or run.server == bool(run.reverse)
    return Ends([connection.local_port for connection in run.connections], sent)


def ss_blocks(file: RawFile, files: Sequence[RawFile]) -> list[Block]:
    """Return blocks: the connections in a file, the first with data in its last sample, and over all."""
    log = read_log(file, files)
    if not any(sample.sockets for sample in log.samples):
        raise ParseError(file.name, "file", "there is no connection in it")
    blocks = [_connections(log)]
    if log.ports:
        port = log.ports[0]
        of_port = [
            (sample.time_s, socket)
            for sample in log.samples
            for socket in sample.sockets
            if socket.local_port == port
        ]
        blocks.append(_last(log, port, of_port[-1][1]))
        if len(of_port) > 1:
            blocks.append(_over_time(log, port, [socket for _, socket in of_port]))
    return blocks


def _connections(log: Log) -> Block:
    counts: dict[int | None, int] = {}
    last: dict[int | None, SsSocket] = {}
    for sample in log.samples:
        for socket in sample.sockets:
            counts[socket.local_port] = counts.get(socket.local_port, 0) + 1
            last[socket.local_port] = socket
    columns = ("peer", "algorithm", "in samples", "bytes_acked", "shown below")
    rows = [
        Row(
            f"port {port}",
            (
                f"{socket.peer_address}:{socket.peer_port}",
                socket.congestion_control,
                counts[port],
                socket.bytes_acked,
                "yes" if port in log.ports[:1] else "no",
            ),
        )
        for port, socket in list(last.items())[:MOST_LISTED]
    ]
    notes = [f"{len(log.samples)} samples"] if len(log.samples) > 1 else []
    if len(last) > MOST_LISTED:
        notes.append(f"{len(last) - MOST_LISTED} more connections")
    if log.ports:
        notes.append(f"port {log.ports[0]} is shown below: {log.why}")
    node = f"{log.file.node}: " if log.file.node else ""
    return Block(
        f"{node}connections in {log.file.base}", log.file.name, columns, tuple(rows), tuple(notes)
    )


def _last(log: Log, port: int, socket: SsSocket) -> Block:
    rows = [
        Row(name, (value,), SS[name])
        for name, field in FIELDS.items()
        if (value := _value(getattr(socket, field))) is not None
    ]
    rows += [Row(name, (value or "yes",), UNKNOWN) for name, value in socket.other.items()]
    for name, value in (socket.algorithm or {}).items():
        rows.append(Row(f"{socket.congestion_control}:{name}", (value,), UNKNOWN))
    where = f"{log.file.name}, line {_line_of(log.text, port)}"
    title = f"port {port} to {socket.peer_address}:{socket.peer_port}, last sample"
    note = "a field that isn't here ss left out: most of them while they are 0"
    return Block(title, where, ("value",), tuple(rows), (note,))


def _value(value: object) -> Cell:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return value if isinstance(value, int | float | str) else None


def _over_time(log: Log, port: int, sockets: Sequence[SsSocket]) -> Block:
    rows = []
    for name in OVER_TIME:
        values = [
            value for socket in sockets if (value := getattr(socket, FIELDS[name])) is not None
        ]
        if values:
            mean = round(sum(values) / len(values), 3)
            spread = (min(values), mean, max(values), values[-1], len(values))
            rows.append(Row(name, spread, SS[name]))
    columns = ("smallest", "mean", "largest", "last", "samples")
    note = "the mean is over the samples that have the field; each sample counts the same"
    return Block(f"port {port}, over its samples", log.file.name, columns, tuple(rows), (note,))


def _line_of(text: str, port: int) -> int:
    """The number of the last line that names a local port."""
    lines = text.splitlines()
    for number in range(len(lines), 0, -1):
        words = lines[number - 1].split()
        if any(word.endswith(f":{port}") for word in words[:5]):
            return number
    return len(lines)
