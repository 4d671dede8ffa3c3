"""The virtual kernel as a place for trials: one kernel a trial, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from measuretwice.backends.backend import Backend
from measuretwice.backends.intact import damage
from measuretwice.backends.script import guest_script, memory_mb, reader_interval_us
from measuretwice.backends.uml import (
    START_NS,
    Kernel,
    ensure_kernel,
    memory_folder,
    run_inside,
)
from measuretwice.base import landlock
from measuretwice.base.files import tail_of
from measuretwice.lab import KernelFacts, Lab, Plan


class Virtual(Backend):
    """Trials each in a kernel of their own, which ends with them: there is nothing to undo."""

    name = "virtual"
    accepts = "virtual"
    real_time = False
    repeats = True
    has_edges = True
    start_ns = START_NS
    place = "each in a virtual kernel of its own"
    runner = "the virtual kernel"

    def __init__(self, uml: Kernel) -> None:
        self._uml = uml
        self.kernel, self.tools = uml.name, uml.programs

    @classmethod
    def ready(cls) -> Self:
        """Return it with its kernel, built first where this machine has none yet.

        UserError names what is missing.
        """
        memory_folder()
        return cls(ensure_kernel())

    @classmethod
    def is_meant(cls, where: str) -> bool:
        return where == cls.name

    @classmethod
    @contextmanager
    def opened(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        yield cls.ready()

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        (work / "experiment.sh").write_text(guest_script(lab, plan), encoding="utf-8")
        run_inside(
            self._uml,
            root,
            work,
            plan.kernel_seed,
            wall_limit_s,
            memory_mb=memory_mb(lab, plan),
            reader_interval_us=reader_interval_us(lab, plan),
        )

    def why_failed(self, work: Path) -> str | None:
        # Its memory is a file: where no more of it can be had, kernel and programs get SIGBUS.
        console = work / "console.txt"
        if "Out of memory: Killed" in tail_of(console):
            return "the virtual kernel's memory had run out"
        said = (console, work / "experiment.log", *work.glob("raw/*/*.log"))
        if any("Bus error" in tail_of(path) for path in said):
            return (
                "the folder of the virtual kernel's memory had run full, $TMPDIR or /dev/shm: "
                "make room there, or set TMPDIR to another folder"
            )
        return None

    def damage(self) -> str | None:
        return damage("virtual kernel", self._uml.folder, self._uml.sums)

    def confined_by(self) -> str:
        return f"its own folders alone, few system calls; Landlock {landlock.in_words()}"

    def kernel_facts(self) -> KernelFacts:
        return self._uml.facts
