"""Which file of a class's folder is whose, by the names that learning management systems give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.grading.roster import Roster, Student, squash
from measuretwice.grading.systems import FileName, HandedIn, latest_attempts, read_file_name
from measuretwice.grading.unpack import is_hidden, shown
from measuretwice.runs.folder import is_archive

MAX_SUBMISSIONS = 5000


@dataclass
class Submission:
    """What one student handed in. `student` is None where the roster doesn't tell, or there is none."""

    name: str
    student: Student | None
    sources: list[Path] = field(default_factory=list)
    says: list[str] = field(default_factory=list)

    @property
    def handed_in(self) -> list[HandedIn]:
        """Each of its files with what its name says of when it came."""
        return latest_attempts(self.sources)

    @property
    def counted(self) -> list[Path]:
        """What is marked: all, but for earlier attempts."""
        return [one.path for one in self.handed_in if one.counts]


def find_submissions(folder: Path, roster: Roster | None) -> tuple[list[Submission], list[str]]:
    """Return the submissions in a folder, a student each, and what is taken for none."""
    if not folder.is_dir():
        advice = " Unpack it first; those in it may stay packed." if is_archive(folder.name) else ""
        raise UserError(f"{folder}: no folder with a class's submissions.{advice}")
    found: dict[str, Submission] = {}
    others: list[str] = []
    for path in sorted(folder.iterdir()):
        if is_hidden((path.name,)):
            continue
        named = read_file_name(path.name)
        if named.is_note:
            continue
        called, key = _called(path, named)
        matches = _students(roster, path, named) if roster else []
        taken = path.is_dir() or is_archive(path.name) or bool(named.system) or len(matches) == 1
        if not taken and not path.is_symlink():
            others.append(
                f"{shown(path.name)}: no folder and no archive; not taken for a submission"
            )
            continue
        student = matches[0] if len(matches) == 1 else None
        if student:
            key = f"\0{student.id}"
        submission = found.setdefault(
            key, Submission(student.name if student else shown(called), student)
        )
        submission.sources.append(path)
        if len(matches) > 1:
            submission.says.append(
                f"its name fits {len(matches)} of the roster; not taken for either's"
            )
        elif roster and not student:
            submission.says.append("is nobody's of the roster")
        if len(found) > MAX_SUBMISSIONS:
            raise UserError(
                f"{folder}: more than {MAX_SUBMISSIONS} submissions; give one class's folder"
            )
    if not found:
        raise UserError(
            f"{folder}: no submissions in it; expected a folder or zip for each student"
        )
    return list(found.values()), others


def _stem(path: Path) -> str:
    if path.is_dir():
        return path.name
    return re.sub(r"(\.tar)?\.[A-Za-z0-9]{1,5}$", "", path.name)


def _called(path: Path, named: FileName) -> tuple[str, str]:
    """The name that a system gave, if one did, and what all of a student's files have in common."""
    if named.user:
        return named.user.rsplit("_", 1)[-1], f"\1{named.user}"
    if named.name:
        return named.name, f"{named.name} ({named.number or ''})"
    return _stem(path), _stem(path)


def _students(roster: Roster, path: Path, named: FileName) -> list[Student]:
    """Whose it may be. In a system's name only the part that the system wrote counts."""
    students = roster.students
    if named.user:
        ends = named.user.casefold()
        return [s for s in students if any(ends.endswith(f"_{key}") for key in s.keys)]
    if named.number:
        by_number = [
            s
            for s in students
            if named.number
            == (s.number if named.number_in == "participant" else s.row.get(named.number_in))
        ]
        if by_number:
            return by_number
    if named.name:
        # With groups, Moodle puts the group's name before the student's.
        names = {squash(named.name), squash(named.name.split("-", 1)[-1])}
        return [student for student in students if student.names & names]
    stem = _stem(path).casefold()
    by_id = [
        student
        for student in students
        if any(re.search(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])", stem) for key in student.keys)
    ]
    return by_id or [student for student in students if squash(stem) in student.names]
