"""How fast the site is made from its sources, figures drawn before.

    make bench
    PYTHONPATH=src .venv/bin/python benchmarks/site.py

Nothing here passes or fails: tests don't time.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET_S = 10


def build() -> float:
    """Build the students' site and return the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "measuretwice", "docs", "--build", "--out", f"{out}/site"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return time.monotonic() - started


if __name__ == "__main__":
    build()
    print(f"./lab docs --build: {build():.1f} s (target: {TARGET_S} s)")
