"""A lab's recorded steps from its first try to its result, as the data of a figure that its reader can change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.figures import rows as figure_rows
from measuretwice.figures.rows import ParameterNames
from measuretwice.lab import Lab, after_cases
from measuretwice.lab.schema.results import ModelUse
from measuretwice.runs.result import Result

# What a mark tells of its run; each run in the data is a list in this order.
ROW_KEYS = (
    "trial", "rtt_ms", "mss_bytes", "loss_ratio", "model_mbit", "goodput_mbit", "goodput_low_mbit",
    "goodput_high_mbit", "ratio", "comparable", "losses",
)  # fmt: skip


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


def json_for_script(data: Any) -> str:
    """Return JSON that may stand in a script of a page: no sign in it ends the script or begins a tag."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def steps_data(lab: Lab, use: ModelUse, steps: Sequence[StepRuns]) -> dict[str, Any]:
    """All steps' runs, with what repeats each; the lab's expected range; published values."""
    sets = [figure_rows.set_data(step.title, step.results, names_of(use)) for step in steps]
    span = next((data.ratio_range for data in sets if data.ratio_range), None)
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
                "title": data.title,
                "cases": [
                    {"number": number, "symptom": lab.case(number).symptom} for number in step.cases
                ],
                "fit": data.fit and [data.fit.constant, data.fit.low, data.fit.high],
                "runs": [
                    run_data(lab, row, result)
                    for row, result in zip(data.rows, step.results, strict=True)
                ],
            }
            for data, step in zip(sets, steps, strict=True)
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
