"""Text of a run's folder in a page: cleaned of what a terminal or browser would obey, and escaped."""

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


def clean(value: object) -> object:
    """Text without what a browser or terminal would obey; markup of our own as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _UNPRINTABLE.sub("\ufffd", value)


def markdown_text(value: object) -> Markup:
    """One line of text that Markdown shows as it is: in a paragraph, a heading or a cell."""
    if isinstance(value, Markup):
        return value
    text = " ".join(str(clean(str(value))).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(_MARKDOWN.sub(r"\\\1", text))


def fence(text: str, language: str = "text") -> Markup:
    """A block that Markdown shows verbatim: its fence is longer than any in the text."""
    ticks = "`" * (1 + max([2, *(len(run) for run in re.findall("`+", text))]))
    return Markup(f"{ticks}{language}\n{clean(text)}\n{ticks}")


def inline_html(text: str) -> Markup:
    """One of our own texts in HTML: code between backticks, strong between two stars, emphasis between one; the rest escaped."""
    parts = str(clean(text)).split("`")
    shown = [
        Markup("<code>{}</code>").format(part)
        if place % 2
        else Markup(
            _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<strong>\1</strong>", str(escape(part))))
        )
        for place, part in enumerate(parts)
    ]
    return Markup("").join(shown)
