"""All labs of the checkout, and all their cases as parameters of a test."""

import re
from pathlib import Path

import pytest

from measuretwice.lab import find_labs, load_lab

ROOT = Path(__file__).parents[2]
LABS = [load_lab(ROOT, name) for name in find_labs(ROOT)]
CASES = [
    pytest.param(lab, pitfall, id=f"{lab.name}-{lab.case_number(pitfall)}")
    for lab in LABS
    for pitfall in lab.file.pitfalls
]


def words_found(key_words: list[str], text: str) -> list[str]:
    """Which of the words stand in a text, as words of their own."""
    plain = " ".join(text.split())
    return [
        word
        for word in key_words
        if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", plain, re.IGNORECASE)
    ]
