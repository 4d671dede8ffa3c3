"""What a lab book holds of each case, read from its text. Text in, values out.

A book is Markdown. Each case has a heading (`## Case 5: ...`) and below it entries, a list item
each (`- Prediction: 66 Mbit/s`). What a student writes in between belongs to the entry above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEADING = re.compile(r"^##\s+Case\s+(\d{1,4})\b", re.IGNORECASE)
FIRST_TRY = re.compile(r"^##\s+First try\b", re.IGNORECASE)
ANY_HEADING = re.compile(r"^#{1,2}\s")
ENTRY = re.compile(
    r"^[-*+]\s+(Seed|Prediction|Run|Hint|Diagnosis|Changed|Shown|Outcome)\b:?\s*(.*)$"
)
# A number as people write it: 66, 66.5 and, in many languages, 66,5; 1,200, where three digits follow; 3e-4.
NUMBER = re.compile(
    r"[-+]?(?:(?P<grouped>[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?)|\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
)
NONE = "none"
# A number, and the word behind it, which is its unit where it is none of these.
MEASURE = re.compile(r"(?<![\w.])\d[\d.,]*+(?:[eE][-+]?\d+)?+\s?([%‰×]|[A-Za-zµμ][A-Za-zµμ/²]*)")
NO_UNITS = frozenset(
    "a about again all also and as at because but by for from if in is it more of or since so than that "
    "the then to was when which with".split()
)
# Of a text that is longer, the rest is no prediction's.
MAX_WORDS = 4000
REASON_WORDS = 4


@dataclass(frozen=True)
class Entry:
    """One item of a case's list: what it is (`Prediction`, `Run`, ...), and its text."""

    kind: str
    text: str


@dataclass(frozen=True)
class Notes:
    """All that a book holds of one case, in order."""

    case: int
    entries: tuple[Entry, ...] = ()

    def of(self, kind: str) -> list[str]:
        """Return the texts of all entries of a kind that say something."""
        return [
            entry.text
            for entry in self.entries
            if entry.kind == kind and entry.text not in ("", NONE)
        ]

    @property
    def prediction(self) -> str | None:
        """The first prediction; None where none was made."""
        return next(iter(self.of("Prediction")), None)

    @property
    def diagnosis(self) -> str | None:
        """The last diagnosis; None where there is none."""
        return next(iter(reversed(self.of("Diagnosis"))), None)

    @property
    def hints(self) -> int:
        """How many hints were taken: the highest step."""
        steps = [re.match(r"[123]\b", text) for text in self.of("Hint")]
        return max((int(step[0]) for step in steps if step), default=0)

    @property
    def hints_before_diagnosis(self) -> int:
        """How many hints were taken before the first diagnosis that says something; all, without one."""
        before: list[Entry] = []
        for entry in self.entries:
            if entry.kind == "Diagnosis" and entry.text not in ("", NONE):
                break
            before.append(entry)
        return Notes(self.case, tuple(before)).hints

    @property
    def predicted_first(self) -> bool:
        """Does a prediction stand before the case's first run?"""
        for entry in self.entries:
            if entry.kind == "Run":
                return False
            if entry.kind == "Prediction" and entry.text not in ("", NONE):
                return True
        return False

    @property
    def shown(self) -> bool:
        """Was the mended run asked for instead of found?"""
        return bool(self.of("Shown"))

    @property
    def knows_cause(self) -> bool:
        """Is the cause no secret any more: diagnosed, told by the last hint, shown, or mended?"""
        return self.diagnosis is not None or self.hints == 3 or self.shown or self.mended

    @property
    def mended(self) -> bool:
        """Did a run of the student's own come out right?"""
        return bool(self.of("Outcome"))


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
        if found := ENTRY.match(line):
            if kind:
                yield Entry(kind, " ".join(filter(None, parts)))
            kind, parts = found[1], [found[2].strip()]
        else:
            parts.append(line.strip())
    if kind:
        yield Entry(kind, " ".join(filter(None, parts)))


def with_entry(text: str, case: int, heading: str, kind: str, words: str) -> str:
    """Return a book's text with one more entry at the end of its case's part.

    Where the case has no part yet it gets one, under `heading`, before those of later cases. All
    that stood there stays as it was.
    """
    entry = f"- {kind}: {words}"
    lines = text.splitlines()
    places = {
        int(found[1]): place for place, line in enumerate(lines) if (found := HEADING.match(line))
    }
    if case in places:
        _append(lines, places[case], entry)
    else:
        later = [place for number, place in places.items() if number > case]
        _insert(lines, min(later, default=len(lines)), f"## Case {case}: {heading}", entry)
    return "\n".join(lines).rstrip("\n") + "\n"


def with_first_try(text: str, kind: str, words: str) -> str:
    """Return a book's text with one more entry on the first try, which stands before all cases."""
    lines = text.splitlines()
    place = next((n for n, line in enumerate(lines) if FIRST_TRY.match(line)), None)
    if place is not None:
        _append(lines, place, f"- {kind}: {words}")
    else:
        cases = [n for n, line in enumerate(lines) if HEADING.match(line)]
        _insert(lines, min(cases, default=len(lines)), "## First try", f"- {kind}: {words}")
    return "\n".join(lines).rstrip("\n") + "\n"


def read_first_try(text: str) -> Notes:
    """Return what a book holds of the first try, as of a case."""
    lines = text.splitlines()
    place = next((n for n, line in enumerate(lines) if FIRST_TRY.match(line)), None)
    if place is None:
        return Notes(0)
    return Notes(0, tuple(_entries(lines[place + 1 : _end(lines, place)])))


def _end(lines: list[str], place: int) -> int:
    """Where the part ends whose heading is at `place`."""
    after = range(place + 1, len(lines))
    return next((n for n in after if ANY_HEADING.match(lines[n])), len(lines))


def _append(lines: list[str], place: int, entry: str) -> None:
    """Add an item at the end of the list below the heading at `place`."""
    end = _end(lines, place)
    while end > place + 1 and not lines[end - 1].strip():
        end -= 1
    has_list = end > place + 1
    lines[end:end] = [entry] if has_list else ["", entry]


def _insert(lines: list[str], end: int, heading: str, entry: str) -> None:
    """Add a part with one item before the line `end`."""
    while end and not lines[end - 1].strip():
        end -= 1
    lines[end:end] = ["", heading, "", entry]


def has_unit(words: str) -> bool:
    """Does a unit stand behind a number of a prediction?"""
    return any(found[1].casefold() not in NO_UNITS for found in MEASURE.finditer(words[:MAX_WORDS]))


def has_reason(words: str) -> bool:
    """Are there words beside the number and its unit, enough for a reason? If it is one, a person says."""
    rest = MEASURE.sub(_without_unit, words[:MAX_WORDS])
    return len(re.findall(r"[^\W\d_]{2,}", rest)) >= REASON_WORDS


def _without_unit(found: re.Match[str]) -> str:
    return f" {found[1]} " if found[1].casefold() in NO_UNITS else " "


def numbers_in_place(words: str) -> Iterator[tuple[re.Match[str], float]]:
    """Where numbers stand in a prediction, and what they are."""
    for found in NUMBER.finditer(words[:MAX_WORDS]):
        yield found, float(found[0].replace(",", "" if found["grouped"] else "."))


def numbers_in(words: str) -> list[float]:
    """Return all numbers of a prediction, in order."""
    return [value for _, value in numbers_in_place(words)]


def number_in(words: str) -> float | None:
    """Return the first number of a prediction; None where it has none."""
    return next(iter(numbers_in(words)), None)
