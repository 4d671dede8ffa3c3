"""The words of pages: registered where they are defined, and listed for those who write pages."""

import re
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.lab import load_lab
from measuretwice.site.words.listing import listing
from measuretwice.site.words.registry import (
    Vocabulary,
    Words,
    model_word,
    number_filter,
    site_word,
    word,
)
from measuretwice.site.words.subjects import LabWords, SiteWords

ROOT = Path(__file__).parents[2]
VOCABULARIES = (
    word,
    site_word,
    model_word,
    number_filter,
)


def test_the_list_is_the_one_in_the_workshop() -> None:
    recorded = (ROOT / "workshop/words.md").read_text(encoding="utf-8")
    assert recorded == listing(), "the words have changed: make words"


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_every_word_says_what_it_is_and_how_it_is_written(vocabulary: Vocabulary) -> None:
    for name, entry in vocabulary.words().items():
        assert re.search(rf"\b{name}\b", entry.usage), name
        assert entry.help.endswith((".", ")")), name


def test_every_fact_of_each_lab_has_an_answer() -> None:
    for name in ("calibrate", "queues"):
        assert {"trials", "layout", "run"} <= set(LabWords(ROOT, load_lab(ROOT, name)).everywhere())


def test_a_rare_word_is_not_everywhere_and_says_where_it_has_no_answer() -> None:
    words = LabWords(ROOT, load_lab(ROOT, "calibrate"))
    assert "expected_ratio" not in words.everywhere()
    with pytest.raises(UserError, match="expects no range of the ratio"):
        words.expected_ratio  # noqa: B018


def test_an_unknown_word_is_none() -> None:
    words = LabWords(ROOT, load_lab(ROOT, "calibrate"))
    with pytest.raises(AttributeError, match="no word 'nosuchword'"):
        words.nosuchword  # noqa: B018
    with pytest.raises(UserError, match="no lab 'nosuchlab'"):
        SiteWords(ROOT, {"calibrate": words}, instructor=False).lab("nosuchlab")


def test_words_register_by_name_once_and_facts_answer_once() -> None:
    asked = []
    vocabulary = Vocabulary()

    @vocabulary("answer", fact=True)
    def answer(about: str) -> str:
        """Return what it
        is about.

        More that the list leaves out.
        """
        asked.append(about)
        return about.upper()

    words = Words(vocabulary, "x")
    assert (words.answer, words.answer, asked) == ("X", "X", ["x"])
    assert vocabulary.words()["answer"].help == "What it is about."
    with pytest.raises(AssertionError, match="twice"):
        vocabulary("answer", name="answer")(len)
