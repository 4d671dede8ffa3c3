"""Does a cluster listen where others reach it? Each of its processes is asked for its own sockets.

What they tell the scheduler of themselves won't do: a worker that others reach by 192.0.2.2 may well
listen on 0.0.0.0, and one on 127.0.0.1 as well.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, NamedTuple

from measuretwice.base.errors import UserError
from measuretwice.execute import cluster_sockets
from measuretwice.execute.scheduler import NO_PAGES, Scheduler, is_loopback

OPEN_ANYWAY = "MEASURETWICE_OPEN_CLUSTER"
GUIDE = "docs/reference/cluster.md"
# Text and not a function: a function would be sent as byte code, which another version of Python can't
# read, or by its name, and then they would have to import this package. `eval` everybody has.
_ASK = "[scope := {{}}, exec({text!r}, scope), scope['listening']()][-1]"


class Port(NamedTuple):
    """A port that a process of the cluster listens on. `whose` as cluster_sockets.listening says."""

    whose: str
    machine: str
    ip: str
    port: int
    tls: bool

    def is_open(self) -> bool:
        """Can others reach it who have no certificate of the cluster's?"""
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
        self._order = _ASK.format(text=Path(cluster_sockets.__file__).read_text(encoding="utf-8"))
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
        """What the worker there listens on, its nanny, or without an address the scheduler."""
        if address:
            answer = self._client.run(eval, self._order, workers=[address], nanny=nanny)
        else:
            answer = self._client.run_on_scheduler(eval, self._order)
        said = await asyncio.wait_for(answer, self._patience_s)
        return [Port(*each) for each in (said[address] if address else said)]


def open_anyway() -> bool:
    """Does who calls us know that the cluster is open?"""
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
    machines = "" if pages_alone else f" (for several machines by TLS, as {GUIDE} says)"
    raise UserError(
        f"{scheduler.url()}: {places}: whoever reaches such a port {harm}. Start the "
        f"{_kinds(opened)} again with {host}{NO_PAGES}{machines}, or set {OPEN_ANYWAY}=1 to use it all the same"
    )


def _kinds(ports: list[Port]) -> str:
    """Which of dask's two programs are meant: a nanny is part of the workers'."""
    scheduler = any(port.whose.startswith("scheduler") for port in ports)
    others = any(not port.whose.startswith("scheduler") for port in ports)
    return " and the ".join(["scheduler"] * scheduler + ["workers"] * others)
