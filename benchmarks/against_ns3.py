"""The same paths in ns-3, a simulator whose TCP shares no line with Linux': does it say the same?

    benchmarks/against_ns3.py            all three comparisons; three quarters of an hour of one CPU
    benchmarks/against_ns3.py --quick    a few trials of each, two minutes

It compares with recorded runs (sample-data/), so only ns-3 has to run. It needs g++ and Debian's libns3-dev and
libgsl-dev, which nothing else here does; without them it says so and ends.

1. Mathis: each of the sixty trials, the loss drawn at random. Printed are goodput over the virtual kernel's, by p, and C.
2. A FIFO: ten flows of Reno at edge scale. Printed are drops for each halving, C by halvings, the mean round trip.
3. RED against a FIFO: two flows of one lab 05 trial. Printed are the mean queue and the goodput.

What differs and is known: ns-3's frames have no Ethernet header and here no timestamps, so its goodput is 1.6 % above at a full link. Delayed ACKs,
the least timeout, SACK and recovery are set as Linux has them; left as ns-3 has them (--plain=1 of the program) a trial's goodput moves by a few per
cent. Where p is above 0.005 ns-3 is some 13 % faster; why, we don't know. An earlier version of this program, with another build of ns-3, printed two goodputs
that were a third apart; with Debian's 3.37 they aren't.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample-data"
MODULES = ("applications", "internet", "point-to-point", "traffic-control", "core", "network")
# From which loss on a flow lives by timeouts, so that no model of the window applies.
MOST_LOSS_RATIO = 0.02


def main() -> int:
    """Compare and print; 0 where it could, 2 where something is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few trials of each")
    parser.add_argument("--seconds", type=int, default=120, help="length of ns-3's tests")
    options = parser.parse_args()
    if options.quick:
        options.seconds = min(options.seconds, 40)
    with tempfile.TemporaryDirectory(prefix="measuretwice-ns3-") as folder:
        program = build(Path(folder))
        if program is None:
            return 2
        mathis(program, options.seconds, quick=options.quick)
        fifo(program, quick=options.quick)
        red(program, quick=options.quick)
    return 0


def build(folder: Path) -> Path | None:
    """Compile the program; None, and a line that says why, where that can't be done."""
    if not shutil.which("g++") or not shutil.which("pkg-config"):
        print("g++ or pkg-config is missing: apt-get install g++ pkg-config libns3-dev libgsl-dev")
        return None
    wanted = [f"ns3-{module}" for module in MODULES]
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", *wanted], capture_output=True, text=True, check=False
    )
    if flags.returncode:
        print("ns-3 isn't there: apt-get install libns3-dev libgsl-dev (260 MB)")
        return None
    program = folder / "against_ns3"
    source = Path(__file__).with_suffix(".cc")
    command = ["g++", "-O2", "-std=c++17", str(source), "-o", str(program), *flags.stdout.split()]
    if (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        print(f"{source.name} can't be compiled: {done.stderr.strip().splitlines()[-1]}")
        return None
    return program


def simulate(program: Path, **settings: object) -> dict[str, float]:
    """Return what ns-3 measured with these settings; CalledProcessError where it fails."""
    words = [f"--{name}={value}" for name, value in settings.items()]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in json.loads(done.stdout).items()}


def recorded(of_set: str) -> list[dict[str, Any]]:
    """Return a recorded set's runs, `params` and `measured` each."""
    return list(json.loads((SAMPLES / of_set / "results.json").read_text())["runs"])


def mathis(program: Path, seconds: int, *, quick: bool) -> None:
    """Compare the sixty trials."""
    runs = [run for run in recorded("01-mathis/step-8-long") if run["params"]["loss_ratio"] <= MOST_LOSS_RATIO]  # fmt: skip
    rows: list[tuple[float, float, float, float]] = []
    for run in runs[:6] if quick else runs:
        params: Mapping[str, Any] = run["params"]
        found = simulate(
            program,
            rtt_ms=params["rtt_ms"], mss_bytes=params["mss_bytes"], loss_ratio=params["loss_ratio"],
            rate_mbit=params["rate_mbit"], duration_s=seconds,
        )  # fmt: skip
        if found["drops"] < 50:
            continue  # too few losses for a rate
        ratio = found["goodput_bps"] / run["measured"]["goodput_bps"]
        by_halvings = _constant(found, params["mss_bytes"], found["halvings"])
        by_drops = _constant(found, params["mss_bytes"], found["drops"])
        rows.append((params["loss_ratio"], ratio, by_drops, by_halvings))
    rows.sort()
    print(f"\n1. Mathis: {len(rows)} trials with 50 losses or more in {seconds} s of ns-3")
    for name, low, high in (
        ("p < 0.001", 0, 1e-3),
        ("p < 0.005", 1e-3, 5e-3),
        ("p < 0.02", 5e-3, 1),
    ):
        part = [row for row in rows if low <= row[0] < high]
        if part:
            ratio, c_drops, c_halvings = (statistics.geometric_mean(row[n] for row in part) for n in (1, 2, 3))  # fmt: skip
            print(
                f"   {name:10} {len(part):2} trials: ns-3's goodput is {ratio:.3f} times the virtual kernel's; "
                f"its C by drops {c_drops:.3f}, by halvings {c_halvings:.3f}"
            )


def _constant(found: Mapping[str, float], mss_bytes: int, losses: float) -> float:
    """Return C of the Mathis model for so many losses."""
    p = losses / found["segments"]
    return found["goodput_bps"] * found["rtt_mean_ms"] / 1e3 * math.sqrt(p) / (8 * mss_bytes)


def fifo(program: Path, *, quick: bool) -> None:
    """Compare ten flows of Reno before a FIFO."""
    runs = [run for run in recorded("03-scale/edge-no-edges") if run["params"]["congestion_control"] == "reno"]  # fmt: skip
    params = runs[0]["params"]
    found = [
        simulate(
            program,
            rtt_ms=params["rtt_ms"], mss_bytes=1448, rate_mbit=params["rate_mbit"], flows=params["flows"],
            buffer_bytes=params["buffer_bytes"], duration_s=params["duration_s"], warmup_s=params["warmup_s"],
            spread_s=params["start_spread_ms"] / 1e3, seed=seed,
        )
        for seed in range(1, 2 if quick else 11)
    ]  # fmt: skip
    print(
        f"\n2. A FIFO before ten flows of Reno: {len(found)} runs of ns-3, {len(runs)} of the virtual kernel"
    )
    flows = params["flows"]
    pairs = {
        "drops for each halving": (
            [one["drops"] / one["halvings"] for one in found],
            [run["measured"]["drops_per_halving"] for run in runs],
        ),
        "C by halvings": (
            [_constant({**one, "goodput_bps": one["goodput_bps"] / flows}, 1448, one["halvings"]) for one in found],
            [run["measured"]["c_by_halvings"] for run in runs],
        ),
        "mean round trip (ms)": (
            [one["rtt_mean_ms"] for one in found],
            [run["measured"]["rtt_mean_ms"] for run in runs],
        ),
    }  # fmt: skip
    _print_pairs(pairs)


def red(program: Path, *, quick: bool) -> None:
    """Compare RED with a FIFO, two flows each."""
    runs = recorded("05-queues/two-arms")
    for discipline, called in (("pfifo_fast", "fifo"), ("red", "red")):
        of_kind = [run for run in runs if run["params"]["discipline"] == discipline]
        params = of_kind[0]["params"]
        room = params["red_limit_bytes"] if called == "red" else params["fifo_packets"] * 1514
        found = [
            simulate(
                program,
                rtt_ms=params["rtt_ms"], mss_bytes=1448, rate_mbit=params["rate_mbit"], flows=2, queue=called,
                buffer_bytes=room, duration_s=params["duration_s"],
                red_min_bytes=params["red_min_bytes"], red_max_bytes=params["red_max_bytes"],
                red_probability_ratio=params["red_probability_ratio"],
                algorithm="Cubic" if params["congestion_control"] == "cubic" else "LinuxReno",
                seed=seed,
            )
            for seed in range(1, 3 if quick else 11)
        ]  # fmt: skip
        print(f"\n3. Two flows of {params['congestion_control']} before {discipline}: {len(found)} runs of ns-3, {len(of_kind)} of the virtual kernel")  # fmt: skip
        _print_pairs(
            {
                "mean queue (kB)": (
                    [one["queue_mean_bytes"] / 1e3 for one in found],
                    [run["measured"]["queue_mean_bytes"] / 1e3 for run in of_kind],
                ),
                "goodput (Mbit/s)": (
                    [one["goodput_bps"] / 1e6 for one in found],
                    [run["measured"]["goodput_bps"] / 1e6 for run in of_kind],
                ),
            }
        )


def _print_pairs(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    for name, (theirs, ours) in pairs.items():
        their_mean, our_mean = statistics.fmean(theirs), statistics.fmean(ours)
        print(f"   {name}: ns-3 {their_mean:.3f}, virtual kernel {our_mean:.3f}, ratio {their_mean / our_mean:.3f}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
