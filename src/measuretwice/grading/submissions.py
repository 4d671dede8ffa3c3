"""Which file of a class's folder is whose, by the names that learning management systems give them.

Ada Lovelace_12345_assignsubmission_file_/…      Moodle, a folder each (newer: without the last _)
Ada Lovelace_12345_assignsubmission_file_x.zip   Moodle, without folders
lovelaceada_LATE_12345_67890_x.zip               Canvas: its own number of the student, of the file
12345678-runs.zip, ada/, Ada Lovelace.zip        by hand: an id or a name in it
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.grading.roster import Roster, Student, squash
from measuretwice.grading.unpack import is_archive, is_hidden, shown

MOODLE = re.compile(r"(?P<name>[^/]+)_(?P<number>[0-9]+)_assignsubmission_[a-z]+(?:_.*)?")
CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<number>[0-9]+)_[0-9]+_.+", re.IGNORECASE)
MAX_SUBMISSIONS = 5000


@dataclass
class Submission:
    """What one student handed in. `student` is None where the roster doesn't tell, or there is none."""

    name: str
    student: Student | None
    sources: list[Path] = field(default_factory=list)
    says: list[str] = field(default_factory=list)


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
        called, key = _called(path)
        matches = _students(roster, path) if roster else []
        taken = path.is_dir() or is_archive(path.name) or called is not None or len(matches) == 1
        if not taken and not path.is_symlink():
            others.append(
                f"{shown(path.name)}: no folder and no archive; not taken for a submission"
            )
            continue
        student = matches[0] if len(matches) == 1 else None
        if student:
            key = f"\0{student.id}"
        submission = found.setdefault(
            key, Submission(student.name if student else shown(called or key), student)
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


def _called(path: Path) -> tuple[str | None, str]:
    """The name that a system gave, if one did, and what all of a student's files have in common."""
    for form in (MOODLE, CANVAS):
        if match := form.fullmatch(path.name):
            return match["name"], f"{match['name']} ({match['number']})"
    return None, _stem(path)


def _students(roster: Roster, path: Path) -> list[Student]:
    """Whose it may be. In a system's name only the part that the system wrote counts."""
    if match := MOODLE.fullmatch(path.name):
        # With groups, Moodle puts the group's name before the student's.
        names = {squash(match["name"]), squash(match["name"].split("-", 1)[-1])}
        return [student for student in roster.students if student.names & names]
    if match := CANVAS.fullmatch(path.name):
        by_number = [s for s in roster.students if s.row.get("ID") == match["number"]]
        return by_number or [s for s in roster.students if squash(match["name"]) in s.names]
    stem = _stem(path).casefold()
    by_id = [
        student
        for student in roster.students
        if any(re.search(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])", stem) for key in student.keys)
    ]
    return by_id or [student for student in roster.students if squash(stem) in student.names]
