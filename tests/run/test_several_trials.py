"""Cases of several trials, the way that pages and ./lab run print it: run, fix, check with the shell's pattern, progress, report.

By day from recorded runs, laid out as a student's own; two of them on the real kernel.
"""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from all_cases import LABS
from command_line import call_lab as lab

from measuretwice.book.lab_book import LabBook
from measuretwice.lab import Lab, Value, load_lab, read_plan, select_trials
from measuretwice.lab.plan import CheckedParams
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.runs.folder import DONE, PLAN, PROVENANCE, RESULT

ROOT = Path(__file__).parents[2]
# So many runs to read take longer than a test by day may.
MANY_RUNS = 20
SEVERAL = [
    pytest.param(
        lab_, pitfall, id=f"{lab_.name}-{lab_.case_number(pitfall)}",
        marks=[pytest.mark.nightly("the same of cases with fewer runs")]
        if pitfall.fixed.repeat * len(select_trials(lab_, pitfall.trials)) > MANY_RUNS
        else [],
    )
    for lab_ in LABS
    for pitfall in lab_.file.pitfalls
    if pitfall.trials
]  # fmt: skip


def lay_out(
    lab_: Lab, pitfall: Pitfall, stage: str, folder: Path, finished_s: int, **settings: Value
) -> list[Path]:
    """A stage's recorded runs as a student's own of the case, finished then, as if with other `settings`; return their
    folders."""
    recorded = ROOT / "sample-data" / lab_.folder.name / lab_.set_name(f"{pitfall.id}-{stage}")
    runs = []
    for place in sorted(recorded.glob(f"*/{PLAN}")):
        read = read_plan(lab_, json.loads(place.read_text()), str(place))
        params = CheckedParams(lab_, {**read.params, **settings}, "params")
        case = lab_.case_number(pitfall)
        plan = replace(read, stage=None, case=case, pitfall=None, params=params)
        run = folder / plan.folder_name
        # The fix may be more of the same runs; it has none of a third try.
        if run.exists() or (pitfall.broken.again and plan.seed > pitfall.fixed.repeat):
            continue
        copytree(place.parent, run)
        (run / PLAN).write_text(json.dumps(plan.to_json()))
        provenance = json.loads((run / PROVENANCE).read_text())
        (run / PROVENANCE).write_text(json.dumps({**provenance, "plan_digest": plan.digest}))
        result = json.loads((run / RESULT).read_text())
        names = {"stage": None, "case": plan.case, "pitfall": None, "params": {**plan.params}}
        (run / RESULT).write_text(json.dumps({**result, **names}))
        os.utime(run / DONE, (finished_s, finished_s))
        runs.append(run)
    return runs


def check_case(folder: Path, number: int, *options: str) -> tuple[int, str]:
    """./lab check with the pattern that is printed, as a shell expands it."""
    runs = sorted(folder.glob(f"case-{number:02d}-*"))
    done = lab("check", *map(str, runs), *options)
    return done.returncode, done.stdout


def both_stages(name: str, tmp_path: Path) -> tuple[int, Path]:
    """Lay out the first try of one of Queues' cases, and its fix; return the case's number and the lab's folder."""
    queues = load_lab(ROOT, "queues")
    pitfall, folder = queues.pitfall(name), tmp_path / "queues"
    LabBook(folder, queues).open(1)
    for stage, finished_s in (("broken", 1_000), ("fixed", 2_000)):
        lay_out(queues, pitfall, stage, folder, finished_s)
    return queues.case_number(pitfall), folder


@pytest.mark.slow
@pytest.mark.parametrize(("lab_", "pitfall"), SEVERAL)
def test_the_printed_check_says_solved(lab_: Lab, pitfall: Pitfall, tmp_path: Path) -> None:
    number, folder = lab_.case_number(pitfall), tmp_path / lab_.name
    LabBook(folder, lab_).open(1)
    first = lay_out(lab_, pitfall, "broken", folder, 1_000)
    code, said = check_case(folder, number)
    assert code == 1, said
    assert "is solved" not in said
    own = lay_out(lab_, pitfall, "fixed", folder, 2_000)
    assert own
    code, said = check_case(folder, number)
    assert code == 0, said
    assert "something" not in said
    [outcome] = re.findall(rf"^Case {number} is solved: nothing is off any more: (.*)$", said, re.M)
    [progress] = json.loads(lab("progress", lab_.name, "--json", "--out", str(tmp_path)).stdout)
    assert progress["cases"][number - 1]["done"]
    assert (
        f"- Outcome: nothing is off any more: {outcome.rstrip('.')}"
        in (folder / "lab-book.md").read_text()
    )
    # By the first try alone nothing is solved, and by one trial alone nothing is either.
    assert "is solved" not in lab("check", *map(str, first)).stdout
    trials = select_trials(lab_, str(pitfall.trials))
    of_one = [run for run in [*first, *own] if f"-trial-{trials[0]:02d}-" in run.name]
    assert "is solved" not in lab("check", *map(str, of_one)).stdout


def test_each_trial_is_compared_with_itself(tmp_path: Path) -> None:
    number, folder = both_stages("copied-cell", tmp_path)
    values: dict[int, list[str]] = {}
    for run in sorted(folder.glob("case-*"), key=lambda run: (run / DONE).stat().st_mtime):
        result = json.loads((run / RESULT).read_text())
        bps = result["measured"]["goodput_bps"]
        values.setdefault(result["trial"], []).append(f"{bps / 1e6:.4g} Mbit/s")
    _, said = check_case(folder, number)
    for trial, (before, now) in values.items():
        change = f"{now}, as before" if before == now else f"{before} before, {now} now"
        assert f"in trial {trial}: {change}" in said


def test_the_newest_try_counts(tmp_path: Path) -> None:
    """Whoever has solved a case, and tries something else, is told of that; and a wrong try before is no fault any more."""
    queues = load_lab(ROOT, "queues")
    pitfall = queues.pitfall("wrong-metric")
    number, folder = queues.case_number(pitfall), tmp_path / "queues"
    LabBook(folder, queues).open(1)
    first = lay_out(queues, pitfall, "broken", folder, 2_000)
    lay_out(queues, pitfall, "fixed", folder, 1_000)
    assert check_case(folder, number)[0] == 1
    for run in first:
        os.utime(run / DONE, (500, 500))
    code, said = check_case(folder, number)
    assert (code, f"Case {number} is solved" in said) == (0, True)


@pytest.mark.slow
def test_a_setting_that_only_hides_the_mistake_solves_nothing(tmp_path: Path) -> None:
    """Sampled so seldom that no window stands still between two samples, a counter that takes that for a rise is right."""
    scale = load_lab(ROOT, "scale")
    pitfall, folder = scale.pitfall("halving-counter"), tmp_path / "scale"
    number = scale.case_number(pitfall)
    LabBook(folder, scale).open(1)
    lay_out(scale, pitfall, "broken", folder, 1_000)
    counter = pitfall.broken.set["halvings_by"]
    lay_out(scale, pitfall, "fixed", folder, 2_000, halvings_by=counter)
    code, said = check_case(folder, number)
    assert "nothing is off in this run, but you changed sample_interval_s alone" in said
    assert (code, "is solved" in said) == (1, False)
    lay_out(scale, pitfall, "fixed", folder, 3_000)
    assert "is solved" in check_case(folder, number)[1]


def test_a_pipe_keeps_the_question(tmp_path: Path) -> None:
    number, folder = both_stages("copied-cell", tmp_path)
    _, said = check_case(folder, number)
    assert "What was it, in your own words?" in said
    [pattern] = re.findall(r"\./lab check (\S+) --diagnosis", said)
    assert sorted(
        Path.cwd().glob(pattern)
        if not pattern.startswith("..")
        else folder.glob(Path(pattern).name)
    )
    _, said = check_case(folder, number, "--diagnosis", "both went to\n host-3")
    assert "What was it" not in said
    _, said = check_case(folder, number, "--diagnosis", "both went to host-3")
    assert (folder / "lab-book.md").read_text().count("- Diagnosis: both went to host-3") == 1
    assert lab("report", str(folder)).returncode == 0
    assert "| both went to host-3 |" in (folder / "report.md").read_text()
    refused = lab("check", str(ROOT / "sample-data/01-mathis/case-05-broken"), "--diagnosis", "x")
    assert (refused.returncode, "--diagnosis is of one case" in refused.stderr) == (2, True)


@pytest.mark.kernel
@pytest.mark.slow
def test_a_case_of_two_trials_is_played(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)]
    folder = tmp_path / "queues"
    case = ["run", "queues", "--case", "6", *out]
    first = lab(*case, "--seed", "77")
    assert first.returncode == 0, first.stderr
    assert "2 trials, 10 virtual seconds" in first.stderr
    [pattern] = re.findall(r"\./lab check (\S+) reports what is off", first.stdout)
    assert pattern.endswith("/queues/case-06-*")
    assert check_case(folder, 6)[0] == 1
    # What is right for one of the two solves nothing.
    assert lab(*case, "--set", "destination=host-4").returncode == 0
    code, said = check_case(folder, 6)
    assert (code, "is solved" in said) == (1, False)
    assert lab(*case, "--set", "destination=").returncode == 0
    code, said = check_case(folder, 6)
    assert code == 0, said
    assert (
        "Case 6 is solved: nothing is off any more: goodput of host-1 and host-2 in trial 1: "
        in said
    )
    assert re.search(r"; in trial 6: [\d.]+ Mbit/s(, as before| before, [\d.]+ Mbit/s now)", said)
    assert re.search(r"^ *6 .* solved", lab("progress", "queues", *out).stdout, re.M)


@pytest.mark.kernel
@pytest.mark.slow
def test_what_is_judged_otherwise_is_not_said_to_be_measured(tmp_path: Path) -> None:
    case = ["run", "queues", "--case", "2", "--out", str(tmp_path)]
    first = lab(*case, "--seed", "77")
    assert first.returncode == 0, first.stderr
    assert "measuring 2 trials" in first.stderr
    again = lab(*case, "--set", "judged_by=delay")
    assert "Nothing was measured again" in again.stdout
    assert again.stderr == ""
    code, said = check_case(tmp_path / "queues", 2)
    assert code == 0, said
    assert "as before. The runs measured the same, but are judged differently." in said
