"""What pages can say of chance: intervals, and the few steps that a page needs before them."""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.base.errors import UserError
from measuretwice.runs.result import Result
from measuretwice.site.words.registry import statistics_word, two_samples_word
from measuretwice.stats import intervals, two_samples

statistics_word("statistics.loss_interval(drops, packets)")(intervals.loss_interval)
statistics_word("statistics.binomial_interval(packets, p, 0.99)")(intervals.binomial_interval)
statistics_word("statistics.relative_error_of_loss(losses)")(intervals.relative_error_of_loss)
statistics_word("statistics.relative_error_of_ratio(losses)")(intervals.relative_error_of_ratio)
statistics_word("statistics.ratio_bounds(losses)")(intervals.ratio_bounds)
statistics_word("statistics.losses_needed(relative_error)")(intervals.losses_needed)
statistics_word("statistics.mean_interval(values)")(intervals.mean_interval)
statistics_word("statistics.relative_spread(values)")(intervals.relative_spread)
statistics_word("statistics.ratio_of_means(upper, lower)")(intervals.ratio_of_means)
statistics_word("statistics.difference_interval(values, others)")(two_samples.difference_interval)

two_samples_word("two_samples.mean_and_deviation(values)")(two_samples.mean_and_deviation)
two_samples_word("two_samples.welch(values, others)")(two_samples.welch)
two_samples_word("two_samples.welch_of(mean, deviation, count, mean, deviation, count)")(
    two_samples.welch_of
)
two_samples_word("two_samples.spread(values, others)")(two_samples.spread)
two_samples_word("two_samples.spread_of(deviation, count, deviation, count)")(two_samples.spread_of)
two_samples_word("two_samples.power_of_spread(ratio, count)")(two_samples.power_of_spread)
two_samples_word("two_samples.values_for_spread(ratio)")(two_samples.values_for_spread)
two_samples_word("two_samples.noticeable_spread(count)")(two_samples.noticeable_spread)


@statistics_word('statistics.column(runs("offloads-on"), "ratio")')
def column(runs: Sequence[Result], name: str) -> list[float]:
    """Return one value of each run: `ratio`, or the name of a measured value."""
    values = [run.value(name) for run in runs]
    if None in values:
        raise UserError(f"a run has no {name}")
    return [value for value in values if value is not None]


@statistics_word('statistics.differences(runs, others, "ratio")')
def differences(runs: Sequence[Result], others: Sequence[Result], name: str) -> list[float]:
    """Return `runs` less `others`, run by run: those with the same trial and seed."""
    twins = {(run.trial, run.seed): run for run in others}
    pairs = [(run, twins[run.trial, run.seed]) for run in runs]
    return [a - b for run, twin in pairs for a, b in [column([run, twin], name)]]


@statistics_word("statistics.counts(runs)")
def counts(runs: Sequence[Result]) -> dict[str, int]:
    """Return how many counts were held against an interval, `.judged`, and how many of these lie
    outside it, `.outside`."""
    judged = [
        verdict.ok
        for run in runs
        for verdict in run.expectations
        if verdict.confidence and verdict.ok is not None
    ]
    return {"judged": len(judged), "outside": judged.count(False)}
