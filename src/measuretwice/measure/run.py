"""From a run's raw files to its measured values. Reads files only: never the network.

Where each number comes from is written beside it; what each flow of several did is in flows.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.network import Collect, QdiscAt
from measuretwice.measure import fields
from measuretwice.measure.connections import what_iperf3_says
from measuretwice.measure.fields import Measured
from measuretwice.measure.flows import Flow, read_flows
from measuretwice.measure.raw import counters_grown, name_of, text_at, text_of
from measuretwice.parse import (
    Frames,
    Iperf2Connection,
    Iperf3Run,
    ParseError,
    PingRun,
    Qdisc,
    SsSample,
    SsSocket,
    parse_frames,
    parse_iperf3_json,
    parse_ping,
    parse_ss,
    parse_ss_samples,
    parse_tc_qdiscs,
)
from measuretwice.parse.host import parse_emulator, parse_ip, parse_softnet
from measuretwice.parse.netperf import BulkTest

# Fewer looks at a window that goes up and down are no mean.
FEW_LOOKS = 10


def measure(lab: Lab, raw: Path, params: Mapping[str, Value]) -> tuple[Measured, list[Flow]]:
    """Return the measured values of the run whose nodes' files stand under `raw`/<node>/, and its
    flows where the lab has several.

    ParseError names the file and place that can't be read; OSError a file that is missing.
    """
    measured = read_totals(lab.file.collect, raw)
    flows, together = read_flows(lab, raw, params)
    measured |= together | _from_emulator(lab, raw)
    fields.require(measured, lab.name)
    return measured, flows


def read_totals(files: Collect, raw: Path) -> Measured:
    """Return what the tools say of the whole run, of all flows as one, and what every node counted.

    ParseError where a file can't be read, OSError where it is missing.
    """
    measured: Measured = {}
    if files.ping:
        measured |= from_ping(parse_ping(text_at(raw, files.ping), files.ping.file))
    run: Iperf3Run | None = None
    if files.iperf3:
        run = parse_iperf3_json(text_at(raw, files.iperf3), files.iperf3.file)
        if run.error:
            raise ParseError(files.iperf3.file, "error", what_iperf3_says(run.error))
        measured |= from_iperf3(run)
    if files.ss and run:
        ports = {connection.local_port for connection in run.connections}
        samples = parse_ss_samples(text_at(raw, files.ss), files.ss.file, local_ports=ports)
        measured |= from_samples(samples, ports)
    if files.ss_last:
        measured |= _from_last_lines(text_at(raw, files.ss_last), files.ss_last.file)
    # Where none was asked for (capture_packets = 0) there is none. A tcpdump that doesn't start ends the run.
    if files.capture and (raw / files.capture.node / files.capture.file).exists():
        measured |= from_frames(parse_frames(text_at(raw, files.capture), files.capture.file))
    if files.bottleneck:
        measured |= _from_qdisc(raw, files.bottleneck)
    return measured | _from_counters(raw, files)


def from_ping(ping: PingRun) -> Measured:
    """Return the idle path's round-trip times (ms) and the share of losses, before the test.

    Where ping's clock went back its smallest time is none.
    """
    return {
        "ping_sent_packets": ping.transmitted,
        "ping_loss_ratio": ping.loss_ratio,
        "ping_rtt_min_ms": ping.least_ms,
        "ping_rtt_mean_ms": ping.rtt_avg_ms,
    }


def from_iperf3(run: Iperf3Run) -> Measured:
    """Return what both programs of iperf3 say of the whole test."""
    return {
        # What the receiving program got: RFC 2647 calls this goodput. An abridged text may have the sender's word alone.
        "goodput_bps": run.sent_rate_bps if run.received_bytes is None else run.received_rate_bps,
        "sender_rate_bps": run.sent_rate_bps,
        "bytes_received": run.received_bytes,
        "duration_s": run.sent_seconds,
        # The kernel and tc count the seconds, too, that -O leaves out.
        "retransmits": None
        if run.retransmits is None or run.omitted_retransmits is None
        else run.retransmits + run.omitted_retransmits,
        "flows": len(run.streams) or len(run.connections) or None,
    }


def from_iperf2(connections: tuple[Iperf2Connection, ...]) -> Measured:
    """Return what iperf 2's senders say: from the totals of the whole test, each over its own time."""
    totals = [connection.total for connection in connections]
    return {
        "goodput_bps": sum(
            8 * total.bytes / (total.end_s - total.start_s)
            for total in totals
            if total.end_s > total.start_s
        ),
        "duration_s": max(total.end_s - total.start_s for total in totals),
        "flows": len(connections),
        **_algorithm({connection.congestion_control for connection in connections}),
    }


def _algorithm(names: set[str | None]) -> Measured:
    """Return the one algorithm that a tool names; nothing where it names none, or several."""
    known = [name for name in names if name]
    return {"congestion_control": known[0]} if len(known) == 1 else {}


def from_bulk(tests: Sequence[BulkTest]) -> Measured:
    """Return what netperf or flent says of tests that ran at once."""
    retransmits = [test.retransmits for test in tests]
    sizes = {test.mss_bytes for test in tests} - {None}
    measured: Measured = {
        "goodput_bps": sum(test.rate_bps for test in tests),
        "duration_s": max(test.seconds for test in tests),
        "flows": sum(test.flows for test in tests),
        "retransmits": None if None in retransmits else sum(filter(None, retransmits)),
        "ping_rtt_min_ms": min(
            (test.ping_min_ms for test in tests if test.ping_min_ms), default=None
        ),
    }
    if len(sizes) == 1:
        measured["mss_bytes"] = sizes.pop()
    measured |= _algorithm({test.congestion_control for test in tests})
    return {name: value for name, value in measured.items() if value is not None}


def from_samples(samples: tuple[SsSample, ...], ports: set[int]) -> Measured:
    """Return what ss says of the connections from `ports`, by which these are told from iperf3's control connection."""
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
    data_ports = sorted(last)
    return {
        "rtt_min_ms": rtt_min_ms,
        "rtt_mean_ms": round(rtt_sum_ms / rtt_count, 6) if rtt_count else None,
        "mss_bytes": sockets[0].mss_bytes if sockets else None,
        "data_segs_out": _sum(socket.data_segs_out for socket in sockets),
        "bytes_acked": _sum(socket.bytes_acked for socket in sockets),
        "cwnd_mean_segments": round(cwnd_sum / rtt_count, 6) if rtt_count >= FEW_LOOKS else None,
        "cwnd_max_segments": cwnd_max if rtt_count else None,
        "data_port": data_ports[0] if len(data_ports) == 1 else None,
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


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def from_frames(frames: Frames) -> Measured:
    """Return how many packets tcpdump saw on the router, and how large the largest was: of a handful, which may be no
    test's at all, that isn't known."""
    enough = len(frames.packet_bytes) >= FEW_LOOKS
    return {
        "captured_packets": len(frames.packet_bytes),
        "largest_packet_bytes": max(frames.packet_bytes) if enough else None,
        "hundredth_packet_bytes": _hundredth(frames.packet_bytes),
    }


def _hundredth(packets: Sequence[int]) -> int | None:
    """Return the size that one packet in a hundred has at least; None of fewer than a hundred."""
    if len(packets) < 100:
        return None
    return sorted(packets, reverse=True)[len(packets) // 100]


def _from_qdisc(raw: Path, place: QdiscAt) -> Measured:
    """What the qdisc counted between the snapshots: netem counts a drop at the door."""
    device = _device(raw / place.node / "addr.json", place.address)
    before, after = (
        _qdisc(raw / place.node / f"qdisc.{when}.json", device, place.kind)
        for when in ("before", "after")
    )
    sent = (after.sent_packets or 0) - (before.sent_packets or 0)
    drops = (after.drops or 0) - (before.drops or 0)
    if sent < 0 or drops < 0:
        raise ParseError(
            f"{place.node}/qdisc.after.json",
            device,
            "its qdisc has counted less than before the run: the two files are swapped, or of two runs",
        )
    return {
        **from_counts(sent, (after.sent_bytes or 0) - (before.sent_bytes or 0), drops),
        "qdisc_limit_packets": after.limit_packets,
        "other_qdisc_drops": _other_drops(raw, place.node, device),
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
    """Return a qdisc's counts: what it was offered is what it sent and what it dropped."""
    offered = sent + drops
    return {
        "qdisc_sent_packets": sent,
        "qdisc_sent_bytes": sent_bytes,
        "qdisc_drops": drops,
        "qdisc_offered_packets": offered,
        "loss_ratio": drops / offered if offered else None,
    }


def _device(path: Path, address: str) -> str:
    for link in parse_ip(text_of(path), path.name):
        addresses = link.get("addr_info") or []
        if any(isinstance(info, dict) and info.get("local") == address for info in addresses):
            return str(link.get("ifname"))
    raise ParseError(path.name, "file", f"no interface has the address {address}")


def _qdisc(path: Path, device: str, kind: str) -> Qdisc:
    for qdisc in parse_tc_qdiscs(path.read_text(), path.name):
        if qdisc.dev == device and qdisc.kind == kind:
            return qdisc
    raise ParseError(path.name, "file", f"there is no {kind} qdisc on {device}")


def _from_emulator(lab: Lab, raw: Path) -> Measured:
    """Return how late packets were, where an emulator stood in the place of a link."""
    emulated = lab.file.topology.emulated
    path = raw / emulated.link.split("/")[0] / "emulator.json" if emulated else None
    if path is None or not path.is_file():
        return {}
    return {f"emulator_{k}": v for k, v in parse_emulator(text_of(path), name_of(path)).items()}


def _from_counters(raw: Path, files: Collect) -> Measured:
    """Losses that no qdisc counts: the receiver's own queue, the backlog between drivers and IP."""
    values: Measured = {}
    if files.sender is not None:
        grown = counters_grown(raw / files.sender)
        values["timeouts"] = grown.get("TcpExtTCPTimeouts")
        values["spurious_retransmits"] = grown.get("TcpExtTCPDSACKRecv")
    if files.receiver is not None:
        grown = counters_grown(raw / files.receiver)
        values["receiver_ofo_drops"] = grown.get("TcpExtTCPOFODrop")
        values["receiver_prune_calls"] = grown.get("TcpExtPruneCalled")
        values["receiver_acks_out"] = grown.get("TcpOutSegs")
    values["softnet_drops"] = sum(
        _softnet_drops(folder)
        for folder in raw.iterdir()
        if (folder / "softnet_stat.after.txt").is_file()
    )
    return values


def _softnet_drops(folder: Path) -> int:
    before, after = (
        parse_softnet(text_of(path), name_of(path))["dropped"]
        for path in (folder / f"softnet_stat.{when}.txt" for when in ("before", "after"))
    )
    return after - before
