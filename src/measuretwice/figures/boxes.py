"""Boxes: how a measured value is spread over runs, for each setting, one panel a value."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row, counted_runs
from measuretwice.figures.style import (
    FAINT,
    GRID,
    PAPER,
    Drawn,
    colour_of,
    in_style,
    on_phone,
    open_frame,
    plain,
    sized,
)
from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.results import BoxesFigure, Panel
from measuretwice.runs.result import Result

# Of fewer values points alone are shown.
FEWEST_IN_A_BOX = 3
# On a phone panels of so many rows stand in pairs beside their names: each alone would be a screen high.
MANY_NAMES = 8


@figure(BoxesFigure, needs="measured values")
def boxes(lab: Lab, declared: BoxesFigure, results: Sequence[Result]) -> Drawn:
    """A panel for each value; boxes lie on their side, so that their names can be read.

    A box goes from the first quartile to the third with the median inside, its whiskers to the
    smallest and the largest value: so few values have no outliers. Settings stand in the order of
    the trials. A row is a point: value_of, by (the box's name), trial, seed, flow (of a value of each
    flow), value. UserError where no run has one of the values.
    """
    rows = [row for panel in declared.panels for row in _rows(declared, panel, results)]
    names = list(dict.fromkeys(row["by"] for row in rows))
    with in_style():
        high, count = 62 + 21 * len(names), len(declared.panels)
        columns = count if not on_phone() else 2 if len(names) >= MANY_NAMES else 1
        lines = math.ceil(count / columns)
        drawn = sized(high * lines)
        axes = list(drawn.subplots(lines, columns, sharey=True, squeeze=False).flat)
        for panel, place in zip(declared.panels, axes, strict=False):
            _panel(place, panel, names, [row for row in rows if row["value_of"] == panel.value])
        for place in axes[count:]:
            place.set_axis_off()
        axes[0].set_yticks(range(len(names)), names)
        axes[0].set_ylim(len(names) - 0.4, -0.6)
    drawn.description = " ".join(_in_words(panel, names, rows) for panel in declared.panels)
    drawn.caption = _caption(declared, rows)
    return drawn, rows


def _rows(declared: BoxesFigure, panel: Panel, results: Sequence[Result]) -> list[Row]:
    rows = []
    for result in results:
        sources = [result.measured] if panel.of == "run" else map(vars, result.flows)
        for number, values in enumerate(sources):
            value = values.get(panel.value)
            if value is None:
                continue
            rows.append(
                {
                    "value_of": panel.value,
                    "by": _name(declared, result.params),
                    "trial": result.trial,
                    "seed": result.seed,
                    "flow": number if panel.of == "flow" else None,
                    "value": float(f"{value / panel.unit:.6g}"),
                }
            )
    if not rows:
        raise UserError(f"--figure {declared.id}: none of {len(results)} runs has a {panel.value}")
    return rows


def _name(declared: BoxesFigure, params: dict[str, Value]) -> str:
    """What a box is called: `and_by` is said only where it is switched on."""
    name = str(params.get(declared.by))
    if declared.and_by and params.get(declared.and_by) == "on":
        return f"{name}, {declared.and_by.upper()}"
    return name


def _panel(place: Axes, panel: Panel, names: Sequence[str], rows: Sequence[Row]) -> None:
    if panel.logarithmic:
        place.set_xscale("log")
    for height, name in enumerate(names):
        values = [row["value"] for row in rows if row["by"] == name]
        if not values:
            continue
        colour = colour_of(name.split(",")[0])
        if len(values) > FEWEST_IN_A_BOX:
            place.boxplot(
                [values], positions=[height], orientation="horizontal", widths=0.6,
                whis=(0, 100),  # codespell:ignore whis
                manage_ticks=False, patch_artist=True,
                boxprops={"facecolor": GRID, "edgecolor": FAINT}, medianprops={"color": colour, "linewidth": 2.0},
                whiskerprops={"color": FAINT}, capprops={"color": FAINT},
            )  # fmt: skip
        place.plot(
            values, [height] * len(values), linestyle="none", marker="o", markersize=3.6,
            markerfacecolor=PAPER, markeredgecolor=colour, markeredgewidth=0.9,
        )  # fmt: skip
    place.set_xlabel(panel.label)
    place.grid(True, axis="x", color=GRID, linewidth=0.6)
    if panel.logarithmic:
        ticks = LogLocator(base=10, subs=(1, 3))
        place.xaxis.set_major_locator(ticks)
        place.xaxis.set_major_formatter(FuncFormatter(plain))
        place.xaxis.set_minor_formatter(NullFormatter())
        place.margins(x=0.12)
    else:
        # A little room beyond the largest value, and beside zero for the points that stand there.
        low, high = place.get_xlim()
        most = max((row["value"] for row in rows), default=1) or 1
        place.set_xlim(
            -0.06 * most if panel.from_zero else low,
            max(high, 1.08 * most if panel.from_zero else high),
        )
    open_frame(place)


def _caption(declared: BoxesFigure, rows: Sequence[Row]) -> str:
    """How many runs a box has; how many flows where points are of flows."""
    runs: dict[str, set[tuple[int, int]]] = {}
    for row in rows:
        runs.setdefault(row["by"], set()).add((row["trial"], row["seed"]))
    points = (
        "a point a flow" if all(panel.of == "flow" for panel in declared.panels) else "a point each"
    )
    counts = [len(each) for each in runs.values()]
    boxes = (
        "; boxes: the middle half, with the median; whiskers: all"
        if max(counts) > FEWEST_IN_A_BOX
        else ""
    )
    return f"{counted_runs(counts)} a row, {points}{boxes}"


def _in_words(panel: Panel, names: Sequence[str], rows: Sequence[Row]) -> str:
    parts = []
    for name in names:
        values = [
            row["value"] for row in rows if row["by"] == name and row["value_of"] == panel.value
        ]
        if values:
            parts.append(f"{name} {statistics.median(values):.3g}")
    return f"{' '.join(panel.label.split())}, medians: {', '.join(parts)}."
