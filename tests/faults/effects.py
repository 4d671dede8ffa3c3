"""Of faults in node scripts: which changed a result, and were they named? And are honest runs with odd settings blamed?

    make checker-faults ARGS=--scripts      all of script_kinds once, and the honest runs of their settings beside them
    make checker-faults ARGS=--swaps        files of another run, one by one
    make checker-faults ARGS='--odd 500'    so many honest runs, each with legal settings of its own

A fault changed a result where goodput, delay or loss is by more than a twentieth outside of all honest runs of the same
settings. Of those none may be silent.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confusion import FaultTable, record
from script_kinds import BASES, SCRIPTS
from swapped_kinds import PAIRS, swapped

from faults import Fault, FaultyRun, Kind, faulty_runs, findings, judged, measured
from measuretwice.lab import Lab, Value, with_unlisted

# So many honest runs say what chance does to each of the settings.
HONEST_EACH = 4
OUTSIDE_RATIO = 0.05
# Counts of losses are chance's: so many standard deviations more.
CHANCE = 3.0
RATES = (
    "goodput_bps",
    "rtt_mean_ms",
    "queue_delay_mean_ms",
    "busy_ping_mean_ms",
    "ping_rtt_min_ms",
    "s1_share",
    # Those who wait in a full home.
    "laptop_goodput_bps",
    "server_goodput_bps",
    "busy_ping_p99_ms",
    "phone_delay_mean_ms",
    "server_delay_mean_ms",
    "phone_late_ratio",
    "server_late_ratio",
    "phone_transfer_p50_ms",
)
COUNTS = ("retransmits", "queue_drops", "queue_marks")
WORDS = ("named", "unspecific", "wrong", "silent")
UNSPECIFIC = frozenset({"unexplained", "refused"})
# What is said of a test that is too short for its settings blames nobody: it is.
TOO_SHORT = frozenset({"duration", "ten-seconds"})
# What the tables of other faults call it.
VERDICTS = {"named": "right", "unspecific": "said", "wrong": "said", "silent": "silent"}


def changed(
    values: Mapping[str, Any],
    honest: Sequence[Mapping[str, Any]],
    names: Sequence[str] = (*RATES, *COUNTS),
) -> str:
    """Return which result a fault changed, and to what; nothing where it changed none."""
    for name in names:
        others = [other[name] for other in honest if isinstance(other.get(name), int | float)]
        value = values.get(name)
        if not others:
            continue
        if not isinstance(value, int | float):
            return f"{name} gone"
        low, high = min(others), max(others)
        counted = name in COUNTS or all(isinstance(other, int) for other in others)
        slack = CHANCE * max(high, 1) ** 0.5 if counted else max(0.001 * abs(high), 0.001)
        if value < (1 - OUTSIDE_RATIO) * low - slack or value > (1 + OUTSIDE_RATIO) * high + slack:
            return f"{name} {value:.4g} for {low:.4g} to {high:.4g}"
    return ""


def outcome(kind: Kind, told: Sequence[str]) -> str:
    """Return one of WORDS."""
    names = {*told} - ({"duration"} - kind.causes)
    if names & kind.causes:
        return "named"
    if not names:
        return "silent"
    return "unspecific" if names <= UNSPECIFIC else "wrong"


@dataclass
class Effects:
    """What came of each fault: of those that changed a result, and of the others."""

    changing: Counter[str] = field(default_factory=Counter)
    harmless: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    table: FaultTable = field(default_factory=FaultTable)

    def add(self, name: str, word: str, effect: str, told: Sequence[str]) -> None:
        """Count one run of a kind's, and print what came of it."""
        (self.changing if effect else self.harmless)[word] += 1
        if effect:
            self.table.add(name.rsplit(" ", 1)[0], VERDICTS[word], told)
        line = f"{word:10} {name:44} {effect or '-':60} {', '.join(told) or 'nothing'}"
        self.lines.append(line)
        print(line, flush=True)

    def __str__(self) -> str:
        def row(title: str, counts: Counter[str]) -> str:
            return f"{title:30} {counts.total():5} " + " ".join(f"{counts[word]:>10}" for word in WORDS)  # fmt: skip

        head = f"{'':30} {'runs':>5} " + " ".join(f"{word:>10}" for word in WORDS)
        rows = [row("changed the result", self.changing), row("changed nothing by 5 %", self.harmless)]  # fmt: skip
        return "\n".join([*self.lines, "", head, *rows])


def honest_kinds(bases: Sequence[str]) -> list[Kind]:
    """Return honest runs of each of these settings, as kinds without a fault."""
    return [
        Kind(f"honest {base}", frozenset(), lambda lab, params, chance: Fault(), (lab,), settings=(trial, changes))
        for base, (lab, trial, changes) in BASES.items()
        if base in bases
    ]  # fmt: skip


def values_of(run: FaultyRun) -> Mapping[str, Any]:
    """Return what a run measured; nothing where it failed."""
    path = run.job.folder / "result.json"
    return with_unlisted(json.loads(path.read_text()))["measured"] if path.exists() else {}


def prove_effects(
    keep: Path,
    seed: int,
    workers: int,
    only: Sequence[str] = (),
    bases: Sequence[str] = tuple(BASES),
    times: int = 1,
) -> tuple[Effects, list[str]]:
    """Run every fault so many times, and the honest runs beside them; return what came of it, and which honest ones were blamed."""
    kinds = [
        kind
        for kind in SCRIPTS
        if not only or kind.name in only or kind.name.rsplit(" ", 1)[0] in only
    ]
    settings = {kind.name.split()[-1] for kind in kinds}
    honest: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    blamed = []
    beside = honest_kinds([base for base in bases if base in settings])
    for run in measured(faulty_runs(beside, HONEST_EACH, 0, keep, seed), workers):
        honest[run.name.split()[-1]].append(values_of(run))
        if told := [name for name in findings(run) if name != "duration"]:
            blamed.append(f"{', '.join(told)}: {run.words}")
    effects = Effects()
    drawn = [run for n in range(times) for run in faulty_runs(kinds, 1, 0, keep, seed + n)]
    for run in measured(drawn, workers, strict=False):
        assert run.kind is not None
        told = findings(run)
        effect = (
            "ended early"
            if run.failed.exists()
            else changed(values_of(run), honest[run.name.split()[-1]])
        )
        if run.fault.damage:
            with tempfile.TemporaryDirectory(prefix="measuretwice-damaged-") as place:
                folder = Path(place) / run.job.folder.name
                shutil.copytree(run.job.folder, folder)
                run.fault.damage(folder, run.twin.folder if run.twin else folder)
                _, now = judged(run, folder)
            own = {name: value for name, value in values_of(run).items() if name in now}
            effect = changed(now, [own], sorted(own)) if now else "no figure left"
        effects.add(run.name, outcome(run.kind, told), effect, told)
    return effects, blamed


# --- files of other runs ---


def prove_swaps(keep: Path, seed: int, workers: int, bases: Sequence[str] = ()) -> Effects:
    """Put each kind of file of another run in place of one node's; return what came of it. A figure is changed where any
    measured value is by more than a twentieth."""
    effects = Effects()
    pairs = {kind.name: (kind, names) for kind, names in PAIRS}
    kinds = [kind for kind, _ in PAIRS if not bases or kind.name.split()[-1] in bases]
    for run in measured(faulty_runs(kinds, 1, 0, keep, seed), workers):
        assert run.twin is not None
        kind, names = pairs[run.name]
        known, values = judged(run, run.job.folder)
        for name in names:
            damage = swapped(name, random.Random(f"{seed} {run.name} {name}").random())
            with tempfile.TemporaryDirectory(prefix="measuretwice-swapped-") as place:
                folder = Path(place) / run.job.folder.name
                shutil.copytree(run.job.folder, folder)
                node = damage(folder, run.twin.folder)
                if not node:
                    continue
                told, now = judged(run, folder)
            told = [finding for finding in told if finding not in known]
            effect = changed(now, [values], sorted(values)) if now else "no figure left"
            which, base = run.name.rsplit(" ", 1)
            effects.add(f"{name} {which} {base}", outcome(kind, told), effect, told)
    return effects


# --- honest runs with odd settings ---

# What may be drawn of each lab's settings: legal, and of a few seconds' work.
LEGAL: Mapping[str, Mapping[str, tuple[float, float] | tuple[str, ...]]] = {
    "calibrate": {"rtt_ms": (0, 60), "rate_mbit": (5, 60), "loss_ratio": (0, 0.2), "ping_count": (50, 1500), "duration_s": (2, 15), "ping_bytes": (16, 1472), "cable_mbit": (0, 400), "processing_us": (0, 600)},
    "mathis": {"rtt_ms": (0.5, 60), "loss_ratio": (0.002, 0.04), "mss_bytes": (88, 1460), "duration_s": (5, 90), "cable_mbit": (100, 1000), "processing_us": (0, 400), "ping_count": (3, 30)},
    "buffers": {"rate_mbit": (5, 40), "buffer_bytes": (15140, 500000), "first_delay_ms": (0, 100), "second_delay_ms": (0, 60), "back_delay_ms": (0, 40), "duration_s": (8, 40), "congestion_control": ("reno", "cubic", "highspeed", "bbr", "vegas", "westwood"), "cable_mbit": (100, 1000), "wmem_max_bytes": (65536, 4194304)},
    "variants": {"rate_mbit": (8, 40), "buffer_bytes": (15140, 400000), "wire_rtt_ms": (5, 120), "duration_s": (14, 30), "average_from_s": (5, 10), "congestion_control": ("reno", "cubic", "bbr", "vegas")},
    "queues": {"rate_mbit": (10, 60), "rtt_ms": (0, 60), "duration_s": (3, 8), "receiver": ("host-3", "host-4")},
    "scale": {"rate_mbit": (10, 30), "rtt_ms": (5, 60), "duration_s": (15, 30), "start_spread_ms": (0, 2000)},
    "latency": {"rtt_ms": (5, 100), "router_up_mbit": (4, 9.5), "router_down_mbit": (20, 47.5), "fifo_bytes": (60000, 600000), "isp_fifo_bytes": (100000, 2000000), "up_flows": (1, 8), "down_flows": (0, 8), "call_bytes": (16, 1000), "call_interval_ms": (5, 200), "deadline_ms": (20, 200), "page_bytes": (1000, 300000), "page_pause_ms": (50, 4000), "ping_interval_s": (0.01, 0.5), "ping_count": (3, 30), "congestion_control": ("reno", "cubic"), "cable_mbit": (100, 1000), "processing_us": (0, 400), "duration_s": (4, 12), "warmup_s": (0, 2)},
}  # fmt: skip
SMALL: Mapping[str, Mapping[str, Value]] = {
    "calibrate": {}, "mathis": {"duration_s": 40}, "queues": {"rate_mbit": 40, "duration_s": 5},
    "buffers": {"rate_mbit": 20, "buffer_bytes": 250000, "duration_s": 20},
    "variants": {"rate_mbit": 20, "buffer_bytes": 100000, "duration_s": 20, "average_from_s": 8},
    "scale": {"rate_mbit": 15, "buffer_bytes": 400000, "duration_s": 20, "warmup_s": 4, "start_spread_ms": 500},
    "latency": {"duration_s": 6},
}  # fmt: skip
MOST_DRAWN = 4


def odd(lab: Lab, chance: random.Random) -> tuple[int, dict[str, Value]]:
    """Return a trial of a lab's with up to four settings that are odd but legal."""
    legal = LEGAL[lab.name]
    changes = dict(SMALL[lab.name])
    for name in chance.sample(sorted(legal), chance.randint(1, MOST_DRAWN)):
        span = legal[name]
        if isinstance(span[0], str):
            changes[name] = chance.choice(span)
            continue
        low, high = span
        value = chance.uniform(low, float(high))
        changes[name] = round(value) if lab.file.parameters[name].integer else float(f"{value:.3g}")
    # Of lab 01 the MTU follows the segment, and of lab 04 the average the length, as its help says.
    trials = sorted(set(lab.trials) & {*range(1, 9), 21, 41, 42, 43, 44, 45})
    # What is drawn of lab 06 is about a full home.
    few = {"scale": [1, 2, 4], "latency": [*range(1, 7)]}
    trial = chance.choice(few.get(lab.name, trials))
    for name, value in changes.items():
        lab.read_value(name, value, lab.name)
    return trial, changes


def prove_odd(count: int, keep: Path, seed: int, workers: int) -> tuple[FaultTable, list[str]]:
    """Run honest runs with odd settings; return what was said of each, by lab, and those that were blamed, in words."""
    blamed = []
    table = FaultTable()
    for done, run in enumerate(measured(faulty_runs([], 1, count, keep, seed, odd), workers), 1):
        told = findings(run)
        blaming = [name for name in told if name not in TOO_SHORT]
        table.add(run.lab.name, "blamed" if blaming else "honest", told)
        if blaming:
            blamed.append(
                f"{', '.join(blaming)}: trial {run.job.plan.trial}, seed {run.job.plan.seed}, {run.job.out.name}: {run.words}"
            )
            print(f"blamed: {blamed[-1]}", flush=True)
        if done % 20 == 0:
            print(f"{done} of {count} honest runs, {len(blamed)} blamed", flush=True)
    return table, blamed


def prove_all(chosen: argparse.Namespace) -> int:
    """Run what the command line asks for, print and keep it; return 1 where a fault was silent or an honest run blamed."""
    tables: dict[str, FaultTable] = {}
    blamed: list[str] = []
    silent = 0
    if chosen.odd:
        tables["odd"], blamed = prove_odd(chosen.odd, chosen.keep, chosen.seed, chosen.workers)
    proofs = []
    if chosen.scripts:
        effects, more = prove_effects(
            chosen.keep, chosen.seed, chosen.workers, chosen.kind, times=chosen.times or 1
        )
        blamed += more
        proofs.append(("scripts", effects))
    if chosen.swaps:
        proofs.append(("swaps", prove_swaps(chosen.keep, chosen.seed, chosen.workers)))
    for group, effects in proofs:
        print(effects)
        tables[group] = effects.table
        silent += effects.changing["silent"]
    print("\n".join(f"blamed: {line}" for line in blamed))
    if chosen.record:
        record(chosen.record, tables, {}, some_kinds=bool(chosen.kind))
    return 1 if blamed or silent else 0
