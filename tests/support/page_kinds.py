"""Which pages of a built site show each kind of thing that it has: found from the pages, whatever they are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

Kind = TypeVar("Kind")
TAG = re.compile(r"<(\w+)\b([^>]*)>")
CLASSES = re.compile(r'\bclass="?([^">]*)')
# What a script makes of an element, besides its class.
MADE_BY_SCRIPTS = re.compile(r'\b(?:data-figure|data-kind|data-live|data-here)="?\w*')
NOT_SHOWN = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)


def one_of_each_kind(site: Path) -> list[str]:
    """The paths of few pages, such that each kind of element that any page's article has is on one of them."""
    texts = texts_of(site)
    return covering({name: elements(text) for name, text in texts.items()}, lambda name: len(texts[name]))  # fmt: skip


def pages_of(site: Path) -> list[str]:
    """Every page of a built site, by its path."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def texts_of(site: Path) -> dict[str, str]:
    """Every page by its path; not the one that says that there is no such page."""
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def elements(text: str) -> set[tuple[str, str]]:
    """The kinds of a page's elements: a tag with one of its classes, or with what a script makes of it."""
    article = NOT_SHOWN.sub("", text.partition("<article")[2].partition("</article>")[0])
    found = set()
    for tag, attributes in TAG.findall(article):
        classes = CLASSES.search(attributes)
        kinds = (classes[1].split() if classes else [""]) + MADE_BY_SCRIPTS.findall(attributes)
        found |= {(tag, kind) for kind in kinds}
    return found


def covering(of: Mapping[str, set[Kind]], cost: Callable[[str], float]) -> list[str]:
    """Names whose kinds are all that there are: one after the other that with most new ones for its cost."""
    left: set[Kind] = set().union(*of.values())
    chosen = []
    while left:
        best = max(sorted(of), key=lambda name: len(of[name] & left) / cost(name))
        chosen.append(best)
        left -= of[best]
    return sorted(chosen)
