"""What the wall around the virtual kernel's process costs: a run's start, and sixty trials.

    .venv/bin/python benchmarks/wall.py [--pairs 6] [--duration 24]

Each pair is once with the wall and once without, one after the other, the order swapped each time: their ratios are
printed, of real time and of CPU time. Nothing here passes or fails.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from measuretwice.backends import virtual  # noqa: E402
from measuretwice.backends.virtual import Virtual  # noqa: E402
from measuretwice.execute.batch import open_batch  # noqa: E402
from measuretwice.execute.dispatch import dispatcher  # noqa: E402
from measuretwice.lab import load_lab  # noqa: E402

WALL = virtual._wall
STARTS = 20


def seconds(work: Callable[[], None]) -> tuple[float, float]:
    """Real seconds and CPU seconds of this process' children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    ended, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts() -> None:
    """So many runs of nothing, one after the other on one CPU."""
    kernel = virtual.ensure_kernel()
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as folder:
                Path(folder, "experiment.sh").write_text("ip netns add a\n")
                virtual.run_inside(kernel, ROOT, Path(folder), 1, 60)
    finally:
        os.sched_setaffinity(0, cpus)


def sixty(duration_s: int) -> None:
    """Lab 01's sixty trials, so many virtual seconds each."""
    lab = load_lab(ROOT, "mathis")
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        batch = open_batch(ROOT, lab, Path(out), Virtual(virtual.ensure_kernel()))
        jobs = [
            batch.job(trial, seed=1, changes={"duration_s": duration_s}) for trial in lab.trials
        ]
        with dispatcher(batch.backend, None, len(jobs)) as crew:
            failed = [str(each) for _, each in crew.run_all(jobs) if isinstance(each, Exception)]
        assert not failed, failed


def compare(name: str, work: Callable[[], None], pairs: int) -> None:
    ratios: list[tuple[float, float]] = []
    spent: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(pairs):
        took = {}
        for walled in (pair % 2 == 0, pair % 2 != 0):
            virtual._wall = WALL if walled else lambda folders: "MT_NO_WALL=1"
            took[walled] = seconds(work)
            spent[walled].append(took[walled][0])
        ratios.append((took[True][0] / took[False][0], took[True][1] / took[False][1]))
    virtual._wall = WALL
    for what, each in zip(("real time", "CPU time"), zip(*ratios, strict=True), strict=True):
        print(
            f"{name}: {what} with the wall over without, {pairs} pairs: "
            f"{statistics.median(each):.3f} ({min(each):.3f} to {max(each):.3f})"
        )
    print(
        f"{name}: {statistics.median(spent[True]):.2f} s with, {statistics.median(spent[False]):.2f} s without"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--duration", type=int, default=24, metavar="S")
    parser.add_argument("--quick", action="store_true", help="two pairs, four seconds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.pairs, chosen.duration = 2, 4
    compare(f"{STARTS} starts", starts, chosen.pairs)
    compare("sixty trials", lambda: sixty(chosen.duration), chosen.pairs)


if __name__ == "__main__":
    main()
