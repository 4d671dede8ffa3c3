"""Runs of a class run again: from checked settings alone, what is finished kept, and no plan obeyed."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from class_of import Class, edit_json, make_class
from command_line import begin_lab, call_lab, until

from measuretwice.backends.virtual import Virtual
from measuretwice.execute.batch import Batch
from measuretwice.grading.integrity import Remark
from measuretwice.grading.reader import read_submission
from measuretwice.grading.rerun import (
    FILE,
    ChosenRun,
    choose_runs,
    compare,
    known_reruns,
    plan_key,
    plan_runs,
    read_finished,
)
from measuretwice.grading.submission import Contents, SubmittedRun
from measuretwice.lab import digest_scripts, load_lab

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
GOOD = ROOT / "tests/data/report/trial-07-seed1-b402df08"


class Named(Virtual):
    """The virtual kernel by name: what plans are made with, where nothing is run."""

    def __init__(self, kernel: str, tools: dict[str, str]) -> None:
        self.kernel, self.tools = kernel, tools


@pytest.fixture
def run(batch: Batch, tmp_path: Path) -> SubmittedRun:
    """A run whose plan is one of today's."""
    plan = batch.job(7, seed=1).plan
    old = read_submission(ROOT, [GOOD], tmp_path / "tree").runs[0]
    return replace(old, params=dict(plan.params), plan=plan.digest, kernel=plan.kernel)


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    plan = json.loads((GOOD / "plan.json").read_text())
    backend = Named(plan["kernel"], plan["tools"])
    return Batch(ROOT, LAB, tmp_path / "out", backend, digest_scripts(LAB, ROOT / "scripts"))


def planned(batch: Batch, run: SubmittedRun, costly: bool = False) -> tuple[bool, str]:
    """Whether it would be run again, and else why not."""
    jobs, refused = plan_runs(batch, [ChosenRun(0, run, False)], costly=costly)
    assert len(jobs) + len(refused) == 1
    return bool(jobs), next((refusal.says for refusal in refused.values()), "")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"congestion_control": "reno; touch /tmp/here"}, "congestion_control"),
        ({"congestion_control": "$(touch /tmp/here)"}, "congestion_control"),
        ({"timestamps": "off\nrm -rf /"}, "timestamps"),
        ({"rtt_ms": "6; reboot"}, "rtt_ms"),
        ({"rtt_ms": 1e9}, "rtt_ms"),
        ({"PATH": "/tmp"}, "no parameter 'PATH'"),
        ({"LD_PRELOAD": "/tmp/x.so"}, "no parameter 'LD_PRELOAD'"),
    ],
)
def test_settings_that_the_lab_doesnt_know_are_never_run(
    batch: Batch, run: SubmittedRun, changes: dict[str, Any], says: str
) -> None:
    will, why = planned(batch, replace(run, params={**run.params, **changes}))
    assert not will
    assert why.startswith("can't be run again: its plan")
    assert says in why


def test_a_plan_that_lacks_a_setting(batch: Batch, run: SubmittedRun) -> None:
    params = {name: value for name, value in run.params.items() if name != "rtt_ms"}
    assert (
        planned(batch, replace(run, params=params))[1]
        == "can't be run again: its plan has no rtt_ms"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"trial": 999}, "no trial 999"),
        ({"where": "host"}, "it is a run on host"),
        ({"edited": True}, "its node scripts were the student's own"),
        ({"kernel": "linux 6.1"}, "its kernel was linux 6.1, this one is"),
        ({}, "were other versions"),
    ],
)
def test_what_cant_be_repeated_is_said_and_not_run(
    batch: Batch, run: SubmittedRun, changes: dict[str, Any], says: str
) -> None:
    will, why = planned(batch, replace(run, plan="00000000", **changes))
    assert not will
    assert says in why


def test_what_takes_long_is_run_where_it_is_asked_for(batch: Batch, run: SubmittedRun) -> None:
    job = batch.job(run.trial, seed=run.seed, changes={"duration_s": 800_000})
    long = replace(run, plan=job.plan.digest, params=dict(job.plan.params))
    will, why = planned(batch, long)
    assert not will
    assert "min of one CPU; --costly runs it" in why
    assert planned(batch, long, costly=True) == (True, "")


def test_disputed_runs_first_and_the_same_each_time(run: SubmittedRun) -> None:
    runs = tuple(replace(run, run=f"run-{n}") for n in range(9))
    contents = [Contents(runs=runs), Contents(runs=runs)]
    remarks = [[], [Remark("copy", "run-7", "x"), Remark("same seed", "run-3", "x")]]
    chosen = choose_runs(["ada", "grace"], contents, remarks, 2)
    assert [(choice.index, choice.disputed) for choice in chosen] == [
        (1, True),
        (0, False),
        (0, False),
        (1, False),
    ]
    assert chosen[0].run.run == "run-7"
    assert choose_runs(["ada", "grace"], contents, remarks, 2) == chosen
    lots = {choose_runs([name], contents[:1], [[]], 1)[0].run.run for name in "abcdefghijkl"}
    assert len(lots) > 3
    assert len(choose_runs(["ada", "grace"], contents, remarks, 1_000_000)) == 18


def test_what_was_run_is_known_without_a_kernel(run: SubmittedRun, tmp_path: Path) -> None:
    other = {**run.files, "romeo/iperf3.json": "0" * 64, "more.txt": "1"}
    assert compare(run, run.files).same is True
    assert compare(run, other).says == (
        f"run again from its plan, 2 of {len(other)} raw files come out otherwise (more.txt, romeo/iperf3.json)"
    )
    contents = [Contents(runs=(run,))]
    assert known_reruns(contents, {plan_key(run): run.files})[0, run.run].same is True
    assert known_reruns(contents, {plan_key(replace(run, seed=2)): run.files}) == {}
    for text in ("", "[]", '{"x": 1}', '{"x": {"y": 1}}', "\xff"):
        (tmp_path / FILE).write_text(text, encoding="latin-1")
        assert read_finished(tmp_path / FILE) == {}


@pytest.mark.parametrize("number", ["0", "-1", "some", "1.5", ""])
def test_a_wrong_number_is_one_line(tmp_path: Path, number: str) -> None:
    done = call_lab("grade", tmp_path, "--again", number)
    assert done.returncode == 2
    assert "expected a number from 1, or all" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Class:
    return make_class(tmp_path_factory.mktemp("again") / "it", 3, 10, fixed=())


@pytest.mark.nightly(
    "which runs, from which settings, compared and kept: this file; Ctrl-C while trials run: test_run.py"
)
@pytest.mark.kernel
@pytest.mark.slow
def test_ctrl_c_loses_nothing_and_no_hand_in_is_obeyed(three: Class, tmp_path: Path) -> None:
    here = tmp_path / "here"
    for run in three.place("s1002").iterdir():
        edit_json(run / "provenance.json", command=f"./lab run mathis; touch {here}")
        with open(run / "experiment.sh", "a") as script:
            script.write(f"touch {here}\n")
    results_file = three.handed.with_name("submissions-grades") / FILE
    process = begin_lab("grade", three.handed, "--again", "all", "--jobs", "1")
    until(results_file.exists, 120)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130, errors
    assert "the same command goes on from there" in errors
    before = read_finished(results_file)
    assert 1 <= len(before) < 3
    done = call_lab("grade", three.handed, "--again", "all", "--json")
    document = json.loads(done.stdout)
    assert any(
        line.startswith("Run again, of 3 runs: 3 the same bytes, 0 not (")
        for line in document["says"]
    )
    assert before.items() <= read_finished(results_file).items()
    assert not here.exists()
    # Known without --again, and said on the student's page.
    done = call_lab("grade", three.handed)
    assert done.stdout.count("run again, the same bytes") == 3
    pages = (results_file.parent / "marking").glob("*.html")
    assert all("Run again, the same bytes." in page.read_text() for page in pages)
    assert "touch" not in "".join(page.read_text() for page in results_file.parent.rglob("*.html"))
