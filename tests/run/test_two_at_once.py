"""The same trials wanted by two commands at once: each is measured once, and both end well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import begin_lab, until

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

WAITS = "another ./lab run is measuring trial 7 in {out}: waiting for it\n"


def start(out: Path, *choice: str) -> subprocess.Popen[str]:
    return begin_lab("run", "mathis", *choice, "--json", "--out", out)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    return process.stderr.readline()


def hold_at_work(out: Path) -> subprocess.Popen[str]:
    """A command that has begun with trial 7 and doesn't come to its end before it is told to go on."""
    process = start(out, "--trial", "7", "--duration", "20")
    until(lambda: list(out.glob("mathis/.*.work/experiment.log")))
    os.killpg(process.pid, signal.SIGSTOP)
    return process


def made(out: Path) -> dict[str, bytes]:
    """Every file that the plan decides, by its place."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in ("provenance.json", "console.txt", "experiment.log")
    }


@pytest.mark.nightly("CI runs it: by day who waits takes over from who is killed")
def test_two_sweeps_in_one_folder_share_the_work(tmp_path: Path) -> None:
    choice = ("--trials", "1-3", "--duration", "2")
    alone = start(tmp_path / "alone", *choice)
    alone.communicate(timeout=120)
    both = [start(tmp_path / "both", *choice) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in (alone, *both)] == [0, 0, 0], outputs
    results, others = (json.loads(out) for out, _ in outputs)
    assert results == others
    assert [result["trial"] for result in results] == [1, 2, 3]
    assert made(tmp_path / "both") == made(tmp_path / "alone")
    assert not list((tmp_path / "both/mathis").glob(".*"))


def test_who_waits_takes_over_from_who_is_killed(tmp_path: Path) -> None:
    first = hold_at_work(tmp_path)
    second = start(tmp_path, "--trial", "7", "--duration", "20")
    assert first_line(second) == WAITS.format(out=tmp_path)
    first.kill()
    first.communicate()
    out, errors = second.communicate(timeout=120)
    assert (second.returncode, errors) == (0, "")
    assert json.loads(out)[0]["trial"] == 7


def test_ctrl_c_ends_the_waiting_and_not_the_other(tmp_path: Path) -> None:
    first = hold_at_work(tmp_path)
    second = start(tmp_path, "--trial", "7", "--duration", "20")
    assert first_line(second) == WAITS.format(out=tmp_path)
    second.send_signal(signal.SIGINT)
    _, errors = second.communicate(timeout=10)
    assert second.returncode == 130
    assert errors.strip().startswith("lab: stopped; finished trials are kept")
    os.killpg(first.pid, signal.SIGCONT)
    out, errors = first.communicate(timeout=120)
    assert (first.returncode, errors) == (0, "")
    assert json.loads(out)[0]["trial"] == 7
