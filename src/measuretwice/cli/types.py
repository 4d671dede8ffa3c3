"""Kinds of values that options take."""

from __future__ import annotations

import re

import click

from measuretwice.execute.scheduler import Scheduler

MOST_JOBS = 1024
# More runs than anybody hands in.
ALL_RUNS = 1_000_000
_SCHEDULER = re.compile(r"dask(\+tls)?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})/?")


class Jobs(click.ParamType[int | Scheduler]):
    """A number from 1, or dask://HOST:PORT, with TLS dask+tls://HOST:PORT."""

    name = "N|dask://HOST:PORT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Scheduler:
        if isinstance(value, int | Scheduler):
            return value
        text = str(value)
        if re.fullmatch(r"[0-9]+", text) and 1 <= int(text) <= MOST_JOBS:
            return int(text)
        found = _SCHEDULER.fullmatch(text)
        if not found or not 1 <= int(found[3]) <= 65535:
            expected = f"expected a number from 1 to {MOST_JOBS}, or dask[+tls]://HOST:PORT"
            self.fail(f"{text!r}: {expected}", param, ctx)
        return Scheduler(found[2].strip("[]"), int(found[3]), tls=bool(found[1]))


class Runs(click.ParamType[int]):
    """How many runs: a number from 1, or `all`."""

    name = "N|all"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        text = str(value)
        if text == "all":
            return ALL_RUNS
        if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) == 0:
            self.fail(f"{text!r}: expected a number from 1, or all", param, ctx)
        return int(text)
