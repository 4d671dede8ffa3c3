"""`lab start`: the first try is one's own, and moves with each case that is solved."""

from __future__ import annotations

import json
from pathlib import Path

import click

from measuretwice.backends import backend_for
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, FRESH, JOBS, OUT, SEED, root_folder
from measuretwice.cli.over_time import open_in_browser
from measuretwice.cli.run import measure_jobs, remove_runs
from measuretwice.course.progress import (
    OpenedTry,
    StartedTry,
    changes_by_cases,
    lab_with_first_try,
    open_try,
    opened_cases,
)
from measuretwice.execute.batch import open_batch
from measuretwice.execute.dispatch import refuse_jobs
from measuretwice.execute.job import check_writable, finished
from measuretwice.execute.scheduler import Scheduler
from measuretwice.runs.first_try_history import (
    FIGURE_SAID,
    START,
    said_of,
    said_of_next,
    so_far,
)


@click.command()
@click.argument("lab_name", metavar="[LAB]", required=False)
@click.option(
    "--seed",
    type=SEED,
    help="The seed of all randomness.  [default: your lab book's]",
)
@JOBS
@OUT
@FRESH
@click.option(
    "--open", "open_it", is_flag=True, help="Open the figure in the browser, if there is one."
)
@AS_JSON
def start(
    lab_name: str | None,
    seed: int | None,
    jobs: int | Scheduler | None,
    out: Path | None,
    fresh: bool,
    open_it: bool,
    as_json: bool,
) -> int:
    """Make your own first try, with the settings that come naturally, and see how it turns out.

    LAB is by default the first lab that has a first try. Cases that you solve can change the first try. The same command then
    runs it again with what you found, and lists your results so far. If you stop it half-way, it continues from there.
    """
    root = root_folder()
    lab = lab_with_first_try(root, lab_name)
    refuse_jobs(backend_for("virtual"), "virtual", jobs)
    out = (out or terminal.default_out(root)).absolute()
    check_writable(out)
    state = open_try(lab, out, seed)
    if not as_json:
        terminal.say_new_book(state)
    with backend_for("virtual").open("virtual", lab, root) as backend:
        work = state.jobs(open_batch(root, lab, out / START, backend))
        if fresh:
            remove_runs(work)
        ask = not (as_json or state.tries)
        predicted = _ask(state, measures=len(finished(work)) < len(work)) if ask else ""
        results, failures = measure_jobs(work, jobs, as_json)
    if failures:
        terminal.complain(failures)
        return 1
    started = state.note_results(root, results, predicted)
    if as_json:
        print(json.dumps(started.to_json(), indent=2))
    else:
        _print(started, predicted)
    if open_it and started.figure:
        open_in_browser(started.figure)
    return 0


def _ask(state: OpenedTry, *, measures: bool) -> str:
    """The prediction of the first try: as the book has it, or asked for and noted there before anything is run."""
    if prediction := state.book.first_try().prediction:
        return prediction
    if not measures:
        return ""
    about = state.about
    predicted = terminal.ask_person(f"{about.claim}.\n{about.ask} Your prediction (Enter skips): ")
    state.note_prediction(predicted)
    return predicted


def _print(started: StartedTry, predicted: str) -> None:
    state, came = started.state, started.came
    print(said_of(state.about.claim, came, changes_by_cases(state.lab, state.plan)))
    predicted = predicted or state.predicted
    if predicted and not state.plan.cases:
        print(f"You predicted: {predicted}.")
    if len(state.own_tries) > 1:
        print(f"\n{so_far(state.own_tries)}")
    if state.plan.last:
        print(f"\n{state.about.found}")
    if started.figure:
        figure = terminal.relative(started.figure)
        print(f"\n{FIGURE_SAID.format(figure)}")
    opened = opened_cases(state.book)
    print(f"\n{said_of_next(state.lab, state.next_case, opened, last=state.plan.last)}")
