"""A submission with its marks. The order of all fields is that of `./lab grade --json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from measuretwice.grading.contents import CaseNotes, Figure, OurRun, Raised, SetFinding
from measuretwice.grading.remarks import Remark
from measuretwice.lab import StageName


@dataclass(frozen=True)
class Mark:
    """One criterion: points that are certain (`low`), that are possible (`high`), and of how many.

    Of a pitfall's ladder: what was seen for each rung, in words; of its prediction: `predicted`. `given` is
    what the lecturer gave, None where nothing yet, with a `remark`.
    """

    question: int
    title: str
    pitfall: str | None
    points: float
    low: float
    high: float
    shown: str = ""
    diagnosed: str = ""
    mended: str = ""
    again: str = ""
    answer: str = ""
    predicted: str = ""
    case: int | None = None
    given: float | None = None
    remark: str = ""

    @property
    def points_now(self) -> float:
        """What counts so far: the lecturer's mark, or what is certain by machine."""
        return self.low if self.given is None else self.given

    @property
    def is_open(self) -> bool:
        """Is there something left to judge?"""
        return self.given is None and self.high > self.low


@dataclass(frozen=True)
class Answer:
    """What a report says to a question: `text` is None where it has no place for it that can be read.

    `cited` are lines of it that stand in a raw file, with the file; `figures` numbers that a run has measured.
    """

    question: int
    text: str | None
    cited: dict[str, str]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class HandedFile:
    """One file or folder as the system handed it over: its path for a link, and when it came, in words."""

    path: str
    name: str
    says: str
    counts: bool
    feedback: str | None


@dataclass(frozen=True)
class JudgedFiles:
    """A student's own files with the findings that they raise.

    `problem` says why they can't be judged.
    """

    folder: str
    trial: int
    pitfall: str | None
    stage: StageName | None
    refused: tuple[str, ...]
    missing: tuple[str, ...]
    digests: dict[str, str]
    cookies: tuple[str, ...]
    lab: str
    findings: tuple[Raised, ...] = ()
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.folder


AnyRun = OurRun | JudgedFiles


@dataclass(frozen=True)
class Graded:
    """What a submission is worth by machine.

    `problem` says why it could not be read at all, `says` are lines for the instructor, and `notes`
    are lines that call for nothing. `written` are other documents to be read by hand, `status` what the roster
    says of what was handed in. `added` are points that the lecturer gave or took for the whole, `remark` the
    word on it. `place` is this submission's among all that were read, `book` the lab book's cases.
    """

    name: str
    student: str | None
    handed_in: bool = True
    problem: str | None = None
    says: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[OurRun, ...] = ()
    brought: tuple[JudgedFiles, ...] = ()
    together: tuple[SetFinding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    marks: tuple[Mark, ...] = ()
    answers: tuple[Answer, ...] = ()
    written: tuple[str, ...] = ()
    files: tuple[HandedFile, ...] = ()
    status: str = ""
    minutes: int = 0
    added: float | None = None
    remark: str = ""
    place: int | None = None
    book: tuple[CaseNotes, ...] = ()

    @property
    def id(self) -> str:
        """By what the lecturer's marks know this student."""
        return self.student or self.name

    @property
    def is_readable(self) -> bool:
        """Was anything read of it that points can come from?"""
        answered = any(answer.text for answer in self.answers)
        return bool(self.runs or answered or any(not files.problem for files in self.brought))

    @property
    def is_marked(self) -> bool:
        """Did the lecturer give anything?"""
        return self.added is not None or any(mark.given is not None for mark in self.marks)

    @property
    def open(self) -> int:
        """How many criteria are left to judge."""
        return sum(mark.is_open for mark in self.marks)

    @property
    def total(self) -> float | None:
        """The points to hand on; None where nothing was read, and nobody gave any."""
        if not self.is_marked and (self.problem or not self.is_readable):
            return None
        return max(0.0, sum(mark.points_now for mark in self.marks) + (self.added or 0.0))

    @property
    def low(self) -> float:
        return sum(mark.low for mark in self.marks)

    @property
    def high(self) -> float:
        return sum(mark.high for mark in self.marks)

    @property
    def odd(self) -> bool:
        """Is there something that the instructor should look at first?"""
        return bool(self.problem or self.says or any(r.is_odd for r in self.remarks))

    def count(self, rung: str) -> int:
        """How many mistakes have a rung: 'predicted', 'shown', 'diagnosed' (answered), 'mended' or 'again'."""
        return sum(getattr(mark, rung).startswith("yes") for mark in self.marks)

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self)
        for run in whole["runs"]:
            # What its files are known by says nothing to a reader; the report has their digests.
            del run["sketches"], run["files"]
        return {
            **whole,
            "low": self.low,
            "high": self.high,
            "total": self.total,
            "open": self.open,
        }
