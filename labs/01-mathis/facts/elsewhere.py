"""What other pages of the site say by this lab's runs: statistics, the first half an hour, other seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    Probability,
    RecordedSets,
    column,
    mbit,
    mean,
    measured,
    ms,
    param,
    percent,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.facts.values import Cell
from measuretwice.runs.result import Result
from measuretwice.stats import intervals, two_samples
from measuretwice.tcp import model

from .runs import FEWEST_LOSSES, SEVEN, USUAL, WORKED, acked_over_time, both_ends, step_names

# From when on a flow has left its start behind, and what is averaged then.
STARTED_S, WINDOW_S = 60, 10


def set_elsewhere(f: Facts, sets: RecordedSets) -> None:
    """Set what pages below docs/start, docs/reference and docs/instructors quote of this lab."""
    _half_an_hour(f.case("half-an-hour"), sets)
    _how_sure(f.case("statistics"), sets)
    _other_seeds(f.case("vary"), sets)


def _half_an_hour(f: Facts, sets: RecordedSets) -> None:
    """Trial 8, as docs/start/half-an-hour.md begins with it."""
    eight = sets.trial(WORKED)
    f.delay, f.p = ms(eight["rtt_ms"] / 2), percent(eight["loss_ratio"])
    f.mss, f.rate = size(eight["mss_bytes"]), mbit(1e6 * eight["rate_mbit"])
    f.lasts_s = Number(eight["duration_s"], "s")
    f.took = seconds(sets.real_s(sets.run(USUAL, trial=WORKED)))


def _how_sure(f: Facts, sets: RecordedSets) -> None:
    """docs/reference/statistics.md: how much chance there is in runs, and in what follows from them."""
    _counts_of_losses(f, sets)
    _few_losses(f, sets)
    ten, twins = sets.runs("acks-delayed"), sets.runs("acks-every-segment")
    _repeats(f, sets, ten)
    _two_settings(f, ten, twins)
    _windows(f, sets.run("duration-fixed"), sets)
    _two_arms(f, sets.other("buffers"), sets.other("queues"))
    f.constant, f.slope = f.constant_about, replace(f.slope, digits=3)
    trials = len(sets.lab.trials)
    f.outside_99 = Number(trials * 0.01, digits=1)
    f.one_outside_99, f.one_outside_95 = (percent(1 - ok**trials, 2) for ok in (0.99, 0.95))
    f.outside_95 = whole(trials * 0.05)
    f.bonferroni = percent(0.01 / trials, 2)
    steps = step_names(sets)
    for name, step in (("fixed", steps[-2]), ("first", steps[0])):
        judged = [
            verdict.ok
            for run in sets.runs(step)
            for verdict in run.expectations
            if verdict.confidence and verdict.ok is not None
        ]
        setattr(f, f"judged_{name}", whole(len(judged)))
        setattr(f, f"outside_{name}", whole(judged.count(False)))
    f.fixed_step = steps[-2]
    picked, honest = sets.runs("cherry-picking-broken"), sets.runs("cherry-picking-fixed")
    f.picked, f.picked_of = whole(len(picked)), whole(len({run.trial for run in picked}))
    f.kept = whole(len(honest))


def _counts_of_losses(f: Facts, sets: RecordedSets) -> None:
    """What a number of losses says: of a ratio, and of the p that was set."""
    f.known_to = table(
        ("losses", "loss ratio known to", "goodput known to", "95&nbsp;% of runs lie between"),
        (
            (
                Number(losses),
                f"± {percent(intervals.relative_error_of_loss(losses))}",
                f"± {percent(intervals.relative_error_of_ratio(losses))}",
                "{} and {} times the mean".format(
                    *map(Number, both_ends(*intervals.ratio_bounds(losses) or (None, None)))
                ),
            )
            for losses in (4, 25, 100, 400, 2500)
        ),
    )
    f.losses_for_5, f.losses_for_1 = (whole(intervals.losses_needed(e)) for e in (0.05, 0.01))
    for number in (FEWEST_LOSSES, SEVEN):
        trial = sets.trial(number)
        time_s = model.mathis_time_for_losses_s(trial["rtt_ms"], trial["loss_ratio"], 100)
        setattr(f, f"hundred_in_{number}", seconds(time_s))
    f.rtt_53 = ms(sets.trial(FEWEST_LOSSES)["rtt_ms"])
    short, long = sets.run("duration-broken"), sets.run("duration-fixed")
    f.p_53 = Number(param(short, "loss_ratio"), digits=2)
    for name, run in (("short", short), ("long", long)):
        drops, offered = (int(measured(run, n)) for n in ("qdisc_drops", "qdisc_offered_packets"))
        low, high = intervals.loss_interval(drops, offered)
        setattr(f, f"{name}_lasts", seconds(measured(run, "duration_s")))
        setattr(f, f"{name}_drops", Number(drops))
        setattr(f, f"{name}_loss", Interval(drops / offered, low, high, digits=2))
        setattr(f, f"{name}_factor", Number(high / low, digits=2))
        setattr(f, f"{name}_ratio", Number(measured(run, "ratio"), digits=2))
    f.short_offered = whole(measured(short, "qdisc_offered_packets"))
    f.comes_down = measured(short, "ratio") > 3 and measured(long, "ratio") < 1.5


def _few_losses(f: Facts, sets: RecordedSets) -> None:
    """The trials of the last step but one with fewer than thirty losses, against C."""
    few = [
        run.ratio
        for run in sets.runs(step_names(sets)[-2])
        if run.ratio and 0 < measured(run, "qdisc_drops") < 30 and param(run, "loss_ratio") < 0.02
    ]
    above = sum(ratio > f.constant_about.middle_value for ratio in few)
    f.few, f.few_above = whole(len(few)), whole(above)
    f.is_not_chance = above > 0.75 * len(few)


def _repeats(f: Facts, sets: RecordedSets, ten: Sequence[Result]) -> None:
    """A trial with ten seeds, and how many runs a difference takes."""
    ratios = column(ten, "ratio")
    spread = intervals.relative_spread(ratios)
    losses = mean(ten, "qdisc_drops")
    f.trial, f.runs = whole(ten[0].trial), whole(len(ten))
    f.repeats_last = seconds(param(ten[0], "duration_s"))
    f.ratios = " · ".join(str(Number(ratio, digits=4)) for ratio in sorted(ratios))
    f.mean, f.scatter = Interval.of_mean(ratios, digits=4), percent(spread, 2)
    f.rule, f.losses = percent(intervals.relative_error_of_ratio(losses), 2), whole(losses)
    f.for_5, f.for_1 = (whole(_runs_of_each(spread / part)) for part in (0.05, 0.01))
    indices = column(sets.other("buffers").runs("one-run-fixed", trial=1), "jains_index")
    deviation = statistics.stdev(indices)
    f.jain_scatter = Number(deviation, digits=2)
    f.jain_for, f.jain_runs = whole(_runs_of_each(deviation / 0.1)), whole(len(indices))


def _runs_of_each(scatter: float) -> int:
    """How many runs of each of two settings show a difference about every second time: `scatter` is the standard deviation
    over that difference."""
    return max(2, math.ceil(8 * scatter**2))


def _two_settings(f: Facts, ten: Sequence[Result], twins: Sequence[Result]) -> None:
    """Linux's own ACKs and one ACK per segment: as two samples, and as pairs with the same seed."""
    kinds = {
        "Linux's own ACKs": column(ten, "ratio"),
        "one ACK per segment": column(twins, "ratio"),
    }
    both = {name: Interval.of_mean(ratios, digits=4) for name, ratios in kinds.items()}
    f.compared = table(
        ("receiver", "mean ratio", "95&nbsp;% interval"),
        ((name, interval.middle, interval.ends) for name, interval in both.items()),
    )
    own, every = both.values()
    f.overlap = own.low_value <= every.high_value and every.low_value <= own.high_value
    twin = {run.seed: measured(run, "ratio") for run in twins}
    pairs = sorted(measured(run, "ratio") - twin[run.seed] for run in ten)
    f.pairs = " · ".join(str(Number(apart, digits=2)) for apart in pairs)
    f.above_zero, f.pairs_number = whole(sum(apart > 0 for apart in pairs)), whole(len(pairs))
    f.apart = Interval.of_mean(pairs, digits=2)
    f.zero_is_outside = f.apart.low_value > 0
    f.factor = Interval(
        *intervals.ratio_of_means(column(ten, "ratio"), column(twins, "ratio")), digits=4
    )
    f.is_small = f.factor.high_value < 1.05


def _windows(f: Facts, run: Result, sets: RecordedSets) -> None:
    """One run of hours, from its second minute on: its goodput in windows of ten seconds, and to how many independent values
    these are worth."""
    acked = acked_over_time(sets, run)
    last_s, last_bytes = next(pair for pair in acked if pair[0] >= acked[0][0] + STARTED_S)
    rates_mbit = []
    for now_s, now_bytes in acked:
        if now_s >= last_s + WINDOW_S - 1e-6:
            rates_mbit.append(8e-6 * (now_bytes - last_bytes) / (now_s - last_s))
            last_s, last_bytes = now_s, now_bytes
    worth = intervals.effective_count(rates_mbit)
    middle, low, high = intervals.mean_interval(rates_mbit)
    naive = (high - low) / 2 / middle
    f.windows_run, f.windows_losses = whole(run.trial), whole(measured(run, "qdisc_drops"))
    f.windows, f.windows_worth = whole(len(rates_mbit)), whole(worth)
    f.window_lasts = seconds(WINDOW_S)
    f.windows_mean = Number(middle, "Mbit/s")
    f.windows_naive = percent(naive, 2)
    f.windows_true = percent(naive * math.sqrt(len(rates_mbit) / worth), 2)
    f.windows_by_rule = percent(
        1.96 * intervals.relative_error_of_ratio(measured(run, "qdisc_drops")), 2
    )
    f.windows_are_worth_less = worth < 0.2 * len(rates_mbit)


def _two_arms(f: Facts, buffers: RecordedSets, queues: RecordedSets) -> None:
    """Jain's indices of HighSpeed TCP with either buffer, thirty runs of each; and RED against FIFO, twenty runs of each."""
    large, small = (
        column(buffers.runs("thirty-times", trial=trial), "jains_index") for trial in (1, 2)
    )
    f.skewed_runs = whole(len(large))
    f.skewed_deviations = Numbers((statistics.stdev(large), statistics.stdev(small)), digits=2)
    f.skewed_welch = Probability(two_samples.welch(large, small).p)
    f.skewed_ranks = Probability(two_samples.rank_sum(large, small).p)
    by_seed = [
        {
            run.seed: measured(run, "jains_index")
            for run in buffers.runs("thirty-times", trial=trial)
        }
        for trial in (1, 2)
    ]
    seeds = sorted(by_seed[0])
    f.same_seed = Number(
        statistics.correlation(*([values[seed] for seed in seeds] for values in by_seed)), digits=2
    )
    f.same_seed_by_chance = Number(1.96 / math.sqrt(len(seeds)), digits=2)
    f.seeds_dont_pair_trials = abs(f.same_seed.value) < f.same_seed_by_chance.value

    fifo, red = (
        queues.runs("two-arms", discipline=discipline) for discipline in ("pfifo_fast", "red")
    )
    margin_bps = 1e4 * param(fifo[0], "rate_mbit")
    f.arms = whole(len(fifo))
    sums = [column(arm, "goodput_bps") for arm in (fifo, red)]
    f.sums_differ = Probability(two_samples.welch(*sums).p)
    f.sums_margin = mbit(margin_bps, 1)
    equal = two_samples.equivalence(sums[0], sums[1], margin_bps)
    f.sums_equal = Probability(equal)
    f.sums_are_equal = equal < 0.05
    named = {
        "sum of both goodputs": sums,
        "ping under load": [column(arm, "busy_ping_mean_ms") for arm in (fifo, red)],
        "Jain's index": [column(arm, "jains_index") for arm in (fifo, red)],
    }
    ps = [two_samples.welch(*pair).p for pair in named.values()]
    f.holm = table(
        ("question", "Welch's p", "after Holm"),
        (
            (question, Probability(p), Probability(adjusted))
            for question, p, adjusted in zip(named, ps, two_samples.holm(ps), strict=True)
        ),
    )


def _other_seeds(f: Facts, sets: RecordedSets) -> None:
    """docs/instructors/vary.md: what ten seeds change of trial 3."""
    off, on = sets.runs("offloads-off"), sets.runs("offloads-on")

    def row(
        what: str, runs: Sequence[Result], name: str, show: Callable[[float], Cell], changes: str
    ) -> tuple[Cell, ...]:
        values = column(runs, name)
        return what, show(min(values)), show(max(values)), changes

    f.by_seed = table(
        ("value", "smallest of ten", "largest of ten", "with the seed it"),
        (
            row("packets dropped", off, "qdisc_drops", whole, "changes"),
            row("goodput", off, "goodput_bps", mbit, "changes"),
            row("ratio to the model, offloads off", off, "ratio", Number, "changes a little"),
            row(
                "ratio to the model, offloads on",
                on,
                "ratio",
                Number,
                "changes; always far above the ratio with offloads off",
            ),
            row("MSS that `ss` prints", off, "mss_bytes", size, "never"),
            row("smallest RTT", off, "rtt_min_ms", ms, "hardly"),
        ),
    )
    ratios, mss = (column(off, name) for name in ("ratio", "mss_bytes"))
    f.are_far_apart = min(column(on, "ratio")) > 2 * max(ratios)
    f.mss_never_changes = len(set(mss)) == 1
    rtts = column(off, "rtt_min_ms")
    f.rtt_hardly_changes = max(rtts) < 1.01 * min(rtts)
    f.drops_change = len(set(column(off, "qdisc_drops"))) > len(off) / 2
    ranges = sets.lab.varied(sets.lab.pitfall("mtu"))
    f.longest_rtt, f.least_p = (
        Number(ranges["rtt_ms"][1]),
        Number(ranges["loss_ratio"][0], digits=4),
    )
