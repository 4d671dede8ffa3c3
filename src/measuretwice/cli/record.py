"""`lab record`: make a lab's recorded runs, or run them again and compare byte for byte."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from measuretwice.cli import terminal
from measuretwice.cli.run import measure_jobs
from measuretwice.execute import record
from measuretwice.execute.batch import Batch, open_batch
from measuretwice.lab import load_lab
from measuretwice.runs import recorded
from measuretwice.runs.result import Result


def record_command(
    root: Path,
    lab_name: str,
    *,
    only: Sequence[str],
    verify: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Record or verify; return 0, or 1 where what came out is not what is recorded."""
    lab = load_lab(root, lab_name)
    chosen = record.choose(lab, only)
    samples = root / "sample-data" / lab.folder.name
    if verify:
        for wanted in chosen:
            recorded.read_set(samples / wanted.name)
    # Finished runs stay until all is done, so that what was broken off goes on.
    out = terminal.default_out(root) / ("verified" if verify else "recorded")
    batch = open_batch(root, lab, out)

    results = _run(batch, chosen, jobs, as_json)
    problems: list[str] = []
    for wanted in chosen:
        if verify:
            problems += record.compare(samples / wanted.name, results[wanted.name])
        else:
            samples.mkdir(parents=True, exist_ok=True)
            record.store(samples / wanted.name, wanted, results[wanted.name])
    if verify:
        # The next --verify runs all anew; what differs stays to be looked at. Runs of another
        # --verify that works beside this one are left alone.
        differing = out.with_name("differing") / lab.name
        shutil.rmtree(differing, ignore_errors=True)
        runs = {result.place for these in results.values() for result in these}
        for run in sorted(runs):
            if problems:
                differing.mkdir(parents=True, exist_ok=True)
                run.rename(differing / run.name)
            else:
                shutil.rmtree(run, ignore_errors=True)
        if problems:
            print(f"the runs that differ are in {differing}", file=sys.stderr)
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


def _run(
    batch: Batch, chosen: list[record.SetToRecord], jobs: int | None, quiet: bool
) -> dict[str, list[Result]]:
    """Run all sets together, so that no CPU waits for the end of one; results by set."""
    results: dict[str, list[Result]] = {wanted.name: [] for wanted in chosen}
    todo = {wanted.name: record.jobs_of(batch, wanted) for wanted in chosen}
    while any(todo.values()):
        # Two sets may hold the same run.
        work = {job.folder: job for part in todo.values() for job in part}
        measured, failures = measure_jobs(list(work.values()), jobs, quiet)
        if failures:
            raise failures[0]
        by_folder = {result.place: result for result in measured}
        for name, part in todo.items():
            results[name] += [by_folder[job.folder] for job in part]
        todo = {
            wanted.name: record.again_of(batch, wanted, results[wanted.name]) for wanted in chosen
        }
    return results
