"""On a phone: what is wider shows that it scrolls, no button lies on code, nothing moves as scripts come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
MOST_SHIFT = 0.02
# Above it a browser's own rounding of a box's width doesn't count.
WIDER = "box.scrollWidth > box.clientWidth + 1"
SCROLLS = f"""() => [...document.querySelectorAll('.md-typeset__scrollwrap, pre > code')]
  .filter(box => {WIDER}).map(box => getComputedStyle(box).backgroundImage)"""
# How far each button to copy reaches into the code that it copies, in pixels.
COVERED = """() => [...document.querySelectorAll('.md-code__button')].map(button => {
  const [copy, code] = [button, button.closest('.highlight').querySelector('pre > code')].map(element => element.getBoundingClientRect())
  return Math.min(copy.bottom, code.bottom) > Math.max(copy.top, code.top) ? Math.max(0, code.right - copy.left) : 0
})"""
SHIFTS = """window.shifted = 0
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) window.shifted += entry.value
}).observe({ type: 'layout-shift', buffered: true })"""


@pytest.fixture(
    params=[
        "light",
        pytest.param(
            "dark",
            marks=pytest.mark.nightly("by day in light: the schemes differ in colours alone"),
        ),
    ]
)
def phone(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    context = browser.new_context(viewport=PHONE, color_scheme=request.param)
    yield context.new_page()
    context.close()


def test_what_is_wider_than_a_phone_shows_that_it_scrolls(phone: Any, address: str) -> None:
    phone.goto(address + "start/iperf3/")
    phone.wait_for_selector(".scrolls")
    edges = phone.evaluate(SCROLLS)
    assert len(edges) > 2
    assert [edge for edge in edges if edge.count("linear-gradient") != 4] == []


def test_what_scrolls_in_a_fold_does_so_by_keys_once_it_is_open(phone: Any, address: str) -> None:
    phone.goto(address + "modules/05-queues/results/")
    phone.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    inside = phone.locator("details .md-typeset__scrollwrap.scrolls").first
    inside.wait_for()
    assert inside.evaluate("box => Boolean(box.tabIndex === 0 || box.querySelector('[tabindex]'))")


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_no_button_to_copy_lies_on_code(browser: Any, address: str, size: dict[str, int]) -> None:
    page = browser.new_page(viewport=size)
    for name in ("start/terminals/", "start/iperf3/", ""):
        page.goto(address + name)
        page.wait_for_selector(".md-code__button")
        covered = page.evaluate(COVERED)
        assert covered, name
        assert max(covered) <= 0, (name, covered)
    page.close()


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_moves_as_a_figure_is_drawn(
    browser: Any, address: str, size: dict[str, int]
) -> None:
    page = browser.new_page(viewport=size)
    page.add_init_script(SHIFTS)
    for name in ("story/", "modules/04-variants/one-clock/", "modules/05-queues/packets/"):
        page.goto(address + name)
        page.wait_for_selector(".interactive.drawn")
        page.wait_for_timeout(500)
        shifted = page.evaluate("window.shifted")
        print(f"{name} at {size['width']}: moved by {shifted:.4f}")
        assert shifted < MOST_SHIFT, name
    page.close()
