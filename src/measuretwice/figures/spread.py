"""How far runs lie from the model, by the number of losses that each had: what chance does to them,
and what it doesn't. Pure: from results to a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from measuretwice.figures.rows import complete, distinct, fit_rows, model_constant, rows_for_table
from measuretwice.figures.style import (
    FAINT,
    GRID,
    INK,
    DescribedFigure,
    in_style,
    logarithmic,
    marker_style,
    sized,
)
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import ratio_bounds

BAND_POINTS = 60


def spread(
    results: Sequence[Result],
    fitted: Sequence[Result],
    max_loss_ratio: float,
) -> DescribedFigure | None:
    """Return the ratio of goodput to model against losses, with the band that chance allows.

    The band lies about the constant that is fitted to `fitted`; runs from `max_loss_ratio` on are
    left out. None where there are too few runs to fit anything.
    """
    rows = [
        row
        for row in complete(rows_for_table(distinct([*results, *fitted])), ("ratio", "losses"))
        if row["loss_ratio"] < max_loss_ratio
    ]
    fit = fit_rows(rows_for_table(fitted), model_constant(fitted)) if rows else None
    if fit is None:
        return None
    centre = fit.constant / model_constant(fitted)
    losses = [row["losses"] for row in rows]
    at = np.geomspace(min(losses) / 1.4, max(losses) * 1.4, BAND_POINTS)
    bounds = [ratio_bounds(float(n)) or (1.0, 1.0) for n in at]
    with in_style():
        figure = sized(320)
        axes = figure.add_subplot()
        logarithmic(axes)
        axes.fill_between(
            at, [centre * low for low, _ in bounds], [centre * high for _, high in bounds],
            color=GRID, linewidth=0,
        )  # fmt: skip
        axes.axhline(centre, color=FAINT, linewidth=1.1)
        for row in rows:
            axes.plot(row["losses"], row["ratio"], **marker_style("o", INK, row["comparable"]))
        axes.set_xlim(at[0], at[-1])
        axes.set_yticks([1, 1.5, 2, 3, 4], ["1", "1.5", "2", "3", "4"])
        axes.set_xlabel("losses in the run")
        axes.set_ylabel("goodput over model (C = 1)")
    figure.title = "Goodput over the model, by the number of losses in the run"
    figure.description = (
        f"{len(rows)} runs with {min(losses)} to {max(losses)} losses. The band that chance allows "
        "narrows to the right. Runs with many losses lie within or near it; most of those with few "
        "losses lie above it."
    )
    figure.caption = f"{len(rows)} runs, a mark each; grey: where 95 % of runs lie by chance alone, about C = {centre:.2f}"
    return figure
