"""The figure of the window against the loss ratio: Figure 4 of the paper.

Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm",
ACM SIGCOMM CCR 27(3), 1997.
"""

from __future__ import annotations

from measuretwice.figures import marks
from measuretwice.figures.goodput_panel import (
    caption,
    in_words,
    left_out_in_words,
    limits_of,
    usable_rows,
)
from measuretwice.figures.registry import model_figure
from measuretwice.figures.rows import ModelRuns
from measuretwice.figures.style import DescribedFigure, in_style, logarithmic, sized

# What a run must have to stand in it.
KEYS = ("rtt_ms", "mss_bytes", "loss_ratio", "window_segments")


@model_figure("window-against-loss")
def window_against_loss(runs: ModelRuns) -> DescribedFigure:
    """The mean window, goodput * RTT / MSS in segments, against the loss ratio p.

    The lines are C/sqrt(p), and PFTK's goodput for the shortest and the longest RTT. Markers stand
    at the p that was set; a tick at the measured one, on its interval. A run that is in several
    sets counts once. UserError for no trial.
    """
    rows, left_out = usable_rows(runs, KEYS)
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
