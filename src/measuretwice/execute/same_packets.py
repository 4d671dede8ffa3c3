"""A setting that no script reads changes no packet: then the run is judged anew from the raw files that are there.

Only where time is virtual, and only of cases: there equal scripts, kernel and seed make equal bytes, and a student
who changes a claim waits for nothing.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from measuretwice.backends.script import environment
from measuretwice.base.files import read_object
from measuretwice.lab import Lab, OwnScripts, Plan
from measuretwice.runs.folder import PLAN, is_finished

SCRIPT = "experiment.sh"
# What else of a plan decides what is sent.
DECIDES = ("lab", "trial", "seed", "where", "kernel", "scripts", "tools", "recipe", "edited")
TAKEN = (SCRIPT, "experiment.log", "console.txt")


def run_with_same_packets(
    folder: Path, plan: Plan, lab: Lab, root: Path, own: OwnScripts | None
) -> Path | None:
    """Return a finished run beside `folder` that had the packets that this plan's run would have; None without one."""
    if plan.case is None:
        return None
    beside = [place.parent for place in sorted(folder.parent.glob(f"*-seed{plan.seed}-*/{PLAN}"))]
    others = [run for run in beside if run != folder and is_finished(run)]
    read = _read_by(lab, plan, _scripts(lab, root, own)) if others else set()
    return next((run for run in others if _same(_plan(run / PLAN), plan, read)), None)


def take_raw_files(run: Path, work: Path, plan: Plan) -> None:
    """Copy a run's raw files into the folder `work`, and its script with this plan's settings."""
    shutil.copytree(run / "raw", work / "raw", dirs_exist_ok=True)
    for name in TAKEN:
        if (run / name).is_file():
            shutil.copy2(run / name, work / name)
    if (work / SCRIPT).is_file():
        _name_settings(work / SCRIPT, plan)


def _scripts(lab: Lab, root: Path, own: OwnScripts | None) -> list[str]:
    """The texts of the scripts that take part in a run, a student's own among them."""
    paths = [
        path
        for folder in (lab.folder / "nodes", root / "scripts")
        for path in folder.glob("*")
        if path.suffix in (".sh", ".py")
    ]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    return [*texts, *(text.decode("utf-8", "replace") for _, text in (own.files if own else ()))]


def _read_by(lab: Lab, plan: Plan, scripts: Iterable[str]) -> set[str]:
    """The settings that scripts or the set-up of the network read."""
    words = set(re.findall(r"[A-Z][A-Z0-9_]+", "\n".join(scripts)))
    facts = " ".join(
        str(each) for each in (lab.file.run, lab.file.topology.edges, lab.file.topology.links)
    )
    named = set(re.findall(r"[a-z][a-z0-9_]+", facts))
    return {name for name in plan.params if name.upper() in words or name in named}


def _plan(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def _same(other: Mapping[str, Any], plan: Plan, read: set[str]) -> bool:
    mine, params = plan.to_json(), other.get("params")
    if any(other.get(name) != mine.get(name) for name in DECIDES) or not isinstance(params, dict):
        return False
    differ = {
        name for name in {**params, **plan.params} if params.get(name) != plan.params.get(name)
    }
    return not differ & (read | (params.keys() - plan.params.keys()))


def _name_settings(script: Path, plan: Plan) -> None:
    """The script as it is for this plan: what it exports, and nothing else, is this plan's."""
    text = script.read_text(encoding="utf-8")
    exports = {
        f"export {name}": f"export {name}={shlex.quote(value)}"
        for name, value in environment(plan).items()
    }
    lines = [exports.get(line.partition("=")[0], line) for line in text.split("\n")]
    script.write_text("\n".join(lines), encoding="utf-8")
