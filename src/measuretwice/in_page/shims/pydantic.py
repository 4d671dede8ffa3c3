"""Stands in for pydantic in a browser, where there is none: Pyodide's is not to be had from a static site of ours.

It reads what was validated when the site was built, lab.toml and plans, and what the kit itself wrote. So it checks no
more than it needs to tell the members of a union apart: no bounds, no patterns, no validators. A test holds what it
reads against what pydantic reads, for all labs.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

REQUIRED: Any = object()
T = TypeVar("T")


class ValidationError(ValueError):
    """What was read isn't of its type."""

    def errors(self, **_: Any) -> list[dict[str, Any]]:
        return [{"loc": (), "type": "value_error", "msg": str(self), "input": None}]


@dataclasses.dataclass(eq=False)
class FieldInfo:
    default: Any = REQUIRED
    default_factory: Callable[[], Any] | None = None
    annotation: Any = None


def Field(default: Any = REQUIRED, **options: Any) -> Any:
    return FieldInfo(default, options.get("default_factory"))


def ConfigDict(**options: Any) -> dict[str, Any]:
    return options


def _as_it_is(*_: Any, **__: Any) -> Callable[[Any], Any]:
    return lambda function: function


field_validator = model_validator = _as_it_is


class _Fields(type):
    @property
    def model_fields(cls) -> dict[str, FieldInfo]:
        by_name = cls.__dict__.get("_model_fields")
        if by_name is None:
            by_name = {}
            for name, kind in get_type_hints(cls, include_extras=True).items():
                if (
                    name == "model_config"
                    or name.startswith("_")
                    or get_origin(kind) is typing.ClassVar
                ):
                    continue
                default = getattr(cls, name, REQUIRED)
                plain = default if isinstance(default, FieldInfo) else FieldInfo(default)
                annotation = get_args(kind)[0] if get_origin(kind) is typing.Annotated else kind
                by_name[name] = FieldInfo(plain.default, plain.default_factory, annotation)
            cls._model_fields = by_name
        return by_name


class BaseModel(metaclass=_Fields):
    model_config: typing.ClassVar[dict[str, Any]] = {}

    def __init__(self, **values: Any) -> None:
        fields = type(self).model_fields
        if unknown := values.keys() - fields.keys():
            raise ValidationError(f"{', '.join(sorted(unknown))}: no such key")
        for name, field in fields.items():
            if name in values:
                value = _read(field.annotation, values[name])
            elif field.default_factory is not None:
                value = field.default_factory()
            elif field.default is not REQUIRED:
                value = copy.copy(field.default)
            else:
                raise ValidationError(f"{name}: this key is missing")
            self.__dict__[name] = value

    @classmethod
    def model_validate(cls, values: Any) -> Self:
        if isinstance(values, cls):
            return values
        if not isinstance(values, Mapping):
            raise ValidationError(f"{cls.__name__}: no table")
        return cls(**values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        other = copy.copy(self)
        other.__dict__.update(update or {})
        return other

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *map(repr, self.__dict__.values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


class TypeAdapter(Generic[T]):
    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def validate_python(self, value: Any, **_: Any) -> Any:
        return _read(self._kind, value)

    def validate_json(self, text: str | bytes, **_: Any) -> Any:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValidationError(str(error)) from None
        return _read(self._kind, value)


def _read(kind: Any, value: Any) -> Any:
    """Return a value as its type has it; ValidationError where it can't be of it."""
    origin = get_origin(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return value
    if origin is typing.Annotated:
        return _read(get_args(kind)[0], value)
    if origin is Literal:
        return _expect(value in get_args(kind), value, kind)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(kind), value)
    if kind in (None, types.NoneType):
        return _expect(value is None, value, kind)
    if origin is not None:
        return _collection(origin, get_args(kind), value)
    if isinstance(kind, type):
        return _plain(kind, value)
    raise TypeError(f"{kind}: no type that is known here")


def _expect(right: bool, value: Any, kind: Any) -> Any:
    if not right:
        raise ValidationError(f"{value!r} is no {kind}")
    return value


def _one_of(kinds: Sequence[Any], value: Any) -> Any:
    # What needs no change comes before what does: 1 stays an int among int and float.
    for kind in kinds:
        if isinstance(kind, type) and type(value) is kind:
            return _read(kind, value)
    for kind in kinds:
        try:
            return _read(kind, value)
        except ValidationError:
            continue
    raise ValidationError(f"{value!r} is none of {kinds}")


def _collection(origin: Any, kinds: Sequence[Any], value: Any) -> Any:
    if issubclass(origin, Mapping):
        _expect(isinstance(value, Mapping), value, origin)
        return {_read(kinds[0], key): _read(kinds[1], item) for key, item in value.items()}
    _expect(isinstance(value, list | tuple | set | frozenset), value, origin)
    if origin is tuple and not (len(kinds) == 2 and kinds[1] is ...):
        _expect(len(kinds) == len(value), value, origin)
        return tuple(_read(kind, item) for kind, item in zip(kinds, value, strict=True))
    items = [_read(kinds[0], item) for item in value]
    return origin(items) if origin in (tuple, set, frozenset) else items


def _plain(kind: type, value: Any) -> Any:
    if issubclass(kind, BaseModel):
        return kind.model_validate(value)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value)
    if kind is float:
        _expect(isinstance(value, int | float) and not isinstance(value, bool), value, kind)
        try:
            return float(value)
        except OverflowError:
            raise ValidationError("a number that no float holds") from None
    if kind is int:
        return _expect(isinstance(value, int) and not isinstance(value, bool), value, kind)
    if issubclass(kind, Path):
        return kind(value)
    return _expect(isinstance(value, kind), value, kind)


def _dataclass(kind: Any, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    _expect(isinstance(value, Mapping), value, kind)
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    missing = [
        name
        for name, field in fields.items()
        if name not in value
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    _expect(not missing, value, f"{kind.__name__} without {missing}")
    return kind(**{name: _read(hints[name], value[name]) for name in fields if name in value})
