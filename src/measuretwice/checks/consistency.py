"""The checks of whether a run's files speak of one run: what two of them say of the same thing must agree."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from measuretwice.checks.configuration import differences_of
from measuretwice.checks.registry import Finding, FindingKind, Right, RunUnderTest, check, in_mbit
from measuretwice.measure.host_state import Interface, Socket, place_of
from measuretwice.parse import Qdisc
from measuretwice.tcp.model import (
    ETHERNET_HEADER_BYTES,
    IP_TCP_HEADERS_BYTES,
    TIMESTAMP_OPTION_BYTES,
    USUAL_MSS_BYTES,
)

# What two tools may differ in that count the same bytes.
SAME_SHARE = 0.03
# What a sender may have in its buffer where nobody said how much.
UNSAID_BUFFER_BYTES = 4 << 20
# What a node took from iperf3's lines is what they have, but for rounding.
OWN_ROWS_RATIO = 0.01
# A rate, its bytes and its time are of one line of iperf3.
SUM_TOLERANCE_RATIO = 0.02
LEAST_SUM_BYTES = 100_000
# What an interface and its root qdisc may differ in; with offloads in each segment's headers besides.
COUNTER_SHARE = 0.01
COUNTER_SLACK_BYTES = 100_000
# Where nothing cuts packets up both count the same ones; but for what is sent between the two snapshots. Of bytes
# some cards count more: a frame's checksum.
PACKET_SHARE = 0.0005
PACKET_SLACK = 50
# From a queue's last sample to the snapshot: flows that end a little later than others. An AQM may throw away some of
# what was waiting.
LAST_SLACK_S = 1.5
SAMPLER_SLACK_S = 0.5
LAST_SLACK_BYTES = 200_000
LAST_PACKETS = 10
LAST_DROPS = 2
LAST_DROP_BYTES = 50_000
LEAST_PACKETS = 1000
# A flow that retransmitted more has left its events behind.
FEW_RESENT = 3
# A sampler that begins so much after the flows, or ends before them, has missed a part of the run.
SPAN_SLACK_S = 2.0
# Two hosts' clocks, and iperf3's, which says when it began to a second.
CLOCK_SLACK_S = 5.0
SPAN_SLACK_RATIO = 0.1


@check(
    FindingKind(
        "unfit",
        explains=(
            "bandwidth",
            "path",
            "other-traffic",
            "flows",
            "duration",
            "queueing",
            "unexplained",
        ),
    ),
    needs=(),
)
def unfit(run: RunUnderTest) -> Finding | None:
    """Look whether iperf3 was asked to send TCP from the sender to the receiver."""
    for end in run.host_state.ends if run.host_state else ():
        if end.unfit:
            return Finding(
                "unfit",
                f"{end.source}: {end.unfit}",
                "a test of TCP from the sender to the receiver",
                "So the measurement isn't of the lab's test.",
            )
    return None


@check(
    FindingKind(
        "two-runs",
        "Whether iperf3's two ends and the senders' sockets agree on the same connections, and an interface and its qdisc on the same packets.",
        explains=("unexplained", "bandwidth", "lost-between", "other-traffic"),
        hints=(
            "Sender and receiver have each written down which test it was, and how many bytes went from one to the other.",
            "Compare cookie and ports in iperf3's files, the ports in ss, and bytes_acked in each flow's last line of ss with iperf3's sums.",
            "Two files disagree. One of them is from another run or host, or leaves out part of the time, or its tool counts something else. Look up what each tool counts.",
        ),
    ),
    needs=("mss_bytes", "*_seconds_deviation_bps"),
)
def two_runs(run: RunUnderTest) -> Finding | Right | None:
    for contradiction in (
        *_connections(run),
        *_bytes(run),
        *_counters(run),
        *_ip_counts(run),
        *_last_samples(run),
        *_own_rows(run),
    ):
        return Finding(
            "two-runs",
            contradiction,
            "the same connections, and the same bytes except for those still in flight",
            "Two files disagree about the same thing. Either they aren't of the same connections or not of all of their time, or one "
            "of the tools counts something else.",
            symptom=contradiction,
        )
    return None


def _own_rows(run: RunUnderTest) -> Iterator[str]:
    """Yield which rows, taken from iperf3's file, spread otherwise than the seconds that stand in it."""
    spread_bps = run.measured_group("*_seconds_deviation_bps")
    for transfer in run.host_state.transfers if run.host_state else ():
        own_bps = spread_bps.get(transfer.node.replace("-", "_"))
        rates_bps = [
            8 * row.bytes / (row.end_s - row.start_s)
            for row in transfer.rows
            if row.end_s > row.start_s
        ]
        if own_bps is None or len(rates_bps) < 2:
            continue
        true_bps = statistics.stdev(rates_bps)
        if abs(own_bps - true_bps) > OWN_ROWS_RATIO * true_bps:
            yield (
                f"{transfer.node}'s rows of rates have a deviation of {in_mbit(own_bps)} Mbit/s, but those of {transfer.source} "
                f"{in_mbit(true_bps)}"
            )


def _connections(run: RunUnderTest) -> Iterator[str]:
    """Yield what the tests that the two ends name, and the connections that ss has, contradict."""
    host_state = run.host_state
    if host_state is None:
        return
    servers = {end.cookie: end for end in host_state.ends if end.cookie and end.is_server}
    clients = {end.cookie: end for end in host_state.ends if end.cookie and not end.is_server}
    named = Counter(end.cookie for end in host_state.ends if end.cookie and not end.is_server)
    for cookie, count in named.items():
        if count > 1:
            where = [end.source for end in host_state.ends if end.cookie == cookie]
            yield f"{' and '.join(where)} are of one and the same test"
    alone = [end for cookie, end in servers.items() if cookie not in clients]
    if alone and clients.keys() - servers.keys():
        yield f"no sender's file is of the test that {alone[0].source} is of (their cookies differ)"
    for other in run.other_sockets():
        if not any(socket.node == other.node for socket in run.data_sockets()):
            yield (
                f"{other.node}'s samples of ss have a flow from port {other.port}, and none from a port "
                "that its iperf3 names"
            )
    for node in host_state.nodes.values():
        own = [socket for socket in run.data_sockets() if socket.node == node.name]
        lost = all(socket.last and (socket.last.retrans_total or 0) > FEW_RESENT for socket in own)
        if node.event_ports and own and lost and not node.event_ports & {s.port for s in own}:
            yield (
                f"the kernel's events on {node.name} are of connections from port "
                f"{', '.join(map(str, sorted(node.event_ports)))}, and ss has its data go from port "
                f"{', '.join(str(socket.port) for socket in own)}"
            )


def _bytes(run: RunUnderTest) -> Iterator[str]:
    """Yield where the two ends and ss differ in how much was sent."""
    sockets = run.data_sockets()
    if (
        not sockets
        or run.host_state is None
        or any(socket.bytes_acked is None for socket in sockets)
    ):
        return
    buffer = run.param("wmem_max_bytes") or UNSAID_BUFFER_BYTES

    def differ(said: float, acked: float, flows: Sequence[Socket]) -> bool:
        most = acked * (1 + SAME_SHARE) + run.unseen_bytes(flows) + len(flows) * buffer
        return not acked * (1 - SAME_SHARE) <= said <= most

    acked, received = (
        sum(socket.bytes_acked or 0 for socket in sockets),
        run.host_state.received_bytes,
    )
    if received and differ(received, acked, sockets):
        yield (
            f"the receivers got {received / 1e6:.4g} MB by iperf3's count, the senders had {acked / 1e6:.4g} MB "
            "acknowledged (ss)"
        )
    for node in sorted({socket.node for socket in sockets}):
        own = [socket for socket in sockets if socket.node == node]
        said = [
            end.sent_bytes for end in run.host_state.ends if end.node == node and end.sent_bytes
        ]
        acked = sum(socket.bytes_acked or 0 for socket in own)
        if said and differ(sum(said), acked, own):
            yield (
                f"{node} sent {sum(said) / 1e6:.4g} MB by iperf3's count, and had {acked / 1e6:.4g} MB "
                "acknowledged (ss)"
            )


def _counters(run: RunUnderTest) -> Iterator[str]:
    """Yield where a root qdisc sent what its interface didn't, but for the headers of what offloads cut up later."""
    mss_bytes = run.measured("mss_bytes") or USUAL_MSS_BYTES
    headers = IP_TCP_HEADERS_BYTES + TIMESTAMP_OPTION_BYTES + ETHERNET_HEADER_BYTES
    for node in run.host_state.nodes.values() if run.host_state else ():
        for interface in node.interfaces.values():
            before = {place_of(qdisc): qdisc for qdisc in interface.qdiscs}
            for qdisc in interface.qdiscs_after or ():
                earlier = before.get(place_of(qdisc))
                if not qdisc.root or not earlier or qdisc.handle != earlier.handle:
                    continue
                if (
                    qdisc.sent_bytes is None
                    or earlier.sent_bytes is None
                    or interface.sent_bytes is None
                ):
                    continue
                by_qdisc = qdisc.sent_bytes - earlier.sent_bytes
                cut_up = interface.settings.get("generic-segmentation-offload") != "off"
                share = COUNTER_SHARE + (headers / mss_bytes if cut_up else 0)
                slack = COUNTER_SLACK_BYTES + share * interface.sent_bytes
                same = cut_up or _same_packets(qdisc, earlier, interface)
                larger = by_qdisc > interface.sent_bytes and bool(
                    _packets(qdisc, earlier, interface)
                )
                if not cut_up and same and larger:
                    # The same packets, and more bytes: a size table (stab, overhead), which is a setting.
                    continue
                # An interface without a queue counts nothing there.
                if qdisc.sent_bytes and (abs(by_qdisc - interface.sent_bytes) > slack or not same):
                    yield (
                        f"{node.name}'s {interface.name} sent {interface.sent_bytes} B by its own count, and "
                        f"{by_qdisc} B by its {qdisc.kind} qdisc's"
                    )


def _ip_counts(run: RunUnderTest) -> Iterator[str]:
    """Yield where a node's IP counted other packets than its interfaces, if nothing joins them up or throws them away."""
    if run.host_state is None or run.brought or any(d.matters for d in differences_of(run)):
        return
    for node in run.host_state.nodes.values():
        interfaces = node.interfaces.values()
        joined = any(
            interface.settings.get("generic-receive-offload") != "off" for interface in interfaces
        )
        ways = (
            (
                "received",
                node.ip_received,
                [interface.received_packets for interface in interfaces],
            ),
            ("sent", node.ip_sent, [interface.sent_packets for interface in interfaces]),
        )
        dropping = any(any(interface.drops.values()) for interface in interfaces)
        for way, by_ip, counts in ways:
            if by_ip is None or joined or not counts or None in counts:
                continue
            if way == "sent" and dropping:
                continue
            by_link = sum(count or 0 for count in counts)
            if abs(by_link - by_ip) > PACKET_SLACK + COUNTER_SHARE * by_link:
                yield (
                    f"{node.name}'s interfaces {way} {by_link} packets (ip -s link), and by its protocols' count "
                    f"they are {by_ip} (nstat)"
                )


def _last_samples(run: RunUnderTest) -> Iterator[str]:
    """A queue's last sample and the snapshot after it are of one counter, which only grows: by what waited, and by what came
    until the flows ended."""
    state = run.host_state
    interval_s = (run.param("sample_interval_s") or 1.0) + SAMPLER_SLACK_S
    ended_s = max((socket.rtts[-1][0] for socket in run.data_sockets() if socket.rtts), default=0.0)
    for span in state.queues_sampled if state else ():
        node = state.nodes.get(span.node) if state else None
        interfaces = node.interfaces.values() if node else ()
        after = [qdisc for interface in interfaces for qdisc in interface.qdiscs_after or ()]
        went_on_s = interval_s + (
            min(max(ended_s - span.last_s, 0), LAST_SLACK_S) if ended_s else LAST_SLACK_S
        )
        for qdisc in span.last:
            same = [
                other
                for other in after
                if place_of(other) == place_of(qdisc) and other.handle == qdisc.handle
            ]
            if len(same) != 1 or qdisc.kind in ("noqueue", "mq"):
                continue
            bytes_, drops, waited = (
                (getattr(same[0], name) or 0) - (getattr(qdisc, name) or 0)
                for name in ("sent_bytes", "drops", "backlog_bytes")
            )
            most = (
                LAST_SLACK_BYTES
                + went_on_s * (run.param("rate_mbit") or math.inf) * 125_000
                - waited
            )
            least = -waited - USUAL_MSS_BYTES * (drops + LAST_PACKETS)
            if (
                not max(0, least) <= bytes_ <= most
                or not 0 <= drops <= LAST_DROPS + bytes_ / LAST_DROP_BYTES
            ):
                yield (
                    f"the last sample in {span.source} has {qdisc.sent_bytes} B sent, {qdisc.backlog_bytes or 0} B waiting and "
                    f"{qdisc.drops} packets dropped by {qdisc.kind}, the snapshot after the run {same[0].sent_bytes} B and "
                    f"{same[0].drops} packets"
                )


def _packets(qdisc: Qdisc, earlier: Qdisc, interface: Interface) -> int:
    """Return how many packets a root qdisc sent; 0 where it or its interface doesn't say."""
    if qdisc.sent_packets is None or earlier.sent_packets is None or not interface.sent_packets:
        return 0
    return qdisc.sent_packets - earlier.sent_packets


@check(FindingKind("configuration"), needs=())
def packet_sizes(run: RunUnderTest) -> Finding | None:
    """Compare the size of a packet by an interface's count with the one by its root qdisc's: a table may add to it."""
    for node in run.host_state.nodes.values() if run.host_state else ():
        for interface in node.interfaces.values():
            before = {place_of(qdisc): qdisc for qdisc in interface.qdiscs}
            cut_up = interface.settings.get("generic-segmentation-offload") != "off"
            for qdisc in () if cut_up else interface.qdiscs_after or ():
                earlier = before.get(place_of(qdisc))
                if not qdisc.root or not earlier or qdisc.handle != earlier.handle:
                    continue
                packets = _packets(qdisc, earlier, interface)
                if packets < LEAST_PACKETS or not _same_packets(qdisc, earlier, interface):
                    continue
                by_qdisc = ((qdisc.sent_bytes or 0) - (earlier.sent_bytes or 0)) / packets
                by_interface = (interface.sent_bytes or 0) / (interface.sent_packets or 1)
                if by_qdisc > (1 + COUNTER_SHARE) * by_interface + 1:
                    return Finding(
                        "configuration",
                        f"{node.name}'s {qdisc.kind} counts {by_qdisc:.0f} B a packet, where {interface.name} sent {by_interface:.0f}",
                        "a packet as large for the qdisc as on the interface",
                        "A size table (stab, overhead, linklayer) makes each packet count for more than it is, and the rate is "
                        "that of these counts.",
                        symptom="a qdisc counts packets of another size than were sent",
                    )
    return None


def _same_packets(qdisc: Qdisc, earlier: Qdisc, interface: Interface) -> bool:
    """Return whether a root qdisc and its interface counted as many packets; true where one of them has no number."""
    if qdisc.sent_packets is None or earlier.sent_packets is None or not interface.sent_packets:
        return True
    by_qdisc = qdisc.sent_packets - earlier.sent_packets
    slack = PACKET_SLACK + PACKET_SHARE * interface.sent_packets
    return abs(by_qdisc - interface.sent_packets) <= slack


@check(FindingKind("bandwidth"), needs=())
def sums(run: RunUnderTest) -> Finding | Right | None:
    """A rate is bytes over time: iperf3's three numbers of one sum."""
    for end in run.host_state.ends if run.host_state else ():
        for total in end.sums:
            by_bytes = 8 * total.bytes / total.seconds
            if (
                total.bytes < LEAST_SUM_BYTES
                or abs(total.rate_bps - by_bytes) <= SUM_TOLERANCE_RATIO * by_bytes
            ):
                continue
            return Finding(
                "bandwidth",
                f"{total.rate_bps / 1e6:.4g} Mbit/s in {total.name} of {end.source}",
                f"{by_bytes / 1e6:.4g} Mbit/s: its own {total.bytes:.0f} B in {total.seconds:.4g} s",
                "iperf3 divides bytes by time. Someone has written into this file, or it was converted.",
            )
    return Right("iperf3's own sums") if run.host_state and run.host_state.ends else None


@check(
    FindingKind(
        "samples",
        "When sockets and queue were sampled, compared with when the test ran, according to iperf3, and when the flows were there; and the size of a packet in the queue.",
        explains=("unexplained", "two-runs"),
        hints=(
            "Each sample of ss and of tc has its time before it. Which is the first and which the last, in each file?",
            "Divide the queue's bytes by its packets: that is the size of a packet.",
            "These samples are from another time (a clock that is off), are cut short, are from two runs in one file, or have numbers in each other's places.",
        ),
    ),
    needs=("queue_mean_bytes", "queue_mean_packets"),
)
def samples(run: RunUnderTest) -> Finding | Right | None:
    for found, meant in (*_packet_size(run), *_clocks(run), *_times(run)):
        return Finding(
            "samples", found, meant,
            "All statements about the run rest on samples that can't be from it, or don't cover all of its time.",
        )  # fmt: skip
    return None


def _packet_size(run: RunUnderTest) -> Iterator[tuple[str, str]]:
    bytes_, packets = run.measured("queue_mean_bytes"), run.measured("queue_mean_packets")
    if bytes_ is not None and packets and packets > 1 and bytes_ < packets * IP_TCP_HEADERS_BYTES:
        yield (
            f"{bytes_ / packets:.3g} B for each packet in the queue (tc)",
            f"at least {IP_TCP_HEADERS_BYTES} B: no packet is smaller than its headers",
        )


def _clocks(run: RunUnderTest) -> Iterator[tuple[str, str]]:
    """A host has one clock, so iperf3 and the samples of ss beside it tell the same time."""
    host_state = run.host_state
    if host_state is None:
        return
    for span in (*host_state.flows_sampled, *host_state.queues_sampled):
        if span.went_back:
            yield (
                f"time goes back {span.went_back} times in {span.source}",
                "samples one after the other, of one run",
            )
    for span in host_state.flows_sampled:
        tests = [
            (end.begin_s, end.end_s)
            for end in host_state.ends
            if end.node == span.node and not end.is_server and end.begin_s and end.end_s
        ]
        if not tests:
            continue
        begin_s, end_s = min(begin for begin, _ in tests), max(end for _, end in tests)
        slack_s = CLOCK_SLACK_S + SPAN_SLACK_RATIO * (end_s - begin_s)
        late_s, early_s = span.first_s - begin_s, end_s - span.last_s
        if words := _short_of(late_s, early_s, slack_s, "the test's start", "its end"):
            yield (
                f"{span.source} has samples only {words}, by iperf3's clock",
                "samples as long as the test ran",
            )


def _short_of(late_s: float, early_s: float, slack_s: float, begin: str, end: str) -> str:
    """Say at which end samples lack more than the slack; nothing where they lack none."""
    words = [f"from {late_s:.1f} s after {begin}"] * (late_s > slack_s)
    words += [f"until {early_s:.1f} s before {end}"] * (early_s > slack_s)
    return " and ".join(words)


def _times(run: RunUnderTest) -> Iterator[tuple[str, str]]:
    host_state = run.host_state
    if host_state is None or not host_state.flows_sampled:
        return
    first_s = min(span.first_s for span in host_state.flows_sampled)
    last_s = max(span.last_s for span in host_state.flows_sampled)
    slack_s = max(SPAN_SLACK_S, SPAN_SLACK_RATIO * (last_s - first_s))
    for span in host_state.queues_sampled:
        late_s, early_s = span.first_s - first_s, last_s - span.last_s
        if words := _short_of(late_s, early_s, slack_s, "their first sample", "their last"):
            yield (
                f"{span.source} has the queue only {words}, by the clocks of these files",
                "the queue sampled as long as the flows were",
            )
