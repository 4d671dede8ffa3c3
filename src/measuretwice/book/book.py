"""The lab book's file: made by the first run of a case, read and added to by the commands."""

from __future__ import annotations

import secrets
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_text
from measuretwice.base.locks import wait_for
from measuretwice.book.notes import (
    Notes,
    read_first_try,
    read_notes,
    read_seed,
    with_entry,
    with_first_try,
)
from measuretwice.lab import Lab

BOOK = "lab-book.md"
# Nobody's numbers should be the pages' own, which seed 1 gives.
SEEDS = range(2, 10_000)
MAX_BYTES = 2**20


class LabBook:
    """One student's book of one lab: RUNS/LAB/lab-book.md, theirs to edit.

    Lines are added to what stands there; nothing is ever rewritten.
    """

    def __init__(self, folder: Path, lab: Lab) -> None:
        """`folder` is where the lab's runs are."""
        self.path = folder / BOOK
        self._lab = lab

    @property
    def exists(self) -> bool:
        return self.path.is_file()

    def open(self, seed: int | None = None) -> int:
        """Begin the book where there is none yet, and return its seed.

        The seed is `seed`, or drawn. One that a book has stays.
        """
        if not self.exists:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            seed = secrets.choice(SEEDS) if seed is None else seed
            write_text(self.path, _first_page(self._lab, seed))
        found = read_seed(self._read())
        if found is None:
            raise UserError(
                f"{self.path}: says no seed: a line such as '- Seed: 4711' above the first case, or --seed"
            )
        return found

    def notes(self, case: int) -> Notes:
        """Return what the book holds of a case."""
        return self.all_notes().get(case, Notes(case))

    def all_notes(self) -> dict[int, Notes]:
        """Return what the book holds, by case; nothing where there is no book."""
        return read_notes(self._read()) if self.exists else {}

    def known_cases(self) -> set[int]:
        """Return the cases whose cause is no secret any more."""
        return {case for case, notes in self.all_notes().items() if notes.knows_cause}

    @property
    def text(self) -> str:
        """All that stands in it, word for word."""
        return self._read()

    def first_try(self) -> Notes:
        """Return what the book holds of the first try."""
        return read_first_try(self._read()) if self.exists else Notes(0)

    def add_first_try(self, kind: str, words: str) -> None:
        """Add an entry on the first try, unless it is there already."""
        said = " ".join(words.split())
        with wait_for(self.path.with_name(f".{BOOK}.lock"), busy=lambda: None):
            text = self._read()
            if said not in read_first_try(text).of(kind):
                write_text(self.path, with_first_try(text, kind, said))

    def add(self, case: int, kind: str, words: str) -> None:
        """Add an entry to a case: `- kind: words`, in one line."""
        heading = self._lab.case(case).symptom
        with wait_for(self.path.with_name(f".{BOOK}.lock"), busy=lambda: None):
            text = with_entry(self._read(), case, heading, kind, " ".join(words.split()))
            write_text(self.path, text)

    def _read(self) -> str:
        try:
            if self.path.stat().st_size > MAX_BYTES:
                raise UserError(f"{self.path}: larger than a book can be; move it away")
            return self.path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{self.path}: isn't text in UTF-8; save it as such") from None
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror}") from None


def _first_page(lab: Lab, seed: int) -> str:
    return f"""# Lab book: {lab.file.lab.title}

This file is yours: correct it, write into it. `./lab` adds lines at the end of a case and changes none.
`./lab report` reads it.

- Seed: {seed}
"""
