"""The proof of the checker: every pitfall, broken and fixed, over many seeds and settings.

    make checker-matrix                     all of it, eight minutes on two free CPUs
    make checker-matrix ARGS='--seeds 1'    one seed each
    make checker-matrix ARGS='--only mtu'   one pitfall
    make checker-matrix ARGS='--seeds 0 --elsewhere 0 --corners 3'
                                            what may be varied, at every corner of its range

A broken run must raise its own finding and no other but those that lab.toml lists as following
from it; a fixed run must raise none. Prints a table; exits 1 where one doesn't hold.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

from measuretwice.base.errors import UserError
from measuretwice.base.files import usable_cpus
from measuretwice.checks import check_run, check_set, run_under_test
from measuretwice.execute.batch import longest_first, odd_trials, open_batch
from measuretwice.execute.dispatch import dispatcher
from measuretwice.execute.job import Job
from measuretwice.lab import Lab, StageName, load_lab, select_trials
from measuretwice.lab.schema.cases import Again
from measuretwice.runs.remeasure import remeasure
from measuretwice.runs.result import Result

ROOT = Path(__file__).parents[2]
STAGES: tuple[StageName, StageName] = ("broken", "fixed")
# What makes a stage cheap enough to run often and leaves its symptom: mostly less time, as long as
# a hundred losses still come. `duration` has its length from the lab, so there p is larger: the
# first stage still sees two or three losses, and the other a few hundred. By lab.
CHEAPER: dict[str, dict[str, dict[str, Any]]] = {
    "mathis": {
        "loss-percent": {"duration_s": 20},
        "duration": {"loss_ratio": 0.0005},
        "timestamps": {"duration_s": 100},
        "mtu": {"duration_s": 20},
        "offload": {"duration_s": 30},
        "rtt-doubling": {"duration_s": 20},
        "queueing": {"duration_s": 15, "compare_with": "nothing"},
        "model-domain": {"duration_s": 20},
        "wrong-socket": {"duration_s": 100},
        "ack-policy": {"duration_s": 40},
    },
}
# Shorter still, for the tests, which run one seed: what a stage is like at its full length is recorded
# in sample-data/ and looked at there, and the matrix runs it so over many seeds.
SHORTER: dict[str, dict[str, dict[str, Any]]] = {
    "buffers": {
        "size-suffix": {"duration_s": 10},
        "whose-bdp": {"duration_s": 10},
        "hidden-queue": {"duration_s": 10},
        "field-number": {"duration_s": 10},
        "one-run": {"duration_s": 15},
    },
    "scale": {
        "standing-queue": {"duration_s": 20, "warmup_s": 5},
        "halving-counter": {"duration_s": 25, "warmup_s": 5},
        "offload-at-scale": {"duration_s": 20, "warmup_s": 5},
        "missing-flows": {"duration_s": 15, "warmup_s": 3},
    },
    "queues": {
        "no-bottleneck": {"duration_s": 5},
        "wrong-metric": {"duration_s": 5},
        "default-qdisc": {"duration_s": 3},
        "red-limits": {"duration_s": 3},
        "summary-row": {"duration_s": 5},
        "copied-cell": {"duration_s": 3},
    },
    "variants": {
        "config-comment": {"duration_s": 5, "average_from_s": 1},
        "terminated-tcp": {"duration_s": 10, "average_from_s": 2},
    },
}


@dataclass(frozen=True)
class Cell:
    """One case of the matrix: a stage with one seed, and what its runs must raise."""

    label: str
    stage: StageName
    seed: int
    must: str | None
    may: frozenset[str]
    again: Again | None


Work = dict[Cell, list[Job]]


def cells(
    lab: Lab,
    seeds: int,
    elsewhere_seeds: int,
    job: Callable[..., Job],
    only: Sequence[str] = (),
    corner_seeds: int = 0,
    short: bool = False,
) -> Work:
    """Every case of the matrix with its first jobs; of some pitfalls, or of all."""
    work: Work = {}
    cheaper = CHEAPER.get(lab.name, {}) | (SHORTER.get(lab.name, {}) if short else {})
    places = {
        place: number
        for number, place in enumerate(
            ((one.id, other.trial) for one in lab.file.pitfalls for other in one.elsewhere), start=1
        )
    }
    for pitfall in lab.file.pitfalls:
        if only and pitfall.id not in only:
            continue
        may = frozenset(pitfall.follows)
        numbers = select_trials(lab, pitfall.trials or str(pitfall.trial))
        for stage in STAGES:
            must = pitfall.finding if stage == "broken" else None
            staged = pitfall.stage(stage)
            # The stage's name is left out of the plan: what is the same experiment in two cells
            # is run once.
            changes = {**staged.set, **cheaper.get(pitfall.id, {})}
            apart = max(10, pitfall.broken.repeat, pitfall.fixed.repeat)
            repeat = staged.repeat
            for count in range(1, seeds + 1):
                # A stage that runs trials several times takes a seed for each.
                seed = count if len(numbers) == 1 else apart * count
                cell = Cell(
                    f"{pitfall.id}, trial {pitfall.trials or pitfall.trial}",
                    stage, seed, must, may, staged.again,
                )  # fmt: skip
                work[cell] = [
                    job(number, seed=seed + n, changes=changes)
                    for number in numbers
                    for n in range(repeat)
                ]
        # Settings that are not the lab's own, so that the thresholds don't only fit those.
        for setting in pitfall.elsewhere:
            number = places[pitfall.id, setting.trial]
            for stage in STAGES:
                must = pitfall.finding if stage == "broken" else None
                values = setting.both | (setting.broken if must else {})
                # Seeds of its own: fixed stages of two settings may be the same experiment.
                for seed in range(100 * number, 100 * number + elsewhere_seeds):
                    label = f"{pitfall.id}, trial {setting.trial} *"
                    cell = Cell(label, stage, seed, must, may, None)
                    work[cell] = [job(setting.trial, seed=seed, changes=values)]
        corners = list(product(*lab.varied(pitfall).values())) if pitfall.vary else []
        for number, corner in enumerate(corners, start=1):
            values = dict(zip(pitfall.vary, corner, strict=True))
            for stage in STAGES:
                must = pitfall.finding if stage == "broken" else None
                changes = pitfall.stage(stage).set | cheaper.get(pitfall.id, {}) | values
                for seed in range(10_000 + 100 * number, 10_000 + 100 * number + corner_seeds):
                    cell = Cell(f"{pitfall.id}, varied", stage, seed, must, may, None)
                    work[cell] = [job(pitfall.trial, seed=seed, changes=changes)]
    return work


def wrong(cell: Cell, raised: set[str]) -> str | None:
    """What is wrong with the findings that a case raised; None where they are as they must be."""
    if cell.must and cell.must not in raised:
        return f"missed (raised {', '.join(sorted(raised)) or 'nothing'})"
    extra = raised - ({cell.must} if cell.must else set()) - (cell.may if cell.must else set())
    return f"false alarm: {', '.join(sorted(extra))}" if extra else None


def findings(lab: Lab, results: list[Result]) -> set[str]:
    """What the checker says of a case's runs, each by itself and all together."""
    raised = set()
    for result in results:
        again = remeasure(ROOT, result.run_dir)
        plan = again.plan
        case = run_under_test(lab, plan.params, again.measured, plan.trial, again.host_state)
        raised |= {finding.id for finding in check_run(lab, case)}
    members = [result.member for result in results]
    return raised | {told.finding.id for told in check_set(lab, members)}


def measure(
    lab_name: str,
    seeds: int,
    elsewhere_seeds: int,
    out: Path,
    talk: bool,
    only: Sequence[str] = (),
    corner_seeds: int = 0,
    short: bool = False,
) -> list[str]:
    """Run the matrix, print it where `talk`, and return what was wrong. `short` is for one seed."""
    lab = load_lab(ROOT, lab_name)
    batch = open_batch(ROOT, lab, out, wall_limit_s=600)
    work = cells(lab, seeds, elsewhere_seeds, batch.job, only, corner_seeds, short)
    outcomes: dict[Path, Result | UserError] = {}
    started = time.monotonic()
    while todo := {
        job.folder: job for jobs in work.values() for job in jobs if job.folder not in outcomes
    }:
        with dispatcher(batch.backend, None, len(todo)) as crew:
            for job, outcome in crew.run_all(longest_first(list(todo.values()))):
                outcomes[job.folder] = outcome
                if talk and sys.stderr.isatty():
                    print(f"\r{len(outcomes)} runs", end="", file=sys.stderr, flush=True)
        for cell, jobs in work.items():
            # Another cell may have had a further try already.
            while cell.again and all(job.folder in outcomes for job in jobs):
                done = [outcomes[job.folder] for job in jobs]
                if any(isinstance(one, UserError) for one in done):
                    break
                odd = odd_trials(cell.again, cast(list[Result], done))
                if not odd:
                    break
                jobs += [again(jobs, trial, seed) for trial, seed in odd]
    problems = []
    table: dict[tuple[str, str], list[str | None]] = defaultdict(list)
    for cell in work:
        problem = verdict(lab, cell, [outcomes[job.folder] for job in work[cell]])
        table[cell.label, cell.stage].append(problem)
        if problem:
            problems.append(f"{cell.label}, {cell.stage}, seed {cell.seed}: {problem}")
    if talk:
        print(f"\n{'pitfall (* not in the lab)':34} {'stage':7} {'cases':>5} {'right':>6}")
        for (label, stage), verdicts in sorted(table.items()):
            right = sum(verdict is None for verdict in verdicts)
            print(f"{label:34} {stage:7} {len(verdicts):5} {right:6}")
        minutes = (time.monotonic() - started) / 60
        print(
            f"{len(work)} cases, {len(outcomes)} runs, {len(problems)} wrong, {minutes:.1f} minutes on "
            f"{len(usable_cpus())} CPUs"
        )
        print("\n".join(problems))
    return problems


def again(jobs: list[Job], trial: int, seed: int) -> Job:
    """The same trial's job with another seed."""
    job = next(job for job in jobs if job.plan.trial == trial)
    return replace(job, plan=replace(job.plan, seed=seed))


def verdict(lab: Lab, cell: Cell, outcomes: list[Result | UserError]) -> str | None:
    """What is wrong with a case, or None."""
    results = [one for one in outcomes if not isinstance(one, UserError)]
    if len(results) < len(outcomes):
        return next(str(one) for one in outcomes if isinstance(one, UserError))
    return wrong(cell, findings(lab, results))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lab", default="mathis")
    options.add_argument("--seeds", type=int, default=10, help="seeds of the lab's own stages")
    options.add_argument("--elsewhere", type=int, default=2, help="seeds of the other settings")
    options.add_argument("--corners", type=int, default=0, help="seeds of what is varied")
    options.add_argument("--only", action="append", default=[], help="this pitfall, not all")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="measuretwice-matrix-") as out:
        problems = measure(
            chosen.lab,
            chosen.seeds,
            chosen.elsewhere,
            Path(out),
            True,
            chosen.only,
            chosen.corners,
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
