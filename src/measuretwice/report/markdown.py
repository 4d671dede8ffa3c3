"""A report's Markdown: text that is cleaned and escaped for it, and the answers and lab books that are read from it."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

# Control characters, and those that turn the direction of writing: none of them is meant to be read.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_STRONG = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_EMPHASIS = re.compile(r"\*(?=[^\s*])([^*]+?)(?<=\S)\*")
_MARKDOWN = re.compile(r"([\\`*\[\]|~$#!])")
_ASKED = re.compile(r"^\*\*Question [0-9]+\.\*\* ([^\n]*)\n\nYour answer:\n\n", re.MULTILINE)
_BOOK = re.compile(r"^<!-- lab book of ([a-z0-9-]+) -->\n\n(`{3,})text\n", re.MULTILINE)
_ANSWER_ENDS = re.compile(r"^<!-- end of answer -->$", re.MULTILINE)
# Longer than any answer.
_MOST_CHARACTERS = 20_000


def clean(value: object) -> object:
    """Return text without what a browser or terminal would obey; markup of our own, and what is no text, as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _UNPRINTABLE.sub("\ufffd", value)


def markdown_text(value: object) -> Markup:
    """Return a value as one line that Markdown shows as it is: in a paragraph, a heading or a cell."""
    if isinstance(value, Markup):
        return value
    text = " ".join(str(clean(str(value))).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(_MARKDOWN.sub(r"\\\1", text))


def fence(text: str, language: str = "text") -> Markup:
    """Return a block that Markdown shows verbatim: its fence is longer than any in the text."""
    ticks = "`" * (1 + max([2, *(len(run) for run in re.findall("`+", text))]))
    return Markup(f"{ticks}{language}\n{clean(text)}\n{ticks}")


def inline_html(text: str) -> Markup:
    """Return one of our own texts in HTML: code between backticks, strong between two stars, emphasis between one; the rest escaped."""
    parts = str(clean(text)).split("`")
    shown = [
        Markup("<code>{}</code>").format(part)
        if index % 2
        else Markup(
            _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<strong>\1</strong>", str(escape(part))))
        )
        for index, part in enumerate(parts)
    ]
    return Markup("").join(shown)


def as_answer(text: str) -> str:
    """Return what somebody wrote as it can stand in a report's Markdown: what ends an answer there is left out."""
    return _ANSWER_ENDS.sub("", text[:_MOST_CHARACTERS].replace("\r\n", "\n")).strip()


def read_answers(text: str) -> dict[str, str]:
    """Return the answers in an earlier report's Markdown, by the question as it stands there."""
    return {asked: answer for asked, answer in read_places(text).items() if answer.strip()}


def read_books(text: str) -> dict[str, str]:
    """Return each lab's book, word for word, from a report's Markdown."""
    books = {}
    for match in _BOOK.finditer(text):
        fence, start = match[2], match.end()
        end = text.find(f"\n{fence}\n", start)
        if end >= 0:
            books[match[1]] = text[start:end]
    return books


def read_places(text: str) -> dict[str, str]:
    """Return what stands in each place for an answer, also where that is nothing."""
    places = {}
    for part in _ANSWER_ENDS.split(text)[:-1]:
        if question := _ASKED.search(part):
            places[question[1]] = part[question.end() :].strip("\n")
    return places
