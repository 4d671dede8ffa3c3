"""What every field of a run's files means. The reference page prints these; tests hold them against
the code that writes the files and against recorded runs, so that neither can go its own way.

What is measured has its meaning in measure/fields.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.facts import Number, Table, table
from measuretwice.facts.values import Cell
from measuretwice.measure import fields
from measuretwice.measure.fields import Field
from measuretwice.runs.result import Result

# result.json, outermost. The parts that are tables of their own stand below.
RESULT = {
    "lab": "the lab's name",
    "trial": "the trial's number",
    "title": "what the trial sets, in words",
    "pitfall": "the mistake that was staged; null for the lab's own settings",
    "stage": "`broken` or `fixed`; null without a pitfall",
    "seed": "where the virtual kernel's randomness started from",
    "params": "every parameter of the lab with the value that this run had",
    "measured": "what was measured: the next table but one",
    "flows": "in a lab with many flows: each flow's own values. Not there in other labs",
    "model": "what the model says of this run's parameters; null in a lab without a model",
    "ratio": "goodput over the model's bandwidth; null where the model has no finite value",
    "comparable": "whether the model makes a claim here at all, and enough losses are expected",
    "not_comparable_because": "if not: why, in words",
    "expectations": "each range that `lab.toml` expects, and whether the value lies in it",
    "case": "the case's number, of a run made with `--case`. Only there",
    "edited": "of a run with a student's own node scripts, these scripts' digests by name. Only there",
    "derived_by": "digest of the code that made this file: other code derives it again. Not kept in recorded runs",
}
MODEL = {
    "name": "the model's name",
    "constant": "the constant C that it was computed with",
    "bandwidth_bps": "the goodput that it predicts, from the parameters that were meant",
    "expected_losses": "how many losses it expects in this run's time",
}
EXPECTATION = {
    "label": "what is expected, in words",
    "measured": "which value: a name from `measured`, or `ratio`",
    "value": "that value",
    "low": "the least that is expected; null for no limit",
    "high": "the most",
    "confidence": "for counts: the share of honest runs that lie in the range",
    "ok": "true, false, or null where nothing can be said",
}
FINDING = {
    "id": "its name, as on the [page of checks](checks.md)",
    "severity": "`error`, `warning` or `note`",
    "measured": "what was measured, in words",
    "expected": "what was expected, in words",
    "why": "why that matters",
    "hint": "with `--hint`: one step of the ladder",
    "page": "where this site explains it",
    "off": "what is off, and by how much, where `measured` and `expected` tell the cause; else empty",
    "consequences": "what else is off because of it, in words",
}
PLAN = {
    "lab": "the lab's name",
    "trial": "the trial's number",
    "pitfall": "the mistake to stage by its name, or null",
    "stage": "`broken` or `fixed`, or null",
    "seed": "what you gave as `--seed`",
    "params": "every parameter with its value: the defaults, then the trial's, the stage's and yours",
    "where": "where it runs",
    "kernel": "the kernel's version, and a digest of its source, configuration and patches",
    "scripts": "a digest of each shell script that takes part",
    "tools": "each tool's word for its version",
    "recipe": "the number of this way of measuring",
    "case": "the number of the case that was run, with `stage` null or, for `--show-me`, `fixed`. Only there",
    "edited": "digests of those scripts that are the student's own (`./lab edit`), by name. Only there",
    "kernel_seed": "the virtual kernel's seed, from lab, trial and seed: both stages of a pitfall have the same",
    "digest": "eight digits that stand for all of the above; the folder's name ends in them",
}
PROVENANCE = {
    "measuretwice": "the kit's version",
    "git_commit": "the checkout's commit",
    "started": "when the run began, in real time",
    "ended": "when it ended",
    "machine": "processor and system",
    "kernel": "all that is known of the virtual kernel's making",
    "virtual_start_ns": "what the virtual clock says at the start of every run",
    "command": "the command that does this run again",
    "plan_digest": "the plan's digest",
    "raw_of": "the run whose raw files these are, where a case's run differs from it only in how it is judged. Only there",
    "confined": "by what means the run's programs were kept from the machine: folders, system calls, Landlock. Of a virtual machine only there",
}
RECORDED_SET = {
    "set": "the set's name",
    "title": "what it is",
    "step": "whether it is one of the steps from the first try to the result",
    "kernel": "as in `plan.json`, once for all its runs",
    "tools": "the same",
    "scripts": "the same",
    "recorded": "the day",
    "machine": "processor and system",
    "runs": "a line for each run: its `result.json` in short, and `raw_sha256`",
}


def _table(meanings: Mapping[str, str]) -> tuple[Field, ...]:
    return tuple(Field(name, "", meaning) for name, meaning in meanings.items())


PARTS = {
    "result": _table(RESULT),
    "model": _table(MODEL),
    "expectation": _table(EXPECTATION),
    "finding": _table(FINDING),
    "measured": fields.ONE_FLOW,
    "together": fields.FEW_FLOWS,
    "flow": fields.FLOW,
    "crowd": fields.MANY_FLOWS,
    "crowd_flow": fields.FLOW_OF_MANY,
    "plan": _table(PLAN),
    "provenance": _table(PROVENANCE),
    "recorded_set": _table(RECORDED_SET),
}
# What a table's first column is called where the heading above it doesn't say which file's fields they are.
HEADINGS = {
    "together": "field of `measured`",
    "crowd": "field of `measured`",
    "flow": "field of `flows`",
    "crowd_flow": "field of `flows`",
    "recorded_set": "field of `results.json`",
}
# Values that are too long for a table, or of the day.
LEFT_OUT = ("derived_by", "title")


def table_of(part: str, example: Mapping[str, Cell] | None = None) -> Table:
    """Return what each field of a part is; UserError names the parts that there are."""
    if part not in PARTS:
        raise UserError(f"there are no fields of {part!r}; there are {', '.join(PARTS)}")
    rows = PARTS[part]
    columns: dict[str, list[Cell]] = {
        HEADINGS.get(part, "field"): [f"`{row.name}`" for row in rows],
        "unit": [row.unit for row in rows],
        "from": [row.source for row in rows],
        "meaning": [row.meaning for row in rows],
    }
    if example is not None:
        columns["example"] = [example[row.name] for row in rows]
    # A column in which next to nothing stands is left out.
    shown = {
        name: cells for name, cells in columns.items() if 4 * sum(map(bool, cells)) >= len(cells)
    }
    return table(tuple(shown), zip(*shown.values(), strict=True))


def values_of(part: str, run: Result) -> dict[str, Cell]:
    """Return the values of a run for such a table, by its fields' names."""
    result = run.to_json()
    known = {"result": result, "expectation": result["expectations"][2]}
    found = known[part] if part in known else result[part]
    digits = {"result": None, "expectation": 4}.get(part, 6)
    return {
        field.name: "" if field.name in LEFT_OUT else _cell(found.get(field.name), digits)
        for field in PARTS[part]
    }


def _cell(value: Any, digits: int | None) -> Cell:
    """A value as the file has it; a number with that many digits."""
    if isinstance(value, Mapping):
        return f"{len(value)} fields"
    if isinstance(value, list | tuple):
        return f"{len(value)} in a list"
    if digits is None or isinstance(value, bool) or not isinstance(value, int | float):
        return f"`{json.dumps(value)}`"
    return Number(value, digits=digits)
