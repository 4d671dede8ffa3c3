"""The page's API in JSON: the type of each answer, and how values of the course become one.

workshop/page-api.md lists the requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from measuretwice.book.prediction import of_one_run
from measuretwice.course.case import answer_of, changes_of
from measuretwice.course.findings import Document
from measuretwice.course.wording import HEADINGS, expectation_rows, finding_lines, row_of, verdict
from measuretwice.execute.job import Job
from measuretwice.lab import Lab
from measuretwice.measure.over_time import OverTime
from measuretwice.runs.folder import is_finished
from measuretwice.runs.result import Result, goodput_means, goodput_of


class JobAnswer(TypedDict):
    """A trial to run: its run's folder, its length in seconds, and whether it is measured already."""

    folder: str
    trial: int
    seed: int
    duration_s: float
    finished: bool


class PlanAnswer(TypedDict):
    """All trials of a task, their first seed, and which values a case's run of the reader's own has."""

    jobs: list[JobAnswer]
    seed: int
    dealt: str


class DealtAnswer(TypedDict):
    says: str


class GuestAnswer(TypedDict):
    """What the machine needs: the words for its guest, names of packs to fetch, and files' texts by their paths there."""

    words: str
    packs: list[str]
    files: dict[str, str]


class MadeAnswer(TypedDict):
    """A run that needs no machine is made already: its files, and the sentence that says why."""

    files_of_run: list[str]
    said: str


class FilesAnswer(TypedDict):
    """A run's files, by their paths below the folder of runs."""

    files: list[str]


class MoreAnswer(TypedDict):
    """Trials that are run once more."""

    jobs: list[JobAnswer]


class SaidAnswer(TypedDict):
    """What the task came to, in a sentence; empty where there is nothing to say."""

    said: str


class RunAnswer(TypedDict):
    """A finished run: `values` are in words, one for each heading of the table.

    `answer` is what it says to a case's question, None where the table has that anyhow. `verdict` and
    `expectations`, each a mark and words, are of runs of no case.
    """

    folder: str
    trial: int
    seed: int
    shown: bool
    changes: dict[str, str]
    settings: dict[str, str]
    answer: str | None
    values: list[str]
    verdict: str | None
    expectations: list[tuple[str, str]]
    goodput: str


class SolvedAnswer(TypedDict):
    """Which cases the lab book has as solved: their numbers, and by what, in its words."""

    solved: dict[str, str]


class TableAnswer(TypedDict):
    """Runs beside each other; `asked` is the quantity that a case's question asks for."""

    headings: list[str]
    asked: str
    runs: list[RunAnswer]


class ResultsAnswer(TableAnswer, SolvedAnswer):
    """The same and which cases are solved, with a line for each run that can't be read."""

    left_out: list[str]


class FindingAnswer(TypedDict):
    heading: str
    lines: list[str]


class DocumentAnswer(TypedDict):
    """What was found in a run, by its folder's name, in the words of one step of help."""

    name: str
    findings: list[FindingAnswer]


class CheckAnswer(SolvedAnswer):
    """What was found, and what a case came to, in lines; and which cases are solved."""

    documents: list[DocumentAnswer]
    said: str


class JudgeAnswer(SolvedAnswer):
    """How an answer to a case's question is judged: by how many runs, a line for each part that isn't right, what the
    case came to, and which cases are solved."""

    counted: int
    problems: list[str]
    outcome: str


class LiveCheckAnswer(TypedDict):
    """The same of a live lab, and in lines what each file was taken for, and what can't be looked at."""

    documents: list[DocumentAnswer]
    taken: list[str]
    missing: list[str]
    said: str


class TextAnswer(TypedDict):
    text: str


class BlocksAnswer(TypedDict):
    """view.Block of each file that a word means, and lines about what can't be shown."""

    blocks: list[dict[str, Any]]
    problems: list[str]


class OverTimeAnswer(TypedDict):
    """Each panel's lines, a measure.over_time.Line each, and notes on what isn't there."""

    notes: list[str]
    panels: dict[str, list[dict[str, Any]]]


class LiveAnswer(GuestAnswer):
    """What a live lab's guest needs, and its folder's name."""

    folder: str


class ArchiveAnswer(TypedDict):
    """What is in the file to hand in: how many runs and live labs, and whether there is a report."""

    name: str
    runs: int
    live: int
    report: bool


def job_to_json(job: Job) -> JobAnswer:
    """Return a trial to run as a page has it."""
    return {
        "folder": job.folder.name,
        "trial": job.plan.trial,
        "seed": job.plan.seed,
        "duration_s": float(job.plan.params.get("duration_s", 0)),
        "finished": is_finished(job.folder),
    }


def finding_to_json(document: Document, hint: int | None) -> DocumentAnswer:
    """Return what was found in a run as a page may show it at that step of help."""
    findings = [
        finding_lines(finding, hint, brought="used" in document) for finding in document["findings"]
    ]
    return {
        "name": Path(document["run"]).name,
        "findings": [{"heading": heading, "lines": lines} for heading, lines in findings],
    }


def results_to_json(lab: Lab, results: Sequence[Result], case: int | None) -> TableAnswer:
    """Return runs beside each other; of a case with what its question asks for."""
    return {
        "headings": [*HEADINGS],
        "asked": of_one_run(lab.case(case).predict).name if case is not None else "",
        "runs": [_run_to_json(lab, result) for result in results],
    }


def _run_to_json(lab: Lab, result: Result) -> RunAnswer:
    return {
        "folder": result.run_dir.name,
        "trial": result.trial,
        "seed": result.seed,
        "shown": result.stage == "fixed",
        "changes": {name: str(value) for name, value in changes_of(lab, result).items()},
        "settings": {name: str(value) for name, value in result.params.items()},
        "answer": _answer(lab, result),
        "values": row_of(lab, result),
        "verdict": None if result.case else verdict(result),
        "expectations": [] if result.case else expectation_rows(result),
        "goodput": goodput_means(lab, result.params),
    }


def without_settings(run: RunAnswer) -> RunAnswer:
    """Return a run without its settings, and without what judges it by these."""
    return {**run, "changes": {}, "settings": {}, "verdict": None, "expectations": []}


def _answer(lab: Lab, result: Result) -> str | None:
    """None where no measured value answers a case's question, and where it is the goodput that the table has anyhow."""
    asked = lab.case(result.case).predict if result.case else None
    if asked is None or not asked.compared or asked.value == goodput_of(lab, result).name:
        return None
    return answer_of(asked, result)


def over_time_to_json(run: OverTime) -> OverTimeAnswer:
    """Return a run over time as lists."""
    return {
        "notes": run.notes,
        "panels": {name: [asdict(line) for line in lines] for name, lines in run.lines.items()},
    }
