"""Where a student is, by their lab books; and their own first try of a lab, which comes out otherwise with each case solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.paths import is_release
from measuretwice.book.lab_book import LabBook, Notes
from measuretwice.execute.batch import Batch
from measuretwice.execute.job import Job
from measuretwice.execute.record import duration_for_s
from measuretwice.lab import (
    UNSET,
    Lab,
    TryPlan,
    Value,
    after_cases,
    first_try_of,
    load_lab,
    plan_try,
    published_labs,
)
from measuretwice.lab.schema.cases import FirstTry, Pitfall, Stage
from measuretwice.runs.first_try_history import (
    Outcome,
    Try,
    outcome_of,
    read_tries,
    so_far,
    tries_folder,
    with_try,
    write_tries,
)
from measuretwice.runs.result import Result

# What is said of a setting that trials have different values of.
EACH = "each trial's own"
# Of more trials than this that aren't in a row only the number is said.
MOST_NUMBERS = 6


@dataclass(frozen=True)
class CaseProgress:
    """What the lab book has of a case. `runs` and `hints` are counts, `minutes` what the case takes."""

    case: int
    symptom: str
    minutes: int
    predicted: str | None
    runs: int
    hints: int
    diagnosis: str | None
    shown: bool
    done: bool

    @property
    def step(self) -> str:
        """The case's progress in a word; empty where it isn't begun."""
        if self.done:
            return "solved"
        if self.shown:
            return "shown"
        if self.diagnosis:
            return "diagnosed"
        return "run" if self.runs else ""


@dataclass(frozen=True)
class LabProgress:
    """A lab's cases, the minutes that are left, and its first try in words. `book` is None where none is begun."""

    lab: str
    book: Path | None
    cases: list[CaseProgress]
    minutes_left: int
    first_try: str

    @property
    def solved(self) -> int:
        return sum(case.done for case in self.cases)

    def to_json(self) -> dict[str, Any]:
        """Return it as `./lab progress --json` prints it."""
        return {**asdict(self), "book": str(self.book) if self.book else None}


def read_progress(root: Path, lab_name: str | None, runs: Path) -> list[LabProgress]:
    """Return a lab's progress, or that of all labs with cases. UserError for an unknown lab, or a book that can't be read."""
    labs = [load_lab(root, lab_name)] if lab_name else list(published_labs(root).values())
    return [_of_lab(lab, runs) for lab in labs if lab.file.pitfalls]


def _of_lab(lab: Lab, runs: Path) -> LabProgress:
    book = LabBook(runs / lab.name, lab)
    notes = book.all_notes()
    cases = [
        _of_case(number, pitfall, notes.get(number, Notes(number)))
        for number, pitfall in enumerate(lab.file.pitfalls, start=1)
    ]
    return LabProgress(
        lab=lab.name,
        book=book.path if book.exists else None,
        cases=cases,
        minutes_left=sum(case.minutes for case in cases if not case.done),
        first_try=try_so_far(lab, runs, book),
    )


def _of_case(number: int, pitfall: Pitfall, notes: Notes) -> CaseProgress:
    return CaseProgress(
        case=number,
        symptom=pitfall.symptom,
        minutes=pitfall.minutes,
        predicted=notes.prediction,
        runs=len(notes.of("Run")),
        hints=notes.hints,
        diagnosis=notes.diagnosis,
        shown=notes.shown,
        done=notes.fixed,
    )


@dataclass(frozen=True)
class OpenedTry:
    """The first try as it stands: its plan by the cases that are solved, its seed, and the states before.

    `folder` is where its runs are.
    """

    lab: Lab
    plan: TryPlan
    seed: int
    book: LabBook
    book_is_new: bool
    folder: Path
    tries: list[Try]

    @property
    def about(self) -> FirstTry:
        return first_try_of(self.lab)

    @property
    def own_tries(self) -> list[Try]:
        """The states with this seed."""
        return [own_try for own_try in self.tries if own_try.seed == self.seed]

    @property
    def predicted(self) -> str:
        """The prediction of the first state that has one; empty where none has."""
        return next((own_try.predicted for own_try in self.own_tries if own_try.predicted), "")

    @property
    def next_case(self) -> int | None:
        """The first case that isn't solved; None where all are."""
        done = opened_cases(self.book)
        cases = range(1, len(self.lab.file.pitfalls) + 1)
        return next((number for number in cases if number not in done), None)

    def jobs(self, batch: Batch) -> list[Job]:
        """Return the trials to run, each with as many seeds as the plan repeats it."""
        jobs = []
        for trial in self.plan.trials:
            changes: dict[str, Value] = dict(self.plan.changes)
            if self.plan.losses:
                changes["duration_s"] = duration_for_s(batch.lab, trial, self.plan.losses)
            jobs += [
                batch.job(trial, seed=self.seed + n, changes=changes)
                for n in range(self.plan.repeat)
            ]
        return jobs

    def note_prediction(self, words: str) -> None:
        """Note in the book what is predicted, before anything is run: so a run that is broken off loses none."""
        if words:
            self.book.add_first_try("Prediction", words)

    def note_results(
        self, root: Path | None, results: Sequence[Result], predicted: str
    ) -> StartedTry:
        """Keep what the runs came to, in the book and beside the runs; return it.

        Where the kit in `root` has the recorded steps, the figure with the student's marks is written, too; a page draws none.
        """
        came = outcome_of(self.lab, self.plan.shown, list(results))
        names = tuple(result.run_dir.name for result in results)
        this = Try(self.plan.cases, self.seed, names, came.brief, came.supports, predicted)
        state = replace(self, tries=with_try(self.tries, this))
        write_tries(self.folder, state.tries)
        self.book.add_first_try("Run", f"{this.after}: {came.brief}")
        figure = _write_figure(root, state) if root else None
        return StartedTry(state, came, list(results), figure)


@dataclass(frozen=True)
class StartedTry:
    """What the first try came to. `figure` is the student's own, None where the kit can't draw it."""

    state: OpenedTry
    came: Outcome
    results: list[Result]
    figure: Path | None

    @property
    def lines(self) -> list[str]:
        """Return it as a page has it, after the claim: what solved cases changed, what came of it, and all states so far."""
        state, own = self.state, self.state.own_tries
        lines = [*changes_by_cases(state.lab, state.plan).splitlines()]
        lines += [f"{line}." for line in self.came.lines]
        lines.append(f"{self.came.counted} {self.came.judged}")
        if state.predicted and not state.plan.cases:
            lines.append(f"You predicted: {state.predicted.rstrip('.')}.")
        lines += [f"{so_far(own)}."] if len(own) > 1 else []
        return [*lines, state.about.found] if state.plan.last else lines

    def to_json(self) -> dict[str, Any]:
        """Return it as `./lab start --json` prints it. Settings aren't in it: they tell causes."""
        state, own = self.state, self.state.own_tries
        return {
            "lab": state.lab.name,
            "claim": state.about.claim,
            "cases": list(state.plan.cases),
            "seed": own[-1].seed if own else None,
            "counted": self.came.counted,
            "brief": self.came.brief,
            "supports": self.came.supports,
            "last": state.plan.last,
            "so_far": [
                {
                    "after": own_try.after,
                    "cases": list(own_try.cases),
                    "brief": own_try.brief,
                    "predicted": own_try.predicted,
                }
                for own_try in own
            ],
            "runs": [
                {
                    "trial": result.trial,
                    "run": str(result.run_dir),
                    "value": result.value(state.plan.shown.value),
                }
                for result in self.results
            ],
            "figure": str(self.figure) if self.figure else None,
            "next_case": state.next_case,
        }


def lab_with_first_try(root: Path, name: str | None) -> Lab:
    """Return the named lab, or the first that has a first try. UserError where it has none, or no lab has."""
    if name:
        lab = load_lab(root, name)
        first_try_of(lab)
        return lab
    for lab in published_labs(root).values():
        if lab.file.first_try:
            return lab
    raise UserError("no lab has a first try; ./lab list has the labs")


def open_try(lab: Lab, out: Path, seed: int | None) -> OpenedTry:
    """Return the first try as it stands, with the seed that is given or the lab book's; a book that isn't there is begun.

    UserError where the book, or the states before, can't be read.
    """
    folder = tries_folder(out, lab)
    tries = read_tries(folder)
    book = LabBook(out / lab.name, lab)
    is_new = not book.exists
    books_seed = book.open(seed)
    plan = plan_try(lab, opened_cases(book))
    return OpenedTry(lab, plan, books_seed if seed is None else seed, book, is_new, folder, tries)


def opened_cases(book: LabBook) -> set[int]:
    """Return the cases that are solved, or whose fixed run was asked for: no secret is left in them."""
    return {number for number, notes in book.all_notes().items() if notes.fixed or notes.shown}


def try_so_far(lab: Lab, out: Path, book: LabBook) -> str:
    """Return the first try and what became of it, in a line; what to type where there is none yet, or more to see."""
    if not lab.file.first_try:
        return ""
    tries = read_tries(tries_folder(out, lab))
    if not tries:
        return f"No first try yet: ./lab start {lab.name}"
    plan = plan_try(lab, opened_cases(book))
    is_tried = any(plan.cases == state.cases for state in tries)
    more = "" if is_tried else f"\n./lab start {lab.name} shows what your last cases did to it."
    return so_far(tries) + more


def changes_by_cases(lab: Lab, plan: TryPlan) -> str:
    """Return what solved cases change in the first try, in words: settings, which are no secret then."""
    first = plan_try(lab, ())
    parts = []
    for name in dict.fromkeys([*first.changes, *plan.changes]):
        before, now = _value_in(lab, first, name), _value_in(lab, plan, name)
        if now == UNSET and before != now:
            parts.append(f"{name}, which was {before}, no longer set{_by_setting(lab, plan, name)}")
        elif before != now:
            was = "" if before == UNSET else f" instead of {before}"
            parts.append(f"{name} {now}{was}{_by_setting(lab, plan, name)}")
    if plan.losses != first.losses and plan.losses:
        parts.append(f"each trial for {plan.losses} losses")
    if plan.repeat != first.repeat:
        by = _by_case(lab, plan, lambda stage: stage.repeat)
        parts.append(f"each trial {plan.repeat} times instead of {first.repeat}{by}")
    if plan.shown.label != first.shown.label:
        parts.append(f"what counts is {plan.shown.label} instead of {first.shown.label}")
    cases = after_cases(plan.cases).removeprefix("after ")
    sentence = [f"With what you found in {cases}: {'; '.join(parts)}."] if parts else []
    return "\n".join([*sentence, *_other_trials(lab, first, plan)])


def _by_setting(lab: Lab, plan: TryPlan, name: str) -> str:
    return _by_case(lab, plan, lambda stage: stage.set.get(name))


def _by_case(lab: Lab, plan: TryPlan, part: Callable[[Stage], object]) -> str:
    """Return which of the solved cases corrects a part of its settings, where one does."""
    for number in plan.cases:
        pitfall = lab.case(number)
        if part(pitfall.broken) != part(pitfall.fixed):
            return f" (case {number})"
    return ""


def _other_trials(lab: Lab, first: TryPlan, plan: TryPlan) -> list[str]:
    """Return which trials are run instead, and in what they differ."""
    if plan.trials == first.trials:
        return []
    settings = []
    for name in lab.defaults():
        before, now = _value_in(lab, first, name), _value_in(lab, plan, name)
        is_told = name in {**first.changes, **plan.changes} or EACH in (before, now)
        if before != now and not is_told:
            settings.append(f"{name} {now} instead of {before}")
    now, before = _trials(plan.trials), _trials(first.trials)
    # Two long lists of as many trials have the same words.
    which = "as many as before" if now == before else f"{now} instead of {before}"
    return [f"The trials are others, too: {'; '.join([which, *settings])}."]


def _trials(numbers: Sequence[int]) -> str:
    """Trials as one names them, such as 1-4 or 3, 4; of a long list only how many there are."""
    if list(numbers) == [*range(numbers[0], numbers[-1] + 1)] and len(numbers) > 1:
        return f"{numbers[0]}-{numbers[-1]}"
    if len(numbers) > MOST_NUMBERS:
        return f"{len(numbers)} of them"
    return ", ".join(map(str, numbers))


def _value_in(lab: Lab, plan: TryPlan, name: str) -> str:
    """Return which value a setting has in a state of the first try, in words where each trial has its own."""
    values = {
        {**lab.defaults(), **lab.trials[trial].set, **plan.changes}.get(name, UNSET)
        for trial in plan.trials
    }
    value = values.pop() if len(values) == 1 else EACH
    return str(value).removeprefix("=")


def _write_figure(root: Path, state: OpenedTry) -> Path | None:
    """Lay the own marks over the recorded steps; a students' release has neither these nor the site's code."""
    if is_release(root):
        return None
    from measuretwice.course.own_figure import own_figure

    return own_figure(root, state.lab, state.folder, state.own_tries, opened_cases(state.book))
