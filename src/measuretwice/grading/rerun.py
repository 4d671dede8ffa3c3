"""Run a class's runs again: the virtual kernel makes the same bytes of the same plan, or they weren't its bytes.

What is run is planned here, as ./lab run plans it: the lab's trial with the student's seed and with
those of their settings that the lab knows, each checked. Nothing of a hand-in is executed, and a plan
that this machine can't repeat (another kernel, other scripts, another testbed) isn't run at all.
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
from measuretwice.grading.evidence import few
from measuretwice.grading.integrity import Remark, Rerun, RunKey
from measuretwice.grading.submission import Contents, SubmittedRun
from measuretwice.lab import UNSET, Value, trial_params
from measuretwice.runs.folder import files_of

# What has been run again is kept beside the class's grades.
FILE = "again.json"
# A run that is likely to take longer isn't run again unless it is asked for.
COSTLY_S = 60.0
# No run takes longer than this, or writes a larger file, whatever its plan asks for.
WALL_S = 600.0
FILE_BYTES = 2**31

# The raw files' digests of each run that was run again, by plan_key().
FinishedReruns = dict[str, dict[str, str]]


@dataclass(frozen=True)
class ChosenRun:
    """A run to run again: its submission's index, and whether something is odd about it."""

    index: int
    run: SubmittedRun
    disputed: bool

    @property
    def key(self) -> RunKey:
        return self.index, self.run.run


def choose_runs(
    names: Sequence[str],
    contents: Sequence[Contents],
    remarks: Sequence[Sequence[Remark]],
    wanted: int,
) -> list[ChosenRun]:
    """Return `wanted` runs of each submission: first those that are disputed, then by lot.

    The lot follows from the submission's name and its runs, so that the same are chosen each time.
    """
    chosen = []
    for index, (name, content) in enumerate(zip(names, contents, strict=True)):
        odd = {remark.run for remark in remarks[index] if remark.is_odd}
        lot = random.Random(f"{name}\n{sorted(run.plan for run in content.runs)}")
        runs = sorted(content.runs, key=lambda run: run.run)
        lot.shuffle(runs)
        runs.sort(key=lambda run: run.run not in odd)
        chosen += [ChosenRun(index, run, run.run in odd) for run in runs[:wanted]]
    return sorted(chosen, key=lambda chosen_run: not chosen_run.disputed)


def plan_key(run: SubmittedRun) -> str:
    """Return a digest of all in a run's plan that decides its bytes."""
    decisive = [
        run.lab,
        run.trial,
        run.pitfall,
        run.stage,
        run.case,
        run.seed,
        run.params,
        run.plan,
    ]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def read_finished(path: Path) -> FinishedReruns:
    """Read what was run again before; nothing where there is no such file, or it is damaged."""
    try:
        return TypeAdapter(FinishedReruns).validate_json(path.read_bytes(), strict=True)
    except (OSError, ValueError):
        return {}


def known_reruns(contents: Sequence[Contents], finished: FinishedReruns) -> dict[RunKey, Rerun]:
    """Return what is known of the class's runs without running any."""
    return {
        (index, run.run): compare(run, finished[key])
        for index, content in enumerate(contents)
        for run in content.runs
        if finished and (key := plan_key(run)) in finished
    }


def plan_runs(
    batch: Batch, chosen: Sequence[ChosenRun], *, costly: bool
) -> tuple[dict[RunKey, Job], dict[RunKey, Rerun]]:
    """Return the jobs that repeat the chosen runs, and of the others why they can't be repeated."""
    jobs: dict[RunKey, Job] = {}
    refused: dict[RunKey, Rerun] = {}
    for chosen_run in chosen:
        try:
            job = _job(batch, chosen_run.run)
        except UserError as error:
            refused[chosen_run.key] = Rerun(None, f"can't be run again: {error}")
            continue
        seconds = expected_seconds([job], 1)
        if reason := _unrepeatable(chosen_run.run, job):
            refused[chosen_run.key] = Rerun(None, f"can't be run again here: {reason}")
        elif seconds > COSTLY_S and not costly:
            minutes = f"{seconds / 60:.0f} min"
            says = f"not run again: it takes about {minutes} of one CPU; --costly runs it"
            refused[chosen_run.key] = Rerun(None, says)
        else:
            jobs[chosen_run.key] = job
    return jobs, refused


def _job(batch: Batch, run: SubmittedRun) -> Job:
    """Return the job that repeats a run; UserError where its settings aren't the lab's to have."""
    lab = batch.lab
    if run.trial not in lab.trials:
        raise UserError(f"{lab.name} has no trial {run.trial}")
    # A case's plan doesn't name its pitfall, and a stage only where the fixed run was asked for.
    pitfall = None if run.case else run.pitfall
    stage = run.stage if not run.case or run.stage == "fixed" else None
    default = trial_params(
        lab, run.trial, pitfall=pitfall, stage=stage, case=run.case, seed=run.seed
    )
    changes: dict[str, Value] = {
        name: lab.read_value(name, value, "its plan")
        for name, value in run.params.items()
        if default.get(name) != value
    }
    for name in default.keys() - run.params.keys():
        if lab.file.parameters[name].default is not None:
            raise UserError(f"its plan has no {name}")
        changes[name] = UNSET
    return batch.job(
        run.trial, seed=run.seed, changes=changes, pitfall=pitfall, stage=stage, case=run.case
    )


def _unrepeatable(run: SubmittedRun, job: Job) -> str:
    """Return why this machine would make other bytes of the same settings; "" where it makes the same."""
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
    jobs: Mapping[str, Job], parallel: int | None, finished: FinishedReruns, path: Path
) -> Iterator[tuple[Job, str | None]]:
    """Run the jobs, by plan_key(); yield each with what failed, or None.

    Its raw files' digests are added to `finished` and the file `path` at once. KeyboardInterrupt soon
    after Ctrl-C: what has ended by then is kept.
    """
    keys = {job.folder: key for key, job in jobs.items()}
    todo = longest_first([jobs[key] for key in keys.values()])
    if not todo:
        return
    with dispatcher(todo[0].backend, parallel, len(todo)) as pool:
        for job, outcome in pool.run_all(todo):
            if isinstance(outcome, UserError):
                yield job, str(outcome)
                continue
            raw = job.folder / "raw"
            finished[keys[job.folder]] = {
                name: hashlib.sha256(file.read_bytes()).hexdigest()
                for name, file in files_of(raw).items()
            }
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, finished)
            shutil.rmtree(job.folder)
            yield job, None


def compare(run: SubmittedRun, digests: Mapping[str, str]) -> Rerun:
    """Compare a run's raw files with the digests of those that were made again of its plan."""
    names = run.files.keys() | digests.keys()
    others = sorted(name for name in names if run.files.get(name) != digests.get(name))
    if not others:
        return Rerun(True, "run again, the same bytes")
    says = f"run again from its plan, {len(others)} of {len(names)} raw files come out otherwise ({few(others)})"
    return Rerun(False, says)
