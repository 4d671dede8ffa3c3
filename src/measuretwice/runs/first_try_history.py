"""A student's first try and what became of it: which runs each state had, kept beside these runs.

RUNS/start/LAB/steps.json     the states, in the order in which the student came to them
RUNS/start/LAB/<run>/         their runs, as everywhere
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.lab import Lab, after_cases, movers_of_first_try, supporting_range
from measuretwice.lab.schema.cases import Shown
from measuretwice.runs.result import Result, read_result
from measuretwice.stats.two_samples import difference_interval

# Below the folder of runs, beside the labs' own.
START = "start"
STEPS = "steps.json"
FIGURE_SAID = "Your marks over the recorded figure: {} (--open shows it)"


@dataclass(frozen=True)
class Try:
    """One state of a student's first try: after which cases, with which seed, and its runs' folders.

    `brief` is what came of it in a few words, `predicted` what the student had written down before.
    """

    cases: tuple[int, ...]
    seed: int
    runs: tuple[str, ...]
    brief: str
    supports: bool
    predicted: str = ""

    @property
    def after(self) -> str:
        """Return the state in words that tell no cause."""
        return after_cases(self.cases)


@dataclass(frozen=True)
class Outcome:
    """The outcome of runs: a line for each value of what they are told apart by, the count, whether
    they support the claim, and all of it in a few words (`brief`)."""

    lines: tuple[str, ...]
    counted: str
    brief: str
    supports: bool

    @property
    def judged(self) -> str:
        """A sentence that says whether they support the claim."""
        return f"That {'supports' if self.supports else 'does not support'} the claim."


def tries_folder(out: Path, lab: Lab) -> Path:
    """Return the folder of a lab's tries, below a folder of runs."""
    return out / START / lab.name


def read_tries(folder: Path) -> list[Try]:
    """Return the states so far, none where nothing was begun; UserError where they can't be read."""
    path = folder / STEPS
    try:
        content = read_object(path)
        return TypeAdapter(list[Try]).validate_python(content.get("steps"))
    except FileNotFoundError:
        return []
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"steps.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError, TypeError, RecursionError) as error:
        what = str(error)
    raise UserError(
        f"{path}: can't be read ({what}): move it away and run ./lab start again; no run is lost"
    )


def write_tries(folder: Path, tries: Sequence[Try]) -> None:
    """Write the states; OSError where that can't be."""
    write_json(folder / STEPS, {"steps": [asdict(step) for step in tries]})


def with_try(tries: Sequence[Try], new: Try) -> list[Try]:
    """Return the states with this one: in place of one after the same cases with the same seed, else last."""
    for index, earlier in enumerate(tries):
        if (earlier.cases, earlier.seed) == (new.cases, new.seed):
            new = replace(new, predicted=new.predicted or earlier.predicted)
            return [*tries[:index], new, *tries[index + 1 :]]
    return [*tries, new]


def results_of_try(folder: Path, of_try: Try, lab: Lab) -> list[Result]:
    """Return the results of a state's runs, of those that are still there; UserError where one can't be looked for."""
    results = (read_result(folder / Path(name).name, lab) for name in of_try.runs)
    try:
        return [result for result in results if result is not None]
    except OSError as error:
        raise UserError(
            f"{folder / STEPS}: names a run that can't be ({error.strerror}): move it away and run ./lab start again"
        ) from None


def so_far(tries: Sequence[Try]) -> str:
    """All states in one line."""
    return " · ".join(f"{step.after}: {step.brief}" for step in tries)


def said_of(claim: str, came: Outcome, changed: str = "") -> str:
    """Return the lines that `./lab start` prints of a try; `changed` says by which cases its settings are others."""
    values = (f"  {line}" for line in came.lines)
    counted = f"{came.counted} {came.judged}"
    return "\n".join([f"The claim: {claim}.", *([changed] if changed else []), *values, counted])


def said_of_next(lab: Lab, case: int | None, opened: Collection[int], *, last: bool) -> str:
    """Return the lines in which `./lab start` says what comes next: `case`, the first that isn't solved, or None; `opened`
    are the cases whose changes the first try may have, `last` says that it has them all."""
    if case is None:
        return f"All cases are solved. ./lab report runs/{lab.name} writes what you hand in."
    before = "" if last else "The cases ask what is behind it. "
    next_case = f"{before}Next: ./lab run {lab.name} --case {case}   ({lab.case(case).symptom})"
    movers = movers_of_first_try(lab, opened)
    if not movers:
        return f"{next_case}\nNo case that is left moves your first try."
    return f"{next_case}\n{movers.capitalize()} can move your first try: ./lab start {lab.name} repeats it with what you found there."


def outcome_of(lab: Lab, shown: Shown, results: Sequence[Result]) -> Outcome:
    """Return what runs came to, by what they are counted by."""
    if shown.most or shown.alike_ratio:
        return _compared(shown, results)
    low, high = supporting_range(lab, shown)
    values = [result.value(shown.value) for result in results]
    within = sum(
        value is not None
        and (-math.inf if low is None else low) <= value <= (math.inf if high is None else high)
        for value in values
    )
    ends = _ends(low, high)
    count = f"{within} of {len(values)}"
    phrase = f"{count} {'is' if within == 1 else 'are'}"
    if len(values) == 1:
        phrase = "It is" if within else "It isn't"
    return Outcome(
        tuple(_lines(shown, results)) if shown.by else _spread(shown, values),
        f"{phrase} in the range ({shown.label} {ends}).",
        count,
        bool(values) and within == len(values),
    )


def _compared(shown: Shown, results: Sequence[Result]) -> Outcome:
    means = _means(shown, results)
    if not means:
        return Outcome((), f"{shown.label} was not measured.", "not measured", supports=False)
    lines = tuple(_lines(shown, results))
    if shown.most:
        return _first_of(shown, _grouped(shown, results), lines)
    least, most = min(means.values()), max(means.values())
    apart = (most - least) / most if most else 0.0
    brief = f"{100 * apart:.2g} % apart"
    return Outcome(lines, f"They are {brief}.", brief, apart <= (shown.alike_ratio or 0.0))


def _first_of(
    shown: Shown, values: Mapping[str, Sequence[float]], lines: tuple[str, ...]
) -> Outcome:
    """Return who has the most, if anybody has: nobody has who is level with another."""
    means = {name: sum(numbers) / len(numbers) for name, numbers in values.items()}
    first = max(means, key=lambda name: means[name])
    level = [name for name in means if _are_level(shown, values[first], values[name])]
    runs = min(map(len, values.values()))
    of_each = "one run each" if runs == 1 else f"{runs} runs each"
    named = [shown.names.get(name, name) for name in level]
    if len(level) == 1:
        brief = f"{named[0]} has the most, with {of_each}"
        lead = _lead_of(shown, first, values) if runs > 1 else ""
        return Outcome(lines, f"{brief}{lead}.", brief, first == shown.most)
    brief = f"{', '.join(named[:-1])} and {named[-1]} are level, with {of_each}"
    little = f"they differ by {100 * (shown.alike_ratio or 0):g} % or less"
    if runs == 1:
        why = f"{little}, so one run each can't decide"
    elif all(_by_chance(values[first], values[name]) for name in level):
        why = "they differ by no more than chance makes such means differ"
    else:
        why = f"{little}, which is too little to name one of them"
    return Outcome(lines, f"{brief}: {why}.", brief, supports=False)


def _lead_of(shown: Shown, first: str, values: Mapping[str, Sequence[float]]) -> str:
    """Return by how much the first leads the next, with an interval; nothing where nobody is next."""
    others = [name for name in values if name != first]
    if not others:
        return ""
    second = max(others, key=lambda name: sum(values[name]) / len(values[name]))
    low, high = difference_interval(values[first], values[second])
    ends = f"{_number(shown.value, low)} to {_number(shown.value, high)}"
    return f", {ends} more than {shown.names.get(second, second)} (95 % interval of the difference of their means)"


def _are_level(shown: Shown, most: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether the means of the first and of another are called level: by the interval of their difference where both
    have several runs, and in any case within the lab's `alike_ratio`."""
    if most is other or (min(len(most), len(other)) > 1 and _by_chance(most, other)):
        return True
    by = sum(most) / len(most) - sum(other) / len(other)
    return by <= (shown.alike_ratio or 0.0) * sum(most) / len(most)


def _by_chance(most: Sequence[float], other: Sequence[float]) -> bool:
    return most is other or difference_interval(most, other)[0] <= 0


def _means(shown: Shown, results: Sequence[Result]) -> dict[str, float]:
    """The mean of each value of what runs are told apart by, in their order."""
    values = _grouped(shown, results)
    return {name: sum(numbers) / len(numbers) for name, numbers in values.items()}


def _grouped(shown: Shown, results: Sequence[Result]) -> dict[str, list[float]]:
    grouped: dict[str, list[float]] = {}
    for result in results:
        value = result.value(shown.value)
        if value is not None:
            grouped.setdefault(str(result.params.get(shown.by or "")), []).append(value)
    return grouped


def _lines(shown: Shown, results: Sequence[Result]) -> list[str]:
    return [
        f"{shown.names.get(name, name)}: {shown.label} {_mean_and_range(shown.value, values)}"
        for name, values in _grouped(shown, results).items()
    ]


def _mean_and_range(name: str, values: Sequence[float]) -> str:
    mean = _number(name, sum(values) / len(values))
    if len(values) == 1:
        return mean
    least, most = (_number(name, end) for end in (min(values), max(values)))
    if least == most:
        return f"{mean} in each of {len(values)} runs"
    return f"{mean} (mean of {len(values)} runs, {least} to {most})"


def _spread(shown: Shown, values: Sequence[float | None]) -> tuple[str, ...]:
    numbers = sorted(value for value in values if value is not None)
    if not numbers:
        return ()
    least, middle, most = (_number(shown.value, numbers[n]) for n in (0, len(numbers) // 2, -1))
    return (f"{shown.label}: from {least} to {most}, half of the values below {middle}",)


def _number(name: str, value: float) -> str:
    if name.endswith("_bps"):
        return f"{value / 1e6:.4g} Mbit/s"
    return f"{value:.3g} ms" if name.endswith("_ms") else f"{value:.3g}"


def _ends(low: float | None, high: float | None) -> str:
    if low is None:
        return f"of at most {high:g}"
    return f"of {low:g} or more" if high is None else f"from {low:g} to {high:g}"
