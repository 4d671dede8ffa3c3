"""The checks of runs that are about a queue and its discipline."""

from __future__ import annotations

import math

from measuretwice.checks.case import Case
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, check

# tc's clock: 64 ns a tick, in every kernel since 2009 (/proc/net/psched).
TICKS_PER_US = 15.625
# What tc takes for the link where red isn't told its bandwidth: tc-red(8).
RED_DEFAULT_MBIT = 10


@check(
    Help(
        "default-qdisc",
        "Which qdisc tc prints below the link's rate, compared with the one that was meant.",
        explains=("red-bandwidth", "red-limits"),
    ),
    needs=("queue_kind",),
)
def discipline(case: Case) -> Finding | None:
    wanted = case.wanted.get("discipline")
    kind = case.word("queue_kind")
    if wanted is None or kind is None or kind == wanted:
        return None
    return Finding(
        "default-qdisc",
        "error",
        f"a queue of the kind {kind} (tc)",
        str(wanted),
        "The control arm is not what its name says. Which discipline an interface has when nobody "
        "sets one depends on the system: the kernel's own is pfifo_fast, systemd's fq_codel. Set "
        "both arms.",
        off="one word that tc prints of the router's queue isn't the trial's",
    )


@check(
    Help(
        "no-bottleneck",
        "Whether the queue that is looked at ever had packets in it.",
        explains=("wrong-metric",),
    ),
    needs=(
        "utilisation",
        "queue_mean_packets",
        "queue_drops",
        "queue_marks",
    ),
)
def no_bottleneck(case: Case) -> Finding | None:
    """A discipline can only rule a queue that is there."""
    used, packets = case.got("utilisation"), case.got("queue_mean_packets")
    if "discipline" not in case.wanted or used is None or packets is None:
        return None
    if used > 0.8 or packets > 2 or case.got("queue_drops") or case.got("queue_marks"):
        return None
    return Finding(
        "no-bottleneck",
        "error",
        f"{packets:.1f} packets in the queue on average, none dropped or marked, "
        f"{100 * used:.0f} % of its link in use",
        "a link that is full, so that packets wait before it",
        "The queue is somewhere else, and this discipline had nothing to decide. Two arms of such "
        "runs are one experiment done twice.",
        off="packets waited, and the discipline that is studied dropped and marked none",
    )


@check(
    Help(
        "red-limits",
        "red's limit, against its max and a burst together.",
    ),
    needs=(
        "red_limit_bytes",
        "red_max_bytes",
    ),
)
def red_limits(case: Case) -> Finding | None:
    limit, most = case.got("red_limit_bytes"), case.got("red_max_bytes")
    burst, packet_bytes = case.want("red_burst_packets"), case.want("red_avpkt_bytes")
    if limit is None or most is None or not burst or not packet_bytes:
        return None
    needed = most + burst * packet_bytes
    # tc prints sizes that are whole KiB as such; what is off by less is no other limit.
    if limit >= needed - 1:
        return None
    return Finding(
        "red-limits",
        "error",
        f"limit {limit:.0f} B",
        f"at least {needed:.0f} B: max {most:.0f} and a burst of {burst:.0f} packets of "
        f"{packet_bytes:.0f} B",
        "The average may pass max only after the queue itself is far above it. Where the limit comes "
        "first, a burst is cut off at the tail, which is what red is there to prevent.",
        off="red's parameters don't fit each other: it can drop in another way than by its curve",
    )


def cell_log(rate_mbit: float, average_packet_bytes: float, ewma_log: float) -> int:
    """Return the Scell_log that tc gives red for a link of this rate: the unit, as a power of two
    ticks, in which it counts idle time (tc_red_eval_idle_damping in iproute2's tc_red.c)."""
    ticks = average_packet_bytes * 8 / rate_mbit * TICKS_PER_US
    longest = 31 * ticks / -math.log(1 - 2**-ewma_log)
    return max(0, math.floor(math.log2(longest / 512)) + 1)


@check(
    Help(
        "red-bandwidth",
        "The unit of idle time that tc gave red, compared with the one for the link's rate.",
        hints=(
            "Read red's line in tc.txt beside the command: which of its numbers did you never set?",
            "Scell_log grows by one where the link is taken for half as fast. For which rate is this one?",
            "tc assumes 10 Mbit/s where red isn't told its bandwidth: say it.",
        ),
    ),
    needs=(
        "red_cell_log",
        "red_ewma_log",
    ),
)
def red_bandwidth(case: Case) -> Finding | None:
    log, ewma = case.got("red_cell_log"), case.got("red_ewma_log")
    rate_mbit, packet_bytes = case.want("rate_mbit"), case.want("red_avpkt_bytes")
    if log is None or ewma is None or not rate_mbit or not packet_bytes:
        return None
    meant = cell_log(rate_mbit, packet_bytes, ewma)
    if log == meant:
        return None
    taken = ""
    if log == cell_log(RED_DEFAULT_MBIT, packet_bytes, ewma):
        taken = f", as for a link of {RED_DEFAULT_MBIT} Mbit/s"
    return Finding(
        "red-bandwidth",
        "error",
        f"Scell_log {log:.0f}{taken}",
        f"{meant}, for {rate_mbit:g} Mbit/s",
        "red was not told its link's rate, and tc takes 10 Mbit/s then. Once the queue has been "
        "empty, red counts how many packets could have gone meanwhile: its average falls too slowly.",
        off=f"Scell_log {log:.0f}, where this link needs {meant}",
    )


@check(
    Help(
        "wrong-metric",
        "The share of the link in use, where throughput is to tell disciplines apart.",
    ),
    needs=(
        "utilisation",
        "queue_delay_mean_ms",
    ),
)
def wrong_metric(case: Case) -> Finding | None:
    used = case.got("utilisation")
    if case.wanted.get("judged_by") != "throughput" or used is None or used < 0.9:
        return None
    delay_ms = case.got("queue_delay_mean_ms")
    also = f", and {delay_ms:.3g} ms of queue before it" if delay_ms is not None else ""
    return Finding(
        "wrong-metric",
        "error",
        f"{100 * used:.1f} % of the link in use{also}",
        "a measure in which disciplines can differ: delay under load, drops, marks",
        "A full link is full under any discipline: its senders' sum is the link's rate, and their "
        "mean a half of it. What a discipline changes is how long packets wait.",
        off=f"{100 * used:.1f} % of the link in use: what was compared would be the same with any discipline",
    )


@check(
    Help(
        "summary-row",
        "Whether one of the rows that were averaged spans the others.",
    ),
    needs=(
        "rate_rows",
        "rate_rows_spanning",
    ),
)
def summary_row(case: Case) -> Finding | None:
    rows, spanning = case.got("rate_rows"), case.got("rate_rows_spanning")
    if not rows or not spanning:
        return None
    return Finding(
        "summary-row",
        "error",
        f"{rows:.0f} rows averaged, {spanning:.0f} of them over the whole test",
        f"{rows - spanning:.0f}: one for each second",
        "The last row is the test's total, no second of its own. In the mean it counts everything "
        "twice, and it makes the spread look smaller and the sample larger.",
        off=f"{rows:.0f} rows averaged, {rows - spanning:.0f} expected",
    )


@check(
    Help(
        "copied-cell",
        "The addresses in iperf3's own files, and whether two trials agree in every value.",
    ),
    needs=(
        "copied_flows",
        "*_received_flows",
    ),
)
def copied_cell(case: Case) -> Finding | None:
    """Whose addresses are in the files, and is one of them another's copy?"""
    if copied := case.got("copied_flows"):
        return Finding(
            "copied-cell",
            "error",
            f"{copied:.0f} of the flows stand in two files",
            "each flow in one file",
            "The same measurement under two names: one cell of the table holds another's numbers.",
        )
    wanted = case.wanted.get("receiver")
    receivers = [node for node, count in case.family("*_received_flows").items() if count]
    if wanted is None or not receivers or receivers == [str(wanted).replace("-", "_")]:
        return None
    who = ", ".join(node.replace("_", "-") for node in receivers)
    return Finding(
        "copied-cell",
        "error",
        f"flows to {who}, by the addresses in iperf3's own files",
        f"flows to {wanted}",
        "This cell of the table holds another cell's measurement: that pair is there twice, and this "
        "one not at all.",
    )
