"""The stages figure: measured goodput against the model's, a panel for each set of runs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib.ticker import LogLocator

from measuretwice.figures import marks
from measuretwice.figures.goodput_panel import (
    KEYS,
    caption,
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
from measuretwice.figures.style import (
    PHONE_PX,
    WIDTH_PX,
    DescribedFigure,
    in_style,
    on_phone,
    sized,
)

# Panels beside each other have room for their titles and for the numbers at their axes.
PANELS_A_ROW, PHONE_PANELS_A_ROW = 4, 2
LINE_PX, AXIS_PX = 17, 60
# In a narrower one not each power of ten has its number.
WIDE_PANEL_PX = 250


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
    most = PHONE_PANELS_A_ROW if on_phone() else PANELS_A_ROW
    lines = math.ceil(len(sets) / most)
    columns = math.ceil(len(sets) / lines)
    characters = (40 if on_phone() else 80) // columns
    titles = ["\n".join(textwrap.wrap(title, characters)) for title, _ in sets]
    title_lines = max(title.count("\n") + 1 for title in titles)
    counts = []
    with in_style():
        groups = marks.legend_groups(all_rows)
        side = min(390, ((PHONE_PX if on_phone() else WIDTH_PX) - AXIS_PX) / columns - 8)
        height = AXIS_PX + lines * (side + 8 + LINE_PX * (title_lines + 1))
        figure = sized(height + marks.legend_height_px(groups))
        panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        limits = square_limits(all_rows)
        for i, (panel, title, (_, results)) in enumerate(
            zip(panels.flat, titles, sets, strict=False)
        ):
            rows = complete(rows_for_table(results, runs.names), KEYS)
            goodput_panel(
                panel, rows, all_rows, limits, size=4.5 if columns > 2 or on_phone() else None
            )
            marks.slope_one(panel, None)
            counts.append(_count(rows, span))
            panel.set_title(f"{title}\n{counts[-1]}", loc="left")
            if side < WIDE_PANEL_PX:
                panel.xaxis.set_major_locator(LogLocator(base=10, numticks=4))
            if i % columns == 0:
                panel.set_ylabel("goodput (Mbit/s)")
            if i + columns >= len(sets):
                panel.set_xlabel("model (Mbit/s)")
                panel.tick_params(labelbottom=True)
        for panel in list(panels.flat)[len(sets) :]:
            panel.set_axis_off()
        notes = [*_span_in_words(span), *left_out_in_words(left_out)]
        marks.bold_headings(marks.legend_below(figure, groups), groups)
    figure.title = "Measured goodput against the model's bandwidth, stage by stage"
    panels_in_words = [f"{title}: {count}." for (title, _), count in zip(sets, counts, strict=True)]
    figure.description = " ".join([*panels_in_words, *(f"{text}." for text in notes)])
    figure.caption = caption(all_rows, notes)
    return figure


def _count(rows: Sequence[Row], span: tuple[float, float] | None) -> str:
    """How many trials there are, or how many of them lie within the span."""
    return f"{len(rows)} trials" if span is None else f"{count_within(rows, span)} of {len(rows)}"


def _span_in_words(span: tuple[float, float] | None) -> list[str]:
    if span is None:
        return []
    low, high = span
    ends = f"{low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
    return [f"Above each panel: trials with a goodput of {ends} times the model's, of all"]
