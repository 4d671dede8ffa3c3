"""What one press of a page's button means: its trials, until all of them are measured."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from measuretwice.base.errors import UserError
from measuretwice.course.case import CaseRun
from measuretwice.course.wording import prediction_compared
from measuretwice.execute.batch import Batch, odd_trials
from measuretwice.execute.job import Job, finished, run_job
from measuretwice.lab import Again, Lab, Value
from measuretwice.runs.result import Result, read_result


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
        known = set(self.jobs)
        odd = odd_trials(self.again, list(self._results()))
        more = [self.add(trial, seed) for trial, seed in odd]
        return [job for job in more if job.folder.name not in known]

    def conclude(self) -> str:
        """Note a case's runs in the lab book; return how a prediction compares, in words."""
        if self.case is None:
            return ""
        results = list(self._results())
        self.case.note_runs(results)
        compared = self.case.compare(self.noted, results)
        return prediction_compared(compared) if compared else ""

    def _results(self) -> Iterable[Result]:
        return finished(list(self.jobs.values())).values()
