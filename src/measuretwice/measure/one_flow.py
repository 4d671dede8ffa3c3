"""From a run's raw files to its measured values. Reads files only: never the network.

Where each number comes from is written beside it; `measured` holds what design and lab.toml
name, with the unit in each key, and None where a raw file does not have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuretwice.lab import Collect, Lab, NodeFile, QdiscAt, Value
from measuretwice.measure.flows import Flow, read_flows
from measuretwice.measure.many_flows import CrowdFlow, read_crowd
from measuretwice.parse import (
    Iperf2Connection,
    Iperf3Run,
    ParseError,
    PingRun,
    Qdisc,
    SsSample,
    SsSocket,
    parse_iperf3_json,
    parse_nstat,
    parse_ping,
    parse_ss,
    parse_ss_samples,
    parse_tc_qdiscs,
)
from measuretwice.tcp.headers import ETHERNET_HEADER_BYTES

Measured = dict[str, float | int | None]


def measure(
    lab: Lab, raw: Path, params: dict[str, Value]
) -> tuple[Measured, Sequence[Flow | CrowdFlow]]:
    """Return the measured values of the run whose nodes' files stand under `raw`/<node>/, and its
    flows where the lab has many.

    ParseError names the file and place that can't be read; OSError a file that is missing.
    """
    how = lab.file.collect
    measured: Measured = {}
    if how.ping:
        measured |= from_ping(parse_ping(_read(raw, how.ping), how.ping.file))
    run: Iperf3Run | None = None
    if how.iperf3:
        run = parse_iperf3_json(_read(raw, how.iperf3), how.iperf3.file)
        if run.error:
            raise ParseError(how.iperf3.file, "error", f"iperf3 says: {run.error}")
        measured |= from_iperf3(run)
    if how.ss and run:
        ports = {connection.local_port for connection in run.connections}
        samples = parse_ss_samples(_read(raw, how.ss), how.ss.file, local_ports=ports)
        measured |= from_samples(samples, ports)
    if how.ss_last:
        measured |= _from_last_lines(_read(raw, how.ss_last), how.ss_last.file)
    if how.capture:
        measured |= from_capture(_read(raw, how.capture))
    if how.bottleneck:
        measured |= _from_qdisc(raw, how.bottleneck)
    measured |= _from_counters(raw, how)
    if how.crowd:
        crowd, of_all = read_crowd(lab, raw, params)
        return measured | of_all, crowd
    flows, together = read_flows(lab, raw, params)
    return measured | together, flows


def _read(raw: Path, file: NodeFile) -> str:
    return (raw / file.node / file.file).read_text(encoding="utf-8", errors="replace")


def from_ping(ping: PingRun) -> Measured:
    return {
        "ping_sent_packets": ping.transmitted,
        "ping_loss_ratio": ping.loss_ratio,
        "ping_rtt_min_ms": ping.rtt_min_ms,
        "ping_rtt_mean_ms": ping.rtt_avg_ms,
    }


def from_iperf3(run: Iperf3Run) -> Measured:
    return {
        # What the receiving program got: RFC 2647 calls this goodput.
        "goodput_bps": run.received_rate_bps,
        "sender_rate_bps": run.sent_rate_bps,
        "bytes_received": run.received_bytes,
        "duration_s": run.sent_seconds,
        "retransmits": run.retransmits,
        "flows": len(run.streams),
    }


def from_iperf2(connections: tuple[Iperf2Connection, ...]) -> Measured:
    """Senders' CSV: from the totals of the whole test, each over its own time."""
    totals = [one.total for one in connections]
    return {
        "goodput_bps": sum(
            8 * total.bytes / (total.end_s - total.start_s)
            for total in totals
            if total.end_s > total.start_s
        ),
        "duration_s": max(total.end_s - total.start_s for total in totals),
        "flows": len(connections),
    }


def from_samples(samples: tuple[SsSample, ...], ports: set[int]) -> Measured:
    """The connections from `ports`: told by them from iperf3's control connection."""
    last: dict[int, SsSocket] = {}
    rtt_sum_ms, rtt_count = 0.0, 0
    cwnd_sum, cwnd_max = 0, 0
    rtt_min_ms: float | None = None
    for sample in samples:
        for socket in sample.sockets:
            if socket.local_port not in ports or socket.rtt_ms is None:
                continue
            last[socket.local_port] = socket
            rtt_sum_ms += socket.rtt_ms
            rtt_count += 1
            cwnd_sum += socket.cwnd_segments or 0
            cwnd_max = max(cwnd_max, socket.cwnd_segments or 0)
            if socket.minrtt_ms is not None:
                rtt_min_ms = min(rtt_min_ms or socket.minrtt_ms, socket.minrtt_ms)
    sockets = list(last.values())
    ports_seen = sorted(last)
    return {
        "rtt_min_ms": rtt_min_ms,
        "rtt_mean_ms": round(rtt_sum_ms / rtt_count, 6) if rtt_count else None,
        "mss_bytes": sockets[0].mss_bytes if sockets else None,
        "data_segs_out": _sum(socket.data_segs_out for socket in sockets),
        "bytes_acked": _sum(socket.bytes_acked for socket in sockets),
        "cwnd_mean_segments": round(cwnd_sum / rtt_count, 6) if rtt_count else None,
        "cwnd_max_segments": cwnd_max if rtt_count else None,
        "data_port": ports_seen[0] if len(ports_seen) == 1 else None,
        "retrans_total": _sum(socket.retrans_total or 0 for socket in sockets),
        "ss_samples": len(samples),
    }


def _from_last_lines(text: str, source: str) -> Measured:
    """The lines of ss that a person would keep: whose are they, and whose is the last?"""
    sockets = parse_ss(text, source) if text.strip() else ()
    return {
        "picked_port": sockets[-1].local_port if sockets else None,
        "picked_connections": len({socket.local_port for socket in sockets}),
    }


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


_FRAME = re.compile(r"\blength (\d+): \d+\.\d+\.\d+\.\d+\.\d+ > ")


def from_capture(text: str) -> Measured:
    """tcpdump -e: 'length N' is the whole frame's, so the IP packet is 14 bytes less."""
    frames = [int(match) for match in _FRAME.findall(text)]
    largest = max(frames, default=None)
    return {
        "captured_packets": len(frames),
        "largest_packet_bytes": None if largest is None else largest - ETHERNET_HEADER_BYTES,
    }


def _from_qdisc(raw: Path, where: QdiscAt) -> Measured:
    """What the qdisc counted between the snapshots: netem counts a drop at the door."""
    device = _device(raw / where.node / "addr.json", where.address)
    before, after = (
        _qdisc(raw / where.node / f"qdisc.{when}.json", device, where.kind)
        for when in ("before", "after")
    )
    sent = (after.sent_packets or 0) - (before.sent_packets or 0)
    drops = (after.drops or 0) - (before.drops or 0)
    return {
        **from_counts(sent, (after.sent_bytes or 0) - (before.sent_bytes or 0), drops),
        "qdisc_limit_packets": after.limit_packets,
        "other_qdisc_drops": _other_drops(raw, where.node, device),
    }


def _other_drops(raw: Path, node: str, device: str) -> int:
    """Drops between the snapshots by all other interfaces' root qdiscs, on every node."""

    def drops(when: str) -> int:
        return sum(
            qdisc.drops or 0
            for path in raw.glob(f"*/qdisc.{when}.json")
            for qdisc in parse_tc_qdiscs(path.read_text(), path.name)
            if qdisc.root and not (path.parent.name == node and qdisc.dev == device)
        )

    return drops("after") - drops("before")


def from_counts(sent: int, sent_bytes: int, drops: int) -> Measured:
    """A qdisc's counts: what it was offered is what it sent and what it dropped."""
    offered = sent + drops
    return {
        "qdisc_sent_packets": sent,
        "qdisc_sent_bytes": sent_bytes,
        "qdisc_drops": drops,
        "qdisc_offered_packets": offered,
        "loss_ratio": drops / offered if offered else None,
    }


def _device(path: Path, address: str) -> str:
    try:
        for link in json.loads(path.read_text()):
            if any(info.get("local") == address for info in link.get("addr_info", [])):
                return str(link["ifname"])
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ParseError(path.name, "file", f"not what 'ip -j addr' prints: {error}") from None
    raise ParseError(path.name, "file", f"no interface has the address {address}")


def _qdisc(path: Path, device: str, kind: str) -> Qdisc:
    for qdisc in parse_tc_qdiscs(path.read_text(), path.name):
        if qdisc.dev == device and qdisc.kind == kind:
            return qdisc
    raise ParseError(path.name, "file", f"there is no {kind} qdisc on {device}")


def _from_counters(raw: Path, how: Collect) -> Measured:
    """Losses that no qdisc counts: the receiver's own queue, the backlog between drivers and IP."""
    values: Measured = {}
    for side, node in (("sender", how.sender), ("receiver", how.receiver)):
        if node is None:
            continue
        before, after = (
            parse_nstat((raw / node / f"nstat.{when}.json").read_text(), f"nstat.{when}.json")
            for when in ("before", "after")
        )
        change = {key: after[key] - before.get(key, 0) for key in after}
        if side == "receiver":
            values["receiver_ofo_drops"] = change.get("TcpExtTCPOFODrop")
            values["receiver_prune_calls"] = change.get("TcpExtPruneCalled")
            values["receiver_acks_out"] = change.get("TcpOutSegs")
        else:
            values["timeouts"] = change.get("TcpExtTCPTimeouts")
            values["spurious_retransmits"] = change.get("TcpExtTCPDSACKRecv")
    values["softnet_drops"] = sum(
        _softnet_drops(folder)
        for folder in raw.iterdir()
        if (folder / "softnet_stat.after.txt").is_file()
    )
    return values


def _softnet_drops(folder: Path) -> int:
    """Second column of /proc/net/softnet_stat, in hexadecimal (net/core/net-procfs.c)."""

    def drops(when: str) -> int:
        lines = (folder / f"softnet_stat.{when}.txt").read_text().splitlines()
        return sum(int(line.split()[1], 16) for line in lines if line.strip())

    return drops("after") - drops("before")
