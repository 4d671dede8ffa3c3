"""What runs on this machine, as /proc shows it."""

from __future__ import annotations

import contextlib
from pathlib import Path


def command_lines() -> dict[int, str]:
    """The command line of each process, its words with a space between them."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ")
            found[int(process.name)] = words.decode(errors="replace")
    return found


def stat_of(pid: int) -> list[str]:
    """Fields of proc_pid_stat(5) from the third on, the state; none where there is no such process."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def processes_with(field: int, value: int) -> list[int]:
    """Those with this value in a field of `stat_of`: 1 is the parent, 3 the session."""
    return [pid for pid in command_lines() if (stat_of(pid) or [""] * 4)[field] == str(value)]


def is_alive(pid: int) -> bool:
    return bool(stat := stat_of(pid)) and stat[0] != "Z"
