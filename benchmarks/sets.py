"""How long whole sets of trials take: virtual time, real time, and real time over its target.

    make bench                                   all benchmarks
    PYTHONPATH=src .venv/bin/python benchmarks/sets.py --only "thirty"

The targets are for two free CPUs. Nothing here passes or fails: tests don't time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Set:
    """Trials that are run together; `virtual_s` is what their tests last, all added up."""

    what: str
    arguments: tuple[str, ...]
    runs: int
    virtual_s: float
    target_s: float


SETS = (
    Set("mathis: all sixty trials", ("mathis",), 60, 60 * 240, 120),
    Set(
        "buffers: thirty runs of the source's four experiments",
        ("buffers", "--trials", "1-4", "--repeat", "30", "--set", "sample_interval_s=1"),
        120, 120 * 120, 15 * 60,
    ),
    Set("buffers: all trials", ("buffers",), 33, 33 * 120, 10 * 60),
    Set("queues: both arms, eighty flows in forty runs", ("queues", "--trials", "1-40"), 40, 40 * 10, 5 * 60),
    Set("queues: all trials", ("queues",), 52, 52 * 10, 5 * 60),
)  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="sets with these words in their name")
    options.add_argument("--quick", action="store_true", help="none of them: each takes minutes")
    chosen = options.parse_args()
    if chosen.quick:
        return
    subprocess.run(
        ["bash", str(ROOT / "scripts/kernel/build.sh")], stdout=subprocess.DEVNULL, check=True
    )
    print(f"on {len(os.sched_getaffinity(0))} CPUs; load before: {os.getloadavg()[0]:.1f}")
    for one in SETS:
        if chosen.only not in one.what:
            continue
        with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
            started = time.monotonic()
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "measuretwice",
                    "run",
                    *one.arguments,
                    "--out",
                    out,
                    "--json",
                ],
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            wall_s = time.monotonic() - started
        print(
            f"{one.what}: {one.runs} runs, {one.virtual_s:.0f} virtual s in {wall_s:.0f} s, "
            f"{one.virtual_s / wall_s:.0f} virtual s a second; {wall_s / one.target_s:.2f} of the target, "
            f"{one.target_s} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
