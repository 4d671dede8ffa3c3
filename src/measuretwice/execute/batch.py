"""Many runs of one lab: what they have in common, the jobs that are made from it, and how long these take; and one in
which nothing is measured, for the settings of nodes that the lab's own scripts have set up."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measuretwice.backends.backend import VIRTUAL_COST, Backend, CostModel
from measuretwice.backends.script import STATE_SCRIPT
from measuretwice.backends.virtual import Virtual, find_kernel
from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.base.paths import CHECKOUT, cache_folder
from measuretwice.execute.job import Job, check_finished, check_writable, sweep
from measuretwice.lab import (
    CheckedParams,
    Lab,
    OwnScripts,
    Plan,
    StageName,
    Toolchain,
    Value,
    digest_scripts,
    load_lab,
    make_plan,
    read_lab,
    trial_params,
)
from measuretwice.lab.schema.cases import Again
from measuretwice.measure.host_state import HostState, read_host_state
from measuretwice.runs.recorded import same_bytes
from measuretwice.runs.result import Result

# A trial is given up after this much real time, its own duration besides, and this many times what
# it takes at most: a fast link's seconds are long.
WALL_LIMIT_S = 120.0
PATIENCE = 4
# In real time a trial takes as long as it says, and so much for what comes before and after: in any case, and for each step
# of a node's script, some of which ping.
REAL_TIME_EXTRA_S = 5
STEP_S = 0.25
# Shorter measurements say little of a machine's pace: one trial is not like another.
LEAST_LEARNT_S = 10.0
# What one measurement weighs against all before it.
WEIGHT_OF_LAST = 0.5


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
        params = trial_params(
            self.lab, trial, pitfall=pitfall, stage=stage, case=case, seed=seed, changes=changes
        )
        changes = self.backend.adapted(self.lab, params, changes)
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
    for name in edges.parameters:
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


def likely_seconds(
    params: Mapping[str, Value],
    cost: CostModel = VIRTUAL_COST,
    sent_packets: float | None = None,
) -> float:
    """Guess how long a trial takes one CPU: a fixed part, and some microseconds a packet.

    The packets are `sent_packets` where such a trial was measured before. Else they follow from
    parameters that a lab may have (a Reno flow sends t/(RTT sqrt(p)) packets). It decides only in
    what order work is begun and what is said beforehand.
    """

    def number(name: str, default: float) -> float:
        value = params.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    duration_s = number("duration_s", 1.0)
    rtt_s = max(number("rtt_ms", 1.0), 0.1) / 1e3
    loss_ratio = max(number("loss_ratio", 1e-5), 1e-6)
    narrowest_mbit = min(number("rate_mbit", 1e4), number("access_mbit", 1e4))
    packets = narrowest_mbit * 1e6 / 8 / number("mss_bytes", 1460) * duration_s
    # Else only the link limits these flows, and they fill it.
    if "loss_ratio" in params:
        packets = min(packets, 1.25 * duration_s / rtt_s / math.sqrt(loss_ratio))
    # A host with segment offload handles many packets as one.
    if sent_packets and params.get("offloads") != "on":
        packets = sent_packets
    each_s = 3.5e-6 if "loss_ratio" in params else 7e-6
    return cost.start_s + cost.slowness * each_s * packets


def most_seconds(params: Mapping[str, Value], cost: CostModel = VIRTUAL_COST) -> float:
    """Guess how long a trial takes one CPU at most: settings may be wrong on purpose.

    What stands there as a share may be taken for a percentage, and then ten times the packets are sent.
    """
    loss_ratio = params.get("loss_ratio")
    if isinstance(loss_ratio, int | float):
        params = {**params, "loss_ratio": loss_ratio / 100}
    return likely_seconds(params, cost)


def longest_first(jobs: list[Job]) -> list[Job]:
    """Order jobs so that no CPU waits for a long one at the end."""
    return sorted(jobs, key=lambda job: likely_seconds(job.plan.params), reverse=True)


def expected_seconds(jobs: Sequence[Job], at_once: int) -> float:
    """Guess how long these jobs take together, `at_once` at a time, by this machine's pace so far."""
    if jobs[0].backend.real_time:
        steps = len(read_lab(jobs[0].lab_folder).file.run.steps)
        return sum(_lasts_s(job.plan.params) + REAL_TIME_EXTRA_S + STEP_S * steps for job in jobs)
    pace = _paces().get(jobs[0].plan.lab, 1.0)
    return pace * _likely(jobs) / at_once


def _lasts_s(params: Mapping[str, Value]) -> float:
    """Return how long its tests last, the last of which begins late where the lab has them begin one by one."""
    return float(params.get("duration_s", 0)) + float(params.get("start_spread_ms", 0)) / 1000


def _likely(jobs: Sequence[Job]) -> float:
    return sum(likely_seconds(job.plan.params, job.backend.cost) for job in jobs)


def learn(jobs: Sequence[Job], at_once: int, took_s: float) -> None:
    """Note how long these jobs took together, for the next guess.

    A lab's pace is the time that its trials took over what was guessed of them, in pace.json in the
    cache. A cache that can't be written to is no failure: then nothing is learnt.
    """
    if not jobs or jobs[0].backend.real_time or took_s < LEAST_LEARNT_S:
        return
    lab = jobs[0].plan.lab
    now = took_s * at_once / _likely(jobs)
    paces = _paces()
    paces[lab] = (1 - WEIGHT_OF_LAST) * paces.get(lab, now) + WEIGHT_OF_LAST * now
    with contextlib.suppress(OSError):
        _pace_file().parent.mkdir(parents=True, exist_ok=True)
        write_json(_pace_file(), paces)


def _paces() -> dict[str, float]:
    """Return this machine's pace by lab; nothing where the file is missing or damaged."""
    try:
        content = read_object(_pace_file())
    except (OSError, ValueError, RecursionError, TypeError):
        return {}
    return {
        lab: float(pace)
        for lab, pace in content.items()
        if isinstance(pace, int | float) and 0 < pace < math.inf
    }


def _pace_file() -> Path:
    return cache_folder() / "pace.json"


def reference_host_state(root: Path, lab: Lab, params: Mapping[str, Value]) -> HostState | None:
    """Return how this checkout's scripts set the nodes of the lab of that name up with these parameters; None without
    a virtual kernel on this machine: none is built for this. Those of another checkout, `root`, which MEASURETWICE_ROOT
    names, aren't run: whoever has runs checked hasn't asked for that.

    It takes about a second; what was found is kept beside the kernel, for the next time.
    UserError where the scripts fail, where this checkout has no such lab, or where that can't have these parameters:
    they may be a stranger's.
    """
    kernel = find_kernel()
    if kernel is None:
        return None
    if root.resolve() != CHECKOUT.resolve():
        root, lab = CHECKOUT, load_lab(CHECKOUT, lab.name)
    backend, cache = Virtual(kernel), kernel.folder.parent.parent / "reference"
    prepared = _only_prepared(lab)
    trial = min(lab.trials)
    with tempfile.TemporaryDirectory(prefix="measuretwice-reference-") as out:
        batch = open_batch(root, prepared, Path(out), backend, wall_limit_s=WALL_LIMIT_S)
        plan = replace(batch.job(trial, seed=1).plan, params=_whole(lab, params))
        cached = cache / _digest(lab, plan.to_json(), root)
        if (cached / "raw").is_dir():
            return read_host_state(cached / "raw", None)
        work = Path(out) / "work"
        (work / "raw").mkdir(parents=True)
        backend.measure(prepared, plan, root, work, WALL_LIMIT_S)
        check_finished(work, "the lab's own set-up", backend, prepared)
        host_state = read_host_state(work / "raw", None)
        _keep(work, cached)
    return host_state


def other_scripts(plan: Plan) -> list[str]:
    """Return the names of the scripts that ran and aren't this checkout's, or that it has besides; none where it has no
    such lab. An older one of which a recorded set says that it made the same bytes isn't among them."""
    try:
        lab = load_lab(CHECKOUT, plan.lab)
        ours = digest_scripts(lab, CHECKOUT / "scripts")
        names = sorted(ours.keys() | plan.scripts.keys())
        others = [name for name in names if ours.get(name) != plan.scripts.get(name)]
        samples = CHECKOUT / "sample-data" / lab.folder.name
        return [
            name
            for name in others
            if not same_bytes(samples, name, plan.scripts.get(name, ""), ours.get(name, ""))
        ]
    except UserError:
        return []


def _whole(lab: Lab, params: Mapping[str, Value]) -> CheckedParams:
    """The parameters, each of which the lab's scripts and this machine's kernel may rely on."""
    for name in lab.defaults():
        if name not in params:
            raise UserError(f"its settings: {lab.name} needs {name}, and they have none")
    return CheckedParams(lab, params, "its settings")


def _only_prepared(lab: Lab) -> Lab:
    """The lab, with nothing to measure and nothing to conclude."""
    run = lab.file.run.model_copy(update={"measure": [], "conclude": []})
    return replace(lab, file=lab.file.model_copy(update={"run": run}))


def _digest(lab: Lab, plan: Mapping[str, object], root: Path) -> str:
    facts = (lab.folder / "lab.toml").read_bytes() + (root / STATE_SCRIPT).read_bytes()
    return hashlib.sha256(facts + json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


def _keep(work: Path, cached: Path) -> None:
    """Put what was found where the next one looks; whoever is first has the word."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        beside = cached.with_name(f".{cached.name}.{os.getpid()}")
        shutil.copytree(work / "raw", beside / "raw")
        os.rename(beside, cached)
    except OSError:
        # A cache that can't be written to costs a second the next time.
        return
