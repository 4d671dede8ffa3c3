"""What a browser keeps of a reader, and hands in: runs, the lab book with what was written on pages, a report."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import pack_zip
from measuretwice.book.lab_book import NONE, LabBook
from measuretwice.book.prediction import Answer
from measuretwice.course.judging import Question
from measuretwice.course.report import opened_for_report, read_report_runs, write_report
from measuretwice.in_page.answers import ArchiveAnswer
from measuretwice.lab import Lab, read_questions
from measuretwice.live.session import FACTS
from measuretwice.report.markdown import as_answer
from measuretwice.runs.folder import DONE, PLAN
from measuretwice.runs.result import read_result

# In a lab's folder of runs: no run is looked for there, and none of it is handed in.
ASIDE = ".unreadable"
# Longer than any diagnosis; a book has its limit, too.
MOST_CHARACTERS = 20_000
HINTS = ("1", "2", "3")
# What pages keep by the cases' numbers: diagnoses; hints; answers that were judged by the recorded runs, a line each; and the
# answer that was right; and the lines that are known, each in a line.
WRITTEN = ("diagnoses", "hints", "judged", "answered", "known")
MOST_ANSWERS = 30
# As docs/assets/known.js keeps, and not that many more.
MOST_KNOWN = 100


class RunStore:
    """The runs that a browser keeps: each is looked at once, and those that can't be read are set aside."""

    def __init__(self) -> None:
        self._readable: set[Path] = set()
        self._lines: dict[Path, dict[str, str]] = {}

    def lines(self, folder: Path) -> list[str]:
        """Return a line for each run of a lab's folder that could not be read: what to do."""
        return list(self._lines.get(folder, {}).values())

    def quarantine_unreadable(self, folder: Path, lab: Lab) -> None:
        """Move the runs of a lab's folder that can't be read into one of their own: one mustn't take the others with it."""
        for run in (plan.parent for plan in sorted(folder.glob(f"*/{PLAN}"))):
            if run in self._readable:
                continue
            try:
                read_result(run, lab)
            except UserError:
                aside = folder / ASIDE / run.name
                shutil.rmtree(aside, ignore_errors=True)
                aside.parent.mkdir(exist_ok=True)
                run.rename(aside)
                self._lines.setdefault(folder, {})[run.name] = (
                    f"{run.name}: what was kept of this run can't be read. It is left out; run it again."
                )
            else:
                self._readable.add(run)

    def forget_unreadable(self, run: Path) -> None:
        """Forget that a run could not be read: it was made anew."""
        self._lines.get(run.parent, {}).pop(run.name, None)

    def forget(self, folder: Path) -> None:
        """Forget all of a lab's folder."""
        self._lines.pop(folder, None)
        self._readable = {run for run in self._readable if run.parent != folder}


def note_written(
    lab: Lab, folder: Path, written: Mapping[str, Mapping[str, str]], *, begin: bool
) -> None:
    """Note in the lab book what pages keep, by the kinds in WRITTEN: hints before the diagnosis, and answers after it.

    A book that isn't there is begun only if `begin`.
    """
    book = LabBook(folder, lab)
    diagnosed = _by_case(lab, written["diagnoses"])
    steps = _by_case(lab, written["hints"]).items()
    taken_hints = {case: step for case, step in steps if step in HINTS}
    lines_by_case = {int(case): text for case, text in written["known"].items() if case.isdecimal()}
    if begin and (diagnosed or taken_hints or any(lines_by_case.values())) and not book.exists:
        book.open()
    if not book.exists:
        return
    for case, step in sorted(taken_hints.items()):
        notes = book.notes(case)
        if int(step) > notes.hints and not notes.fixed:
            book.add(case, "Hint", step)
    for case, text in sorted(lines_by_case.items()):
        if 1 <= case <= len(lab.file.pitfalls):
            _note_known(book, case, text)
    for case, text in sorted(diagnosed.items()):
        if text != book.notes(case).diagnosis:
            book.add(case, "Diagnosis", text)
    _note_judged(lab, book, written["judged"], _by_case(lab, written["answered"]))


def _note_known(book: LabBook, case: int, text: str) -> None:
    """Note which lines a page's list has now: new ones, and those that were dropped from it."""
    lines = [_one_line(line) for line in text.splitlines()[:MOST_KNOWN]]
    before = book.notes(case).known_lines
    for line in lines:
        if line and line != NONE and line not in before:
            book.add(case, "Known", line)
    for line in before:
        if line not in lines:
            book.add(case, "Dropped", line)


def _note_judged(
    lab: Lab, book: LabBook, judged: Mapping[str, str], answered: Mapping[int, str]
) -> None:
    """Note which answers a page has judged by the recorded runs, and which of them was right."""
    for written, lines in judged.items():
        for line in lines.splitlines()[:MOST_ANSWERS]:
            for case, text in _by_case(lab, {written: line}).items():
                if judgement := lab.case(case).judgement:
                    question = Question(lab, case, judgement, book, ())
                    is_right = text == answered.get(case)
                    question.note_judged_by_recorded(Answer.read(text), is_right=is_right)


def _by_case(lab: Lab, texts: Mapping[str, str]) -> dict[int, str]:
    written = {int(case): _one_line(text) for case, text in texts.items() if case.isdecimal()}
    return {
        case: text
        for case, text in written.items()
        if text and text != NONE and 1 <= case <= len(lab.file.pitfalls)
    }


def _one_line(text: str) -> str:
    return " ".join(text[:MOST_CHARACTERS].split())


def pack(root: Path, lab: Lab, runs: Path, to: Path, answers: Mapping[str, str]) -> ArchiveAnswer:
    """Write all that `runs` holds of a lab to the zip file `to`, and return what there was.

    `answers` go into the report, by the numbers of the lab's questions. Where no run can be reported on,
    what there is comes without a report. Hidden files are left out.
    """
    place = runs / lab.name
    report = place / "report.html"
    # What an earlier one has of answers stands on the page, too, unless it was taken back there.
    report.with_suffix(".md").unlink(missing_ok=True)
    with (
        contextlib.suppress(UserError),
        opened_for_report(root, [place], report) as (opened, page),
    ):
        about = read_report_runs(root, opened.targets, page)
        write_report(about, answers=_by_question(lab, answers))
    files = [path for path in sorted(place.rglob("*")) if path.is_file() and _is_shown(path, place)]
    if not files:
        raise UserError(f"nothing of {lab.name} is kept in this browser")
    to.write_bytes(pack_zip({path.relative_to(runs).as_posix(): path for path in files}))
    return {
        "name": f"{lab.name}-runs.zip",
        "runs": sum(path.name == DONE for path in files),
        "live": sum(path.name == FACTS for path in files),
        "report": report in files,
    }


def _by_question(lab: Lab, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers by the questions' texts, as a report has them."""
    questions = {str(number): text for number, text in enumerate(read_questions(lab), start=1)}
    return {
        questions[number]: tidied
        for number, text in answers.items()
        if number in questions and (tidied := as_answer(text))
    }


def _is_shown(path: Path, place: Path) -> bool:
    return not any(part.startswith(".") for part in path.relative_to(place).parts)
