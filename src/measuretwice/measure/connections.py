"""Data connections: what iperf3 says of each, its trace as ss saw it, and its halvings by the kernel's events."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.lab import Lab
from measuretwice.lab.schema.network import CrowdFiles, FlowFiles
from measuretwice.measure.fields import Measured
from measuretwice.measure.raw import key_of, name_of, node_of_address, rows_of, text_of
from measuretwice.parse import (
    Iperf3Connection,
    Iperf3Run,
    ParseError,
    SsSample,
    SsSocket,
    parse_iperf3_json,
    parse_ss,
    parse_ss_samples,
)
from measuretwice.parse.iperf3_text import parse_abridged
from measuretwice.tcp.traces import interpolate

# include/uapi/linux/tcp.h: TCP_CA_Open and TCP_CA_Disorder; what comes after has a smaller window.
LAST_NORMAL_STATE = 1
DAY_S = 86_400.0
STALL_SAMPLES = 3
_RTT = re.compile(r" rtt:([\d.]+)/")
_COUNTS = re.compile(r" (snd_wnd|cwnd|unacked|mss|bytes_acked):(\d+)")
# What holds a connection up: its own window, its receiver's, its program, its buffer. A window with so much in it is full.
WINDOW, RECEIVER, PROGRAM, BUFFER = "cwnd", "snd_wnd", "app_limited", "sndbuf_limited"
FULL_WINDOW = 0.75


@dataclass(frozen=True)
class SsHistory:
    """A connection over all samples: its `last` line, the time between its first and its last line, the numbers of these
    two samples, the largest window that its peer offered and the usual one, and the longest time in which nothing new was
    acknowledged while that was sampled three times at least.

    `held_up_by` has how many of its samples show what held it up: WINDOW, RECEIVER, PROGRAM, BUFFER, or None where none of these.
    `rtts` are its round-trip times (ms) with their Unix times.
    """

    last: SsSocket
    alive_s: float
    seen: tuple[int, int]
    window_max_bytes: int | None
    window_usual_bytes: int | None
    stalled_s: float
    held_up_by: Mapping[str | None, int]
    rtts: tuple[tuple[float, float], ...]


@dataclass
class _History:
    """What is noted of a connection, sample by sample; only its last line is read in full."""

    first: tuple[float, int]
    last: tuple[float, int] = (0.0, 0)
    line: str = ""
    queued: bool = False
    windows: list[int] = field(default_factory=list)
    rtts: list[tuple[float, float]] = field(default_factory=list)
    held_up_by: Counter[str | None] = field(default_factory=Counter)
    acked: int = -1
    same_since_s: float = 0.0
    same_samples: int = 0
    stalled_s: float = 0.0

    def add(self, now_s: float, number: int, line: str, has_queue: bool) -> None:
        self.last, self.line, self.queued = (now_s, number), line, self.queued or has_queue
        counts = {name: int(count) for name, count in _COUNTS.findall(line)}
        if window := counts.get("snd_wnd"):
            self.windows.append(window)
        if rtt_ms := _RTT.search(line):
            self.rtts.append((now_s, float(rtt_ms[1])))
        if "cwnd" in counts:
            self.held_up_by[_held_up_by(counts, line)] += 1
        if "bytes_acked" not in counts:
            return
        if counts["bytes_acked"] != self.acked:
            self.acked, self.same_since_s, self.same_samples = counts["bytes_acked"], now_s, 0
        self.same_samples += 1
        if self.same_samples >= STALL_SAMPLES:
            self.stalled_s = max(self.stalled_s, now_s - self.same_since_s)


def _held_up_by(counts: Mapping[str, int], line: str) -> str | None:
    """Return what held a connection up at one moment, by what was in flight; None where nothing tells it.

    To the kernel a program that waits for room in the send buffer has nothing to send, too.
    """
    in_flight = counts.get("unacked", 0)
    if in_flight >= FULL_WINDOW * counts["cwnd"]:
        return WINDOW
    if in_flight * counts.get("mss", 0) >= FULL_WINDOW * counts.get("snd_wnd", math.inf):
        return RECEIVER
    if " app_limited" in line:
        return BUFFER if " sndbuf_limited:" in line else PROGRAM
    return None


def histories_of(text: str, source: str) -> list[SsHistory]:
    """Return each connection that sent data, from samples with a line a socket.

    Before iproute2 4.19 there is no `bytes_sent`: then it is one that had more acknowledged than its SYN. Before 4.1
    there is no `bytes_acked` either: then it is one that ever had something in its queue. Only each connection's last
    line is read in full: a run with a thousand has tens of thousands of lines. ParseError where such a line isn't one of ss.
    """
    by_ends: dict[tuple[str, str], _History] = {}
    now_s, number = 0.0, 0
    for line in text.splitlines():
        if line.startswith("# t="):
            now_s, number = float(line[4:].split()[0]), number + 1
            continue
        words = line.split(maxsplit=5)
        if len(words) == 6:
            history = by_ends.setdefault((words[3], words[4]), _History((now_s, number)))
            history.add(now_s, number, line, words[2].isdecimal() and words[2] != "0")
    sent, acked = " bytes_sent:" in text, " bytes_acked:" in text

    def is_sender(history: _History) -> bool:
        if sent:
            return " bytes_sent:" in history.line
        return history.acked > 1 if acked else history.queued

    return [
        SsHistory(
            parse_ss(history.line + "\n", source)[0],
            history.last[0] - history.first[0],
            (history.first[1], history.last[1]),
            max(history.windows, default=None),
            statistics.median_low(history.windows) if history.windows else None,
            history.stalled_s,
            history.held_up_by,
            tuple(history.rtts),
        )
        for history in by_ends.values()
        if is_sender(history)
    ]


@dataclass(frozen=True)
class Trace:
    """One connection as ss saw it: parallel lists, one entry a sample.

    `time_s` is Unix time, `cwnd_segments` and `ssthresh_segments` count segments of `mss_bytes`,
    `rtt_ms` is the smoothed RTT, `acked_bytes`, `retransmits` and `data_segments` count from the
    connection's start; `lost_segments` are those that it took for lost at that moment.
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
    data_segments: list[int] = field(default_factory=list)

    def acked_at(self, time_s: float) -> float:
        """Return the bytes acknowledged up to a Unix time, by a straight line between samples."""
        return interpolate(self.time_s, self.acked_bytes, time_s)


@dataclass(frozen=True)
class Connection:
    """One data connection: its client's iperf3 file, what that says, its trace, and its last state in ss."""

    path: Path
    run: Iperf3Run
    ends: Iperf3Connection
    trace: Trace
    last: SsSocket

    @property
    def rate_bps(self) -> float | None:
        """The rate over its own whole life, by iperf3's receiver."""
        streams = (s for s in self.run.streams if s.stream_id == self.ends.stream_id)
        return next((stream.receiver_rate_bps for stream in streams), None)


def traces(lab: Lab, raw: Path) -> list[Trace]:
    """Return the trace of every data connection, by node and port; none where the lab has a flow only.

    ParseError as read_connections.
    """
    files = lab.file.collect.flow_files
    return [connection.trace for connection in read_connections(files, raw)] if files else []


def common_interval(traces: Sequence[Trace]) -> tuple[float, float]:
    """Return from when the last flow has begun to when the first one ends, as Unix times."""
    return max(trace.time_s[0] for trace in traces), min(trace.time_s[-1] for trace in traces)


def read_connections(files: FlowFiles | CrowdFiles, raw: Path) -> list[Connection]:
    """Return every data connection under `raw`/<node>/, by node and port; iperf3's control connections are left out.

    ParseError where a file can't be read. Of a few flows each must be there: ParseError, too, where an
    iperf3 client failed or ss has nothing of a connection. Of many those are left out, and so are
    samples before the first ACK.
    """
    many = isinstance(files, CrowdFiles)
    by_folder: dict[Path, list[tuple[Path, Iperf3Run]]] = defaultdict(list)
    for path in sorted(raw.glob(f"*/{files.iperf3}")):
        text = text_of(path)
        parse = parse_iperf3_json if text.lstrip().startswith("{") else parse_abridged
        run = parse(text, name_of(path))
        if not run.error:
            by_folder[path.parent].append((path, run))
        elif not many:
            raise ParseError(name_of(path), "error", what_iperf3_says(run.error))
    found = []
    for folder, clients in by_folder.items():
        log = folder / files.ss
        samples = parse_ss_samples(text_of(log), name_of(log))
        ports = {ends.local_port for _, run in clients for ends in run.connections}
        seen = _by_ends(folder.name, samples, ports, many=many)
        for path, run in clients:
            for ends in run.connections:
                if match := seen.get((ends.local_port, ends.remote_port if many else None)):
                    found.append(Connection(path, run, ends, *match))
                elif not many:
                    problem = f"holds nothing of port {ends.local_port}, from which {path.name} beside it has its data go"
                    raise ParseError(
                        name_of(log), "file", f"{problem}: one of them is of another run"
                    )
    return sorted(found, key=lambda c: (c.trace.node, c.ends.local_port, c.ends.remote_port))


def received(lab: Lab, addresses: Sequence[str | None]) -> Measured:
    """Return how many flows each node received, by the addresses that iperf3 itself names."""
    owners = node_of_address(lab)
    nodes = [owners[address] for address in addresses if address in owners]
    return {f"{key_of(node)}_received_flows": nodes.count(node) for node in sorted(set(nodes))}


def what_iperf3_says(error: str) -> str:
    """Return in words why a test failed; of an algorithm that it couldn't have, what else may be the reason."""
    why = (
        ": the kernel doesn't have it, or a route has another one locked (ip route: congctl)"
        if "TCP_CONGESTION" in error
        else ""
    )
    return f"iperf3 says: {error}{why}"


def traces_by_port(
    node: str, samples: Sequence[SsSample], ports: Collection[int]
) -> dict[int, Trace]:
    """Return the trace of each of a node's local ports; none of one that ss has nothing of."""
    return {port: trace for (port, _), (trace, _) in _by_ends(node, samples, ports).items()}


def _by_ends(
    node: str, samples: Sequence[SsSample], ports: Collection[int], *, many: bool = False
) -> dict[tuple[int, int | None], tuple[Trace, SsSocket]]:
    """The trace and the last state of the connections from these local ports, by that port, and None.

    Of many flows two may begin at one port, to two servers: these are by the other end's port, too.
    """
    traces: dict[tuple[int, int | None], Trace] = {}
    last: dict[tuple[int, int | None], SsSocket] = {}
    for sample in samples:
        for socket in sample.sockets:
            port = socket.local_port
            if port is None or port not in ports or socket.rtt_ms is None:
                continue
            if many and (socket.bytes_acked is None or socket.peer_port is None):
                continue
            ends = port, socket.peer_port if many else None
            if ends not in traces:
                traces[ends] = Trace(node, port, socket.mss_bytes, [], [], [], [], [], [], [])
            trace, last[ends] = traces[ends], socket
            trace.time_s.append(sample.time_s)
            trace.cwnd_segments.append(socket.cwnd_segments or 0)
            trace.ssthresh_segments.append(socket.ssthresh_segments)
            trace.rtt_ms.append(socket.rtt_ms)
            trace.min_rtt_ms.append(socket.minrtt_ms)
            trace.acked_bytes.append(socket.bytes_acked or 0)
            trace.retransmits.append(socket.retrans_total or 0)
            trace.lost_segments.append(socket.lost_segments or 0)
            trace.data_segments.append(socket.data_segs_out or 0)
    return {ends: (trace, last[ends]) for ends, trace in traces.items()}


def _event(line: str) -> tuple[float, int, int]:
    time_text, port_text, state_text = line.split()
    return float(time_text), int(port_text), int(state_text)


def read_halvings(
    events_file: str, raw: Path, start_s: float, end_s: float
) -> tuple[dict[str, dict[int, int]], int]:
    """Return each port's halvings between two Unix times, by node; nothing of a node without events. And how many
    there were before, of all. A connection that leaves the states Open and Disorder for CWR, Recovery or Loss
    takes a smaller window, once.

    ParseError where events were lost. The first that a node's kernel notes is what gives them their
    time of day: where the buffer was too small and it is gone, all have the time since boot.
    """
    by_node: dict[str, dict[int, int]] = {}
    earlier = 0
    for path in sorted(raw.glob(f"*/{events_file}")):
        counts: dict[int, int] = defaultdict(int)
        states: dict[int, int] = {}
        events = rows_of(path, _event, "time, port and state")
        for line, (time_s, port, state) in enumerate(events, start=1):
            if time_s < start_s - DAY_S:
                raise ParseError(
                    name_of(path),
                    f"line {line}",
                    "the first events were lost, and with them the time of day: there was no room "
                    "for all; give them more with --set trace_bytes=...",
                )
            before = states.get(port, 0)
            if before <= LAST_NORMAL_STATE < state and time_s <= end_s:
                if time_s < start_s:
                    earlier += 1
                else:
                    counts[port] += 1
            states[port] = state
        by_node[path.parent.name] = dict(counts)
    return by_node, earlier
