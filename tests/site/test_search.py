"""What readers type into the search, and what they find: asked in a browser, the first three pages.

That it tells no cause: test_nobody_is_told.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

# Of these pages one is among the first three.
WANTED = {
    "cwnd": ["start/ss", "reference/glossary"],
    "BBR": ["modules/04-variants/bbr"],
    "wsl": ["start/machine"],
    "how to set delay": ["start/tc", "modules/00-calibrate/delay"],
    "jain": ["reference/glossary", "modules/03-scale/case-06"],
    "why is goodput too high": ["reference/troubleshooting"],
    "goodput ten times too high": ["reference/troubleshooting"],
    "goodput too low": ["reference/troubleshooting"],
    "install": ["start/machine"],
    "git clone": ["start"],
    "bufferbloat": ["modules/05-queues", "modules/02-buffers"],
    "throughput": ["start/iperf3", "modules/00-calibrate/rate"],
    "lag": ["modules/00-calibrate/delay", "start/ping"],
    "latency": ["modules/00-calibrate/delay", "start/ping"],
    "red": ["modules/05-queues"],
    "retransmissions": ["start/nstat", "start/ss"],
    "mtu": ["modules/00-calibrate/mtu"],
    "offload": ["modules/00-calibrate/offloads"],
    "queue length": ["start/tc", "reference/cheat-sheet"],
    "mac": ["start/machine"],
    "windows": ["start/machine"],
    "print": ["modules", "reference/cheat-sheet"],
    "grade": ["instructors/grading"],
    "fairness": ["modules/03-scale/case-06", "modules/02-buffers"],
    "packet loss": ["modules/00-calibrate/loss"],
    "slow start": ["modules/04-variants/reno", "reference/glossary"],
}
HITS = """[...document.querySelectorAll('.md-search-result__item')].map(
  hit => [hit.querySelector('a').pathname.replace(/^\\/|\\/$/g, ''), hit.innerText])"""


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def found(page: Any, words: str) -> list[tuple[str, str]]:
    """The pages that are found, best first: where, and what the hit says."""
    page.fill(".md-search__input", "")
    page.keyboard.press("Space")
    page.wait_for_selector(".md-search-result__item", state="detached")
    page.fill(".md-search__input", words)
    page.keyboard.press("Space")
    page.wait_for_selector(".md-search-result__item", timeout=15_000)
    return [tuple(hit) for hit in page.evaluate(HITS)]


def test_readers_find_what_they_look_for(page: Any, student: Path) -> None:
    for words, wanted in WANTED.items():
        first = [where for where, _ in found(page, words)[:3]]
        assert set(first) & set(wanted), (words, first)
        assert all((student / where).is_dir() for where in wanted if where != "modules")


def test_a_hit_says_neither_other_words_nor_what_is_missing(page: Any) -> None:
    for words in ("bufferbloat", "install", "lag"):
        for _, result in found(page, words)[:3]:
            assert "Missing" not in result
            assert "requirements" not in result


def test_symptoms_lead_to_where_one_looks(page: Any) -> None:
    for words in ("goodput ten times too high", "goodput too low"):
        assert "reference/troubleshooting" in [where for where, _ in found(page, words)[:3]]
