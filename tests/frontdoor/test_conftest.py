"""tests/conftest.py: a CPU for each worker, and a reason for what is left to the night."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
import os
import pytest

@pytest.mark.parametrize("n", range(4))
def test_one(n):
    assert len(os.sched_getaffinity(0)) == 1

def test_all(all_cpus):
    assert os.sched_getaffinity(0) == all_cpus

@pytest.mark.nightly(WHY)
def test_dear(): pass
"""


def run_tests(folder: Path, why: str, *options: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder)
    (folder / "test_it.py").write_text(TESTS.replace("WHY", why))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  nightly(reason): dear\n")
    return subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", *options],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_each_worker_has_a_cpu(tmp_path: Path) -> None:
    done = run_tests(tmp_path, "'shown in short'", "-n", "2", "--dist", "worksteal")
    assert "6 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_what_is_left_to_the_night_has_a_reason(tmp_path: Path) -> None:
    done = run_tests(tmp_path, "'shown in short'", "--nightly-reasons")
    assert "test_it.py::test_dear\n    shown in short\n" in done.stdout
    done = run_tests(tmp_path, "", "-k", "dear")
    assert "test_dear: nightly says what proves the same by day" in done.stdout + done.stderr
