"""Every case of every lab, played at a terminal by what is printed there, from the prediction to the report.

The fix is the case's own: what its fixed run has otherwise, by --set, or how often each trial is run, by --repeat. A case
that a question solves is answered instead, with the number that its runs give.
"""

import json
import re
from pathlib import Path

import pytest
from all_cases import CASES
from command_line import call_lab, lab_on_terminal

from measuretwice.book.prediction import number_of
from measuretwice.lab import Lab, select_trials, settings_to_change, trial_params
from measuretwice.lab.schema.cases import Judgement, Pitfall
from measuretwice.runs.result import read_result

# With this one each fix that is a number of runs was recorded; another seed may need more runs.
RECORDED_SEED, OTHER_SEED = 1, 77
PREDICTED = [("one number", "5\n"), ("And why?", "a guess of somebody's\n")]
DIAGNOSIS = "it was what the fix says"


def fix_of(lab: Lab, pitfall: Pitfall, seed: int) -> list[str]:
    """The options that make a case's own run its fixed one."""
    number = lab.case_number(pitfall)
    changes = {}
    for trial in select_trials(lab, pitfall.trials or str(pitfall.trial)):
        first, fixed = (
            trial_params(lab, trial, case=number, stage=stage, seed=seed)
            for stage in (None, "fixed")
        )  # type: ignore[arg-type]
        for name in {**first, **fixed}:
            if first.get(name) != fixed.get(name):
                changes[name] = fixed.get(name, "")
    if changes:
        return [f"--set={name}={value}" for name, value in changes.items()]
    # Each trial as often as the first try had one at most.
    tries = 1 + pitfall.broken.again.tries if pitfall.broken.again else 1
    return ["--repeat", str(max(tries, pitfall.fixed.repeat))]


def answers_to(lab: Lab, judgement: Judgement, runs: list[str]) -> list[tuple[str, str]]:
    """What to wait for, and what to type, to answer a case's question right."""
    typed = [("in your own words?", f"{DIAGNOSIS}\n"), ("a letter", f"{judgement.right}\n")]
    if judgement.number:
        results = [result for run in runs if (result := read_result(Path(run), lab))]
        number = number_of(judgement.number, results)
        assert number is not None
        typed.append(("And the number", f"{number:.5g}\n"))
    return typed


def printed_pattern(output: str) -> list[str]:
    """The runs that the last printed ./lab check names, as a shell expands them."""
    pattern = Path(re.findall(r"\./lab check (\S+) reports wh", " ".join(output.split()))[-1])
    runs = sorted(pattern.parent.glob(pattern.name))
    assert runs, pattern
    return [str(run) for run in runs]


@pytest.mark.nightly(
    "cases of several trials: tests/run/test_several_trials.py; one of one trial: tests/run/test_case_played.py"
)
@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_a_case_is_played_from_prediction_to_solved(
    lab: Lab, pitfall: Pitfall, tmp_path: Path
) -> None:
    number, out = lab.case_number(pitfall), ["--out", str(tmp_path)]
    seed = RECORDED_SEED if pitfall.fixed.repeat > 1 else OTHER_SEED
    play = ["run", lab.name, "--case", str(number), *out]
    code, first = lab_on_terminal(*play, "--seed", str(seed), answers=PREDICTED, columns=200)
    assert code == 0, first
    assert pitfall.symptom in first
    runs = printed_pattern(first)
    if pitfall.judgement:
        answers = answers_to(lab, pitfall.judgement, runs)
        code, said = lab_on_terminal("check", *runs, answers=answers, columns=200)
        assert code == 0, said
        assert f"Case {number} is solved: answered right" in said
    else:
        # Whoever doesn't know yet presses Enter where the diagnosis is asked for.
        not_yet = [("in your own words?", "\n")]
        code, said = lab_on_terminal("check", *runs, answers=not_yet, columns=200)
        assert code == 1, said
        assert "is solved" not in said
        fix = fix_of(lab, pitfall, seed)
        code, second = lab_on_terminal(*play, *fix, answers=PREDICTED, columns=200)
        assert code == 0, second
        if "Nothing was measured again" in second:
            assert "of real time" not in second
        # One trial's command names the run, several trials' all of the case.
        answers = [("in your own words?", f"{DIAGNOSIS}\n")]
        runs = printed_pattern(second)
        code, said = lab_on_terminal("check", *runs, answers=answers, columns=200)
        assert code == 0, said
        assert f"Case {number} is solved" in said
        assert "before" in said
    progress = call_lab("progress", lab.name, "--json", *out)
    case = json.loads(progress.stdout)[0]["cases"][number - 1]
    assert (case["done"], case["diagnosis"], case["hints"]) == (True, DIAGNOSIS, 0)
    assert case["predicted"].startswith("5")
    assert call_lab("report", str(tmp_path / lab.name)).returncode == 0
    report = (tmp_path / lab.name / "report.md").read_text()
    [row] = [
        line for line in report.splitlines() if line.startswith(f"| {number} | {pitfall.symptom}")
    ]
    assert DIAGNOSIS in row
    assert row.endswith("| solved |")


@pytest.mark.nightly("which settings are said to be needed: tests/unit/test_plan.py")
@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_what_is_said_to_be_enough_is(lab: Lab, pitfall: Pitfall, tmp_path: Path) -> None:
    """Each of the settings of which one is to change, alone."""
    number = lab.case_number(pitfall)
    settings = settings_to_change(lab, number)
    if pitfall.judgement or not pitfall.enough:
        pytest.skip("all of its settings are to change")
    fixed = trial_params(lab, pitfall.trial, case=number, stage="fixed")
    for setting in settings:
        if setting.need == "beside":
            continue
        out = tmp_path / setting.name
        change = f"--set={setting.name}={fixed.get(setting.name, '')}"
        options = ["--seed", str(RECORDED_SEED), change, "--out", str(out)]
        assert call_lab("run", lab.name, "--case", str(number), *options).returncode == 0
        runs = [str(run) for run in (out / lab.name).glob("case-*")]
        assert call_lab("check", *runs).returncode == 0, setting.name
