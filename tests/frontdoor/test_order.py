"""tests/conftest.py: the order of the tests, and the parts that they come in."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = {
    "test_a.py": """
import pytest
def test_quick(): pass
def test_too(): pass
@pytest.mark.slow
def test_ten(): pass
""",
    "test_b.py": """
import pytest
@pytest.mark.slow(70)
@pytest.mark.parametrize("n", [1, 2])
def test_long(n): pass
def test_short(): pass
@pytest.mark.slow(3)
@pytest.mark.xdist_group("pair")
def test_one(): pass
@pytest.mark.slow(4)
@pytest.mark.xdist_group("pair")
def test_other(): pass
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(CONFTEST, tmp_path)
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow(seconds): so many\n")
    return tmp_path


def collected(folder: Path, *options: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", *options],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"^(\S+::\S+)$", done.stdout, re.MULTILINE)


def test_the_longest_come_first_and_files_stay_together(folder: Path) -> None:
    assert [name.split("::")[1] for name in collected(folder)] == [
        "test_long[1]", "test_long[2]", "test_ten", "test_one", "test_other",
        "test_quick", "test_too", "test_short",
    ]  # fmt: skip


def test_shards_have_each_test_once_and_share_the_long_ones(folder: Path) -> None:
    whole = collected(folder)
    parts = [collected(folder, "--shard", f"{number}/2") for number in (1, 2)]
    assert sorted(name for part in parts for name in part) == sorted(whole)
    for part in parts:
        assert sum("test_long" in name for name in part) == 1
        assert sum("test_one" in name or "test_other" in name for name in part) in (0, 2)


def test_workers_take_the_slow_ones_singly(folder: Path) -> None:
    """Each worker is kept to one CPU, and every test runs once."""
    (folder / "test_cpu.py").write_text(
        "import os\ndef test_cpu(all_cpus):\n    assert os.sched_getaffinity(0) == all_cpus\n"
        "def test_one(): assert len(os.sched_getaffinity(0)) == 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-n", "2", "--dist", "loadgroup",
         "--no-loadscope-reorder", "-v"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout
    workers: dict[str, set[str]] = {}
    for worker, group in re.findall(r"^\[(gw\d)\].*PASSED \S+?@(\S+)", done.stdout, re.MULTILINE):
        workers.setdefault(group, set()).add(worker)
    # pytest 9.2 loses the groups that xdist 3.8 makes: what a file prepares is then prepared by each worker.
    assert {"test_a.py", "test_b.py", "pair"} <= workers.keys()
    assert all(len(of_group) == 1 for of_group in workers.values()), workers
