"""Runs trials of all labs in a kernel that counts itself (profile.sh), and prints of what they were.

    PYTHONPATH=src python -P scripts/kernel/train.py KERNEL COUNTS

The kernel writes its counts into the folder COUNTS when a run ends, added to those of the runs before. So the wall
around it has one more folder, which no other kernel's has.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuretwice.backends import virtual
from measuretwice.backends.virtual import Virtual
from measuretwice.execute.batch import open_batch
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
# Each lab's kinds of trial; most of the time is Mathis' and that of buffers, as it is for who does the labs.
TRIALS = {
    "calibrate": (1,),
    "mathis": (1, 7, 30, 60),
    "buffers": (1, 17),
    "scale": (1,),
    "variants": (1, 23, 44),
    "queues": (1, 10, 20, 40, 52),
}
WALL_LIMIT_S = 3600


def main() -> None:
    kernel_folder, counts = (Path(word) for word in sys.argv[1:])
    kernel = virtual.Kernel.read(kernel_folder, virtual.FACTS, "kernel")
    wall = virtual._wall
    virtual._wall = lambda folders: f"{wall(folders)},rw:{counts}"
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    print(f"{kernel.name}, counted by {compiler.stdout.splitlines()[0]}")
    print("patches and all else that was compiled:", kernel.facts.others["key"])
    for name, trials in TRIALS.items():
        lab = load_lab(ROOT, name)
        for trial in trials:
            with tempfile.TemporaryDirectory(prefix="measuretwice-profile-") as out:
                batch = open_batch(ROOT, lab, Path(out), Virtual(kernel))
                job = batch.job(trial, seed=1, changes={})
                work = Path(out, "work")
                (work / "raw").mkdir(parents=True)
                job.backend.measure(lab, job.plan, ROOT, work, WALL_LIMIT_S)
                if not (work / "raw/finished").exists():
                    sys.exit(f"{name} {trial}: {(work / 'console.txt').read_text()[-500:]}")
            print(f"lab {name}, trial {trial}, seed 1", flush=True)


if __name__ == "__main__":
    main()
