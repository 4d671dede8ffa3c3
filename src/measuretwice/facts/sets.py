"""A lab's recorded sets, for facts, pages and notebooks alike; and measured values and parameters of their runs, of one or
of each of several, as numbers and in tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.prediction import number_of
from measuretwice.facts.values import Cell, Interval, Number, Table, percent, table
from measuretwice.lab import Lab, load_lab
from measuretwice.measure.signatures import SenderFiles, Signature, read_sender, signature_of
from measuretwice.parse.host import parse_nstat
from measuretwice.runs import recorded
from measuretwice.runs.folder import raw_files, raw_folder
from measuretwice.runs.remeasure import read_run
from measuretwice.runs.result import Result
from measuretwice.runs.series import FlowSeries, read_series


class RecordedSets:
    """What sample-data/NN-<lab>/ holds, each set read once."""

    def __init__(self, root: Path, lab: Lab) -> None:
        self._root = root
        self.lab, self.folder = lab, root / "sample-data" / lab.folder.name
        self._runs: dict[str, list[Result]] = {}
        self._senders: dict[Path, SenderFiles] = {}
        self._series: dict[str, list[FlowSeries]] = {}

    def other(self, lab: str) -> RecordedSets:
        """Return another lab's recorded sets, for what this lab's pages say of them."""
        return RecordedSets(self._root, load_lab(self._root, lab))

    def kit_record(self, name: str) -> dict[str, Any]:
        """Return what a benchmark recorded of the kit itself, `sample-data/<name>`; UserError where it can't be read."""
        path = self.folder.parent / name
        try:
            return read_object(path)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{path}: {error}; take it from git again") from None

    def series(self, name: str, trial: int, seed: int = 1) -> list[FlowSeries]:
        """Return what each flow of a run got over time; UserError where the set was recorded without it."""
        folder = self.set_folder(name)
        if name not in self._series:
            self._series[name] = read_series(folder)
        return [flow for flow in self._series[name] if (flow.trial, flow.seed) == (trial, seed)]

    def set_folder(self, name: str) -> Path:
        """Return where a set stands; a case's set may go by its pitfall's name, as `mtu-broken`."""
        return self.folder / self.lab.set_name(name)

    def is_recorded(self, name: str) -> bool:
        """Return whether this set is recorded."""
        return (self.set_folder(name) / recorded.SET_FILE).is_file()

    def runs(self, name: str, trial: int | None = None, **params: object) -> list[Result]:
        """Return a set's runs, or those of a trial, or with these parameters; UserError where it isn't recorded."""
        if name not in self._runs:
            self._runs[name] = recorded.results_of(self.lab, self.set_folder(name))
        return [
            run
            for run in self._runs[name]
            if trial in (None, run.trial)
            and all(run.params[key] == value for key, value in params.items())
        ]

    def run(self, name: str, trial: int | None = None, seed: int | None = None) -> Result:
        """Return the one run of a set that fits; UserError where none does, or several do."""
        fitting = [
            run
            for run in self.runs(name)
            if trial in (None, run.trial) and seed in (None, run.seed)
        ]
        if len(fitting) != 1:
            raise UserError(
                f"{name}: {len(fitting)} runs fit; say which: run({name!r}, trial=, seed=)"
            )
        return fitting[0]

    def stages(self, case: str, trial: int | None = None) -> tuple[Result, Result]:
        """Return a case's two runs, or those of a trial: the first try, and the fixed one."""
        return self.run(f"{case}-broken", trial), self.run(f"{case}-fixed", trial)

    def judged_number(self, case: str) -> float:
        """Return what a case's first try gives for the number that its question asks for, measured anew where it wasn't
        measured then.

        UserError where its recorded runs don't have it, and where there is no such question or no such set.
        """
        judgement, runs = self.lab.pitfall(case).judgement, self.runs(f"{case}-broken")
        asked = judgement.number if judgement else None
        value = number_of(asked, runs) if asked else None
        if asked and value is None:
            again = (read_run(self._root, run.run_dir, run.run_dir.name) for run in runs)
            value = number_of(asked, [run.result for run in again])
        if value is None:
            raise UserError(f"{case}: judgement: its recorded runs have no number that it asks for")
        return value

    def raw_text(self, run: Result, file: str) -> str:
        """Return what a tool printed in a recorded run; UserError where the run has no such file."""
        if (content := raw_files(run.run_dir).get(file)) is None:
            raise UserError(f"{run.run_dir} has no raw file {file}")
        return content.decode(errors="replace")

    def real_s(self, run: Result) -> float:
        """Return how long a recorded run took by the clock on the wall, in seconds."""
        provenance = read_object(run.run_dir / "provenance.json")
        begun, ended = (datetime.fromisoformat(provenance[key]) for key in ("started", "ended"))
        return (ended - begun).total_seconds()

    def raw_object(self, run: Result, file: str, **having: object) -> dict[str, Any]:
        """Return the first object of a raw JSON list that has these values, such as `kind="tbf"` in tc's; UserError where
        none has."""
        for candidate in json.loads(self.raw_text(run, file)):
            if all(candidate.get(key) == value for key, value in having.items()):
                return dict(candidate)
        raise UserError(f"{run.run_dir}: nothing in {file} has {having}")

    def counters_grown(self, run: Result, node: str) -> dict[str, int]:
        """Return by how much nstat's counters of a node grew in a run, by name."""
        before, after = (
            parse_nstat(self.raw_text(run, file), file)
            for file in (f"{node}/nstat.before.json", f"{node}/nstat.after.json")
        )
        return {name: value - before.get(name, 0) for name, value in after.items()}

    def sender_files(self, run: Result) -> SenderFiles:
        """Return what is known over time of a run's one sender, read once.

        UserError where the lab names no sender, ParseError where the files can't be read.
        """
        if run.run_dir not in self._senders:
            with raw_folder(run.run_dir) as raw:
                self._senders[run.run_dir] = read_sender(self.lab, raw)
        return self._senders[run.run_dir]

    def signature(self, run: Result) -> Signature:
        """Return what gives the algorithm of a run's one sender away."""
        files, sender = self.sender_files(run), self.lab.file.collect.one_sender
        from_s = float(run.params[sender.average_from]) if sender else 0.0
        return signature_of(files.trace, files.queue, files.samples, from_s)

    def trial(self, number: int) -> Mapping[str, Any]:
        """Return a trial's parameters by name, in the units that their names end with."""
        if (row := self.lab.trials.get(number)) is None:
            raise UserError(f"{self.lab.name} has no trial {number}")
        return {**self.lab.defaults(), **row.set}


# Values of runs


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
