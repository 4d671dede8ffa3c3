"""The machine's own kernel, as root, in network namespaces: for `--on host`.

Before anything is changed it is asked whether the kernel has what the trials need. What a trial
makes is undone when it ends and when whoever started it dies (scripts/host/guard.sh).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from measuretwice.backends.backend import Backend, needs, tool_versions
from measuretwice.backends.script import experiment_script
from measuretwice.base.errors import UserError
from measuretwice.base.paths import HOST_GUARD
from measuretwice.lab import KernelFacts, Lab, Plan

NAMESPACES = Path("/run/netns")
PREFIX = re.compile(r"mt-(\d+)-")
UNDO_SECONDS = 15


class Host(Backend):
    """Trials in this machine's own namespaces, one at a time.

    `owner` is the process that namespaces are named after: what it leaves is undone when it is gone.
    """

    name = "host"
    accepts = "host"
    option = " --on host"
    real_time = True
    location = "on this machine's own kernel"

    def __init__(self, tools: dict[str, str], owner: int) -> None:
        self.kernel, self.tools = f"host linux {platform.release()}", tools
        self._owner = owner

    @classmethod
    def matches(cls, where: str) -> bool:
        return where == cls.name

    @classmethod
    @contextmanager
    def open(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        tools = tool_versions()
        sweep()
        yield cls(tools, os.getpid())

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        if os.geteuid() != 0:
            return ["--on host makes network namespaces, which only root may: sudo ./lab run ..."]
        if not shutil.which("unshare"):
            return ["unshare is missing: install util-linux"]
        if not _works("true"):
            return ["--on host: this machine doesn't let you make network namespaces, even as root"]
        missing = [words for words, command in needs(lab, plans).items() if not _works(command)]
        if missing:
            return [
                f"--on host: this machine's kernel has not {', '.join(missing)}: "
                "without --on host the virtual kernel has all of it"
            ]
        return []

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        script = experiment_script(lab, plan, root, str(work / "raw"), None, prefix(self._owner))
        (work / "experiment.sh").write_text(script, encoding="utf-8")
        run_script(work, self._owner, wall_limit_s)

    @contextmanager
    def serving(self) -> Iterator[None]:
        try:
            yield
        finally:
            wait_until_undone(self._owner)

    def kernel_facts(self) -> KernelFacts:
        return KernelFacts(platform.release())


def _works(command: str) -> bool:
    """Try a command in a network namespace of its own, which ends with it."""
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", command], capture_output=True, check=False
    )
    return done.returncode == 0


def prefix(owner: int) -> str:
    """Return the prefix of all namespaces that the process `owner` has made."""
    return f"mt-{owner}-"


def run_script(work: Path, owner: int, wall_limit_s: float) -> None:
    """Run `work`/experiment.sh, and undo what it made. TimeoutError past `wall_limit_s` seconds."""
    # A worker keeps to one CPU, for the virtual kernel's sake.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    process = subprocess.Popen(
        [
            "bash", str(HOST_GUARD), prefix(owner),
            str(work / "experiment.sh"), str(work / "experiment.log"),
        ],
        # It ends when this process does, too.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin
    try:
        process.wait(timeout=wall_limit_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        process.stdin.close()
        process.wait()


def wait_until_undone(owner: int) -> None:
    """Wait until nothing is left of what `owner` had made. UserError where something stays."""
    until = time.monotonic() + UNDO_SECONDS
    pattern = f"{prefix(owner)}*"
    while left := [
        path.name for where in (NAMESPACES, NAMESPACES.parent) for path in where.glob(pattern)
    ]:
        if time.monotonic() > until:
            raise UserError(
                f"these could not be removed from /run/netns or /run: {', '.join(left)}", 1
            )
        time.sleep(0.05)


def sweep() -> None:
    """Remove what runs left whose process and guard were both killed."""
    owners = {
        int(match[1]) for path in NAMESPACES.glob("mt-*") if (match := PREFIX.match(path.name))
    }
    for owner in sorted(owners):
        if not Path(f"/proc/{owner}").exists():
            undo = ["bash", str(HOST_GUARD), "--undo", prefix(owner)]
            subprocess.run(undo, check=False)
