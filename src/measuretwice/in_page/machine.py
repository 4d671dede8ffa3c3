"""The machine of the page that this Python runs in, as a place where trials run.

A page runs its machine by itself (docs/assets/machine/), and gives what the guest gave it.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from measuretwice.backends.browser import Browser, guest_files
from measuretwice.backends.script import guest_script
from measuretwice.backends.uml import INSIDE_RUN
from measuretwice.lab import Lab, Plan

CONSOLE = "console.txt"


class PagesMachine(Browser):
    """Trials as `--on browser` has them; `given` is the tar file of the trial that is concluded next."""

    given: Path
    said: str = ""

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        with tarfile.open(self.given) as tar:
            tar.extractall(work, filter="data")
        (work / CONSOLE).write_text(self.said, encoding="utf-8")


def given_to_guest(lab: Lab, plan: Plan, root: Path) -> dict[str, str]:
    """Return the files that a trial's guest finds at its root, by their paths there."""
    files = {
        name: path.read_text(encoding="utf-8") for name, path in guest_files(lab, root).items()
    }
    return {**files, f"{INSIDE_RUN[1:]}/experiment.sh": guest_script(lab, plan)}
