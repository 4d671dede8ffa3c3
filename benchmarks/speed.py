"""How fast trials run: virtual seconds for each second of real time.

    make bench                      trial 7, then all sixty trials
    make bench ARGS=--quick         trial 7 only

Each figure is printed with its target. Nothing here passes or fails: tests don't time.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRIAL_SECONDS = 240


def run_lab(*arguments: str) -> float:
    """Run ./lab's CLI into a folder of its own and return the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        started = time.monotonic()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "measuretwice",
                "run",
                "mathis",
                "--out",
                out,
                "--json",
                *arguments,
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.DEVNULL,
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
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="trial 7 only")
    options.add_argument("--repeat", type=int, default=3, help="runs of trial 7 (3)")
    chosen = options.parse_args()
    subprocess.run(
        ["bash", str(ROOT / "scripts/kernel/build.sh")], stdout=subprocess.DEVNULL, check=True
    )

    one = [run_lab("--trial", "7") for _ in range(chosen.repeat)]
    show("trial 7", TRIAL_SECONDS, one, 6)
    unsampled = [
        run_lab("--trial", "7", "--set", "sample_interval_s=60") for _ in range(chosen.repeat)
    ]
    show("trial 7, ss sampled every 60 s instead of every 0.1 s", TRIAL_SECONDS, unsampled, 6)
    ratio = statistics.median(one) / statistics.median(unsampled)
    print(f"sampling ss every 0.1 s takes {ratio:.2f} times the time of hardly sampling it")
    if not chosen.quick:
        show(f"sixty trials on {os.cpu_count()} CPUs", 60 * TRIAL_SECONDS, [run_lab()], 120)


if __name__ == "__main__":
    main()
