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
from collections.abc import Iterable
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Plan, Value, refers

NAMESPACES = Path("/run/netns")
PREFIX = re.compile(r"mt-(\d+)-")
UNDO_SECONDS = 15
# What tc wants to be told of these kinds; others do without.
LEAST_OPTIONS = {
    "tbf": "rate 1mbit burst 10000 limit 10000",
    "red": "limit 60000 min 10000 max 30000 avpkt 1000 burst 20",
    "bfifo": "limit 10000",
}


def kernel_name() -> str:
    """What a plan calls this machine's own kernel."""
    return f"host linux {platform.release()}"


def check(lab: Lab, plans: Iterable[Plan]) -> None:
    """Ask whether these plans can run here; nothing is changed. UserError says what is missing."""
    if os.geteuid() != 0:
        raise UserError(
            "--on host makes network namespaces, which only root may: sudo ./lab run ..."
        )
    if not shutil.which("unshare"):
        raise UserError("unshare is missing: install util-linux")
    if not _works("true"):
        raise UserError(
            "--on host: this machine doesn't let you make network namespaces, even as root"
        )
    missing = [words for words, command in needs(lab, plans).items() if not _works(command)]
    if missing:
        raise UserError(
            f"--on host: this machine's kernel has not {', '.join(missing)}: "
            "without --on host the virtual kernel has all of it"
        )


def needs(lab: Lab, plans: Iterable[Plan]) -> dict[str, str]:
    """Return what these plans need of a kernel, in words, each with the command that tries it.

    To be tried in a network namespace of its own.
    """
    wanted = [plan.params for plan in plans]
    return {
        f"the queue discipline {kind} (sch_{kind})": (
            f"tc qdisc add dev lo root {kind} {LEAST_OPTIONS.get(kind, '')}"
        )
        for kind in _wanted(lab.file.run.qdiscs, wanted)
    } | {
        f"the congestion control {name} (tcp_{name})": (
            f"sysctl -qw net.ipv4.tcp_congestion_control={name}"
        )
        for name in _wanted(lab.file.run.algorithms, wanted)
    }


def _wanted(names: list[str], params: list[dict[str, Value]]) -> list[str]:
    """What is needed by name, with `=parameter` replaced by what that has in these plans."""
    found: set[str] = set()
    for name in names:
        found |= (
            {str(one[name[1:]]) for one in params if name[1:] in one} if refers(name) else {name}
        )
    return sorted(found - {"none"})


def _works(command: str) -> bool:
    """Try a command in a network namespace of its own, which ends with it."""
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", command], capture_output=True, check=False
    )
    return done.returncode == 0


def prefix(owner: int) -> str:
    """What the names of all namespaces begin with that the process `owner` has made."""
    return f"mt-{owner}-"


def run_script(root: Path, work: Path, owner: int, wall_limit_s: float) -> None:
    """Run `work`/experiment.sh, and undo what it made. TimeoutError past `wall_limit_s` seconds."""
    # A worker keeps to one CPU, for the virtual kernel's sake.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    process = subprocess.Popen(
        [
            "bash", str(root / "scripts/host/guard.sh"), prefix(owner),
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
    own = f"{prefix(owner)}*"
    while left := [
        path.name for where in (NAMESPACES, NAMESPACES.parent) for path in where.glob(own)
    ]:
        if time.monotonic() > until:
            raise UserError(
                f"these could not be removed from /run/netns or /run: {', '.join(left)}", 1
            )
        time.sleep(0.05)


def sweep(root: Path) -> None:
    """Remove what runs left whose process and guard were both killed."""
    owners = {
        int(found[1]) for path in NAMESPACES.glob("mt-*") if (found := PREFIX.match(path.name))
    }
    for owner in sorted(owners):
        if not Path(f"/proc/{owner}").exists():
            undo = ["bash", str(root / "scripts/host/guard.sh"), "--undo", prefix(owner)]
            subprocess.run(undo, check=False)


def give_back(run: Path, out: Path) -> None:
    """Under sudo, give a run's folder to whoever called it.

    The folders that it is in, up to `out`, too, where they lie in one of theirs: /tmp stays root's.
    """
    owner, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or not owner or not group:
        return
    above = [one for one in (out, run.parent) if one.parent.stat().st_uid == int(owner)]
    if out in above:
        above.append(run.parent)
    for path in [*above, run, *run.rglob("*")]:
        os.chown(path, int(owner), int(group), follow_symlinks=False)
