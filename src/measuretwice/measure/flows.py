"""Runs of several flows: each flow's own values, and how they shared the link and its queue.

A flow's rate over the whole of its own life can't be compared with another's: sums over such
rates have come out above the rate of the link. So all rates here are taken over one interval, in
which every flow was there.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from measuretwice.lab import FlowFiles, Lab, SenderAt, Value
from measuretwice.measure.fields import OF_NODE
from measuretwice.measure.queue import file_of, in_bdp, queue_values, read_queue, red_setup
from measuretwice.measure.raw import key_of, name_of, text_of
from measuretwice.measure.taken import lengths_taken, rate_rows, table_taken, windows_taken
from measuretwice.measure.trace import Client, Trace, clients, common_interval
from measuretwice.measure.values import Measured
from measuretwice.parse import ParseError, parse_ping, parse_tc_qdiscs
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.steady_state import lowest_tenth_bps, settled
from measuretwice.tcp.window import convergence_s, decreases

# With more flows than this, a run's measured values name no single one.
NAMED_FLOWS = 8


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


def read_flows(lab: Lab, raw: Path, params: Mapping[str, Value]) -> tuple[list[Flow], Measured]:
    """Every flow of a run, by node and port, and what they did together.

    The latter over the interval that all share: `goodput_bps` is their sum, `jains_index` after
    Jain, Chiu and Hawe (1984). With a sampled queue also `utilisation` (of the link's rate, all
    headers counted), `queue_mean_bytes`, `queue_max_bytes`, `queue_mean_packets`,
    `queue_delay_mean_ms`, and the drops and marks. Of a few flows, one on each node, each one's
    values too, as `<node>_goodput_bps`.

    ParseError where files can't be read, where a flow was never seen in ss, or where there is no
    moment in which all flows were there.
    """
    files = lab.file.collect.flows
    if files is None:
        return [], {}
    found = [(client, trace) for client in clients(files, raw) for trace in client.traces]
    if not found:
        raise ParseError(files.iperf3, "file", "no node has such a file, so there is no flow")
    traces = [trace for _, trace in found]
    start_s, end_s = common_interval(traces)
    if start_s >= end_s:
        raise ParseError(files.ss, "file", "at no moment were all flows there")
    rates = [
        8 * (trace.acked_at(end_s) - trace.acked_at(start_s)) / (end_s - start_s)
        for trace in traces
    ]
    total = sum(rates)
    flows = [
        _flow(files, raw, client, trace, rate_bps, rate_bps / total if total else 0.0)
        for (client, trace), rate_bps in zip(found, rates, strict=True)
    ]
    values = _together(flows, end_s - start_s)
    values |= received(lab, [flow.to_address for flow in flows])
    if files.rates:
        values |= rate_rows(raw, files.rates)
    acked = [(trace.time_s, trace.acked_bytes) for trace in traces]
    values["convergence_s"] = convergence_s(acked, start_s, end_s) if len(traces) > 1 else None
    if files.windows:
        values |= windows_taken(raw, files.windows, traces)
    if sender := lab.file.collect.one_sender:
        values |= _one_sender(sender, raw, params, flows, traces)
    values |= _at_the_queue(lab, raw, params, flows, (start_s, end_s))
    return flows, values


def received(lab: Lab, addresses: Sequence[str | None]) -> Measured:
    """How many flows each node received, by the addresses that iperf3 itself names."""
    owners = {
        end.address.split("/")[0]: end.node
        for link in lab.file.topology.links
        for end in (link.a, link.b)
    }
    nodes = [owners[address] for address in addresses if address in owners]
    return {f"{key_of(node)}_received_flows": nodes.count(node) for node in sorted(set(nodes))}


def _at_the_queue(
    lab: Lab,
    raw: Path,
    params: Mapping[str, Value],
    flows: Sequence[Flow],
    interval_s: tuple[float, float],
) -> Measured:
    """What the sampled queue did in the flows' interval, and how it was set up."""
    place = lab.file.collect.queue
    if place is None:
        return {}
    rate_bps = float(params[place.rate]) * 1e6
    queue = read_queue(place, raw)
    values = queue_values(queue, *interval_s, rate_bps)
    values |= in_bdp(queue, rate_bps, [flow.path_rtt_ms for flow in flows])
    node = file_of(place, raw).parent
    if place.lengths:
        values |= lengths_taken(node / place.lengths, queue)
    if place.setup:
        values |= red_setup(node / place.setup)
    return values


def _one_sender(
    sender: SenderAt,
    raw: Path,
    params: Mapping[str, Value],
    flows: Sequence[Flow],
    traces: Sequence[Trace],
) -> Measured:
    """One node's flow once it has settled, and what was noted of it."""
    pairs = [
        (flow, trace)
        for flow, trace in zip(flows, traces, strict=True)
        if trace.node == sender.node
    ]
    if len(pairs) != 1:
        raise ParseError(sender.node, "file", f"has {len(pairs)} flows; expected one")
    flow, trace = pairs[0]
    start_s, end_s = common_interval(traces)
    steady_s = max(start_s, trace.time_s[0] + float(params[sender.average_from]))
    values: Measured = {**settled(trace, steady_s, end_s)}
    values |= {
        "congestion_control": flow.congestion_control,
        "lowest_tenth_bps": lowest_tenth_bps(trace),
        "sender_path_rtt_ms": flow.path_rtt_ms,
        "sender_retransmits": flow.retransmits,
    }
    if sender.table:
        values |= table_taken(raw / sender.node / sender.table, trace)
    if sender.queue and (path := raw / sender.node / sender.queue).is_file():
        # Several where one stands within the other.
        kinds = [qdisc.kind for qdisc in parse_tc_qdiscs(text_of(path), name_of(path))]
        if kinds:
            values["host_queue_kind"] = " ".join(kinds)
    return values


def _together(flows: Sequence[Flow], seconds: float) -> Measured:
    values: Measured = {
        "flows": len(flows),
        "duration_s": round(seconds, 6),
        "goodput_bps": sum(flow.goodput_bps for flow in flows),
        "jains_index": jains_index([flow.goodput_bps for flow in flows]),
        "share_max": max(flow.share for flow in flows),
        "retransmits": sum(flow.retransmits for flow in flows),
        "rtt_mean_ms": round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 6),
        "rtt_min_ms": min(
            (ms for ms in (flow.rtt_min_ms for flow in flows) if ms is not None), default=None
        ),
        "path_rtt_ms": min((ms for ms in (flow.path_rtt_ms for flow in flows) if ms), default=None),
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
        for flow in flows:
            values |= {f"{key_of(flow.node)}_{name}": getattr(flow, name) for name in OF_NODE}
    return values


def _flow(
    files: FlowFiles, raw: Path, client: Client, trace: Trace, rate_bps: float, share: float
) -> Flow:
    node, samples = trace.node, len(trace.time_s)
    path_rtt_ms = None
    if files.ping:
        ping = raw / node / files.ping
        path_rtt_ms = parse_ping(text_of(ping), name_of(ping)).rtt_min_ms
    busy = None
    if files.ping_busy:
        ping = raw / node / files.ping_busy
        busy = parse_ping(text_of(ping), name_of(ping))
    connections = [
        connection
        for connection in client.run.connections
        if connection.local_port == trace.local_port
    ]
    ids = {connection.stream_id for connection in connections}
    cuts = decreases(trace.time_s, trace.cwnd_segments, trace.ssthresh_segments)
    stream = next((stream for stream in client.run.streams if stream.stream_id in ids), None)
    return Flow(
        node=node,
        file=client.path.name,
        local_port=trace.local_port,
        congestion_control=client.run.congestion_control,
        start_s=trace.time_s[0],
        end_s=trace.time_s[-1],
        goodput_bps=rate_bps,
        share=share,
        iperf3_goodput_bps=stream.receiver_rate_bps if stream else None,
        retransmits=trace.retransmits[-1],
        rtt_min_ms=min((ms for ms in trace.min_rtt_ms if ms is not None), default=None),
        rtt_mean_ms=round(sum(trace.rtt_ms) / samples, 6),
        cwnd_mean_segments=round(sum(trace.cwnd_segments) / samples, 6),
        cwnd_max_segments=max(trace.cwnd_segments),
        mss_bytes=trace.mss_bytes,
        path_rtt_ms=path_rtt_ms,
        decreases=len(cuts),
        kept_ratio=round(statistics.median(cut.kept_ratio for cut in cuts), 6) if cuts else None,
        decrease_window_segments=statistics.median(cut.window_segments for cut in cuts)
        if cuts
        else None,
        to_address=connections[0].remote_host if connections else None,
        busy_ping_mean_ms=busy.rtt_avg_ms if busy else None,
        busy_ping_max_ms=busy.rtt_max_ms if busy else None,
        busy_ping_loss_ratio=busy.loss_ratio if busy else None,
    )
