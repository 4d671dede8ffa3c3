"""Markdown of several lines, as words give it to pages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from measuretwice.report.markdown import fence

# What a pitfall's three hints are about, in order.
STEPS = ("Where to look", "What to compare", "The cause")
# Who searches wants the page on cwnd, not every line of ss or each page's commands; and the index is
# in each page's weight.
UNSEARCHED = 'data-search-exclude="true"'

# How a case's hints begin.
OF_HINTS = '<section class="hints"'


# A caption's number, and the same said to screen readers; 0 until the page numbers them.
CAPTION = "**Figure 0.**"
NUMBER = re.compile(r'(\*\*Figure )\d+(\.\*\*)|(aria-label="Figure )\d+(")')


def numbered(page: str) -> str:
    """Return a page whose captions, `**Figure 0.** ...`, are numbered in their order."""
    numbers = itertools.count(1)
    now = 0

    def number(found: re.Match[str]) -> str:
        nonlocal now
        if found[1]:
            now = next(numbers)
            return f"{found[1]}{now}{found[2]}"
        return f"{found[3]}{now}{found[4]}"

    return NUMBER.sub(number, page)


class Block(str):
    """Markdown of several lines. It takes on the indentation of the place where it stands."""

    __slots__ = ()


def verbatim(text: str, language: str, *, title: str = "", wrapped: bool = False) -> str:
    """Return a block of lines that the search leaves out: printed by a program, or repeated on many pages."""
    titled = f' title="{title}"' if title else ""
    head = f"{{ .{language}{' .wrapped' if wrapped else ''}{titled} {UNSEARCHED} }}"
    return str(fence(text, head))


def folded_hints(hints: Sequence[str]) -> Block:
    """Return a ladder of three hints, each folded."""
    parts = [
        f'??? tip "Hint {n}: {title}"\n\n    {text}\n'
        for n, (title, text) in enumerate(zip(STEPS, hints, strict=True), 1)
    ]
    return Block("\n".join(parts))


def hints_of_case(case: str, hints: Sequence[str]) -> Block:
    """Return the hints of one `case` ("mathis 5"). The search leaves them out: they would tell the cause."""
    return Block(
        f'{OF_HINTS} data-case="{case}" markdown="1" {UNSEARCHED}>\n\n{folded_hints(hints)}\n</section>\n'
    )
