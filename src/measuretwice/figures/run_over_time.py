"""One run over time, or two beside each other: window, round-trip time, queue, losses.

A column a run, never pooled: two runs share the scale of each row and nothing else.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes

from measuretwice.figures.over_time import LINES
from measuretwice.figures.rows import Row
from measuretwice.figures.style import (
    FAINT,
    QUEUE,
    Drawn,
    in_style,
    legend_above,
    plain_axes,
    sized,
)
from measuretwice.lab import Value
from measuretwice.measure.over_time import DROPPED, PANELS, Line, OverTime

# So many settings that differ stand in a title; more make it unreadable.
MOST_SETTINGS = 4
TITLE_WIDTH = 90


def run_over_time(runs: Sequence[OverTime]) -> Drawn:
    """Draw one or two runs, a column each and a row for each quantity.

    A row of the result is a sample: run (its title), what, unit, time_s since the run's first sample
    of ss, value.
    """
    titles = titles_of(runs)
    shown = [panel for panel in PANELS if any(run.lines.get(panel.name) for run in runs)]
    rows: list[Row] = []
    # A folder's name may have a $ in it, which is no formula.
    with in_style(), rc_context({"text.parse_math": False}):
        drawn = sized(100 + 175 * len(shown))
        panels = drawn.subplots(
            len(shown), len(runs), sharex="col", sharey="row", squeeze=False,
            height_ratios=[1.4, *[1] * (len(shown) - 1)],
        )  # fmt: skip
        for column, (run, title) in enumerate(zip(runs, titles, strict=True)):
            for index, panel in enumerate(shown):
                axes = panels[index][column]
                plain_axes(axes)
                lines = run.lines.get(panel.name, [])
                _draw(axes, lines, panel.name)
                rows += [row for line in lines for row in _rows(title, panel.name, line)]
                if column == 0:
                    axes.set_ylabel(panel.label)
            panels[0][column].set_title(title, loc="left", pad=24)
            panels[-1][column].set_xlabel("time since the first sample (s)")
        for axes in panels.flat:
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
    drawn.title = " beside ".join(title.replace("\n", ", ") for title in titles)
    drawn.description = " ".join(in_words(run) for run in runs)
    return drawn, rows


def _draw(axes: Axes, lines: Sequence[Line], panel: str) -> None:
    if not lines:
        axes.text(0.5, 0.5, "not sampled", color=FAINT, ha="center", va="center",
            transform=axes.transAxes)  # fmt: skip
        return
    looks = itertools.cycle(LINES)
    for line in lines:
        if line.steady:
            axes.plot(line.time_s, line.values, color=FAINT, linewidth=1.0, linestyle=(0, (1, 2)),
                label=_label(line))  # fmt: skip
        elif line.label.endswith(DROPPED):
            axes.plot(
                line.time_s, line.values, color=FAINT, linewidth=3.0, alpha=0.6, label=line.label
            )
        elif panel == "queue" and len(lines) == 1:
            axes.fill_between(line.time_s, line.values, color=QUEUE, linewidth=0, label=line.label)
        else:
            axes.plot(line.time_s, line.values, label=line.label, **next(looks))
    legend_above(axes, columns=2)


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
    """Return the run's title with its trial's settings; of two, with differing_settings that differ between them."""
    if len(runs) == 1:
        return ["\n".join([runs[0].title, *textwrap.wrap(runs[0].subtitle, TITLE_WIDTH)])]
    settings = differing([run.settings for run in runs])
    return [
        "\n".join([run.title, *_in_lines(differing_settings)])
        for run, differing_settings in zip(runs, settings, strict=True)
    ]


def differing(settings: Sequence[Mapping[str, Value]]) -> list[dict[str, Value | None]]:
    """Return of each run's settings differing_settings that aren't the same in all; None where a run lacks one."""
    names = dict.fromkeys(name for of_run in settings for name in of_run)
    differ = [
        name
        for name in names
        if any(of_run.get(name) != settings[0].get(name) for of_run in settings)
    ]
    return [{name: of_run.get(name) for name in differ} for of_run in settings]


def _in_lines(settings: Mapping[str, Value | None]) -> list[str]:
    lines = [
        textwrap.shorten(f"{name} {'not set' if value is None else value}", TITLE_WIDTH // 2)
        for name, value in settings.items()
    ]
    more = len(lines) - MOST_SETTINGS
    return [*lines[:MOST_SETTINGS], *([f"and {more} more settings"] if more > 0 else [])]


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
                parts.append(f"{name} {last:,} {line.unit} by the last sample")
            else:
                parts.append(f"{name} {low:.4g} to {high:.4g}, mean {mean:.4g} {line.unit}")
    return f"{run.title}: {'; '.join([*parts, *run.notes])}."
