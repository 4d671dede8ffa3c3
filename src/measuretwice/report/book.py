"""The lab book in a report: predictions beside results; and no cause before its student has found it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from measuretwice.book.notes import Notes, read_first_try, read_notes
from measuretwice.checks import Finding
from measuretwice.lab import Lab
from measuretwice.report.tables import NONE, Table
from measuretwice.runs.remeasure import RunData

# Each lab's notes by case.
Books = Mapping[str, Mapping[int, Notes]]
OFF = "something is off"


@dataclass(frozen=True)
class BookOfLab:
    """A lab's book in a report: its first try and its cases, a table each, and all of it word for word."""

    lab: str
    tables: tuple[Table, ...]
    text: str


def book_of_lab(lab: Lab, text: str) -> BookOfLab | None:
    """Return a lab's book as a report has it; None where nothing is noted in it."""
    tables = (first_try_table(lab, read_first_try(text)), book_table(lab, read_notes(text)))
    noted = tuple(table for table in tables if table is not None)
    return BookOfLab(lab.name, noted, text.strip("\n")) if noted else None


def first_try_table(lab: Lab, notes: Notes) -> Table | None:
    """Return what was predicted of the first try, and what came out, then and after each case; None without."""
    runs = [text.partition(": ") for text in notes.of("Run")]
    rows = [["predicted", text] for text in notes.of("Prediction")]
    rows += [[after, came] if colon else ["", after] for after, colon, came in runs]
    if not rows:
        return None
    return Table(f"First try: {lab.file.lab.title}", ["when", "what came out"], rows, frozenset())


def book_table(lab: Lab, notes: Mapping[int, Notes]) -> Table | None:
    """Return a lab's cases as its book has them, a row each; None where it has none."""
    rows = [
        [
            str(number),
            pitfall.symptom,
            "; ".join(notes[number].of("Prediction")) or NONE,
            "; ".join(text.split(": ", 1)[-1] for text in notes[number].of("Run")) or NONE,
            str(notes[number].hints or "none"),
            notes[number].diagnosis or NONE,
            "; ".join(notes[number].of("Changed")) or ("shown" if notes[number].shown else NONE),
            "solved" if notes[number].mended else NONE,
        ]
        for number, pitfall in enumerate(lab.file.pitfalls, start=1)
        if number in notes
    ]
    if not rows:
        return None
    return Table(
        f"Lab book: {lab.file.lab.title}",
        [
            "case",
            "what is seen",
            "predicted",
            "measured",
            "hints",
            "diagnosis",
            "changed",
            "outcome",
        ],
        rows,
        frozenset({0, 4}),
    )


def is_known(run: RunData, books: Books) -> bool:
    """May the report name what is wrong with a run? Not of a case before its student did, or took the last hint."""
    if not run.plan.case:
        return True
    notes = books.get(run.plan.lab, {}).get(run.plan.case)
    return notes is not None and (notes.diagnosis is not None or notes.hints == 3)


def without_cause(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings that say what is off, and not why."""
    return [
        replace(
            finding,
            id=OFF,
            measured=finding.off or finding.measured,
            expected=NONE if finding.off else finding.expected,
            why="",
        )
        for finding in findings
    ]
