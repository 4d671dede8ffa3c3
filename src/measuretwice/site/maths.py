r"""Formulas of pages, from TeX to MathML: browsers set them without a script, and readers' software says them.

    $p$                  in a line
    $$ \frac{1}{p} $$    by itself: a box of its own, which scrolls where it is too wide

As in Markdown's own rules for them, code holds no formulas, and a dollar beside a space isn't one's sign.
"""

from __future__ import annotations

import re

from latex2mathml.converter import convert

from measuretwice.base.errors import UserError

# What is left as it is comes first: fenced blocks, scripts and styles, code within a line.
PARTS = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^[ \t]*(?P=fence)[ \t]*$"
    r"|<(?P<tag>script|style|pre|math|svg)\b.*?</(?P=tag)>"
    r"|(?<![`\\])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)"
    r"|^(?P<before>[ \t]*)\$\$(?P<block>(?:(?!\n[ \t]*\n).)+?)\$\$[ \t]*$"
    r"|(?<![\\$])\$(?![\s$])(?P<line>(?:\\.|[^\\$\n]|\n(?![ \t]*\n))+?)(?<!\s)\$(?!\$)",
    re.MULTILINE | re.DOTALL,
)


def with_formulas(page: str, text: str) -> str:
    """Return a page's Markdown with its formulas as MathML; UserError for one that can't be read."""

    def one(found: re.Match[str]) -> str:
        if (tex := found["block"]) is not None:
            # In its own box it can be scrolled, by the keyboard too.
            box = f'<div class="formula" tabindex="0">{_mathml(page, tex, "block")}</div>'
            return f"{found['before']}{box}"
        if (tex := found["line"]) is not None:
            # In a box of its own it may begin a line: Markdown would take bare MathML there for a block.
            return f'<span class="formula">{_mathml(page, tex, "inline")}</span>'
        return found[0]

    return PARTS.sub(one, text) if "$" in text else text


def _mathml(page: str, tex: str, display: str) -> str:
    try:
        made = convert(" ".join(tex.split()), display=display)
    except Exception as error:
        raise UserError(f"{page}: ${tex}$ is no formula: {error}") from None
    # An unknown command, or a brace of which there is no other, is taken for a name.
    if re.search(r">[{}]|\\\w", made):
        raise UserError(f"{page}: ${tex}$ has a command that isn't known, or a brace too many")
    # Each letter as a character's number, lest Markdown find an abbreviation, an emphasis or a link in it.
    return re.sub(r">([^<]+)<", lambda found: f">{_spelled(found[1])}<", made)


def _spelled(text: str) -> str:
    return re.sub(
        r"&#?\w+;|.", lambda one: one[0] if len(one[0]) > 1 else f"&#{ord(one[0])};", text
    )
