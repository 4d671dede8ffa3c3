"""`lab run`: from options to plans, and from results to what is printed."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from measuretwice.backends import host
from measuretwice.backends.node_list import read_node_list
from measuretwice.backends.ssh import Nodes
from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.execute import cluster
from measuretwice.execute import job as runner
from measuretwice.execute.batch import odd_trials, open_batch
from measuretwice.execute.scheduler import Scheduler
from measuretwice.lab import Lab, Stage, StageName, Value, load_lab, select_trials
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
    if where != "virtual" and isinstance(jobs, Scheduler):
        raise UserError(f"--on {where}: a cluster runs the virtual kernel alone: leave --jobs out")
    out = (out or terminal.default_out(root)).absolute()
    runner.check_writable(out)
    with reached(where, lab, root) as nodes:
        batch = open_batch(root, lab, out, wall_limit, on_host=where == "host", nodes=nodes)
        staged = lab.pitfall(pitfall).stage(stage) if pitfall and stage else Stage()

        def job(number: int, number_seed: int) -> runner.Job:
            return batch.job(
                number, seed=number_seed, changes=settings, pitfall=pitfall, stage=stage
            )

        work = [job(number, seed + n) for number in numbers for n in range(repeat * staged.repeat)]
        if nodes and (problems := nodes.problems(lab, [one.plan for one in work])):
            for problem in problems:
                print(f"lab: {problem}", file=sys.stderr)
            return 2
        if fresh:
            for one in work:
                shutil.rmtree(one.folder, ignore_errors=True)
        if where == "host":
            host.sweep(root)
            host.check(lab, [one.plan for one in work])
        if where != "virtual":
            if isinstance(jobs, int) and jobs > 1:
                raise UserError("--jobs: in real time trials would disturb each other: 1")
            jobs = 1
        results, failures = measure_jobs(work, jobs, as_json)
        while staged.again and not failures and (odd := odd_trials(staged.again, results)):
            if not as_json:
                print(
                    f"{_count(len(odd), 'trial')} came out odd and, as the mistake has it, "
                    f"{'is' if len(odd) == 1 else 'are'} run once more",
                    file=sys.stderr,
                )
            more, failures = measure_jobs([job(*one) for one in odd], jobs, as_json)
            results += more
        _print(results, as_json)
        remarks = nodes.remarks if nodes else []
        for error in [*failures, *remarks]:
            print(f"lab: {error}", file=sys.stderr)
        return 1 if failures or remarks else 0


@contextmanager
def reached(where: str, lab: Lab, root: Path) -> Iterator[Nodes | None]:
    """Reach the nodes, if --on names a file of them, and let them go at the end."""
    if where in ("virtual", "host"):
        yield None
        return
    path = Path(where)
    if path.suffix != ".toml" and not path.is_file():
        raise UserError(f"--on {where}: expected virtual, host, or a file as nodes.toml")
    listed = read_node_list(path, [node.name for node in lab.file.topology.nodes])
    if not shutil.which("ssh"):
        raise UserError("ssh is missing: install openssh-client")
    nodes = Nodes(listed, root)
    try:
        nodes.greet(runner.TOOLS)
        yield nodes
    finally:
        nodes.close()


def _numbers(
    lab: Lab, trials: str | None, pitfall: str | None, stage: StageName | None
) -> list[int]:
    """The trials to run: those that were named, a pitfall's own, or all."""
    check_stage(pitfall, stage)
    if trials is None and pitfall is not None:
        own = lab.pitfall(pitfall)
        trials = own.trials or str(own.trial)
    return select_trials(lab, trials or "all")


def check_stage(pitfall: str | None, stage: StageName | None) -> None:
    """UserError where one of --pitfall and --stage stands alone."""
    if (pitfall is None) != (stage is None):
        raise UserError("--pitfall and --stage go together: --pitfall ID --stage broken|fixed")


def read_changes(lab: Lab, changes: tuple[str, ...], duration: str | None) -> dict[str, Value]:
    """Read --set KEY=VALUE and --duration as values of the lab's parameters."""
    settings: dict[str, Value] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise UserError(f"--set {change}: expected KEY=VALUE, such as --set rtt_ms=20")
        settings[name] = lab.read_value(name, text, f"--set {change}")
    if duration is not None:
        settings["duration_s"] = lab.read_value("duration_s", duration, f"--duration {duration}")
    return settings


def measure_jobs(
    work: list[runner.Job], jobs: int | Scheduler | None, quiet: bool
) -> tuple[list[Result], list[UserError]]:
    """Measure what is not measured yet, `jobs` at a time or on a cluster."""
    kept = runner.finished(work)
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
    with ExitStack() as stack:
        if isinstance(jobs, Scheduler):
            crew = stack.enter_context(cluster.connect(jobs))
            parallel, run_all = min(crew.at_once, len(todo)), crew.run_all
        else:
            parallel = min(jobs or len(runner.usable_cpus()), len(todo))
            run_all = partial(runner.run_all, parallel=parallel)
        if not quiet:
            print(
                f"measuring {_count(len(todo), 'trial')}, {parallel} at a time, {_how_long(todo, parallel)}. "
                "Ctrl-C loses nothing that is finished.",
                file=sys.stderr,
            )
        context, advance = terminal.progress(len(todo), quiet)
        stack.enter_context(context)
        started = time.monotonic()
        for job, outcome in run_all(runner.longest_first(todo)):
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
            f"{_count(len(measured), 'trial')}, {virtual_s:.0f} {'virtual ' if todo[0].kernel else ''}seconds in {wall_s:.1f} s "
            f"of real time, {parallel} at a time",
            file=sys.stderr,
        )
    return [results[job.folder] for job in work if job.folder in results], failures


def _how_long(todo: list[runner.Job], parallel: int) -> str:
    if todo[0].kernel is None:
        seconds = sum(float(job.plan.params.get("duration_s", 0)) + 5 for job in todo)
        where = "the nodes" if todo[0].nodes else "this machine's own kernel"
        return f"on {where}: about {_roughly(seconds)}"
    seconds = sum(runner.likely_seconds(job.plan) for job in todo) / parallel
    return f"each in a virtual kernel of its own: about {_roughly(seconds)}"


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
