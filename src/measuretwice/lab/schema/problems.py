"""What pydantic finds wrong with lab.toml, in words for its author."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from measuretwice.lab.schema.figures import FIGURE_TABLES, AnyFigure
from measuretwice.lab.schema.file import LabFile


def first_problem(error: ValidationError) -> str:
    """The first of pydantic's findings as 'key: what was expected'."""
    # A union reports each branch's complaint; the deepest is about what was written.
    first = max(error.errors(include_url=False), key=lambda e: len(e["loc"]))
    place = first["loc"]
    # By its kind a figure's table is chosen: that is no key that leads to it.
    key = ".".join(str(p) for n, p in enumerate(place) if (n, place[0]) != (2, "figures"))
    if first["type"] == "union_tag_not_found":
        return f"{key}.kind: this key is missing"
    if first["type"] == "union_tag_invalid":
        expected = " or ".join(first["ctx"]["expected_tags"].rsplit(", ", 1))
        return f"{key}.kind: input should be {expected}, got {first['ctx']['tag']!r}"
    if first["type"] == "extra_forbidden":
        table = table_at(place[:-1])
        expected = f"; expected one of {', '.join(table.model_fields)}" if table else ""
        return f"{key}: no such key{expected}"
    if first["type"] == "missing":
        return f"{key}: this key is missing"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}, got {first['input']!r}"


def table_at(place: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model that a place in lab.toml is read into; None where no table stands there."""
    kind: Any = LabFile
    for part in place:
        kind = _kind_below(kind, part)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _kind_below(kind: Any, part: str | int) -> Any:
    """The type of what stands at `part` of a value of type `kind`.

    Among several kinds of value pydantic puts the name of the one that was tried into the place,
    such as `TrialTable` or `list[InlineTrial]`: that is a part of its own.
    """
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _without_none(kind.model_fields[str(part)].annotation)
    members = get_args(kind)
    if get_origin(kind) is list:
        return members[0]
    if get_origin(kind) is dict:
        return members[1]
    if kind is AnyFigure:
        return FIGURE_TABLES[str(part)]
    return next(m for m in members if str(part).startswith((get_origin(m) or m).__name__))


def _without_none(kind: Any) -> Any:
    """`X | None` as X: pydantic's places don't tell the two apart."""
    members = [member for member in get_args(kind) if member is not NoneType]
    return members[0] if len(members) == 1 and NoneType in get_args(kind) else kind
