"""Recording a lab's sets of runs for sample-data/, and comparing new runs with them.

A set is a stage of a case (`case-05-broken`) or one of the lab's [[recordings]]; runs/recorded.py
says which files it has.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.execute.batch import Batch, odd_trials
from measuretwice.execute.job import Job
from measuretwice.lab import Lab, StageName, Value, select_trials, with_unlisted
from measuretwice.lab.schema.cases import Again, Pitfall, Recording
from measuretwice.runs.folder import (
    ARCHIVE,
    DONE,
    PLAN,
    PROVENANCE,
    RESULT,
    Machine,
    digest_of,
    files_of,
    pack,
    raw_folder,
)
from measuretwice.runs.recorded import (
    SET_FILE,
    RecordedRun,
    RecordedSet,
    read_set,
    short_name,
)
from measuretwice.runs.result import Result
from measuretwice.runs.series import SERIES_FILE, series_of, write_series
from measuretwice.tcp import model

# A digest recording's durations are rounded up to this.
WHOLE_S = 60


@dataclass(frozen=True)
class SetToRecord:
    """A set as it is to be run: its name, what it is, and its first jobs' making."""

    name: str
    title: str
    keep: Literal["raw", "digests", "totals"]
    step: bool
    pitfall: str | None
    case: int | None
    stage: StageName | None
    trials: tuple[int, ...]
    repeat: int
    changes: dict[str, Value]
    losses: int | None
    again: Again | None
    seed: int = 1


def sets_of(lab: Lab) -> list[SetToRecord]:
    """Return all sets of a lab: its recordings, then each pitfall's stages."""
    sets = [
        SetToRecord(
            recording.id, recording.title, recording.keep, recording.step, None, recording.case, None,
            _trials_of(lab, recording), recording.repeat, recording.set,
            recording.losses, None, recording.seed,
        )
        for recording in lab.file.recordings
    ]  # fmt: skip
    stages: tuple[StageName, StageName] = ("broken", "fixed")
    for number, pitfall in enumerate(lab.file.pitfalls, start=1):
        trials = _trials_of_case(lab, pitfall)
        for stage in stages:
            staged = pitfall.stage(stage)
            sets.append(
                SetToRecord(
                    lab.set_name(f"{pitfall.id}-{stage}"),
                    f"Case {number}, {'first try' if stage == 'broken' else 'fixed'}: {pitfall.symptom}",
                    "raw", False, pitfall.id, number, "fixed" if stage == "fixed" else None,
                    trials, staged.repeat, {}, None, staged.again,
                )
            )  # fmt: skip
    return sets


def _trials_of(lab: Lab, recording: Recording) -> tuple[int, ...]:
    if recording.case:
        return _trials_of_case(lab, lab.case(recording.case))
    return tuple(select_trials(lab, recording.trials))


def _trials_of_case(lab: Lab, pitfall: Pitfall) -> tuple[int, ...]:
    return tuple(select_trials(lab, pitfall.trials or str(pitfall.trial)))


def choose(lab: Lab, names: Sequence[str]) -> list[SetToRecord]:
    """Return the sets of these names, or all; a pitfall's id means both of its stages."""
    sets = sets_of(lab)
    if not names:
        return sets
    chosen = []
    for name in names:
        matching = [
            wanted for wanted in sets if lab.set_name(name) == wanted.name or name == wanted.pitfall
        ]
        if not matching:
            names_known = ", ".join(wanted.name for wanted in sets)
            raise UserError(f"--only {name}: {lab.name} records {names_known or 'nothing'}")
        chosen += matching
    return chosen


def jobs_of(batch: Batch, wanted: SetToRecord) -> list[Job]:
    """Return a set's first jobs: each trial with as many seeds as it is repeated."""
    return [
        _job(batch, wanted, trial, wanted.seed + n)
        for trial in wanted.trials
        for n in range(wanted.repeat)
    ]


def again_of(batch: Batch, wanted: SetToRecord, results: list[Result]) -> list[Job]:
    """Return the jobs of what came out odd, where the set's mistake is to run that once more."""
    odd = odd_trials(wanted.again, results) if wanted.again else []
    return [_job(batch, wanted, trial, seed) for trial, seed in odd]


def _job(batch: Batch, wanted: SetToRecord, trial: int, seed: int) -> Job:
    changes = dict(wanted.changes)
    if wanted.losses:
        changes["duration_s"] = duration_for_s(batch.lab, trial, wanted.losses)
    return batch.job(trial, seed=seed, changes=changes, stage=wanted.stage, case=wanted.case)


def duration_for_s(lab: Lab, trial: int, losses: int) -> int:
    """Return how many seconds a trial must last for the model to expect `losses` losses; at least its own time."""
    use = lab.file.model
    assert use is not None  # what lab.toml is checked for
    params = {**lab.defaults(), **lab.trials[trial].set}
    one_second = model.EXPECTED_LOSSES[use.name](
        float(params[use.rtt]), float(params[use.loss]), 1.0, use.constant
    )
    needed_s = WHOLE_S * math.ceil(losses / one_second / WHOLE_S)
    return max(needed_s, int(float(params["duration_s"])))


def store(lab: Lab, folder: Path, wanted: SetToRecord, results: list[Result]) -> None:
    """Write a set below sample-data, in place of what stood there; whole or not at all."""
    results = sorted(results, key=lambda result: (result.trial, result.seed))
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    first = results[0].run_dir
    plan, provenance = (read_object(first / name) for name in (PLAN, PROVENANCE))
    recorded = RecordedSet(
        name=wanted.name,
        title=wanted.title,
        step=wanted.step,
        kernel=plan["kernel"],
        tools=plan["tools"],
        scripts=plan["scripts"],
        recorded=provenance["started"][:10],
        machine=Machine(**provenance["machine"]),
        runs=tuple(_recorded(wanted, result) for result in results),
    )
    (part / SET_FILE).write_text(recorded.to_text(), encoding="utf-8")
    if wanted.keep == "raw":
        for result in results:
            _store_run(result.run_dir, part / short_name(result.trial, result.seed))
    elif wanted.keep == "digests":
        add_series(lab, part, results)
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)


def _recorded(wanted: SetToRecord, result: Result) -> RecordedRun:
    """Return what is recorded of a run: of totals no flow by itself."""
    run = RecordedRun.of(result)
    return replace(run, result=replace(result, flows=())) if wanted.keep == "totals" else run


def lacks_series(folder: Path, wanted: SetToRecord) -> bool:
    """Return whether a set of several flows keeps digests only, and not what each flow got over time."""
    return (
        wanted.keep == "digests"
        and not (folder / SERIES_FILE).is_file()
        and any(run.result.measured.get("flows", 1) != 1 for run in read_set(folder).runs)
    )


def add_series(lab: Lab, folder: Path, results: list[Result]) -> None:
    """Write into a set's folder what each flow of these runs got over time."""
    runs = ((result, result.run_dir / "raw") for result in results)
    write_series(folder, [flow for run, raw in runs for flow in series_of(lab, run, raw)])


def _store_run(run: Path, target: Path) -> None:
    target.mkdir()
    shutil.copyfile(run / PROVENANCE, target / PROVENANCE)
    # Pages quote recorded settings.
    write_json(target / PLAN, with_unlisted(read_object(run / PLAN)))
    result = with_unlisted(read_object(run / RESULT))
    write_json(target / RESULT, {k: v for k, v in result.items() if k != "derived_by"})
    pack(run / "raw", target / ARCHIVE)
    (target / DONE).touch()


def compare(folder: Path, results: list[Result]) -> list[str]:
    """Compare a set's runs with what is recorded, byte for byte; return each difference in words."""
    recorded = read_set(folder)
    before = {run.name: run for run in recorded.runs}
    now = {short_name(result.trial, result.seed): result for result in results}
    problems = [f"{folder.name}: {name} is not recorded" for name in now if name not in before]
    for name, run in before.items():
        if name not in now:
            problems.append(f"{folder.name}: {name} was not run again")
            continue
        place = now[name].run_dir
        if now[name].params != run.result.params:
            problems.append(f"{folder.name}: {name}: was recorded with other settings")
        elif digest_of(place / "raw") != run.raw_sha256:
            problems += _differences(folder, name, place, recorded)
        elif not run.result.measured.items() <= now[name].measured.items():
            # What is measured today and wasn't then is no other number.
            problems.append(f"{folder.name}: {name}: the same files, but other numbers from them")
        if (folder / name / ARCHIVE).exists():
            with raw_folder(folder / name) as raw:
                if digest_of(raw) != run.raw_sha256:
                    problems.append(f"{folder.name}: {name}: its archive is not what was recorded")
    return problems


def _differences(folder: Path, name: str, run: Path, recorded: RecordedSet) -> list[str]:
    """Return in words which files differ, and what else does that may be the reason."""
    plan = read_object(run / PLAN)
    others = [
        f"{key}: {was} was recorded, {today.get(key)} is here"
        for before, today in ((recorded.tools, plan["tools"]), (recorded.scripts, plan["scripts"]))
        for key, was in before.items()
        if today.get(key) != was
    ]
    if plan["kernel"] != recorded.kernel:
        others.append(f"kernel: {recorded.kernel} was recorded, {plan['kernel']} is here")
    why = f" ({'; '.join(others)})" if others else ""
    files: list[str] = []
    if (folder / name / ARCHIVE).exists():
        with raw_folder(folder / name) as raw:
            was, now = files_of(raw), files_of(run / "raw")
            files = [
                file
                for file in sorted(was.keys() | now.keys())
                if file not in was
                or file not in now
                or was[file].read_bytes() != now[file].read_bytes()
            ]
    where = ", ".join(files) or "its raw files"
    return [f"{folder.name}: {name} differs in {where}{why}"]
