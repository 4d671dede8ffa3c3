"""Figures that a reader can change: HTML with a picture or table and the data inlined.

Each is a `div.interactive`. site.js loads the scripts that it names, from docs/assets/interactive/, and
hands them the data; until then, without scripts, and on paper, its fallback is what a reader sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.figures import rows as figure_rows
from measuretwice.figures.rows import StepRuns, json_for_script, names_of, steps_data
from measuretwice.lab import Lab, after_cases, step_cases
from measuretwice.lab.schema.results import ModelUse
from measuretwice.site.drawings.svg import LogPlot
from measuretwice.site.macros import LabContext, macro, replay_figures
from measuretwice.site.macros.blocks import Block, markdown_table, seconds, sig
from measuretwice.site.macros.cases import case_heading, case_page
from measuretwice.site.macros.figure_files import figure
from measuretwice.site.macros.lab import expected_ratio, steps
from measuretwice.stats import intervals
from measuretwice.tcp import model

PRECISION = 0.05
CONFIDENCE = 0.95
# Of the home page's picture: a mark's radius, that of one in the expected range, and what readers without scripts get.
MARK, INSIDE = 4.6, ' class="in"'
WITHOUT_SCRIPT = "<noscript><style>.scatter { padding: 0 !important } .without-script { display: block }</style></noscript>"
SCRIPTS = {
    "steps": "common chart steps",
    "explorer": "common formulas explorer",
    "traces": "common replay panels traces",
    "packets": "common replay panels packets",
    "edges": "common replay panels edges",
    "windows": "common plane windows",
    "losses": "common plane losses",
}


def element(name: str, data: dict[str, Any], fallback: str) -> Block:
    """A figure's place in a page: its scripts by name, its data, and Markdown for those without."""
    return Block(
        f'<div class="interactive" data-figure="{name}" data-scripts="{SCRIPTS[name]}" markdown>\n'
        f'<script type="application/json">{json_for_script(data)}</script>\n'
        f'<div class="fallback" markdown>\n\n{fallback}\n</div>\n</div>\n'
    )


def steps_summary(use: ModelUse, steps: Sequence[StepRuns]) -> str:
    """Return what each step came to, as a table. Steps go by their cases: their titles tell what was wrong."""
    rows = []
    for number, step in enumerate(steps, 1):
        data = figure_rows.set_data(step.title, step.results, names_of(use))
        within = figure_rows.count_within(data.rows, data.ratio_range) if data.ratio_range else ""
        applies = sum(row["comparable"] for row in data.rows)
        constant = sig(data.fit.constant) if data.fit else ""
        rows.append((number, step.veiled, len(data.rows), within, applies, constant))
    used = f"p below {use.max_loss_ratio:g}, {use.min_expected_losses:g} losses expected"
    headings = ("step", "after", "trials", "in the expected range", used, "C fitted to these")
    return markdown_table(headings, rows, "rlrrrr")


@macro("steps_table()")
def steps_table(context: LabContext) -> Block:
    """Each trial's goodput over the model at each recorded step, as a table."""
    steps = _recorded_steps(context)
    ratios: dict[int, list[str]] = {}
    about: dict[int, list[str]] = {}
    for n, step in enumerate(steps):
        for row in figure_rows.rows_for_table(step.results, names_of(context.model_use)):
            about[row["trial"]] = [
                *(sig(row[key], 4) for key in ("rtt_ms", "mss_bytes")),
                *(sig(row[key]) for key in ("loss_ratio", "model_mbit")),
            ]
            cells = ratios.setdefault(row["trial"], ["–"] * len(steps))
            if row["ratio"] is not None:
                cells[n] = sig(row["ratio"])
    headings = ["trial", "RTT (ms)", "MSS (B)", "p", "model (Mbit/s)"]
    headings += [f"{n}: {step.veiled}" for n, step in enumerate(steps, 1)]
    rows = ([trial, *about[trial], *ratios[trial]] for trial in sorted(ratios))
    return Block(markdown_table(headings, rows, "r" * len(headings)))


def explorer_data(lab: Lab, use: ModelUse) -> dict[str, Any]:
    """The lab's trials to begin with, the inputs' ranges, and where the model ends."""
    trials = [
        [number, *(float(params[key]) for key in (use.mss, use.rtt, use.loss))]
        for number, params in _trial_params(lab)
    ]
    duration = lab.file.parameters.get("duration_s")
    return {
        "trials": trials,
        "ranges": [
            _decades(lab, key, [trial[1 + n] for trial in trials])
            for n, key in enumerate((use.mss, use.rtt, use.loss))
        ],
        "duration_s": float(duration.default) if duration and duration.default else 60.0,
        "max_loss_ratio": use.max_loss_ratio,
        "min_losses": use.min_expected_losses,
        "losses_for_precision": losses_for_precision(),
        "constants": {name: constant.value for name, constant in model.MATHIS_CONSTANTS.items()},
        "rto_margin_ms": model.LINUX_RTO_MARGIN_MS,
    }


def losses_for_precision() -> int:
    """How many losses bring the goodput over the model to within 5 % in 95 of 100 runs."""
    bounds_errors = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    return math.ceil(intervals.losses_needed(PRECISION / bounds_errors))


def _trial_params(lab: Lab) -> list[tuple[int, dict[str, Any]]]:
    return [(n, {**lab.defaults(), **trial.set}) for n, trial in sorted(lab.trials.items())]


def _decades(lab: Lab, key: str, values: Sequence[float]) -> tuple[float, float]:
    """Whole powers of ten about the trials' values, within what lab.toml allows."""
    allowed = lab.file.parameters[key]
    used = [value for value in values if value > 0]
    low, high = 10.0 ** math.floor(math.log10(min(used))), 10.0 ** math.ceil(math.log10(max(used)))
    return max(low, allowed.min or 0.0), min(high, math.inf if allowed.max is None else allowed.max)


def explorer_table(lab: Lab, use: ModelUse) -> str:
    """Return what the models say of each of the lab's trials."""
    headings = [
        "trial", "RTT (ms)", "MSS (B)", "p", "C = 1 (Mbit/s)", "C = √(3/2) (Mbit/s)", "PFTK (Mbit/s)",
        "window (segments)", "losses per minute", f"time for {use.min_expected_losses:g} losses",
    ]  # fmt: skip
    rows = []
    constant = model.MATHIS_CONSTANTS["sqrt(3/2)"].value
    for number, params in _trial_params(lab):
        mss, rtt, p = (float(params[key]) for key in (use.mss, use.rtt, use.loss))
        if not (rtt > 0 and 0 < p < 1):
            continue
        bandwidths = [
            model.mathis_bandwidth_bps(mss, rtt, p),
            model.mathis_bandwidth_bps(mss, rtt, p, constant),
            model.pftk_bandwidth_bps(mss, rtt, p),
        ]
        rows.append([
            number, sig(rtt, 4), sig(mss, 4), sig(p), *(sig(bps / 1e6) for bps in bandwidths),
            sig(1 / math.sqrt(p)), sig(model.mathis_expected_losses(rtt, p, 60.0)),
            seconds(model.mathis_time_for_losses_s(rtt, p, use.min_expected_losses)),
        ])  # fmt: skip
    return markdown_table(headings, rows, "r" * len(headings))


@macro('interactive("steps")')
def interactive(context: LabContext, name: str, story: Sequence[Mapping[str, Any]] = ()) -> Block:
    """The recorded steps as a figure whose steps the reader chooses; `interactive("explorer")`, the
    model with the reader's own numbers. `interactive("traces", story)`, the flows of the set `signatures` on
    one clock; `interactive("packets", story)`, the sets `packets-...` packet by packet; `interactive("edges", story)`, the
    facts `edges` and `arrivals` by the speed of the hosts' cables. The page's front matter tells the `story`: of each
    step `ask`, `do`, `seen`, and what it sets."""
    lab = context.lab
    match name:
        case "steps":
            recorded, use = _recorded_steps(context), context.model_use
            alt = "Goodput against the model, one panel for each step"
            picture = figure(context, "stages", alt, bare=True)
            fallback = f"{picture}\n\n{steps_summary(use, recorded)}"
            return element(name, steps_data(lab, use, recorded), fallback)
        case "explorer":
            use = context.model_use
            return element(name, explorer_data(lab, use), explorer_table(lab, use))
        case "traces":
            alt = "Each flow's window over time, and the queue below it"
            picture = figure(context, "signatures", alt, bare=True)
            return element(name, replay_figures.traces_figure(context, story), picture)
        case "packets":
            return element(name, *replay_figures.packets_figure(context, story))
        case "edges":
            return element(name, *replay_figures.edges_figure(context, story))
    raise UserError(
        f"interactive({name!r}): expected 'steps', 'explorer', 'traces', 'packets' or 'edges'"
    )


def _recorded_steps(context: LabContext) -> list[StepRuns]:
    titles = {recording.id: recording.title for recording in context.lab.file.recordings}
    return [
        StepRuns(titles[name], step_cases(context.lab, name), context.sets.runs(name))
        for name in steps(context)
    ]


@macro('scatter("what it shows, in words")')
def scatter(context: LabContext, alt: str) -> Block:
    """The recorded steps in one picture: a mark for each trial, a button that goes to the next step, and how many lie in
    the expected range. Steps go by the cases that they come after."""
    low, high = ratios = expected_ratio(context)
    rows = {
        name: {
            row["trial"]: (row["model_mbit"], row["goodput_mbit"])
            for row in figure_rows.rows_for_table(
                context.sets.runs(name), names_of(context.model_use)
            )
        }
        for name in steps(context)
    }
    first = next(iter(rows.values()))
    goodputs = (goodput for runs in rows.values() for _, goodput in runs.values())
    plot = LogPlot.around((modelled for modelled, _ in first.values()), goodputs)
    trials = sorted(first)

    def within(run: tuple[float, float] | None) -> bool:
        return run is not None and low <= run[1] / run[0] <= high

    data = {
        "x": [plot.x(first[trial][0]) for trial in trials],
        "steps": [
            {
                **_step_names(context, name),
                "of": len(runs),
                "y": [plot.y(runs[trial][1]) if trial in runs else None for trial in trials],
                "within": "".join("1" if within(runs.get(trial)) else "0" for trial in trials),
            }
            for name, runs in rows.items()
        ],
    }
    marks = "".join(
        f'<circle r="{MARK}" style="transform:translate({plot.x(run[0])}px,{plot.y(run[1])}px)"'
        f"{INSIDE if within(run) else ''}/>"
        for _, run in sorted(first.items())
    )
    drawn = plot.draw(marks, ratios, "the model's prediction (Mbit/s)", "goodput (Mbit/s)", alt)
    static = figure(context, "first-and-last", alt, bare=True)
    return Block(
        '<div class="interactive scatter" data-figure="scatter" data-scripts="common scatter" '
        f'data-low="{low:g}" data-high="{high:g}">{drawn}'
        f'<script type="application/json">{json_for_script(data)}</script></div>\n\n{WITHOUT_SCRIPT}\n\n'
        f'<div class="without-script" markdown>\n\n{static}\n\n</div>\n'
    )


def _step_names(context: LabContext, name: str) -> dict[str, str]:
    """Which cases a step comes after; where it is one, its heading and its page."""
    cases = step_cases(context.lab, name)
    single = context.lab.case(cases[0]).id if len(cases) == 1 else ""
    page = case_page(context, single).removesuffix(".md") if single else ""
    return {
        "after": after_cases(cases),
        "case": case_heading(context, single) if single else "",
        "page": f"modules/{context.lab.folder.name}/{page}/" if page else "",
    }
