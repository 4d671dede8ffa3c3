"""What a person sees: the one error, and text without what a terminal would obey."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


class UserError(Exception):
    """A mistake that its reader can fix.

    The message is one line that says what is wrong and what to do. `exit_code` is 2 for
    wrong usage and unusable input, 1 for something that failed while it ran.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code


def is_control(character: str) -> bool:
    """Return whether this is a control character, an invisible one such as those of direction, half a pair, or a
    line's end."""
    return unicodedata.category(character) in _UNSEEN


def without_controls(text: str) -> str:
    """Return a text with a mark in place of each character that a terminal would obey."""
    return "".join("\ufffd" if is_control(character) else character for character in text)


def has_controls(text: str) -> bool:
    """Return whether a text of several lines has characters that a terminal would obey otherwise than by going on
    in the next line."""
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
