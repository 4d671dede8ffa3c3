"""Type: the shipped faces, sizes in tables, how long a line is, what is explained how often, and that a button is seen."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from browsing import open_page
from page_kinds import one_of_each_kind, texts_of

ROOT = Path(__file__).parents[2]
FONTS = ROOT / "docs/assets/fonts"
MAX_FONTS_BYTES = 120_000
# CSS pixels, of a desk's screen.
TABLE_PX, TABLE_CODE_PX = 14, 13
# Characters of a full line, spaces included: what a page's lines have on average, and what none has more of.
MEAN_LINE, LONGEST_LINE = 75, 88
# Without menus on one side or both, or with figures that take the whole width.
WIDE = ("story/", "modules/", "modules/01-mathis/figure/", "modules/01-mathis/explorer/", "modules/04-variants/one-clock/", "modules/05-queues/packets/")  # fmt: skip
SMALLER = f"""() => [...document.querySelectorAll('.md-content :is(td, th, td code, th code)')]
  .filter(cell => cell.checkVisibility() && !cell.closest('.interactive, .terminals'))
  .map(cell => [cell.tagName, parseFloat(getComputedStyle(cell).fontSize), cell.textContent.trim().slice(0, 30)])
  .filter(([tag, px]) => px < (tag === 'CODE' ? {TABLE_CODE_PX} : {TABLE_PX}) - .01)"""
# The characters of each line of each paragraph but its last one.
LINES = """() => [...document.querySelectorAll('.md-content :is(p, li, figcaption)')].flatMap(text => {
  if (!text.checkVisibility() || text.querySelector('p, ul, ol, math, button, input, img')) return []
  const lines = [], range = document.createRange(), nodes = document.createTreeWalker(text, NodeFilter.SHOW_TEXT)
  let bottom = -Infinity
  while (nodes.nextNode()) {
    for (let at = 0; at < nodes.currentNode.length; at++) {
      range.setStart(nodes.currentNode, at)
      range.setEnd(nodes.currentNode, at + 1)
      const box = range.getClientRects()[0]
      if (!box || !box.width) continue
      if (box.top > bottom - 4) { lines.push(0); bottom = box.bottom }
      lines[lines.length - 1]++
    }
  }
  return lines.slice(0, -1)
})"""
OFTEN_EXPLAINED = """() => {
  let seen = new Set(), often = []
  for (const at of document.querySelectorAll('.md-content :is(h1, h2, h3, h4, abbr)')) {
    if (!at.matches('abbr')) { seen = new Set(); continue }
    if (at.closest('h1, h2, h3, h4') || seen.has(at.title)) often.push(at.textContent)
    seen.add(at.title)
  }
  return often
}"""
GROUNDS = """() => ['.md-button--primary', '.md-header', 'body'].map(which => getComputedStyle(document.querySelector(which)).backgroundColor)"""


def test_the_fonts_are_light_and_their_licences_are_beside_them() -> None:
    fonts = sorted(FONTS.glob("*.woff2"))
    assert [path.read_bytes()[:4] for path in fonts] == [b"wOF2"] * 3
    assert sum(path.stat().st_size for path in fonts) < MAX_FONTS_BYTES
    for name in ("text", "maths"):
        text = (FONTS / f"LICENSE-{name}").read_text(encoding="utf-8")
        assert "SIL Open Font License, Version 1.1" in text, name


def test_the_faces_have_the_characters_that_pages_show(
    student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In text, outside code: what they lack would be taken from another font."""
    monkeypatch.syspath_prepend(ROOT / "scripts/docs")
    import fonts

    has = {*map(chr, fonts.TEXT), *"\n\t\r"}
    lacks: dict[str, str] = {}
    for name, text in texts_of(student).items():
        article = text.partition("<article")[2].partition("</article>")[0]
        article = re.sub(r"<(script|style|math|svg|code|pre)\b.*?</\1>", "", article, flags=re.S)
        shown = html.unescape(re.sub(r"<[^>]+>", "", article))
        lacks |= dict.fromkeys(set(shown) - has, name)
    sys.modules.pop("fonts")
    assert lacks == {}


@pytest.mark.slow
def test_tables_are_large_enough_and_lines_short_enough(
    browser: Any, address: str, student: Path
) -> None:
    page, _, _ = open_page(browser, viewport={"width": 1280, "height": 900})
    small, long, often = {}, {}, {}
    for name in {*(name.removesuffix("index.html") for name in one_of_each_kind(student)), *WIDE}:
        page.goto(address + name)
        page.evaluate("document.fonts.ready")
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        if found := page.evaluate(SMALLER):
            small[name] = found[:3]
        lines = page.evaluate(LINES)
        if len(lines) > 5 and (sum(lines) / len(lines) > MEAN_LINE or max(lines) > LONGEST_LINE):
            long[name] = (sum(lines) / len(lines), max(lines))
        if found := page.evaluate(OFTEN_EXPLAINED):
            often[name] = found[:3]
    page.context.close()
    assert (small, long, often) == ({}, {}, {})


@pytest.mark.slow
def test_formulas_and_text_are_set_in_the_shipped_faces(page: Any, address: str) -> None:
    page.goto(f"{address}modules/01-mathis/")
    page.evaluate("document.fonts.ready")
    loaded = "[...document.fonts].filter(font => font.status === 'loaded').map(font => font.family.replaceAll('\"', ''))"
    assert {"Course Text", "Course Maths"} <= set(page.evaluate(loaded))
    # A root's sign is as high as what stands below it.
    root, below = page.evaluate(
        "(() => { const root = document.querySelector('msqrt'); return [root, root.firstElementChild].map(box => { const at = box.getBoundingClientRect(); return [at.top, at.bottom] }) })()"
    )
    assert root[0] <= below[0]
    assert root[1] >= below[1] - 1


@pytest.mark.slow
def test_intervals_and_units_stay_on_their_line(page: Any, address: str) -> None:
    page.goto(f"{address}modules/03-scale/results/")
    text = page.evaluate("document.querySelector('.md-content').textContent")
    assert re.search(r"\d\u00a0to\u00a0\d", text)
    said = page.evaluate("[...document.querySelectorAll('.md-content :is(p, td)')].map(e => e.textContent).join('\\n')")  # fmt: skip
    assert re.findall(r"\d to \d|\d ms\b", said) == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_button_is_seen_beside_the_header(
    browser: Any, address: str, scheme: str
) -> None:
    page, _, _ = open_page(
        browser, color_scheme=scheme, viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
    )  # fmt: skip
    page.goto(address)
    button, header, ground = (luminance(text) for text in page.evaluate(GROUNDS))
    page.context.close()
    assert contrast(button, ground) > 4.5
    assert scheme == "light" or contrast(button, header) > 4.5


def luminance(colour: str) -> float:
    """WCAG's relative luminance of `rgb(...)`."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)
