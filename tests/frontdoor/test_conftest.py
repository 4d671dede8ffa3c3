"""tests/conftest.py: each of pytest's workers has a CPU of its own."""

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
"""


@pytest.mark.slow
def test_each_worker_has_a_cpu(tmp_path: Path) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "5 passed" in done.stdout, done.stdout
