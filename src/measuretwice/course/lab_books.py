"""The lab books of cases whose runs are checked: hints, what the student's own runs came to, diagnoses."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.lab_book import NONE, LabBook, is_in_words
from measuretwice.book.prediction import measured_by, number_of
from measuretwice.checks import conclusion, tries_of
from measuretwice.course.case import change_in_words, changes_of, raw_files_of
from measuretwice.course.findings import Document
from measuretwice.lab import (
    Lab,
    SettingToChange,
    first_try_cases,
    load_lab,
    select_trials,
    settings_to_change,
)
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.live.session import FACTS
from measuretwice.runs.folder import DONE, PLAN
from measuretwice.runs.result import Result, read_result

SOLVED = "nothing is off any more"


@dataclass(frozen=True)
class CaseSolved:
    """A case is solved: what the lab book has of it, and the run that solved it, None where it was a set of runs.

    `not_compared` is why the run can't be compared with the model. `moves_first_try` says whether the lab's first try
    comes out otherwise now, `diagnosed` whether the book has a diagnosis already. `runs` is what a shell finds the case's
    runs by.
    """

    lab: str
    case: int
    run: str | None
    entry: str
    not_compared: str | None
    moves_first_try: bool
    diagnosed: bool
    runs: str


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
class OnlyHidden:
    """Nothing is off any more, but only because of `settings` by which the mistake doesn't show; it is still there."""

    case: int
    settings: tuple[str, ...]


@dataclass(frozen=True)
class ExperimentDecides:
    """The experiment that decides was made, and only the old claim beside it is off."""

    case: int


@dataclass(frozen=True)
class TrialsMissing:
    """In these runs nothing is off, but the case is about more trials than they are of; `runs` is what to check."""

    case: int
    missing: tuple[int, ...]
    runs: str


@dataclass(frozen=True)
class CaseUnsolved:
    """A case in whose runs something is off still.

    `runs` are what `./lab check` takes, a live lab's folder (`is_live`) or runs. `diagnosis` is the student's own, `is_known`
    whether its cause is no secret any more: then `settings` are those to change, none where it isn't a setting but which
    runs there are. `names_cause`: the diagnosis has a word of the cause.
    """

    lab: str
    case: int
    runs: str
    is_live: bool
    diagnosis: str | None
    is_known: bool
    names_cause: bool
    settings: tuple[SettingToChange, ...]


CaseOutcome = (
    CaseSolved | SolvedByHand | ClaimChanged | OnlyHidden | ExperimentDecides | TrialsMissing
)


@dataclass(frozen=True)
class CheckedCase:
    """A case that runs being checked are of, its book, and these runs.

    UserError, of whatever reads results, where one of them can't be read.
    """

    lab: Lab
    number: int
    book: LabBook
    runs: tuple[Path, ...]

    @property
    def pitfall(self) -> Pitfall:
        return self.lab.case(self.number)

    @property
    def pattern(self) -> str:
        """Return what a shell finds all of the case's runs by."""
        return f"{os.path.relpath(self.runs[0].parent)}/case-{self.number:02d}-*"

    @cached_property
    def all_results(self) -> list[Result]:
        """The finished runs in the case's folder, those among them that aren't being checked, too; none that was
        shown fixed. The oldest comes first."""
        others = self.runs[0].parent.glob(f"case-{self.number:02d}-trial-*")
        results = (self._read(run) for run in sorted({*self.runs, *others}))
        return sorted(
            (result for result in results if result and result.stage is None), key=_finished_ns
        )

    def _read(self, run: Path) -> Result | None:
        try:
            return read_result(run, self.lab)
        except UserError:
            # One that nobody asked about keeps nobody from an answer about others.
            if run in self.runs:
                raise
            return None

    @cached_property
    def first_tries(self) -> list[Result]:
        return [result for result in self.all_results if not self.is_changed(result)]

    @cached_property
    def counting(self) -> list[Result]:
        """The student's own runs that count: the newest one; of a case of several trials its whole try, which is all runs
        in which the same was changed."""
        checked = [result for result in self.all_results if result.run_dir in self.runs]
        if self.pitfall.trials is None:
            return [result for result in checked if self.is_changed(result)][-1:]
        # How often each is run may be the fix: then the runs without a change are a try as well.
        alike = [result for result in checked if result.edited == checked[-1].edited]
        tries = tries_of(self.lab, [result.member for result in alike])
        newest = next((places for places in tries if len(alike) - 1 in places), ())
        return [alike[place] for place in newest]

    @property
    def counting_runs(self) -> set[str]:
        """The folders of these."""
        return {str(result.run_dir) for result in self.counting}

    @property
    def missing(self) -> tuple[int, ...]:
        """The case's trials of which the try that counts has no run."""
        if self.pitfall.trials is None:
            return ()
        measured = {result.trial for result in self.counting}
        wanted = select_trials(self.lab, self.pitfall.trials)
        return tuple(trial for trial in wanted if trial not in measured)

    @property
    def is_decided(self) -> bool:
        """Return whether the deciding experiment was made, where the case asks for one."""
        wanted = self.pitfall.settled_by
        return wanted is None or any(
            wanted in changes_of(self.lab, result) for result in self.all_results
        )

    @property
    def hidden_by(self) -> tuple[str, ...]:
        """Return the settings that the student changed, where by all of them together the mistake only doesn't show."""
        runs = self.counting
        changed = {name for run in runs for name in changes_of(self.lab, run)}
        is_hidden = changed and changed <= {*self.pitfall.hides} and not any(r.edited for r in runs)
        return tuple(sorted(changed)) if is_hidden else ()

    def is_changed(self, result: Result) -> bool:
        """Return whether the student changed something in a run."""
        return bool(changes_of(self.lab, result)) or bool(result.edited)


def _finished_ns(result: Result) -> int:
    return (result.run_dir / DONE).stat().st_mtime_ns


class CaseBooks:
    """The lab books of the cases that some runs are of, and some live labs; cases without a book are left out."""

    def __init__(self, root: Path, runs: Sequence[Path], live: Sequence[Path] = ()) -> None:
        self._cases = _cases_of(root, runs, PLAN)
        self._live = _cases_of(root, live, FACTS)

    def leave_out(self, cases: Collection[tuple[Path, int]]) -> None:
        """Leave out cases, each by its book's path and its number: what their runs come to is said elsewhere."""
        self._cases = [case for case in self._cases if (case.book.path, case.number) not in cases]

    def diagnosis_wanted(self, hint: int | None) -> CheckedCase | None:
        """Return the case of which a diagnosis is to be noted before this hint; None where none is.

        UserError for a hint on several cases at once.
        """
        if hint is None or not self._cases:
            return None
        case = self._cases[0]
        if len(self._cases) > 1:
            raise UserError(
                f"--hint helps with one case at a time, and these runs are of {len(self._cases)}: "
                f"./lab check {case.pattern} --hint {hint}"
            )
        notes = case.book.notes(case.number)
        is_told = notes.fixed or notes.hints == 3
        return case if hint == 3 and not is_told and notes.diagnosis is None else None

    def note_hint(self, hint: int | None, diagnosis: str = "") -> None:
        """Note a hint that is taken, and before the last one the diagnosis, where that is wanted.

        UserError for a hint on several cases at once.
        """
        if wanted := self.diagnosis_wanted(hint):
            self.note_diagnosis(wanted.number, diagnosis or NONE)
        for case in self._cases if hint else []:
            notes = case.book.notes(case.number)
            if not notes.fixed and hint is not None and hint > notes.hints:
                case.book.add(case.number, "Hint", str(hint))

    def note_known(self, words: str) -> int | None:
        """Note what a student knows so far of the one case that these runs are of, and return it; None where they are of
        none that is begun, or of several."""
        if len(cases := {(case.book.path, case.number): case for case in self._all}) != 1:
            return None
        [case] = cases.values()
        if words not in case.book.notes(case.number).known_lines:
            case.book.add(case.number, "Known", words)
        return case.number

    def note_diagnosis(self, number: int, diagnosis: str) -> None:
        """Note what a student says that a case's mistake is."""
        for case in {case.book.path: case for case in self._all if case.number == number}.values():
            if " ".join(diagnosis.split()) != case.book.notes(number).diagnosis:
                case.book.add(number, "Diagnosis", diagnosis)

    def is_enough(self, number: int, diagnosis: str) -> bool:
        """Return whether a diagnosis says so much that it is answered: in some words, or in one of the cause's own."""
        return is_in_words(diagnosis) or any(
            case.lab.case(number).is_named_in(diagnosis)
            for case in self._all
            if case.number == number
        )

    @property
    def _all(self) -> list[CheckedCase]:
        return [*self._cases, *self._live]

    def only_case(self) -> int:
        """Return the case that a diagnosis is of; UserError where the runs are of none that has a book, or of several."""
        numbers = {(case.book.path, case.number) for case in self._all}
        if len(numbers) != 1:
            why = f"of {len(numbers)}" if numbers else "of none that you have begun"
            raise UserError(
                f"--diagnosis is of one case, and these runs are {why}: ./lab check runs/LAB/case-NN-* --diagnosis '...'"
            )
        return self._all[0].number

    def unsolved(self, documents: Sequence[Document]) -> list[CaseUnsolved]:
        """Return the cases in whose runs, or live labs, something is off, of those documents that count; none that an
        answer solves."""
        off = _runs_off(documents, ())
        return [
            _unsolved(case)
            for case in self._all
            if any(str(run) in off for run in case.runs)
            and not case.lab.case(case.number).judgement
        ]

    def superseded(self, documents: Sequence[Document], unread: Collection[str] = ()) -> set[str]:
        """Return the runs that a solved case leaves behind: what was off in them is what the student has fixed.

        Of runs that are `unread` nobody knows that nothing is off.
        """
        off, behind = _runs_off(documents, unread), set[str]()
        for case in self._cases:
            own = case.counting_runs
            is_solved = case.is_decided and not (case.missing or case.hidden_by)
            if own and not own & off and is_solved:
                behind |= {str(run) for run in case.runs} - own
        return behind

    def note_outcomes(
        self, documents: Sequence[Document], unread: Collection[str] = ()
    ) -> list[CaseOutcome]:
        """Return what each case's own runs came to, where there is something to say; solved cases are noted."""
        off = _runs_off(documents, unread)
        outcomes: list[CaseOutcome] = []
        for case in self._cases:
            own = case.counting_runs
            if not own:
                continue
            if own & off:
                if _only_claim_off(case, documents):
                    outcomes.append(ExperimentDecides(case.number))
            elif case.missing:
                outcomes.append(TrialsMissing(case.number, case.missing, case.pattern))
            elif hidden_by := case.hidden_by:
                outcomes.append(OnlyHidden(case.number, hidden_by))
            elif case.is_decided:
                outcomes.append(_note_solved(case))
            else:
                outcomes.append(ClaimChanged(case.number))
        return outcomes


def without(left: Collection[str], documents: Sequence[Document]) -> list[Document]:
    """Return the documents, by the names of runs or of what is taken together, that aren't about those `left` alone."""
    return [
        document
        for document in documents
        if document["run"] not in left and not {*document.get("runs", [document["run"]])} <= {*left}
    ]


def _unsolved(case: CheckedCase) -> CaseUnsolved:
    lab, number, book = case.lab, case.number, case.book
    is_known = book.knows_cause(number)
    is_live = (case.runs[0] / FACTS).is_file()
    return CaseUnsolved(
        lab.name,
        number,
        os.path.relpath(case.runs[0]) if is_live else case.pattern,
        is_live,
        book.notes(number).diagnosis,
        is_known,
        book.names_cause(number),
        tuple(settings_to_change(lab, number)) if is_known else (),
    )


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


def _only_claim_off(case: CheckedCase, documents: Sequence[Document]) -> bool:
    """Return whether the deciding experiment was made, and only the claim beside it is off."""
    own = case.counting_runs
    findings = {
        finding["id"]
        for document in documents
        if document["run"] in own
        for finding in document["findings"]
    }
    wanted = case.pitfall.settled_by
    return (
        wanted is not None
        and findings == {case.pitfall.finding}
        and wanted in changes_of(case.lab, case.counting[-1])
    )


def _note_solved(case: CheckedCase) -> CaseSolved:
    last = case.counting[-1]
    entry = f"{SOLVED}{_what_changed(case)}"
    notes = case.book.notes(case.number)
    if not notes.has_outcome_of_all_runs and entry not in notes.of("Outcome"):
        case.book.add(case.number, "Outcome", entry)
    return CaseSolved(
        lab=case.lab.name,
        case=case.number,
        run=last.run_dir.name if len(case.counting) == 1 else None,
        entry=entry,
        not_compared=last.not_comparable_because if last.model_bps else None,
        moves_first_try=case.number in first_try_cases(case.lab),
        diagnosed=notes.diagnosis is not None,
        runs=case.pattern,
    )


def _what_changed(case: CheckedCase) -> str:
    """Return what became of the quantity that the case is about, the same trials before and now, in words; nothing where
    the runs lack it."""
    asked, rejudged = case.pitfall.predict, len(raw_files_of(case.counting))
    quantity = measured_by(asked)
    runs: dict[int, tuple[list[Result], list[Result]]] = {}
    for trial in sorted({result.trial for result in case.counting}):
        now = [result for result in case.counting if result.trial == trial]
        before = [result for result in case.first_tries if result.trial == trial]
        if before and before[0].run_dir in [result.run_dir for result in now]:
            # The same runs, and more of them.
            before = before[:1]
        seeds = {result.seed for result in now}
        runs[trial] = ([result for result in before if result.seed in seeds], now)
    if asked.is_of_several:
        # One number says what all of them came to.
        both = [[run for of_trial in runs.values() for run in of_trial[n]] for n in (0, 1)]
        numbers = [number for part in both if (number := number_of(asked, part)) is not None]
        together = {0: (numbers[:1], numbers[1:])}
        return (
            change_in_words(replace(quantity, scale=1.0), together, rejudged) if numbers[1:] else ""
        )
    values: dict[int, tuple[list[float], list[float]]] = {}
    for trial, (before, now) in runs.items():
        read = [result.value(asked.value) for result in (*before, *now)]
        numbers = [value for value in read if value is not None]
        if not before or len(numbers) < len(read):
            return ""
        values[trial] = (numbers[: len(before)], numbers[len(before) :])
    members = [result.member for result in case.counting]
    of_each = {trial: now for trial, (_, now) in values.items()}
    concluded = conclusion(case.lab, members, asked.value, quantity.name, of_each)
    return change_in_words(quantity, values, rejudged) + (f". {concluded}" if concluded else "")


def _runs_off(documents: Sequence[Document], unread: Collection[str]) -> set[str]:
    """The runs in which something is off, alone or taken together, and those that can't be read."""
    return {*unread} | {
        run
        for document in documents
        if document["findings"]
        for run in (document["run"], *document.get("runs", []))
    }


def _cases_of(root: Path, runs: Sequence[Path], plan: str) -> list[CheckedCase]:
    """The cases that have a book, with their runs, whose plan stands in the file of this name."""
    cases: dict[tuple[Path, int], tuple[Lab, list[Path]]] = {}
    for run in runs:
        lab_and_case = _case_of(root, run / plan)
        if lab_and_case is not None:
            lab, number = lab_and_case
            cases.setdefault((run.parent, number), (lab, []))[1].append(run)
    return [
        CheckedCase(lab, number, book, tuple(of_case))
        for (folder, number), (lab, of_case) in cases.items()
        if (book := LabBook(folder, lab)).exists
    ]


def _case_of(root: Path, path: Path) -> tuple[Lab, int] | None:
    """Return the lab and the case that a plan is of; None for other runs', and where it can't be read."""
    try:
        plan = read_object(path)
        lab, number = load_lab(root, str(plan["lab"])), plan.get("case")
        if not isinstance(number, int):
            return None
        lab.case(number)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, UserError):
        return None
    return lab, number
