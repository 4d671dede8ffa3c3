"""A virtual kernel that was damaged in the cache: a trial that fails says so, and the next one has it made anew."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import start_lab

from measuretwice.backends.machines import SUMS, changed_files
from measuretwice.backends.virtual import find_kernel

pytestmark = pytest.mark.kernel

TRIAL = ("run", "mathis", "--trial", "7", "--duration", "2")


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """The kernel's folder in a cache that may be damaged; its path has no spaces, but for which see test_build.py."""
    kernel = find_kernel()
    assert kernel
    folder = tmp_path / "cache/kernel" / kernel.folder.name
    shutil.copytree(kernel.folder, folder, symlinks=True)
    # A cache from before there were sums.
    if not (folder / SUMS).exists():
        write_sums(folder)
    return folder


def write_sums(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    names = sorted(str(path.relative_to(folder)) for path in files if path.name != "kernel.json")
    done = subprocess.run(
        ["sha256sum", *names], cwd=folder, capture_output=True, text=True, check=True
    )
    (folder / SUMS).write_text(done.stdout)


def cache_of(folder: Path) -> dict[str, str]:
    return {"MEASURETWICE_CACHE": str(folder.parents[1])}


def cut(path: Path, share: float) -> None:
    # A link's file may have another name in another kernel.
    path = path.resolve()
    os.truncate(path, int(path.stat().st_size * share))


OTHERS = pytest.mark.nightly("other files of the kernel, cut in the same way: linux")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "share"),
    [
        ("linux", 0.9),
        pytest.param("root/usr/bin/ss", 0.5, marks=OTHERS),
        pytest.param("linux", 0.0, marks=OTHERS),
        pytest.param("root/bin/bash", 0.5, marks=OTHERS),
        pytest.param("root/usr/bin/awk", 0.5, marks=OTHERS),
        pytest.param("root/usr/bin/ss-sampler", 0.5, marks=OTHERS),
        pytest.param("root/usr/bin/iperf3", 0.5, marks=OTHERS),
    ],
)
def test_a_failed_trial_names_the_damaged_file(
    tmp_path: Path, cached: Path, file: str, share: float
) -> None:
    cut(cached / file, share)
    name = str((cached / file).resolve().relative_to(cached))
    done = start_lab(*TRIAL, "--out", tmp_path / "runs", **cache_of(cached))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"lab: trial 7: the cached virtual kernel is damaged ({name}): it is set aside; "
        "run again, and it will be made again"
    )
    assert "mistake of ours" not in done.stderr
    assert not cached.exists()
    assert (cached.parent / f".damaged-{cached.name}" / name).exists()


@pytest.mark.slow
def test_of_a_sweep_every_trial_says_so(tmp_path: Path, cached: Path) -> None:
    """The first one sets the kernel aside; the next ones find none."""
    cut(cached / "root/bin/bash", 0.5)
    done = start_lab(*TRIAL[:2], "--trials", "1-4", "--out", tmp_path / "runs", **cache_of(cached))
    lines = [line for line in done.stderr.splitlines() if line.startswith("lab: ")]
    assert len(lines) == 4
    for line in lines:
        assert "the cached virtual kernel is " in line
        assert line.endswith("run again, and it will be made again")


def test_the_doctor_sees_a_single_byte(cached: Path) -> None:
    whole = json.loads(start_lab("doctor", "--json", **cache_of(cached)).stdout)
    assert [problem for problem in whole["problems"] if "damaged" in problem] == []
    iperf3 = cached / "root/usr/bin/iperf3"
    content = bytearray(iperf3.read_bytes())
    content[len(content) // 2] ^= 1
    iperf3.write_bytes(content)
    done = start_lab("doctor", **cache_of(cached))
    assert done.returncode == 1
    assert (
        "To do: the cached virtual kernel is damaged (root/usr/bin/iperf3): delete "
        in done.stdout.replace("\n", " ")
    )
    assert cached.exists()


def test_without_sums_the_kernel_itself_is_checked(cached: Path) -> None:
    (cached / SUMS).unlink()
    kernel = find_kernel()
    assert kernel
    assert changed_files(cached, kernel.sums) == []
    cut(cached / "root/bin/bash", 0.5)
    cut(cached / "linux", 0.9)
    assert changed_files(cached, kernel.sums) == ["linux"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"programs": None}, "kernel.json lacks 'programs'"),
        ({"version": None}, "kernel.json lacks 'version'"),
        ({"programs": "all"}, "its programs are no table"),
    ],
)
def test_facts_that_lack_something_are_named(
    tmp_path: Path, cached: Path, change: dict[str, str | None], says: str
) -> None:
    path = cached / "kernel.json"
    facts = json.loads(path.read_text()) | change
    path.write_text(json.dumps({name: value for name, value in facts.items() if value}))
    done = start_lab(*TRIAL, "--out", tmp_path / "runs", **cache_of(cached))
    line = f"{cached}: the cached kernel is broken ({says}); delete that folder and run again"
    assert (done.returncode, done.stderr) == (1, f"lab: {line}\n")
    assert line in start_lab("doctor", "--json", **cache_of(cached)).stdout
