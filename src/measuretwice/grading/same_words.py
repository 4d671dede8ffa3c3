"""Answers of two students in the same words, also where case, spaces, punctuation or numbers were changed."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from measuretwice.grading.contents import Contents
from measuretwice.grading.remarks import Remark, few

# Shorter answers may be the same by chance.
LEAST_WORDS = 12
# So many words in a row are compared, and this share of them, at least, is in both answers.
IN_A_ROW = 4
SAME = 0.7
_WORD = re.compile(r"[^\W\d_]+")
# Lines of a tool's output: indented or fenced as Markdown has it.
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)

Texts = dict[str, frozenset[tuple[str, ...]]]


def find_same_words(
    contents: Sequence[Contents],
    names: Sequence[str],
    lab: str,
    questions: Mapping[str, int],
    copied_from: Mapping[int, set[int]],
) -> list[list[Remark]]:
    """Return for each submission which of its answers are in another's words.

    `questions` are the questions' numbers; `copied_from` says whose runs a submission's runs are, by place: these wrote first, too.
    """
    texts = [_texts(content, lab, questions) for content in contents]
    others: dict[tuple[int, str], set[int]] = defaultdict(set)
    for where in dict.fromkeys(key for text in texts for key in text):
        holders = [place for place, text in enumerate(texts) if where in text]
        for one, other in _alike({place: texts[place][where] for place in holders}):
            others[one, where].add(other)
            others[other, where].add(one)
    remarks: list[list[Remark]] = [[] for _ in contents]
    for (place, where), theirs in sorted(others.items()):
        first = {other for other in theirs if place in copied_from.get(other, ())}
        if first == theirs:
            says = f"the original of the words that {few(_named(theirs, names))} handed in as well"
            remarks[place].append(Remark("original", where, says))
        else:
            whose = few(_named(theirs - first, names))
            says = f"the same words as in the submission of {whose}, and nothing here says whose they were"
            remarks[place].append(Remark("words", where, says))
    return remarks


def _named(places: Iterable[int], names: Sequence[str]) -> list[str]:
    return [names[place] for place in sorted(places)]


def _texts(content: Contents, lab: str, questions: Mapping[str, int]) -> Texts:
    """A submission's texts that are long enough, each by what it answers."""
    found: Texts = {}
    for question, answer in content.places.items():
        if question in questions:
            quoted = content.cited.get(question, {})
            found[f"question {questions[question]}"] = _rows(answer, quoted)
    for notes in content.books.get(lab, ()):
        found[f"prediction of case {notes.case}"] = _rows(notes.prediction or "", ())
        found[f"diagnosis of case {notes.case}"] = _rows(notes.diagnosis or "", ())
    return {where: rows for where, rows in found.items() if rows}


def _rows(text: str, quoted: Iterable[str]) -> frozenset[tuple[str, ...]]:
    """The words of one's own, each with those after it; none of a text that is too short."""
    for line in quoted:
        text = text.replace(line, " ")
    text = _INDENTED.sub(" ", _FENCED.sub(" ", text))
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    if len(words) < LEAST_WORDS:
        return frozenset()
    return frozenset(tuple(words[at : at + IN_A_ROW]) for at in range(len(words) - IN_A_ROW + 1))


def _alike(rows: Mapping[int, frozenset[tuple[str, ...]]]) -> Iterator[tuple[int, int]]:
    for one, other in combinations(rows, 2):
        if len(rows[one] & rows[other]) >= SAME * len(rows[one] | rows[other]):
            yield one, other
