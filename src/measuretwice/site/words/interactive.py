"""Figures that a reader can change, for pages: HTML with a picture or table and the data inlined.

Each is a `div.interactive`. site.js loads the scripts that it names, from docs/assets/interactive/, and
hands them the data; until then, without scripts, and on paper, its fallback is what a reader sees.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.figures import rows as figure_rows
from measuretwice.figures.rows import ParameterNames
from measuretwice.lab import Lab, after_cases
from measuretwice.lab.schema.results import ModelUse
from measuretwice.runs.result import Result
from measuretwice.site.words.blocks import Block
from measuretwice.site.words.numbers import mbit, seconds, sig
from measuretwice.stats import intervals as statistics
from measuretwice.tcp import model

# What a mark tells of its run; each run in the data is a list in this order.
ROW_KEYS = (
    "trial", "rtt_ms", "mss_bytes", "loss_ratio", "model_mbit", "goodput_mbit", "goodput_low_mbit",
    "goodput_high_mbit", "ratio", "comparable", "losses",
)  # fmt: skip
PRECISION = 0.05
CONFIDENCE = 0.95


@dataclass(frozen=True)
class StepRuns:
    """A recorded step: its title, which names what was wrong, the cases that lead to it, its runs."""

    title: str
    cases: tuple[int, ...]
    results: Sequence[Result]

    @property
    def veiled(self) -> str:
        """What it is called by those who still look for the causes."""
        return after_cases(self.cases) if self.cases else self.title


def block(lab: Lab, use: ModelUse, steps: Sequence[StepRuns], name: str, picture: str) -> Block:
    """The interactive figure of that name; UserError for another name.

    `picture` is Markdown of the steps' drawn figure, for those without scripts.
    """
    if name == "steps":
        fallback = f"{picture}\n\n{steps_summary(use, steps)}"
        return element(name, steps_data(lab, use, steps), fallback)
    if name == "explorer":
        return element(name, explorer_data(lab, use), explorer_table(lab, use))
    raise UserError(f"interactive({name!r}): expected 'steps' or 'explorer'")


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
    # No sign in the data may end the script or begin a tag, nor look like a word of the page.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Block(
        f'<div class="interactive" data-figure="{name}" data-scripts="{SCRIPTS[name]}" markdown>\n'
        f'<script type="application/json">{text}</script>\n'
        f'<div class="fallback" markdown>\n\n{fallback}\n</div>\n</div>\n'
    )


def steps_data(lab: Lab, use: ModelUse, steps: Sequence[StepRuns]) -> dict[str, Any]:
    """All steps' runs, with what repeats each; the lab's expected range; published values."""
    sets = [figure_rows.set_data(step.title, step.results, names_of(use)) for step in steps]
    span = next((each.ratio_range for each in sets if each.ratio_range), None)
    if span is None or None in span:
        raise UserError(f"{lab.name}: no recorded step, or no range that its ratio is expected in")
    published = lab.folder / "published.csv"
    values = []
    if published.is_file():
        text = published.read_text(encoding="utf-8")
        values = figure_rows.read_published(text, f"{lab.folder.name}/{published.name}")
    return {
        "lab": lab.name,
        "trials": len(lab.trials),
        "range": span,
        "keys": [*ROW_KEYS, "duration_s", "because", "command"],
        "steps": [
            {
                "title": each.title,
                "cases": [
                    {"number": number, "symptom": lab.case(number).symptom} for number in step.cases
                ],
                "fit": each.fit and [each.fit.constant, each.fit.low, each.fit.high],
                "runs": [
                    run_data(lab, row, result)
                    for row, result in zip(each.rows, step.results, strict=True)
                ],
            }
            for each, step in zip(sets, steps, strict=True)
        ],
        "published": [asdict(value) for value in values],
    }


def run_data(lab: Lab, row: figure_rows.Row, result: Result) -> list[Any]:
    """A run as the figure's data has it."""
    return [
        *(row[key] for key in ROW_KEYS),
        result.params.get("duration_s"),
        result.not_comparable_because,
        command(lab, result),
    ]


def names_of(use: ModelUse) -> ParameterNames:
    return ParameterNames(mss=use.mss, rtt=use.rtt, loss=use.loss)


def command(lab: Lab, result: Result) -> str:
    """The command that repeats a run: its trial, and what was set other than the lab has it."""
    usual = {**lab.defaults(), **lab.trials[result.trial].set}
    changes = [f"--set {k}={v}" for k, v in result.params.items() if usual.get(k) != v]
    if result.seed != 1:
        changes.append(f"--seed {result.seed}")
    return " ".join([f"./lab run {lab.name} --trial {result.trial}", *changes])


def steps_summary(use: ModelUse, steps: Sequence[StepRuns]) -> str:
    """What each step came to, as a table. Steps go by their cases: their titles tell what was wrong."""
    lines = [
        "| step | after | trials | in the expected range | the model applies to | fitted C |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for number, each in enumerate(steps, 1):
        step = figure_rows.set_data(each.title, each.results, names_of(use))
        within = figure_rows.count_within(step.rows, step.ratio_range) if step.ratio_range else ""
        applies = sum(row["comparable"] for row in step.rows)
        constant = sig(step.fit.constant) if step.fit else ""
        cells = [number, each.veiled, len(step.rows), within, applies, constant]
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def steps_table(use: ModelUse, steps: Sequence[StepRuns]) -> Block:
    """Every trial's goodput over the model at every step: the whole figure in numbers."""
    found: dict[int, list[str]] = {}
    about: dict[int, list[str]] = {}
    for n, step in enumerate(steps):
        for row in figure_rows.rows_for_table(step.results, names_of(use)):
            about[row["trial"]] = [
                *(sig(row[key], 4) for key in ("rtt_ms", "mss_bytes")),
                *(sig(row[key]) for key in ("loss_ratio", "model_mbit")),
            ]
            cells = found.setdefault(row["trial"], ["–"] * len(steps))
            if row["ratio"] is not None:
                cells[n] = sig(row["ratio"])
    heads = ["trial", "RTT (ms)", "MSS (B)", "p", "model (Mbit/s)"]
    heads += [f"{n}: {step.veiled}" for n, step in enumerate(steps, 1)]
    lines = [_line([trial, *about[trial], *found[trial]]) for trial in sorted(found)]
    return Block("\n".join([_line(heads), "|" + "---:|" * len(heads), *lines]) + "\n")


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
    return math.ceil(statistics.losses_needed(PRECISION / bounds_errors))


def _trial_params(lab: Lab) -> list[tuple[int, dict[str, Any]]]:
    return [(n, {**lab.defaults(), **trial.set}) for n, trial in sorted(lab.trials.items())]


def _decades(lab: Lab, key: str, values: Sequence[float]) -> tuple[float, float]:
    """Whole powers of ten about the trials' values, within what lab.toml allows."""
    allowed = lab.file.parameters[key]
    used = [value for value in values if value > 0]
    low, high = 10.0 ** math.floor(math.log10(min(used))), 10.0 ** math.ceil(math.log10(max(used)))
    return max(low, allowed.min or 0.0), min(high, math.inf if allowed.max is None else allowed.max)


def explorer_table(lab: Lab, use: ModelUse) -> str:
    """What the models say of each of the lab's trials."""
    heads = [
        "trial", "RTT (ms)", "MSS (B)", "p", "C = 1 (Mbit/s)", "C = √(3/2)", "PFTK",
        "window (segments)", "losses a minute", f"time for {use.min_expected_losses:g} losses",
    ]  # fmt: skip
    lines = [_line(heads), "|" + "---:|" * len(heads)]
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
        cells = [
            str(number), sig(rtt, 4), sig(mss, 4), sig(p),
            *(mbit(bps).removesuffix("Mbit/s").strip() for bps in bandwidths),
            sig(1 / math.sqrt(p)), sig(model.mathis_expected_losses(rtt, p, 60.0)),
            seconds(model.mathis_time_for_losses_s(rtt, p, use.min_expected_losses)),
        ]  # fmt: skip
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"
