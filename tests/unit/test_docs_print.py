"""A module's pages on one page."""

from measuretwice.site.macros.blocks import hints_of_case
from measuretwice.site.macros.cases import FOLD_END, folded_behind
from measuretwice.site.print import one_page


def made(*, answers: bool = True, **pages: str) -> str:
    text = one_page("T", "01-a", pages, answers=answers)
    head, body = text.split("{ .screen-only }\n\n", 1)
    assert "search:\n  exclude: true" in head
    return body


def test_headings_and_links() -> None:
    body = made(
        index="---\ntags: [x]\n---\n# T\n\n## Run it\n\nSee [b](b.md#how) and [c](../../reference/checks.md#x).\n",
        b="# B\n\n## How { #how }\n\n```sh\n# no heading\n```\n\n[up](index.md) [out](https://x.org/) [own](#how)\n",
    )
    assert body == (
        "# T { #index }\n\n## Run it { #index--run-it }\n\n"
        'See [b](#b--how) and [c](../../reference/checks.md#x){ data-paper="reference/checks" }.\n\n'
        "## B { #b .sheet }\n\n### How { #b--how }\n\n```sh\n# no heading\n```\n\n"
        "[up](#index) [out](https://x.org/) [own](#b--how)\n"
    )


def test_tabs_stand_one_below_the_other() -> None:
    page = (
        '# T\n\n=== "ping"\n\n    ```text\n    === "no tab"\n\n      deep\n    ```\n\n    word\n\n=== "ss"\n\n    x\n\nafter\n'
        '\n??? tip "Hint"\n\n    === "inner"\n\n        y\n\n    z\n'
    )
    body = made(index=page)
    assert "**ping**\n\n```text\n" in body
    assert "\n  deep\n```\n\nword\n\n**ss**\n\nx\n\nafter\n" in body
    assert '!!! tip "Hint"\n\n    **inner**\n\n    y\n\n    z' in body


def test_what_is_folded_is_open() -> None:
    body = made(
        index='# T\n\n??? note "A"\n\n    ???+ tip "B"\n\n        text\n\n```text\n??? x\n```\n'
    )
    assert '!!! note "A"\n\n    !!! tip "B"\n\n        text' in body
    assert "```text\n??? x\n```" in body


def test_a_heading_in_a_fold_has_a_name_of_the_page() -> None:
    body = made(
        index="# T\n",
        b="# B\n\n??? evidence\n\n    ### What it costs { #cost }\n\n    [It](#cost)\n",
    )
    assert "\n    #### What it costs { #b--cost }\n\n    [It](#b--cost)" in body


def test_room_for_answers() -> None:
    room = '<div class="answer"></div>'
    body = made(
        index="# T\n\n## Predict\n\nHow many?\n\n## Run\n\n1. x\n",
        questions="# Q\n\n1. One?\n\n2. Two?\n\n    more\n",
    )
    assert f"How many?\n\n{room}\n\n## Run" in body
    assert f"1. One?\n\n    {room}\n\n2. Two?\n\n    more\n\n    {room}" in body
    assert body.count(room) == 3


def test_figures_are_the_static_ones() -> None:
    page = (
        '# T\n\n<div class="interactive" data-figure="x" markdown>\n<script type="application/json">'
        '{"a": [1]}</script>\n<div class="fallback" markdown>\n\n![A](a.svg)\n\n</div>\n</div>\n'
    )
    body = made(index=page)
    assert '<div markdown>\n<div class="fallback" markdown>\n\n![A](a.svg)' in body
    assert "json" not in body


CASE = """\
# Case 1: Too slow

## Run

```sh
./lab run a --case 1
```

??? terminals "Other ways to run it"

    === "live terminals"

        ```sh
        ./lab up a
        ```

    === "testbed"

        on nodes

## What you see

{seen}

## Hints

{hints}

## Diagnosis

**What is it?**

{diagnosis}
"""


def case_page() -> str:
    folded = f'{folded_behind("diagnosis")}\n??? success "What"\n\n    the cause\n\n## Fix it\n\nso\n\n{FOLD_END}'
    return CASE.format(
        seen=f"{folded_behind('prediction')}\nseen\n\n{FOLD_END}",
        hints=hints_of_case("a 1", ["look", "compare", "the cause"]),
        diagnosis=folded,
    )


def test_students_have_no_answers_on_paper() -> None:
    questions = '# Q\n\n1. **A** (2 points)\n\n    ??? question "Open it when case 1 is solved"\n\n        The cause.\n\n2. Two?\n'
    pages = {"index": "# T\n", "case-01": case_page(), "results": "# What holds\n\nthe cause\n"}
    text = one_page("T", "01-a", pages | {"questions": questions}, answers=False)
    assert "cause" not in text.lower()
    assert "What holds" not in text
    assert "Hint" not in text
    assert "seen" in text
    assert "Open it when case 1 is solved" in text
    assert "2. Two?" in text
    assert text.count('<div class="answer"></div>') == 3
    in_full = one_page("T", "01-a", pages | {"questions": questions}, answers=True)
    assert all(part in in_full for part in ("Hint 3", "the cause", "# What holds"))
    assert "The cause." in in_full


def test_of_the_ways_to_run_one_is_on_paper() -> None:
    body = made(**{"case-01": case_page()})
    assert "./lab run a --case 1" in body
    for other in ("live terminals", "./lab up", "testbed", "on nodes"):
        assert other not in body
    assert "## What you see" in body
