"""The browser's machine beside the virtual kernel: the same trials with the same seeds on both, and their goodputs.

    make both-machines                        thirty trials of each lab on each: half an hour of two free CPUs
    make both-machines ARGS='--lab mathis'    one lab; --duration 2 where a second carries much, --set warmup_s=4
                                              where a lab's own value leaves no time
    make both-machines ARGS='--lab variants --repeat 4'    each trial with so many seeds, for a narrower interval
    make both-machines ARGS='--lab variants --trials 5-7 --seed 3 --repeat 20'    what looked odd, with new seeds
    make both-machines ARGS='--record'        ... and keep the figures for the site

Broken off, it goes on where it was: its runs are kept in runs/both-machines/.
The two make other bytes of one seed: chance falls otherwise. So what is compared is the mean of the logarithms of the
ratios, with its interval. Exit 1 where an interval doesn't hold 1. Trials of a lab that were chosen because of what they
had shown are kept beside that lab's row, as `again`: seeds that nobody had looked at say whether it was chance.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuretwice.backends.browser import too_much
from measuretwice.base.files import read_object, write_json
from measuretwice.lab import Lab, published_labs
from measuretwice.stats.intervals import mean_interval

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "sample-data" / "browsers-machine.json"
# Half an hour's work may be broken off: what is measured already isn't measured again.
KEPT = ROOT / "runs" / "both-machines"
RUNS = 30
# A browser's second is long: these are enough for thousands of packets.
DURATION_S = 10


def measured(
    lab: str, trials: str, seeds: range, duration_s: int, changes: list[str], where: str, out: Path
) -> dict[tuple[int, int], float]:
    """Goodputs by trial and seed."""
    command = [
        "./lab", "run", lab, "--trials", trials, "--duration", str(duration_s),
        "--seed", str(seeds.start), "--repeat", str(len(seeds)),
        *(word for change in changes for word in ("--set", change)),
        "--on", where, "--out", str(out), "--json",
    ]  # fmt: skip
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGINT))
    output, _ = child.communicate()
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit {child.returncode}")
    return {
        (run["trial"], run["seed"]): run["measured"]["goodput_bps"]
        for run in json.loads(output)
        if run["measured"].get("goodput_bps")
    }


def chosen(lab: Lab, repeat: int | None) -> tuple[str, int]:
    """Trials spread over all that both can run, and how often each, so that there are thirty runs if nobody says."""
    numbers = [
        number
        for number, trial in sorted(lab.trials.items())
        if not too_much(lab, {**lab.defaults(), **trial.set})
    ]
    some = numbers[:: max(1, len(numbers) // RUNS)][:RUNS]
    return ",".join(map(str, some)), math.ceil(RUNS / len(some)) if repeat is None else repeat


def compared(
    lab: Lab, trials: str, seeds: range, duration_s: int, changes: list[str]
) -> dict[str, Any]:
    virtual, browser = (
        measured(lab.name, trials, seeds, duration_s, changes, where, KEPT / where)
        for where in ("virtual", "browser")
    )
    pairs = [
        {
            "trial": trial, "seed": seed,
            "virtual_bps": round(virtual[trial, seed]), "browser_bps": round(browser[trial, seed]),
        }
        for trial, seed in sorted(virtual.keys() & browser.keys())
    ]  # fmt: skip
    ratios = [math.log(pair["browser_bps"] / pair["virtual_bps"]) for pair in pairs]
    mean, low, high = mean_interval(ratios)
    print(
        f"{lab.name}: {len(pairs)} runs, goodput {math.exp(mean):.3f} times the virtual kernel's "
        f"({math.exp(low):.3f} to {math.exp(high):.3f})",
        flush=True,
    )
    return {
        "duration_s": duration_s,
        "changes": changes,
        "ratio": round(math.exp(mean), 4),
        "low": round(math.exp(low), 4),
        "high": round(math.exp(high), 4),
        "pairs": pairs,
    }


def main() -> int:
    labs = published_labs(ROOT)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lab", action="append", choices=labs, help="only this lab")
    parser.add_argument("--duration", type=int, default=DURATION_S, help="of each run, in seconds")
    parser.add_argument("--set", action="append", default=[], help="as of ./lab run")
    parser.add_argument("--trials", help="these trials of one lab, as of ./lab run")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--repeat", type=int, help="seeds for each trial")
    parser.add_argument("--record", action="store_true", help="keep the figures for the site")
    options = parser.parse_args()
    try:
        record = read_object(RECORD) if RECORD.is_file() else {}
    except (OSError, ValueError, TypeError) as error:
        parser.error(f"{RECORD}: {error}; take it from git again")
    if options.trials and len(options.lab or ()) != 1:
        parser.error("--trials are of one lab: name it with --lab")
    if options.trials and options.lab[0] not in record:
        parser.error(f"measure {options.lab[0]} whole first, without --trials and with --record")
    rows = []
    for name, lab in labs.items():
        if options.lab and name not in options.lab:
            continue
        trials, repeat = (
            (options.trials, 1 if options.repeat is None else options.repeat)
            if options.trials
            else chosen(lab, options.repeat)
        )
        seeds = range(options.seed, options.seed + repeat)
        row = compared(lab, trials, seeds, options.duration, options.set)
        if options.trials:
            record[name]["again"] = {"trials": trials, **row}
        else:
            record[name] = row
        rows.append(row)
        if options.record:
            write_json(RECORD, record)
    return 0 if all(float(row["low"]) <= 1 <= float(row["high"]) for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here")
