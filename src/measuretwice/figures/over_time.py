"""The figures that a lab declares in its [[figures]]: flows, windows and queues over time, and
values against a parameter. Each kind is a function from runs to a figure and its rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.figures import boxes as plot_boxes
from measuretwice.figures import regression as plot_regression
from measuretwice.figures import sequence as plot_sequence
from measuretwice.figures.style import (
    FAINT,
    INK,
    MARKER_SIZE,
    MIDDLE,
    DescribedFigure,
    in_style,
    plain,
    plain_axes,
    shades,
    shapes,
)
from measuretwice.lab import (
    AgainstFigure,
    FigureOf,
    Lab,
    OverTimeFigure,
    WindowsFigure,
    select_trials,
)
from measuretwice.measure import flows
from measuretwice.parse import ParseError
from measuretwice.runs.archive import raw_folder
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import mean_interval
from measuretwice.tcp.window import at

Row = dict[str, Any]
Drawn = tuple[DescribedFigure, list[Row]]
WIDTH_INCHES = 7.0
# A line for each flow, the first the darkest; more of them begin anew.
LINES: tuple[dict[str, Any], ...] = (
    {"color": INK, "linewidth": 1.0},
    {"color": FAINT, "linewidth": 1.3, "linestyle": (0, (4, 1.5))},
    {"color": MIDDLE, "linewidth": 1.0, "linestyle": ":"},
)


def draw(lab: Lab, figure: FigureOf, results: Sequence[Result]) -> Drawn:
    """Return one of a lab's figures of these runs, and the rows that it shows.

    UserError where no run is of the figure's trials, or one lacks what it needs.
    """
    wanted = select_trials(lab, figure.trials)
    own = [result for result in results if result.trial in wanted]
    if not own:
        raise UserError(f"--figure {figure.id}: none of these runs is of trials {figure.trials}")
    own.sort(key=lambda result: (result.trial, result.seed))
    drawn, rows = KINDS[figure.kind](lab, figure, own)
    drawn.title = figure.title
    return drawn, rows


def _over_time(lab: Lab, figure: OverTimeFigure, results: Sequence[Result]) -> Drawn:
    """The first run of each trial: windows above, the queue below."""
    runs = _first_of_each(results)
    columns = min(2, len(runs))
    lines = -(-len(runs) // columns)
    rows: list[Row] = []
    said = []
    with in_style():
        drawn = DescribedFigure(figsize=(WIDTH_INCHES, 0.6 + 2.7 * lines), layout="constrained")
        panels = drawn.subplots(
            2 * lines, columns, sharex=True, sharey="row", squeeze=False,
            height_ratios=[2, 1] * lines,
        )  # fmt: skip
        for panel in panels.flat:
            plain_axes(panel)
        for place, run in enumerate(runs):
            line, column = divmod(place, columns)
            upper, lower = panels[2 * line][column], panels[2 * line + 1][column]
            those, queue = _read(lab, run)
            start_s = min(trace.time_s[0] for trace in those)
            for trace, look in zip(those, itertools.cycle(LINES), strict=False):
                times = [round(time_s - start_s, 3) for time_s in trace.time_s]
                upper.plot(times, trace.cwnd_segments, label=trace.node, **look)
                rows += [
                    {"trial": run.trial, "what": f"{trace.node} cwnd_segments", "time_s": t, "value": v}
                    for t, v in zip(times, trace.cwnd_segments, strict=True)
                ]  # fmt: skip
            if queue:
                inside = [
                    (round(time_s - start_s, 3), packets)
                    for time_s, packets in zip(queue.time_s, queue.backlog_packets, strict=True)
                    if start_s <= time_s <= max(trace.time_s[-1] for trace in those)
                ]
                lower.fill_between(*zip(*inside, strict=True), color=FAINT, linewidth=0)
                rows += [
                    {"trial": run.trial, "what": "queue_packets", "time_s": t, "value": v}
                    for t, v in inside
                ]
            upper.set_title(_named(lab, run))
            if column == 0:
                upper.set_ylabel("window (segments)")
                lower.set_ylabel("queue (packets)")
            if line == lines - 1:
                lower.set_xlabel("time (s)")
            said.append(f"{_named(lab, run)}: {_in_words(run)}")
        panels[0][0].legend(loc="upper right", ncols=3)
        for panel in list(panels.flat):
            if not panel.has_data():
                panel.set_axis_off()
    drawn.description = " ".join(said)
    return drawn, rows


def _windows(lab: Lab, figure: WindowsFigure, results: Sequence[Result]) -> Drawn:
    """One flow's window against the other's, with the lines of equal windows and equal rates."""
    runs = _first_of_each(results)
    columns = min(2, len(runs))
    lines = -(-len(runs) // columns)
    rows: list[Row] = []
    said = []
    with in_style():
        drawn = DescribedFigure(figsize=(WIDTH_INCHES, 0.6 + 3.2 * lines), layout="constrained")
        panels = drawn.subplots(lines, columns, squeeze=False)
        for panel, run in zip(panels.flat, runs, strict=False):
            those, _ = _read(lab, run)
            if len(those) != 2:
                raise UserError(f"--figure {figure.id}: takes runs of two flows, not {len(those)}")
            first, second = those
            start_s, end_s = flows.common_interval(those)
            times = [t for t in first.time_s if start_s <= t <= end_s]
            x = [round(at(first.time_s, first.cwnd_segments, t), 1) for t in times]
            y = [round(at(second.time_s, second.cwnd_segments, t), 1) for t in times]
            panel.plot(x, y, color=MIDDLE, linewidth=0.6)
            panel.plot(x[:1], y[:1], marker="o", markersize=MARKER_SIZE, color=INK)
            most = 1.05 * max(*x, *y)
            rtts = [sum(trace.rtt_ms) / len(trace.rtt_ms) for trace in those]
            # A window over its RTT is a rate: equal rates are a line of another slope.
            panel.plot([0, most], [0, most], color=INK, linewidth=0.7, label="equal windows")
            panel.plot([0, most], [0, most * rtts[1] / rtts[0]], color=INK, linewidth=0.7,
                linestyle="--", label="equal rates")  # fmt: skip
            panel.set_xlim(0, most)
            panel.set_ylim(0, most)
            panel.set_aspect("equal")
            plain_axes(panel)
            panel.set_title(_named(lab, run))
            panel.set_xlabel(f"{first.node}'s window (segments)")
            panel.set_ylabel(f"{second.node}'s window (segments)")
            rows += [
                {"trial": run.trial, "time_s": round(t - start_s, 3), first.node: a, second.node: b}
                for t, a, b in zip(times, x, y, strict=True)
            ]  # fmt: skip
            said.append(f"{_named(lab, run)}: {_in_words(run)}")
        lines_drawn = panels.flat[0].get_legend_handles_labels()
        drawn.legend(*lines_drawn, loc="outside lower center", ncols=2)
        for panel in list(panels.flat)[len(runs) :]:
            panel.set_axis_off()
    drawn.description = " ".join(said)
    return drawn, rows


def _against(lab: Lab, figure: AgainstFigure, results: Sequence[Result]) -> Drawn:
    """The mean of a measured value against a parameter, with the 95 % interval of its runs."""
    cells: dict[tuple[str, float], list[float]] = {}
    for result in results:
        value = result.measured.get(figure.y)
        if value is not None:
            by, x = str(result.params[figure.by]), float(result.params[figure.x])
            cells.setdefault((by, x / figure.x_unit), []).append(value / figure.y_unit)
    if not cells:
        raise UserError(f"--figure {figure.id}: none of {len(results)} runs has a {figure.y}")
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
    names = sorted({row["by"] for row in rows})
    shape = shapes(list(range(len(names))))
    shade = shades(list(range(len(names))))
    with in_style():
        drawn = DescribedFigure(figsize=(WIDTH_INCHES, 4.0), layout="constrained")
        panel = drawn.subplots()
        plain_axes(panel)
        panel.set_xscale("log")
        xs = sorted({row["x"] for row in rows})
        panel.set_xticks(xs, [plain(x) for x in xs])
        panel.minorticks_off()
        for n, name in enumerate(names):
            own = [row for row in rows if row["by"] == name]
            # Side by side, so that intervals don't cover each other.
            places = [row["x"] * 1.035 ** (n - (len(names) - 1) / 2) for row in own]
            bars = [
                [row["mean"] - row["low"] if row["low"] is not None else 0 for row in own],
                [row["high"] - row["mean"] if row["high"] is not None else 0 for row in own],
            ]
            panel.errorbar(
                places, [row["mean"] for row in own], bars, label=name, color=shade[n],
                marker=shape[n], markersize=MARKER_SIZE, linewidth=0.9, elinewidth=0.8, capsize=2,
            )  # fmt: skip
        panel.set_xlabel(figure.x_label or figure.x)
        panel.set_ylabel(figure.y_label or figure.y)
        panel.legend()
    fewest = min(row["runs"] for row in rows)
    drawn.description = (
        f"{figure.y_label or figure.y} against {figure.x_label or figure.x}, by {figure.by}, means of "
        f"at least {fewest} run{'s' if fewest > 1 else ''} each: "
        + "; ".join(
            f"{name} "
            + ", ".join(f"{row['mean']:.3g} at {row['x']:g}" for row in rows if row["by"] == name)
            for name in names
        )
        + "."
    )
    return drawn, rows


KINDS: dict[str, Callable[[Lab, Any, Sequence[Result]], Drawn]] = {
    "boxes": plot_boxes.boxes,
    "over-time": _over_time,
    "windows": _windows,
    "against": _against,
    "sequence": plot_sequence.sequence,
    "regression": plot_regression.regression,
}


def _first_of_each(results: Sequence[Result]) -> list[Result]:
    first: dict[int, Result] = {}
    for result in results:
        first.setdefault(result.trial, result)
    return list(first.values())


def _read(lab: Lab, run: Result) -> tuple[list[flows.Trace], flows.Queue | None]:
    """A run's traces and queue, from its folder or its archive."""
    folder = run.place
    try:
        with raw_folder(folder) as raw:
            return flows.traces(lab, raw), flows.queue(lab, raw)
    except (ParseError, OSError) as error:
        raise UserError(f"{folder.name}: its raw files can't be read: {error}") from None


def _named(lab: Lab, run: Result) -> str:
    """A run by what its trial sets, in words."""
    return f"trial {run.trial}: {_setting(lab, run)}"


def _setting(lab: Lab, run: Result) -> str:
    """Those of a trial's values that other trials have otherwise."""
    own = lab.trials[run.trial].set
    others = [trial.set for trial in lab.trials.values()]
    told = [name for name in own if len({str(other.get(name)) for other in others}) > 1]
    return ", ".join(_value(name, run.params.get(name)) for name in told[:2])


def _value(name: str, value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:,} {name.rsplit('_', 1)[-1]}"
    return str(value)


def _in_words(run: Result) -> str:
    measured = run.measured
    parts = []
    for name, words, scale in (
        ("jains_index", "Jain's index {:.3f}", 1.0),
        ("utilisation", "{:.1f} % of the link in use", 100.0),
        ("queue_mean_packets", "{:.0f} packets in the queue on average", 1.0),
    ):
        value = measured.get(name)
        if value is not None:
            parts.append(words.format(scale * value))
    return ", ".join(parts) + "."
