"""The checks of runs with many flows: what was counted and what was concluded, against the raw files.

As in single_flow.py: what a check needs and the run does not have, it does not judge.
"""

from __future__ import annotations

from measuretwice.checks.finding import Case, Finding
from measuretwice.tcp.headers import ETHERNET_HEADER_BYTES, largest_packet_bytes, payload_limit

# How far a person's own number may be from the raw files, however long the interval: see _rate_off.
RATE_TOLERANCE_RATIO = 0.03
RTT_TOLERANCE_RATIO = 0.1
COUNT_TOLERANCE_RATIO = 0.25
COUNT_TOLERANCE = 5
LOSS_TOLERANCE_RATIO = 0.15
LOSS_TOLERANCE = 10
# Within this factor of its fair share a flow counts as fair.
FAIR_FACTOR = 1.5


def _large_packets(case: Case) -> Finding | None:
    """The queue says how many bytes and how many packets wait: is a packet more than a segment?"""
    seen, mss_bytes = case.got("queue_packet_bytes"), case.got("mss_bytes")
    if seen is None or mss_bytes is None:
        return None
    limit = largest_packet_bytes(mss_bytes) + ETHERNET_HEADER_BYTES
    if seen <= limit + 1:
        return None
    retransmits, drops = case.got("retransmits"), case.got("queue_drops")
    also = ""
    if retransmits and drops:
        also = f"; {retransmits:.0f} segments sent again for {drops:.0f} drops"
    return Finding(
        "offload",
        "error",
        f"packets of {seen:.0f} B on average in the router's queue{also}",
        f"at most {limit:.0f} B: MSS {mss_bytes:.0f} and its headers",
        "Several segments travel as one packet. The router drops them together and counts one: "
        "neither its drops nor its queue are in the model's unit.",
    )


def _missing_flows(case: Case) -> Finding | None:
    """Flows that were asked for, those in the files, and the number that an index was taken with."""
    asked, found, said = case.want("flows"), case.got("flows"), case.got("own_flows")
    if asked is None or found is None or "segments" not in case.measured:
        return None
    if found == asked and said in (None, found):
        return None
    own = f", {said:.0f} in the index" if said is not None else ""
    index = case.got("own_jain")
    return Finding(
        "missing-flows",
        "error",
        f"{found:.0f} flows in the files{own}" + (f" ({index:.3f})" if index is not None else ""),
        f"{asked:.0f} flows: in the files, in the sum, and in n",
        "A flow that never ran adds nothing to the sum but is counted in n. The index falls by the "
        "missing flows' share, and it looks like unfairness.",
    )


def _rate_off(case: Case) -> float:
    """How far an honest rate of the same flows may be from ours, as a ratio.

    Who counts from a flow's first sample inside the interval to its last one leaves out a sample's
    time or so, at both ends together. In a short run, in which some flows are still taking from the
    others, that time's rates are other ones.
    """
    sample_s, seconds = case.want("sample_interval_s"), case.got("duration_s")
    return RATE_TOLERANCE_RATIO + (sample_s / seconds if sample_s and seconds else 0.0)


def _unequal_intervals(case: Case) -> Finding | None:
    said, seen = case.got("own_sum_bps"), case.got("goodput_bps")
    rate_mbit, mss_bytes = case.want("rate_mbit"), case.got("mss_bytes")
    if said is None or not seen or abs(said - seen) <= _rate_off(case) * seen:
        return None
    most = ""
    if rate_mbit and mss_bytes:
        most = f"; the link can carry {payload_limit(rate_mbit, mss_bytes, wire=False):.4g}"
    return Finding(
        "unequal-intervals",
        "error",
        f"a sum of {said / 1e6:.4g} Mbit/s",
        f"{seen / 1e6:.4g} Mbit/s while all flows were there{most}",
        "Each flow's rate is over its own time. Where these times differ, rates that never were at "
        "once are added up, and the sum can exceed the link.",
    )


def _standing_queue(case: Case) -> Finding | None:
    said, seen = case.got("own_rtt_ms"), case.got("rtt_mean_ms")
    if said is None or seen is None or abs(said - seen) <= RTT_TOLERANCE_RATIO * seen:
        return None
    delay_ms = case.got("queue_delay_mean_ms")
    also = f", of which {delay_ms:.0f} ms are the queue" if delay_ms else ""
    constant = case.got("own_c_by_halvings")
    return Finding(
        "standing-queue",
        "error",
        f"a round-trip time of {said:.4g} ms in the model"
        + (f": C = {constant:.3g}" if constant else ""),
        f"{seen:.4g} ms, as ss measured it{also}",
        "The base delay is what the path adds. Behind a buffer that is never empty the round trip is "
        "longer, and that is what clocks a window.",
    )


def _halving_counter(case: Case) -> Finding | None:
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


def _loss_definition(case: Case) -> Finding | None:
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
    )


def _mislabelled_row(case: Case) -> Finding | None:
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


def _fair_share(case: Case) -> Finding | None:
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
    )


CHECKS = (
    _large_packets, _missing_flows, _unequal_intervals, _standing_queue, _halving_counter,
    _loss_definition, _mislabelled_row, _fair_share,
)  # fmt: skip
EXPLAINS: dict[str, frozenset[str]] = {
    # The router counts one drop for several segments.
    "offload": frozenset({"loss-definition"}),
    # What was summed is of other flows than were meant, or over other times.
    "missing-flows": frozenset({"unequal-intervals", "mislabelled-row"}),
    "unequal-intervals": frozenset({"mislabelled-row"}),
}
