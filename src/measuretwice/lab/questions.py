"""A lab's questions, which a student answers in the report."""

from __future__ import annotations

import re

from measuretwice.lab.lab import Lab
from measuretwice.lab.sealed import unseal

QUESTIONS = "questions.md"
SEALED_QUESTIONS = "questions.sealed"

_CASES = re.compile(r"\b[Cc]ases? (\d+(?:(?:, | and )\d+)*)")
_NUMBERED = re.compile(r"^[0-9]+[.)] +", re.MULTILINE)


def cases_asked_about(question: str) -> list[int]:
    """Return the cases that a question names, in order: it may say what was off in them."""
    return sorted({int(n) for named in _CASES.findall(question) for n in re.findall(r"\d+", named)})


def read_questions(lab: Lab) -> list[str]:
    """Return the questions of a lab's questions.md: its numbered list, each item as one line.

    In a students' release they are sealed: many name what was off in a case.
    """
    path = lab.folder / QUESTIONS
    text = (
        path.read_text(encoding="utf-8")
        if path.is_file()
        else unseal(lab.folder / SEALED_QUESTIONS)
    )
    items = _NUMBERED.split("\n" + text)[1:]
    return [" ".join(item.split("\n\n")[0].split()) for item in items]
