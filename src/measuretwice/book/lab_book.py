"""A student's lab book: a Markdown file, made by the first run of a case, read and added to by the commands.

Each case has a heading (`## Case 5: ...`) and below it entries, a list item each (`- Prediction: 66 Mbit/s`). What a
student writes in between belongs to the entry above it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import wait_for, write_text
from measuretwice.lab import Lab

BOOK = "lab-book.md"
# Nobody's numbers should be the pages' own, which seed 1 gives.
SEEDS = range(2, 10_000)
MAX_BYTES = 2**20
HEADING = re.compile(r"^##\s+Case\s+(\d{1,4})\b", re.IGNORECASE)
FIRST_TRY = re.compile(r"^##\s+First try\b", re.IGNORECASE)
ANY_HEADING = re.compile(r"^#{1,2}\s")
ENTRY = re.compile(
    r"^[-*+]\s+(Seed|Prediction|Run|Known|Dropped|Hint|Diagnosis|Judgement|Changed|Shown|Outcome)\b:?\s*(.*)$"
)
NONE = "none"
# So many different words make a diagnosis; or so many letters that aren't Latin.
DIAGNOSIS_WORDS = 3
DIAGNOSIS_LETTERS = 6


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
        noted_seed = read_seed(self.text)
        if noted_seed is None:
            raise UserError(
                f"{self.path}: has no seed; write a line such as '- Seed: 4711' above the first case, or give --seed"
            )
        return noted_seed

    def notes(self, case: int) -> Notes:
        """Return what the book holds of a case."""
        return self.all_notes().get(case, Notes(case))

    def all_notes(self) -> dict[int, Notes]:
        """Return what the book holds, by case; nothing where there is no book."""
        return read_notes(self.text) if self.exists else {}

    def known_cases(self) -> set[int]:
        """Return the cases whose cause is no secret any more."""
        return {case for case in self.all_notes() if self.knows_cause(case)}

    def knows_cause(self, case: int) -> bool:
        """Return whether a case's cause is no secret any more: as its notes say, or diagnosed in a word that is the cause's own."""
        notes = self.notes(case)
        return notes.knows_cause or self.names_cause(case)

    def names_cause(self, case: int) -> bool:
        """Return whether a case's diagnosis has one of the words that give its cause away."""
        diagnosis = self.notes(case).diagnosis
        if diagnosis is None or not 1 <= case <= len(self._lab.file.pitfalls):
            return False
        return self._lab.case(case).is_named_in(diagnosis)

    def first_try(self) -> Notes:
        """Return what the book holds of the first try."""
        return read_first_try(self.text) if self.exists else Notes(0)

    def add_first_try(self, kind: str, words: str) -> None:
        """Add an entry on the first try, unless it is there already."""
        line = " ".join(words.split())
        with wait_for(self.path.with_name(f".{BOOK}.lock"), busy=lambda: None):
            text = self.text
            if line not in read_first_try(text).of(kind):
                write_text(self.path, with_first_try(text, kind, line))

    def add(self, case: int, kind: str, words: str) -> None:
        """Add an entry to a case: `- kind: words`, in one line."""
        heading = self._lab.case(case).symptom
        with wait_for(self.path.with_name(f".{BOOK}.lock"), busy=lambda: None):
            text = with_entry(self.text, case, heading, kind, " ".join(words.split()))
            write_text(self.path, text)

    @property
    def text(self) -> str:
        """All that stands in it, word for word; UserError where that can't be read."""
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


@dataclass(frozen=True)
class Entry:
    """One item of a case's list: what it is (`Prediction`, `Run`, ...), and its text."""

    kind: str
    text: str

    @property
    def is_empty(self) -> bool:
        return self.text in ("", NONE)


@dataclass(frozen=True)
class Notes:
    """All that a book holds of one case, in order."""

    case: int
    entries: tuple[Entry, ...] = ()

    def of(self, kind: str) -> list[str]:
        """Return the texts of all entries of a kind that say something."""
        return [entry.text for entry in self.entries if entry.kind == kind and not entry.is_empty]

    @property
    def prediction(self) -> str | None:
        """The first prediction; None where none was made."""
        return next(iter(self.of("Prediction")), None)

    @property
    def diagnosis(self) -> str | None:
        """The last diagnosis; None where there is none."""
        return next(iter(reversed(self.of("Diagnosis"))), None)

    @property
    def judgements(self) -> list[str]:
        """The answers to the case's question, in order, wrong ones too, each as book.prediction.Answer reads it."""
        return self.of("Judgement")

    @property
    def known_lines(self) -> list[str]:
        """What is kept as known, in order: lines of output, or the student's words. What was dropped later isn't among it."""
        texts: dict[str, None] = {}
        for entry in self.entries:
            if entry.kind == "Known" and not entry.is_empty:
                texts.setdefault(entry.text)
            elif entry.kind == "Dropped":
                texts.pop(entry.text, None)
        return list(texts)

    @property
    def hints(self) -> int:
        """The highest step of help that was taken: 0 for none."""
        steps = [re.match(r"[123]\b", text) for text in self.of("Hint")]
        return max((int(step[0]) for step in steps if step), default=0)

    @property
    def hints_before_diagnosis(self) -> int:
        """The hints taken before the first diagnosis that says something; all, without one."""
        before: list[Entry] = []
        for entry in self.entries:
            if entry.kind == "Diagnosis" and not entry.is_empty:
                break
            before.append(entry)
        return Notes(self.case, tuple(before)).hints

    @property
    def predicted_first(self) -> bool:
        """Return whether a prediction stands before the case's first run."""
        for entry in self.entries:
            if entry.kind == "Run":
                return False
            if entry.kind == "Prediction" and not entry.is_empty:
                return True
        return False

    @property
    def shown(self) -> bool:
        """Return whether the fixed run was asked for instead of found."""
        return bool(self.of("Shown"))

    @property
    def knows_cause(self) -> bool:
        """Return whether the cause is no secret any more: diagnosed in some words, told by the last hint, shown, or fixed."""
        return is_in_words(self.diagnosis or "") or self.hints == 3 or self.shown or self.fixed

    @property
    def fixed(self) -> bool:
        """Return whether a run of the student's own came out right."""
        return bool(self.of("Outcome"))

    @property
    def has_outcome_of_all_runs(self) -> bool:
        """Return whether an outcome stands behind the last run: then a check of some of the runs has no other."""
        last = next((e for e in reversed(self.entries) if e.kind in ("Run", "Outcome")), None)
        return last is not None and last.kind == "Outcome" and not last.is_empty


def is_in_words(diagnosis: str) -> bool:
    """Return whether a diagnosis says something, right or wrong: an `x` doesn't. Not everybody writes words apart."""
    words = {word.casefold() for word in re.findall(r"[^\W\d_]{2,}", diagnosis)}
    others = re.findall(r"[^\W\d_a-zA-Z]", diagnosis)
    return len(words) >= DIAGNOSIS_WORDS or len(others) >= DIAGNOSIS_LETTERS


def read_seed(text: str) -> int | None:
    """Return the seed that a book says its runs begin from; None where it says none."""
    for line in text.splitlines():
        if HEADING.match(line):
            return None
        entry = ENTRY.match(line)
        if entry and entry[1] == "Seed" and re.fullmatch(r"\d{1,10}", entry[2].strip()):
            return int(entry[2])
    return None


def read_notes(text: str) -> dict[int, Notes]:
    """Return what a book holds, by case. Whatever it is, it is no error: it is somebody's own text."""
    return {case: Notes(case, tuple(_entries(lines))) for case, lines in _sections(text).items()}


def _sections(text: str) -> dict[int, list[str]]:
    sections: dict[int, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if heading := HEADING.match(line):
            current = sections.setdefault(int(heading[1]), [])
        elif ANY_HEADING.match(line):
            current = None
        elif current is not None:
            current.append(line)
    return sections


def _entries(lines: list[str]) -> Iterator[Entry]:
    kind, parts = "", [""]
    for line in lines:
        if match := ENTRY.match(line):
            if kind:
                yield Entry(kind, " ".join(filter(None, parts)))
            kind, parts = match[1], [match[2].strip()]
        else:
            parts.append(line.strip())
    if kind:
        yield Entry(kind, " ".join(filter(None, parts)))


def with_entry(text: str, case: int, heading: str, kind: str, words: str) -> str:
    """Return a book's text with one more entry at the end of its case's part.

    Where the case has no part yet it gets one, under `heading`, before those of later cases. All
    that stood there stays as it was.
    """
    lines = text.splitlines()
    headings = {
        int(match[1]): index for index, line in enumerate(lines) if (match := HEADING.match(line))
    }
    later = [index for number, index in headings.items() if number > case]
    new = (min(later, default=len(lines)), f"## Case {case}: {heading}")
    return _with_item(lines, headings.get(case), new, f"- {kind}: {words}")


def with_first_try(text: str, kind: str, words: str) -> str:
    """Return a book's text with one more entry on the first try, which stands before all cases."""
    lines = text.splitlines()
    new = (_first_match(HEADING, lines, 0), "## First try")
    index = _first_match(FIRST_TRY, lines, 0)
    return _with_item(lines, index if index < len(lines) else None, new, f"- {kind}: {words}")


def read_first_try(text: str) -> Notes:
    """Return what a book holds of the first try, as of a case."""
    lines = text.splitlines()
    start = _first_match(FIRST_TRY, lines, 0) + 1
    return Notes(0, tuple(_entries(lines[start : _first_match(ANY_HEADING, lines, start)])))


def _first_match(pattern: re.Pattern[str], lines: list[str], start: int) -> int:
    """The index of the first line from `start` on that matches; that behind the last where none does."""
    indexes = range(start, len(lines))
    return next((index for index in indexes if pattern.match(lines[index])), len(lines))


def _with_item(lines: list[str], heading: int | None, new: tuple[int, str], item: str) -> str:
    """The book's text with an item at the end of the part whose heading is at this index.

    Without such a part a new one is made: before the line with the index in `new`, under the heading there.
    """
    end, first = new[0], 0
    if heading is not None:
        first = heading + 1
        end = _first_match(ANY_HEADING, lines, first)
    while end > first and not lines[end - 1].strip():
        end -= 1
    if heading is None:
        lines[end:end] = ["", new[1], "", item]
    else:
        lines[end:end] = [item] if end > first else ["", item]
    return "\n".join(lines).rstrip("\n") + "\n"
