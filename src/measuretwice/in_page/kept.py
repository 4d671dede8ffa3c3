"""What a browser keeps of a reader: runs that can't be read are left aside, hints and diagnoses come into the lab book."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.book.book import LabBook
from measuretwice.book.notes import NONE
from measuretwice.lab import Lab
from measuretwice.runs.folder import PLAN
from measuretwice.runs.result import read_result

# In a lab's folder of runs: no run is looked for there, and none of it is handed in.
ASIDE = ".unreadable"
# Longer than any diagnosis; a book has its limit, too.
MOST_CHARACTERS = 20_000
HINTS = ("1", "2", "3")


class Readable:
    """Which runs of a folder can be read: each is looked at once. `lines` say which could not, and what to do."""

    def __init__(self) -> None:
        self._good: set[Path] = set()
        self._lines: dict[Path, dict[str, str]] = {}

    def lines(self, folder: Path) -> list[str]:
        return list(self._lines.get(folder, {}).values())

    def look(self, folder: Path, lab: Lab) -> None:
        """Put aside the runs of a lab's folder that can't be read: one mustn't take the others with it."""
        for run in (plan.parent for plan in sorted(folder.glob(f"*/{PLAN}"))):
            if run in self._good:
                continue
            try:
                read_result(run, lab)
            except UserError:
                place = folder / ASIDE / run.name
                shutil.rmtree(place, ignore_errors=True)
                place.parent.mkdir(exist_ok=True)
                run.rename(place)
                self._lines.setdefault(folder, {})[run.name] = (
                    f"{run.name}: what was kept of this run can't be read. It is left out; run it again."
                )
            else:
                self._good.add(run)

    def made(self, run: Path) -> None:
        """A run was made anew in place of one that could not be read."""
        self._lines.get(run.parent, {}).pop(run.name, None)

    def forget(self, folder: Path) -> None:
        self._lines.pop(folder, None)
        self._good = {run for run in self._good if run.parent != folder}


def note_written(
    lab: Lab, folder: Path, diagnoses: Mapping[str, str], hints: Mapping[str, str], *, begin: bool
) -> None:
    """Bring what pages keep into the lab book: diagnoses, and the hints that were opened before them, by the cases' numbers.

    A book that isn't there is begun only if `begin`.
    """
    book = LabBook(folder, lab)
    said = _by_case(lab, diagnoses)
    taken = {case: step for case, step in _by_case(lab, hints).items() if step in HINTS}
    if begin and (said or taken) and not book.exists:
        book.open()
    if not book.exists:
        return
    for case, step in sorted(taken.items()):
        notes = book.notes(case)
        if int(step) > notes.hints and not notes.mended:
            book.add(case, "Hint", step)
    for case, text in sorted(said.items()):
        if text != book.notes(case).diagnosis:
            book.add(case, "Diagnosis", text)


def _by_case(lab: Lab, texts: Mapping[str, str]) -> dict[int, str]:
    said = {int(case): _one_line(text) for case, text in texts.items() if case.isdecimal()}
    return {
        case: text
        for case, text in said.items()
        if text and text != NONE and 1 <= case <= len(lab.file.pitfalls)
    }


def _one_line(text: str) -> str:
    return " ".join(text[:MOST_CHARACTERS].split())
