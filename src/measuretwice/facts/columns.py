"""Measured values and parameters, of a run or of each of several runs: as numbers, and in tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.facts.values import Cell, Interval, Number, Table, percent, table
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


def percents(runs: Sequence[Result], name: str) -> list[float]:
    """Return a measured ratio of each run, in percent."""
    return [100 * ratio for ratio in column(runs, name)]


def mean_interval(
    runs: Sequence[Result],
    name: str,
    unit: str = "",
    digits: int = 3,
    *,
    within: tuple[float, float] | None = None,
) -> Interval:
    """Return the mean of a measured value over runs and its interval; `within`: what no value can leave."""
    return Interval.of_mean(column(runs, name), unit, digits, within=within)


def factor(run: Result, other: Result, name: str) -> float:
    """Return how many times the other run's value a run's measured value is."""
    return measured(run, name) / measured(other, name)


def apart_by(run: Result, other: Result, name: str, digits: int) -> Number:
    """Return by how much a measured value of two runs differs, in percent of the other's."""
    return percent(abs(factor(run, other, name) - 1), digits)


def per(run: Result, name: str, other: str) -> float:
    """Return one measured value of a run over another: `per(run, "retransmits", "queue_drops")`."""
    return measured(run, name) / measured(run, other)


def by_trial(runs: Iterable[Result]) -> dict[int, list[Result]]:
    """Return runs by their trials' numbers, from the first trial on."""
    groups: dict[int, list[Result]] = {}
    for run in runs:
        groups.setdefault(run.trial, []).append(run)
    return dict(sorted(groups.items()))


Show = Callable[[Result], Cell]


def cell(name: str, show: Callable[[float], Cell]) -> Show:
    """Return what shows a run's measured value in a table: `cell("goodput_bps", mbit)`."""
    return lambda run: show(measured(run, name))


def param_cell(name: str, show: Callable[[Any], Cell] = str) -> Show:
    """Return what shows a run's parameter in a table, as it was set or by `show`: `param_cell("rtt_ms", ms)`."""
    return lambda run: show(run.params[name])


def trial_cell(run: Result) -> Number:
    """Return what shows a run's trial in a table."""
    return Number(run.trial)


def stage_cell(run: Result) -> str:
    """Return what shows in a table whether a case's run is the first try, which doesn't say so itself, or the fixed one."""
    return str(run.stage or "broken")


def set_cell(run: Result) -> str:
    """Return what shows in a table in which recorded set a run is."""
    return run.run_dir.parent.name


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
