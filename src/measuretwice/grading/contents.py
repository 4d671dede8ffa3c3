"""What a submission holds, as the process that reads it hands it on. Plain data, judged nowhere here.

It crosses a pipe as JSON, from a process that has worked on files from outside; from_json takes
nothing that isn't exactly of these types. The order of fields is that of `./lab grade --json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cache

from pydantic import TypeAdapter

from measuretwice.checks import Finding, Severity
from measuretwice.grading.likeness import Sketch
from measuretwice.lab import StageName, Value
from measuretwice.measure.fields import Measured


@dataclass(frozen=True)
class Raised:
    """A finding that a run's values raise, without its explanations."""

    id: str
    severity: Severity
    measured: str
    expected: str

    @classmethod
    def of(cls, finding: Finding) -> Raised:
        return cls(finding.id, finding.severity, finding.measured, finding.expected)


@dataclass(frozen=True)
class Figure:
    """A number in an answer that a run has measured: as it stands there, which run, which value, how large."""

    text: str
    run: str
    value: str
    measured: float


@dataclass(frozen=True)
class Agreement:
    """What a run's folder says of itself.

    `seeds` are other seeds than the plan's, by the file that names them; `kernel_seed` what plan.json has for it, where that isn't the one
    that follows from the seed. `contradictions` are all other ways in which the folder is of two runs; `edits` names what result.json has
    otherwise than the raw files, `derived_by` the code that had read them, `same_code` whether that is this one. `lacks` are files that ./lab run writes and
    that aren't there.
    """

    seeds: dict[str, int] = field(default_factory=dict)
    kernel_seed: int | None = None
    contradictions: tuple[str, ...] = ()
    edits: str = ""
    derived_by: str = ""
    same_code: bool = True
    lacks: tuple[str, ...] = ()

    @property
    def is_of_one_run(self) -> bool:
        return not (self.seeds or self.kernel_seed is not None or self.contradictions)


@dataclass(frozen=True)
class OurRun:
    """A run of ./lab run, measured anew.

    `run` is its folder below the submission, `case` the number of the case that it was run as, `plan` its plan's digest, `changed` the settings that
    aren't the lab's for this trial and stage, `digest` that of all raw files, and `cookies` are what
    iperf3 called its tests. `anchor` is its place in the report made of all runs, `command` what runs it
    again, made from its plan once that was checked. `where` and `kernel` are the plan's, `edited` says whether node scripts were the
    student's own. `files` are the raw files' digests, `sketches` what they are known by, both by path below raw/.
    """

    run: str
    lab: str
    trial: int
    pitfall: str | None
    stage: StageName | None
    seed: int
    plan: str
    params: dict[str, Value]
    changed: tuple[str, ...]
    findings: tuple[Raised, ...]
    digest: str
    cookies: tuple[str, ...]
    case: int | None = None
    anchor: str = ""
    command: str = ""
    kernel_seed: int = 0
    where: str = "virtual"
    kernel: str = ""
    edited: bool = False
    agreement: Agreement = Agreement()
    files: dict[str, str] = field(default_factory=dict)
    sketches: dict[str, Sketch] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.run


@dataclass(frozen=True)
class SetFinding:
    """A finding that no single run shows: of which stage's runs, and in which of them (by name)."""

    lab: str
    id: str
    measured: str
    expected: str
    pitfall: str | None
    stage: StageName | None
    runs: tuple[str, ...]


@dataclass(frozen=True)
class BroughtFiles:
    """A student's own files, in a folder whose name says what they are of.

    `measured` is what they hold, `refused` what can't be read in them, `missing` which kinds would
    allow more checks. `digests` are of those files that are never the same for two tests, each
    with the file's path.
    """

    folder: str
    trial: int
    pitfall: str | None
    stage: StageName | None
    measured: Measured = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseNotes:
    """What a lab book holds of one case, as far as marking looks at it.

    `first` says whether a prediction stands before the case's first run, `number`, `unit` and `reason`
    whether it has what looks like one. `hints` are those taken, `hints_before` those of them before
    the first diagnosis. `shown`: the mended run was asked for.
    """

    case: int
    prediction: str | None = None
    first: bool = False
    number: bool = False
    unit: bool = False
    reason: bool = False
    hints: int = 0
    hints_before: int = 0
    diagnosis: str | None = None
    shown: bool = False
    mended: bool = False


@dataclass(frozen=True)
class Contents:
    """All that was read of a submission.

    `refused` and `unusable` are lines on files and runs that weren't taken; `unread` are files that
    nothing says what they are of, `written` documents for a person to read. `places` are what
    stands in a report's places for answers, by question; `quotes`, by question and run, the raw
    files that have a line which the answer quotes; `cited`, by question and line, where it stands;
    `figures`, by question, the numbers that a run has measured. `books` are lab books, by lab.
    """

    refused: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    runs: tuple[OurRun, ...] = ()
    together: tuple[SetFinding, ...] = ()
    brought: tuple[BroughtFiles, ...] = ()
    unread: tuple[str, ...] = ()
    places: dict[str, str] = field(default_factory=dict)
    quotes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    cited: dict[str, dict[str, str]] = field(default_factory=dict)
    figures: dict[str, tuple[Figure, ...]] = field(default_factory=dict)
    books: dict[str, tuple[CaseNotes, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What came of reading a submission: its contents, or why it could not be read at all."""

    contents: Contents = Contents()
    problem: str | None = None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_json(text: bytes) -> Reading:
        """Return what to_json wrote; ValueError (pydantic's is one) for anything else."""
        return _reader().validate_json(text, strict=True)


@cache
def _reader() -> TypeAdapter[Reading]:
    return TypeAdapter(Reading)
