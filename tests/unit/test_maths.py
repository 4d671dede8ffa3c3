"""Formulas of pages: which dollars are one's signs, and what becomes of them."""

import html
import re

import pytest
from markdown import markdown

from measuretwice.base.errors import UserError
from measuretwice.site.markup import with_formulas

MARKDOWN = ["abbr", "attr_list", "md_in_html", "tables", "pymdownx.superfences"]
ABBREVIATIONS = "\n\n*[MSS]: Maximum segment size\n*[p]: something else"


def shown(text: str) -> str:
    """What Markdown makes of a page's text with its formulas, abbreviations explained."""
    return markdown(with_formulas("a.md", text) + ABBREVIATIONS, extensions=MARKDOWN)


def words(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page)).strip()


@pytest.mark.parametrize(
    ("tex", "has"),
    [
        ("p", "<mi>p</mi>"),
        (r"1/\sqrt p", "<msqrt>"),
        (r"\tfrac{3}{8} W^2", "<mfrac>"),
        (r"W_{max}", "<msub>"),
        (r"(\sum x)^2 / (n \sum x^2)", "<mo>∑</mo>"),
        (r"C \cdot \text{MSS} / (\text{RTT} \sqrt{p})", "<mtext>MSS</mtext>"),
    ],
)
def test_a_formula_in_a_line(tex: str, has: str) -> None:
    page = html.unescape(shown(f"*so* ${tex}$ is, and *more*"))
    assert has in page
    assert page.count("<math ") == 1
    assert "<em>so</em>" in page
    # Nothing in it is taken for Markdown, or for an abbreviation.
    inside = page.partition("<math")[2].partition("</math>")[0]
    assert not re.search("<(abbr|em|p)[ >]", inside)


def test_a_formula_may_begin_a_line_and_stand_in_a_table() -> None:
    assert shown("$p$ is the share.").startswith("<p><span")
    table = shown("| name | value |\n|---|---|\n| $C = 1$ | 2 |")
    assert table.count("<td>") == 2
    assert "<math" in table


def test_a_formula_by_itself_is_a_box_that_scrolls_by_keyboard() -> None:
    page = shown("Thus\n\n$$\n\\text{goodput} = \\frac{C}{\\sqrt{p}}\n$$\n\nwith *this*.")
    assert '<div class="formula" tabindex="0"><math' in page
    assert 'display="block"' in page
    assert "goodput" in words(page)
    assert "$" not in page
    assert "<em>this</em>" in page


@pytest.mark.parametrize(
    "text",
    [
        "```sh\necho $a $b\n```",
        "    ```sh\n    echo $a $b\n    ```",
        "`awk '{ print $5, $6 }'` and `$x$`",
        '<script type="application/json">{"a": "$p$"}</script>',
        "It costs 5 $ or 6 $ a month",
        r"\$p\$",
    ],
)
def test_what_is_no_formula_stays(text: str) -> None:
    assert with_formulas("a.md", text) == text


@pytest.mark.parametrize("tex", [r"\nosuchthing{3}", "x^", "1/(n}"])
def test_what_cannot_be_read_is_named(tex: str) -> None:
    with pytest.raises(UserError, match=r"^a\.md: \$"):
        with_formulas("a.md", f"so ${tex}$ is")


def test_twice_is_as_once() -> None:
    once = with_formulas("a.md", "so $p$ is\n\n$$ p = 1 $$\n")
    assert with_formulas("a.md", once) == once
