"""./lab start on the real kernel: a first try of two runs, the cases solved, the claim turned round."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import call_lab

ROOT = Path(__file__).parents[2]


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return call_lab(*arguments)


@pytest.mark.nightly("the same on recorded runs: tests/unit/test_first_try.py")
@pytest.mark.kernel
@pytest.mark.slow
def test_the_first_try_moves_with_the_cases(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "runs")]
    first = lab("start", "queues", "--seed", "77", *out)
    assert first.returncode == 0, first.stderr
    assert "The claim: It makes no difference" in first.stdout
    assert "That supports the claim." in first.stdout
    assert "Next: ./lab run queues --case 1 " in first.stdout
    assert not re.search("bottleneck|delay|access|rate_mbit", first.stdout + first.stderr)
    book = tmp_path / "runs/queues/lab-book.md"
    assert "- Seed: 77" in book.read_text()
    assert "## First try\n\n- Run: first try: " in book.read_text()
    runs = sorted((tmp_path / "runs/start/queues").glob("trial-*-seed77-*"))
    assert len(runs) == 2

    # Broken off half-way: what is finished is kept, and the book's seed is taken.
    kept = (runs[0] / "result.json").stat().st_mtime_ns
    shutil.rmtree(runs[1])
    again = lab("start", "queues", *out)
    assert again.returncode == 0, again.stderr
    assert "1 of 2 are measured already" in again.stderr
    assert (runs[0] / "result.json").stat().st_mtime_ns == kept
    assert sorted((tmp_path / "runs/start/queues").glob("trial-*")) == runs

    book.write_text(
        book.read_text()
        + "\n## Case 1: one\n\n- Outcome: nothing is off any more\n"
        + "\n## Case 2: two\n\n- Shown: the mended run\n"
    )
    progress = lab("progress", "queues", *out).stdout
    assert "./lab start queues shows what your last cases did to it." in progress
    moved = lab("start", "queues", "--json", *out)
    assert moved.returncode == 0, moved.stderr
    document = json.loads(moved.stdout)
    assert document["cases"] == [1, 2]
    assert document["last"]
    assert not document["supports"]
    assert [step["after"] for step in document["so_far"]] == ["first try", "after cases 1 and 2"]
    assert document["next_case"] == 3
    assert document["figure"] is None
    assert {row["trial"] for row in document["runs"]} == {1, 21}
    told = lab("start", "queues", *out)
    assert "That does not support the claim." in told.stdout
    assert "With what you found in cases 1 and 2: rate_mbit as the trial has it" in told.stdout
    assert "first try: " in told.stdout
    assert "It makes a difference to where packets wait" in told.stdout
    assert " · after cases 1 and 2: " in lab("progress", "queues", *out).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["calibrate"], "calibrate has no first try of its own"),
        (["nonsense"], "there is no lab 'nonsense'"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--trial", "7"], "No such option"),
        (["mathis", "--out", "/proc/nowhere"], "can't be written to"),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    where = [] if "--out" in arguments else ["--out", str(tmp_path)]
    done = lab("start", *arguments, *where)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_file_of_states_is_one_line_before_anything_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "start/mathis"
    folder.mkdir(parents=True)
    (folder / "steps.json").write_text("{")
    for command in (["start", "mathis"], ["progress", "mathis"]):
        done = lab(*command, "--out", str(tmp_path))
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert "steps.json: can't be read" in done.stderr
    assert [*folder.iterdir()] == [folder / "steps.json"]
