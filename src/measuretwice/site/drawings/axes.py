"""A plot of a few curves, as wide as a phone: axes, ticks, lines with their names on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from measuretwice.site.drawings.svg import label, n, path, short

WIDTH = 340.0
LEFT, RIGHT, ABOVE, BELOW = 44.0, 14.0, 24.0, 36.0

Points = Sequence[tuple[float, float]]


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
        """Where a point of the panel lies in the drawing."""
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

    def level(self, y: float, said: str, *, anchor: str = "end", below: bool = False) -> None:
        """Add a height that means something, with its name at one end, above it or below."""
        (left, at), (right, _) = self.at(self.x[0], y), self.at(self.x[1], y)
        self.parts.append(path([(left, at), (right, at)], "mark"))
        x = right - 2 if anchor == "end" else left + 4
        self.parts.append(label(x, at + (14 if below else -4), said, anchor=anchor))

    def moment(self, x: float, said: str, *, anchor: str = "start", up: float = 1.0) -> None:
        """Add a place on the x axis that means something, with its name so far up."""
        (at, floor), (_, ceiling) = self.at(x, self.y[0]), self.at(x, self.y[1])
        self.parts.append(path([(at, floor), (at, ceiling)], "mark"))
        y = floor + (ceiling - floor) * up + 10
        self.parts.append(label(at + (4 if anchor == "start" else -4), y, said, anchor=anchor))

    def say(self, x: float, y: float, said: str, *, kind: str = "", anchor: str = "start") -> None:
        """Add a line of text that begins at a point, in a curve's colour or in ink."""
        self.parts.append(label(*self.at(x, y), said, kind=kind, anchor=anchor))
