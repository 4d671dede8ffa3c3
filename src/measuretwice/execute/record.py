"""Recorded runs: what sample-data/ holds of a lab, how it is made, and whether it still comes out.

    sample-data/NN-<lab>/<set>/results.json     every run's numbers and its raw files' digest
    sample-data/NN-<lab>/<set>/<run>/           plan, provenance, result, raw.tar.xz (if kept)

A set is a stage of a pitfall (`mtu-broken`) or one of the lab's [[recordings]].
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_json
from measuretwice.execute import job as runner
from measuretwice.execute.batch import Batch, odd_trials
from measuretwice.lab import Again, Lab, StageName, Value, select_trials
from measuretwice.runs import archive
from measuretwice.runs.folder import DONE
from measuretwice.runs.recorded import SET_FILE, read_set, short_name
from measuretwice.runs.result import Result
from measuretwice.tcp import model

# A digest recording's durations are rounded up to this.
WHOLE_S = 60


@dataclass(frozen=True)
class RecordedSet:
    """A set as it is to be run: its name, what it is, and its first jobs' making."""

    name: str
    title: str
    keep: Literal["raw", "digests"]
    step: bool
    pitfall: str | None
    stage: StageName | None
    trials: tuple[int, ...]
    repeat: int
    changes: dict[str, Value]
    losses: int | None
    again: Again | None


def sets_of(lab: Lab) -> list[RecordedSet]:
    """Return all sets of a lab: its recordings, then each pitfall's stages."""
    sets = [
        RecordedSet(
            one.id, one.title, one.keep, one.step, None, None,
            tuple(select_trials(lab, one.trials)), one.repeat, one.set, one.losses, None,
        )
        for one in lab.file.recordings
    ]  # fmt: skip
    stages: tuple[StageName, StageName] = ("broken", "fixed")
    for pitfall in lab.file.pitfalls:
        trials = tuple(select_trials(lab, pitfall.trials or str(pitfall.trial)))
        for stage in stages:
            staged = pitfall.stage(stage)
            sets.append(
                RecordedSet(
                    f"{pitfall.id}-{stage}", f"{pitfall.title}: {stage}", "raw", False,
                    pitfall.id, stage, trials, staged.repeat, {}, None, staged.again,
                )
            )  # fmt: skip
    return sets


def choose(lab: Lab, names: Sequence[str]) -> list[RecordedSet]:
    """Return the sets of these names, or all; a pitfall's id means both of its stages."""
    known = sets_of(lab)
    if not names:
        return known
    chosen = []
    for name in names:
        meant = [one for one in known if name in (one.name, one.pitfall)]
        if not meant:
            said = ", ".join(one.name for one in known)
            raise UserError(f"--only {name}: {lab.name} records {said or 'nothing'}")
        chosen += meant
    return chosen


def jobs_of(batch: Batch, one: RecordedSet) -> list[runner.Job]:
    """Return a set's first jobs: each trial with as many seeds as it is repeated."""
    return [_job(batch, one, trial, 1 + n) for trial in one.trials for n in range(one.repeat)]


def again_of(batch: Batch, one: RecordedSet, results: list[Result]) -> list[runner.Job]:
    """Return the jobs of what came out odd, where the set's mistake is to run that once more."""
    odd = odd_trials(one.again, results) if one.again else []
    return [_job(batch, one, trial, seed) for trial, seed in odd]


def _job(batch: Batch, one: RecordedSet, trial: int, seed: int) -> runner.Job:
    changes = dict(one.changes)
    if one.losses:
        changes["duration_s"] = duration_for_s(batch.lab, trial, one.losses)
    return batch.job(trial, seed=seed, changes=changes, pitfall=one.pitfall, stage=one.stage)


def duration_for_s(lab: Lab, trial: int, losses: int) -> int:
    """How long a trial must last for the model to expect `losses` losses; at least its own time."""
    use = lab.file.model
    assert use is not None  # what lab.toml is checked for
    params = {**lab.defaults(), **lab.trials[trial].set}
    one_second = model.EXPECTED_LOSSES[use.name](
        float(params[use.rtt]), float(params[use.loss]), 1.0, use.constant
    )
    needed_s = WHOLE_S * math.ceil(losses / one_second / WHOLE_S)
    return max(needed_s, int(float(params["duration_s"])))


def rows_of(results: list[Result]) -> list[dict[str, Any]]:
    """Each run's numbers in short, with one digest of all that its tools printed."""
    rows = []
    for result in results:
        run = result.place
        kept = {key: value for key, value in result.to_json().items() if key not in LEFT_OUT}
        kept["findings"] = [finding.id for finding in result.findings]
        rows.append({**kept, "run": run.name, "raw_sha256": archive.digest_of(run / "raw")})
    return rows


# Which code derived a result, and where it stood, is no part of it; the verdicts follow from it.
LEFT_OUT = ("derived_by", "run_dir", "expectations", "title")


def store(folder: Path, one: RecordedSet, results: list[Result]) -> None:
    """Write a set below sample-data, in place of what stood there; whole or not at all."""
    results = sorted(results, key=lambda result: (result.trial, result.seed))
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    provenance = json.loads((results[0].place / "provenance.json").read_text(encoding="utf-8"))
    plan = json.loads((results[0].place / "plan.json").read_text(encoding="utf-8"))
    about = {
        "set": one.name,
        "title": one.title,
        "step": one.step,
        "kernel": plan["kernel"],
        "tools": plan["tools"],
        "scripts": plan["scripts"],
        "recorded": provenance["started"][:10],
        "machine": provenance["machine"],
    }
    lines = ",\n".join(json.dumps(row) for row in rows_of(results))
    head = json.dumps(about, indent=1).removesuffix("\n}")
    text = f'{head},\n "runs": [\n{lines}\n]}}\n'
    (part / SET_FILE).write_text(text, encoding="utf-8")
    if one.keep == "raw":
        for result in results:
            _store_run(result.place, part / short_name(result.trial, result.seed))
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)


def _store_run(run: Path, target: Path) -> None:
    target.mkdir()
    for name in ("plan.json", "provenance.json"):
        shutil.copyfile(run / name, target / name)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    write_json(target / "result.json", {k: v for k, v in result.items() if k != "derived_by"})
    archive.pack(run / "raw", target / archive.ARCHIVE)
    (target / DONE).touch()


def compare(folder: Path, results: list[Result]) -> list[str]:
    """Hold a set's runs against what is recorded, byte for byte; return each difference in words."""
    document = read_set(folder)
    recorded = {short_name(run["trial"], run["seed"]): run for run in document["runs"]}
    now = {short_name(result.trial, result.seed): result for result in results}
    problems = [f"{folder.name}: {name} is not recorded" for name in now if name not in recorded]
    for name, row in recorded.items():
        if name not in now:
            problems.append(f"{folder.name}: {name} was not run again")
            continue
        run = now[name].place
        if now[name].params != row["params"]:
            problems.append(f"{folder.name}: {name}: was recorded with other settings")
        elif archive.digest_of(run / "raw") != row["raw_sha256"]:
            problems += _differences(folder, name, run, document)
        elif now[name].measured != row["measured"]:
            problems.append(f"{folder.name}: {name}: the same files, but other numbers from them")
        if (folder / name / archive.ARCHIVE).exists():
            with archive.raw_folder(folder / name) as raw:
                if archive.digest_of(raw) != row["raw_sha256"]:
                    problems.append(f"{folder.name}: {name}: its archive is not what was recorded")
    return problems


def _differences(folder: Path, name: str, run: Path, document: dict[str, Any]) -> list[str]:
    """Which files differ, and what else does that may be why."""
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    others = [
        f"{key}: {was} was recorded, {plan[group][key]} is here"
        for group in ("tools", "scripts")
        for key, was in document[group].items()
        if plan[group].get(key) != was
    ]
    if plan["kernel"] != document["kernel"]:
        others.append(f"kernel: {document['kernel']} was recorded, {plan['kernel']} is here")
    why = f" ({'; '.join(others)})" if others else ""
    files: list[str] = []
    if (folder / name / archive.ARCHIVE).exists():
        with archive.raw_folder(folder / name) as raw:
            was, now = archive.files_of(raw), archive.files_of(run / "raw")
            files = [
                file
                for file in sorted(was.keys() | now.keys())
                if file not in was
                or file not in now
                or was[file].read_bytes() != now[file].read_bytes()
            ]
    said = f"differs in {', '.join(files)}" if files else "differs in its raw files"
    return [f"{folder.name}: {name} {said}{why}"]
