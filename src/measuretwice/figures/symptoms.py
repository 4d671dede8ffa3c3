"""The figure of a case's symptom: panels as wide as a phone, one a picture, without the cause.

On a desk a page sets them beside each other, on a phone one below the other, so their text is as large as they say
in both. Two stages of a case share each panel's axes, but for times that are far apart.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from measuretwice.base import in_groups
from measuretwice.base.errors import UserError
from measuretwice.figures.by_setting import draw_shares, samples_in_words
from measuretwice.figures.over_time import LINES
from measuretwice.figures.palette import COLOURS
from measuretwice.figures.style import (
    FAINT,
    FONT_PX,
    INK,
    MODEL,
    PX_AN_INCH,
    DescribedFigure,
    in_style,
    logarithmic,
    open_frame,
    plain_axes,
)
from measuretwice.lab import Lab
from measuretwice.lab.schema.cases import (
    AgainstModelSymptom,
    Bar,
    EcdfSymptom,
    FlowsSymptom,
    OverTimeSymptom,
    RowsSymptom,
    RunsSymptom,
    SymptomOf,
    ValuesSymptom,
)
from measuretwice.measure.over_time import DROPPED, GOODPUT, PANELS, SENT_AGAIN, Line, OverTime
from measuretwice.measure.raw import counters_grown, lines_with, number_in, samples_in, text_of
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result

# In CSS pixels: what a phone of 360 has for a picture inside a fold.
PANEL_PX, HEIGHT_PX, BAR_PX = 300, 225, 46
LABEL_CHARACTERS = 42
MOST_TIMES_AS_LONG = 10

# A folder's name may have a $ in it, which is no formula.
PLAIN_TEXT: Any = {"text.parse_math": False}
ReadsOverTime = Callable[[Path], OverTime]


@dataclass(frozen=True)
class Stage:
    """A recorded stage of a case: its heading (empty where it stands alone), its runs, its colour.

    `beside` are runs to be shown faintly: the lab's as they should be.
    """

    heading: str
    runs: Sequence[Result]
    beside: Sequence[Result] = ()
    after: bool = False

    @property
    def colour(self) -> str:
        """The colour of what was measured of it."""
        return COLOURS["after" if self.after else "before"].light


@dataclass(frozen=True)
class Subject:
    """Of what a panel is drawn: the lab, the stage; and who reads a run's folder over time."""

    lab: Lab
    stage: Stage
    over_time: ReadsOverTime

    @property
    def run(self) -> Result:
        """The first run."""
        return self.stage.runs[0]


def draw_stages(
    lab: Lab, panel: SymptomOf, stages: Sequence[Stage], over_time: ReadsOverTime
) -> list[DescribedFigure]:
    """Return a panel's picture of each stage, all with the same axes.

    UserError where a run hasn't what the panel shows.
    """
    bars = len(panel.bars) if isinstance(panel, ValuesSymptom) else 0
    height_px = 34 + BAR_PX * bars if bars else HEIGHT_PX
    drawn = []
    with in_style(), rc_context(PLAIN_TEXT):
        for stage in stages:
            headings = 1.35 * FONT_PX * bool(stage.heading)
            figure = DescribedFigure(
                figsize=(PANEL_PX / PX_AN_INCH, (height_px + headings) / PX_AN_INCH),
                layout="constrained",
            )
            axes = figure.subplots()
            figure.description = KINDS[type(panel)](axes, panel, Subject(lab, stage, over_time))
            figure.title = stage.heading or "What was measured"
            label = "\n".join(textwrap.wrap(axes.get_title(loc="left"), LABEL_CHARACTERS))
            axes.set_title("\n".join(filter(None, [stage.heading, label])), loc="left", x=0)
            drawn.append(figure)
        _share_axes(drawn)
    return drawn


def _share_axes(drawn: Sequence[DescribedFigure]) -> None:
    """Give all pictures the widest of their limits; of times, where one isn't lost in another's."""
    all_axes = [figure.axes[0] for figure in drawn]
    for get, set_ in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        limits = [getattr(axes, get)() for axes in all_axes]
        spans = [abs(high - low) for low, high in limits]
        if get == "get_xlim" and max(spans) > MOST_TIMES_AS_LONG * min(spans):
            continue
        low, high = min(map(min, limits)), max(map(max, limits))
        # Bars count downwards.
        ends = (high, low) if limits[0][0] > limits[0][1] else (low, high)
        for axes in all_axes:
            getattr(axes, set_)(*ends)


def number_in_words(value: float) -> str:
    """Return a number as a figure says it: four digits, in full."""
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e7:
        return in_groups(f"{value:.0f}")
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{digits}f}"
    return in_groups(text.rstrip("0").rstrip(".") if "." in text else text)


# As many parts as a phone's picture is wide, halved; of each its smallest and largest value is drawn.
PARTS = 130
# Labels that stand two beside each other.
SHORT_LABEL = 15
LEGEND_LINE_PX = 18
PANEL_OF = {panel.name: panel for panel in (*PANELS, GOODPUT)}
# In seconds since 1970: what a file has as a time.
UNIX_TIMES = 1e9


def _missing(about: str, name: str) -> UserError:
    return UserError(f"{about}: the figure of its symptom: no run has {name}")


# Goodput against the model


def against_model(axes: Axes, _: AgainstModelSymptom, subject: Subject) -> str:
    """The stage's runs, the lab's others behind them, and the line of the model."""
    own, others = _against(subject.stage.runs), _against(subject.stage.beside)
    if not own:
        raise _missing(subject.lab.name, "a goodput and a model's")
    logarithmic(axes)
    values = [value for pair in (*own, *others) for value in pair]
    limits = min(values) / 1.6, max(values) * 1.6
    axes.plot(limits, limits, color=MODEL, linewidth=1.2, zorder=1, label="goodput = model")
    if others:
        axes.plot(*zip(*others, strict=True), "o", markersize=3.5, color=FAINT, markeredgewidth=0,
            alpha=0.55, label="trials without a mistake")  # fmt: skip
    axes.plot(
        *zip(*own, strict=True),
        "o",
        markersize=9,
        color=subject.stage.colour,
        label="the recorded run",
    )
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.set_title("goodput (Mbit/s)", loc="left")
    axes.set_xlabel("the model's goodput (Mbit/s)")
    _legend_below(axes)
    compared = "; ".join(
        f"{number_in_words(y)} Mbit/s where the model predicts {number_in_words(x)}" for x, y in own
    )
    more = f"; {len(others)} trials without a mistake lie near the model's line" if others else ""
    return f"Goodput against the model's: the recorded run {compared}{more}."


def _against(runs: Sequence[Result]) -> list[tuple[float, float]]:
    pairs = [(run.model_bps, run.value("goodput_bps")) for run in runs]
    return [(x / 1e6, y / 1e6) for x, y in pairs if x and y]


# Over time


def over_time(axes: Axes, panel: OverTimeSymptom, subject: Subject) -> str:
    """One quantity of the first run over time."""
    lines = [
        line
        for line in subject.over_time(subject.run.run_dir).lines.get(panel.of, [])
        if not line.steady and ("ping" not in line.label) and line.values
    ]
    if not lines:
        raise _missing(subject.lab.name, f"{panel.of} over time")
    plain_axes(axes)
    names = _names(lines)
    looks = itertools.cycle([LINES[0] | {"color": subject.stage.colour}, *LINES[1:]])
    for line, name in zip(lines, names, strict=True):
        times, values = thinned(line.time_s, line.values)
        if panel.of == "queue" and len(lines) == 1:
            axes.fill_between(times, values, color=subject.stage.colour, linewidth=0)
        elif line.label.endswith(DROPPED):
            axes.plot(times, values, color=FAINT, linewidth=2.6, alpha=0.7, label=name)
        else:
            axes.plot(times, values, label=name, **next(looks))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    label = PANEL_OF[panel.of].label.replace("\n", " ")
    axes.set_title(label, loc="left")
    axes.set_xlabel("time (s)")
    _few_ticks(axes)
    if len(lines) > 1 or panel.of == "losses":
        _legend_below(axes)
    until = number_in_words(round(max(line.time_s[-1] for line in lines)))
    parts = [_line_in_words(line, name, panel.of) for line, name in zip(lines, names, strict=True)]
    return f"{label[0].upper()}{label[1:]} over {until} s: {'; '.join(parts)}."


def _names(lines: Sequence[Line]) -> list[str]:
    """Lines by their nodes, and by what was counted; what kind of queue it is would tell too much."""
    nodes = [line.label.split(",")[0].split(" ")[0] for line in lines]
    counted = [
        next((w for w in (SENT_AGAIN, DROPPED) if line.label.endswith(w)), "") for line in lines
    ]
    if len(set(zip(nodes, counted, strict=True))) < len(lines):
        nodes = [f"flow {number}" for number in range(1, len(lines) + 1)]
    one_each = len(set(counted)) == len(lines) and any(counted)
    return [
        what if one_each else " ".join(filter(None, [node, what]))
        for node, what in zip(nodes, counted, strict=True)
    ]


def _line_in_words(line: Line, name: str, of: str) -> str:
    if of == "losses":
        return f"{name} {number_in_words(line.values[-1])} by the last sample"
    mean = sum(line.values) / len(line.values)
    low, high = number_in_words(min(line.values)), number_in_words(max(line.values))
    return f"{name} {low} to {high}, mean {number_in_words(float(f'{mean:.3g}'))}".strip()


def thinned(
    x: Sequence[float], y: Sequence[float], parts: int = PARTS
) -> tuple[list[float], list[float]]:
    """Return of each of so many parts of a line its smallest and largest point, in their order."""
    if len(x) <= 2 * parts:
        return list(x), list(y)
    shown: list[int] = []
    for part in range(parts):
        indices = range(part * len(x) // parts, (part + 1) * len(x) // parts)
        ends = {min(indices, key=y.__getitem__), max(indices, key=y.__getitem__)}
        shown += sorted(ends)
    return [x[n] for n in shown], [y[n] for n in shown]


def _legend_below(axes: Axes) -> None:
    """Below the panel, where nothing is drawn."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if len(max(labels, key=len)) <= SHORT_LABEL else 1
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.set_size_inches(
        figure.get_figwidth(),
        figure.get_figheight() + LEGEND_LINE_PX * -(-len(labels) // columns) / PX_AN_INCH,
    )
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, borderpad=0, handlelength=1.6,
        labelspacing=0.2, columnspacing=1.0, handletextpad=0.4)  # fmt: skip


def _few_ticks(axes: Axes, *, whole: bool = False) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=whole))
    axes.yaxis.set_major_locator(MaxNLocator(4))


# Values of a run


def values(axes: Axes, panel: ValuesSymptom, subject: Subject) -> str:
    """Values of the first run as bars, each with its name and its number."""
    bars = [(bar.label, _value(bar, subject) / panel.unit) for bar in panel.bars]
    _draw_bars(axes, bars, subject.stage.colour)
    axes.set_title(panel.label, loc="left")
    return f"{panel.label}: {_bars_in_words(bars)}."


def _draw_bars(axes: Axes, bars: Sequence[tuple[str, float]], colour: str) -> None:
    positions = range(len(bars))
    axes.barh(positions, [value for _, value in bars], height=0.38, color=colour)
    for position, (name, value) in zip(positions, bars, strict=True):
        axes.annotate(f"{name}: {number_in_words(value)}", (0, position - 0.24), (0, 1),
            textcoords="offset points", va="bottom", color=INK)  # fmt: skip
    axes.set_ylim(len(bars) - 0.6, -0.75)
    axes.set_yticks([])
    axes.set_xlim(0, max([value for _, value in bars] + [0]) * 1.04 or 1)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    open_frame(axes)


def _bars_in_words(bars: Sequence[tuple[str, float]]) -> str:
    return "; ".join(f"{name} ({number_in_words(value)})" for name, value in bars)


def _value(bar: Bar, subject: Subject) -> float:
    if bar.counter:
        with raw_folder(subject.run.run_dir) as raw:
            return float(counters_grown(raw / bar.node)[bar.counter])
    return _number(bar.value, subject) * _number(bar.times, subject)


def _number(name: float | str | None, subject: Subject) -> float:
    """A number that stands there, a parameter's, the model's, or a measured value."""
    if isinstance(name, int | float):
        return float(name)
    run, number = subject.run, None
    if name == "model_bps":
        number = run.model_bps
    elif name and name.startswith("="):
        number = run.number(name[1:])
    elif name:
        number = run.value(name)
    if number is None:
        raise _missing(f"{subject.lab.name}, trial {run.trial}", str(name))
    return float(number)


# Several runs, several flows


def runs(axes: Axes, panel: RunsSymptom, subject: Subject) -> str:
    """A value of each run, by a parameter."""
    points = []
    for run in subject.stage.runs:
        value = run.value(panel.value)
        if value is None:
            raise _missing(f"{subject.lab.name}, trial {run.trial}", panel.value)
        by = run.trial if panel.by == "trial" else run.params[panel.by]
        points.append((_name_of(by), value / panel.unit))
    groups = Groups(panel.label, panel.by_label, panel.from_zero)
    return _draw_groups(axes, points, groups, subject.stage.colour)


def flows(axes: Axes, panel: FlowsSymptom, subject: Subject) -> str:
    """A value of each flow, by a parameter of its run or one of its own facts."""
    points = []
    for run in subject.stage.runs:
        for flow in run.flows:
            value = getattr(flow, panel.value, None)
            by = run.params.get(panel.by, getattr(flow, panel.by, None))
            if value is None or by is None:
                raise _missing(subject.lab.name, f"{panel.value} or {panel.by} of each flow")
            points.append((_name_of(by), value / panel.unit))
    if not points:
        raise _missing(subject.lab.name, "flows")
    groups = Groups(panel.label, panel.by_label, from_zero=True)
    return _draw_groups(axes, points, groups, subject.stage.colour)


class Groups(NamedTuple):
    """What is said of points in columns."""

    label: str
    by_label: str
    from_zero: bool


def _name_of(value: float | int | str) -> str:
    return value if isinstance(value, str) else number_in_words(value)


def _draw_groups(
    axes: Axes, points: Sequence[tuple[str, float]], groups: Groups, colour: str
) -> str:
    """Points in a column for each name, side by side where there are many."""
    plain_axes(axes)
    axes.grid(False, axis="x")
    names = list(dict.fromkeys(name for name, _ in points))
    parts = []
    for position, name in enumerate(names):
        of_name = [value for group, value in points if group == name]
        several = len(of_name)
        # Points of one column stand a little apart, so that each is seen.
        shifts = [0.5 * (n / (several - 1) - 0.5) if several > 1 else 0.0 for n in range(several)]
        axes.plot(
            [position + shift for shift in shifts],
            of_name,
            "o",
            markersize=7,
            color=colour,
            alpha=0.75,
        )
        shown = [number_in_words(float(f"{value:.4g}")) for value in of_name]
        if several > 6:
            low, high = (number_in_words(float(f"{end(of_name):.4g}")) for end in (min, max))
            shown = [f"{several} from {low} to {high}"]
        parts.append(f"{name}: {', '.join(shown)}")
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    if groups.from_zero:
        axes.set_ylim(0, max(value for _, value in points) * 1.1)
    else:
        axes.margins(y=0.15)
    axes.set_title(groups.label, loc="left")
    axes.set_xlabel(groups.by_label)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    return f"{groups.label}: {'; '.join(parts)}."


# Rows of a raw file


def rows(axes: Axes, panel: RowsSymptom, subject: Subject) -> str:
    """A column of a raw file against another, its points joined in the file's order."""
    with raw_folder(subject.run.run_dir) as raw:
        table = lines_with(text_of(raw / panel.file), panel.y)
    try:
        y = [number_in(row, panel.y) / panel.unit for row in table]
        firsts = [row[panel.x].strip("[]") for row in table] if panel.x is not None else None
    except (ValueError, IndexError):
        raise _missing(subject.lab.name, f"{panel.file} with these columns") from None
    if not y:
        raise _missing(subject.lab.name, f"rows in {panel.file}")
    if firsts and not _is_number(firsts[0]):
        bars = list(zip(firsts, y, strict=True))
        _draw_bars(axes, bars, subject.stage.colour)
        axes.set_title(panel.label, loc="left")
        return f"{panel.label}: {_bars_in_words(bars)}."
    plain_axes(axes)
    whole = False
    if firsts is None:
        axes.plot(range(1, len(y) + 1), y, "o", markersize=6, color=subject.stage.colour)
        whole = True
    else:
        x = [float(text) for text in firsts]
        x = [value - x[0] if x[0] > UNIX_TIMES else value for value in x]
        axes.plot(
            *thinned(x, y), marker="o", markersize=3, color=subject.stage.colour, linewidth=0.9
        )
    axes.set_ylim(bottom=0, top=None if max(y) else 1)
    axes.set_title(panel.label, loc="left")
    axes.set_xlabel(panel.x_label)
    _few_ticks(axes, whole=whole)
    low, high = number_in_words(min(y)), number_in_words(max(y))
    return f"{panel.label}: {len(y)} rows of {panel.file}, {low} to {high}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def ecdf(axes: Axes, panel: EcdfSymptom, subject: Subject) -> str:
    """Draw which share of the samples in a raw file of the first run is at most so large."""
    with raw_folder(subject.run.run_dir) as raw:
        numbers = samples_in(raw, panel.samples)
    if not numbers:
        raise _missing(subject.lab.name, f"such samples in {panel.samples.file}")
    plain_axes(axes)
    draw_shares(axes, numbers, color=subject.stage.colour, linewidth=1.6)
    axes.set_ylim(0, 1.02)
    axes.set_title(panel.label, loc="left")
    axes.set_xlabel(panel.x_label)
    _few_ticks(axes)
    return f"{panel.label}, against {panel.x_label}: {samples_in_words(numbers)}."


# Each draws a panel into axes and says in words what is to be seen.
KINDS: dict[type[SymptomOf], Callable[[Axes, Any, Subject], str]] = {
    AgainstModelSymptom: against_model,
    OverTimeSymptom: over_time,
    ValuesSymptom: values,
    RunsSymptom: runs,
    FlowsSymptom: flows,
    RowsSymptom: rows,
    EcdfSymptom: ecdf,
}
