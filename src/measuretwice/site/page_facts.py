"""A lab's facts as its pages quote them."""

from __future__ import annotations

from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.facts import Excerpt, Facts, Table
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.excerpts import counters, excerpt
from measuretwice.site.words.explained import explained
from measuretwice.site.words.subjects import LabWords


class PageFacts:
    """What `{{ f.name }}` is on a page of a lab: a number or an interval, the lines of an excerpt, a table. A page of a
    case has that case's facts before the lab's; any other page of a lab names the case first: `{{ f.wrong_metric.ping }}`. A
    page of no lab has `others`."""

    def __init__(self, words: LabWords | None, case: str = "", others: Facts | None = None) -> None:
        self._words = words
        found = words.facts if words else others or Facts()
        self._facts = found.case(case) if case else found
        self._case = case
        self._cases = {pitfall.id for pitfall in words.lab.file.pitfalls} if words else set()

    def __str__(self) -> str:
        raise UserError(f"{self._case!r} is a case: say which of its facts")

    def __getattr__(self, name: str) -> Any:
        if self._words and (case := name.replace("_", "-")) in self._cases:
            return PageFacts(self._words, case)
        fact = self._facts[name]
        if fact is None or isinstance(fact, bool):
            raise UserError(
                f"the fact {name!r} is a judgement, which has no text: put it into words, behind {{% holds %}}"
            )
        if isinstance(fact, Table):
            return Block(fact)
        if isinstance(fact, Excerpt):
            assert self._words
            return _shown(self._words, fact)
        return fact


def _shown(words: LabWords, fact: Excerpt) -> Block:
    """An excerpt's lines; with each field explained, or as counters before and after the run, where it says so."""
    lines = dict(fact.lines)
    if tool := lines.pop("explained", None):
        return explained(words, tool, fact.of_set, fact.file, **lines)
    if names := lines.pop("counters", None):
        return counters(words, fact.of_set, fact.file.split("/")[0], names, **lines)
    return excerpt(words, fact.of_set, fact.file, **lines)


def facts_behind(quoted: PageFacts) -> Facts:
    """Return the facts themselves, as judgements are asked for."""
    return quoted._facts
