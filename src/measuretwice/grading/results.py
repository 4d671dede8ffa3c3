"""What a class's submissions are worth by machine. The order of all fields is that of `./lab grade --json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.grading.answers import normalize_question
from measuretwice.grading.evidence import few
from measuretwice.grading.integrity import Remark, lines_of
from measuretwice.grading.roster import Roster
from measuretwice.grading.rubric import Rubric
from measuretwice.grading.scoring import AnyRun, JudgedFiles, Mark, judge_files, make_marks
from measuretwice.grading.submission import (
    CaseNotes,
    Contents,
    MatchedNumber,
    Reading,
    SetFinding,
    Submission,
    SubmittedRun,
)
from measuretwice.lab import Lab, read_questions
from measuretwice.runs.unpack import printable

MAX_UNUSABLE = 3
# How long marking takes, a rule of thumb: prose with numbers that are to be compared with a key is read
# at about half the usual pace.
WORDS_PER_MINUTE = 120
MINUTES_PER_CRITERION = 0.5
MINUTES_PER_ODD_LINE = 1.0
MINUTES_TO_BEGIN = 1.0
MARKING_RULE = (
    f"{WORDS_PER_MINUTE} words a minute, {MINUTES_PER_CRITERION:g} minutes for each criterion that is open, "
    f"{MINUTES_PER_ODD_LINE:g} for each line that is odd, {MINUTES_TO_BEGIN:g} to begin"
)


@dataclass(frozen=True)
class Answer:
    """What a report says to a question: `text` is None where it has no place for it that can be read.

    `cited` are lines of it that stand in a raw file, with the file; `figures` numbers that a run has measured.
    """

    question: int
    text: str | None
    cited: dict[str, str]
    figures: tuple[MatchedNumber, ...]


@dataclass(frozen=True)
class HandedFile:
    """One file or folder as the system handed it over: its path for a link, and when it came, in words."""

    path: str
    name: str
    says: str
    counts: bool
    feedback: str | None


@dataclass(frozen=True)
class Graded:
    """What a submission is worth.

    `problem` says why it could not be read at all, `says` are lines for the instructor, `notes` lines
    that call for nothing. `written` are documents to be read by hand, `status` what the roster says of
    what was handed in. `added` are points that the lecturer gave or took for the whole, `remark` the
    word on it. `place` is this submission's index among all that were read, `book` the lab book's cases.
    """

    name: str
    student: str | None
    handed_in: bool = True
    problem: str | None = None
    says: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[SubmittedRun, ...] = ()
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
        """The id by which the lecturer's marks name this student."""
        return self.student or self.name

    @property
    def all_runs(self) -> list[AnyRun]:
        return [*self.runs, *self.brought]

    @property
    def is_readable(self) -> bool:
        """Return whether anything was read of it that points can come from."""
        answered = any(answer.text for answer in self.answers)
        return bool(self.runs or answered or any(not files.problem for files in self.brought))

    @property
    def is_marked(self) -> bool:
        """Return whether the lecturer gave anything."""
        return self.added is not None or any(mark.given is not None for mark in self.marks)

    @property
    def open(self) -> int:
        """The number of criteria that are left to judge."""
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
        """Return whether there is something that the instructor should look at first."""
        return bool(self.problem or self.says or any(r.is_odd for r in self.remarks))

    @property
    def odd_lines(self) -> list[str]:
        """The lines on what is odd about it, or why it wasn't read."""
        odd = lines_of([remark for remark in self.remarks if remark.is_odd])
        return [self.problem, *odd] if self.problem else odd

    @property
    def other_lines(self) -> list[str]:
        """All else that there is to say of it."""
        others = [remark for remark in self.remarks if not remark.is_odd]
        return [*self.says, *self.notes, *lines_of(others)]

    def count(self, rung: str) -> int:
        """Return the number of mistakes with a rung: 'predicted', 'shown', 'diagnosed' (answered), 'fixed' or
        'again'."""
        return sum(getattr(mark, rung).startswith("yes") for mark in self.marks)

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        for run in document["runs"]:
            # These say nothing to a reader; the report has the files' digests.
            del run["sketches"], run["files"]
        return {
            **document,
            "low": self.low,
            "high": self.high,
            "total": self.total,
            "open": self.open,
        }


def choose_lab(labs: Sequence[Lab], readings: Sequence[Reading], wanted: str | None) -> Lab:
    """Return the lab to grade: the one that was named, or the only one with a rubric that runs are of."""
    by_name = {lab.name: lab for lab in labs}
    if wanted:
        return by_name[wanted]
    names = sorted({run.lab for r in readings for run in r.contents.runs if run.lab in by_name})
    if len(names) == 1:
        return by_name[names[0]]
    what = f"runs of {', '.join(names)}" if names else "no run of a lab with a rubric"
    raise UserError(f"{what} in these submissions; say which lab to grade: --lab LAB")


def contents_of(lab: Lab, readings: Sequence[Reading]) -> list[Contents]:
    """Return what was read of each submission, of runs the lab's alone."""
    return [
        replace(
            contents,
            runs=tuple(run for run in contents.runs if run.lab == lab.name),
            together=tuple(finding for finding in contents.together if finding.lab == lab.name),
        )
        for contents in (reading.contents for reading in readings)
    ]


def grade(
    lab: Lab,
    rubric: Rubric,
    submissions: Sequence[Submission],
    readings: Sequence[Reading],
    roster: Roster | None,
    remarks: Sequence[Sequence[Remark]],
) -> list[Graded]:
    """Return what each submission is worth by machine, and who of the roster handed nothing in.

    `readings` and `remarks` are in the submissions' order; what is returned is in order of names.
    """
    questions = read_questions(lab)
    graded = []
    for index, contents in enumerate(contents_of(lab, readings)):
        submission, reading = submissions[index], readings[index]
        files = tuple(judge_files(lab, folder) for folder in contents.brought)
        marks = make_marks(lab, rubric, contents, files, remarks[index], reading.problem)
        entry = Graded(
            submission.name,
            submission.student.id if submission.student else None,
            problem=reading.problem,
            says=(*dict.fromkeys(submission.problems), *_unread_lines(reading.contents, lab)),
            notes=tuple(_notes(contents, lab)),
            runs=contents.runs,
            brought=files,
            together=contents.together,
            remarks=tuple(remarks[index]),
            marks=tuple(marks),
            answers=_answers(contents, questions),
            written=contents.written,
            files=tuple(
                HandedFile(
                    str(file.path.absolute()), printable(file.path.name), file.remark, file.counts, file.named.feedback
                )
                for file in submission.handed_in
            ),
            status=submission.student.status if submission.student else "",
            place=index,
            book=contents.books.get(lab.name, ()),
        )  # fmt: skip
        odd = len(entry.says) + sum(remark.is_odd for remark in entry.remarks) + len(entry.written)
        texts = [answer.text or "" for answer in entry.answers]
        graded.append(replace(entry, minutes=marking_minutes(texts, entry.open, odd)))
    handed_in = {entry.student for entry in graded}
    graded += [
        Graded(student.name, student.id, handed_in=False, status=student.status)
        for student in (roster.students if roster else [])
        if student.id not in handed_in
    ]
    return sorted(graded, key=lambda entry: entry.name.casefold())


def marking_minutes(answers: Sequence[str], open_criteria: int, odd_lines: int) -> int:
    """Return whole minutes for a report by MARKING_RULE, which counts what there is to read, not how good it is."""
    words = sum(len(answer.split()) for answer in answers)
    return math.ceil(
        MINUTES_TO_BEGIN
        + words / WORDS_PER_MINUTE
        + open_criteria * MINUTES_PER_CRITERION
        + odd_lines * MINUTES_PER_ODD_LINE
    )


def _answers(contents: Contents, questions: list[str]) -> tuple[Answer, ...]:
    return tuple(
        Answer(
            number,
            contents.answers.get(question),
            contents.cited.get(question, {}),
            contents.figures.get(question, ()),
        )
        for number, question in enumerate(map(normalize_question, questions), start=1)
    )


def _notes(contents: Contents, lab: Lab) -> list[str]:
    """Return what is as it may be, and explains marks."""
    old = [run for run in contents.runs if run.pitfall and run.case is None]
    if not old or lab.name in contents.books:
        return []
    return [
        "made without cases, as before there were lab books: predictions are marked by hand, hints cost "
        "nothing, and no point is lost by either"
    ]


def _unread_lines(contents: Contents, lab: Lab) -> list[str]:
    """Return what the instructor should know of what was not read."""
    lines = [f"refused: {line}" for line in contents.refused]
    labs = {run.lab for run in contents.runs}
    if labs and lab.name not in labs:
        lines.append(f"its runs are of {', '.join(sorted(labs))}, none of {lab.name}")
    lines += [f"not used: {line}" for line in contents.unusable[:MAX_UNUSABLE]]
    if len(contents.unusable) > MAX_UNUSABLE:
        more = len(contents.unusable) - MAX_UNUSABLE
        lines.append(f"not used: {more} more runs, for such reasons")
    for files in contents.brought:
        lines += [f"not used: {line}" for line in files.refused]
    if contents.unread:
        lines.append(
            f"no run, and no folder called trial-N or trial-N-MISTAKE-broken: {few(contents.unread)}; "
            f"./lab check FILES --lab {lab.name} --trial N checks such files"
        )
    return lines
