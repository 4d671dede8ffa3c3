"""No measured number is typed into a module's page, and none is judged by a word that rests on nothing (site/prose.py)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from measuretwice.site.prose import HELD, judged_numbers, problems_in, typed_numbers

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for folder in ("modules", "instructors/key", "instructors/tuesday")
    for path in sorted((ROOT / "docs" / folder).rglob("*.md"))
]


def test_no_number_is_typed_or_judged_by_a_word_alone() -> None:
    problems = [
        f"{path.relative_to(ROOT)}, line {line}: {problem}"
        for path in PAGES
        for line, problem in problems_in(path.read_text(encoding="utf-8"))
    ]
    assert not problems, "\n".join(problems)


# Words of this project's own and of medicine, for a case, its two runs and what is compared.
INNER = re.compile(r"\b(arms?|pitfalls?|stages?|staged)\b", re.IGNORECASE)
# What of a page no reader sees as prose: its head, macros, code and addresses.
UNREAD = re.compile(
    r"\A---\n.*?\n---\n|\{##.*?##\}|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|```.*?```|`[^`\n]*`|\]\([^)]*\)|<[^>]+>",
    re.DOTALL,
)


def students_texts() -> Iterator[tuple[str, str]]:
    """All that students read: pages and what they are made of, questions, and the phrases in labs' tables."""
    places = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.j2"), *(ROOT / "labs").glob("*/questions.md"),
              *(ROOT / "src/measuretwice").rglob("*.j2")]  # fmt: skip
    for path in sorted(places):
        if not {"instructors", "grading"} & {*path.parts}:
            yield path.relative_to(ROOT).as_posix(), UNREAD.sub(" ", path.read_text("utf-8"))
    for path in sorted(ROOT.glob("labs/*/*.toml")):
        if path.name != "rubric.toml":
            # One word alone is a name.
            phrases = (text for text in strings_in(tomllib.loads(path.read_text("utf-8"))))
            yield (
                path.relative_to(ROOT).as_posix(),
                "\n".join(text for text in phrases if " " in text),
            )


def strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from strings_in(part)


def test_students_read_no_inner_words() -> None:
    found = [
        f"{place}: {line.strip()[:100]}"
        for place, text in students_texts()
        for line in text.replace("on ARM", "").split("\n")
        if INNER.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_tests_that_pages_name_exist() -> None:
    tests = (ROOT / "tests/site/test_claims.py").read_text(encoding="utf-8")
    named = [name for path in PAGES for name in HELD.findall(path.read_text(encoding="utf-8"))]
    assert named
    for name in named:
        assert f"def {name}(" in tests, name


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
        ("It is {f.wait} here.\n", []),
        ("They saw 5 ms {## published: A ##}. We saw 6 ms, or 5 ms.\n", [(1, "6 ms")]),
        ("They saw 3 ms. {## published: ##}\n", [(1, "3 ms")]),
        ("A 95 % interval, and 5 % more.\n\n**Elsewhere**: a link\nof 9 ms.\n", [(1, "5 %")]),
        ("## What the authors saw\n\n68.5 Mbit/s.\n\n## Key points\n\n9 ms\n", [(7, "9 ms")]),
        ('!!! verdict "a"\n    **Over 90 %**, by them\n    Here: 91 %\n', [(3, "91 %")]),
        ("Trial 7, MTU 1500, RFC 5681, 40 B, 20 seconds.\n", []),
    ],
)  # fmt: skip
def test_what_counts_as_typed(page: str, found: list[tuple[int, str]]) -> None:
    assert typed_numbers(page) == found


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
        ("Set to 3 {## set ##}. It hardly took {{ f.a }}.\n", [(1, "hardly")]),
        ("| never {{ a | count }} |\n\n**Will it be larger than {{ a | sig }}?**\n", []),
    ],
)  # fmt: skip
def test_what_counts_as_judged(page: str, found: list[tuple[int, str]]) -> None:
    assert judged_numbers(page) == found


@pytest.mark.parametrize(
    "braces",
    ["{f.wait}", "{ f.wait }", "{ f.wait }}", "f.wait }}", "{f.wait"],
)
def test_braces_that_readers_would_see(braces: str) -> None:
    text = f"# A\n\nIt is {braces} or {{{{ f.wait }}}} or {{{{f.wait}}}}.\n"
    ((line, problem),) = problems_in(text)
    assert (line, problem.endswith("{{ f.wait }}")) == (3, True), problem
