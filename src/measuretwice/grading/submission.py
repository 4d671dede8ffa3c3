"""A student's submission: which files of the class's folder are whose, and what was read of them.

What was read is plain data and judged nowhere here. It crosses a pipe as JSON, from a process that
has worked on untrusted files; from_json takes nothing that isn't exactly of these types. The order
of fields is that of `./lab grade --json`.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from measuretwice.base.errors import UserError
from measuretwice.checks import Finding, Severity
from measuretwice.grading.roster import Roster, Student, squash
from measuretwice.grading.systems import FileName, HandedIn, latest_attempts, read_file_name
from measuretwice.lab import StageName, Value
from measuretwice.measure.fields import Measured
from measuretwice.runs.folder import is_archive
from measuretwice.runs.unpack import is_hidden, printable

MAX_SUBMISSIONS = 5000

# The hashes that a raw file is known by: evidence.sketch() makes it.
Sketch = tuple[int, ...]


# Whose files


@dataclass
class Submission:
    """What one student handed in. `student` is None where the roster doesn't tell, or there is none."""

    name: str
    student: Student | None
    paths: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def handed_in(self) -> list[HandedIn]:
        """Each of its files with what its name says of when it came."""
        return latest_attempts(self.paths)

    @property
    def counted(self) -> list[Path]:
        """The files that are marked: all, but for earlier attempts."""
        return [file.path for file in self.handed_in if file.counts]


def find_submissions(folder: Path, roster: Roster | None) -> tuple[list[Submission], list[str]]:
    """Return the submissions in a folder, one per student, and a line on each file that is none.

    UserError where there are none, or too many.
    """
    if not folder.is_dir():
        advice = " Unpack it first; those in it may stay packed." if is_archive(folder.name) else ""
        raise UserError(f"{folder}: no folder with a class's submissions.{advice}")
    by_owner: dict[str, Submission] = {}
    others: list[str] = []
    for path in sorted(folder.iterdir()):
        name = read_file_name(path.name)
        if is_hidden((path.name,)) or name.is_note:
            continue
        students = _students(roster, path, name) if roster else []
        student = students[0] if len(students) == 1 else None
        is_submission = path.is_dir() or is_archive(path.name) or bool(name.system) or student
        if not is_submission and not path.is_symlink():
            others.append(
                f"{printable(path.name)}: no folder and no archive; not taken for a submission"
            )
            continue
        owner, key = _owner(path, name)
        if student:
            owner, key = student.name, f"\0{student.id}"
        submission = by_owner.setdefault(key, Submission(printable(owner), student))
        submission.paths.append(path)
        if len(students) > 1:
            submission.problems.append(
                f"its name fits {len(students)} of the roster; not taken for either's"
            )
        elif roster and not student:
            submission.problems.append("is nobody's of the roster")
        if len(by_owner) > MAX_SUBMISSIONS:
            raise UserError(
                f"{folder}: more than {MAX_SUBMISSIONS} submissions; give one class's folder"
            )
    if not by_owner:
        raise UserError(
            f"{folder}: no submissions in it; expected a folder or zip for each student"
        )
    return list(by_owner.values()), others


def _owner(path: Path, name: FileName) -> tuple[str, str]:
    """Return the student's name by the file's, and a key that all of a student's files share."""
    if name.user:
        return name.user.rsplit("_", 1)[-1], f"\1{name.user}"
    if name.name:
        return name.name, f"{name.name} ({name.number or ''})"
    return _stem(path), _stem(path)


def _stem(path: Path) -> str:
    return path.name if path.is_dir() else re.sub(r"(\.tar)?\.[A-Za-z0-9]{1,5}$", "", path.name)


def _students(roster: Roster, path: Path, name: FileName) -> list[Student]:
    """Return whose file it may be. Of a system's name only the part that the system wrote counts."""
    students = roster.students
    if name.user:
        user = name.user.casefold()
        return [s for s in students if any(user.endswith(f"_{key}") for key in s.keys)]
    if name.number:
        by_participant = name.number_in == "participant"
        by_number = [
            student
            for student in students
            if name.number
            == (student.number if by_participant else student.row.get(name.number_in))
        ]
        if by_number:
            return by_number
    if name.name:
        # With groups, Moodle puts the group's name before the student's.
        names = {squash(name.name), squash(name.name.split("-", 1)[-1])}
        return [student for student in students if student.names & names]
    stem = _stem(path).casefold()
    by_id = [
        student
        for student in students
        if any(re.search(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])", stem) for key in student.keys)
    ]
    return by_id or [student for student in students if squash(stem) in student.names]


# What was read of them


@dataclass(frozen=True)
class RaisedFinding:
    """A finding that a run's values raise, without its explanations."""

    id: str
    severity: Severity
    measured: str
    expected: str

    @classmethod
    def of(cls, finding: Finding) -> RaisedFinding:
        return cls(finding.id, finding.severity, finding.measured, finding.expected)


@dataclass(frozen=True)
class MatchedNumber:
    """A number in an answer (`text`) that a run has measured: which run, which value, how large."""

    text: str
    run: str
    value: str
    measured: float


@dataclass(frozen=True)
class Agreement:
    """Whether a run's folder agrees with its own plan.

    `seeds` are other seeds than the plan's, by the file that names them; `kernel_seed` what plan.json
    has for it, where that doesn't follow from the seed. `contradictions` are all other ways in which
    the folder is of two runs. `edits` names what result.json has otherwise than the raw files,
    `derived_by` the code that had read them, `same_code` whether that is this one. `lacks` are
    missing files that ./lab run writes.
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
class SubmittedRun:
    """A run of ./lab run, measured anew.

    `run` is its folder below the submission, `case` the number of the case that it was run as, `plan`
    its plan's digest, `changed` the settings that aren't the lab's for this trial and stage, `digest`
    that of all raw files, `cookies` iperf3's names of its tests. `anchor` is its place in the report
    on all runs, `command` what runs it again, made from its checked plan. `where` and `kernel` are
    the plan's, `edited` says whether node scripts were the student's own. `files` are the raw files'
    digests, `sketches` their sketches, both by path below raw/.
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
    findings: tuple[RaisedFinding, ...]
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
    """A finding of a set of runs (by name), and which stage they are of."""

    lab: str
    id: str
    measured: str
    expected: str
    pitfall: str | None
    stage: StageName | None
    runs: tuple[str, ...]


@dataclass(frozen=True)
class StudentFiles:
    """A student's own files, in a folder whose name says which trial they are of.

    `measured` is what they hold, `refused` what can't be read in them, `missing` which kinds would
    allow more checks; `is_whole` says that nothing a tool may have printed had to be left out. `digests` are of those files that are never the same for two tests, each
    with the file's path.
    """

    folder: str
    trial: int
    pitfall: str | None
    stage: StageName | None
    measured: Measured = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_whole: bool = True
    digests: dict[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseNotes:
    """What a lab book holds of one case, as far as marking needs it.

    `first` says whether a prediction stands before the case's first run, `number`, `unit` and `reason`
    whether it has them. `hints` counts those taken, `hints_before` those of them before the first
    diagnosis. `shown`: the fixed run was asked for. `answers` are those to the case's question, in order; `answered` says
    whether one of them is right, its number by the runs that were handed in, and `answered_by_recorded` whether one is that
    a page has judged by the recorded runs.
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
    fixed: bool = False
    answers: tuple[str, ...] = ()
    answered: bool = False
    answered_by_recorded: bool = False


@dataclass(frozen=True)
class Contents:
    """All that was read of a submission.

    `refused` and `unusable` are lines on files and runs that weren't read, `unread` files of which
    nothing says what they are of, `written` documents for a person to read. By question: `answers`
    from a report; `quotes`, by run, the raw files that have a line which the answer quotes; `cited`,
    by that line, where it stands; `figures`, the numbers that a run has measured. `books` are lab
    books, by lab.
    """

    refused: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    runs: tuple[SubmittedRun, ...] = ()
    together: tuple[SetFinding, ...] = ()
    brought: tuple[StudentFiles, ...] = ()
    unread: tuple[str, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    quotes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    cited: dict[str, dict[str, str]] = field(default_factory=dict)
    figures: dict[str, tuple[MatchedNumber, ...]] = field(default_factory=dict)
    books: dict[str, tuple[CaseNotes, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """The contents of a submission, or the `problem` why it could not be read at all."""

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
