"""What the figures over time share: a run's traces, and a run in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Value
from measuretwice.measure.connections import Trace, traces
from measuretwice.measure.queue import Queue, queue
from measuretwice.parse import ParseError
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result

# Measured values that describe a run: their name, the words, and what they are multiplied by.
SUMMARY = (
    ("jains_index", "Jain's index {:.3f}", 1.0),
    ("utilisation", "{:.1f} % of the link in use", 100.0),
    ("queue_mean_packets", "{:.0f} packets in the queue on average", 1.0),
)

# What was read of runs' folders, while that is kept.
Known = dict[tuple[Path, Path], tuple[list[Trace], Queue | None]]
_kept: ContextVar[Known | None] = ContextVar("kept", default=None)


@contextmanager
def read_once() -> Iterator[None]:
    """A context in which each run's traces are read once: a figure is drawn in several layouts."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def first_of_each_trial(results: Sequence[Result]) -> list[Result]:
    """Return the first run of each trial, in the order of `results`."""
    first: dict[int, Result] = {}
    for result in results:
        first.setdefault(result.trial, result)
    return list(first.values())


def read_traces(lab: Lab, run: Result) -> tuple[list[Trace], Queue | None]:
    """Return each flow's window over time and the queue, from a run's folder or its archive.

    UserError where its raw files can't be read.
    """
    folder, kept = run.run_dir, _kept.get()
    if kept is not None and (lab.folder, folder) in kept:
        return kept[lab.folder, folder]
    try:
        with raw_folder(folder) as raw:
            found = traces(lab, raw), queue(lab, raw)
    except (ParseError, OSError) as error:
        raise UserError(f"{folder.name}: its raw files can't be read: {error}") from None
    if kept is not None:
        kept[lab.folder, folder] = found
    return found


def title_of(lab: Lab, run: Result) -> str:
    """Return a run's title: its trial, and the first two values that other trials have otherwise."""
    values = lab.trials[run.trial].set
    others = [trial.set for trial in lab.trials.values()]
    differing = [name for name in values if len({str(other.get(name)) for other in others}) > 1]
    settings = ", ".join(_value(name, run.params.get(name)) for name in differing[:2])
    return f"trial {run.trial}: {settings}"


def _value(name: str, value: Value | None) -> str:
    """A parameter's value, a number with the unit that its name ends in."""
    if isinstance(value, int | float):
        return f"{value:,} {name.rsplit('_', 1)[-1]}"
    return str(value)


def summary_of(run: Result) -> str:
    """Return what was measured of a run, as a sentence."""
    parts = []
    for name, words, scale in SUMMARY:
        value = run.value(name)
        if value is not None:
            parts.append(words.format(scale * value))
    return ", ".join(parts) + "."
