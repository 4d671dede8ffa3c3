"""Runs of a class run again: the virtual kernel makes the same bytes of the same plan, or they weren't its bytes.

What is run is planned here, as ./lab run plans it: the lab's trial with the student's seed and with the settings of theirs that the lab
knows, each checked. Nothing of a hand-in is executed, and a plan that this machine can't repeat is not run at all: another kernel, other
scripts, another testbed.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_json
from measuretwice.execute.batch import Batch, expected_seconds, longest_first
from measuretwice.execute.dispatch import dispatcher
from measuretwice.execute.job import Job
from measuretwice.grading.contents import Contents, OurRun
from measuretwice.grading.remarks import Remade, Remark, few
from measuretwice.lab import UNSET, Value, trial_params
from measuretwice.runs.folder import files_of

# Of what has been run again: beside the class's grades.
FILE = "again.json"
# A run that is likely to take longer isn't run again unless it is asked for.
COSTLY_S = 60.0
# Whatever a plan asks for, no other run takes longer than this, or writes a larger file.
WALL_S = 600.0
FILE_BYTES = 2**31

# A submission's place and its run's name; and, of what was run again, raw files' digests by key_of.
Key = tuple[int, str]
Kept = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Chosen:
    """A run to run again: its submission's place, and whether something is odd about it."""

    place: int
    run: OurRun
    disputed: bool

    @property
    def key(self) -> Key:
        return self.place, self.run.run


def choose_runs(
    names: Sequence[str],
    contents: Sequence[Contents],
    remarks: Sequence[Sequence[Remark]],
    wanted: int,
) -> list[Chosen]:
    """Return `wanted` runs of each submission: first those that are disputed, then by lot.

    The lot follows from the submission's name and its runs, so that the same are chosen each time.
    """
    found = []
    for place, (name, content, said) in enumerate(zip(names, contents, remarks, strict=True)):
        odd = {remark.run for remark in said if remark.is_odd}
        lot = random.Random(f"{name}\n{sorted(run.plan for run in content.runs)}")
        runs = sorted(content.runs, key=lambda run: run.run)
        lot.shuffle(runs)
        runs.sort(key=lambda run: run.run not in odd)
        found += [Chosen(place, run, run.run in odd) for run in runs[:wanted]]
    return sorted(found, key=lambda chosen: not chosen.disputed)


def key_of(run: OurRun) -> str:
    """What tells this run's plan from all others, as far as it decides the bytes."""
    decided = [run.lab, run.trial, run.pitfall, run.stage, run.case, run.seed, run.params, run.plan]
    return hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()


def read_kept(path: Path) -> Kept:
    """Read what was run again before; nothing where there is no such file, or it is damaged: then it is run once more."""
    try:
        return TypeAdapter(Kept).validate_json(path.read_bytes(), strict=True)
    except (OSError, ValueError):
        return {}


def remade_before(contents: Sequence[Contents], kept: Kept) -> dict[Key, Remade]:
    """Return what is known of the class's runs without running any."""
    return {
        (place, run.run): compare(run, kept[key])
        for place, content in enumerate(contents)
        for run in content.runs
        if kept and (key := key_of(run)) in kept
    }


def plan_runs(
    batch: Batch, chosen: Sequence[Chosen], *, costly: bool
) -> tuple[dict[Key, Job], dict[Key, Remade]]:
    """Return the jobs that repeat the chosen runs, and of the others why they can't be repeated."""
    jobs: dict[Key, Job] = {}
    refused: dict[Key, Remade] = {}
    for each in chosen:
        try:
            job = _job(batch, each.run)
        except UserError as error:
            refused[each.key] = Remade(None, f"can't be run again: {error}")
            continue
        seconds = expected_seconds([job], 1)
        if why := _unrepeatable(each.run, job):
            refused[each.key] = Remade(None, f"can't be run again here: {why}")
        elif seconds > COSTLY_S and not costly:
            says = (
                f"not run again: it takes about {seconds / 60:.0f} min of one CPU; --costly runs it"
            )
            refused[each.key] = Remade(None, says)
        else:
            jobs[each.key] = job
    return jobs, refused


def _job(batch: Batch, run: OurRun) -> Job:
    """The job of a run by this machine's means; UserError where its settings aren't the lab's to have."""
    lab = batch.lab
    if run.trial not in lab.trials:
        raise UserError(f"{lab.name} has no trial {run.trial}")
    # A case's plan doesn't name its pitfall, and a stage only where the mended run was asked for.
    pitfall = None if run.case else run.pitfall
    stage = run.stage if not run.case or run.stage == "fixed" else None
    meant = trial_params(lab, run.trial, pitfall=pitfall, stage=stage, case=run.case, seed=run.seed)
    changes: dict[str, Value] = {
        name: lab.read_value(name, value, "its plan")
        for name, value in run.params.items()
        if meant.get(name) != value
    }
    for name in meant.keys() - run.params.keys():
        if lab.file.parameters[name].default is not None:
            raise UserError(f"its plan has no {name}")
        changes[name] = UNSET
    return batch.job(
        run.trial, seed=run.seed, changes=changes, pitfall=pitfall, stage=stage, case=run.case
    )


def _unrepeatable(run: OurRun, job: Job) -> str:
    """Why this machine would make other bytes of the same settings; empty where it makes the same."""
    plan = job.plan
    if run.plan == plan.digest:
        return ""
    if run.where != plan.where:
        return f"it is a run on {run.where}"
    if run.edited:
        return "its node scripts were the student's own"
    if run.kernel != plan.kernel:
        return f"its kernel was {run.kernel}, this one is {plan.kernel}"
    return "the lab's scripts, or the tools in the virtual kernel, were other versions"


def run_again(
    jobs: Mapping[str, Job], at_once: int | None, kept: Kept, path: Path
) -> Iterator[tuple[Job, str | None]]:
    """Run each job, by its key, and add its raw files' digests to `kept` and the file `path`; yield each with what failed, or None.

    KeyboardInterrupt soon after Ctrl-C: what has ended by then is kept.
    """
    keys = {job.folder: key for key, job in jobs.items()}
    todo = longest_first([jobs[key] for key in keys.values()])
    if not todo:
        return
    with dispatcher(todo[0].backend, at_once, len(todo)) as crew:
        for job, outcome in crew.run_all(todo):
            if isinstance(outcome, UserError):
                yield job, str(outcome)
                continue
            raw = job.folder / "raw"
            kept[keys[job.folder]] = {
                name: hashlib.sha256(file.read_bytes()).hexdigest()
                for name, file in files_of(raw).items()
            }
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, kept)
            shutil.rmtree(job.folder)
            yield job, None


def compare(run: OurRun, digests: Mapping[str, str]) -> Remade:
    """Hold a run's raw files against those that were made again of its plan."""
    names = run.files.keys() | digests.keys()
    other = sorted(name for name in names if run.files.get(name) != digests.get(name))
    if not other:
        return Remade(True, "run again, the same bytes")
    says = f"run again from its plan, {len(other)} of {len(names)} raw files come out otherwise ({few(other)})"
    return Remade(False, says)
