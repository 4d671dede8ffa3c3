"""What two tools say that can't both be true, by arithmetic alone, and what a capture shows: no settings of nodes are needed
to see it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from measuretwice.checks.configuration import differences_of
from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
    flows_both_ways,
)
from measuretwice.measure.host_state import Socket, Span
from measuretwice.measure.raw import key_of
from measuretwice.parse.tcpdump import Direction
from measuretwice.tcp.model import TIMESTAMP_OPTION_BYTES
from measuretwice.tcp.traces import interpolate

# Queues from which packets go in the order in which they came: each waits for all before it.
FIFOS = frozenset({"pfifo_fast", "pfifo", "bfifo"})
# Each flow has a queue of its own in these, or each of two classes of flows.
FLOW_QUEUES = frozenset({"fq", "fq_codel", "fq_pie", "cake", "sfq", "dualpi2"})
LEAST_QUEUE_MS = 5.0
# Of the queue's mean delay, so much at least a ping beside the flows has waited; 0.78 is the least that was seen.
WAITED_RATIO = 0.5
# And at most so much; 0.98 is the most that was seen, and 1.01 of the longest ping over the longest queue.
MOST_WAITED_RATIO = 1.25
# TCP's smallest round-trip time is no shorter than ping's, but for chance.
PATH_RATIO = 1.5
PATH_SLACK_MS = 2.0
# In how many samples the link must have been looked at, and how much less than its rate may have gone through it.
LEAST_SAMPLES = 50
IDLE_SHARE = 0.02
CHANCE = 3.0
# Segments sent again that the receiver had.
FEW_NEEDLESS = 20
NEEDLESS_RATIO = 0.5
# net.ipv4.tcp_reordering, from which each connection starts.
USUAL_REORDERING = 3
# Round-trip times and a queue's length, sampled by ss and tc: in runs that are one they agree by 0.85 and more.
LEAST_CORRELATION = 0.7
LEAST_PAIRS = 100
# How far from their mean they are, on average: a short queue that fills and drains between two samples tells nothing.
LEAST_SPREAD_MS = 4.0
# One that is mostly empty fills in bursts, which samples miss.
LEAST_BUSY_SHARE = 0.8
LEAST_USED = 0.9
# Of so many flows' own queues the sum still goes up and down as each of them does.
MOST_IN_SUM = 2
CLOCK_DIFFERENCES_S = (-0.3, 0.0, 0.3)
# How far two clocks may drift apart while a run is on.
DRIFT_RATIO = 0.05
DRIFT_MS = 5.0


@check(
    FindingKind(
        "ping-elsewhere",
        "Ping's round-trip times, compared with TCP's smallest and with the queue that it should have waited in.",
        explains=("unexplained",),
        hints=(
            "Two tools measure how long a packet takes. Compare ping's times with TCP's and the queue's.",
            "Compare ping's mean beside the flows with the idle path and the queue's mean delay, and its smallest with minrtt in ss.",
            "These pings went a different way from the data, through another band of the queue, or at another time: look at ping's options (-Q), at routes, and whose file it is.",
        ),
    ),
    needs=(
        "busy_ping_mean_ms", "busy_ping_max_ms", "queue_max_bytes", "path_rtt_ms", "queue_delay_mean_ms", "queue_kind", "ping_rtt_min_ms", "rtt_min_ms",
        "*_path_rtt_ms",
    ),
)  # fmt: skip
def ping_elsewhere(run: RunUnderTest) -> Finding | None:
    busy_ms, path_ms = run.measured("busy_ping_mean_ms"), run.measured("path_rtt_ms")
    queue_ms = run.measured("queue_delay_mean_ms")
    fifo = run.measured_text("queue_kind") in FIFOS
    if busy_ms is not None and path_ms is not None and queue_ms and fifo:
        least_ms = path_ms + WAITED_RATIO * queue_ms
        if queue_ms >= LEAST_QUEUE_MS and busy_ms < least_ms:
            return _elsewhere(
                f"pings of {busy_ms:.3g} ms beside the flows, before a queue of {queue_ms:.3g} ms (tc) "
                "from which packets go in their order",
                f"some {path_ms + queue_ms:.3g} ms: path and queue",
            )
        longest_ms = run.measured("busy_ping_max_ms") or busy_ms
        rate_mbit, queue_bytes = run.param("rate_mbit"), run.measured("queue_max_bytes")
        most_ms = 8e-3 * queue_bytes / rate_mbit if rate_mbit and queue_bytes else math.inf
        for what, lasted_ms, waited_ms in (
            ("pings", busy_ms, queue_ms),
            ("a ping", longest_ms, most_ms),
        ):
            if lasted_ms <= path_ms + MOST_WAITED_RATIO * waited_ms + LEAST_QUEUE_MS:
                continue
            differing = any(difference.matters for difference in differences_of(run))
            if queue_ms >= LEAST_QUEUE_MS and not differing:
                return _elsewhere(
                    f"{what} of {lasted_ms:.3g} ms beside the flows, on a path of {path_ms:.3g} ms with a queue of "
                    f"{waited_ms:.3g} ms{'' if what == 'pings' else ' at most'} (tc)",
                    f"some {path_ms + waited_ms:.3g} ms: path and queue",
                )
    if "tcp-split" in run.meanings:
        return None
    pings = {"the flow": run.measured("ping_rtt_min_ms"), **run.measured_group("*_path_rtt_ms")}
    least = {"the flow": run.measured("rtt_min_ms")}
    least |= {key_of(socket.node): socket.rtt_min_ms for socket in run.data_sockets()}
    for who, ping_ms in pings.items():
        tcp_ms = least.get(who)
        if ping_ms and tcp_ms and ping_ms > PATH_RATIO * tcp_ms + PATH_SLACK_MS:
            return _elsewhere(
                f"a smallest ping of {ping_ms:.4g} ms, where {who}'s own smallest round-trip time is {tcp_ms:.4g} ms (ss)",
                "no more than TCP's, over the same path",
            )
    return None


def _elsewhere(found: str, meant: str) -> Finding:
    return Finding(
        "ping-elsewhere", found, meant,
        "These pings didn't share the data's path and queue, or aren't from this run, so they tell you nothing about its delay.",
        symptom=found,
    )  # fmt: skip


@check(FindingKind("link-rate"), needs=("utilisation", "queue_busy_ratio", "queue_samples"))
def never_empty(run: RunUnderTest) -> Finding | None:
    """While packets wait, a link sends: it is used at least as long as its queue isn't empty."""
    used, busy = run.measured("utilisation"), run.measured("queue_busy_ratio")
    samples = run.measured("queue_samples")
    if used is None or busy is None or not samples or samples < LEAST_SAMPLES:
        return None
    if run.meanings & {"rate-varies"}:
        return None
    chance = CHANCE * math.sqrt(busy * (1 - busy) / samples)
    if used >= busy - IDLE_SHARE - chance:
        return None
    rate = run.param("rate_mbit")
    of = f" of {rate:g} Mbit/s" if rate else ""
    return Finding(
        "link-rate",
        f"{100 * used:.3g} %{of} went through a link before which packets waited in {100 * busy:.3g} % of all samples (tc)",
        "as much as the link carries, as long as packets wait for it",
        "The link is slower than its stated rate: another rate, a peak rate, or bytes that tc adds to each packet "
        "(overhead, linklayer, mpu).",
        symptom=f"{100 * used:.3g} % of the link was used, and its queue was hardly ever empty",
    )


@check(
    FindingKind(
        "reordering",
        "Segments that were retransmitted though the receiver had them (dsack_dups in ss), compared with all retransmissions.",
        explains=("retransmissions", "loss-ratio", "unexplained"),
        hints=(
            "Compare how many segments were retransmitted with how many were lost.",
            "ss shows how many of them the receiver had already (dsack_dups), and how far out of order packets came (reordering).",
            "Packets overtake each other on the way, so TCP takes them for lost: several paths, or a delay that varies from packet to packet (netem's jitter).",
        ),
    ),
    needs=("retransmits", "retrans_total", "spurious_retransmits", "qdisc_drops", "timeouts"),
)
def reordering(run: RunUnderTest) -> Finding | None:
    again = run.measured("retransmits") or run.measured("retrans_total")
    needless, drops = run.measured("spurious_retransmits"), run.measured("qdisc_drops")
    far = max(
        (socket.last.reordering or 0 for socket in run.data_sockets() if socket.last), default=0
    )
    by_nstat = run.brought and not run.data_sockets()
    if (
        (far <= USUAL_REORDERING and not by_nstat)
        or not again
        or not needless
        or needless < max(FEW_NEEDLESS, NEEDLESS_RATIO * again)
    ):
        return None
    if drops is not None and again <= 1.1 * drops + FEW_NEEDLESS:
        return None
    if by_nstat:
        timeouts = run.measured("timeouts")
        return Finding(
            "reordering",
            f"{again:.0f} segments retransmitted, of which the receiver had {needless:.0f} already (nstat: TCPDSACKRecv)"
            + (f", after {timeouts:.0f} timeouts" if timeouts else ""),
            "only lost segments retransmitted",
            "These segments weren't lost. Either packets overtook each other, or the ACKs came so late that the "
            "sender's timer ran out.",
            symptom=f"{needless:.0f} of {again:.0f} segments were retransmitted though the receiver had them",
        )  # fmt: skip
    return Finding(
        "reordering",
        f"{again:.0f} segments retransmitted, of which the receiver had {needless:.0f} already (dsack_dups)"
        + (f", and {drops:.0f} dropped" if drops is not None else "")
        + f"; packets came up to {far} places out of order (reordering)",
        "only lost segments retransmitted",
        "Packets overtook each other, and TCP took the late ones for lost, so the window shrinks as it does after losses.",
        symptom=f"{needless:.0f} of {again:.0f} segments were retransmitted though the receiver had them",
    )  # fmt: skip


@check(
    FindingKind("samples"),
    needs=("utilisation", "queue_kind", "*_received_flows", "*_goodput_bps"),
)
def another_queue(run: RunUnderTest) -> Finding | None:
    """A round-trip time goes up and down with the queue in which the packet waited."""
    state = run.host_state
    if state is None or run.brought or run.meanings & {"rate-varies", "tcp-split"}:
        return None
    if (run.measured("utilisation") or 0.0) < LEAST_USED:
        # Something else than this queue holds the flows up.
        return None
    if any(difference.matters for difference in differences_of(run)):
        # Somewhere else there may be a queue that the lab doesn't have.
        return None
    if flows_both_ways(run.measured_group("*_received_flows"), run.measured_group("*_goodput_bps")):
        # The other direction's queue goes up and down by itself.
        return None
    flow_queues = run.measured_text("queue_kind") in FLOW_QUEUES
    if flow_queues and len(run.data_sockets()) > MOST_IN_SUM:
        # What tc samples is the sum of the flows' own queues.
        return None
    for span in state.queues_sampled:
        alike = [
            correlation
            for socket in run.data_sockets()
            if (correlation := _alike(socket, span)) is not None
        ]
        if alike and max(alike) < LEAST_CORRELATION:
            words = f"TCP's round-trip times go up and down with the queue in {span.source} at a correlation of {max(alike):.2f}"
            return Finding(
                "samples", words, "of nearly 1: a packet's round-trip time is the path's and the queue's",
                "The samples of the queue are from another run, or from a queue that the flows didn't wait in; or "
                "what ss printed is from another run.",
                symptom=words,
            )  # fmt: skip
    return None


def _alike(socket: Socket, span: Span) -> float | None:
    """Return the correlation of a flow's round-trip times and the queue's length when their packets came to it, at the best of
    some differences of the clocks; None where too little is known of it, or both hardly change."""
    times = [time_s for time_s, _ in span.backlogs]
    waiting = [bytes_ for _, bytes_ in span.backlogs]
    best = None
    for late_s in CLOCK_DIFFERENCES_S:
        pairs = [
            (rtt_ms, interpolate(times, waiting, at_s))
            for time_s, rtt_ms in socket.rtts
            if times and times[0] <= (at_s := time_s - rtt_ms / 1e3 + late_s) <= times[-1]
        ]
        if len(pairs) < LEAST_PAIRS:
            continue
        rtts_ms, lengths = zip(*pairs, strict=True)
        mean_ms = statistics.fmean(rtts_ms)
        spread_ms = statistics.fmean(abs(rtt_ms - mean_ms) for rtt_ms in rtts_ms)
        busy = sum(length > 0 for length in lengths) >= LEAST_BUSY_SHARE * len(lengths)
        if spread_ms < LEAST_SPREAD_MS or not busy or not statistics.pstdev(lengths):
            continue
        correlation = statistics.correlation(rtts_ms, lengths)
        best = correlation if best is None else max(best, correlation)
    return best


# Of tcpdump.

# No larger window without the option wscale (RFC 7323).
UNSCALED_BYTES = 65535
# An MSS that falls below what was meant by more than options do.
LEAST_OF_MSS = 0.97
# So many segments that begin where others began are no accident.
LEAST_AGAIN, LEAST_AGAIN_SHARE, MOST_AGAIN_SHARE = 3, 0.01, 0.4
# A window that is 0 in one packet may be open in the next.
LEAST_CLOSED = 2


@check(
    FindingKind(
        "by-capture",
        "A capture's view of its connections: SYNs without an answer or answered by resets, windows of 0, TCP's options, retransmissions.",
        hints=(
            "Which connection is named? Look at its lines in the capture, in both directions.",
            "Compare the sequence numbers of its segments, and what its first three packets ask for.",
            "The packets themselves show it. Look for whatever loses them, or doesn't answer, on the way between the two ends.",
        ),
    ),
    FindingKind("receive-window"),
    FindingKind("segment-size"),
    needs=(),
)
def seen_by_tcpdump(run: RunUnderTest) -> Finding | Right | None:
    """Return what a capture shows of its connections: questions without an answer, closed windows, options, what was sent
    again."""
    state = run.host_state
    captures = [pair for pair in (state.captures if state else ()) if pair[1].directions]
    once = [(name, frames) for name, frames in captures if not frames.doubled]
    for name, frames in once:
        both = {(way.who, way.whom): way for way in frames.directions}
        ways = [(way, both.get((way.whom, way.who))) for way in frames.directions]
        if finding := _by_any_capture(ways, name):
            return finding
        is_test = state is not None and name not in state.other_captures
        for way, back in ways:
            finding = _by_capture(run, way, back, name) if is_test else None
            if finding := finding or _sent_again(run, way, name):
                return finding
    tests = [name for name, _ in once if state and name not in state.other_captures]
    return Right("what tcpdump shows of each connection") if tests else None


Ways = Sequence[tuple[Direction, Direction | None]]


def _by_any_capture(ways: Ways, name: str) -> Finding | None:
    """Return what is off in a capture whatever it is of: resets for an answer, no answer at all, closed windows."""
    asking = [(way, back) for way, back in ways if way.asked]
    refused = [back for _, back in asking if back and back.resets and not back.agreed]
    if refused and len(refused) == len(asking):
        by, asked = sorted({back.who for back in refused}), sum(way.asked for way, _ in asking)
        words = f"{asked} times SYN, and a reset each time" if asked > 1 else "SYN, and a reset"
        return Finding(
            "by-capture", f"{words}: from {', '.join(by[:3])}{', ...' * (len(by) > 3)} ({name})", "a connection that comes about",
            "The connection was refused. Nothing listens on that port there, or a firewall refuses in its place.",
        )  # fmt: skip
    answered = any(back for _, back in ways)
    for way, back in asking:
        if back or way.asked != way.packets or way.asked < 2:
            continue
        # A capture of one direction has no answers, whatever came.
        if answered or way.asks_in_vain:
            return Finding(
                "by-capture", f"{way.asked} times SYN, and no answer: {way.who} > {way.whom} ({name})", "a connection that comes about",
                "Nothing listens there, a firewall drops one of the two ways, or the answer doesn't pass where the capture was taken.",
            )  # fmt: skip
    for way, _ in ways:
        if way.closed >= LEAST_CLOSED:
            return Finding(
                "receive-window", f"{way.who} offered a window of 0, {way.closed} times ({name})", "a window that is never closed",
                "The program there didn't take what had arrived, so that the other end had to wait for it.",
            )  # fmt: skip
    return None


def _by_capture(
    run: RunUnderTest, way: Direction, back: Direction | None, name: str
) -> Finding | None:
    """Return what is off with one end of a test's connection in a capture, and its answers."""
    alone = not (run.host_state and (run.host_state.transfers or run.host_state.sockets))
    rate_bps, rtt_ms = 1e6 * (run.param("rate_mbit") or 0), run.param("rtt_ms")
    most_bps = 8e3 * UNSCALED_BYTES / rtt_ms if rtt_ms else None
    if (
        way.scales is False
        and back
        and back.scales is not None
        and most_bps
        and most_bps < rate_bps
    ):
        return Finding(
            "receive-window",
            f"{way.who}'s SYN has no window scaling ({name}): at most {UNSCALED_BYTES} B in flight, {most_bps / 1e6:.3g} Mbit/s at {rtt_ms:g} ms",
            f"room for a link of {rate_bps / 1e6:g} Mbit/s",
            "Without the option wscale in both SYNs no window is above 64 KiB (RFC 7323): look at net.ipv4.tcp_window_scaling, and at boxes on the way.",
        )  # fmt: skip
    options = TIMESTAMP_OPTION_BYTES if way.has_timestamps else 0
    wanted = run.param("mss_bytes")
    if way.mss_bytes and wanted and way.mss_bytes - options < LEAST_OF_MSS * wanted and alone:
        return Finding(
            "segment-size", f"{way.who} asked for an MSS of {way.mss_bytes} B ({name})",
            f"{wanted + options:.0f} B, for segments of {wanted:.0f}",
            "No segment to that end is larger than it asked for in its SYN: by its MTU, a route's advmss, or a box that clamps it.",
        )  # fmt: skip
    return None


def _sent_again(run: RunUnderTest, way: Direction, name: str) -> Finding | None:
    """Return what one end of a connection sent again, where no test says so itself."""
    state = run.host_state
    alone = not (state and (state.transfers or state.sockets))
    share = way.again / max(way.segments, 1)
    if (
        alone
        and way.again >= LEAST_AGAIN
        and LEAST_AGAIN_SHARE <= share <= MOST_AGAIN_SHARE
        and share > 2 * (run.param("loss_ratio") or 0)
    ):
        return Finding(
            "by-capture", f"{way.again} of {way.segments} segments with data begin where an earlier one began: {way.who} > {way.whom} ({name})",
            "each segment once", "They were retransmitted, because something was lost or was taken for lost. tc, ip -s link and nstat show where.",
        )  # fmt: skip
    return None


@check(FindingKind("samples"), needs=("path_rtt_ms",))
def clocks_of_streams(run: RunUnderTest) -> Finding | None:
    """One-way times of two hosts are as much too long in one direction as too short in the other, as long as their clocks are
    equally far apart; so the two least ones add up to a round trip."""
    state, path_ms = run.host_state, run.measured("path_rtt_ms")
    streams = state.probes.streams if state and not run.brought else ()
    least_ms = [stream.least_ms for stream in streams]
    if not path_ms or state is None or len(least_ms) != 2 or None in least_ms:
        return None
    pings = state.probes.pings
    by_pings = [pings[stream.node].rtt_min_ms for stream in streams if stream.node in pings]
    idle_ms = min([path_ms, *(ms for ms in by_pings if ms is not None)])
    both_ms = sum(ms or 0 for ms in least_ms)
    if both_ms >= idle_ms - max(DRIFT_MS, DRIFT_RATIO * idle_ms):
        return None
    return Finding(
        "samples",
        f"the fastest packets of a stream between {streams[0].node} and {streams[1].node} took {both_ms:.3g} ms, both ways together",
        f"a round trip's {idle_ms:.4g} ms at least",
        "A clock was set while the run was on, or one runs faster than the other, so that one-way times before and after "
        "can't be compared.",
        symptom="two files of a stream have times that can't both be right",
    )
