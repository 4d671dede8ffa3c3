"""`./lab plot` as a student calls it, on runs written by hand: no kernel is needed."""

import csv
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from command_line import call_lab

from measuretwice.lab import Lab, Toolchain, load_lab, make_plan
from measuretwice.runs.result import make_result

ROOT = Path(__file__).parents[2]
LAB = "mathis"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of labs and nothing else: without runs."""
    shutil.copytree(ROOT / "labs", tmp_path / "labs")
    return tmp_path


def write_run(folder: Path, lab: Lab, trial: int, ratio: float = 1.25, **plan: Any) -> None:
    """A finished run whose goodput is `ratio` of the model's."""
    made = make_plan(lab, trial, toolchain=Toolchain("virtual", "", {}, {}), **{"seed": 1, **plan})
    measured = {"duration_s": 240.0, "qdisc_drops": 900, "qdisc_offered_packets": 300_000}
    bandwidth_bps = make_result(lab, made, measured).model_bps
    result = make_result(lab, made, {**measured, "goodput_bps": ratio * bandwidth_bps})
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result.to_json()))
    (folder / "DONE").touch()


def plot(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call_lab("plot", *arguments, cwd=root, MEASURETWICE_ROOT=str(root))


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_labs_own_runs_are_plotted_and_no_others(root: Path) -> None:
    lab, runs = load_lab(root, LAB), root / "runs" / LAB
    for trial in (2, 3, 7):
        write_run(runs / f"trial-{trial}", lab, trial)
    write_run(runs / "trial-7-newer", lab, 7, 1.3)
    write_run(runs / "trial-7-short", lab, 7, changes={"duration_s": 60})
    write_run(runs / "trial-7-seed", lab, 7, seed=2)
    write_run(runs / "trial-5-pitfall", lab, 5, pitfall="loss-percent", stage="fixed")
    write_run(runs / ".trial-8-at-work", lab, 8)
    write_run(runs / "trial-9-broken-off", lab, 9)
    (runs / "trial-9-broken-off" / "DONE").unlink()
    os.utime(runs / "trial-7" / "DONE", (1, 1))
    done = plot(root, LAB)
    assert done.returncode == 0, done.stderr
    out = root / "runs" / "figures" / LAB
    wanted = [out / f"{name}.{end}" for name in ("measured-against-model", "window-against-loss") for end in ("svg", "csv")]  # fmt: skip
    assert done.stdout.splitlines() == [str(path) for path in wanted]
    assert sorted(out.iterdir()) == sorted(wanted)
    assert [row["run"] for row in rows(wanted[1])] == ["trial-2", "trial-3", "trial-7-newer"]
    message = done.stderr.strip()
    assert message.startswith("left out of 7 runs: ")
    assert message.endswith("; 57 of 60 trials have not been run")
    for reason in (
        "1 older", "1 with a mistake that was staged", "1 with another seed", "1 with other settings",
    ):  # fmt: skip
        assert reason in message
    text = " ".join(ElementTree.parse(wanted[0]).getroot().itertext())
    assert "published, first try" in text
    assert "fitted to 3 trials" in text
    # The same again, to the byte; and with the other seed its one run.
    before = wanted[0].read_bytes()
    assert plot(root, LAB).returncode == 0
    assert wanted[0].read_bytes() == before
    assert plot(root, LAB, "--seed", "2").returncode == 0
    assert [row["run"] for row in rows(wanted[1])] == ["trial-7-seed"]


def test_whatever_their_seed_or_case_ones_own_runs_are_drawn(root: Path) -> None:
    lab, runs = load_lab(root, LAB), root / "runs" / LAB
    for trial, case in ((9, 5), (11, 3)):
        write_run(runs / f"case-{case:02d}-trial-{trial}", lab, trial, seed=4711, case=case)
    done = plot(root, LAB)
    assert done.returncode == 0, done.stderr
    table = root / "runs/figures" / LAB / "measured-against-model.csv"
    assert [row["trial"] for row in rows(table)] == ["9", "11"]
    assert done.stderr.splitlines() == [
        "mathis: no run has the lab's own settings, so the newest of each trial is drawn as it is: 2 of a case"
    ]
    # As soon as there are runs of the lab as it stands, these are drawn, with the seed that they have.
    for trial in (2, 3):
        write_run(runs / f"trial-{trial}", lab, trial, seed=4711)
    write_run(runs / "trial-2-other", lab, 2, seed=1)
    done = plot(root, LAB)
    assert [row["run"] for row in rows(table)] == ["trial-2", "trial-3"]
    assert done.stderr.startswith("left out of 5 runs: 2 of a case, 1 with another seed; 58 of 60")
    assert not re.search("pitfall|stage|arm", done.stderr)


def test_folders_of_runs_are_stages(root: Path) -> None:
    lab = load_lab(root, LAB)
    for stage, ratio in (("found", 4.0), ("fixed", 1.25)):
        for trial in (2, 3, 7):
            write_run(root / stage / f"trial-{trial}", lab, trial, ratio)
    done = plot(root, "As it was found=found", "fixed", "--out", "to", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["lab"] == LAB
    assert document["files"][-2:] == ["to/stages.svg", "to/stages.csv"]
    assert all((root / file).is_file() for file in document["files"])
    assert [run_set["title"] for run_set in document["sets"]] == ["As it was found", "fixed"]
    assert [len(run_set["rows"]) for run_set in document["sets"]] == [3, 3]
    assert document["sets"][1]["fit"]["constant"] == pytest.approx(1.25, 1e-3)
    assert {value["trial"] for value in document["published"]} >= {3, 5}
    text = " ".join(ElementTree.parse(root / "to" / "stages.svg").getroot().itertext())
    for words in ("As it was found", "fixed", "0 of 3", "3 of 3"):
        assert words in text
    assert [row["set"] for row in rows(root / "to" / "stages.csv")] == ["As it was found"] * 3 + ["fixed"] * 3  # fmt: skip


def test_single_runs_are_one_set(root: Path) -> None:
    lab = load_lab(root, LAB)
    for trial in (2, 3):
        write_run(root / f"trial-{trial}", lab, trial)
    done = plot(root, "trial-2", "trial-3", "--out", "to", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [len(run_set["rows"]) for run_set in document["sets"]] == [2]
    assert not (root / "to" / "stages.svg").exists()
    done = plot(root, "trial-2", "--figure", "stages", "--out", "one")
    assert done.stdout.split() == ["one/stages.svg", "one/stages.csv"]


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a mistake gets."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_what_cannot_be_plotted_is_one_line(root: Path) -> None:
    lab = load_lab(root, LAB)
    assert f"run ./lab run {LAB} first" in refused(plot(root, LAB))
    assert "no such folder of runs, and no lab; labs are" in refused(plot(root, "nowhere"))
    assert "has neither [model] nor [[figures]]" in refused(plot(root, "calibrate"))
    known = "expected one of measured-against-model, window-against-loss, stages"
    assert known in refused(plot(root, LAB, "--figure", "pie"))
    assert "LAB|RUN..." in refused(plot(root))
    (root / "empty").mkdir()
    assert "empty: holds no finished run" in refused(plot(root, "empty"))
    write_run(root / "runs" / LAB / "trial-7", lab, 7, seed=3)
    message = refused(plot(root, LAB, "--seed", "1"))
    assert "none of its 1 runs has seed 1; they have 3" in message
    (root / "file").touch()
    assert "choose another folder with --out" in refused(plot(root, "runs", "--out", "file"))  # fmt: skip


def test_a_broken_run_is_named(root: Path) -> None:
    run = root / "runs" / LAB / "trial-7"
    write_run(run, load_lab(root, LAB), 7)
    result = json.loads((run / "result.json").read_text())
    for broken in ('{"measured": {', '{"measured": {}}', json.dumps({**result, "params": None})):
        (run / "result.json").write_text(broken)
        for target in (LAB, "runs", "runs/mathis/trial-7"):
            message = refused(plot(root, target))
            assert "trial-7: " in message
            assert "delete the folder and run again" in message


def test_runs_of_two_labs_are_refused(root: Path) -> None:
    for name in ("one", "other"):
        write_run(root / "both" / name, load_lab(root, LAB), 7)
    file = root / "both" / "other" / "result.json"
    file.write_text(
        json.dumps({**json.loads(file.read_text()), "lab": "calibrate", "trial": 1, "params": {}})
    )
    assert "of calibrate and mathis: plot one lab at a time" in refused(plot(root, "both"))


def test_two_sets_of_a_lab_with_figures_of_its_own_are_never_pooled(tmp_path: Path) -> None:
    """Each has its figures under its title, of its own run only."""
    stages = {
        title: ROOT / f"sample-data/02-buffers/case-01-{stage}"
        for title, stage in (("As found", "broken"), ("fixed", "fixed"))
    }
    targets = [f"{title}={folder}" for title, folder in stages.items()]
    done = call_lab("plot", *targets, "--out", "to", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "to"
    assert {path.name for path in out.iterdir()} == {"as-found", "fixed"}
    for title, folder in stages.items():
        place = out / title.lower().replace(" ", "-")
        text = " ".join(ElementTree.parse(place / "windows-and-queue.svg").getroot().itertext())
        assert title in text
        (run,) = [json.loads(path.read_text()) for path in folder.glob("*/result.json")]
        (row,) = rows(place / "fairness-against-buffer.csv")
        assert row["runs"] == "1"
        assert float(row["mean"]) == pytest.approx(run["measured"]["jains_index"], 1e-5)
    # As single runs they would be one set, and one of them would be dropped.
    single = [str(run) for folder in stages.values() for run in folder.glob("trial-*")]
    done = call_lab("plot", *single, "--out", "to", cwd=tmp_path)
    assert "trial 1 is there with different settings (buffer_text)" in refused(done)


def test_a_figure_is_drawn_only_of_runs_with_its_settings(tmp_path: Path) -> None:
    runs = ROOT / "sample-data/05-queues/two-arms-once"
    done = call_lab("plot", runs, "--out", "to", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "to/no-queue.svg").exists()
    assert (tmp_path / "to/two-arms.svg").is_file()
    assert done.stderr == ""
    asked = call_lab("plot", runs, "--figure", "no-queue", "--out", "to", cwd=tmp_path)
    assert "--figure no-queue: none of these runs has rate_mbit = 1000" in refused(asked)
    done = call_lab("plot", ROOT / "sample-data/05-queues/no-queue", "--figure", "no-queue", "--out", "to", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
