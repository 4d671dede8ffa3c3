"""The pieces that figures are made of: markers, error bars, lines, legends, notes.

Each draws on the axes that it is given, from rows as `rows` makes them. Error bars are 95 %
intervals. Axes must have their limits already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from measuretwice.figures.rows import Published, Row
from measuretwice.figures.style import (
    FAINT,
    MODEL,
    PUBLISHED,
    PX_AN_INCH,
    marker_style,
    on_phone,
    shades,
    shapes,
    spread_apart,
)
from measuretwice.tcp import model

# The lines of the paper's Figure 4 by their constant's name, and how they are labelled.
LINES = {"1.31": "1.31 / √p", "sqrt(3/2)": "√(3/2) / √p", "1": "1 / √p", "sqrt(3/4)": "√(3/4) / √p"}
# Room for one line of small text, as a share of the axes' height.
LABEL_GAP = 0.045
INTERVAL = "95 % interval"
LEGEND_LINE_PX = 19
BAR: dict[str, Any] = {"color": FAINT, "linewidth": 0.9, "zorder": 1.5, "solid_capstyle": "butt"}
Look = dict[str, Any]
LegendGroup = tuple[str, list[tuple[str, Look]]]


def looks(rows: Sequence[Row]) -> Callable[[Row], Look]:
    """Return what gives a row its marker: shape by MSS, colour by RTT, filled where comparable.

    Filled markers, which the model speaks of, lie over hollow ones.
    """
    shape = shapes([row["mss_bytes"] for row in rows])
    shade = shades([row["rtt_ms"] for row in rows])

    def look(row: Row) -> Look:
        marker = marker_style(shape[row["mss_bytes"]], shade[row["rtt_ms"]], row["comparable"])
        return {**marker, "zorder": 3.0 if row["comparable"] else 2.5}

    return look


def goodput_bar(axes: Axes, row: Row, x: float, y: float) -> None:
    """Draw the goodput's interval about (x, y): as high as the axes where no loss was counted.

    Nothing where losses were not counted at all.
    """
    if row["losses"] is None:
        return
    low, high = axes.get_ylim()
    # An interval without an end says little, and should not look like more than that.
    style = BAR | {"linestyle": (0, (1, 4)), "zorder": 0.5}
    if row["goodput_low_mbit"] is not None:
        style = BAR
        low = y * row["goodput_low_mbit"] / row["goodput_mbit"]
        high = y * row["goodput_high_mbit"] / row["goodput_mbit"]
    axes.plot([x, x], [low, high], **style)


def loss_bar(axes: Axes, row: Row) -> None:
    """Draw the interval of the measured loss ratio, with a tick at the measured one."""
    if row["loss_low_ratio"] is None:
        return
    y, left = row["window_segments"], axes.get_xlim()[0]
    axes.plot([max(row["loss_low_ratio"], left), row["loss_high_ratio"]], [y, y], **BAR)
    if row["losses"]:
        axes.plot(row["loss_measured_ratio"], y, marker="|", markersize=6.5, markeredgewidth=0.8,
            color=FAINT, zorder=1.6)  # fmt: skip


def slope_one(axes: Axes, label: str | None) -> None:
    """Draw the line where both axes are equal, its label along it near the top."""
    low, high = axes.get_xlim()
    axes.plot([low, high], [low, high], color=MODEL, linewidth=1.2, zorder=1)
    if label:
        at = low * (high / low) ** 0.86
        axes.annotate(label, (at, at), (5, -5), textcoords="offset points", rotation=45,
            rotation_mode="anchor", ha="center", va="top", color=MODEL)  # fmt: skip


def published_values(axes: Axes, published: Sequence[Published]) -> None:
    """Draw published values as crosses; those of one trial are joined and bear its number once."""
    for value in published:
        axes.plot(value.model_mbit, value.measured_mbit, zorder=4, **_cross(value.state))
    for trial in sorted({value.trial for value in published}):
        pair = [value for value in published if value.trial == trial]
        top = max(pair, key=lambda value: value.measured_mbit)
        heights = [value.measured_mbit for value in pair]
        axes.plot([top.model_mbit] * 2, [min(heights), max(heights)], color=PUBLISHED,
            linewidth=0.6, linestyle=":", zorder=1.8)  # fmt: skip
        axes.annotate(f"{trial}", (top.model_mbit, top.measured_mbit), (0, 5), color=PUBLISHED,
            textcoords="offset points", ha="center", va="bottom",
            zorder=5)  # fmt: skip


def _cross(state: str) -> Look:
    return {
        "marker": {"before": "x", "after": "+"}[state],
        "color": PUBLISHED,
        "markersize": 8.0 if state == "before" else 10.5,
        "markeredgewidth": 1.7,
        "linestyle": "none",
    }


def model_lines(axes: Axes, rtts_ms: Sequence[float]) -> None:
    """Draw C/sqrt(p) for each constant, and dashed PFTK's window for each RTT, and label them.

    Axes: p, and segments. Labels stand right of the axes; a line that leaves these at the bottom
    has its label there.
    """
    x_low, x_high = axes.get_xlim()
    points = [min(x_low * (x_high / x_low) ** (i / 200), x_high) for i in range(201)]
    lines = []
    for name, text in LINES.items():
        constant = model.MATHIS_CONSTANTS[name].value
        lines.append((text, [constant / math.sqrt(p) for p in points], "-"))
    for rtt_ms in rtts_ms:
        heights = [_pftk_window_segments(rtt_ms, p) for p in points]
        lines.append((f"PFTK, {rtt_ms:g} ms", heights, "--"))
    low, high = axes.get_ylim()
    at_right = []
    for text, heights, dashes in lines:
        axes.plot(points, heights, color=MODEL, linewidth=1.1, linestyle=dashes, zorder=1)
        if heights[-1] >= low:
            at_right.append((text, heights[-1]))
        else:
            bottom = next(p for p, height in zip(points, heights, strict=True) if height < low)
            axes.annotate(text, (bottom, low), (-14, 4), textcoords="offset points", ha="right",
                va="bottom")  # fmt: skip
    positions = [math.log(height / low) / math.log(high / low) for _, height in at_right]
    for (text, height), position in zip(at_right, spread_apart(positions, LABEL_GAP), strict=True):
        leader = {"arrowstyle": "-", "linewidth": 0.5, "color": FAINT, "shrinkA": 1, "shrinkB": 0}
        axes.annotate(text, (x_high, height), (1.035, position), textcoords="axes fraction",
            va="center", annotation_clip=False, arrowprops=leader)  # fmt: skip


def _pftk_window_segments(rtt_ms: float, loss_ratio: float) -> float:
    """PFTK's goodput in segments a round trip; 0 where all is lost."""
    return model.pftk_bandwidth_bps(1.0, rtt_ms, loss_ratio) / 8 * rtt_ms / 1e3


def legend_groups(rows: Sequence[Row], published: Sequence[Published] = ()) -> list[LegendGroup]:
    """Return the legend's groups: shapes, greys, fill with the error bar, and crosses."""
    shape = shapes([row["mss_bytes"] for row in rows])
    shade = shades([row["rtt_ms"] for row in rows])
    first = next(iter(shape.values()))
    groups: list[LegendGroup] = [
        ("MSS", [(f"{mss:g} bytes", marker_style(s, FAINT, True)) for mss, s in shape.items()]),
        ("RTT", [(f"{rtt:g} ms", marker_style(first, s, True)) for rtt, s in shade.items()]),
    ]
    claims = []
    if any(row["comparable"] for row in rows):
        claims.append(("applies", marker_style(first, FAINT, True)))
    if not all(row["comparable"] for row in rows):
        claims.append(("makes no claim", marker_style(first, FAINT, False)))
    groups.append(("The model", claims))
    if any(row["losses"] is not None for row in rows):
        bar = {"marker": "|", "markersize": 12, "color": FAINT, "linestyle": "none"}
        groups.append((INTERVAL, [("by number of losses", bar)]))
    states = list(dict.fromkeys(value.state for value in published))
    # Two kinds are both the publication's, and no state of our own runs.
    names = (
        {"before": "published, first try", "after": "published, last"} if len(states) > 1 else {}
    )
    crosses = [(names.get(state, "published"), _cross(state)) for state in states]
    return [*groups, ("With trial number", crosses)] if crosses else groups


def legend_handles(groups: Sequence[LegendGroup], in_columns: bool = False) -> list[Line2D]:
    """Return the groups as handles: each under its heading, padded to equal length for columns.

    A legend fills its columns one after the other: `in_columns`, ask it for one a group.
    """
    longest = max(len(entries) for _, entries in groups)
    handles: list[Line2D] = []
    for heading, entries in groups:
        if handles and not in_columns:
            handles.append(_words(" "))
        handles.append(_words(heading))
        handles += [Line2D([], [], label=label, **look) for label, look in entries]
        if in_columns:
            handles += [_words(" ")] * (longest - len(entries))
    return handles


def legend_height_px(groups: Sequence[LegendGroup]) -> float:
    """Return how high the legend is that stands below a figure."""
    columns = len(groups) if not on_phone() else min(2, len(groups))
    lines = [1 + len(entries) for _, entries in groups]
    return LEGEND_LINE_PX * sum(max(lines[n : n + columns]) for n in range(0, len(lines), columns))


def legend_below(figure: Figure, groups: Sequence[LegendGroup]) -> list[Legend]:
    """A legend below all panels, a column for each group; on a phone two groups beside each other."""
    columns = min(2, len(groups)) if on_phone() else len(groups)
    rows = [groups[n : n + columns] for n in range(0, len(groups), columns)]
    high = figure.get_size_inches()[1] * PX_AN_INCH
    height = (legend_height_px(groups) + 8) / high
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, height, 1, 1 - height))
    legends = []
    for row in rows:
        legend = figure.legend(
            handles=legend_handles(row, in_columns=True), loc="upper left", bbox_to_anchor=(0.02, height - 8 / high),
            ncols=len(row), columnspacing=1.6, borderpad=0, borderaxespad=0, handletextpad=0.3,
        )  # fmt: skip
        legend.set_in_layout(False)
        legends.append(legend)
        height -= legend_height_px(row) / high
    return legends


def legend_beside(figure: Figure, axes: Axes, groups: Sequence[LegendGroup]) -> list[Legend]:
    """A legend to the right of the axes; on a phone below them."""
    if on_phone():
        return legend_below(figure, groups)
    handles = legend_handles(groups)
    return [
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0)
    ]


def bold_headings(legends: Sequence[Legend], groups: Sequence[LegendGroup]) -> None:
    """Set the groups' headings in bold."""
    headings = {heading for heading, _ in groups}
    for text in (text for legend in legends for text in legend.get_texts()):
        if text.get_text() in headings:
            text.set_fontweight("bold")


def _words(text: str) -> Line2D:
    return Line2D([], [], linestyle="none", label=text)
