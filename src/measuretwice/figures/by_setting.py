"""Figures of measured values: their mean against a parameter, how they are spread over runs, how samples are spread in each, and
each flow's goodput against the Mathis model by its losses and by its halvings.

The last are the two plots of Philip et al. (2021) and of its reproduction: the slope of the line through zero is C.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from measuretwice.base import in_groups
from measuretwice.base.errors import UserError
from measuretwice.figures.rows import Row, counted_runs
from measuretwice.figures.style import (
    FAINT,
    GRID,
    INK,
    MARKER_SIZE,
    MODEL,
    PAPER,
    Drawn,
    colour_of,
    in_style,
    legend_above,
    line_looks,
    on_phone,
    open_frame,
    plain,
    plain_axes,
    sized,
    spread_apart,
)
from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.results import (
    AgainstFigure,
    BoxesFigure,
    EcdfFigure,
    Panel,
    RegressionFigure,
)
from measuretwice.measure.raw import samples_in
from measuretwice.parse import ParseError
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import mean_interval_within, percentile, slope_through_zero
from measuretwice.tcp.model import mathis_bandwidth_bps

# A mean against a parameter

HEIGHT_PX, PHONE_HEIGHT_PX = 380, 300
# Room for one line's label, as a share of the panel's height.
LABEL_GAP = 0.065


def against(lab: Lab, declared: AgainstFigure, results: Sequence[Result]) -> Drawn:
    """The mean of a measured value against a parameter, with the 95 % interval of its runs.

    A row is a point: by (the line's name), x, runs, mean, and low and high, which are None for a
    single run. UserError where no run has the value.
    """
    rows = _mean_rows(declared, results)
    names = sorted({row["by"] for row in rows})
    with in_style():
        drawn = sized(PHONE_HEIGHT_PX if on_phone() else HEIGHT_PX)
        panel = drawn.subplots()
        plain_axes(panel)
        panel.set_xscale("log")
        xs = sorted({row["x"] for row in rows})
        panel.set_xticks(xs, [plain(x) for x in xs])
        panel.minorticks_off()
        _draw_lines(panel, names, rows)
        panel.set_xlabel(declared.x_label or declared.x)
        panel.set_title(declared.y_label or declared.y, loc="left")
    drawn.description = _means_in_words(declared, names, rows)
    bars = "bars: 95 % interval of the mean" if any(row["runs"] > 1 for row in rows) else ""
    drawn.caption = "; ".join(
        filter(None, [f"{counted_runs([row['runs'] for row in rows])} per point", bars])
    )
    return drawn, rows


def _mean_rows(declared: AgainstFigure, results: Sequence[Result]) -> list[Row]:
    cells: dict[tuple[str, float], list[float]] = {}
    for result in results:
        value = result.value(declared.y)
        if value is not None:
            by, x = str(result.params[declared.by]), float(result.params[declared.x])
            cells.setdefault((by, x / declared.x_unit), []).append(value / declared.y_unit)
    if not cells:
        raise UserError(f"--figure {declared.id}: none of {len(results)} runs has a {declared.y}")
    rows: list[Row] = []
    for (by, x), values in sorted(cells.items()):
        least, most = [*declared.y_within, math.inf][:2]
        # What is measured may lie a little outside what can be: a share of 1.0004.
        mean, low, high = mean_interval_within(values, min(least, *values), max(most, *values))
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
    return rows


def _draw_lines(panel: Axes, names: Sequence[str], rows: Sequence[Row]) -> None:
    """A line for each name, its points side by side, so that intervals don't cover each other; its name
    at its end."""
    ends = []
    for n, (name, look) in enumerate(zip(names, line_looks(names), strict=True)):
        points = [row for row in rows if row["by"] == name]
        positions = [row["x"] * 1.035 ** (n - (len(names) - 1) / 2) for row in points]
        bars = [
            [row["mean"] - row["low"] if row["low"] is not None else 0 for row in points],
            [row["high"] - row["mean"] if row["high"] is not None else 0 for row in points],
        ]
        drawn = panel.errorbar(
            positions, [row["mean"] for row in points], bars, markersize=MARKER_SIZE, linewidth=1.4,
            elinewidth=1.1, capsize=2.5, **look,
        )  # fmt: skip
        drawn[0].set_label(name)
        ends.append((name, positions[-1], points[-1]["mean"], look["color"]))
    if len(names) < 2:
        return
    low, high = panel.get_ylim()
    heights = [(y - low) / (high - low) for _, _, y, _ in ends]
    for (name, x, y, colour), height in zip(ends, spread_apart(heights, LABEL_GAP), strict=True):
        leader = {"arrowstyle": "-", "linewidth": 0.7, "color": colour, "shrinkA": 1, "shrinkB": 4}
        panel.annotate(name, (x, y), (1.02, height), xycoords="data", textcoords="axes fraction",
            color=colour, va="center", annotation_clip=False, arrowprops=leader)  # fmt: skip
    panel.set_ylim(low, high)


def _means_in_words(declared: AgainstFigure, names: Sequence[str], rows: Sequence[Row]) -> str:
    fewest = min(row["runs"] for row in rows)
    lines = [
        f"{name} "
        + ", ".join(f"{row['mean']:.3g} at {row['x']:g}" for row in rows if row["by"] == name)
        for name in names
    ]
    return (
        f"{declared.y_label or declared.y} against {declared.x_label or declared.x}, by "
        f"{declared.by}, means of at least {fewest} run{'s' if fewest > 1 else ''} each: "
        f"{'; '.join(lines)}."
    )


# How values are spread, a panel a value

# Of fewer values points alone are shown.
FEWEST_IN_A_BOX = 3
# On a phone panels of so many rows stand in pairs beside their names: each alone would be a screen high.
MANY_NAMES = 8


def boxes(lab: Lab, declared: BoxesFigure, results: Sequence[Result]) -> Drawn:
    """A panel for each value; boxes lie on their side, so that their names can be read.

    A box goes from the first quartile to the third with the median inside, its whiskers to the
    smallest and the largest value: so few values have no outliers. Settings stand in the order of
    the trials. A row is a point: value_of, by (the box's name), trial, seed, flow (of a value of each
    flow), value. UserError where no run has one of the values.
    """
    rows = [row for panel in declared.panels for row in _value_rows(declared, panel, results)]
    names = list(dict.fromkeys(row["by"] for row in rows))
    with in_style():
        high, count = 62 + 21 * len(names), len(declared.panels)
        columns = count if not on_phone() else 2 if len(names) >= MANY_NAMES else 1
        lines = math.ceil(count / columns)
        drawn = sized(high * lines)
        all_axes = list(drawn.subplots(lines, columns, sharey=True, squeeze=False).flat)
        for panel, axes in zip(declared.panels, all_axes, strict=False):
            _draw_boxes(axes, panel, names, [row for row in rows if row["value_of"] == panel.value])
        for axes in all_axes[count:]:
            axes.set_axis_off()
        all_axes[0].set_yticks(range(len(names)), names)
        all_axes[0].set_ylim(len(names) - 0.4, -0.6)
    drawn.description = " ".join(_medians_in_words(panel, names, rows) for panel in declared.panels)
    drawn.caption = _boxes_caption(declared, rows)
    return drawn, rows


def _value_rows(declared: BoxesFigure, panel: Panel, results: Sequence[Result]) -> list[Row]:
    rows = []
    for result in results:
        sources = [result.measured] if panel.of == "run" else map(vars, result.flows)
        for number, values in enumerate(sources):
            value = values.get(panel.value)
            if value is None:
                continue
            rows.append(
                {
                    "value_of": panel.value,
                    "by": _box_name(declared, result.params),
                    "trial": result.trial,
                    "seed": result.seed,
                    "flow": number if panel.of == "flow" else None,
                    "value": float(f"{value / panel.unit:.6g}"),
                }
            )
    if not rows:
        raise UserError(f"--figure {declared.id}: none of {len(results)} runs has a {panel.value}")
    return rows


def _box_name(declared: BoxesFigure, params: dict[str, Value]) -> str:
    """Return a box's label. A switch in `and_by` is said only where it is on, any other choice always."""
    name = str(params.get(declared.by))
    value = params.get(declared.and_by) if declared.and_by else None
    if declared.and_by and value == "on":
        return f"{name}, {declared.and_by.upper()}"
    return name if value in (None, "off") else f"{name} with {value}"


def _draw_boxes(axes: Axes, panel: Panel, names: Sequence[str], rows: Sequence[Row]) -> None:
    if panel.logarithmic:
        axes.set_xscale("log")
    for height, name in enumerate(names):
        values = [row["value"] for row in rows if row["by"] == name]
        if not values:
            continue
        colour = colour_of(name.split(",")[0])
        if len(values) > FEWEST_IN_A_BOX:
            axes.boxplot(
                [values], positions=[height], orientation="horizontal", widths=0.6,
                whis=(0, 100),  # codespell:ignore whis
                manage_ticks=False, patch_artist=True,
                boxprops={"facecolor": GRID, "edgecolor": FAINT}, medianprops={"color": colour, "linewidth": 2.0},
                whiskerprops={"color": FAINT}, capprops={"color": FAINT},
            )  # fmt: skip
        axes.plot(
            values, [height] * len(values), linestyle="none", marker="o", markersize=3.6,
            markerfacecolor=PAPER, markeredgecolor=colour, markeredgewidth=0.9,
        )  # fmt: skip
    axes.set_xlabel(panel.label)
    axes.grid(True, axis="x", color=GRID, linewidth=0.6)
    if panel.logarithmic:
        ticks = LogLocator(base=10, subs=(1, 3))
        axes.xaxis.set_major_locator(ticks)
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.12)
    else:
        # A little room beyond the largest value, and beside zero for the points that stand there.
        low, high = axes.get_xlim()
        most = max((row["value"] for row in rows), default=1) or 1
        axes.set_xlim(
            -0.06 * most if panel.from_zero else low,
            max(high, 1.08 * most if panel.from_zero else high),
        )
    open_frame(axes)


def _boxes_caption(declared: BoxesFigure, rows: Sequence[Row]) -> str:
    """Return the caption: the runs of a row, what a point is, and how a box is drawn."""
    runs: dict[str, set[tuple[int, int]]] = {}
    for row in rows:
        runs.setdefault(row["by"], set()).add((row["trial"], row["seed"]))
    of = {panel.of for panel in declared.panels}
    points = (
        "one point each"
        if "flow" not in of
        else "one point per flow"
        if len(of) == 1
        else "one point per flow or per run"
    )
    counts = [len(seeds) for seeds in runs.values()]
    boxes = (
        "; a box spans the middle half, with the median, and the whiskers span all"
        if max(counts) > FEWEST_IN_A_BOX
        else ""
    )
    return f"{counted_runs(counts)} per row, {points}{boxes}"


def _medians_in_words(panel: Panel, names: Sequence[str], rows: Sequence[Row]) -> str:
    parts = []
    for name in names:
        values = [
            row["value"] for row in rows if row["by"] == name and row["value_of"] == panel.value
        ]
        if values:
            parts.append(f"{name} {statistics.median(values):.3g}")
    return f"{' '.join(panel.label.split())}, medians: {', '.join(parts)}."


# How samples are spread in each run

# So many points of a line are seen in a picture; of the largest each one.
SHARE_POINTS, LARGEST_POINTS = 150, 30


def ecdf(lab: Lab, declared: EcdfFigure, results: Sequence[Result]) -> Drawn:
    """Draw which share of a raw file's samples is at most so large, or with `tail` at least so large, by a parameter: a thin line a
    run, and a wide one of all their samples.

    A row is a point of a wide line: by, samples (how many it is of), value, share. UserError where no run has samples.
    """
    groups: dict[str, list[list[float]]] = {}
    for result in results:
        if values := _samples_of(declared, result):
            groups.setdefault(str(result.params[declared.by]), []).append(values)
    if not groups:
        problem = f"no {declared.samples.file} of {len(results)} runs has such samples"
        raise UserError(f"--figure {declared.id}: {problem}")
    rows: list[Row] = []
    parts = []
    with in_style():
        drawn = sized(PHONE_HEIGHT_PX if on_phone() else HEIGHT_PX)
        axes = drawn.subplots()
        plain_axes(axes)
        for (name, of_runs), look in zip(groups.items(), line_looks([*groups]), strict=True):
            line = {"color": look["color"], "linestyle": look["linestyle"]}
            for values in of_runs if len(of_runs) > 1 else ():
                draw_shares(axes, values, tail=declared.tail, linewidth=0.7, alpha=0.4, **line)
            every = [value for values in of_runs for value in values]
            points = draw_shares(axes, every, tail=declared.tail, linewidth=1.8, label=name, **line)
            rows += [
                {
                    "by": name,
                    "samples": len(every),
                    "value": float(f"{x:.6g}"),
                    "share": round(y, 6),
                }
                for x, y in points
            ]
            parts.append(f"{name}: {samples_in_words(every)}")
        if declared.tail:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(plain))
        axes.set_xlabel(declared.label)
        axes.set_ylabel(declared.shares)
        if len(groups) > 1:
            legend_above(axes)
    drawn.description = f"{declared.label}. {'; '.join(parts)}."
    counts = [len(of_runs) for of_runs in groups.values()]
    thin = ", a thin line each; the wide ones are of all samples" if max(counts) > 1 else ""
    drawn.caption = f"{counted_runs(counts)} per {declared.by}{thin}"
    return drawn, rows


def _samples_of(declared: EcdfFigure, result: Result) -> list[float]:
    try:
        with raw_folder(result.run_dir) as raw:
            return samples_in(raw, declared.samples)
    except (ParseError, OSError) as error:
        name = result.run_dir.name
        raise UserError(f"{name}: its raw files can't be read: {error}") from None


def draw_shares(
    axes: Axes, values: Sequence[float], *, tail: bool = False, **look: Any
) -> list[tuple[float, float]]:
    """Draw which share of values is at most so large, or with `tail` at least so large; return the points: as many as are
    seen."""
    ordered, count = sorted(values), len(values)
    shown = {*range(0, count, max(1, count // SHARE_POINTS)), *range(count)[-LARGEST_POINTS:]}
    points = [(ordered[n], (count - n) / count if tail else (n + 1) / count) for n in sorted(shown)]
    axes.plot(*zip(*points, strict=True), drawstyle="steps-pre" if tail else "steps-post", **look)
    return points


def samples_in_words(values: Sequence[float]) -> str:
    """Return how many samples there are, and the three percentiles that say most of them."""
    shares = {"half": 0.5, "95 %": 0.95, "99 %": 0.99}
    parts = [f"{name} up to {percentile(values, share):.3g}" for name, share in shares.items()]
    return f"{in_groups(str(len(values)))} samples, {', '.join(parts)}"


# Goodput against the model, a point a flow

COUNTED = (("retransmits", "by retransmissions"), ("halvings", "by halvings"))


def points(result: Result, counted: str) -> list[tuple[float, float]]:
    """Each flow's model bandwidth with C = 1 and its goodput, in bit/s; flows that have none of what
    is counted, retransmits or halvings, are left out."""
    mss_bytes = result.value("mss_bytes")
    if not mss_bytes:
        return []
    return [
        (
            mathis_bandwidth_bps(
                mss_bytes, flow.rtt_mean_ms, getattr(flow, counted) / flow.segments
            ),
            flow.goodput_bps,
        )
        for flow in result.flows
        if getattr(flow, counted) and flow.segments
    ]


def regression(lab: Lab, declared: RegressionFigure, results: Sequence[Result]) -> Drawn:
    """Each flow's goodput against what the model with C = 1 gives, by its losses and by its halvings.

    The flows of all these runs together. A row is a flow: by (retransmits or halvings), model_mbit,
    goodput_mbit. UserError where no flow has a loss or a halving.
    """
    rows: list[Row] = []
    notes = []
    with in_style():
        drawn = sized(540 if on_phone() else 320)
        all_axes = drawn.subplots(
            *((len(COUNTED), 1) if on_phone() else (1, len(COUNTED))), sharey=True
        )
        for axes, (counted, title) in zip(all_axes, COUNTED, strict=True):
            pairs = [point for result in results for point in points(result, counted)]
            if not pairs:
                raise UserError(f"--figure {declared.id}: no flow of these runs has {counted}")
            constant, _, _ = slope_through_zero(pairs)
            xs, ys = [x / 1e6 for x, _ in pairs], [y / 1e6 for _, y in pairs]
            rows += [
                {"by": counted, "model_mbit": round(x, 4), "goodput_mbit": round(y, 4)}
                for x, y in zip(xs, ys, strict=True)
            ]
            axes.plot([0, max(xs)], [0, constant * max(xs)], color=MODEL, linewidth=1.6)
            axes.plot(
                xs, ys, linestyle="none", marker="o", markersize=4.6 if len(xs) < 200 else 2.4,
                markerfacecolor=PAPER, markeredgecolor=INK, markeredgewidth=0.8,
            )  # fmt: skip
            axes.set_title(f"{title}: C = {constant:.2f}", loc="left")
            axes.set_xlabel("MSS / (RTT · √p), Mbit/s")
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
            plain_axes(axes)
            notes.append(f"{title}: {len(xs)} flows, C = {constant:.2f}.")
            if on_phone() or axes is all_axes[0]:
                axes.set_ylabel("goodput of a flow (Mbit/s)")
    drawn.description = " ".join(notes)
    drawn.caption = f"{counted_runs([len(results)])}, one mark per flow; the line is fitted through zero by least squares, and its slope is C"
    return drawn, rows
