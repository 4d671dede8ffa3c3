"""Connections over time, as ss saw them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.lab import FlowFiles, Lab
from measuretwice.measure.raw import name_of, text_of
from measuretwice.parse import (
    Iperf3Run,
    ParseError,
    SsSample,
    parse_iperf3_json,
    parse_iperf3_text,
    parse_ss_samples,
)
from measuretwice.tcp.window import at


@dataclass(frozen=True)
class Trace:
    """One connection as ss saw it: parallel lists, one entry a sample.

    `time_s` is Unix time, `cwnd_segments` and `ssthresh_segments` count segments of `mss_bytes`,
    `rtt_ms` is the smoothed RTT, `acked_bytes` and `retransmits` count from the connection's start;
    `lost_segments` are those that it took for lost at that moment.
    """

    node: str
    local_port: int
    mss_bytes: int | None
    time_s: list[float]
    cwnd_segments: list[int]
    ssthresh_segments: list[int | None]
    rtt_ms: list[float]
    min_rtt_ms: list[float | None]
    acked_bytes: list[int]
    retransmits: list[int]
    lost_segments: list[int] = field(default_factory=list)

    def acked_at(self, time_s: float) -> float:
        """Bytes acknowledged up to a time, by a straight line between samples."""
        return at(self.time_s, self.acked_bytes, time_s)


@dataclass(frozen=True)
class Client:
    """An iperf3 client of a run: its file, what it says, and the traces of its connections."""

    path: Path
    run: Iperf3Run
    traces: list[Trace]


def traces(lab: Lab, raw: Path) -> list[Trace]:
    """Every data connection's trace, by node and port; those of iperf3's control are left out."""
    files = lab.file.collect.flows
    if files is None:
        return []
    return [trace for client in clients(files, raw) for trace in client.traces]


def common_interval(traces: Sequence[Trace]) -> tuple[float, float]:
    """From when the last flow has begun to when the first one ends, as Unix times."""
    return max(trace.time_s[0] for trace in traces), min(trace.time_s[-1] for trace in traces)


def clients(files: FlowFiles, raw: Path) -> Iterator[Client]:
    """Every iperf3 client of a run, by node.

    ParseError where a file can't be read, a test failed, or ss has nothing of a connection.
    """
    samples: dict[Path, tuple[SsSample, ...]] = {}
    for path in sorted(raw.glob(f"*/{files.iperf3}")):
        text = text_of(path)
        parse = parse_iperf3_json if text.lstrip().startswith("{") else parse_iperf3_text
        run = parse(text, name_of(path))
        if run.error:
            raise ParseError(name_of(path), "error", f"iperf3 says: {run.error}")
        ports = [connection.local_port for connection in run.connections]
        sampled = path.parent / files.ss
        if sampled not in samples:
            samples[sampled] = parse_ss_samples(text_of(sampled), name_of(sampled))
        by_port = traces_by_port(path.parent.name, samples[sampled], set(ports))
        missing = [port for port in ports if port not in by_port]
        if missing:
            raise ParseError(name_of(sampled), "file", f"holds nothing of port {missing[0]}")
        yield Client(path, run, [by_port[port] for port in sorted(ports)])


def traces_by_port(
    node: str, samples: Sequence[SsSample], ports: Collection[int]
) -> dict[int, Trace]:
    """Return the trace of each of a node's local ports; none of one that ss has nothing of."""
    traces: dict[int, Trace] = {}
    for sample in samples:
        for socket in sample.sockets:
            port = socket.local_port
            if port is None or port not in ports or socket.rtt_ms is None:
                continue
            if port not in traces:
                traces[port] = Trace(node, port, socket.mss_bytes, [], [], [], [], [], [], [])
            trace = traces[port]
            trace.time_s.append(sample.time_s)
            trace.cwnd_segments.append(socket.cwnd_segments or 0)
            trace.ssthresh_segments.append(socket.ssthresh_segments)
            trace.rtt_ms.append(socket.rtt_ms)
            trace.min_rtt_ms.append(socket.minrtt_ms)
            trace.acked_bytes.append(socket.bytes_acked or 0)
            trace.retransmits.append(socket.retrans_total or 0)
            trace.lost_segments.append(socket.lost_segments or 0)
    return traces
