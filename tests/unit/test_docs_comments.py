"""Comments of templates, which readers don't see, leave the text around them as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from measuretwice.site.macros.table import SiteContext
from measuretwice.site.render import Renderer


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("one {## set ##}\n\ntwo\n", "one\n\ntwo\n"),
        ("| a | {## set ##}\n|---|\n", "| a |\n|---|\n"),
        ("98 % {## published: they ##}, and\n", "98 %, and\n"),
        ("{## of its own ##}\nnext\n", "next\n"),
        ("{{ 1 }} {## measured ##} {{ 2 }}\n", "1 2\n"),
        ("## word { #anchor }\n", "## word { #anchor }\n"),
    ],
)
def test_a_comment_behind_text_takes_no_line_and_leaves_no_space(
    tmp_path: Path, source: str, text: str
) -> None:
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text(source)
    assert Renderer(SiteContext(tmp_path, {}, instructor=False)).render(page, "page.md") == text
