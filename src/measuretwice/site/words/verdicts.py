"""What became of published claims: a strip with a card for each, at the beginning of a page of results.

A card's verdict is computed from recorded numbers where the page stands, never typed: so a new recording
changes the word, and leaves no false one behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.base.errors import UserError
from measuretwice.facts import judge as judged
from measuretwice.site.markup import WORDS
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.registry import site_word
from measuretwice.site.words.subjects import SiteWords


@dataclass(frozen=True)
class Verdict:
    """A claim, who made it, whether it holds (None: these runs can't tell), and on what that rests.

    Texts are Markdown of one line. `interval` is empty where there is none to give: a single run has
    none. `at` is where on the page, or on which page, the evidence stands.
    """

    claim: str
    says: str
    holds: bool | None
    n: str
    value: str
    interval: str
    at: str

    def __str__(self) -> str:
        shape, said = WORDS[self.holds]
        interval = f" ({self.interval})" if self.interval else ""
        cells = [
            ("word", said),
            ("claim", f"**{self.claim}**, according to {self.says}"),
            ("value", f"Here: {self.value}{interval}"),
            ("n", self.n),
            ("at", f"[Evidence]({self.at})"),
        ]
        body = "\n".join(f'<span class="verdicts__{name}">{text}</span>' for name, text in cells)
        return (
            f'<div class="verdicts__one verdicts__one--{shape}" role="listitem" markdown="span">\n'
            f"{body}\n</div>"
        )


@site_word('verdict("a claim", says="the paper", holds=judge(ends, least=0.9), n="30 runs", ...)')
def verdict(
    _: SiteWords,
    claim: str,
    *,
    says: str,
    holds: object,
    n: str,
    value: object,
    interval: object = "",
    at: str,
) -> Verdict:
    """What became of a published claim, for `verdicts`: in a few words what is claimed, who `says` so,
    whether it `holds` (computed from recorded runs; none where they can't tell), `n` of what, the
    `value` found with its `interval`, and where the evidence stands, `at="#buffer"`."""
    if holds not in (True, False, None):
        raise UserError(f"verdict({claim!r}): holds is true, false or none, not {holds!r}")
    known = None if holds is None else bool(holds)
    amount, found, ends = (" ".join(str(text).split()) for text in (n, value, interval))
    return Verdict(claim, says, known, amount, found, ends, at)


@site_word("verdicts([verdict(...), ...])")
def verdicts(_: SiteWords, those: Sequence[Verdict]) -> Block:
    """A strip with a card for each `verdict`: what holds, what doesn't, what can't be told."""
    if not those:
        raise UserError("verdicts([]): expected at least one verdict")
    cards = "\n\n".join(map(str, those))
    return Block(f'<div class="verdicts" role="list" markdown="1">\n\n{cards}\n\n</div>\n')


@site_word("judge((low, high), least=0.9, most=1)")
def judge(
    _: SiteWords,
    ends: tuple[float, float],
    *,
    least: float | None = None,
    most: float | None = None,
) -> bool | None:
    """Whether all of an interval is within what a claim allows: true, or false where all of it is
    outside, or none where a limit is inside the interval, so that it can't be told."""
    if least is None and most is None:
        raise UserError("judge: expected least=, most= or both")
    limits = {"least": least, "most": most}
    return judged(ends, **{name: limit for name, limit in limits.items() if limit is not None})


@site_word('folded("the evidence")')
def folded(_: SiteWords, title: str) -> Block:
    """The beginning of a fold with that title: what is in it may have headings, tables and figures."""
    return Block(f'<details class="evidence" markdown="1">\n<summary>{title}</summary>\n')


@site_word("unfolded()")
def unfolded(_: SiteWords) -> Block:
    """The end of such a fold."""
    return Block("</details>\n")
