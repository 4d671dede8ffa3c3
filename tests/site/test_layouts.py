"""A case's page holds its own words; its layout has the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from measuretwice.base.errors import UserError
from measuretwice.site.layouts import CASE, MODULE, NEEDED, laid_out, split

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
    assert (words["settings"], words["several"], words["others"]) == (True, True, ["More"])


def test_front_matter_of_the_layout_goes_and_other_stays() -> None:
    text = PAGE.replace(
        "case: mtu", 'description: "x"\ncase: mtu\nsettings: none\ntold: [rate_mbit, a_ms]'
    )
    text += "## The recorded run, fixed\n\nOf it.\n"
    layout = "---\nsearch: {boost: 3}\n---\n\n# It\n"
    assert laid_out(text, lambda _, __: layout) == (
        '---\ndescription: "x"\nsearch: {boost: 3}\n---\n\n# It\n'
    )
    assert laid_out(PAGE + "## The recorded run, fixed\n\nOf it.\n", lambda _, __: layout) == layout
    words = words_of(text)
    assert (words["told"], words["settings"], words["several"]) == (
        ["rate_mbit", "a_ms"],
        False,
        False,
    )


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
