"""Count in trials how often each branch of the browser's kernel is taken, and keep it as scripts/browser/profile.tar.xz.

    make browser-profile                  a quarter of an hour: a kernel that counts is built, then trials run in node

The kernel is compiled by it (scripts/browser/build.sh, patch 0004). A profile is of one version of the source and of one of
gcc: record it anew where either is another. profile.txt says what it was recorded with and from.
"""

from __future__ import annotations

import argparse
import io
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from measuretwice.backends.browser import (  # noqa: E402
    BrowserMachine,
    given_to_guest,
    guest_words,
)
from measuretwice.base.files import read_object  # noqa: E402
from measuretwice.base.paths import BROWSER_BUILDER, BROWSER_RUNNER  # noqa: E402
from measuretwice.lab import KernelFacts, Toolchain, load_lab, make_plan  # noqa: E402

OUT = ROOT / "scripts/browser"
# Lab, trial, seconds: what most packets pass through in one, and a share of the others' own code.
TRIALS = (("mathis", 7, 8), ("buffers", 1, 5), ("queues", 4, 4), ("variants", 6, 4))
# The i686 kernel's memory begins there.
KERNEL_AT = 0xC0000000
# Of https://gcc.gnu.org/ gcc/gcov-io.h, version 12: tags and lengths of a counts file, four bytes a word.
MAGIC, SUMMARY, FUNCTION, ARCS = 0x67636461, 0xA1000000, 0x01000000, 0x01A10000
COUNTERS = 8
# gcc takes for never reached what was reached in fewer than one of twenty of so many runs: less than a hundred times.
RUNS = 2000


@dataclass
class Function:
    """One function's counters; what names it to gcc are three numbers."""

    names: tuple[int, int, int]
    counts: list[int]


@dataclass
class File:
    """One source file's functions."""

    version: int
    stamp: int
    functions: list[Function]


def numbers(memory: bytes, address: int, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}I", memory, address - KERNEL_AT)


def counted(memory: bytes, start: int, end: int, top: str) -> dict[str, File]:
    """Files by their place below the source's folder `top`: struct gcov_info of kernel/gcov/gcc_4_7.c."""
    found = {}
    for place in range(start, end, 4):
        [info] = numbers(memory, place, 1)
        version, _, stamp, _, name_at = numbers(memory, info, 5)
        how_many, functions_at = numbers(memory, info + 4 * (5 + COUNTERS), 2)
        name = memory[name_at - KERNEL_AT : memory.index(b"\0", name_at - KERNEL_AT)].decode()
        functions = []
        for function in numbers(memory, functions_at, how_many):
            _, *names, count, values_at = numbers(memory, function, 6)
            values = struct.unpack_from(f"<{count}q", memory, values_at - KERNEL_AT)
            functions.append(Function((names[0], names[1], names[2]), list(values)))
        found[name.split(top)[-1]] = File(version, stamp, functions)
    return found


def as_gcc_reads(file: File, largest: int) -> bytes:
    text = struct.pack("<4I", MAGIC, file.version, file.stamp, 0)
    text += struct.pack("<4I", SUMMARY, 8, RUNS, min(largest, 2**32 - 1))
    for function in file.functions:
        counts = function.counts
        text += struct.pack("<5I", FUNCTION, 12, *function.names)
        text += struct.pack(f"<2I{len(counts)}q", ARCS, 8 * len(counts), *counts)
    return text + bytes(4)


def limits(system_map: Path) -> tuple[int, int]:
    places = {}
    for line in system_map.read_text(encoding="utf-8").splitlines():
        address, _, name = line.split()
        places[name] = int(address, 16)
    return places["__profile_start"], places["__profile_end"]


def run_trial(
    machine: BrowserMachine, name: str, trial: int, duration_s: int, option: str, file: Path
) -> None:
    """A trial of a lab in node; `option` is run.mjs', with its file."""
    toolchain = Toolchain("browser", machine.name, machine.programs, {}, None)
    lab = load_lab(ROOT, name)
    plan = make_plan(lab, trial, seed=1, toolchain=toolchain, changes={"duration_s": duration_s})
    print(f"{name}, trial {trial}, {duration_s} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="measuretwice-profile-") as work:
        for place, text in given_to_guest(lab, plan, ROOT).items():
            given = Path(work, "files", place)
            given.parent.mkdir(parents=True, exist_ok=True)
            given.write_text(text, encoding="utf-8")
        words = guest_words(lab, plan)
        subprocess.run(
            ["node", BROWSER_RUNNER, machine.folder, work, words, option, file], check=True
        )


def memories(machine: BrowserMachine) -> Iterator[tuple[bytes, bytes]]:
    """The guest's memory before and after each trial."""
    for trial in TRIALS:
        with tempfile.TemporaryDirectory(prefix="measuretwice-profile-") as work:
            kept = Path(work, "memory")
            run_trial(machine, *trial, "--memory", kept)
            before, after = (Path(f"{kept}.{when}").read_bytes() for when in ("before", "after"))
            yield before, after


def summed(machine: BrowserMachine, start: int, end: int) -> dict[str, File]:
    total: dict[str, File] = {}
    for before, after in memories(machine):
        files, begun = (counted(memory, start, end, "/source/") for memory in (after, before))
        for name, file in files.items():
            sums = total.setdefault(name, File(file.version, file.stamp, []))
            for n, function in enumerate(file.functions):
                if len(sums.functions) == n:
                    sums.functions.append(Function(function.names, [0] * len(function.counts)))
                counts = zip(function.counts, begun[name].functions[n].counts, strict=True)
                for place, (now, then) in enumerate(counts):
                    sums.functions[n].counts[place] += now - then
    return {
        name: file for name, file in total.items() if any(any(f.counts) for f in file.functions)
    }


def write(files: dict[str, File], facts: KernelFacts) -> None:
    largest = max(n for file in files.values() for f in file.functions for n in f.counts)
    with tarfile.open(OUT / "profile.tar.xz", "w:xz", preset=9) as tar:
        for name, file in sorted(files.items()):
            text = as_gcc_reads(file, largest)
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    trials = "; ".join(f"{lab} trial {trial}, {s} s" for lab, trial, s in TRIALS)
    (OUT / "profile.txt").write_text(
        "Recorded by make browser-profile: how often each branch of the kernel was taken in trials.\n"
        f"source: {facts.others['source']} {facts.others['source_version']}\n"
        f"compiler: {facts.others['compiler']}\ntrials: {trials}, seed 1\nfiles: {len(files)}\n",
        encoding="utf-8",
    )


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory(prefix="measuretwice-profile-") as out:
        machine_folder = Path(out, "machine")
        subprocess.run(["bash", BROWSER_BUILDER, "--counting", machine_folder], check=True)
        facts = KernelFacts.from_json(read_object(machine_folder / "machine.json"))
        machine = BrowserMachine(machine_folder, facts)
        write(summed(machine, *limits(machine_folder / "System.map")), facts)


if __name__ == "__main__":
    main()
