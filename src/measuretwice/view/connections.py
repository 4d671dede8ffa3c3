"""ss made readable: which connections a file has, and the one with the data, field by field."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from measuretwice.base.errors import UserError
from measuretwice.measure.imported import busiest_port
from measuretwice.parse import (
    Iperf3Run,
    ParseError,
    SsSample,
    SsSocket,
    parse_ss,
    parse_ss_samples,
)
from measuretwice.parse.fields import UNKNOWN
from measuretwice.parse.formats import format_of
from measuretwice.parse.ss_fields import FIELDS, SS
from measuretwice.view.blocks import Block, Cell, Row
from measuretwice.view.source import RawFile

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
    """Does each sample stand after its time?"""
    return text.startswith("# t=")


def read_log(file: RawFile, files: Sequence[RawFile]) -> Log:
    """Read a file of ss. The data's ports are those that iperf3's files of the same node name;
    without any, the port that sent most. ParseError where it is none of ss's."""
    text = file.read()
    samples = samples_of(text, file.name)
    there = {socket.local_port for sample in samples for socket in sample.sockets}
    for name, ports in data_ports(file.node, files).items():
        if here := tuple(port for port in ports if port in there):
            return Log(file, text, samples, here, f"{name} names it ('connected')")
    return Log(file, text, samples, tuple(busiest_port(samples)), "it sent most of those here")


def samples_of(
    text: str, source: str, ports: Collection[int] | None = None
) -> tuple[SsSample, ...]:
    """The samples of a text of ss; where no line says when, one at time 0. With `ports`, only these."""
    if is_sampled(text):
        return parse_ss_samples(text, source, allow_truncated_tail=True, local_ports=ports)
    return (SsSample(0.0, parse_ss(text, source)),)


def data_ports(node: str, files: Sequence[RawFile]) -> dict[str, list[int]]:
    """By the name of each of a node's iperf3 files, the ports of its data connections."""
    found = {
        file.name: ports_in(file)
        for file in files
        # In a live lab a person may have called it anything.
        if file.node == node and ("iperf3" in file.base or file.base.endswith(".json"))
    }
    return {name: ports for name, ports in found.items() if ports}


def ports_in(file: RawFile) -> list[int]:
    """The sender's ports of iperf3's data connections; none where the file can't say."""
    try:
        run = format_of(text := file.read(), file.name).parse(text, file.name)
    except (ParseError, UserError):
        return []
    connections = run.connections if isinstance(run, Iperf3Run) else ()
    return [connection.local_port for connection in connections]


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
    notes = [f"{len(log.samples)} samples"] if is_sampled(log.text) else []
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
