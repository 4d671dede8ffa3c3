"""Trials on a cluster: a dask.distributed scheduler hands them to its workers.

A worker is asked for nothing but to start a program (`subprocess.run`): the checkout's own Python
with measuretwice.execute.cluster_worker, at the same path as here. Before, each process is asked where it
listens (see cluster_ports.py). So neither scheduler nor workers import this package, and a worker that was started
before a change of the code runs today's code.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from measuretwice.base.errors import UserError
from measuretwice.base.locks import hold
from measuretwice.base.paths import SOURCE
from measuretwice.execute.cluster_ports import GUIDE, Guard, Port, open_anyway, refuse_open
from measuretwice.execute.job import Job
from measuretwice.execute.pool import OnBusy, Outcome, interrupts_noted, run_on
from measuretwice.execute.scheduler import Scheduler
from measuretwice.runs.derive import code_digest
from measuretwice.runs.result import Result, from_json

T = TypeVar("T")
CONNECT_S = 10
# How long there may be no worker, or no word of the scheduler, before a run is given up.
PATIENCE_S = 30.0
LOOK_EVERY_S = 1.0
INSTALL = "MEASURETWICE_SETUP=cluster ./lab"
KEPT = "finished trials are kept, and the same command goes on from there"


class Cluster:
    """A scheduler that we are connected to. `at_once` is how many trials its workers take."""

    def __init__(self, scheduler: Scheduler, client: Any) -> None:
        self.name, self.client = scheduler.url(), client
        self.guard = None if open_anyway() else Guard(scheduler, client, CONNECT_S)
        self.guarding: Future[None] | None = None
        if self.guard:
            try:
                self._in_client(self.guard.look()).result()
            except OSError as error:
                raise UserError(f"{self.name}: the scheduler does not answer ({error!r})") from None
        self.executor = client.get_executor(pure=False)
        self.at_once = sum(client.nthreads().values())
        if not self.at_once:
            raise UserError(
                f"{self.name}: no worker is there; start one: {scheduler.start_worker()}"
            )
        # What ends the run, found in a thread of the client's.
        self.problem: UserError | None = None
        self.asked: Future[dict[str, int]] | None = None
        self.looked = self.workers_seen = self.answered = time.monotonic()

    def run_all(
        self, jobs: list[Job], on_busy: OnBusy | None = None
    ) -> Iterator[tuple[Job, Outcome]]:
        """See Dispatcher.

        UserError where the cluster is lost, or one of its workers would measure something else.
        """
        with _lease(jobs[0]) as lease, interrupts_noted() as interrupted:

            def over() -> bool:
                if interrupted():
                    return True
                self._look()
                return False

            try:
                yield from run_on(lambda job: self._submit(job, lease), jobs, over, on_busy)
            finally:
                # The scheduler forgets what nobody waits for any more. Then the lease ends, and
                # with it what runs already.
                self.close()

    def close(self) -> None:
        self.client.close(timeout=2)

    def _submit(self, job: Job, lease: Path) -> Future[Result]:
        outcome: Future[Result] = Future()
        done = self.executor.submit(
            subprocess.run, _program(), input=_order(job, lease), capture_output=True,
            # Ctrl-C in the worker's terminal is meant for the worker alone.
            start_new_session=True,
        )  # fmt: skip
        done.add_done_callback(lambda ended: self._pass_on(job, ended, outcome))
        return outcome

    def _pass_on(self, job: Job, ended: Future[Any], outcome: Future[Result]) -> None:
        """From what a worker's program said to the trial's result, its error, or the run's end."""
        label = f"trial {job.plan.trial}"
        if ended.cancelled():
            self.problem = UserError(f"{self.name}: the scheduler has gone; {KEPT}", 1)
            return
        error = ended.exception()
        if type(error).__name__ == "KilledWorker":
            reason = f"{label}: the worker died each time it was begun (out of memory?)"
            outcome.set_exception(UserError(reason, 1))
        elif error:
            self._misfit(f"a worker could not begin {label}: {error}", job)
        else:
            try:
                answer = json.loads(ended.result().stdout)
            except ValueError:
                self._misfit(f"a worker could not begin {label}: {_last(ended.result())}", job)
                return
            if "result" in answer:
                outcome.set_result(from_json(answer["result"]))
            elif answer["misfit"]:
                self._misfit(f"{answer['error']} {_last(ended.result())}", job)
            else:
                outcome.set_exception(UserError(answer["error"], answer["exit_code"]))

    def _misfit(self, what: str, job: Job) -> None:
        """One worker that can't run a trial would take all of them, one after the other."""
        self.problem = UserError(
            f"{self.name}: {what.strip()}. Every worker must see the checkout {job.root} and "
            f"--out {job.out} by these paths, and have the same tools; {KEPT}",
            1,
        )

    def _look(self) -> None:
        """Ask now and then whether there are workers, without waiting for the answer."""
        if self.problem:
            raise self.problem
        now = time.monotonic()
        if self.asked is not None and self.asked.done():
            if not self.asked.exception():
                self.answered = now
                if self.asked.result():
                    self.workers_seen = now
                self._guard(set(self.asked.result()))
            self.asked = None
        if now - self.answered > PATIENCE_S:
            raise UserError(f"{self.name}: the scheduler does not answer any more; {KEPT}", 1)
        if now - self.workers_seen > PATIENCE_S:
            raise UserError(f"{self.name}: all workers have gone; {KEPT}", 1)
        if self.asked is None and now - self.looked > LOOK_EVERY_S:
            self.looked = now
            self.asked = self._in_client(self.client.scheduler.ncores())

    def _guard(self, workers: set[str]) -> None:
        """Look at workers that have come since, without waiting; UserError where one is open."""
        if self.guarding is not None and self.guarding.done():
            error = self.guarding.exception()
            self.guarding = None
            if isinstance(error, UserError):
                raise UserError(f"{error}; {KEPT}", 1)
        if self.guard and self.guarding is None and workers - self.guard.seen:
            self.guarding = self._in_client(self.guard.look())

    def _in_client(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin it in the thread of the client's."""
        return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)


@contextmanager
def connect(scheduler: Scheduler) -> Iterator[Cluster]:
    """Connect to a scheduler; UserError says why that can't be."""
    # What dask would log is said in our own words, once.
    logging.disable(logging.CRITICAL)
    try:
        try:
            from distributed import Client
        except ImportError:
            raise UserError(
                f"--jobs {scheduler.url()}: dask.distributed is not installed: {INSTALL}"
            ) from None
        security = _security(scheduler)
        _reach(scheduler, security)
        with warnings.catch_warnings():
            # Versions that differ are no matter: see above.
            warnings.simplefilter("ignore")
            client: Any = Client(
                scheduler.address(), timeout=CONNECT_S, set_as_default=False, security=security
            )
        try:
            yield Cluster(scheduler, client)
        finally:
            client.close(timeout=2)
    finally:
        logging.disable(logging.NOTSET)


def _security(scheduler: Scheduler) -> Any:
    """The certificates that dask's own configuration names; UserError where TLS needs them in vain."""
    from distributed import Security

    security = Security()
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except OSError as error:  # ssl's are of this kind, too
        raise UserError(
            f"--jobs {scheduler.url()}: a certificate that dask's configuration names can't be read "
            f"({error.strerror or error}): {GUIDE}"
        ) from None
    if scheduler.tls and context is None:
        raise UserError(
            f"--jobs {scheduler.url()}: dask's configuration names no certificate for clients (is "
            f"DASK_CONFIG set?): {GUIDE}"
        )
    return security


def _reach(scheduler: Scheduler, security: Any) -> None:
    """See what listens there: dask's client would ask again and again, whatever it is told."""
    from distributed import rpc

    async def who_is_it() -> object:
        arguments = security.get_connection_args("client")
        async with rpc(scheduler.address(), timeout=CONNECT_S, connection_args=arguments) as there:
            return (await there.identity())["type"]

    async def ask() -> object:
        return await asyncio.wait_for(who_is_it(), CONNECT_S)

    try:
        with socket.create_connection((scheduler.host, scheduler.port), CONNECT_S) as there:
            ip = there.getpeername()[0]
    except OSError as error:
        raise UserError(
            f"--jobs {scheduler.url()}: can't be reached ({error.strerror or error}); is the "
            f"scheduler running? {scheduler.safe().start()} and --jobs {scheduler.safe().url()}"
        ) from None
    if not open_anyway():
        # Before a word is said: who answers there without TLS could run programs here, too.
        refuse_open(
            scheduler, {Port("scheduler", scheduler.host, ip, scheduler.port, scheduler.tls)}
        )
    try:
        kind = asyncio.run(ask())
    except Exception:  # whatever it is, it may say anything
        kind = None
    if kind != "Scheduler":
        other = "that these certificates fit" if scheduler.tls else "(one with TLS: dask+tls://)"
        raise UserError(
            f"--jobs {scheduler.url()}: what listens there is no dask scheduler {other}"
        )


@contextmanager
def _lease(job: Job) -> Iterator[Path]:
    """A file among the runs: a worker that sees it shares the file system, and works while it stands.

    It is locked as a trial's is, so that `sweep` removes it after a kill and not before.
    """
    path = job.folder.parent / f".cluster-{uuid.uuid4().hex}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with hold(path, remove=True):
        yield path


def _program() -> list[str]:
    """The command that a worker starts, and that dies with the worker's thread, so with the worker."""
    return [
        "setpriv", "--pdeathsig", "KILL",
        "env", f"PYTHONPATH={SOURCE}",
        os.path.abspath(sys.executable), "-P", "-m", "measuretwice.execute.cluster_worker",
    ]  # fmt: skip


def _order(job: Job, lease: Path) -> bytes:
    order = {
        "code": code_digest(job.lab_folder),
        "plan": {**asdict(job.plan), "params": dict(job.plan.params)},
        "lab_folder": str(job.lab_folder),
        "root": str(job.root),
        "out": str(job.out),
        "wall_limit_s": job.wall_limit_s,
        "lease": str(lease),
    }
    return json.dumps(order).encode()


def _last(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
