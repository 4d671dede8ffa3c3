"""Many runs of one lab: what they have in common, and the jobs that are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measuretwice.backends import host
from measuretwice.backends.ssh import Nodes
from measuretwice.backends.virtual import Kernel, ensure_kernel, memory_folder
from measuretwice.execute import job as runner
from measuretwice.lab import Again, Apparatus, Lab, StageName, Value, digest_scripts, make_plan
from measuretwice.runs.result import Result

# A trial is given up after this much real time, its own duration besides, and this many times what
# it is likely to take: a fast link's seconds are long.
WALL_LIMIT_S = 120.0
PATIENCE = 8


@dataclass(frozen=True)
class Batch:
    """A lab, the kernel and tools it runs with, and the folder that its runs go to."""

    root: Path
    lab: Lab
    out: Path
    # None is the machine's own, or that of the nodes.
    kernel: Kernel | None
    tools: dict[str, str]
    scripts: dict[str, str]
    wall_limit_s: float | None = None
    nodes: Nodes | None = None

    def job(
        self,
        trial: int,
        *,
        seed: int,
        changes: dict[str, Value] | None = None,
        pitfall: str | None = None,
        stage: StageName | None = None,
    ) -> runner.Job:
        """Return the job of one trial, with `changes` over its own parameters."""
        plan = make_plan(
            self.lab,
            trial,
            seed=seed,
            apparatus=Apparatus(self.where, self.kernel_name, self.tools, self.scripts),
            changes=changes,
            pitfall=pitfall,
            stage=stage,
        )
        limit_s = self.wall_limit_s or (
            WALL_LIMIT_S
            + float(plan.params.get("duration_s", 0))
            + PATIENCE * runner.likely_seconds(plan)
        )
        return runner.Job(
            plan, self.lab.folder, self.root, self.out, self.kernel, limit_s, self.nodes
        )

    @property
    def where(self) -> str:
        """What a plan calls the place: no path, and no machine's name."""
        if self.nodes:
            return "nodes"
        return "virtual" if self.kernel else "host"

    @property
    def kernel_name(self) -> str:
        if self.nodes:
            return self.nodes.kernel_name
        return self.kernel.name if self.kernel else host.kernel_name()


def open_batch(
    root: Path,
    lab: Lab,
    out: Path,
    wall_limit_s: float | None = None,
    *,
    on_host: bool = False,
    nodes: Nodes | None = None,
) -> Batch:
    """Return a batch that can run: tools found, folder writable, kernel built.

    UserError names what is missing.
    """
    runner.check_writable(out)
    tools = nodes.tools if nodes else runner.tool_versions()
    kernel = None
    if not on_host and not nodes:
        memory_folder()
        kernel = ensure_kernel(root)
    runner.sweep(out / lab.name)
    scripts = digest_scripts(lab, root / "scripts")
    return Batch(root, lab, out, kernel, tools, scripts, wall_limit_s, nodes)


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
        value = {**last.measured, "ratio": last.ratio}.get(again.measured)
        is_odd = value is None or not again.min <= value <= again.max
        if is_odd and len(runs) <= again.tries:
            odd.append((trial, int(last.seed) + 1))
    return odd
