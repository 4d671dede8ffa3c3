"""Markdown of several lines and numbers, as macros give them to pages: rounded, with their unit, never with an exponent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from measuretwice import facts
from measuretwice.facts import values
from measuretwice.facts.values import SPACE
from measuretwice.report.markdown import fence
from measuretwice.site.macros import macro

# What a pitfall's three hints are about, in order.
STEPS = ("Where to look", "What to compare", "The cause")
# Who searches wants the page on cwnd, not every line of ss or each page's commands; and the index is
# in each page's weight.
UNSEARCHED = 'data-search-exclude="true"'

# How a case's hints begin, and what stands below them.
OF_HINTS = '<section class="hints"'
STUCK = "[Still stuck?](../../start/stuck.md)"


# A caption's number, and the same said to screen readers; 0 until the page numbers them.
CAPTION = "**Figure 0.**"
NUMBER = re.compile(r'(\*\*Figure )\d+(\.\*\*)|(aria-label="Figure )\d+(")')
WORDS = "none one two three four five six seven eight nine ten eleven twelve".split()
sig = macro("x | sig(3)", scope="filter")(values.sig)
count = macro("x | count", scope="filter")(values.count)


def numbered(page: str) -> str:
    """Return a page whose captions, `**Figure 0.** ...`, are numbered in their order."""
    numbers = itertools.count(1)
    now = 0

    def number(match: re.Match[str]) -> str:
        nonlocal now
        if match[1]:
            now = next(numbers)
            return f"{match[1]}{now}{match[2]}"
        return f"{match[3]}{now}{match[4]}"

    return NUMBER.sub(number, page)


class Block(str):
    """Markdown of several lines. It takes on the indentation of the place where it stands."""

    __slots__ = ()


def indented(text: str, indent: str) -> str:
    """Return lines of text as far in as they are to stand; empty ones stay empty."""
    return "\n".join(indent + line if line else "" for line in text.rstrip("\n").split("\n"))


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]], aligned: str) -> str:
    """Return a Markdown table; `aligned` has a letter for each column, l or r."""
    rules = [{"l": "---", "r": "---:"}[letter] for letter in aligned]
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join(rules)}|"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


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
        f'{OF_HINTS} data-case="{case}" markdown="1" {UNSEARCHED}>\n\n{folded_hints(hints)}\n{STUCK}\n\n</section>\n'
    )


@macro("x | mbit", scope="filter")
def mbit(value: float, digits: int = 3) -> str:
    """Bit/s as Mbit/s."""
    return f"{sig(value / 1e6, digits)}{SPACE}Mbit/s"


def ms(value: float, digits: int = 4) -> str:
    """Milliseconds, with four significant digits."""
    return f"{sig(value, digits)}{SPACE}ms"


def seconds(value: float, digits: int = 3) -> str:
    """Seconds; from two minutes on minutes, from two hours on hours."""
    return str(facts.seconds(value, digits))


@macro("x | percent", scope="filter")
def percent(value: float, digits: int = 3) -> str:
    """A ratio in percent: 0.1566 becomes 15.7 %."""
    return f"{sig(100 * value, digits)}{SPACE}%"


def day(iso: str) -> str:
    """A date as in 21 November 2026."""
    return datetime.fromisoformat(iso).strftime("%d %B %Y").lstrip("0")


@macro("n | in_words", scope="filter")
def in_words(number: int) -> str:
    """A small whole number in words, 0 as none; from 13 on in digits."""
    return WORDS[number] if number < len(WORDS) else str(number)
