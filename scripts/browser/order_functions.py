"""Put the kernel's functions that call each other into one page each: scripts/browser/hot-functions.txt.

    make browser-order                    a quarter of an hour: a kernel is built whose functions stand in a page each,
                                          then trials run in node, and each step from one to another is counted

v86 compiles a page at a time, and to step into another page it goes back to its loop. Record it anew after
make browser-profile, which changes how long functions are.
"""

from __future__ import annotations

import argparse
import bisect
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from record_profile import OUT, TRIALS, run_trial

from measuretwice.backends.browser import BrowserMachine
from measuretwice.base.files import read_object
from measuretwice.base.paths import BROWSER_BUILDER
from measuretwice.lab import KernelFacts

# What is near the end of a page v86 doesn't compile.
ROOM = 4096 - 16
ALIGNED = 4
# Functions of this share of all steps; others are seldom reached.
SHARE = 0.99995
# Each trial counts as much as another, but for the first, which the benchmark runs.
WEIGHTS = (2, 1, 1, 1)
ROUNDS = 30

Steps = Counter[tuple[str, str]]


class Kernel:
    """Its functions by their addresses, from nm -nS; `movable` are those that a list can place, with their lengths."""

    def __init__(self, vmlinux: Path) -> None:
        lines = subprocess.run(
            ["nm", "-n", vmlinux], capture_output=True, text=True, check=True
        ).stdout
        found = [line.split() for line in lines.splitlines()]
        self.places = [int(place, 16) for place, kind, _ in found if kind in "tTwW"]
        self.names = [name for _, kind, name in found if kind in "tTwW"]
        at = {name: int(place, 16) for place, _, name in found}
        # What isn't ordinary text, as the scheduler's, stands together, wherever the list wants it.
        own = [
            (at[name], at[name.replace("_start", "_end")])
            for name in at
            if re.fullmatch(r"__(?!hot|split|unlikely)\w+text_start", name)
        ]
        lengths = subprocess.run(
            ["nm", "-S", vmlinux], capture_output=True, text=True, check=True
        ).stdout
        self.movable = {
            name: int(length, 16)
            for place, length, kind, name in (
                line.split() for line in lengths.splitlines() if line.count(" ") == 3
            )
            if kind in "tT"
            and not name.endswith(".cold")
            and not any(start <= int(place, 16) < end for start, end in own)
        }

    def name(self, address: int) -> str:
        """Nothing for a program's address, which is below the kernel's."""
        at = bisect.bisect_right(self.places, address)
        return self.names[at - 1] if at else ""

    def steps(self, file: Path) -> Steps:
        """Between functions that can be moved."""
        found: Steps = Counter()
        for line in file.read_text(encoding="utf-8").splitlines():
            before, now, count = line.split()
            pair = self.name(int(before, 16)), self.name(int(now, 16))
            if pair[0] in self.movable and pair[1] in self.movable:
                found[pair] += int(count)
        return found


class Pages:
    """Functions in pages, first those that step to each other most; then single ones move where fewer steps cross."""

    def __init__(self, lengths: dict[str, int], steps: Steps) -> None:
        self.lengths = {name: -(-length // ALIGNED) * ALIGNED for name, length in lengths.items()}
        self.near: dict[str, Counter[str]] = defaultdict(Counter)
        for (one, other), count in steps.items():
            if one != other:
                self.near[one][other] += count
                self.near[other][one] += count
        self.heat: Counter[str] = Counter()
        for (_, name), count in steps.items():
            self.heat[name] += count
        self.groups = {name: [name] for name in sorted(self.lengths)}
        self.page = {name: name for name in self.lengths}
        self.used = dict(self.lengths)

    def join(self, one: str, other: str) -> None:
        for name in self.groups[other]:
            self.page[name] = one
        self.groups[one] += self.groups.pop(other)
        self.used[one] += self.used.pop(other)

    def join_neighbours(self) -> None:
        between = {page: Counter(self.near[page]) for page in self.groups}
        while True:
            best, pair = 0.0, None
            for one, others in between.items():
                for other, count in others.items():
                    if one < other and self.used[one] + self.used[other] <= ROOM:
                        value = count / min(self.used[one], self.used[other]) ** 0.5
                        if value > best:
                            best, pair = value, (one, other)
            if pair is None:
                return
            one, other = pair
            self.join(one, other)
            for third, count in between.pop(other).items():
                between[third].pop(other, None)
                if third != one:
                    between[one][third] += count
                    between[third][one] += count

    def fill_up(self) -> None:
        """What is left goes where there is room, the hottest first."""
        heat = {page: sum(self.heat[n] for n in names) for page, names in self.groups.items()}
        kept: list[str] = []
        for page in sorted(heat, key=lambda page: (-heat[page], page)):
            for first in kept:
                if self.used[first] + self.used[page] <= ROOM:
                    self.join(first, page)
                    break
            else:
                kept.append(page)

    def pull(self, name: str) -> Counter[str]:
        """Steps between a function and each page."""
        found: Counter[str] = Counter()
        for other, count in self.near[name].items():
            found[self.page[other]] += count
        return found

    def put(self, name: str, page: str) -> None:
        here = self.page[name]
        self.groups[here].remove(name)
        self.groups[page].append(name)
        self.used[here] -= self.lengths[name]
        self.used[page] += self.lengths[name]
        self.page[name] = page

    def better_place(self, name: str) -> bool:
        here, pull, length = self.page[name], self.pull(name), self.lengths[name]
        for page, count in pull.most_common():
            if count <= pull[here]:
                return False
            if page == here:
                continue
            if self.used[page] + length <= ROOM:
                self.put(name, page)
                return True
            best, other = 0, None
            for each in self.groups[page]:
                grown = length - self.lengths[each]
                if self.used[page] + grown > ROOM or self.used[here] - grown > ROOM:
                    continue
                its = self.pull(each)
                gain = count - pull[here] + its[here] - its[page] - 2 * self.near[name][each]
                if gain > best:
                    best, other = gain, each
            if other is not None:
                self.put(name, page)
                self.put(other, here)
                return True
        return False

    def ordered(self) -> list[list[str]]:
        self.join_neighbours()
        self.fill_up()
        names = sorted(self.lengths, key=lambda name: (-sum(self.near[name].values()), name))
        for _ in range(ROUNDS):
            if not sum(self.better_place(name) for name in names):
                break
        pages = [sorted(names, key=lambda n: (-self.heat[n], n)) for names in self.groups.values()]
        return sorted((p for p in pages if p), key=lambda p: (-sum(self.heat[n] for n in p), p))


def weighted(all_steps: Iterable[Steps]) -> Steps:
    """Trials together, as if each had as many steps."""
    total: Steps = Counter()
    for steps, weight in zip(all_steps, WEIGHTS, strict=True):
        whole = sum(steps.values())
        for pair, count in steps.items():
            total[pair] += weight * 10**9 * count // whole
    return total


def hottest(kernel: Kernel, steps: Steps) -> dict[str, int]:
    heat: Counter[str] = Counter()
    for (_, name), count in steps.items():
        heat[name] += count
    kept: dict[str, int] = {}
    left = SHARE * sum(heat.values())
    for name, count in sorted(heat.items(), key=lambda item: (-item[1], item[0])):
        if left <= 0:
            break
        left -= count
        kept[name] = kernel.movable[name]
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machine", type=Path, help="one that build.sh --apart has made")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="measuretwice-order-") as out:
        folder = chosen.machine or Path(out, "machine")
        if not chosen.machine:
            subprocess.run(["bash", BROWSER_BUILDER, "--apart", folder], check=True)
        machine = BrowserMachine(
            folder, KernelFacts.from_json(read_object(folder / "machine.json"))
        )
        kernel = Kernel(folder / "vmlinux")
        found = []
        for n, trial in enumerate(TRIALS):
            file = Path(out, f"steps-{n}")
            run_trial(machine, *trial, "--steps", file)
            found.append(kernel.steps(file))
    steps = weighted(found)
    lengths = hottest(kernel, steps)
    steps = Counter({p: n for p, n in steps.items() if p[0] in lengths and p[1] in lengths})
    packed = Pages(lengths, steps)
    pages = packed.ordered()
    crossing = sum(n for (a, b), n in steps.items() if packed.page[a] != packed.page[b])
    print(
        f"{len(lengths)} functions in {len(pages)} pages; "
        f"{100 * crossing / sum(n for (a, b), n in steps.items() if a != b):.0f} % of the steps cross pages",
        file=sys.stderr,
    )
    text = "\n\n".join("\n".join(page) for page in pages)
    (OUT / "hot-functions.txt").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
