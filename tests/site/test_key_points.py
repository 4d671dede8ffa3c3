"""All cases' key points on one page: whole, found by its own field, on one sheet of paper, and unknown to the site's search."""

from __future__ import annotations

import json
import re
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from all_cases import LABS
from scipy.stats import f

from measuretwice.site.layouts import split

ROOT = Path(__file__).parents[2]
PAGE = "modules/key-points"
ANSWERS = split((ROOT / "docs/includes/elsewhere.md").read_text(encoding="utf-8"))
CASES = [f"{lab.name} {pitfall.id}" for lab in LABS for pitfall in lab.file.pitfalls]


def test_each_case_has_its_card_and_no_answer_is_left_over(student: Path) -> None:
    assert [*ANSWERS] == CASES
    text = (student / PAGE / "index.html").read_text(encoding="utf-8")
    cards = text.split('<div class="key-point">')[1:]
    assert len(cards) == len(CASES)
    for card in cards:
        for word in ("Symptom", "Check", "Habit", "Elsewhere"):
            assert card.count(f"<strong>{word}</strong>") == 1, card[:200]
        assert card.count("<summary>Answer</summary>") == 1


# What an answer's numbers come from.
COMPUTED = {
    "mathis loss-percent": (sqrt(0.01 / 0.0001), "a factor of {:.0f} "),
    "mathis duration": (1.2 * sqrt(1e-5), r"\approx {:.3f}$"),
    "mathis queueing": ((0.180 - 0.015) * 20e6 / 8, "{:_.0f} B"),
    "mathis offload": (20_000 / 1448, "About {:.0f},"),
    "mathis timestamps": (9000 - 40 - 20 - 12, "{:.0f}."),
    "mathis netem-limit": (1000 * 1500 * 8 / 0.3 / 1e6, "At {:.0f} Mbit/s"),
    "mathis model-domain": (1 / sqrt(0.15), r"\approx {:.1f}$"),
    "mathis ack-policy": (sqrt(2), "about {:.1f}."),
    "buffers size-suffix": (1e9 / 8 / 2**20, "{:.0f} MiB/s"),
    "buffers hidden-queue": (1000 * 1500 * 8 / 10e9 * 1e3, "For {:.1f} ms"),
    "buffers units": (4.448222, "{:.2f} N"),
    "scale offload-at-scale": (12 * 1448 / 1e3, "some {:.0f} kB"),
    "scale fair-share": (0.03 * 10_000 / 100, "{:.0f}"),
    "latency mean-hides": (100 * (1 - 0.99**100), "slower in {:.0f} %"),
    "latency large-burst": (100e6 / 8 / 1e6, "is {:.1f} MB"),
    "queues small-n": (f.ppf(0.975, 4, 4), "a factor of {:.1f} "),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_an_answer_has_the_number_that_follows(case: str) -> None:
    value, says = COMPUTED[case]
    assert says.format(value).replace("_", " ") in " ".join(ANSWERS[case].split()), ANSWERS[case]


def test_the_search_knows_that_there_is_such_a_page_and_no_more(student: Path) -> None:
    index = json.loads((student / "search/search_index.json").read_text(encoding="utf-8"))
    found = [part for part in index["docs"] if part["location"].startswith(f"{PAGE}/")]
    text = " ".join(f"{part['title']} {part['text']}" for part in found)
    assert "Key points of all cases" in text
    assert not re.search(r"netem|retransmi|qdisc|mss", text, re.IGNORECASE), text


def test_results_lead_to_it(student: Path) -> None:
    for lab in filter(lambda lab: lab.file.pitfalls, LABS):
        module = student / "modules" / lab.folder.name
        pages = [module / name / "index.html" for name in ("results", "not-reproduced")]
        text = "".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())
        assert f'href="../../key-points/#{lab.name}"' in text, lab.name


@pytest.mark.slow
def test_a_word_leaves_the_cards_that_have_it(page: Any, address: str) -> None:
    page.goto(f"{address}{PAGE}/")
    page.wait_for_selector("#find-key-point")
    assert page.locator(".key-point:visible").count() == 0
    page.fill("#find-key-point", "PruneCalled")
    shown = page.locator(".key-point:visible")
    assert shown.count() == 1
    assert "TCPOFODrop" in shown.inner_text()
    assert f"1 of {len(CASES)} cases" in page.locator(".key-points__find").inner_text()
    page.fill("#find-key-point", "")
    assert page.locator(".key-point:visible").count() == 0


@pytest.mark.slow
def test_it_is_one_sheet_of_paper(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}{PAGE}/")
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2
    page.emulate_media(media="print")
    assert page.locator(".key-point:visible").count() == len(CASES)
    assert page.locator(".key-point__elsewhere:visible").count() == 0
    context.close()
