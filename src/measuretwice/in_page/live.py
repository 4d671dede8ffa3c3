"""A live lab in a page: what the machine needs for it, and what the checker thinks of what was done there."""

from __future__ import annotations

import contextlib
import datetime
import io
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuretwice.backends.browser import lacks_memory
from measuretwice.backends.live_script import PAGE_TERMINALS
from measuretwice.base.errors import UserError
from measuretwice.base.files import unpack_tar
from measuretwice.cli.case_books import after_live
from measuretwice.cli.diagnose import check_live
from measuretwice.cli.live import live_plan, one_trial
from measuretwice.cli.options import read_changes
from measuretwice.execute.batch import Batch, without_edges
from measuretwice.in_page.machine import given_to_live_guest
from measuretwice.lab import Lab, Plan
from measuretwice.live.session import make_folder


def begin(
    batch: Batch,
    nodes: Sequence[str],
    *,
    trial: str | None,
    case: int | None,
    show_me: bool,
    changes: Sequence[str],
) -> tuple[Path, Plan, dict[str, str]]:
    """Make a live lab's folder, as `./lab up` does; return it, its plan, and the files that its guest finds.

    `nodes` get the terminals.
    """
    lab = batch.lab
    _check_nodes(lab, nodes)
    number = one_trial(lab, trial, lab.case(case) if case is not None else None)
    settings = without_edges(lab, read_changes(lab, tuple(changes), None))
    plan = live_plan(batch, number, settings, case=case, stage="fixed" if show_me else None)
    if problems := lacks_memory(lab, [plan]):
        raise UserError("; ".join(problems))
    files = given_to_live_guest(lab, plan, batch.root)
    [script] = (text for name, text in files.items() if name.endswith("/experiment.sh"))
    folder = make_folder(lab, plan, batch.out, datetime.datetime.now().astimezone(), script)
    return folder, plan, files


def _check_nodes(lab: Lab, nodes: Sequence[str]) -> None:
    known = [node.name for node in lab.file.topology.nodes]
    for node in nodes:
        if node not in known:
            raise UserError(f"{node}: there is no such node: {lab.name} has {', '.join(known)}")
    if not 1 <= len(set(nodes)) == len(nodes) <= PAGE_TERMINALS:
        raise UserError(f"choose one to {PAGE_TERMINALS} nodes, each once")


def take(folder: Path, given: Path) -> bool:
    """Put what the guest gave, a tar file, into the live lab's folder. Did a person leave any file there?"""
    shutil.rmtree(folder / "raw")
    unpack_tar(given, folder, plain=True)
    return any(path.is_file() for path in (folder / "raw").rglob("*"))


def check(root: Path, folder: Path, hint: int | None) -> tuple[dict[str, Any], str]:
    """Return what `./lab check` finds in a live lab's folder, and what it says at the end."""
    document = check_live(root, folder, hint)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        after_live(root, folder, document)
    return document, out.getvalue().strip()
