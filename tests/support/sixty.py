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


def grade(class_: Class, *options: str) -> dict[str, set[str]]:
    """Grade, and return by student what is odd about them."""
    watch = Watch()
    done = call_lab("grade", class_.handed, "--deal", class_.dealt, "--json", *options)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    runs = sum(len(student["runs"]) for student in document["students"])
    print(
        f"  grade {' '.join(options)}: {runs} runs, {watch}",
        *document["says"],
        sep="\n    ",
        flush=True,
    )
    return {
        student["student"]: {note["kind"] for note in student["remarks"] if note["kind"] in ODD}
        for student in document["students"]
    }


def new_class(folder: Path) -> Class:
    shutil.rmtree(folder / "submissions-grades", ignore_errors=True)
    return make_class(folder, STUDENTS, DURATION_S)


def some_cheat(folder: Path) -> list[str]:
    watch = Watch()
    class_ = new_class(folder)
    print(f"{STUDENTS} students of whom {len(CHEATS)} cheat. Their runs: {watch}")
    cheat(class_)
    problems = []
    for options in ((), ("--again", "1"), ("--again", "all"), ("--again", "all")):
        found = grade(class_, *options)
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
    class_ = new_class(folder)
    for who in ids(STUDENTS)[1:]:
        take(class_, who, VICTIM)
        write_report(class_, who, own_words(class_.lab, VICTIM))
    found = grade(class_)
    counts = Counter(kind for kinds in found.values() for kind in kinds)
    print("    " + ", ".join(f"{kind} {count}" for kind, count in counts.items()))
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
