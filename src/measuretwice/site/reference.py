"""What the reference pages say, taken from the code that does it: commands, lab.toml, checks, the fields of a run's
files, and for those who write pages all macros (workshop/words.md, which `make words` writes).

Tests compare the meanings of fields with the code that writes the files and with recorded runs, so that neither can go
its own way. What is measured has its meaning in measure/fields.py.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from measuretwice.base.errors import UserError
from measuretwice.checks import KINDS
from measuretwice.facts import Number, Table, table
from measuretwice.facts.values import Cell
from measuretwice.lab import Lab
from measuretwice.lab.schema import About, LabFile
from measuretwice.lab.schema.cases import (
    Again,
    Bar,
    Choice,
    Elsewhere,
    Factors,
    FirstTry,
    Judgement,
    NumberAsked,
    Pitfall,
    Predict,
    Recording,
    Shown,
    Stage,
    SymptomOf,
    TryStep,
)
from measuretwice.lab.schema.network import (
    Act,
    Collect,
    CrowdFiles,
    Edges,
    Emulated,
    End,
    FlowFiles,
    Link,
    Node,
    NodeFile,
    QdiscAt,
    QueueAt,
    Run,
    SenderAt,
    Step,
    StreamFiles,
    Topology,
)
from measuretwice.lab.schema.parameters import InlineTrial, Parameter, TrialTable
from measuretwice.lab.schema.results import (
    Checks,
    Expectation,
    FigureOf,
    ModelUse,
    Panel,
    Samples,
)
from measuretwice.measure import fields
from measuretwice.measure.fields import Field
from measuretwice.runs.result import Result
from measuretwice.site.macros import Macro, Scope, load_macros
from measuretwice.site.macros.blocks import Block, folded_hints, markdown_table

# The command line


@dataclass(frozen=True)
class Option:
    names: str
    help: str


@dataclass(frozen=True)
class Command:
    """A command of ./lab: how it is called, what it does, its options. `cli` says it."""

    name: str
    usage: str
    help: str
    options: list[Option]


def cell(text: str) -> str:
    """Text for a cell of a table, on one line."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# lab.toml

# Outermost first; kinds of figures, and of symptoms, are one table each.
TABLES = (
    LabFile, About, Topology, Act, Node, Link, End, Edges, Emulated, Parameter, TrialTable, InlineTrial, Run, Step,
    Collect, NodeFile, QdiscAt, FlowFiles, StreamFiles, CrowdFiles, QueueAt, SenderAt, ModelUse, Checks, Expectation,
    Pitfall, Predict, Judgement, Choice, NumberAsked, Stage, Again, Elsewhere, Factors, SymptomOf, Bar, Recording, FirstTry, TryStep, Shown,
    FigureOf, Panel, Samples,
)  # fmt: skip


@dataclass(frozen=True)
class Key:
    name: str
    type: str
    must: bool


@dataclass(frozen=True)
class KeyTable:
    """A table of lab.toml: the keys that it takes."""

    title: str
    help: str
    keys: list[Key]


def lab_file_tables() -> list[KeyTable]:
    """Return the tables of lab.toml, outermost first, from the models that read it."""
    return [_key_table(model) for model in TABLES]


def _key_table(model: type[BaseModel]) -> KeyTable:
    """A model's keys. Of one with several kinds, those of all kinds; needed is what each needs."""
    kinds = model.__subclasses__() or [model]
    names = dict.fromkeys(name for kind in kinds for name in kind.model_fields)
    keys = []
    for name in names:
        fields = [kind.model_fields.get(name) for kind in kinds]
        types = dict.fromkeys(cell(_type(field.annotation)) for field in fields if field)
        must = all(field is not None and field.is_required() for field in fields)
        keys.append(Key(name, ", ".join(types), must))
    help = model.__dict__.get("__doc__")
    return KeyTable(model.__name__, inspect.cleandoc(help) if help else "", keys)


def _type(annotation: Any) -> str:
    """A type in words of TOML."""
    plain = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if annotation in plain:
        return plain[annotation]
    if annotation is type(None):
        return ""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is list:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return f"table of {_type(inner[1])}"
    if origin is Literal:
        return ", ".join(f"`{word}`" if word else "empty" for word in inner)
    if hasattr(annotation, "__metadata__"):
        return _type(inner[0])
    if inner:
        return " or ".join(dict.fromkeys(filter(None, map(_type, inner))))
    # All kinds of figures are shown as one table, and so are those of symptoms.
    name = next(
        (of for of in (FigureOf, SymptomOf) if issubclass(annotation, of)), annotation
    ).__name__
    return f"[{name}](#{name.lower()})"


# Checks


@dataclass(frozen=True)
class CheckEntry:
    """A finding: what is looked at, and its hints. Those of a case are on the case's page alone."""

    id: str
    description: str
    hints: Block


def checks(labs: list[Lab]) -> list[CheckEntry]:
    """Return every finding that the checker can raise."""
    staged = {pitfall.finding for lab in labs for pitfall in lab.file.pitfalls}
    return [
        CheckEntry(
            name,
            kind.description or "",
            folded_hints(kind.hints) if kind.hints and name not in staged else Block(),
        )
        for name, kind in KINDS.items()
    ]


# The fields of a run's files

# result.json, outermost. The parts that are tables of their own stand below.
RESULT = {
    "lab": "the lab's name",
    "trial": "the trial's number",
    "title": "what the trial sets, in words",
    "pitfall": "the mistake that was staged, by its name; null for the lab's own settings, and in a case's run",
    "stage": "`broken` or `fixed`; null for the lab's own settings, and in a case's run without `--show-me`",
    "seed": "where the virtual kernel's randomness started from",
    "params": "every parameter of the lab with the value that this run had",
    "measured": "what was measured: the next table",
    "flows": "each flow's own values. Only labs with several flows have it",
    "model": "the model's prediction for this run's parameters; null in a lab without a model",
    "ratio": "goodput over the model's bandwidth; null where the model has no finite value",
    "comparable": "whether the model makes a claim here at all, and enough losses are expected",
    "not_comparable_because": "if not: why, in words",
    "expectations": "each range that `lab.toml` expects, and whether the value lies in it",
    "case": "the case's number. Only runs made with `--case` have it",
    "edited": "digests of the student's own node scripts, by name. Only runs with such scripts have it",
    "derived_by": "digest of the code that made this file, because other code derives it again. Not kept in recorded runs",
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
    "ok": "true, false, or null if it is undecided",
}
FINDING = {
    "id": "its name, as on the [page of checks](checks.md)",
    "severity": "`error`, `warning` or `note`",
    "measured": "what was measured, in words",
    "expected": "what was expected, in words",
    "why": "why that matters",
    "hint": "with `--hint`: one of the three hints",
    "page": "where this site explains it",
    "off": "what is off, and by how much, where `measured` and `expected` tell the cause; else empty",
    "consequences": "what else is off because of it, in words",
}
PLAN = {
    "lab": "the lab's name",
    "trial": "the trial's number",
    "pitfall": "the mistake to stage, by its name; null as in `result.json`",
    "stage": "`broken` or `fixed`; null as in `result.json`",
    "seed": "what you gave as `--seed`",
    "params": "every parameter with its value: the defaults, then the trial's, the stage's and yours",
    "where": "where it runs",
    "kernel": "the kernel's version, and a digest of its source, configuration and patches",
    "scripts": "a digest of each shell script that takes part",
    "tools": "each tool's version, as the tool prints it",
    "recipe": "the version of the kit's way of measuring, so that an older run isn't taken for a new one",
    "case": "the number of the case that was run, with `stage` null or, for `--show-me`, `fixed`. Only a case's plan has it",
    "edited": "digests of those scripts that are the student's own (`./lab edit`), by name. Only plans with such scripts have it",
    "kernel_seed": "the virtual kernel's seed, from lab, trial and seed: both stages of a pitfall have the same",
    "digest": "eight hexadecimal digits that stand for all of the above; the folder's name ends in them",
}
PROVENANCE = {
    "measuretwice": "the kit's version",
    "git_commit": "the checkout's commit",
    "started": "when the run began, in real time",
    "ended": "when it ended",
    "machine": "the processor's architecture, and the system",
    "kernel": "all that is known of the virtual kernel's making",
    "virtual_start_ns": "the virtual clock's time at the start of every run",
    "command": "the command that does this run again",
    "plan_digest": "the plan's digest",
    "raw_of": "the run whose raw files these are, where a case's run differs from it only in how it is judged. Only such runs have it",
    "confined": "by what means the run's programs were kept from your machine: folders, system calls, Landlock. Only in runs of the virtual kernel and the browser's machine",
}
RECORDED_SET = {
    "set": "the set's name",
    "title": "what it is",
    "step": "whether it is one of the steps from the first try to the result",
    "kernel": "as in `plan.json`, once for all its runs",
    "tools": "the same",
    "scripts": "the same",
    "recorded": "the day on which they were recorded",
    "machine": "the processor's architecture, and the system",
    "runs": "a line for each run: its `result.json` in short, and `raw_sha256`",
}


def _fields(meanings: Mapping[str, str]) -> tuple[Field, ...]:
    return tuple(Field(name, "", meaning) for name, meaning in meanings.items())


PARTS = {
    "result": _fields(RESULT),
    "model": _fields(MODEL),
    "expectation": _fields(EXPECTATION),
    "finding": _fields(FINDING),
    "measured": fields.ONE_FLOW,
    "together": fields.FEW_FLOWS,
    "flow": fields.FLOW,
    "crowd": fields.MANY_FLOWS,
    "crowd_flow": fields.FLOW_OF_MANY,
    "plan": _fields(PLAN),
    "provenance": _fields(PROVENANCE),
    "recorded_set": _fields(RECORDED_SET),
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


def table_of(
    part: str, example: Mapping[str, Cell] | None = None, *, without: Collection[str] = ()
) -> Table:
    """Return what each field of a part is, but for those `without`; UserError names the parts that there are."""
    if part not in PARTS:
        raise UserError(f"there are no fields of {part!r}; there are {', '.join(PARTS)}")
    rows = [row for row in PARTS[part] if row.name not in without]
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
    parts = {"result": result, "expectation": result["expectations"][2]}
    values = parts[part] if part in parts else result[part]
    digits = {"result": None, "expectation": 4}.get(part, 6)
    # A port is a name, as the tools print it.
    return {
        field.name: _value(values[field.name], None if field.name.endswith("_port") else digits)
        if field.name in values and field.name not in LEFT_OUT
        else ""
        for field in PARTS[part]
    }


def _value(value: Any, digits: int | None) -> Cell:
    """A value as the file has it; a number with that many digits."""
    if isinstance(value, Mapping):
        return f"{len(value)} fields"
    if isinstance(value, list | tuple):
        return f"{len(value)} in a list"
    if digits is None or isinstance(value, bool) or not isinstance(value, int | float):
        return f"`{json.dumps(value)}`"
    return Number(value, digits=digits)


# Macros

HEAD = """# The words of pages

`make words` makes this list of the functions in `src/measuretwice/site/macros/`: what a word is, is its
docstring there. [pages.md](pages.md) says how pages are made.
"""
LAB = """In `docs/modules/NN-<lab>/` these words are about that lab; elsewhere write `lab("mathis")` before them,
as in `{{ lab("mathis").trial(7).rtt_ms }}`. Words that begin with `own.` not every lab can answer.
"""
FILTERS = """Filters round and add the unit, as in `{{ run("mtu-fixed").measured.goodput_bps | mbit }}`.
"""


def macro_list() -> str:
    """Return all macros as Markdown."""
    of_labs = load_macros().of("lab").values()
    parts = [HEAD, "## Of a lab\n", LAB]
    for module, macros in groupby(of_labs, key=lambda macro: macro.function.__module__):
        subject = (sys.modules[module].__doc__ or module).splitlines()[0].split(":")[0].rstrip(".")
        parts += [f"### {subject}\n", _macro_table(macros)]
    scopes: dict[Scope, str] = {
        "site": "Of the site",
        "model": "Models",
        "filter": f"Filters\n\n{FILTERS}",
    }
    for scope, title in scopes.items():
        parts += [f"## {title.rstrip()}\n", _macro_table(load_macros().of(scope).values())]
    return "\n".join(parts)


def _macro_table(macros: Iterable[Macro]) -> str:
    rows = ((f"`{macro.usage}`", macro.help) for macro in macros)
    escaped = ([text.replace("|", "\\|") for text in row] for row in rows)
    return markdown_table(("word", "what it is"), escaped, "ll")


if __name__ == "__main__":
    sys.stdout.write(macro_list())
