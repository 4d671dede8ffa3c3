"""A lab's recorded sets, for facts, pages and notebooks alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.lab import Lab, load_lab
from measuretwice.measure.signatures import SenderFiles, Signature, read_sender, signature_of
from measuretwice.parse.host import parse_nstat
from measuretwice.runs import recorded
from measuretwice.runs.folder import raw_files, raw_folder
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
