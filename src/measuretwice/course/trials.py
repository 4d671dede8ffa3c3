"""Which trials and settings a request means, whether it was typed or chosen on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.base.errors import UserError
from measuretwice.book.book import LabBook
from measuretwice.course.case import CaseRun
from measuretwice.execute.batch import Batch
from measuretwice.lab import UNSET, Again, Lab, Pitfall, Plan, StageName, Value, select_trials


def read_changes(lab: Lab, changes: Sequence[str], duration: str | None = None) -> dict[str, Value]:
    """Return the parameters that KEY=VALUE texts and a duration in seconds set; KEY= alone gives UNSET.

    UserError for a text of another form, and for a key or value that the lab doesn't take.
    """
    settings: dict[str, Value] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise UserError(f"--set {change}: expected KEY=VALUE, such as --set rtt_ms=20")
        known = lab.file.parameters.get(name)
        if text == UNSET and known and known.default is None:
            settings[name] = UNSET
        else:
            settings[name] = lab.read_value(name, text, f"--set {change}")
    if duration is not None:
        settings["duration_s"] = lab.read_value("duration_s", duration, f"--duration {duration}")
    return settings


@dataclass(frozen=True)
class TrialChoice:
    """Which trials, each with how many seeds, and by what rule odd results are run once more."""

    trials: list[int]
    repeat: int
    again: Again | None


def choose_trials(
    lab: Lab,
    trials: str | None,
    case: CaseRun | None = None,
    *,
    pitfall: str | None = None,
    stage: StageName | None = None,
    repeat: int | None = None,
) -> TrialChoice:
    """Return the trials that were named, those of a case or a pitfall, or all.

    UserError for numbers that the lab doesn't have, and for an unknown pitfall.
    """
    chosen = case.pitfall if case else lab.pitfall(pitfall) if pitfall else None
    if chosen is None:
        return TrialChoice(select_trials(lab, trials or "all"), repeat or 1, None)
    numbers = select_trials(lab, trials or chosen.trials or str(chosen.trial))
    staged = chosen.stage((case.stage if case else stage) or "broken")
    if case and repeat:
        # How often is the student's own choice then, and nothing is run a time more than that.
        return TrialChoice(numbers, repeat, None)
    return TrialChoice(numbers, staged.repeat * (repeat or 1), staged.again)


def choose_live_trial(lab: Lab, trial: str | None, staged: Pitfall | None) -> int:
    """Return the one trial of a live lab: the one that was named, or the staged mistake's. UserError for several."""
    default_trial = staged.trial if staged else min(lab.trials)
    numbers = select_trials(lab, trial or str(default_trial))
    if len(numbers) != 1:
        raise UserError(f"--trial {trial}: one network is one trial's: give one number")
    return numbers[0]


def live_plan(
    batch: Batch,
    trial: int,
    settings: dict[str, Value],
    *,
    pitfall: str | None = None,
    stage: StageName | None = None,
    case: int | None = None,
) -> Plan:
    """Return the plan of a live lab; a case has the seed of the student's own book, as its runs have."""
    seed = LabBook(batch.out / batch.lab.name, batch.lab).open() if case is not None else 1
    job = batch.job(trial, seed=seed, changes=settings, pitfall=pitfall, stage=stage, case=case)
    return job.plan
