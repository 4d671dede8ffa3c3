"""The checks of trials that are compared: do their runs tell them apart, and are they two at all?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from measuretwice.checks.case import Member
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, set_check
from measuretwice.lab import Lab
from measuretwice.measure.fields import number
from measuretwice.stats.intervals import mean_interval
from measuretwice.stats.two_samples import difference_interval


@set_check(
    Help(
        "one-run",
        "Trials that are compared by a value: the interval of the difference of their means.",
    ),
)
def one_run(lab: Lab, runs: Sequence[Member]) -> Finding | None:
    """Trials that are compared by a value: do their runs tell them apart?

    `compare_by` says which value; a claim that one trial has more of it than another needs an
    interval of the difference that zero isn't in.
    """
    by = {str(run.params.get("compare_by", "nothing")) for run in runs}
    trials = sorted({run.trial for run in runs})
    if len(by) != 1 or by == {"nothing"} or len(trials) < 2:
        return None
    name = by.pop()
    values: dict[int, list[float]] = {trial: [] for trial in trials}
    for run in runs:
        value = number(run.measured, name)
        if value is not None:
            values[run.trial].append(value)
    for first, second in itertools.combinations(trials, 2):
        if finding := _not_told_apart(name, first, values[first], second, values[second]):
            return finding
    return None


def _not_told_apart(
    name: str, first: int, of_first: list[float], second: int, of_second: list[float]
) -> Finding | None:
    if not of_first or not of_second:
        return None
    count = min(len(of_first), len(of_second))
    means = f"{name}: {_mean(of_first)} in trial {first}, {_mean(of_second)} in trial {second}"
    why = (
        "The same trial comes out differently each time, by chance alone. Who has one run of each "
        "can't know how differently, and so not whether the trials differ."
    )
    off = f"{means}: a difference that isn't certain"
    if count < 2:
        found = f"{means}, from {_count(count)}"
        return Finding("one-run", "error", found, "runs enough to know their spread", why, off=off)
    low, high = difference_interval(of_first, of_second)
    if low > 0 or high < 0:
        return None
    return Finding(
        "one-run",
        "error",
        f"{means}, from {_count(count)} each",
        f"a difference that chance doesn't make: its 95 % interval is {low:.3g} to {high:.3g}",
        why,
        off=off,
    )


def _mean(values: list[float]) -> str:
    return f"{mean_interval(values)[0]:.3g}"


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


@set_check(
    Help("copied-cell"),
)
def same_numbers(lab: Lab, runs: Sequence[Member]) -> Finding | None:
    """Two trials whose every measured value is the same were read from one file."""
    trials: dict[tuple[tuple[str, float | int | str | None], ...], int] = {}
    for run in runs:
        # A handful of values may agree by chance or because they were set; dozens don't.
        if len(run.measured) < 10 or not run.measured.get("goodput_bps"):
            continue
        key = tuple(sorted(run.measured.items()))
        other = trials.setdefault(key, run.trial)
        if other != run.trial:
            return Finding(
                "copied-cell",
                "error",
                f"trials {other} and {run.trial} agree in all of their {len(run.measured)} values",
                "values that differ at least in their last digits",
                "One file was read twice: one of the two trials isn't in the table at all.",
            )
    return None
