"""One check of runs, of folders of them, of archives, and of files that people bring.

What stands there is looked at and read in a process apart, then judged here. `checked` leads through it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from measuretwice.base.errors import UserError
from measuretwice.base.limited_process import describe_unforeseen
from measuretwice.course.archives import Unpacked, lay_open, places_for
from measuretwice.course.findings import (
    DeclaredRun,
    Document,
    Reference,
    check_brought,
    check_live,
    check_one,
    check_together,
)
from measuretwice.course.judging import Question, Questions
from measuretwice.course.lab_books import CaseBooks, CaseOutcome, note_live_outcome, without
from measuretwice.course.reading import NONSENSE, Part, Unread, is_document, is_look, read_apart
from measuretwice.live.session import FACTS
from measuretwice.measure import imported
from measuretwice.runs.folder import PLAN, runs_in
from measuretwice.stats.intervals import binomial_interval


class Check:
    """One check, a step after the other: `look`, `leave_out_empty`, `read`, then `judge`.

    `unread` are lines about what can't be read, as they come up; `books` are the lab books of the runs that were found;
    `runs_of_solved` are those that `judge` left out, since a solved case explains all that is off in them.
    """

    def __init__(self, root: Path, scratch: Path, places: Unpacked, hint: int | None) -> None:
        self.root, self.scratch, self.places, self.hint = root, scratch, places, hint
        self.unread: list[str] = []
        self.books = CaseBooks(root, [])
        self.questions = Questions(root, [])
        self._documents: list[Document] = []
        self._runs: list[Path] = []
        self._others: dict[Path, dict[str, Any]] = {}
        self._unread_runs: list[str] = []
        self._live: list[tuple[Path, Document]] = []
        self._left_out = False
        self._nothing = ""
        self.runs_of_solved: list[str] = []

    def look(self, targets: Sequence[Path]) -> list[str]:
        """Look what stands where something was named; archives are laid open. Return a line for what is left out."""
        pairs = list(zip(targets, self.places.targets, strict=True))
        parts = [Part(str(target), partial(_look, target, place)) for target, place in pairs]
        notes: list[str] = []
        looked_by_place: dict[Path, dict[str, Any]] = {}
        for (_, place), looked in zip(pairs, self._read(parts, is_look), strict=True):
            if looked is not None:
                notes += [f"{line}; the rest is taken" for line in looked["refused"]]
                looked_by_place[place] = looked
        unreadable = [line for looked in looked_by_place.values() for line in looked["unreadable"]]
        self._left_out = bool(unreadable)
        self._runs = [Path(run) for looked in looked_by_place.values() for run in looked["runs"]]
        self._others = {
            place: looked for place, looked in looked_by_place.items() if not looked["runs"]
        }
        live = [place for place, looked in self._others.items() if looked["live"]]
        self.books = CaseBooks(self.root, self._runs, live)
        self.questions = Questions(self.root, self._runs)
        return notes + [f"{line}; it is left out" for line in unreadable]

    def leave_out_empty(self) -> list[str]:
        """Leave out folders that hold nothing; return a line for each. `read` refuses to, where nothing else is there."""
        empty = [
            f"{place}: an empty folder, nothing was measured there"
            for place, looked in self._others.items()
            if looked["empty"]
        ]
        self._others = {place: at for place, at in self._others.items() if not at["empty"]}
        if empty and not (self._others or self._runs or self.unread):
            self._nothing = empty.pop()
        return [f"{line}; it is left out" for line in empty]

    def read(self, declared: DeclaredRun) -> list[Document]:
        """Read all that was found and return what the checker says of it.

        Files that are no run's are of one run, which is the `declared` one. UserError where there is nothing to read.
        """
        if self._nothing:
            raise UserError(self._nothing)
        live = [place for place, looked in self._others.items() if looked["live"]]
        brought = [place for place in self._others if place not in live]
        parts = [self._part(check_one, run) for run in self._runs]
        parts += [self._part(check_live, folder) for folder in live]
        if brought:
            parts.append(self._brought(brought, declared))
        # What judging needs is loaded once, here, and not by each process that reads.
        binomial_interval(10, 0.5, 0.9)
        documents = cast(list[Document | None], self._read(parts, is_document))
        of_runs, rest = documents[: len(self._runs)], documents[len(self._runs) :]
        answers = [document for document in of_runs if document is not None]
        answers += self._together(answers)
        self._unread_runs = [
            str(run) for run, document in zip(self._runs, of_runs, strict=True) if document is None
        ]
        self._live = [
            (folder, document)
            for folder, document in zip(live, rest, strict=False)
            if document is not None
        ]
        self._documents = answers + [document for document in rest if document is not None]
        return self._documents

    def judge(self) -> list[Document]:
        """Return the documents that count: a solved case's earlier runs are no fault any more."""
        try:
            superseded = self.questions.superseded(self._documents)
            self.books.leave_out({question.key for question in self.questions.answered})
            superseded |= self.books.superseded(self._documents, self._unread_runs)
        except UserError as error:
            self.unread.append(self.places.named(str(error)))
            self.books, superseded = CaseBooks(self.root, []), set()
        self.runs_of_solved = sorted(superseded)
        return without(superseded, self._documents)

    def note_outcomes(self, documents: Sequence[Document]) -> list[CaseOutcome]:
        """Note in the lab books what was found in runs, and return it.

        UserError where a book or a run's result can't be read.
        """
        return self.books.note_outcomes(documents, self._unread_runs)

    def open_questions(self, documents: Sequence[Document]) -> list[Question]:
        """Return the questions of cases that aren't solved, by the documents that count."""
        off = {
            run
            for document in documents
            if document["findings"]
            for run in document.get("runs", [document["run"]])
        }
        return self.questions.open(off)

    def note_live_outcomes(self) -> list[CaseOutcome]:
        """The same of live labs."""
        outcomes = (
            note_live_outcome(self.root, folder, document) for folder, document in self._live
        )
        return [outcome for outcome in outcomes if outcome is not None]

    def exit_code(self, documents: Sequence[Document]) -> int:
        """Return 1 where there are findings, else 2 where a part can't be read at all, else 3 where something of it
        was brought in vain, else 0: all that was asked for was seen."""
        if any(document["findings"] for document in documents):
            return 1
        if self._left_out or self.unread:
            return 2
        return 3 if any(document.get("unread") for document in documents) else 0

    def _part(self, check: Callable[..., Document], folder: Path) -> Part:
        def work(reference_of: Reference) -> Document:
            return check(self.root, folder, self.hint, reference_of)

        return Part(self.places.named(str(folder)), work)

    def _brought(self, brought: list[Path], declared: DeclaredRun) -> Part:
        more = f" and {len(brought) - 1} more" if len(brought) > 1 else ""

        def work(_: Reference) -> Document:
            return check_brought(self.root, brought, declared, self.hint)

        return Part(f"{self.places.named(str(brought[0]))}{more}", work)

    def _read(self, parts: list[Part], is_known: Callable[[Any], bool]) -> list[Any]:
        """Each part's answer, looked at as what comes from outside; None where there is none to use."""
        answers: list[Any] = []
        for part, answer in zip(
            parts, read_apart(self.root, parts, self.scratch), strict=True
        ):  # fmt: skip
            usable = not isinstance(answer, Unread) and is_known(answer)
            answers.append(answer if usable else None)
            if not usable:
                why = answer.why if isinstance(answer, Unread) else f"{part.name}: {NONSENSE}"
                self.unread.append(self.places.named(why))
        return answers

    def _together(self, documents: list[Document]) -> list[Document]:
        try:
            return check_together(self.root, documents, self.hint)
        except UserError as error:
            self.unread.append(str(error))
        except Exception as error:
            # Their values are strangers'.
            self.unread.append(
                f"{len(documents)} runs taken together: {describe_unforeseen(error)}"
            )
        return []


@contextmanager
def open_check(root: Path, targets: Sequence[Path], hint: int | None) -> Iterator[Check]:
    """Begin a check; archives are laid open for as long as it lasts.

    UserError, also of what goes wrong within it, names what was asked for.
    """
    # What is called wrongly is said before anything is read.
    for target in targets:
        if problem := imported.unreadable(target):
            raise UserError(f"{target}: {problem}")
    with TemporaryDirectory(prefix="measuretwice-check-") as scratch:
        places = places_for(targets, Path(scratch))
        try:
            yield Check(root, Path(scratch), places, hint)
        except UserError as error:
            raise UserError(places.named(str(error)), error.exit_code) from None


def _look(target: Path, place: Path, _: Reference) -> dict[str, Any]:
    """Return the runs of a target, and what can't be read of it; an archive is first laid open in `place`."""
    refused = lay_open(target, place) if place != target else []
    runs = runs_in(place)
    return {
        "refused": refused,
        "runs": [str(run) for run in runs],
        "unreadable": _unreadable_folders(place) if runs else [],
        "empty": place.is_dir() and not any(names for _, _, names in os.walk(place)),
        "live": (place / FACTS).is_file(),
    }


def _unreadable_folders(target: Path) -> list[str]:
    """The folders beside runs that can't be looked into, with the reason. What is inside of a run, that run names."""
    lines: list[str] = []

    def refuse(error: OSError) -> None:
        lines.append(f"{error.filename}: can't be read ({error.strerror})")

    for _, folders, names in os.walk(target, onerror=refuse):
        if PLAN in names:
            folders.clear()
        folders.sort()
    return lines
