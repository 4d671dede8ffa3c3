"""The checks of runs that are about a queue and its discipline: of one run, and of a set of runs.

As in single_flow.py: what a check needs and the run does not have, it does not judge.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from measuretwice.checks.finding import Case, Finding
from measuretwice.lab import Value
from measuretwice.measure.values import Measured
from measuretwice.stats.two_samples import (
    mean_and_deviation,
    noticeable_spread,
    power_of_spread,
    spread,
    values_for_spread,
    welch,
)

# tc's clock: 64 ns a tick, in every kernel since 2009 (/proc/net/psched).
TICKS_PER_US = 15.625
# What tc takes for the link where red isn't told its bandwidth: tc-red(8).
RED_DEFAULT_MBIT = 10
# A claim about spread should be one that a ratio of 3 to 2 would show.
RATIO_WANTED = 1.5
POWER_WANTED = 0.8
KIND, RECEIVED = "queue_is_", "_received_flows"


def _discipline(case: Case) -> Finding | None:
    wanted = case.wanted.get("discipline")
    kinds = [name.removeprefix(KIND) for name in case.measured if name.startswith(KIND)]
    if wanted is None or not kinds or wanted in kinds:
        return None
    return Finding(
        "default-qdisc",
        "error",
        f"a queue of the kind {kinds[0]} (tc)",
        str(wanted),
        "The control arm is not what its name says. Which discipline an interface has when nobody "
        "sets one depends on the system: the kernel's own is pfifo_fast, systemd's fq_codel. Set "
        "both arms.",
    )


def _no_bottleneck(case: Case) -> Finding | None:
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
    )


def cell_log(rate_mbit: float, average_packet_bytes: float, ewma_log: float) -> int:
    """Return the Scell_log that tc gives red for a link of this rate: the unit, as a power of two
    ticks, in which it counts idle time (tc_red_eval_idle_damping in iproute2's tc_red.c)."""
    ticks = average_packet_bytes * 8 / rate_mbit * TICKS_PER_US
    longest = 31 * ticks / -math.log(1 - 2**-ewma_log)
    return max(0, math.floor(math.log2(longest / 512)) + 1)


def _red_bandwidth(case: Case) -> Finding | None:
    seen, ewma = case.got("red_cell_log"), case.got("red_ewma_log")
    rate_mbit, packet_bytes = case.want("rate_mbit"), case.want("red_avpkt_bytes")
    if seen is None or ewma is None or not rate_mbit or not packet_bytes:
        return None
    meant = cell_log(rate_mbit, packet_bytes, ewma)
    if seen == meant:
        return None
    taken = ""
    if seen == cell_log(RED_DEFAULT_MBIT, packet_bytes, ewma):
        taken = f", as for a link of {RED_DEFAULT_MBIT} Mbit/s"
    return Finding(
        "red-bandwidth",
        "error",
        f"Scell_log {seen:.0f}{taken}",
        f"{meant}, for {rate_mbit:g} Mbit/s",
        "red was not told its link's rate, and tc takes 10 Mbit/s then. Once the queue has been "
        "empty, red counts how many packets could have gone meanwhile: its average falls too slowly.",
    )


def _red_limits(case: Case) -> Finding | None:
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
    )


def _wrong_metric(case: Case) -> Finding | None:
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
    )


def _summary_row(case: Case) -> Finding | None:
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
    )


def _copied_cell(case: Case) -> Finding | None:
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
    seen = {
        name.removesuffix(RECEIVED): count
        for name, count in case.measured.items()
        if name.endswith(RECEIVED) and count
    }
    if wanted is None or not seen or set(seen) == {str(wanted).replace("-", "_")}:
        return None
    who = ", ".join(name.replace("_", "-") for name in seen)
    return Finding(
        "copied-cell",
        "error",
        f"flows to {who}, by the addresses in iperf3's own files",
        f"flows to {wanted}",
        "This cell of the table holds another cell's measurement: that pair is there twice, and this "
        "one not at all.",
    )


CHECKS = (
    _discipline, _no_bottleneck, _red_limits, _red_bandwidth, _wrong_metric, _summary_row,
    _copied_cell,
)  # fmt: skip


class Run(Protocol):
    """What a set's check needs of a run."""

    @property
    def trial(self) -> int: ...
    @property
    def params(self) -> Mapping[str, Value]: ...
    @property
    def measured(self) -> Measured: ...


def same_numbers(runs: Sequence[Run]) -> Finding | None:
    """Two trials whose every measured value is the same were read from one file."""
    seen: dict[tuple[tuple[str, float | int | None], ...], int] = {}
    for run in runs:
        # A handful of values may agree by chance or because they were set; dozens don't.
        if len(run.measured) < 10 or not run.measured.get("goodput_bps"):
            continue
        key = tuple(sorted(run.measured.items()))
        other = seen.setdefault(key, run.trial)
        if other != run.trial:
            return Finding(
                "copied-cell",
                "error",
                f"trials {other} and {run.trial} agree in all of their {len(run.measured)} values",
                "values that differ at least in their last digits",
                "One file was read twice: one of the two trials isn't in the table at all.",
            )
    return None


def small_n(runs: Sequence[Run]) -> Finding | None:
    """A claim about two disciplines, against what that many runs can carry."""
    claims = {str(run.params.get("claim", "none")) for run in runs}
    arms: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        arms[str(run.params.get("discipline"))].append(run)
    if len(arms) != 2 or len(claims) != 1 or min(map(len, arms.values())) < 2:
        return None
    (one, of_one), (other, of_other) = sorted(arms.items())
    if claims == {"spread"}:
        return _spread_claim(one, _rates(of_one), other, _rates(of_other))
    if claims == {"delay"}:
        return _delay_claim(one, _delays(of_one), other, _delays(of_other))
    return None


def _spread_claim(one: str, a: list[float], other: str, b: list[float]) -> Finding | None:
    count = min(len(a), len(b))
    if count < 3 or power_of_spread(RATIO_WANTED, count) >= POWER_WANTED:
        return None
    test = spread(a, b)
    return Finding(
        "small-n",
        "error",
        f"{count} values an arm: deviations of {mean_and_deviation(a)[1]:.3g} ({one}) and "
        f"{mean_and_deviation(b)[1]:.3g} ({other}) Mbit/s, F = {test.statistic:.2f}, p = {test.p:.2g}",
        f"{values_for_spread(RATIO_WANTED)} values an arm, to notice four times in five that one "
        f"deviation is {RATIO_WANTED:g} times the other",
        f"With {count} values the test notices only a ratio of {noticeable_spread(count):.1f}. "
        "A deviation is known far worse than a mean; and the two flows of one run share one link, "
        "so they are not even two independent values.",
    )


def _delay_claim(one: str, a: list[float], other: str, b: list[float]) -> Finding | None:
    if min(len(a), len(b)) < 2:
        return None
    test = welch(a, b)
    if test.p < 0.05:
        return None
    return Finding(
        "small-n",
        "error",
        f"mean delays of {mean_and_deviation(a)[0]:.3g} ({one}) and {mean_and_deviation(b)[0]:.3g} "
        f"({other}) ms, t = {test.statistic:.2f}, p = {test.p:.2g}",
        "a difference that chance alone would rarely make",
        "So few runs, or so small a difference, can't tell these two apart.",
    )


def _rates(runs: Sequence[Run]) -> list[float]:
    """Each flow's goodput in Mbit/s."""
    return [
        value / 1e6
        for run in runs
        for name, value in run.measured.items()
        if name.endswith("_goodput_bps") and value is not None
    ]


def _delays(runs: Sequence[Run]) -> list[float]:
    values = [run.measured.get("busy_ping_mean_ms") for run in runs]
    return [value for value in values if value is not None]


SET_CHECKS = (same_numbers, small_n)
EXPLAINS: dict[str, frozenset[str]] = {
    # Whatever else is off follows from there being no queue, or another one.
    "no-bottleneck": frozenset({"wrong-metric"}),
    "default-qdisc": frozenset({"red-bandwidth", "red-limits"}),
}
