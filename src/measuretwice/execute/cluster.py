"""Trials on a cluster: a dask.distributed scheduler hands them to its workers.

A worker is asked for nothing but to start a program (`subprocess.run`): the checkout's own Python
with measuretwice.execute.cluster_worker, at the same path as here. So neither scheduler nor workers import this
package, and a worker that was started before a change of the code runs today's code.

Before, each process is asked for its own listening sockets: does the cluster listen where others reach it? What its
processes tell the scheduler of themselves won't do: a worker that others reach by 192.0.2.2 may well listen on
0.0.0.0, and one on 127.0.0.1 as well.
"""

from __future__ import annotations

import asyncio
import inspect
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
from typing import Any, NamedTuple, TypeVar

from measuretwice.base.errors import UserError
from measuretwice.base.files import hold
from measuretwice.base.paths import SOURCE
from measuretwice.execute.dispatch import OnBusy, Outcome, interrupts_noted, run_on
from measuretwice.execute.job import Job
from measuretwice.execute.scheduler import NO_PAGES, Scheduler, is_loopback
from measuretwice.runs.result import Result, code_digest, from_json

T = TypeVar("T")
CONNECT_S = 10
# How long there may be no worker, or no word of the scheduler, before a run is given up.
PATIENCE_S = 30.0
LOOK_EVERY_S = 1.0
INSTALL = "MEASURETWICE_SETUP=cluster ./lab"
RESUMABLE = "finished trials are kept, and the same command goes on from there"
OPEN_ANYWAY = "MEASURETWICE_OPEN_CLUSTER"
GUIDE = "docs/reference/cluster.md"


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
            self.problem = UserError(f"{self.name}: the scheduler has gone; {RESUMABLE}", 1)
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
            f"--out {job.out} by these paths, and have the same tools; {RESUMABLE}",
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
            raise UserError(f"{self.name}: the scheduler does not answer any more; {RESUMABLE}", 1)
        if now - self.workers_seen > PATIENCE_S:
            raise UserError(f"{self.name}: all workers have gone; {RESUMABLE}", 1)
        if self.asked is None and now - self.looked > LOOK_EVERY_S:
            self.looked = now
            self.asked = self._in_client(self.client.scheduler.ncores())

    def _guard(self, workers: set[str]) -> None:
        """Look at workers that have come since, without waiting; UserError where one is open."""
        if self.guarding is not None and self.guarding.done():
            error = self.guarding.exception()
            self.guarding = None
            if isinstance(error, UserError):
                raise UserError(f"{error}; {RESUMABLE}", 1)
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
                f"--jobs {scheduler.url()}: dask.distributed is not installed; install it with {INSTALL}"
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
            f"({error.strerror or error}); see {GUIDE}"
        ) from None
    if scheduler.tls and context is None:
        raise UserError(
            f"--jobs {scheduler.url()}: dask's configuration names no certificate for clients (is "
            f"DASK_CONFIG set?); see {GUIDE}"
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


class Port(NamedTuple):
    """A port that a process of the cluster listens on. `whose` as listening_sockets says."""

    whose: str
    machine: str
    ip: str
    port: int
    tls: bool

    def is_open(self) -> bool:
        """Return whether others reach it without a certificate of the cluster's."""
        return not self.tls and not is_loopback(self.ip)

    def __str__(self) -> str:
        place = f"[{self.ip}]" if ":" in self.ip else self.ip
        article = "the" if self.whose.startswith("scheduler") else "a"
        return f"{article} {self.whose} on {self.machine} listens on {place}:{self.port}"


class Guard:
    """Looks at every process of a cluster once, also at workers that come later."""

    def __init__(self, scheduler: Scheduler, client: Any, patience_s: float) -> None:
        self._scheduler, self._client, self._patience_s = scheduler, client, patience_s
        self._scheduler_seen = False
        self._order = _question()
        self.seen: set[str] = set()

    async def look(self) -> None:
        """Look at what there was no look at yet, in the loop of the client's; UserError where one is open."""
        workers = await self._workers()
        new = {address: of for address, of in workers.items() if address not in self.seen}
        asked = [(address, False) for address in new]
        asked += [(address, True) for address, of in new.items() if of.get("nanny")]
        if not self._scheduler_seen:
            asked.append(("", False))
        answers = await asyncio.gather(
            *(self._ask(*whom) for whom in asked), return_exceptions=True
        )
        if any(isinstance(answer, BaseException) for answer in answers):
            # One that has gone meanwhile owes no answer.
            workers = await self._workers()
        ports: set[Port] = set()
        for (address, _), answer in zip(asked, answers, strict=True):
            if not isinstance(answer, BaseException):
                ports.update(answer)
            elif not address or address in workers:
                who = f"the worker {address}" if address else "the scheduler"
                raise UserError(
                    f"{self._scheduler.url()}: {who} does not say where it listens ({answer!r}): it "
                    f"may be open to anybody. {OPEN_ANYWAY}=1 uses it all the same"
                )
        refuse_open(self._scheduler, ports)
        self._scheduler_seen = True
        self.seen |= set(new)

    async def _workers(self) -> dict[str, dict[str, Any]]:
        answer = await asyncio.wait_for(self._client.scheduler.identity(), self._patience_s)
        return dict(answer["workers"])

    async def _ask(self, address: str, nanny: bool) -> list[Port]:
        """Return the ports of the worker at an address, of its nanny, or without an address of the scheduler."""
        if address:
            answer = self._client.run(eval, self._order, workers=[address], nanny=nanny)
        else:
            answer = self._client.run_on_scheduler(eval, self._order)
        sockets = await asyncio.wait_for(answer, self._patience_s)
        return [Port(*fields) for fields in (sockets[address] if address else sockets)]


def listening_sockets() -> list[tuple[str, str, str, int, bool]]:
    """Return of each socket that this process listens on: whose it is, the machine, the address, the
    port, and whether who connects must show a certificate of the cluster's.

    Whose: "scheduler", "worker" or "nanny", with "'s dashboard" for its pages, or with "'s process" for
    what isn't dask's own. The text of this function is run inside schedulers, workers and nannies. They don't know
    this package, and may have another version of Python: so it stands alone.
    """
    import importlib
    import socket

    distributed = importlib.import_module("distributed")
    # Of each port who has opened it, and whether with TLS.
    owners: dict[int, list[tuple[str, bool]]] = {}
    for kind in ("Scheduler", "Worker", "Nanny"):
        for server in getattr(distributed, kind)._instances:
            for listener in server.listeners:
                scheme, _, address = listener.listen_address.partition("://")
                port = address.rpartition(":")[2]
                if port.isdigit():
                    owners.setdefault(int(port), []).append((kind.lower(), scheme == "tls"))
            pages = getattr(server, "http_server", None)
            for page_socket in pages._sockets.values() if pages else ():
                port = page_socket.getsockname()[1]
                owners.setdefault(port, []).append((f"{kind.lower()}'s dashboard", False))
    process_kind = next(iter(owners.values()))[0][0].partition("'")[0]
    unknown = [(f"{process_kind}'s process", False)]
    sockets = []
    for connection in importlib.import_module("psutil").Process().net_connections(kind="tcp"):
        if connection.status == "LISTEN":
            # Two may have one port, at two addresses: it counts as one with TLS where both have it.
            port_owners = owners.get(connection.laddr.port, unknown)
            tls = all(with_tls for _, with_tls in port_owners)
            ip, port = connection.laddr.ip, connection.laddr.port
            sockets.append((port_owners[0][0], socket.gethostname(), ip, port, tls))
    return sockets


def _question() -> str:
    """The expression that asks a process for its sockets.

    Text and not a function: a function would be sent as byte code, which another version of Python can't
    read, or by its name, and then they would have to import this package. `eval` everybody has.
    """
    text = f"from __future__ import annotations\n{inspect.getsource(listening_sockets)}"
    return f"[scope := {{}}, exec({text!r}, scope), scope['listening_sockets']()][-1]"


def open_anyway() -> bool:
    """Return whether the user accepts an open cluster."""
    return bool(os.environ.get(OPEN_ANYWAY))


def refuse_open(scheduler: Scheduler, ports: set[Port]) -> None:
    """UserError where anybody may reach one of these ports: which, and how to start it instead."""
    opened = sorted(port for port in ports if port.is_open())
    if not opened:
        return
    # One of each kind is enough to act on: all workers of a cluster are mostly started alike. And
    # 0.0.0.0 and :: may be one port.
    shown = list({port.whose: port for port in reversed(opened)}.values())[::-1]
    more = len({(port.whose, port.machine, port.port) for port in opened}) - len(shown)
    places = ", ".join(map(str, shown)) + (f", and so on at {more} more" if more else "")
    pages_alone = all(port.whose.endswith("dashboard") for port in opened)
    harm = "sees what runs there" if pages_alone else "runs programs as you"
    host = "" if pages_alone else "--host 127.0.0.1 "
    machines = "" if pages_alone else f" (for several machines by TLS; see {GUIDE})"
    raise UserError(
        f"{scheduler.url()}: {places}: whoever reaches such a port {harm}. Start the "
        f"{_kinds(opened)} again with {host}{NO_PAGES}{machines}, or set {OPEN_ANYWAY}=1 to use it all the same"
    )


def _kinds(ports: list[Port]) -> str:
    """Return which of dask's two programs have these ports: a nanny is part of the workers'."""
    scheduler = any(port.whose.startswith("scheduler") for port in ports)
    others = any(not port.whose.startswith("scheduler") for port in ports)
    return " and the ".join(["scheduler"] * scheduler + ["workers"] * others)
