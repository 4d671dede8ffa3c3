"""The against figure: a measured value against a parameter, with the interval of its runs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row
from measuretwice.figures.style import (
    MARKER_SIZE,
    WIDTH_INCHES,
    DescribedFigure,
    Drawn,
    in_style,
    plain,
    plain_axes,
    shades,
    shapes,
)
from measuretwice.lab import AgainstFigure, Lab
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import mean_interval


@figure(AgainstFigure, needs="measured values")
def against(lab: Lab, declared: AgainstFigure, results: Sequence[Result]) -> Drawn:
    """The mean of a measured value against a parameter, with the 95 % interval of its runs.

    A row is a point: by (the line's name), x, runs, mean, and low and high, which are None for a
    single run. UserError where no run has the value.
    """
    rows = _rows(declared, results)
    names = sorted({row["by"] for row in rows})
    with in_style():
        drawn = DescribedFigure(figsize=(WIDTH_INCHES, 4.0), layout="constrained")
        panel = drawn.subplots()
        plain_axes(panel)
        panel.set_xscale("log")
        xs = sorted({row["x"] for row in rows})
        panel.set_xticks(xs, [plain(x) for x in xs])
        panel.minorticks_off()
        _draw_lines(panel, names, rows)
        panel.set_xlabel(declared.x_label or declared.x)
        panel.set_ylabel(declared.y_label or declared.y)
        panel.legend()
    drawn.description = _in_words(declared, names, rows)
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
        mean, low, high = mean_interval(values)
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
    """A line for each name, its points side by side, so that intervals don't cover each other."""
    shape = shapes(list(range(len(names))))
    shade = shades(list(range(len(names))))
    for n, name in enumerate(names):
        points = [row for row in rows if row["by"] == name]
        places = [row["x"] * 1.035 ** (n - (len(names) - 1) / 2) for row in points]
        bars = [
            [row["mean"] - row["low"] if row["low"] is not None else 0 for row in points],
            [row["high"] - row["mean"] if row["high"] is not None else 0 for row in points],
        ]
        panel.errorbar(
            places, [row["mean"] for row in points], bars, label=name, color=shade[n],
            marker=shape[n], markersize=MARKER_SIZE, linewidth=0.9, elinewidth=0.8, capsize=2,
        )  # fmt: skip


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
