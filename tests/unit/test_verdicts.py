"""A published claim's verdict: computed, told by word and shape, never typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.site.words.subjects import SiteWords
from measuretwice.site.words.verdicts import judge, verdict, verdicts

ROOT = Path(__file__).parents[2]
SITE = SiteWords(ROOT, {}, instructor=False)
RESULTS = [
    "01-mathis/not-reproduced.md",
    *(f"{lab}/results.md" for lab in ("02-buffers", "03-scale", "04-variants", "05-queues")),
]


@pytest.mark.parametrize(
    ("ends", "least", "most", "holds"),
    [
        ((0.92, 0.93), 0.9, None, True),
        ((0.89, 0.91), 0.9, None, None),
        ((0.89, 0.898), 0.9, None, False),
        ((0.98, 0.99), 0.9, 0.98, None),
        ((0.981, 0.99), 0.9, 0.98, False),
        ((0.95, 0.97), 0.9, 0.98, True),
        ((float("-inf"), float("inf")), 0, None, None),
    ],
)
def test_judge(
    ends: tuple[float, float], least: float | None, most: float | None, holds: bool | None
) -> None:
    assert judge(SITE, ends, least=least, most=most) is holds


def test_judge_wants_a_limit() -> None:
    with pytest.raises(UserError, match="least=, most="):
        judge(SITE, (0, 1))


def card(holds: object, interval: str = "") -> str:
    one = verdict(
        SITE, "It holds", says="the paper", holds=holds, n="3 runs", value="7", interval=interval, at="#a"
    )  # fmt: skip
    return str(verdicts(SITE, [one]))


def test_a_card_says_its_verdict_in_words_and_has_a_class_for_its_shape() -> None:
    cards = [card(True), card(False), card(None)]
    for text, said, shape in zip(
        cards, ("holds", "doesn't hold", "can't be told"), ("holds", "fails", "open"), strict=True
    ):
        assert f'verdicts__word">{said}</span>' in text
        assert f"verdicts__one--{shape}" in text
    css = (ROOT / "docs/assets/extra.css").read_text(encoding="utf-8")
    shapes = {re.search(rf"verdicts__one--{s} {{ --shape: (.*)", css)[1] for s in ("holds", "fails", "open")}  # type: ignore[index]  # fmt: skip
    assert len(shapes) == 3


def test_an_interval_stands_behind_the_value_where_there_is_one() -> None:
    assert "Here: 7 (6 to 8)" in card(True, "6 to 8")
    assert "Here: 7</span>" in card(True)


def test_no_verdict_is_words() -> None:
    with pytest.raises(UserError, match="true, false or none"):
        card("holds")
    with pytest.raises(UserError, match="at least one"):
        verdicts(SITE, [])


TYPED = re.compile(r"holds=\s*(true|false|none|0|1)\s*[,)]", re.IGNORECASE)


@pytest.mark.parametrize("page", RESULTS)
def test_pages_of_results_begin_with_verdicts_and_type_none(page: str) -> None:
    text = (ROOT / "docs/modules" / page).read_text(encoding="utf-8")
    if "!!! verdict" in text:  # the judgements are facts, which no page can type
        assert text.index("!!! verdict") < text.index("\n## "), "the verdicts come first"
        assert text.count("!!! verdict") >= 5
        return
    strip = text.index("{{ verdicts([")
    assert strip < text.index("\n## "), "the verdicts come first"
    assert text.count("verdict(") >= 5
    assert TYPED.findall(text) == []
