"""What becomes of a sweep that everything goes wrong with: kills, full disks, hanging tools, load.

    make torture                                  all of it: about half an hour on two free CPUs
    make torture ARGS='--kills 20'                fewer kills
    make torture ARGS='--only disk'               what has this word in its name
    make torture ARGS='--record'                  ... and keep the figures for the site

Each case ends with the same sweep, finished by the same command as always, and its table held
against that of a sweep which nothing happened to: plans, results and raw files, byte for byte.
Exit 1 where one differs, where a process stays, or where a message is no single clear line.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from command_line import ROOT, run_program
from processes import command_lines

RECORD = ROOT / "sample-data" / "reliability.json"
SWEEP = ("mathis", "--trials", "5,17,21,33,54,60", "--duration", "5")
RESUMES = 4
# What may differ between two runs with the same result.
LEFT_OUT = {"provenance.json", "experiment.log", "console.txt"}

# Takes memory in small pieces, as programs do.
HOG = "  awk 'BEGIN { for (n = 0; n < 1e9; n++) x[n] = n }'\n"

Table = dict[str, str]


@dataclass
class Case:
    """What was done, how often, how often all came out as it should, and what was said."""

    name: str
    what: str
    times: int = 0
    good: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, problems: list[str]) -> None:
        self.times += 1
        self.good += not problems
        self.messages += [problem for problem in problems if problem not in self.messages]


class Bench:
    """A folder for everything, and the table that every sweep must come to."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.number = 0
        self.reference: Table = {}

    def out(self) -> Path:
        self.number += 1
        return self.folder / f"out-{self.number}"

    def measure_reference(self) -> float:
        """Run the sweep undisturbed; returns its seconds."""
        out, began = self.out(), time.monotonic()
        done = finish(start(out))
        assert done.status == 0, done.errors
        self.reference = table(out)
        assert self.reference
        return time.monotonic() - began

    def resumed(self, out: Path, *options: str) -> list[str]:
        """Go on with a sweep by the same command until it is done; what was wrong, in words."""
        problems: list[str] = []
        for _ in range(RESUMES):
            done = finish(start(out, *options))
            problems += [f"resumed: {word}" for word in done.odd()]
            if done.status == 0:
                break
        else:
            problems.append(f"never finished: {done.last_line()}")
        if table(out) != self.reference:
            problems.append("another table")
        return problems + left_behind(out)


@dataclass
class Done:
    status: int
    errors: str

    def last_line(self) -> str:
        return (self.errors.strip().splitlines() or ["nothing said"])[-1]

    def odd(self) -> list[str]:
        return ["a traceback"] if "Traceback" in self.errors else []


def start(
    out: Path, *options: str, root: Path = ROOT, sweep: tuple[str, ...] = SWEEP
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "measuretwice", "run", *sweep, "--out", str(out), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MEASURETWICE_ROOT": str(root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> Done:
    _, errors = process.communicate(timeout=600)
    return Done(process.returncode, errors)


def table(out: Path) -> Table:
    """The SHA-256 of every file of every finished run, but for those that say when and where."""
    found = {}
    for path in sorted(out.glob("mathis/trial-*/**/*")):
        if path.is_file() and path.name not in LEFT_OUT:
            found[str(path.relative_to(out))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def working_for(out: Path) -> dict[int, str]:
    """The processes whose command line names this folder."""
    return {
        pid: line
        for pid, line in command_lines().items()
        if pid != os.getpid() and (f"{out}/" in line or f"{out} " in line)
    }


def left_behind(out: Path) -> list[str]:
    """Processes and half-done folders that stay, in words."""
    until = time.monotonic() + 15
    while (running := working_for(out)) and time.monotonic() < until:
        time.sleep(0.05)
    problems = [f"left running: {line[:60]}" for line in running.values()]
    hidden = [path.name for path in out.glob("mathis/.*")]
    return problems + [f"left behind: {name}" for name in hidden]


# What is killed, by the word that is drawn; at the last moments the sweep may have finished.
HIT = {
    "sweep": "of the sweep", "worker": "of a worker", "kernel": "of a kernel", "all": "of all these", "Ctrl-C": "by Ctrl-C",
    "nobody": "too late",
}  # fmt: skip


def kill_at_random(bench: Bench, kills: int, sweep_s: float) -> Case:
    """Somewhere between the first and the last moment; the sweep, a worker, a kernel, or all."""
    case = Case("kills", f"kills at random moments of a sweep of {len(SWEEP[2].split(','))} trials")
    hit: Counter[str] = Counter()
    for number in range(kills):
        out = bench.out()
        process = start(out)
        # Not waited for exactly: any moment will do.
        time.sleep(bench.random.uniform(0.3, sweep_s))
        whom = bench.random.choice(("sweep", "worker", "kernel", "Ctrl-C", "all"))
        hit[whom if process.poll() is None else "nobody"] += 1
        _kill(whom, process, out, bench.random)
        done = finish(process)
        case.add(done.odd() + bench.resumed(out))
        shutil.rmtree(out, ignore_errors=True)
        _tell(f"{number + 1} of {kills} kills, {case.good} resumed to the same table")
    case.what += (
        f" ({', '.join(f'{hit[who]} {called}' for who, called in HIT.items() if hit[who])})"
    )
    return case


def _kill(whom: str, process: subprocess.Popen[str], out: Path, chance: random.Random) -> None:
    others = {pid: line for pid, line in working_for(out).items() if pid != process.pid}
    kernels = sorted(pid for pid, line in others.items() if "MT_FOLDER" in line)
    workers = sorted(pid for pid, line in others.items() if "measuretwice" in line)
    victims = {"kernel": kernels, "worker": workers}.get(whom, [process.pid])
    chosen = [chance.choice(victims)] if victims else [process.pid]
    if whom == "all":
        chosen = [process.pid, *workers, *kernels]
    for pid in chosen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT if whom == "Ctrl-C" else signal.SIGKILL)


def refused(name: str, what: str, done: Done, words: str, out: Path) -> Case:
    """A case that must end with one line that says `words`."""
    case = Case(name, what)
    line = done.last_line()
    problems = done.odd() + [p for p in left_behind(out) if "running" in p]
    if done.status == 0 or not line.startswith("lab: ") or words not in line:
        problems.append(f"said: {line}")
    case.add(problems)
    if not problems:
        case.messages.append(line.replace(str(out), "OUT"))
    return case


def disk_full(bench: Bench) -> Case:
    """A small disk, in a mount namespace of its own, filled while trials run."""
    place = bench.out()
    place.mkdir()
    script = """
        mount -t tmpfs -o size=53m small "$1" || exit 9
        "$2" -P -m measuretwice run "${@:3}" --out "$1/runs" --jobs 1 &
        until ls "$1"/runs/mathis/.*.work/raw/romeo/ping.txt >/dev/null 2>&1; do
          kill -0 $! || exit 3
          sleep 0.05
        done
        dd if=/dev/zero of="$1/fill" bs=64k 2>/dev/null
        wait $!
        echo "status $?" >"$1.status"
        rm "$1/fill"
        "$2" -P -m measuretwice run "${@:3}" --out "$1/runs" --jobs 1 2>/dev/null
        cp -r "$1/runs" "$1.runs"
    """
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ("bash", "-c", script, "bash", place, sys.executable, *SWEEP)
    done = run_program("unshare", *as_root, "--mount", *words)
    case = refused(
        "disk", "disk full in the middle; then room again", Done(1, done.stderr), "is full", place
    )
    if case.good and table(Path(f"{place}.runs")) != bench.reference:
        case.good, case.messages = 0, ["another table when there was room again"]
    return case


def unwritable(bench: Bench) -> Case:
    """A file where the folder should be: not even root can write into that."""
    out = bench.out()
    out.write_text("")
    return refused(
        "unwritable", "a folder that can't be written to", finish(start(out)), "--out", out
    )


# What else can go wrong in a trial: its name, what was done, the words of the line that says so, the script of a node
# that is changed and how; further options.
STAGED = (
    ("memory", "a program that eats the virtual kernel's memory", "memory had run out",
     "romeo.sh", "  iperf3 -c", HOG + "  iperf3 -c"),
    ("hang", "an iperf3 that hangs", "not finished after 8 s",
     "romeo.sh", "  iperf3 -c", "  kill -STOP $BASHPID\n  iperf3 -c", "--wall-limit", "8"),
    ("node", "a node that dies in the middle of a test", "step",
     "juliet.sh", "  serve_to_the_end",
     '  servers_ready\n  pause 2\n  ip link set eth0 down\n  kill -KILL "${server_pids[@]}"\n'
     '  wait "${server_pids[@]}"'),
)  # fmt: skip


def staged(
    bench: Bench, name: str, what: str, words: str, script: str, old: str, new: str, *options: str
) -> Case:
    """Run one trial of a copy of the kit with one node's script changed."""
    kit, out = bench.out(), bench.out()
    for folder in ("labs", "scripts"):
        shutil.copytree(ROOT / folder, kit / folder)
    path = kit / "labs/01-mathis/nodes" / script
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = finish(start(out, *options, root=kit, sweep=(*SWEEP[:2], "5", *SWEEP[3:])))
    return refused(name, what, done, words, out)


@contextlib.contextmanager
def load(folder: Path) -> Iterator[None]:
    """All CPUs busy twice over, and the disk written to and synced."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    writes = f"while :; do dd if=/dev/zero of='{folder}/load' bs=1M count=64 conv=fsync; done"
    busy.append(
        subprocess.Popen(["bash", "-c", writes], stderr=subprocess.DEVNULL, start_new_session=True)
    )
    try:
        yield
    finally:
        for process in busy[:-1]:
            process.kill()
        os.killpg(busy[-1].pid, signal.SIGKILL)
        for process in busy:
            process.wait()
        (folder / "load").unlink(missing_ok=True)


def under_load(bench: Bench) -> Case:
    case = Case("load", "a sweep with every CPU and the disk busy")
    with load(bench.folder):
        case.add(bench.resumed(bench.out()))
    return case


def two_at_once(bench: Bench) -> Case:
    """Side by side in two folders, then in one: each takes what the other one measures."""
    case = Case("two", "two sweeps at once, in two folders and in one")
    first, second, both = bench.out(), bench.out(), bench.out()
    running = [start(out) for out in (first, second)]
    for process, out in zip(running, (first, second), strict=True):
        done = finish(process)
        same = [] if table(out) == bench.reference else ["another table"]
        case.add(done.odd() + same + ([] if done.status == 0 else [done.last_line()]))
    for done in [finish(process) for process in [start(both), start(both)]]:
        case.add(done.odd() + ([] if done.status == 0 else [done.last_line()]))
    case.add(bench.resumed(both))
    return case


def _tell(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--kills", type=int, default=200, help="how often to kill (200)")
    options.add_argument("--only", default="", help="cases with this word in their name")
    options.add_argument("--seed", type=int, default=1, help="of whom to kill, and when")
    options.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    chosen = options.parse_args()
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="measuretwice-torture-") as folder:
        bench = Bench(Path(folder), chosen.seed)
        sweep_s = bench.measure_reference()
        print(f"an undisturbed sweep takes {sweep_s:.1f} s", flush=True)
        every: dict[str, Callable[[], Case]] = {
            "kills": lambda: kill_at_random(bench, chosen.kills, sweep_s),
            "disk": lambda: disk_full(bench),
            "unwritable": lambda: unwritable(bench),
            **{case[0]: functools.partial(staged, bench, *case) for case in STAGED},
            "load": lambda: under_load(bench),
            "two": lambda: two_at_once(bench),
        }
        for name, run in every.items():
            if chosen.only in name:
                cases.append(case := run())
                _tell("")
                print(
                    f"{case.name}: {case.what}: {case.good} of {case.times} as it should be",
                    flush=True,
                )
                for line in case.messages:
                    print(f"    {line}", flush=True)
    if chosen.record:
        recorded = {case.name: asdict(case) for case in cases}
        if chosen.only and RECORD.exists():  # the others stay as they were recorded
            before = json.loads(RECORD.read_text(encoding="utf-8"))["cases"]
            recorded = {case["name"]: case for case in before} | recorded
        about = {
            "recorded": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
            "machine": {"architecture": platform.machine(), "cpus": len(os.sched_getaffinity(0))},
            "sweep": ["./lab", "run", *SWEEP],
            "seed": chosen.seed,
            "cases": list(recorded.values()),
        }
        RECORD.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0 if all(case.good == case.times for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
