"""The checks of hosts and routers: what limited each sender, who else was there, where packets went.

They need the snapshots that every node writes, and ss; a run of which only measured values are left
has neither, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check
from measuretwice.measure.host_state import Interface, Node, Socket
from measuretwice.tcp.model import (
    ETHERNET_HEADER_BYTES,
    USUAL_MSS_BYTES,
    largest_packet_bytes,
    payload_limit,
)

# Slow start outruns a window for some round trips in any honest run; a sender whose buffer or receiver
# is too small is held up for most of the time.
LIMITED_RATIO = 0.2
# Linux offers between a half and all of tcp_rmem's largest; a window far below has another reason.
WINDOW_SHARE = 0.4
# iperf3 always has something to send, so data is in flight all the time.
BUSY_RATIO = 0.85
FULL_RATIO = 0.85
LEAST_SECONDS = 2.0
# What a path carries besides, such as pings and control connections.
OTHER_SHARE = 0.03
OTHER_BYTES = 200_000
SAMPLE_SLACK_S = 0.5
# Packets that wait or travel at the moment of a snapshot.
UNDERWAY_PACKETS = 50


@check(
    Help("wrong-algorithm"),
    needs=("rivals_found", "flows"),
)
def socket_algorithms(case: Case) -> Finding | None:
    """The congestion control that each connection had, by ss, against those that were meant."""
    found = {socket.congestion_control for socket in case.data_sockets()} - {None}
    asked, rivals = case.want("rival_flows"), case.got("rivals_found")
    wanted = case.algorithms - ({str(case.wanted.get("rival"))} if asked == 0 else set())
    if found and wanted and not found <= wanted:
        return Finding(
            "wrong-algorithm",
            "error",
            f"flows of {', '.join(sorted(map(str, found)))} (ss)",
            ", ".join(sorted(wanted)),
            "What is measured is another algorithm's doing: the setting did not reach the socket.",
            off="a flow isn't of the kind that was asked for",
        )
    if asked and rivals is None and found:
        # Nothing is measured of rivals where all flows are of one kind.
        rival = case.wanted.get("rival")
        rivals = sum(socket.congestion_control == rival for socket in case.data_sockets())
    if asked is None or rivals is None or rivals == asked:
        return None
    return Finding(
        "wrong-algorithm",
        "error",
        f"{rivals:.0f} flows of {case.wanted.get('rival')} (ss)",
        f"{asked:.0f} of {case.got('flows') or 0:.0f}",
        "Some flows have a different algorithm from the one that was meant, so the rivals' share isn't theirs.",
        off="flows aren't of the kinds that were asked for",
    )


@check(
    Help(
        "receive-window",
        "How long the receiver's window held up a sender (rwnd_limited in ss).",
        explains=("unexplained",),
        hints=(
            "ss says what a connection waited for. Look at its last line.",
            "Compare busy with rwnd_limited, and snd_wnd with what the path holds: rate times round-trip time.",
            "The receiver offers too small a window: look at tcp_rmem, at the application's own buffer (-w), and at its memory.",
        ),
    ),
    needs=("goodput_bps", "mss_bytes"),
)
def receive_window(case: Case) -> Finding | None:
    most = case.want("rmem_max_bytes")
    for socket in case.data_sockets():
        window = socket.window_max_bytes
        if socket.rwnd_limited_ratio < LIMITED_RATIO or window is None:
            continue
        # A window as large as the setting allows is what was asked for.
        if most and window >= WINDOW_SHARE * most:
            continue
        # At a full link the window only says how much of the queue the receiver allows.
        if _fills_the_link(case):
            continue
        return Finding(
            "receive-window",
            "error",
            f"{socket.node}'s flow waited for the receiver's window {100 * socket.rwnd_limited_ratio:.0f} % "
            f"of its time; that was never above {window} B (ss)",
            f"a window of up to {most:.0f} B, and losses or the link as the only limit"
            if most
            else "losses or the link as the only limit",
            "The receiver decided how fast the flow may go, not the congestion control.",
            off=f"{socket.node}'s flow sent less than its congestion window allowed",
        )
    return None


@check(
    Help(
        "send-buffer",
        "How long the sender's own buffer held it up (sndbuf_limited in ss), where its goodput is off.",
        explains=("unexplained",),
        hints=(
            "ss says what a connection waited for. Look at its last line.",
            "Compare busy with sndbuf_limited, and the window with what the path holds: rate times round-trip time.",
            "The sender's buffer is smaller than the path: look at tcp_wmem and at the application's own (-w).",
        ),
    ),
    needs=(),
)
def send_buffer(case: Case) -> Finding | None:
    if all(verdict.ok is not False for verdict in case.verdicts):
        return None
    for socket in case.data_sockets():
        if socket.sndbuf_limited_ratio >= LIMITED_RATIO:
            return Finding(
                "send-buffer",
                "error",
                f"{socket.node}'s flow waited for its own buffer "
                f"{100 * socket.sndbuf_limited_ratio:.0f} % of its time (ss)",
                "losses or the link as the only limit",
                "The sender's buffer decides how much may be in flight, not the congestion control.",
                off=f"{socket.node}'s flow sent less than its congestion window allowed",
            )
    return None


@check(
    Help(
        "application-limited",
        "How long a sender had data in flight (busy in ss), compared with how long it was there.",
        explains=("unexplained", "duration"),
        hints=(
            "ss says how long a connection had something to do. Look at its last line.",
            "Compare busy with the length of the test.",
            "The program didn't send all the time: look at iperf3's own options, such as -b.",
        ),
    ),
    needs=(),
)
def application_limited(case: Case) -> Finding | None:
    for socket in case.data_sockets():
        if socket.alive_s < LEAST_SECONDS or socket.busy_s >= BUSY_RATIO * socket.alive_s:
            continue
        return Finding(
            "application-limited",
            "error",
            f"{socket.node}'s flow had data in flight for {socket.busy_s:.1f} s of {socket.alive_s:.1f} s (ss)",
            "all the time",
            "The program that sends had nothing to send for some of the time. Its rate is its own choice, "
            "not TCP's.",
            off=f"{socket.node}'s flow was idle for {100 * (1 - socket.busy_s / socket.alive_s):.0f} % of its time",
        )
    return None


@check(
    Help(
        "other-traffic",
        "What crossed the busiest interface, compared with what the flows sent.",
        explains=("unexplained", "duration", "queueing"),
        hints=(
            "Each node has counted what its interfaces carried (ip -s link).",
            "Add up what the flows sent by ss, with headers, and compare it with the busiest interface's bytes.",
            "Somebody else used the path: a second test, or a flow left over from an earlier one.",
        ),
    ),
    needs=("mss_bytes",),
)
def other_traffic(case: Case) -> Finding | None:
    sockets = case.data_sockets()
    if not sockets or case.host_state is None or "others-send" in case.meant:
        return None
    for other in case.other_sockets():
        return Finding(
            "other-traffic",
            "error",
            f"{other.node} sent {other.bytes_sent / 1e6:.4g} MB to {other.peer} from port {other.port} (ss), "
            "a connection that iperf3 doesn't name",
            "the flows' own connections and no others",
            "Somebody else used the path. What the flows had is what was left.",
            off=f"more went through the path than the {len(sockets)} flow{'s' if len(sockets) != 1 else ''} sent",
        )
    mss_bytes = case.got("mss_bytes") or USUAL_MSS_BYTES
    frame = largest_packet_bytes(mss_bytes) + ETHERNET_HEADER_BYTES
    # What was sent after ss's last sample isn't in it.
    longest_s = max(socket.alive_s for socket in sockets)
    unsampled_s = (case.want("sample_interval_s") or 1.0) + SAMPLE_SLACK_S
    late = unsampled_s / longest_s if longest_s else 1.0
    sent = sum(socket.bytes_sent for socket in sockets) * frame / mss_bytes
    node, interface = max(
        ((node.name, one) for node in case.host_state.nodes.values() for one in node.interfaces.values()),
        key=lambda pair: pair[1].sent_bytes or 0,
        default=("", None),
    )  # fmt: skip
    if interface is None or not interface.sent_bytes:
        return None
    if interface.sent_bytes <= sent * (1 + OTHER_SHARE + late) + OTHER_BYTES:
        return None
    return Finding(
        "other-traffic",
        "error",
        f"{interface.sent_bytes / 1e6:.4g} MB left {node}'s {interface.name} while the flows sent "
        f"{sent / 1e6:.4g} MB, headers included",
        "the flows' own bytes and no others",
        "Somebody else used the path. What the flows had is what was left.",
        off=f"more went through the path than the {len(sockets)} flow{'s' if len(sockets) != 1 else ''} sent",
    )


@check(
    Help(
        "interface-drops",
        "What interfaces themselves dropped or found damaged.",
        explains=("retransmissions", "unexplained"),
        hints=(
            "A packet can be lost without any qdisc. Each interface has counters of its own.",
            "Look at dropped and errors of each interface in ip -s link, before and after.",
            "An interface lost packets: its ring or its backlog was full, or packets were larger than it takes.",
        ),
    ),
    needs=("retransmits",),
)
def interface_drops(case: Case) -> Finding | None:
    lost = {
        f"{node.name}'s {one.name}": one.errors_and_drops
        for node, one in _interfaces(case)
        if one.errors_and_drops
    }
    again = case.got("retransmits")
    if not lost or (again is not None and sum(lost.values()) <= 0.01 * again):
        return None
    where = ", ".join(f"{count} at {name}" for name, count in lost.items())
    return Finding(
        "interface-drops",
        "error",
        f"packets dropped by interfaces: {where}",
        "none",
        "No qdisc's counters have these losses.",
        off=f"{sum(lost.values())} packets were lost where no qdisc counts them",
    )


@check(
    Help(
        "lost-between",
        "Packets that came into a router, compared with those that left it and those that its qdiscs dropped.",
        explains=("retransmissions", "unexplained"),
        hints=(
            "Packets aren't lost without a trace: each node counts what comes in and what goes out.",
            "For each router: received by all its interfaces, less sent by all, less its qdiscs' drops.",
            "Either something in that node throws packets away unseen (a filter, a policer, a missing route), or its files are of another run.",
        ),
    ),
    needs=(),
)
def lost_between(case: Case) -> Finding | None:
    """What a forwarding node received, it sent on, or a root qdisc dropped it."""
    if case.host_state is None or "tcp-split" in case.meant:
        return None
    for node in case.host_state.nodes.values():
        counts = _passed(node)
        if counts is None:
            continue
        received, sent, dropped = counts
        missing = received - sent - dropped
        if abs(missing) <= UNDERWAY_PACKETS + 0.001 * received:
            continue
        return Finding(
            "lost-between",
            "error",
            f"{node.name} received {received} packets, sent {sent} and dropped {dropped}: "
            f"{abs(missing)} {'are missing' if missing > 0 else 'too many'}",
            "as many sent and dropped as received",
            "Something in that node loses packets unseen, or these files aren't all of one run.",
            off=f"{abs(missing)} packets are {'missing' if missing > 0 else 'too many'} at one node",
        )
    return None


def _interfaces(case: Case) -> list[tuple[Node, Interface]]:
    nodes: Sequence[Node] = list(case.host_state.nodes.values()) if case.host_state else []
    return [(node, interface) for node in nodes for interface in node.interfaces.values()]


def _passed(node: Node) -> tuple[int, int, int] | None:
    """Packets received, sent and dropped at the root; None where the node forwards nothing, or hasn't counted."""
    interfaces = list(node.interfaces.values())
    if node.sysctls.get("net.ipv4.ip_forward") != "1" or len(interfaces) < 2:
        return None
    received = [one.received_packets for one in interfaces]
    sent = [one.sent_packets for one in interfaces]
    if None in received or None in sent:
        return None
    dropped = sum(
        count for one in interfaces for place, count in one.drops.items() if place.endswith(" root")
    )
    return sum(map(int, filter(None, received))), sum(map(int, filter(None, sent))), dropped


def _fills_the_link(case: Case) -> bool:
    goodput_bps, mss_bytes = case.got("goodput_bps"), case.got("mss_bytes")
    rate_mbit = case.want("rate_mbit")
    if not goodput_bps or not mss_bytes or not rate_mbit or len(case.data_sockets()) != 1:
        return False
    return goodput_bps >= FULL_RATIO * payload_limit(rate_mbit * 1e6, mss_bytes)


def limited_by_buffers(sockets: Sequence[Socket]) -> bool:
    """Return whether ss says that some flow waited for a buffer, its own or the receiver's."""
    return any(
        max(socket.rwnd_limited_ratio, socket.sndbuf_limited_ratio) >= LIMITED_RATIO / 4
        for socket in sockets
    )
