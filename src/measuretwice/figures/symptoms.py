"""The figure of a case's symptom: panels as wide as a phone, one a picture, without the cause.

On a desk a page sets them beside each other, on a phone one below the other, so their text is as
large as they say in both. Two stages of a case share each panel's axes, but for times that are far apart.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from matplotlib import rc_context

from measuretwice.figures.palette import COLOURS
from measuretwice.figures.style import FONT_PX, PX_AN_INCH, DescribedFigure, in_style
from measuretwice.lab import Lab
from measuretwice.lab.schema.cases import SymptomOf
from measuretwice.measure.over_time import OverTime
from measuretwice.runs.result import Result

# In CSS pixels: what a phone of 360 has for a picture inside a fold.
PANEL_PX, HEIGHT_PX, BAR_PX = 300, 225, 46
LABEL_CHARACTERS = 42
MOST_TIMES_AS_LONG = 10

# A folder's name may have a $ in it, which is no formula.
PLAIN_TEXT: Any = {"text.parse_math": False}
ReadsOverTime = Callable[[Path], OverTime]


@dataclass(frozen=True)
class Stage:
    """A recorded stage of a case: its heading (empty where it stands alone), its runs, its colour.

    `beside` are runs to be shown faintly: the lab's as they should be.
    """

    heading: str
    runs: Sequence[Result]
    beside: Sequence[Result] = ()
    after: bool = False

    @property
    def colour(self) -> str:
        """The colour of what was measured of it."""
        return COLOURS["after" if self.after else "before"].light


@dataclass(frozen=True)
class Subject:
    """Of what a panel is drawn: the lab, the stage; and who reads a run's folder over time."""

    lab: Lab
    stage: Stage
    over_time: ReadsOverTime

    @property
    def run(self) -> Result:
        """The first run."""
        return self.stage.runs[0]


Table = TypeVar("Table", bound=SymptomOf)
# It draws into the axes and says in words what is to be seen.
Draw = Callable[[Any, Table, Subject], str]
_kinds: dict[type[SymptomOf], tuple[Draw[Any], Callable[[Any], int]]] = {}


def symptom(
    table: type[Table], height_px: Callable[[Table], int] = lambda _: HEIGHT_PX
) -> Callable[[Draw[Table]], Draw[Table]]:
    """Register what draws the panels that `table` describes, and how high these are."""

    def register(draw: Draw[Table]) -> Draw[Table]:
        assert table not in _kinds, f"{table.__name__} is drawn twice"
        _kinds[table] = (draw, height_px)
        return draw

    return register


@cache
def _load() -> None:
    """Import the kinds, so that each has registered."""
    import measuretwice.figures.symptom_kinds  # noqa: F401


def symptom_kinds() -> set[type[SymptomOf]]:
    """Return the tables whose panels can be drawn."""
    _load()
    return set(_kinds)


def draw_stages(
    lab: Lab, panel: SymptomOf, stages: Sequence[Stage], over_time: ReadsOverTime
) -> list[DescribedFigure]:
    """Return a panel's picture of each stage, all with the same axes.

    UserError where a run hasn't what the panel shows.
    """
    _load()
    draw, height_px = _kinds[type(panel)]
    drawn = []
    with in_style(), rc_context(PLAIN_TEXT):
        for stage in stages:
            headings = 1.35 * FONT_PX * bool(stage.heading)
            figure = DescribedFigure(
                figsize=(PANEL_PX / PX_AN_INCH, (height_px(panel) + headings) / PX_AN_INCH),
                layout="constrained",
            )
            axes = figure.subplots()
            figure.description = draw(axes, panel, Subject(lab, stage, over_time))
            figure.title = stage.heading or "What was measured"
            label = "\n".join(textwrap.wrap(axes.get_title(loc="left"), LABEL_CHARACTERS))
            axes.set_title("\n".join(filter(None, [stage.heading, label])), loc="left", x=0)
            drawn.append(figure)
        _share_axes(drawn)
    return drawn


def _share_axes(drawn: Sequence[DescribedFigure]) -> None:
    """Give all pictures the widest of their limits; of times, where one isn't lost in another's."""
    axes = [figure.axes[0] for figure in drawn]
    for get, set_ in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        limits = [getattr(each, get)() for each in axes]
        spans = [abs(high - low) for low, high in limits]
        if get == "get_xlim" and max(spans) > MOST_TIMES_AS_LONG * min(spans):
            continue
        low, high = min(map(min, limits)), max(map(max, limits))
        # Bars count downwards.
        ends = (high, low) if limits[0][0] > limits[0][1] else (low, high)
        for each in axes:
            getattr(each, set_)(*ends)


def number_in_words(value: float) -> str:
    """Return a number as a figure says it: four digits, in full."""
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e7:
        return f"{value:,.0f}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
