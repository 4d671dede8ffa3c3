"""What pages can say of chance: `statistics.loss_interval(drops, offered)` and kin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.runs.result import Result
from measuretwice.stats import intervals as statistics
from measuretwice.stats import two_samples


def relative_spread(values: Sequence[float]) -> float:
    """Return the standard deviation over the mean: what one run's result is off by, typically."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) / mean


def column(runs: Sequence[Result], name: str) -> list[float]:
    """Return one value of each run: `ratio`, or the name of a measured value."""
    values = [run.ratio if name == "ratio" else run.measured[name] for run in runs]
    if None in values:
        raise UserError(f"a run has no {name}")
    return [value for value in values if value is not None]


def differences(one: Sequence[Result], other: Sequence[Result], name: str) -> list[float]:
    """Return `one` less `other`, run by run: those with the same trial and seed."""
    seen = {(run.trial, run.seed): run for run in other}
    pairs = [(run, seen[run.trial, run.seed]) for run in one]
    return [a - b for run, twin in pairs for a, b in [column([run, twin], name)]]


def counts(runs: Sequence[Result]) -> dict[str, Any]:
    """How many counts were held against an interval, and how many of them lie outside."""
    judged = [
        one for run in runs for one in run.expectations if one.confidence and one.ok is not None
    ]
    return {"judged": len(judged), "outside": sum(not one.ok for one in judged)}


def ratio_of_means(
    upper: Sequence[float], lower: Sequence[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the ratio of the geometric means of values in pairs, and its interval.

    On a logarithmic scale a ratio is a difference, and that of pairs has a mean and an interval.
    """
    logs = [math.log(a / b) for a, b in zip(upper, lower, strict=True)]
    mean, low, high = statistics.mean_interval(logs, confidence)
    return math.exp(mean), math.exp(low), math.exp(high)


class StatisticsWords:
    """The intervals of measuretwice.stats.intervals, and the few steps that a page needs before them."""

    loss_interval = staticmethod(statistics.loss_interval)
    binomial_interval = staticmethod(statistics.binomial_interval)
    relative_error_of_loss = staticmethod(statistics.relative_error_of_loss)
    relative_error_of_ratio = staticmethod(statistics.relative_error_of_ratio)
    ratio_bounds = staticmethod(statistics.ratio_bounds)
    losses_needed = staticmethod(statistics.losses_needed)
    mean_interval = staticmethod(statistics.mean_interval)
    difference_interval = staticmethod(two_samples.difference_interval)
    relative_spread = staticmethod(relative_spread)
    ratio_of_means = staticmethod(ratio_of_means)
    column = staticmethod(column)
    differences = staticmethod(differences)
    counts = staticmethod(counts)
