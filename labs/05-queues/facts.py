"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import groupby

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Probability,
    RecordedSets,
    Table,
    column,
    judge,
    mean,
    measured,
    param,
)
from measuretwice.facts.values import WHOLE
from measuretwice.runs.result import Result
from measuretwice.stats import two_samples

# As the source printed them: deviations of eight values each, in Mbit/s.
PUBLISHED_FIFO_DEVIATION, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS = 1.61, 2.49, 8
# Three questions are asked of the same runs, so each has a third of the usual limit (Bonferroni).
P_LIMIT = 0.05 / 3
WITH_FLOW_QUEUES = ("fq", "fq_codel", "cake")


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of results.md."""
    f = Facts()
    _published(f)
    _as_the_source_had_it(f, sets)
    _with_a_queue(f, sets)
    _in_use_today(f, sets)
    return f


def _published(f: Facts) -> None:
    spread = two_samples.spread_of(
        PUBLISHED_FIFO_DEVIATION, PUBLISHED_RUNS, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS
    )
    f.red_spreads_more_published = spread.p < 0.05
    f.printed_f = Number(spread.statistic)
    f.printed_p = Number(spread.p, digits=2)


def _as_the_source_had_it(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("no-queue")
    red = [measured(run, "queue_drops") for run in sets.runs("no-queue", discipline="red")]
    waiting = statistics.fmean(measured(run, "queue_mean_packets") for run in runs)
    f.access_mbit = Number(param(runs[0], "access_mbit"), digits=WHOLE)
    f.trunk_mbit = Number(param(runs[0], "rate_mbit"), digits=WHOLE)
    f.red_drops_at_random = max(red) > 0
    f.red_drops_nothing = max(red) == 0
    f.red_runs = Number(len(red), digits=WHOLE)
    f.red_drops = Number(sum(red), "packets", WHOLE)
    f.waiting = Number(waiting, "packets", 2)
    f.hardly_any_waits = waiting < 1
    f.arms_no_queue = _arms(runs)


def _with_a_queue(f: Facts, sets: RecordedSets) -> None:
    fifo = sets.runs("two-arms", discipline="pfifo_fast")
    red = sets.runs("two-arms", discipline="red")
    f.two_arms = _arms(sets.runs("two-arms"))
    f.arm_runs = Number(len(fifo), digits=WHOLE)
    f.arm_duration = Number(param(fifo[0], "duration_s"), "s")

    sums = two_samples.welch(column(fifo, "goodput_bps"), column(red, "goodput_bps"))
    waits = two_samples.welch(column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms"))
    even = two_samples.welch(column(fifo, "jains_index"), column(red, "jains_index"))
    f.welch_tests = Table(
        ("question", "Welch's t", "p"),
        tuple(
            (question, Number(test.statistic), Probability(test.p))
            for question, test in (
                ("Does the sum of both goodputs differ?", sums),
                ("Does delay under load differ?", waits),
                ("Do the flows share less evenly (Jain's index)?", even),
            )
        ),
    )
    f.p_limit = Number(P_LIMIT, digits=2)
    f.sharing_p = Probability(even.p)
    f.red_shares_less_evenly = even.statistic > 0 if even.p < P_LIMIT else None
    f.fifo_jain = Number(mean(fifo, "jains_index"))
    f.red_jain = Number(mean(red, "jains_index"))

    faster_bps = two_samples.difference_interval(
        column(fifo, "goodput_bps"), column(red, "goodput_bps")
    )
    f.fifo_is_faster = judge(faster_bps, least=0)
    f.fifo_minus_red = _interval(faster_bps, 1e-3, "kbit/s", 2)
    f.fifo_sum = Number(mean(fifo, "goodput_bps") / 1e6, "Mbit/s", 4)
    f.red_sum = Number(mean(red, "goodput_bps") / 1e6, "Mbit/s", 4)

    shorter_ms = two_samples.difference_interval(
        column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms")
    )
    f.red_keeps_the_queue_short = judge(shorter_ms, least=0)
    f.wait_less = _interval(shorter_ms, 1, "ms")
    f.wait_less_about = Number(sum(shorter_ms) / 2, "ms", 2)
    f.fifo_ping = Number(mean(fifo, "busy_ping_mean_ms"), "ms", 4)
    f.red_ping = Number(mean(red, "busy_ping_mean_ms"), "ms", 4)
    f.fifo_queue = Number(mean(fifo, "queue_mean_bytes"), "B", WHOLE)
    f.red_queue = Number(mean(red, "queue_mean_bytes"), "B", WHOLE)

    used_less = two_samples.difference_interval(
        column(fifo, "utilisation"), column(red, "utilisation")
    )
    f.red_uses_the_link_as_well = judge(used_less, most=0.01)
    f.use_less_most = Number(100 * used_less[1], "%", 1)
    f.fifo_use = Number(100 * mean(fifo, "utilisation"), "%")
    f.red_use = Number(100 * mean(red, "utilisation"), "%")

    once = "two-arms-once"
    f.fifo_once = Number(measured(sets.run(once, trial=1), "queue_mean_bytes"), "B", WHOLE)
    f.red_once = Number(measured(sets.run(once, trial=21), "queue_mean_bytes"), "B", WHOLE)
    f.red_min = Number(sets.trial(21)["red_min_bytes"], "B", WHOLE)


def _in_use_today(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("disciplines")
    trials = [
        list(those)
        for _, those in groupby(sorted(runs, key=lambda run: run.trial), lambda run: run.trial)
    ]
    f.each_runs = Number(len(runs) / len(trials), digits=WHOLE)
    f.disciplines = Table(
        (
            "discipline", "ECN", "link in use", "ping under load", "RTT of the flows",
            "queue, mean", "drops", "marks", "Jain's index",
        ),
        tuple(
            (
                str(those[0].params["discipline"]),
                str(those[0].params["ecn"]),
                Number(100 * mean(those, "utilisation"), "%"),
                Interval.of_mean(column(those, "busy_ping_mean_ms")),
                Interval.of_mean(column(those, "rtt_mean_ms")),
                Number(mean(those, "queue_mean_bytes"), "B", WHOLE),
                Number(mean(those, "queue_drops"), digits=2),
                Number(mean(those, "queue_marks"), digits=2),
                Interval.of_mean(column(those, "jains_index"), within=(0, 1)),
            )
            for those in trials
        ),
    )  # fmt: skip
    least_used = min(mean(those, "utilisation") for those in trials)
    f.least_used = Number(100 * least_used, "%")
    f.all_fill_the_link = least_used > 0.99

    by_flow = [run for run in runs if run.params["discipline"] in WITH_FLOW_QUEUES]
    f.fq_ping = Number(mean(by_flow, "busy_ping_mean_ms"), "ms", 4)
    f.fq_rtt = Number(mean(by_flow, "rtt_mean_ms"), "ms", 4)
    f.path_rtt = Number(param(by_flow[0], "rtt_ms"), "ms", 4)

    marked = sets.runs("disciplines", ecn="on")
    f.ecn_marks = Number(mean(marked, "queue_marks"), digits=2)
    f.ecn_drops = Number(mean(marked, "queue_drops"), digits=2)
    without = {
        (run.params["discipline"], run.seed): measured(run, "busy_ping_mean_ms")
        for run in sets.runs("disciplines", ecn="off")
    }
    changes = [
        abs(measured(run, "busy_ping_mean_ms") / without[run.params["discipline"], run.seed] - 1)
        for run in marked
    ]
    f.ecn_ping_change = Number(100 * statistics.fmean(changes), "%", 2)


def _arms(runs: Sequence[Result]) -> Table:
    """Each discipline's flows: goodput in Mbit/s, ping in ms, drops in packets a run."""
    rows = []
    for name in sorted({str(run.params["discipline"]) for run in runs}):
        those = [run for run in runs if run.params["discipline"] == name]
        rates = [flow.goodput_bps / 1e6 for run in those for flow in run.flows]
        rows.append(
            (
                name,
                Number(len(those), digits=WHOLE),
                Number(len(rates), digits=WHOLE),
                Number(statistics.fmean(rates), "Mbit/s"),
                Number(statistics.median(rates), "Mbit/s"),
                Number(statistics.stdev(rates), "Mbit/s"),
                Interval.of_mean(column(those, "busy_ping_mean_ms")),
                Interval.of_mean(column(those, "queue_drops")),
            )
        )
    headings = (
        "discipline", "runs", "flows", "goodput of a flow: mean", "median", "standard deviation",
        "ping under load (ms)", "drops a run",
    )  # fmt: skip
    return Table(headings, tuple(rows))


def _interval(ends: tuple[float, float], scale: float, unit: str, digits: int = 3) -> Interval:
    low, high = (end * scale for end in ends)
    return Interval((low + high) / 2, low, high, unit, digits)
