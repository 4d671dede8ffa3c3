"""Runs of many flows: each flow's own values, and how they shared the link and its queue.

A flow's rate over the whole of its own life can't be compared with another's: sums over such
rates have come out above the rate of the link. So all rates here are taken over one interval, in
which every flow was there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from measuretwice.lab import FlowFiles, Lab, QueueAt, SenderAt, Value
from measuretwice.measure.facts import (
    key_of,
    marks,
    name_of,
    rate_rows,
    received,
    red_setup,
    text_of,
)
from measuretwice.parse import (
    Iperf3Run,
    ParseError,
    Qdisc,
    QdiscSample,
    SsSample,
    parse_iperf3_json,
    parse_iperf3_text,
    parse_ping,
    parse_qdisc_samples,
    parse_ss_samples,
    parse_tc_qdiscs,
)
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.steady_state import lowest_tenth_bps, of_table, read_table, settled
from measuretwice.tcp.window import Rows, at, convergence_s, decreases, over_truth, read_rows

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
        return at(self.time_s, self.acked_bytes, time_s)


@dataclass(frozen=True)
class Flow:
    """One connection's values. `goodput_bps` is over the interval that all flows share.

    `decreases` counts how often ssthresh changed after the first slow start; of these,
    `kept_ratio` is the median of ssthresh over the window before, which `decrease_window_segments`
    is the median of.
    """

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
    decreases: int
    kept_ratio: float | None
    decrease_window_segments: float | None
    to_address: str | None = None
    busy_ping_mean_ms: float | None = None
    busy_ping_max_ms: float | None = None
    busy_ping_loss_ratio: float | None = None


@dataclass(frozen=True)
class Queue:
    """A queue over time: parallel lists, one entry a sample. Counters count from the start.

    `kind` is the qdisc's, as in "red"; `limit_bytes` the room in it, by tc's own word, None where it
    counts packets.
    """

    kind: str
    limit_bytes: int | None

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
    values |= received(lab, [flow.to_address for flow in flows])
    if how.rates:
        values |= rate_rows(raw, how.rates)
    acked = [(trace.time_s, trace.acked_bytes) for _, _, trace in found]
    values["convergence_s"] = convergence_s(acked, start_s, end_s) if len(found) > 1 else None
    if how.windows:
        values |= _windows_taken(raw, how.windows, [trace for _, _, trace in found])
    if one := lab.file.collect.one_sender:
        values |= _one_sender(one, raw, params, flows, [trace for _, _, trace in found])
    if sampled := lab.file.collect.queue:
        rate_bps = float(params[sampled.rate]) * 1e6
        seen = _queue(sampled, raw)
        values |= _queue_summary(seen, start_s, end_s, rate_bps)
        values |= _in_bdp(seen, rate_bps, flows)
        at_node = _file(sampled, raw).parent
        if sampled.lengths:
            values |= _lengths_taken(at_node / sampled.lengths, seen)
        if sampled.setup:
            values |= red_setup(at_node / sampled.setup)
    return flows, values


def _one_sender(
    how: SenderAt,
    raw: Path,
    params: dict[str, Value],
    flows: Sequence[Flow],
    those: Sequence[Trace],
) -> dict[str, float | int | None]:
    """One node's flow once it has settled, and what was noted of it."""
    own = [
        (flow, trace) for flow, trace in zip(flows, those, strict=True) if trace.node == how.node
    ]
    if len(own) != 1:
        raise ParseError(how.node, "file", f"has {len(own)} flows; expected one")
    flow, trace = own[0]
    start_s, end_s = common_interval(those)
    values = settled(trace, max(start_s, trace.time_s[0] + float(params[how.average_from])), end_s)
    # Values are numbers, so a name is a name with a one.
    values[f"uses_{flow.congestion_control}"] = 1
    values |= {
        "lowest_tenth_bps": lowest_tenth_bps(trace),
        "sender_path_rtt_ms": flow.path_rtt_ms,
        "sender_retransmits": flow.retransmits,
    }
    if how.table:
        table = raw / how.node / how.table
        try:
            values |= of_table(read_table(text_of(table)), trace)
        except ValueError as error:
            raise ParseError(name_of(table), "file", str(error)) from None
    if how.queue and (raw / how.node / how.queue).is_file():
        path = raw / how.node / how.queue
        for qdisc in parse_tc_qdiscs(text_of(path), name_of(path)):
            values[f"host_queue_is_{qdisc.kind}"] = 1
    return values


def _windows_taken(raw: Path, file: str, those: Sequence[Trace]) -> dict[str, float | int | None]:
    """What a person took from iperf3's text, against ss: the worst of all nodes that have it."""
    taken: list[tuple[Rows, float | None]] = []
    for trace in those:
        path = raw / trace.node / file
        if path.is_file() and trace.mss_bytes:
            rows = read_rows(text_of(path))
            kbytes = [cwnd * trace.mss_bytes / 1024 for cwnd in trace.cwnd_segments]
            two_segments = 2 * trace.mss_bytes / 1024
            ratio = over_truth(rows, trace.time_s[0], trace.time_s, kbytes, two_segments)
            taken.append((rows, ratio))
    if not taken:
        return {}
    ratios = [ratio for _, ratio in taken if ratio is not None]
    return {
        "window_rows": sum(len(rows.values) for rows, _ in taken),
        "window_rows_backwards": sum(rows.backwards for rows, _ in taken),
        "window_rows_ratio": max(ratios, key=lambda ratio: abs(ratio - 1), default=None),
    }


def _lengths_taken(path: Path, seen: Queue) -> dict[str, float | int | None]:
    """What a person took from tc's text, against its JSON over the same time."""
    if not path.is_file():
        return {}
    rows = read_rows(text_of(path))
    true = [at(seen.time_s, seen.backlog_packets, time_s) for time_s in rows.time_s]
    return {
        "length_rows": len(rows.values),
        "length_rows_unreadable": rows.unreadable,
        "length_rows_mean_packets": _mean(rows.values),
        "length_rows_true_packets": _mean(true),
    }


def _in_bdp(seen: Queue, rate_bps: float, flows: Sequence[Flow]) -> dict[str, float | int | None]:
    """The buffer in bandwidth-delay products: each flow has one of its own."""
    rtts_ms = [flow.path_rtt_ms for flow in flows if flow.path_rtt_ms]
    if seen.limit_bytes is None or not rtts_ms:
        return {}
    ratios = [8e3 * seen.limit_bytes / (rate_bps * rtt_ms) for rtt_ms in rtts_ms]
    return {"buffer_bdp_ratio_min": min(ratios), "buffer_bdp_ratio_max": max(ratios)}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


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
        "mss_bytes": flows[0].mss_bytes if len({flow.mss_bytes for flow in flows}) == 1 else None,
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
            "mss_bytes", "path_rtt_ms", "decreases", "kept_ratio", "decrease_window_segments",
        )  # fmt: skip
        for flow in flows:
            own = asdict(flow)
            values |= {f"{key_of(flow.node)}_{name}": own[name] for name in wanted}
    return values


def _runs(how: FlowFiles, raw: Path) -> Iterator[tuple[Path, Iperf3Run, list[Trace]]]:
    """Each iperf3 client's file, what it says, and the traces of its connections."""
    samples: dict[Path, tuple[SsSample, ...]] = {}
    for path in sorted(raw.glob(f"*/{how.iperf3}")):
        text = text_of(path)
        parse = parse_iperf3_json if text.lstrip().startswith("{") else parse_iperf3_text
        run = parse(text, name_of(path))
        if run.error:
            raise ParseError(name_of(path), "error", f"iperf3 says: {run.error}")
        ports = [connection.local_port for connection in run.connections]
        sampled = path.parent / how.ss
        if sampled not in samples:
            samples[sampled] = parse_ss_samples(text_of(sampled), name_of(sampled))
        its = _traces(path.parent.name, samples[sampled], set(ports))
        missing = [port for port in ports if port not in its]
        if missing:
            raise ParseError(name_of(sampled), "file", f"holds nothing of port {missing[0]}")
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
        path_rtt_ms = parse_ping(text_of(ping), name_of(ping)).rtt_min_ms
    busy = None
    if how.ping_busy:
        ping = raw / node / how.ping_busy
        busy = parse_ping(text_of(ping), name_of(ping))
    mine = [one for one in run.connections if one.local_port == trace.local_port]
    ids = {one.stream_id for one in mine}
    cuts = decreases(trace.time_s, trace.cwnd_segments, trace.ssthresh_segments)
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
        decreases=len(cuts),
        kept_ratio=round(statistics.median(cut.kept_ratio for cut in cuts), 6) if cuts else None,
        decrease_window_segments=statistics.median(cut.window_segments for cut in cuts)
        if cuts
        else None,
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
    samples = parse_qdisc_samples(text_of(path), name_of(path))
    seen = Queue("", None, [], [], [], [], [], [])
    for sample in samples:
        qdisc = _of_kind(sample, how.kind, name_of(path))
        if not seen.time_s:
            seen = replace(seen, kind=qdisc.kind, limit_bytes=_limit_bytes(qdisc))
        seen.time_s.append(sample.time_s)
        seen.backlog_bytes.append(qdisc.backlog_bytes or 0)
        seen.backlog_packets.append(qdisc.qlen_packets or 0)
        seen.sent_bytes.append(qdisc.sent_bytes or 0)
        seen.drops.append(qdisc.drops or 0)
        seen.marks.append(marks(qdisc))
    if len(seen.time_s) < 2:
        raise ParseError(name_of(path), "file", "fewer than two samples")
    return seen


def _limit_bytes(qdisc: Qdisc) -> int | None:
    """tc prints tbf's limit as the time that it takes at that rate, less what goes at once."""
    if qdisc.limit_bytes is None and qdisc.latency_s is not None and qdisc.rate_bps:
        return round(qdisc.latency_s * qdisc.rate_bps / 8 + (qdisc.burst_bytes or 0))
    return qdisc.limit_bytes


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


def queue_means(
    seen: Queue, start_s: float, end_s: float, rate_bps: float
) -> tuple[list[int], dict[str, float]]:
    """Which samples lie between two Unix times, and the queue's mean length over them.

    Also as a delay: how long the mean queue takes to drain at `rate_bps`. ParseError below two.
    """
    inside = [n for n, time_s in enumerate(seen.time_s) if start_s <= time_s <= end_s]
    if len(inside) < 2:
        raise ParseError("queue samples", "file", "there are none while all flows were there")
    mean_bytes = sum(seen.backlog_bytes[n] for n in inside) / len(inside)
    return inside, {
        "queue_mean_bytes": mean_bytes,
        "queue_mean_packets": sum(seen.backlog_packets[n] for n in inside) / len(inside),
        "queue_delay_mean_ms": 8e3 * mean_bytes / rate_bps,
    }


def _queue_summary(
    seen: Queue, start_s: float, end_s: float, rate_bps: float
) -> dict[str, float | int | None]:
    inside, means = queue_means(seen, start_s, end_s, rate_bps)
    first, last = inside[0], inside[-1]
    seconds = seen.time_s[last] - seen.time_s[first]
    return {
        "utilisation": 8 * (seen.sent_bytes[last] - seen.sent_bytes[first]) / seconds / rate_bps,
        "queue_mean_bytes": means["queue_mean_bytes"],
        "queue_limit_bytes": seen.limit_bytes,
        "queue_max_bytes": max(seen.backlog_bytes[n] for n in inside),
        "queue_mean_packets": means["queue_mean_packets"],
        "queue_delay_mean_ms": means["queue_delay_mean_ms"],
        "queue_drops": seen.drops[-1] - seen.drops[0],
        "queue_marks": seen.marks[-1] - seen.marks[0],
        # Values are numbers, so a kind is a name with a one.
        f"queue_is_{seen.kind}": 1,
    }
