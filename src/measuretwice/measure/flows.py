"""Runs of several flows, two or thousands: each flow's own values, and what all did together.

A flow's rate over the whole of its own life can't be compared with another's: sums over such
rates have come out above the rate of the link. So all rates here are taken over one interval, in
which every flow was there. Of many flows (`[collect.crowd]`) all counts are of that interval too, and it
begins once slow start is over.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.network import CrowdFiles, FlowFiles, QueueAt, SenderAt
from measuretwice.measure.connections import (
    Connection,
    Trace,
    common_interval,
    read_connections,
    read_halvings,
    received,
)
from measuretwice.measure.delays import ping_of, read_busy_pings, read_waits
from measuretwice.measure.fields import FLOW, FLOW_OF_MANY, OF_NODE, Measured, number
from measuretwice.measure.queue import (
    Queue,
    file_of,
    in_bdp,
    queue_of_many,
    queue_values,
    read_queue,
    red_setup,
)
from measuretwice.measure.raw import counters_grown, key_of, name_of, text_of
from measuretwice.measure.student_tables import (
    compare_lengths,
    compare_results,
    compare_table,
    compare_windows,
    rate_rows,
    summary_values,
)
from measuretwice.parse import ParseError, PingRun, parse_tc_qdiscs
from measuretwice.stats.intervals import jains_index, slope_through_zero
from measuretwice.tcp.model import mathis_bandwidth_bps
from measuretwice.tcp.traces import (
    convergence_s,
    decreases,
    interpolate,
    lowest_tenth_bps,
    steady_state,
    sustained_convergence_s,
)

# With more flows than this, a run's measured values name no single one.
NAMED_FLOWS = 8
# What the flows of one node add up to.
SUMMED = ("goodput_bps", "share", "retransmits")


@dataclass(frozen=True)
class Flow:
    """One connection's values. `goodput_bps` is over the interval that all flows share.

    Of a few flows the rest is of the flow's whole life. `decreases` counts how often ssthresh changed
    after the first slow start; of these, `kept_ratio` is the median of ssthresh over the window before,
    which `decrease_window_segments` is the median of.

    Of many flows the rest is of the interval, too: `rtt_mean_ms`, `retransmits`, `segments` and
    `halvings`; `own_goodput_bps` alone is over the flow's whole life, by iperf3. The others are None, and no decreases are counted.
    """

    node: str
    local_port: int
    congestion_control: str | None
    goodput_bps: float
    rtt_mean_ms: float
    retransmits: int
    file: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    share: float | None = None
    iperf3_goodput_bps: float | None = None
    rtt_min_ms: float | None = None
    cwnd_mean_segments: float | None = None
    cwnd_max_segments: int | None = None
    mss_bytes: int | None = None
    path_rtt_ms: float | None = None
    decreases: int = 0
    kept_ratio: float | None = None
    decrease_window_segments: float | None = None
    to_address: str | None = None
    busy_ping_mean_ms: float | None = None
    busy_ping_max_ms: float | None = None
    busy_ping_loss_ratio: float | None = None
    segments: int | None = None
    halvings: int | None = None
    own_goodput_bps: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the values that a flow of its kind has, a few's or many's, in the catalogue's order."""
        kept = FLOW if self.segments is None else FLOW_OF_MANY
        return {field.name: getattr(self, field.name) for field in kept}


def read_flows(lab: Lab, raw: Path, params: Mapping[str, Value]) -> tuple[list[Flow], Measured]:
    """Return every flow of a run, by node and port, and what they did together; nothing where the lab has one flow.

    The latter over the interval that all share: `goodput_bps` is their sum, `jains_index` after
    Jain, Chiu and Hawe (1984), and what the queue did meanwhile. Of a few flows, one on each node,
    each one's values too, as `<node>_goodput_bps`.

    ParseError where files can't be read, where there is no flow, where one of a few was never seen in
    ss, or where there is no moment in which all flows were there.
    """
    files = lab.file.collect.flow_files
    if files is None:
        return [], {}
    connections = read_connections(files, raw)
    if not connections:
        problem = "no node has such a file with a data connection that ss saw, so there is no flow"
        raise ParseError(files.iperf3, "file", problem)
    start_s, end_s = common_interval([connection.trace for connection in connections])
    if isinstance(files, CrowdFiles):
        start_s += float(params[files.warmup])
    if start_s >= end_s:
        warm = (
            f" and warm (after {params[files.warmup]:g} s)" if isinstance(files, CrowdFiles) else ""
        )
        shortest_s = min(c.trace.time_s[-1] - c.trace.time_s[0] for c in connections)
        problem = f"at no moment were all flows there{warm}; the shortest was there for {shortest_s:.3g} s"
        raise ParseError(files.ss, "file", problem)
    if isinstance(files, CrowdFiles):
        return _many(lab, files, raw, params, connections, (start_s, end_s))
    return _few(lab, files, raw, params, connections, (start_s, end_s))


def _few(
    lab: Lab,
    files: FlowFiles,
    raw: Path,
    params: Mapping[str, Value],
    connections: Sequence[Connection],
    interval_s: tuple[float, float],
) -> tuple[list[Flow], Measured]:
    start_s, end_s = interval_s
    traces = [connection.trace for connection in connections]
    rates_bps = [_rate_bps(trace, interval_s) for trace in traces]
    total_bps = sum(rates_bps)
    pings = read_busy_pings(raw, files.ping_busy) if files.ping_busy else {}
    flows = [
        _flow_of_few(
            files, raw, connection, pings, rate_bps, rate_bps / total_bps if total_bps else 0.0
        )
        for connection, rate_bps in zip(connections, rates_bps, strict=True)
    ]
    values = _few_together(flows, end_s - start_s)
    values |= received(lab, [flow.to_address for flow in flows])
    if files.rates:
        values |= rate_rows(raw, files.rates)
    if files.summary:
        values |= summary_values(raw, files.summary)
    values |= read_waits(files, raw, params, [*pings.values()], interval_s)
    acked = [(trace.time_s, trace.acked_bytes) for trace in traces]
    several = len(traces) > 1
    values["convergence_s"] = convergence_s(acked, start_s, end_s) if several else None
    values["sustained_convergence_s"] = (
        sustained_convergence_s(acked, start_s, end_s) if several else None
    )
    if files.windows:
        values |= compare_windows(raw, files.windows, traces)
    if sender := lab.file.collect.one_sender:
        values |= _one_sender(sender, raw, params, flows, traces)
    if place := lab.file.collect.queue:
        values |= _at_the_queue(place, raw, params, flows, interval_s)
    return flows, values


def _rate_bps(trace: Trace, interval_s: tuple[float, float]) -> float:
    start_s, end_s = interval_s
    return 8 * (trace.acked_at(end_s) - trace.acked_at(start_s)) / (end_s - start_s)


def _least(values_ms: Iterable[float | None]) -> float | None:
    return min((ms for ms in values_ms if ms is not None), default=None)


# A few flows.


def _flow_of_few(
    files: FlowFiles,
    raw: Path,
    connection: Connection,
    pings: Mapping[str, PingRun],
    rate_bps: float,
    share: float,
) -> Flow:
    trace, samples = connection.trace, len(connection.trace.time_s)
    folder = raw / trace.node
    busy = pings.get(trace.node)
    cuts = decreases(trace.time_s, trace.cwnd_segments, trace.ssthresh_segments)
    return Flow(
        node=trace.node,
        file=connection.path.name,
        local_port=trace.local_port,
        congestion_control=connection.run.congestion_control,
        start_s=trace.time_s[0],
        end_s=trace.time_s[-1],
        goodput_bps=rate_bps,
        share=share,
        iperf3_goodput_bps=connection.rate_bps,
        retransmits=trace.retransmits[-1],
        rtt_min_ms=_least(trace.min_rtt_ms),
        rtt_mean_ms=round(sum(trace.rtt_ms) / samples, 6),
        cwnd_mean_segments=round(sum(trace.cwnd_segments) / samples, 6),
        cwnd_max_segments=max(trace.cwnd_segments),
        mss_bytes=trace.mss_bytes,
        path_rtt_ms=ping_of(folder / files.ping).least_ms if files.ping else None,
        decreases=len(cuts),
        kept_ratio=round(statistics.median(cut.kept_ratio for cut in cuts), 6) if cuts else None,
        decrease_window_segments=statistics.median(cut.window_segments for cut in cuts)
        if cuts
        else None,
        to_address=connection.ends.remote_host,
        busy_ping_mean_ms=busy.rtt_avg_ms if busy else None,
        busy_ping_max_ms=busy.rtt_max_ms if busy else None,
        busy_ping_loss_ratio=busy.loss_ratio if busy else None,
    )


def _few_together(flows: Sequence[Flow], seconds: float) -> Measured:
    values: Measured = {
        "flows": len(flows),
        "duration_s": round(seconds, 6),
        "goodput_bps": sum(flow.goodput_bps for flow in flows),
        "jains_index": jains_index([flow.goodput_bps for flow in flows]),
        "share_max": max(flow.share or 0.0 for flow in flows),
        "retransmits": sum(flow.retransmits for flow in flows),
        "rtt_mean_ms": round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 6),
        "rtt_min_ms": _least(flow.rtt_min_ms for flow in flows),
        "path_rtt_ms": _least(flow.path_rtt_ms or None for flow in flows),
        "mss_bytes": _if_equal(flow.mss_bytes for flow in flows),
    }
    by_node: dict[str, list[Flow]] = defaultdict(list)
    for flow in flows:
        by_node[flow.node].append(flow)
    for node, its in by_node.items() if len(by_node) <= NAMED_FLOWS else ():
        of_node = {name: getattr(its[0], name) for name in OF_NODE} if len(its) == 1 else _sums(its)
        values |= {f"{key_of(node)}_{name}": value for name, value in of_node.items()}
    return values


def _sums(flows: Sequence[Flow]) -> Measured:
    """Return what the flows of one node did together."""
    values: Measured = {name: sum(getattr(flow, name) or 0 for flow in flows) for name in SUMMED}
    values["rtt_mean_ms"] = round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 6)
    return values | {"path_rtt_ms": flows[0].path_rtt_ms}


def _if_equal(values: Iterable[int | None]) -> int | None:
    """The value that all have; None where they differ."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _at_the_queue(
    place: QueueAt,
    raw: Path,
    params: Mapping[str, Value],
    flows: Sequence[Flow],
    interval_s: tuple[float, float],
) -> Measured:
    """What the sampled queue did in the flows' interval, and how it was set up."""
    rate_bps = float(params[place.rate]) * 1e6
    queue = read_queue(place, raw)
    values = queue_values(queue, *interval_s, rate_bps)
    values |= in_bdp(queue, rate_bps, [flow.path_rtt_ms for flow in flows])
    folder = file_of(place, raw).parent
    if place.lengths:
        values |= compare_lengths(folder / place.lengths, queue)
    if place.setup:
        values |= red_setup(folder / place.setup)
    return values


def _one_sender(
    sender: SenderAt,
    raw: Path,
    params: Mapping[str, Value],
    flows: Sequence[Flow],
    traces: Sequence[Trace],
) -> Measured:
    """One node's flow once it has steady_state, and what was noted of it."""
    pairs = [
        (flow, trace)
        for flow, trace in zip(flows, traces, strict=True)
        if trace.node == sender.node
    ]
    if len(pairs) != 1:
        raise ParseError(
            sender.node,
            "file",
            f"sent {len(pairs)} flows, and one was meant: look at iperf3's options (-P)",
        )
    flow, trace = pairs[0]
    start_s, end_s = common_interval(traces)
    steady_s = max(start_s, trace.time_s[0] + float(params[sender.average_from]))
    values: Measured = {**steady_state(trace, steady_s, end_s)}
    values |= {
        "congestion_control": flow.congestion_control,
        "lowest_tenth_bps": lowest_tenth_bps(trace),
        "sender_path_rtt_ms": flow.path_rtt_ms,
        "sender_retransmits": flow.retransmits,
    }
    if sender.table:
        values |= compare_table(raw / sender.node / sender.table, trace)
    if sender.queue and (path := raw / sender.node / sender.queue).is_file():
        # Several where one stands within the other.
        kinds = [qdisc.kind for qdisc in parse_tc_qdiscs(text_of(path), name_of(path))]
        if kinds:
            values["host_queue_kind"] = " ".join(kinds)
    return values


# Many flows.


def _many(
    lab: Lab,
    files: CrowdFiles,
    raw: Path,
    params: Mapping[str, Value],
    connections: Sequence[Connection],
    interval_s: tuple[float, float],
) -> tuple[list[Flow], Measured]:
    rival = str(params[files.rival])
    halvings, earlier = read_halvings(files.events, raw, *interval_s)
    sharing = Counter(_port_of(connection) for connection in connections)
    flows = []
    for connection in connections:
        node, port = _port_of(connection)
        # Two connections to two servers may begin at one port, and the events name only that.
        known = node in halvings and sharing[node, port] == 1
        count = halvings[node].get(port, 0) if known else None
        flows.append(_flow_of_many(connection, interval_s, count))
    every = all(node in halvings for node, _ in sharing)
    counted = sum(halvings[node].get(port, 0) for node, port in sharing) if every else None
    values = _many_together(flows, interval_s[1] - interval_s[0], counted)
    values["mss_bytes"] = _if_equal(connection.last.mss_bytes for connection in connections)
    values["rtt_min_ms"] = _least(connection.last.minrtt_ms for connection in connections)
    if files.ping:
        pings = [ping_of(path) for path in raw.glob(f"*/{files.ping}")]
        values["path_rtt_ms"] = _least(ping.least_ms for ping in pings)
    if place := lab.file.collect.queue:
        queue = read_queue(place, raw)
        values |= queue_of_many(queue, *interval_s, float(params[place.rate]) * 1e6)
        values |= _drop_ratios(flows, values)
        values |= _from_the_start(values, earlier, queue, interval_s[1])
    values |= _shares(flows, rival)
    values |= _constants(flows, values)
    values["spurious_retransmits"] = _needless(raw, {flow.node for flow in flows})
    sums_bps: dict[str, float] = defaultdict(float)
    for flow in flows:
        sums_bps[str(flow.congestion_control)] += flow.goodput_bps
    return flows, values | compare_results(files, raw, set(sharing), sums_bps, interval_s, rival)


def _port_of(connection: Connection) -> tuple[str, int]:
    return connection.trace.node, connection.trace.local_port


def _flow_of_many(
    connection: Connection, interval_s: tuple[float, float], halvings: int | None
) -> Flow:
    trace, (start_s, end_s) = connection.trace, interval_s
    rtts_ms = [
        rtt_ms
        for time_s, rtt_ms in zip(trace.time_s, trace.rtt_ms, strict=True)
        if start_s <= time_s <= end_s
    ]
    if not rtts_ms:
        where = f"port {trace.local_port}"
        raise ParseError(trace.node, where, "has no sample while all flows were there and warm")

    def grown(counts: Sequence[int]) -> int:
        return round(
            interpolate(trace.time_s, counts, end_s) - interpolate(trace.time_s, counts, start_s)
        )

    return Flow(
        node=trace.node,
        local_port=trace.local_port,
        congestion_control=connection.last.congestion_control or "unknown",
        goodput_bps=round(_rate_bps(trace, interval_s)),
        own_goodput_bps=connection.rate_bps,
        rtt_mean_ms=round(sum(rtts_ms) / len(rtts_ms), 3),
        segments=grown(trace.data_segments),
        retransmits=grown(trace.retransmits),
        halvings=halvings,
    )


def _many_together(flows: Sequence[Flow], seconds: float, halvings: int | None) -> Measured:
    rates_by_iperf3 = [flow.own_goodput_bps for flow in flows]
    retransmits = sum(flow.retransmits for flow in flows)
    rates_bps = [flow.goodput_bps for flow in flows]
    return {
        "flows": len(flows),
        "duration_s": round(seconds, 6),
        "goodput_bps": sum(rates_bps),
        "own_goodput_bps": None
        if None in rates_by_iperf3
        else sum(rate or 0 for rate in rates_by_iperf3),
        "jains_index": round(jains_index(rates_bps), 6),
        "rtt_mean_ms": round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 3),
        "segments": sum(flow.segments or 0 for flow in flows),
        "retransmits": retransmits,
        "halvings": halvings,
        "retransmits_per_halving": round(retransmits / halvings, 4) if halvings else None,
    }


def _shares(flows: Sequence[Flow], rival: str) -> Measured:
    """The rivals' part of the sum, their part of the flows, and the one over the other."""
    rivals = [flow.goodput_bps for flow in flows if flow.congestion_control == rival]
    total = sum(flow.goodput_bps for flow in flows)
    if not rivals or len(rivals) == len(flows) or not total:
        return {}
    share, fair = sum(rivals) / total, len(rivals) / len(flows)
    return {
        "rivals_found": len(rivals),
        "rival_share": round(share, 6),
        "rival_fair_share": round(fair, 6),
        "rival_multiple": round(share / fair, 4),
    }


def _constants(flows: Sequence[Flow], values: Measured) -> Measured:
    """C of the Mathis model by regression over the flows: by retransmissions, halvings, drops."""
    mss_bytes, loss_ratio = number(values, "mss_bytes"), number(values, "loss_ratio")
    if not mss_bytes:
        return {}

    def fit(ratio_of: Callable[[Flow], float | None]) -> float | None:
        points = [
            (mathis_bandwidth_bps(mss_bytes, flow.rtt_mean_ms, ratio), flow.goodput_bps)
            for flow in flows
            if (ratio := ratio_of(flow)) and flow.rtt_mean_ms
        ]
        return round(slope_through_zero(points)[0], 4) if points else None

    return {
        "c_by_retransmits": fit(lambda flow: flow.segments and flow.retransmits / flow.segments),
        "c_by_halvings": fit(lambda flow: flow.segments and (flow.halvings or 0) / flow.segments),
        "c_by_drops": fit(lambda flow: loss_ratio),
    }


def _drop_ratios(flows: Sequence[Flow], values: Measured) -> Measured:
    drops, halvings = number(values, "queue_drops"), number(values, "halvings")
    segments = sum(flow.segments or 0 for flow in flows)
    return {
        "loss_ratio": drops / segments if drops is not None and segments else None,
        "drops_per_halving": round(drops / halvings, 4) if drops is not None and halvings else None,
    }


def _from_the_start(values: Measured, earlier: int, queue: Queue, end_s: float) -> Measured:
    """Drops and halvings with those of slow start: what whoever counts from the start gets."""
    halvings = number(values, "halvings")
    if halvings is None:
        return {}
    drops = round(interpolate(queue.time_s, queue.drops, end_s) - queue.drops[0])
    every = round(halvings) + earlier
    return {
        "all_queue_drops": drops,
        "all_halvings": every,
        "all_drops_per_halving": round(drops / every, 4) if every else None,
    }


def _needless(raw: Path, nodes: set[str]) -> int | None:
    """Retransmissions of the whole run that receivers said they had already: TCPDSACKRecv.

    None where a node kept no counters.
    """
    folders = [raw / node for node in nodes]
    kept = [folder / f"nstat.{when}.json" for folder in folders for when in ("before", "after")]
    if not all(path.is_file() for path in kept):
        return None
    return sum(counters_grown(folder).get("TcpExtTCPDSACKRecv", 0) for folder in folders)
