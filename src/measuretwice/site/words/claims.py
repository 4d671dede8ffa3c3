"""Words of a page that judge recorded numbers: they stand as long as the numbers bear them out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from measuretwice.base.errors import UserError
from measuretwice.site.words.registry import number_filter, site_word
from measuretwice.site.words.subjects import SiteWords

WORDS = "none one two three four five six seven eight nine ten eleven twelve".split()


@site_word('claim(a > b, "more than before")')
def claim(_: SiteWords, holds: object, said: str) -> str:
    """Words that judge numbers, such as "inside" or "each time". Where the first value isn't true, the
    page isn't made: so a new recording leaves no false sentence behind."""
    if not holds:
        raise UserError(f"the recorded numbers don't bear out {said!r}: write what they do")
    return said


@number_filter("values | rising")
def rising(values: Iterable[float]) -> bool:
    """Whether each value is larger than the one before it: for `claim`."""
    return all(before < after for before, after in pairwise(values))


@number_filter("n | in_words")
def in_words(number: int) -> str:
    """A small whole number in words, 0 as none; from 13 on in digits."""
    return WORDS[number] if number < len(WORDS) else str(number)
