"""What makes a folder a run: it has a plan.json, and DONE once all of it is there.

A run that is worked on has a hidden folder beside its place, which becomes it by being renamed.
"""

from __future__ import annotations

import os
from pathlib import Path

# Empty: the last file that a run is given.
DONE = "DONE"
PLAN = "plan.json"
RESULT = "result.json"
PROVENANCE = "provenance.json"
# What a student changed in the node scripts, where a run used their own.
EDIT_DIFF = "edit.diff"


def is_finished(run: Path) -> bool:
    return (run / DONE).is_file()


def runs_in(target: Path) -> list[Path]:
    """Return the run folders that `target` is or holds, finished or not."""
    if (target / PLAN).is_file():
        return [target]
    if not target.is_dir():
        return []
    return sorted(
        plan.parent for plan in target.glob(f"**/{PLAN}") if not plan.parent.name.startswith(".")
    )


def finished_in(folder: Path) -> list[Path]:
    """Return the finished runs that a folder is or holds; hidden folders are at work still."""
    if is_finished(folder):
        return [folder]
    runs = (done.parent for done in folder.glob(f"**/{DONE}"))
    return sorted(
        run
        for run in runs
        if not any(part.startswith(".") for part in run.relative_to(folder).parts)
    )


def give_back(run: Path, out: Path) -> None:
    """Under sudo, give a run's folder to whoever called it.

    The folders that it is in, up to `out`, too, where they lie in one of theirs: /tmp stays root's.
    """
    owner, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if not owner or not group or os.geteuid() != 0:
        return
    above = [path for path in (out, run.parent) if path.parent.stat().st_uid == int(owner)]
    if out in above:
        above.append(run.parent)
    for path in [*above, run, *run.rglob("*")]:
        os.chown(path, int(owner), int(group), follow_symlinks=False)
