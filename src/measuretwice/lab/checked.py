"""The door: what a file says a run was becomes settings and a plan only here, by the lab's own schema.

Files come from anywhere: hand-ins, archives, a page's saved runs. Settings become variables of a script that
root runs inside a virtual kernel, so nothing reaches one but through CheckedParams: a plan can hold no others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError
from measuretwice.base.text import shortened
from measuretwice.lab.schema import Value

if TYPE_CHECKING:
    from measuretwice.lab.lab import Lab
    from measuretwice.lab.plan import Plan

# How long a word of a plan may be, as a kernel's or a tool's version; and how many of them a table may have.
MOST_CHARACTERS = 200
MOST_ENTRIES = 200
SCRIPT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class CheckedParams(Mapping[str, Value]):
    """Values of a lab's parameters: each known to the lab, of its type, within its bounds.

    There is no other way to make one, and it can't be changed. UserError, which begins with `where`, names the
    first value that isn't the lab's to have.
    """

    __slots__ = ("_values",)

    def __init__(self, lab: Lab, values: Mapping[str, Value], where: str) -> None:
        for why in complaints(lab, values).values():
            raise UserError(f"{where}: {why}")
        self._values = {name: lab.read_value(name, value, where) for name, value in values.items()}

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __or__(self, others: Mapping[str, Value]) -> dict[str, Value]:
        """Return these values with `others` over them: no longer checked."""
        return {**self._values, **others}

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"CheckedParams({self._values})"


def complaints(lab: Lab, values: Mapping[Any, object]) -> dict[str, str]:
    """Return what is wrong with the settings of a file, in words, by name: unknown, of another type, out of bounds."""
    found = {}
    for name, value in values.items():
        if why := _complaint(lab, name, value):
            found[shortened(name)] = why
    return found


def _complaint(lab: Lab, name: object, value: object) -> str:
    if not isinstance(name, str):
        return f"a setting's name is {shortened(name)}, no text"
    parameter = lab.file.parameters.get(name)
    if parameter is None:
        return f"{lab.name} has no setting {shortened(name)}"
    # Text for a number is what --set has, and no file.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if parameter.numeric is not is_number or not isinstance(value, int | float | str):
        expected = "a number" if parameter.numeric else "a word"
        return f"{name}: expected {expected}, got {shortened(value)}"
    try:
        if is_number and not math.isfinite(float(value)):
            return f"{name}: expected a number, got {value}"
        parameter.read(name, value)
    except OverflowError:
        return f"{name}: expected a number, got one of {len(str(value))} digits"
    except ValueError as error:
        return shortened(error, 300)
    return ""


def read_plan(lab: Lab, document: Mapping[str, Any], where: str) -> Plan:
    """Return the plan that a file holds, as Plan.to_json writes it; `where` names the file.

    UserError where it isn't one of this lab's: settings, trial, case or pitfall that the lab doesn't have, a seed that
    no run can have, other fields; or where its digest is of another plan, so that it was changed after the run.
    """
    from measuretwice.lab.plan import Plan

    decided = {name: each for name, each in document.items() if name not in DERIVED}
    try:
        text = json.dumps(decided, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        raise UserError(f"{where}: can't be read; run it again") from None
    known = {each.name for each in fields(Plan)}
    for name in sorted(known - OPTIONAL - decided.keys()):
        raise UserError(f"{where}: {name}: field required; run it again")
    for name in sorted(map(str, decided.keys() - known)):
        raise UserError(f"{where}: {shortened(name)}: no field of a plan; run it again")
    try:
        plan = Plan(**{**decided, "params": _settings(lab, decided["params"])})
        _check_fields(lab, plan)
    except UserError as error:
        raise UserError(f"{where}: {error}; run it again") from None
    if document.get("digest") != hashlib.sha256(text.encode()).hexdigest()[:8]:
        raise UserError(
            f"{where}: was changed after the run (its digest is of another plan); run it again"
        )
    return plan


# What a plan's file has besides its fields; and the fields that only some plans have.
DERIVED = frozenset({"kernel_seed", "digest"})
OPTIONAL = frozenset({"recipe", "case", "edited"})


def _settings(lab: Lab, values: object) -> CheckedParams:
    if not isinstance(values, Mapping):
        raise UserError("params: input should be an object")
    return CheckedParams(lab, values, "params")


def _check_fields(lab: Lab, plan: Plan) -> None:
    """UserError where a field isn't of its type, or is none that this lab's plans can have."""
    if plan.lab != lab.name:
        raise UserError(f"lab: expected {lab.name}, got {shortened(plan.lab)}")
    for name in ("trial", "seed", "recipe"):
        _check_whole(name, getattr(plan, name))
    if plan.trial not in lab.trials:
        raise UserError(f"{lab.name} has no trial {plan.trial}")
    if not 0 <= plan.seed <= LAST_SEED:
        raise UserError(f"seed: expected 0 to {LAST_SEED}, got {shortened(plan.seed)}")
    if plan.case is not None:
        _check_whole("case", plan.case)
        if not 1 <= plan.case <= len(lab.file.pitfalls):
            raise UserError(f"{lab.name} has no case {shortened(plan.case)}")
    if plan.pitfall is not None and plan.pitfall not in [each.id for each in lab.file.pitfalls]:
        raise UserError(f"{lab.name} has no pitfall {shortened(plan.pitfall)}")
    if plan.stage not in (None, "broken", "fixed"):
        raise UserError(f"stage: expected broken, fixed or none, got {shortened(plan.stage)}")
    for name in ("where", "kernel"):
        _check_word(name, getattr(plan, name))
    for name in ("scripts", "tools", "edited"):
        words = getattr(plan, name)
        if words is None and name == "edited":
            continue
        if not isinstance(words, dict) or len(words) > MOST_ENTRIES:
            raise UserError(f"{name}: input should be an object")
        for key, word in words.items():
            _check_word(name, key)
            _check_word(f"{name}.{shortened(key)}", word)
    for name in (*plan.scripts, *(plan.edited or {})):
        if not SCRIPT_NAME.fullmatch(name):
            raise UserError(f"scripts: {shortened(name)} is no script's name")


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UserError(f"{name}: input should be a valid integer")


def _check_word(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise UserError(f"{name}: input should be a valid string")
    if len(value) > MOST_CHARACTERS or not value.isprintable():
        raise UserError(f"{name}: expected a short line of text, got {shortened(value)}")
