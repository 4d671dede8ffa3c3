"""The checks of one sender looked at closely: is its path what it seems, has it settled, and is what
a table keeps of it true?
"""

from __future__ import annotations

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check

# TCP's smallest RTT and ping's differ by what a busy host and a radio add: by less than a half.
PATH_SHARE = 0.5
# From the first fifth of the time to the last one.
RISING_RATIO = 1.25
ALL_STEPS = 4
HIDING_RATIO = 1.25
# Rows as short as the tenths that they are held against begin at other moments, no more.
SHORT_S = 0.15
# iperf3 and ss look at different moments, and a window may halve between the two.
FOREIGN_SHARE = 0.3


@check(
    Help(
        "wrong-algorithm",
        "The congestion control that the kernel names, compared with the one that was meant.",
        explains=("ten-seconds", "host-qdisc"),
    ),
    needs=("congestion_control",),
)
def algorithm(case: Case) -> Finding | None:
    """The congestion control that the kernel says, against the one that was meant."""
    wanted = case.wanted.get("congestion_control")
    used = case.word("congestion_control")
    if wanted is None or used is None or used == wanted:
        return None
    return Finding(
        "wrong-algorithm",
        "error",
        f"a flow of {used}",
        str(wanted),
        "The setting did not reach the kernel. What is measured is the algorithm that was there "
        "before, under another's name.",
        off="something that was set on the sender did not take effect",
    )


@check(
    Help(
        "host-qdisc",
        "Which qdisc tc prints of the sender's own card, compared with the one that was meant.",
        hints=(
            "Read tc.txt on the sender: which qdisc has its card?",
            "sysctl says the one that was meant. In which order did the script do its two steps?",
            "net.core.default_qdisc is looked up when an interface gets its first queue. What is there already keeps its own, until you replace it with tc or make the interface anew.",
        ),
    ),
    needs=("host_queue_kind",),
)
def host_queue(case: Case) -> Finding | None:
    """The sender's own queue discipline, as tc prints it, against the one that was meant."""
    wanted = case.wanted.get("host_qdisc")
    kinds = (case.word("host_queue_kind") or "").split()
    if wanted is None or not kinds or wanted in kinds:
        return None
    return Finding(
        "host-qdisc",
        "error",
        f"a card with a queue of the kind {kinds[0]} (tc)",
        str(wanted),
        "net.core.default_qdisc is asked when an interface is made or a qdisc is taken away. An "
        "interface that is there already keeps the qdisc that it has.",
        off="the sender's card has another queue than the one that was meant",
    )


@check(
    Help(
        "terminated-tcp",
        "TCP's smallest round-trip time, and cwnd over rate, against ping's.",
        explains=("ten-seconds", "receive-window", "send-buffer", "application-limited"),
    ),
    needs=(
        "sender_path_rtt_ms",
        "tcp_min_rtt_ms",
        "cwnd_over_rate_ms",
    ),
)
def terminated(case: Case) -> Finding | None:
    """A window takes a round trip to be acknowledged: by the far end, or by somebody nearer?"""
    path_ms = case.got("sender_path_rtt_ms")
    least_ms, by_window_ms = case.got("tcp_min_rtt_ms"), case.got("cwnd_over_rate_ms")
    if not path_ms or least_ms is None or by_window_ms is None:
        return None
    if least_ms >= PATH_SHARE * path_ms and by_window_ms >= PATH_SHARE * path_ms:
        return None
    return Finding(
        "terminated-tcp",
        "error",
        f"cwnd over rate is {by_window_ms:.3g} ms, TCP's smallest round-trip time {least_ms:.3g} ms",
        f"no less than the path's, {path_ms:.3g} ms by ping",
        "No acknowledgement comes back sooner than the path allows. Something nearer ends the "
        "connection and speaks to the server in its own way: what the sender's algorithm does is of that "
        "first hop only.",
    )


@check(
    Help(
        "ten-seconds",
        "Whether the rate rises through the whole time over which it is averaged.",
    ),
    needs=(
        "rising_ratio",
        "rising_steps",
        "steady_retransmits",
        "steady_goodput_bps",
    ),
)
def still_rising(case: Case) -> Finding | None:
    """A mean of something that hasn't settled is a mean of the time at which one stopped looking."""
    ratio, steps = case.got("rising_ratio"), case.got("rising_steps")
    if "average_from_s" not in case.wanted or ratio is None or steps is None:
        return None
    if ratio < RISING_RATIO or steps < ALL_STEPS:
        return None
    # A flow that lost something has met its limit: what goes up comes down again, and goes up.
    if case.got("steady_retransmits"):
        return None
    goodput_bps = case.got("steady_goodput_bps") or 0
    return Finding(
        "ten-seconds",
        "error",
        f"a mean of {goodput_bps / 1e6:.3g} Mbit/s, of a rate that rises in each fifth of the time: the last "
        f"has {ratio:.2f} times the first",
        f"a rate that has settled: less than {RISING_RATIO:g} times",
        "The flow was still growing when the test ended. A longer test has a larger mean, and this one "
        "says when you stopped, not what the algorithm gets.",
        off=f"a mean of {goodput_bps / 1e6:.3g} Mbit/s, and a rate whose last fifth is {ratio:.2f} times its first",
    )


@check(
    Help(
        "averages-hide",
        "The lowest row of a table of rates, compared with the lowest tenth of a second by ss.",
    ),
    needs=(
        "table_lowest_bps",
        "lowest_tenth_bps",
        "table_interval_s",
        "sender_retransmits",
    ),
)
def averages_hide(case: Case) -> Finding | None:
    """The lowest row of a table against the lowest tenth of a second by ss."""
    table, true = case.got("table_lowest_bps"), case.got("lowest_tenth_bps")
    interval_s = case.got("table_interval_s")
    if table is None or true is None or not interval_s or interval_s <= SHORT_S:
        return None
    if table <= HIDING_RATIO * true:
        return None
    again = case.got("sender_retransmits") or 0
    return Finding(
        "averages-hide",
        "error",
        f"no row of the table is below {table / 1e6:.3g} Mbit/s; by ss a tenth of a second had "
        f"{true / 1e6:.3g} Mbit/s",
        f"rows that show what the {again:.0f} retransmissions did",
        f"A row is a mean over {interval_s:g} s. A window that is cut and has grown back within that "
        "time leaves no trace in it.",
        off=f"by ss the rate fell to {true / 1e6:.3g} Mbit/s; no row of the table is below {table / 1e6:.3g} Mbit/s",
    )


@check(
    Help(
        "mixed-runs",
        "The windows in a table, compared with those of the connection that it is said to be of.",
        explains=("other-traffic", "two-runs", "samples"),
    ),
    needs=(
        "table_rows",
        "table_rows_foreign",
    ),
)
def mixed_runs(case: Case) -> Finding | None:
    """Rows of a table against the trace of the run that they are said to be of."""
    rows, foreign = case.got("table_rows"), case.got("table_rows_foreign")
    if not rows or foreign is None or foreign <= FOREIGN_SHARE * rows:
        return None
    return Finding(
        "mixed-runs",
        "error",
        f"{foreign:.0f} of {rows:.0f} rows have a window that this connection never had at that time (ss)",
        f"at most {FOREIGN_SHARE * rows:.0f}",
        "Windows and rates of one table are from two runs. Each may be right; nothing that is said of "
        "both together is.",
        off=f"{foreign:.0f} of {rows:.0f} rows of the table don't fit what ss printed at the same times",
    )
