"""`lab run`: from options to plans, and from results to what is printed."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from measuretwice.backends import backend_for
from measuretwice.base.errors import UserError
from measuretwice.book.prediction import OF_ALL, SHARE, Quantity, is_one_number, quantity_of
from measuretwice.cli import terminal
from measuretwice.cli.edit import own_copy
from measuretwice.cli.options import (
    AS_JSON,
    CASE,
    FRESH,
    JOBS,
    NO_EDIT,
    PATH,
    PITFALL,
    SEED,
    SHOW_ME,
    STAGE,
    check_stage,
    refuse_beside_case,
    root_folder,
)
from measuretwice.course import wording
from measuretwice.course.case import (
    MOST_RUNS,
    CaseRun,
    TrialChoice,
    choose_trials,
    earned_settings,
    open_case,
    raw_files_of,
    read_changes,
    set_already,
)
from measuretwice.course.wording import in_brief
from measuretwice.execute.batch import (
    expected_seconds,
    learn,
    longest_first,
    odd_trials,
    open_batch,
)
from measuretwice.execute.dispatch import dispatcher, refuse_jobs
from measuretwice.execute.job import Job, check_writable, finished
from measuretwice.execute.scheduler import Scheduler
from measuretwice.lab import Lab, OwnCopy, StageName, Value, load_lab, read_lab
from measuretwice.lab.schema.cases import Again
from measuretwice.runs.result import Result, for_students


@click.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--trial", "--trials", "trials", help="7, 1-12,20 or all.  [default: all]")
@CASE
@SHOW_ME
@PITFALL
@STAGE
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a parameter of every trial.",
)
@click.option(
    "--duration",
    metavar="SECONDS",
    help="Length of each test; the same as --set duration_s=SECONDS.",
)
@click.option(
    "--seed",
    type=SEED,
    help="The seed of all randomness.  [default: 1; for a case, your lab book's]",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, MOST_RUNS),
    help="Run each trial with this many seeds, counting up.  [default: 1]",
)
@JOBS
@click.option(
    "--on",
    "where",
    default="virtual",
    show_default=True,
    metavar="virtual|host|browser|FILE",
    help="Where to run: virtual is the virtual kernel, host is namespaces of this machine, as root. browser is the "
    "browser's machine, run by Node.js. FILE (nodes.toml) names machines to reach by ssh.",
)
@click.option(
    "--emulate",
    is_flag=True,
    help="With --on host: a small emulator of ours takes one link's place, so that the kernel needs no netem, and you "
    "needn't be root. In real time; the result shows how late packets were.",
)
@click.option(
    "--out",
    type=PATH,
    help="Folder for runs.  [default: runs/ in the checkout]",
)
@click.option(
    "--wall-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Abandon a trial after this much real time.  [default: 120 s + its duration]",
)
@FRESH
@NO_EDIT
@AS_JSON
def run(
    lab_name: str,
    trials: str | None,
    case_number: int | None,
    show_me: bool,
    pitfall: str | None,
    stage: StageName | None,
    changes: tuple[str, ...],
    duration: str | None,
    seed: int | None,
    repeat: int | None,
    jobs: int | Scheduler | None,
    where: str,
    emulate: bool,
    out: Path | None,
    wall_limit: float | None,
    fresh: bool,
    no_edit: bool,
    as_json: bool,
) -> int:
    """Measure trials of LAB, each in a virtual kernel of its own.

    Trials that were already measured with the same settings are kept, so an interrupted run continues
    where it stopped.
    """
    root = root_folder()
    lab = load_lab(root, lab_name)
    kind = backend_for(where, emulate=emulate)
    refuse_jobs(kind, where, jobs)
    out = (out or terminal.default_out(root)).absolute()
    check_writable(out)
    refuse_beside_case(case_number, show_me, trials, pitfall)
    own = _own_copy(lab, out, jobs, leave_out=no_edit or show_me or pitfall is not None)
    due = earned_settings(lab, out, case_number)
    settings = {**own.settings, **read_changes(lab, changes, duration, due=due)}
    case = None
    if case_number is not None:
        case = open_case(
            lab, case_number, own.scripts, show_me=show_me, changes=settings, out=out, seed=seed
        )
        seed = case.seed
        terminal.say_new_book(case)
    choice = _choose(
        lab, case, settings, trials, pitfall=pitfall, stage=stage, repeat=repeat, quiet=as_json
    )
    with kind.open(where, lab, root) as backend:
        batch = open_batch(root, lab, out, backend, wall_limit_s=wall_limit, own=own.scripts)
        stage = case.stage if case else stage
        job = partial(batch.job, changes=settings, pitfall=pitfall, stage=stage, case=case_number)
        first = 1 if seed is None else seed
        work = [job(n, seed=first + more) for n in choice.trials for more in range(choice.repeat)]
        if problems := backend.problems(lab, [job.plan for job in work]):
            terminal.complain(problems)
            return 2
        remove_runs(work if fresh else [])
        predicted = _predict(case) if case and len(finished(work)) < len(work) else ""
        results, failures = _measure_all(work, job, choice.again, jobs, as_json, case)
        _print(lab, results, as_json, case, predicted)
        terminal.complain([*failures, *backend.remarks])
        return 1 if failures or backend.remarks else 0


def _choose(
    lab: Lab,
    case: CaseRun | None,
    settings: Mapping[str, Value],
    trials: str | None,
    *,
    pitfall: str | None,
    stage: StageName | None,
    repeat: int | None,
    quiet: bool,
) -> TrialChoice:
    """Return the trials to run, and say which settings they have already."""
    check_stage(pitfall, stage)
    choice = choose_trials(lab, trials, case, pitfall=pitfall, stage=stage, repeat=repeat)
    if not quiet:
        for line in set_already(lab, settings, choice.trials, case, pitfall=pitfall, stage=stage):
            print(line, file=sys.stderr)
    return choice


def remove_runs(work: list[Job]) -> None:
    """Delete what is measured already of these."""
    for folder in {job.folder for job in work}:
        shutil.rmtree(folder, ignore_errors=True)


def _own_copy(lab: Lab, out: Path, jobs: int | Scheduler | None, *, leave_out: bool) -> OwnCopy:
    """Return the used parts of the student's copy. What is staged is shown as it is: `leave_out`."""
    own = own_copy(out, lab, leave_out=leave_out)
    if own.scripts and isinstance(jobs, Scheduler):
        raise UserError("--jobs: your own node scripts can't go to a cluster: --no-edit")
    return own


def _measure_all(
    work: list[Job],
    job: Callable[..., Job],
    again: Again | None,
    jobs: int | Scheduler | None,
    as_json: bool,
    case: CaseRun | None,
) -> tuple[list[Result], list[UserError]]:
    """Measure, then what came out odd once more, where that is the mistake that is staged. A case's runs are noted."""
    results, failures = measure_jobs(work, jobs, as_json)
    while again and not failures and (odd := odd_trials(again, results)):
        if not as_json and not case:
            print(
                f"{terminal.count(len(odd), 'trial')} came out odd and, as the mistake has it, "
                f"{'is' if len(odd) == 1 else 'are'} run once more",
                file=sys.stderr,
            )
        more, failures = measure_jobs(
            [job(number, seed=seed) for number, seed in odd], jobs, as_json
        )
        results += more
    if case:
        case.note_runs(results)
    return results, failures


def measure_jobs(
    work: list[Job], jobs: int | Scheduler | None, quiet: bool
) -> tuple[list[Result], list[UserError]]:
    """Measure what is not measured yet, `jobs` at a time or on a cluster."""
    finished_results = finished(work)
    todo = [job for job in work if job.folder not in finished_results]
    if finished_results and not quiet:
        print(
            f"{len(finished_results)} of {len(work)} are measured already (--fresh measures again)",
            file=sys.stderr,
        )
    results = dict(finished_results)
    failures: list[UserError] = []
    if not todo:
        return [results[job.folder] for job in work], failures
    backend = todo[0].backend
    # What differs from a run that is there in how it is judged alone is copied, and nothing is said of measuring it.
    copied = {job.folder for job in todo if job.same_packets()}
    measures = [job for job in todo if job.folder not in copied]
    quiet = quiet or not measures
    with ExitStack() as stack:
        crew = stack.enter_context(dispatcher(backend, jobs, len(todo)))
        parallel = min(crew.at_once, len(measures) or 1)
        if not quiet:
            print(
                f"measuring {terminal.count(len(measures), 'trial')}, {parallel} at a time, {backend.location}: "
                f"about {_roughly(expected_seconds(measures, parallel))}. "
                "Ctrl-C loses nothing that is finished.",
                file=sys.stderr,
            )
        context, advance = terminal.progress(len(todo), quiet)
        stack.enter_context(context)
        shared: list[Job] = []

        def wait_for(job: Job) -> None:
            if not shared:
                _say_shared(job, len(todo))
            shared.append(job)

        started = time.monotonic()
        for job, outcome in crew.run_all(longest_first(todo), wait_for):
            if isinstance(outcome, UserError):
                failures.append(outcome)
                advance(job.plan.trial, "failed")
            else:
                results[job.folder] = outcome
                advance(job.plan.trial, in_brief(read_lab(job.lab_folder), outcome))
    measured = [job for job in measures if job.folder in results]
    wall_s = time.monotonic() - started
    if measured and not failures and not shared and not isinstance(jobs, Scheduler):
        learn(measured, parallel, wall_s)
    if measured and not quiet:
        _say_measured(measured, parallel, wall_s)
    return [results[job.folder] for job in work if job.folder in results], failures


def _say_measured(measured: list[Job], parallel: int, wall_s: float) -> None:
    virtual_s = sum(float(job.plan.params.get("duration_s", 0)) for job in measured)
    print(
        f"{terminal.count(len(measured), 'trial')}, {virtual_s:.0f} {'' if measured[0].backend.real_time else 'virtual '}seconds in "
        f"{wall_s:.1f} s of real time, {parallel} at a time",
        file=sys.stderr,
    )


def _say_shared(job: Job, trials: int) -> None:
    then = "waiting for it" if trials == 1 else "going on with the others, its results are taken"
    print(
        f"another ./lab run is measuring trial {job.plan.trial} in {job.out}: {then}",
        file=sys.stderr,
    )


def _roughly(seconds: float) -> str:
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    return f"{round(seconds / 60)} minutes"


def _print(
    lab: Lab, results: list[Result], as_json: bool, case: CaseRun | None, predicted: str
) -> None:
    if as_json:
        print(json.dumps([for_students(lab, result.to_json()) for result in results], indent=2))
    elif case:
        _print_case(case, results, predicted)
    elif results:
        terminal.print_table(lab, results)
        if len(results) == 1:
            terminal.print_expectations(lab, results[0])
        if late := wording.lateness(results):
            print(f"\n{late}")


def _predict(case: CaseRun) -> str:
    """Note what is changed and predicted before anything is run; a person at the terminal is asked. Return the answer.

    Who stops at the question has begun nothing, so nothing is noted.
    """
    if case.stage:
        case.note_begun()
        return ""
    heading = [f"Case {case.number}: {case.pitfall.symptom}", wording.dealt_values(case)]
    if answer := case.model_answer():
        heading.append(wording.model_answer(answer))
    question = "\n".join([*filter(None, heading), case.pitfall.predict.ask])
    predicted = _ask_prediction(question, quantity_of(case.pitfall.predict))
    case.note_begun()
    case.note_prediction(predicted)
    return predicted


def _ask_prediction(question: str, quantity: Quantity) -> str:
    """Ask for the number by itself, once more where that isn't what was typed, then for the reason."""
    with_unit = " with its unit" if quantity.has_unit else ""
    number = terminal.ask_person(
        f"{question}\nYour prediction, {quantity.label}: one number{with_unit} (Enter skips): "
    )
    if number and not is_one_number(number, quantity.unit):
        example = f"40 {quantity.unit}" if quantity.unit not in (OF_ALL, SHARE, "") else "0.4"
        number = terminal.ask_person(
            f"That wasn't noted, because it isn't one number. Only the number that you predict, such as {example} (Enter skips): "
        )
    if not number:
        return ""
    why = terminal.ask_person("And why? (Enter skips): ")
    return f"{number.rstrip('.,; ')}, {why}" if why else number


def _print_case(case: CaseRun, results: list[Result], predicted: str) -> None:
    """Print what was measured beside what was predicted and what the model says, without a verdict; then where to look.

    What is off, and why, the student finds; ./lab check helps a step at a time.
    """
    if compared := case.compare(predicted, results):
        print(wording.prediction_compared(compared))
    if not results:
        return
    print(f"Case {case.number}: {case.pitfall.symptom}")
    terminal.print_table(case.lab, results, verdicts=False)
    for line in wording.measured_of_case(case, results):
        print(line)
    place = terminal.relative(
        results[0].run_dir if len(results) == 1 else results[0].run_dir.parent
    )
    folder = place if len(results) == 1 else f"{place}/case-{case.number:02d}-*"
    if measured_before := raw_files_of(results):
        print(f"\n{wording.nothing_measured(measured_before)}")
    raw = f"\nWhat the tools printed is in {folder}/raw."
    if case.stage or case.changes or case.own or case.book.knows_cause(case.number):
        print(f"{raw}\n./lab check {folder} reports whether anything is still off.")
        return
    print(
        f"{raw} Look for what doesn't fit.\n./lab check {folder} reports what is off; --hint 1, 2 or 3 helps a step further."
    )
