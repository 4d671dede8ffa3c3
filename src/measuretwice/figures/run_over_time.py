"""One run over time, or some beside each other: window, round-trip time, queue, losses.

A column a run, never pooled: runs share the scale of each row and nothing else. Above each panel is its legend, and the figure
is as high as its panels, legends and titles need.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes

from measuretwice.base import in_groups
from measuretwice.figures.over_time import LINES
from measuretwice.figures.rows import Row
from measuretwice.figures.style import (
    FAINT,
    INK,
    QUEUE,
    WIDTH_PX,
    Drawn,
    in_style,
    plain_axes,
    sized,
)
from measuretwice.lab import Value
from measuretwice.measure.over_time import DROPPED, PANELS, Line, OverTime, Panel

# So many settings that differ stand in a title; more make it unreadable.
MOST_SETTINGS = 4
TITLE_WIDTH = 90
# A run's least column, what the axis's labels take on the left of the first, and the room between two.
COLUMN_PX, LEFT_PX, BETWEEN_PX = 330, 80, 24
# The first panel is higher than the others, whose heights go by it.
PANEL_PX, FIRST_RATIO = 125, 1.4
# A line of text, how wide one of its characters is at most on average, and what stands before a legend's words.
LINE_PX, CHARACTER_PX, HANDLE_PX = 16, 7.2, 44
# Numbers and label below the last panel, and what the layout leaves between panels.
FOOT_PX, GAP_PX = 50, 12
# Three flows of ss and three pings may be in one panel: each has its own look.
LOOKS: tuple[dict[str, Any], ...] = (
    *LINES,
    {"color": INK, "linewidth": 0.8, "linestyle": (0, (7, 2, 1, 2))},
    {"color": QUEUE, "linewidth": 1.3},
    {"color": QUEUE, "linewidth": 1.3, "linestyle": (0, (6, 3))},
)


def run_over_time(runs: Sequence[OverTime]) -> Drawn:
    """Draw some runs, a column each and a row for each quantity.

    A row of the result is a sample: run (its title), what, unit, time_s since the run's first sample
    of ss, value.
    """
    titles = titles_of(runs)
    shown = [panel for panel in PANELS if any(run.lines.get(panel.name) for run in runs)]
    width_px = max(WIDTH_PX, LEFT_PX + COLUMN_PX * len(runs))
    room_px = (width_px - LEFT_PX) / len(runs) - BETWEEN_PX
    headings = [_fitting(title, room_px) for title in titles]
    legends = [[_legend(run.lines.get(panel.name, []), room_px) for run in runs] for panel in shown]
    rows: list[Row] = []
    # A folder's name may have a $ in it, which is no formula.
    with in_style(), rc_context({"text.parse_math": False}):
        drawn = sized(_height_px(headings, legends), width_px)
        panels = drawn.subplots(
            len(shown), len(runs), sharex="col", sharey="row", squeeze=False,
            height_ratios=[FIRST_RATIO, *[1] * (len(shown) - 1)],
        )  # fmt: skip
        for column, (run, title) in enumerate(zip(runs, titles, strict=True)):
            for axes, panel, legend in zip(panels[:, column], shown, legends, strict=True):
                _draw(axes, run.lines.get(panel.name, []), panel, legend[column])
                rows += [
                    row
                    for line in run.lines.get(panel.name, [])
                    for row in _rows(title, panel.name, line)
                ]
                if column == 0:
                    axes.set_ylabel(panel.label)
            # Above the legends of all columns, so that titles stand in one line.
            pad_px = LINE_PX * max(legend.lines for legend in legends[0]) + 8
            panels[0][column].set_title(headings[column], loc="left", pad=pad_px)
            panels[-1][column].set_xlabel("time since the first sample (s)")
        for axes in panels.flat:
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
    drawn.title = " beside ".join(title.replace("\n", ", ") for title in titles)
    drawn.description = " ".join(in_words(run) for run in runs)
    return drawn, rows


def _height_px(headings: Sequence[str], legends: Sequence[Sequence[_Legend]]) -> float:
    """Return what titles, legends, panels and the last axis take together."""
    lines = 1 + max(heading.count("\n") for heading in headings)
    lines += sum(max(legend.lines for legend in of_panel) for of_panel in legends)
    panels_px = PANEL_PX * (FIRST_RATIO + len(legends) - 1) + GAP_PX * len(legends)
    return LINE_PX * lines + panels_px + FOOT_PX


def _fitting(text: str, room_px: float) -> str:
    """A title whose lines are no wider than its column."""
    width = int(room_px / CHARACTER_PX)
    return "\n".join(
        part for line in text.split("\n") for part in textwrap.wrap(line, width) or [""]
    )


@dataclass(frozen=True)
class _Legend:
    """A legend's words, of each line of a panel, in so many columns; `lines` is how many lines of text it is high."""

    labels: list[str]
    columns: int
    lines: int


def _legend(lines: Sequence[Line], room_px: float) -> _Legend:
    """The legend of a panel that is as wide as that: in two columns where these fit, else in one, and broken where one doesn't."""
    labels = [_label(line) if line.steady else line.label for line in lines]
    longest = max(map(len, labels), default=0)
    columns = 2 if 2 * (longest * CHARACTER_PX + HANDLE_PX) <= room_px else 1
    broken = [textwrap.fill(label, int((room_px - HANDLE_PX) / CHARACTER_PX)) for label in labels]
    in_columns = [broken[n::columns] for n in range(columns)]
    high = max(sum(1 + label.count("\n") for label in part) for part in in_columns)
    return _Legend(broken, columns, high)


def _draw(axes: Axes, lines: Sequence[Line], panel: Panel, legend: _Legend) -> None:
    plain_axes(axes)
    if not lines:
        axes.text(0.5, 0.5, "not sampled", color=FAINT, ha="center", va="center",
            transform=axes.transAxes)  # fmt: skip
        return
    looks = itertools.cycle(LOOKS)
    for line, label in zip(lines, legend.labels, strict=True):
        if line.steady:
            axes.plot(line.time_s, line.values, color=FAINT, linewidth=1.0, linestyle=(0, (1, 2)),
                label=label)  # fmt: skip
        elif line.label.endswith(DROPPED):
            axes.plot(line.time_s, line.values, color=FAINT, linewidth=3.0, alpha=0.6, label=label)
        elif panel.name == "queue" and len(lines) == 1:
            axes.fill_between(line.time_s, line.values, color=QUEUE, linewidth=0, label=label)
        else:
            axes.plot(line.time_s, line.values, label=label, **next(looks))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=legend.columns, borderaxespad=0.2, borderpad=0,
        handlelength=1.8, columnspacing=1.2, handletextpad=0.5, labelspacing=0.2,
    )  # fmt: skip


def _label(line: Line) -> str:
    """A level's label has its number: it is read, not compared."""
    return f"{line.label} {line.values[0]:.4g} {line.unit}"


def _rows(run: str, panel: str, line: Line) -> list[Row]:
    what = f"{panel}: {line.label}"
    return [
        {"run": run.replace("\n", ", "), "what": what, "unit": line.unit, "time_s": t, "value": v}
        for t, v in zip(line.time_s, line.values, strict=True)
    ]


def titles_of(runs: Sequence[OverTime]) -> list[str]:
    """Return the run's title with its trial's settings; of several, with those that differ between them, in words, and may be
    named."""
    if len(runs) == 1:
        return ["\n".join([runs[0].title, *textwrap.wrap(runs[0].subtitle, TITLE_WIDTH)])]
    called = {name: words for run in runs for name, words in run.called.items()}
    settings = differing(
        [{name: value for name, value in run.settings.items() if name in called} for run in runs]
    )
    return [
        "\n".join([run.title, *_in_lines(differing_settings, called)])
        for run, differing_settings in zip(runs, settings, strict=True)
    ]


def differing(settings: Sequence[Mapping[str, Value]]) -> list[dict[str, Value | None]]:
    """Return of each run's settings those that aren't the same in all; None where a run lacks one."""
    names = dict.fromkeys(name for of_run in settings for name in of_run)
    differ = [
        name
        for name in names
        if any(of_run.get(name) != settings[0].get(name) for of_run in settings)
    ]
    return [{name: of_run.get(name) for name in differ} for of_run in settings]


def _in_lines(
    settings: Mapping[str, Value | None], called: Mapping[str, tuple[str, str]]
) -> list[str]:
    lines = []
    for name, value in settings.items():
        words, unit = called[name]
        colon = "" if words.endswith("?") else ":"
        shown = "not set" if value is None else f"{value} {unit}".rstrip()
        lines.append(f"{textwrap.shorten(words, TITLE_WIDTH)}{colon} {shown}")
    more = len(lines) - MOST_SETTINGS
    return [
        *lines[:MOST_SETTINGS],
        *([f"and {more} more setting{'' if more == 1 else 's'}"] if more > 0 else []),
    ]


def in_words(run: OverTime) -> str:
    """Return a run's panels in a sentence: of each line its smallest, mean and largest value."""
    parts = []
    for panel in PANELS:
        for line in run.lines.get(panel.name, []):
            low, high = min(line.values, default=0), max(line.values, default=0)
            mean = sum(line.values) / max(1, len(line.values))
            name = f"{panel.name} of {line.label}"
            if line.steady:
                parts.append(f"{name} {mean:.4g} {line.unit}")
            elif panel.name == "losses":
                last = line.values[-1] if line.values else 0
                parts.append(f"{name} {in_groups(str(round(last)))} {line.unit} by the last sample")
            else:
                parts.append(f"{name} {low:.4g} to {high:.4g}, mean {mean:.4g} {line.unit}")
    return f"{run.title}: {'; '.join([*parts, *run.notes])}."
