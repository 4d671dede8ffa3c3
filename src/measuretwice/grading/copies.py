"""Whose runs are these? Held against the others', the recorded ones, and the seeds that were dealt.

The virtual kernel is deterministic: the same seed and settings make the same bytes, honestly. So
the same bytes prove something only where the seeds were dealt, where two runs claim different
seeds, or where they come from a testbed, whose tests never come out the same twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from measuretwice.grading.contents import BroughtFiles, Contents, OurRun
from measuretwice.grading.read import cookies
from measuretwice.grading.roster import Roster, Student
from measuretwice.grading.submissions import Submission
from measuretwice.grading.unpack import shown
from measuretwice.lab import Lab
from measuretwice.runs.archive import ARCHIVE, raw_folder
from measuretwice.runs.recorded import SET_FILE, read_set

Kind = Literal["seed", "copy", "recorded", "same seed"]
Seeds = Literal["not dealt", "own", "other's"]


@dataclass(frozen=True)
class Remark:
    """What is odd about where a run comes from. Who made it is open then, unless it `proves_nothing`."""

    kind: Kind
    run: str
    says: str

    @property
    def proves_nothing(self) -> bool:
        return self.kind == "same seed"


def brief(run: str) -> str:
    """A run's name without the folders above it and the plan's digest: the page has it in full."""
    return re.sub(r"(-seed[0-9]+)-[0-9a-f]{8}$", r"\1", run.rsplit("/", 1)[-1])


def lines(remarks: Sequence[Remark]) -> list[str]:
    """Remarks in words, a line for all runs of which the same is said."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for remark in remarks:
        by_words[remark.says].append(brief(remark.run))
    return [f"{says}: {_list(runs)}" for says, runs in by_words.items()]


@dataclass(frozen=True)
class Recorded:
    """The course's own runs of a lab: their raw files' digests, and of each test's cookie the
    trial and seed."""

    digests: frozenset[str]
    cookies: dict[str, tuple[int, int]]


def read_recorded(root: Path, lab: Lab) -> Recorded:
    """Read what sample-data/ has of a lab; nothing where it has none."""
    digests: set[str] = set()
    found: dict[str, tuple[int, int]] = {}
    samples = root / "sample-data" / lab.folder.name
    for folder in sorted(path.parent for path in samples.glob(f"*/{SET_FILE}")):
        for recorded in read_set(folder).runs:
            digests.add(recorded.raw_sha256)
            run = recorded.result.place
            if (run / ARCHIVE).is_file():
                with raw_folder(run) as raw:
                    trial_and_seed = recorded.result.trial, recorded.result.seed
                    found |= dict.fromkeys(cookies(raw), trial_and_seed)
    return Recorded(frozenset(digests), found)


def find_remarks(
    submissions: Sequence[Submission],
    contents: Sequence[Contents],
    roster: Roster | None,
    recorded: Recorded,
) -> list[list[Remark]]:
    """Return for each submission what is odd about its runs; `contents` are in the same order."""
    whole_class = _Class([submission.name for submission in submissions], contents)
    found: list[list[Remark]] = []
    for place, (submission, content) in enumerate(zip(submissions, contents, strict=True)):
        remarks: list[Remark] = []
        for run in content.runs:
            remarks += _of_run(run, place, submission.student, roster, recorded, whole_class)
        for files in content.brought:
            remarks += _of_files(files, place, recorded, whole_class)
        found.append(remarks)
    return found


class _Class:
    """Which submissions, by their place, hold the same run, the same test, the same file."""

    def __init__(self, names: list[str], contents: Sequence[Contents]) -> None:
        self.names = names
        self.by_digest: dict[str, set[int]] = defaultdict(set)
        self.runs_by_cookie: dict[str, list[tuple[int, OurRun]]] = defaultdict(list)
        self.by_cookie: dict[str, set[int]] = defaultdict(set)
        self.by_file: dict[str, set[int]] = defaultdict(set)
        for place, content in enumerate(contents):
            for run in content.runs:
                self.by_digest[run.digest].add(place)
                for cookie in run.cookies:
                    self.runs_by_cookie[cookie].append((place, run))
                    self.by_cookie[cookie].add(place)
            for files in content.brought:
                for digest in files.digests:
                    self.by_file[digest].add(place)
                for cookie in files.cookies:
                    self.by_cookie[cookie].add(place)


def _of_run(
    run: OurRun,
    place: int,
    student: Student | None,
    roster: Roster | None,
    recorded: Recorded,
    whole_class: _Class,
) -> list[Remark]:
    dealt = roster is not None and bool(roster.by_seed)
    foreign = _foreign(run, student, roster) if dealt else None
    seeds: Seeds = "not dealt" if not dealt else "other's" if foreign else "own"
    return [
        *([Remark("seed", run.run, foreign)] if foreign else []),
        *_as_recorded(run, recorded, dealt),
        *_as_others(run, place, whole_class, seeds),
    ]


def _foreign(run: OurRun, student: Student | None, roster: Roster | None) -> str | None:
    """Whose seed it is, where it isn't the student's."""
    if student is None or roster is None or run.seed in student.seeds:
        return None
    owner = roster.owner(run.seed)
    whose = f"was dealt to {owner.name}" if owner else "is none that was dealt"
    return f"seed {shown(run.seed)} {whose}"


def _as_recorded(run: OurRun, recorded: Recorded, dealt: bool) -> list[Remark]:
    if run.digest in recorded.digests:
        why = "" if dealt else "; who runs it with that seed gets the same, so it may be honest"
        return [Remark("recorded", run.run, f"same as the recorded run of the course{why}")]
    # The same test, but other bytes: somebody has written into the files, or set something else.
    same = [recorded.cookies[cookie] for cookie in run.cookies if cookie in recorded.cookies]
    if same and (dealt or (run.trial, run.seed) not in same):
        says = "has a flow of a recorded run of the course, in other files or of another seed"
        return [Remark("recorded", run.run, says)]
    return []


def _as_others(run: OurRun, place: int, whole_class: _Class, seeds: Seeds) -> list[Remark]:
    """The same bytes, or one flow of iperf3's, under another's name."""
    same_bytes = whole_class.by_digest[run.digest] - {place}
    # For each other submission: does its plan say another seed or trial?
    others: dict[int, bool] = dict.fromkeys(same_bytes, False)
    for cookie in run.cookies:
        for other, theirs in whole_class.runs_by_cookie[cookie]:
            if other != place:
                differs = (run.trial, run.seed) != (theirs.trial, theirs.seed)
                others[other] = others.get(other, False) or differs
    found = []
    for other, differs in sorted(others.items()):
        what = "the same bytes" if other in same_bytes else "a flow in common"
        says = f"{what} as in the submission of {whole_class.names[other]}"
        if differs:
            says = f"{says}, whose plan says another seed or trial"
            found.append(Remark("copy", run.run, says))
        elif seeds == "not dealt":
            says = f"{says}: same seed, so the same bytes: that proves nothing"
            found.append(Remark("same seed", run.run, says))
        elif seeds == "own":
            found.append(Remark("same seed", run.run, f"{says}, but with this student's own seed"))
        else:
            found.append(Remark("copy", run.run, says))
    return found


def _of_files(
    files: BroughtFiles, place: int, recorded: Recorded, whole_class: _Class
) -> list[Remark]:
    """A student's own files: of a testbed, no two tests are the same."""
    same = {other for digest in files.digests for other in whole_class.by_file[digest]}
    same |= {other for cookie in files.cookies for other in whole_class.by_cookie[cookie]}
    remarks = []
    if whose := _list(sorted(whole_class.names[other] for other in same - {place})):
        says = f"a test in common with the submission of {whose}, and two tests never are the same"
        remarks.append(Remark("copy", files.folder, says))
    if any(cookie in recorded.cookies for cookie in files.cookies):
        says = "a flow of a recorded run of the course, and not a testbed's"
        remarks.append(Remark("recorded", files.folder, says))
    return remarks


def _list(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
