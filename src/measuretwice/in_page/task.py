"""What one press of a page's button means, until all of it is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from measuretwice.cli.cases import CaseRun
from measuretwice.execute.batch import Batch
from measuretwice.execute.job import Job
from measuretwice.lab import Again, Lab
from measuretwice.runs.result import read_result


@dataclass
class Task:
    """The lab, the case where there is one, and its trials' jobs by their folders' names."""

    lab: Lab
    batch: Batch
    settings: dict[str, Any]
    case: CaseRun | None
    again: Again | None
    # What was predicted: noted once something was measured, not before.
    predicted: str | None = None
    jobs: dict[str, Job] = field(default_factory=dict)

    def predict(self, words: str) -> None:
        """Keep what was predicted; nothing where that was about a run that is there, and was dealt other values.

        A page keeps what was written in its field.
        """
        case = self.case
        assert case is not None
        if words in case.book.notes(case.number).of("Prediction"):
            runs = (
                read_result(place.parent, case.lab)
                for place in case.book.path.parent.glob("*/plan.json")
            )
            seeds = {run.seed for run in runs if run and run.case == case.number and not run.stage}
            dealt = [case.lab.varied_by(case.pitfall, seed) for seed in seeds]
            if case.lab.varied_by(case.pitfall, case.seed) not in dealt:
                words = ""
        self.predicted = words
