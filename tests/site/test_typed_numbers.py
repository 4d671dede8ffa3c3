"""No measured number is typed into a module's page by hand.

A number with a unit that measurements have stands in {{ }}, in code, in a formula, in what the
authors themselves published ("What the authors saw"), or in a paragraph that says where it comes from:
{## published: who ##} or {## set ##}, which readers don't see.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = r"[MGk]?bit/s|ms|%|segments?|packets?|losses|loss|drops?|retransmissions?|timeouts?"
TYPED = re.compile(rf"(?<![\w.$-])\d[\d.,   ]*(?: |\xa0|&nbsp;)?(?:{UNITS})(?!\w)")
PUBLISHED = re.compile(r"^#+ What (the authors|the literature|they)\b.*$")
# Kept as long as what they replace, so that lines keep their numbers.
NOT_PROSE = [
    # A card's claim is what others say; its verdict is computed.
    re.compile(r'^ *!!! verdict "[^"\n]*"\n(?:(?!\{##)[^\n])*', re.MULTILINE),
    re.compile(r"\A---\n.*?\n---\n", re.DOTALL),
    re.compile(r"^( *)(```+).*?^ *\2 *$", re.DOTALL | re.MULTILINE),
    re.compile(r"\{\{.*?\}\}", re.DOTALL),
    re.compile(r"\{%.*?%\}", re.DOTALL),
    re.compile(r"`[^`\n]+`"),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"\$[^$\n]+\$"),
    re.compile(r"<[^>\n]+>"),
    # How sure an interval is, is chosen; "Elsewhere" asks about a case that is made up.
    re.compile(r"(?<![\d.])9[059](?:\.\d+)?(?: |\xa0|&nbsp;)?%"),
    re.compile(r"^\*\*Elsewhere:?\*\*.*?(?:\n *\n|\Z)", re.DOTALL | re.MULTILINE),
]
SAID = re.compile(r"\{## (published: \S.*?|set) ##\}", re.DOTALL)


def typed_numbers(text: str) -> list[tuple[int, str]]:
    """Numbers with a measured unit that stand in a page's prose: line and words."""
    for pattern in NOT_PROSE:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", "·", found[0]), text)
    found, line, published = [], 1, False
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        heading = re.search(r"^#+ .*$", paragraph, re.MULTILINE)
        if heading:
            published = bool(PUBLISHED.match(heading[0]))
        if not published and not SAID.search(paragraph):
            found += [
                (line + paragraph[: one.start()].count("\n"), one[0])
                for one in TYPED.finditer(paragraph)
            ]
        line += paragraph.count("\n")
    return found


def test_no_measured_number_is_typed() -> None:
    problems = [
        f"{path.relative_to(ROOT)}, line {line}: {words!r} is typed. Take it from a run or the model "
        "with {{ }}, or say in the paragraph where it is from: {## published: who ##} or {## set ##}"
        for path in sorted((ROOT / "docs/modules").rglob("*.md"))
        for line, words in typed_numbers(path.read_text(encoding="utf-8"))
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("It had 25.7 Mbit/s.\n", [(1, "25.7 Mbit/s")]),
        ("# A\n\nText,\nand 12&nbsp;ms there.\n", [(4, "12&nbsp;ms")]),
        ("A third: 33 % of 1 302 324 packets.\n", [(1, "33 %"), (1, "1 302 324 packets")]),
        ("{{ run('x').ratio | mbit }} and `delay 3 ms` and $p = 3\\,%$ ms.\n", []),
        ("```sh\ntc ... loss 3 %\n```\n\nAfter: 4 losses.\n", [(5, "4 losses")]),
        ("They saw 68.5 Mbit/s. {## published: Mansour ##}\n\nWe 5 %.\n", [(3, "5 %")]),
        ("A link of 1 Gbit/s {## set ##}.\n", []),
        ("They saw 3 ms. {## published: ##}\n", [(1, "3 ms")]),
        ("A 95 % interval, and 5 % more.\n\n**Elsewhere**: a link\nof 9 ms.\n", [(1, "5 %")]),
        ("## What the authors saw\n\n68.5 Mbit/s.\n\n## Key points\n\n9 ms\n", [(7, "9 ms")]),
        ('!!! verdict "a"\n    **Over 90 %**, by them\n    Here: 91 %\n', [(3, "91 %")]),
        ("Trial 7, MTU 1500, RFC 5681, 40 B, 20 seconds.\n", []),
    ],
)  # fmt: skip
def test_what_counts_as_typed(page: str, found: list[tuple[int, str]]) -> None:
    assert typed_numbers(page) == found
