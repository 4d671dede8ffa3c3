"""The checks of what was lost, and where; of rates, and of what is concluded from them.

Thresholds are wide enough that chance alone does not reach them (confidence 0.9999 where a probability is
compared with a count).
"""

from __future__ import annotations

import math

from measuretwice.checks.registry import (
    Finding,
    FindingKind,
    Right,
    RunUnderTest,
    check,
    in_mbit,
)
from measuretwice.checks.transfers import fills_the_link
from measuretwice.stats.intervals import binomial_interval
from measuretwice.tcp.model import (
    ETHERNET_HEADER_BYTES,
    IP_TCP_HEADERS_BYTES,
    MATHIS_CONSTANTS,
    USUAL_MSS_BYTES,
    mathis_bandwidth_bps,
)

# Losses: on the router, in a queue that nobody thought of, at the receiver

CONFIDENCE = 0.9999
# Of a full queue, by a frame's bits.
FRAME_BITS = 8 * 1514
FULL_QUEUE_SLACK = 0.25
FULL_QUEUE_SLACK_MS = 10.0


@check(
    FindingKind(
        "netem-limit",
        "The room in netem's queue, compared with what slow start may have in flight.",
        explains=("loss-ratio", "other-drops"),
    ),
    needs=(
        "qdisc_limit_packets",
        "cwnd_max_segments",
        "qdisc_drops",
        "qdisc_offered_packets",
        "goodput_bps",
    ),
)
def netem_limit(run: RunUnderTest) -> Finding | None:
    """netem's queue must hold what slow start may have in flight before its first loss.

    That is about 1/p segments, or what the sender's buffer holds if that is less.
    """
    loss_ratio, mss_bytes = run.param("loss_ratio"), run.param("mss_bytes")
    limit = run.measured("qdisc_limit_packets") or run.param("limit_packets")
    if not loss_ratio or not mss_bytes or limit is None:
        return None
    buffer_segments = (run.param("wmem_max_bytes") or math.inf) / mss_bytes
    needed = min(1 / loss_ratio, buffer_segments)
    window = run.measured("cwnd_max_segments") or 0
    goodput_bps = run.measured("goodput_bps")
    # On other testbeds another queue may hold what is in flight; and where the link is full its queue does.
    elsewhere = window < limit or (goodput_bps is not None and fills_the_link(run, goodput_bps))
    if limit >= needed or (run.brought and elsewhere):
        return None
    drops, offered = run.measured("qdisc_drops"), run.measured("qdisc_offered_packets")
    also = ""
    if drops is not None and offered and window >= limit:
        also = f"; the queue dropped {drops:.0f} packets, where p makes about {loss_ratio * offered:.0f}"
    return Finding(
        "netem-limit",
        f"netem's queue holds {limit:.0f} packets, and the window reached {window:.0f} segments{also}",
        f"room for {needed:.0f} packets: what slow start may send before its first loss",
        "A packet that is being delayed waits in netem's queue. What doesn't fit is dropped, and "
        "p knows nothing of that.",
        symptom=f"{drops:.0f} packets dropped, where p makes about {loss_ratio * offered:.0f}"
        if drops is not None and offered
        else "the router's settings allow it to drop more packets than p makes it drop",
    )


@check(
    FindingKind(
        "loss-percent",
        "The router's drops: a hundred times fewer than p makes?",
        explains=("duration", "ping-losses", "queueing"),
    ),
    FindingKind(
        "loss-ratio",
        "The router's drops, compared with the counts that chance allows for p.",
        explains=("ping-losses",),
        hints=(
            "Look at what the router's netem qdisc counted: packets sent and packets dropped.",
            "Which loss is set there? `tc qdisc show` prints it in per cent. Is it the p you meant?",
            "A different loss is set, or drops of another kind are counted with it: those of a full queue, or of an older qdisc whose counters were never reset.",
        ),
    ),
    needs=(
        "qdisc_drops",
        "qdisc_offered_packets",
        "retransmits",
        "data_segs_out",
        "goodput_bps",
        "spurious_retransmits",
        "retrans_total",
    ),
)
def loss(run: RunUnderTest) -> Finding | Right | None:
    """The router's drops against p: too few by 100, or else. Without its counters, the sender's."""
    wanted, drops = run.param("loss_ratio"), run.measured("qdisc_drops")
    offered, who, slack = run.measured("qdisc_offered_packets"), "packets dropped", 0.0
    if drops is None:
        # What was sent again is nearly what was lost; some of it was not lost after all.
        drops, offered, who = (
            run.measured("retrans_total")
            if run.brought and run.measured("retransmits") is None
            else run.measured("retransmits"),
            run.measured("data_segs_out"),
            "segments retransmitted",
        )
        slack = 0.1
        if offered is None and run.brought and wanted:
            # iperf3 alone: about so many segments, of which some are sent twice; a bundle of them is lost at once.
            tests = run.host_state.transfers if run.host_state else ()
            sent = [test.sent.bytes for test in tests if test.sent]
            offered, slack = round(sum(sent) / (run.param("mss_bytes") or USUAL_MSS_BYTES)), 0.5
        drops = max(drops - (run.measured("spurious_retransmits") or 0), 0) if drops else drops
    if wanted is None or drops is None or not offered:
        return None

    def interval(ratio: float) -> tuple[float, float]:
        low, high = binomial_interval(int(offered), ratio, CONFIDENCE)
        return low * (1 - slack), high * (1 + slack) + (20 / offered if slack else 0)

    low, high = interval(wanted)
    ratio = drops / offered
    if low <= ratio <= high:
        return Right(f"the share of {who}")
    goodput_bps = run.measured("goodput_bps")
    if ratio > high and goodput_bps and fills_the_link(run, goodput_bps):
        # A full link's queue drops something, too, and TCP goes on until it does.
        return None
    found = f"{drops:.0f} of {offered:.0f} {who}: {ratio:.3g}"
    meant = f"{low:.3g} to {high:.3g}, for p = {wanted:.4g}" if high else "none, for p = 0"
    hundredth = interval(wanted / 100)
    # No drop at all says nothing of how many too few there are, and tc may print what is set.
    set_right = any(
        qdisc.kind == "netem"
        and qdisc.loss_ratio
        and math.isclose(qdisc.loss_ratio, wanted, rel_tol=0.05)
        for _, qdisc in (run.host_state.qdiscs if run.host_state else ())
    )
    if drops and not set_right and hundredth[0] <= ratio <= hundredth[1]:
        return Finding(
            "loss-percent", found, meant,
            "A hundred times too few, because a ratio was given where per cent is read.",
            symptom=f"the count of {who} doesn't fit the trial's p",
        )  # fmt: skip
    return Finding(
        "loss-ratio", found, meant, "The path loses a different share from the one that was set."
    )


@check(
    FindingKind(
        "other-drops", "The drops of every other qdisc on the path.", explains=("retransmissions",)
    ),
    needs=("other_qdisc_drops",),
)
def other_drops(run: RunUnderTest) -> Finding | Right | None:
    drops = run.measured("other_qdisc_drops")
    if drops is None:
        return None
    if not drops:
        return Right("other qdiscs' drops")
    return Finding(
        "other-drops",
        f"{drops:.0f} packets dropped by qdiscs other than the one that was set to lose some",
        "none",
        "These losses aren't part of p, and happened in a queue that no one looked at.",
        symptom=f"{drops:.0f} packets are missing, and not those that should be lost",
    )


@check(
    FindingKind(
        "receiver-drops",
        "What the receiver's kernel dropped from its own out-of-order queue.",
        explains=("retransmissions", "stalled"),
    ),
    needs=("receiver_ofo_drops", "receiver_prune_calls"),
)
def receiver(run: RunUnderTest) -> Finding | Right | None:
    counts = [run.measured(name) for name in ("receiver_ofo_drops", "receiver_prune_calls")]
    if counts == [None, None]:
        return None
    if not any(counts):
        return Right("the receiver's own drops")
    return Finding(
        "receiver-drops",
        f"the receiver dropped from its own queue ({run.measured('receiver_ofo_drops') or 0:.0f} segments "
        f"refused, {run.measured('receiver_prune_calls') or 0:.0f} times pruned)",
        "none: only the router was meant to lose packets",
        "These losses aren't part of p, and each of them costs the sender a retransmission.",
        symptom="segments were lost that the router's qdisc never dropped",
    )


@check(
    FindingKind(
        "queueing", "The mean round-trip time over the smallest, and the share of the link in use."
    ),
    FindingKind("round-trip-time"),
    needs=("rtt_min_ms", "rtt_mean_ms", "goodput_bps"),
)
def queue(run: RunUnderTest) -> Finding | Right | None:
    """A standing queue: round trips grow, and the link is the reason."""
    least, mean = run.measured("rtt_min_ms"), run.measured("rtt_mean_ms")
    goodput_bps, rate_mbit = run.measured("goodput_bps"), run.param("rate_mbit")
    if not least or mean is None or goodput_bps is None or not rate_mbit:
        return None
    share = goodput_bps / (rate_mbit * 1e6)
    if mean <= 1.05 * least:
        return Right("the mean round-trip time")
    if share < 0.5:
        return None
    room = run.param("limit_packets") or math.inf
    full_ms = max(least, run.param("rtt_ms") or 0.0) + room * FRAME_BITS / (1e3 * rate_mbit)
    if mean > (1 + FULL_QUEUE_SLACK) * full_ms + FULL_QUEUE_SLACK_MS:
        return Finding(
            "round-trip-time",
            f"a mean round-trip time of {mean:.4g} ms",
            f"at most {full_ms:.4g} ms: the path, and a full queue of {room:.0f} packets at {rate_mbit:g} Mbit/s",
            "There is a longer queue than the intended one, or a second one.",
            rests_on="rate_mbit",
        )
    if not run.param("loss_ratio"):
        # Nothing but the link's rate limits the flow, so that its queue is as long as there is room for it.
        return Right("the mean round-trip time") if math.isfinite(room) else None
    return Finding(
        "queueing",
        f"a mean round-trip time of {mean:.2f} ms over a smallest of {least:g} ms, "
        f"with {100 * share:.0f} % of the link in use",
        "a mean near the smallest: this path should have no queue",
        "Packets wait at the link. Its rate limits the flow then, not the losses alone.",
        symptom=f"a mean round-trip time of {mean:.2f} ms, {mean / least:.2f} times the smallest",
    )


@check(
    FindingKind(
        "retransmissions",
        "The sender's retransmissions, compared with all drops that are accounted for.",
        explains=("stalled",),
        hints=(
            "Compare the sender's retransmissions with all drops that you can find.",
            "nstat on both hosts, the qdiscs' drops, /proc/net/softnet_stat: what is left over?",
            "Something on the way loses packets, or reorders them so far that the sender takes them for lost.",
        ),
    ),
    needs=("retransmits", "qdisc_drops", "spurious_retransmits", "softnet_drops"),
)
def retransmissions(run: RunUnderTest) -> Finding | Right | None:
    """Every retransmission has a known drop behind it, or was spurious by the sender's count."""
    retransmits, drops = run.measured("retransmits"), run.measured("qdisc_drops")
    # With offloads a packet that is dropped is several segments.
    if retransmits is None or drops is None or run.params.get("offloads") == "on":
        return None
    known = (
        drops + (run.measured("spurious_retransmits") or 0) + (run.measured("softnet_drops") or 0)
    )
    if retransmits <= 1.1 * known + 20:
        return Right("a drop for each retransmitted segment")
    return Finding(
        "retransmissions",
        f"{retransmits:.0f} retransmissions",
        f"about {known:.0f}: the router's drops and what the sender knows to be spurious",
        "Something loses packets that nobody has counted.",
    )


# Rates: can a link carry that, do the tools agree, does the model apply?

# What a sender may have in its buffer where nobody said how much.
UNSAID_BUFFER_BYTES = 4 << 20
# With n losses the loss ratio is known to 1/sqrt(n): 100 make that 10 %.
LOSSES_WANTED = 100


@check(
    FindingKind(
        "link-rate",
        "Goodput, compared with what the link can carry less its headers.",
        hints=(
            "Compare the goodput with the rate of the slowest link.",
            "A part of each frame is headers, not goodput. What is the most goodput that the link can carry?",
            "Nothing goes faster than the link, so the rate is not set where you think, or rates were added up that belong to different times.",
        ),
    ),
    FindingKind("ends-apart"),
    needs=("goodput_bps", "mss_bytes", "rtt_mean_ms", "duration_s"),
)
def link_rate(run: RunUnderTest) -> Finding | Right | None:
    goodput_bps, rate_mbit = run.measured("goodput_bps"), run.param("rate_mbit")
    transfers = run.host_state.transfers if run.host_state else ()
    mss_bytes = run.measured("mss_bytes") or min(
        (test.mss_bytes for test in transfers if test.mss_bytes and run.brought), default=None
    )
    if goodput_bps is None or not rate_mbit:
        return None
    # Without a segment size it isn't known how much of the rate headers take.
    headers = IP_TCP_HEADERS_BYTES + ETHERNET_HEADER_BYTES if mss_bytes else 0
    limit_bps = rate_mbit * 1e6 * (mss_bytes / (mss_bytes + headers) if mss_bytes else 1)
    # Where goodput is counted from ACKs, what was on its way as the time began is acknowledged in it:
    # up to a round trip's bytes. In a test of seconds, behind a long queue, that is a few per cent.
    rtt_ms, seconds = run.measured("rtt_mean_ms"), run.measured("duration_s")
    on_its_way = rtt_ms / 1e3 / seconds if rtt_ms and seconds else 0.0
    if goodput_bps <= (1 + max(0.01, on_its_way)) * limit_bps:
        return Right("goodput against the link's rate") if run.is_stated("rate_mbit") else None
    measured, limit = f"{in_mbit(goodput_bps)} Mbit/s", f"at most {in_mbit(limit_bps)} Mbit/s"
    handed_over = bool(transfers) and not any(transfer.received for transfer in transfers)
    if handed_over and seconds and (goodput_bps - limit_bps) * seconds / 8 < UNSAID_BUFFER_BYTES:
        return Finding(
            "ends-apart", f"{measured} by what the sender handed over", f"{limit} by what arrived",
            "The sender counts what it hands to its own host, where some of it still waits when the test is over. Only the "
            "receiver knows the goodput: bring the server's output, too.",
            severity="warning", rests_on="rate_mbit",
        )  # fmt: skip
    return Finding(
        "link-rate",
        measured,
        f"{limit}: the link's rate" + (" less the headers" if headers else ""),
        "More than the link can carry: flows averaged over different times, or a link that is "
        "not the one that was set.",
        rests_on="rate_mbit",
    )


@check(
    FindingKind(
        "bandwidth",
        "iperf3's rate, compared with the bytes that ss says were acknowledged.",
        hints=(
            "Take bytes_acked from the connection's last line in ss, and the length of the test.",
            "Eight times bytes over seconds: is it the rate that iperf3 prints?",
            "One of the two files is of another run, or of another connection.",
        ),
    ),
    needs=("bytes_acked", "sender_rate_bps", "duration_s"),
)
def bytes_acknowledged(run: RunUnderTest) -> Finding | Right | None:
    """iperf3's rate against the bytes that ss says were acknowledged."""
    acked, sent_bps = run.measured("bytes_acked"), run.measured("sender_rate_bps")
    duration_s = run.measured("duration_s")
    if acked is None or not sent_bps or not duration_s:
        return None
    sockets = run.data_sockets()
    seen_s = max((max(socket.alive_s, socket.busy_s or 0.0) for socket in sockets), default=0.0)
    seen_s = min(seen_s or duration_s, duration_s)
    # ss counts the seconds, too, that -O leaves out.
    tests = run.host_state.transfers if run.host_state else ()
    sent = sent_bps * duration_s / 8 + sum(test.omitted_bytes for test in tests)
    # iperf3 counts what it handed to the socket; what is still in its buffer isn't acknowledged.
    slack = 0.03 * sent + (run.param("wmem_max_bytes") or UNSAID_BUFFER_BYTES)
    unseen = run.unseen_bytes(sockets) if sockets else 0.0
    if -slack - unseen <= acked - sent <= slack:
        return Right("iperf3's bytes against ss's")
    return Finding(
        "bandwidth",
        f"{in_mbit(sent_bps)} Mbit/s by iperf3",
        f"{in_mbit(acked * 8 / seen_s)} Mbit/s by the bytes that ss says were acknowledged",
        "The two tools speak of different connections or different times.",
    )


@check(
    FindingKind(
        "path",
        "The window over the rate, which is a time, compared with the path's round-trip time.",
        hints=(
            "Divide cwnd times MSS by the rate: that is a time. Compare it with ping's.",
            "Can a window of data be acknowledged sooner than light and routers allow?",
            "Something between the two hosts ends the connection and opens its own: a proxy, a NAT that does so. You measured the way to it.",
        ),
    ),
    needs=("cwnd_mean_segments", "mss_bytes", "goodput_bps", "rtt_min_ms"),
)
def path(run: RunUnderTest) -> Finding | Right | None:
    """A window a round trip: cwnd over rate can't be less than the path's round-trip time."""
    cwnd, mss_bytes = run.measured("cwnd_mean_segments"), run.measured("mss_bytes")
    goodput_bps, least_ms = run.measured("goodput_bps"), run.measured("rtt_min_ms")
    if not cwnd or not mss_bytes or not goodput_bps or not least_ms:
        return None
    by_window_ms = cwnd * mss_bytes * 8 / goodput_bps * 1e3
    if by_window_ms >= 0.8 * least_ms:
        return Right("window over rate against the round-trip time")
    return Finding(
        "path",
        f"cwnd over rate is {by_window_ms:.3g} ms",
        f"at least the round-trip time, {least_ms:g} ms",
        "The sender's path ends before the receiver: something answers in its place.",
    )


@check(
    FindingKind(
        "duration", "How many losses a run had. With n of them p is known to about one part in √n."
    ),
    needs=("qdisc_drops", "duration_s"),
)
def duration(run: RunUnderTest) -> Finding | None:
    """Enough losses for the claim, if one is made: with n of them p is known to 1/sqrt(n)."""
    wanted, drops = run.param("loss_ratio"), run.measured("qdisc_drops")
    if not wanted or drops is None or drops >= LOSSES_WANTED:
        return None
    if run.params.get("compare_with") == "nothing":
        return None
    known = f"to about {100 / math.sqrt(drops):.0f} %" if drops else "not at all"
    duration_s = run.measured("duration_s")
    return Finding(
        "duration",
        f"{drops:.0f} losses" + (f" in {duration_s:.0f} s" if duration_s else ""),
        f"at least {LOSSES_WANTED}",
        f"From so few the loss ratio is known {known}; the goodput is that of these few "
        "accidents. A longer run has more.",
        severity="warning",
        symptom="one of the router's counts doesn't carry the answer that this run is to give",
    )


@check(
    FindingKind(
        "model-domain", "Whether the run is compared with a model at a p where timeouts dominate."
    ),
    needs=("timeouts",),
)
def model_domain(run: RunUnderTest) -> Finding | None:
    wanted, limit = run.param("loss_ratio"), run.max_loss_ratio
    if (
        wanted is None
        or limit is None
        or wanted < limit
        or run.params.get("compare_with") != "mathis"
    ):
        return None
    timeouts = run.measured("timeouts")
    return Finding(
        "model-domain",
        f"p = {wanted:.4g}" + (f", {timeouts:.0f} timeouts" if timeouts is not None else ""),
        f"p below {limit:g} for the Mathis model",
        "The model has no timeouts in it. With so small a window they dominate.",
        symptom="one step from what was measured to what is concluded doesn't hold for this run",
    )


@check(
    FindingKind(
        "ack-policy", "The constant that was measured, compared with the one that was claimed."
    ),
    needs=("goodput_bps", "qdisc_drops", "data_segs_out", "receiver_acks_out"),
)
def ack_policy(run: RunUnderTest) -> Finding | None:
    """C against the constant that was claimed: is it nearer to that, or to its sibling?

    The siblings assume the same losses and differ in how the window grows: by segments
    acknowledged or by ACKs. Judged only where chance is far smaller than their distance.
    """
    claimed = MATHIS_CONSTANTS.get(str(run.params.get("constant_claimed")))
    mss_bytes, rtt_ms = run.param("mss_bytes"), run.param("rtt_ms")
    loss_ratio, goodput_bps = run.param("loss_ratio"), run.measured("goodput_bps")
    drops = run.measured("qdisc_drops") or 0
    if (
        claimed is None
        or claimed.segments_per_window_step is None
        or not mss_bytes
        or not rtt_ms
        or not loss_ratio
        or not goodput_bps
        or drops < LOSSES_WANTED
        or loss_ratio >= (run.max_loss_ratio or 1)
    ):
        return None
    family = [c for c in MATHIS_CONSTANTS.values() if c.losses == claimed.losses]
    ratio = goodput_bps / mathis_bandwidth_bps(mss_bytes, rtt_ms, loss_ratio)
    nearest = min(family, key=lambda constant: abs(math.log(ratio / constant.value)))
    if nearest == claimed:
        return None
    sent, acks = run.measured("data_segs_out"), run.measured("receiver_acks_out")
    per_ack = f", with one ACK for {sent / acks:.1f} segments" if sent and acks else ""
    return Finding(
        "ack-policy",
        f"C = {ratio:.2f}{per_ack}",
        f"C near {claimed.value:.2f}: {claimed.assumes}",
        f"C is near {nearest.value:.2f}: {nearest.assumes}. Linux adds to its window for each "
        "segment that an ACK covers, so how many ACKs the receiver sends hardly matters.",
        symptom=f"C = {ratio:.2f} was measured, {claimed.value:.2f} was claimed",
    )
