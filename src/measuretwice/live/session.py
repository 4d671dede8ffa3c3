"""A live lab: a topology in the virtual kernel in real time, up until it is told to go down.

    runs/<lab>/.live/            while it is up: lock, socket, what it is
    runs/<lab>/live-<time>/      its own folder: live.json, raw/<node>/, what its shells remember

One a lab in one folder of runs. The lock is held by whoever keeps it up (keeper.py).
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measuretwice.backends.live_script import live_script
from measuretwice.backends.script import (
    EDITED,
    INSIDE_PYTHON,
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    memory_mb,
)
from measuretwice.backends.virtual import Virtual, find_kernel
from measuretwice.base.errors import UserError, without_controls
from measuretwice.base.files import read_object, remove_folder, tail_of, write_json
from measuretwice.base.locks import hold
from measuretwice.base.paths import SOURCE
from measuretwice.lab import Lab, OwnScripts, Plan
from measuretwice.live import wire
from measuretwice.live.keeper import CONSOLE
from measuretwice.runs.folder import EDIT_DIFF

# What a live lab's own folder says of it.
FACTS = "live.json"
# In its state's folder; the lock is there for as long as that is.
LOCK = "lock"
DOWN_SECONDS = 15


@dataclass(frozen=True)
class Live:
    """A lab that is up: where its state is, its own folder, and what it was told."""

    state: Path
    folder: Path
    lab: str
    trial: int
    keeper: int
    since: str

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A connection to its keeper. UserError where nobody answers."""
        link = socket.socket(socket.AF_UNIX)
        # A socket's whole path may have only 107 characters.
        place = os.open(self.state, os.O_PATH)
        try:
            link.connect(f"/proc/self/fd/{place}/socket")
            yield link
        except (ConnectionRefusedError, FileNotFoundError):
            raise UserError(
                f"{self.lab}: its network doesn't answer: ./lab down, then up", 1
            ) from None
        finally:
            os.close(place)
            link.close()


def all_up(out: Path) -> list[Live]:
    """Return the labs that are up. What a killed one left behind is removed on the way."""
    found = []
    for state in filter(_is_ours, sorted(out.glob("*/.live"))):
        with hold(state / LOCK) as lock:
            if lock is not None:
                _sweep(state)
                shutil.rmtree(state, ignore_errors=True)
            elif live := _read(state):
                found.append(live)
    return found


def _is_ours(state: Path) -> bool:
    """Is this a folder of our own? What another user's says is not to be followed."""
    found = state.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _make_state(state: Path) -> None:
    """Make a state's folder, or narrow one that is there: whoever may enter it may enter the nodes."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_ours(state):
        raise UserError(
            f"{state}: belongs to someone else, who could enter your nodes by it: have it removed, then run this again"
        )
    if stat.S_IMODE(state.stat().st_mode) & 0o077:
        state.chmod(0o700)


def _read(state: Path) -> Live | None:
    """What a state says; None where it is just coming up or going down."""
    try:
        facts = read_object(state / "state.json")
        return Live(state, Path(facts.pop("folder")), **facts)
    except (OSError, ValueError, TypeError):
        return None


def _sweep(state: Path) -> None:
    """Remove what a killed keeper left, but for the lock, which we hold."""
    if live := _read(state):
        remove_folder(live.folder / ".uml")
    for name in ("socket", "state.json"):
        (state / name).unlink(missing_ok=True)


def bring_up(
    root: Path, lab: Lab, plan: Plan, out: Path, cpu: int, *, own: OwnScripts | None = None
) -> Live:
    """Start a lab's network and return when its nodes can be entered.

    UserError where it is up already, or doesn't come up: with the reason.
    """
    state = out / lab.name / ".live"
    _make_state(state)
    with hold(state / LOCK) as lock:
        if lock is None:
            raise UserError(f"{lab.name} is up already: ./lab enter NODE, or ./lab down first")
        _sweep(state)
        now = datetime.datetime.now().astimezone()
        script = live_script(
            lab, plan, Path(INSIDE_ROOT), INSIDE_RUN, INSIDE_SAMPLER, INSIDE_PYTHON, CONSOLE
        )
        folder = make_folder(lab, plan, out, now, script)
        if own:
            own.lay_out(lab, root / "scripts", folder / EDITED)
            (folder / EDIT_DIFF).write_text(own.diff(lab), encoding="utf-8")
        facts = {"lab": lab.name, "trial": plan.trial, "since": now.isoformat(timespec="seconds")}
        try:
            keeper = _start_keeper(root, state, folder, memory_mb(lab, plan), lock, cpu)
        except BaseException:
            shutil.rmtree(state, ignore_errors=True)
            raise
        write_json(state / "state.json", {**facts, "folder": str(folder), "keeper": keeper})
    live = _read(state)
    assert live is not None
    return live


def make_folder(lab: Lab, plan: Plan, out: Path, now: datetime.datetime, script: str) -> Path:
    """Make the own folder of a live lab that this script brings up, and return it."""
    folder = out / lab.name / f"live-{now:%Y%m%d-%H%M%S}"
    # What a person types in its shells stands in it.
    folder.mkdir(parents=True, mode=0o700)
    (folder / "raw").mkdir()
    write_json(folder / FACTS, plan.to_json())
    (folder / "experiment.sh").write_text(script, encoding="utf-8")
    return folder


def _start_keeper(
    root: Path, state: Path, folder: Path, memory_mb: int, lock: int, cpu: int
) -> int:
    """Start the keeper, wait for its word, and return its process's number."""
    hears, tells = os.pipe()
    with open(folder / "keeper.log", "wb") as log:
        process = subprocess.Popen(
            [
                sys.executable, "-P", "-m", "measuretwice.live.keeper",
                str(state), str(folder), str(root), str(memory_mb), str(tells),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock, tells),
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
    os.close(tells)
    try:
        os.sched_setaffinity(process.pid, {cpu})
        with open(hears, "rb") as word:
            if word.readline() == b"ready\n":
                return process.pid
    except BaseException:
        process.kill()  # its kernel dies with it
        process.wait()
        raise
    process.wait()
    kernel = find_kernel()
    damage = Virtual(kernel).damage() if kernel else None
    raise UserError(
        f"the network doesn't come up: {damage or _last_words(folder)} (see {folder})", 1
    )


def _last_words(folder: Path) -> str:
    for name in ("keeper.log", "experiment.log", "console.txt"):
        path = folder / name
        lines = [
            without_controls(line) for line in tail_of(path).strip().split("\n") if line.strip()
        ]
        lines = [line for line in lines if "Power down" not in line]
        if lines:
            return lines[-1]
    return "and nothing says why"


def bring_down(live: Live) -> bool:
    """End a live lab; returns when nothing of it runs any more. Is there a file to keep?"""
    with contextlib.suppress(UserError, OSError), live.connected() as link:
        link.sendall(wire.pack(wire.OFF, 0))
    until = time.monotonic() + DOWN_SECONDS
    while time.monotonic() < until and live.state.exists():
        time.sleep(0.05)
    if live.state.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(live.keeper, signal.SIGKILL)
        time.sleep(0.2)
        all_up(live.state.parents[1])
    kept = any(path.is_file() for path in (live.folder / "raw").rglob("*"))
    if not kept:
        shutil.rmtree(live.folder, ignore_errors=True)
    return kept
