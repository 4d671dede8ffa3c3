"""How the figures look, and how they are written: the same bytes for the same data.

Colours are the palette's; a shape, a dash or a fill says the same again, for print without colour. A
figure is drawn in the light's colours and as wide as paper or a desk's page; `phone()` draws it as wide
as a phone's, panels below each other. Sizes are in pixels of the page, so that text is as large as it says.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from measuretwice.figures.palette import COLOURS, LOOKS, ORDERED, Scheme, in_the_dark
from measuretwice.figures.rows import Row

INK, FAINT, GRID, PAPER = (COLOURS[name].light for name in ("ink", "ink-faint", "grid", "paper"))
PUBLISHED, MODEL, QUEUE = (COLOURS[name].light for name in ("published", "model", "queue"))
# One shape for each segment size, one of the ordered colours for each round-trip time.
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
MARKER_SIZE = 6.5
# A desk's page beside its menus, and a phone of 390 in a fold.
WIDTH_PX, PHONE_PX = 680, 330
PX_AN_INCH = 72
FONT_PX = 12
CAPTION_CHARACTERS, CAPTION_LINE_PX = 92, 17
# What a lab calls a discipline by default, or by its longer name.
SAME_LOOK = {
    "pfifo_fast": "fifo",
    "pfifo": "fifo",
    "bfifo": "fifo",
    "droptail": "fifo",
    "fq_codel": "fq-codel",
}

# matplotlib's own defaults under it: what a person has in matplotlibrc changes nothing.
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": FONT_PX,
    "axes.titlesize": FONT_PX,
    "axes.labelsize": FONT_PX,
    "xtick.labelsize": FONT_PX,
    "ytick.labelsize": FONT_PX,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.9,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": FONT_PX,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "measuretwice",
}
LONG_NUMBER = re.compile(r"(?<=[\s\"MLQCz])-?\d+\.\d{2,}(?=[\s\"])")
REFERENCE = re.compile(r"(?<=#)[\w.]+(?=[\")])")
NAME = re.compile(r' id="([^"]*)"')
NOT_TURNED = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
# A path of straight lines alone, as Matplotlib writes it, and a step of it.
STRAIGHT = re.compile(r' d="(M[^"A-KN-Ya-y]*)"')
STEP = re.compile(r"([MLz])(?: (\S+) (\S+))?")
_on_phone: ContextVar[bool] = ContextVar("on_phone", default=False)


@contextmanager
def phone() -> Iterator[None]:
    """A context in which figures are drawn as wide as a phone."""
    token = _on_phone.set(True)
    try:
        yield
    finally:
        _on_phone.reset(token)


def on_phone() -> bool:
    """Return whether a figure for a phone is being drawn."""
    return _on_phone.get()


def sized(height_px: float, width_px: float = WIDTH_PX) -> DescribedFigure:
    """Return an empty figure as wide as the page, or on a desk so wide, and so high."""
    width = PHONE_PX if on_phone() else width_px
    size = (width / PX_AN_INCH, height_px / PX_AN_INCH)
    return DescribedFigure(figsize=size, layout="constrained")


class DescribedFigure(Figure):
    """A figure that says in words what it shows, for those who can't see it."""

    title: str = ""
    description: str = ""
    # How many runs, and what its bars, boxes or bands mean: said below it.
    caption: str = ""


# A figure, and the rows that it shows.
Drawn = tuple[DescribedFigure, list[Row]]


def in_style() -> Any:
    """A context in which figures are made and written with our settings only."""
    return style.context(["default", STYLE])


def shapes(values: Sequence[float]) -> dict[float, str]:
    """Return a marker for each value; after nine values they begin anew."""
    return {value: SHAPES[i % len(SHAPES)] for i, value in enumerate(sorted(set(values)))}


def shades(values: Sequence[float]) -> dict[float, str]:
    """Return one of the ordered colours for each value, the smallest the one that stands out most."""
    ordered = sorted(set(values))
    last = max(1, len(ordered) - 1)
    steps = len(ORDERED) - 1
    return {
        value: COLOURS[ORDERED[round(n * steps / last)]].light for n, value in enumerate(ordered)
    }


def line_looks(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return colour, dashes and marker of each line: an algorithm's or a discipline's own, where it is
    one; of other lines one after the other."""
    others = iter([*LOOKS] * len(names))
    looks = []
    for name in names:
        look_name = SAME_LOOK.get(name, name)
        look = LOOKS[look_name if look_name in LOOKS else next(others)]
        colour = COLOURS[look_name].light if look_name in LOOKS else INK
        dashes = (0, look.dashes) if look.dashes else "-"
        looks.append({"color": colour, "linestyle": dashes, "marker": look.marker})
    return looks


def colour_of(name: object) -> str:
    """Return an algorithm's or a discipline's colour; ink for all else."""
    look_name = SAME_LOOK.get(str(name), str(name))
    return COLOURS[look_name].light if look_name in LOOKS else INK


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
        axis.set_major_locator(LogLocator(base=10, numticks=5 if on_phone() else 12))
        axis.set_major_formatter(FuncFormatter(plain))
        axis.set_minor_formatter(NullFormatter())
    plain_axes(axes)
    axes.tick_params(which="minor", length=1.5, width=0.5)


def plain(value: float, _position: object = None) -> str:
    """Return a tick's number: 0.00001 to 100000 in full, others as a power."""
    if 1e-5 <= value < 1e6:
        return f"{value:.5f}".rstrip("0").rstrip(".")
    return f"{value:.0e}"


def spread_apart(positions: Sequence[float], gap: float) -> list[float]:
    """Return `positions` moved as little as needed for each two to be `gap` apart, order kept."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups: list[tuple[float, int]] = []
    for i in order:
        centre, count = positions[i], 1
        while groups and groups[-1][0] + gap * (groups[-1][1] - 1) / 2 + gap > (
            centre - gap * (count - 1) / 2
        ):
            other, others = groups.pop()
            centre = (centre * count + other * others) / (count + others)
            count += others
        groups.append((centre, count))
    moved = [c + gap * (k - (n - 1) / 2) for c, n in groups for k in range(n)]
    result = [0.0] * len(positions)
    for i, position in zip(order, moved, strict=True):
        result[i] = position
    return result


def legend_above(axes: Axes, handles: Sequence[Artist] | None = None, columns: int = 3) -> None:
    """A legend above the axes, where nothing is drawn."""
    given = {} if handles is None else {"handles": handles}
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, borderpad=0,
        handlelength=1.8, columnspacing=1.2, handletextpad=0.5, **given,
    )  # fmt: skip


def svg_text(figure: Figure, scheme: Scheme = "light") -> str:
    """Return a figure as SVG in the page's pixels: text as text, no date, its title and description for
    a reader, and tenths of a pixel, which are all that a screen shows."""
    out = io.StringIO()
    with in_style():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", out.getvalue(), flags=re.DOTALL)
    text = re.sub(r"^<\?xml.*?(?=<svg)", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg [^>]*?width="[0-9.]+)pt(" height="[0-9.]+)pt"', r'\1\2"', text)
    referred = set(REFERENCE.findall(text))
    # In tags only: a text's numbers and words stay as they are.
    text = re.sub(r"<[^>]+>", lambda tag: _shorter(tag[0], referred), text)
    title = getattr(figure, "title", "") or "figure"
    description = getattr(figure, "description", "")
    words = f"{title}. {description}" if description else title
    # As attributes for screen readers, as elements for those who open the file.
    text = re.sub(
        r"<svg ([^>]*)>",
        lambda match: (
            f"<svg {match[1]} role=\"img\" aria-label={quoteattr(words)}>\n"
            f" <title>{escape(title)}</title>\n <desc>{escape(description)}</desc>"
        ),
        text,
        count=1,
    )  # fmt: skip
    return text if scheme == "light" else in_the_dark(text)


def _shorter(tag: str, referred: Collection[str]) -> str:
    """A tag in tenths of a pixel, without what says nothing: a name that nobody refers to, a turn by nought degrees."""
    tag = LONG_NUMBER.sub(lambda number: _tenths(float(number[0])), tag)
    tag = NAME.sub(lambda name: name[0] if name[1] in referred else "", tag)
    return STRAIGHT.sub(_step_by_step, NOT_TURNED.sub("", tag))


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _step_by_step(match: re.Match[str]) -> str:
    """The same path with each point told from the one before it, in whole tenths of a pixel: half the size, once
    packed."""
    steps: list[str] = []
    x = y = x_first = y_first = 0
    for command, to_x, to_y in STEP.findall(match[1]):
        if command == "z":
            x, y = x_first, y_first
            steps.append("z")
            continue
        x_before, y_before = x, y
        x, y = round(10 * float(to_x)), round(10 * float(to_y))
        if command == "M":
            x_first, y_first = x, y
            steps.append(f"M{_tenths(x / 10)} {_tenths(y / 10)}")
        else:
            steps.append(f"l{_tenths((x - x_before) / 10)} {_tenths((y - y_before) / 10)}")
    return f' d="{"".join(steps)}"'


def size_of(figure: Figure) -> tuple[int, int]:
    """Return a figure's width and height in the page's pixels."""
    width, height = figure.get_size_inches()
    return round(width * PX_AN_INCH), round(height * PX_AN_INCH)


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure and its caption to `path`, the folder made where it isn't there; OSError where it
    can't be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_with_caption(figure), encoding="utf-8")


def _with_caption(figure: Figure) -> str:
    """A figure with its caption below it, since a file stands alone."""
    text, (width, height) = svg_text(figure), size_of(figure)
    lines = textwrap.wrap(getattr(figure, "caption", ""), CAPTION_CHARACTERS)
    higher = height + CAPTION_LINE_PX * len(lines) + (8 if lines else 0)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', rf'\1 height="{higher}"', text, count=1)
    text = re.sub(r'viewBox="[^"]*"', f'viewBox="0 0 {width} {higher}"', text, count=1)
    below = [f'<rect y="{height}" width="{width}" height="{higher - height}" fill="{PAPER}"/>']
    below += [
        f'<text x="8" y="{height + CAPTION_LINE_PX * n}" fill="{INK}" '
        f"style=\"font: {FONT_PX}px 'DejaVu Sans', sans-serif\">{escape(line)}</text>"
        for n, line in enumerate(lines, 1)
    ]
    return text.replace("</svg>", "\n".join([*below, "</svg>"])) if lines else text
