"""Sentences of pages that judge numbers: made as long as the numbers bear them out, refused after."""

from __future__ import annotations

from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.site.render import Renderer
from measuretwice.site.words.subjects import SiteWords


def rendered(folder: Path, source: str) -> str:
    page = folder / "docs/page.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(source)
    return Renderer(SiteWords(folder, {}, instructor=False)).render(page, "page.md")


def test_a_claim_that_holds_is_its_words(tmp_path: Path) -> None:
    page = '{% set a = 1.2 %}\nIt is {{ claim(1 <= a <= 1.3, "inside") }} the range.\n'
    assert rendered(tmp_path, page) == "It is inside the range.\n"


@pytest.mark.parametrize("condition", ["a > 1.3", "[]", "[3, 1] | rising", "[1, 1] | rising"])
def test_a_claim_that_does_not_hold_is_an_error_with_its_place(
    tmp_path: Path, condition: str
) -> None:
    page = f'{{% set a = 1.2 %}}\n\nIt {{{{ claim({condition}, "rises in every row") }}}}.\n'
    with pytest.raises(UserError, match=r"docs/page\.md, line 3: .*'rises in every row'"):
        rendered(tmp_path, page)


def test_counts_in_words(tmp_path: Path) -> None:
    page = "{{ 0 | in_words }}, {{ 8 | in_words }}, {{ 13 | in_words }}, {{ 'up' if [1, 2, 2.5] | rising }}\n"
    assert rendered(tmp_path, page) == "none, eight, 13, up\n"
