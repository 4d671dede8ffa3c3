"""The last checks of a run: was more sent again than the settings imply, and is there something off that none of the known causes explains?

It compares a run with what its lab expects and with arithmetic that no honest run escapes. It says
what is off, what was looked at and found right, and where to compare. Any other error explains it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from measuretwice.checks.hosts import limited_by_buffers
from measuretwice.checks.registry import Finding, FindingKind, RunUnderTest, check, flows_both_ways
from measuretwice.checks.transfers import fills_the_link, least_rate_bps
from measuretwice.measure.fields import in_unit, label_of
from measuretwice.tcp.model import USUAL_MSS_BYTES, payload_limit

# What the model says is of the usual run; chance and a short run go somewhat beyond. All other expectations are
# arithmetic, and have their tolerances.
SLACK_RATIO = 0.1
BY_MODEL = frozenset({"ratio"})
RTTS = frozenset({"rtt_min_ms", "ping_rtt_min_ms"})
# Where a lab's model doesn't say from which p on timeouts rule.
TIMEOUTS_LOSS_RATIO = 0.05
# A flow with fewer segments in flight can't learn of a loss by three ACKs, but by a timeout alone.
LEAST_WINDOW_SEGMENTS = 4
# Goodput over window and round-trip time. Windows that are sampled and halve have been seen at 0.81.
WINDOW_USE = 0.7
BUFFER_SHARE = 0.3
# BBR's window is twice what it means to have on its way.
WINDOW_USE_PACED = 0.35
PACED = frozenset({"bbr"})
# Round trips that neither path nor queue accounts for.
DELAY_SLACK_MS = 10.0
DELAY_SLACK_RATIO = 0.25
FULL_RATIO = 0.85
LARGEST_FRAME_BYTES = 1514
# Qdiscs that hold nothing themselves.
CLASSFUL = frozenset({"noqueue", "htb", "hfsc", "mq", "prio"})
# Of a link that is to be full so little, and so much retransmitted, is no queue's doing alone.
UNUSED_RATIO = 0.5
RESENT_SHARE = 0.02
RESENT_S = 8.0
# So much sent again after the first seconds, where no loss was set and no full link explains it.
RESENT_RATIO = 0.005
LEAST_RESENT = 30
RESENT_LEAST_S = 5.0
FIRST_S = 2.0
# A timeout backs off: twice or three times are chance, this isn't. Where losses are drawn one by one, four in a row
# of one segment, 0.2 + 0.4 + 0.8 + 1.6 s, come once in 1/p^4.
STALL_S = 4.0
STALL_DRAWN_S = 3.0
STALL_ROUND_TRIPS = 40
# Senders whose tests begin so much later than others', beyond what they were to wait, hardly ran at the same time.
LATE_S = 3.0
LATE_RATIO = 0.15
COMPARE = (
    "compare the settings of each node with the intended ones (./lab show RUN qdisc, link, sysctl, "
    "ethtool), and the run with one that is right (./lab diff RUN RUN)"
)
COMPARE_BROUGHT = (
    "compare on each host the intended settings with the real ones (tc -s qdisc, ip -s link, sysctl net.ipv4, ethtool -k), "
    "and bring the tools' files that are named as not looked at"
)


@check(FindingKind("retransmissions"), needs=("qdisc_drops", "queue_drops"))
def resent(run: RunUnderTest) -> Finding | None:
    """Find what was sent again where no loss was set, nothing counts drops, and no full link explains it."""
    drops_known = run.measured("qdisc_drops") is not None or run.measured("queue_drops") is not None
    if (
        not run.brought
        or run.param("loss_ratio") != 0
        or drops_known
        or run.meanings
        or run.data_sockets()
    ):
        return None
    for transfer in run.host_state.transfers if run.host_state else ():
        sent, arrived, again = (
            transfer.sent or transfer.arrived,
            transfer.arrived,
            transfer.retransmits,
        )
        if not sent or not arrived or not again or sent.seconds < RESENT_LEAST_S:
            continue
        # Slow start overshoots at any queue.
        counts = [row.retransmits or 0 for row in transfer.rows if row.start_s < FIRST_S]
        segments = sent.bytes / (transfer.mss_bytes or run.param("mss_bytes") or USUAL_MSS_BYTES)
        share, later = again / segments, again - sum(counts)
        rate_bps = arrived.rate_bps
        if later < LEAST_RESENT or not RESENT_RATIO <= later / segments <= share <= 1:
            continue
        link_bps = payload_limit(least_rate_bps(run) or math.inf)
        # A lab's own rate may be that of the link, but for a test that was faster.
        may_be = run.is_stated("rate_mbit") or rate_bps <= (1 + SLACK_RATIO) * link_bps
        if fills_the_link(run, rate_bps) and may_be:
            continue
        if run.is_stated("rate_mbit") and rate_bps < UNUSED_RATIO * link_bps:
            # That has its own finding, in which this share is said.
            continue
        return Finding(
            "retransmissions",
            f"{again} segments sent again, {100 * share:.2g} % of what was sent ({transfer.source})",
            "next to none: no loss was set",
            "By the sender's count packets were lost on the way, or reordered so far that it took them for lost. Where, "
            "this file doesn't say: nstat -az of both hosts and tc -s qdisc on the way, before the test and after it, would.",
        )  # fmt: skip
    return None


@check(
    FindingKind(
        "unexplained",
        "Whether the run shows all that the settings imply: the lab's expectations, window over round-trip time against rate, and "
        "delay and queue against round-trip time. A link should be full, or there should be a reason why not, and data should always be in flight.",
        hints=(
            "Something is off and none of the known causes fits. Start with the number that is off. Which file does it come from?",
            "Compare this run with one of the same trial that is right: settings first, then the values that differ most (./lab diff).",
            "The checker doesn't know the cause. The causes that it has ruled out are in the list above. Look at the rest, one node and one setting at a time.",
        ),
    ),
    needs=(
        "goodput_bps",
        "rtt_mean_ms",
        "cwnd_mean_segments",
        "mss_bytes",
        "path_rtt_ms",
        "queue_delay_mean_ms",
        "queue_drops",
        "queue_marks",
        "utilisation",
        "*_goodput_bps",
        "*_rtt_mean_ms",
        "*_cwnd_mean_segments",
        "*_path_rtt_ms",
        "*_received_flows",
    ),
)
def unexplained(run: RunUnderTest) -> Finding | None:
    off = [
        *_expectations(run), *_window_use(run), *_delay(run), *_fifo(run), *_link(run), *_unused(run), *_stalls(run),
        *_nothing_sent(run), *_apart(run),
    ]  # fmt: skip
    if not off:
        return None
    return Finding(
        "unexplained",
        "; ".join(off),
        "what the settings imply",
        nothing_fits(run, ()),
        symptom="; ".join(off),
    )


def _expectations(run: RunUnderTest) -> Iterator[str]:
    """The lab's own, but those of counts: chance misses one in a hundred of them."""
    for verdict in run.verdicts:
        if verdict.ok is not False or verdict.confidence is not None or verdict.value is None:
            continue
        if run.brought and verdict.measured in RTTS:
            # A path that nobody built has a delay of its own; the check of round trips says how near it must be.
            continue
        if verdict.measured in run.params and not run.is_stated(verdict.measured):
            continue
        low, high, value = verdict.low, verdict.high, verdict.value
        slack = SLACK_RATIO if verdict.measured in BY_MODEL else 0.0
        if low is not None and value < low - slack * abs(low):
            yield f"{_in_words(verdict.measured, value)}, expected at least {_with_unit(verdict.measured, low)}"
        elif high is not None and value > high + slack * abs(high):
            yield f"{_in_words(verdict.measured, value)}, expected at most {_with_unit(verdict.measured, high)}"


def _in_words(name: str, value: float) -> str:
    return f"{label_of(name)} is {_with_unit(name, value)}"


def _with_unit(name: str, value: float) -> str:
    return in_unit(name, value, ".4g")


def chance_notes(run: RunUnderTest) -> list[str]:
    """Return a line for each expectation that a run calls OFF and that no finding is made of, since chance may be why."""
    return [
        f"off, as far as chance goes ({verdict.label}): {in_unit(verdict.measured, verdict.value, '.5g')}, "
        f"expected {in_unit(verdict.measured, verdict.low or 0, '.5g')} to {in_unit(verdict.measured, verdict.high or 0, '.5g')}; another seed tells chance from a wrong setting"
        for verdict in run.verdicts
        if verdict.ok is False
        and verdict.value is not None
        and (verdict.confidence is not None or verdict.measured in BY_MODEL)
    ]


def _window_use(run: RunUnderTest) -> Iterator[str]:
    """A sender that nothing else holds up sends a window each round trip."""
    sockets = run.data_sockets()
    if not sockets or limited_by_buffers(sockets):
        return
    least = WINDOW_USE_PACED if run.algorithms & PACED else WINDOW_USE
    # Where p is large, timeouts rule, and a window waits for them.
    if (run.param("loss_ratio") or 0) >= (run.max_loss_ratio or TIMEOUTS_LOSS_RATIO):
        return
    mss_bytes = run.measured("mss_bytes")
    buffers = [size for name in ("wmem_max_bytes", "rmem_max_bytes") if (size := run.param(name))]
    rates, rtts = run.measured_group("*_goodput_bps"), run.measured_group("*_rtt_mean_ms")
    windows = run.measured_group("*_cwnd_mean_segments")
    flows = {node: (rates.get(node), rtts.get(node), windows[node]) for node in windows}
    flows["the flow"] = (
        run.measured("goodput_bps"),
        run.measured("rtt_mean_ms"),
        run.measured("cwnd_mean_segments"),
    )
    for who, (goodput_bps, rtt_ms, window) in flows.items():
        if not mss_bytes or not goodput_bps or not rtt_ms or not window:
            continue
        if window < LEAST_WINDOW_SEGMENTS:
            continue
        # At a full link the rest of the window waits in the host, where no round trip counts it.
        if goodput_bps >= FULL_RATIO * _slowest_bps(run, mss_bytes):
            continue
        implied_bps = window * mss_bytes * 8 / rtt_ms * 1e3
        # A buffer that was asked for is no mistake; a packet takes up to three times its data there.
        underway_bytes = goodput_bps * rtt_ms / 8e3
        if buffers and underway_bytes >= BUFFER_SHARE * min(buffers):
            continue
        if goodput_bps < least * implied_bps:
            yield (
                f"{who} got {goodput_bps / 1e6:.4g} Mbit/s, where one mean window per round trip makes "
                f"{implied_bps / 1e6:.4g}"
            )


def _slowest_bps(run: RunUnderTest, mss_bytes: float) -> float:
    """The most that the slowest link lets through, of those whose rate was set."""
    rates = (run.param(name) for name in ("rate_mbit", "cable_mbit", "access_mbit"))
    slowest = min((rate for rate in rates if rate), default=math.inf)
    return payload_limit(slowest * 1e6, mss_bytes)


def _delay(run: RunUnderTest) -> Iterator[str]:
    """A round trip is the path's delay and the queue's; what is more was spent somewhere else."""
    mean_ms, queue_ms = run.measured("rtt_mean_ms"), run.measured("queue_delay_mean_ms")
    paths = [ms for ms in run.measured_group("*_path_rtt_ms").values() if ms]
    path_ms = sum(paths) / len(paths) if paths else run.measured("path_rtt_ms")
    if mean_ms is None or queue_ms is None or not path_ms or "rate-varies" in run.meanings:
        return
    # The other direction's queue may be as long as the sampled one.
    both_ways = flows_both_ways(
        run.measured_group("*_received_flows"), run.measured_group("*_goodput_bps")
    )
    known_ms = path_ms + queue_ms * (2 if both_ways else 1)
    if mean_ms > known_ms + max(DELAY_SLACK_MS, DELAY_SLACK_RATIO * known_ms):
        yield (
            f"a mean round-trip time of {mean_ms:.1f} ms, of which {path_ms:.1f} are the path's and "
            f"{queue_ms:.1f} the queue's"
        )


def _fifo(run: RunUnderTest) -> Iterator[str]:
    """Yield where a round trip is longer than path and full queues make it, by the room that tc prints."""
    rate_mbit, path_ms, state = run.param("rate_mbit"), run.param("rtt_ms"), run.host_state
    if not run.brought or state is None or not rate_mbit or not path_ms:
        return
    by_iperf3 = [transfer.rtt_ms for transfer in state.transfers if transfer.rtt_ms]
    rtt_ms = run.measured("rtt_mean_ms") or max(by_iperf3, default=None)
    rooms = [
        qdisc.limit_bytes or (qdisc.limit_packets or 0) * LARGEST_FRAME_BYTES
        for _, qdisc in state.qdiscs
        if qdisc.kind not in CLASSFUL
    ]
    if rtt_ms is None or not rooms or not all(rooms):
        return
    most_ms = path_ms + sum(8e3 * room / (1e6 * rate_mbit) for room in rooms)
    if rtt_ms > most_ms + max(DELAY_SLACK_MS, DELAY_SLACK_RATIO * most_ms):
        yield (
            f"a mean round-trip time of {rtt_ms:.0f} ms, where path and full queues make {most_ms:.0f} (tc)"
        )


def _unused(run: RunUnderTest) -> Iterator[str]:
    """Yield where most of a link is unused though no loss was meant, by a test's word alone: also after its first rows."""
    rate_mbit = run.param("rate_mbit")
    if not rate_mbit or run.param("loss_ratio") or run.data_sockets() or run.meanings:
        return
    # Of a link whose rate nobody said, no part is unused.
    if not run.is_stated("rate_mbit"):
        return
    for transfer in run.host_state.transfers if run.host_state else ():
        arrived, again = transfer.arrived, transfer.retransmits
        if not arrived or not arrived.bytes or arrived.seconds < RESENT_S:
            continue
        share = (again or 0) * USUAL_MSS_BYTES / arrived.bytes
        if share > 1:
            # These columns are no measurement.
            continue
        later = transfer.rows[len(transfer.rows) // 2 :]
        rates_bps = [
            8 * row.bytes / (row.end_s - row.start_s) for row in later if row.end_s > row.start_s
        ]
        rate_bps = max(arrived.rate_bps, sum(rates_bps) / len(rates_bps) if rates_bps else 0.0)
        # A window a round trip, where the settings allow no larger one.
        most_bps = min(
            1e6 * rate_mbit,
            8e3 * (run.param("wmem_max_bytes") or math.inf) / (run.param("rtt_ms") or 1e-3),
        )
        used = rate_bps / payload_limit(most_bps)
        if used < UNUSED_RATIO and (
            share >= RESENT_SHARE or (run.brought and run.param("loss_ratio") == 0)
        ):
            resent = ""
            if again is not None:
                part = f"{100 * share:.2g} % of the segments were" if again else "nothing was"
                resent = f", and {part} retransmitted"
            percent = 100 * rate_bps / payload_limit(1e6 * rate_mbit)
            shown = f"{percent:.0f}" if percent >= 1 else f"{percent:.2g}"
            yield f"{shown} % of the link was used{resent} ({transfer.source})"


def _link(run: RunUnderTest) -> Iterator[str]:
    """Where a link is shared it is full, or its queue dropped something, or a buffer was too small."""
    used, drops = run.measured("utilisation"), run.measured("queue_drops")
    if used is None or drops is None or used >= FULL_RATIO or drops:
        return
    if run.measured("queue_marks") or run.has_marks():
        # A queue that marks packets needn't drop any.
        return
    sockets = run.data_sockets()
    if run.meanings & {"others-send", "rate-varies"} or not sockets or limited_by_buffers(sockets):
        return
    rate_mbit = run.param("rate_mbit")
    most = f" of {payload_limit(rate_mbit, wire=False):.4g} Mbit/s" if rate_mbit else ""
    yield f"{100 * used:.0f} % of the link{most} was used, and nothing was lost at its queue"


def _stalls(run: RunUnderTest) -> Iterator[str]:
    """Something is always on its way, and acknowledged a round trip later; but where timeouts rule.

    In a crowd that fills a queue a flow may lose what it sends again and again, and wait for longer each time (RFC 6298,
    5.5). That is one of a host's flows; an outage stops all.
    """
    loss_ratio = run.param("loss_ratio") or 0
    if loss_ratio >= (run.max_loss_ratio or TIMEOUTS_LOSS_RATIO):
        return
    most_s = STALL_DRAWN_S if loss_ratio else STALL_S
    rtt_s = (run.measured("rtt_mean_ms") or 0) / 1e3
    sockets = run.data_sockets()
    stalled = [
        socket for socket in sockets if socket.stalled_s > max(most_s, STALL_ROUND_TRIPS * rtt_s)
    ]
    of, stalled_of = (Counter(socket.node for socket in some) for some in (sockets, stalled))
    for socket in stalled:
        if not run.measured("queue_drops") or stalled_of[socket.node] * 2 >= of[socket.node]:
            yield f"{socket.node}'s flow got nothing acknowledged for {socket.stalled_s:.1f} s on end (ss)"


def _apart(run: RunUnderTest) -> Iterator[str]:
    """Senders that begin together, but for the time that each was to wait at random."""
    ends = run.host_state.ends if run.host_state else ()
    begins = {
        end.node: end.begin_s for end in ends if end.begin_s and end.end_s and not end.is_server
    }
    lasted_s = max(
        (end.end_s - end.begin_s for end in ends if end.begin_s and end.end_s), default=0
    )
    if len(begins) < 2:
        return
    last = max(begins, key=begins.__getitem__)
    late_s = begins[last] - min(begins.values())
    spread_s = (run.param("start_spread_ms") or 0) / 1e3
    if late_s > spread_s + max(LATE_S, LATE_RATIO * lasted_s):
        yield (
            f"{last}'s test began {late_s:.0f} s after the first one (iperf3), of tests that last {lasted_s:.0f} s"
        )


def _nothing_sent(run: RunUnderTest) -> Iterator[str]:
    """Yield a line if the senders' connections carried no data."""
    state = run.host_state
    sockets = state.sockets if state else ()
    if run.brought and state and not state.transfers:
        # Of no test, but of whatever went on there.
        return
    if sockets and not run.data_sockets() and not run.other_sockets():
        sent = sum(socket.bytes_sent or 0 for socket in sockets)
        whose = f"{len(sockets)} connections" if len(sockets) > 1 else "only connection"
        yield f"the senders' {whose} sent {sent} B in all (ss)"


def nothing_fits(run: RunUnderTest, right: Sequence[str]) -> str:
    """Return what is said where no known cause fits: what was looked at and found `right`, and where to look next."""
    looked = f"; looked at and right: {', '.join(right)}" if right else ""
    compare = COMPARE_BROUGHT if run.brought else COMPARE
    return f"None of the causes that the checker knows fits{looked}. So {compare}."
