"""Many runs of one lab: what they have in common, and the jobs that are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measuretwice.backends.backend import Backend
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError
from measuretwice.execute.estimate import most_seconds
from measuretwice.execute.job import Job, check_writable, sweep
from measuretwice.lab import (
    Lab,
    OwnScripts,
    StageName,
    Toolchain,
    Value,
    digest_scripts,
    make_plan,
    trial_params,
)
from measuretwice.lab.schema.cases import Again
from measuretwice.runs.result import Result

# A trial is given up after this much real time, its own duration besides, and this many times what
# it takes at most: a fast link's seconds are long.
WALL_LIMIT_S = 120.0
PATIENCE = 4


@dataclass(frozen=True)
class Batch:
    """A lab, with what it is measured, and the folder that its runs go to. `own` are a student's own
    node scripts."""

    root: Path
    lab: Lab
    out: Path
    backend: Backend
    scripts: dict[str, str]
    wall_limit_s: float | None = None
    own: OwnScripts | None = None

    def job(
        self,
        trial: int,
        *,
        seed: int,
        changes: dict[str, Value] | None = None,
        pitfall: str | None = None,
        stage: StageName | None = None,
        case: int | None = None,
    ) -> Job:
        """Return the job of one trial, with `changes` over its own parameters."""
        changes = changes or {}
        if not self.backend.has_edges:
            changes = without_edges(self.lab, changes)
        meant = trial_params(
            self.lab, trial, pitfall=pitfall, stage=stage, case=case, seed=seed, changes=changes
        )
        changes = self.backend.adapted(self.lab, meant, changes)
        plan = make_plan(
            self.lab,
            trial,
            seed=seed,
            toolchain=self.toolchain,
            changes=changes,
            pitfall=pitfall,
            stage=stage,
            case=case,
        )
        limit_s = self.wall_limit_s or (
            WALL_LIMIT_S
            + float(plan.params.get("duration_s", 0))
            + PATIENCE * most_seconds(plan.params, self.backend.cost)
        )
        return Job(plan, self.lab.folder, self.root, self.out, self.backend, limit_s, self.own)

    @property
    def toolchain(self) -> Toolchain:
        edited = self.own.digests if self.own else None
        return Toolchain(
            self.backend.name, self.backend.kernel, self.backend.tools, self.scripts, edited
        )


def open_batch(
    root: Path,
    lab: Lab,
    out: Path,
    backend: Backend | None = None,
    *,
    wall_limit_s: float | None = None,
    own: OwnScripts | None = None,
) -> Batch:
    """Return a batch that can run, on the virtual kernel if nothing else is said: that is built then.

    UserError names what is missing.
    """
    check_writable(out)
    backend = backend or Virtual.ready()
    sweep(out / lab.name)
    scripts = digest_scripts(lab, root / "scripts")
    return Batch(root, lab, out, backend, scripts, wall_limit_s, own)


def without_edges(lab: Lab, changes: dict[str, Value]) -> dict[str, Value]:
    """Return `changes`, and that the topology's edges are left out, where they can't be had.

    UserError where the changes ask for them: only the virtual kernel in virtual time has them.
    """
    edges = lab.file.topology.edges
    if not edges:
        return changes
    for name in (edges.speed, edges.processing):
        if changes.get(name):
            raise UserError(
                f"{name}: cables and hosts are what they are here; only runs of the virtual kernel can set it: leave it out"
            )
    return {edges.speed: 0, edges.processing: 0, **changes}


def odd_trials(again: Again, results: list[Result]) -> list[tuple[int, int]]:
    """Return the trials whose last try came out odd and that have tries left, with the next seed.

    `results` are one trial's tries or several trials'; a trial's tries differ by their seeds.
    """
    tries: dict[int, list[Result]] = {}
    for result in results:
        tries.setdefault(result.trial, []).append(result)
    odd = []
    for trial, runs in sorted(tries.items()):
        last = max(runs, key=lambda result: int(result.seed))
        value = last.value(again.measured)
        is_odd = value is None or not again.min <= value <= again.max
        if is_odd and len(runs) <= again.tries:
            odd.append((trial, int(last.seed) + 1))
    return odd
