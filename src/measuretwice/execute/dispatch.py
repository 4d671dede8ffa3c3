"""Who hands out trials: a pool of processes, one at a time, or a cluster. The choice stands here.

A dispatcher is no backend: a cluster, too, runs virtual trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from measuretwice.backends.backend import Backend
from measuretwice.base.errors import UserError
from measuretwice.base.locks import usable_cpus
from measuretwice.execute.cluster import connect
from measuretwice.execute.job import Job
from measuretwice.execute.pool import InTurn, OnBusy, Outcome, Pool
from measuretwice.execute.scheduler import Scheduler


class Dispatcher(Protocol):
    """Runs jobs, `at_once` of them side by side."""

    @property
    def at_once(self) -> int: ...

    def run_all(
        self, jobs: list[Job], on_busy: OnBusy | None = None
    ) -> Iterator[tuple[Job, Outcome]]:
        """Run the jobs, at least one, and yield each with its result as it ends.

        One that another command works on comes last: its result is waited for. `on_busy` is told of it.
        A trial that fails yields its error; the others go on. However the caller ends, nothing is
        left running. KeyboardInterrupt soon after Ctrl-C or SIGTERM.
        """


def refuse_jobs(backend: type[Backend], where: str, jobs: int | Scheduler | None) -> None:
    """UserError where trials can't be handed out so on the backend that --on `where` means."""
    if backend.real_time and isinstance(jobs, Scheduler):
        raise UserError(f"--on {where}: a cluster runs the virtual kernel alone: leave --jobs out")
    if backend.real_time and jobs is not None and jobs != 1:
        raise UserError("--jobs: in real time trials would disturb each other: 1")


@contextmanager
def dispatcher(backend: Backend, jobs: int | Scheduler | None, trials: int) -> Iterator[Dispatcher]:
    """Return who hands out that many trials; by default one for each CPU, in real time one.

    UserError where a cluster can't be reached.
    """
    if isinstance(jobs, Scheduler):
        with connect(jobs) as cluster:
            yield cluster
    elif not backend.portable:
        yield InTurn(backend)
    else:
        wanted = jobs or (1 if backend.real_time else len(usable_cpus()))
        yield Pool(backend, min(wanted, trials))
