"""`lab record`: make a lab's recorded runs, or run them again and compare byte for byte."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from measuretwice import record, terminal
from measuretwice import run as runner
from measuretwice.batch import open_batch
from measuretwice.command_run import measure_jobs
from measuretwice.lab import load_lab
from measuretwice.result import Result


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
        for one in chosen:
            record.read_set(samples / one.name)
    # Finished runs stay until all is done, so that what was broken off goes on.
    out = terminal.default_out(root) / ("verified" if verify else "recorded")
    batch = open_batch(root, lab, out)

    def measure(work: list[runner.Job]) -> list[Result]:
        results, failures = measure_jobs(work, jobs, as_json)
        if failures:
            raise failures[0]
        return results

    problems: list[str] = []
    for count, one in enumerate(chosen, 1):
        if not as_json:
            print(f"[{count}/{len(chosen)}] {one.name}: {one.title}", file=sys.stderr)
        results = record.run_set(batch, one, measure)
        if verify:
            problems += record.compare(samples / one.name, results)
        else:
            samples.mkdir(parents=True, exist_ok=True)
            record.store(samples / one.name, one, results)
    if verify and not problems:
        shutil.rmtree(out / lab.name, ignore_errors=True)
    if as_json:
        names = [one.name for one in chosen]
        print(json.dumps({"lab": lab.name, "sets": names, "differences": problems}, indent=2))
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    done = "the same byte for byte" if verify else f"recorded in {samples}"
    if not problems:
        print(f"{len(chosen)} sets: {done}")
    return 1 if problems else 0
