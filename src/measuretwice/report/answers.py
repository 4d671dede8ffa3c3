"""The answers in a report's Markdown: a place for each question, which its text stands before."""

from __future__ import annotations

import re

_ASKED = re.compile(r"^\*\*Question [0-9]+\.\*\* ([^\n]*)\n\nYour answer:\n\n", re.MULTILINE)
_BOOK = re.compile(r"^<!-- lab book of ([a-z0-9-]+) -->\n\n(`{3,})text\n", re.MULTILINE)
_ANSWER_ENDS = re.compile(r"^<!-- end of answer -->$", re.MULTILINE)


# Longer than any answer.
_MOST_CHARACTERS = 20_000


def as_answer(text: str) -> str:
    """Return what somebody wrote as it can stand in a report's Markdown: what ends an answer there is left out."""
    return _ANSWER_ENDS.sub("", text[:_MOST_CHARACTERS].replace("\r\n", "\n")).strip()


def read_answers(text: str) -> dict[str, str]:
    """Return the answers in an earlier report's Markdown, by the question as it stands there."""
    return {asked: answer for asked, answer in read_places(text).items() if answer.strip()}


def read_books(text: str) -> dict[str, str]:
    """Return each lab's book, word for word, from a report's Markdown."""
    books = {}
    for found in _BOOK.finditer(text):
        fence, start = found[2], found.end()
        end = text.find(f"\n{fence}\n", start)
        if end >= 0:
            books[found[1]] = text[start:end]
    return books


def read_places(text: str) -> dict[str, str]:
    """Return what stands in each place for an answer, also where that is nothing."""
    places = {}
    for part in _ANSWER_ENDS.split(text)[:-1]:
        if question := _ASKED.search(part):
            places[question[1]] = part[question.end() :].strip("\n")
    return places
