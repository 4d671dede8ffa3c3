"""Pages on paper: a module as one document, and any page without what only a screen needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PRINTED = (
    "modules/01-mathis/print/",
    "modules/report/",
    "reference/tc/",
    "reference/statistics/",
)
# Of three modules, and the longest of all among them.
ON_ONE_SHEET = ("01-mathis/case-05", "03-scale/case-02", "05-queues/case-04")
# What stands on a page besides its text, and must not be on paper.
NAVIGATION = (
    ".md-header, .md-tabs, .md-sidebar, .md-footer, .headerlink, .md-code__nav, .screen-only"
)
VISIBLE = f"""() => [...document.querySelectorAll('{NAVIGATION}')]
    .filter(element => element.checkVisibility()).map(element => element.className)"""
CUT = """() => [...document.querySelectorAll('pre > code')]
    .filter(code => code.checkVisibility() && code.scrollWidth > code.parentElement.clientWidth + 1)
    .map(code => code.textContent.slice(0, 60))"""
HIDDEN = """() => [...document.querySelectorAll('.md-content details > *, .md-content .tabbed-block')]
    .filter(element => element.textContent.trim() && !element.getBoundingClientRect().height).length"""
# The palest text, as the share of full brightness.
PALEST = """() => Math.max(...[...document.querySelectorAll('.md-content :is(p, li, td, code, h1, h2, a)')]
    .filter(element => element.checkVisibility())
    .map(element => getComputedStyle(element).color.match(/[0-9.]+/g).map(Number))
    .map(([r, g, b]) => (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255))"""


def sheets(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.parametrize(
    "scheme",
    [
        pytest.param(
            "light", marks=pytest.mark.nightly("by day from dark, whose colours paper turns round")
        ),
        "dark",
    ],
)
def test_paper(browser: Any, address: str, scheme: str) -> None:
    """Nothing to click, nothing folded, no line cut off, and dark on white from either scheme."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": 680, "height": 960})
    page = context.new_page()
    for name in PRINTED:
        page.goto(address + name)
        page.wait_for_load_state("networkidle")
        page.emulate_media(media="print", color_scheme=scheme)
        assert page.evaluate(VISIBLE) == [], name
        assert page.evaluate(CUT) == [], name
        assert page.evaluate(HIDDEN) == 0, name
        assert page.evaluate(PALEST) < 0.5, name
        page.emulate_media(media="screen", color_scheme=scheme)
    context.close()


@pytest.mark.parametrize("place", ON_ONE_SHEET)
def test_a_case_is_one_sheet_to_hand_out(browser: Any, address: str, place: str) -> None:
    """Where it is, the problem, room for the prediction, the command, the settings; nothing folded, no button, no address."""
    context = browser.new_context(viewport={"width": 688, "height": 1009})
    page = context.new_page()
    page.goto(f"{address}modules/{place}/")
    page.wait_for_selector(".notebook form")
    asked = page.locator("#predict ~ p strong").first.inner_text()
    assert sheets(page.pdf(format="A4")) == 1
    page.emulate_media(media="print")
    assert page.evaluate(VISIBLE) == []
    assert page.evaluate(CUT) == []
    text = page.locator(".md-content").inner_text()
    lab, number = place[3:].split("/case-0")
    for said in (
        asked,
        f"Case {number} of",
        f"./lab run {lab} --case {number}",
        "The set-up",
        "Your prediction: ",
        "Your diagnosis: ",
    ):
        assert said in text, said
    for left_out in (
        "Run it here",
        "Write it down",
        "Hint",
        "The recorded run",
        "Next",
        "All settings",
    ):
        assert left_out not in text, left_out
    room = page.locator(".notebook input, .notebook textarea").evaluate_all(
        "all => all.map(one => one.offsetHeight)"
    )
    assert min(room) > 40
    addresses = """() => [...document.querySelectorAll('.md-content a')].map(link => getComputedStyle(link, '::after').content).filter(text => !['none', 'normal'].includes(text))"""
    assert page.evaluate(addresses) == []
    context.close()


def test_a_module_is_one_document(browser: Any, address: str, student: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}modules/01-mathis/print/")
    page.wait_for_load_state("networkidle")
    titles = page.locator(".md-content h2.sheet")
    parts = titles.count() + 1
    assert parts > 10
    pdf = page.pdf(format="A4")
    # Each part begins on a sheet of its own, and takes some six.
    assert parts <= sheets(pdf) <= 8 * parts
    assert len(pdf) < 4_000_000
    # Links lead to a place in the document, or say where else they lead.
    page.emulate_media(media="print")
    inner = page.evaluate(
        """() => [...document.querySelectorAll('.md-content a[href^="#"]:not(.headerlink)')]
            .filter(link => !document.getElementById(decodeURIComponent(link.hash.slice(1)))).length"""
    )
    assert inner == 0
    places = page.evaluate(
        """() => [...document.querySelectorAll('.md-content a[data-paper]')]
            .map(link => getComputedStyle(link, '::after').content)"""
    )
    assert places
    assert all("(" in place for place in places)
    assert page.locator(".md-content .answer").count() > parts
    context.close()
    # It repeats what other pages say: search leads to those.
    index = json.loads((student / "search/search_index.json").read_text(encoding="utf-8"))
    assert not [entry["location"] for entry in index["docs"] if "/print/" in entry["location"]]
