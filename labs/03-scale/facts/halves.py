"""An experiment on half of the hosts: what it says of two connections, and what comes of it when all have them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Judgement,
    Number,
    RecordedSets,
    column,
    mbit,
    measured,
    ms,
    param,
    percent,
    table,
    whole,
)
from measuretwice.facts.values import Cell
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import mean_interval
from measuretwice.stats.two_samples import difference_interval

from .runs import RENO

NONE, HALF, ALL = "two-connections-none", "two-connections-half", "two-connections-all"
HOSTS = 10
# As rules.toml has it: how much more a host with two seems to get, in per cent, within what all together get no more, in per
# cent, and the factors by which the two estimates of losses are judged.
SEEMS_BETTER, NOTHING, SAME_LOSSES, MORE_LOSSES = 50.0, 5.0, 1.25, 2.0


def set_halves(f: Facts, sets: RecordedSets) -> None:
    """Set what docs/modules/study-half.md quotes."""
    none, half, all_ = (sets.runs(name, RENO) for name in (NONE, HALF, ALL))
    f.half_runs, f.half_hosts = whole(len(half)), whole(HOSTS)
    f.half_buffer = whole(param(half[0], "buffer_bytes") / 1000, "kB")
    f.half_counted = whole(statistics.fmean(column(half, "duration_s")), "s")
    f.half_naive, f.half_total = naive_goodput(half), total_goodput(none, all_)
    f.half_naive_losses, f.half_total_losses = naive_losses(half), total_losses(none, all_)
    f.half_with_two, f.half_with_one = (
        mbit(statistics.fmean(_goodput(run, count) for run in half)) for count in (2, 1)
    )
    f.half_before, f.half_after = (
        mbit(statistics.fmean(column(runs, "goodput_bps")) / HOSTS) for runs in (none, all_)
    )
    f.half_neighbour_loses = Number(
        100 - 100 * statistics.fmean(_goodput(run, 1) for run in half) * HOSTS
        / statistics.fmean(column(none, "goodput_bps")), "%", 2,
    )  # fmt: skip
    f.half_first = table(
        ("host", "connections", "goodput (Mbit/s)"),
        (
            (node, whole(len(flows)), Number(sum(flows) / 1e6))
            for node, flows in _hosts(half[0]).items()
        ),
    )
    f.half_settings = table(
        (
            "hosts with two connections", "a host with one (Mbit/s)", "a host with two (Mbit/s)", "all together (Mbit/s)",
            "retransmitted", "wait in the queue",
        ),
        (_row(words, runs) for words, runs in (("none", none), ("five", half), ("all ten", all_))),
    )  # fmt: skip
    f.half_misleads = _differ(
        f.half_naive, f.half_total, (SEEMS_BETTER, math.inf), (-NOTHING, NOTHING)
    )
    f.half_hides_losses = _differ(
        f.half_naive_losses, f.half_total_losses, (1 / SAME_LOSSES, SAME_LOSSES), (MORE_LOSSES, math.inf)
    )  # fmt: skip


def naive_goodput(half: Sequence[Result]) -> Interval:
    """Return by how many per cent more a host with two connections got than one with one, a value from each run."""
    return Interval.of_mean([100 * _goodput(run, 2) / _goodput(run, 1) - 100 for run in half])


def total_goodput(none: Sequence[Result], all_: Sequence[Result]) -> Interval:
    """Return by how many per cent more the hosts got together where all had two."""
    before = statistics.fmean(column(none, "goodput_bps"))
    with_two, with_one = (
        [100 * value / before for value in column(runs, "goodput_bps")] for runs in (all_, none)
    )
    return Interval.of_difference(with_two, with_one, digits=2)


def naive_losses(half: Sequence[Result]) -> Interval:
    """Return by what factor hosts with two connections retransmitted more of their segments, a geometric mean of the runs."""
    logs = [math.log(_retransmitted(run, 2) / _retransmitted(run, 1)) for run in half]
    middle, low, high = mean_interval(logs)
    return Interval(math.exp(middle), math.exp(low), math.exp(high), n=len(logs))


def total_losses(none: Sequence[Result], all_: Sequence[Result]) -> Interval:
    """Return by what factor more was retransmitted where all had two."""
    after, before = (
        [math.log(measured(run, "retransmits") / measured(run, "segments")) for run in runs]
        for runs in (all_, none)
    )
    low, high = difference_interval(after, before)
    middle = statistics.fmean(after) - statistics.fmean(before)
    return Interval(math.exp(middle), math.exp(low), math.exp(high))


def _differ(
    naive: Interval, total: Interval, naive_in: tuple[float, float], total_in: tuple[float, float]
) -> Judgement:
    """Return whether the two lie where they should, False where they overlap, and else None."""
    (low, high), (total_low, total_high) = naive.both_ends, total.both_ends
    if naive_in[0] <= low and high <= naive_in[1] and total_in[0] <= total_low and total_high <= total_in[1]:  # fmt: skip
        return True
    return False if low <= total_high and total_low <= high else None


def _hosts(run: Result) -> dict[str, list[float]]:
    """The goodputs of each host's connections, in bit/s."""
    by_host: dict[str, list[float]] = {}
    for flow in run.flows:
        by_host.setdefault(flow.node, []).append(flow.goodput_bps)
    return by_host


def _goodput(run: Result, connections: int) -> float:
    """The mean goodput of the hosts with so many connections, in bit/s."""
    of_hosts = _hosts(run).values()
    return statistics.fmean(sum(flows) for flows in of_hosts if len(flows) == connections)


def _retransmitted(run: Result, connections: int) -> float:
    """Return which share of their segments the hosts with so many connections retransmitted."""
    nodes = {node for node, flows in _hosts(run).items() if len(flows) == connections}
    flows = [flow for flow in run.flows if flow.node in nodes]
    return sum(flow.retransmits for flow in flows) / sum(flow.segments or 0 for flow in flows)


def _row(words: str, runs: Sequence[Result]) -> tuple[Cell, ...]:
    """One setting: what a host got by its connections, then what all have in common, as means of the runs."""
    counts = {len(flows) for flows in _hosts(runs[0]).values()}
    return (
        words,
        *(
            Interval.of_mean([_goodput(run, count) / 1e6 for run in runs]) if count in counts else "–"
            for count in (1, 2)
        ),
        Interval.of_mean([measured(run, "goodput_bps") / 1e6 for run in runs], digits=4),
        percent(statistics.fmean(measured(run, "retransmits") / measured(run, "segments") for run in runs)),
        ms(statistics.fmean(column(runs, "queue_delay_mean_ms")), 3),
    )  # fmt: skip
