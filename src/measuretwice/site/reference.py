"""What the reference pages say, taken from the code that does it: commands, lab.toml, checks."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from measuretwice.checks import KINDS
from measuretwice.lab import Lab
from measuretwice.lab.schema.cases import (
    Again,
    Bar,
    Elsewhere,
    Factors,
    FirstTry,
    Pitfall,
    Predict,
    Recording,
    Shown,
    Stage,
    SymptomOf,
    TryStep,
)
from measuretwice.lab.schema.file import About, LabFile
from measuretwice.lab.schema.network import (
    Act,
    Collect,
    CrowdFiles,
    Edges,
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
    Topology,
)
from measuretwice.lab.schema.parameters import InlineTrial, Parameter, TrialTable
from measuretwice.lab.schema.results import Checks, Expectation, FigureOf, ModelUse, Panel
from measuretwice.site.words.blocks import Block, folded_hints

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
    LabFile, About, Topology, Act, Node, Link, End, Edges, Parameter, TrialTable, InlineTrial, Run, Step,
    Collect, NodeFile, QdiscAt, FlowFiles, CrowdFiles, QueueAt, SenderAt, ModelUse, Checks, Expectation,
    Pitfall, Predict, Stage, Again, Elsewhere, Factors, SymptomOf, Bar, Recording, FirstTry, TryStep, Shown,
    FigureOf, Panel,
)  # fmt: skip


@dataclass(frozen=True)
class Key:
    name: str
    type: str
    must: bool


@dataclass(frozen=True)
class Table:
    """A table of lab.toml: the keys that it takes."""

    title: str
    help: str
    keys: list[Key]


def lab_file_tables() -> list[Table]:
    """Return the tables of lab.toml, outermost first, from the models that read it."""
    return [_table(model) for model in TABLES]


def _table(model: type[BaseModel]) -> Table:
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
    return Table(model.__name__, inspect.cleandoc(help) if help else "", keys)


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
        return ", ".join(f"`{word}`" for word in inner)
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
    looks_at: str
    hints: Block


def checks(labs: list[Lab]) -> list[CheckEntry]:
    """Return every finding that the checker can raise."""
    staged = {pitfall.finding for lab in labs for pitfall in lab.file.pitfalls}
    return [
        CheckEntry(
            name,
            kind.looks_at or "",
            folded_hints(kind.hints) if kind.hints and name not in staged else Block(),
        )
        for name, kind in KINDS.items()
    ]
