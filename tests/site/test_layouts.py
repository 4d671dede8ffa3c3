"""A case's page holds its own words; its layout has the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from measuretwice.base.errors import UserError
from measuretwice.facts import Facts
from measuretwice.site.layouts import (
    CASE,
    LESSON,
    MODULE,
    NEEDED,
    laid_out,
    session_rows,
    split,
    timed,
)
from measuretwice.site.markup import fill_in, link_cases

PAGE = "---\ncase: mtu\n---\n\n" + "".join(
    f"## {heading}\n\nOf {heading}.\n\n" for heading in NEEDED
)


def words_of(text: str) -> Mapping[str, Any]:
    given: list[Mapping[str, Any]] = []

    def fill(layout: str, words: Mapping[str, Any]) -> str:
        assert layout == CASE
        given.append(words)
        return "filled in"

    assert laid_out(text, fill).endswith("filled in\n")
    return given[0]


def test_a_page_without_a_case_stays_as_it_is() -> None:
    for text in ("# A page\n", "---\ndescription: x\n---\n# A page\n"):
        assert laid_out(text, lambda _, __: "filled in") == text


def test_its_words_go_where_the_layout_wants_them() -> None:
    words = words_of(f"{PAGE}## The recorded runs, both\n\n- a\n\n  - b\n\n## More\n\nAll.\n")
    assert words["case"] == "mtu"
    assert words["part"]("Predict") == "Of Predict."
    assert words["part"]("Run") == words["inner"]("Show me") == ""
    assert words["inner"]("The recorded runs, both") == "    - a\n\n      - b"
    assert (words["several"], words["others"]) == (True, ["More"])


def test_front_matter_of_the_layout_goes_and_other_stays() -> None:
    text = PAGE.replace("case: mtu", 'description: "x"\ncase: mtu\ntold: [rate_mbit, a_ms]')
    text += "## The recorded run, fixed\n\nOf it.\n"
    layout = "---\nsearch: {boost: 3}\n---\n\n# It\n"
    assert laid_out(text, lambda _, __: layout) == (
        '---\ndescription: "x"\nsearch: {boost: 3}\n---\n\n# It\n'
    )
    assert laid_out(PAGE + "## The recorded run, fixed\n\nOf it.\n", lambda _, __: layout) == layout
    words = words_of(text)
    assert (words["told"], words["several"]) == (["rate_mbit", "a_ms"], False)


def test_the_problem_comes_first_and_its_set_up_below_the_button() -> None:
    text = PAGE.replace("Of Predict.", "It is slow. Trial 7\nhas:\n\n| a |\n|---|\n\nMore.")
    words = words_of(text + "## The recorded run, fixed\n")
    assert words["problem"] == "It is slow. Trial 7\nhas."
    assert words["setup"] == "| a |\n|---|\n\nMore."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PAGE.replace("## Fix it", "## Fix itt"), r"heading '## Fix itt': is it '## Fix it'\?"),
        (PAGE.replace("## Fix it", "## How"), "has no heading '## Fix it'"),
        (PAGE + "## Run Again\n", "heading '## Run Again': is it '## Run again'\\?"),
        (PAGE, "has 0 headings '## The recorded run ...'"),
        (PAGE + "## Predict\n", "has two headings '## Predict'"),
    ],
)
def test_what_is_missing_is_named(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        laid_out(text, lambda _, __: "")


def test_a_heading_in_a_fence_is_none() -> None:
    text = "## One\n```sh\n## a comment\n```\n## Two\n"
    assert split(text) == {"One": "```sh\n## a comment\n```", "Two": ""}


def test_a_modules_front_says_what_all_fronts_say() -> None:
    given: list[Mapping[str, Any]] = []

    def fill(layout: str, words: Mapping[str, Any]) -> str:
        assert layout == MODULE
        given.append(words)
        return "# It\n\n\n\nMore.\n\n"

    text = '---\nmodule: yes\nnote: "Take it last."\n---\n\n## The question\n\nWhy?\n'
    assert laid_out(text, fill) == "# It\n\nMore.\n"
    assert given[0]["note"] == "Take it last."
    assert given[0]["body"] == "## The question\n\nWhy?"


PLAN = """---
lab: mathis
lesson: yes
session: [mtu, offload]
---
# Tuesday

For a class.

## Minute by minute

| 90 min | 45 min | What happens | Say, ask |
|---|---|---|---|
| 5 | 4 | The claim. | |
| 4 | – | case mtu | What else? |
| 8 | – | search | Read aloud. |
| 5 | 3 | cause | Who refused? |

## You run late

Stop.

## Homework

More.

## What they get wrong

All.
"""


def of_plan(text: str) -> Mapping[str, Any]:
    given: list[Mapping[str, Any]] = []

    def fill(layout: str, words: Mapping[str, Any]) -> str:
        assert layout == LESSON
        given.append(words)
        return "# It"

    laid_out(text, fill)
    return given[0]


def test_a_plans_minutes_become_a_clock() -> None:
    words = of_plan(PLAN)
    spans = [(row.when, row.when_short) for row in words["rows"]]
    assert [[span.replace("&nbsp;", " ") for span in row] for row in spans] == [
        ["0 to 5", "0 to 4"], ["5 to 9", "–"], ["9 to 17", "–"], ["17 to 22", "4 to 7"],
    ]  # fmt: skip
    assert [(row.kind, row.case) for row in words["rows"][1:]] == [
        ("case", "mtu"), ("search", "mtu"), ("cause", "mtu"),
    ]  # fmt: skip
    assert (words["head"], words["cases"]) == ("# Tuesday\n\nFor a class.", ["mtu"])


def test_a_session_takes_the_minutes_of_its_cases_and_breaks_after_three() -> None:
    minutes = dict.fromkeys(("a", "b", "c", "d"), 10)
    rows, whole = session_rows(list(minutes), minutes)
    assert [row.kind for row in rows] == [
        "begin", "case", "case", "case", "break", "case", "together", "end",
    ]  # fmt: skip
    assert whole == 20 + 4 * 13 + 10 + 15 + 10
    assert [row.kind for row in session_rows(["a", "b", "c"], minutes)[0]].count("break") == 0
    table = "| minutes | what |\n|---:|---|\n| 15 | One. |\n| 8 | Two. |"
    assert timed(table).replace("&nbsp;", " ").splitlines()[2:] == [
        "| 0 to 15 | One. |", "| 15 to 23 | Two. |", "| **23** | **in all** |",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("| 5 | 4 | The", "| five | 4 | The", "a row of a plan has four cells.*five"),
        ("| 4 | – | case mtu | What else? |", "| 4 | case mtu | What? |", "a row of a plan has four"),
        ("## Homework", "## Home", "no heading '## Homework'"),
        ("## Homework", "## More\n\n## Homework", "an unknown heading '## More'"),
        ("session: [mtu, offload]\n", "", "either the cases of its session"),
    ],
)  # fmt: skip
def test_a_plan_that_isnt_whole_says_what_is_wrong(old: str, new: str, says: str) -> None:
    assert old in PLAN
    with pytest.raises(UserError, match=says):
        of_plan(PLAN.replace(old, new))


def test_a_session_of_an_unknown_case_names_the_known() -> None:
    with pytest.raises(UserError, match="no case 'mut'; there are mtu"):
        session_rows(["mut"], {"mtu": 10})


def test_a_link_to_a_case_says_its_number() -> None:
    text = "See [case](case:mtu). [Case](case:buffers/one-run) too."
    assert link_cases(text, lambda lab, name: (len(name), f"{lab or 'own'}.md")) == (
        "See [case 3](own.md). [Case 7](buffers.md) too."
    )


def test_a_row_of_a_table_sums_up_the_minutes_above_it() -> None:
    row, of = (
        "| **sum** | **in all** |",
        lambda text: fill_in(text, Facts(), lambda name, alt: "", dict),
    )
    head = "| minutes | what |\n|---:|---|\n"
    both = f"{head}| 15 | One. |\n| 8 | Two. |\n{row}\n\n{head}| 4 | Three. |\n{row}\n"
    assert re.findall(r"\*\*(\d+)\*\*", of(both)) == ["23", "4"]
    assert of("No table: **sum**.\n") == "No table: **sum**.\n"
