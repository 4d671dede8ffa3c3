"""How all tests share this machine, and which of them `make test` leaves to the night."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

CPUS = os.sched_getaffinity(0)
# They begin with what takes longest to prepare, a site: so no worker is left alone with it at the end.
FIRST = ("tests/site/", "tests/release/")


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
        "--nightly-reasons", action="store_true",
        help="run nothing: list what make test leaves to the night, and what proves it by day",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the night what would only make recorded runs again, by equal plans; list what is left to it."""
    for item in items:
        mark = item.get_closest_marker("recorded")
        if mark:
            import recordings  # half a second, for who runs such tests alone

            if recordings.stand(*mark.args):
                item.add_marker(pytest.mark.nightly(recordings.REASON))
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    reasons: set[str] = set()
    for item in items:
        mark = item.get_closest_marker("nightly")
        if mark:
            name = item.nodeid.partition("[")[0]
            if len(mark.args) != 1:
                raise pytest.UsageError(f"{name}: nightly says what proves the same by day")
            reasons.add(f"{name}\n    {mark.args[0]}")
    if config.getoption("--nightly-reasons"):
        items.clear()
        print("\n".join(sorted(reasons)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List how long each case took that was played on its page, which only a whole run tells."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    played = [
        value
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "played"
    ]
    if not played:
        return
    terminalreporter.section("cases played on their pages, in seconds")
    terminalreporter.line(f"{'case':<12}{'first run':>10}{'to solved':>10}")
    for case, *seconds in played:
        columns = "".join(f"{number:>10.0f}" for number in seconds)
        terminalreporter.line(f"{case:<12}{columns}{'' if seconds[1:] else '  in a terminal'}")
