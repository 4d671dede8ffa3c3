"""The against figure: a measured value against a parameter, with the interval of its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row, counted_runs
from measuretwice.figures.style import (
    MARKER_SIZE,
    Drawn,
    in_style,
    line_looks,
    on_phone,
    plain,
    plain_axes,
    sized,
    spread_apart,
)
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import AgainstFigure
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import mean_interval_within

HEIGHT_PX, PHONE_HEIGHT_PX = 380, 300
# Room for one line's label, as a share of the panel's height.
LABEL_GAP = 0.065


@figure(AgainstFigure, needs="measured values")
def against(lab: Lab, declared: AgainstFigure, results: Sequence[Result]) -> Drawn:
    """The mean of a measured value against a parameter, with the 95 % interval of its runs.

    A row is a point: by (the line's name), x, runs, mean, and low and high, which are None for a
    single run. UserError where no run has the value.
    """
    rows = _rows(declared, results)
    names = sorted({row["by"] for row in rows})
    with in_style():
        drawn = sized(PHONE_HEIGHT_PX if on_phone() else HEIGHT_PX)
        panel = drawn.subplots()
        plain_axes(panel)
        panel.set_xscale("log")
        xs = sorted({row["x"] for row in rows})
        panel.set_xticks(xs, [plain(x) for x in xs])
        panel.minorticks_off()
        _draw_lines(panel, names, rows)
        panel.set_xlabel(declared.x_label or declared.x)
        panel.set_title(declared.y_label or declared.y, loc="left")
    drawn.description = _in_words(declared, names, rows)
    bars = "bars: 95 % interval of the mean" if any(row["runs"] > 1 for row in rows) else ""
    drawn.caption = "; ".join(
        filter(None, [f"{counted_runs([row['runs'] for row in rows])} a point", bars])
    )
    return drawn, rows


def _rows(declared: AgainstFigure, results: Sequence[Result]) -> list[Row]:
    cells: dict[tuple[str, float], list[float]] = {}
    for result in results:
        value = result.value(declared.y)
        if value is not None:
            by, x = str(result.params[declared.by]), float(result.params[declared.x])
            cells.setdefault((by, x / declared.x_unit), []).append(value / declared.y_unit)
    if not cells:
        raise UserError(f"--figure {declared.id}: none of {len(results)} runs has a {declared.y}")
    rows: list[Row] = []
    for (by, x), values in sorted(cells.items()):
        least, most = [*declared.y_within, math.inf][:2]
        # What is measured may lie a little outside what can be: a share of 1.0004.
        mean, low, high = mean_interval_within(values, min(least, *values), max(most, *values))
        rows.append(
            {
                "by": by,
                "x": x,
                "runs": len(values),
                "mean": float(f"{mean:.6g}"),
                "low": float(f"{low:.6g}") if len(values) > 1 else None,
                "high": float(f"{high:.6g}") if len(values) > 1 else None,
            }
        )
    return rows


def _draw_lines(panel: Axes, names: Sequence[str], rows: Sequence[Row]) -> None:
    """A line for each name, its points side by side, so that intervals don't cover each other; its name
    at its end."""
    ends = []
    for n, (name, look) in enumerate(zip(names, line_looks(names), strict=True)):
        points = [row for row in rows if row["by"] == name]
        places = [row["x"] * 1.035 ** (n - (len(names) - 1) / 2) for row in points]
        bars = [
            [row["mean"] - row["low"] if row["low"] is not None else 0 for row in points],
            [row["high"] - row["mean"] if row["high"] is not None else 0 for row in points],
        ]
        drawn = panel.errorbar(
            places, [row["mean"] for row in points], bars, markersize=MARKER_SIZE, linewidth=1.4,
            elinewidth=1.1, capsize=2.5, **look,
        )  # fmt: skip
        drawn[0].set_label(name)
        ends.append((name, places[-1], points[-1]["mean"], look["color"]))
    if len(names) < 2:
        return
    low, high = panel.get_ylim()
    heights = [(y - low) / (high - low) for _, _, y, _ in ends]
    for (name, x, y, colour), height in zip(ends, spread_apart(heights, LABEL_GAP), strict=True):
        leader = {"arrowstyle": "-", "linewidth": 0.7, "color": colour, "shrinkA": 1, "shrinkB": 4}
        panel.annotate(name, (x, y), (1.02, height), xycoords="data", textcoords="axes fraction",
            color=colour, va="center", annotation_clip=False, arrowprops=leader)  # fmt: skip
    panel.set_ylim(low, high)


def _in_words(declared: AgainstFigure, names: Sequence[str], rows: Sequence[Row]) -> str:
    fewest = min(row["runs"] for row in rows)
    lines = [
        f"{name} "
        + ", ".join(f"{row['mean']:.3g} at {row['x']:g}" for row in rows if row["by"] == name)
        for name in names
    ]
    return (
        f"{declared.y_label or declared.y} against {declared.x_label or declared.x}, by "
        f"{declared.by}, means of at least {fewest} run{'s' if fewest > 1 else ''} each: "
        f"{'; '.join(lines)}."
    )
