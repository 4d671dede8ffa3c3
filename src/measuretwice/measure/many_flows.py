"""Runs of up to thousands of flows: each flow's own few values, and what all did together.

As in flows.py all rates, and all counts too, are of one interval in which every flow was there, and
in which slow start is over. Halvings come from the kernel's own events: a connection that leaves
the states Open and Disorder for CWR, Recovery or Loss takes a smaller window, once.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measuretwice.lab import CrowdFiles, Lab, Value
from measuretwice.measure.many_taken import results_taken
from measuretwice.measure.queue import Queue, lengths_between, queue
from measuretwice.measure.raw import counters_grown, name_of, rows_of, text_of
from measuretwice.measure.values import Measured, number
from measuretwice.parse import (
    ParseError,
    SsSocket,
    parse_iperf3_json,
    parse_ping,
    parse_ss_samples,
)
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.model import constant_by_regression, mathis_bandwidth_bps
from measuretwice.tcp.window import at

# include/uapi/linux/tcp.h: TCP_CA_Open and TCP_CA_Disorder; what comes after has a smaller window.
LAST_NORMAL_STATE = 1
DAY_S = 86_400.0


@dataclass(frozen=True)
class FlowOfMany:
    """One connection of many. All counts are of the interval that all flows share.

    `own_goodput_bps` alone is over its own whole life, by iperf3.
    """

    node: str
    local_port: int
    congestion_control: str
    goodput_bps: float
    own_goodput_bps: float | None
    rtt_mean_ms: float
    segments: int
    retransmits: int
    halvings: int | None


# A connection's node, its port there, and its port at the other end.
Ends = tuple[str, int, int]


@dataclass
class _Samples:
    """One connection as ss saw it."""

    times_s: list[float]
    sockets: list[SsSocket]


def read_many_flows(
    lab: Lab, raw: Path, params: Mapping[str, Value]
) -> tuple[list[FlowOfMany], Measured]:
    """Every flow of a run, by node and port, and what they did together.

    ParseError where files can't be read, where there is no flow, or no moment in which all that
    there are were there together and warm.
    """
    files = lab.file.collect.crowd
    if files is None:
        return [], {}
    rates_bps = _rates_by_iperf3(files, raw)
    connections = _connections(files, raw, set(rates_bps))
    if not connections:
        raise ParseError(files.ss, "file", "no node has samples of a data connection")
    start_s = max(c.times_s[0] for c in connections.values()) + float(params[files.warmup])
    end_s = min(c.times_s[-1] for c in connections.values())
    if start_s >= end_s:
        raise ParseError(files.ss, "file", "at no moment were all flows there and warm")
    halvings, earlier = _halvings(files, raw, start_s, end_s)
    flows = [
        replace(
            _flow(node, port, samples, start_s, end_s),
            own_goodput_bps=rates_bps[node, port, peer],
        )
        for (node, port, peer), samples in sorted(connections.items())
    ]
    flows, counted = _with_halvings(flows, halvings)
    last = [samples.sockets[-1] for samples in connections.values()]
    mss_bytes = {socket.mss_bytes for socket in last}
    values = _together(flows, end_s - start_s, counted)
    values["mss_bytes"] = mss_bytes.pop() if len(mss_bytes) == 1 else None
    smallest_ms = (socket.minrtt_ms for socket in last)
    values["rtt_min_ms"] = min((ms for ms in smallest_ms if ms is not None), default=None)
    values |= _paths(files, raw)
    if sampled := queue(lab, raw):
        place = lab.file.collect.queue
        rate_bps = float(params[place.rate]) * 1e6 if place else math.nan
        values |= _queue_values(sampled, start_s, end_s, rate_bps)
        values |= _drop_ratios(flows, values)
        values |= _from_the_start(values, earlier, sampled, end_s)
    values |= _shares(flows, str(params[files.rival]))
    values |= _constants(flows, values)
    values["spurious_retransmits"] = _needless(raw, {flow.node for flow in flows})
    ports = {(flow.node, flow.local_port) for flow in flows}
    sums_bps: dict[str, float] = defaultdict(float)
    for flow in flows:
        sums_bps[flow.congestion_control] += flow.goodput_bps
    values |= results_taken(files, raw, ports, sums_bps, (start_s, end_s), str(params[files.rival]))
    return flows, values


def _with_halvings(
    flows: Sequence[FlowOfMany], halvings: Mapping[str, Mapping[int, int]]
) -> tuple[list[FlowOfMany], int | None]:
    """The flows with their halvings, and the sum; None where a node has no events."""
    sharing = Counter((flow.node, flow.local_port) for flow in flows)
    with_halvings = []
    for flow in flows:
        node, port = flow.node, flow.local_port
        # Two connections to two servers may begin at one port, and the events name only that.
        known = node in halvings and sharing[node, port] == 1
        with_halvings.append(replace(flow, halvings=halvings[node].get(port, 0) if known else None))
    every = all(node in halvings for node, _ in sharing)
    counted = sum(halvings[node].get(port, 0) for node, port in sharing) if every else None
    return with_halvings, counted


def _rates_by_iperf3(files: CrowdFiles, raw: Path) -> dict[Ends, float | None]:
    """Each data connection's rate by iperf3 over its own life, by its ends. A process that
    failed has none: its connections are missing, and that is counted elsewhere."""
    rates: dict[Ends, float | None] = {}
    for path in sorted(raw.glob(f"*/{files.iperf3}")):
        run = parse_iperf3_json(text_of(path), name_of(path))
        if run.error:
            continue
        by_id = {stream.stream_id: stream.receiver_rate_bps for stream in run.streams}
        for connection in run.connections:
            ends = path.parent.name, connection.local_port, connection.remote_port
            rates[ends] = by_id.get(connection.stream_id)
    return rates


def _connections(files: CrowdFiles, raw: Path, wanted: set[Ends]) -> dict[Ends, _Samples]:
    connections: dict[Ends, _Samples] = {}
    for path in sorted(raw.glob(f"*/{files.ss}")):
        node = path.parent.name
        for sample in parse_ss_samples(text_of(path), name_of(path)):
            for socket in sample.sockets:
                if socket.local_port is None or socket.peer_port is None:
                    continue
                ends = node, socket.local_port, socket.peer_port
                if ends not in wanted or socket.bytes_acked is None:
                    continue
                samples = connections.setdefault(ends, _Samples([], []))
                samples.times_s.append(sample.time_s)
                samples.sockets.append(socket)
    return connections


def _flow(node: str, port: int, samples: _Samples, start_s: float, end_s: float) -> FlowOfMany:
    inside = [n for n, time_s in enumerate(samples.times_s) if start_s <= time_s <= end_s]
    if not inside:
        raise ParseError(node, f"port {port}", "has no sample while all flows were there and warm")

    def grown(values: Sequence[int | None]) -> float:
        """By how much a counter grew in the interval, by straight lines between samples."""
        known = [value or 0 for value in values]
        return at(samples.times_s, known, end_s) - at(samples.times_s, known, start_s)

    rtts_ms = [samples.sockets[n].rtt_ms or 0.0 for n in inside]
    acked = grown([socket.bytes_acked for socket in samples.sockets])
    return FlowOfMany(
        node=node,
        local_port=port,
        congestion_control=samples.sockets[-1].congestion_control or "unknown",
        goodput_bps=round(8 * acked / (end_s - start_s)),
        own_goodput_bps=None,
        rtt_mean_ms=round(sum(rtts_ms) / len(rtts_ms), 3),
        segments=round(grown([socket.data_segs_out for socket in samples.sockets])),
        retransmits=round(grown([socket.retrans_total for socket in samples.sockets])),
        halvings=None,
    )


def _event(line: str) -> tuple[float, int, int]:
    time_text, port_text, state_text = line.split()
    return float(time_text), int(port_text), int(state_text)


def _halvings(
    files: CrowdFiles, raw: Path, start_s: float, end_s: float
) -> tuple[dict[str, dict[int, int]], int]:
    """Each port's halvings in the interval, by node; nothing of a node without events. And how many
    there were before, of all.

    ParseError where events were lost. The first that a node's kernel notes is what gives them their
    time of day: where the buffer was too small and it is gone, all have the time since boot.
    """
    by_node: dict[str, dict[int, int]] = {}
    earlier = 0
    for path in sorted(raw.glob(f"*/{files.events}")):
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


def _together(flows: Sequence[FlowOfMany], seconds: float, halvings: int | None) -> Measured:
    rates_by_iperf3 = [flow.own_goodput_bps for flow in flows]
    retransmits = sum(flow.retransmits for flow in flows)
    rates = [flow.goodput_bps for flow in flows]
    return {
        "flows": len(flows),
        "duration_s": round(seconds, 6),
        "goodput_bps": sum(rates),
        "own_goodput_bps": None
        if None in rates_by_iperf3
        else sum(rate or 0 for rate in rates_by_iperf3),
        "jains_index": round(jains_index(rates), 6),
        "rtt_mean_ms": round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 3),
        "segments": sum(flow.segments for flow in flows),
        "retransmits": retransmits,
        "halvings": halvings,
        "retransmits_per_halving": round(retransmits / halvings, 4) if halvings else None,
    }


def _paths(files: CrowdFiles, raw: Path) -> Measured:
    if not files.ping:
        return {}
    least = [
        parse_ping(text_of(path), name_of(path)).rtt_min_ms for path in raw.glob(f"*/{files.ping}")
    ]
    return {"path_rtt_ms": min((ms for ms in least if ms is not None), default=None)}


def _queue_values(queue: Queue, start_s: float, end_s: float, rate_bps: float) -> Measured:
    lengths = lengths_between(queue, start_s, end_s, rate_bps)

    def grown(values: Sequence[int]) -> float:
        return at(queue.time_s, values, end_s) - at(queue.time_s, values, start_s)

    packet_bytes = [
        queue.backlog_bytes[n] / queue.backlog_packets[n]
        for n in lengths.inside
        if queue.backlog_packets[n]
    ]
    return {
        "utilisation": round(8 * grown(queue.sent_bytes) / (end_s - start_s) / rate_bps, 6),
        "queue_mean_bytes": round(lengths.mean_bytes),
        "queue_mean_packets": round(lengths.mean_packets, 1),
        "queue_packet_bytes": round(max(packet_bytes), 1) if packet_bytes else None,
        "queue_delay_mean_ms": round(lengths.delay_mean_ms, 3),
        "queue_drops": round(grown(queue.drops)),
    }


def _drop_ratios(flows: Sequence[FlowOfMany], values: Measured) -> Measured:
    drops, halvings = number(values, "queue_drops"), number(values, "halvings")
    segments = sum(flow.segments for flow in flows)
    return {
        "loss_ratio": drops / segments if drops is not None and segments else None,
        "drops_per_halving": round(drops / halvings, 4) if drops is not None and halvings else None,
    }


def _from_the_start(values: Measured, earlier: int, queue: Queue, end_s: float) -> Measured:
    """Drops and halvings with those of slow start: what whoever counts from the start gets."""
    halvings = number(values, "halvings")
    if halvings is None:
        return {}
    drops = round(at(queue.time_s, queue.drops, end_s) - queue.drops[0])
    every = round(halvings) + earlier
    return {
        "all_queue_drops": drops,
        "all_halvings": every,
        "all_drops_per_halving": round(drops / every, 4) if every else None,
    }


def _shares(flows: Sequence[FlowOfMany], rival: str) -> Measured:
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


def _constants(flows: Sequence[FlowOfMany], values: Measured) -> Measured:
    """C of the Mathis model by regression over the flows: by retransmissions, halvings, drops."""
    mss_bytes, loss_ratio = number(values, "mss_bytes"), number(values, "loss_ratio")
    if not mss_bytes:
        return {}

    def fit(ratio_of: Mapping[int, float | None]) -> float | None:
        points = [
            (mathis_bandwidth_bps(mss_bytes, flow.rtt_mean_ms, ratio), flow.goodput_bps)
            for n, flow in enumerate(flows)
            if (ratio := ratio_of[n]) and flow.rtt_mean_ms
        ]
        return round(constant_by_regression(points), 4) if points else None

    each = list(enumerate(flows))
    return {
        "c_by_retransmits": fit(
            {n: f.retransmits / f.segments if f.segments else None for n, f in each}
        ),
        "c_by_halvings": fit(
            {n: f.halvings / f.segments if f.halvings and f.segments else None for n, f in each}
        ),
        "c_by_drops": fit({n: loss_ratio for n, _ in each}),
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
