"""From a lab and a person's choices to a plan: everything that decides a run's result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from measuretwice.lab.checked import CheckedParams
from measuretwice.lab.lab import Lab
from measuretwice.lab.schema import Value, refers

# A number that is part of each plan, so that a run made by an older recipe is not taken for
# one of today's. Raise it when the way of measuring changes.
RECIPE = 2
StageName = Literal["broken", "fixed"]
# As a change: take a setting that has no default away again. No parameter has it for a value.
UNSET = ""


@dataclass(frozen=True)
class Apparatus:
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
        fields = {**asdict(self), "params": dict(self.params)}
        for name in ("case", "edited"):
            if fields[name] is None:
                del fields[name]
        return fields


def kernel_seed(lab: str, trial: int, seed: int) -> int:
    """Return what all randomness of the virtual kernel starts from in a trial with this seed."""
    text = f"{lab} {trial} {seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def make_plan(
    lab: Lab,
    trial: int,
    *,
    seed: int,
    apparatus: Apparatus,
    changes: Mapping[str, Value] | None = None,
    pitfall: str | None = None,
    stage: StageName | None = None,
    case: int | None = None,
) -> Plan:
    """Return the plan of one trial, with trial_params' parameters."""
    return Plan(
        lab=lab.name,
        trial=trial,
        pitfall=pitfall,
        stage=stage,
        seed=seed,
        params=CheckedParams(
            lab,
            trial_params(
                lab, trial, pitfall=pitfall, stage=stage, case=case, seed=seed, changes=changes
            ),
            f"{lab.place}: trial {trial}",
        ),
        where=apparatus.where,
        kernel=apparatus.kernel,
        tools=apparatus.tools,
        scripts={**apparatus.scripts, **(apparatus.edited or {})},
        case=case,
        edited=apparatus.edited,
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
    isn't among them.
    """
    staged = lab.staged(pitfall=pitfall, stage=stage, case=case)
    stage_set = staged.set if staged else {}
    varied = lab.varied_by(lab.case(case), seed) if case else {}
    chosen = {**lab.trials[trial].set, **varied, **stage_set, **(changes or {})}
    defaults = lab.defaults()
    params = {**defaults, **lab.presets({**defaults, **chosen}), **chosen}
    return resolve({name: value for name, value in params.items() if value != UNSET})


def resolve(params: dict[str, Value]) -> dict[str, Value]:
    """Return the parameters with each `"=name"` replaced by what `name` has."""
    return {
        name: params[str(value)[1:]] if refers(value) else value for name, value in params.items()
    }


def digest_scripts(lab: Lab, scripts_folder: Path) -> dict[str, str]:
    """Return the SHA-256 (first 16 digits) of each script that takes part in a run."""
    files = [
        *sorted((lab.folder / "nodes").glob("*.sh")),
        *sorted((lab.folder / "nodes").glob("*.py")),
        *sorted(scripts_folder.glob("*.sh")),
    ]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files}
