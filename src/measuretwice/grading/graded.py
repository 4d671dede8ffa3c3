"""A submission with its marks. The order of all fields is that of `./lab grade --json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from measuretwice.grading.contents import OurRun, Raised, SetFinding
from measuretwice.grading.copies import Remark
from measuretwice.lab import StageName


@dataclass(frozen=True)
class Mark:
    """One criterion: points that are certain (`low`), that are possible (`high`), and of how many.

    Of a pitfall's ladder: what was seen for each rung, in words; of its prediction: `predicted`.
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
    are lines that call for nothing.
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

    @property
    def low(self) -> float:
        return sum(mark.low for mark in self.marks)

    @property
    def high(self) -> float:
        return sum(mark.high for mark in self.marks)

    @property
    def odd(self) -> bool:
        """Is there something that the instructor should look at first?"""
        return bool(self.problem or self.says or any(not r.proves_nothing for r in self.remarks))

    def count(self, rung: str) -> int:
        """How many mistakes have a rung: 'predicted', 'shown', 'diagnosed' (answered), 'mended' or 'again'."""
        return sum(getattr(mark, rung).startswith("yes") for mark in self.marks)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "low": self.low, "high": self.high}
