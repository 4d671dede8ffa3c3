"""Where a run comes from: who, what, when. All of it may differ between two runs with one result."""

from __future__ import annotations

import datetime
import platform
import shlex
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measuretwice import __version__
from measuretwice.lab import KernelFacts, Lab, Plan, trial_params


@dataclass(frozen=True)
class Machine:
    """A processor's architecture, and the operating system's name for people."""

    architecture: str
    system: str

    @classmethod
    def here(cls) -> Machine:
        try:
            system = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
        except OSError:
            system = "unknown"
        return cls(platform.machine(), system)

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Provenance:
    """What provenance.json holds.

    Times are in UTC, to the second. `git_commit` is the checkout's, where it is one;
    `virtual_start_ns` is the moment, in ns since 1970, that the virtual kernel's clock began at;
    `command` makes the run again. `edited` are the digests of the node scripts that were the student's own;
    what was changed in them stands in edit.diff. `raw_of` is the run whose raw files these are, where
    nothing differs but how they are judged. `confined` says by what means a virtual kernel's process was kept to its
    own folders; None where it ran on a machine itself.
    """

    measuretwice: str
    git_commit: str | None
    started: str
    ended: str
    machine: Machine
    kernel: KernelFacts
    virtual_start_ns: int | None
    command: str
    plan_digest: str
    edited: dict[str, str] | None = None
    raw_of: str | None = None
    confined: str | None = None

    def to_json(self) -> dict[str, Any]:
        content = {**asdict(self), "kernel": self.kernel.to_json()}
        if self.edited is None:
            del content["edited"]
        for name in ("raw_of", "confined"):
            if content[name] is None:
                del content[name]
        return content


def provenance_now(
    plan: Plan,
    lab: Lab,
    root: Path,
    *,
    started: datetime.datetime,
    kernel: KernelFacts,
    start_ns: int | None,
    option: str,
    raw_of: str = "",
) -> Provenance:
    """Return the provenance of a run that ends now. `option` is what its command says of the place."""
    return Provenance(
        measuretwice=__version__,
        git_commit=_git_commit(root),
        started=started.isoformat(timespec="seconds"),
        ended=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=Machine.here(),
        kernel=kernel,
        virtual_start_ns=start_ns,
        command=command_again(plan, lab, option),
        plan_digest=plan.digest,
        edited=plan.edited,
        raw_of=raw_of or None,
    )


def command_again(plan: Plan, lab: Lab, option: str) -> str:
    """Return the command that does a run again."""
    what = f"--trial {plan.trial}"
    if plan.pitfall:
        what += f" --pitfall {plan.pitfall} --stage {plan.stage}"
    if plan.case:
        what = f"--case {plan.case}{' --show-me' if plan.stage else ''}"
    meant = trial_params(
        lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage, case=plan.case, seed=plan.seed
    )
    changed = "".join(
        f" --set {shlex.quote(f'{name}={value}')}"
        for name, value in plan.params.items()
        if meant.get(name) != value
    )
    return f"./lab run {plan.lab} {what} --seed {plan.seed}{changed}{option}"


def _git_commit(root: Path) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git here, or, in a browser, no other programs at all
        return None
    return done.stdout.strip() or None
