"""Recorded sets of runs that need no new run: equal plans make equal bytes.

A plan names everything that decides a run's result: settings, seed, kernel, tools, scripts. Where today's
plans are those in sample-data/, running them again could show nothing that the recorded files don't. The same goes
for scripts that have changed since, if the set came out byte for byte with them (verified.json). The recorded files
are checked at each change (tests/run/test_record.py). That the rule itself holds is tried there, too: a trial
of each lab is run and compared with its recording, byte for byte.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from measuretwice.backends.virtual import Virtual, find_kernel
from measuretwice.execute.batch import Batch
from measuretwice.execute.record import choose, jobs_of
from measuretwice.lab import digest_scripts, load_lab
from measuretwice.runs.folder import PLAN
from measuretwice.runs.recorded import read_set, short_name, still_verified, verifications
from measuretwice.site.macros import LabContext

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
REASON = (
    "its runs are recorded, from plans equal to today's: test_record.py checks the recorded files, "
    "and runs a trial of each lab again"
)


def stand(lab_name: str, *sets: str) -> bool:
    """Are these sets of a lab (or the stages of these pitfalls) what today's plans would make?"""
    batch = _batch(lab_name)
    return batch is not None and all(
        _same(batch, wanted.name, job.plan.to_json())
        for wanted in choose(batch.lab, sets)
        for job in jobs_of(batch, wanted)
    )


@functools.cache
def _batch(lab_name: str) -> Batch | None:
    """The lab with this machine's virtual kernel; None where there is no kernel yet."""
    kernel = find_kernel()
    if kernel is None:
        return None
    lab = load_lab(ROOT, lab_name)
    scripts = digest_scripts(lab, ROOT / "scripts")
    return Batch(ROOT, lab, ROOT / "runs", Virtual(kernel), scripts)


def _same(batch: Batch, name: str, plan: dict[str, object]) -> bool:
    samples = SAMPLES / batch.lab.folder.name
    run = short_name(int(str(plan["trial"])), int(str(plan["seed"])))
    path = samples / name / run / PLAN
    if not path.is_file():
        return False
    # As JSON has it: no tuples.
    plans = [json.loads(path.read_text()), json.loads(json.dumps(plan))]
    if still_verified(verifications(samples), read_set(samples / name), batch.scripts):
        for document in plans:
            del document["scripts"], document["digest"]
    return bool(plans[0] == plans[1])


def runs_in_range(context: LabContext, name: str) -> int:
    """How many runs of a recorded set have a ratio in the range that lab.toml expects."""
    low, high = context.expected_ratio
    ratios = [run.ratio for run in context.sets.runs(name)]
    return sum(ratio is not None and low <= ratio <= high for ratio in ratios)
