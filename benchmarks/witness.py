"""The machine's own kernel as a witness: five settings on the emulated host, each beside the virtual kernel.

    .venv/bin/python benchmarks/witness.py                            one run of 20 s each, to see that it works: six minutes
    .venv/bin/python benchmarks/witness.py --repeats 5 --seconds 120  what a page may quote: an hour and a quarter, of which the first fifty minutes want a quiet machine
    ... --write                                                       and keep it in sample-data/witness.json

On the host time is real and the path an emulator's (`./lab run --on host --emulate`), which measures how late its packets
are; as root it goes before other programs, and is less late. The virtual kernel is then told to have its hosts wait as
long: packets are looked at within `processing_us` of their arrival, on average half of it, so that is twice the mean
lateness. Its cables have no speed, as the host's haven't. A machine that does other things besides makes packets later; its
load is kept with the result.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "sample-data" / "witness.json"
# Ten flows on a link as slow as an emulator serves in time on two CPUs, with a buffer of twelve round trips.
TEN_FLOWS: dict[str, float] = {"rate_mbit": 20, "buffer_bytes": 600000, "rtt_ms": 20}


@dataclass(frozen=True)
class Setting:
    """One experiment: its lab, trial and settings, and which of its measured values are compared."""

    name: str
    lab: str
    trial: int
    params: dict[str, float]
    compared: tuple[str, ...]


SETTINGS = (
    Setting(
        "one Reno, losses at random, 40 ms",
        "mathis",
        7,
        {"rtt_ms": 40, "loss_ratio": 0.005, "ping_count": 5},
        ("ratio", "loss_ratio", "rtt_mean_ms"),
    ),
    Setting(
        "ten Reno",
        "scale",
        1,
        TEN_FLOWS,
        ("c_by_halvings", "drops_per_halving", "jains_index", "rtt_mean_ms", "utilisation"),
    ),
    Setting(
        "one BBR among ten", "scale", 5, TEN_FLOWS, ("rival_share", "rtt_mean_ms", "utilisation")
    ),
    Setting(
        "five CUBIC among ten",
        "scale",
        4,
        TEN_FLOWS,
        ("rival_share", "c_by_halvings", "drops_per_halving", "rtt_mean_ms"),
    ),
    Setting("ten BBR", "scale", 3, TEN_FLOWS, ("jains_index", "rtt_mean_ms", "utilisation")),
)


def measure(
    setting: Setting, settings: argparse.Namespace, out: str, *more: str
) -> list[dict[str, Any]]:
    """Run a setting with as many seeds as asked for; return each run's measured values, the model's ratio among them."""
    params: dict[str, float] = {**setting.params, "duration_s": settings.seconds}
    if setting.lab == "scale":
        params["warmup_s"] = min(20, settings.seconds / 4)
    words = [word for name, value in params.items() for word in ("--set", f"{name}={value:g}")]
    command = [sys.executable, "-P", "-m", "measuretwice", "run", setting.lab, "--trial", str(setting.trial)]  # fmt: skip
    done = subprocess.run(
        [*command, *words, "--repeat", str(settings.repeats), "--no-edit", "--json", "--out", out, *more],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"witness.py: {setting.name} couldn't be run; the reason stands above")
    return [{**result["measured"], "ratio": result["ratio"]} for result in json.loads(done.stdout)]


def summed_up(name: str, host: Sequence[Any], virtual: Sequence[Any]) -> dict[str, Any]:
    """Return a value's means on both, with their standard errors (None of one run), and the ratio of the means."""
    row: dict[str, Any] = {"name": name}
    for where, runs in (("host", host), ("virtual", virtual)):
        values = [run[name] for run in runs if run.get(name) is not None]
        row[where] = values
        row[f"{where}_mean"] = statistics.fmean(values) if values else None
        row[f"{where}_error"] = (
            statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
        )
    known = row["host_mean"] is not None and row["virtual_mean"]
    row["host_over_virtual"] = row["host_mean"] / row["virtual_mean"] if known else None
    return row


def compare(
    setting: Setting, settings: argparse.Namespace, host: Sequence[Any], load: float, out: str
) -> dict[str, Any]:
    """Run a setting in the virtual kernel with the wait of its runs on the `host`; return both side by side."""
    late_us = statistics.fmean(run["emulator_late_mean_us"] for run in host)
    processing_us = max(1, round(2 * late_us))
    wait = ("--set", f"processing_us={processing_us}", "--set", "cable_mbit=0")
    virtual = measure(setting, settings, f"{out}/virtual", *wait)
    return {
        "setting": setting.name,
        "lab": setting.lab,
        "trial": setting.trial,
        "params": setting.params,
        "late_mean_us": [run["emulator_late_mean_us"] for run in host],
        "late_p99_us": [run["emulator_late_p99_us"] for run in host],
        "late_max_us": [run["emulator_late_max_us"] for run in host],
        "load_of_15_minutes": load,
        "lost_packets": [run["emulator_lost_packets"] for run in host],
        "processing_us": processing_us,
        "values": [summed_up(name, host, virtual) for name in setting.compared],
    }


def show(compared: dict[str, Any]) -> None:
    """Print one setting's values, a line each."""
    print(
        f"{compared['setting']}: packets late by {statistics.fmean(compared['late_mean_us']):.0f} us on average, "
        f"so processing_us={compared['processing_us']}"
    )
    for row in compared["values"]:
        cells = [
            _cell(row[f"{where}_mean"], row[f"{where}_error"]) for where in ("host", "virtual")
        ]
        over = row["host_over_virtual"]
        print(
            f"  {row['name']:<18} host {cells[0]:>18}  virtual {cells[1]:>18}  "
            f"ratio {'-' if over is None else f'{over:.3f}'}"
        )


def _cell(mean: float | None, error: float | None) -> str:
    if mean is None:
        return "not known"
    return f"{mean:.4g}" if error is None else f"{mean:.4g} (se {error:.2g})"


def main() -> None:
    """Compare what is asked for, print it and, with --write, keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--repeats", type=int, default=1, help="runs of each setting on each kernel"
    )
    parser.add_argument("--seconds", type=float, default=20, help="length of each run, at least 20")
    parser.add_argument("--only", action="append", help="a setting's name, or part of it")
    parser.add_argument("--write", action="store_true", help=f"keep it in {RECORD.name}")
    # What `make bench` gives to all of these.
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    settings.seconds = max(20, settings.seconds)
    chosen = [
        setting
        for setting in SETTINGS
        if not settings.only or any(part in setting.name for part in settings.only)
    ]
    expected_s = len(chosen) * settings.repeats * (settings.seconds + 25)
    print(
        f"{len(chosen)} settings, in real time: about {expected_s / 60:.0f} minutes on the host alone"
    )
    found = []
    with tempfile.TemporaryDirectory(prefix="measuretwice-witness-") as out:
        # What needs a machine that does nothing else comes first, so that it needs one for no longer.
        on_host = []
        for setting in chosen:
            runs = measure(setting, settings, f"{out}/host", "--on", "host", "--emulate")
            on_host.append((runs, os.getloadavg()[2]))
        print(
            "the host's part is measured; from here on the machine may do other things besides",
            flush=True,
        )
        for setting, (runs, load) in zip(chosen, on_host, strict=True):
            found.append(compare(setting, settings, runs, load, out))
            show(found[-1])
    if settings.write:
        document = {
            "begun": datetime.date.today().isoformat(),
            "kernel": f"linux {platform.release()}",
            "cpus": os.cpu_count(),
            "seconds": settings.seconds,
            "repeats": settings.repeats,
            "settings": found,
        }
        RECORD.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        print(f"written to {RECORD.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
