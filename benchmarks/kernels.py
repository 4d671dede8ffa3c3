"""Two builds of the virtual kernel: what the second takes of the first's time, and whether runs are the same bytes.

    .venv/bin/python benchmarks/kernels.py BEFORE AFTER [--pairs 6] [--only trial] [--sixty 240]

BEFORE and AFTER are folders as scripts/kernel/build.sh prints them. Each pair is once with either, one after the
other on one CPU, the order swapped each time. Printed are ratios of CPU time, which other work on the machine hardly
changes, and of real time. Nothing here passes or fails but that files must be equal.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from measuretwice.backends import virtual  # noqa: E402
from measuretwice.backends.virtual import Virtual  # noqa: E402
from measuretwice.execute.batch import open_batch  # noqa: E402
from measuretwice.lab import load_lab  # noqa: E402
from measuretwice.runs.folder import digest_of  # noqa: E402

WALL_LIMIT_S = 3600
WALL = virtual._wall


@dataclass(frozen=True)
class Work:
    what: str
    lab: str
    trials: tuple[int, ...]
    changes: dict[str, object] = field(default_factory=dict)


def works(sixty_s: int, core_s: int) -> list[Work]:
    return [
        Work("start: trial 7, 2 s", "mathis", (7,), {"duration_s": 2}),
        Work("trial 7", "mathis", (7,)),
        Work(f"sixty trials, {sixty_s} s each", "mathis", tuple(range(1, 61)), {"duration_s": sixty_s}),
        Work("twenty runs of lab 02", "buffers", tuple(range(1, 21))),
        Work("queues: four runs", "queues", (1, 20, 40, 52)),
        Work(f"core: a thousand flows, {core_s} s", "scale", (1,), {"scale": "core", "duration_s": core_s, "warmup_s": 4}),
    ]  # fmt: skip


def wall_of(kernel: virtual.Kernel) -> Callable[[tuple[str, ...]], str]:
    """An older kernel doesn't know of folders that don't change."""
    if "sparing_sha256" in kernel.facts.others:
        return WALL
    return lambda folders: WALL(folders).replace("as:", "ro:")


def measure(kernel: virtual.Kernel, work: Work) -> tuple[float, float, list[str]]:
    """CPU seconds and real seconds of the kernel and its children, and each run's digest."""
    virtual._wall = wall_of(kernel)
    lab = load_lab(ROOT, work.lab)
    cpu_s = real_s = 0.0
    digests = []
    for trial in work.trials:
        with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
            batch = open_batch(ROOT, lab, Path(out), Virtual(kernel))
            job = batch.job(trial, seed=1, changes=work.changes)
            run = Path(out, "run")
            (run / "raw").mkdir(parents=True)
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            job.backend.measure(lab, job.plan, ROOT, run, WALL_LIMIT_S)
            ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            assert (run / "raw/finished").exists(), (run / "console.txt").read_text()
            cpu_s += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            real_s += ended - began
            digests.append(str(digest_of(run / "raw")))
    return cpu_s, real_s, digests


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("kernels", type=Path, nargs="*", metavar="BEFORE AFTER")
    options.add_argument("--pairs", type=int, default=6)
    options.add_argument("--only", default="", help="what has this word in its name")
    options.add_argument("--sixty", type=int, default=240, metavar="S", help="so long each (240)")
    options.add_argument("--core", type=int, default=35, metavar="S", help="so long (35)")
    chosen = options.parse_args()
    if len(chosen.kernels) != 2:
        print("name two kernels' folders to compare them")
        return
    kernels = [virtual.Kernel.read(folder, virtual.FACTS, "kernel") for folder in chosen.kernels]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    different = 0
    for work in works(chosen.sixty, chosen.core):
        if chosen.only not in work.what:
            continue
        cpu, real, spent = [], [], []
        for pair in range(chosen.pairs):
            took = {}
            for which in (0, 1) if pair % 2 == 0 else (1, 0):
                took[which] = measure(kernels[which], work)
            cpu.append(took[1][0] / took[0][0])
            real.append(took[1][1] / took[0][1])
            spent.append((took[0][0], took[1][0]))
            different += sum(a != b for a, b in zip(took[0][2], took[1][2], strict=True))
        print(
            f"{work.what}: CPU time after over before {statistics.median(cpu):.3f} "
            f"({min(cpu):.3f} to {max(cpu):.3f}), real time {statistics.median(real):.3f}, {chosen.pairs} pairs; "
            f"{statistics.median(a for a, _ in spent):.2f} s before, {statistics.median(b for _, b in spent):.2f} s after",
            flush=True,
        )
    if different:
        sys.exit(f"{different} runs came out otherwise")
    print("all runs came out the same")


if __name__ == "__main__":
    main()
