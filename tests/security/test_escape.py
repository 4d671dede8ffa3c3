"""Root inside the virtual kernel tries to get out: to other files, processes and sockets of the machine; and to fill it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from inside import built_kernel
from outside import ROOT, SECRET, Machine, run_python
from processes import processes_with

from measuretwice.backends import virtual

pytestmark = pytest.mark.kernel


@pytest.fixture
def kernel() -> virtual.Kernel:
    return built_kernel()


def seen(machine: Machine, kernel: virtual.Kernel) -> dict[str, tuple[int, float]]:
    """What can be seen of the files that nobody may change: size and time of each."""
    watched = [machine.outside, kernel.folder, *(ROOT / name for name in ("labs", "scripts"))]
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime)
        for folder in watched
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


def check_nothing_got_out(machine: Machine, kernel: virtual.Kernel, before: object) -> None:
    log = (machine.run / "experiment.log").read_text(errors="replace")
    assert log.endswith("all tried\n"), log[-2000:]
    assert [line for line in log.splitlines() if line.endswith(": OUT")] == []
    assert log.count(": held") > 70
    # What isn't there inside was not tried.
    assert "not found" not in log, [line for line in log.splitlines() if "not found" in line]
    assert SECRET not in log
    assert machine.victim.poll() is None
    assert seen(machine, kernel) == before
    made = [path for path in machine.run.rglob("*") if path.name not in ("link", "file-link")]
    assert all(path.is_file() or path.is_dir() for path in made), made
    assert not any(path.is_symlink() for path in made)
    # What is set inside stays inside.
    assert (machine.run / "as-you").stat().st_mode & 0o6022 == 0
    assert not any(path.stat().st_mode & 0o6000 for path in made)


@pytest.mark.slow
@pytest.mark.parametrize("real_time", [False, True], ids=["virtual", "live"])
def test_root_inside_gets_nowhere(
    machine: Machine, kernel: virtual.Kernel, real_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(machine, kernel)
    (machine.run / "experiment.sh").write_text(machine.script())
    if real_time:
        # As live labs have it: the same process without virtual time, and with the package's Python.
        process = virtual.start(
            kernel, ROOT, machine.run, memory_mb=512, folders=virtual.LIVE_FOLDERS
        )
        try:
            process.wait(timeout=120)
        finally:
            virtual.end(process, machine.run)
    else:
        virtual.run_inside(kernel, ROOT, machine.run, 1, 120)
    check_nothing_got_out(machine, kernel, before)


IN_A_PROCESS = """
import sys
from pathlib import Path
import outside
from measuretwice.backends import virtual
from measuretwice.base import landlock
outside.without_landlock()
assert landlock.version() == 0, landlock.version()
kernel = virtual.find_kernel()
print(virtual.run_inside(kernel, outside.ROOT, Path(sys.argv[1]), 1, 120))
"""


@pytest.mark.slow
def test_nor_on_a_machine_without_landlock(machine: Machine, kernel: virtual.Kernel) -> None:
    """There hostfs alone keeps to the folders."""
    before = seen(machine, kernel)
    (machine.run / "experiment.sh").write_text(machine.script())
    done = run_python(IN_A_PROCESS, str(machine.run))
    assert done.returncode == 0, done.stderr
    check_nothing_got_out(machine, kernel, before)


def processes_of(session: int) -> list[Path]:
    """Where /proc shows the processes that belong to a kernel that was started as a session's leader."""
    return [Path(f"/proc/{pid}") for pid in processes_with(3, session)]


@pytest.mark.slow
def test_it_gives_up_what_it_has(kernel: virtual.Kernel, tmp_path: Path) -> None:
    """No new rights for it and its programs, a filter on all, and of root's capabilities but one."""
    (tmp_path / "experiment.sh").write_text(": >/run/measuretwice/up; read -rt 60 <> <(:)\n")
    process = virtual.start(kernel, ROOT, tmp_path, memory_mb=256)
    try:
        for _ in range(400):
            if (tmp_path / "up").exists():
                break
            time.sleep(0.05)
        found = processes_of(process.pid)
        assert len(found) > 2
        for folder in found:
            status = (folder / "status").read_text()
            facts = dict(line.split(":", 1) for line in status.splitlines())
            assert facts["NoNewPrivs"].strip() == "1"
            assert facts["Seccomp"].strip() == "2"
            assert int(facts["CapEff"], 16) in (0, 2)
            assert int(facts["CapPrm"], 16) in (0, 2)
        opened = {os.readlink(link) for link in Path(f"/proc/{process.pid}/fd").iterdir()}
        assert not {str(Path.home()), "/dev/shm", str(kernel.folder)} & opened
    finally:
        virtual.end(process, tmp_path)


@pytest.mark.slow
def test_processes_without_end(
    kernel: virtual.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process of the guest's is one of this machine's: there is a most of them, whatever root sets inside."""
    monkeypatch.setattr(virtual, "MOST_PROCESSES", 150)
    (tmp_path / "experiment.sh").write_text(
        "echo 4000000 >/proc/sys/kernel/threads-max; ulimit -u unlimited\n"
        "for i in {1..400}; do sleep 60 & done\n"
        ": >/run/measuretwice/all; read -rt 60 <> <(:)\n"
    )
    process = virtual.start(kernel, ROOT, tmp_path, memory_mb=512)
    most = 0
    try:
        for _ in range(600):
            most = max(most, len(processes_of(process.pid)))
            if process.poll() is not None or (tmp_path / "all").exists():
                break
            time.sleep(0.05)
        most = max(most, len(processes_of(process.pid)))
    finally:
        virtual.end(process, tmp_path)
    assert 100 < most <= 152, most
    for _ in range(100):
        if not processes_of(process.pid):
            break
        time.sleep(0.05)
    assert processes_of(process.pid) == []
    assert "fork" in (tmp_path / "experiment.log").read_text()


@pytest.mark.slow
def test_a_disk_isnt_filled(
    kernel: virtual.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual, "MOST_BYTES", 20 * 2**20)
    monkeypatch.setattr(virtual, "MOST_FILES", 300)
    (tmp_path / "experiment.sh").write_text(
        "cd /run/measuretwice\n"
        "for i in {1..500}; do : >empty-$i; done\n"
        "for i in 1 2 3; do dd if=/dev/zero of=empty-$i bs=1M count=30; done\n"
        "truncate -s 1000G empty-4 && echo 'a large file: OUT'\n"
        "dd if=/dev/zero of=empty-5 bs=1 count=1 seek=1000000000000 && echo 'a sparse file: OUT'\n"
        "echo the end >/run/the-end; cat /run/the-end\n"
    )
    assert virtual.run_inside(kernel, ROOT, tmp_path, 1, 60) == 0
    files = list(tmp_path.iterdir())
    assert 290 < len(files) <= 305
    assert sum(path.stat().st_blocks * 512 for path in files) <= 22 * 2**20
    assert max(path.stat().st_size for path in files) <= 20 * 2**20
    assert ": OUT" not in (tmp_path / "experiment.log").read_text()


@pytest.mark.slow
def test_memory_has_an_end(kernel: virtual.Kernel, tmp_path: Path) -> None:
    """What a guest fills is its own: a file of one size, that goes with it."""
    (tmp_path / "experiment.sh").write_text(
        "mount -o remount,size=100G /tmp; dd if=/dev/zero of=/tmp/full bs=1M count=4000\n"
        "echo survived\n"
    )
    process = virtual.start(kernel, ROOT, tmp_path, "panic=-1", memory_mb=256)
    most_kib = 0
    try:
        while process.poll() is None:
            try:
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                    if line.startswith("VmRSS:"):
                        most_kib = max(most_kib, int(line.split()[1]))
            except OSError:
                break
        process.wait(timeout=60)
    finally:
        virtual.end(process, tmp_path)
    assert most_kib < 400 * 1024
