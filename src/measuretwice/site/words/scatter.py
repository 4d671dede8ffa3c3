"""The recorded steps as one small picture that a button moves: for the home page. It names no cause.

Drawn here, so that nothing jumps when a script comes to it, and readers without one see the first try.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from measuretwice.figures import rows as figure_rows
from measuretwice.lab import after_cases, step_cases
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.cases import case_heading, case_page
from measuretwice.site.words.figures import figure
from measuretwice.site.words.interactive import names_of
from measuretwice.site.words.registry import word
from measuretwice.site.words.subjects import LabWords

# The drawing's own units; a decade is as long on both axes, so that what is proportional lies at 45 degrees.
LEFT, TOP, RIGHT, BELOW, DECADE, MARK = 50, 8, 8, 46, 92, 4.6
WITHOUT_SCRIPT = "<noscript><style>.scatter { padding: 0 !important } .without-script { display: block }</style></noscript>"
# Beyond the outermost marks, in decades.
ROOM = 0.15


@dataclass(frozen=True)
class Step:
    """A recorded step: which cases it comes after; where it is one, its heading and page; of its trials the
    model's bandwidth and the goodput in Mbit/s."""

    after: str
    case: str
    page: str
    runs: Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class Axes:
    """Powers of ten at the plot's edges, and where a value lies in the drawing."""

    left: float
    right: float
    least: float
    most: float

    @classmethod
    def around(cls, models: Iterable[float], goodputs: Iterable[float]) -> Axes:
        """Return axes with room around these values; the vertical one has the line in it, too."""
        x = [math.log10(value) for value in models]
        y = [*x, *(math.log10(value) for value in goodputs)]
        return cls(min(x) - ROOM, max(x) + ROOM, min(y) - ROOM, max(y) + ROOM)

    @property
    def wide(self) -> float:
        return LEFT + (self.right - self.left) * DECADE + RIGHT

    @property
    def high(self) -> float:
        return TOP + (self.most - self.least) * DECADE + BELOW

    def x(self, mbit: float) -> float:
        return round(LEFT + (math.log10(mbit) - self.left) * DECADE, 1)

    def y(self, mbit: float) -> float:
        return round(TOP + (self.most - math.log10(mbit)) * DECADE, 1)


@word('scatter("what it shows, in words")')
def scatter(words: LabWords, alt: str) -> Block:
    """The recorded steps in one picture: a mark for each trial, a button that goes to the next step, and how many lie in
    the expected range. Steps go by the cases that they come after."""
    low, high = words.expected_ratio
    steps = [_step(words, name) for name in words.steps]
    models = {trial: model for trial, (model, _) in steps[0].runs.items()}
    goodputs = [goodput for step in steps for _, goodput in step.runs.values()]
    axes = Axes.around(models.values(), goodputs)
    trials = sorted(models)
    states = [_state(step, trials, axes, (low, high)) for step in steps]
    data = {"x": [axes.x(models[trial]) for trial in trials], "steps": states}
    marks = "".join(
        f'<circle r="{MARK}" style="transform:translate({x}px,{y}px)"{inside}/>'
        for x, y, inside in _marks(steps[0], axes, (low, high))
    )
    text = json.dumps(data, separators=(",", ":"))
    static = figure(words, "first-and-last", alt, bare=True)
    return Block(
        '<div class="interactive scatter" data-figure="scatter" data-scripts="common scatter" '
        f'data-low="{low:g}" data-high="{high:g}">{_drawing(axes, (low, high), marks, alt)}'
        f'<script type="application/json">{text}</script></div>\n\n{WITHOUT_SCRIPT}\n\n'
        f'<div class="without-script" markdown>\n\n{static}\n\n</div>\n'
    )


def _step(words: LabWords, name: str) -> Step:
    lab = words.lab
    rows = figure_rows.rows_for_table(words.results_of(name), names_of(words.model_use))
    cases = step_cases(lab, name)
    single = lab.case(cases[0]) if len(cases) == 1 else None
    page = case_page(words, single.id).removesuffix(".md") if single else ""
    return Step(
        after_cases(cases),
        case_heading(words, single.id) if single else "",
        f"modules/{lab.folder.name}/{page}/" if page else "",
        {row["trial"]: (row["model_mbit"], row["goodput_mbit"]) for row in rows},
    )


def _state(step: Step, trials: list[int], axes: Axes, span: tuple[float, float]) -> dict[str, object]:  # fmt: skip
    """A step as the script has it: where its marks go, and which lie in the range."""
    runs = [step.runs.get(trial) for trial in trials]
    return {
        "after": step.after,
        "case": step.case,
        "page": step.page,
        "of": len(step.runs),
        "y": [run and axes.y(run[1]) for run in runs],
        "within": "".join("1" if run and _within(run, span) else "0" for run in runs),
    }


def _within(run: tuple[float, float], span: tuple[float, float]) -> bool:
    return span[0] <= run[1] / run[0] <= span[1]


def _marks(step: Step, axes: Axes, span: tuple[float, float]) -> Iterable[tuple[float, float, str]]:
    for _, run in sorted(step.runs.items()):
        yield axes.x(run[0]), axes.y(run[1]), ' class="in"' if _within(run, span) else ""


def _drawing(axes: Axes, span: tuple[float, float], marks: str, alt: str) -> str:
    """The plot: a grid of decades, the model's line, the band in which goodput is expected, the marks."""
    wide, high, foot = axes.wide, axes.high, axes.high - BELOW
    ends = (10**axes.left, 10**axes.right)
    low, far = span
    corners = ((ends[0], low), (ends[0], far), (ends[1], far), (ends[1], low))
    band = " ".join(f"{axes.x(x)},{axes.y(x * factor)}" for x, factor in corners)
    grid = [
        f'<path d="M{axes.x(value)},{TOP}V{foot:.1f}"/><text x="{axes.x(value)}" y="{foot + 18:.0f}" text-anchor="middle">{value:g}</text>'
        for value in _powers(axes.left, axes.right)
    ]
    grid += [
        f'<path d="M{LEFT},{axes.y(value)}H{wide - RIGHT:.1f}"/><text x="{LEFT - 6}" y="{axes.y(value) + 5:.0f}" text-anchor="end">{value:g}</text>'
        for value in _powers(axes.least, axes.most)
    ]
    return (
        f'<svg viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}" role="img" aria-label="{alt}">'
        f'<clipPath id="scatter-plot"><rect x="{LEFT}" y="{TOP}" width="{wide - LEFT - RIGHT:.0f}" height="{foot - TOP:.0f}"/></clipPath>'
        f'<g class="decades">{"".join(grid)}</g><g clip-path="url(#scatter-plot)"><polygon class="band" points="{band}"/>'
        f'<path class="model" d="M{axes.x(ends[0])},{axes.y(ends[0])}L{axes.x(ends[1])},{axes.y(ends[1])}"/></g>'
        f'<g class="marks">{marks}</g>'
        f'<text x="{(LEFT + wide) / 2:.0f}" y="{high - 8:.0f}" text-anchor="middle">what the model says (Mbit/s)</text>'
        f'<text x="13" y="{foot / 2:.0f}" text-anchor="middle" transform="rotate(-90 13 {foot / 2:.0f})">goodput (Mbit/s)</text></svg>'
    )


def _powers(low: float, high: float) -> list[float]:
    return [10.0**n for n in range(math.ceil(low), math.floor(high) + 1)]
