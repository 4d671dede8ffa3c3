"""The checks of rates, and of what is concluded from them: can a link carry that, do the tools agree,
does the model speak of it?
"""

from __future__ import annotations

import math

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check
from measuretwice.tcp.model import (
    ETHERNET_HEADER_BYTES,
    IP_TCP_HEADERS_BYTES,
    MATHIS_CONSTANTS,
    mathis_bandwidth_bps,
)

# With n losses the loss ratio is known to 1/sqrt(n): 100 make that 10 %.
LOSSES_WANTED = 100


@check(
    Help(
        "link-rate",
        "Goodput, compared with what the link can carry less its headers.",
        hints=(
            "Compare the goodput with the rate of the slowest link.",
            "Of each frame, headers are no goodput: what is the most that the link can carry?",
            "Nothing goes faster than the link: the rate is not set where you think, or rates were added up that belong to different times.",
        ),
    ),
    needs=(
        "goodput_bps",
        "mss_bytes",
        "rtt_mean_ms",
        "duration_s",
    ),
)
def link_rate(case: Case) -> Finding | None:
    goodput_bps, rate_mbit = case.got("goodput_bps"), case.want("rate_mbit")
    mss_bytes = case.got("mss_bytes")
    if goodput_bps is None or not rate_mbit or not mss_bytes:
        return None
    frame = mss_bytes + IP_TCP_HEADERS_BYTES + ETHERNET_HEADER_BYTES
    limit_bps = rate_mbit * 1e6 * mss_bytes / frame
    # Where goodput is counted from ACKs, what was on its way as the time began is acknowledged in it:
    # up to a round trip's bytes. In a test of seconds, behind a long queue, that is a few per cent.
    rtt_ms, seconds = case.got("rtt_mean_ms"), case.got("duration_s")
    on_its_way = rtt_ms / 1e3 / seconds if rtt_ms and seconds else 0.0
    if goodput_bps <= (1 + max(0.01, on_its_way)) * limit_bps:
        return None
    return Finding(
        "link-rate",
        "error",
        f"{goodput_bps / 1e6:.4g} Mbit/s",
        f"at most {limit_bps / 1e6:.4g} Mbit/s: the link's rate less the headers",
        "More than the link can carry: flows averaged over different times, or a link that is "
        "not the one that was set.",
    )


@check(
    Help(
        "bandwidth",
        "iperf3's rate, compared with the bytes that ss says were acknowledged.",
        hints=(
            "Take bytes_acked from the connection's last line in ss, and the length of the test.",
            "Eight times bytes over seconds: is it the rate that iperf3 prints?",
            "One of the two files is of another run, or of another connection.",
        ),
    ),
    needs=(
        "bytes_acked",
        "sender_rate_bps",
        "duration_s",
    ),
)
def bytes_acknowledged(case: Case) -> Finding | None:
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


@check(
    Help(
        "path",
        "The window over the rate, which is a time, compared with the path's round-trip time.",
        hints=(
            "Divide cwnd times MSS by the rate: that is a time. Compare it with ping's.",
            "Can a window of data be acknowledged sooner than light and routers allow?",
            "Something between the two hosts ends the connection and opens its own: a proxy, a NAT that does so. You measured the way to it.",
        ),
    ),
    needs=(
        "cwnd_mean_segments",
        "mss_bytes",
        "goodput_bps",
        "rtt_min_ms",
    ),
)
def path(case: Case) -> Finding | None:
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


@check(
    Help(
        "duration",
        "How many losses the run had. With n of them p is known to about 1/√n.",
    ),
    needs=(
        "qdisc_drops",
        "duration_s",
    ),
)
def duration(case: Case) -> Finding | None:
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


@check(
    Help(
        "model-domain",
        "Whether the run is compared with a model at a p where timeouts dominate.",
    ),
    needs=("timeouts",),
)
def model_domain(case: Case) -> Finding | None:
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
        off="the goodput is compared with the Mathis model, which makes no claim for this run",
    )


@check(
    Help(
        "ack-policy",
        "The constant that was measured, compared with the one that was claimed.",
    ),
    needs=(
        "goodput_bps",
        "qdisc_drops",
        "data_segs_out",
        "receiver_acks_out",
    ),
)
def ack_policy(case: Case) -> Finding | None:
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
    ratio = goodput_bps / mathis_bandwidth_bps(mss_bytes, rtt_ms, loss_ratio)
    nearest = min(family, key=lambda constant: abs(math.log(ratio / constant.value)))
    if nearest == claimed:
        return None
    sent, acks = case.got("data_segs_out"), case.got("receiver_acks_out")
    per_ack = f", with one ACK for {sent / acks:.1f} segments" if sent and acks else ""
    return Finding(
        "ack-policy",
        "error",
        f"C = {ratio:.2f}{per_ack}",
        f"C near {claimed.value:.2f}: {claimed.assumes}",
        f"C is near {nearest.value:.2f}: {nearest.assumes}. Linux adds to its window for each "
        "segment that an ACK covers, so how many ACKs the receiver sends hardly matters.",
        off=f"C = {ratio:.2f} was measured, {claimed.value:.2f} was claimed",
    )
