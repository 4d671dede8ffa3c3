"""`lab grade --again`: runs of a class run again, with what that costs and what came of it."""

from __future__ import annotations

import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from measuretwice.backends.backend import Backend
from measuretwice.backends.registry import REPEATING
from measuretwice.backends.virtual import Virtual
from measuretwice.base.cpus import usable_cpus
from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.execute.batch import open_batch
from measuretwice.execute.estimate import expected_seconds
from measuretwice.execute.job import Job
from measuretwice.grading.again import (
    FILE_BYTES,
    WALL_S,
    Chosen,
    Kept,
    Key,
    compare,
    key_of,
    plan_runs,
    run_again,
)
from measuretwice.grading.remarks import Remade
from measuretwice.lab import Lab

FAILED = "could not be run again: see what ./lab grade says"


def run_chosen(
    root: Path,
    lab: Lab,
    chosen: Sequence[Chosen],
    before: dict[Key, Remade],
    kept: Kept,
    path: Path,
    costly: bool,
    at_once: int | None,
    quiet: bool,
) -> tuple[dict[Key, Remade], list[str]]:
    """Run the chosen runs again that aren't known from `before`; return what came of all, and lines to print.

    What has ended stands in `path` at once: after Ctrl-C the same command goes on from there.
    """
    todo = [each for each in chosen if each.key not in before]
    began_s, failed = _children_s(), []
    remade = dict(before)
    for kind, these in _by_place(todo).items():
        with tempfile.TemporaryDirectory(prefix="measuretwice-again-") as out, ExitStack() as stack:
            limit_s = None if costly else WALL_S
            try:
                backend = stack.enter_context(kind.opened(kind.name, lab, root))
                batch = open_batch(root, lab, Path(out), backend, wall_limit_s=limit_s)
            except UserError as error:
                why = Remade(None, f"can't be run again here: {error}")
                remade |= dict.fromkeys((each.key for each in these), why)
                continue
            planned, refused = plan_runs(batch, these, costly=costly)
            # Two students may claim the same run: it is run once.
            keys = {each.key: key_of(each.run) for each in these if each.key in planned}
            jobs = {keys[key]: job for key, job in planned.items()}
            problems = _run(jobs, kept, path, costly, at_once, quiet)
            failed += [line.replace(f"{out}/", "") for line in problems]
        remade |= refused
        for each in these:
            if each.key in planned:
                digests = kept.get(keys[each.key])
                remade[each.key] = compare(each.run, digests) if digests else Remade(None, FAILED)
    return remade, [_in_words(chosen, remade, _children_s() - began_s), *failed]


def _by_place(todo: Sequence[Chosen]) -> dict[type[Backend], list[Chosen]]:
    """Runs by the place that repeats them; where none does, the virtual kernel's plan says why not."""
    found: dict[type[Backend], list[Chosen]] = {}
    for each in todo:
        found.setdefault(REPEATING.get(each.run.where, Virtual), []).append(each)
    return found


def _run(
    jobs: dict[str, Job], kept: Kept, path: Path, costly: bool, at_once: int | None, quiet: bool
) -> list[str]:
    """Run the jobs with progress; return what failed."""
    if not jobs:
        return []
    parallel = min(at_once or len(usable_cpus()), len(jobs))
    if not quiet:
        seconds = expected_seconds(list(jobs.values()), parallel)
        print(
            f"running {_count(len(jobs), 'run')} again, {parallel} at a time: about {max(5, round(seconds))} "
            "seconds. Ctrl-C loses nothing that is finished.",
            file=sys.stderr,
        )
    failed = []
    context, advance = terminal.counter("runs again", len(jobs), quiet)
    with context, _small_files(costly):
        for job, problem in run_again(jobs, at_once, kept, path):
            advance(job.plan.trial, "")
            if problem:
                failed.append(problem)
    return failed


def _in_words(chosen: Sequence[Chosen], remade: dict[Key, Remade], cpu_s: float) -> str:
    found = Counter(remade[each.key].same for each in chosen)
    parts = [f"{found[True]} the same bytes", f"{found[False]} not"]
    if found[None]:
        parts.append(f"{found[None]} can't be, or weren't")
    cost = f"{cpu_s:.0f} CPU seconds" if cpu_s >= 1 else "all known from before"
    return f"Run again, of {_count(len(chosen), 'run')}: {', '.join(parts)} ({cost})."


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _small_files(costly: bool) -> Iterator[None]:
    """Runs write no larger file than any run of the labs: whatever settings somebody has thought of."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not costly:
        most = FILE_BYTES if soft == resource.RLIM_INFINITY else min(soft, FILE_BYTES)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
