"""What every parser asks of a text first, by the quick way for ASCII as by the slow one."""

from __future__ import annotations

import pytest

from measuretwice.parse import ParseError
from measuretwice.parse._reading import clean

CONTROLS = [*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F]


def refused(text: str) -> bool:
    try:
        clean(text, "a.txt", "anything")
    except ParseError:
        return True
    return False


@pytest.mark.parametrize("beside", ["", "µ"], ids=["ASCII alone", "with another letter"])
def test_control_characters_are_no_text(beside: str) -> None:
    found = [code for code in range(0x80) if refused(f"{beside}a{chr(code)}b")]
    assert found == CONTROLS


@pytest.mark.parametrize("beside", ["", "µ"], ids=["ASCII alone", "with another letter"])
def test_no_tool_counts_to_forty_digits(beside: str) -> None:
    digits = "1234567890" * 4
    assert refused(f"{beside}x {digits} y")
    assert not refused(f"{beside}x {digits[1:]} {digits[1:]} y")


def test_bytes_that_are_no_text_and_digits_of_other_scripts() -> None:
    assert refused("a\N{REPLACEMENT CHARACTER}b")
    assert refused("a\udc80b")
    assert refused("\N{ARABIC-INDIC DIGIT ONE}" * 40)
    assert clean("\N{ZERO WIDTH NO-BREAK SPACE}a\r\nb", "a.txt", "anything") == "a\nb"
