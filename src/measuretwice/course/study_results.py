"""What a study's runs say: how many of them a question needs, by pilots, and what the plan's own rule makes of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.course.study import Compare, Expression, Rule, Setting, Study, Verdict
from measuretwice.course.study_runs import (
    MOST_NAMED,
    FoundRun,
    MeasuredRun,
    Version,
    is_early,
    measured_runs,
    read_frozen,
    same_seeds_lines,
)
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import mean_and_deviation, mean_interval
from measuretwice.stats.two_samples import (
    deviation_limit,
    difference_interval,
    power_of_difference,
    power_of_equivalence,
    values_for_power,
)

POWERS = (0.8, 0.9)
# With which confidence the scatter behind the pilots' is below the limit that a careful plan takes.
LIMIT_CONFIDENCE = 0.8


@dataclass(frozen=True)
class Sample:
    """The values of a setting, or of a pilot: how many, their mean and their standard deviation. With `ratio` these two are
    of the values' natural logarithms."""

    name: str
    n: int
    mean: float
    deviation: float | None


def sample_of(name: str, values: Sequence[float]) -> Sample:
    if len(values) < 2:
        return Sample(name, len(values), values[0] if values else math.nan, None)
    return Sample(name, len(values), *mean_and_deviation(values))


# How many runs


@dataclass(frozen=True)
class Needed:
    """How many runs of each setting it takes for a power: by the pilots' deviations, and by their upper limits. None: more than
    anybody runs."""

    power: float
    by_pilots: int | None
    by_limits: int | None


@dataclass(frozen=True)
class PowerPlan:
    """How many runs a question needs. `matters` is in the quantity's unit, or a factor; `limits` are the pilots' upper
    limits of their deviations. `equal`: the question is whether the two are the same to within that."""

    quantity: str
    unit: str
    compare: Compare
    matters: float
    confidence: float
    equal: bool
    pilots: tuple[Sample, ...]
    limits: tuple[float, ...]
    needed: tuple[Needed, ...]

    @property
    def is_without_scatter(self) -> bool:
        return all(pilot.deviation == 0 for pilot in self.pilots)

    def power_of(self, count: int) -> float:
        """Return the power of `count` runs of each setting, by the pilots' deviations."""
        return _power(self, [pilot.deviation or 0.0 for pilot in self.pilots])(count)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_power(
    pilots: Sequence[tuple[str, Sequence[Result]]],
    quantity: Expression,
    matters: float,
    *,
    compare: Compare = "difference",
    confidence: float = 0.95,
    equal: bool = False,
) -> PowerPlan:
    """Return how many runs are needed, by one pilot for a mean, and by two for a difference or a ratio.

    UserError where a pilot has fewer than two values, or not of this quantity.
    """
    wanted = 1 if compare == "mean" else 2
    if len(pilots) != wanted:
        raise UserError(
            f"expected {'one pilot' if wanted == 1 else 'two pilots'} for {compare}, got {len(pilots)}"
        )
    least = 1 if compare == "ratio" else 0
    if not math.isfinite(matters) or matters <= least:
        raise UserError(f"--matters {matters:g}: expected a number above {least}")
    samples = [_pilot(name, results, quantity, compare) for name, results in pilots]
    deviations = [sample.deviation or 0.0 for sample in samples]
    limits = [
        deviation_limit(deviation, sample.n, LIMIT_CONFIDENCE)
        for deviation, sample in zip(deviations, samples, strict=True)
    ]
    plan = PowerPlan(
        quantity.text, quantity.unit, compare, matters, confidence, equal, tuple(samples), tuple(limits), ()
    )  # fmt: skip
    needed = tuple(
        Needed(
            power,
            values_for_power(_power(plan, deviations), power),
            values_for_power(_power(plan, limits), power),
        )
        for power in POWERS
    )
    return PowerPlan(**{**vars(plan), "needed": needed})


def _pilot(name: str, results: Sequence[Result], quantity: Expression, compare: Compare) -> Sample:
    values = [value for result in results if (value := quantity.value(result)) is not None]
    if len(values) < len(results):
        raise UserError(
            f"{name}: {len(results) - len(values)} of its {len(results)} runs have no {quantity.text}; "
            "choose a quantity that each run has"
        )
    if len(values) < 2:
        raise UserError(f"{name}: has one run, which shows no scatter; run a few with --repeat 5")
    return sample_of(name, _scaled(values, compare, name))


def _scaled(values: Sequence[float], compare: Compare, name: str) -> list[float]:
    if compare != "ratio":
        return list(values)
    if min(values, default=1) <= 0:
        raise UserError(f"{name}: has values that aren't above 0: ratio can't compare them")
    return [math.log(value) for value in values]


def _power(plan: PowerPlan, deviations: Sequence[float]) -> Callable[[int], float]:
    apart = math.log(plan.matters) if plan.compare == "ratio" else plan.matters
    power = power_of_equivalence if plan.equal else power_of_difference
    return lambda count: power(apart, deviations, count, plan.confidence)


def power_of_study(study: Study, runs: Sequence[MeasuredRun]) -> PowerPlan:
    """Return how many runs a plan needs, by the pilots in its folder; UserError where these don't tell."""
    pilots = [
        (
            setting.title,
            [run.result for run in runs if run.listed.setting == setting.letter],
        )
        for setting in study.settings
    ]
    for name, results in pilots:
        if len(results) < 2:
            raise UserError(
                f"pilots/ has {len(results)} of {name}, with the plan's trials and settings; expected two at least"
            )
    rule = study.rule
    equal = rule.compare != "mean" and rule.above is not None and rule.below is not None
    return plan_power(
        pilots,
        study.quantity,
        study.matters,
        compare=rule.compare,
        confidence=rule.confidence,
        equal=equal,
    )


def _amount(planned: PowerPlan) -> str:
    if planned.compare == "ratio":
        return f"a factor of {planned.matters:g}"
    return f"{planned.matters:g} {planned.unit}".rstrip()


def needed_for(planned: PowerPlan) -> str:
    if planned.equal:
        return (
            f"to show that the two are the same to within {_amount(planned)}, if they are the same"
        )
    if planned.compare == "mean":
        return f"to tell the mean from a limit that is {_amount(planned)} away"
    return f"to see a difference of {_amount(planned)}, if there is one"


def assumptions(planned: PowerPlan) -> list[str]:
    test = "Student's" if len(planned.pilots) == 1 else "Welch's"
    is_ratio = planned.compare == "ratio"
    lines = [
        f"Power is the probability that the {100 * planned.confidence:g} % interval ({test} t) leaves the limit of your rule "
        "out, if the truth is that far from the limit.",
        "Assumed: runs are independent, each with its own seed; "
        f"{'the logarithms of their values' if is_ratio else 'their values'} are near a normal distribution; later runs scatter as "
        f"the pilots do; {'both settings have' if len(planned.pilots) == 2 else 'there are'} as many runs.",
        f"The upper limit: the true scatter is below it with {100 * LIMIT_CONFIDENCE:g} % confidence. With few pilots plan by it.",
    ]
    if is_ratio:
        lines.insert(
            0,
            "Ratios are compared on a log scale, so each mean is a geometric mean, and scatter is a factor. About two runs in three lie "
            "between the mean divided by it and the mean times it.",
        )
    if planned.is_without_scatter:
        lines.append(
            "The pilots don't scatter at all: a seed changes nothing in these settings, so one run is worth as much as many, and "
            "this calculation has nothing to go by."
        )
    elif any(pilot.deviation == 0 for pilot in planned.pilots):
        lines.append("One pilot doesn't scatter at all: a seed changes nothing in its settings.")
    return lines


# What the plan's rule says


@dataclass
class SettingRuns:
    """A setting's runs: those that count, and the planned ones (trial, seed) that are missing. `without` counts runs that
    don't have the quantity."""

    setting: Setting
    planned: int
    runs: list[MeasuredRun] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    missing: list[tuple[int, int]] = field(default_factory=list)
    without: int = 0


@dataclass(frozen=True)
class Analysis:
    """A study's analysis by a plan.

    `samples` are the settings, `estimate` with its interval `low` to `high` is what the rule compares; None where
    there are too few values. `verdict` is the rule's; `because` says why nobody can tell, where not the interval does.
    `remarks` are what differs from the plan, a line each.
    """

    samples: tuple[Sample, ...]
    estimate: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    because: str
    remarks: tuple[str, ...]
    runs: tuple[MeasuredRun, ...]


def analyse(
    root: Path,
    study: Study,
    folder: Path,
    *,
    places: Sequence[Path] = (),
    earlier: bool = False,
) -> Analysis:
    """Return what a study's runs say by its plan. UserError where there are none at all."""
    read = measured_runs(root, study, folder, places)
    if not read.runs:
        first = read.unusable[0] if read.unusable else f"{folder}/runs: has no finished run"
        raise UserError(first)
    versions = read_frozen(folder).versions
    chosen, remarks = _choose(study, read.runs, versions[0] if versions else None, earlier)
    remarks = [
        *_about_plan(study, versions),
        *same_seeds_lines(root, study, folder),
        *remarks,
        *(f"not used: {line}" for line in read.unusable),
    ]
    return _analysed(study, chosen, remarks)


def _about_plan(study: Study, versions: Sequence[Version]) -> list[str]:
    if not versions:
        return [
            "the plan isn't frozen: this is a look at the data, and no test of a plan; ./lab plan freeze does it"
        ]
    if versions[0].text != study.text:
        return [
            f"the plan was changed after it was frozen on {versions[0].frozen}: ./lab plan diff lists how"
        ]
    return []


def _choose(
    study: Study, runs: Sequence[MeasuredRun], first: Version | None, earlier: bool
) -> tuple[list[SettingRuns], list[str]]:
    """Return the runs that count, by setting, and what differs from the plan: each planned run once, and no other."""
    others, early, added, twice = 0, 0, 0, 0
    chosen = {
        setting.letter: SettingRuns(setting, len(study.planned(setting)))
        for setting in study.settings
    }
    by_key: dict[tuple[str, int, int], FoundRun] = {}
    for run in runs:
        listed = run.listed
        key = (listed.setting, listed.trial, listed.seed)
        if not listed.setting:
            others += 1
        elif first and not earlier and is_early(listed, first):
            early += 1
        elif listed.seed not in study.seeds:
            added += 1
        elif key in by_key:
            twice += listed.plan != by_key[key].plan
        else:
            by_key[key] = listed
            _take(study, chosen[listed.setting], run)
    for entry in chosen.values():
        letter = entry.setting.letter
        entry.missing = [
            pair for pair in study.planned(entry.setting) if (letter, *pair) not in by_key
        ]
    counts = [
        (others, "{} of neither setting: left out"),
        (
            early,
            "{} made before the plan was frozen: left out. If the plan has their seeds, choose another first_seed and freeze again "
            "(--earlier takes such runs)",
        ),
        (added, "{} with seeds that the plan doesn't have: left out"),
        (twice, "{} of a trial and seed that another place or kernel has, too: left out"),
    ]
    remarks = [text.format(_runs(count)) for count, text in counts if count]
    return list(chosen.values()), [*remarks, *_about_runs(list(chosen.values()))]


def _take(study: Study, entry: SettingRuns, run: MeasuredRun) -> None:
    entry.runs.append(run)
    value = study.quantity.value(run.result)
    if value is None:
        entry.without += 1
    else:
        entry.values.append(value)


def _about_runs(chosen: Sequence[SettingRuns]) -> list[str]:
    remarks = []
    runs = [run for entry in chosen for run in entry.runs]
    if edited := sum(run.result.edited is not None for run in runs):
        remarks.append(
            f"{_runs(edited)} with node scripts of your own (edit.diff in the run's folder)"
        )
    if odd := sum(bool(run.findings) for run in runs):
        remarks.append(
            f"{_runs(odd)} in which ./lab check finds something: look there before you believe a number"
        )
    for entry in chosen:
        if len(entry.values) > 1 and len(set(entry.values)) == 1:
            remarks.append(
                f"{entry.setting.title}: all {len(entry.values)} runs give the same value, so a seed changes nothing "
                "there, and they say no more than one run does"
            )
    return remarks


def _analysed(study: Study, chosen: Sequence[SettingRuns], remarks: Sequence[str]) -> Analysis:
    rule = study.rule
    scaled = [_scaled(entry.values, rule.compare, entry.setting.title) for entry in chosen]
    samples = tuple(
        _shown(entry.setting.title, values, rule)
        for entry, values in zip(chosen, scaled, strict=True)
    )
    estimate, low, high = _interval(rule, scaled)
    verdict: Verdict = "can't tell"
    because = _why_not(study, chosen)
    if not because and low is not None and high is not None:
        verdict = rule.judge(low, high)
    runs = tuple(run for entry in chosen for run in entry.runs)
    return Analysis(samples, estimate, low, high, verdict, because, tuple(remarks), runs)


def _shown(name: str, scaled: Sequence[float], rule: Rule) -> Sample:
    """A setting as it is printed: of a ratio the geometric mean, and by which factor single values scatter."""
    sample = sample_of(name, scaled)
    if rule.compare != "ratio":
        return sample
    deviation = None if sample.deviation is None else math.exp(sample.deviation)
    return Sample(name, sample.n, math.exp(sample.mean), deviation)


def _interval(
    rule: Rule, scaled: Sequence[Sequence[float]]
) -> tuple[float | None, float | None, float | None]:
    """The estimate and its interval; None where there are too few values for them."""
    if not all(scaled):
        return None, None, None
    if rule.compare == "mean":
        estimate, low, high = mean_interval(scaled[0], rule.confidence)
    else:
        estimate = statistics.fmean(scaled[1]) - statistics.fmean(scaled[0])
        low, high = difference_interval(scaled[1], scaled[0], rule.confidence)
    if math.isinf(low):
        return (math.exp(estimate) if rule.compare == "ratio" else estimate), None, None
    if rule.compare == "ratio":
        return math.exp(estimate), math.exp(low), math.exp(high)
    return estimate, low, high


def missing_runs(missing: Sequence[tuple[str, int, int]], planned: int) -> str:
    """Name runs that the plan has and nobody made, by setting, trial and seed."""
    named = ", ".join(
        f"{letter} trial {trial} seed {seed}" for letter, trial, seed in missing[:MOST_NAMED]
    )
    are = "is" if len(missing) == 1 else "are"
    more = ", ..." if missing[MOST_NAMED:] else ""
    return f"{len(missing)} of the plan's {planned} runs {are} missing ({named}{more})"


def _why_not(study: Study, chosen: Sequence[SettingRuns]) -> str:
    """Say why no verdict can be given, whatever the interval is; empty where one can."""
    missing = [
        (entry.setting.letter, trial, seed) for entry in chosen for trial, seed in entry.missing
    ]
    if missing:
        return missing_runs(missing, sum(entry.planned for entry in chosen))
    if without := sum(entry.without for entry in chosen):
        return f"{_runs(without)} have no {study.quantity.text}, and an analysis of the others would be one of chosen runs"
    if any(len(entry.values) < 2 for entry in chosen):
        return "one run of a setting has no scatter to judge by"
    return ""


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def document_of(study: Study, analysis: Analysis, frozen: Sequence[Version]) -> dict[str, Any]:
    """Return the content of analysis.json: the numbers, the verdict, and which runs they are of, with their digests."""
    return {
        "plan_sha256": frozen[-1].sha256 if frozen and frozen[-1].text == study.text else None,
        "frozen": frozen[0].frozen if frozen else None,
        "quantity": study.quantity.text,
        "unit": study.quantity.unit,
        "rule": asdict(study.rule),
        "settings": [asdict(sample) for sample in analysis.samples],
        "estimate": analysis.estimate,
        "interval": [analysis.low, analysis.high],
        "verdict": analysis.verdict,
        "because": analysis.because,
        "remarks": list(analysis.remarks),
        "runs": [
            {
                "run": run.listed.name,
                "setting": run.listed.setting,
                "trial": run.listed.trial,
                "seed": run.listed.seed,
                "value": study.quantity.value(run.result),
                "raw_sha256": run.digest,
            }
            for run in analysis.runs
        ],
    }


def analysis_lines(study: Study, analysis: Analysis) -> list[str]:
    """Return an analysis in words: the settings, the estimate with its interval, the rule, the verdict, and what differs
    from the plan."""
    unit = f" {study.quantity.unit}" if study.quantity.unit else ""
    rule = study.rule
    scatter = "scatter by a factor of" if rule.compare == "ratio" else "deviation"
    mean = "geometric mean" if rule.compare == "ratio" else "mean"
    lines = [study.question, f"{study.quantity.text}{f',{unit}' if unit else ''}:"]
    for sample in analysis.samples:
        spread = "" if sample.deviation is None else f", {scatter} {sample.deviation:.3g}"
        lines.append(f"  {sample.name}: n = {sample.n}, {mean} {sample.mean:.5g}{spread}")
    if analysis.estimate is not None:
        shown = "" if rule.compare == "ratio" else unit
        interval = "no interval"
        if analysis.low is not None and analysis.high is not None:
            interval = f"{100 * rule.confidence:g} % interval {analysis.low:.5g} to {analysis.high:.5g}{shown}"
        lines.append(f"{rule.estimate} = {analysis.estimate:.5g}{shown}, {interval}")
    because = f": {analysis.because}" if analysis.because else ""
    counts = " and ".join(str(sample.n) for sample in analysis.samples)
    lines += [
        f"The rule: {rule.in_words}.",
        f"Verdict: {analysis.verdict}{because} (n = {counts})",
        *(f"Note: {remark}" for remark in analysis.remarks),
    ]
    return lines
