"""The machine of the page that this Python runs in, as a place where trials run and labs are live.

A page runs its machine by itself (docs/assets/machine/), and gives what the guest gave it.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path

from measuretwice.backends.browser import Browser, lacks_memory, with_script
from measuretwice.backends.live_script import PAGE_TERMINALS, page_live_script
from measuretwice.base.errors import UserError
from measuretwice.base.files import unpack_tar
from measuretwice.course.trials import choose_live_trial, live_plan, read_changes
from measuretwice.execute.batch import Batch, without_edges
from measuretwice.lab import Lab, Plan
from measuretwice.live.session import make_folder

CONSOLE = "console.txt"


class PagesMachine(Browser):
    """Trials as `--on browser` has them.

    `given` is the tar file of the trial that is concluded next, `said` what its console showed.
    """

    given: Path
    said: str = ""

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        unpack_tar(self.given, work)
        (work / CONSOLE).write_text(self.said, encoding="utf-8")

    def confined_by(self) -> str:
        return "the browser's own sandbox"


def begin_live(
    batch: Batch,
    nodes: Sequence[str],
    *,
    trial: str | None,
    case: int | None,
    show_me: bool,
    changes: Sequence[str],
) -> tuple[Path, Plan, dict[str, str]]:
    """Make a live lab's folder, as `./lab up` does; return it, its plan, and the files that its guest finds.

    `nodes` get the terminals. UserError for nodes, a trial or changes that can't be, and for a lab that is too large.
    """
    lab = batch.lab
    _check_nodes(lab, nodes)
    number = choose_live_trial(lab, trial, lab.case(case) if case is not None else None)
    settings = without_edges(lab, read_changes(lab, changes))
    plan = live_plan(batch, number, settings, case=case, stage="fixed" if show_me else None)
    if problems := lacks_memory(lab, [plan]):
        raise UserError("; ".join(problems))
    files = given_to_live_guest(lab, plan, batch.root)
    [script] = (text for name, text in files.items() if name.endswith("/experiment.sh"))
    folder = make_folder(lab, plan, batch.out, datetime.datetime.now().astimezone(), script)
    return folder, plan, files


def given_to_live_guest(lab: Lab, plan: Plan, root: Path) -> dict[str, str]:
    """Return the files that a live lab's guest finds at its root; the page adds its terminals' sizes."""
    return with_script(lab, root, page_live_script(lab, plan))


def keep_live_files(folder: Path, given: Path) -> bool:
    """Put what the guest gave, a tar file, into the live lab's folder. Return whether a person left any file there."""
    shutil.rmtree(folder / "raw")
    unpack_tar(given, folder, plain=True)
    return any(path.is_file() for path in (folder / "raw").rglob("*"))


def _check_nodes(lab: Lab, nodes: Sequence[str]) -> None:
    known = [node.name for node in lab.file.topology.nodes]
    for node in nodes:
        if node not in known:
            raise UserError(f"{node}: there is no such node: {lab.name} has {', '.join(known)}")
    if not 1 <= len(set(nodes)) == len(nodes) <= PAGE_TERMINALS:
        raise UserError(f"choose one to {PAGE_TERMINALS} nodes, each once")
