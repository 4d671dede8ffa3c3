"""The checks of runs with many flows: what was counted and what was concluded, against the raw files."""

from __future__ import annotations

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check
from measuretwice.tcp.model import ETHERNET_HEADER_BYTES, largest_packet_bytes, payload_limit

# How far a person's own number may be from the raw files, however long the interval: see _rate_off.
RATE_TOLERANCE_RATIO = 0.03
RTT_TOLERANCE_RATIO = 0.1
COUNT_TOLERANCE_RATIO = 0.25
COUNT_TOLERANCE = 5
LOSS_TOLERANCE_RATIO = 0.15
LOSS_TOLERANCE = 10
# Within this factor of its fair share a flow counts as fair.
FAIR_FACTOR = 1.5


def _rate_off(case: Case) -> float:
    """How far an honest rate of the same flows may be from ours, as a ratio.

    Who counts from a flow's first sample inside the interval to its last one leaves out a sample's
    time or so, at both ends together. In a short run, in which some flows are still taking from the
    others, that time's rates are other ones.
    """
    sample_s, seconds = case.want("sample_interval_s"), case.got("duration_s")
    return RATE_TOLERANCE_RATIO + (sample_s / seconds if sample_s and seconds else 0.0)


@check(
    Help(
        "offload",
        explains=("loss-definition",),
    ),
    needs=(
        "queue_packet_bytes",
        "mss_bytes",
        "retransmits",
        "queue_drops",
    ),
)
def large_packets(case: Case) -> Finding | None:
    """The queue says how many bytes and how many packets wait: is a packet more than a segment?"""
    packet_bytes, mss_bytes = case.got("queue_packet_bytes"), case.got("mss_bytes")
    if packet_bytes is None or mss_bytes is None:
        return None
    limit = largest_packet_bytes(mss_bytes) + ETHERNET_HEADER_BYTES
    if packet_bytes <= limit + 1:
        return None
    retransmits, drops = case.got("retransmits"), case.got("queue_drops")
    also = ""
    if retransmits and drops:
        also = f"; {retransmits:.0f} segments sent again for {drops:.0f} drops"
    return Finding(
        "offload",
        "error",
        f"packets of {packet_bytes:.0f} B on average in the router's queue{also}",
        f"at most {limit:.0f} B: MSS {mss_bytes:.0f} and its headers",
        "Several segments travel as one packet. The router drops them together and counts one: "
        "neither its drops nor its queue are in the model's unit.",
    )


@check(
    Help(
        "missing-flows",
        "Flows in the files, compared with those that were asked for and the n of your own index.",
        explains=("unequal-intervals", "mislabelled-row"),
    ),
    needs=(
        "flows",
        "own_flows",
        "segments",
        "own_jain",
    ),
)
def missing_flows(case: Case) -> Finding | None:
    """Flows that were asked for, those in the files, and the number that an index was taken with."""
    asked, found, counted = case.want("flows"), case.got("flows"), case.got("own_flows")
    if asked is None or found is None or case.got("segments") is None:
        return None
    if found == asked and counted in (None, found):
        return None
    also = f", {counted:.0f} in the index" if counted is not None else ""
    index = case.got("own_jain")
    return Finding(
        "missing-flows",
        "error",
        f"{found:.0f} flows in the files{also}" + (f" ({index:.3f})" if index is not None else ""),
        f"{asked:.0f} flows: in the files, in the sum, and in n",
        "A flow that never ran adds nothing to the sum but is counted in n. The index falls by the "
        "missing flows' share, which looks like unfairness.",
    )


@check(
    Help(
        "unequal-intervals",
        "Your own sum of goodputs, compared with ss over the time in which all flows were there.",
        explains=("mislabelled-row",),
    ),
    needs=(
        "own_sum_bps",
        "goodput_bps",
        "mss_bytes",
        "duration_s",
    ),
)
def unequal_intervals(case: Case) -> Finding | None:
    sum_bps, goodput_bps = case.got("own_sum_bps"), case.got("goodput_bps")
    rate_mbit, mss_bytes = case.want("rate_mbit"), case.got("mss_bytes")
    if (
        sum_bps is None
        or not goodput_bps
        or abs(sum_bps - goodput_bps) <= _rate_off(case) * goodput_bps
    ):
        return None
    most = ""
    if rate_mbit and mss_bytes:
        most = f"; the link can carry {payload_limit(rate_mbit, mss_bytes, wire=False):.4g}"
    return Finding(
        "unequal-intervals",
        "error",
        f"a sum of {sum_bps / 1e6:.4g} Mbit/s",
        f"{goodput_bps / 1e6:.4g} Mbit/s while all flows were there{most}",
        "Each flow's rate is over its own time. Where these times differ, rates that never were at "
        "once are added up, and the sum can exceed the link.",
    )


@check(
    Help(
        "standing-queue",
        "The round-trip time that you put into the model, compared with the mean of ss's.",
    ),
    needs=(
        "own_rtt_ms",
        "rtt_mean_ms",
        "queue_delay_mean_ms",
        "own_c_by_halvings",
    ),
)
def standing_queue(case: Case) -> Finding | None:
    used_ms, mean_ms = case.got("own_rtt_ms"), case.got("rtt_mean_ms")
    if (
        used_ms is None
        or mean_ms is None
        or abs(used_ms - mean_ms) <= RTT_TOLERANCE_RATIO * mean_ms
    ):
        return None
    delay_ms = case.got("queue_delay_mean_ms")
    also = f", of which {delay_ms:.0f} ms are the queue" if delay_ms else ""
    constant = case.got("own_c_by_halvings")
    return Finding(
        "standing-queue",
        "error",
        f"a round-trip time of {used_ms:.4g} ms in the model"
        + (f": C = {constant:.3g}" if constant else ""),
        f"{mean_ms:.4g} ms, as ss measured it{also}",
        "The base delay is what the path adds. Behind a buffer that is never empty the round trip is "
        "longer, and that is what clocks a window.",
        off=f"C = {constant:.3g} by what was put into the model"
        if constant
        else "a value in the model isn't what was measured",
    )


@check(
    Help(
        "halving-counter",
        "Halvings that you counted from samples, compared with the kernel's own events.",
    ),
    needs=(
        "own_counted_halvings",
        "halvings",
        "queue_drops",
    ),
)
def halving_counter(case: Case) -> Finding | None:
    counted, events = case.got("own_counted_halvings"), case.got("halvings")
    if counted is None or events is None:
        return None
    if abs(counted - events) <= COUNT_TOLERANCE_RATIO * events + COUNT_TOLERANCE:
        return None
    drops = case.got("queue_drops")
    also = f", with {drops:.0f} packets lost" if drops is not None else ""
    return Finding(
        "halving-counter",
        "error",
        f"{counted:.0f} halvings counted{also}",
        f"{events:.0f}, by the kernel's own events",
        "A window comes down over a whole round trip, in many steps with pauses between them. Who "
        "takes a pause for a rise counts each step as a halving. There can't be more halvings than "
        "losses.",
    )


@check(
    Help(
        "loss-definition",
        "Retransmissions against the router's drops, where you call the one a loss.",
    ),
    needs=(
        "retransmits",
        "queue_drops",
        "spurious_retransmits",
    ),
)
def loss_definition(case: Case) -> Finding | None:
    retransmits, drops = case.got("retransmits"), case.got("queue_drops")
    if case.wanted.get("loss_by") != "retransmissions" or retransmits is None or drops is None:
        return None
    if abs(retransmits - drops) <= LOSS_TOLERANCE_RATIO * drops + LOSS_TOLERANCE:
        return None
    spurious = case.got("spurious_retransmits")
    also = f"; in the whole run receivers got {spurious:.0f} segments twice" if spurious else ""
    return Finding(
        "loss-definition",
        "error",
        f"{retransmits:.0f} losses by retransmissions{also}",
        f"{drops:.0f}: what the router dropped",
        "A sender sends again what it takes for lost. Where packets overtake each other it takes more "
        "for lost than is.",
        off=f"{retransmits:.0f} losses were counted, {drops:.0f} expected",
    )


@check(
    Help(
        "mislabelled-row",
        "Your own sum of each algorithm's flows, compared with what their connections add up to.",
    ),
    needs=(
        "own_groups_error_ratio",
        "duration_s",
    ),
)
def mislabelled_row(case: Case) -> Finding | None:
    error = case.got("own_groups_error_ratio")
    # A row's own error comes on top of what the sum of all rows may be off.
    if error is None or error <= _rate_off(case) + RATE_TOLERANCE_RATIO:
        return None
    return Finding(
        "mislabelled-row",
        "error",
        f"a row of the table is {100 * error:.0f} % off what that algorithm's flows add up to",
        "each row the sum of the flows that ran its algorithm, by their connections' own word",
        "The numbers are right and stand under another's name. No rule of physics sees that; only who "
        "recomputes the row from the flows.",
    )


@check(
    Help(
        "fair-share",
        "A rival's part of the goodput over its part of the flows, where you judge by percent.",
    ),
    needs=(
        "rival_share",
        "rival_fair_share",
        "rivals_found",
    ),
)
def fair_share(case: Case) -> Finding | None:
    share, fair = case.got("rival_share"), case.got("rival_fair_share")
    if case.wanted.get("judged_by") != "percent" or share is None or not fair:
        return None
    times = share / fair
    if 1 / FAIR_FACTOR <= times <= FAIR_FACTOR:
        return None
    rivals = case.got("rivals_found") or 0
    return Finding(
        "fair-share",
        "error",
        f"{100 * share:.2g} % of the goodput for {rivals:.0f} of {rivals / fair:.0f} flows",
        f"{100 * fair:.2g} %: it takes {times:.2g} times its fair share",
        "A percentage of a link that a thousand share says nothing by itself. Fair is one part in as "
        "many as there are flows.",
        off=f"{100 * share:.2g} % of the goodput for {rivals:.0f} of {rivals / fair:.0f} flows, called small",
    )
