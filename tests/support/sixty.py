"""A class of sixty, graded: minutes and CPU seconds, who is found, and who is blamed without cause.

    make class

Two classes: one in which some cheat, each in another way, and one in which all hand in the first one's runs. Their runs are kept in
build/class; delete it to run all of it again. Exit 1 where a cheat gets through or somebody honest is blamed.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from cheats import CHEATS, VICTIM, cheat
from class_of import Class, ids, make_class, own_words, take, write_report
from command_line import call_lab

from measuretwice.grading.integrity import ODD

ROOT = Path(__file__).parents[2]
STUDENTS, DURATION_S = 60, 60
# Whose words were taken is named, too: nobody can say whose they were.
NAMED = {"words"}


class Watch:
    """Real and CPU time since it was made."""

    def __init__(self) -> None:
        self.began_s, self.used_s = time.monotonic(), _cpu_s()

    def __str__(self) -> str:
        return f"{(time.monotonic() - self.began_s) / 60:.1f} minutes, {_cpu_s() - self.used_s:.0f} CPU seconds"


def _cpu_s() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def grade(it: Class, *options: str) -> dict[str, set[str]]:
    """Grade, and return by student what is odd about them."""
    watch = Watch()
    done = call_lab("grade", it.handed, "--deal", it.dealt, "--json", *options)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    runs = sum(len(one["runs"]) for one in document["students"])
    print(
        f"  grade {' '.join(options)}: {runs} runs, {watch}",
        *document["says"],
        sep="\n    ",
        flush=True,
    )
    return {
        one["student"]: {r["kind"] for r in one["remarks"] if r["kind"] in ODD}
        for one in document["students"]
    }


def new_class(folder: Path) -> Class:
    shutil.rmtree(folder / "submissions-grades", ignore_errors=True)
    return make_class(folder, STUDENTS, DURATION_S)


def some_cheat(folder: Path) -> list[str]:
    watch = Watch()
    it = new_class(folder)
    print(f"{STUDENTS} students of whom {len(CHEATS)} cheat. Their runs: {watch}")
    cheat(it)
    problems = []
    for options in ((), ("--again", "1"), ("--again", "all"), ("--again", "all")):
        found = grade(it, *options)
        missed = [do.__name__ for who, (do, _) in CHEATS.items() if not found[who]]
        blamed = {
            who: kinds for who in found if who not in CHEATS and (kinds := found[who] - NAMED)
        }
        print(
            f"    found {len(CHEATS) - len(missed)} of {len(CHEATS)}; not: {missed}; blamed: {blamed}"
        )
        if "all" in options:
            problems += [*missed, *(f"{who} is blamed: {kinds}" for who, kinds in blamed.items())]
    return problems


def all_copied(folder: Path) -> list[str]:
    """Sixty with the first one's runs: own seeds, other letters in iperf3's cookies, and the first one's answers."""
    it = new_class(folder)
    for who in ids(STUDENTS)[1:]:
        take(it, who, VICTIM)
        write_report(it, who, own_words(it.lab, VICTIM))
    found = grade(it)
    print(
        "    "
        + ", ".join(
            f"{kind} {n}" for kind, n in Counter(k for s in found.values() for k in s).items()
        )
    )
    missed = [who for who in ids(STUDENTS)[1:] if "copy" not in found[who]]
    return [
        *(f"{who} isn't found" for who in missed),
        *(["the original is blamed"] if found[VICTIM] else []),
    ]


def main() -> int:
    folder = ROOT / "build/class"
    problems = [*some_cheat(folder), *all_copied(folder)]
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
