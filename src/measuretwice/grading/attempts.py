"""What a system's name of a handed-in file says: whose it is, whether it was late, which attempt.

Ada Lovelace_12345_assignsubmission_file_/…               Moodle, a folder each (newer: without the last _)
Ada Lovelace_12345_assignsubmission_file_x.zip            Moodle, without folders
lovelaceada_LATE_12345_67890_x.zip                        Canvas: its own number of the student, of the file
Lab 1_ada_attempt_2026-10-03-22-41-07_x.zip               Blackboard: the username, and when
12345-67890 - Ada Lovelace - 3 October, 2026 1041 PM      Brightspace, a folder each
12345678-runs.zip, ada/, Ada Lovelace.zip                 by hand: an id or a name in it
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

MOODLE = re.compile(r"(?P<name>[^/]+?)_(?P<number>[0-9]+)_assignsubmission_[a-z]+(?:_.*)?")
BLACKBOARD = re.compile(
    r"(?P<title>.+?)_(?P<user>[^_]+)_attempt_(?P<when>[0-9]{4}(?:-[0-9]{2}){5})(?P<rest>[_.].*)"
)
CANVAS = re.compile(
    r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>[0-9]+)_(?P<file>[0-9]+)_.+", re.IGNORECASE
)
BRIGHTSPACE = re.compile(r"[0-9]+-[0-9]+ - (?P<name>.+?) - (?P<when>.*[0-9]{4}.*)")


@dataclass(frozen=True)
class Named:
    """What a name says. `number` is the system's own of the student, `user` ends in their username, `attempt`
    when it was handed in, as it can be put in order, `when` the same to read, `feedback` the name under
    which the system takes a file back for this student. A note is the system's own, on what was handed in."""

    system: str = ""
    name: str | None = None
    number: str | None = None
    user: str | None = None
    late: bool = False
    attempt: str = ""
    when: str = ""
    feedback: str | None = None
    is_note: bool = False


def read_name(path: str) -> Named:
    """Read the name of a file or folder, whichever system gave it."""
    if match := MOODLE.fullmatch(path):
        folder = re.sub(r"_assignsubmission_([a-z]+).*", r"_assignsubmission_file_", path)
        return Named(
            "Moodle", match["name"], number=match["number"], feedback=f"{folder}/feedback.html"
        )
    if match := BLACKBOARD.fullmatch(path):
        day, clock = match["when"][:10], match["when"][11:].replace("-", ":")
        # The title may end like a user's name that has an underscore in it: the roster decides.
        user = f"{match['title']}_{match['user']}"
        note = match["rest"].lower() == ".txt"
        return Named(
            "Blackboard",
            user=user,
            attempt=match["when"],
            when=f"{day} {clock}",
            is_note=note,
        )
    if match := CANVAS.fullmatch(path):
        prefix = f"{match['name']}{match['late'] or ''}_{match['number']}_{match['file']}"
        return Named(
            "Canvas",
            match["name"],
            number=match["number"],
            late=bool(match["late"]),
            feedback=f"{prefix}_feedback.html",
        )
    if match := BRIGHTSPACE.fullmatch(path):
        return Named(
            "Brightspace", match["name"], when=match["when"], feedback=f"{path}/feedback.html"
        )
    return Named()


@dataclass(frozen=True)
class HandedIn:
    """One file or folder that a student handed in, and whether it counts or a later attempt does."""

    path: Path
    named: Named
    counts: bool = True

    @property
    def says(self) -> str:
        """When it came, in words."""
        parts = [self.named.when] if self.named.when else []
        parts += ["late"] if self.named.late else []
        parts += [] if self.counts else ["an earlier attempt; not marked"]
        return ", ".join(parts)


def latest(paths: list[Path]) -> list[HandedIn]:
    """Which of a student's files count: where the system names attempts by their time, those of the last."""
    handed = [HandedIn(path, read_name(path.name)) for path in paths]
    last = max((one.named.attempt for one in handed), default="")
    return [HandedIn(o.path, o.named, o.named.attempt in ("", last)) for o in handed]
