"""One measured value, or one parameter, of a run or of each of several runs, as numbers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from measuretwice.base.errors import UserError
from measuretwice.runs.result import Result


def measured(run: Result, name: str) -> float:
    """Return a measured value, in the unit that its name ends with; UserError where the run has none."""
    return _number(run, name, run.measured.get(name))


def param(run: Result, name: str) -> float:
    """Return a parameter that is a number, in the unit that its name ends with; UserError for any other."""
    return _number(run, name, run.params.get(name))


def column(runs: Sequence[Result], name: str) -> list[float]:
    """Return a measured value of each run."""
    return [measured(run, name) for run in runs]


def mean(runs: Sequence[Result], name: str) -> float:
    """Return the mean of a measured value over runs."""
    return statistics.fmean(column(runs, name))


def _number(run: Result, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{run.place}: {name} is no number but {value!r}")
    return value
