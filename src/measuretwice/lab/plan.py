"""From a lab and a person's choices, or from a file, to a plan: everything that decides a run's result.

Files come from anywhere: hand-ins, archives, a page's saved runs. Settings become variables of a script that
root runs inside a virtual kernel, so nothing reaches one but through CheckedParams: a plan can hold no others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError, shortened
from measuretwice.lab.lab import Lab
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.lab.schema.parameters import Value, refers
from measuretwice.lab.spoilers import with_unlisted

# A number that is part of each plan, so that a run made by an older recipe is not taken for
# one of today's. Raise it when the way of measuring changes.
RECIPE = 2
StageName = Literal["broken", "fixed"]
# As a change: take a setting that has no default away again. No parameter has it for a value.
UNSET = ""
# How long a word of a plan may be, as a kernel's or a tool's version; and how many of them a table may have.
MOST_CHARACTERS = 200
MOST_ENTRIES = 200
SCRIPT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# What a plan's file has besides its fields; and the fields that only some plans have.
DERIVED = frozenset({"kernel_seed", "digest"})
OPTIONAL = frozenset({"recipe", "case", "edited"})


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
    by_name = {}
    for name, value in values.items():
        if why := _complaint(lab, name, value):
            by_name[shortened(name)] = why
    return by_name


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


@dataclass(frozen=True)
class Toolchain:
    """With what trials are measured, as their plans name it: no path, and no machine's name.

    `where` is the backend's name, `kernel` its kernel's; `tools` are versions, `scripts` digests,
    `edited` those of a student's own node scripts.
    """

    where: str
    kernel: str
    tools: dict[str, str]
    scripts: dict[str, str]
    edited: dict[str, str] | None = None


@dataclass(frozen=True)
class KernelFacts:
    """What provenance.json says of a kernel: its version, and what else is known of it by name."""

    version: str
    others: Mapping[str, str | int | bool | Mapping[str, str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"version": self.version, **self.others}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """KeyError where there is no version."""
        others = {name: value for name, value in content.items() if name != "version"}
        return cls(content["version"], others)


@dataclass(frozen=True)
class Plan:
    """One trial to run.

    `case` is the number by which a student knows a pitfall: then `pitfall`, whose name says the cause,
    is None, and `stage` is `fixed` or, for the first try and all that the student changes in it, None.
    `params` holds every parameter of the lab with its value and `seed` what all of the virtual
    kernel's randomness starts from. `scripts` and `tools` are digests and versions of what
    takes part, and `kernel` names the kernel: with equal plans the results are equal. `edited` are those
    of `scripts` that aren't the lab's but the student's own (./lab edit).

    A plan reaches a kernel, its params as variables of a script: TypeError where they weren't checked.
    """

    lab: str
    trial: int
    pitfall: str | None
    stage: StageName | None
    seed: int
    params: CheckedParams
    where: str
    kernel: str
    scripts: dict[str, str]
    tools: dict[str, str]
    recipe: int = RECIPE
    case: int | None = None
    edited: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.params, CheckedParams):
            raise TypeError(
                "a plan's params are CheckedParams: lab.make_plan or lab.read_plan makes them"
            )

    @property
    def digest(self) -> str:
        """Eight hex digits that tell this plan from others."""
        text = json.dumps(self._decided(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def folder_name(self) -> str:
        case = f"case-{self.case:02d}-{'shown-' if self.stage else ''}" if self.case else ""
        stage = f"-{self.pitfall}-{self.stage}" if self.pitfall else ""
        return f"{case}trial-{self.trial:02d}{stage}-seed{self.seed}-{self.digest}"

    @property
    def kernel_seed(self) -> int:
        """The virtual kernel's own seed: differs between trials of one `seed`.

        Not between a pitfall's stages: what differs between those is the setting alone.
        """
        return kernel_seed(self.lab, self.trial, self.seed)

    def to_json(self) -> dict[str, Any]:
        return {**self._decided(), "kernel_seed": self.kernel_seed, "digest": self.digest}

    def _decided(self) -> dict[str, Any]:
        """The fields; `case`, `edited` only in a plan that has them, so that all others keep their digests."""
        decided = {**asdict(self), "params": dict(self.params)}
        for name in ("case", "edited"):
            if decided[name] is None:
                del decided[name]
        return decided


def kernel_seed(lab: str, trial: int, seed: int) -> int:
    """Return what all randomness of the virtual kernel starts from in a trial with this seed."""
    text = f"{lab} {trial} {seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def make_plan(
    lab: Lab,
    trial: int,
    *,
    seed: int,
    toolchain: Toolchain,
    changes: Mapping[str, Value] | None = None,
    pitfall: str | None = None,
    stage: StageName | None = None,
    case: int | None = None,
) -> Plan:
    """Return the plan of one trial, with trial_params' parameters."""
    params = trial_params(
        lab, trial, pitfall=pitfall, stage=stage, case=case, seed=seed, changes=changes
    )
    return Plan(
        lab=lab.name,
        trial=trial,
        pitfall=pitfall,
        stage=stage,
        seed=seed,
        params=CheckedParams(lab, params, f"{lab.shown_path}: trial {trial}"),
        where=toolchain.where,
        kernel=toolchain.kernel,
        tools=toolchain.tools,
        scripts={**toolchain.scripts, **(toolchain.edited or {})},
        case=case,
        edited=toolchain.edited,
    )


def trial_params(
    lab: Lab,
    trial: int,
    *,
    pitfall: str | None = None,
    stage: StageName | None = None,
    case: int | None = None,
    seed: int = 1,
    changes: Mapping[str, Value] | None = None,
) -> dict[str, Value]:
    """Return the parameters of one trial.

    They are the lab's defaults, over them what a choice among them sets of others, then the
    trial's values, those of a pitfall's stage, and `changes`. A `case` is its pitfall's first try,
    where no stage is named, with values that vary with the `seed`. What `changes` sets to UNSET
    isn't among them, and `"=name"` is what `name` has.
    """
    staged = lab.staged(pitfall=pitfall, stage=stage, case=case)
    stage_set = staged.set if staged else {}
    varied = lab.varied_by(lab.case(case), seed) if case else {}
    chosen = {**lab.trials[trial].set, **varied, **stage_set, **(changes or {})}
    defaults = lab.defaults()
    params = {**defaults, **lab.presets({**defaults, **chosen}), **chosen}
    params = {name: value for name, value in params.items() if value != UNSET}
    return {n: params[str(value)[1:]] if refers(value) else value for n, value in params.items()}


Need = Literal["needed", "one way", "beside"]


@dataclass(frozen=True)
class SettingToChange:
    """A setting in which a case's first try is wrong, as a student is told it who knows the cause.

    `value` is the first try's. `is_taken_away`: the fixed run has none, the nodes' scripts find its value by others.
    `lines` say where the scripts read it; none of a setting by which files are only judged. `need` says whether it has to
    change, whether it is one of several of which each is enough, or whether it only differs as well.
    """

    name: str
    value: Value | None
    help: str
    choices: tuple[str, ...]
    is_taken_away: bool
    lines: str
    need: Need = "needed"

    @property
    def says(self) -> str:
        """Return what it is now, what it takes, what it means, and where it is read."""
        takes = f" (it takes {', '.join(self.choices)})" if self.choices else ""
        parts = [
            f"{self.name}{'' if self.value is None else f' = {self.value}'}{takes}: {self.help}"
        ]
        if self.is_taken_away:
            parts.append(f"--set {self.name}= with nothing after the = takes it away")
        if self.lines:
            parts.append(f"the nodes' scripts read it as {self.name.upper()}, in {self.lines}")
        return "; ".join(parts)


def settings_to_change(lab: Lab, number: int) -> list[SettingToChange]:
    """Return the settings in which a case's first try is wrong, and that of the run that decides, where a case asks for
    one; none where it isn't a setting but which runs there are."""
    pitfall = lab.case(number)
    first = trial_params(lab, pitfall.trial, case=number)
    fixed = trial_params(lab, pitfall.trial, case=number, stage="fixed")
    names = [name for name in pitfall.broken.set if first.get(name) != fixed.get(name)]
    if pitfall.settled_by and pitfall.settled_by not in names:
        names.append(pitfall.settled_by)
    parameters = lab.file.parameters
    return [
        SettingToChange(
            name,
            first.get(name),
            parameters[name].help,
            tuple(parameters[name].choices or ()),
            name not in fixed,
            lab.lines_that_read(name),
            _need(pitfall, name),
        )
        for name in names
    ]


def needed_settings(settings: Sequence[SettingToChange]) -> list[SettingToChange]:
    """Return those of a case's settings that fix it, without those that only differ as well."""
    return [setting for setting in settings if setting.need != "beside"]


def _need(pitfall: Pitfall, name: str) -> Need:
    if not pitfall.enough or pitfall.enough == [name]:
        return "needed"
    return "one way" if name in pitfall.enough else "beside"


def digest_scripts(lab: Lab, scripts_folder: Path) -> dict[str, str]:
    """Return the SHA-256 (first 16 digits) of each script that takes part in a run."""
    files = [
        *sorted((lab.folder / "nodes").glob("*.sh")),
        *sorted((lab.folder / "nodes").glob("*.py")),
        *sorted(scripts_folder.glob("*.sh")),
    ]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files}


def read_plan(lab: Lab, document: Mapping[str, Any], where: str) -> Plan:
    """Return the plan that a file holds, as Plan.to_json writes it, or with settings packed (spoilers.hide_unlisted);
    `where` names the file.

    UserError where it isn't one of this lab's: settings, trial, case or pitfall that the lab doesn't have, a seed that
    no run can have, other fields; or where its digest is of another plan, so that it was changed after the run.
    """
    try:
        document = with_unlisted(document)
    except ValueError as error:
        raise UserError(f"{where}: {error}; run it again") from None
    decided = {name: value for name, value in document.items() if name not in DERIVED}
    try:
        text = json.dumps(decided, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        raise UserError(f"{where}: can't be read; run it again") from None
    names = {field.name for field in fields(Plan)}
    for name in sorted(names - OPTIONAL - decided.keys()):
        raise UserError(f"{where}: {name}: field required; run it again")
    for name in sorted(map(str, decided.keys() - names)):
        raise UserError(f"{where}: {shortened(name)}: no field of a plan; run it again")
    try:
        if not isinstance(decided["params"], Mapping):
            raise UserError("params: input should be an object")
        plan = Plan(**{**decided, "params": CheckedParams(lab, decided["params"], "params")})
        _check_fields(lab, plan)
    except UserError as error:
        raise UserError(f"{where}: {error}; run it again") from None
    if document.get("digest") != hashlib.sha256(text.encode()).hexdigest()[:8]:
        raise UserError(
            f"{where}: was changed after the run (its digest is of another plan); run it again"
        )
    return plan


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
    if plan.pitfall is not None and plan.pitfall not in [
        pitfall.id for pitfall in lab.file.pitfalls
    ]:
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
