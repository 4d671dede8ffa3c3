"""A published claim's verdict: told by word and shape, and first on its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from measuretwice.site.markup import VERDICTS

ROOT = Path(__file__).parents[2]
RESULTS = [
    "01-mathis/not-reproduced.md",
    *(f"{lab}/results.md" for lab in ("02-buffers", "03-scale", "04-variants", "05-queues")),
]


def test_each_verdict_has_a_shape_of_its_own() -> None:
    css = (ROOT / "docs/assets/extra.css").read_text(encoding="utf-8")
    shapes = [
        re.findall(rf"verdicts__one--{shape} {{ --shape: (.*)", css)[0]
        for shape, _ in VERDICTS.values()
    ]
    assert len(set(shapes)) == len(VERDICTS) == 3


@pytest.mark.parametrize("page", RESULTS)
def test_pages_of_results_begin_with_verdicts(page: str) -> None:
    text = (ROOT / "docs/modules" / page).read_text(encoding="utf-8")
    assert text.index("!!! verdict") < text.index("\n## "), "the verdicts come first"
    assert text.count("!!! verdict") >= 5
