"""A class made by a script: real runs of the virtual kernel with dealt seeds, and those who cheat.

Honest runs are made once, and kept in the class's folder. Everybody hands in what ./lab run leaves, with a report and its answers;
then some write into theirs.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from example_class import write_plan

from measuretwice.backends.script import INSIDE_ROOT, INSIDE_RUN, INSIDE_SAMPLER, experiment_script
from measuretwice.base.errors import UserError
from measuretwice.execute.batch import Batch, open_batch
from measuretwice.execute.dispatch import dispatcher
from measuretwice.execute.job import Job, finished
from measuretwice.grading.roster import deal_seeds, dealt_file, read_roster
from measuretwice.grading.text_table import csv_text
from measuretwice.lab import (
    CheckedParams,
    Lab,
    Plan,
    StageName,
    Value,
    load_lab,
    read_plan,
    read_questions,
)
from measuretwice.runs.result import derive

ROOT = Path(__file__).parents[2]
TERM = "a made-up word"
PITFALL = "mtu"
BOTH: tuple[StageName, ...] = ("broken", "fixed")
QUESTIONS = (1, 2, 5)


@dataclass
class Class:
    """A class with its runs: seeds by id, each honest run's folder by id and stage."""

    folder: Path
    lab: Lab
    seeds: dict[str, int]
    runs: dict[tuple[str, StageName], Path]
    duration_s: int

    @property
    def handed(self) -> Path:
        return self.folder / "submissions"

    @property
    def dealt(self) -> Path:
        return self.folder / "dealt.csv"

    def place(self, who: str) -> Path:
        return self.handed / who / "runs" / self.lab.name


def ids(number: int) -> list[str]:
    return [f"s{1001 + n}" for n in range(number)]


def make_class(
    folder: Path, number: int, duration_s: int, fixed: Collection[str] | None = None
) -> Class:
    """Run what a class of that many students runs, and lay it out as they would hand it in; all are honest.

    A run is so long: its losses must be enough. Everybody shows the mistake, and those in `fixed` (None: all) fixed it.
    """
    lab = load_lab(ROOT, "mathis")
    folder.mkdir(parents=True, exist_ok=True)
    rows = [["Student", "SIS User ID"], *([f"Name {who}", who] for who in ids(number))]
    roster_file = folder / "class.csv"
    roster_file.write_text(csv_text(rows), encoding="utf-8")
    roster = read_roster(roster_file)
    seeds = deal_seeds(roster.students, lab.name, TERM)
    (folder / "dealt.csv").write_bytes(dealt_file(roster, lab, seeds))
    batch = open_batch(ROOT, lab, folder / "runs")
    jobs = {
        (who, stage): job_of(batch, seed, stage, duration_s)
        for who, seed in seeds.items()
        for stage in (BOTH if fixed is None or who in fixed else BOTH[:1])
    }
    run_all(list(jobs.values()))
    class_ = Class(folder, lab, seeds, {key: job.folder for key, job in jobs.items()}, duration_s)
    shutil.rmtree(class_.handed, ignore_errors=True)
    for (who, _), run in class_.runs.items():
        shutil.copytree(run, class_.place(who) / run.name)
    for who in seeds:
        write_report(class_, who, own_words(class_.lab, who))
    return class_


def job_of(batch: Batch, seed: int, stage: StageName, duration_s: int) -> Job:
    trial = batch.lab.pitfall(PITFALL).trial
    changes: dict[str, Value] = {"duration_s": duration_s}
    return batch.job(trial, seed=seed, pitfall=PITFALL, stage=stage, changes=changes)


def run_all(jobs: list[Job]) -> None:
    todo = [job for job in jobs if job.folder not in finished(jobs)]
    if not todo:
        return
    with dispatcher(todo[0].backend, None, len(todo)) as crew:
        for _, outcome in crew.run_all(todo):
            if isinstance(outcome, UserError):
                raise outcome


# Answers


def own_words(lab: Lab, who: str) -> dict[int, str]:
    """What a student answers: words drawn for each, so that no two have the same."""
    words = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    known = sorted(set(re.findall(r"[a-z]{4,}", words)))
    draw = random.Random(who)
    return {number: " ".join(draw.choices(known, k=30)) for number in QUESTIONS}


def write_report(class_: Class, who: str, answers: Mapping[int, str]) -> None:
    """Write a report as a student fills it in; places by report/markdown.py."""
    questions = read_questions(class_.lab)
    lines = ["# Report", ""]
    for number, question in enumerate(questions, start=1):
        lines += [f"**Question {number}.** {question}", "", "Your answer:", ""]
        lines += [answers.get(number, ""), "", "<!-- end of answer -->", ""]
    (class_.handed / who / "report.md").write_text("\n".join(lines), encoding="utf-8")


# Cheats


def plan_of(run: Path) -> Plan:
    document = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    return read_plan(load_lab(ROOT, document["lab"]), document, str(run))


def change(path: Path, pattern: str, replace: Callable[[re.Match[str]], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = re.sub(pattern, replace, before)
    assert after != before, f"{path.name}: nothing was changed"
    path.write_text(after, encoding="utf-8")


def replan(run: Path, careful: bool, **changes: Any) -> Path:
    """Give a run another plan, with a digest that fits; `careful`: with all that follows from it elsewhere, too."""
    old = plan_of(run)
    lab = load_lab(ROOT, old.lab)
    if "params" in changes:
        changes["params"] = CheckedParams(lab, changes["params"], "a cheat")
    plan = replace(old, **changes)
    provenance = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
    if careful:
        write_plan(run, plan, lab)
        key = plan.kernel.split()[-1] + provenance["kernel"]["results_key"][16:]
        edit_json(run / "provenance.json", kernel={**provenance["kernel"], "results_key": key})
        result = derive(lab.folder, plan, run / "raw")
        (run / "result.json").write_text(json.dumps(result.to_json()), encoding="utf-8")
        script = experiment_script(
            lab, plan, Path(INSIDE_ROOT), f"{INSIDE_RUN}/raw", INSIDE_SAMPLER
        )
        (run / "experiment.sh").write_text(script, encoding="utf-8")
    else:
        # In the open, as a student finds them in an older run: a setting that is packed too would stand twice.
        in_the_open = {**plan.to_json(), "kernel_seed": old.kernel_seed}
        (run / "plan.json").write_text(json.dumps(in_the_open, indent=2), encoding="utf-8")
        edit_json(run / "provenance.json", plan_digest=plan.digest)
    return run.rename(run.with_name(plan.folder_name))


def edit_json(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **changes}, indent=2), encoding="utf-8")


def other_cookie(run: Path, letters: int = 1) -> None:
    """Change a letter or two of the name that iperf3 gave its test, wherever it stands."""
    for path in run.glob("raw/*/iperf3*.json"):
        change(
            path,
            r'("cookie":\s*")(\w+)',
            lambda found: found[1] + "zy"[:letters] + found[2][letters:],
        )


def take(
    class_: Class, thief: str, victim: str, *, careful: bool = False, cookie: bool = True
) -> None:
    """Hand in another's runs with one's own seed in the plan."""
    shutil.rmtree(class_.place(thief))
    for source in [run for (who, _), run in class_.runs.items() if who == victim]:
        run = class_.place(thief) / source.name
        shutil.copytree(source, run)
        if cookie:
            other_cookie(run)
        replan(run, careful, seed=class_.seeds[thief])


def run_of(class_: Class, who: str, stage: StageName = "broken") -> Path:
    """A run as it is handed in."""
    return class_.place(who) / class_.runs[who, stage].name


def shift_times(run: Path, seconds: int) -> None:
    """Give each sample of ss another time."""
    for path in run.glob("raw/*/ss.txt"):
        change(path, r"(?m)^# t=([0-9]+)", lambda found: f"# t={int(found[1]) + seconds}")


def faster(run: Path) -> None:
    """Write other numbers of goodput into iperf3's files, the same in both."""
    for path in run.glob("raw/*/iperf3*.json"):
        change(
            path,
            r'("bits_per_second":\s*)([0-9.]+)',
            lambda found: f"{found[1]}{float(found[2]) * 1.7:f}",
        )


def loud(text: str) -> str:
    """The same words, with other case, spaces and punctuation."""
    return ",\n   ".join(word.upper() if n % 3 else word for n, word in enumerate(text.split()))
