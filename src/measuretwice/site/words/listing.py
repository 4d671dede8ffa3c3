"""All words as a page for those who write pages: workshop/words.md, which `make words` writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby

from measuretwice.site.words.registry import (
    Word,
    model_word,
    number_filter,
    site_word,
    word,
)

HEAD = """# The words of pages

`make words` makes this list of the functions in `src/measuretwice/site/words/`: what a word is, is its
docstring there. [pages.md](pages.md) says how pages are made.
"""
LAB = """In `docs/modules/NN-<lab>/` these words are about that lab; elsewhere write `lab("mathis")` before them,
as in `{{ lab("mathis").trial(7).rtt_ms }}`. Words that begin with `own.` not every lab can answer.
"""
FILTERS = """Filters round and add the unit, as in `{{ run("mtu-fixed").measured.goodput_bps | mbit }}`.
"""


def listing() -> str:
    """Return the list as Markdown."""
    parts = [HEAD, "## Of a lab\n", LAB]
    for module, words in groupby(word.words().values(), key=lambda entry: entry.module):
        parts += [f"### {_subject(module)}\n", _table(words)]
    for title, vocabulary in (
        ("Of the site", site_word),
        ("Models", model_word),
    ):
        parts += [f"## {title}\n", _table(vocabulary.words().values())]
    return "\n".join([*parts, "## Filters\n", FILTERS, _table(number_filter.words().values())])


def _subject(module: str) -> str:
    """What a module's words are about: its docstring's first line, up to the colon."""
    first = (sys.modules[module].__doc__ or module).splitlines()[0]
    return first.split(":")[0].rstrip(".")


def _table(words: Iterable[Word]) -> str:
    rows = [f"| {_cell(f'`{entry.usage}`')} | {_cell(entry.help)} |" for entry in words]
    return "\n".join(["| word | what it is |", "|---|---|", *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(listing())
