"""Text for a terminal: without the characters that one would obey, and not without end."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def is_control(character: str) -> bool:
    """Is this a control character, an invisible one such as those of direction, half a pair, or a line's end?"""
    return unicodedata.category(character) in _UNSEEN


def without_controls(text: str) -> str:
    """Return a text with a mark in place of each character that a terminal would obey."""
    return "".join("\ufffd" if is_control(character) else character for character in text)


def has_controls(text: str) -> bool:
    """Has a text of several lines characters that a terminal would obey otherwise than by going on in the next line?"""
    return any(is_control(character) and character not in "\n\t" for character in text)


def shortened(value: object, most: int = 60) -> str:
    """Return a value as a message has it: at most so many characters, and none that can't be printed."""
    try:
        text = str(value)
    except ValueError:
        # Python writes no number of more than 4300 digits.
        text = "a very long number"
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= most else f"{text[:most]}..."
