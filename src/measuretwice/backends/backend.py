"""Where trials run: what each backend answers and does, and what plans need of a kernel that isn't ours.

A new backend is a module with a Backend of its own, named in registry.py; nothing else asks which it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from measuretwice.base.errors import UserError
from measuretwice.lab import KernelFacts, Lab, Plan, Value
from measuretwice.lab.schema.parameters import refers

# The tools that node scripts call: their versions are part of each plan.
TOOLS = {
    "iperf3": ["iperf3", "--version"],
    "iproute2": ["ip", "-V"],
    "ethtool": ["ethtool", "--version"],
    "tcpdump": ["tcpdump", "--version"],
    "ping": ["ping", "-V"],
    "bash": ["bash", "--version"],
}
# What tc wants to be told of these kinds; others do without.
LEAST_OPTIONS = {
    "tbf": "rate 1mbit burst 10000 limit 10000",
    "red": "limit 60000 min 10000 max 30000 avpkt 1000 burst 20",
    "bfifo": "limit 10000",
}


class BackendLost(UserError):
    """The place doesn't answer any more; what comes after on it is in vain."""


@dataclass(frozen=True)
class CostModel:
    """How long a trial takes one CPU: `start_s` in any case, and for each packet `slowness` times what it takes the
    virtual kernel."""

    start_s: float = 0.9
    slowness: float = 1.0


VIRTUAL_COST = CostModel()


class Backend(ABC):
    """A place where trials run, opened: it has told its kernel's name and its tools' versions."""

    # What a plan calls it: no path, and no machine's name.
    name: ClassVar[str]
    # What --on takes to mean it, in words; and what stands in the command that makes a run again.
    accepts: ClassVar[str]
    option: ClassVar[str] = ""
    # In real time trials would disturb each other, and last as long as they say.
    real_time: ClassVar[bool]
    # How long a trial takes there, roughly.
    cost: ClassVar[CostModel] = VIRTUAL_COST
    # What is to be known of its runs beside the virtual kernel's.
    differs: ClassVar[str] = ""
    # Does it make the same bytes of the same plan, on any machine?
    repeats: ClassVar[bool] = False
    # Can it be handed to another process, with the trial to be run on it?
    portable: ClassVar[bool] = True
    # Can its cables have a speed, and its hosts be made to take their time (a topology's edges)?
    has_edges: ClassVar[bool] = False
    # The moment, by the clock inside, that each trial begins at; None where that is today's.
    start_ns: ClassVar[int | None] = None
    # How messages name where trials run, and what it is that runs one.
    location: ClassVar[str]
    runner: ClassVar[str] = "its script"

    # What a plan calls the kernel.
    kernel: str
    # Each tool's own word for its version there.
    tools: dict[str, str]

    @classmethod
    @abstractmethod
    def matches(cls, where: str) -> bool:
        """Return whether --on `where` means this place."""

    @classmethod
    @abstractmethod
    def open(cls, where: str, lab: Lab, root: Path) -> AbstractContextManager[Self]:
        """Reach the place for a lab's trials, and let it go at the end.

        UserError names what is missing.
        """

    def adapted(
        self, lab: Lab, params: Mapping[str, Value], changes: dict[str, Value]
    ) -> dict[str, Value]:
        """Return `changes`, and what else the place sets otherwise than a trial's `params`."""
        return changes

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        """Ask whether these plans can run there; nothing is changed. Returns a line for each that is
        wrong."""
        return []

    def serving(self) -> AbstractContextManager[None]:
        """Trials run within it. At its end none may go on: what still runs ends, and what killed
        workers had changed is undone; UserError where something stays."""
        return nullcontext()

    @abstractmethod
    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        """Run a plan; files come into `work`/raw/<node>/. There, `finished` or `failed` (node and
        phase) says how it went; what the script said is in `work`/experiment.log.

        However it ends, what was changed is undone. TimeoutError past `wall_limit_s` seconds,
        BackendLost where no other trial can run either.
        """

    def why_failed(self, work: Path) -> str | None:
        """Say what the place knows of why a step in `work` failed; None where that is nothing."""
        return None

    def damage(self) -> str | None:
        """Say, after a trial failed, what of the place itself isn't as it was made; None where that is nothing."""
        return None

    def confined_by(self) -> str | None:
        """Say by what means a run's programs are kept from this machine; None where they run on one."""
        return None

    @abstractmethod
    def kernel_facts(self) -> KernelFacts:
        """Return what provenance.json says of the kernel."""

    @property
    def remarks(self) -> list[str]:
        """Return what could not be put back, a line each."""
        return []


def tool_versions() -> dict[str, str]:
    """Return each tool's own word for its version; UserError names a tool that is missing."""
    versions = {}
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    for name, command in TOOLS.items():
        program = shutil.which(command[0], path=path)
        if program is None:
            raise UserError(f"{command[0]} is missing: run ./lab doctor to see what to install")
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
        versions[name] = ((done.stdout or done.stderr).strip().splitlines() or ["unknown"])[0]
    return versions


def needs(lab: Lab, plans: Iterable[Plan]) -> dict[str, str]:
    """Return what these plans need of a kernel, in words, each with the command that tries it.

    To be tried in a network namespace of its own.
    """
    plans = list(plans)
    qdiscs = {
        f"the queue discipline {kind} (sch_{kind})": (
            f"tc qdisc add dev lo root {kind} {LEAST_OPTIONS.get(kind, '')}"
        )
        for kind in _resolved(lab.file.run.qdiscs, plans)
    }
    return qdiscs | {
        f"the congestion control {name} (tcp_{name})": (
            f"sysctl -qw net.ipv4.tcp_congestion_control={name}"
        )
        for name in algorithms_of(lab, plans)
    }


def algorithms_of(lab: Lab, plans: Iterable[Plan]) -> list[str]:
    """Return the congestion controls that these plans name."""
    return _resolved(lab.file.run.algorithms, list(plans))


def _resolved(names: list[str], plans: list[Plan]) -> list[str]:
    """The names, with `=parameter` replaced by what that is in these plans."""
    resolved: set[str] = set()
    for name in names:
        if refers(name):
            resolved |= {str(plan.params[name[1:]]) for plan in plans if name[1:] in plan.params}
        else:
            resolved.add(name)
    return sorted(resolved - {"none"})
