"""Options that several commands have, kinds of values that they take, and reading what was given with them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError
from measuretwice.base.paths import CHECKOUT, is_release
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
        match = _SCHEDULER.fullmatch(text)
        if not match or not 1 <= int(match[3]) <= 65535:
            expected = f"expected a number from 1 to {MOST_JOBS}, or dask[+tls]://HOST:PORT"
            self.fail(f"{text!r}: {expected}", param, ctx)
        return Scheduler(match[2].strip("[]"), int(match[3]), tls=bool(match[1]))


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


if TYPE_CHECKING:
    # ./lab --help needs no labs, and reading their schema takes its time.
    from measuretwice.lab import StageName

# Who reads it says in the same words everywhere that it may not be read.
PATH = click.Path(path_type=Path, readable=False)
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on standard output."
)
OUT = click.option("--out", type=PATH, help="Folder of runs.  [default: runs/ in the checkout]")
SEED = click.IntRange(0, LAST_SEED)
JOBS = click.option(
    "--jobs",
    type=Jobs(),
    metavar=Jobs.name,
    help="Trials to run in parallel, or a Dask cluster to run them on.  [default: one per CPU]",
)
FRESH = click.option("--fresh", is_flag=True, help="Measure again what has already been measured.")
NODE = click.option("--node", metavar="NODE", help="Only this node's files.")
PITFALL = click.option(
    "--pitfall", metavar="ID", help="For instructors: stage a mistake by its id."
)
STAGE = click.option(
    "--stage", type=click.Choice(["broken", "fixed"]), help="Before or after the fix."
)

CASE = click.option(
    "--case",
    "case_number",
    type=click.IntRange(1, 999),
    metavar="N",
    help="A case to solve (see ./lab list). Your lab book keeps what you predict and find.",
)
SHOW_ME = click.option(
    "--show-me",
    is_flag=True,
    help="Run the case with its mistake already fixed.",
)
NO_EDIT = click.option(
    "--no-edit", is_flag=True, help="Use the lab's own node scripts, not your copy from ./lab edit."
)


def root_folder() -> Path:
    """The checkout: where labs/ and scripts/ stand."""
    return Path(os.environ.get("MEASURETWICE_ROOT") or CHECKOUT).resolve()


def refuse(what: str) -> None:
    """UserError where the kit at hand is a students' release."""
    if is_release(root_folder()):
        raise UserError(f"{what} is in the instructors' checkout; this is the students' release")


def check_stage(pitfall: str | None, stage: StageName | None) -> None:
    """UserError where one of --pitfall and --stage stands alone."""
    if (pitfall is None) != (stage is None):
        raise UserError("--pitfall and --stage go together: --pitfall ID --stage broken|fixed")


def refuse_beside_case(
    case: int | None, show_me: bool, trials: str | None, pitfall: str | None
) -> None:
    """UserError where --case stands beside what it knows itself, or --show-me without it."""
    if case is not None and (trials or pitfall):
        given = " and ".join(["--trial"] * bool(trials) + ["--pitfall"] * bool(pitfall))
        raise UserError(f"--case N knows its trial and settings: leave {given} out")
    if case is None and show_me:
        raise UserError("--show-me goes with --case N")
