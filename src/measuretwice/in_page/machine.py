"""The machine of the page that this Python runs in, as a place where trials run and labs are live; and a button's task.

A page runs its machine by itself (docs/assets/machine/), and gives what the guest gave it.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from measuretwice.backends.browser import Browser, lacks_memory, with_script
from measuretwice.backends.live_script import PAGE_TERMINALS, page_live_script
from measuretwice.base.errors import UserError
from measuretwice.base.files import unpack_tar
from measuretwice.course.case import (
    CaseRun,
    choose_live_trial,
    earned_settings,
    live_plan,
    read_changes,
)
from measuretwice.course.progress import OpenedTry
from measuretwice.course.wording import measured_of_case, prediction_compared
from measuretwice.execute.batch import Batch, odd_trials, without_edges
from measuretwice.execute.job import Job, finished, run_job
from measuretwice.lab import Lab, Plan, Value
from measuretwice.lab.schema.cases import Again
from measuretwice.live.session import make_folder
from measuretwice.runs.result import Result, read_result

CONSOLE = "console.txt"


class PagesMachine(Browser):
    """Trials as `--on browser` has them.

    `given` is the tar file of the trial that is concluded next, `said` what its console showed.
    """

    given: Path
    said: str = ""

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        unpack_tar(self.given, work)
        (work / CONSOLE).write_text(self.said, encoding="utf-8")

    def damage(self) -> str | None:
        """Return nothing: a page has fetched its machine, which lies in no cache that could be damaged."""
        return None

    def confined_by(self) -> str:
        return "the browser's own sandbox"


def begin_live(
    batch: Batch,
    nodes: Sequence[str],
    *,
    trial: str | None,
    case: int | None,
    show_me: bool,
    changes: Sequence[str],
) -> tuple[Path, Plan, dict[str, str]]:
    """Make a live lab's folder, as `./lab up` does; return it, its plan, and the files that its guest finds.

    `nodes` get the terminals. UserError for nodes, a trial or changes that can't be, and for a lab that is too large.
    """
    lab = batch.lab
    _check_nodes(lab, nodes)
    number = choose_live_trial(lab, trial, lab.case(case) if case is not None else None)
    due = earned_settings(lab, batch.out, case)
    settings = without_edges(lab, read_changes(lab, changes, due=due))
    plan = live_plan(batch, number, settings, case=case, stage="fixed" if show_me else None)
    if problems := lacks_memory(lab, [plan]):
        raise UserError("; ".join(problems))
    files = given_to_live_guest(lab, plan, batch.root)
    [script] = (text for name, text in files.items() if name.endswith("/experiment.sh"))
    folder = make_folder(lab, plan, batch.out, datetime.datetime.now().astimezone(), script)
    return folder, plan, files


def given_to_live_guest(lab: Lab, plan: Plan, root: Path) -> dict[str, str]:
    """Return the files that a live lab's guest finds at its root; the page adds its terminals' sizes."""
    return with_script(lab, root, page_live_script(lab, plan))


def keep_live_files(folder: Path, given: Path) -> bool:
    """Put what the guest gave, a tar file, into the live lab's folder. Return whether a person left any file there."""
    shutil.rmtree(folder / "raw")
    unpack_tar(given, folder, plain=True)
    return any(path.is_file() for path in (folder / "raw").rglob("*"))


def _check_nodes(lab: Lab, nodes: Sequence[str]) -> None:
    node_names = lab.file.topology.node_names
    for node in nodes:
        if node not in node_names:
            raise UserError(
                f"{node}: there is no such node: {lab.name} has {', '.join(node_names)}"
            )
    if not 1 <= len(set(nodes)) == len(nodes) <= PAGE_TERMINALS:
        raise UserError(f"choose one to {PAGE_TERMINALS} nodes, each once")


@dataclass
class Task:
    """The lab, the case where there is one, and its trials' jobs by their folders' names.

    `predicted` is what is still to be noted of a prediction, which is once something was measured; `noted` is what was.
    """

    lab: Lab
    batch: Batch
    settings: dict[str, Value]
    case: CaseRun | None
    again: Again | None
    predicted: str | None = None
    noted: str = ""
    jobs: dict[str, Job] = field(default_factory=dict)

    def add(self, trial: int, seed: int) -> Job:
        """Add a trial and return it."""
        case = self.case
        job = self.batch.job(
            trial,
            seed=seed,
            changes=self.settings,
            stage=case.stage if case else None,
            case=case.number if case else None,
        )
        self.jobs[job.folder.name] = job
        return job

    def job(self, folder: str) -> Job:
        """Return the trial whose run has this folder; UserError where there is none."""
        if folder not in self.jobs:
            raise UserError(f"{folder}: nothing was begun under this name; run it again")
        return self.jobs[folder]

    def begin(self, job: Job) -> None:
        """Note that the page's machine begins with a trial now."""
        self.jobs[job.folder.name] = replace(job, begun=datetime.datetime.now(datetime.UTC))

    def predict(self, words: str) -> None:
        """Keep what was predicted; nothing where that was about a run that is there, and was dealt other values.

        A page keeps what was written in its field.
        """
        case = self.case
        assert case is not None
        if words in case.book.notes(case.number).of("Prediction"):
            runs = (
                read_result(plan.parent, case.lab)
                for plan in case.book.path.parent.glob("*/plan.json")
            )
            seeds = {run.seed for run in runs if run and run.case == case.number and not run.stage}
            dealt = [case.lab.varied_by(case.pitfall, seed) for seed in seeds]
            if case.lab.varied_by(case.pitfall, case.seed) not in dealt:
                words = ""
        self.predicted = words

    def run(self, job: Job) -> None:
        """Make a trial's folder. A try comes into the lab book once it is measured: who cancels it has tried nothing."""
        run_job(job)
        if self.case and self.predicted is not None:
            # Another tab may have forgotten all of the lab meanwhile.
            self.case.book.open(self.case.seed)
            self.case.note_begun()
            self.case.note_prediction(self.predicted)
            self.noted, self.predicted = self.predicted, None

    def run_again(self) -> list[Job]:
        """Add, and return, the trials that are run once more, where that is the mistake that is staged."""
        if not self.again:
            return []
        planned = set(self.jobs)
        odd = odd_trials(self.again, list(self._results()))
        more = [self.add(trial, seed) for trial, seed in odd]
        return [job for job in more if job.folder.name not in planned]

    def conclude(self) -> str:
        """Note a case's runs in the lab book; return how a prediction compares, and what else there is to say of them."""
        if self.case is None:
            return ""
        results = list(self._results())
        self.case.note_runs(results)
        compared = self.case.compare(self.noted, results)
        lines = [prediction_compared(compared)] if compared else []
        return " ".join([*lines, *measured_of_case(self.case, results)])

    def _results(self) -> Iterable[Result]:
        return finished(list(self.jobs.values())).values()


@dataclass
class TryTask(Task):
    """A lab's first try, `opened` as it stands: its trials, with what the solved cases have changed in it."""

    opened: OpenedTry = field(kw_only=True)

    def add_all(self) -> None:
        """Add its trials."""
        self.jobs = {job.folder.name: job for job in self.opened.jobs(self.batch)}

    def predict(self, words: str) -> None:
        self.predicted = words

    def conclude(self) -> str:
        """Note what it came to, in the lab book and beside its runs; return that in lines."""
        opened = self.opened
        # Another tab may have forgotten all of the lab meanwhile.
        opened.book.open(opened.seed)
        if not (predicted := opened.book.first_try().prediction or opened.predicted):
            predicted = self.predicted or ""
            opened.note_prediction(predicted)
        started = opened.note_results(None, list(self._results()), predicted)
        return "\n".join(started.lines)
