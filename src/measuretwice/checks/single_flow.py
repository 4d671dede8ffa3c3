"""The checks of one run. Each looks at one thing that holds for any honest run.

Thresholds are wide enough that chance alone does not reach them (confidence 0.9999 where a
probability is held against a count). What a check needs and the run does not have, it does not
judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from measuretwice.checks.finding import Case, Finding
from measuretwice.checks.shared_queue import CHECKS_FLOWS, EXPLAINS_FLOWS
from measuretwice.stats.intervals import binomial_interval
from measuretwice.tcp.headers import (
    ETHERNET_HEADER_BYTES,
    IP_TCP_HEADERS_BYTES,
    TIMESTAMP_OPTION_BYTES,
    largest_packet_bytes,
)
from measuretwice.tcp.model import MATHIS_CONSTANTS, mathis_bandwidth_bps

CONFIDENCE = 0.9999
# With n losses the loss ratio is known to 1/sqrt(n): 100 make that 10 %.
LOSSES_WANTED = 100


Check = Callable[[Case], Finding | None]


def _offload(case: Case) -> Finding | None:
    largest, mss_bytes = case.got("largest_packet_bytes"), case.got("mss_bytes")
    if largest is None or mss_bytes is None:
        return None
    limit = largest_packet_bytes(mss_bytes)
    if largest <= limit:
        return None
    return Finding(
        "offload",
        "error",
        f"packets of up to {largest:.0f} B on the router",
        f"at most {limit:.0f} B: MSS {mss_bytes:.0f} and its headers",
        "Several segments travel as one packet. The router loses or keeps them together, so "
        "neither the segment size nor the loss is the one that was set.",
    )


def _segment_size(case: Case) -> Finding | None:
    """The observed MSS; which of its two enemies took the bytes."""
    wanted, seen = case.want("mss_bytes"), case.got("mss_bytes")
    if wanted is None or seen is None or seen == wanted:
        return None
    said, meant = f"segments of {seen:.0f} B (ss)", f"{wanted:.0f} B"
    mtu_bytes = case.want("mtu_bytes")
    options = TIMESTAMP_OPTION_BYTES if case.wanted.get("timestamps") == "on" else 0
    if (
        mtu_bytes is not None
        and seen == mtu_bytes - IP_TCP_HEADERS_BYTES - options < wanted - options
    ):
        return Finding(
            "mtu", "error", said, meant,
            f"An MTU of {mtu_bytes:.0f} B leaves no more than that. The model was asked about "
            "another segment size than the one on the wire.",
        )  # fmt: skip
    if wanted - seen == TIMESTAMP_OPTION_BYTES:
        return Finding(
            "timestamps", "error", said, meant,
            "12 bytes of each segment are missing: the size of TCP's timestamp option.",
        )  # fmt: skip
    return Finding(
        "segment-size", "error", said, meant, "The model's segment size is not the one on the wire."
    )


def _round_trip(case: Case) -> Finding | None:
    # TCP's own smallest is of the last 300 s (tcp_min_rtt_wlen in ip-sysctl): in a longer run with a
    # queue that never empties it is the queue's. The ping before the run found none.
    known = [case.got(name) for name in ("rtt_min_ms", "path_rtt_ms", "ping_rtt_min_ms")]
    seen = min((ms for ms in known if ms), default=None)
    wanted = case.want("rtt_ms")
    if not wanted or seen is None:
        return None
    said, meant = f"a smallest round-trip time of {seen:g} ms", f"{wanted:g} ms"
    if 1.9 <= seen / wanted <= 2.1:
        return Finding(
            "rtt-doubling", "error", said, meant,
            "Twice what was asked for: the whole delay was set in both directions.",
        )  # fmt: skip
    if abs(seen - wanted) > max(0.02 * wanted, 0.6):
        return Finding(
            "round-trip-time", "error", said, meant, "The path's delay is not the one that was set."
        )
    return None


def _queue(case: Case) -> Finding | None:
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
    )


def _loss(case: Case) -> Finding | None:
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
    seen = drops / offered
    if low <= seen <= high:
        return None
    said = f"{drops:.0f} of {offered:.0f} {who}: {seen:.3g}"
    meant = f"{low:.3g} to {high:.3g}, for p = {wanted:.4g}"
    hundredth = interval(wanted / 100)
    if hundredth[0] <= seen <= hundredth[1]:
        return Finding(
            "loss-percent", "error", said, meant,
            "A hundred times too few: a ratio was given where percent are read.",
        )  # fmt: skip
    return Finding("loss-ratio", "error", said, meant, "The path loses another share than was set.")


def _netem_limit(case: Case) -> Finding | None:
    """netem's queue must hold what slow start may have under way before its first loss.

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
    )


def _other_drops(case: Case) -> Finding | None:
    drops = case.got("other_qdisc_drops")
    if not drops:
        return None
    return Finding(
        "other-drops",
        "error",
        f"{drops:.0f} packets dropped by other qdiscs than the one that was set to lose some",
        "none",
        "Losses that p knows nothing of, in a queue that nobody looked at.",
    )


def _flows(case: Case) -> Finding | None:
    wanted, seen = case.want("parallel_flows") or 1, case.got("flows")
    if seen is None or seen == wanted:
        return None
    return Finding(
        "flows", "error", f"{seen:.0f} data connections", f"{wanted:.0f}",
        "Sums and means are of another set of flows than was meant.",
    )  # fmt: skip


def _ack_policy(case: Case) -> Finding | None:
    """C against the constant that was claimed: is it nearer to that, or to its sibling?

    The siblings assume the same losses and differ in how the window grows: by segments
    acknowledged or by ACKs. Judged only where chance is far smaller than their distance.
    """
    claimed = MATHIS_CONSTANTS.get(str(case.wanted.get("constant_claimed")))
    mss_bytes, rtt_ms = case.want("mss_bytes"), case.want("rtt_ms")
    loss_ratio, goodput_bps = case.want("loss_ratio"), case.got("goodput_bps")
    drops = case.got("qdisc_drops") or 0
    if (
        claimed is None
        or claimed.segments_per_window_step is None
        or not mss_bytes
        or not rtt_ms
        or not loss_ratio
        or not goodput_bps
        or drops < LOSSES_WANTED
        or loss_ratio >= (case.max_loss_ratio or 1)
    ):
        return None
    family = [c for c in MATHIS_CONSTANTS.values() if c.losses == claimed.losses]
    seen = goodput_bps / mathis_bandwidth_bps(mss_bytes, rtt_ms, loss_ratio)
    nearest = min(family, key=lambda constant: abs(math.log(seen / constant.value)))
    if nearest == claimed:
        return None
    sent, acks = case.got("data_segs_out"), case.got("receiver_acks_out")
    per_ack = f", with one ACK for {sent / acks:.1f} segments" if sent and acks else ""
    return Finding(
        "ack-policy",
        "error",
        f"C = {seen:.2f}{per_ack}",
        f"C near {claimed.value:.2f}: {claimed.assumes}",
        f"C is near {nearest.value:.2f}: {nearest.assumes}. Linux adds to its window for each "
        "segment that an ACK covers, so how many ACKs the receiver sends hardly matters.",
    )


def _receiver(case: Case) -> Finding | None:
    drops = (case.got("receiver_ofo_drops") or 0) + (case.got("receiver_prune_calls") or 0)
    if drops == 0:
        return None
    return Finding(
        "receiver-drops",
        "error",
        f"the receiver dropped from its own queue ({case.got('receiver_ofo_drops') or 0:.0f} segments "
        f"refused, {case.got('receiver_prune_calls') or 0:.0f} times pruned)",
        "none: only the router was meant to lose packets",
        "Losses that p knows nothing of; each of them costs the sender a retransmission.",
    )


def _retransmissions(case: Case) -> Finding | None:
    """Every retransmission has a known drop behind it, or was spurious by the sender's count."""
    seen, drops = case.got("retransmits"), case.got("qdisc_drops")
    if seen is None or drops is None:
        return None
    known = drops + (case.got("spurious_retransmits") or 0) + (case.got("softnet_drops") or 0)
    if seen <= 1.1 * known + 20:
        return None
    return Finding(
        "retransmissions",
        "error",
        f"{seen:.0f} retransmissions",
        f"about {known:.0f}: the router's drops and what the sender knows to be spurious",
        "Something loses packets that nobody has counted.",
    )


def _duration(case: Case) -> Finding | None:
    """Enough losses for the claim, if one is made: with n of them p is known to 1/sqrt(n)."""
    wanted, drops = case.want("loss_ratio"), case.got("qdisc_drops")
    if not wanted or drops is None or drops >= LOSSES_WANTED:
        return None
    if case.wanted.get("compare_with") == "nothing":
        return None
    known = f"to about {100 / math.sqrt(drops):.0f} %" if drops else "not at all"
    duration_s = case.got("duration_s")
    return Finding(
        "duration",
        "warning",
        f"{drops:.0f} losses" + (f" in {duration_s:.0f} s" if duration_s else ""),
        f"at least {LOSSES_WANTED}",
        f"From so few the loss ratio is known {known}; the goodput is that of these few "
        "accidents. A longer run has more.",
    )


def _model_domain(case: Case) -> Finding | None:
    wanted, limit = case.want("loss_ratio"), case.max_loss_ratio
    if (
        wanted is None
        or limit is None
        or wanted < limit
        or case.wanted.get("compare_with") != "mathis"
    ):
        return None
    timeouts = case.got("timeouts")
    return Finding(
        "model-domain",
        "error",
        f"p = {wanted:.4g}" + (f", {timeouts:.0f} timeouts" if timeouts is not None else ""),
        f"p below {limit:g} for the Mathis model",
        "The model has no timeouts in it. With so small a window they rule.",
    )


def _socket(case: Case) -> Finding | None:
    picked, ours = case.got("picked_port"), case.got("data_port")
    connections = case.got("picked_connections") or 0
    if picked is None or ours is None or (picked == ours and connections == 1):
        return None
    return Finding(
        "wrong-socket",
        "error",
        f"the lines that were kept are of {connections:.0f} connection"
        + ("s" if connections != 1 else "")
        + f", the last from port {picked:.0f}",
        f"one connection, from port {ours:.0f}: iperf3's own word for its data",
        "iperf3 has a second connection, for control. Its numbers say nothing of your flow, and "
        "which of the two comes last is luck.",
    )


def _link_rate(case: Case) -> Finding | None:
    goodput_bps, rate_mbit = case.got("goodput_bps"), case.want("rate_mbit")
    mss_bytes = case.got("mss_bytes")
    if goodput_bps is None or not rate_mbit or not mss_bytes:
        return None
    frame = mss_bytes + IP_TCP_HEADERS_BYTES + ETHERNET_HEADER_BYTES
    limit_bps = rate_mbit * 1e6 * mss_bytes / frame
    if goodput_bps <= 1.01 * limit_bps:
        return None
    return Finding(
        "link-rate",
        "error",
        f"{goodput_bps / 1e6:.4g} Mbit/s",
        f"at most {limit_bps / 1e6:.4g} Mbit/s: the link's rate less the headers",
        "More than the link can carry: flows averaged over different times, or a link that is "
        "not the one that was set.",
    )


def _bytes(case: Case) -> Finding | None:
    """iperf3's rate against the bytes that ss says were acknowledged."""
    acked, sent_bps = case.got("bytes_acked"), case.got("sender_rate_bps")
    duration_s = case.got("duration_s")
    if acked is None or not sent_bps or not duration_s:
        return None
    by_ss_bps = acked * 8 / duration_s
    # iperf3 counts what it handed to the socket; what is still in its buffer isn't acknowledged.
    slack_bps = 8 * (case.want("wmem_max_bytes") or 4 << 20) / duration_s
    if abs(by_ss_bps - sent_bps) <= 0.03 * sent_bps + slack_bps:
        return None
    return Finding(
        "bandwidth",
        "error",
        f"{sent_bps / 1e6:.4g} Mbit/s by iperf3",
        f"{by_ss_bps / 1e6:.4g} Mbit/s by the bytes that ss says were acknowledged",
        "The two tools speak of different connections or different times.",
    )


def _path(case: Case) -> Finding | None:
    """A window a round trip: cwnd over rate can't be less than the path's round-trip time."""
    cwnd, mss_bytes = case.got("cwnd_mean_segments"), case.got("mss_bytes")
    goodput_bps, least_ms = case.got("goodput_bps"), case.got("rtt_min_ms")
    if not cwnd or not mss_bytes or not goodput_bps or not least_ms:
        return None
    by_window_ms = cwnd * mss_bytes * 8 / goodput_bps * 1e3
    if by_window_ms >= 0.8 * least_ms:
        return None
    return Finding(
        "path",
        "error",
        f"cwnd over rate is {by_window_ms:.3g} ms",
        f"at least the round-trip time, {least_ms:g} ms",
        "The sender's path ends before the receiver: something answers in its place.",
    )


# In order of cause: a finding silences those that follow from it.
CHECKS: tuple[Check, ...] = (
    _flows, _offload, _segment_size, _round_trip, _socket, _netem_limit, _loss, _other_drops,
    _receiver, _queue, _retransmissions, _link_rate, _bytes, _path, _duration, _model_domain,
    _ack_policy, *CHECKS_FLOWS,
)  # fmt: skip
EXPLAINS: dict[str, frozenset[str]] = {
    "offload": frozenset({"loss-ratio", "loss-percent", "retransmissions", "duration", "queueing"}),
    "netem-limit": frozenset({"loss-ratio", "other-drops"}),
    "other-drops": frozenset({"retransmissions"}),
    "receiver-drops": frozenset({"retransmissions"}),
    "loss-percent": frozenset({"duration", "queueing"}),
    **EXPLAINS_FLOWS,
}
