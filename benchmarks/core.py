"""A thousand flows at 10 Gbit/s: wall seconds a virtual second on one CPU, and where they go.

    make bench ARGS=--quick         60 virtual seconds instead of 75
    .venv/bin/python benchmarks/core.py --quick --set cable_mbit=0   this alone, with other settings

Two runs of different length are subtracted, so that start and end don't count. The kernel process
runs the guest's kernel (TCP, qdiscs, timers) and asks the host for things; the guest's programs
(iperf3, ss) run in processes of their own. Needs 6 GB of memory. Nothing here passes or fails.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Until all flows are there, and two samples of ss besides.
SHORT_S = 30
TARGET_WALL_S = 5.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """What a run took: seconds, bytes, and the segments that its flows sent."""

    wall_s: float = 0.0
    kernel_user_s: float = 0.0
    kernel_system_s: float = 0.0
    programs_s: float = 0.0
    memory_bytes: int = 0
    segments: float = 0.0


def watch(out: str, cost: Cost, ended: threading.Event) -> None:
    """Note the CPU time of the virtual kernel's processes while a run goes on."""
    programs: dict[int, float] = {}
    kernel = None
    while not ended.wait(0.5):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes()
                fields = (process / "stat").read_text().rsplit(") ", 1)[1].split()
                if line.startswith(f"linux {out}".encode()):
                    kernel = process.name
                    cost.kernel_user_s = int(fields[11]) * TICK_S
                    cost.kernel_system_s = int(fields[12]) * TICK_S
                    pages = int((process / "statm").read_text().split()[1])
                    cost.memory_bytes = max(cost.memory_bytes, pages * os.sysconf("SC_PAGE_SIZE"))
                elif kernel is not None and fields[1] == kernel:
                    programs[int(process.name)] = (int(fields[11]) + int(fields[12])) * TICK_S
            except (OSError, IndexError):
                continue
        cost.programs_s = sum(programs.values())


def run(duration_s: int, settings: list[str]) -> Cost:
    """Run a thousand Reno flows for so long."""
    cost, ended = Cost(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="measuretwice-bench-") as out:
        watcher = threading.Thread(target=watch, args=(out, cost, ended))
        watcher.start()
        began = time.monotonic()
        done = subprocess.run(
            [
                sys.executable, "-m", "measuretwice", "run", "scale", "--trial", "1",
                "--set", "scale=core", "--set", f"duration_s={duration_s}", "--set", "warmup_s=4",
                *(part for setting in settings for part in ("--set", setting)),
                "--out", out, "--json", "--wall-limit", "3600",
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )  # fmt: skip
        cost.wall_s = time.monotonic() - began
        ended.set()
        watcher.join()
    (result,) = json.loads(done.stdout)
    cost.segments = float(result["measured"]["goodput_bps"]) * duration_s / 8 / 1448
    return cost


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="a shorter second run")
    options.add_argument("--set", action="append", default=[], help="a setting of the runs")
    chosen, _ = options.parse_known_args()
    long_s = 60 if chosen.quick else 75
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    print(f"one CPU, load {os.getloadavg()[0]:.1f} before this began", flush=True)
    short, long = run(SHORT_S, chosen.set), run(long_s, chosen.set)
    virtual_s = long_s - SHORT_S
    wall_s = (long.wall_s - short.wall_s) / virtual_s
    print(
        f"1000 flows, 10 Gbit/s: {wall_s:.1f} wall s a virtual s; target {TARGET_WALL_S:.0f}, "
        f"{TARGET_WALL_S / wall_s:.2f} times as fast as that"
    )
    print(f"a whole run of {long_s} s: {long.wall_s / long_s:.1f} wall s a virtual s")
    print(
        f"memory: {long.memory_bytes / 2**30:.1f} GiB; {short.wall_s:.0f} s for the first {SHORT_S} virtual s"
    )
    parts = {
        "the guest's kernel: TCP, queues, timers": long.kernel_user_s - short.kernel_user_s,
        "what it asks the host for: switches, signals, files": long.kernel_system_s
        - short.kernel_system_s,
        "the guest's programs: iperf3, ss": long.programs_s - short.programs_s,
    }
    total_s = sum(parts.values())
    segments = long.segments - short.segments
    for what, part_s in parts.items():
        print(f"  {part_s / total_s:4.0%} {1e6 * part_s / segments:5.2f} us a data segment: {what}")


if __name__ == "__main__":
    main()
