"""Cases that a question solves: the mistake is in what is said of the runs, so that no other run is needed.

It is asked once there is a diagnosis, and answered by a choice and a number that the student's own runs give.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.lab_book import LabBook
from measuretwice.book.prediction import BY_RECORDED, Answer, judged_numbers, why_not
from measuretwice.course.case import changes_in_words, changes_of
from measuretwice.course.findings import Document
from measuretwice.lab import Lab, first_try_cases, load_lab
from measuretwice.lab.schema.cases import Judgement
from measuretwice.runs.folder import PLAN
from measuretwice.runs.result import Result, read_result

# What an entry of a lab book begins with that says so.
ANSWERED = "answered right"


@dataclass(frozen=True)
class Question:
    """The question of a case, its lab book, and those of its runs that are looked at."""

    lab: Lab
    case: int
    judgement: Judgement
    book: LabBook
    runs: tuple[Path, ...]

    @property
    def key(self) -> tuple[Path, int]:
        """Return what tells the case from those of other books."""
        return self.book.path, self.case

    @property
    def pattern(self) -> str:
        """Return what a shell finds all of the case's runs by."""
        return f"{os.path.relpath(self.book.path.parent)}/case-{self.case:02d}-*"

    @property
    def is_diagnosed(self) -> bool:
        return self.book.notes(self.case).diagnosis is not None

    @property
    def outcome(self) -> str:
        """Return what the book has of the right answer, rather by the student's own runs; empty without one."""
        return [*self._outcomes(by_recorded=False), *self._outcomes(by_recorded=True), ""][0]

    def _outcomes(self, *, by_recorded: bool) -> list[str]:
        outcomes = self.book.notes(self.case).of("Outcome")
        right = [text for text in outcomes if text.startswith(ANSWERED)]
        return [
            text for text in right if text.startswith(f"{ANSWERED} {BY_RECORDED}") is by_recorded
        ]

    @property
    def is_solved(self) -> bool:
        """Return whether the book says so: by an answer, or by a run."""
        return self.book.notes(self.case).fixed

    @property
    def moves_first_try(self) -> bool:
        """Return whether the lab's first try comes out otherwise with this case solved."""
        return self.case in first_try_cases(self.lab)

    def own_results(self) -> list[Result]:
        """Return the results of all of the case's finished runs in its folder, but those that were shown fixed."""
        folders = sorted(self.book.path.parent.glob(f"case-{self.case:02d}-trial-*"))
        results = (read_result(run, self.lab) for run in folders)
        return [result for result in results if result is not None and result.stage is None]

    def answer(self, answer: Answer) -> list[str]:
        """Note an answer in the book; return a line for each part of it that isn't right, none where it solves the case.

        UserError for one that can't be chosen, and where there is no diagnosis yet.
        """
        if not self.is_diagnosed:
            raise UserError(
                f"first say what is off in case {self.case}, in your own words: ./lab check {self.pattern} --diagnosis 'WORDS'"
            )
        runs = [(changes_in_words(changes_of(self.lab, run)), run) for run in self.own_results()]
        problems = why_not(self.judgement, answer, judged_numbers(self.judgement, runs))
        self.book.add(self.case, "Judgement", answer.text)
        if not problems and not self._outcomes(by_recorded=False):
            self.book.add(self.case, "Outcome", self._right(answer))
        return problems

    def note_judged_by_recorded(self, answer: Answer, *, is_right: bool) -> None:
        """Note an answer that was judged by the recorded runs, by a page; once, and only where there is a diagnosis."""
        if not self.is_diagnosed or self.judgement.choice(answer.choice) is None:
            return
        answer = replace(answer, by_recorded=True)
        if answer.text not in self.book.notes(self.case).judgements:
            self.book.add(self.case, "Judgement", answer.text)
        if is_right and not self.is_solved:
            self.book.add(self.case, "Outcome", self._right(answer))

    def _right(self, answer: Answer) -> str:
        chosen, number = self.judgement.choice(answer.choice), self.judgement.number
        says = chosen.says.rstrip(".") if chosen else ""
        by = f" {BY_RECORDED}" if answer.by_recorded else ""
        return f"{ANSWERED}{by}: {says}" + (f"; {number.name}: {answer.number}" if number else "")


class Questions:
    """The questions of the cases that some runs are of, where their lab has one and there is a book."""

    def __init__(self, root: Path, runs: Sequence[Path]) -> None:
        of_cases: dict[tuple[Path, str, int], list[Path]] = {}
        for run in runs:
            if named := _case_named(run):
                of_cases.setdefault((run.parent, *named), []).append(run)
        questions = (_question(root, *key, tuple(runs)) for key, runs in of_cases.items())
        self._all = [question for question in questions if question]

    @property
    def answered(self) -> list[Question]:
        """Return those that are answered right."""
        return [question for question in self._all if question.outcome]

    def superseded(self, documents: Sequence[Document]) -> set[str]:
        """Return the runs, alone and taken together, in which nothing is off but what a right answer is about."""
        behind: set[str] = set()
        for question in self.answered:
            pitfall = question.lab.case(question.case)
            explained, runs = {pitfall.finding, *pitfall.follows}, set(map(str, question.runs))
            behind |= {
                document["run"]
                for document in documents
                if runs.intersection(document.get("runs", [document["run"]]))
                and {finding["id"] for finding in document["findings"]} <= explained
            }
        return behind

    def open(self, runs_off: Collection[str]) -> list[Question]:
        """Return those that aren't answered, of cases in one of whose runs something is off."""
        return [
            question
            for question in self._all
            if not question.is_solved and any(str(run) in runs_off for run in question.runs)
        ]

    @property
    def has_one(self) -> bool:
        """Return whether there is one, and no more."""
        return len(self._all) == 1

    def only(self) -> Question:
        """Return the one that an answer is about. UserError where there is none, or several are."""
        if self.has_one:
            return self._all[0]
        of = f"{len(self._all)} cases" if self._all else "no case of yours that asks a question"
        raise UserError(
            f"--answer is about one case at a time, and these runs are of {of}: ./lab check runs/LAB/case-NN-* --answer LETTER"
        )


def _case_named(run: Path) -> tuple[str, int] | None:
    """The lab and the case that a run's plan names; None where it names none, or can't be read."""
    try:
        plan = read_object(run / PLAN)
        lab, number = plan["lab"], plan.get("case")
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return (lab, number) if isinstance(lab, str) and isinstance(number, int) else None


def _question(
    root: Path, folder: Path, name: str, number: int, runs: tuple[Path, ...]
) -> Question | None:
    try:
        lab = load_lab(root, name)
        judgement = lab.case(number).judgement
    except UserError:
        return None
    book = LabBook(folder, lab)
    return Question(lab, number, judgement, book, runs) if judgement and book.exists else None
