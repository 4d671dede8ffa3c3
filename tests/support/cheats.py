"""Those who cheat in a class made by a script: every way that a reviewer found, and some more.

Each writes into what one student hands in, as a student could.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from class_of import (
    Class,
    edit_json,
    faster,
    job_of,
    loud,
    other_cookie,
    own_words,
    plan_of,
    replan,
    run_all,
    run_of,
    shift_times,
    take,
    write_report,
)
from example_class import copy_run

from measuretwice.execute.batch import open_batch
from measuretwice.lab import OwnScripts

ROOT = Path(__file__).parents[2]
VICTIM, OTHER_VICTIM = "s1001", "s1002"
Cheat = Callable[[Class, str], None]


def another_students_runs(class_: Class, who: str) -> None:
    shutil.rmtree(class_.place(who))
    shutil.copytree(class_.place(VICTIM), class_.place(who))


def result_edited(class_: Class, who: str) -> None:
    for run in class_.place(who).iterdir():
        result = json.loads((run / "result.json").read_text())
        edit_json(run / "result.json", measured={**result["measured"], "goodput_bps": 1e9})


def seed_rewritten(class_: Class, who: str) -> None:
    take(class_, who, VICTIM, cookie=False)


def seed_and_cookie_rewritten(class_: Class, who: str) -> None:
    take(class_, who, VICTIM)


def recorded_sample_reseeded(class_: Class, who: str) -> None:
    shutil.rmtree(class_.place(who))
    recorded = next((ROOT / "sample-data/01-mathis/case-05-broken").glob("trial-*"))
    other_cookie(copy_run(recorded, class_.place(who), class_.seeds[who]))


def fixed_as_broken(class_: Class, who: str) -> None:
    """All that is said of the fixed run is said as of the broken one."""
    shutil.rmtree(run_of(class_, who, "broken"))
    broken = plan_of(class_.runs[who, "broken"])
    replan(run_of(class_, who, "fixed"), True, stage="broken", params=broken.params)


def plan_edited(class_: Class, who: str) -> None:
    plan = plan_of(run_of(class_, who))
    replan(run_of(class_, who), False, params={**plan.params, "loss_ratio": 0.001})


def easier_run(class_: Class, who: str) -> None:
    """New: run for half as long, and said to be as long as the others' in all files."""
    batch = open_batch(ROOT, class_.lab, class_.folder / "runs")
    job = job_of(batch, class_.seeds[who], "broken", class_.duration_s // 2)
    run_all([job])
    meant = plan_of(run_of(class_, who))
    shutil.rmtree(run_of(class_, who))
    run = class_.place(who) / job.folder.name
    shutil.copytree(job.folder, run)
    replan(run, True, params=meant.params)


def all_rewritten_and_times_shifted(class_: Class, who: str) -> None:
    """New: another's run with every word of its seed changed, and with another time at each sample."""
    take(class_, who, OTHER_VICTIM, careful=True)
    for run in class_.place(who).iterdir():
        shift_times(run, 3600)


def files_of_two_runs(class_: Class, who: str) -> None:
    """New: one's own run, and in it another's log of ss."""
    shutil.copyfile(
        class_.runs[OTHER_VICTIM, "broken"] / "raw/romeo/ss.txt",
        run_of(class_, who) / "raw/romeo/ss.txt",
    )


def answers_disguised(class_: Class, who: str) -> None:
    """New: another's answers in other case, spaces and punctuation."""
    words = own_words(class_.lab, VICTIM)
    write_report(class_, who, {number: loud(text) for number, text in words.items()})


def of_a_kernel_of_ones_own(class_: Class, who: str) -> None:
    """New: another's run, said to be of a kernel that nobody can run again."""
    take(class_, who, OTHER_VICTIM, careful=True)
    for run in [*class_.place(who).iterdir()]:
        replan(run, True, kernel="linux 7.2.12-measuretwice 0123456789abcdef")


def numbers_made_up(class_: Class, who: str) -> None:
    """New: one's own run with better numbers in its raw files."""
    faster(run_of(class_, who))
    replan(run_of(class_, who), True)


# By who does it: whether it is found without running anything again.
CHEATS: dict[str, tuple[Cheat, bool]] = {
    "s1003": (another_students_runs, True),
    "s1004": (result_edited, True),
    "s1005": (seed_rewritten, True),
    "s1006": (seed_and_cookie_rewritten, True),
    "s1007": (recorded_sample_reseeded, True),
    "s1008": (fixed_as_broken, True),
    "s1009": (plan_edited, True),
    "s1010": (easier_run, False),
    "s1011": (all_rewritten_and_times_shifted, True),
    "s1012": (files_of_two_runs, True),
    "s1013": (answers_disguised, True),
    "s1014": (of_a_kernel_of_ones_own, True),
    "s1015": (numbers_made_up, False),
}
# Honest, and not to be repeated here: own node scripts, another kernel. And one who sends the least.
OWN_SCRIPTS, OTHER_KERNEL, BARE, PLAIN = "s1016", "s1017", "s1018", "s1019"
HONEST = {VICTIM, OTHER_VICTIM, OWN_SCRIPTS, OTHER_KERNEL, BARE, PLAIN}


def cheat(class_: Class) -> None:
    """Have everybody cheat who does, and the honest be honest in their own ways."""
    for who, (do, _) in CHEATS.items():
        do(class_, who)
    own = OwnScripts(
        (("romeo.sh", (class_.lab.folder / "nodes/romeo.sh").read_bytes() + b"# mine\n"),)
    )
    batch = open_batch(ROOT, class_.lab, class_.folder / "runs", own=own)
    job = job_of(batch, class_.seeds[OWN_SCRIPTS], "broken", class_.duration_s)
    run_all([job])
    shutil.copytree(job.folder, class_.place(OWN_SCRIPTS) / job.folder.name)
    for run in [*class_.place(OTHER_KERNEL).iterdir()]:
        replan(run, True, kernel="linux 7.2.12-measuretwice fedcba9876543210")
    for run in class_.place(BARE).iterdir():
        for name in ("provenance.json", "result.json", "experiment.sh", "console.txt"):
            (run / name).unlink()
