"""`lab check` and the lab book: hints that were taken, the diagnosis, what a change came to."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.book import LabBook
from measuretwice.book.notes import NONE
from measuretwice.book.predicted import Quantity, measured_by
from measuretwice.cli.cases import ask_person
from measuretwice.cli.tries import try_again
from measuretwice.lab import UNSET, Lab, load_lab, trial_params
from measuretwice.runs.folder import DONE, PLAN
from measuretwice.runs.result import Result, read_result

OUTCOME = "nothing is off any more"


@dataclass(frozen=True)
class _CaseOfRuns:
    """A case that runs being checked are of, its book, and these runs."""

    lab: Lab
    number: int
    book: LabBook
    runs: tuple[Path, ...]


class CaseBooks:
    """The books of the cases that some runs are of."""

    def __init__(self, root: Path, runs: Sequence[Path]) -> None:
        found: dict[tuple[Path, int], tuple[Lab, list[Path]]] = {}
        for run in runs:
            known = _case_of(root, run)
            if known is not None:
                lab, number = known
                found.setdefault((run.parent, number), (lab, []))[1].append(run)
        self._cases = [
            _CaseOfRuns(lab, number, book, tuple(of_case))
            for (folder, number), (lab, of_case) in found.items()
            if (book := LabBook(folder, lab)).exists
        ]

    def before(self, hint: int | None) -> None:
        """Note a hint that is taken; before the last one ask what the student thinks it is, unless that is known."""
        if hint is None:
            return
        if len(self._cases) > 1:
            first = self._cases[0]
            runs = os.path.relpath(first.runs[0].parent)
            raise UserError(
                f"--hint helps with one case at a time, and these runs are of {len(self._cases)}: "
                f"./lab check {runs}/case-{first.number:02d}-* --hint {hint}"
            )
        for case in self._cases:
            notes = case.book.notes(case.number)
            if notes.mended:
                continue
            if hint == 3 and notes.diagnosis is None:
                said = ask_person(
                    f"Case {case.number}. Before the last hint: what is it, in your own words? (Enter skips): "
                )
                case.book.add(case.number, "Diagnosis", said or NONE)
            if hint > notes.hints:
                case.book.add(case.number, "Hint", str(hint))

    def earlier(
        self, documents: Sequence[dict[str, Any]], unread: Collection[str] = ()
    ) -> set[str]:
        """Return the runs that a solved case leaves behind: what was off in them is what the student has mended.

        Of runs that are `unread` nobody knows that nothing is off.
        """
        off, behind = _off(documents, unread), set[str]()
        for case in self._cases:
            own = _latest(case, [run for run in case.runs if _is_own(case, run)])
            if own and not any(str(run) in off for run in own) and _is_settled(case):
                behind |= {str(run) for run in case.runs if run not in own}
        return behind

    def after(self, documents: Sequence[dict[str, Any]], unread: Collection[str] = ()) -> None:
        """Where all that a student changed came out right, say what the change did, and note it."""
        off = _off(documents, unread)
        for case in self._cases:
            own = _latest(case, [run for run in case.runs if _is_own(case, run)])
            if not own:
                continue
            if any(str(run) in off for run in own):
                self._decided(case, own, documents)
                continue
            if _is_settled(case):
                self._outcome(case, own)
            else:
                print(
                    f"Case {case.number}: nothing is off any more, but what you changed is a claim, made after "
                    "the measurement. Which run would come out differently if you were wrong? Predict it, then make it."
                )

    def _decided(
        self, case: _CaseOfRuns, own: Sequence[Path], documents: Sequence[dict[str, Any]]
    ) -> None:
        """Say of the experiment that decides that it does, where all that is off is the claim beside it."""
        pitfall = case.lab.case(case.number)
        off = {
            finding["id"]
            for document in documents
            if document["run"] in map(str, own)
            for finding in document["findings"]
        }
        result = read_result(own[-1], case.lab)
        if (
            pitfall.settled_by is None
            or result is None
            or off != {pitfall.finding}
            or pitfall.settled_by not in changes_of(case.lab, result)
        ):
            return
        print(
            f"Case {case.number}: this run decides, and nothing is wrong with it. Only the claim is off that still "
            "stands beside it. A claim is a setting too, and changing it measures nothing again."
        )

    def _outcome(self, case: _CaseOfRuns, own: Sequence[Path]) -> None:
        pitfall = case.lab.case(case.number)
        asked = measured_by(pitfall.predict)
        after = read_result(own[-1], case.lab)
        before = _first_try(case)
        words = OUTCOME
        if before and after:
            values = [result.value(pitfall.predict.value) for result in (before, after)]
            if None not in values:
                first, last = (
                    f"{value * asked.scale:.4g}" for value in values if value is not None
                )
                words += _before_and_now(asked, first, last)
        by = f", by {own[-1].name}" if len(own) == 1 else ""
        print(f"Case {case.number} is solved{by}: {words}.")
        if after and after.model_bps and after.not_comparable_because:
            print(f"Not compared with the model: {after.not_comparable_because}.")
        if again := try_again(case.lab, case.number):
            print(again)
        notes = case.book.notes(case.number)
        if words not in notes.of("Outcome"):
            case.book.add(case.number, "Outcome", words)
        if notes.diagnosis is None:
            said = ask_person("What was it, in your own words? (Enter skips): ")
            if said:
                case.book.add(case.number, "Diagnosis", said)


def _off(documents: Sequence[dict[str, Any]], unread: Collection[str]) -> set[str]:
    """The runs in which something is off, alone or taken together, and those that can't be read."""
    return {*unread} | {
        run
        for document in documents
        if document["findings"]
        for run in (document["run"], *document.get("runs", []))
    }


def _before_and_now(asked: Quantity, first: str, last: str) -> str:
    name, unit = asked.name, "" if asked.unit in asked.name else asked.unit
    if first == last:
        return (
            f": {name} {first} {unit}".rstrip()
            + ", as before. The run measured the same, but is judged differently"
        )
    return f": {name} {first} {unit} before, {last} {unit} now".replace("  ", " ").replace(
        " ,", ","
    )


def after_live(root: Path, folder: Path, document: Mapping[str, Any]) -> None:
    """Where nothing is off in what a student did by hand, in a case's live lab, say so and note it."""
    number = document.get("case")
    if not isinstance(number, int) or document["findings"]:
        return
    lab = load_lab(root, str(document["lab"]))
    predict = lab.case(number).predict
    value = document["measured"].get(predict.value)
    if not isinstance(value, int | float):
        return
    asked = measured_by(predict)
    words = f"{OUTCOME}, by hand in {folder.name}: {value * asked.scale:.4g} {asked.unit}".rstrip()
    print(f"Case {number}: {words}.")
    book = LabBook(folder.parent, lab)
    if book.exists and words not in book.notes(number).of("Outcome"):
        book.add(number, "Outcome", words)


def _case_of(root: Path, run: Path) -> tuple[Lab, int] | None:
    """Which lab's case a run is of; None for other runs, and for those that can't be read."""
    try:
        plan = read_object(run / PLAN)
        lab, number = load_lab(root, str(plan["lab"])), plan.get("case")
        if not isinstance(number, int):
            return None
        lab.case(number)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, UserError):
        return None
    return lab, number


def _latest(case: _CaseOfRuns, own: list[Path]) -> list[Path]:
    """What counts of a student's own tries: the last one; of a set of runs all."""
    if _is_whole_set(case) or not own:
        return own
    return [max(own, key=lambda run: (run / DONE).stat().st_mtime_ns)]


def _is_own(case: _CaseOfRuns, run: Path) -> bool:
    """Is it a run with changes of the student's own: neither the first try nor the shown one?"""
    result = read_result(run, case.lab)
    return (
        result is not None
        and result.stage is None
        and (bool(changes_of(case.lab, result)) or bool(result.edited) or _is_whole_set(case))
    )


def _is_whole_set(case: _CaseOfRuns) -> bool:
    """A mistake in a set of runs is mended by which runs there are, not by a setting."""
    return case.lab.case(case.number).trials is not None and len(case.runs) > 1


def changes_of(lab: Lab, result: Result) -> dict[str, Any]:
    """Return the settings of a case's run that its student changed, with their values; UNSET for one
    that was taken away."""
    meant = trial_params(lab, result.trial, stage=result.stage, case=result.case, seed=result.seed)
    return {
        name: result.params.get(name, UNSET)
        for name in {**meant, **result.params}
        if meant.get(name) != result.params.get(name)
    }


def _is_settled(case: _CaseOfRuns) -> bool:
    """Was the experiment made that decides, where the case asks for one?"""
    wanted = case.lab.case(case.number).settled_by
    results = (read_result(run, case.lab) for run in _all_runs(case))
    return wanted is None or any(
        result is not None and result.stage is None and wanted in changes_of(case.lab, result)
        for result in results
    )


def _all_runs(case: _CaseOfRuns) -> list[Path]:
    """All runs of the case in its folder, those among them that aren't being checked, too."""
    return sorted(case.runs[0].parent.glob(f"case-{case.number:02d}-trial-*"))


def _first_try(case: _CaseOfRuns) -> Result | None:
    """The case's run without changes, with the same seed, from the same folder."""
    seeds = {result.seed for run in case.runs if (result := read_result(run, case.lab))}
    for run in _all_runs(case):
        result = read_result(run, case.lab)
        if result and result.seed in seeds and not (changes_of(case.lab, result) or result.edited):
            return result
    return None
