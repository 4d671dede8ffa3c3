"""Signs of a text that aren't to be seen: what a terminal obeys, and what turns a line's order round."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def is_control(sign: str) -> bool:
    """Is this a control character, an invisible one such as those of direction, half a pair, or a line's end?"""
    return unicodedata.category(sign) in _UNSEEN


def without_controls(text: str) -> str:
    """Return a text with a mark in place of each sign that a terminal would obey."""
    return "".join("\ufffd" if is_control(sign) else sign for sign in text)


def has_controls(text: str) -> bool:
    """Has a text of several lines signs that a terminal would obey otherwise than by going on in the next line?"""
    return any(is_control(sign) and sign not in "\n\t" for sign in text)
