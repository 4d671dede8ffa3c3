"""Measured values and parameters, of a run or of each of several runs: as numbers, and in tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from measuretwice.base.errors import UserError
from measuretwice.facts.values import Cell, Table, table
from measuretwice.runs.result import Result


def measured(run: Result, name: str) -> float:
    """Return a measured value, in the unit that its name ends with, or the run's `ratio` to its model; UserError where
    the run has none."""
    return _number(run, name, run.values.get(name))


def param(run: Result, name: str) -> float:
    """Return a parameter that is a number, in the unit that its name ends with; UserError for any other."""
    return _number(run, name, run.params.get(name))


def column(runs: Sequence[Result], name: str) -> list[float]:
    """Return a measured value of each run."""
    return [measured(run, name) for run in runs]


def mean(runs: Sequence[Result], name: str) -> float:
    """Return the mean of a measured value over runs."""
    return statistics.fmean(column(runs, name))


Show = Callable[[Result], Cell]


def cell(name: str, show: Callable[[float], Cell]) -> Show:
    """Return what shows a run's measured value in a table: `cell("goodput_bps", mbit)`."""
    return lambda run: show(measured(run, name))


def runs_as_rows(runs: Iterable[Result], cells: Mapping[str, Show]) -> Table:
    """Return a table with a row a run and a column a value; `cells` go by their headings."""
    return table(tuple(cells), ([show(run) for show in cells.values()] for run in runs))


def runs_as_columns(heading: str, runs: Mapping[str, Result], cells: Mapping[str, Show]) -> Table:
    """Return a table with a row a value and a column a run."""
    rows = ((name, *(show(run) for run in runs.values())) for name, show in cells.items())
    return table((heading, *runs), rows)


def _number(run: Result, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{run.run_dir}: {name} is no number but {value!r}")
    return value
