"""Lab books in a hand-in: the file itself, or, where it is missing, the one in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import BOOK, LabBook, Notes, read_notes
from measuretwice.book.prediction import has_reason, has_unit, number_in
from measuretwice.grading.contents import CaseNotes
from measuretwice.grading.unpack import shown
from measuretwice.lab import Lab, published_labs

MAX_SAID = 20_000


def read_books(
    root: Path, files: Iterable[Path], reported: Mapping[str, str], tree: Path
) -> tuple[dict[str, tuple[CaseNotes, ...]], list[str]]:
    """Return each lab's book, by its cases, and why others can't be read.

    `files` are those called lab-book.md, `reported` the books that reports hold, by lab. Of two books
    of one lab the one that says more counts.
    """
    labs = published_labs(root)
    books: dict[str, tuple[CaseNotes, ...]] = {}
    problems = []
    for path in files:
        name = shown(path.relative_to(tree).as_posix())
        try:
            text = LabBook(path.parent, next(iter(labs.values()))).text
        except UserError as error:
            problems.append(str(error).replace(str(path), name))
            continue
        lab = _lab_of(path, text, labs)
        if lab is None:
            problems.append(f"{name}: nothing says which lab's book it is")
        else:
            _take(books, lab, text)
    found = set(books)
    for name, text in reported.items():
        if name in labs and name not in found:
            _take(books, labs[name], text)
    return books, problems


def _lab_of(path: Path, text: str, labs: Mapping[str, Lab]) -> Lab | None:
    """Whose book it is: by its folder's name, or else by the title on its first page."""
    if path.parent.name in labs:
        return labs[path.parent.name]
    first = text.lstrip().split("\n", 1)[0]
    return next((lab for lab in labs.values() if lab.file.lab.title in first), None)


def _take(books: dict[str, tuple[CaseNotes, ...]], lab: Lab, text: str) -> None:
    cases = [
        _case(notes)
        for number, notes in sorted(read_notes(text).items())
        if 1 <= number <= len(lab.file.pitfalls)
    ]
    if len(cases) >= len(books.get(lab.name, ())):
        books[lab.name] = tuple(cases)


def _case(notes: Notes) -> CaseNotes:
    said = notes.prediction
    return CaseNotes(
        notes.case,
        said and said[:MAX_SAID],
        first=notes.predicted_first,
        number=said is not None and number_in(said[:MAX_SAID]) is not None,
        unit=said is not None and has_unit(said),
        reason=said is not None and has_reason(said),
        hints=notes.hints,
        hints_before=notes.hints_before_diagnosis,
        diagnosis=notes.diagnosis and notes.diagnosis[:MAX_SAID],
        shown=notes.shown,
        mended=notes.mended,
    )


def is_book(path: Path) -> bool:
    return path.name == BOOK
