"""Locks between processes, each gone with the last process that holds it, however that ends.

Of a file (flock): held by whoever has it open and locked. Of a CPU: a name in Linux's abstract namespace.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_ON_ONE_CPU = 100


@contextmanager
def hold(path: Path, *, remove: bool = False) -> Iterator[int | None]:
    """Hold a lock while the context lasts, and remove its file at the end where asked to.

    Yields the lock's descriptor, or None where somebody else holds it. OSError where the file can't
    be made.
    """
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if not _is_at(descriptor, path):
            yield None
            return
        try:
            yield descriptor
        finally:
            if remove:
                path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Does somebody hold this lock now? Whoever wants it at this very moment may fail to get it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def wait_for(path: Path, busy: Callable[[], None]) -> Iterator[None]:
    """Hold a lock that nobody removes, as soon as it is free; `busy` is called where that isn't now."""
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _is_at(descriptor: int, path: Path) -> bool:
    """Is it still this file? Who held it before may have removed it just when we had opened it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


def take_cpu(name: str = "measuretwice-cpu") -> socket.socket:
    """Keep this process to a CPU that no other trial on this machine has, as long as the returned socket is open.

    Where all are taken, one is shared with as few others as can be.
    """
    cpus = usable_cpus()
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sharing in range(MOST_ON_ONE_CPU):
        for cpu in cpus:
            try:
                taken.bind(f"\0{name}-{cpu}-{sharing}")
            except OSError:
                continue
            os.sched_setaffinity(0, {cpu})
            return taken
    os.sched_setaffinity(0, {cpus[os.getpid() % len(cpus)]})
    return taken
