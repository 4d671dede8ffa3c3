"""The checks of what was lost, and where: on the router, in a queue that nobody thought of, at the receiver.

Thresholds are wide enough that chance alone does not reach them (confidence 0.9999 where a
probability is held against a count).
"""

from __future__ import annotations

import math

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check
from measuretwice.stats.intervals import binomial_interval

CONFIDENCE = 0.9999


@check(
    Help(
        "netem-limit",
        "The room in netem's queue, compared with what slow start may have in flight.",
        explains=("loss-ratio", "other-drops"),
    ),
    needs=(
        "qdisc_limit_packets",
        "cwnd_max_segments",
        "qdisc_drops",
        "qdisc_offered_packets",
    ),
)
def netem_limit(case: Case) -> Finding | None:
    """netem's queue must hold what slow start may have in flight before its first loss.

    That is about 1/p segments, or what the sender's buffer holds if that is less.
    """
    loss_ratio, mss_bytes = case.want("loss_ratio"), case.want("mss_bytes")
    limit = case.got("qdisc_limit_packets") or case.want("limit_packets")
    if not loss_ratio or not mss_bytes or limit is None:
        return None
    buffer_segments = (case.want("wmem_max_bytes") or math.inf) / mss_bytes
    needed = min(1 / loss_ratio, buffer_segments)
    window = case.got("cwnd_max_segments") or 0
    if limit >= needed:
        return None
    drops, offered = case.got("qdisc_drops"), case.got("qdisc_offered_packets")
    also = ""
    if drops is not None and offered and window >= limit:
        also = f"; it dropped {drops:.0f} packets, where p makes about {loss_ratio * offered:.0f}"
    return Finding(
        "netem-limit",
        "error",
        f"netem's queue holds {limit:.0f} packets, and the window reached {window:.0f} segments{also}",
        f"room for {needed:.0f} packets: what slow start may send before its first loss",
        "A packet that is being delayed waits in netem's queue. What doesn't fit is dropped, and "
        "p knows nothing of that.",
        off=f"{drops:.0f} packets dropped, where p makes about {loss_ratio * offered:.0f}"
        if drops is not None and offered
        else "the router's settings allow it to drop more packets than p makes it drop",
    )


@check(
    Help(
        "loss-percent",
        "The router's drops: a hundred times fewer than p makes?",
        explains=("duration", "queueing"),
    ),
    Help(
        "loss-ratio",
        "The router's drops, compared with the counts that chance allows for p.",
        hints=(
            "Look at what the router's netem qdisc counted: packets sent and packets dropped.",
            "Which loss is set there? `tc qdisc show` prints it in percent. Is it the p you meant?",
            "A different loss is set, or drops of another kind are counted with it: those of a full queue, or of an older qdisc whose counters were never reset.",
        ),
    ),
    needs=(
        "qdisc_drops",
        "qdisc_offered_packets",
        "retransmits",
        "data_segs_out",
    ),
)
def loss(case: Case) -> Finding | None:
    """The router's drops against p: too few by 100, or else. Without its counters, the sender's."""
    wanted, drops = case.want("loss_ratio"), case.got("qdisc_drops")
    offered, who, slack = case.got("qdisc_offered_packets"), "packets dropped", 0.0
    if drops is None:
        # What was sent again is nearly what was lost; some of it was not lost after all.
        drops, offered, who = case.got("retransmits"), case.got("data_segs_out"), "segments resent"
        slack = 0.1
    if wanted is None or drops is None or not offered:
        return None

    def interval(ratio: float) -> tuple[float, float]:
        low, high = binomial_interval(int(offered), ratio, CONFIDENCE)
        return low * (1 - slack), high * (1 + slack) + (20 / offered if slack else 0)

    low, high = interval(wanted)
    ratio = drops / offered
    if low <= ratio <= high:
        return None
    found = f"{drops:.0f} of {offered:.0f} {who}: {ratio:.3g}"
    meant = f"{low:.3g} to {high:.3g}, for p = {wanted:.4g}"
    hundredth = interval(wanted / 100)
    if hundredth[0] <= ratio <= hundredth[1]:
        return Finding(
            "loss-percent", "error", found, meant,
            "A hundred times too few: a ratio was given where per cent is read.",
        )  # fmt: skip
    return Finding(
        "loss-ratio",
        "error",
        found,
        meant,
        "The path loses a different share from the one that was set.",
    )


@check(
    Help(
        "other-drops",
        "The drops of every other qdisc on the path.",
        explains=("retransmissions",),
    ),
    needs=("other_qdisc_drops",),
)
def other_drops(case: Case) -> Finding | None:
    drops = case.got("other_qdisc_drops")
    if not drops:
        return None
    return Finding(
        "other-drops",
        "error",
        f"{drops:.0f} packets dropped by qdiscs other than the one that was set to lose some",
        "none",
        "These losses aren't part of p, and happened in a queue that nobody looked at.",
    )


@check(
    Help(
        "receiver-drops",
        "What the receiver's kernel dropped from its own out-of-order queue.",
        explains=("retransmissions",),
    ),
    needs=(
        "receiver_ofo_drops",
        "receiver_prune_calls",
    ),
)
def receiver(case: Case) -> Finding | None:
    drops = (case.got("receiver_ofo_drops") or 0) + (case.got("receiver_prune_calls") or 0)
    if drops == 0:
        return None
    return Finding(
        "receiver-drops",
        "error",
        f"the receiver dropped from its own queue ({case.got('receiver_ofo_drops') or 0:.0f} segments "
        f"refused, {case.got('receiver_prune_calls') or 0:.0f} times pruned)",
        "none: only the router was meant to lose packets",
        "These losses aren't part of p, and each of them costs the sender a retransmission.",
        off="segments were lost that the router's qdisc never dropped",
    )


@check(
    Help(
        "queueing",
        "The mean round-trip time over the smallest, and the share of the link in use.",
    ),
    needs=(
        "rtt_min_ms",
        "rtt_mean_ms",
        "goodput_bps",
    ),
)
def queue(case: Case) -> Finding | None:
    """A standing queue: round trips grow, and the link is the reason."""
    least, mean = case.got("rtt_min_ms"), case.got("rtt_mean_ms")
    goodput_bps, rate_mbit = case.got("goodput_bps"), case.want("rate_mbit")
    if not least or mean is None or goodput_bps is None or not rate_mbit:
        return None
    share = goodput_bps / (rate_mbit * 1e6)
    if mean <= 1.05 * least or share < 0.5:
        return None
    return Finding(
        "queueing",
        "error",
        f"a mean round-trip time of {mean:.2f} ms over a smallest of {least:g} ms, "
        f"with {100 * share:.0f} % of the link in use",
        "a mean near the smallest: this path was meant to have no queue",
        "Packets wait at the link. Its rate limits the flow then, not the losses alone.",
        off=f"a mean round-trip time of {mean:.2f} ms, {mean / least:.2f} times the smallest",
    )


@check(
    Help(
        "retransmissions",
        "The sender's retransmissions, compared with all drops that are accounted for.",
        hints=(
            "Compare the sender's retransmissions with all drops that you can find.",
            "nstat on both hosts, the qdiscs' drops, /proc/net/softnet_stat: what is left over?",
            "Something on the way loses packets, or reorders them so far that the sender takes them for lost.",
        ),
    ),
    needs=(
        "retransmits",
        "qdisc_drops",
        "spurious_retransmits",
        "softnet_drops",
    ),
)
def retransmissions(case: Case) -> Finding | None:
    """Every retransmission has a known drop behind it, or was spurious by the sender's count."""
    retransmits, drops = case.got("retransmits"), case.got("qdisc_drops")
    if retransmits is None or drops is None:
        return None
    known = drops + (case.got("spurious_retransmits") or 0) + (case.got("softnet_drops") or 0)
    if retransmits <= 1.1 * known + 20:
        return None
    return Finding(
        "retransmissions",
        "error",
        f"{retransmits:.0f} retransmissions",
        f"about {known:.0f}: the router's drops and what the sender knows to be spurious",
        "Something loses packets that nobody has counted.",
    )
