"""Reading submissions in processes of their own: one that hangs or dies takes no other with it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path

from measuretwice.base.limited_process import WALL_S, LimitedProcess, describe_unforeseen
from measuretwice.grading.contents import Reading
from measuretwice.grading.read import read_submission
from measuretwice.lab import Lab
from measuretwice.stats.intervals import binomial_interval


@dataclass
class _Work:
    key: int
    process: LimitedProcess
    tree: Path
    deadline: float


def read_all(
    root: Path,
    submissions: list[list[Path]],
    parallel: int,
    wall_s: float = WALL_S,
    reports: Path | None = None,
    lab: Lab | None = None,
) -> Iterator[tuple[int, Reading]]:
    """Read the submissions, `parallel` at a time; yield each one's place and what was read.

    Where the `lab` is known, files from a testbed are read as of its runs. Into the folder `reports` goes a report on each one's runs, called by its place: 0.html, ...
    Where that didn't come to an end, the reading's `problem` says why.
    """
    # What all will need is loaded once, here, and not by each.
    binomial_interval(10, 0.5, 0.9)
    waiting = list(enumerate(submissions))[::-1]
    working: list[_Work] = []
    with tempfile.TemporaryDirectory(prefix="measuretwice-grade-") as folder:
        try:
            while waiting or working:
                while waiting and len(working) < parallel:
                    key, sources = waiting.pop()
                    tree = Path(folder) / str(key) / "files"
                    tree.parent.mkdir()
                    report = reports / f"{key}.html" if reports else None
                    process = LimitedProcess(partial(_read, root, sources, tree, report, lab))
                    working.append(_Work(key, process, tree, time.monotonic() + wall_s))
                ready = wait([work.process.pipe for work in working], timeout=1.0)
                for work in [*working]:
                    if work.process.pipe in ready or time.monotonic() > work.deadline:
                        working.remove(work)
                        yield work.key, _outcome(work, work.process.pipe in ready)
        finally:
            for work in working:
                _end(work)


def _read(
    root: Path,
    sources: list[Path],
    tree: Path,
    report: Path | None,
    lab: Lab | None,
    answer: Connection,
) -> None:
    """In the process: the work. The answer is JSON, not a pickle."""
    try:
        reading = Reading(read_submission(root, sources, tree, report, lab)).to_json()
    except Exception as error:
        reading = Reading(problem=describe_unforeseen(error)).to_json()
    answer.send_bytes(reading)


def _outcome(work: _Work, ready: bool) -> Reading:
    if not ready:
        reading = Reading(problem=f"not read: took more than {WALL_S:.0f} s")
    else:
        try:
            # The process has worked on files from outside: what it says is data from outside, too.
            reading = Reading.from_json(work.process.pipe.recv_bytes())
        except (EOFError, OSError):
            reading = Reading(problem=work.process.failure())
        except ValueError:
            reading = Reading(problem="not read: what was read of it is no description of runs")
    _end(work)
    return reading


def _end(work: _Work) -> None:
    work.process.end()
    shutil.rmtree(work.tree.parent, ignore_errors=True)
