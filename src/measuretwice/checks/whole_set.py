"""The checks of a set of runs: can they stand in one figure, and are they enough for a claim about two disciplines?

What is wrong here is in no single run. A trial that came out odd and was run again until it
looked right is an honest run; the set that holds it is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from measuretwice.checks.registry import Finding, FindingKind, Member, set_check
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

# Fewer trials than this make no figure.
LEAST_TRIALS = 3
NO_OTHER_EXPERIMENT = frozenset({"duration_s", "sample_interval_s"})


@set_check(
    FindingKind(
        "cherry-picking",
        "How often each trial of a set was run, and whether all have the same settings.",
        explains=("one-run",),
    ),
    first=True,
)
def cherry_picking(lab: Lab, runs: Sequence[Member]) -> Finding | None:
    """Every trial as often as the others, all with the same settings.

    Asked of three trials or more, of which none is doubled with other settings: those who try
    settings out make such folders; a figure's runs are not like that.
    """
    if len(_trials(runs)) < LEAST_TRIALS:
        return None
    names = sorted({name for run in runs for name in run.params})
    differing = [name for name in names if not _one_rule(lab, runs, name)]
    if differing:
        return _mixed(runs, differing)
    seeds = {trial: {run.seed for run in runs if run.trial == trial} for trial in _trials(runs)}
    if len(set(map(frozenset, seeds.values()))) == 1:
        return None
    tries = {trial: len(its) for trial, its in seeds.items()}
    often, usual = max(tries.values()), min(tries.values())
    if often == usual:
        return _only_last_tries(seeds)
    again = [trial for trial, count in tries.items() if count > usual]
    rest = [trial for trial, count in tries.items() if count == usual]
    return Finding(
        "cherry-picking",
        f"{_named(again)} run up to {often} times, {_named(rest)} {_times(usual)}",
        "each trial as often as every other",
        "If you run only odd-looking trials again, and keep the last try, you choose the result. "
        "Its mean is the one hoped for, and its spread no longer shows what chance does.",
        symptom="each run is right by itself, and all of them together aren't",
    )


def _only_last_tries(seeds: dict[int, set[int]]) -> Finding:
    """As many runs of each trial, but with other seeds: where are the others?"""
    by_seeds: dict[str, list[int]] = defaultdict(list)
    for trial, its in seeds.items():
        by_seeds[_list(sorted(its))].append(trial)
    return Finding(
        "cherry-picking",
        "; ".join(f"{_named(trials)}: seed {its}" for its, trials in by_seeds.items()),
        "the same seeds for every trial",
        "Another seed is another try. Where only some trials have one, the others were kept because "
        "they looked right.",
    )


def _one_rule(lab: Lab, runs: Sequence[Member], name: str) -> bool:
    """Is one rule behind a parameter's values: the same for all, each trial's own, or another's?

    How long a run lasts, and how often it is looked at, makes no other experiment of it.
    """
    if name in NO_OTHER_EXPERIMENT:
        return True
    values = [run.params.get(name) for run in runs]
    its_trials = [{**lab.defaults(), **lab.trials[run.trial].set}.get(name) for run in runs]
    if len(set(values)) == 1 or values == its_trials:
        return True
    others = set.intersection(
        *(
            {other for other, value in run.params.items() if value == run.params.get(name)}
            for run in runs
        )
    )
    return bool(others - {name})


def _mixed(runs: Sequence[Member], differing: list[str]) -> Finding | None:
    """Trials of one figure with different settings: but for a trial that has both, to compare."""
    by_settings: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        settings = ", ".join(f"{name}={run.params.get(name)}" for name in differing)
        by_settings[settings].add(run.trial)
    earlier: set[int] = set()
    for trials in by_settings.values():
        if earlier & trials:
            return None
        earlier |= trials
    parts = [f"{_named(sorted(trials))}: {settings}" for settings, trials in by_settings.items()]
    return Finding(
        "cherry-picking",
        "; ".join(parts),
        "the same settings for every trial",
        "A setting that is corrected for some trials only makes two experiments in one figure.",
    )


def _trials(runs: Sequence[Member]) -> list[int]:
    return sorted({run.trial for run in runs})


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _named(trials: list[int]) -> str:
    return f"trial{'' if len(trials) == 1 else 's'} {_list(trials)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# A claim about two disciplines: can that many runs carry it?

# A claim about spread should be one that a ratio of 3 to 2 would show.
RATIO_WANTED = 1.5
POWER_WANTED = 0.8


@set_check(
    FindingKind(
        "small-n",
        "How many values each discipline has, compared with the number that the claim about them needs.",
    )
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
        f"{count} values of each: deviations of {mean_and_deviation(a)[1]:.3g} ({first}) and "
        f"{mean_and_deviation(b)[1]:.3g} ({second}) Mbit/s, F = {test.statistic:.2f}, p = {test.p:.2g}",
        f"{values_for_spread(RATIO_WANTED)} values of each, to notice four times in five that one "
        f"deviation is {RATIO_WANTED:g} times the other",
        f"With {count} values the test notices only a ratio of {noticeable_spread(count):.1f}. "
        "A deviation is known far worse than a mean; and the two flows of one run share one link, "
        "so they are not even two independent values.",
        symptom=f"deviations of {mean_and_deviation(a)[1]:.3g} ({first}) and {mean_and_deviation(b)[1]:.3g} ({second}) Mbit/s; "
        "these numbers don't show which of them varies more",
    )


def _delay_claim(first: str, a: list[float], second: str, b: list[float]) -> Finding | None:
    if min(len(a), len(b)) < 2:
        return None
    test = welch(a, b)
    if test.p < 0.05:
        return None
    return Finding(
        "small-n",
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
