"""What a page asks of the kit: which trials a button means, what came of them, checks, files, a folder to hand in.

The functions of the course answer, as they do for a terminal. The page's worker (docs/assets/machine/kit.mjs) calls
`PageApi.ask`: JSON in, JSON out. answers.py has the type of each answer, workshop/page-api.md the list of requests.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from measuretwice.backends.browser import BrowserMachine, given_to_guest, guest_words, packs_of
from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import LabBook
from measuretwice.book.prediction import Answer
from measuretwice.course import wording
from measuretwice.course.case import (
    MOST_RUNS,
    choose_trials,
    earned_settings,
    open_case,
    read_changes,
)
from measuretwice.course.findings import Document, check_live, check_one, check_together
from measuretwice.course.judging import Questions
from measuretwice.course.lab_books import CaseBooks, note_live_outcome, without
from measuretwice.course.progress import open_try
from measuretwice.execute.batch import open_batch
from measuretwice.execute.job import finished
from measuretwice.in_page import answers
from measuretwice.in_page.answers import ArchiveAnswer
from measuretwice.in_page.machine import PagesMachine, Task, TryTask, begin_live, keep_live_files
from measuretwice.in_page.storage import WRITTEN, RunStore, note_written, pack
from measuretwice.lab import KernelFacts, Lab, load_lab, select_trials
from measuretwice.runs.first_try_history import START, read_tries, results_of_try, tries_folder
from measuretwice.runs.result import read_result
from measuretwice.view import words
from measuretwice.view.over_time import read_over_time
from measuretwice.view.source import opened


class PageApi:
    """A reader's runs in `runs`, by the labs in `root`; `facts` are machine.json's of the page's machine."""

    def __init__(self, root: str, runs: str, key: str, facts: str) -> None:
        self._root, self._runs = Path(root), Path(runs)
        machine = BrowserMachine(Path(key), KernelFacts.from_json(json.loads(facts)))
        self._machine = PagesMachine(machine)
        self._task: Task | None = None
        self._store = RunStore()

    @property
    def requests(self) -> dict[str, Callable[..., Mapping[str, Any]]]:
        """The requests that can be made, by name."""
        return {
            "plan": self.plan, "plan_first_try": self.plan_first_try, "dealt": self.dealt, "first_try": self.first_try, "begin": self.begin, "conclude": self.conclude, "finish": self.finish,
            "check": self.check, "listing": self.listing, "judge": self.judge, "show": self.show, "over_time": self.over_time,
            "results": self.results, "archive": self.archive, "note": self.note, "forget": self.forget,
            "live": self.live, "live_files": self.live_files, "live_check": self.live_check,
        }  # fmt: skip

    def ask(self, what: str, request: str) -> str:
        """Answer in JSON: {"answer": ...}, or {"problem": a line that says what to do}.

        Who names a lab may name, by the kinds in WRITTEN, what was written down, opened and answered on its pages: that
        comes into the book first.
        """
        asked = json.loads(request)
        written = {kind: asked.pop(kind, None) or {} for kind in WRITTEN}
        try:
            if "lab" in asked:
                self._open_lab(asked["lab"], written, begin=what == "archive")
            return json.dumps({"answer": self.requests[what](**asked)})
        except UserError as error:
            return json.dumps({"problem": str(error)})

    def _open_lab(self, lab: str, written: dict[str, dict[str, str]], *, begin: bool) -> None:
        loaded = load_lab(self._root, lab)
        folder = self._runs / loaded.name
        self._store.quarantine_unreadable(folder, loaded)
        note_written(loaded, folder, written, begin=begin)

    def note(self, *, lab: str) -> dict[str, Any]:
        """Something was written down: it is in the book already, where there is one. Return nothing."""
        return {}

    # --- running ----------------------------------------------------------------------------------

    def plan(
        self,
        *,
        lab: str,
        trials: str | None = None,
        case: int | None = None,
        show_me: bool = False,
        seed: int | None = None,
        repeat: int | None = None,
        changes: list[str] | None = None,
        predicted: str = "",
    ) -> answers.PlanAnswer:
        """Return the trials of a task, as `./lab run` reads them; the next requests are about these.

        They come seed by seed, so that a task which is broken off has each trial about equally often. UserError where they
        can't be run, here or at all.
        """
        _check_seed(seed)
        _check_repeat(repeat)
        loaded = load_lab(self._root, lab)
        batch = open_batch(self._root, loaded, self._runs, self._machine)
        due = earned_settings(loaded, self._runs, case)
        settings = read_changes(loaded, changes or (), due=due)
        case_run = None
        if case is not None:
            case_run = open_case(
                loaded, case, None, show_me=show_me, changes=settings, out=self._runs, seed=seed
            )
            seed = case_run.seed
        choice = choose_trials(loaded, trials, case_run, repeat=repeat)
        task = self._task = Task(loaded, batch, settings, case_run, choice.again)
        first = 1 if seed is None else seed
        for n in range(choice.repeat):
            for trial in choice.trials:
                task.add(trial, first + n)
        jobs = list(task.jobs.values())
        if problems := self._machine.problems(loaded, [job.plan for job in jobs]):
            raise UserError("; ".join(problems))
        if case_run and len(finished(jobs)) < len(jobs):
            task.predict(predicted)
        return {
            "jobs": [answers.job_to_json(job) for job in jobs],
            "seed": first,
            "dealt": wording.dealt_values(case_run) if case_run else "",
        }

    def plan_first_try(self, *, lab: str, predicted: str = "") -> answers.PlanAnswer:
        """Return the trials of a lab's first try, as `./lab start` reads them; the next requests are about these.

        UserError where they can't be run here.
        """
        loaded = load_lab(self._root, lab)
        opened = open_try(loaded, self._runs, None)
        batch = open_batch(self._root, loaded, self._runs / START, self._machine)
        task = self._task = TryTask(loaded, batch, {}, None, None, predicted, opened=opened)
        task.add_all()
        jobs = list(task.jobs.values())
        if problems := self._machine.problems(loaded, [job.plan for job in jobs]):
            raise UserError("; ".join(problems))
        return {
            "jobs": [answers.job_to_json(job) for job in jobs],
            "seed": opened.seed,
            "dealt": "",
        }

    def dealt(self, *, lab: str, case: int, seed: int | None = None) -> answers.DealtAnswer:
        """Say which values a case's run of the reader's own has, before it is run; a book that isn't there is begun."""
        _check_seed(seed)
        loaded = load_lab(self._root, lab)
        case_run = open_case(
            loaded, case, None, show_me=False, changes={}, out=self._runs, seed=seed
        )
        return {
            "says": wording.dealt_values(case_run) or "Your own run has the recorded run's values."
        }

    def begin(self, *, folder: str) -> answers.GuestAnswer | answers.MadeAnswer:
        """Return what the machine needs for a trial.

        Where a run that is there had the same packets nothing is needed: then the run's folder is made already.
        """
        task = self._begun(folder)
        job = task.job(folder)
        if same := job.same_packets():
            self._run(folder)
            return {
                "files_of_run": self._files_of(job.folder),
                "said": wording.nothing_measured([same.name]),
            }
        task.begin(job)
        return {
            "words": guest_words(task.lab, job.plan),
            "packs": packs_of(task.lab),
            "files": given_to_guest(task.lab, job.plan, self._root),
        }

    def conclude(
        self, *, folder: str, given: str, said: str, predicted: str | None = None
    ) -> answers.FilesAnswer:
        """Make a run's folder of what the machine gave, the tar file `given`; return its files.

        `said` is the console's text. What was `predicted` while it ran was predicted before anything could be seen.
        """
        if predicted and self._task is not None and self._task.predicted is not None:
            self._task.predict(predicted)
        self._machine.given, self._machine.said = Path(given), said
        job = self._begun(folder).job(folder)
        try:
            self._run(folder)
        finally:
            Path(given).unlink(missing_ok=True)
        return {"files": self._files_of(job.folder)}

    def finish(self) -> answers.MoreAnswer | answers.SaidAnswer:
        """Return what all trials of the task came to; or those that are run once more, where that is the mistake staged."""
        if self._task is None:
            raise UserError("nothing was begun; run it again")
        if more := self._task.run_again():
            return {"jobs": [answers.job_to_json(job) for job in more]}
        return {"said": self._task.conclude()}

    def _begun(self, folder: str) -> Task:
        if self._task is None:
            raise UserError(f"{folder}: nothing was begun under this name; run it again")
        return self._task

    def _run(self, folder: str) -> None:
        task = self._begun(folder)
        job = task.job(folder)
        task.run(job)
        self._store.forget_unreadable(job.folder)

    def _files_of(self, run: Path) -> list[str]:
        return sorted(
            path.relative_to(self._runs).as_posix() for path in run.rglob("*") if path.is_file()
        )

    # --- looking ----------------------------------------------------------------------------------

    def results(
        self, *, lab: str, case: int | None = None, trials: str | None = None
    ) -> answers.ResultsAnswer:
        """Return the finished runs of a case, or of trials, oldest first."""
        loaded = load_lab(self._root, lab)
        numbers = set(select_trials(loaded, trials)) if trials else set()
        results = []
        plans = (self._runs / loaded.name).glob("*/plan.json")
        for plan in sorted(plans, key=lambda plan: plan.stat().st_mtime):
            result = read_result(plan.parent, loaded)
            if (
                result is None
                or result.case != case
                or (case is None and result.trial not in numbers)
            ):
                continue
            results.append(result)
        left_out = self._store.lines(self._runs / loaded.name)
        return {
            **answers.results_to_json(loaded, results, case),
            "left_out": left_out,
            "solved": self._solved(loaded),
        }

    def first_try(self, *, lab: str) -> answers.ResultsAnswer:
        """Return the runs of the lab's first try, as it was made last, without their settings: these tell causes."""
        loaded = load_lab(self._root, lab)
        folder = tries_folder(self._runs, loaded)
        results = results_of_try(folder, tries[-1], loaded) if (tries := read_tries(folder)) else []
        table = answers.results_to_json(loaded, results, None)
        table["runs"] = [answers.without_settings(run) for run in table["runs"]]
        return {**table, "left_out": [], "solved": self._solved(loaded)}

    def _folder_of(self, lab: str, run: str) -> Path:
        """A run's folder, of the lab's own runs or of its first try's."""
        own = self._runs / lab / run
        return own if own.is_dir() else self._runs / START / lab / run

    def _solved(self, lab: Lab) -> dict[str, str]:
        """By what each case is solved that is, in the lab book's words: the outcome, and what was changed for it."""
        notes = LabBook(self._runs / lab.name, lab).all_notes()
        solved = {case: of for case, of in notes.items() if of.fixed}
        return {
            str(case): "; with ".join([of.of("Outcome")[-1], *of.of("Changed")[-1:]])
            for case, of in solved.items()
        }

    def check(
        self, *, lab: str, folders: list[str], hint: int | None = None
    ) -> answers.CheckAnswer:
        """Return what the checker finds in runs, and note it in the lab book, as `./lab check` does."""
        loaded = load_lab(self._root, lab)
        runs = [self._runs / loaded.name / folder for folder in folders]
        books = CaseBooks(self._root, runs)
        books.note_hint(hint)
        documents = [check_one(self._root, run, hint) for run in runs]
        documents += check_together(self._root, documents, hint)
        questions = Questions(self._root, runs)
        superseded = questions.superseded(documents)
        books.leave_out({question.key for question in questions.answered})
        documents = without(superseded | books.superseded(documents), documents)
        outcomes = books.note_outcomes(documents)
        off = {str(run) for run in runs} if any(d["findings"] for d in documents) else set()
        lines = [
            wording.outcomes_in_page(outcomes),
            *(
                line
                for question in questions.answered
                for line in wording.answered_lines(question, in_page=True)
            ),
            *(wording.asked_below(question) for question in questions.open(off)),
        ]
        return {
            "documents": [answers.finding_to_json(document, hint) for document in documents],
            "said": "\n".join(filter(None, [*lines, *_to_change(books, documents)])),
            "solved": self._solved(loaded),
        }

    def judge(self, *, lab: str, case: int, answer: str) -> answers.JudgeAnswer:
        """Judge an answer to a case's question by the reader's own runs, and note it in the lab book.

        `answer` is as a lab book has it. Where there are no runs of it, nothing is judged or noted.
        """
        loaded = load_lab(self._root, lab)
        runs = [*(self._runs / loaded.name).glob(f"case-{case:02d}-trial-*")]
        questions = Questions(self._root, runs)
        if not questions.has_one:
            return {"counted": 0, "problems": [], "outcome": "", "solved": {}}
        question = questions.only()
        problems = question.answer(Answer.read(answer))
        outcome = "" if problems else "\n".join(wording.answered_lines(question, in_page=True))
        return {
            "counted": len(question.own_results()),
            "problems": problems,
            "outcome": outcome,
            "solved": self._solved(loaded),
        }

    def listing(self, *, lab: str, folder: str) -> words.Listing:
        """Return what `./lab show RUN` lists."""
        with opened(self._folder_of(lab, folder)) as source:
            return words.listing(source, source.of_node(None))

    def show(
        self, *, lab: str, folder: str, what: str
    ) -> answers.TextAnswer | answers.BlocksAnswer:
        """Return what `./lab show RUN WHAT` shows of a word's files, or a file's text."""
        with opened(self._folder_of(lab, folder)) as source:
            word = words.BY_NAME.get(what)
            if word is None:
                return {"text": next(f for f in source.files if f.name == what).read()}
            shown = words.show(word, words.files_of(word, source, None), source, self._root)
            return {
                "blocks": [block.to_json() for block in shown.blocks],
                "problems": shown.problems,
            }

    def over_time(self, *, lab: str, folder: str) -> answers.OverTimeAnswer:
        """Return what `./lab plot --over-time` draws, as lists."""
        return answers.over_time_to_json(
            read_over_time(self._root, self._folder_of(lab, folder), None)
        )

    # --- live ------------------------------------------------------------------------------------

    def live(
        self,
        *,
        lab: str,
        nodes: list[str],
        trial: str | None = None,
        case: int | None = None,
        show_me: bool = False,
        changes: list[str] | None = None,
    ) -> answers.LiveAnswer:
        """Make a live lab's folder, as `./lab up` does, and return what the machine needs."""
        loaded = load_lab(self._root, lab)
        batch = open_batch(self._root, loaded, self._runs, self._machine)
        folder, plan, files = begin_live(
            batch, nodes, trial=trial, case=case, show_me=show_me, changes=changes or ()
        )
        return {
            "folder": folder.name,
            "words": guest_words(loaded, plan, nodes),
            "packs": packs_of(loaded),
            "files": files,
        }

    def live_files(self, *, lab: str, folder: str, given: str) -> answers.FilesAnswer:
        """Keep what a person left on the nodes of a live lab, the tar file `given`; without any file nothing is kept."""
        run = self._runs / lab / folder
        if not keep_live_files(run, Path(given)):
            return {"files": []}
        return {"files": self._files_of(run)}

    def live_check(
        self, *, lab: str, folder: str, hint: int | None = None
    ) -> answers.LiveCheckAnswer:
        """Return what the checker finds in a live lab, what each file was taken for, and what it lacked."""
        run = self._runs / lab / folder
        document = check_live(self._root, run, hint)
        books = CaseBooks(self._root, [], [run])
        outcome = note_live_outcome(self._root, run, document)
        return {
            "documents": [answers.finding_to_json(document, hint)],
            "taken": wording.recognised_files(document),
            "missing": document["missing"],
            "said": "\n".join(
                [
                    wording.outcomes_in_page([outcome] if outcome else []),
                    *_to_change(books, [document]),
                ]
            ).strip(),
        }

    # --- handing in -------------------------------------------------------------------------------

    def archive(self, *, lab: str, to: str, answers: dict[str, str] | None = None) -> ArchiveAnswer:
        """Write all runs of a lab with its lab book and a report as one zip file, as hand-ins are taken.

        `answers` are what was written down on the page of its questions, by their numbers.
        """
        return pack(self._root, load_lab(self._root, lab), self._runs, Path(to), answers or {})

    def forget(self, *, lab: str) -> dict[str, Any]:
        """Delete all of a lab's. Return nothing."""
        loaded = load_lab(self._root, lab)
        folder = self._runs / loaded.name
        for place in (folder, tries_folder(self._runs, loaded)):
            shutil.rmtree(place, ignore_errors=True)
        self._store.forget(folder)
        return {}


def _to_change(books: CaseBooks, documents: list[Document]) -> list[str]:
    """Return what there is to say of the cases that aren't solved."""
    return [
        line
        for case in books.unsolved(documents)
        for line in wording.unsolved_lines(case, in_page=True)
    ]


def _check_seed(seed: object) -> None:
    """UserError where `./lab run` would not take it."""
    if seed is not None and (type(seed) is not int or not 0 <= seed <= LAST_SEED):
        raise UserError(f"seed {seed}: expected a whole number from 0 to {LAST_SEED}")


def _check_repeat(repeat: object) -> None:
    """The same of how many runs each trial gets."""
    if repeat is not None and (type(repeat) is not int or not 1 <= repeat <= MOST_RUNS):
        raise UserError(
            f"{repeat} runs of each trial: expected a whole number from 1 to {MOST_RUNS}"
        )
