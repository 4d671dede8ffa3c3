"""The few SVG elements that drawings are made of, as text. Colours come from classes in extra.css."""

from __future__ import annotations

import html
from collections.abc import Iterable

from measuretwice.site.words.numbers import sig

# How wide characters are, in parts of the font's size: a little more than usual fonts have.
NARROW, WIDE = frozenset(" .,:;'|!()[]/ijlt-f"), frozenset("mwMWGOQ@%→←↓↑×±µ")


def width_of(text: str, size: float) -> float:
    """Return about how wide a line of text is, never too little."""
    widths = (
        0.34 if c in NARROW else 0.9 if c in WIDE else 0.7 if c.isupper() else 0.58 for c in text
    )
    return size * sum(widths)


def label(x: float, y: float, said: str, *, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text whose baseline begins, ends or is centred at a point."""
    named = f' class="{kind}"' if kind else ""
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{n(x)}" y="{n(y)}"{named}{anchored}>{html.escape(said, quote=False)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, radius: float = 4) -> str:
    """Return a rectangle with round corners."""
    return f'<rect class="{kind}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="{n(radius)}"/>'


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    joined = "L".join(f"{n(x)} {n(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{joined}"/>'


def drawing(
    width: float, height: float, parts: Iterable[str], *, kind: str, title: str, said: str = ""
) -> str:
    """Return a whole SVG on one line, which Markdown takes as it is.

    `title` names it for those who can't see it, and `said` says what it shows; without a title it is
    decoration, and nobody is told of it.
    """
    seen = f'role="img" aria-label="{html.escape(title)}"' if title else 'aria-hidden="true"'
    told = f"<desc>{html.escape(said, quote=False)}</desc>" if said else ""
    return (
        f'<svg class="{kind}" viewBox="0 0 {n(width)} {n(height)}" width="{n(width)}" height="{n(height)}" '
        f'{seen} focusable="false">{told}{"".join(parts)}</svg>'
    )


def short(value: float) -> str:
    """Return a number to four digits, without zeros behind the point."""
    text = sig(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text else text


def n(value: float) -> str:
    """Return a coordinate as text, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
