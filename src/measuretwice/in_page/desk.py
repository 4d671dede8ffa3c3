"""What a page asks of the kit: which trials a command means, what came of them, checks, files, a folder to hand in.

The functions of the commands themselves answer, so that a page says what a terminal says. The page's worker
(docs/assets/machine/kit.mjs) calls `Desk.ask`: JSON in, JSON out.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from measuretwice.backends.browser import (
    BrowserMachine,
    given_to_guest,
    guest_words,
    packs_of,
)
from measuretwice.base.errors import UserError
from measuretwice.base.seeds import LAST_SEED
from measuretwice.cli import show
from measuretwice.cli.case_books import CaseBooks
from measuretwice.cli.cases import nothing_new, open_case
from measuretwice.cli.diagnose import check_one, check_together, taken
from measuretwice.cli.options import read_changes
from measuretwice.cli.run import choose
from measuretwice.execute.batch import odd_trials, open_batch
from measuretwice.execute.job import Job, finished, run_job
from measuretwice.in_page import live
from measuretwice.in_page.findings import said_of
from measuretwice.in_page.hand_in import pack
from measuretwice.in_page.kept import Readable, note_written
from measuretwice.in_page.machine import PagesMachine
from measuretwice.in_page.table import table_of
from measuretwice.in_page.task import Task
from measuretwice.lab import KernelFacts, load_lab, select_trials
from measuretwice.runs.folder import is_finished
from measuretwice.runs.result import read_result
from measuretwice.view import words
from measuretwice.view.over_time import read_over_time
from measuretwice.view.source import opened


class Desk:
    """A reader's runs in `runs`, by the labs in `root`; `facts` are machine.json's of the page's machine."""

    def __init__(self, root: str, runs: str, key: str, facts: str) -> None:
        self._root, self._runs = Path(root), Path(runs)
        machine = BrowserMachine(Path(key), KernelFacts.from_json(json.loads(facts)))
        self._machine = PagesMachine(machine)
        self._task: Task | None = None
        self._readable = Readable()

    def ask(self, what: str, request: str) -> str:
        """Answer in JSON: {"answer": ...}, or {"problem": a line that says what to do}.

        Who names a lab may name, in `diagnoses` and `hints`, what was written down and opened on its pages: that comes
        into the book first.
        """
        answers: dict[str, Callable[..., Any]] = {
            "plan": self.plan, "dealt": self.dealt, "begin": self.begin, "conclude": self.conclude, "finish": self.finish,
            "check": self.check, "listing": self.listing, "show": self.show, "over_time": self.over_time,
            "results": self.results, "archive": self.archive, "note": self.note, "forget": self.forget,
            "live": self.live, "live_files": self.live_files, "live_check": self.live_check,
        }  # fmt: skip
        asked = json.loads(request)
        written = {kind: asked.pop(kind, None) or {} for kind in ("diagnoses", "hints")}
        try:
            if "lab" in asked:
                self._look(asked["lab"], begin=what == "archive", **written)
            return json.dumps({"answer": answers[what](**asked)})
        except UserError as error:
            return json.dumps({"problem": str(error)})

    def _look(
        self, lab: str, *, begin: bool, diagnoses: dict[str, str], hints: dict[str, str]
    ) -> None:
        found = load_lab(self._root, lab)
        folder = self._runs / found.name
        self._readable.look(folder, found)
        note_written(found, folder, diagnoses, hints, begin=begin)

    def note(self, *, lab: str) -> dict[str, Any]:
        """Something was written down: it is in the book already, where there is one."""
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
        changes: list[str] | None = None,
        predicted: str = "",
    ) -> dict[str, Any]:
        """What a command means, as `./lab run` reads it: its trials, each with its folder and what it may cost."""
        _check_seed(seed)
        found = load_lab(self._root, lab)
        batch = open_batch(self._root, found, self._runs, self._machine)
        settings: dict[str, Any] = dict(read_changes(found, tuple(changes or ()), None))
        of_case = None
        with _quiet():
            if case is not None:
                of_case, seed = open_case(
                    found, case, None, show_me=show_me, changes=settings, out=self._runs, seed=seed
                )
        what = choose(found, trials, None, None, of_case, None)
        task = self._task = Task(found, batch, settings, of_case, what.again)
        first = 1 if seed is None else seed
        for number in what.trials:
            for each in range(what.repeat):
                self._add(task, number, first + each)
        jobs = list(task.jobs.values())
        if problems := self._machine.problems(found, [job.plan for job in jobs]):
            raise UserError("; ".join(problems))
        if of_case and len(finished(jobs)) < len(jobs):
            task.predict(predicted)
        return {
            "jobs": [self._about(job) for job in jobs],
            "seed": first,
            "dealt": of_case.dealt if of_case else "",
        }

    def dealt(self, *, lab: str, case: int, seed: int | None = None) -> dict[str, Any]:
        """Which values a case's run of the reader's own has, before it is run: a book that isn't there is begun for it."""
        _check_seed(seed)
        found = load_lab(self._root, lab)
        with _quiet():
            of_case, _ = open_case(
                found, case, None, show_me=False, changes={}, out=self._runs, seed=seed
            )
        return {"says": of_case.dealt or "Your own run has the recorded run's values."}

    def _add(self, task: Task, number: int, seed: int) -> Job:
        case = task.case
        job = task.batch.job(
            number,
            seed=seed,
            changes=task.settings,
            stage=case.stage if case else None,
            case=case.number if case else None,
        )
        task.jobs[job.folder.name] = job
        return job

    def _about(self, job: Job) -> dict[str, Any]:
        return {
            "folder": job.folder.name,
            "trial": job.plan.trial,
            "seed": job.plan.seed,
            "duration_s": float(job.plan.params.get("duration_s", 0)),
            "finished": is_finished(job.folder),
        }

    def begin(self, *, folder: str) -> dict[str, Any]:
        """What the machine needs for a trial: the words for its guest, and what that finds.

        Where a run that is there had the same packets nothing is needed: then the run's folder is made already, these
        are its files, and this is what is said of it.
        """
        job = self._job(folder)
        plan = job.plan
        if same := job.same_packets():
            self._run(job)
            return {"files_of_run": self._files_of(job.folder), "said": nothing_new(same.name)}
        assert self._task is not None
        self._task.jobs[folder] = replace(job, begun=datetime.datetime.now(datetime.UTC))
        lab = self._task.lab
        return {
            "words": guest_words(lab, plan),
            "packs": packs_of(lab),
            "files": given_to_guest(lab, plan, self._root),
        }

    def conclude(
        self, *, folder: str, given: str, said: str, predicted: str | None = None
    ) -> dict[str, Any]:
        """Make a run's folder of what the machine gave, the tar file `given`; return what came of it.

        What was `predicted` while it ran was predicted before anything could be seen.
        """
        if predicted and self._task is not None and self._task.predicted is not None:
            self._task.predict(predicted)
        self._machine.given, self._machine.said = Path(given), said
        job = self._job(folder)
        try:
            self._run(job)
        finally:
            Path(given).unlink(missing_ok=True)
        return {"files": self._files_of(job.folder)}

    def _run(self, job: Job) -> None:
        """Make its folder. A try comes into the lab book once it is measured: who cancels it has tried nothing."""
        run_job(job)
        self._readable.made(job.folder)
        task = self._task
        assert task is not None
        if task.case and task.predicted is not None:
            # Another tab may have forgotten all of the lab meanwhile.
            task.case.book.open(task.case.seed)
            task.case.ask(task.predicted)
            task.predicted = None

    def _job(self, folder: str) -> Job:
        if self._task is None or folder not in self._task.jobs:
            raise UserError(f"{folder}: nothing was begun under this name; run it again")
        return self._task.jobs[folder]

    def finish(self) -> dict[str, Any]:
        """What all trials of the task came to; or those that are run once more, where that is the mistake staged."""
        task = self._task
        if task is None:
            raise UserError("nothing was begun; run it again")
        results = list(finished(list(task.jobs.values())).values())
        case = task.case
        if task.again:
            known = set(task.jobs)
            odd = odd_trials(task.again, results)
            more = [self._add(task, number, seed) for number, seed in odd]
            if todo := [job for job in more if job.folder.name not in known]:
                return {"jobs": [self._about(job) for job in todo]}
        said = ""
        if case:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                case.note(results, talk=True)
            said = out.getvalue().strip()
        return {"said": said}

    def _files_of(self, run: Path) -> list[str]:
        return sorted(
            path.relative_to(self._runs).as_posix() for path in run.rglob("*") if path.is_file()
        )

    # --- looking ----------------------------------------------------------------------------------

    def results(self, *, lab: str, case: int | None = None, trials: str | None = None) -> Any:
        """The finished runs of a case, or of trials: each one's values in words, what was changed, how to repeat it."""
        found = load_lab(self._root, lab)
        numbers = set(select_trials(found, trials)) if trials else set()
        results = []
        plans = (self._runs / found.name).glob("*/plan.json")
        for place in sorted(plans, key=lambda plan: plan.stat().st_mtime):
            result = read_result(place.parent, found)
            if (
                result is None
                or result.case != case
                or (case is None and result.trial not in numbers)
            ):
                continue
            results.append(result)
        left_out = self._readable.lines(self._runs / found.name)
        return {**table_of(found, results, case), "left_out": left_out}

    def check(self, *, lab: str, folders: list[str], hint: int | None = None) -> dict[str, Any]:
        """What `./lab check` says of runs, and what it notes in the lab book."""
        found = load_lab(self._root, lab)
        runs = [self._runs / found.name / folder for folder in folders]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            books = CaseBooks(self._root, runs)
            books.before(hint)
            documents = [check_one(self._root, run, hint) for run in runs]
            documents += check_together(self._root, documents, hint)
            books.after(documents)
        return {
            "documents": [said_of(document, hint) for document in documents],
            "said": out.getvalue().strip(),
        }

    def listing(self, *, lab: str, folder: str) -> Any:
        """What `./lab show RUN` lists."""
        with opened(self._runs / lab / folder) as source:
            files = source.of_node(None)
            return show.listing(source, files, {f.name: words.word_of(f, source) for f in files})

    def show(self, *, lab: str, folder: str, what: str) -> Any:
        """What `./lab show RUN WHAT` shows of a word's files, or a file's text."""
        with opened(self._runs / lab / folder) as source:
            word = words.BY_NAME.get(what)
            if word is None:
                return {"text": next(f for f in source.files if f.name == what).read()}
            shown = words.show(word, words.files_of(word, source, None), source, self._root)
            return {
                "blocks": [block.to_json() for block in shown.blocks],
                "problems": shown.problems,
            }

    def over_time(self, *, lab: str, folder: str) -> Any:
        """What `./lab plot --over-time` draws, as lists."""
        run = read_over_time(self._root, self._runs / lab / folder, None)
        return {
            "notes": run.notes,
            "panels": {
                name: [
                    {
                        "label": line.label,
                        "unit": line.unit,
                        "time_s": list(line.time_s),
                        "values": list(line.values),
                        "steady": line.steady,
                    }
                    for line in lines
                ]
                for name, lines in run.lines.items()
            },
        }

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
    ) -> dict[str, Any]:
        """What `./lab up` prepares: the folder, the words for the machine's guest, and what that finds."""
        found = load_lab(self._root, lab)
        batch = open_batch(self._root, found, self._runs, self._machine)
        with _quiet():
            folder, plan, files = live.begin(
                batch, nodes, trial=trial, case=case, show_me=show_me, changes=changes or ()
            )
        return {
            "folder": folder.name,
            "words": guest_words(found, plan, nodes),
            "packs": packs_of(found),
            "files": files,
        }

    def live_files(self, *, lab: str, folder: str, given: str) -> dict[str, Any]:
        """Keep what a person left on the nodes of a live lab, the tar file `given`; without any file nothing is kept."""
        place = self._runs / lab / folder
        if not live.take(place, Path(given)):
            return {"files": []}
        return {"files": self._files_of(place)}

    def live_check(self, *, lab: str, folder: str, hint: int | None = None) -> dict[str, Any]:
        """What `./lab check` says of a live lab, which files it took for what, and what it lacked."""
        document, said = live.check(self._root, self._runs / lab / folder, hint)
        return {
            "documents": [said_of(document, hint)],
            "taken": taken(document),
            "missing": document["missing"],
            "said": said,
        }

    # --- handing in -------------------------------------------------------------------------------

    def archive(self, *, lab: str, to: str, answers: dict[str, str] | None = None) -> Any:
        """Write all runs of a lab with its lab book and a report as one zip file, as hand-ins are taken.

        `answers` are what was written down on the page of its questions, by their numbers.
        """
        return pack(self._root, load_lab(self._root, lab), self._runs, Path(to), answers or {})

    def forget(self, *, lab: str) -> dict[str, Any]:
        """Delete all of a lab's."""
        place = self._runs / load_lab(self._root, lab).name
        shutil.rmtree(place, ignore_errors=True)
        self._readable.forget(place)
        return {}


def _check_seed(seed: object) -> None:
    """UserError where `./lab run` would not take it."""
    if seed is not None and (type(seed) is not int or not 0 <= seed <= LAST_SEED):
        raise UserError(f"seed {seed}: expected a whole number from 0 to {LAST_SEED}")


@contextlib.contextmanager
def _quiet() -> Any:
    """What a command prints for its terminal has no place on a page."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
