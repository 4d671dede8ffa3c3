"""Recorded runs: they come out again byte for byte, and what doesn't is named."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.course.findings import check_one, check_together
from measuretwice.execute import record
from measuretwice.lab import find_labs, load_lab, trial_params
from measuretwice.runs.folder import (
    ARCHIVE,
    DONE,
    digest_of,
    digest_of_files,
    pack,
    raw_files,
    raw_folder,
)
from measuretwice.runs.recorded import (
    SET_FILE,
    VERIFIED_FILE,
    read_set,
    results_of,
    set_folders,
    short_name,
    still_verified,
    verifications,
)
from measuretwice.runs.series import SERIES_FILE, read_series

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
RECORDED = sorted(path.parent for path in SAMPLES.glob("*/*/results.json"))


def run_record(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call_lab("record", *arguments, MEASURETWICE_ROOT=str(root))


def test_everything_that_a_lab_records_is_there_and_nothing_else() -> None:
    for folder in SAMPLES.iterdir():
        if folder.is_dir():
            lab = load_lab(ROOT, folder.name)
            wanted = {wanted.name for wanted in record.sets_of(lab)}
            there = {path.name for path in folder.iterdir() if path.is_dir()}
            assert there == wanted


def test_recorded_runs_are_small() -> None:
    """Under 60 MB in all, and no lab has more than twice its share: who takes one lab gets little."""
    sizes = {
        folder.name: sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        for folder in SAMPLES.iterdir()
        if folder.is_dir()
    }
    assert sum(sizes.values()) < 60 * 10**6
    assert max(sizes.values()) < 2 * 60 * 10**6 / len(sizes), sizes


@pytest.mark.slow
@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.name)
def test_recorded_set_is_whole(folder: Path) -> None:
    """Its plan is today's lab.toml's, and each archive holds what its digest says."""
    lab = load_lab(ROOT, folder.parent.name)
    found = read_set(folder)
    [meant] = [known for known in record.sets_of(lab) if known.name == folder.name]
    assert {run.result.trial for run in found.runs} == set(meant.trials)
    for run in found.runs:
        wanted = trial_params(
            lab,
            run.result.trial,
            stage=meant.stage,
            case=meant.case,
            seed=meant.seed,
            changes=meant.changes,
        )
        if meant.losses:
            wanted["duration_s"] = run.result.params["duration_s"]
        # Until all is recorded anew: runs of the time before these parameters.
        for name in ("cable_mbit", "processing_us", "reader_interval_ms"):
            if name not in run.result.params:
                wanted.pop(name, None)
        assert run.result.params == wanted
        run_folder = folder / run.name
        assert run_folder.is_dir() == (meant.keep == "raw")
        if run_folder.is_dir():
            assert (run_folder / DONE).is_file()
            files = raw_files(run_folder)
            assert digest_of_files(files.items()) == run.raw_sha256


def test_a_set_read_and_written_is_the_same() -> None:
    """So a set recorded anew differs from what still_verified there in nothing but what was measured."""
    for folder in RECORDED:
        found = read_set(folder)
        # What is said of flows has grown since some sets were recorded.
        if not any(run.result.flows for run in found.runs):
            assert found.to_text() == (folder / SET_FILE).read_text(), folder.name


# Sets that are a stage of a pitfall: they have its case's number.
STAGED = [folder for folder in RECORDED if folder.name.startswith("case-")]


@pytest.mark.parametrize("folder", STAGED, ids=lambda path: path.name)
def test_a_stage_recorded_is_a_stage_found(folder: Path) -> None:
    """Broken shows its own finding, fixed shows none; for sets of trials the set itself does."""
    lab = load_lab(ROOT, folder.parent.name)
    [meant] = [known for known in record.sets_of(lab) if known.name == folder.name]
    assert meant.pitfall
    # What ./lab check asks, without its processes: to start one for each takes longer than to check.
    runs = sorted(path.parent for path in folder.glob(f"*/{DONE}"))
    documents = [check_one(ROOT, run, None) for run in runs]
    documents += check_together(ROOT, documents, None)
    found = {finding["id"] for document in documents for finding in document["findings"]}
    pitfall = lab.pitfall(meant.pitfall)
    if meant.stage is None:
        assert pitfall.finding in found
        assert found - {pitfall.finding} <= set(pitfall.follows)
    else:
        assert found == set()


def test_every_stage_that_is_recorded_is_looked_at() -> None:
    labs = {load_lab(ROOT, folder.name) for folder in SAMPLES.iterdir() if folder.is_dir()}
    staged = {
        (lab.folder.name, wanted.name)
        for lab in labs
        for wanted in record.sets_of(lab)
        if wanted.pitfall
    }
    assert {(folder.parent.name, folder.name) for folder in STAGED} == staged


def test_calibrates_instruments_read_what_was_set() -> None:
    lab = load_lab(ROOT, "calibrate")
    results = results_of(lab, SAMPLES / lab.folder.name / "readings")
    assert [result.trial for result in results] == list(lab.trials)
    for result in results:
        assert result.expectations
        for expectation in result.expectations:
            assert expectation.ok is True, (result.trial, expectation)


def test_a_set_named_by_different_paths_and_with_a_tampered_plan(tmp_path: Path) -> None:
    """Some runs by their full paths, some from here; then one more whose plan was changed."""
    folder = SAMPLES / "01-mathis" / "case-13-broken"
    copy = tmp_path / "copy"
    shutil.copytree(next(folder.glob("trial-*")), copy)
    plan = json.loads((copy / "plan.json").read_text())
    (copy / "plan.json").write_text(json.dumps({**plan, "trial": 999}))
    runs = [str(run) for run in folder.glob("trial-*")]

    def check(*targets: str) -> subprocess.CompletedProcess[str]:
        return call_lab("check", *targets)

    done = check(*runs[1:], os.path.relpath(runs[0]))
    assert done.returncode == 1
    assert done.stderr == ""
    assert "  something is off\n" in done.stdout
    assert "cherry-picking (error)" in check(*runs, "--hint", "3").stdout
    done = check(*runs, str(copy))
    # What was found counts, and what couldn't be read is said.
    assert done.returncode == 1
    assert "plan.json: mathis has no trial 999" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_value_that_was_not_measured_then_is_no_difference(tmp_path: Path) -> None:
    """Recorded before a value was measured: its runs still come out again. Another number is told."""
    lab, name = load_lab(ROOT, "scale"), "case-07-broken"
    shutil.copytree(SAMPLES / lab.folder.name / name, tmp_path / name)
    [result] = results_of(lab, tmp_path / name)
    with raw_folder(tmp_path / name / short_name(result.trial, result.seed)) as raw:
        shutil.copytree(raw, tmp_path / "run" / "raw")
    now = replace(result, folder=tmp_path / "run")
    assert record.compare(tmp_path / name, [now]) == []
    more = replace(now, measured={**now.measured, "measured_since": 1})
    assert record.compare(tmp_path / name, [more]) == []
    other = replace(now, measured={**now.measured, "flows": -1})
    assert "other numbers" in record.compare(tmp_path / name, [other])[0]


def test_unknown_set_names_those_there_are() -> None:
    done = run_record(ROOT, "mathis", "--only", "nosuch")
    assert done.returncode == 2
    assert "--only nosuch: mathis records step-1" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_nothing_recorded_is_one_line(tmp_path: Path) -> None:
    for name in ("labs", "scripts"):
        os.symlink(ROOT / name, tmp_path / name)
    done = run_record(tmp_path, "mathis", "--verify", "--only", "mtu")
    assert done.returncode == 2
    assert "record it first with ./lab record" in done.stderr


def test_notes_of_second_runs(tmp_path: Path) -> None:
    done = run_record(ROOT, "mathis", "--note")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "--note is for --verify" in done.stderr
    (tmp_path / VERIFIED_FILE).write_text('{"mtu": 1}')
    with pytest.raises(UserError, match="damaged"):
        verifications(tmp_path)


@pytest.mark.parametrize(
    "folder", sorted(SAMPLES.glob("*/" + VERIFIED_FILE)), ids=lambda path: path.parent.name
)
def test_each_note_is_of_what_is_recorded_now(folder: Path) -> None:
    """Who records a set anew verifies it anew, or takes its note away."""
    noted = verifications(folder.parent)
    assert noted
    for name in noted:
        assert still_verified(noted, read_set(folder.parent / name)), name


# Of each lab a set that takes a few seconds.
WITNESSES = {
    "calibrate": "wide-buffer",
    "mathis": "case-04-fixed",
    "buffers": "case-03-fixed",
    "scale": "case-04-broken",
    "variants": "sequence",
    "queues": "case-03-broken",
    "latency": "case-06-fixed",
}


def test_each_lab_has_its_witness() -> None:
    assert WITNESSES.keys() == set(find_labs(ROOT))


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize("lab", WITNESSES)
def test_recorded_runs_come_out_again(tmp_path: Path, lab: str) -> None:
    """Equal plans make equal bytes: other tests rely on it, and look at recorded runs (support/recordings.py)."""
    # Inside, a link out of the checkout leads nowhere.
    for name in ("labs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    os.symlink(ROOT / "sample-data", tmp_path / "sample-data")
    done = run_record(tmp_path, lab, "--verify", "--only", WITNESSES[lab])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.kernel
@pytest.mark.slow
def test_runs_come_out_as_recorded_and_a_change_is_named(tmp_path: Path) -> None:
    """Two stages through the kernel, recorded and run again; then one byte changed in what is recorded."""
    for name in ("labs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(
        SAMPLES / "05-queues",
        tmp_path / "sample-data" / "05-queues",
        ignore=shutil.ignore_patterns(VERIFIED_FILE),
    )
    done = run_record(tmp_path, "queues", "--only", "default-qdisc")
    assert done.returncode == 0, done.stdout + done.stderr
    # What another --verify, at work beside this one, has so far.
    beside = tmp_path / "runs" / "verified" / "queues" / "trial-01-seed1-00000000"
    beside.mkdir(parents=True)
    done = run_record(tmp_path, "queues", "--verify", "--note", "--only", "default-qdisc")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 sets: the same byte for byte" in done.stdout
    noted = verifications(tmp_path / "sample-data" / "05-queues")
    assert {"case-03-broken", "case-03-fixed"} <= noted.keys()
    assert noted["case-03-fixed"].real_s >= 0
    # What has a note isn't run again.
    done = run_record(tmp_path, "queues", "--verify", "--note", "--only", "default-qdisc")
    assert (done.returncode, done.stdout) == (0, "0 sets: the same byte for byte\n"), done.stderr
    folder = tmp_path / "sample-data" / "05-queues" / "case-03-fixed"
    path = folder / "results.json"
    document = json.loads(path.read_text())
    with raw_folder(folder / "trial-01-seed1") as raw:
        (raw / "host-1" / "ping.txt").write_text("PING\n")
        document["runs"][0]["raw_sha256"] = digest_of(raw)
        pack(raw, folder / "trial-01-seed1" / ARCHIVE)
    path.write_text(json.dumps(document))
    # A note is of what was recorded then.
    done = run_record(tmp_path, "queues", "--verify", "--note", "--only", "case-03-fixed")
    assert done.returncode == 1
    assert "case-03-fixed: trial-01-seed1 differs in host-1/ping.txt" in done.stdout
    # What differed can be looked at, and is not taken for the next verification's run.
    assert list((tmp_path / "runs" / "differing" / "queues").glob("case-03-*/DONE"))
    assert list(beside.parent.glob("trial-*")) == [beside]


@pytest.mark.kernel
def test_a_second_run_completes_the_series(tmp_path: Path) -> None:
    """A set that was recorded before sets kept what each flow got: noted or not, --only runs it again, and adds that."""
    for name in ("labs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    folder = tmp_path / "sample-data" / "05-queues"
    shutil.copytree(SAMPLES / "05-queues", folder)
    (folder / "first-try" / SERIES_FILE).unlink(missing_ok=True)
    before = (folder / "first-try" / SET_FILE).read_bytes()
    done = run_record(tmp_path, "queues", "--verify", "--note", "--only", "first-try")
    assert (done.returncode, done.stdout) == (0, "1 sets: the same byte for byte\n"), done.stderr
    series = read_series(folder / "first-try")
    runs = read_set(folder / "first-try").runs
    assert {(flow.trial, flow.seed) for flow in series} == {
        (run.result.trial, run.result.seed) for run in runs
    }
    assert (folder / "first-try" / SET_FILE).read_bytes() == before
    # Now nothing is missing.
    done = run_record(tmp_path, "queues", "--verify", "--note", "--only", "first-try")
    assert (done.returncode, done.stdout) == (0, "0 sets: the same byte for byte\n"), done.stderr


def test_a_set_that_is_being_recorded_is_none(tmp_path: Path) -> None:
    for name in ("one", ".two.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text("[")
    assert set_folders(tmp_path) == [tmp_path / "one"]
