"""Pages in a browser that a test looks at."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def watched_page(
    browser: Any, *, offline: bool = False, levels: Collection[str] = ("error",), **settings: Any
) -> Iterator[Any]:
    """A page of a reader who wants no motion, in a context with these settings; at the end its console has nothing of
    these levels."""
    context = browser.new_context(reduced_motion="reduce", **settings)
    context.set_offline(offline)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda m: complaints.append(m.text) if m.type in levels else None)
    yield page
    context.close()
    assert complaints == []


def opened(page: Any, address: str) -> Any:
    """The page at that address, once its figures are drawn."""
    page.goto(address)
    page.wait_for_selector(".interactive.drawn")
    return page


def open_page(browser: Any, **settings: Any) -> tuple[Any, list[str], list[str]]:
    """A page, and lists that will hold what its console says and what it asks for."""
    page = browser.new_context(**settings).new_page()
    messages: list[str] = []
    asked: list[str] = []
    page.on(
        "console", lambda m: messages.append(m.text) if m.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    return page, messages, asked


def from_elsewhere(asked: Collection[str], address: str) -> list[str]:
    """What of it stands neither at this address nor in the page itself."""
    return [url for url in asked if not url.startswith((address, "data:", "blob:", "about:"))]
