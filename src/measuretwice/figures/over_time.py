"""The over-time figure: each flow's window, and below it the queue or its delay; a pair of panels a trial."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row
from measuretwice.figures.style import (
    FAINT,
    INK,
    QUEUE,
    Drawn,
    colour_of,
    in_style,
    on_phone,
    plain_axes,
    sized,
)
from measuretwice.figures.traces import first_of_each_trial, read_traces, summary_of, title_of
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import OverTimeFigure
from measuretwice.runs.result import Result

# A line for each flow, the first stands out; more of them begin anew.
LINES: tuple[dict[str, Any], ...] = (
    {"color": INK, "linewidth": 1.3},
    {"color": FAINT, "linewidth": 1.5, "linestyle": (0, (4, 1.5))},
    {"color": FAINT, "linewidth": 1.3, "linestyle": ":"},
)

# A panel is some three hundred points wide: of what stands within one only the least and the most is seen.
COLUMNS = 300
LOWER_LABELS = {"queue": "queue (packets)", "round-trip": "RTT (ms)"}


@figure(OverTimeFigure, needs="raw files")
def over_time(lab: Lab, declared: OverTimeFigure, results: Sequence[Result]) -> Drawn:
    """The first run of each trial: windows above, the queue or the round-trip time below.

    A row is a sample: trial, what (`NODE cwnd_segments`, `NODE rtt_ms` or queue_packets), time_s
    since the first flow's first sample, value.
    """
    runs = first_of_each_trial(results)
    columns = 1 if on_phone() else min(2, len(runs))
    lines = -(-len(runs) // columns)
    rows: list[Row] = []
    with in_style():
        drawn = sized(60 + 265 * lines)
        panels = drawn.subplots(
            2 * lines, columns, sharex=True, sharey="row", squeeze=False,
            height_ratios=[2, 1] * lines,
        )  # fmt: skip
        for panel in panels.flat:
            plain_axes(panel)
        for place, run in enumerate(runs):
            line, column = divmod(place, columns)
            upper, lower = panels[2 * line][column], panels[2 * line + 1][column]
            rows += _draw_run(upper, lower, lab, run, declared.below)
            if column == 0:
                upper.set_ylabel("window (segments)")
                lower.set_ylabel(LOWER_LABELS[declared.below])
            if line == lines - 1:
                lower.set_xlabel("time (s)")
        if (nodes := [line.get_label() for line in panels[0][0].lines])[1:]:
            handles = [
                Line2D([], [], label=node, **look)
                for node, look in zip(nodes, itertools.cycle(LINES), strict=False)
            ]
            drawn.legend(handles=handles, loc="outside upper left", ncols=3, borderpad=0)
        if on_phone():
            _share_heights(list(panels[:, 0]))
        for panel in list(panels.flat):
            if not panel.has_data():
                panel.set_axis_off()
    drawn.description = " ".join(f"{title_of(lab, run)}: {summary_of(run)}" for run in runs)
    drawn.caption = "one run a panel"
    return drawn, rows


def _share_heights(panels: Sequence[Axes]) -> None:
    """Those that stand beside each other on a desk have the same axes below each other, too."""
    for first in range(0, len(panels), 4):
        for kind in (0, 1):
            pair = panels[first + kind : first + 4 : 2]
            ends = [panel.get_ylim() for panel in pair]
            for panel in pair:
                panel.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def _draw_run(upper: Axes, lower: Axes, lab: Lab, run: Result, below: str) -> list[Row]:
    """Draw a run's windows into `upper`, its queue or delay into `lower`; return the rows."""
    traces, queue = read_traces(lab, run)
    start_s = min(trace.time_s[0] for trace in traces)
    end_s = max(trace.time_s[-1] for trace in traces)
    rows: list[Row] = []
    algorithm = {"color": colour_of(run.params.get("congestion_control"))}
    looks = itertools.cycle([LINES[0] | algorithm, *LINES[1:]])
    for trace, look in zip(traces, looks, strict=False):
        times = [round(time_s - start_s, 3) for time_s in trace.time_s]
        upper.plot(*thinned(times, trace.cwnd_segments), label=trace.node, **look)
        rows += [
            {"trial": run.trial, "what": f"{trace.node} cwnd_segments", "time_s": t, "value": v}
            for t, v in zip(times, trace.cwnd_segments, strict=True)
        ]
        if below == "round-trip":
            lower.plot(*thinned(times, trace.rtt_ms), **look)
            rows += [
                {"trial": run.trial, "what": f"{trace.node} rtt_ms", "time_s": t, "value": v}
                for t, v in zip(times, trace.rtt_ms, strict=True)
            ]
    if queue and below == "queue":
        samples = [
            (round(time_s - start_s, 3), packets)
            for time_s, packets in zip(queue.time_s, queue.backlog_packets, strict=True)
            if start_s <= time_s <= end_s
        ]
        times, packets = ([sample[n] for sample in samples] for n in (0, 1))
        lower.fill_between(*thinned(times, packets), color=QUEUE, linewidth=0)
        rows += [
            {"trial": run.trial, "what": "queue_packets", "time_s": t, "value": v}
            for t, v in samples
        ]
    upper.set_title(title_of(lab, run), loc="left")
    return rows


def thinned(times: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return what is seen of samples over time: of each column's the first, the least and the most."""
    if len(times) <= 3 * COLUMNS:
        return list(times), list(values)
    kept: set[int] = {len(times) - 1}
    width = (times[-1] - times[0]) / COLUMNS or 1.0
    for _, group in itertools.groupby(
        range(len(times)), key=lambda n: int((times[n] - times[0]) / width)
    ):
        column = list(group)
        kept |= {
            column[0],
            min(column, key=values.__getitem__),
            max(column, key=values.__getitem__),
        }
    return [times[n] for n in sorted(kept)], [values[n] for n in sorted(kept)]
