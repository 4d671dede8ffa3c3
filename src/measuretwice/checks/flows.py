"""The checks of one sender's flow over time, and of runs with many flows: what was counted and concluded,
compared with the raw files.
"""

from __future__ import annotations

from measuretwice.checks.registry import Finding, FindingKind, Right, RunUnderTest, check
from measuretwice.tcp.model import (
    ETHERNET_HEADER_BYTES,
    IPV4_HEADER_BYTES,
    largest_packet_bytes,
    payload_limit,
)

# One sender: is its path what it seems, has it settled, is what a table keeps of it true?

# TCP's smallest RTT and ping's differ by what a busy host and a radio add: by less than a half.
PATH_SHARE = 0.5
# A flow still ramps up if its last fifth is this much faster than its first.
RISING_RATIO = 1.25
ALL_STEPS = 4
# A short time, too, may lie within the ramp: there the pace says it, by what ten seconds more would add.
PACE_S = 10.0
# Between the middles of the first fifth and the last lies this share of the time.
BETWEEN_FIFTHS = 0.8
# What a few packets more or less make of the fifths of a second or so.
UNEVEN_RATIO = 1.02
HIDING_RATIO = 1.25
# Rows as short as the tenths that they are held against begin at other moments, no more.
SHORT_S = 0.15
# iperf3 and ss look at different moments, and a window may halve between the two.
FOREIGN_SHARE = 0.3


@check(
    FindingKind(
        "wrong-algorithm",
        "The congestion control that the kernel names, compared with the intended one.",
        explains=("ten-seconds", "host-qdisc"),
    ),
    needs=("congestion_control",),
)
def algorithm(run: RunUnderTest) -> Finding | Right | None:
    """The congestion control that the kernel says, against the one that was meant."""
    wanted = run.params.get("congestion_control")
    used = run.measured_text("congestion_control")
    if wanted is None or used is None:
        return None
    if used == wanted:
        return Right("the kernel's word on the algorithm")
    return Finding(
        "wrong-algorithm",
        f"a flow of {used}",
        str(wanted),
        "So the measurement is of another algorithm."
        if run.brought
        else "The setting did not reach the kernel. The measurement is of the algorithm that was there "
        "before, under another's name.",
        symptom="one word that is printed of the sender's connection isn't the trial's",
        rests_on="congestion_control",
    )


@check(
    FindingKind(
        "host-qdisc",
        "Which qdisc tc prints for the sender's own card, compared with the intended one.",
        hints=(
            "Read tc.txt on the sender: which qdisc does its card have?",
            "sysctl shows the intended one. In which order did the script take its two steps?",
            "net.core.default_qdisc is looked up when an interface gets its first queue. An existing interface keeps its own, until you replace it with tc or make the interface again.",
        ),
    ),
    needs=("host_queue_kind",),
)
def host_queue(run: RunUnderTest) -> Finding | None:
    """The sender's own queue discipline, as tc prints it, against the one that was meant."""
    wanted = run.params.get("host_qdisc")
    kinds = (run.measured_text("host_queue_kind") or "").split()
    if wanted is None or not kinds or wanted in kinds:
        return None
    return Finding(
        "host-qdisc",
        f"a card with a queue of the kind {kinds[0]} (tc)",
        str(wanted),
        "net.core.default_qdisc is looked up when an interface is first brought up, or when its qdisc is "
        "deleted. An interface that is up already keeps the qdisc that it has.",
        symptom="the sender's card has a different queue from the intended one",
    )


@check(
    FindingKind(
        "terminated-tcp",
        "TCP's smallest round-trip time, and cwnd over rate, against ping's.",
        explains=("ten-seconds", "receive-window", "send-buffer", "application-limited"),
    ),
    needs=("sender_path_rtt_ms", "tcp_min_rtt_ms", "cwnd_over_rate_ms"),
)
def terminated(run: RunUnderTest) -> Finding | None:
    """A window takes a round trip to be acknowledged: by the far end, or by somebody nearer?"""
    path_ms = run.measured("sender_path_rtt_ms")
    least_ms, by_window_ms = run.measured("tcp_min_rtt_ms"), run.measured("cwnd_over_rate_ms")
    if not path_ms or least_ms is None or by_window_ms is None:
        return None
    if least_ms >= PATH_SHARE * path_ms and by_window_ms >= PATH_SHARE * path_ms:
        return None
    return Finding(
        "terminated-tcp",
        f"cwnd over rate is {by_window_ms:.3g} ms, TCP's smallest round-trip time {least_ms:.3g} ms",
        f"no less than the path's, {path_ms:.3g} ms by ping",
        "No acknowledgement comes back sooner than the path allows. Something nearer ends the "
        "connection and speaks to the server in its own way, so the sender's algorithm governs only that "
        "first hop.",
        symptom="what ss says of the sender doesn't fit the path",
    )


@check(
    FindingKind(
        "ten-seconds", "Whether the rate still rises within the time over which it is averaged."
    ),
    needs=("rising_ratio", "rising_steps", "steady_retransmits", "steady_goodput_bps"),
)
def still_rising(run: RunUnderTest) -> Finding | None:
    """The last fifth of the averaged time against its first: has the rate settled?"""
    ratio, steps = run.measured("rising_ratio"), run.measured("rising_steps")
    if "average_from_s" not in run.params or ratio is None or steps is None:
        return None
    # A flow that lost something has met its limit: what goes up comes down again, and goes up.
    if run.measured("steady_retransmits"):
        return None
    everywhere = steps >= ALL_STEPS
    # Where a link's own rate changes, or a rival takes and leaves a share of it, a rate rises by chance.
    is_alone = "rate-varies" not in run.meanings and run.params.get("rival", "none") == "none"
    rises = ratio >= RISING_RATIO and (everywhere or is_alone)
    in_ten_s = _in_ten_s(run, ratio) if everywhere and is_alone else None
    if not rises and (in_ten_s is None or in_ten_s < RISING_RATIO):
        return None
    goodput_bps = run.measured("steady_goodput_bps") or 0
    fifths = (
        f"hasn't settled: the last fifth of the time has {ratio:.2f} times the rate of the first"
    )
    pace = (
        "" if rises else f", and ten seconds more at that pace would make it {in_ten_s:.2f} times"
    )
    if everywhere:
        fifths = f"rises in each fifth of the time: the last has {ratio:.2f} times the first"
        why = "The flow was still growing when the test ended. A longer test has a larger mean, and this one "
        why += "depends on when you stopped, not on what the algorithm gets."
    else:
        why = "The flow was still growing when the averaged time began. A mean from a later second on is larger, and "
        why += "this one depends on when you began to count, not on what the algorithm gets."
    return Finding(
        "ten-seconds",
        f"a mean of {goodput_bps / 1e6:.3g} Mbit/s, of a rate that {fifths}{pace}",
        f"a rate that has settled: less than {RISING_RATIO:g} times",
        why,
        symptom=f"a mean of {goodput_bps / 1e6:.3g} Mbit/s, which isn't what the flow gets",
    )


def _in_ten_s(run: RunUnderTest, ratio: float) -> float | None:
    """Return how many times the rate ten seconds more would make, at the pace of the averaged time; None where that can't be told."""
    from_s, to_s = run.param("average_from_s"), run.param("duration_s")
    if from_s is None or to_s is None or to_s <= from_s or ratio < UNEVEN_RATIO:
        return None
    return 1 + (ratio - 1) * PACE_S / (BETWEEN_FIFTHS * (to_s - from_s))


@check(
    FindingKind(
        "averages-hide",
        "The lowest row of a table of rates, compared with the lowest tenth of a second by ss.",
    ),
    needs=("table_lowest_bps", "lowest_tenth_bps", "table_interval_s", "sender_retransmits"),
)
def averages_hide(run: RunUnderTest) -> Finding | None:
    """The lowest row of a table against the lowest tenth of a second by ss."""
    table, true = run.measured("table_lowest_bps"), run.measured("lowest_tenth_bps")
    interval_s = run.measured("table_interval_s")
    if table is None or true is None or not interval_s or interval_s <= SHORT_S:
        return None
    if table <= HIDING_RATIO * true:
        return None
    again = run.measured("sender_retransmits") or 0
    return Finding(
        "averages-hide",
        f"no row of the table is below {table / 1e6:.3g} Mbit/s; by ss a tenth of a second had "
        f"{true / 1e6:.3g} Mbit/s",
        f"rows that show what the {again:.0f} retransmissions did",
        f"A row is a mean over {interval_s:g} s. A window that is cut and has grown back within that "
        "time leaves no trace in it.",
        symptom="the table doesn't show something that ss does",
    )


@check(
    FindingKind(
        "mixed-runs",
        "The windows in a table, compared with those of the connection that it names.",
        explains=("other-traffic", "two-runs", "samples"),
    ),
    needs=("table_rows", "table_rows_foreign"),
)
def mixed_runs(run: RunUnderTest) -> Finding | None:
    """Rows of a table against the trace of the run that they are said to be of."""
    rows, foreign = run.measured("table_rows"), run.measured("table_rows_foreign")
    if not rows or foreign is None or foreign <= FOREIGN_SHARE * rows:
        return None
    return Finding(
        "mixed-runs",
        f"{foreign:.0f} of {rows:.0f} rows have a window that this connection never had at that time (ss)",
        f"at most {FOREIGN_SHARE * rows:.0f}",
        "Windows and rates of one table are from two runs. Each may be right, but no statement "
        "about both together is.",
        symptom=f"{foreign:.0f} of {rows:.0f} rows of the table don't fit what ss printed at the same times",
    )


# Many flows

# How far a person's own number may be from the raw files, however long the interval: see _rate_off.
RATE_TOLERANCE_RATIO = 0.03
RTT_TOLERANCE_RATIO = 0.1
COUNT_TOLERANCE_RATIO = 0.25
COUNT_TOLERANCE = 5
LOSS_TOLERANCE_RATIO = 0.15
LOSS_TOLERANCE = 10
INDEX_TOLERANCE = 0.05
# How lab 03's summary is made where none of its cases is staged.
OWN_DEFINITIONS = {
    "average": "common", "halvings_by": "events", "loss_by": "drops", "count_by": "found",
}  # fmt: skip
# Within this factor of its fair share a flow counts as fair.
FAIR_FACTOR = 1.5


def _rate_off(run: RunUnderTest) -> float:
    """How far an honest rate of the same flows may be from ours, as a ratio.

    Who counts from a flow's first sample inside the interval to its last one leaves out a sample's
    time or so, at both ends together. In a short run, in which some flows are still taking from the
    others, that time's rates are other ones.
    """
    sample_s, seconds = run.param("sample_interval_s"), run.measured("duration_s")
    return RATE_TOLERANCE_RATIO + (sample_s / seconds if sample_s and seconds else 0.0)


@check(
    FindingKind("offload", explains=("loss-definition",)),
    needs=("queue_packet_bytes", "mss_bytes", "ip_header_bytes", "retransmits", "queue_drops"),
)
def large_packets(run: RunUnderTest) -> Finding | None:
    """The queue says how many bytes and how many packets wait: is a packet more than a segment?"""
    packet_bytes, mss_bytes = run.measured("queue_packet_bytes"), run.measured("mss_bytes")
    if packet_bytes is None or mss_bytes is None:
        return None
    more_bytes = (run.measured("ip_header_bytes") or IPV4_HEADER_BYTES) - IPV4_HEADER_BYTES
    limit = largest_packet_bytes(mss_bytes) + more_bytes + ETHERNET_HEADER_BYTES
    if packet_bytes <= limit + 1:
        return None
    retransmits, drops = run.measured("retransmits"), run.measured("queue_drops")
    also = ""
    if retransmits and drops:
        also = f"; {retransmits:.0f} segments retransmitted for {drops:.0f} drops"
    return Finding(
        "offload",
        f"packets of {packet_bytes:.0f} B on average in the router's queue{also}",
        f"at most {limit:.0f} B: MSS {mss_bytes:.0f} and its headers",
        "Several segments travel as one packet. The router drops them together and counts one, "
        "so neither its drops nor its queue are in the model's unit.",
        symptom="what the router reports on its queue isn't possible on such a link",
    )


@check(
    FindingKind(
        "missing-flows",
        "Flows in the files, compared with those that were asked for and the n of your own index.",
        explains=("unequal-intervals", "mislabelled-row"),
    ),
    needs=("flows", "own_flows", "segments", "own_jain"),
)
def missing_flows(run: RunUnderTest) -> Finding | None:
    """Flows that were asked for, those in the files, and the number that an index was taken with."""
    asked, found, counted = run.param("flows"), run.measured("flows"), run.measured("own_flows")
    if asked is None or found is None or run.measured("segments") is None:
        return None
    if found == asked and counted in (None, found):
        return None
    also = f", {counted:.0f} in the index" if counted is not None else ""
    index = run.measured("own_jain")
    return Finding(
        "missing-flows",
        f"{found:.0f} flows in the files{also}" + (f" ({index:.3f})" if index is not None else ""),
        f"{asked:.0f} flows: in the files, in the sum, and in n",
        "There are flows that nobody asked for: sum and index are of a different set from the intended one."
        if found > asked
        else "A flow that never ran adds nothing to the sum but is counted in n. The index falls by the "
        "missing flows' share, which looks like unfairness.",
        symptom="what was made of the flows' files doesn't fit these files"
        if index is None
        else f"an index of {index:.3f}, and the flows' files say otherwise",
    )


@check(
    FindingKind(
        "unequal-intervals",
        "Your own sum of goodputs, compared with ss over the time in which all flows were there.",
        explains=("mislabelled-row",),
    ),
    needs=("own_sum_bps", "goodput_bps", "mss_bytes", "duration_s"),
)
def unequal_intervals(run: RunUnderTest) -> Finding | None:
    sum_bps, goodput_bps = run.measured("own_sum_bps"), run.measured("goodput_bps")
    rate_mbit, mss_bytes = run.param("rate_mbit"), run.measured("mss_bytes")
    if (
        sum_bps is None
        or not goodput_bps
        or abs(sum_bps - goodput_bps) <= _rate_off(run) * goodput_bps
    ):
        return None
    most = ""
    if rate_mbit and mss_bytes:
        most = f"; the link can carry {payload_limit(rate_mbit, mss_bytes, wire=False):.4g}"
    return Finding(
        "unequal-intervals",
        f"a sum of {sum_bps / 1e6:.4g} Mbit/s",
        f"{goodput_bps / 1e6:.4g} Mbit/s while all flows were there{most}",
        "Each flow's rate is over its own time. Where these times differ, rates that never were at "
        "once are added up, and the sum can exceed the link.",
        symptom=f"a sum of {sum_bps / 1e6:.4g} Mbit/s{most}",
    )


@check(
    FindingKind(
        "standing-queue",
        "The round-trip time that you put into the model, compared with the mean of ss's.",
    ),
    needs=("own_rtt_ms", "rtt_mean_ms", "queue_delay_mean_ms", "own_c_by_halvings"),
)
def standing_queue(run: RunUnderTest) -> Finding | None:
    used_ms, mean_ms = run.measured("own_rtt_ms"), run.measured("rtt_mean_ms")
    if (
        used_ms is None
        or mean_ms is None
        or abs(used_ms - mean_ms) <= RTT_TOLERANCE_RATIO * mean_ms
    ):
        return None
    delay_ms = run.measured("queue_delay_mean_ms")
    also = f", of which {delay_ms:.0f} ms are the queue" if delay_ms else ""
    constant = run.measured("own_c_by_halvings")
    return Finding(
        "standing-queue",
        f"a round-trip time of {used_ms:.4g} ms in the model"
        + (f": C = {constant:.3g}" if constant else ""),
        f"{mean_ms:.4g} ms, as ss measured it{also}",
        "The base delay is what the path adds. Behind a buffer that is never empty the round trip is "
        "longer, and that is what clocks a window.",
        symptom=f"C = {constant:.3g} by what was put into the model"
        if constant
        else "a value in the model isn't what was measured",
    )


@check(
    FindingKind(
        "halving-counter",
        "Halvings that you counted from samples, compared with the kernel's own events.",
    ),
    needs=("own_counted_halvings", "halvings", "queue_drops"),
)
def halving_counter(run: RunUnderTest) -> Finding | None:
    counted, events = run.measured("own_counted_halvings"), run.measured("halvings")
    if counted is None or events is None:
        return None
    if abs(counted - events) <= COUNT_TOLERANCE_RATIO * events + COUNT_TOLERANCE:
        return None
    drops = run.measured("queue_drops")
    also = f", with {drops:.0f} packets lost" if drops is not None else ""
    return Finding(
        "halving-counter",
        f"{counted:.0f} halvings counted{also}",
        f"{events:.0f}, by the kernel's own events",
        "A window comes down over a whole round trip, in many steps with pauses between them. If you "
        "take a pause for a rise, you count each step as a halving. There can't be more halvings than "
        "losses.",
        symptom=f"{counted:.0f} halvings counted{also}",
    )


@check(
    FindingKind(
        "loss-definition",
        "Retransmissions against the router's drops, if you count either as a loss.",
    ),
    needs=("retransmits", "queue_drops", "spurious_retransmits"),
)
def loss_definition(run: RunUnderTest) -> Finding | None:
    retransmits, drops = run.measured("retransmits"), run.measured("queue_drops")
    if run.params.get("loss_by") != "retransmissions" or retransmits is None or drops is None:
        return None
    if abs(retransmits - drops) <= LOSS_TOLERANCE_RATIO * drops + LOSS_TOLERANCE:
        return None
    spurious = run.measured("spurious_retransmits")
    also = f"; in the whole run receivers got {spurious:.0f} segments twice" if spurious else ""
    return Finding(
        "loss-definition",
        f"{retransmits:.0f} losses by retransmissions{also}",
        f"{drops:.0f}: what the router dropped",
        "A sender retransmits what it takes for lost. Where packets overtake each other it takes more "
        "for lost than is.",
        symptom=f"{retransmits:.0f} losses were counted, {drops:.0f} expected",
    )


@check(
    FindingKind(
        "mislabelled-row",
        "Your own sum of each algorithm's flows, compared with what their connections add up to.",
    ),
    needs=("own_groups_error_ratio", "duration_s"),
)
def mislabelled_row(run: RunUnderTest) -> Finding | None:
    error = run.measured("own_groups_error_ratio")
    # A row's own error comes on top of what the sum of all rows may be off.
    if error is None or error <= _rate_off(run) + RATE_TOLERANCE_RATIO:
        return None
    return Finding(
        "mislabelled-row",
        f"a row of the table is {100 * error:.0f} % off what that algorithm's flows add up to",
        "each row the sum of the flows that ran its algorithm, by their connections' own report",
        "The numbers are right, but under another's name. No rule of physics sees that; only who "
        "recomputes the row from the flows.",
        symptom=f"a row of the table is {100 * error:.0f} % off",
    )


@check(
    FindingKind("two-runs"),
    needs=("own_jain", "jains_index", "own_losses", "queue_drops", "own_halvings", "halvings"),
)
def another_summary(run: RunUnderTest) -> Finding | None:
    """A summary by the lab's own definitions agrees with the files that it was made of."""
    if any(run.params.get(name) != value for name, value in OWN_DEFINITIONS.items()):
        return None
    compared = (
        ("an index", run.measured("own_jain"), run.measured("jains_index"), 0.0, INDEX_TOLERANCE),
        ("losses", run.measured("own_losses"), run.measured("queue_drops"), LOSS_TOLERANCE_RATIO, LOSS_TOLERANCE),
        ("halvings", run.measured("own_halvings"), run.measured("halvings"), COUNT_TOLERANCE_RATIO, COUNT_TOLERANCE),
    )  # fmt: skip
    for what, own, true, ratio, slack in compared:
        if own is not None and true is not None and abs(own - true) > ratio * true + slack:
            return Finding(
                "two-runs",
                f"a summary with {what} of {own:.4g}"
                if ratio == 0
                else f"a summary with {own:.4g} {what}",
                f"{true:.4g}, by the files of the flows and the queue",
                "By the same definitions the same files give the same numbers, so this summary is from another run.",
                symptom=f"a summary has {own:.4g}, but the files give {true:.4g}",
            )
    return None


@check(
    FindingKind(
        "fair-share",
        "A rival's part of the goodput over its part of the flows, where you judge by per cent.",
    ),
    needs=("rival_share", "rival_fair_share", "rivals_found"),
)
def fair_share(run: RunUnderTest) -> Finding | None:
    share, fair = run.measured("rival_share"), run.measured("rival_fair_share")
    if run.params.get("judged_by") != "percent" or share is None or not fair:
        return None
    times = share / fair
    if 1 / FAIR_FACTOR <= times <= FAIR_FACTOR:
        return None
    rivals = run.measured("rivals_found") or 0
    return Finding(
        "fair-share",
        f"{100 * share:.2g} % of the goodput for {rivals:.0f} of {rivals / fair:.0f} flows",
        f"{100 * fair:.2g} %: it takes {times:.2g} times its fair share",
        "A percentage of a link that a thousand share means nothing by itself. Fair is one part in as "
        "many as there are flows.",
        symptom=f"{100 * share:.2g} % of the goodput, called small",
    )
