"""How a lab's own scripts set the network up: its nodes' settings, from a virtual kernel in which
nothing was measured.

That is what a run is held against whose scripts were somebody's own, or whose nodes were set by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from measuretwice.backends.virtual import Virtual, find_kernel
from measuretwice.base.errors import UserError
from measuretwice.base.paths import CHECKOUT
from measuretwice.execute.batch import open_batch
from measuretwice.execute.job import check_finished
from measuretwice.lab import CheckedParams, Lab, Value
from measuretwice.measure.host_state import HostState, read_host_state

WALL_LIMIT_S = 120.0


def reference_host_state(root: Path, lab: Lab, params: Mapping[str, Value]) -> HostState | None:
    """Return how the lab's scripts set its nodes up with these parameters; None without a virtual
    kernel on this machine: none is built for this. None, too, for a lab of another checkout, which
    MEASURETWICE_ROOT names: whoever has runs checked hasn't asked to run its scripts.

    It takes about a second; what was found is kept beside the kernel, for the next time.
    UserError where the scripts fail, or where the lab can't have these parameters: they may be a stranger's.
    """
    kernel = find_kernel() if root.resolve() == CHECKOUT.resolve() else None
    if kernel is None:
        return None
    backend, keep = Virtual(kernel), kernel.folder.parent.parent / "reference"
    prepared = _only_prepared(lab)
    trial = min(lab.trials)
    with tempfile.TemporaryDirectory(prefix="measuretwice-reference-") as out:
        batch = open_batch(root, prepared, Path(out), backend, wall_limit_s=WALL_LIMIT_S)
        plan = replace(batch.job(trial, seed=1).plan, params=_whole(lab, params))
        kept = keep / _digest(lab, plan.to_json())
        if (kept / "raw").is_dir():
            return read_host_state(kept / "raw", None)
        work = Path(out) / "work"
        (work / "raw").mkdir(parents=True)
        backend.measure(prepared, plan, root, work, WALL_LIMIT_S)
        check_finished(work, "the lab's own set-up", backend, prepared)
        host_state = read_host_state(work / "raw", None)
        _keep(work, kept)
    return host_state


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


def _digest(lab: Lab, plan: Mapping[str, object]) -> str:
    facts = (lab.folder / "lab.toml").read_bytes()
    return hashlib.sha256(facts + json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


def _keep(work: Path, kept: Path) -> None:
    """Put what was found where the next one looks; whoever is first has the word."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_name(f".{kept.name}.{os.getpid()}")
        shutil.copytree(work / "raw", beside / "raw")
        os.rename(beside, kept)
    except OSError:
        # A cache that can't be written to costs a second the next time.
        return
