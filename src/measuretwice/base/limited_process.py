"""Work on files from outside in a process of its own: one that hangs, dies or grows takes no other with it.

The limits are that process's alone, so whoever starts it may start other programs without them.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

MEMORY_BYTES = 4 * 2**30
CPU_S = 240
WALL_S = 900.0
FILE_BYTES = 2**30
MOST_CHARACTERS = 300
TOO_LARGE = "not read: it needs more memory than a hand-in may have"


class LimitedProcess:
    """A process that works within limits, and `pipe`, which is our end of what leads to it.

    What comes through that is data from outside, as the files are: take it with recv_bytes. recv would run it.
    """

    def __init__(self, work: Callable[[Connection], None]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_limited, args=(work, self.pipe, theirs))
        self._process.start()
        theirs.close()

    def failure(self) -> str:
        """Wait for its end, and return why it ended without an answer."""
        self._process.join()
        killed = -(self._process.exitcode or 0)
        if killed in (signal.SIGXCPU, signal.SIGKILL):
            return f"not read: needs more than {CPU_S} s of work, or was killed"
        return TOO_LARGE

    def end(self) -> None:
        """End it, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def allow_more_work() -> None:
    """Raise this limited process' limit of CPU time, so that what comes next has as much as what came before."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, CPU_S + math.ceil(used.ru_utime + used.ru_stime))


def describe_unforeseen(error: Exception) -> str:
    """Return a line for a file whose reading raised what nobody foresaw."""
    if isinstance(error, MemoryError):
        return f"{TOO_LARGE} (MemoryError)"
    return f"can't be read ({type(error).__name__}: {error})"[:MOST_CHARACTERS]


def _limited(work: Callable[[Connection], None], ours: Connection, pipe: Connection) -> None:
    # Else it would never see that we have gone.
    ours.close()
    # Ctrl-C reaches all processes of a terminal: we end this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for resource_id, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _limit(resource_id, most)
    work(pipe)


def _limit(resource_id: int, most: int) -> None:
    hard = resource.getrlimit(resource_id)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource_id, (most, hard))
