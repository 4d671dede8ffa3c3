"""Which settings of a run are shown: those that tell a case's cause only where it is known, or its student set them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.book.book import LabBook
from measuretwice.lab import Lab, listed_settings, trial_params
from measuretwice.runs.tries import STEPS
from measuretwice.view.source import Source


def listed_of(root: Path, lab: Lab | None, *sources: Source) -> set[str] | None:
    """Return the names that may be shown of these sources; None where all may, of a lab that isn't here.

    What the lab doesn't know, somebody wrote into the plan by hand: that is shown.
    """
    if lab is None:
        return None
    known: set[int] = set()
    changed: set[str] = set()
    for source in sources:
        known |= _known_cases(lab, source.target.absolute())
        changed |= set(_changed(root, lab, source))
        params = source.plan.get("params")
        changed |= set(params if isinstance(params, dict) else ()) - set(lab.file.parameters)
    return set(listed_settings(lab, known, changed)) | (changed - set(lab.file.parameters))


def _known_cases(lab: Lab, target: Path) -> set[int]:
    """By the lab book beside a run, or of a first try's run by the one beside the lab's own runs."""
    folders = [target.parent]
    if _is_first_try(target):
        folders.append(target.parents[2] / lab.name)
    try:
        return set().union(*(LabBook(folder, lab).known_cases() for folder in folders))
    except UserError:
        return set()


def _is_first_try(target: Path) -> bool:
    return (target.parent / STEPS).is_file() and len(target.parents) > 3


def _changed(root: Path, lab: Lab, source: Source) -> Iterator[str]:
    """The settings that a student chose. Of recorded runs and of a first try's the kit has chosen them."""
    target, plan = source.target.absolute(), source.plan
    if (root / "sample-data").absolute() in target.parents or _is_first_try(target):
        return
    params, trial, case = plan.get("params"), plan.get("trial"), plan.get("case")
    if plan.get("pitfall") or not isinstance(params, dict):
        return
    if not isinstance(trial, int) or trial not in lab.trials:
        return
    try:
        meant = trial_params(
            lab, trial, case=case, stage=plan.get("stage"), seed=plan.get("seed", 1)
        )
    except (UserError, TypeError, ValueError, LookupError):
        return
    yield from (name for name in {**meant, **params} if meant.get(name) != params.get(name))
