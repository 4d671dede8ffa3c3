"""The proof of the checker: every pitfall, broken and fixed, over many seeds and settings.

    make checker-matrix                     all of it, some ten minutes on two CPUs
    make checker-matrix ARGS='--seeds 1'    one seed each

A broken run must raise its own finding and no other but those that lab.toml lists as following
from it; a fixed run must raise none. Prints a table; exits 1 where one doesn't hold.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice import run as runner
from measuretwice.errors import UserError
from measuretwice.kernel import ensure_kernel
from measuretwice.lab import Lab, load_lab
from measuretwice.plan import digest_scripts, make_plan

ROOT = Path(__file__).parents[2]
# Long enough for a hundred losses and short enough to run often, where the lab's own stage is
# longer than its symptom needs.
SHORTER: dict[str, dict[str, Any]] = {
    "queueing": {"duration_s": 60},
    "mtu": {"duration_s": 60},
    "offload": {"duration_s": 60},
    "rtt-doubling": {"duration_s": 60},
    "loss-percent": {"duration_s": 60},
    "model-domain": {"duration_s": 60},
}


@dataclass(frozen=True)
class Setting:
    """A pitfall on another trial than the lab's, with the values that break it there."""

    pitfall: str
    trial: int
    broken: dict[str, Any]
    both: dict[str, Any]


# Settings that are not in the lab, so that the thresholds don't only fit the lab's own trials.
ELSEWHERE = (
    Setting("loss-percent", 4, {"loss_percent": 0.0141826}, {"duration_s": 120}),
    Setting("loss-percent", 9, {"loss_percent": 0.006217314741}, {"duration_s": 120}),
    Setting("duration", 18, {"duration_s": 100}, {"duration_s": 1500}),
    Setting("queueing", 8, {"rate_mbit": 150, "burst_bytes": 18750}, {"duration_s": 80}),
    Setting("timestamps", 7, {"timestamps": "on"}, {"duration_s": 60}),
    Setting("timestamps", 6, {"timestamps": "on", "rtt_ms": 10}, {"duration_s": 60, "rtt_ms": 10}),
    Setting("mtu", 21, {"mtu_bytes": 1500}, {}),
    Setting("mtu", 7, {"mtu_bytes": 1000}, {"duration_s": 60}),
    Setting("offload", 7, {"offloads": "on"}, {"duration_s": 60}),
    Setting("offload", 4, {"offloads": "on"}, {"duration_s": 60}),
    Setting("rtt-doubling", 21, {"delay_ms": 154.5}, {"duration_s": 600}),
    Setting("rtt-doubling", 4, {"delay_ms": 6}, {"duration_s": 60}),
    Setting("model-domain", 10, {"compare_with": "mathis"}, {"duration_s": 60}),
    Setting(
        "wrong-socket",
        4,
        {"pick_socket": "algorithm", "congestion_control": "cubic"},
        {"duration_s": 60},
    ),
)


@dataclass(frozen=True)
class Cell:
    """One run of the matrix and what it must raise."""

    label: str
    stage: str
    must: str | None
    may: frozenset[str]


def cells(
    lab: Lab, seeds: int, elsewhere_seeds: int, make_job: Any
) -> list[tuple[Cell, runner.Job]]:
    """Every run of the matrix with its job."""
    work = []
    for pitfall in lab.file.pitfalls:
        may = frozenset(pitfall.follows)
        for stage in ("broken", "fixed"):
            must = pitfall.finding if stage == "broken" else None
            for seed in range(1, seeds + 1):
                job = make_job(pitfall.trial, seed, SHORTER.get(pitfall.id, {}), pitfall.id, stage)
                work.append((Cell(f"{pitfall.id}, trial {pitfall.trial}", stage, must, may), job))
        for number, setting in enumerate(ELSEWHERE, start=1):
            if setting.pitfall != pitfall.id:
                continue
            for stage in ("broken", "fixed"):
                must = pitfall.finding if stage == "broken" else None
                values = setting.both | (setting.broken if must else {})
                # Seeds of its own: fixed stages of two settings may be the same experiment.
                for seed in range(100 * number, 100 * number + elsewhere_seeds):
                    job = make_job(setting.trial, seed, values, None, None)
                    label = f"{pitfall.id}, trial {setting.trial} *"
                    work.append((Cell(label, stage, must, may), job))
    return work


def wrong(cell: Cell, raised: set[str]) -> str | None:
    """What is wrong with the findings that a run raised; None where they are as they must be."""
    if cell.must and cell.must not in raised:
        return f"missed (raised {', '.join(sorted(raised)) or 'nothing'})"
    extra = raised - ({cell.must} if cell.must else set()) - (cell.may if cell.must else set())
    return f"false alarm: {', '.join(sorted(extra))}" if extra else None


def measure(lab_name: str, seeds: int, elsewhere_seeds: int, out: Path, talk: bool) -> list[str]:
    """Run the matrix, print it where `talk`, and return what was wrong."""
    lab = load_lab(ROOT, lab_name)
    kernel = ensure_kernel(ROOT)
    tools, scripts = runner.tool_versions(), digest_scripts(lab, ROOT / "scripts")

    def make_job(
        trial: int, seed: int, values: dict[str, Any], pitfall: str | None, stage: Any
    ) -> runner.Job:
        # The lab's own stage decides what it sets; the shortening gives way to it.
        own = getattr(lab.pitfall(pitfall), stage).set if pitfall else {}
        plan = make_plan(
            lab, trial, seed=seed, changes={**values, **own}, where="virtual", kernel=kernel.name,
            tools=tools, scripts=scripts, pitfall=pitfall, stage=stage,
        )  # fmt: skip
        return runner.Job(plan, lab.folder, ROOT, out, kernel, 600)

    work = cells(lab, seeds, elsewhere_seeds, make_job)
    by_folder = {job.folder: cell for cell, job in work}
    jobs = runner.longest_first([job for _, job in work])
    raised: dict[tuple[str, str], list[str | None]] = defaultdict(list)
    problems = []
    started = time.monotonic()
    for count, (job, outcome) in enumerate(runner.run_all(jobs, len(runner.usable_cpus())), 1):
        cell = by_folder[job.folder]
        said = (
            str(outcome)
            if isinstance(outcome, UserError)
            else wrong(cell, {finding["id"] for finding in outcome["findings"]})
        )
        raised[cell.label, cell.stage].append(said)
        if said:
            problems.append(f"{cell.label}, {cell.stage}, seed {job.plan.seed}: {said}")
        if talk and sys.stderr.isatty():
            print(f"\r{count} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
    if talk:
        print(f"\n{'pitfall (* not in the lab)':34} {'stage':7} {'runs':>5} {'right':>6}")
        for (label, stage), said_list in sorted(raised.items()):
            right = sum(said is None for said in said_list)
            print(f"{label:34} {stage:7} {len(said_list):5} {right:6}")
        minutes = (time.monotonic() - started) / 60
        print(f"{len(jobs)} runs, {len(problems)} wrong, {minutes:.1f} minutes")
        print("\n".join(problems))
    return problems


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lab", default="mathis")
    options.add_argument("--seeds", type=int, default=10, help="seeds of the lab's own stages")
    options.add_argument("--elsewhere", type=int, default=3, help="seeds of the other settings")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="measuretwice-matrix-") as out:
        problems = measure(chosen.lab, chosen.seeds, chosen.elsewhere, Path(out), talk=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
