"""The figures of a lab that has a model: pure functions from results to a matplotlib Figure.

Both first figures are those of Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP
Congestion Avoidance Algorithm", ACM SIGCOMM CCR 27(3), 1997: measured against model bandwidth (its
Figure 3), and the window against the loss ratio (its Figure 4). No window is opened and nothing
of pyplot's is used.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes

from measuretwice.base.errors import UserError
from measuretwice.figures import marks as parts
from measuretwice.figures.rows import (
    FIGURES,
    NamedSet,
    ParameterNames,
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
from measuretwice.figures.style import DescribedFigure, in_style, logarithmic
from measuretwice.runs.result import Result

NAMES = ParameterNames()
FIGURE_3_KEYS = ("rtt_ms", "mss_bytes", "model_mbit", "goodput_mbit")
FIGURE_4_KEYS = ("rtt_ms", "mss_bytes", "loss_ratio", "window_segments")
PANELS_A_ROW = 4
WIDTH_INCHES = 7.0


def draw(
    figure: str,
    sets: Sequence[NamedSet],
    published: Sequence[Published] = (),
    names: ParameterNames = NAMES,
) -> DescribedFigure:
    """Return the figure of that name, one of FIGURES, of all sets; UserError for another name.

    A run that is in several sets counts once where all are drawn together.
    """
    together = distinct([result for _, results in sets for result in results])
    if figure == "measured-against-model":
        return measured_against_model(together, published, names)
    if figure == "window-against-loss":
        return window_against_loss(together, names)
    if figure == "stages":
        return stages(sets, names)
    raise UserError(f"--figure {figure}: expected one of {', '.join(FIGURES)}")


def measured_against_model(
    results: Sequence[Result],
    published: Sequence[Published] = (),
    names: ParameterNames = NAMES,
) -> DescribedFigure:
    """Return Figure 3: goodput against the model's bandwidth, Mbit/s, with the line of slope one.

    `published` values are crosses with their trial's number, those of one trial joined by a line.
    UserError where no trial has both values.
    """
    rows, left_out = _usable(results, FIGURE_3_KEYS, names)
    said = _fit_in_words(rows, model_constant(results)) + _left_out_in_words(left_out)
    with in_style():
        figure = DescribedFigure(figsize=(WIDTH_INCHES, 5.0), layout="constrained")
        axes = figure.add_subplot()
        _goodput_panel(axes, rows, rows, _square_limits(rows, published))
        parts.slope_one(axes, "goodput = model")
        parts.published_values(axes, published)
        axes.set_xlabel("model's bandwidth (Mbit/s)")
        axes.set_ylabel("measured goodput (Mbit/s)")
        groups = parts.legend_groups(rows, published)
        legend = axes.legend(
            handles=parts.legend_handles(groups),
            loc="upper left",
            bbox_to_anchor=(1.01, 1.02),
            borderaxespad=0,
        )
        parts.bold_headings(legend, groups)
        parts.note(axes, said, (1, 0))
    figure.title = "Measured goodput against the model's bandwidth"
    figure.description = _in_words(rows, said)
    return figure


def window_against_loss(
    results: Sequence[Result], names: ParameterNames = NAMES
) -> DescribedFigure:
    """Return Figure 4: the mean window, goodput * RTT / MSS in segments, against the loss ratio p.

    The lines are C/sqrt(p), and PFTK's goodput for the shortest and the longest RTT. Markers stand
    at the p that was set; a tick at the measured one, on its interval. UserError for no trial.
    """
    rows, left_out = _usable(results, FIGURE_4_KEYS, names)
    said = _left_out_in_words(left_out)
    look = parts.looks(rows)
    rtts_ms = [row["rtt_ms"] for row in rows]
    with in_style():
        figure = DescribedFigure(figsize=(WIDTH_INCHES, 5.2), layout="constrained")
        axes = figure.add_subplot()
        logarithmic(axes)
        low, high = _limits([row["loss_ratio"] for row in rows], 1.4)
        axes.set_xlim(low, min(high, 1.0))
        axes.set_ylim(*_limits([row["window_segments"] for row in rows], 1.8))
        parts.model_lines(axes, sorted({min(rtts_ms), max(rtts_ms)}))
        for row in rows:
            parts.loss_bar(axes, row)
            parts.goodput_bar(axes, row, row["loss_ratio"], row["window_segments"])
            axes.plot(row["loss_ratio"], row["window_segments"], **look(row))
        axes.set_xlabel("loss ratio p: markers as set, ticks as measured")
        axes.set_ylabel("window: goodput · RTT / MSS (segments)")
        groups = [group for group in parts.legend_groups(rows) if group[0] != parts.INTERVAL]
        legend = axes.legend(
            handles=parts.legend_handles(groups, in_columns=True),
            loc="lower left",
            ncols=len(groups),
            columnspacing=1.4,
        )
        parts.bold_headings(legend, groups)
        parts.note(axes, ["Bars: 95 % intervals, by the number of losses", *said], (1, 1))
    figure.title = "Window against loss ratio"
    figure.description = _in_words(rows, said)
    return figure


def stages(sets: Sequence[NamedSet], names: ParameterNames = NAMES) -> DescribedFigure:
    """Return Figure 3 once for each of `sets`, in order, with the same axes, four panels a row.

    Each panel says how many of its trials have a ratio within the range that the lab expects.
    UserError for no set, or where no set has a trial with both values.
    """
    everything = distinct([result for _, results in sets for result in results])
    all_rows, left_out = _usable(everything, FIGURE_3_KEYS, names)
    span = ratio_range(everything)
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
        limits = _square_limits(all_rows)
        for i, (panel, title, (_, results)) in enumerate(
            zip(panels.flat, titles, sets, strict=False)
        ):
            rows = complete(rows_for_table(results, names), FIGURE_3_KEYS)
            _goodput_panel(panel, rows, all_rows, limits, size=3.5 if columns > 2 else None)
            parts.slope_one(panel, None)
            panel.set_title(title)
            counts.append(_count(rows, span))
            parts.note(panel, [counts[-1]], (1, 0))
            if i % columns == 0:
                panel.set_ylabel("goodput (Mbit/s)")
            if i + columns >= len(sets):
                panel.set_xlabel("model (Mbit/s)")
                panel.tick_params(labelbottom=True)
        for panel in list(panels.flat)[len(sets) :]:
            panel.set_axis_off()
        groups = parts.legend_groups(all_rows)
        said = [*_span_in_words(span), *_left_out_in_words(left_out)]
        legend = figure.legend(
            handles=parts.legend_handles(groups, in_columns=True),
            loc="outside lower center",
            ncols=len(groups),
            title="\n".join(said) or None,
        )
        parts.bold_headings(legend, groups)
    figure.title = "Measured goodput against the model's bandwidth, stage by stage"
    panels_said = [f"{title}: {count}." for (title, _), count in zip(sets, counts, strict=True)]
    figure.description = " ".join([*panels_said, *(f"{text}." for text in said)])
    return figure


def _usable(
    results: Sequence[Result], keys: Sequence[str], names: ParameterNames
) -> tuple[list[Row], int]:
    """The rows that can be drawn, and how many can't."""
    if not results:
        raise UserError("nothing to plot: there is no finished run; run ./lab run LAB first")
    rows = complete(rows_for_table(results, names), keys)
    if not rows:
        raise UserError(f"nothing to plot: none of {len(results)} runs has {', '.join(keys)}")
    return rows, len(results) - len(rows)


def _goodput_panel(
    axes: Axes,
    rows: Sequence[Row],
    all_rows: Sequence[Row],
    limits: tuple[float, float],
    size: float | None = None,
) -> None:
    """The trials of one panel; `all_rows` are those that shapes and greys are shared with."""
    look = parts.looks(all_rows)
    logarithmic(axes)
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.set_aspect("equal")
    for row in rows:
        parts.goodput_bar(axes, row, row["model_mbit"], row["goodput_mbit"])
        axes.plot(
            row["model_mbit"],
            row["goodput_mbit"],
            **look(row) | ({"markersize": size} if size else {}),
        )


def _limits(values: Sequence[float], room: float) -> tuple[float, float]:
    """An axis for these values, at least so long that two powers of ten stand at it."""
    low, high = min(values) / room, max(values) * room
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return (low, high) if last - first > 2 else (10.0**first, 10.0**last)


def _square_limits(rows: Sequence[Row], published: Sequence[Published] = ()) -> tuple[float, float]:
    values = [row[key] for row in rows for key in ("model_mbit", "goodput_mbit")]
    values += [mbit for value in published for mbit in (value.model_mbit, value.measured_mbit)]
    return _limits(values, 1.6)


def _fit_in_words(rows: Sequence[Row], constant: float) -> list[str]:
    fit = fit_rows(rows, constant)
    if fit is None:
        return []
    return [
        f"C = {fit.constant:#.3g} (95 %: {fit.low:#.3g} to {fit.high:#.3g}),",
        f"fitted to {fit.points} trials where the model applies",
    ]


def _left_out_in_words(left_out: int) -> list[str]:
    if not left_out:
        return []
    return [f"{left_out} trial{'' if left_out == 1 else 's'} left out: a value is missing"]


def _count(rows: Sequence[Row], span: tuple[float, float] | None) -> str:
    return f"{len(rows)} trials" if span is None else f"{count_within(rows, span)} of {len(rows)}"


def _span_in_words(span: tuple[float, float] | None) -> list[str]:
    if span is None:
        return []
    low, high = span
    ends = f"{low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
    return [f"In each panel: trials with a goodput of {ends} times the model's, of all"]


def _in_words(rows: Sequence[Row], said: Sequence[str]) -> str:
    applies = sum(row["comparable"] for row in rows)
    words = f"{len(rows)} trials; the model applies to {applies}."
    return f"{words} {' '.join(said)}." if said else words
