"""How fast trials run: virtual seconds for each second of real time, and times over their targets.

    make bench                      one trial, then whole sets of trials: half an hour
    make bench ARGS=--quick         one trial only
    make bench ARGS='--only thirty' sets with this word in their name

The targets are for two free CPUs. Nothing here passes or fails: tests don't time.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRIAL_SECONDS = 240


@dataclass(frozen=True)
class Set:
    """Trials that are run together; `virtual_s` is what their tests last, all added up."""

    what: str
    arguments: tuple[str, ...]
    virtual_s: float
    target_s: float


SETS = (
    Set("mathis: all sixty trials", ("mathis",), 60 * TRIAL_SECONDS, 120),
    Set(
        "buffers: thirty runs of the source's four experiments",
        ("buffers", "--trials", "1-4", "--repeat", "30", "--set", "sample_interval_s=1"),
        120 * 120, 15 * 60,
    ),
    Set("buffers: all trials", ("buffers",), 33 * 120, 10 * 60),
    Set("queues: both arms, eighty flows in forty runs", ("queues", "--trials", "1-40"), 40 * 10, 5 * 60),
    Set("queues: all trials", ("queues",), 52 * 10, 5 * 60),
)  # fmt: skip


def run_lab(*arguments: str) -> float:
    """Run ./lab's CLI into a folder of its own and return the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "measuretwice", "run", *arguments, "--out", out, "--json"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return time.monotonic() - started


def show(what: str, virtual_s: float, wall_s: list[float], target_s: float) -> None:
    median_s = statistics.median(wall_s)
    print(
        f"{what}: {virtual_s:.0f} virtual s in {median_s:.1f} s "
        f"(of {len(wall_s)}: {min(wall_s):.1f} to {max(wall_s):.1f}), "
        f"{virtual_s / median_s:.0f} virtual s a second; target {target_s:.0f} s, "
        f"{target_s / median_s:.2f} times as fast as that",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="one trial only")
    options.add_argument("--only", default="", help="sets with these words in their name")
    options.add_argument("--repeat", type=int, default=3, help="runs of the one trial (3)")
    chosen = options.parse_args()
    subprocess.run(
        ["bash", str(ROOT / "scripts/kernel/build.sh")], stdout=subprocess.DEVNULL, check=True
    )
    print(f"{len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f} before this began")

    if not chosen.only:
        one = [run_lab("mathis", "--trial", "7") for _ in range(chosen.repeat)]
        show("trial 7", TRIAL_SECONDS, one, 6)
        unsampled = [
            run_lab("mathis", "--trial", "7", "--set", "sample_interval_s=60")
            for _ in range(chosen.repeat)
        ]
        show("trial 7, ss sampled every 60 s instead of every 0.1 s", TRIAL_SECONDS, unsampled, 6)
        ratio = statistics.median(one) / statistics.median(unsampled)
        print(f"sampling ss every 0.1 s takes {ratio:.2f} times the time of hardly sampling it")
    for some in SETS:
        if not chosen.quick and chosen.only in some.what:
            show(some.what, some.virtual_s, [run_lab(*some.arguments)], some.target_s)


if __name__ == "__main__":
    main()
