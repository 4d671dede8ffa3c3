"""How all tests share this machine: a CPU for each of pytest's workers, and long tests first."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

CPUS = os.sched_getaffinity(0)
# Of a test whose mark doesn't say how many seconds it takes.
SLOW_S = 10.0


def pytest_configure() -> None:
    """Ctrl-C counts, as at a terminal: who runs this in a script's background has it ignored, and so
    would all that is started here.

    Each worker keeps to one CPU, and all that it starts with it.

    A trial of ./lab keeps its virtual kernel to the first CPU that it may use: that of two workers
    would be the same, and the other idle.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # So does a terminal that is closed, also where nohup started this.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shard", metavar="N/OF", default="1/1", type=shard, help="this part of the tests alone"
    )


def shard(text: str) -> tuple[int, int]:
    """Read `2/3`: the second of three parts."""
    number, of = map(int, text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(text)
    return number, of


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests by themselves, the longest first, so that none is left for the end; the others by
    their files, which share what they prepare. Of all these, every so-manieth is a shard's.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        named = item.get_closest_marker("xdist_group")
        if named:
            name = str(named.args[0])
        elif seconds(item):
            name = f"slow-{len(groups)}"
        else:
            name = item.path.relative_to(config.rootpath).as_posix()
        groups.setdefault(name, []).append(item)
        item.add_marker(pytest.mark.xdist_group(name))
    longest_first = sorted(groups.values(), key=lambda group: -sum(map(seconds, group)))
    number, of = config.getoption("--shard")
    parts = [[item for group in longest_first[start::of] for item in group] for start in range(of)]
    items[:] = parts.pop(number - 1)
    config.hook.pytest_deselected(items=[item for part in parts for item in part])


def seconds(item: pytest.Item) -> float:
    """How long a test takes, about, by its mark; 0 without one."""
    mark = item.get_closest_marker("slow")
    return float(mark.args[0] if mark.args else SLOW_S) if mark else 0.0
