"""The machine's CPUs."""

from __future__ import annotations

import os
import socket

MOST_ON_ONE_CPU = 100


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


def take_cpu(name: str = "measuretwice-cpu") -> socket.socket:
    """Keep to a CPU that no other trial on this machine has; it is ours while the socket is open.

    A name in Linux's abstract namespace says so: it is gone with its process, however that ends.
    Where all are taken, one is shared with as few as can be.
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
