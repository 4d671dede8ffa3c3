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
from measuretwice.measure.facts import name_of, text_of
from measuretwice.measure.flows import Queue, queue, queue_means
from measuretwice.parse import (
    ParseError,
    SsSocket,
    parse_iperf3_json,
    parse_nstat,
    parse_ping,
    parse_ss_samples,
)
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.model import constant_by_regression, mathis_bandwidth_bps
from measuretwice.tcp.window import at

Values = dict[str, float | int | None]
# include/uapi/linux/tcp.h: TCP_CA_Open and TCP_CA_Disorder; what comes after has a smaller window.
LAST_NORMAL_STATE = 1
DAY_S = 86_400.0


@dataclass(frozen=True)
class CrowdFlow:
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
class _Seen:
    """One connection as ss saw it."""

    times_s: list[float]
    sockets: list[SsSocket]


def read_crowd(lab: Lab, raw: Path, params: Mapping[str, Value]) -> tuple[list[CrowdFlow], Values]:
    """Every flow of a run, by node and port, and what they did together.

    ParseError where files can't be read, where there is no flow, or no moment in which all that
    there are were there together and warm.
    """
    how = lab.file.collect.crowd
    if how is None:
        return [], {}
    own = _own_rates(how, raw)
    seen = _connections(how, raw, set(own))
    if not seen:
        raise ParseError(how.ss, "file", "no node has samples of a data connection")
    start_s = max(one.times_s[0] for one in seen.values()) + float(params[how.warmup])
    end_s = min(one.times_s[-1] for one in seen.values())
    if start_s >= end_s:
        raise ParseError(how.ss, "file", "at no moment were all flows there and warm")
    halvings = _halvings(how, raw, start_s, end_s)
    sharing = Counter((node, port) for node, port, _ in seen)
    flows = []
    for (node, port, peer), one in sorted(seen.items()):
        flow = _flow(node, port, one, start_s, end_s)
        # Two connections to two servers may begin at one port, and the events name only that.
        known = node in halvings and sharing[node, port] == 1
        flows.append(
            replace(
                flow,
                own_goodput_bps=own[node, port, peer],
                halvings=halvings[node].get(port, 0) if known else None,
            )
        )
    mss_bytes = {one.sockets[-1].mss_bytes for one in seen.values()}
    every = all(node in halvings for node, _ in sharing)
    counted = sum(halvings[node].get(port, 0) for node, port in sharing) if every else None
    values = _together(flows, end_s - start_s, counted)
    values["mss_bytes"] = mss_bytes.pop() if len(mss_bytes) == 1 else None
    smallest = (one.sockets[-1].minrtt_ms for one in seen.values())
    values["rtt_min_ms"] = min((ms for ms in smallest if ms is not None), default=None)
    values |= _paths(how, raw)
    if seen_queue := queue(lab, raw):
        at_queue = lab.file.collect.queue
        rate_bps = float(params[at_queue.rate]) * 1e6 if at_queue else math.nan
        values |= _queue_values(seen_queue, start_s, end_s, rate_bps)
        values |= _drop_ratios(flows, values)
    values |= _shares(flows, str(params[how.rival]))
    values |= _constants(flows, values)
    values["spurious_retransmits"] = _needless(raw, {flow.node for flow in flows})
    values |= _own_results(how, raw, flows, start_s, end_s)
    return flows, values


def _own_rates(how: CrowdFiles, raw: Path) -> dict[Ends, float | None]:
    """Each data connection's rate by iperf3 over its own life, by its ends. A process that
    failed has none: its connections are missing, and that is counted elsewhere."""
    rates: dict[Ends, float | None] = {}
    for path in sorted(raw.glob(f"*/{how.iperf3}")):
        run = parse_iperf3_json(text_of(path), name_of(path))
        if run.error:
            continue
        by_id = {stream.stream_id: stream.receiver_rate_bps for stream in run.streams}
        for one in run.connections:
            rates[path.parent.name, one.local_port, one.remote_port] = by_id.get(one.stream_id)
    return rates


def _connections(how: CrowdFiles, raw: Path, wanted: set[Ends]) -> dict[Ends, _Seen]:
    found: dict[Ends, _Seen] = {}
    for path in sorted(raw.glob(f"*/{how.ss}")):
        node = path.parent.name
        for sample in parse_ss_samples(text_of(path), name_of(path)):
            for socket in sample.sockets:
                if socket.local_port is None or socket.peer_port is None:
                    continue
                ends = node, socket.local_port, socket.peer_port
                if ends not in wanted or socket.bytes_acked is None:
                    continue
                one = found.setdefault(ends, _Seen([], []))
                one.times_s.append(sample.time_s)
                one.sockets.append(socket)
    return found


def _flow(node: str, port: int, seen: _Seen, start_s: float, end_s: float) -> CrowdFlow:
    inside = [n for n, time_s in enumerate(seen.times_s) if start_s <= time_s <= end_s]
    if not inside:
        raise ParseError(node, f"port {port}", "has no sample while all flows were there and warm")

    def grown(values: Sequence[int | None]) -> float:
        """By how much a counter grew in the interval, by straight lines between samples."""
        known = [value or 0 for value in values]
        return at(seen.times_s, known, end_s) - at(seen.times_s, known, start_s)

    rtts_ms = [seen.sockets[n].rtt_ms or 0.0 for n in inside]
    acked = grown([socket.bytes_acked for socket in seen.sockets])
    return CrowdFlow(
        node=node,
        local_port=port,
        congestion_control=seen.sockets[-1].congestion_control or "unknown",
        goodput_bps=round(8 * acked / (end_s - start_s)),
        own_goodput_bps=None,
        rtt_mean_ms=round(sum(rtts_ms) / len(rtts_ms), 3),
        segments=round(grown([socket.data_segs_out for socket in seen.sockets])),
        retransmits=round(grown([socket.retrans_total for socket in seen.sockets])),
        halvings=None,
    )


def _halvings(
    how: CrowdFiles, raw: Path, start_s: float, end_s: float
) -> dict[str, dict[int, int]]:
    """Each port's halvings in the interval, by node; nothing of a node without events.

    ParseError where events were lost. The first that a node's kernel notes is what gives them their
    time of day: where the buffer was too small and it is gone, all have the time since boot.
    """
    found: dict[str, dict[int, int]] = {}
    for path in sorted(raw.glob(f"*/{how.events}")):
        counts: dict[int, int] = defaultdict(int)
        states: dict[int, int] = {}
        for number, line in enumerate(text_of(path).splitlines(), start=1):
            try:
                time_text, port_text, state_text = line.split()
                time_s, port, state = float(time_text), int(port_text), int(state_text)
            except ValueError:
                raise ParseError(
                    name_of(path), f"line {number}", "expected time, port and state"
                ) from None
            if time_s < start_s - DAY_S:
                raise ParseError(
                    name_of(path),
                    f"line {number}",
                    "the first events were lost, and with them the time of day: there was no room "
                    "for all; give them more with --set trace_bytes=...",
                )
            was = states.get(port, 0)
            if was <= LAST_NORMAL_STATE < state and start_s <= time_s <= end_s:
                counts[port] += 1
            states[port] = state
        found[path.parent.name] = dict(counts)
    return found


def _together(flows: Sequence[CrowdFlow], seconds: float, halvings: int | None) -> Values:
    own = [flow.own_goodput_bps for flow in flows]
    retransmits = sum(flow.retransmits for flow in flows)
    rates = [flow.goodput_bps for flow in flows]
    return {
        "flows": len(flows),
        "duration_s": round(seconds, 6),
        "goodput_bps": sum(rates),
        "own_goodput_bps": None if None in own else sum(rate or 0 for rate in own),
        "jains_index": round(jains_index(rates), 6),
        "rtt_mean_ms": round(sum(flow.rtt_mean_ms for flow in flows) / len(flows), 3),
        "segments": sum(flow.segments for flow in flows),
        "retransmits": retransmits,
        "halvings": halvings,
        "retransmits_per_halving": round(retransmits / halvings, 4) if halvings else None,
    }


def _paths(how: CrowdFiles, raw: Path) -> Values:
    if not how.ping:
        return {}
    least = [
        parse_ping(text_of(path), name_of(path)).rtt_min_ms for path in raw.glob(f"*/{how.ping}")
    ]
    return {"path_rtt_ms": min((ms for ms in least if ms is not None), default=None)}


def _queue_values(seen: Queue, start_s: float, end_s: float, rate_bps: float) -> Values:
    inside, means = queue_means(seen, start_s, end_s, rate_bps)

    def grown(values: Sequence[int]) -> float:
        return at(seen.time_s, values, end_s) - at(seen.time_s, values, start_s)

    full = [
        seen.backlog_bytes[n] / seen.backlog_packets[n] for n in inside if seen.backlog_packets[n]
    ]
    return {
        "utilisation": round(8 * grown(seen.sent_bytes) / (end_s - start_s) / rate_bps, 6),
        "queue_mean_bytes": round(means["queue_mean_bytes"]),
        "queue_mean_packets": round(means["queue_mean_packets"], 1),
        "queue_packet_bytes": round(max(full), 1) if full else None,
        "queue_delay_mean_ms": round(means["queue_delay_mean_ms"], 3),
        "queue_drops": round(grown(seen.drops)),
    }


def _drop_ratios(flows: Sequence[CrowdFlow], values: Values) -> Values:
    drops, halvings = values.get("queue_drops"), values.get("halvings")
    segments = sum(flow.segments for flow in flows)
    return {
        "loss_ratio": drops / segments if drops is not None and segments else None,
        "drops_per_halving": round(drops / halvings, 4) if drops is not None and halvings else None,
    }


def _shares(flows: Sequence[CrowdFlow], rival: str) -> Values:
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


def _constants(flows: Sequence[CrowdFlow], values: Values) -> Values:
    """C of the Mathis model by regression over the flows: by retransmissions, halvings, drops."""
    mss, loss = values.get("mss_bytes"), values.get("loss_ratio")
    if not mss:
        return {}

    def fit(ratio_of: Mapping[int, float | None]) -> float | None:
        points = [
            (mathis_bandwidth_bps(mss, flow.rtt_mean_ms, ratio), flow.goodput_bps)
            for number, flow in enumerate(flows)
            if (ratio := ratio_of[number]) and flow.rtt_mean_ms
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
        "c_by_drops": fit({n: loss for n, _ in each}),
    }


def _needless(raw: Path, nodes: set[str]) -> int | None:
    """Retransmissions of the whole run that receivers said they had already: TCPDSACKRecv."""
    counts = []
    for node in nodes:
        paths = [raw / node / f"nstat.{when}.json" for when in ("before", "after")]
        if not all(path.is_file() for path in paths):
            return None
        before, after = (parse_nstat(text_of(path), name_of(path)) for path in paths)
        counts.append(after.get("TcpExtTCPDSACKRecv", 0) - before.get("TcpExtTCPDSACKRecv", 0))
    return sum(counts)


def _own_results(
    how: CrowdFiles, raw: Path, flows: Sequence[CrowdFlow], start_s: float, end_s: float
) -> Values:
    """What a person worked out, read from where it stands; each name begins with `own_`."""
    values: Values = {}
    if how.counted and (paths := sorted(raw.glob(f"*/{how.counted}"))):
        wanted = {(flow.node, flow.local_port) for flow in flows}
        values["own_counted_halvings"] = _own_counts(paths, wanted, start_s, end_s)
    for path in raw.glob(f"*/{how.summary}") if how.summary else ():
        for name, number in _numbers(path).items():
            values[f"own_{name}"] = number
    for path in raw.glob(f"*/{how.groups}") if how.groups else ():
        values |= _own_groups(path, flows)
    return values


def _own_counts(
    paths: Sequence[Path], wanted: set[tuple[str, int]], start_s: float, end_s: float
) -> int:
    """How many halvings were counted in the interval, of all the flows that are wanted."""
    found = 0
    for path in paths:
        for number, line in enumerate(text_of(path).splitlines(), start=1):
            try:
                time_text, port_text = line.split()
                time_s, port = float(time_text), int(port_text)
            except ValueError:
                raise ParseError(
                    name_of(path), f"line {number}", "expected time and port"
                ) from None
            found += (path.parent.name, port) in wanted and start_s <= time_s <= end_s
    return found


def _numbers(path: Path) -> dict[str, float]:
    found = {}
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        name, _, text = line.partition(" ")
        try:
            value = float(text)
        except ValueError:
            raise ParseError(
                name_of(path), f"line {number}", "expected a name and a number"
            ) from None
        # awk prints what has no value as nan.
        if math.isfinite(value):
            found[name] = value
    return found


def _own_groups(path: Path, flows: Sequence[CrowdFlow]) -> Values:
    """How far a person's sums, by algorithm, are from those of the flows: the worst of them."""
    sums: dict[str, float] = defaultdict(float)
    for flow in flows:
        sums[flow.congestion_control] += flow.goodput_bps
    worst = 0.0
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        try:
            name, _, text = line.split()
            said = float(text)
        except ValueError:
            raise ParseError(
                name_of(path), f"line {number}", "expected an algorithm, its flows and their sum"
            ) from None
        true = sums.get(name, 0.0)
        worst = max(worst, abs(said - true) / max(said, true, 1.0))
    return {"own_groups_error_ratio": round(worst, 6)}
