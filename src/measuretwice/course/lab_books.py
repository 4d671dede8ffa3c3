"""The lab books of cases whose runs are checked: hints, what the student's own runs came to, diagnoses."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.lab_book import NONE, LabBook
from measuretwice.book.prediction import Quantity, measured_by
from measuretwice.course.case import changes_of
from measuretwice.course.findings import Document
from measuretwice.lab import Lab, first_try_cases, load_lab
from measuretwice.runs.folder import DONE, PLAN
from measuretwice.runs.result import Result, read_result

SOLVED = "nothing is off any more"


@dataclass(frozen=True)
class CaseSolved:
    """A case is solved: what the lab book has of it, and the run that solved it, None where it was a set of runs.

    `not_compared` is why the run can't be compared with the model. `moves_first_try` says whether the lab's first try
    comes out otherwise now, `diagnosed` whether the book has a diagnosis already.
    """

    lab: str
    case: int
    run: str | None
    entry: str
    not_compared: str | None
    moves_first_try: bool
    diagnosed: bool


@dataclass(frozen=True)
class SolvedByHand:
    """In a case's live lab nothing is off any more; `entry` is what the lab book has of it."""

    case: int
    entry: str


@dataclass(frozen=True)
class ClaimChanged:
    """Nothing is off any more, but a claim was changed after the measurement, and no experiment has decided on it."""

    case: int


@dataclass(frozen=True)
class ExperimentDecides:
    """The experiment that decides was made, and only the old claim beside it is off."""

    case: int


CaseOutcome = CaseSolved | SolvedByHand | ClaimChanged | ExperimentDecides


@dataclass(frozen=True)
class _CheckedCase:
    """A case that runs being checked are of, its book, and these runs."""

    lab: Lab
    number: int
    book: LabBook
    runs: tuple[Path, ...]


class CaseBooks:
    """The lab books of the cases that some runs are of; cases without a book are left out."""

    def __init__(self, root: Path, runs: Sequence[Path]) -> None:
        cases: dict[tuple[Path, int], tuple[Lab, list[Path]]] = {}
        for run in runs:
            lab_and_case = _case_of(root, run)
            if lab_and_case is not None:
                lab, number = lab_and_case
                cases.setdefault((run.parent, number), (lab, []))[1].append(run)
        self._cases = [
            _CheckedCase(lab, number, book, tuple(of_case))
            for (folder, number), (lab, of_case) in cases.items()
            if (book := LabBook(folder, lab)).exists
        ]

    def leave_out(self, cases: Collection[tuple[Path, int]]) -> None:
        """Leave out cases, each by its book's path and its number: what their runs come to is said elsewhere."""
        self._cases = [case for case in self._cases if (case.book.path, case.number) not in cases]

    def diagnosis_wanted(self, hint: int | None) -> int | None:
        """Return the case of which a diagnosis is to be noted before this hint; None where none is.

        UserError for a hint on several cases at once.
        """
        if hint is None or not self._cases:
            return None
        case = self._cases[0]
        if len(self._cases) > 1:
            runs = os.path.relpath(case.runs[0].parent)
            raise UserError(
                f"--hint helps with one case at a time, and these runs are of {len(self._cases)}: "
                f"./lab check {runs}/case-{case.number:02d}-* --hint {hint}"
            )
        notes = case.book.notes(case.number)
        return case.number if hint == 3 and not notes.mended and notes.diagnosis is None else None

    def note_hint(self, hint: int | None, diagnosis: str = "") -> None:
        """Note a hint that is taken, and before the last one the diagnosis, where that is wanted.

        UserError for a hint on several cases at once.
        """
        if wanted := self.diagnosis_wanted(hint):
            self.note_diagnosis(wanted, diagnosis or NONE)
        for case in self._cases if hint else []:
            notes = case.book.notes(case.number)
            if not notes.mended and hint is not None and hint > notes.hints:
                case.book.add(case.number, "Hint", str(hint))

    def note_diagnosis(self, number: int, diagnosis: str) -> None:
        """Note what a student says that a case's mistake is."""
        for case in self._cases:
            if case.number == number:
                case.book.add(number, "Diagnosis", diagnosis)

    def superseded(self, documents: Sequence[Document], unread: Collection[str] = ()) -> set[str]:
        """Return the runs that a solved case leaves behind: what was off in them is what the student has fixed.

        Of runs that are `unread` nobody knows that nothing is off.
        """
        off, behind = _runs_off(documents, unread), set[str]()
        for case in self._cases:
            own = _counting_runs(case)
            if own and not any(str(run) in off for run in own) and _is_decided(case):
                behind |= {str(run) for run in case.runs if run not in own}
        return behind

    def note_outcomes(
        self, documents: Sequence[Document], unread: Collection[str] = ()
    ) -> list[CaseOutcome]:
        """Return what each case's own runs came to, where there is something to say; solved cases are noted."""
        off = _runs_off(documents, unread)
        outcomes: list[CaseOutcome] = []
        for case in self._cases:
            own = _counting_runs(case)
            if not own:
                continue
            if any(str(run) in off for run in own):
                if _only_claim_off(case, own, documents):
                    outcomes.append(ExperimentDecides(case.number))
            elif _is_decided(case):
                outcomes.append(_note_solved(case, own))
            else:
                outcomes.append(ClaimChanged(case.number))
        return outcomes


def note_live_outcome(root: Path, folder: Path, document: Document) -> SolvedByHand | None:
    """Return, and note, that nothing is off in what a student did by hand in a case's live lab; else None."""
    number = document.get("case")
    if not isinstance(number, int) or document["findings"]:
        return None
    lab = load_lab(root, document["lab"])
    predict = lab.case(number).predict
    value = document["measured"].get(predict.value)
    if not isinstance(value, int | float):
        return None
    asked = measured_by(predict)
    entry = f"{SOLVED}, by hand in {folder.name}: {value * asked.scale:.4g} {asked.unit}".rstrip()
    book = LabBook(folder.parent, lab)
    if book.exists and entry not in book.notes(number).of("Outcome"):
        book.add(number, "Outcome", entry)
    return SolvedByHand(number, entry)


def _only_claim_off(case: _CheckedCase, own: Sequence[Path], documents: Sequence[Document]) -> bool:
    """Return whether the deciding experiment was made, and only the claim beside it is off."""
    pitfall = case.lab.case(case.number)
    findings = {
        finding["id"]
        for document in documents
        if document["run"] in map(str, own)
        for finding in document["findings"]
    }
    result = read_result(own[-1], case.lab)
    return (
        pitfall.settled_by is not None
        and result is not None
        and findings == {pitfall.finding}
        and pitfall.settled_by in changes_of(case.lab, result)
    )


def _note_solved(case: _CheckedCase, own: Sequence[Path]) -> CaseSolved:
    pitfall = case.lab.case(case.number)
    before, after = _first_try(case), read_result(own[-1], case.lab)
    entry = SOLVED
    if before and after:
        values = [result.value(pitfall.predict.value) for result in (before, after)]
        entry += _before_and_now(measured_by(pitfall.predict), values)
    notes = case.book.notes(case.number)
    if entry not in notes.of("Outcome"):
        case.book.add(case.number, "Outcome", entry)
    return CaseSolved(
        lab=case.lab.name,
        case=case.number,
        run=own[-1].name if len(own) == 1 else None,
        entry=entry,
        not_compared=after.not_comparable_because if after and after.model_bps else None,
        moves_first_try=case.number in first_try_cases(case.lab),
        diagnosed=notes.diagnosis is not None,
    )


def _before_and_now(asked: Quantity, values: Sequence[float | None]) -> str:
    """Return the change of the measured value in words; nothing where a run lacks it."""
    texts = [f"{value * asked.scale:.4g}" for value in values if value is not None]
    if len(texts) < len(values):
        return ""
    first, last = texts
    name, unit = asked.name, "" if asked.unit in asked.name else asked.unit
    if first == last:
        return (
            f": {name} {first} {unit}".rstrip()
            + ", as before. The run measured the same, but is judged differently"
        )
    return f": {name} {first} {unit} before, {last} {unit} now".replace("  ", " ").replace(
        " ,", ","
    )


def _runs_off(documents: Sequence[Document], unread: Collection[str]) -> set[str]:
    """The runs in which something is off, alone or taken together, and those that can't be read."""
    return {*unread} | {
        run
        for document in documents
        if document["findings"]
        for run in (document["run"], *document.get("runs", []))
    }


def _case_of(root: Path, run: Path) -> tuple[Lab, int] | None:
    """Return the lab and the case that a run is of; None for other runs, and for those that can't be read."""
    try:
        plan = read_object(run / PLAN)
        lab, number = load_lab(root, str(plan["lab"])), plan.get("case")
        if not isinstance(number, int):
            return None
        lab.case(number)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, UserError):
        return None
    return lab, number


def _counting_runs(case: _CheckedCase) -> list[Path]:
    """The student's own runs that count: the last one; of a set of runs all."""
    own = [run for run in case.runs if _is_own(case, run)]
    if _is_whole_set(case) or not own:
        return own
    return [max(own, key=lambda run: (run / DONE).stat().st_mtime_ns)]


def _is_own(case: _CheckedCase, run: Path) -> bool:
    """Return whether it is a run with changes of the student's own: neither the first try nor the shown one."""
    result = read_result(run, case.lab)
    return (
        result is not None
        and result.stage is None
        and (bool(changes_of(case.lab, result)) or bool(result.edited) or _is_whole_set(case))
    )


def _is_whole_set(case: _CheckedCase) -> bool:
    """A mistake in a set of runs is fixed by which runs there are, not by a setting."""
    return case.lab.case(case.number).trials is not None and len(case.runs) > 1


def _is_decided(case: _CheckedCase) -> bool:
    """Return whether the deciding experiment was made, where the case asks for one."""
    wanted = case.lab.case(case.number).settled_by
    results = (read_result(run, case.lab) for run in _all_runs(case))
    return wanted is None or any(
        result is not None and result.stage is None and wanted in changes_of(case.lab, result)
        for result in results
    )


def _all_runs(case: _CheckedCase) -> list[Path]:
    """All runs of the case in its folder, those among them that aren't being checked, too."""
    return sorted(case.runs[0].parent.glob(f"case-{case.number:02d}-trial-*"))


def _first_try(case: _CheckedCase) -> Result | None:
    """The case's run without changes, with the same seed, from the same folder."""
    seeds = {result.seed for run in case.runs if (result := read_result(run, case.lab))}
    for run in _all_runs(case):
        result = read_result(run, case.lab)
        if result and result.seed in seeds and not (changes_of(case.lab, result) or result.edited):
            return result
    return None
