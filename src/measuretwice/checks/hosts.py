"""The checks of hosts and routers: what limited each sender, who else was there, where packets went; and what limits a
flow, by each tool's own word.

The checks need the snapshots that every node writes, and ss; a run of which only measured values are left has
neither, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from measuretwice.checks.registry import Finding, FindingKind, Right, RunUnderTest, check, in_mbit
from measuretwice.checks.transfers import least_rate_bps
from measuretwice.measure.connections import BUFFER, PROGRAM, RECEIVER, WINDOW
from measuretwice.measure.host_state import HostState, Interface, Node, Socket
from measuretwice.measure.transfers import Transfer
from measuretwice.tcp.model import (
    ETHERNET_HEADER_BYTES,
    USUAL_MSS_BYTES,
    largest_packet_bytes,
    payload_limit,
)

# Slow start outruns a window for some round trips in any honest run; a sender whose buffer or receiver
# is too small is held up for most of the time.
LIMITED_RATIO = 0.2
ALWAYS_RATIO = 0.5
# Linux offers between a half and all of tcp_rmem's largest; a window far below has another reason.
WINDOW_SHARE = 0.4
FULL_RATIO = 0.85
# What a path carries besides, such as pings and control connections.
OTHER_SHARE = 0.03
OTHER_BYTES = 200_000
# A host in the world drops what its switch says every two seconds.
FOREIGN_FRAMES_PER_S = 1.0
# Packets that wait or travel at the moment of a snapshot.
UNDERWAY_PACKETS = 50


@check(FindingKind("wrong-algorithm"), needs=())
def fallen_back(run: RunUnderTest) -> Finding | None:
    """Return a finding where both ends didn't agree on what DCTCP needs, so that something else runs under its name."""
    for socket in run.data_sockets():
        last = socket.last
        name = (last and last.congestion_control) or ""
        if not last or name.partition("-")[0] != "dctcp":
            continue
        marks = [mark for mark in (last.algorithm or {}) if mark == "fallback_mode"]
        expected = "dctcp"
        if name == "dctcp" and not marks:
            if not last.flags or "ecn" in last.flags:
                continue
            marks, expected = ["no ecn among its flags"], "dctcp, with ecn"
        return Finding(
            "wrong-algorithm",
            f"{socket.node}'s flow: {', with '.join([name, *marks])} (ss)",
            expected,
            "DCTCP was set, and something else ran under its name, because a connection lacked what DCTCP needs from both ends. "
            "Compare their settings, and the flags that ss prints.",
            symptom="a flow isn't of the kind that was asked for",
        )
    return None


@check(FindingKind("wrong-algorithm"), needs=("rivals_found", "flows"))
def socket_algorithms(run: RunUnderTest) -> Finding | Right | None:
    """The congestion control that each connection had, by ss, against those that were meant."""
    found = {socket.congestion_control for socket in run.data_sockets()} - {None}
    asked, rivals = run.param("rival_flows"), run.measured("rivals_found")
    wanted = run.algorithms - ({str(run.params.get("rival"))} if asked == 0 else set())
    if found and wanted and not found <= wanted:
        return Finding(
            "wrong-algorithm",
            f"flows of {', '.join(sorted(map(str, found)))} (ss)",
            ", ".join(sorted(wanted)),
            "So the measurement is of another algorithm"
            + ("." if run.brought else ": the setting did not reach the socket."),
            symptom="a flow isn't of the kind that was asked for",
            rests_on="congestion_control" if "congestion_control" in run.params else "",
        )
    if asked and rivals is None and found:
        # Nothing is measured of rivals where all flows are of one kind.
        rival = run.params.get("rival")
        rivals = sum(socket.congestion_control == rival for socket in run.data_sockets())
    if asked is None or rivals is None or rivals == asked:
        return Right("each socket's algorithm") if found and wanted else None
    return Finding(
        "wrong-algorithm",
        f"{rivals:.0f} flows of {run.params.get('rival')} (ss)",
        f"{asked:.0f} of {run.measured('flows') or 0:.0f}",
        "Some flows have a different algorithm from the intended one, so the rivals' share isn't theirs.",
        symptom="flows aren't of the kinds that were asked for",
    )


@check(
    FindingKind(
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
def receive_window(run: RunUnderTest) -> Finding | Right | None:
    most = run.param("rmem_max_bytes")
    for socket in run.data_sockets():
        share = socket.rwnd_limited_ratio
        if (always := socket.held_up_by.get(RECEIVER, 0.0)) >= ALWAYS_RATIO:
            share = max(share, always)
        # An older ss doesn't print the window; what is in flight then fills it.
        last = socket.last
        window = socket.window_max_bytes or (
            last and (last.unacked_segments or 0) * (last.mss_bytes or 0)
        )
        if share < LIMITED_RATIO or not window:
            continue
        usual = socket.window_usual_bytes or window
        # A window as large as the setting allows is what was asked for.
        if most and window >= WINDOW_SHARE * most:
            continue
        # At a full link the window only says how much of the queue the receiver allows.
        if _fills_the_link(run):
            continue
        own = socket.rwnd_limited_ratio
        held = (
            f"waited for the receiver's window {100 * own:.0f} % of its time"
            if own >= LIMITED_RATIO
            else f"had all in flight that the receiver's window allows, {100 * share:.0f} % of its time"
        )
        return Finding(
            "receive-window",
            f"{socket.node}'s flow {held}; that was {'mostly' if usual < window else 'never above'} {usual} B (ss)",
            f"a window of up to {most:.0f} B, and losses or the link as the only limit"
            if most
            else "losses or the link as the only limit",
            "The receiver decided how fast the flow may go, not the congestion control.",
            symptom=f"{socket.node}'s flow sent less than its congestion window allowed",
        )
    known = any(socket.busy_s is not None for socket in run.data_sockets())
    return Right("the receiver's window") if known else None


@check(
    FindingKind(
        "send-buffer",
        "How long the sender's own buffer held it up (sndbuf_limited in ss), where its goodput is off.",
        explains=("unexplained",),
        hints=(
            "ss says what a connection waited for. Look at its last line.",
            "Compare busy with sndbuf_limited, and the window with what the path holds: rate times round-trip time.",
            "The sender's buffer is smaller than what the path holds: look at tcp_wmem and at the application's own (-w).",
        ),
    ),
    needs=("goodput_bps", "mss_bytes"),
)
def send_buffer(run: RunUnderTest) -> Finding | None:
    least = LIMITED_RATIO
    if all(verdict.ok is not False for verdict in run.verdicts):
        if not run.brought or _fills_the_link(run):
            return None
        least = ALWAYS_RATIO
    for socket in run.data_sockets():
        if socket.sndbuf_limited_ratio >= least:
            return Finding(
                "send-buffer",
                f"{socket.node}'s flow waited for its own buffer "
                f"{100 * socket.sndbuf_limited_ratio:.0f} % of its time (ss)",
                "losses or the link as the only limit",
                "The sender's buffer decides how much may be in flight, not the congestion control.",
                symptom=f"{socket.node}'s flow sent less than its congestion window allowed",
            )
    return None


@check(
    FindingKind(
        "other-traffic",
        "What crossed the busiest interface, compared with what the flows sent.",
        explains=("unexplained", "duration", "queueing"),
        hints=(
            "Each node has counted what its interfaces carried (ip -s link).",
            "Add up what the flows sent by ss, with headers, and compare it with the busiest interface's bytes.",
            "Someone else used the path: a second test, or a flow left over from an earlier one.",
        ),
    ),
    needs=("mss_bytes", "*_lost_ratio", "*_transfers"),
)
def other_traffic(run: RunUnderTest) -> Finding | Right | None:
    sockets = run.data_sockets()
    if not sockets or run.host_state is None or "others-send" in run.meanings:
        return None
    if run.measured_group("*_lost_ratio") or run.measured_group("*_transfers"):
        # A stream and short transfers beside the flows are meant, and how many bytes they sent isn't known.
        return None
    if others := run.other_sockets():
        other = others[0]
        found = (
            f"{other.node} sent {(other.bytes_sent or 0) / 1e6:.4g} MB to {other.peer} from port {other.port} (ss), "
            "a connection that iperf3 doesn't name"
        )
        expected = "the flows' own connections and no others"
    else:
        mss_bytes = run.measured("mss_bytes") or USUAL_MSS_BYTES
        frame_bytes = largest_packet_bytes(mss_bytes) + ETHERNET_HEADER_BYTES
        # What was sent after ss's last sample isn't in it.
        unseen, sent = (
            data * frame_bytes / mss_bytes
            for data in (
                run.unseen_bytes(sockets),
                sum(socket.bytes_sent or 0 for socket in sockets),
            )
        )
        interfaces = _interfaces(run.host_state)
        if not interfaces or any(socket.bytes_sent is None for socket in sockets):
            return None
        node, interface = max(interfaces, key=lambda pair: pair[1].sent_bytes or 0)
        crossed = interface.sent_bytes or 0
        if crossed <= sent * (1 + OTHER_SHARE) + unseen + OTHER_BYTES:
            return Right("other traffic")
        found = (
            f"{crossed / 1e6:.4g} MB left {node.name}'s {interface.name} while the flows sent "
            f"{sent / 1e6:.4g} MB, including headers"
        )
        expected = "the flows' own bytes and no others"
    return Finding(
        "other-traffic", found, expected,
        "Someone else used the path. What the flows had is what was left.",
        symptom=f"more went through the path than the {len(sockets)} flow{'s' if len(sockets) != 1 else ''} sent",
    )  # fmt: skip


@check(
    FindingKind(
        "interface-drops",
        "What interfaces themselves dropped or found damaged.",
        explains=("retransmissions", "unexplained"),
        hints=(
            "A packet can be lost without any qdisc. Each interface has counters of its own.",
            "Look at dropped and errors of each interface in ip -s link, before and after.",
            "An interface lost packets: its ring or its backlog was full, or packets were larger than it takes.",
        ),
    ),
    needs=("retransmits", "duration_s"),
)
def interface_drops(run: RunUnderTest) -> Finding | Right | None:
    usual = FOREIGN_FRAMES_PER_S * (run.measured("duration_s") or 0.0)
    lost = {
        f"{node.name}'s {interface.name}": interface.errors_and_drops or 0
        for node, interface in _interfaces(run.host_state)
        if (interface.errors_and_drops or 0) > (0 if node.sysctls else usual)
    }
    for node in run.host_state.nodes.values() if run.host_state else ():
        if node.damaged_segments:
            lost[f"{node.name}'s TCP (a wrong checksum, by nstat's TcpInCsumErrors)"] = (
                node.damaged_segments
            )
    again = run.measured("retransmits")
    if not lost or (again is not None and sum(lost.values()) <= 0.01 * again):
        return Right("interfaces' drops") if _interfaces(run.host_state) else None
    where = ", ".join(f"{count} at {name}" for name, count in lost.items())
    return Finding(
        "interface-drops",
        f"packets dropped by interfaces, or damaged: {where}",
        "none",
        "No qdisc's counters have these losses.",
        symptom=f"{sum(lost.values())} packets were lost where no qdisc counts them",
    )


@check(
    FindingKind(
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
def lost_between(run: RunUnderTest) -> Finding | Right | None:
    """Compare what a forwarding node received with what it sent on and what its root qdiscs dropped."""
    if run.host_state is None or "tcp-split" in run.meanings:
        return None
    looked = False
    for node in run.host_state.nodes.values():
        counts = _passed(node)
        if counts is None:
            continue
        looked = True
        received, sent, dropped = counts
        missing = received - sent - dropped
        if abs(missing) <= UNDERWAY_PACKETS + 0.001 * received:
            continue
        return Finding(
            "lost-between",
            f"{node.name} received {received} packets, sent {sent} and dropped {dropped}: "
            f"{abs(missing)} {'are missing' if missing > 0 else 'too many'}",
            "as many sent and dropped as received",
            "Something in that node loses packets unseen, or these files aren't all of one run.",
            symptom=f"{abs(missing)} packets are {'missing' if missing > 0 else 'too many'} at one node",
        )
    return Right("losses inside a node") if looked else None


def _interfaces(host_state: HostState | None) -> list[tuple[Node, Interface]]:
    nodes = host_state.nodes.values() if host_state else ()
    return [(node, interface) for node in nodes for interface in node.interfaces.values()]


def _passed(node: Node) -> tuple[int, int, int] | None:
    """Packets received, sent and dropped at the root; None where the node forwards nothing, or hasn't counted."""
    interfaces = list(node.interfaces.values())
    if node.sysctls.get("net.ipv4.ip_forward") != "1" or len(interfaces) < 2:
        return None
    received = [interface.received_packets for interface in interfaces]
    sent = [interface.sent_packets for interface in interfaces]
    if None in received or None in sent:
        return None
    dropped = sum(
        count
        for interface in interfaces
        for position, count in interface.drops.items()
        if position.endswith(" root")
    )
    return sum(map(int, filter(None, received))), sum(map(int, filter(None, sent))), dropped


def _fills_the_link(run: RunUnderTest) -> bool:
    goodput_bps, mss_bytes = run.measured("goodput_bps"), run.measured("mss_bytes")
    rate_mbit = run.param("rate_mbit")
    if not goodput_bps or not mss_bytes or not rate_mbit or len(run.data_sockets()) != 1:
        return False
    return goodput_bps >= FULL_RATIO * payload_limit(rate_mbit * 1e6, mss_bytes)


def limited_by_buffers(sockets: Sequence[Socket]) -> bool:
    """Return whether ss says that some flow waited for a buffer, its own or the receiver's."""
    return any(
        max(socket.rwnd_limited_ratio, socket.sndbuf_limited_ratio) >= LIMITED_RATIO / 4
        for socket in sockets
    )


# What limits each flow, by each tool's own word, with the share of its time or of its bound: no judgement

# A share of less is no limit.
LEAST_SHARE = 0.01
MOST_SHARE = 1.5


def limits(run: RunUnderTest) -> list[str]:
    """Return what limits a run's flows: a line for each limit that a tool tells of, the largest share first, then a line
    for each that only another file would tell."""
    state = run.host_state
    shares: list[tuple[float, str]] = []
    for socket in run.data_sockets():
        shares += _by_ss(socket)
    for transfer in state.transfers if state else ():
        shares += _by_test(run, transfer)
    if run.data_sockets() or (state and state.transfers):
        shares += _of_the_path(run)
    texts = [
        text for share, text in sorted(shares, key=lambda pair: -pair[0]) if share >= LEAST_SHARE
    ]
    return [*texts, *_untold(run)]


def _by_ss(socket: Socket) -> Iterator[tuple[float, str]]:
    """Yield each share of a connection's time that ss tells."""
    if socket.busy_s is None or (socket.alive_s == 0 and socket.busy_s == 0):
        return
    who = f"{socket.node}:{socket.port}" if socket.port else socket.node
    # A single look doesn't say how long the connection is there.
    busy = min(socket.busy_s / socket.alive_s, 1.0) if socket.alive_s else 1.0
    time = "the time" if socket.alive_s else f"the {socket.busy_s:g} s with data on its way"
    window, buffer = socket.rwnd_limited_ratio, socket.sndbuf_limited_ratio
    usual = f" of {socket.window_usual_bytes} B" if socket.window_usual_bytes else ""
    # What ss has no clock for, each sample shows at its moment.
    rest, moments = busy * max(1 - window - buffer, 0.0), socket.held_up_by
    is_bbr = (socket.congestion_control or "").startswith("bbr")
    none = (
        "the pace that BBR keeps"
        if is_bbr
        else "neither window, nor the program: pacing, or the host's own queue"
    )
    for share, what in (
        (busy * window + rest * moments.get(RECEIVER, 0.0), f"the receiver's window{usual} (ss: rwnd_limited, or all of snd_wnd in flight)"),
        (busy * buffer + rest * moments.get(BUFFER, 0.0), "the sender's own buffer (ss: sndbuf_limited, app_limited)"),
        (1 - busy + rest * moments.get(PROGRAM, 0.0), "the program, which had nothing to send (ss: busy, app_limited)"),
        (rest * moments.get(WINDOW, 0.0), "the congestion window, because of losses or what the path holds (ss: unacked, cwnd)"),
        (rest * moments.get(None, 0.0), f"{none} (ss: unacked, less than the windows allow)"),
    ):  # fmt: skip
        yield share, f"{who}: {100 * share:.0f} % of {time} {what}"


def _by_test(run: RunUnderTest, transfer: Transfer) -> Iterator[tuple[float, str]]:
    """Yield how near a test came to each bound that it tells of, in the words of the tool that printed it."""
    arrived, tool = transfer.arrived, transfer.tool
    if not arrived or not arrived.seconds:
        return
    rate_bps, rtt_ms = arrived.rate_bps, transfer.rtt_ms
    is_stated = run.is_stated("rate_mbit")
    link = "the link's {} Mbit/s, less headers" + (
        "" if is_stated else "; nobody set rate_mbit: it is the lab's own"
    )
    bounds = [
        (least_rate_bps(run), link, payload_limit(1.0, _segment(run, transfer), wire=False)),
        *(
            (rate * transfer.streams, f"the {{}} Mbit/s that {tool} was told ({option})", 1.0)
            for option, rate in transfer.options_bps.items()
        ),
    ]  # fmt: skip
    if rtt_ms and not run.data_sockets():
        for size, what in (
            (transfer.window_bytes, "the receiver's window"),
            (transfer.cwnd_bytes, "the congestion window"),
        ):
            words = f"the {{}} Mbit/s that {what} of {size or 0:.0f} B makes at {rtt_ms:.4g} ms"
            bounds.append((size and 8e3 * size / rtt_ms, words, 1.0))
    for bound_bps, words, part in bounds:
        if bound_bps:
            share = rate_bps / (part * bound_bps)
            if share > MOST_SHARE:
                # That is no bound.
                continue
            yield (
                share,
                f"{transfer.node}: {in_mbit(rate_bps)} Mbit/s, {100 * share:.0f} % of {words.format(in_mbit(bound_bps))} ({tool})",
            )
    for whose, percent in (
        ("sender", transfer.own_cpu_percent),
        ("receiver", transfer.other_cpu_percent),
    ):
        if percent:
            yield (
                percent / 100,
                f"{transfer.node}: {percent:.0f} % of the time the {whose}'s processor was busy ({tool})",
            )
    if transfer.retransmits and arrived.bytes:
        share = transfer.retransmits * _segment(run, transfer) / arrived.bytes
        # More than was sent is no count.
        if share <= 1:
            yield (
                max(share, LEAST_SHARE),
                f"{transfer.node}: {100 * share:.2g} % of its segments sent again ({tool})",
            )


def _segment(run: RunUnderTest, transfer: Transfer) -> float:
    """Return a test's segment size, as near as it is known."""
    return transfer.mss_bytes or run.param("mss_bytes") or USUAL_MSS_BYTES


def _of_the_path(run: RunUnderTest) -> Iterator[tuple[float, str]]:
    """Yield how much of a round trip is spent in queues."""
    least_ms, mean_ms = run.values.get("rtt_min_ms"), run.values.get("rtt_mean_ms")
    if isinstance(least_ms, int | float) and isinstance(mean_ms, int | float) and mean_ms:
        share = max(1 - least_ms / mean_ms, 0.0)
        yield (
            share,
            f"{100 * share:.0f} % of a mean round trip of {mean_ms:.4g} ms spent in queues (ss)",
        )


def _untold(run: RunUnderTest) -> Iterator[str]:
    """Yield what isn't told, and which file would tell it."""
    state = run.host_state
    transfers = state.transfers if state else ()
    sockets = run.data_sockets()
    if not any(socket.busy_s is not None for socket in sockets):
        bring = (
            "the ss of iproute2 4.19 or newer; this one doesn't say it"
            if sockets
            else "ss -ti on the sender, during the test"
        )
        yield f"not told: how long windows, buffers and the program held it up ({bring})"
    if not any(transfer.own_cpu_percent for transfer in transfers):
        yield "not told: how busy the processors were (iperf3 -J, or -V)"
    if transfers and least_rate_bps(run) is None:
        yield "not told: how much of the link was used (--set rate_mbit=...)"
