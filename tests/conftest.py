"""How all tests share this machine: a CPU for each of pytest's workers, and long tests first."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

CPUS = os.sched_getaffinity(0)
# Of a test whose mark doesn't say how many seconds it takes.
SLOW_S = 10.0


def pytest_configure() -> None:
    """Each worker keeps to one CPU, and all that it starts with it.

    A trial of ./lab keeps its virtual kernel to the first CPU that it may use: that of two workers
    would be the same, and the other idle. Where there are more workers than CPUs, those on one
    CPU fill each other's waiting: for real time to pass, for a page to be drawn.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        number = int(worker.removeprefix("gw"))
        os.sched_setaffinity(0, {sorted(CPUS)[number % len(CPUS)]})


@pytest.fixture
def all_cpus() -> Iterator[set[int]]:
    """Every CPU of the machine, for a test that is about their use."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CPUS)
    yield CPUS
    os.sched_setaffinity(0, before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones by themselves, the longest first, so that none is left for the end; the rest by
    their files, which share what they prepare."""
    for number, item in enumerate(items):
        name = (
            f"slow-{number}" if seconds(item) else str(item.path.relative_to(item.config.rootpath))
        )
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(name))
    items.sort(key=seconds, reverse=True)


def seconds(item: pytest.Item) -> float:
    """How long a test takes, about, by its mark; 0 without one."""
    mark = item.get_closest_marker("slow")
    return float(mark.args[0] if mark.args else SLOW_S) if mark else 0.0
