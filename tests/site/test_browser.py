"""Pages in a browser: quiet console, nothing from elsewhere, accessible, fit for a phone.

By day few pages, which have each kind of element that the site has; at night every page, and the instructors'.
"""

from __future__ import annotations

import functools
import gzip
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from browsing import from_elsewhere, open_page
from page_kinds import one_of_each_kind, pages_of
from serving import served

pytestmark = pytest.mark.slow

# Compressed, as servers send it; the index of the search, the same for all pages, apart.
MAX_PAGE_BYTES = 250_000
MAX_SEARCH_INDEX_BYTES = 200_000
EVERY_PAGE = "by day the pages on which each kind of element is"
# In CSS pixels: a desk's screen and a phone's.
DESK, PHONE, HEIGHT = 1280, 360, 900
# What axe looks at on each page; contrast apart, where all its time goes.
RULES = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": False}}}
CONTRAST = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
# Contrast follows from a text's colour, size and weight and from what is painted behind it. axe
# looks at the first text of each such kind that this site shows: this marks those of a page that
# no page before it had, and returns their kinds.
NEW_KINDS_OF_TEXT = """seen => {
  const kinds = new Set(seen), added = [], grounds = new Map()
  const ground = element => {
    if (!element) return ''
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), colour = style.backgroundColor
      const own = colour + style.backgroundImage + style.opacity
      const opaque = colour.startsWith('rgb(') && style.opacity === '1'
      grounds.set(element, opaque ? own : own + ground(element.parentElement))
    }
    return grounds.get(element)
  }
  for (const element of document.body.querySelectorAll('*')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue
    if (!element.checkVisibility() || !element.getClientRects().length) continue
    const style = getComputedStyle(element)
    const kind = [element.tagName, element.getAttribute('class'), style.color, style.fontSize,
      style.fontWeight, style.textShadow, ground(element)].join('|')
    if (kinds.has(kind)) continue
    kinds.add(kind)
    added.push(kind)
    element.setAttribute('data-look-at-contrast', '')
  }
  return added
}"""
MARKED = {"include": [["[data-look-at-contrast]"]]}
# All that a reader can open on a page: folds, and the tabs that lie behind others. What changes its colour slowly is
# looked at as it ends: the theme's tabs fade in where the page grows wide.
OPEN = """() => {
  const ended = document.createElement('style')
  ended.textContent = '* { transition: none !important }'
  document.head.append(ended)
  for (const fold of document.querySelectorAll('details')) fold.open = true
  for (const tab of document.querySelectorAll('.tabbed-block')) tab.style.display = 'block'
}"""
# As who reads to the end: a figure is only asked for as it comes near.
TO_THE_END = """() => Promise.all([...document.images].filter(image => image.checkVisibility()).map(image => {
  image.loading = 'eager'
  return image.decode()
}))"""
ON_A_PHONE = re.compile(r"-phone(-dark)?\.svg$")
# What stands on every page of a section, but for the mark of the page that is open: axe looks at
# it on the first of them.
SHELL = {"exclude": [[".md-header"], [".md-tabs"], [".md-sidebar--primary"]]}


def section_of(name: str) -> str:
    """The part of the navigation that a page stands in: modules/01-mathis, reference, ..."""
    parts = name.split("/")[:-2]
    return "/".join(parts[:2])


def test_the_index_of_the_search_is_light(student: Path) -> None:
    assert weight(student / "search" / "search_index.json") < MAX_SEARCH_INDEX_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "scheme"),
    [
        ("one of each kind", "light"),
        pytest.param("all", "light", marks=pytest.mark.nightly(EVERY_PAGE)),
        pytest.param("all", "dark", marks=pytest.mark.nightly(EVERY_PAGE)),
    ],
)
def test_pages(browser: Any, address: str, student: Path, which: str, scheme: str) -> None:
    """As on a phone, and then at full width; in dark, which differs in colours alone, what is contrast."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, messages, asked = open_page(browser, color_scheme=scheme)
    problems: list[str] = []
    sections: set[str] = set()
    kinds: list[str] = []
    for name in pages_of(student) if which == "all" else one_of_each_kind(student):
        messages.clear()
        asked.clear()
        page.set_viewport_size({"width": PHONE, "height": HEIGHT})
        page.goto(address + name.removesuffix("index.html"))
        page.evaluate(OPEN)
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if over > 0:
            problems.append(f"{name}: {over} px too wide")
        # Made to be served from the site's root, whatever the path.
        if name == "404.html":
            continue
        page.set_viewport_size({"width": DESK, "height": HEIGHT})
        page.evaluate(OPEN)
        violations = []
        if scheme == "light":
            shell = SHELL if section_of(name) in sections else None
            sections.add(section_of(name))
            violations += axe.run(page, context=shell, options=RULES).response["violations"]
        if new := page.evaluate(NEW_KINDS_OF_TEXT, kinds):
            kinds += new
            violations += axe.run(page, context=MARKED, options=CONTRAST).response["violations"]
        for found in violations:
            nodes = [node["target"] for node in found["nodes"][:3]]
            problems.append(f"{name}: axe: {found['id']}: {found['help']} {nodes}")
        page.evaluate(TO_THE_END)
        total = weight_of(student, address, asked)
        if total >= MAX_PAGE_BYTES:
            problems.append(f"{name}: weighs {total} bytes")
        problems += [f"{name}: console: {line}" for line in messages]
        problems += [f"{name}: asks {url}" for url in from_elsewhere(asked, address)]
    page.context.close()
    assert problems == []


@pytest.mark.nightly(
    "takes the instructors' site; by day test_pages looks at the students', which has the same theme, style and scripts"
)
def test_instructors_pages(browser: Any, instructor: Path) -> None:
    """What their site alone has, at a desk and as wide as a phone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, messages, asked = open_page(browser)
    problems: list[str] = []
    names = [name for name in pages_of(instructor) if "instructors/key/" in name]
    assert names
    with served(instructor) as address:
        for name in names:
            page.set_viewport_size({"width": PHONE, "height": HEIGHT})
            page.goto(address + name.removesuffix("index.html"))
            page.evaluate(OPEN)
            over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            if over > 0:
                problems.append(f"{name}: {over} px too wide")
            page.set_viewport_size({"width": DESK, "height": HEIGHT})
            # What fades in is looked at when it is there.
            page.evaluate(
                "Promise.allSettled(document.getAnimations().map((animation) => animation.finished))"
            )
            for found in axe.run(page, options={"resultTypes": ["violations"]}).response[
                "violations"
            ]:
                problems.append(f"{name}: axe: {found['id']}: {found['nodes'][0]['target']}")
            problems += [f"{name}: asks {url}" for url in from_elsewhere(asked, address)]
    problems += messages
    page.context.close()
    assert problems == []


@pytest.mark.nightly(
    "by day test_pages has axe look at the same pages at full width, and at how wide they are here"
)
@pytest.mark.slow
def test_pages_on_a_phone(browser: Any, address: str, student: Path) -> None:
    """Of each kind one. By day test_pages has axe look at the same pages at full width, and at how wide they are here."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, _, _ = open_page(browser, viewport={"width": PHONE, "height": HEIGHT})
    problems: list[str] = []
    for name in one_of_each_kind(student):
        page.goto(address + name.removesuffix("index.html"))
        page.evaluate(OPEN)
        for found in axe.run(page).response["violations"]:
            problems.append(f"{name}: axe: {found['id']}: {found['nodes'][0]['target']}")
    page.context.close()
    assert problems == []


def weight_of(site: Path, address: str, asked: list[str]) -> int:
    """What a page's files weigh together at a desk, each once, the style sheets and scripts included. The test has
    asked for a phone's figures too, which nobody at a desk does."""
    return sum(
        weight(site / url.removeprefix(address).split("?")[0])
        for url in set(asked)
        if url.startswith(address) and "search_index" not in url and not ON_A_PHONE.search(url)
    )


@functools.cache
def weight(path: Path) -> int:
    path = path / "index.html" if path.is_dir() else path
    if not path.is_file():
        return 0
    data = path.read_bytes()
    return len(data) if path.suffix in (".woff2", ".png") else len(gzip.compress(data, 6))


def test_offline(browser: Any, offline: Path, tmp_path: Path) -> None:
    """From file://, with the network off: search, formulas and figures; nothing is asked for."""
    with zipfile.ZipFile(offline) as archive:
        archive.extractall(tmp_path)
    site = tmp_path / "measuretwice"
    page, messages, asked = open_page(browser)
    page.context.set_offline(True)
    for words in ("netem limit", "MSS 1448"):
        page.goto((site / "index.html").as_uri())
        page.fill(".md-search__input", words)
        page.wait_for_selector(".md-search-result__item", timeout=15_000)
        found = page.locator(".md-search-result__list").inner_text().lower()
        assert all(word in found for word in words.lower().split()), words
    # The way there: a result leads to a page of this folder.
    page.locator(".md-search-result__link").first.click()
    page.wait_for_url(f"{site.as_uri()}/**")
    for name in ("modules/01-mathis/not-reproduced.html", "modules/05-queues/results.html"):
        page.goto((site / name).as_uri())
        page.wait_for_load_state("networkidle")
        # Those of the other scheme and width aren't fetched; nor is what stands in a fold that is shut.
        widths = page.evaluate("""(async () => {
          const shown = [...document.querySelectorAll('.md-content img')].filter((image) => image.checkVisibility());
          for (const image of shown) image.loading = 'eager';
          await Promise.all(shown.map((image) => image.decode().catch(() => null)));
          return shown.map((image) => image.naturalWidth);
        })()""")
        assert widths, name
        assert all(widths), name
    page.goto((site / "start/half-an-hour.html").as_uri())
    page.wait_for_selector(".formula math")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert messages == []
    page.context.close()
