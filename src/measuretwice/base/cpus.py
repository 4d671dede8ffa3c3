"""The machine's CPUs."""

from __future__ import annotations

import os


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))
