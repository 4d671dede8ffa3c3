"""The check of a set of runs: can they stand in one figure? Pure: plans and results in, findings out.

What is wrong here is in no single run. A trial that came out odd and was run again until it
looked right is an honest run; the set that holds it is not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from measuretwice.checks.finding import Finding
from measuretwice.checks.queue_discipline import SET_CHECKS
from measuretwice.lab import Lab, Value
from measuretwice.measure.values import Measured
from measuretwice.stats.intervals import mean_interval
from measuretwice.stats.two_samples import difference_interval

# Fewer trials than this make no figure.
LEAST_TRIALS = 3
NO_OTHER_EXPERIMENT = frozenset({"duration_s", "sample_interval_s"})


@dataclass(frozen=True)
class Member:
    """One run of a set: its plan, and what was measured."""

    trial: int
    pitfall: str | None
    stage: str | None
    seed: int
    params: dict[str, Value]
    measured: Measured = field(default_factory=dict)


@dataclass(frozen=True)
class SetFinding:
    """A finding and the runs that it is about, by their place in the list that was given."""

    finding: Finding
    members: tuple[int, ...]


def check_set(lab: Lab, members: list[Member]) -> list[SetFinding]:
    """Return what is wrong with the runs taken together.

    Runs of one pitfall's stage, or of none, are taken for one set, if they are of three trials or
    more and none is doubled in them with other settings (those who try settings out make such
    folders; a figure's runs are not like that). Two trials are a set where they are compared.
    """
    groups: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
    for place, member in enumerate(members):
        groups[member.pitfall, member.stage].append(place)
    found = []
    for places in groups.values():
        runs = [members[place] for place in places]
        finding = None
        if len({run.trial for run in runs}) >= LEAST_TRIALS:
            finding = _cherry_picking(lab, runs)
        finding = finding or _one_run(runs)
        if finding:
            found.append(SetFinding(finding, tuple(places)))
        for look in SET_CHECKS:
            if said := look(runs):
                found.append(SetFinding(said, tuple(places)))
    return found


def _cherry_picking(lab: Lab, runs: list[Member]) -> Finding | None:
    """Every trial as often as the others, all with the same settings."""
    names = sorted({name for run in runs for name in run.params})
    differing = [name for name in names if not _one_rule(lab, runs, name)]
    if differing:
        return _mixed(runs, differing)
    seeds = {trial: {run.seed for run in runs if run.trial == trial} for trial in _trials(runs)}
    if len(set(map(frozenset, seeds.values()))) == 1:
        return None
    tries = {trial: len(seen) for trial, seen in seeds.items()}
    often, usual = max(tries.values()), min(tries.values())
    if often == usual:
        return _only_last_tries(seeds)
    again = [trial for trial, count in tries.items() if count > usual]
    rest = [trial for trial, count in tries.items() if count == usual]
    return Finding(
        "cherry-picking",
        "error",
        f"trial {_list(again)} run up to {often} times, trial {_list(rest)} {_times(usual)}",
        "each trial as often as every other",
        "Who runs again only what looks odd, and keeps the last try, chooses the result: "
        "its mean is what was hoped for, and its spread no longer says what chance does.",
    )


def _one_run(runs: list[Member]) -> Finding | None:
    """Trials that are compared by a value: do their runs tell them apart?

    `compare_by` says which value; a claim that one trial has more of it than another needs an
    interval of the difference that zero isn't in.
    """
    by = {str(run.params.get("compare_by", "nothing")) for run in runs}
    trials = _trials(runs)
    if len(by) != 1 or by == {"nothing"} or len(trials) < 2:
        return None
    name = by.pop()
    values: dict[int, list[float]] = {trial: [] for trial in trials}
    for run in runs:
        value = run.measured.get(name)
        if value is not None:
            values[run.trial].append(value)
    for number, one in enumerate(trials):
        for other in trials[number + 1 :]:
            finding = _not_told_apart(name, one, values[one], other, values[other])
            if finding:
                return finding
    return None


def _not_told_apart(
    name: str, one: int, of_one: list[float], other: int, of_other: list[float]
) -> Finding | None:
    if not of_one or not of_other:
        return None
    count = min(len(of_one), len(of_other))
    means = f"{name}: {_mean(of_one)} in trial {one}, {_mean(of_other)} in trial {other}"
    why = (
        "The same trial comes out differently each time, by chance alone. Who has one run of each "
        "can't know how differently, and so not whether the trials differ."
    )
    if count < 2:
        said = f"{means}, from {_count(count)}"
        return Finding("one-run", "error", said, "runs enough to know their spread", why)
    low, high = difference_interval(of_one, of_other)
    if low > 0 or high < 0:
        return None
    return Finding(
        "one-run",
        "error",
        f"{means}, from {_count(count)} each",
        f"a difference that chance doesn't make: its 95 % interval is {low:.3g} to {high:.3g}",
        why,
    )


def _mean(values: list[float]) -> str:
    return f"{mean_interval(values)[0]:.3g}"


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _only_last_tries(seeds: dict[int, set[int]]) -> Finding:
    """As many runs of each trial, but with other seeds: where are the others?"""
    by_seeds: dict[str, list[int]] = defaultdict(list)
    for trial, seen in seeds.items():
        by_seeds[_list(sorted(seen))].append(trial)
    return Finding(
        "cherry-picking",
        "error",
        "; ".join(f"trial {_list(trials)}: seed {said}" for said, trials in by_seeds.items()),
        "the same seeds for every trial",
        "Another seed is another try. Where only some trials have one, the others were kept because "
        "they looked right.",
    )


def _one_rule(lab: Lab, runs: list[Member], name: str) -> bool:
    """Is one rule behind a parameter's values: the same for all, each trial's own, or another's?

    How long a run lasts, and how often it is looked at, makes no other experiment of it.
    """
    if name in NO_OTHER_EXPERIMENT:
        return True
    values = [run.params.get(name) for run in runs]
    own = [{**lab.defaults(), **lab.trials[run.trial].set}.get(name) for run in runs]
    if len(set(values)) == 1 or values == own:
        return True
    others = set.intersection(
        *(
            {other for other, value in run.params.items() if value == run.params.get(name)}
            for run in runs
        )
    )
    return bool(others - {name})


def _mixed(runs: list[Member], differing: list[str]) -> Finding | None:
    """Trials of one figure with different settings: but for a trial that has both, to compare."""
    by_settings: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        said = ", ".join(f"{name}={run.params.get(name)}" for name in differing)
        by_settings[said].add(run.trial)
    seen: set[int] = set()
    for trials in by_settings.values():
        if seen & trials:
            return None
        seen |= trials
    parts = [f"trial {_list(sorted(trials))}: {said}" for said, trials in by_settings.items()]
    return Finding(
        "cherry-picking",
        "error",
        "; ".join(parts),
        "the same settings for every trial",
        "A setting that is mended for some trials only makes two experiments in one figure.",
    )


def _trials(runs: list[Member]) -> list[int]:
    return sorted({run.trial for run in runs})


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
