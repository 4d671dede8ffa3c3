"""`lab start`: the first try is one's own, and moves with each case that is solved."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.backends.registry import backend_for
from measuretwice.base.edition import is_release
from measuretwice.base.errors import UserError
from measuretwice.base.signs import without_controls
from measuretwice.book.book import LabBook
from measuretwice.cli import terminal
from measuretwice.cli.cases import ask_person
from measuretwice.cli.over_time import open_in_browser
from measuretwice.cli.run import measure_jobs
from measuretwice.cli.tries import opened_cases
from measuretwice.execute.batch import Batch, open_batch
from measuretwice.execute.dispatch import refuse_jobs
from measuretwice.execute.job import Job, check_writable, finished
from measuretwice.execute.record import duration_for_s
from measuretwice.execute.scheduler import Scheduler
from measuretwice.lab import (
    FirstTry,
    Lab,
    TryPlan,
    Value,
    after_cases,
    first_try_of,
    load_lab,
    plan_try,
    published_labs,
)
from measuretwice.runs.result import Result
from measuretwice.runs.tries import (
    START,
    Outcome,
    Try,
    outcome_of,
    read_tries,
    so_far,
    tries_folder,
    with_try,
    write_tries,
)


def start_command(
    root: Path,
    lab_name: str | None,
    *,
    seed: int | None,
    jobs: int | Scheduler | None,
    out: Path | None,
    fresh: bool,
    open_it: bool,
    as_json: bool,
) -> int:
    """Run the first try as it stands, print what came; return 0, or 1 where a trial failed."""
    lab = load_lab(root, lab_name) if lab_name else _first_lab(root)
    about = first_try_of(lab)
    refuse_jobs(backend_for("virtual"), "virtual", jobs)
    out = (out or terminal.default_out(root)).absolute()
    check_writable(out)
    folder = tries_folder(out, lab)
    tries = read_tries(folder)
    book = LabBook(out / lab.name, lab)
    begins = not book.exists
    books_seed = book.open(seed)
    seed = books_seed if seed is None else seed
    if begins and not as_json:
        print(f"Your lab book: {terminal.relative(book.path)} (seed {books_seed})", file=sys.stderr)
    plan = plan_try(lab, opened_cases(book))
    with backend_for("virtual").opened("virtual", lab, root) as backend:
        work = _jobs(open_batch(root, lab, out / START, backend), plan, seed)
        if fresh:
            for job in work:
                shutil.rmtree(job.folder, ignore_errors=True)
        said = "" if as_json or tries else _ask(about, book, len(finished(work)) < len(work))
        results, failures = measure_jobs(work, jobs, as_json)
    if failures:
        for error in failures:
            print(f"lab: {without_controls(str(error))}", file=sys.stderr)
        return 1
    came = outcome_of(lab, plan.shown, results)
    names = tuple(result.place.name for result in results)
    this = Try(plan.cases, seed, names, came.brief, came.supports, said)
    tries = with_try(tries, this)
    write_tries(folder, tries)
    book.add_first_try("Run", f"{this.after}: {came.brief}")
    own = [known for known in tries if known.seed == seed]
    written = _figure(root, lab, folder, own, book)
    started = _Started(lab, plan, came, own, written, _next_case(lab, book))
    if as_json:
        print(json.dumps(started.document(results), indent=2))
    else:
        started.print(said or _predicted(own))
    if open_it and written:
        open_in_browser(written)
    return 0


def _ask(about: FirstTry, book: LabBook, measures: bool) -> str:
    """The prediction of the first try: as the book has it, or asked for and noted there before anything is run.

    So a run that is broken off loses none.
    """
    if known := book.first_try().prediction:
        return known
    said = (
        ask_person(f"{about.claim}.\n{about.ask} Your prediction (Enter skips): ")
        if measures
        else ""
    )
    if said:
        book.add_first_try("Prediction", said)
    return said


def _mended(lab: Lab, plan: TryPlan) -> str:
    """What solved cases change in the first try: settings, which are no secret then."""
    first = plan_try(lab, ())
    parts = []
    for name in dict.fromkeys([*first.changes, *plan.changes]):
        before, now = first.changes.get(name), plan.changes.get(name)
        if before != now:
            parts.append(f"{name} {'as the trial has it' if now is None else now}")
    if plan.losses != first.losses and plan.losses:
        parts.append(f"each trial for {plan.losses} losses")
    if plan.repeat != first.repeat:
        parts.append(f"each trial {plan.repeat} times")
    if plan.trials != first.trials:
        parts.append(f"{len(plan.trials)} trials instead of {len(first.trials)}")
    return f"With what you found in {_cases(plan.cases)}: {', '.join(parts)}." if parts else ""


def _cases(numbers: Sequence[int]) -> str:
    return after_cases(numbers).removeprefix("after ")


def _figure(root: Path, lab: Lab, folder: Path, own: Sequence[Try], book: LabBook) -> Path | None:
    """Lay the own marks over the recorded steps; a students' release has neither these nor the site's code."""
    if is_release(root):
        return None
    from measuretwice.site.own_figure import own_figure

    return own_figure(root, lab, folder, own, opened_cases(book))


@dataclass(frozen=True)
class _Started:
    """What is said of the first try as it stands."""

    lab: Lab
    plan: TryPlan
    came: Outcome
    tries: Sequence[Try]
    figure: Path | None
    next_case: int | None

    def print(self, predicted: str) -> None:
        about = first_try_of(self.lab)
        print(f"The claim: {about.claim}.")
        if mended := _mended(self.lab, self.plan):
            print(mended)
        for line in self.came.lines:
            print(f"  {line}")
        print(self.came.counted, self.came.judged)
        if predicted and not self.plan.cases:
            print(f"You predicted: {predicted}.")
        if len(self.tries) > 1:
            print(f"\n{so_far(self.tries)}")
        if self.plan.last:
            print(f"\n{about.found}")
        if self.figure:
            print(
                f"\nYour marks over the recorded figure: {terminal.relative(self.figure)} (--open shows it)"
            )
        print(f"\n{self._next()}")

    def _next(self) -> str:
        if self.next_case is None:
            return (
                f"All cases are solved. ./lab report runs/{self.lab.name} writes what you hand in."
            )
        symptom = self.lab.case(self.next_case).symptom
        before = "" if self.plan.last else "The cases ask what is behind it. "
        return (
            f"{before}Next: ./lab run {self.lab.name} --case {self.next_case}   ({symptom})\n"
            f"When cases are solved, ./lab start {self.lab.name} repeats the first try with what you found."
        )

    def document(self, results: Sequence[Result]) -> dict[str, Any]:
        """All of it for programs. Settings aren't in it: they tell causes."""
        return {
            "lab": self.lab.name,
            "claim": first_try_of(self.lab).claim,
            "cases": list(self.plan.cases),
            "seed": self.tries[-1].seed if self.tries else None,
            "counted": self.came.counted,
            "brief": self.came.brief,
            "supports": self.came.supports,
            "last": self.plan.last,
            "so_far": [
                {
                    "after": known.after,
                    "cases": list(known.cases),
                    "brief": known.brief,
                    "predicted": known.predicted,
                }
                for known in self.tries
            ],
            "runs": [
                {
                    "trial": result.trial,
                    "run": str(result.place),
                    "value": result.value(self.plan.shown.value),
                }
                for result in results
            ],
            "figure": str(self.figure) if self.figure else None,
            "next_case": self.next_case,
        }


def _first_lab(root: Path) -> Lab:
    for lab in published_labs(root).values():
        if lab.file.first_try:
            return lab
    raise UserError("no lab has a first try; ./lab list has the labs")


def _jobs(batch: Batch, plan: TryPlan, seed: int) -> list[Job]:
    jobs = []
    for trial in plan.trials:
        changes: dict[str, Value] = dict(plan.changes)
        if plan.losses:
            changes["duration_s"] = duration_for_s(batch.lab, trial, plan.losses)
        jobs += [batch.job(trial, seed=seed + n, changes=changes) for n in range(plan.repeat)]
    return jobs


def _next_case(lab: Lab, book: LabBook) -> int | None:
    done = opened_cases(book)
    return next((n for n in range(1, len(lab.file.pitfalls) + 1) if n not in done), None)


def _predicted(tries: Sequence[Try]) -> str:
    return next((known.predicted for known in tries if known.predicted), "")
