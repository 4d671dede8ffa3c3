"""Trials of all six labs in a kernel without this project's patches, in real time, each beside the same in virtual time.

    .venv/bin/python benchmarks/against_stock.py --quick         a pair of each lab, 20 s each: four minutes
    .venv/bin/python benchmarks/against_stock.py                 thirty pairs of 30 s, five of each lab: 24 minutes
    .venv/bin/python benchmarks/against_stock.py --write         ... and keep them in sample-data/against_stock.json
    .venv/bin/python benchmarks/against_stock.py --one-bbr       one BBR flow among nine of Reno, five pairs of 120 s: eleven minutes
    ... --only mathis   --pairs 12   --seconds 60   --no-reader

The stock kernel is User-Mode Linux from the same source and with the same configuration, without any of
scripts/kernel/{patches,confine,faster,options}, and runs in real time; the other is the virtual kernel as the labs use
it. Both run the lab's own scripts with the same programs and settings. The rates are slow, so that a processor has time
for each packet, and the links' bursts long (16 ms), so that a packet that comes a little late costs no rate. The hosts'
wait and the cables' speed are off (processing_us=0, cable_mbit=0), as stock Linux has neither. What else differs:

- The stock kernel ticks at 100 Hz, User-Mode Linux's fixed frequency, the other at 1000 Hz.
- There a program reads when it is woken. Here a thread of the kernel reads in its place (10 ms; 100 ms in lab 03), which
  changes how segments are acknowledged. --no-reader leaves it out, so that what is left is the other patches'.
- Its random numbers are the moment's, not a seed's, so a pair's two runs lose other packets. A Mathis trial has some
  hundreds of losses, in twice the time of the others: its goodputs differ by several per cent, and so does C by the
  losses that there were (c_by_losses).

One pair at a time: while the stock kernel runs on one CPU, the virtual one runs the same on the next. As root, the
stock kernel goes before all other programs (SCHED_RR); it rests most of the time. So run it as root: what makes a
packet late in real time changes a result. Printed are
the ratios stock over virtual, their mean and its interval of 95 % by lab and value. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from pairs import Pair, summed_up  # noqa: E402

from measuretwice.backends import virtual  # noqa: E402
from measuretwice.backends.script import guest_script, memory_mb  # noqa: E402
from measuretwice.base.errors import UserError  # noqa: E402
from measuretwice.execute.batch import open_batch  # noqa: E402
from measuretwice.execute.job import run_job  # noqa: E402
from measuretwice.lab import Lab, Plan, load_lab  # noqa: E402

RECORD = ROOT / "sample-data" / "against_stock.json"
BUILDER = ROOT / "scripts/kernel/build.sh"
# What a run takes in real time besides its test: start, set-up, pings, end.
EXTRA_S = 12
# Losses at random need more time than queues do.
LONGER = {"mathis": 2}


class Stock(virtual.Virtual):
    """Trials in the stock kernel, in real time. It has no edges, and hasn't heard of this kit."""

    real_time = True
    repeats = False
    has_edges = False
    start_ns = None
    runner = "the stock kernel"

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        (work / "experiment.sh").write_text(guest_script(lab, plan), encoding="utf-8")
        process = virtual.start(
            self._kernel, root, work, f"uml_dir={virtual._FOLDERS}/91/.uml/", memory_mb=memory_mb(lab, plan)
        )  # fmt: skip
        # Before all other programs: its round trips are then late by 0.15 ms even on a busy machine, else by milliseconds.
        # Without root's rights it goes on like any other program.
        with suppress(PermissionError):
            os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
        try:
            process.wait(timeout=wall_limit_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            virtual.end(process, work)


class WithoutReader(virtual.Virtual):
    """Trials in the virtual kernel whose programs read for themselves."""

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        (work / "experiment.sh").write_text(guest_script(lab, plan), encoding="utf-8")
        virtual.run_inside(
            self._kernel, root, work, plan.kernel_seed, wall_limit_s,
            memory_mb=memory_mb(lab, plan), reader_interval_us=0,
        )  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One experiment: its lab and trial, what is set besides, and which of its measured values are compared."""

    lab: str
    trial: int
    params: dict[str, Any]
    compared: tuple[str, ...]


CALIBRATE = ("goodput_bps", "rtt_mean_ms", "ping_rtt_mean_ms", "loss_ratio")
MATHIS = ("goodput_bps", "c_by_losses", "loss_ratio", "rtt_mean_ms")
BUFFERS = ("goodput_bps", "rtt_mean_ms", "queue_mean_bytes", "jains_index")
SCALE = ("c_by_halvings", "drops_per_halving", "jains_index", "rtt_mean_ms", "utilisation")
VARIANTS = ("steady_goodput_bps", "steady_rtt_ms", "queue_mean_bytes")
QUEUES = ("goodput_bps", "queue_mean_bytes", "busy_ping_mean_ms", "jains_index")
# Two flows over 100 ms and 50 ms, ten flows, one flow, two flows: each on a link of 10 or 20 Mbit/s.
SLOW_BUFFERS = {"rate_mbit": 10, "burst_bytes": 20000, "buffer_bytes": 125000, "wmem_max_bytes": 4194304, "rmem_max_bytes": 4194304}  # fmt: skip
SLOW_SCALE = {"rate_mbit": 20, "buffer_bytes": 600000, "burst_bytes": 40000, "rtt_ms": 20, "start_spread_ms": 1000, "warmup_s": 6}  # fmt: skip
SLOW_VARIANTS = {"rate_mbit": 20, "burst_bytes": 40000, "buffer_bytes": 100000, "average_from_s": 8}
SLOW_QUEUES = {
    "rate_mbit": 10, "burst_bytes": 20000, "rtt_ms": 10, "fifo_bytes": 60000, "red_limit_bytes": 150000, "red_min_bytes": 15000,
    "red_max_bytes": 45000, "red_burst_packets": 25, "red_probability_ratio": 0.05,
}  # fmt: skip

SETTINGS = (
    Setting("calibrate", 2, {"burst_bytes": 20000}, CALIBRATE),
    Setting("mathis", 7, {"rtt_ms": 20, "loss_ratio": 0.01, "ping_count": 5}, MATHIS),
    Setting("buffers", 4, {**SLOW_BUFFERS}, BUFFERS),
    Setting("scale", 1, SLOW_SCALE, SCALE),
    Setting("variants", 1, SLOW_VARIANTS, VARIANTS),
    Setting("queues", 1, {**SLOW_QUEUES, "discipline": "bfifo"}, QUEUES),
    Setting("calibrate", 3, {"ping_count": 500, "rate_mbit": 20}, CALIBRATE),
    Setting("mathis", 7, {"rtt_ms": 40, "loss_ratio": 0.01, "ping_count": 5}, MATHIS),
    Setting("buffers", 2, {**SLOW_BUFFERS, "buffer_bytes": 62500}, BUFFERS),
    Setting("scale", 2, SLOW_SCALE, SCALE),
    Setting("variants", 2, SLOW_VARIANTS, VARIANTS),
    Setting("queues", 1, {**SLOW_QUEUES, "discipline": "red"}, QUEUES),
    Setting("calibrate", 1, {"rate_mbit": 5, "burst_bytes": 10000, "limit_packets": 100}, CALIBRATE),
    Setting("mathis", 7, {"rtt_ms": 20, "loss_ratio": 0.02, "ping_count": 5}, MATHIS),
    Setting("buffers", 4, {**SLOW_BUFFERS, "congestion_control": "reno"}, BUFFERS),
    Setting("scale", 4, SLOW_SCALE, SCALE),
    Setting("variants", 3, SLOW_VARIANTS, VARIANTS),
    Setting("queues", 1, {**SLOW_QUEUES, "discipline": "codel"}, QUEUES),
    Setting("calibrate", 3, {"ping_count": 500, "rtt_ms": 50, "loss_ratio": 0.005}, CALIBRATE),
    Setting("mathis", 7, {"rtt_ms": 20, "mss_bytes": 536, "loss_ratio": 0.01, "ping_count": 5}, MATHIS),
    Setting("buffers", 4, {**SLOW_BUFFERS, "congestion_control": "bbr"}, BUFFERS),
    Setting("scale", 5, SLOW_SCALE, SCALE),
    Setting("variants", 4, SLOW_VARIANTS, VARIANTS),
    Setting("queues", 1, {**SLOW_QUEUES, "discipline": "fq_codel"}, QUEUES),
    Setting("calibrate", 4, {"rate_mbit": 20, "burst_bytes": 40000, "limit_packets": 100}, CALIBRATE),
    Setting("mathis", 7, {"rtt_ms": 10, "loss_ratio": 0.01, "ping_count": 5}, MATHIS),
    Setting("buffers", 2, {**SLOW_BUFFERS, "congestion_control": "vegas"}, BUFFERS),
    Setting("scale", 3, SLOW_SCALE, SCALE),
    Setting("variants", 41, SLOW_VARIANTS, VARIANTS),
    Setting("queues", 1, {**SLOW_QUEUES, "discipline": "pie"}, QUEUES),
)  # fmt: skip

# What the witness (benchmarks/witness.py) doesn't agree on: one BBR flow's part beside nine of Reno, over 20 ms.
ONE_BBR = (
    Setting(
        "scale", 5, {"rate_mbit": 20, "buffer_bytes": 600000, "rtt_ms": 20, "warmup_s": 20},
        ("rival_share", "rtt_mean_ms", "utilisation", "drops_per_halving", "queue_mean_bytes"),
    ),
) * 5  # fmt: skip
ONE_BBR_S = 120


def measure(setting: Setting, seconds: float, seed: int, backend: virtual.Virtual, cpu: int, out: Path) -> dict[str, Any]:  # fmt: skip
    """Run a setting once in a kernel on one CPU; return its measured values."""
    os.sched_setaffinity(0, {cpu})
    lab = load_lab(ROOT, setting.lab)
    seconds *= LONGER.get(setting.lab, 1)
    changes = {**setting.params, "duration_s": seconds, "cable_mbit": 0, "processing_us": 0}
    batch = open_batch(ROOT, lab, out, backend)
    result = run_job(batch.job(setting.trial, seed=seed, changes=changes))
    measured = dict(result.measured)
    if setting.lab == "mathis":
        measured["c_by_losses"] = (
            measured["goodput_bps"] / (8 * measured["mss_bytes"])
            * measured["rtt_mean_ms"] / 1e3 * math.sqrt(measured["loss_ratio"])
        )  # fmt: skip
    return measured


def run_pair(number: int, setting: Setting, seconds: float, backends: Sequence[virtual.Virtual], out: Path) -> Pair | None:  # fmt: skip
    """Run a setting in both kernels at once, each on a CPU of its own; None, and a line that says why, where one fails."""
    cpus = sorted(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [
            pool.submit(measure, setting, seconds, number, backend, cpus[which % len(cpus)], out / f"{number}-{which}")
            for which, backend in enumerate(backends)
        ]  # fmt: skip
        try:
            stock, ours = (job.result() for job in jobs)
        except UserError as error:
            print(f"pair {number}, {setting.lab}: {error}")
            return None
    kept = {name: (stock.get(name), ours.get(name)) for name in setting.compared}
    return Pair(setting.lab, setting.trial, {k: v for k, v in setting.params.items() if v is not None}, number, kept)  # fmt: skip


def ensure_kernel(*options: str) -> virtual.Kernel:
    """Return a kernel of scripts/kernel/build.sh with these options, built where the cache lacks it."""
    command = ["bash", str(BUILDER), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("against_stock.py: the kernel can't be had; the reason stands above")
    return virtual.Kernel.read(Path(done.stdout.strip()), virtual.FACTS, "kernel")


def show_pair(pair: Pair) -> None:
    """Print one pair's values in a line."""
    words = [f"{name} {_number(one)}/{_number(other)}" for name, (one, other) in pair.values.items()]  # fmt: skip
    print(f"{pair.seed:3} {pair.lab:<10} trial {pair.trial:<3} stock/virtual: {', '.join(words)}", flush=True)  # fmt: skip


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def show_summary(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the mean ratio of each lab's values."""
    print("\nstock in real time over patched in virtual time, mean of the pairs' ratios:")
    for row in rows:
        low, high = row["low"], row["high"]
        interval = "" if low is None else f" (95 %: {low:.3f} to {high:.3f})"
        print(f"  {row['lab']:<10} {row['value']:<20} {row['mean_ratio']:.3f}{interval}, {row['pairs']} pairs, "
              f"from {row['least']:.3f} to {row['most']:.3f}")  # fmt: skip


def write(content: dict[str, Any], *, one_bbr: bool) -> None:
    """Keep a comparison: that of all labs as the record, with the one of a BBR flow inside it; either leaves the other."""
    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    if one_bbr:
        kept["one_bbr"] = content
    else:
        kept = content | ({"one_bbr": kept["one_bbr"]} if "one_bbr" in kept else {})
    RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Run the pairs that are asked for, print them and, with --write, keep them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--pairs", type=int, default=len(SETTINGS), help="how many, the labs in turn"
    )
    parser.add_argument("--seconds", type=float, default=30, help="length of each test (30)")
    parser.add_argument("--only", help="the pairs of this lab")
    parser.add_argument("--quick", action="store_true", help="a pair of each lab, 20 s each")
    parser.add_argument(
        "--one-bbr",
        action="store_true",
        help="one BBR flow among nine of Reno, five pairs of 120 s",
    )
    parser.add_argument("--no-reader", action="store_true", help="programs read for themselves")
    parser.add_argument("--write", action="store_true", help=f"keep them in {RECORD.name}")
    options = parser.parse_args()
    if options.quick:
        options.pairs, options.seconds = min(options.pairs, 6), min(options.seconds, 20)
    if options.one_bbr:
        options.seconds = ONE_BBR_S
    of_all = ONE_BBR if options.one_bbr else SETTINGS
    chosen = [s for s in of_all if not options.only or options.only in s.lab][: options.pairs]
    print("the stock kernel is built where the cache lacks it: four minutes on two free cores")
    kernels = [ensure_kernel("--stock"), ensure_kernel()]
    minutes = sum(options.seconds * LONGER.get(s.lab, 1) + EXTRA_S for s in chosen) / 60
    print(f"{len(chosen)} pairs in real time: about {minutes:.0f} minutes. {kernels[0].name} (stock), {kernels[1].name}")  # fmt: skip
    ours = WithoutReader if options.no_reader else virtual.Virtual
    backends = [Stock(kernels[0]), ours(kernels[1])]
    pairs = []
    with tempfile.TemporaryDirectory(prefix="measuretwice-stock-") as out:
        for number, setting in enumerate(chosen, start=1):
            pair = run_pair(number, setting, options.seconds, backends, Path(out))
            if pair:
                pairs.append(pair)
                show_pair(pair)
    rows = summed_up(pairs)
    show_summary(rows)
    if options.write:
        content = {
            "begun": datetime.date.today().isoformat(),
            "seconds": options.seconds,
            "reader": not options.no_reader,
            "stock": {"name": kernels[0].name, "config_sha256": kernels[0].facts.others["config_sha256"]},
            "virtual": {"name": kernels[1].name, "config_sha256": kernels[1].facts.others["config_sha256"]},
            "summary": rows,
            "pairs": [pair.to_json() for pair in pairs],
        }  # fmt: skip
        write(content, one_bbr=options.one_bbr)
        print(f"written to {RECORD.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
