"""A run's own documents made readable: what was set, and what was measured."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Value, complaints, load_lab
from measuretwice.lab.schema.parameters import UNITS
from measuretwice.measure.fields import fields_of, unit_of
from measuretwice.parse import ParseError
from measuretwice.parse.fields import Meaning
from measuretwice.view.blocks import Block, Row
from measuretwice.view.listed import listed_of
from measuretwice.view.source import RawFile, Source

# Of a plan beside its parameters. Which mistake was staged is no setting of the network.
OF_PLAN = {
    "lab": "the lab",
    "trial": "the trial",
    "seed": "where randomness starts from",
    "where": "where it ran",
    "kernel": "the kernel that it ran on",
}
# Units whose ending in a parameter's name isn't how they are written.
SHORT_UNITS = {"mbit": "Mbit/s", "ratio": "0 to 1", "percent": "%", "us": "µs", "count": ""}


def settings_blocks(file: RawFile, source: Source, root: Path) -> list[Block]:
    """Return what decided a run, with each parameter's meaning from its lab.toml; of those that tell a
    case's cause only those that are due."""
    plan = _object(file)
    about = [
        Row(name, (str(plan[name]),), Meaning("", text, "plan.json"))
        for name, text in OF_PLAN.items()
        if plan.get(name) is not None
    ]
    params = params_of(source)
    lab = lab_of(root, plan)
    listed = listed_of(root, lab, source)
    strange = complaints(lab, params) if lab else {}
    rows = [
        Row(
            name,
            (plain(value),),
            Meaning("", f"not what the lab can have: {strange[name]}", "plan.json")
            if name in strange
            else parameter_meaning(lab, name),
        )
        for name, value in params.items()
        if listed is None or name in listed
    ]
    blocks = [Block("the run", file.name, ("value",), tuple(about))]
    return [*blocks, Block("its parameters", f"{file.name}, 'params'", ("value",), tuple(rows))]


def measured_blocks(file: RawFile) -> list[Block]:
    """Return a run's measured values, each with its unit, its tool and its meaning."""
    measured = _object(file).get("measured")
    values = measured if isinstance(measured, dict) else {}
    fields = fields_of(values)
    rows = []
    for name, value in values.items():
        known = fields.get(name)
        meaning = Meaning(
            unit_of(name), known.meaning if known else "", known.source if known else ""
        )
        rows.append(Row(name, (plain(value),), meaning))
    note = "made from the raw files; the site's page on a run's folder has every name"
    return [Block("measured values", f"{file.name}, 'measured'", ("value",), tuple(rows), (note,))]


def params_of(source: Source) -> dict[str, Any]:
    """Return the settings that a run's plan names, as they stand there: to be shown, and for nothing else."""
    params = source.plan.get("params")
    return params if isinstance(params, dict) else {}


def settings_of(root: Path, source: Source) -> tuple[dict[str, Value], list[str]]:
    """Return those settings of a plan that its lab can have; and of the others what is wrong with them, a line each."""
    params, lab = params_of(source), lab_of(root, source.plan)
    if lab is None:
        return {}, [f"{source.title}: no lab of this checkout, so its settings say nothing"] * bool(
            params
        )
    strange = complaints(lab, params)
    known = {name: value for name, value in params.items() if name not in strange}
    return known, [
        f"{source.title}: its plan holds what the lab can't have: {why}" for why in strange.values()
    ]


def lab_of(root: Path, plan: dict[str, Any]) -> Lab | None:
    """Return a plan's lab; None where this checkout has none by that name."""
    try:
        return load_lab(root, str(plan.get("lab")))
    except UserError:
        return None


def parameter_meaning(lab: Lab | None, name: str) -> Meaning:
    """Return a parameter's unit, and what lab.toml says of it."""
    ending = name.rsplit("_", 1)[-1]
    unit = SHORT_UNITS.get(ending, ending) if ending in UNITS else ""
    known = lab.file.parameters.get(name) if lab else None
    return Meaning(unit, known.help if known else "", "lab.toml")


def _object(file: RawFile) -> dict[str, Any]:
    try:
        content = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "file"
        raise ParseError(file.name, where, "cut off, or no JSON") from None
    if not isinstance(content, dict):
        raise ParseError(file.name, "$", "expected an object")
    return content


def plain(value: object) -> int | float | str | None:
    """Return a value of JSON as it can be shown and written again; what is no number or text, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | str) or value is None else json.dumps(value)
