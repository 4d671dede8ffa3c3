"""`lab run`: from options to plans, and from results to what is printed."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from measuretwice.backends.registry import backend_for
from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.cli.options import check_stage, read_changes
from measuretwice.execute.batch import odd_trials, open_batch
from measuretwice.execute.dispatch import dispatcher, refuse_jobs
from measuretwice.execute.estimate import expected_seconds, longest_first
from measuretwice.execute.job import Job, check_writable, finished
from measuretwice.execute.scheduler import Scheduler
from measuretwice.lab import Lab, Stage, StageName, load_lab, select_trials
from measuretwice.runs.result import Result


def run_command(
    root: Path,
    lab_name: str,
    *,
    trials: str | None,
    pitfall: str | None,
    stage: StageName | None,
    changes: tuple[str, ...],
    duration: str | None,
    seed: int,
    repeat: int,
    jobs: int | Scheduler | None,
    where: str,
    out: Path | None,
    wall_limit: float | None,
    fresh: bool,
    as_json: bool,
) -> int:
    """Run and print; return the exit code: 0 all measured, 1 where a trial failed."""
    lab = load_lab(root, lab_name)
    numbers = _numbers(lab, trials, pitfall, stage)
    settings = read_changes(lab, changes, duration)
    kind = backend_for(where)
    refuse_jobs(kind, where, jobs)
    out = (out or terminal.default_out(root)).absolute()
    check_writable(out)
    with kind.opened(where, lab, root) as backend:
        batch = open_batch(root, lab, out, backend, wall_limit_s=wall_limit)
        staged = lab.pitfall(pitfall).stage(stage) if pitfall and stage else Stage()

        def job(number: int, number_seed: int) -> Job:
            return batch.job(
                number, seed=number_seed, changes=settings, pitfall=pitfall, stage=stage
            )

        work = [job(number, seed + n) for number in numbers for n in range(repeat * staged.repeat)]
        if problems := backend.problems(lab, [job.plan for job in work]):
            for problem in problems:
                print(f"lab: {problem}", file=sys.stderr)
            return 2
        if fresh:
            for folder in {job.folder for job in work}:
                shutil.rmtree(folder, ignore_errors=True)
        results, failures = measure_jobs(work, jobs, as_json)
        while staged.again and not failures and (odd := odd_trials(staged.again, results)):
            if not as_json:
                print(
                    f"{_count(len(odd), 'trial')} came out odd and, as the mistake has it, "
                    f"{'is' if len(odd) == 1 else 'are'} run once more",
                    file=sys.stderr,
                )
            more, failures = measure_jobs([job(*again) for again in odd], jobs, as_json)
            results += more
        _print(results, as_json)
        for error in [*failures, *backend.remarks]:
            print(f"lab: {error}", file=sys.stderr)
        return 1 if failures or backend.remarks else 0


def _numbers(
    lab: Lab, trials: str | None, pitfall: str | None, stage: StageName | None
) -> list[int]:
    """The trials to run: those that were named, a pitfall's own, or all."""
    check_stage(pitfall, stage)
    if trials is None and pitfall is not None:
        chosen = lab.pitfall(pitfall)
        trials = chosen.trials or str(chosen.trial)
    return select_trials(lab, trials or "all")


def measure_jobs(
    work: list[Job], jobs: int | Scheduler | None, quiet: bool
) -> tuple[list[Result], list[UserError]]:
    """Measure what is not measured yet, `jobs` at a time or on a cluster."""
    kept = finished(work)
    todo = [job for job in work if job.folder not in kept]
    if kept and not quiet:
        print(
            f"{len(kept)} of {len(work)} are measured already (--fresh measures again)",
            file=sys.stderr,
        )
    results = dict(kept)
    failures: list[UserError] = []
    if not todo:
        return [results[job.folder] for job in work], failures
    backend = todo[0].backend
    with ExitStack() as stack:
        crew = stack.enter_context(dispatcher(backend, jobs, len(todo)))
        parallel = min(crew.at_once, len(todo))
        if not quiet:
            print(
                f"measuring {_count(len(todo), 'trial')}, {parallel} at a time, {backend.place}: "
                f"about {_roughly(expected_seconds(todo, parallel))}. "
                "Ctrl-C loses nothing that is finished.",
                file=sys.stderr,
            )
        context, advance = terminal.progress(len(todo), quiet)
        stack.enter_context(context)
        started = time.monotonic()
        for job, outcome in crew.run_all(longest_first(todo)):
            if isinstance(outcome, UserError):
                failures.append(outcome)
                advance(job.plan.trial, "failed")
            else:
                results[job.folder] = outcome
                advance(job.plan.trial, terminal.in_brief(outcome))
    if not quiet:
        measured = [job for job in todo if job.folder in results]
        virtual_s = sum(float(job.plan.params.get("duration_s", 0)) for job in measured)
        wall_s = time.monotonic() - started
        print(
            f"{_count(len(measured), 'trial')}, {virtual_s:.0f} {'' if backend.real_time else 'virtual '}seconds in {wall_s:.1f} s "
            f"of real time, {parallel} at a time",
            file=sys.stderr,
        )
    return [results[job.folder] for job in work if job.folder in results], failures


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _roughly(seconds: float) -> str:
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    return f"{round(seconds / 60)} minutes"


def _print(results: list[Result], as_json: bool) -> None:
    if as_json:
        print(json.dumps([result.to_json() for result in results], indent=2))
        return
    if results:
        terminal.print_table(results)
    if len(results) == 1:
        terminal.print_expectations(results[0])
