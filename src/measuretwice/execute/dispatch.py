"""Who hands out trials: a pool of processes with one CPU each, one after the other, or a cluster.

A dispatcher is no backend: a cluster, too, runs virtual trials.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from measuretwice.backends.backend import Backend, BackendLost
from measuretwice.base.errors import UserError
from measuretwice.base.files import take_cpu, usable_cpus
from measuretwice.execute.job import Busy, Job, run_job
from measuretwice.execute.scheduler import Scheduler
from measuretwice.runs.result import Result, code_digest

Outcome = Result | UserError
# Told of each job that somebody else works on, when that is found.
OnBusy = Callable[[Job], object]
# How often such a job is looked at again.
BUSY_LOOK_S = 0.5


# Of a worker: what says that its CPU is taken, open until the worker ends.
_cpu: list[socket.socket] = []


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
        raise UserError(
            f"--on {where}: a cluster runs only the virtual kernel, so leave --jobs out"
        )
    if backend.real_time and jobs is not None and jobs != 1:
        raise UserError("--jobs: in real time trials would disturb each other: 1")


@contextmanager
def dispatcher(backend: Backend, jobs: int | Scheduler | None, trials: int) -> Iterator[Dispatcher]:
    """Return who hands out that many trials; by default one for each CPU, in real time one.

    UserError where a cluster can't be reached.
    """
    if isinstance(jobs, Scheduler):
        # It needs dask, which few have, and is made of what stands here.
        from measuretwice.execute.cluster import connect

        with connect(jobs) as cluster:
            yield cluster
    elif not backend.portable:
        yield SerialDispatcher(backend)
    else:
        wanted = jobs or (1 if backend.real_time else len(usable_cpus()))
        yield Pool(backend, min(wanted, trials))


class Pool:
    """Processes of this machine, each with a CPU and a trial of its own."""

    def __init__(self, backend: Backend, at_once: int) -> None:
        self._backend, self.at_once = backend, at_once

    def run_all(
        self, jobs: list[Job], on_busy: OnBusy | None = None
    ) -> Iterator[tuple[Job, Outcome]]:
        context = multiprocessing.get_context("fork")
        # Found out once, here, and not by each process.
        code_digest(jobs[0].lab_folder)
        with interrupts_noted() as interrupted, self._backend.serving():
            try:
                pool = ProcessPoolExecutor(
                    max_workers=self.at_once,
                    mp_context=context,
                    initializer=_begin_worker,
                    initargs=(os.getpid(),),
                )
            except OSError as error:
                # Semaphores of processes are files there (sem_overview(7)), wherever else there is room.
                raise UserError(
                    f"/dev/shm: {error.strerror}. Processes that run trials need some bytes there, so make room, or mount "
                    "it so that it can be written to (mount -o remount,rw /dev/shm)",
                    1,
                ) from None
            try:
                yield from run_on(lambda job: pool.submit(run_job, job), jobs, interrupted, on_busy)
            finally:
                _end_pool(pool)


class SerialDispatcher:
    """One trial at a time, in this process; none more once the backend is lost."""

    at_once = 1

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def run_all(
        self, jobs: list[Job], on_busy: OnBusy | None = None
    ) -> Iterator[tuple[Job, Outcome]]:
        # First serving ends: the trial that still runs ends with it, and undoes on nodes that are
        # there; for that the thread is waited for.
        with (
            interrupts_noted() as interrupted,
            ThreadPoolExecutor(1) as pool,
            self._backend.serving(),
        ):
            for next_job in jobs:
                for job, outcome in run_on(
                    lambda job: pool.submit(run_job, job), [next_job], interrupted, on_busy
                ):
                    yield job, outcome
                    if isinstance(outcome, BackendLost):
                        return


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C, SIGTERM, Ctrl-\\ and a terminal that is closed, instead of raising them anywhere; yields 'was there
    one?'. Under nohup(1) a terminal that is closed ends nothing.

    A KeyboardInterrupt in the middle of starting a worker would leave half a pool behind.
    """
    caught: list[int] = []
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {n: signal.signal(n, lambda number, _: caught.append(number)) for n in numbers}
    try:
        yield lambda: bool(caught)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_on(
    submit: Callable[[Job], Future[Result]],
    jobs: list[Job],
    interrupted: Callable[[], bool],
    on_busy: OnBusy | None = None,
) -> Iterator[tuple[Job, Outcome]]:
    """Submit the jobs, in this order, to whatever runs them.

    A job that somebody else works on is submitted again once nobody does: then its result is taken, or, where
    that one was killed or failed, it is run here. Raises KeyboardInterrupt soon after `interrupted` has become
    true.
    """
    waiting = {submit(job): job for job in jobs}
    # Those that somebody else works on, and when they are looked at next.
    busy: dict[Path, Job] = {}
    look_at = 0.0
    while waiting or busy:
        if waiting:
            ended, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
        else:
            ended = set()
            time.sleep(0.1)
        if interrupted():
            raise KeyboardInterrupt
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + BUSY_LOOK_S
            for job in [job for job in busy.values() if not job.is_busy()]:
                waiting[submit(busy.pop(job.folder))] = job
        for future in ended:
            job = waiting.pop(future)
            try:
                yield job, future.result()
            except Busy:
                busy[job.folder] = job
                if on_busy:
                    on_busy(job)
            except UserError as error:
                yield job, error
            except BrokenProcessPool:  # the worker was killed, from outside or for lack of memory
                reason = f"trial {job.plan.trial}: its process was killed (out of memory?)"
                yield job, UserError(reason, 1)


def _begin_worker(parent: int) -> None:
    """A worker keeps to one CPU, leaves Ctrl-C to its parent, and dies with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    _cpu.append(take_cpu())


def _end_pool(pool: ProcessPoolExecutor) -> None:
    """Stop the workers at once; their kernels are told to die with them.

    Then wait for the pool's own thread, which finds them gone: left to itself it would
    complain on stderr when the interpreter ends.
    """
    for worker in list((pool._processes or {}).values()):
        worker.kill()
    pool.shutdown(wait=True, cancel_futures=True)
