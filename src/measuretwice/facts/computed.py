"""Facts computed by a lab's own module `facts`, and kept beside its recorded sets."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.base.paths import CHECKOUT
from measuretwice.facts.sets import RecordedSets
from measuretwice.facts.values import (
    Cell,
    Excerpt,
    Fact,
    Facts,
    Interval,
    Number,
    Numbers,
    Probability,
    Table,
)
from measuretwice.lab import Lab

# A lab's module `facts`, beside its lab.toml: a file, or a folder where it is long.
MODULES = ("facts.py", "facts/__init__.py")
FILE = "facts.json"


def facts_file(root: Path, lab: Lab) -> Path:
    """Return where a lab's facts are kept."""
    return root / "sample-data" / lab.folder.name / FILE


def module_of(folder: Path) -> Path | None:
    """Return the file of the lab's module `facts`; None where the lab in `folder` has none."""
    return next((folder / name for name in MODULES if (folder / name).is_file()), None)


def compute(root: Path, lab: Lab) -> Facts | None:
    """Return what a lab's module `facts` makes of its recorded sets; None where it has no such module.

    UserError where a set that it asks for isn't recorded, and where the module isn't this kit's own: it is a program
    that runs on this machine, and labs may be read from anywhere (MEASURETWICE_ROOT).
    """
    path = module_of(lab.folder)
    if path is None:
        return None
    if not path.resolve().is_relative_to(CHECKOUT.resolve()):
        raise UserError(f"{path} is a program of another folder than the kit's: it isn't run")
    facts = _imported(path).facts(RecordedSets(root, lab))
    assert isinstance(facts, Facts), path
    return facts


def _imported(path: Path) -> Any:
    """The module in `path`, imported anew; where it is a folder, with what it imports of that."""
    name = "measuretwice_facts_of_a_lab"
    for module_name in [
        module_name for module_name in sys.modules if module_name.split(".")[0] == name
    ]:
        del sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_facts(root: Path, lab: Lab) -> Path | None:
    """Compute a lab's facts and write them, a line each; return the file, None where the lab has no facts."""
    if (facts := compute(root, lab)) is None:
        return None
    path = facts_file(root, lab)
    path.write_text(to_text(facts), encoding="utf-8")
    return path


def read_facts(root: Path, lab: Lab) -> Facts:
    """Return a lab's facts as they were written last; none where it has no facts.json.

    UserError where that file is damaged.
    """
    path = facts_file(root, lab)
    if not path.is_file():
        return Facts()
    try:
        parts = read_object(path)
        by_name = {
            name: _from_json(fact) for facts in parts.values() for name, fact in facts.items()
        }
        return Facts(by_name, {name: source for source, facts in parts.items() for name in facts})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: is damaged ({error}): ./lab record {lab.name} --facts") from None


def to_text(facts: Facts) -> str:
    """Return facts.json: what facts are of, then these, a line a fact, a line a row of a table, so that a difference shows which."""
    parts: dict[str, list[str]] = {}
    for name, fact in facts.items():
        parts.setdefault(facts.source(name), []).append(f"  {json.dumps(name)}: {_fact_text(fact)}")
    texts = [
        f" {json.dumps(source, ensure_ascii=False)}: {{\n" + ",\n".join(lines) + "\n }"
        for source, lines in parts.items()
    ]
    return "{\n" + ",\n".join(texts) + "\n}\n"


def _fact_text(fact: Fact) -> str:
    value = _to_json(fact)
    if not isinstance(fact, Table):
        return json.dumps(value, ensure_ascii=False)
    rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in value.pop("rows"))
    head = json.dumps(value, ensure_ascii=False).removesuffix("}")
    return f'{head}, "rows": [\n   {rows}\n  ]}}'


def _to_json(fact: Fact | Cell) -> Any:
    match fact:
        case Number(value, unit, digits):
            return {"value": value} | _kind(unit, digits)
        case Interval(middle, low, high, unit, digits, n):
            ends = {"value": middle, "low": low, "high": high} | _kind(unit, digits)
            return ends if n is None else ends | {"n": n}
        case Numbers(values, unit, digits):
            return {"values": list(values)} | _kind(unit, digits)
        case Probability(value):
            return {"p": value}
        case Excerpt(of_set, file, lines):
            return {"excerpt": [of_set, file], "lines": dict(lines)}
        case Table(headings, rows):
            return {
                "headings": headings,
                "rows": [[_to_json(cell) for cell in row] for row in rows],
            }
        case _:
            return fact


def _kind(unit: str, digits: int) -> dict[str, Any]:
    """Unit and digits, where they aren't the usual ones."""
    usual = Number(0)
    return ({"unit": unit} if unit != usual.unit else {}) | (
        {"digits": digits} if digits != usual.digits else {}
    )


def _from_json(value: Any) -> Any:
    match value:
        case {"p": p}:
            return Probability(p)
        case {"low": low, "high": high}:
            return Interval(value["value"], low, high, **_kind_of(value), n=value.get("n"))
        case {"values": values}:
            return Numbers(tuple(values), **_kind_of(value))
        case {"value": number}:
            return Number(number, **_kind_of(value))
        case {"excerpt": [of_set, file], "lines": lines}:
            return Excerpt(of_set, file, lines)
        case {"headings": headings, "rows": rows}:
            return Table(tuple(headings), tuple(tuple(map(_from_json, row)) for row in rows))
        case None | bool() | str():
            return value
    raise ValueError(f"{value!r} is no fact")


def _kind_of(value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in ("unit", "digits") if key in value}
