"""The machine of the page that this Python runs in, as a place where trials run.

A page runs its machine by itself (docs/assets/machine/), and gives what the guest gave it.
"""

from __future__ import annotations

from pathlib import Path

from measuretwice.backends.browser import Browser, with_script
from measuretwice.backends.live_script import page_live_script
from measuretwice.base.files import unpack_tar
from measuretwice.lab import Lab, Plan

CONSOLE = "console.txt"


class PagesMachine(Browser):
    """Trials as `--on browser` has them; `given` is the tar file of the trial that is concluded next."""

    given: Path
    said: str = ""

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        unpack_tar(self.given, work)
        (work / CONSOLE).write_text(self.said, encoding="utf-8")

    def confined_by(self) -> str:
        return "the browser's own sandbox"


def given_to_live_guest(lab: Lab, plan: Plan, root: Path) -> dict[str, str]:
    """Return the files that a live lab's guest finds at its root; the page adds its terminals' sizes."""
    return with_script(lab, root, page_live_script(lab, plan))
