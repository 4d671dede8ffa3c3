"""A study of one's own, through the command line: planned, frozen, compared and analysed, on recorded runs."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.course.artefact import new_folder, opened_artefact
from measuretwice.course.study_runs import line_changes
from measuretwice.stats.two_samples import (
    deviation_limit,
    power_of_difference,
    power_of_equivalence,
    values_for_power,
)

ROOT = Path(__file__).parents[2]
# Thirty seeds of each of two buffers, with their raw files: trials 1 and 2.
RECORDED = ROOT / "sample-data/02-buffers/case-06-fixed"
TWO_ARMS = ROOT / "sample-data/05-queues/two-arms"
# Before and after they were recorded.
BEFORE, AFTER = "1763596800", "1795996800"
PLAN = """
question = "Which of the two buffers shares the link more evenly?"
claim = "The smaller buffer is fairer."
source = "a paper, figure 3"
lab = "buffers"
quantity = "jains_index"
matters = 0.1
refuted_by = "an interval that lies above zero"
[a]
name = "large"
trials = "1"
set = { duration_s = 60, sample_interval_s = 1, compare_by = "jains_index" }
[b]
name = "small"
trials = "2"
set = { duration_s = 60, sample_interval_s = 1, compare_by = "jains_index" }
[runs]
per_trial = 5
first_seed = 11
reason = "three pilots of each"
[analysis]
compare = "difference"
confidence = 0.95
above = 0.05
"""


def lab(*words: str | Path, at: str = BEFORE) -> subprocess.CompletedProcess[str]:
    return call_lab("plan", *words, SOURCE_DATE_EPOCH=at)


def write_study(folder: Path, text: str = PLAN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.toml").write_text(text)
    return folder


def copy_runs(to: Path, trials: tuple[int, ...], seeds: range) -> None:
    for trial in trials:
        for seed in seeds:
            name = f"trial-{trial:02d}-seed{seed}"
            shutil.copytree(RECORDED / name, to / "buffers" / name)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A plan that is complete, three pilots of each setting, and all of its runs but none too many."""
    folder = write_study(tmp_path / "study")
    copy_runs(folder / "pilots", (1, 2), range(1, 4))
    return folder


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


# How many runs


def test_power_is_that_of_the_tables() -> None:
    """Cohen's table for t of two samples (d = 0.5 and 0.8, 5 %, two-sided), and one sample as G*Power has it."""
    assert values_for_power(lambda n: power_of_difference(0.5, [1, 1], n), 0.8) == 64
    assert values_for_power(lambda n: power_of_difference(0.8, [1, 1], n), 0.8) == 26
    assert values_for_power(lambda n: power_of_difference(0.5, [1], n), 0.8) == 34
    assert power_of_difference(0.5, [1, 1], 64) == pytest.approx(0.8015, abs=1e-4)
    # Equivalence, by two one-sided tests at 5 %, is that of the 90 % interval.
    equal = values_for_power(lambda n: power_of_equivalence(0.5, [1, 1], n, 0.9), 0.8)
    assert equal == pytest.approx(70, abs=1)
    assert values_for_power(lambda n: power_of_difference(1e-9, [1, 1], n), 0.8) is None
    # Chi-square with four degrees of freedom is below 1.649 once in five times.
    assert deviation_limit(1, 5) == pytest.approx((4 / 1.6488) ** 0.5, abs=1e-3)


def test_power_by_recorded_pilots_of_a_set() -> None:
    words = (f"{TWO_ARMS}:1-5", f"{TWO_ARMS}:21-25", "--quantity", "queue_delay_mean_ms")
    done = lab("power", *words, "--matters", "5", "--json")
    document = json.loads(done.stdout)
    assert [pilot["n"] for pilot in document["pilots"]] == [5, 5]
    large, small = document["pilots"]
    assert large["mean"] > 5 * small["mean"]
    eighty, ninety = document["needed"]
    assert 2 <= eighty["by_pilots"] < ninety["by_pilots"] < ninety["by_limits"]
    # By the rule of thumb, 16 (s/d)^2 runs for a power of four in five, and some more where they are few.
    s2 = (large["deviation"] ** 2 + small["deviation"] ** 2) / 2
    assert 16 * s2 / 25 <= eighty["by_pilots"] <= 16 * s2 / 25 + 3
    words_ = said(lab("power", *words, "--matters", "5"))
    assert "Assumed: runs are independent" in words_
    assert "80 %" in words_


def test_power_of_a_study_s_folder_needs_no_number_of_runs_yet(study: Path) -> None:
    text = PLAN.replace("per_trial = 5", 'per_trial = ""').replace('"three pilots of each"', '""')
    write_study(study, text)
    done = lab("power", study, "--json")
    document = json.loads(done.stdout)
    assert [pilot["name"] for pilot in document["pilots"]] == ["A large", "B small"]
    assert document["needed"][0]["by_pilots"] >= 2


def test_power_of_a_ratio_is_said_in_factors() -> None:
    words = (f"{TWO_ARMS}:1-5", f"{TWO_ARMS}:21-25", "--quantity", "queue_delay_mean_ms")
    done = lab("power", *words, "--matters", "1.2", "--compare", "ratio")
    assert "geometric mean" in done.stdout
    assert "Ratios are compared on a log scale" in done.stdout
    assert "of the logarithm" not in done.stdout
    rows = re.findall(r"two-arms:\S+ +5 +([\d.]+) +([\d.]+) +([\d.]+)", done.stdout)
    assert len(rows) == 2, done.stdout
    for mean, scatter, limit in rows:
        assert float(mean) > 5
        assert 1 < float(scatter) < float(limit) < 2
    document = json.loads(
        lab("power", *words, "--matters", "1.2", "--compare", "ratio", "--json").stdout
    )
    assert float(rows[0][0]) == pytest.approx(math.exp(document["pilots"][0]["mean"]), rel=1e-3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere", "--quantity", "jains_index", "--matters", "1"], "no such folder"),
        ([RECORDED, "--quantity", "jain_index", "--matters", "1"], "near it are jains_index"),
        ([RECORDED, "--quantity", "jains_index"], "give --quantity VALUE and --matters D"),
        ([RECORDED, RECORDED, "--quantity", "jains_index", "--matters", "-1"], "expected a number above 0"),
        ([f"{RECORDED}:1", "--quantity", "jains_index", "--matters", "nan"], "expected a number above 0"),
        ([f"{RECORDED}:99", "--quantity", "jains_index", "--matters", "1"], "has no trial 99"),
        ([f"{RECORDED}:x", "--quantity", "jains_index", "--matters", "1"], "expected numbers such as"),
        ([RECORDED, "--quantity", "jains_index / 2", "--matters", "1"], "no measured value is called 2"),
        ([RECORDED, "--quantity", "a / b / c", "--matters", "1"], "at most one /"),
        ([RECORDED, "--quantity", "convergence_s", "--matters", "1"], "runs have no convergence_s"),
    ],
)  # fmt: skip
def test_what_power_can_t_use_is_said_in_a_line(words: list[str | Path], says: str) -> None:
    done = lab("power", *words)
    assert done.returncode == 2
    assert says in said(done)
    assert done.stderr.count("\n") == 1


# The plan


def test_a_new_plan_has_a_line_for_all_that_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "my study"
    assert lab("new", folder, "--lab", "buffers").returncode == 0
    again = lab("new", folder)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    done = lab("freeze", folder)
    assert done.returncode == 2
    missing = re.findall(r"plan\.toml: ([a-z_.]+): still empty", done.stderr)
    assert set(missing) == {
        "question", "claim", "source", "quantity", "matters", "refuted_by", "a.name", "b.name", "runs.per_trial", "runs.reason",
    }  # fmt: skip
    assert "give above, below, or both" in done.stderr
    assert not (folder / "frozen.json").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("evenly?", "evenly", "question mark"),
        ("matters = 0.1", 'matters = "0.1"', "expected a number without quotes"),
        ("matters = 0.1", "matters = 1e999", "expected a number without quotes"),
        ("matters = 0.1", "matters = -1", "expected more than 0"),
        ('"buffers"', '"puffers"', "there is no lab puffers"),
        ('"jains_index"\nm', '"jain"\nm', "no measured value is called jain"),
        ('trials = "2"', 'trials = "77"', "has no trial 77"),
        ('trials = "2"', 'trials = "1"', "the two are the same trials with the same settings"),
        ("duration_s = 60", "duration_s = -60", "duration_s: expected"),
        ("duration_s = 60", "duraton_s = 60", "has no parameter 'duraton_s'"),
        ("per_trial = 5", "per_trial = 2.5", "expected a whole number"),
        ("confidence = 0.95", "confidence = 95", "less than 1, such as 0.95"),
        ("above = 0.05", "above = 0.05\nbelow = 0.01", "leave nothing between them"),
        ("above = 0.05", "abowe = 0.05", "did you mean above?"),
        ("above = 0.05", "", "give above, below, or both"),
        ('compare = "difference"', 'compare = "means"', "expected difference, ratio or mean"),
        ('compare = "difference"', 'compare = "mean"', "remove [b]"),
        ("[runs]", "[runs", "not TOML"),
        ("[b]", "b = 3\n[c]", "c: no field of a plan"),
        ("matters = 0.1", f"matters = {'[' * 5000}", "not TOML"),
    ],
)
def test_what_is_wrong_in_a_plan_is_said(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in PLAN
    folder = write_study(tmp_path / "study", PLAN.replace(old, new))
    done = lab("freeze", folder)
    assert done.returncode == 2
    assert says in said(done)
    assert not (folder / "frozen.json").exists()


def test_a_plan_that_isn_t_text_is_refused(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "study")
    (folder / "plan.toml").write_bytes(b"\xff\xfe")
    assert "isn't UTF-8" in said(lab("freeze", folder))
    (folder / "plan.toml").unlink()
    assert "./lab plan new" in said(lab("freeze", folder))
    (folder / "plan.toml").symlink_to("/dev/zero")
    assert "not a plain file" in said(lab("freeze", folder))


# Frozen, and compared


def test_a_frozen_plan_knows_its_pilots_and_what_was_changed(study: Path) -> None:
    done = lab("freeze", study)
    assert done.returncode == 0, said(done)
    assert "frozen, 2025-11-20 00:00:00 UTC" in done.stdout
    assert "Pilots: 3 of A, 3 of B." in done.stdout
    counted = re.search(r"(\d+) recorded in sample-data/", done.stdout)
    assert counted
    assert int(counted[1]) >= 60
    assert "--set duration_s=60" in done.stdout
    assert re.search(r"5 runs of each setting have a power of \d+ %", done.stdout)
    first = (study / "frozen.json").read_bytes()
    assert "frozen already" in lab("freeze", study, at=AFTER).stdout
    assert (study / "frozen.json").read_bytes() == first
    same = lab("diff", study)
    assert same.returncode == 0
    assert "In pilots/, made before the plan was frozen: 3 of A, 3 of B" in same.stdout
    write_study(study, PLAN.replace("above = 0.05", "above = 0.0"))
    other = lab("diff", study)
    assert other.returncode == 1
    assert "    - above = 0.05\n    + above = 0.0\n" in other.stdout
    assert "as version 2; version 1 stays" in lab("freeze", study, at=AFTER).stdout
    assert lab("diff", study).returncode == 1
    versions = json.loads((study / "frozen.json").read_text())["versions"]
    assert [version["text"] for version in versions] == [
        PLAN,
        PLAN.replace("above = 0.05", "above = 0.0"),
    ]


def test_an_edited_frozen_file_is_found_out(study: Path) -> None:
    lab("freeze", study)
    path = study / "frozen.json"
    path.write_text(path.read_text().replace("above = 0.05", "above = -0.5"))
    write_study(study, PLAN.replace("above = 0.05", "above = -0.5"))
    done = lab("diff", study)
    assert done.returncode == 1
    assert "Version 1 in frozen.json isn't the text of its digest" in done.stdout
    for damaged in (
        '{"versions": 3}',
        "[" * 100_000,
        '{"versions": [{"frozen": "now", "sha256": "", "text": ""}]}',
    ):
        path.write_text(damaged)
        assert "is damaged" in said(lab("diff", study))


def test_lines_that_changed_stand_where_they_are() -> None:
    changes = line_changes("a\nb\nc\n", "a\nB\nc\nd\n")
    assert [(change.line, change.before, change.after) for change in changes] == [
        (2, ("b",), ("B",)),
        (4, (), ("d",)),
    ]


def test_a_plan_with_its_pilots_seeds_isn_t_frozen(study: Path) -> None:
    """The same runs would be pilot and data."""
    copy_runs(study / "pilots", (1,), range(11, 12))
    done = lab("freeze", study)
    assert done.returncode == 2
    assert "pilots have seeds of the plan (11)" in done.stderr
    assert "choose another first_seed, such as 101" in done.stderr
    assert not (study / "frozen.json").exists()
    write_study(study, PLAN.replace("first_seed = 11", "first_seed = 101"))
    assert lab("freeze", study).returncode == 0


def test_pilots_made_after_the_freeze_with_its_seeds_are_named(study: Path) -> None:
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 16))
    copy_runs(study / "pilots", (2,), range(12, 13))
    assert "Pilots have seeds of the plan (12)" in lab("freeze", study).stdout
    assert "Pilots have seeds of the plan (12)" in lab("analyse", study).stdout


@pytest.mark.parametrize(
    ("compare", "matters", "limits", "says"),
    [
        ("difference", 0.1, "above = 0.05", ""),
        ("difference", 0.1, "above = 0.1", ""),
        ("difference", 0.1, "above = -0.1\nbelow = 0.1", ""),
        (
            "difference",
            0.1,
            "below = 0.5",
            "The limit 0.5 is further from 0, where A and B are the same",
        ),
        (
            "difference",
            0.1,
            "above = -0.01\nbelow = 0.01",
            "your limits are only 0.01 from the middle",
        ),
        (
            "difference",
            0.1,
            "above = -0.5\nbelow = 0.5",
            "hold in spite of a difference that matters",
        ),
        ("ratio", 1.25, "above = 0.08\nbelow = 0.125", ""),
        ("ratio", 1.1, "above = 0.9\nbelow = 1.1", ""),
        ("ratio", 1.2, "above = 2", "The limit 2 is further from 1, where A and B are the same"),
        ("ratio", 1.2, "above = 1.0\nbelow = 1.05", "your limits are only a factor of 1.025"),
    ],
)
def test_limits_that_contradict_what_matters_are_named(
    study: Path, compare: str, matters: float, limits: str, says: str
) -> None:
    text = PLAN.replace("matters = 0.1", f"matters = {matters}").replace("above = 0.05", limits)
    write_study(study, text.replace('"difference"', f'"{compare}"'))
    done = lab("freeze", study)
    assert done.returncode == 0, said(done)
    remark = done.stdout.split("that matters: ")[1].split("\n\n")[0].split("\n")[1:]
    assert (says in remark[0]) if says else remark == [], remark
    again = lab("freeze", study).stdout
    assert says in again


def test_a_plan_s_own_path_is_its_study(tmp_path: Path) -> None:
    """Messages name it, so whoever copies it from there means the folder."""
    path = tmp_path / "mine" / "plan.toml"
    assert lab("new", path, "--lab", "buffers").returncode == 0
    assert path.is_file()
    done = lab("analyse", path)
    assert f"./lab plan freeze {path.parent} lists them" in done.stderr
    copy_runs(path.parent / "pilots", (1, 2), range(1, 4))
    write_study(path.parent)
    assert lab("power", path).returncode == 0
    assert lab("freeze", path).returncode == 0
    assert lab("diff", path).returncode == 0
    assert (path.parent / "frozen.json").is_file()


def test_a_study_without_a_frozen_version_isn_t_packed(study: Path) -> None:
    for name, text in (("frozen.json", '{"versions": []}'), ("analysis.json", "{}")):
        (study / name).write_text(text)
    done = lab("pack", study)
    assert done.returncode == 2
    assert "isn't frozen yet" in said(done)


def test_a_study_s_folder_has_its_own_options(study: Path) -> None:
    for option in ("--equal", "--matters=0.2", "--compare=ratio"):
        done = lab("power", study, option)
        assert done.returncode == 2
        assert "leave the options out" in said(done)


def test_a_later_version_says_of_a_run_what_the_analysis_does(study: Path) -> None:
    """Runs after the first freeze count, so a second freeze doesn't call them early."""
    (study / "runs").mkdir(exist_ok=True)
    assert lab("freeze", study).returncode == 0
    write_study(study, PLAN.replace("above = 0.05", "above = 0.0"))
    copy_runs(study / "runs", (1, 2), range(11, 16))
    again = lab("freeze", study, at=AFTER)
    assert "as version 2" in again.stdout
    assert "Made before the plan, in runs/" not in again.stdout


# Analysed


def analysed(study: Path, *words: str | Path, code: int | None = None) -> dict[str, Any]:
    done = lab("analyse", study, *words, "--json")
    assert done.stdout, said(done)
    if code is not None:
        assert done.returncode == code
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_claim_that_holds_and_one_that_doesn_t(study: Path) -> None:
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 16))
    document = analysed(study)
    assert [setting["n"] for setting in document["settings"]] == [5, 5]
    low, high = document["interval"]
    assert low < document["estimate"] < high
    expected = "holds" if low > 0.05 else "doesn't hold" if high <= 0.05 else "can't tell"
    assert document["verdict"] == expected
    assert document["remarks"] == []
    assert len(document["runs"]) == 10
    assert (study / "analysis.md").read_text().startswith("# Which of the two buffers")
    for limit, verdict, code in (("above = -1.0", "holds", 0), ("above = 0.99", "doesn't hold", 0)):
        write_study(study, PLAN.replace("above = 0.05", limit))
        document = analysed(study, code=code)
        assert document["verdict"] == verdict
        assert "was changed after it was frozen" in document["remarks"][0]
        printed = lab("analyse", study).stdout
        assert f"Verdict: {verdict} (n = 5 and 5)" in printed
        assert f"By the plan as it was first frozen: {expected}" in printed


def test_only_the_plan_s_runs_count(study: Path) -> None:
    """A run too few, with another seed, of other settings, from before: each is said, and none is taken silently."""
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 15))
    copy_runs(study / "runs", (1,), range(16, 18))
    shutil.copytree(
        ROOT / "sample-data/05-queues/case-02-fixed/trial-01-seed1", study / "runs/other"
    )
    document = analysed(study, code=1)
    assert [setting["n"] for setting in document["settings"]] == [4, 4]
    assert document["verdict"] == "can't tell"
    assert (
        "2 of the plan's 10 runs are missing (A trial 1 seed 15, B trial 2 seed 15)"
        in document["because"]
    )
    remarks = "\n".join(document["remarks"])
    assert "2 runs with seeds that the plan doesn't have" in remarks
    assert "1 run of neither setting" in remarks


def test_runs_from_before_the_freeze_are_left_out(study: Path) -> None:
    copy_runs(study / "runs", (1, 2), range(11, 16))
    unfrozen = analysed(study)
    assert "the plan isn't frozen" in unfrozen["remarks"][0]
    done = lab("freeze", study, at=AFTER)
    assert "Made before the plan, in runs/: 5 of A, 5 of B" in done.stdout
    assert "The plan has their seeds" in done.stdout
    document = analysed(study, code=1)
    assert [setting["n"] for setting in document["settings"]] == [0, 0]
    assert "10 runs made before the plan was frozen" in "\n".join(document["remarks"])
    assert analysed(study, "--earlier")["estimate"] == unfrozen["estimate"]


def test_a_ratio_a_mean_and_equivalence_on_a_recorded_set(tmp_path: Path) -> None:
    queues = (
        PLAN.replace('"buffers"', '"queues"').replace('"jains_index"\nm', '"queue_delay_mean_ms"\nm')
        .replace(', compare_by = "jains_index"', "").replace("duration_s = 60, sample_interval_s = 1", "")
        .replace('trials = "1"', 'trials = "1-5"').replace('trials = "2"', 'trials = "21-25"')
        .replace("per_trial = 5\nfirst_seed = 11", "per_trial = 1\nfirst_seed = 1")
    )  # fmt: skip
    ratio = (
        queues.replace('"difference"', '"ratio"').replace("matters = 0.1", "matters = 1.1")
        .replace("above = 0.05", "below = 0.5")
    )  # fmt: skip
    folder = write_study(tmp_path / "ratio", ratio)
    document = analysed(folder, "--runs", TWO_ARMS, code=0)
    assert document["verdict"] == "holds"
    assert document["estimate"] == pytest.approx(8.0 / 94, rel=0.1)
    only_a = re.sub(r"\[b\].*?\[runs\]", "[runs]", queues, flags=re.DOTALL)
    only_a = only_a.replace('"difference"', '"mean"').replace(
        "above = 0.05", "above = 50\nbelow = 150"
    )
    document = analysed(write_study(tmp_path / "mean", only_a), "--runs", TWO_ARMS, code=0)
    assert document["verdict"] == "holds"
    assert [setting["n"] for setting in document["settings"]] == [5]
    quotient = queues.replace("queue_delay_mean_ms", "host_1_share - host_2_share")
    quotient = quotient.replace("above = 0.05", "above = -1\nbelow = 1").replace("0.95", "0.9")
    document = analysed(write_study(tmp_path / "equal", quotient), "--runs", TWO_ARMS, code=0)
    assert document["verdict"] == "holds"


# Handed over, and repeated


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_what_isn_t_finished_isn_t_packed(study: Path) -> None:
    assert "no frozen.json yet" in said(lab("pack", study))
    lab("freeze", study)
    assert "no analysis.json yet" in said(lab("pack", study))


def test_a_pack_holds_all_that_others_need_and_nothing_hidden(study: Path) -> None:
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 16))
    (study / "runs/buffers/.trial-01.work").mkdir()
    (study / "runs/buffers/.trial-01.work/plan.json").write_text("{}")
    (study / "runs/link").symlink_to("/etc/passwd")
    lab("analyse", study)
    done = lab("pack", study)
    assert done.returncode == 0, said(done)
    with zipfile.ZipFile(study.with_suffix(".zip")) as archive:
        names = set(archive.namelist())
        readme = archive.read("study/README.md").decode()
    assert {
        f"study/{name}" for name in ("plan.toml", "frozen.json", "analysis.json", "analysis.md")
    } <= names
    assert sum(name.endswith("/plan.json") for name in names) == 16
    assert not any("/." in name or "link" in name for name in names)
    assert "./lab run buffers --trial 1" in readme


def test_a_pack_says_what_it_lacks(study: Path) -> None:
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 16))
    shutil.rmtree(study / "runs/buffers/trial-02-seed15")
    lab("analyse", study)
    write_study(study, PLAN.replace("above = 0.05", "above = 0.0"))
    done = lab("pack", study)
    assert done.returncode == 0
    missing = "1 of the plan's 10 runs is missing (B trial 2 seed 15)"
    changed = "the plan was changed after it was frozen on 2025-11-20 00:00:00 UTC, and the change is not frozen"
    assert done.stderr == f"lab: {missing}\nlab: {changed}; ./lab plan diff lists how\n"
    with zipfile.ZipFile(study.with_suffix(".zip")) as archive:
        readme = archive.read("study/README.md").decode()
    assert "\n\nWhen it was packed:\n\n- 1 of the plan" in readme
    assert "\n- the plan was changed after it was frozen on 2025-11-20" in readme


def test_a_pack_that_lacks_nothing_warns_of_nothing(study: Path) -> None:
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 16))
    lab("analyse", study)
    done = lab("pack", study)
    assert done.stderr == ""
    with zipfile.ZipFile(study.with_suffix(".zip")) as archive:
        readme = archive.read("study/README.md").decode()
    assert "When it was packed" not in readme
    assert "\n\n\n" not in readme


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plan.toml", "expected one study with a plan.toml, and there are none; "),
        ("frozen.json", ""),
        ("runs/buffers/trial-01-seed11/plan.json", ""),
    ],
)
def test_a_flipped_byte_in_an_archive_is_named_with_its_file(
    study: Path, name: str, says: str
) -> None:
    lab("freeze", study)
    copy_runs(study / "runs", (1, 2), range(11, 16))
    lab("analyse", study)
    lab("pack", study)
    packed = study.with_suffix(".zip")
    content = bytearray(packed.read_bytes())
    with zipfile.ZipFile(packed) as archive:
        entry = archive.getinfo(f"study/{name}")
    content[entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2] ^= 0x10
    packed.write_bytes(content)
    with opened(packed) as (folder, message):
        assert f"{packed}:study/{name}: is damaged, so it is left out" in message
        assert says in message
        assert folder is None or not (folder / name).exists()


@contextmanager
def opened(packed: Path) -> Iterator[tuple[Path | None, str]]:
    """A study's archive laid open as `repeat` does it, without its runs; no folder where it has no plan."""
    try:
        with opened_artefact(packed) as (folder, refused):
            yield folder, "; ".join(refused)
    except UserError as error:
        yield None, str(error)


def test_each_repetition_has_a_folder_of_its_own(tmp_path: Path) -> None:
    assert new_folder(tmp_path) == tmp_path / "again-1"
    (tmp_path / "again-1").mkdir()
    assert new_folder(tmp_path) == tmp_path / "again-2"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a/plan.toml": PLAN.replace("duration_s = 60", 'BASH_ENV = "/tmp/x"')}, "has no parameter 'BASH_ENV'"),
        ({"a/plan.toml": PLAN.replace("duration_s = 60", 'duration_s = "$(id)"')}, "expected a number in seconds"),
        ({"a/plan.toml": PLAN, "b/plan.toml": PLAN}, "several of them"),
        ({"a/notes.txt": "nothing"}, "there are none"),
        ({"../plan.toml": PLAN}, "leads out"),
        ({"a/plan.toml": PLAN}, "there is no such folder"),
        ({"a/plan.toml": PLAN, "a/runs/x/DONE": "", "a/runs/x/plan.json": "{}"}, "names no lab"),
    ],
)  # fmt: skip
def test_what_is_handed_over_is_data(tmp_path: Path, files: dict[str, str], says: str) -> None:
    done = lab("repeat", zipped(tmp_path / "theirs.zip", files))
    assert done.returncode == 2
    assert says in said(done)
    assert not (tmp_path / "plan.toml").exists()


@pytest.mark.slow
@pytest.mark.kernel
def test_a_study_from_its_plan_to_its_verdict_with_real_runs(tmp_path: Path) -> None:
    """The commands that freeze prints are typed as they stand, and their runs are the plan's."""
    text = (
        PLAN.replace('"buffers"', '"queues"').replace('"jains_index"\nm', '"utilisation"\nm')
        .replace('duration_s = 60, sample_interval_s = 1, compare_by = "jains_index"', "duration_s = 1")
        .replace('trials = "2"', 'trials = "21"').replace("per_trial = 5", "per_trial = 2")
    )  # fmt: skip
    folder = write_study(tmp_path / "a study", text)
    done = call_lab("plan", "freeze", folder)
    commands = re.findall(r"^  \./lab (run .*)$", done.stdout, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        ran = call_lab(*shlex.split(command))
        assert ran.returncode == 0, said(ran)
    document = json.loads(call_lab("plan", "analyse", folder, "--json").stdout)
    assert [setting["n"] for setting in document["settings"]] == [2, 2]
    assert document["because"] == ""
    assert all(run["value"] > 0.3 for run in document["runs"])
    # Somebody else repeats it: with the same seeds and with new ones.
    packed = call_lab("plan", "pack", folder)
    assert packed.returncode == 0
    assert packed.stderr == ""
    theirs = folder.with_name("a study.zip")
    done = call_lab("plan", "repeat", theirs, "--again", "1", "--fresh-seeds", "2", "--json")
    found = json.loads(done.stdout)
    marks = {line["what"]: line["mark"] for line in found["What a machine looked at"]}
    assert marks.pop("new seeds give the same verdict") in "x "
    assert set(marks.values()) == {"x"}, found
    assert "1 of 1 runs that were run again have the same bytes" in marks
    # Again, into the folder of the study's own runs: none of them is lost, nor those of the first time.
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*")}
    done = call_lab("plan", "repeat", theirs, "--again", "all", "--out", folder / "runs")
    assert "/runs/again-1.\n" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in before if path.is_file()} == {
        path: moment for path, moment in before.items() if path.is_file()
    }
    shutil.rmtree(folder / "runs/again-1")
    # A run whose raw files were changed is no run of its plan.
    raw = next((folder / "runs").rglob("ss.txt"))
    raw.write_text(raw.read_text().replace("cubic", "reno_"))
    call_lab("plan", "analyse", folder)
    done = call_lab("plan", "repeat", folder, "--again", "all", "--json")
    assert done.returncode == 1
    assert "3 of 4 runs that were run again have the same bytes" in done.stdout
