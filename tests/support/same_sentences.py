"""Which of many sentences stand in a text: found by two of their words, not by a search for each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise


class Sentences:
    """Sentences whose words are one space apart; each is looked for as it stands, in a text of the same form."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._by_words: dict[tuple[str, str], list[str]] = {}
        self._short: list[str] = []
        for sentence in sentences:
            words = sentence.split(" ")
            # Inner ones stand in any text that has the sentence, as words of their own.
            if len(words) >= 4:
                self._by_words.setdefault((words[1], words[2]), []).append(sentence)
            else:
                self._short.append(sentence)

    def found_in(self, text: str) -> list[str]:
        """Those that stand in it."""
        near = self._by_words.keys() & set(pairwise(text.split(" ")))
        candidates = [
            *self._short,
            *(sentence for pair in near for sentence in self._by_words[pair]),
        ]
        return [sentence for sentence in candidates if sentence in text]
