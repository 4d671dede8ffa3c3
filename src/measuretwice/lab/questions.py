"""A lab's questions, which a student answers in the report."""

from __future__ import annotations

import re

from measuretwice.lab.lab import Lab

_NUMBERED = re.compile(r"^[0-9]+[.)] +", re.MULTILINE)


def read_questions(lab: Lab) -> list[str]:
    """Return the questions of a lab's questions.md: its numbered list, each item as one line."""
    path = lab.folder / "questions.md"
    if not path.is_file():
        return []
    items = _NUMBERED.split("\n" + path.read_text(encoding="utf-8"))[1:]
    return [" ".join(item.split("\n\n")[0].split()) for item in items]
