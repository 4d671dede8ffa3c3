"""Figures of runs against a model: goodput against the model's bandwidth, the window against the loss ratio, both
for each stage, and how far runs lie from the model by their number of losses.

The first two are Figures 3 and 4 of Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion
Avoidance Algorithm", ACM SIGCOMM CCR 27(3), 1997.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from measuretwice.base.errors import UserError
from measuretwice.figures import marks
from measuretwice.figures.rows import (
    ModelRuns,
    Published,
    Row,
    complete,
    count_within,
    distinct,
    fit_rows,
    model_constant,
    ratio_range,
    rows_for_table,
)
from measuretwice.figures.style import (
    FAINT,
    GRID,
    INK,
    PHONE_PX,
    WIDTH_PX,
    DescribedFigure,
    in_style,
    logarithmic,
    marker_style,
    on_phone,
    sized,
)
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import ratio_bounds

# What they share: panels of goodput, limits of axes, words

# What a run must have to stand in a panel of goodput against the model.
KEYS = ("rtt_ms", "mss_bytes", "model_mbit", "goodput_mbit")


def usable_rows(runs: ModelRuns, keys: Sequence[str]) -> tuple[list[Row], int]:
    """Return the rows that have all of `keys`, and how many runs have none; UserError for no row."""
    results = runs.results
    if not results:
        raise UserError("nothing to plot: there is no finished run; run ./lab run LAB first")
    rows = complete(rows_for_table(results, runs.names), keys)
    if not rows:
        raise UserError(f"nothing to plot: none of {len(results)} runs has {', '.join(keys)}")
    return rows, len(results) - len(rows)


def goodput_panel(
    axes: Axes,
    rows: Sequence[Row],
    all_rows: Sequence[Row],
    limits: tuple[float, float],
    size: float | None = None,
) -> None:
    """Draw the trials of one panel; `all_rows` are those that shapes and colours are shared with."""
    look = marks.looks(all_rows)
    logarithmic(axes)
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.set_aspect("equal")
    for row in rows:
        marks.goodput_bar(axes, row, row["model_mbit"], row["goodput_mbit"])
        axes.plot(
            row["model_mbit"],
            row["goodput_mbit"],
            **look(row) | ({"markersize": size} if size else {}),
        )


def limits_of(values: Sequence[float], room: float) -> tuple[float, float]:
    """Return the ends of an axis for these values, `room` times beyond them, so that at least two
    powers of ten stand at it."""
    low, high = min(values) / room, max(values) * room
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return (low, high) if last - first > 2 else (10.0**first, 10.0**last)


def square_limits(rows: Sequence[Row], published: Sequence[Published] = ()) -> tuple[float, float]:
    """Return the ends of both axes of goodput against the model, in Mbit/s."""
    values = [row[key] for row in rows for key in ("model_mbit", "goodput_mbit")]
    values += [mbit for value in published for mbit in (value.model_mbit, value.measured_mbit)]
    return limits_of(values, 1.6)


def left_out_in_words(left_out: int) -> list[str]:
    """Return a line on the runs that have no place in the figure; none where all have."""
    if not left_out:
        return []
    return [f"{left_out} trial{'' if left_out == 1 else 's'} left out: a value is missing"]


def trials_or_runs(rows: Sequence[Row]) -> str:
    """Return what rows are of: a trial that is there more than once was run more than once."""
    return "trials" if len({row["trial"] for row in rows}) == len(rows) else "runs"


def in_words(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Return a figure's description: how many trials, and what its notes say."""
    applies = sum(row["comparable"] for row in rows)
    words = f"{len(rows)} {trials_or_runs(rows)}; the model applies to {applies}."
    return f"{words} {' '.join(notes)}." if notes else words


def caption(rows: Sequence[Row], notes: Sequence[str] = (), bars: bool = True) -> str:
    """Return what stands below a figure: how many trials, what its notes say, what bars mean."""
    text = f"{len(rows)} {trials_or_runs(rows)}, a mark each; {in_words(rows, notes).split('; ', 1)[1]}"
    if bars and any(row["losses"] is not None for row in rows):
        return f"{text} Bars: 95 % interval by the number of losses"
    return text.removesuffix(".")


# Goodput against the model


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


# The window against the loss ratio

# What a run must have to stand in it.
WINDOW_KEYS = ("rtt_ms", "mss_bytes", "loss_ratio", "window_segments")


def window_against_loss(runs: ModelRuns) -> DescribedFigure:
    """The mean window, goodput * RTT / MSS in segments, against the loss ratio p.

    The lines are C/sqrt(p), and PFTK's goodput for the shortest and the longest RTT. Markers stand
    at the p that was set; a tick at the measured one, on its interval. A run that is in several
    sets counts once. UserError for no trial.
    """
    rows, left_out = usable_rows(runs, WINDOW_KEYS)
    notes = left_out_in_words(left_out)
    look = marks.looks(rows)
    rtts_ms = [row["rtt_ms"] for row in rows]
    with in_style():
        groups = [group for group in marks.legend_groups(rows) if group[0] != marks.INTERVAL]
        figure = sized(380 + marks.legend_height_px(groups))
        axes = figure.add_subplot()
        logarithmic(axes)
        low, high = limits_of([row["loss_ratio"] for row in rows], 1.4)
        axes.set_xlim(low, min(high, 1.0))
        axes.set_ylim(*limits_of([row["window_segments"] for row in rows], 1.8))
        marks.model_lines(axes, sorted({min(rtts_ms), max(rtts_ms)}))
        for row in rows:
            marks.loss_bar(axes, row)
            marks.goodput_bar(axes, row, row["loss_ratio"], row["window_segments"])
            axes.plot(row["loss_ratio"], row["window_segments"], **look(row))
        axes.set_xlabel("loss ratio p: markers as set, ticks as measured")
        axes.set_ylabel("window: goodput · RTT / MSS (segments)")
        legend = marks.legend_below(figure, groups)
        marks.bold_headings(legend, groups)
    figure.title = "Window against loss ratio"
    figure.description = in_words(rows, notes)
    figure.caption = caption(rows, notes)
    return figure


# A panel for each set of runs

# Panels beside each other have room for their titles and for the numbers at their axes.
PANELS_A_ROW, PHONE_PANELS_A_ROW = 4, 2
LINE_PX, AXIS_PX = 17, 60
# In a narrower one not each power of ten has its number.
WIDE_PANEL_PX = 250


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
    figure.title = "Measured goodput against the model's bandwidth, step by step"
    panels_in_words = [f"{title}: {count}." for (title, _), count in zip(sets, counts, strict=True)]
    figure.description = " ".join([*panels_in_words, *(f"{text}." for text in notes)])
    figure.caption = caption(all_rows, notes)
    return figure


def _count(rows: Sequence[Row], span: tuple[float, float] | None) -> str:
    """Return the number of trials as words, or of those that lie within the span."""
    return f"{len(rows)} trials" if span is None else f"{count_within(rows, span)} of {len(rows)}"


def _span_in_words(span: tuple[float, float] | None) -> list[str]:
    if span is None:
        return []
    low, high = span
    ends = f"{low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
    return [f"Above each panel: trials with a goodput of {ends} times the model's, of all"]


# How far runs lie from the model

BAND_POINTS = 60


def spread(
    results: Sequence[Result], fitted: Sequence[Result], max_loss_ratio: float
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
    figure.caption = f"{len(rows)} runs, one mark each; grey: where 95 % of runs lie by chance alone, around C = {centre:.2f}"
    return figure
