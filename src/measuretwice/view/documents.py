"""A run's own documents made readable: what was set, as far as it may be shown, and what was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import LabBook
from measuretwice.checks import telling_values
from measuretwice.lab import Lab, Value, complaints, load_lab, trial_params, with_unlisted
from measuretwice.lab.schema.parameters import COUNTED, UNITS
from measuretwice.measure.fields import fields_of, unit_of
from measuretwice.parse import ParseError
from measuretwice.parse.fields import Meaning
from measuretwice.runs.first_try_history import STEPS
from measuretwice.view import Block, Row
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


def measured_blocks(file: RawFile, source: Source, root: Path) -> list[Block]:
    """Return a run's measured values, each with its unit, its tool and its meaning; of those that tell a case's cause only
    those that are due."""
    measured = _object(file).get("measured")
    values = measured if isinstance(measured, dict) else {}
    fields = fields_of(values)
    telling = values_not_due(root, values, source)
    rows = []
    for name, value in values.items():
        if name in telling:
            continue
        field = fields.get(name)
        meaning = Meaning(
            unit_of(name), field.meaning if field else "", field.source if field else ""
        )
        rows.append(Row(name, (plain(value),), meaning))
    note = "made from the raw files; the site's page on a run's folder has every name"
    return [Block("measured values", f"{file.name}, 'measured'", ("value",), tuple(rows), (note,))]


def values_not_due(root: Path, names: Iterable[str], *sources: Source) -> frozenset[str]:
    """Return those of the measured `names` that tell a case's cause which isn't known; of a lab that isn't here none."""
    lab = lab_of(root, sources[0].plan)
    if lab is None:
        return frozenset()
    known_cases = {
        case for source in sources for case in _known_cases(lab, source.target.absolute())
    }
    return telling_values(lab, names, known_cases)


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
    settings = {name: value for name, value in params.items() if name not in strange}
    return settings, [
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
    parameter = lab.file.parameters.get(name) if lab else None
    return Meaning(unit, parameter.help if parameter else "", "lab.toml")


def called(lab: Lab, name: str) -> tuple[str, str]:
    """Return what a setting is called where there is little room, by the first words that lab.toml has for it, and its unit."""
    words = lab.file.parameters[name].help.partition("; ")[0]
    first, colon, _ = words.partition(": ")
    # `red: ...` says whose it is; more words before a colon say what it is.
    short = first if colon and " " in first else words
    numeric = lab.file.parameters[name].numeric and name not in COUNTED
    unit = parameter_meaning(lab, name).unit if numeric and not name.endswith("_ratio") else ""
    return short.partition(" (")[0], unit


def _object(file: RawFile) -> dict[str, Any]:
    try:
        content = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "file"
        raise ParseError(file.name, where, "cut off, or no JSON") from None
    if not isinstance(content, dict):
        raise ParseError(file.name, "$", "expected an object")
    try:
        return with_unlisted(content)
    except ValueError as error:
        raise ParseError(file.name, "$", str(error)) from None


def plain(value: object) -> int | float | str | None:
    """Return a value of JSON as it can be shown and written again; what is no number or text, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | str) or value is None else json.dumps(value)


def listed_of(root: Path, lab: Lab | None, *sources: Source) -> set[str] | None:
    """Return the names that may be shown of these sources; None where all may, of a lab that isn't here.

    What the lab doesn't know, somebody wrote into the plan by hand: that is shown.
    """
    if lab is None:
        return None
    cases: set[int] = set()
    changed: set[str] = set()
    for source in sources:
        cases |= _known_cases(lab, source.target.absolute())
        changed |= set(_changed(root, lab, source))
        params = source.plan.get("params")
        changed |= set(params if isinstance(params, dict) else ()) - set(lab.file.parameters)
    return set(lab.visible_settings(cases, changed)) | (changed - set(lab.file.parameters))


def _known_cases(lab: Lab, target: Path) -> set[int]:
    """By the lab book beside a run, or of a first try's run by the one beside the lab's own runs."""
    folders = [target.parent]
    if _is_first_try(target):
        folders.append(target.parents[2] / lab.name)
    try:
        return set().union(*(LabBook(folder, lab).known_cases() for folder in folders))
    except UserError:
        return set()


def _is_first_try(target: Path) -> bool:
    return (target.parent / STEPS).is_file() and len(target.parents) > 3


def _changed(root: Path, lab: Lab, source: Source) -> Iterator[str]:
    """The settings that a student chose. Of recorded runs and of a first try's the kit has chosen them."""
    target, plan = source.target.absolute(), source.plan
    if (root / "sample-data").absolute() in target.parents or _is_first_try(target):
        return
    params, trial, case = plan.get("params"), plan.get("trial"), plan.get("case")
    if plan.get("pitfall") or not isinstance(params, dict):
        return
    if not isinstance(trial, int) or trial not in lab.trials:
        return
    try:
        planned = trial_params(
            lab, trial, case=case, stage=plan.get("stage"), seed=plan.get("seed", 1)
        )
    except (UserError, TypeError, ValueError, LookupError):
        return
    yield from (name for name in {**planned, **params} if planned.get(name) != params.get(name))
