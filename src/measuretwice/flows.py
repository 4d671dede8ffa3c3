"""Runs of many flows: each flow's own values, and how they shared the link and its queue.

A flow's rate over the whole of its own life can't be compared with another's: sums over such
rates have come out above the rate of the link. So all rates here are taken over one interval, in
which every flow was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measuretwice.lab import FlowFiles, Lab, QueueAt, Value
from measuretwice.parse import (
    Iperf3Run,
    ParseError,
    Qdisc,
    QdiscSample,
    SsSample,
    parse_iperf3_json,
    parse_ping,
    parse_qdisc_samples,
    parse_ss_samples,
    parse_tc_qdiscs,
)
from measuretwice.statistics import jains_index

# With more flows than this, a run's measured values name no single one.
NAMED_FLOWS = 8


@dataclass(frozen=True)
class Trace:
    """One connection as ss saw it: parallel lists, one entry a sample.

    `time_s` is Unix time, `cwnd_segments` and `ssthresh_segments` count segments of `mss_bytes`,
    `rtt_ms` is the smoothed RTT, `acked_bytes` and `retransmits` count from the connection's start.
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

    def acked_at(self, time_s: float) -> float:
        """Bytes acknowledged up to a time, by a straight line between samples."""
        return _at(self.time_s, self.acked_bytes, time_s)


@dataclass(frozen=True)
class Flow:
    """One connection's values. `goodput_bps` is over the interval that all flows share."""

    node: str
    file: str
    local_port: int
    congestion_control: str | None
    start_s: float
    end_s: float
    goodput_bps: float
    share: float
    iperf3_goodput_bps: float | None
    retransmits: int
    rtt_min_ms: float | None
    rtt_mean_ms: float
    cwnd_mean_segments: float
    cwnd_max_segments: int
    mss_bytes: int | None
    path_rtt_ms: float | None
    to_address: str | None = None
    busy_ping_mean_ms: float | None = None
    busy_ping_max_ms: float | None = None
    busy_ping_loss_ratio: float | None = None


@dataclass(frozen=True)
class Queue:
    """A queue over time: parallel lists, one entry a sample. Counters count from the start.

    `kind` is the qdisc's, as in "red".
    """

    kind: str

    time_s: list[float]
    backlog_bytes: list[int]
    backlog_packets: list[int]
    sent_bytes: list[int]
    drops: list[int]
    marks: list[int]


def traces(lab: Lab, raw: Path) -> list[Trace]:
    """Every data connection's trace, by node and port; those of iperf3's control are left out."""
    how = lab.file.collect.flows
    if how is None:
        return []
    return [trace for _, _, its in _runs(how, raw) for trace in its]


def queue(lab: Lab, raw: Path) -> Queue | None:
    """The sampled queue; None where the lab samples none."""
    how = lab.file.collect.queue
    return _queue(how, raw) if how else None


def read_flows(
    lab: Lab, raw: Path, params: dict[str, Value]
) -> tuple[list[Flow], dict[str, float | int | None]]:
    """Every flow of a run, by node and port, and what they did together.

    The latter over the interval that all share: `goodput_bps` is their sum, `jains_index` after
    Jain, Chiu and Hawe (1984). With a sampled queue also `utilisation` (of the link's rate, all
    headers counted), `queue_mean_bytes`, `queue_max_bytes`, `queue_mean_packets`,
    `queue_delay_mean_ms`, and the drops and marks. Of a few flows, one on each node, each one's
    values too, as `<node>_goodput_bps`.

    ParseError where files can't be read, where a flow was never seen in ss, or where there is no
    moment in which all flows were there.
    """
    how = lab.file.collect.flows
    if how is None:
        return [], {}
    found = [(path, run, trace) for path, run, its in _runs(how, raw) for trace in its]
    if not found:
        raise ParseError(how.iperf3, "file", "no node has such a file, so there is no flow")
    start_s, end_s = common_interval([trace for _, _, trace in found])
    if start_s >= end_s:
        raise ParseError(how.ss, "file", "at no moment were all flows there")
    rates = [
        8 * (trace.acked_at(end_s) - trace.acked_at(start_s)) / (end_s - start_s)
        for _, _, trace in found
    ]
    total = sum(rates)
    flows = [
        _flow(how, raw, path, run, trace, rate_bps, rate_bps / total if total else 0.0)
        for (path, run, trace), rate_bps in zip(found, rates, strict=True)
    ]
    values = _together(flows, end_s - start_s)
    values |= _received(lab, flows)
    if how.rates:
        values |= _rate_rows(how.rates, raw)
    if sampled := lab.file.collect.queue:
        rate_bps = float(params[sampled.rate]) * 1e6
        values |= _queue_summary(_queue(sampled, raw), start_s, end_s, rate_bps)
        if sampled.setup:
            values |= _setup(_file(sampled, raw).parent / sampled.setup)
    return flows, values


def _received(lab: Lab, flows: list[Flow]) -> dict[str, float | int | None]:
    """How many flows each node received, by the addresses that iperf3 itself names."""
    owners = {
        end.address.split("/")[0]: end.node
        for link in lab.file.topology.links
        for end in (link.a, link.b)
    }
    nodes = [owners[flow.to_address] for flow in flows if flow.to_address in owners]
    return {f"{_key(node)}_received_flows": nodes.count(node) for node in sorted(set(nodes))}


def _rate_rows(name: str, raw: Path) -> dict[str, float | int | None]:
    """The rows that averages were taken from, and how many of them span others."""
    rows = spanning = 0
    for path in sorted(raw.glob(f"*/{name}")):
        spans: list[tuple[float, float]] = []
        for number, line in enumerate(_text(path).splitlines(), start=1):
            try:
                start_s, end_s, _ = map(float, line.split())
            except ValueError:
                raise ParseError(
                    _name(path), f"line {number}", "expected start, end and bit/s"
                ) from None
            spans.append((start_s, end_s))
        rows += len(spans)
        spanning += sum(
            sum(start <= a and b <= end for a, b in spans) > 2 for start, end in spans
        )
    return {"rate_rows": rows, "rate_rows_spanning": spanning}


def _setup(path: Path) -> dict[str, float | int | None]:
    """What red was told, as `tc -d` prints it: its limits, and the logarithm that follows from the
    bandwidth given (tc-red(8)); nothing for other disciplines."""
    for qdisc in parse_tc_qdiscs(_text(path), _name(path)):
        if qdisc.kind == "red":
            cell, ewma = qdisc.options.get("Scell_log"), qdisc.options.get("ewma")
            return {
                "red_limit_bytes": qdisc.limit_bytes,
                "red_max_bytes": qdisc.max_bytes,
                "red_cell_log": None if cell is None else int(cell),
                "red_ewma_log": None if ewma is None else int(ewma),
            }
    return {}


def common_interval(those: Sequence[Trace]) -> tuple[float, float]:
    """From when the last flow has begun to when the first one ends, as Unix times."""
    return max(one.time_s[0] for one in those), min(one.time_s[-1] for one in those)


def _together(flows: list[Flow], seconds: float) -> dict[str, float | int | None]:
    values: dict[str, float | int | None] = {
        "flows": len(flows),
        "duration_s": round(seconds, 6),
        "goodput_bps": sum(flow.goodput_bps for flow in flows),
        "jains_index": jains_index([flow.goodput_bps for flow in flows]),
        "share_max": max(flow.share for flow in flows),
        "retransmits": sum(flow.retransmits for flow in flows),
        "rtt_mean_ms": round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 6),
        "rtt_min_ms": min((f.rtt_min_ms for f in flows if f.rtt_min_ms is not None), default=None),
        "path_rtt_ms": min((f.path_rtt_ms for f in flows if f.path_rtt_ms), default=None),
    }
    if busy := [flow.busy_ping_mean_ms for flow in flows if flow.busy_ping_mean_ms is not None]:
        values |= {
            "busy_ping_mean_ms": round(sum(busy) / len(busy), 6),
            "busy_ping_max_ms": max(flow.busy_ping_max_ms or 0 for flow in flows),
            "busy_ping_loss_ratio": max(flow.busy_ping_loss_ratio or 0 for flow in flows),
        }
    nodes = [flow.node for flow in flows]
    if len(set(nodes)) == len(nodes) <= NAMED_FLOWS:
        wanted = (
            "goodput_bps", "share", "retransmits", "rtt_mean_ms", "cwnd_mean_segments",
            "mss_bytes", "path_rtt_ms",
        )  # fmt: skip
        for flow in flows:
            own = asdict(flow)
            values |= {f"{_key(flow.node)}_{name}": own[name] for name in wanted}
    return values


def _key(node: str) -> str:
    """A node's name as part of a key."""
    return node.replace("-", "_")


def _runs(how: FlowFiles, raw: Path) -> Iterator[tuple[Path, Iperf3Run, list[Trace]]]:
    """Each iperf3 client's file, what it says, and the traces of its connections."""
    samples: dict[Path, tuple[SsSample, ...]] = {}
    for path in sorted(raw.glob(f"*/{how.iperf3}")):
        run = parse_iperf3_json(_text(path), _name(path))
        if run.error:
            raise ParseError(_name(path), "error", f"iperf3 says: {run.error}")
        ports = [connection.local_port for connection in run.connections]
        sampled = path.parent / how.ss
        if sampled not in samples:
            samples[sampled] = parse_ss_samples(_text(sampled), _name(sampled))
        its = _traces(path.parent.name, samples[sampled], set(ports))
        missing = [port for port in ports if port not in its]
        if missing:
            raise ParseError(_name(sampled), "file", f"holds nothing of port {missing[0]}")
        yield path, run, [its[port] for port in sorted(ports)]


def _traces(node: str, samples: Sequence[SsSample], ports: set[int]) -> dict[int, Trace]:
    its: dict[int, Trace] = {}
    for sample in samples:
        for socket in sample.sockets:
            port = socket.local_port
            if port not in ports or socket.rtt_ms is None:
                continue
            if port not in its:
                its[port] = Trace(node, port, socket.mss_bytes, [], [], [], [], [], [], [])
            trace = its[port]
            trace.time_s.append(sample.time_s)
            trace.cwnd_segments.append(socket.cwnd_segments or 0)
            trace.ssthresh_segments.append(socket.ssthresh_segments)
            trace.rtt_ms.append(socket.rtt_ms)
            trace.min_rtt_ms.append(socket.minrtt_ms)
            trace.acked_bytes.append(socket.bytes_acked or 0)
            trace.retransmits.append(socket.retrans_total or 0)
    return its


def _flow(
    how: FlowFiles, raw: Path, path: Path, run: Iperf3Run, trace: Trace, rate_bps: float, share: float
) -> Flow:  # fmt: skip
    node, count = trace.node, len(trace.time_s)
    path_rtt_ms = None
    if how.ping:
        ping = raw / node / how.ping
        path_rtt_ms = parse_ping(_text(ping), _name(ping)).rtt_min_ms
    busy = None
    if how.ping_busy:
        ping = raw / node / how.ping_busy
        busy = parse_ping(_text(ping), _name(ping))
    mine = [one for one in run.connections if one.local_port == trace.local_port]
    ids = {one.stream_id for one in mine}
    stream = next((one for one in run.streams if one.stream_id in ids), None)
    return Flow(
        node=node,
        file=path.name,
        local_port=trace.local_port,
        congestion_control=run.congestion_control,
        start_s=trace.time_s[0],
        end_s=trace.time_s[-1],
        goodput_bps=rate_bps,
        share=share,
        iperf3_goodput_bps=stream.receiver_rate_bps if stream else None,
        retransmits=trace.retransmits[-1],
        rtt_min_ms=min((ms for ms in trace.min_rtt_ms if ms is not None), default=None),
        rtt_mean_ms=round(sum(trace.rtt_ms) / count, 6),
        cwnd_mean_segments=round(sum(trace.cwnd_segments) / count, 6),
        cwnd_max_segments=max(trace.cwnd_segments),
        mss_bytes=trace.mss_bytes,
        path_rtt_ms=path_rtt_ms,
        to_address=mine[0].remote_host if mine else None,
        busy_ping_mean_ms=busy.rtt_avg_ms if busy else None,
        busy_ping_max_ms=busy.rtt_max_ms if busy else None,
        busy_ping_loss_ratio=busy.loss_ratio if busy else None,
    )


def _file(how: QueueAt, raw: Path) -> Path:
    """The file with the samples: at its node, or at the one node that has it."""
    found = [raw / how.node / how.file] if how.node else sorted(raw.glob(f"*/{how.file}"))
    if len(found) != 1:
        raise ParseError(how.file, "file", f"{len(found)} nodes have such a file; expected one")
    return found[0]


def _queue(how: QueueAt, raw: Path) -> Queue:
    path = _file(how, raw)
    samples = parse_qdisc_samples(_text(path), _name(path))
    first = _of_kind(samples[0], how.kind, _name(path)) if samples else None
    seen = Queue(first.kind if first else "", [], [], [], [], [], [])
    for sample in samples:
        qdisc = _of_kind(sample, how.kind, _name(path))
        seen.time_s.append(sample.time_s)
        seen.backlog_bytes.append(qdisc.backlog_bytes or 0)
        seen.backlog_packets.append(qdisc.qlen_packets or 0)
        seen.sent_bytes.append(qdisc.sent_bytes or 0)
        seen.drops.append(qdisc.drops or 0)
        seen.marks.append(_marks(qdisc))
    if len(seen.time_s) < 2:
        raise ParseError(_name(path), "file", "fewer than two samples")
    return seen


def _marks(qdisc: Qdisc) -> int:
    """Packets that were marked instead of dropped: red, codel and its kin, and cake by its tins."""
    tins = qdisc.stats.get("tins") or []
    kinds = [qdisc.stats, *tins] if isinstance(tins, list) else [qdisc.stats]
    marks = sum(int(one.get("ecn_mark") or 0) for one in kinds if isinstance(one, Mapping))
    return (qdisc.marked_packets or 0) + marks


def _of_kind(sample: QdiscSample, kind: str | None, source: str) -> Qdisc:
    """The qdisc of this kind; without one the innermost, which is no other's parent."""
    parents = {(qdisc.parent or "").split(":")[0] for qdisc in sample.qdiscs}
    for qdisc in sample.qdiscs:
        if qdisc.kind == kind or (not kind and qdisc.handle.split(":")[0] not in parents):
            return qdisc
    if not kind:
        raise ParseError(source, "file", "there is no qdisc in it")
    kinds = ", ".join(qdisc.kind for qdisc in sample.qdiscs) or "none"
    raise ParseError(source, "file", f"there is no {kind} qdisc in it (there are: {kinds})")


def _queue_summary(
    seen: Queue, start_s: float, end_s: float, rate_bps: float
) -> dict[str, float | int | None]:
    inside = [n for n, time_s in enumerate(seen.time_s) if start_s <= time_s <= end_s]
    if len(inside) < 2:
        raise ParseError("queue samples", "file", "there are none while all flows were there")
    backlog = [seen.backlog_bytes[n] for n in inside]
    first, last = inside[0], inside[-1]
    seconds = seen.time_s[last] - seen.time_s[first]
    mean_bytes = sum(backlog) / len(backlog)
    return {
        "utilisation": 8 * (seen.sent_bytes[last] - seen.sent_bytes[first]) / seconds / rate_bps,
        "queue_mean_bytes": mean_bytes,
        "queue_max_bytes": max(backlog),
        "queue_mean_packets": sum(seen.backlog_packets[n] for n in inside) / len(inside),
        "queue_delay_mean_ms": 8e3 * mean_bytes / rate_bps,
        "queue_drops": seen.drops[-1] - seen.drops[0],
        "queue_marks": seen.marks[-1] - seen.marks[0],
        # Values are numbers, so a kind is a name with a one.
        f"queue_is_{seen.kind}": 1,
    }


def _at(times: Sequence[float], values: Sequence[float], time_s: float) -> float:
    """A value between two samples, by a straight line; at the ends, the first or the last."""
    if time_s <= times[0]:
        return values[0]
    for n in range(1, len(times)):
        if time_s <= times[n]:
            part = (time_s - times[n - 1]) / (times[n] - times[n - 1])
            return values[n - 1] + part * (values[n] - values[n - 1])
    return values[-1]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
