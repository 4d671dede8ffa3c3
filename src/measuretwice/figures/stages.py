"""The stages figure: measured goodput against the model's, a panel for each set of runs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from measuretwice.figures import marks
from measuretwice.figures.goodput_panel import (
    KEYS,
    goodput_panel,
    left_out_in_words,
    square_limits,
    usable_rows,
)
from measuretwice.figures.registry import model_figure
from measuretwice.figures.rows import (
    ModelRuns,
    Row,
    complete,
    count_within,
    ratio_range,
    rows_for_table,
)
from measuretwice.figures.style import WIDTH_INCHES, DescribedFigure, in_style

PANELS_A_ROW = 4


@model_figure("stages", of_several_sets=True)
def stages(runs: ModelRuns) -> DescribedFigure:
    """Measured against the model once for each of `sets`, in order, with the same axes, four panels
    a row.

    Each panel says how many of its trials have a ratio within the range that the lab expects.
    UserError for no set, or where none has a trial with both values.
    """
    sets = runs.sets
    all_rows, left_out = usable_rows(runs, KEYS)
    span = ratio_range(runs.results)
    lines = math.ceil(len(sets) / PANELS_A_ROW)
    columns = math.ceil(len(sets) / lines)
    titles = ["\n".join(textwrap.wrap(title, 76 // columns)) for title, _ in sets]
    title_lines = max(title.count("\n") + 1 for title in titles)
    counts = []
    with in_style():
        panel_inches = min(4.0, 6.2 / columns)
        height = 2.0 + lines * (panel_inches + 0.15 + 0.16 * title_lines)
        figure = DescribedFigure(figsize=(WIDTH_INCHES, height), layout="constrained")
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        limits = square_limits(all_rows)
        for i, (panel, title, (_, results)) in enumerate(
            zip(panels.flat, titles, sets, strict=False)
        ):
            rows = complete(rows_for_table(results, runs.names), KEYS)
            goodput_panel(panel, rows, all_rows, limits, size=3.5 if columns > 2 else None)
            marks.slope_one(panel, None)
            panel.set_title(title)
            counts.append(_count(rows, span))
            marks.note(panel, [counts[-1]], (1, 0))
            if i % columns == 0:
                panel.set_ylabel("goodput (Mbit/s)")
            if i + columns >= len(sets):
                panel.set_xlabel("model (Mbit/s)")
                panel.tick_params(labelbottom=True)
        for panel in list(panels.flat)[len(sets) :]:
            panel.set_axis_off()
        groups = marks.legend_groups(all_rows)
        notes = [*_span_in_words(span), *left_out_in_words(left_out)]
        legend = figure.legend(
            handles=marks.legend_handles(groups, in_columns=True),
            loc="outside lower center",
            ncols=len(groups),
            title="\n".join(notes) or None,
        )
        marks.bold_headings(legend, groups)
    figure.title = "Measured goodput against the model's bandwidth, stage by stage"
    panels_in_words = [f"{title}: {count}." for (title, _), count in zip(sets, counts, strict=True)]
    figure.description = " ".join([*panels_in_words, *(f"{text}." for text in notes)])
    return figure


def _count(rows: Sequence[Row], span: tuple[float, float] | None) -> str:
    """How many trials there are, or how many of them lie within the span."""
    return f"{len(rows)} trials" if span is None else f"{count_within(rows, span)} of {len(rows)}"


def _span_in_words(span: tuple[float, float] | None) -> list[str]:
    if span is None:
        return []
    low, high = span
    ends = f"{low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
    return [f"In each panel: trials with a goodput of {ends} times the model's, of all"]
