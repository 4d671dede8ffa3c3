"""No sentence of a module's page judges a recorded number unheld.

Where a word such as "hardly" or "inside" stands in one sentence with a number of a run, the numbers must
bear it out: its paragraph says on which fact it rests ({% holds "name" %}), the page computes the word ({% if %}), or its paragraph names the test that holds it, {## held: test_... ##}. What follows
from settings or a model says {## set ##}, what others published {## published: who ##}.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JUDGING = re.compile(
    r"\b(inside|outside|thousands|hundreds|dozens|each time|every time|whatever|nearly|almost|hardly"
    r"|clearly|always|never|none|grew|fell|rose|by far|far (?:above|below|from)"
    r"|(?:far )?(?:higher|lower|larger|smaller|longer|shorter|faster|slower|fewer|more|less) than)\b",
    re.IGNORECASE,
)
# A number as pages show it: a fact, or an expression that ends in a filter for numbers.
NUMBER = re.compile(
    r"\{\{ f\.[\w.]+ \}\}|\{\{[^{}]*\| *(?:sig|count|percent|mbit|ms|seconds|times|bytes)\b[^{}]*\}\}"
)
# What stands in a paragraph whose words rest on a fact.
HOLDS = re.compile(r"\{% holds ")
HELD = re.compile(r"\{## held: (\w+) ##\}")
SAID = re.compile(r"\{## (?:published: \S.*?|set|held: \w+) ##\}", re.DOTALL)
NOT_PROSE = [
    # A card's claim is what others say; its verdict is computed.
    re.compile(r'^ *!!! verdict "[^"\n]*"\n(?:(?!\{##)[^\n])*', re.MULTILINE),
    re.compile(r"\A---\n.*?\n---\n", re.DOTALL),
    re.compile(r"^( *)(```+).*?^ *\2 *$", re.DOTALL | re.MULTILINE),
    re.compile(r"`[^`\n]+`"),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"^ *(?:\||#).*$", re.MULTILINE),
    # What is asked judges nothing.
    re.compile(r"\*\*[^*]*\?\*\*"),
]
# What stands between these is on the page on a condition.
CONDITIONAL = re.compile(r"\{% (?:if|elif|else)\b.*?(?=\{% (?:elif|else|endif)\b)", re.DOTALL)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*({])")


def judged(text: str) -> list[tuple[int, str]]:
    """Sentences with a number and a word that judges it, and nothing that holds the word: line, word."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    for pattern in NOT_PROSE:
        text = pattern.sub(blank, text)
    text = CONDITIONAL.sub(blank, text)
    found, line = [], 1
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        if not SAID.search(paragraph) and not HOLDS.search(paragraph):
            at = 0
            for sentence in SENTENCE.split(paragraph):
                at = paragraph.index(sentence, at)
                numbers = NUMBER.search(sentence)
                plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ", sentence, flags=re.DOTALL)
                if numbers and (word := JUDGING.search(plain)):
                    found.append((line + paragraph[:at].count("\n"), word[0]))
        line += paragraph.count("\n")
    return found


PAGES = sorted((ROOT / "docs/modules").rglob("*.md"))


def test_every_judged_number_is_held() -> None:
    problems = [
        f"{path.relative_to(ROOT)}, line {line}: {word!r} judges a number. Name the fact on which it rests "
        '({% holds "name" %}), or name what holds it: {## held: test_... ##}, {## set ##}'
        for path in PAGES
        for line, word in judged(path.read_text(encoding="utf-8"))
    ]
    assert not problems, "\n".join(problems)


def test_the_tests_that_pages_name_exist() -> None:
    tests = (ROOT / "tests/site/test_claims.py").read_text(encoding="utf-8")
    named = [name for path in PAGES for name in HELD.findall(path.read_text(encoding="utf-8"))]
    assert named
    for name in named:
        assert f"def {name}(" in tests, name


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("It hardly changed: {{ a | percent }}.\n", [(1, "hardly")]),
        ("# A\n\nOne.\nIt is\nlarger than {{ a | sig(3) }}.\n", [(4, "larger than")]),
        ("{% if a %}It is never {{ a | sig }}.{% endif %} So.\n", []),
        ('!!! verdict "a"\n    **More than x**, by {{ f.who }}\n    Here: hardly {{ f.a }}\n', [(3, "hardly")]),
        ("It is never so. Here {{ a | sig }}.\n", []),
        ("A link never idles below {{ a | mbit }} {## set ##}.\n", []),
        ("It rose to {{ a | count }} {## held: test_it ##}.\n", []),
        ("| never {{ a | count }} |\n\n**Will it be larger than {{ a | sig }}?**\n", []),
    ],
)  # fmt: skip
def test_what_counts_as_judged(page: str, found: list[tuple[int, str]]) -> None:
    assert judged(page) == found
