"""The schema of lab.toml: the whole file here, its tables by their parts in the modules, all pydantic models."""

from __future__ import annotations

from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError

from measuretwice.lab.schema.cases import FirstTry, Pitfall, Recording
from measuretwice.lab.schema.network import Collect, Run, Topology
from measuretwice.lab.schema.parameters import InlineTrial, Name, Parameter, Strict, TrialTable
from measuretwice.lab.schema.results import FIGURE_TABLES, AnyFigure, Checks, Expectation, ModelUse

# What `format_version` is: raised when a table changes so that an older file would be misread.
FORMAT_VERSION = 1
# Its JSON Schema, by which editors complete and refuse; `make schema` writes it.
SCHEMA_FILE = "labs/lab.schema.json"


class About(Strict):
    """What a lab is about. Its `question` is one sentence that doesn't tell the answer. `minutes` is how long it takes, `needs` are the labs
    that come first, and `source` is the work that it follows. A `draft` runs like any lab, but no page shows it, and it needs no recorded runs."""

    title: str
    question: str | None = None
    minutes: int = Field(gt=0)
    objectives: list[str]
    needs: list[str] = []
    source: str | None = None
    draft: bool = False


class LabFile(Strict):
    """The whole file. `format_version` is its form; one that this kit doesn't read is refused."""

    format_version: Literal[1]
    lab: About
    topology: Topology
    parameters: dict[Name, Parameter]
    trials: TrialTable | list[InlineTrial]
    run: Run
    collect: Collect
    model: ModelUse | None = None
    checks: Checks = Checks()
    expect: list[Expectation] = []
    pitfalls: list[Pitfall] = []
    recordings: list[Recording] = []
    figures: list[AnyFigure] = []
    first_try: FirstTry | None = None


def first_problem(error: ValidationError) -> str:
    """Return the first of pydantic's findings as 'key: what was expected'."""
    # A union reports each branch's complaint; the deepest is about what was written.
    first = max(error.errors(include_url=False), key=lambda e: len(e["loc"]))
    loc = first["loc"]
    # By its kind a figure's table is chosen: that is no key that leads to it.
    key = ".".join(str(part) for n, part in enumerate(loc) if (n, loc[0]) != (2, "figures"))
    match first["type"]:
        case "union_tag_not_found":
            return f"{key}.kind: this key is missing"
        case "union_tag_invalid":
            expected = " or ".join(first["ctx"]["expected_tags"].rsplit(", ", 1))
            return f"{key}.kind: input should be {expected}, got {first['ctx']['tag']!r}"
        case "extra_forbidden":
            table = _table_at(loc[:-1])
            expected = f"; expected one of {', '.join(table.model_fields)}" if table else ""
            return f"{key}: no such key{expected}"
        case "missing":
            return f"{key}: this key is missing"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}, got {first['input']!r}"


def _table_at(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model that pydantic reads a table at `loc` of lab.toml into; None where no table stands there."""
    kind: Any = LabFile
    for part in loc:
        kind = _type_below(kind, part)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _type_below(kind: Any, part: str | int) -> Any:
    """The type of what stands at `part` of a value of type `kind`.

    Among several types pydantic puts the name of the one that was tried into its `loc`, such as `TrialTable` or
    `list[InlineTrial]`: that is a part of its own. `X | None` isn't told from X.
    """
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields[str(part)].annotation
        others = [member for member in get_args(field) if member is not NoneType]
        return others[0] if len(others) == 1 and NoneType in get_args(field) else field
    members = get_args(kind)
    if get_origin(kind) is list:
        return members[0]
    if get_origin(kind) is dict:
        return members[1]
    if kind is AnyFigure:
        return FIGURE_TABLES[str(part)]
    return next(m for m in members if str(part).startswith((get_origin(m) or m).__name__))
