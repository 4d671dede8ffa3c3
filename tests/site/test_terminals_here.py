"""A page that opens terminals on a lab's nodes, as a person uses it: types, looks, checks, ends."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from measuretwice.backends.browser import find_machine
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
CASE = "modules/01-mathis/case-05/"
NODES = [node.name for node in load_lab(ROOT, "mathis").file.topology.nodes]
LONGEST_MS = 240_000
FOCUS = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_machine() is None, reason="the browser's machine isn't built"),
]


class Visitor:
    """A reader of a case's page, and what its terminals show."""

    def __init__(self, browser: Any, address: str, width: int) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(LONGEST_MS)
        self.errors: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address + CASE)
        self.page.locator("summary", has_text="Other ways to run it").first.click()
        self.place = self.page.locator(".here[data-live]").first

    def open(self, shown: list[str]) -> None:
        self.place.get_by_role("button", name="Open terminals here").click()
        for node in shown:
            self.sees(node, f"{node}:~#")

    def text(self, node: str) -> str:
        """What a terminal shows, its lines put together."""
        rows = self.page.locator(f"[aria-label='Terminal on {node}'] .xterm-rows")
        return "".join(rows.evaluate("e => [...e.children].map(row => row.textContent)")).replace(
            "\xa0", " "
        )

    def sees(self, node: str, words: str) -> None:
        until = time.monotonic() + LONGEST_MS / 1e3
        while words not in self.text(node):
            assert time.monotonic() < until, self.text(node)
            self.page.wait_for_timeout(200)

    def types(self, node: str, command: str) -> None:
        self.page.locator(f"textarea[aria-label='Terminal on {node}']").focus()
        self.page.keyboard.type(f"{command}\n")

    def is_told(self, words: str) -> None:
        self.place.get_by_text(words).wait_for()


@pytest.mark.nightly(
    "a quarter of a minute, and CI runs it: by day live/test_live.py opens terminals of the virtual kernel"
)
def test_terminals_on_all_nodes(browser: Any, address: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    visitor = Visitor(browser, address, 1400)
    page = visitor.page
    visitor.open(NODES)
    for node in NODES:
        visitor.types(node, "echo on:$NODE:$MTU_BYTES")
        visitor.sees(node, f"on:{node}:")
    assert axe.run(page).response["violations"] == []
    # The keyboard's way out, in order and back.
    page.locator(f"textarea[aria-label='Terminal on {NODES[0]}']").focus()
    for keys, focus in (
        (["Escape", "Tab"], f"Terminal on {NODES[1]}"),
        (["Shift+Tab"], f"Terminal on {NODES[0]}"),
        (["Shift+Tab"], "Larger"),
    ):
        for key in keys:
            page.keyboard.press(key)
        assert page.evaluate(FOCUS) == focus
    # What a person leaves on a node is what the checker reads.
    page.get_by_role("button", name="Check what I did").click()
    visitor.is_told("no file on any node yet")
    visitor.types("romeo", "ping -c 3 -i 0.2 10.10.2.100 >ping.txt; echo done: $?")
    visitor.sees("romeo", "done: 0")
    page.get_by_role("button", name="Check what I did").click()
    visitor.is_told("Checked")
    visitor.place.get_by_text("Which files it looked at").click()
    visitor.is_told("romeo: ping (raw/romeo/ping.txt)")
    page.get_by_role("button", name="End", exact=True).click()
    visitor.is_told("kept with your runs")
    assert page.locator(".terminals").count() == 0
    assert visitor.errors == []
    visitor.context.close()


@pytest.mark.nightly("by day test_terminals_on_all_nodes types into the same terminals on a desk")
def test_terminals_on_a_phone(browser: Any, address: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    visitor = Visitor(browser, address, 390)
    page = visitor.page
    visitor.open(NODES[:1])
    shown = page.locator(".node-terminal:visible")
    assert shown.count() == 1
    page.locator(".terminals").get_by_role("button", name="juliet").click()
    page.keyboard.type("echo on:$NODE; stty size\n")
    visitor.sees("juliet", "on:juliet")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert axe.run(page).response["violations"] == []
    visitor.context.close()
