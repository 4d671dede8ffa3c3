"""How the figures look, and how they are written: the same bytes for the same data.

Greyscale throughout, so that a figure survives a black-and-white printer and any kind of colour
vision: shape, shade and fill carry the meaning. Only published values have a colour, and a shape of
their own besides.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from measuretwice.figures.rows import Row

INK = "#222222"
FAINT = "#777777"
MIDDLE = "#555555"
GRID = "#e4e4e4"
PUBLISHED = "#b8400e"
PAPER = "#ffffff"
# One shape for each segment size, one grey for each round-trip time: dark is short.
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DARKEST, LIGHTEST = 0.0, 0.72
MARKER_SIZE = 5.0
WIDTH_INCHES = 7.0

# matplotlib's own defaults under it: what a person has in matplotlibrc changes nothing.
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "measuretwice",
}


class DescribedFigure(Figure):
    """A figure that says in words what it shows, for those who can't see it."""

    title: str = ""
    description: str = ""


# A figure, and the rows that it shows.
Drawn = tuple[DescribedFigure, list[Row]]


def in_style() -> Any:
    """A context in which figures are made and written with our settings only."""
    return style.context(["default", STYLE])


def shapes(values: Sequence[float]) -> dict[float, str]:
    """Return a marker for each value; after nine values they begin anew."""
    return {value: SHAPES[i % len(SHAPES)] for i, value in enumerate(sorted(set(values)))}


def shades(values: Sequence[float]) -> dict[float, str]:
    """Return a grey for each value, the smallest the darkest, spread evenly to the eye."""
    known = sorted(set(values))
    result = {}
    for i, value in enumerate(known):
        # The eye tells dark greys apart less well: larger steps there.
        share = (i / max(1, len(known) - 1)) ** 0.75
        level = round(255 * (DARKEST + share * (LIGHTEST - DARKEST)))
        result[value] = f"#{level:02x}{level:02x}{level:02x}"
    return result


def marker_style(shape: str, shade: str, filled: bool) -> dict[str, Any]:
    """Return the keywords of one trial's marker: hollow where the model makes no claim."""
    return {
        "marker": shape,
        "markersize": MARKER_SIZE,
        "markerfacecolor": shade if filled else PAPER,
        "markeredgecolor": shade,
        "markeredgewidth": 1.0,
        "linestyle": "none",
    }


def open_frame(axes: Axes) -> None:
    """Leave only the two sides of the frame that have numbers."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def plain_axes(axes: Axes) -> None:
    """A light grid, and an open frame."""
    axes.grid(True, color=GRID, linewidth=0.6)
    open_frame(axes)


def logarithmic(axes: Axes) -> None:
    """Make both axes logarithmic, labelled as plain numbers where these are short."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10, numticks=12))
        axis.set_major_formatter(FuncFormatter(plain))
        axis.set_minor_formatter(NullFormatter())
    plain_axes(axes)
    axes.tick_params(which="minor", length=1.5, width=0.5)


def plain(value: float, _position: object = None) -> str:
    """Return a tick's number: 0.00001 to 100000 in full, others as a power."""
    if 1e-5 <= value < 1e6:
        return f"{value:.5f}".rstrip("0").rstrip(".")
    return f"{value:.0e}"


def spread_apart(places: Sequence[float], gap: float) -> list[float]:
    """Return `places` moved as little as needed for each two to be `gap` apart, order kept."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[tuple[float, int]] = []
    for i in order:
        centre, count = places[i], 1
        while groups and groups[-1][0] + gap * (groups[-1][1] - 1) / 2 + gap > (
            centre - gap * (count - 1) / 2
        ):
            other, others = groups.pop()
            centre = (centre * count + other * others) / (count + others)
            count += others
        groups.append((centre, count))
    moved = [c + gap * (k - (n - 1) / 2) for c, n in groups for k in range(n)]
    result = [0.0] * len(places)
    for i, place in zip(order, moved, strict=True):
        result[i] = place
    return result


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG: text as text, no date, and its title and description for a reader."""
    out = io.StringIO()
    with in_style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    title = getattr(figure, "title", "") or "figure"
    description = getattr(figure, "description", "")
    words = f"{title}. {description}" if description else title
    # As attributes for screen readers, as elements for those who open the file.
    return re.sub(
        r"<svg ([^>]*)>",
        lambda match: (
            f"<svg {match[1]} role=\"img\" aria-label={quoteattr(words)}>\n"
            f" <title>{escape(title)}</title>\n <desc>{escape(description)}</desc>"
        ),
        out.getvalue(),
        count=1,
    )  # fmt: skip


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure to `path`, its folder made where it isn't there; OSError where it can't be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg_text(figure), encoding="utf-8")
