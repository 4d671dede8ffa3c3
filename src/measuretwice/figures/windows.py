"""The windows figure: one flow's congestion window against the other's."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row
from measuretwice.figures.style import (
    FAINT,
    INK,
    MARKER_SIZE,
    MODEL,
    Drawn,
    colour_of,
    in_style,
    on_phone,
    plain_axes,
    sized,
)
from measuretwice.figures.traces import first_of_each_trial, read_traces, summary_of, title_of
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import WindowsFigure
from measuretwice.measure.connections import Trace, common_interval
from measuretwice.runs.result import Result
from measuretwice.tcp.traces import interpolate


@figure(WindowsFigure, needs="raw files")
def windows(lab: Lab, declared: WindowsFigure, results: Sequence[Result]) -> Drawn:
    """One flow's window against the other's, with the lines of equal windows and equal rates.

    The first run of each trial has a panel. A row is a sample: trial, time_s since both flows are
    there, and each node's window in segments. UserError for a run that hasn't two flows.
    """
    runs = first_of_each_trial(results)
    columns = 1 if on_phone() else min(2, len(runs))
    lines = -(-len(runs) // columns)
    rows: list[Row] = []
    with in_style():
        drawn = sized(50 + 330 * lines)
        panels = drawn.subplots(lines, columns, squeeze=False)
        for panel, run in zip(panels.flat, runs, strict=False):
            traces, _ = read_traces(lab, run)
            if len(traces) != 2:
                raise UserError(
                    f"--figure {declared.id}: takes runs of two flows, not {len(traces)}"
                )
            rows += _draw_run(panel, run, *traces)
            panel.set_title(title_of(lab, run), loc="left")
        drawn.legend(
            *panels.flat[0].get_legend_handles_labels(),
            loc="outside upper left",
            ncols=3,
            borderpad=0,
        )
        for panel in list(panels.flat)[len(runs) :]:
            panel.set_axis_off()
    drawn.description = " ".join(f"{title_of(lab, run)}: {summary_of(run)}" for run in runs)
    drawn.caption = "one run a panel, from the dot on, while both flows are there"
    return drawn, rows


def _draw_run(panel: Axes, run: Result, first: Trace, second: Trace) -> list[Row]:
    """Draw both windows while both flows are there; return the rows."""
    start_s, end_s = common_interval([first, second])
    times = [t for t in first.time_s if start_s <= t <= end_s]
    x = [round(interpolate(first.time_s, first.cwnd_segments, t), 1) for t in times]
    y = [round(interpolate(second.time_s, second.cwnd_segments, t), 1) for t in times]
    colour = colour_of(run.params.get("congestion_control"))
    panel.plot(x, y, color=FAINT if colour == INK else colour, linewidth=0.8)
    panel.plot(x[:1], y[:1], marker="o", markersize=MARKER_SIZE, color=INK)
    most = 1.05 * max(*x, *y)
    x_rtt_ms, y_rtt_ms = (sum(trace.rtt_ms) / len(trace.rtt_ms) for trace in (first, second))
    # A window over its RTT is a rate: equal rates are a line of another slope.
    panel.plot([0, most], [0, most], color=MODEL, linewidth=1.1, label="equal windows")
    panel.plot([0, most], [0, most * y_rtt_ms / x_rtt_ms], color=MODEL, linewidth=1.1,
        linestyle="--", label="equal rates")  # fmt: skip
    panel.set_xlim(0, most)
    panel.set_ylim(0, most)
    panel.set_aspect("equal")
    plain_axes(panel)
    panel.set_xlabel(f"{first.node}'s window (segments)")
    panel.set_ylabel(f"{second.node}'s window (segments)")
    return [
        {"trial": run.trial, "time_s": round(t - start_s, 3), first.node: a, second.node: b}
        for t, a, b in zip(times, x, y, strict=True)
    ]
