"""Where a student is, by their lab books."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measuretwice.book.book import LabBook
from measuretwice.book.notes import Notes
from measuretwice.course.first_try import try_so_far
from measuretwice.lab import Lab, Pitfall, load_lab, published_labs


@dataclass(frozen=True)
class CaseProgress:
    """What the lab book has of a case. `runs` and `hints` are counts, `minutes` what the case takes."""

    case: int
    symptom: str
    minutes: int
    predicted: str | None
    runs: int
    hints: int
    diagnosis: str | None
    shown: bool
    done: bool

    @property
    def step(self) -> str:
        """How far the case is, in a word; empty where it isn't begun."""
        if self.done:
            return "solved"
        if self.shown:
            return "shown"
        if self.diagnosis:
            return "diagnosed"
        return "run" if self.runs else ""


@dataclass(frozen=True)
class LabProgress:
    """A lab's cases, the minutes that are left, and its first try in words. `book` is None where none is begun."""

    lab: str
    book: Path | None
    cases: list[CaseProgress]
    minutes_left: int
    first_try: str

    @property
    def solved(self) -> int:
        return sum(case.done for case in self.cases)

    def to_json(self) -> dict[str, Any]:
        """Return it as `./lab progress --json` prints it."""
        return {**asdict(self), "book": str(self.book) if self.book else None}


def read_progress(root: Path, lab_name: str | None, runs: Path) -> list[LabProgress]:
    """Return a lab's progress, or that of all labs with cases. UserError for an unknown lab, or a book that can't be read."""
    labs = [load_lab(root, lab_name)] if lab_name else list(published_labs(root).values())
    return [_of_lab(lab, runs) for lab in labs if lab.file.pitfalls]


def _of_lab(lab: Lab, runs: Path) -> LabProgress:
    book = LabBook(runs / lab.name, lab)
    notes = book.all_notes()
    cases = [
        _of_case(number, pitfall, notes.get(number, Notes(number)))
        for number, pitfall in enumerate(lab.file.pitfalls, start=1)
    ]
    return LabProgress(
        lab=lab.name,
        book=book.path if book.exists else None,
        cases=cases,
        minutes_left=sum(case.minutes for case in cases if not case.done),
        first_try=try_so_far(lab, runs, book),
    )


def _of_case(number: int, pitfall: Pitfall, notes: Notes) -> CaseProgress:
    return CaseProgress(
        case=number,
        symptom=pitfall.symptom,
        minutes=pitfall.minutes,
        predicted=notes.prediction,
        runs=len(notes.of("Run")),
        hints=notes.hints,
        diagnosis=notes.diagnosis,
        shown=notes.shown,
        done=notes.mended,
    )
