"""Figures of runs over time: windows and queue, one window against the other, the packets of a capture."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from measuretwice.base import in_groups
from measuretwice.base.errors import UserError
from measuretwice.figures.rows import Row, counted_runs
from measuretwice.figures.style import (
    FAINT,
    INK,
    MARKER_SIZE,
    MODEL,
    QUEUE,
    Drawn,
    colour_of,
    in_style,
    line_looks,
    on_phone,
    plain_axes,
    sized,
)
from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.results import (
    EvennessFigure,
    OverTimeFigure,
    SequenceFigure,
    WindowsFigure,
)
from measuretwice.measure.connections import Trace, common_interval, traces
from measuretwice.measure.queue import Queue, queue
from measuretwice.parse import ParseError
from measuretwice.parse.tcpdump import parse_tcpdump
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result
from measuretwice.runs.series import STEP_S, jains_over_time, series_of_run
from measuretwice.tcp.traces import TimeSequence, interpolate, time_sequence

# A run's traces, and a run in words

# Measured values that describe a run: their name, the words, and what they are multiplied by.
SUMMARY = (
    ("jains_index", "Jain's index {:.3f}", 1.0),
    ("utilisation", "{:.1f} % of the link in use", 100.0),
    ("queue_mean_packets", "{:.0f} packets in the queue on average", 1.0),
)

# What was read of runs' folders, while that is kept.
Known = dict[tuple[Path, Path], tuple[list[Trace], Queue | None]]
_kept: ContextVar[Known | None] = ContextVar("kept", default=None)


@contextmanager
def read_once() -> Iterator[None]:
    """A context in which each run's traces are read once: a figure is drawn in several layouts."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def first_of_each_trial(results: Sequence[Result]) -> list[Result]:
    """Return the first run of each trial, in the order of `results`."""
    first: dict[int, Result] = {}
    for result in results:
        first.setdefault(result.trial, result)
    return list(first.values())


def read_traces(lab: Lab, run: Result) -> tuple[list[Trace], Queue | None]:
    """Return each flow's window over time and the queue, from a run's folder or its archive.

    UserError where its raw files can't be read.
    """
    folder, cache = run.run_dir, _kept.get()
    if cache is not None and (lab.folder, folder) in cache:
        return cache[lab.folder, folder]
    try:
        with raw_folder(folder) as raw:
            read = traces(lab, raw), queue(lab, raw)
    except (ParseError, OSError) as error:
        raise UserError(f"{folder.name}: its raw files can't be read: {error}") from None
    if cache is not None:
        cache[lab.folder, folder] = read
    return read


def title_of(lab: Lab, run: Result) -> str:
    """Return a run's title: its trial, and the first two values that other trials have otherwise."""
    values = lab.trials[run.trial].set
    others = [trial.set for trial in lab.trials.values()]
    differing = [name for name in values if len({str(other.get(name)) for other in others}) > 1]
    settings = ", ".join(_value(name, run.params.get(name)) for name in differing[:2])
    return f"trial {run.trial}: {settings}"


def _value(name: str, value: Value | None) -> str:
    """A parameter's value, a number with the unit that its name ends in."""
    if isinstance(value, int | float):
        return f"{in_groups(str(value))} {name.rsplit('_', 1)[-1]}"
    return str(value)


def summary_of(run: Result) -> str:
    """Return what was measured of a run, as a sentence."""
    parts = []
    for name, words, scale in SUMMARY:
        value = run.value(name)
        if value is not None:
            parts.append(words.format(scale * value))
    return ", ".join(parts) + "."


# Each flow's window, and below it the queue or its delay

# A line for each flow, the first stands out; more of them begin anew.
LINES: tuple[dict[str, Any], ...] = (
    {"color": INK, "linewidth": 1.3},
    {"color": FAINT, "linewidth": 1.5, "linestyle": (0, (4, 1.5))},
    {"color": FAINT, "linewidth": 1.3, "linestyle": ":"},
)

# A panel is some three hundred points wide: of what stands within one only the least and the most is seen.
COLUMNS = 300
LOWER_LABELS = {"queue": "queue (packets)", "round-trip": "RTT (ms)"}


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
        for index, run in enumerate(runs):
            line, column = divmod(index, columns)
            upper, lower = panels[2 * line][column], panels[2 * line + 1][column]
            rows += _draw_windows_and_queue(upper, lower, lab, run, declared.below)
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
    drawn.caption = "one run per panel"
    return drawn, rows


def _share_heights(panels: Sequence[Axes]) -> None:
    """Those that stand beside each other on a desk have the same axes below each other, too."""
    for first in range(0, len(panels), 4):
        for kind in (0, 1):
            pair = panels[first + kind : first + 4 : 2]
            ends = [panel.get_ylim() for panel in pair]
            for panel in pair:
                panel.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def _draw_windows_and_queue(
    upper: Axes, lower: Axes, lab: Lab, run: Result, below: str
) -> list[Row]:
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
    indices: set[int] = {len(times) - 1}
    width = (times[-1] - times[0]) / COLUMNS or 1.0
    for _, group in itertools.groupby(
        range(len(times)), key=lambda n: int((times[n] - times[0]) / width)
    ):
        column = list(group)
        indices |= {
            column[0],
            min(column, key=values.__getitem__),
            max(column, key=values.__getitem__),
        }
    return [times[n] for n in sorted(indices)], [values[n] for n in sorted(indices)]


# One flow's window against the other's


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
            rows += _draw_windows(panel, run, *traces)
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
    drawn.caption = "one run per panel, from the dot on, while both flows are there"
    return drawn, rows


def _draw_windows(panel: Axes, run: Result, first: Trace, second: Trace) -> list[Row]:
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


# A capture's packets as dots, the acknowledged line below them

# Around the first packet that was sent again.
BEFORE_S, AFTER_S = 0.06, 0.12
# Of so many places each way the dots of a whole capture are told apart: a third of a pixel each. Near the first loss
# all are shown.
DOTS = 900


def sequence(lab: Lab, declared: SequenceFigure, results: Sequence[Result]) -> Drawn:
    """The first of these runs: its whole capture, and the time about its first retransmission.

    A row is a packet: what (sent, again or acked), time_s, first_byte, end_byte.
    """
    run = results[0]
    packets = _read_capture(lab, run)
    megabytes = 1e6
    again_s = packets.again[0][0] if packets.again else None
    with in_style():
        count = 2 if again_s is not None else 1
        drawn = sized(40 + 270 * count if on_phone() else 330)
        panels = drawn.subplots(*((count, 1) if on_phone() else (1, count)), squeeze=False).flat
        ends = [(time_s, end / megabytes) for time_s, _, end in packets.sent]
        near = [] if again_s is None else [
            (time_s, end) for time_s, end in ends if again_s - BEFORE_S <= time_s <= again_s + AFTER_S
        ]  # fmt: skip
        for panel, sent in zip(panels, (_visible(ends), near), strict=False):
            _draw_packets(
                panel, packets, sent, megabytes, colour_of(run.params.get("congestion_control"))
            )
        panels[0].set_ylabel("sequence number (MB)")
        drawn.legend(
            *panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, borderpad=0,
            markerscale=2, handletextpad=0.4, columnspacing=1.2,
        )  # fmt: skip
        panels[0].set_title("from the first packet on", loc="left")
        if again_s is not None:
            panels[1].set_title("about the first loss", loc="left")
            panels[1].set_xlim(again_s - BEFORE_S, again_s + AFTER_S)
            panels[1].xaxis.set_major_locator(MaxNLocator(4))
            low = min((a for t, a in packets.acked if t >= again_s - BEFORE_S), default=0)
            panels[1].set_ylim(
                0.98 * low / megabytes, 1.02 * max((end for _, end in near), default=1e-6)
            )
    drawn.caption = "one run, a dot a packet"
    drawn.description = (
        f"{len(packets.sent)} packets sent once and {len(packets.again)} sent again"
        + (f", the first of these after {again_s:.3g} s" if again_s is not None else "")
        + f"; {packets.acked[-1][1] / megabytes:.3g} MB acknowledged in {packets.acked[-1][0]:.3g} s."
    )
    rows: list[Row] = [
        {"what": what, "time_s": time_s, "first_byte": first, "end_byte": end}
        for what, listed in (("sent", packets.sent), ("again", packets.again))
        for time_s, first, end in listed
    ]
    rows += [
        {"what": "acked", "time_s": time_s, "first_byte": None, "end_byte": end}
        for time_s, end in packets.acked
    ]
    return drawn, rows


def _draw_packets(
    panel: Axes,
    packets: TimeSequence,
    sent: Sequence[tuple[float, float]],
    unit: float,
    colour: str,
) -> None:
    plain_axes(panel)
    panel.plot(
        [t for t, _ in sent], [end for _, end in sent], linestyle="", marker=".", markersize=2.4,
        color=FAINT, label="sent",
    )  # fmt: skip
    panel.step(
        [t for t, _ in packets.acked], [a / unit for _, a in packets.acked], where="post",
        color=colour, linewidth=1.2, label="acknowledged",
    )  # fmt: skip
    if packets.again:
        panel.plot(
            [t for t, _, _ in packets.again], [end / unit for _, _, end in packets.again],
            linestyle="", marker="x", markersize=5.5, color=INK, label="sent again",
        )  # fmt: skip
    panel.set_xlabel("time (s)")


def _visible(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of points that cover each other in the panel of the whole capture, only one."""
    visible: dict[tuple[int, int], tuple[float, float]] = {}
    width = points[-1][0] / DOTS or 1.0
    height = max(y for _, y in points) / DOTS or 1.0
    for t, y in points:
        visible.setdefault((round(t / width), round(y / height)), (t, y))
    return list(visible.values())


def _read_capture(lab: Lab, run: Result) -> TimeSequence:
    where = lab.file.collect.one_sender
    if where is None or where.capture is None:
        raise UserError(f"{lab.name}: collect.one_sender.capture: names no capture to draw")
    folder = run.run_dir
    try:
        with raw_folder(folder) as raw:
            path = raw / where.node / where.capture
            text = path.read_text(encoding="utf-8", errors="replace")
            return time_sequence(parse_tcpdump(text, where.capture))
    except (ParseError, OSError, ValueError) as error:
        raise UserError(f"{folder.name}: its capture can't be read: {error}") from None


# Jain's index over time, a line a run

EVENNESS_HEIGHT_PX, EVENNESS_PHONE_HEIGHT_PX = 340, 280


def evenness(lab: Lab, declared: EvennessFigure, results: Sequence[Result]) -> Drawn:
    """Jain's index of what all flows of a run got in each `step_s` seconds.

    A row is a point: run (its flows and seed), end_s since the run's first sample, jains_index. UserError where a run
    kept neither raw files nor a series, where its files can't be read, or where all are too short.
    """
    try:
        series = [series_of_run(lab, run) for run in results]
    except (ParseError, OSError) as error:
        raise UserError(f"--figure {declared.id}: can't read raw files ({error})") from None
    names = [
        f"{len(flows)} flows, seed {run.seed}" for run, flows in zip(results, series, strict=True)
    ]
    rows: list[Row] = []
    with in_style():
        drawn = sized(EVENNESS_PHONE_HEIGHT_PX if on_phone() else EVENNESS_HEIGHT_PX)
        panel = drawn.subplots()
        plain_axes(panel)
        for flows, name, look in zip(series, names, line_looks(names), strict=True):
            points = jains_over_time(flows, declared.step_s // STEP_S)
            rows += [
                {"run": name, "end_s": end_s, "jains_index": float(f"{index:.6g}")}
                for end_s, index in points
            ]
            minutes, indices = [end_s / 60 for end_s, _ in points], [index for _, index in points]
            panel.plot(minutes, indices, label=name, linewidth=1.4, **{**look, "markersize": 4})
        panel.set_ylim(0, 1.04)
        panel.set_xlim(left=0)
        panel.set_xlabel("time (minutes)")
        panel.set_title("Jain's index", loc="left")
        panel.legend(
            frameon=False, loc="lower right", ncols=1 if on_phone() else 2, borderaxespad=0,
            handlelength=1.6, handletextpad=0.4, columnspacing=0.8,
        )  # fmt: skip
    if not rows:
        raise UserError(
            f"--figure {declared.id}: no run has all of its flows for {declared.step_s} s"
        )
    last = {row["run"]: row["jains_index"] for row in rows}
    first = {row["run"]: row["jains_index"] for row in reversed(rows)}
    drawn.description = "Jain's index over time: " + "; ".join(
        f"{name} begins at {first[name]:.2f} and ends at {last[name]:.2f}" for name in last
    )
    drawn.caption = (
        f"{counted_runs([len(results)])}; each mark: what flows got in {declared.step_s} s"
    )
    return drawn, rows
