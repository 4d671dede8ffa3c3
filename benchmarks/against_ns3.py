"""The same paths in ns-3, a simulator whose TCP shares no line with Linux': does it say the same?

    benchmarks/against_ns3.py            all three comparisons; three quarters of an hour of one CPU
    benchmarks/against_ns3.py --quick    a few trials of each, two minutes
    ... --write                          and keep it in sample-data/against-ns3.json

It compares with recorded runs (sample-data/), so only ns-3 has to run. It needs g++ and Debian's libns3-dev and
libgsl-dev, which nothing else here does; without them it says so and ends.

1. Mathis: each of the sixty trials, the loss drawn at random. Printed are goodput over the virtual kernel's, trial by trial
   and by p, and C. One trial over a long path is run with other seeds, too: there ns-3 may all but stop.
2. A FIFO: ten flows of Reno at edge scale. Printed are drops for each halving, C by halvings, the mean round trip.
3. RED against a FIFO: two flows of one lab 05 trial. Printed are the mean queue and the goodput.

What differs and is known: ns-3's frames have no Ethernet header and here no timestamps, so its goodput is 1.6 % above at a full link. Delayed ACKs,
the least timeout, SACK, recovery and the send buffer are set as Linux has them; left as ns-3 has them (--plain=1 of the program) a trial's goodput moves by a few per
cent. An earlier version of this program left ns-3's devices their MTU of 1500 bytes, so large segments
were cut into three packets and lost three times as often: goodputs were a third to a half too low.
"""

from __future__ import annotations

import argparse
import datetime
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
RECORD = SAMPLES / "against-ns3.json"
MODULES = ("applications", "internet", "point-to-point", "traffic-control", "core", "network")
# From which loss on a flow lives by timeouts, so that no model of the window applies.
MOST_LOSS_RATIO = 0.02
# With fewer a rate says little.
LEAST_LOSSES = 50
# A trial over a long path, and the seeds that it is run with.
AGAIN, SEEDS = 47, range(1, 6)
# So many losses end a trial, by the recorded run's goodput: over a long path that takes longer than its slow start is worth.
ENOUGH_LOSSES = 100


def main() -> int:
    """Compare and print; 0 where it could, 2 where something is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few trials of each")
    parser.add_argument("--seconds", type=int, default=120, help="length of ns-3's tests, at least")
    parser.add_argument("--write", action="store_true", help=f"keep it in {RECORD.name}")
    options = parser.parse_args()
    if options.quick:
        options.seconds = min(options.seconds, 40)
    with tempfile.TemporaryDirectory(prefix="measuretwice-ns3-") as folder:
        program = build(Path(folder))
        if program is None:
            return 2
        compared = [
            mathis(program, options.seconds, quick=options.quick),
            fifo(program, quick=options.quick),
            *red(program, quick=options.quick),
        ]
        again = with_seeds(program, SEEDS[:2] if options.quick else SEEDS)
    if options.write:
        document = {
            "begun": datetime.date.today().isoformat(),
            "ns3": version(),
            "mathis_s": options.seconds,
            "comparisons": compared,
            "seeds": again,
        }
        RECORD.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        print(f"written to {RECORD.relative_to(ROOT)}")
    return 0


def version() -> str:
    """Return ns-3's version, as pkg-config has it."""
    command = ["pkg-config", "--modversion", "ns3-core"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def show(what: str, runs: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Print one comparison, a line a value, and return it."""
    print(f"\n{what}: {runs['ns3']} runs of ns-3, {runs['virtual']} of the virtual kernel")
    for row in rows:
        print(f"   {row['name']}: ns-3 {row['ns3']:.4g}, virtual kernel {row['virtual']:.4g}, ratio {row['ratio']:.3f}")  # fmt: skip
    return {"what": what, "runs": runs, "rows": list(rows)}


def row_of(name: str, theirs: Sequence[float], ours: Sequence[float]) -> dict[str, Any]:
    """Return the means of a value on both, and ns-3's over the virtual kernel's."""
    ns3, virtual = statistics.fmean(theirs), statistics.fmean(ours)
    return {"name": name, "ns3": ns3, "virtual": virtual, "ratio": ns3 / virtual}


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


def mathis(program: Path, seconds: int, *, quick: bool) -> dict[str, Any]:
    """Compare the sixty trials, as far as they have losses enough."""
    runs = [run for run in recorded("01-mathis/step-8-long") if run["params"]["loss_ratio"] <= MOST_LOSS_RATIO]  # fmt: skip
    pairs: list[tuple[float, float, float, float]] = []
    trials = []
    for run in runs[:6] if quick else runs:
        params: Mapping[str, Any] = run["params"]
        segments = ENOUGH_LOSSES / params["loss_ratio"]
        enough_s = segments * 8 * params["mss_bytes"] / run["measured"]["goodput_bps"]
        found = _over_path(program, params, max(seconds, math.ceil(enough_s)))
        ratio = found["goodput_bps"] / run["measured"]["goodput_bps"]
        print(
            f"   trial {run['trial']}: ratio {ratio:.3f}, {found['drops']:.0f} losses", flush=True
        )
        if found["drops"] < LEAST_LOSSES:
            continue
        trials.append({"trial": run["trial"], "rtt_ms": params["rtt_ms"], "ratio": round(ratio, 3), "losses": round(found["drops"])})  # fmt: skip
        by_halvings = _constant(found, params["mss_bytes"], found["halvings"])
        pairs.append((params["loss_ratio"], found["goodput_bps"], run["measured"]["goodput_bps"], by_halvings))  # fmt: skip
    rows = []
    for low, high in ((0, 1e-3), (1e-3, 5e-3), (5e-3, 1)):
        part = [pair for pair in pairs if low <= pair[0] < high]
        if part:
            ns3, virtual, c = (statistics.geometric_mean(pair[n] for pair in part) for n in (1, 2, 3))  # fmt: skip
            called = f"goodput (Mbit/s), {low:g} ≤ p < {high:g}, {len(part)} trials"
            rows.append(
                {"name": called, "trials": len(part), "least_p": low, "most_p": high, "ns3": ns3 / 1e6,
                 "virtual": virtual / 1e6, "ratio": ns3 / virtual, "ns3_c_by_halvings": c}
            )  # fmt: skip
    return {
        **show("losses at random", {"ns3": len(pairs), "virtual": len(pairs)}, rows),
        "trials": trials,
    }


def _over_path(program: Path, params: Mapping[str, Any], duration_s: int, seed: int = 1) -> dict[str, float]:  # fmt: skip
    """Simulate a trial of lab 01."""
    return simulate(
        program,
        rtt_ms=params["rtt_ms"], mss_bytes=params["mss_bytes"], loss_ratio=params["loss_ratio"],
        rate_mbit=params["rate_mbit"], send_buffer_bytes=params["wmem_max_bytes"],
        duration_s=duration_s, seed=seed,
    )  # fmt: skip


def with_seeds(program: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """Run one trial as long as the virtual kernel did, with several seeds: goodput over the virtual kernel's."""
    run = next(run for run in recorded("01-mathis/step-8-long") if run["trial"] == AGAIN)
    params = run["params"]
    ratios = []
    for seed in seeds:
        found = _over_path(program, params, params["duration_s"], seed)
        ratios.append(round(found["goodput_bps"] / run["measured"]["goodput_bps"], 3))
    print(f"\ntrial {AGAIN}, {params['rtt_ms']:g} ms, ns-3's seeds {seeds[0]} to {seeds[-1]}: ratios {', '.join(map(str, ratios))}")  # fmt: skip
    return {"trial": AGAIN, "rtt_ms": params["rtt_ms"], "duration_s": params["duration_s"], "ratios": ratios}  # fmt: skip


def _constant(found: Mapping[str, float], mss_bytes: int, losses: float) -> float:
    """Return C of the Mathis model for so many losses."""
    p = losses / found["segments"]
    return found["goodput_bps"] * found["rtt_mean_ms"] / 1e3 * math.sqrt(p) / (8 * mss_bytes)


def fifo(program: Path, *, quick: bool) -> dict[str, Any]:
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
    flows = params["flows"]
    constants = [
        _constant({**one, "goodput_bps": one["goodput_bps"] / flows}, 1448, one["halvings"])
        for one in found
    ]
    ours = {name: [run["measured"][name] for run in runs] for name in ("drops_per_halving", "c_by_halvings", "rtt_mean_ms")}  # fmt: skip
    rows = [
        row_of("drops for each halving", [one["drops"] / one["halvings"] for one in found], ours["drops_per_halving"]),
        row_of("C by halvings", constants, ours["c_by_halvings"]),
        row_of("mean round trip (ms)", [one["rtt_mean_ms"] for one in found], ours["rtt_mean_ms"]),
    ]  # fmt: skip
    return show("ten flows of Reno before a FIFO", {"ns3": len(found), "virtual": len(runs)}, rows)


def red(program: Path, *, quick: bool) -> list[dict[str, Any]]:
    """Compare RED, and a FIFO, before two flows each."""
    compared = []
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
        rows = [
            row_of(
                name,
                [one[theirs] / unit for one in found],
                [run["measured"][theirs] / unit for run in of_kind],
            )
            for name, theirs, unit in (
                ("mean queue (kB)", "queue_mean_bytes", 1e3),
                ("goodput (Mbit/s)", "goodput_bps", 1e6),
            )
        ]
        what = f"two flows of {params['congestion_control']} before {discipline}"
        compared.append(show(what, {"ns3": len(found), "virtual": len(of_kind)}, rows))
    return compared


if __name__ == "__main__":
    sys.exit(main())
