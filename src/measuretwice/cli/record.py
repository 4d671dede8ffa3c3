"""`lab record`: make a lab's recorded runs, or run them again and compare byte for byte."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, root_folder
from measuretwice.cli.run import measure_jobs
from measuretwice.execute import record as recording
from measuretwice.execute.batch import Batch, open_batch
from measuretwice.facts import write_facts
from measuretwice.lab import Lab, load_lab
from measuretwice.runs import recorded
from measuretwice.runs.result import Result


@click.command()
@click.argument("lab_name", metavar="LAB")
@click.option("--verify", is_flag=True, help="Run it all again and compare byte for byte.")
@click.option(
    "--note",
    is_flag=True,
    help="With --verify: note in sample-data/ each set that comes out the same, and keep each flow's progress over time. "
    "Sets that have a note aren't run again, unless --only names one whose flows' progress isn't kept yet.",
)
@click.option(
    "--facts",
    is_flag=True,
    help="Measure nothing, and only compute facts.json from the recorded runs.",
)
@click.option("--only", multiple=True, metavar="SET", help="Only this set, or this pitfall's two.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Trials to run in parallel.  [default: one per CPU]",
)
@AS_JSON
def record(
    lab_name: str,
    only: Sequence[str],
    verify: bool,
    note: bool,
    facts: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Make LAB's recorded runs in sample-data/, or --verify them.

    Exit status: 0 if all is recorded or comes out the same, 1 if something differs.
    """
    root = root_folder()
    if note and not verify:
        raise UserError("--note is for --verify: it notes which sets came out the same")
    if facts and (verify or only):
        raise UserError(
            "--facts computes all facts of the lab again and measures nothing, so give no other option"
        )
    lab = load_lab(root, lab_name)
    if facts:
        return _facts(root, lab, as_json)
    chosen = recording.choose(lab, only)
    samples = root / "sample-data" / lab.folder.name
    # Finished runs stay until all is done, so that what was broken off goes on.
    out = terminal.default_out(root) / ("verified" if verify else "recorded")
    batch = open_batch(root, lab, out)
    if verify:
        sets = {wanted.name: recorded.read_set(samples / wanted.name) for wanted in chosen}
        if note:
            chosen = [w for w in chosen if _is_to_be_noted(batch, samples, w, sets[w.name], only)]

    problems: list[str] = []
    # All sets' runs at once, so that no CPU waits for a set's last one; but what is noted is noted set by set.
    for part in [[wanted] for wanted in chosen] if note else [chosen]:
        results = _run(batch, part, jobs, as_json)
        if verify:
            problems += _verify(lab, samples, part, results, out.with_name("differing"), note)
            continue
        for wanted in part:
            samples.mkdir(parents=True, exist_ok=True)
            recording.store(lab, samples / wanted.name, wanted, results[wanted.name])
    if not verify:
        _keep_facts_right(root, lab)
    if as_json:
        names = [wanted.name for wanted in chosen]
        print(json.dumps({"lab": lab.name, "sets": names, "differences": problems}, indent=2))
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    done = "the same byte for byte" if verify else f"recorded in {samples}"
    if not problems:
        print(f"{len(chosen)} sets: {done}")
    return 1 if problems else 0


def _is_to_be_noted(
    batch: Batch,
    samples: Path,
    wanted: recording.SetToRecord,
    of_set: recorded.RecordedSet,
    only: Sequence[str],
) -> bool:
    """Return whether a set has no note that is still true; or is named by --only and lacks what its flows got over time."""
    if not recorded.still_verified(recorded.verifications(samples), of_set, batch.scripts):
        return True
    return bool(only) and recording.lacks_series(samples / wanted.name, wanted)


def _facts(root: Path, lab: Lab, as_json: bool) -> int:
    """Compute a lab's facts anew from what is recorded of it."""
    if (path := write_facts(root, lab)) is None:
        raise UserError(f"{lab.folder} has no facts.py: {lab.name} has no facts")
    print(
        json.dumps({"lab": lab.name, "facts": str(path)}) if as_json else f"{path}: computed anew"
    )
    return 0


def _keep_facts_right(root: Path, lab: Lab) -> None:
    """Compute the facts of what was recorded anew; say so where a set that they need is still missing."""
    try:
        write_facts(root, lab)
    except UserError as error:
        print(f"the lab's facts stay as they were: {error}", file=sys.stderr)


def _verify(
    lab: Lab,
    samples: Path,
    chosen: list[recording.SetToRecord],
    results: dict[str, list[Result]],
    differing: Path,
    note: bool,
) -> list[str]:
    """Compare these sets with what is recorded; note those that are the same, and complete their series; keep the runs of
    others."""
    problems: list[str] = []
    differing /= lab.name
    for wanted in chosen:
        differences = recording.compare(samples / wanted.name, results[wanted.name])
        problems += differences
        if note and not differences:
            runs = [result.run_dir for result in results[wanted.name]]
            recorded.note_verification(samples, recorded.read_set(samples / wanted.name), runs)
            if recording.lacks_series(samples / wanted.name, wanted):
                recording.add_series(lab, samples / wanted.name, results[wanted.name])
    # The next --verify runs all anew; what differs stays to be looked at. Runs of another
    # --verify that works beside this one are left alone.
    if not note:
        shutil.rmtree(differing, ignore_errors=True)
    for run in sorted({result.run_dir for of_set in results.values() for result in of_set}):
        if problems:
            differing.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(differing / run.name, ignore_errors=True)
            run.rename(differing / run.name)
        else:
            shutil.rmtree(run, ignore_errors=True)
    if problems:
        print(f"the runs that differ are in {differing}", file=sys.stderr)
    return problems


def _run(
    batch: Batch, chosen: list[recording.SetToRecord], jobs: int | None, quiet: bool
) -> dict[str, list[Result]]:
    """Run all sets together, so that no CPU waits for the end of one; results by set."""
    results: dict[str, list[Result]] = {wanted.name: [] for wanted in chosen}
    todo = {wanted.name: recording.jobs_of(batch, wanted) for wanted in chosen}
    while any(todo.values()):
        # Two sets may hold the same run.
        work = {job.folder: job for part in todo.values() for job in part}
        measured, failures = measure_jobs(list(work.values()), jobs, quiet)
        if failures:
            raise failures[0]
        by_folder = {result.run_dir: result for result in measured}
        for name, part in todo.items():
            results[name] += [by_folder[job.folder] for job in part]
        todo = {
            wanted.name: recording.again_of(batch, wanted, results[wanted.name])
            for wanted in chosen
        }
    return results
