"""The figure of measured goodput against the model's bandwidth: Figure 3 of the paper.

Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm",
ACM SIGCOMM CCR 27(3), 1997.
"""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.figures import marks
from measuretwice.figures.goodput_panel import (
    KEYS,
    caption,
    goodput_panel,
    in_words,
    left_out_in_words,
    square_limits,
    usable_rows,
)
from measuretwice.figures.registry import model_figure
from measuretwice.figures.rows import ModelRuns, Row, fit_rows, model_constant
from measuretwice.figures.style import DescribedFigure, in_style, on_phone, sized


@model_figure("measured-against-model")
def measured_against_model(runs: ModelRuns) -> DescribedFigure:
    """Goodput against the model's bandwidth, Mbit/s, with the line of slope one.

    Published values are crosses with their trial's number, those of one trial joined by a line.
    A run that is in several sets counts once. UserError where no trial has both values.
    """
    rows, left_out = usable_rows(runs, KEYS)
    notes = _fit_in_words(rows, model_constant(runs.results)) + left_out_in_words(left_out)
    with in_style():
        figure = sized(
            340 + marks.legend_height_px(marks.legend_groups(rows, runs.published))
            if on_phone()
            else 430
        )
        axes = figure.add_subplot()
        goodput_panel(axes, rows, rows, square_limits(rows, runs.published))
        marks.slope_one(axes, "goodput = model")
        marks.published_values(axes, runs.published)
        axes.set_xlabel("model's bandwidth (Mbit/s)")
        axes.set_ylabel("measured goodput (Mbit/s)")
        groups = marks.legend_groups(rows, runs.published)
        legend = marks.legend_beside(figure, axes, groups)
        marks.bold_headings(legend, groups)
    figure.title = "Measured goodput against the model's bandwidth"
    figure.description = in_words(rows, notes)
    figure.caption = caption(rows, notes)
    return figure


def _fit_in_words(rows: Sequence[Row], constant: float) -> list[str]:
    """The constant fitted to these rows; nothing where they are too few."""
    fit = fit_rows(rows, constant)
    if fit is None:
        return []
    return [
        f"C = {fit.constant:#.3g} (95 %: {fit.low:#.3g} to {fit.high:#.3g}),",
        f"fitted to {fit.points} trials where the model applies",
    ]
