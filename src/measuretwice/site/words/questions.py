"""A lab's questions, with room for their answers."""

from __future__ import annotations

import re

from measuretwice.lab import read_questions
from measuretwice.lab.spoilers import cases_asked_about
from measuretwice.site.words import here
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.cases import answer_field
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords

# A question's heading and points, and what is asked; the cases that it is about.
OF_QUESTION = re.compile(r"(\*\*[^*]+\*\* \([\d.]+ points?\)) (.+)")


@word("questions()")
def questions(words: LabWords) -> Block:
    """The lab's questions, as a numbered list. What asks about a case is folded: it may say what was off there."""
    asked = list(enumerate(read_questions(words.lab), 1))
    if not asked:
        return Block("")
    folded = (f"{n}. {_folded(text, _room(words, n))}" for n, text in asked)
    return Block("\n\n".join(folded) + "\n\n" + here.of_handing_in(words))


def _room(words: LabWords, number: int) -> str:
    """Where an answer is written; it is handed in with runs that a page of the site has made."""
    return (
        answer_field(words, str(number), "answer", f"Question {number}") if words.runs_here else ""
    )


def _folded(question: str, room: str) -> str:
    """A question, folded where it asks about cases, with the room for its answer."""
    found = OF_QUESTION.match(question)
    cases = cases_asked_about(question)
    if not found or not cases:
        return f"{question}\n\n    {room}"
    named = " and ".join(map(str, cases))
    when = f"case {named} is" if len(cases) == 1 else f"cases {named} are"
    return f'{found[1]}\n\n    ??? question "Open it when {when} fixed"\n\n        {found[2]}\n\n        {room}'
