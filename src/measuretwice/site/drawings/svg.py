"""SVG as text: the few elements that drawings are made of, a plot of a few curves, as wide as a phone, and one of marks on
logarithmic axes.

Colours come from classes in extra.css.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from measuretwice.facts.values import sig

Points = Sequence[tuple[float, float]]
# Of a plot: its width, and the room around its panel.
WIDTH = 340.0
LEFT, RIGHT, ABOVE, BELOW = 44.0, 14.0, 24.0, 36.0
# Of a plot on logarithmic axes: the room around its panel, and how long a decade is.
LOG_LEFT, LOG_ABOVE, LOG_RIGHT, LOG_BELOW, DECADE = 50, 8, 8, 46, 92
# How wide characters are, in parts of the font's size: a little more than usual fonts have.
NARROW, WIDE = frozenset(" .,:;'|!()[]/ijlt-f"), frozenset("mwMWGOQ@%→←↓↑×±µ")


def width_of(text: str, size: float) -> float:
    """Return about how wide a line of text is, never too little."""
    widths = (
        0.34 if c in NARROW else 0.9 if c in WIDE else 0.7 if c.isupper() else 0.58 for c in text
    )
    return size * sum(widths)


def label(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text whose baseline begins, ends or is centred at a point."""
    named = f' class="{kind}"' if kind else ""
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{n(x)}" y="{n(y)}"{named}{anchored}>{html.escape(text, quote=False)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, radius: float = 4) -> str:
    """Return a rectangle with round corners."""
    return f'<rect class="{kind}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="{n(radius)}"/>'


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    joined = "L".join(f"{n(x)} {n(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{joined}"/>'


def drawing(
    width: float,
    height: float,
    parts: Iterable[str],
    *,
    kind: str,
    title: str,
    description: str = "",
) -> str:
    """Return a whole SVG on one line, which Markdown takes as it is.

    `title` names it for those who can't see it, and `description` says what it shows; without a title it is
    decoration, and nobody is told of it.
    """
    seen = f'role="img" aria-label="{html.escape(title)}"' if title else 'aria-hidden="true"'
    desc = f"<desc>{html.escape(description, quote=False)}</desc>" if description else ""
    return (
        f'<svg class="{kind}" viewBox="0 0 {n(width)} {n(height)}" width="{n(width)}" height="{n(height)}" '
        f'{seen} focusable="false">{desc}{"".join(parts)}</svg>'
    )


def short(value: float) -> str:
    """Return a number to four digits, without zeros behind the point."""
    text = sig(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text else text


def n(value: float) -> str:
    """Return a coordinate as text, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass
class Axes:
    """One panel: what its axes reach from and to, and where its top is in the drawing.

    What stands on it is added to `parts`, in the panel's own numbers.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    height: float = 190.0
    top: float = 0.0
    parts: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position in the drawing of a point of the panel."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        floor = self.top + self.height - BELOW
        return LEFT + across * (WIDTH - LEFT - RIGHT), floor - up * (floor - self.top - ABOVE)

    def frame(self, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> None:
        """Add both axes with these ticks, and what they are."""
        (left, floor), (right, ceiling) = (
            self.at(self.x[0], self.y[0]),
            self.at(self.x[1], self.y[1]),
        )
        for value in y_ticks:
            y = self.at(self.x[0], value)[1]
            self.parts.append(path([(left, y), (right, y)], "grid"))
            self.parts.append(label(left - 5, y + 4, short(value), kind="tick", anchor="end"))
        for value in x_ticks:
            x = self.at(value, self.y[0])[0]
            self.parts.append(path([(x, floor), (x, floor + 4)], "axis"))
            self.parts.append(label(x, floor + 16, short(value), kind="tick", anchor="middle"))
        self.parts.append(path([(left, ceiling - 4), (left, floor), (right, floor)], "axis"))
        self.parts.append(label(2, self.top + 12, self.y_label, kind="of"))
        self.parts.append(label(right, floor + 31, self.x_label, kind="of", anchor="end"))

    def line(self, points: Points, kind: str) -> None:
        """Add a curve through points; `kind` says in which colour."""
        self.parts.append(path([self.at(x, y) for x, y in points], f"curve {kind}"))

    def area(self, points: Points, kind: str) -> None:
        """Add the area between a curve and the floor."""
        (first, _), (last, _) = points[0], points[-1]
        outline = [(first, self.y[0]), *points, (last, self.y[0])]
        joined = "L".join(f"{n(x)} {n(y)}" for x, y in (self.at(*point) for point in outline))
        self.parts.append(f'<path class="area {kind}" d="M{joined}Z"/>')

    def level(self, y: float, text: str, *, anchor: str = "end", below: bool = False) -> None:
        """Add a height that means something, with its name at one end, above it or below."""
        (left, at), (right, _) = self.at(self.x[0], y), self.at(self.x[1], y)
        self.parts.append(path([(left, at), (right, at)], "mark"))
        x = right - 2 if anchor == "end" else left + 4
        self.parts.append(label(x, at + (14 if below else -4), text, anchor=anchor))

    def moment(self, x: float, text: str, *, anchor: str = "start", up: float = 1.0) -> None:
        """Add a place on the x axis that means something, with its name so far up."""
        (at, floor), (_, ceiling) = self.at(x, self.y[0]), self.at(x, self.y[1])
        self.parts.append(path([(at, floor), (at, ceiling)], "mark"))
        y = floor + (ceiling - floor) * up + 10
        self.parts.append(label(at + (4 if anchor == "start" else -4), y, text, anchor=anchor))

    def say(self, x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> None:
        """Add a line of text that begins at a point, in a curve's colour or in ink."""
        self.parts.append(label(*self.at(x, y), text, kind=kind, anchor=anchor))


@dataclass(frozen=True)
class LogPlot:
    """Measured against modelled values on logarithmic axes: powers of ten at the plot's edges, and where a value lies.

    A decade is as long on both axes, so that what is proportional lies at 45 degrees.
    """

    left: float
    right: float
    least: float
    most: float

    @classmethod
    def around(cls, x: Iterable[float], y: Iterable[float], room: float = 0.15) -> LogPlot:
        """Return a plot with so many decades of room around these values; the vertical axis has those of x in it, too."""
        across = [math.log10(value) for value in x]
        up = [*across, *(math.log10(value) for value in y)]
        return cls(min(across) - room, max(across) + room, min(up) - room, max(up) + room)

    @property
    def width(self) -> float:
        return LOG_LEFT + (self.right - self.left) * DECADE + LOG_RIGHT

    @property
    def floor(self) -> float:
        return LOG_ABOVE + (self.most - self.least) * DECADE

    def x(self, value: float) -> float:
        """Return where a value lies across."""
        return round(LOG_LEFT + (math.log10(value) - self.left) * DECADE, 1)

    def y(self, value: float) -> float:
        """Return where a value lies down."""
        return round(LOG_ABOVE + (self.most - math.log10(value)) * DECADE, 1)

    def draw(
        self, marks: str, ratios: tuple[float, float], x_label: str, y_label: str, title: str
    ) -> str:
        """Return the plot: a grid of decades, the line y = x, a band between two ratios of y to x, and marks over them."""
        width, floor, height = self.width, self.floor, self.floor + LOG_BELOW
        ends = (10**self.left, 10**self.right)
        low, high = ratios
        corners = ((ends[0], low), (ends[0], high), (ends[1], high), (ends[1], low))
        band = " ".join(f"{self.x(x)},{self.y(x * ratio)}" for x, ratio in corners)
        grid = [
            f'<path d="M{self.x(value)},{LOG_ABOVE}V{floor:.1f}"/><text x="{self.x(value)}" y="{floor + 18:.0f}" text-anchor="middle">{value:g}</text>'
            for value in _powers_of_ten(self.left, self.right)
        ]
        grid += [
            f'<path d="M{LOG_LEFT},{self.y(value)}H{width - LOG_RIGHT:.1f}"/><text x="{LOG_LEFT - 6}" y="{self.y(value) + 5:.0f}" text-anchor="end">{value:g}</text>'
            for value in _powers_of_ten(self.least, self.most)
        ]
        return (
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{title}">'
            f'<clipPath id="scatter-plot"><rect x="{LOG_LEFT}" y="{LOG_ABOVE}" width="{width - LOG_LEFT - LOG_RIGHT:.0f}" height="{floor - LOG_ABOVE:.0f}"/></clipPath>'
            f'<g class="decades">{"".join(grid)}</g><g clip-path="url(#scatter-plot)"><polygon class="band" points="{band}"/>'
            f'<path class="model" d="M{self.x(ends[0])},{self.y(ends[0])}L{self.x(ends[1])},{self.y(ends[1])}"/></g>'
            f'<g class="marks">{marks}</g>'
            f'<text x="{(LOG_LEFT + width) / 2:.0f}" y="{height - 8:.0f}" text-anchor="middle">{x_label}</text>'
            f'<text x="13" y="{floor / 2:.0f}" text-anchor="middle" transform="rotate(-90 13 {floor / 2:.0f})">{y_label}</text></svg>'
        )


def _powers_of_ten(low: float, high: float) -> list[float]:
    return [10.0**n for n in range(math.ceil(low), math.floor(high) + 1)]
