"""A student's first try: which trials, with which settings, once some of the lab's cases are solved.

The recorded steps have one order, students have theirs. So a step counts by what it changes: the
settings that differ between its recorded set and the one before. What the solved cases change is
changed, whatever else is still as in the first try.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from measuretwice.base.errors import UserError
from measuretwice.lab.lab import Lab, select_trials
from measuretwice.lab.schema.cases import FirstTry, Recording, Shown
from measuretwice.lab.schema.parameters import Value


@dataclass(frozen=True)
class TryPlan:
    """One state of the first try: its trials, each so many times, their settings, what is counted.

    `cases` are the numbers of the solved cases that it rests on, `losses` how many each trial lasts
    for, where that is how long. `last` says that no step is left.
    """

    cases: tuple[int, ...]
    trials: tuple[int, ...]
    repeat: int
    changes: Mapping[str, Value]
    losses: int | None
    shown: Shown
    last: bool


def first_try_of(lab: Lab) -> FirstTry:
    """Return the lab's [first_try]; UserError where it has none."""
    if lab.file.first_try is None:
        raise UserError(
            f"{lab.name} has no first try of its own; ./lab run {lab.name} runs its trials"
        )
    return lab.file.first_try


def recorded_steps(lab: Lab) -> list[Recording]:
    """Return the recordings of the steps, in order."""
    by_id = {recording.id: recording for recording in lab.file.recordings}
    return [by_id[step.of] for step in first_try_of(lab).steps]


def step_cases(lab: Lab, recording: str) -> tuple[int, ...]:
    """Return the cases that must be solved for the step with this recorded set; none for the first."""
    steps = lab.file.first_try.steps if lab.file.first_try else []
    names = next((step.after for step in steps if step.of == recording), [])
    return tuple(sorted(lab.case_number(lab.pitfall(name)) for name in names))


def after_cases(cases: Sequence[int]) -> str:
    """Return a name for a state of the first try that tells no cause: `first try`, `after cases 1 and 4`."""
    return f"after {_in_words(cases)}" if cases else "first try"


def _in_words(cases: Sequence[int]) -> str:
    *others, last = map(str, cases)
    return f"cases {', '.join(others)} and {last}" if others else f"case {last}"


def first_try_cases(lab: Lab) -> set[int]:
    """Return the cases that a step waits for."""
    steps = lab.file.first_try.steps if lab.file.first_try else []
    return {number for step in steps for number in step_cases(lab, step.of)}


def movers_of_first_try(lab: Lab, solved: Collection[int] = ()) -> str:
    """Return which of the cases that aren't solved the first try waits for, in words: `cases 1 and 2`; empty where none is
    left."""
    left = sorted(first_try_cases(lab) - set(solved))
    return _in_words(left) if left else ""


def plan_try(lab: Lab, solved: Collection[int]) -> TryPlan:
    """Return the first try as it stands once these cases are solved."""
    first_try = first_try_of(lab)
    recordings = recorded_steps(lab)
    start, shown = recordings[0], first_try.shown
    changes = dict(start.set)
    trials, repeat, losses = start.trials, start.repeat, start.losses
    reached: set[int] = set()
    is_last = True
    for step, before, after in zip(first_try.steps[1:], recordings, recordings[1:], strict=False):
        cases = step_cases(lab, step.of)
        if not set(cases) <= set(solved):
            is_last = False
            continue
        reached |= set(cases)
        for name in before.set.keys() | after.set.keys():
            if name not in after.set:
                changes.pop(name, None)
            elif before.set.get(name) != after.set[name]:
                changes[name] = after.set[name]
        if after.trials != before.trials:
            trials = after.trials
        if step.repeat or after.repeat != before.repeat:
            repeat = step.repeat or after.repeat
        if after.losses != before.losses:
            losses = after.losses
        shown = step.shown or shown
    numbers = tuple(select_trials(lab, trials))
    return TryPlan(tuple(sorted(reached)), numbers, repeat, changes, losses, shown, is_last)


def supporting_range(lab: Lab, shown: Shown) -> tuple[float | None, float | None]:
    """Return the range in which a value supports the claim: its own, or what the lab expects."""
    if shown.min is not None or shown.max is not None:
        return shown.min, shown.max
    for expectation in lab.file.expect:
        if expectation.measured == shown.value and not expectation.wanted_parameters:
            return expectation.min, expectation.max
    return None, None
