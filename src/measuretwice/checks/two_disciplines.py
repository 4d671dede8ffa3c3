"""The check of a claim about two disciplines: can that many runs carry it?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from measuretwice.checks.case import Member
from measuretwice.checks.finding import Finding
from measuretwice.checks.registry import Help, set_check
from measuretwice.lab import Lab
from measuretwice.measure import fields
from measuretwice.measure.fields import number
from measuretwice.stats.intervals import mean_and_deviation
from measuretwice.stats.two_samples import (
    noticeable_spread,
    power_of_spread,
    spread,
    values_for_spread,
    welch,
)

# A claim about spread should be one that a ratio of 3 to 2 would show.
RATIO_WANTED = 1.5
POWER_WANTED = 0.8


@set_check(
    Help(
        "small-n",
        "How many values an arm has, compared with what the claim that is made of them needs.",
    ),
)
def small_n(lab: Lab, runs: Sequence[Member]) -> Finding | None:
    """A claim about two disciplines, against what that many runs can carry."""
    claims = {str(run.params.get("claim", "none")) for run in runs}
    arms: dict[str, list[Member]] = defaultdict(list)
    for run in runs:
        arms[str(run.params.get("discipline"))].append(run)
    if len(arms) != 2 or len(claims) != 1 or min(map(len, arms.values())) < 2:
        return None
    (first, of_first), (second, of_second) = sorted(arms.items())
    if claims == {"spread"}:
        return _spread_claim(first, _rates(of_first), second, _rates(of_second))
    if claims == {"delay"}:
        return _delay_claim(first, _delays(of_first), second, _delays(of_second))
    return None


def _spread_claim(first: str, a: list[float], second: str, b: list[float]) -> Finding | None:
    count = min(len(a), len(b))
    if count < 3 or power_of_spread(RATIO_WANTED, count) >= POWER_WANTED:
        return None
    test = spread(a, b)
    return Finding(
        "small-n",
        "error",
        f"{count} values an arm: deviations of {mean_and_deviation(a)[1]:.3g} ({first}) and "
        f"{mean_and_deviation(b)[1]:.3g} ({second}) Mbit/s, F = {test.statistic:.2f}, p = {test.p:.2g}",
        f"{values_for_spread(RATIO_WANTED)} values an arm, to notice four times in five that one "
        f"deviation is {RATIO_WANTED:g} times the other",
        f"With {count} values the test notices only a ratio of {noticeable_spread(count):.1f}. "
        "A deviation is known far worse than a mean; and the two flows of one run share one link, "
        "so they are not even two independent values.",
    )


def _delay_claim(first: str, a: list[float], second: str, b: list[float]) -> Finding | None:
    if min(len(a), len(b)) < 2:
        return None
    test = welch(a, b)
    if test.p < 0.05:
        return None
    return Finding(
        "small-n",
        "error",
        f"mean delays of {mean_and_deviation(a)[0]:.3g} ({first}) and {mean_and_deviation(b)[0]:.3g} "
        f"({second}) ms, t = {test.statistic:.2f}, p = {test.p:.2g}",
        "a difference that chance alone would rarely make",
        "So few runs, or so small a difference, can't tell these two apart.",
    )


def _rates(runs: Sequence[Member]) -> list[float]:
    """Each flow's goodput in Mbit/s."""
    values = [
        number(run.measured, name)
        for run in runs
        for name in fields.members("*_goodput_bps", run.measured).values()
    ]
    return [value / 1e6 for value in values if value is not None]


def _delays(runs: Sequence[Member]) -> list[float]:
    values = [number(run.measured, "busy_ping_mean_ms") for run in runs]
    return [value for value in values if value is not None]
