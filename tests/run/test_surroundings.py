"""A machine that isn't as one expects it: a run works there, or one line names what is in its way."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import LAB, ROOT, run_program

pytestmark = pytest.mark.kernel

TRIAL = [*LAB, "run", "mathis", "--trial", "7", "--duration", "2", "--out", "runs"]


def in_shell(
    folder: Path, script: str, *before: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a bash script in `folder`, of a command such as unshare where given; $TRIAL runs one."""
    script = script.replace("$TRIAL", shlex.join(TRIAL))
    return run_program(*before, "bash", "-c", script, cwd=folder, **more)


def with_own_mounts(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may make no namespace of mounts here")
    return in_shell(folder, f"mount -t tmpfs -o size=900M tmpfs /dev/shm && {script}", *alone)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    assert "mistake of ours" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("mount -o remount,ro /dev/shm", "lab: /dev/shm: Read-only file system. "),
        (
            "cat /dev/zero 2>/dev/null >/dev/shm/full || true",
            "lab: /dev/shm: No space left on device. ",
        ),
    ],
)
def test_shared_memory_that_cant_be_written_to_is_named(
    tmp_path: Path, script: str, says: str
) -> None:
    done = with_own_mounts(tmp_path, f"{script}; $TRIAL")
    assert done.returncode == 1
    assert last_line(done).startswith(says)
    assert "make room" in last_line(done)


@pytest.mark.slow
def test_memory_that_fills_up_while_a_trial_runs_is_named(tmp_path: Path) -> None:
    script = """$TRIAL --duration 240 &
    until compgen -G "runs/mathis/.*.work/experiment.log" >/dev/null; do kill -0 $! && sleep 0.05; done
    cat /dev/zero 2>/dev/null >/dev/shm/full
    wait $!"""
    done = with_own_mounts(tmp_path, script)
    assert done.returncode == 1
    assert "the folder of the virtual kernel's memory had run full" in last_line(done)
    assert "set TMPDIR" in last_line(done)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_keep_nothing_from_being_measured(tmp_path: Path, closed: str) -> None:
    """As some cron jobs have them. What is open says what it always does."""
    done = in_shell(tmp_path, f"$TRIAL {closed}")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("runs/mathis/*/DONE"))) == 1
    assert ("mathis, trial 7: " in done.stdout) == (">&-" not in closed.split())
    assert ("1 trial, 2 virtual seconds" in done.stderr) == ("2>&-" not in closed)


OTHERS = pytest.mark.nightly("all three closed; one by one behind the front door: the test above")


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed",
    [pytest.param(">&-", marks=OTHERS), pytest.param("2>&-", marks=OTHERS), "<&- >&- 2>&-"],
)
def test_the_front_door_lets_them_through(tmp_path: Path, closed: str) -> None:
    words = shlex.join([str(ROOT / "lab"), *TRIAL[len(LAB) :]])
    done = in_shell(tmp_path, f"{words} {closed}")
    assert done.returncode == 0, done.stderr
    assert ("mathis, trial 7: " in done.stdout) == (">&-" not in closed.split())
    assert len(list(tmp_path.glob("runs/mathis/*/DONE"))) == 1


@pytest.mark.slow
def test_output_that_cant_be_written_is_named(tmp_path: Path) -> None:
    done = in_shell(tmp_path, "$TRIAL >/dev/full")
    assert done.returncode == 1
    assert last_line(done).startswith("lab: standard output: No space left on device; ")
    assert len(list(tmp_path.glob("runs/mathis/*/DONE"))) == 1
    long = f"{shlex.join([*LAB, 'list', '--json'])} >/dev/full"
    done = in_shell(tmp_path, long)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert last_line(done).startswith("lab: standard output: No space left on device; ")
    # As with `| head`: whoever read it has gone, and there is nothing to be said.
    done = in_shell(tmp_path, f"{shlex.join([*LAB, 'list', '--json'])} | true")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = in_shell(gone, "rmdir ../gone; $TRIAL")
    assert done.returncode == 1
    assert last_line(done).startswith("lab: the folder that you are in was removed: ")


def test_a_tmpdir_that_is_a_file_is_named(tmp_path: Path) -> None:
    done = in_shell(tmp_path, "$TRIAL", TMPDIR="/etc/passwd")
    assert done.returncode == 2
    assert done.stderr == "lab: TMPDIR=/etc/passwd: is no folder; set it to one, or unset it\n"


def test_another_python_is_sent_to_the_front_door(tmp_path: Path) -> None:
    bare = "-P -S -m measuretwice list"
    done = in_shell(tmp_path, f"{shlex.quote(sys.executable)} {bare}")
    assert done.returncode == 1
    assert done.stderr.startswith("lab: this Python has no ")
    assert done.stderr.endswith(": start it by ./lab, which has all it needs\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_runs_that_are_removed_meanwhile_are_named(tmp_path: Path) -> None:
    script = """$TRIAL --duration 60 &
    until compgen -G "runs/mathis/.*.work/experiment.log" >/dev/null; do kill -0 $! && sleep 0.05; done
    rm -rf runs
    wait $!"""
    done = in_shell(tmp_path, script)
    assert done.returncode == 1
    folder = tmp_path / "runs/mathis"
    assert last_line(done) == f"lab: trial 7: {folder} was removed while it ran: run it again"


LATE = """#define _GNU_SOURCE
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  now->tv_sec = clock == CLOCK_REALTIME ? 301780000000 : 1000;
  now->tv_nsec = 0;
  return 0;
}
time_t time(time_t *now) { return now ? *now = 301780000000 : 301780000000; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, for another clock")
def test_a_clock_beyond_all_years_is_named(tmp_path: Path) -> None:
    """The year 11533, as of a machine whose clock's battery went wrong."""
    (tmp_path / "late.c").write_text(LATE)
    make = ["gcc", "-shared", "-fPIC", "-o", "late.so", "late.c"]
    subprocess.run(make, cwd=tmp_path, check=True)
    done = in_shell(tmp_path, shlex.join([*LAB, "list"]), LD_PRELOAD=str(tmp_path / "late.so"))
    assert done.returncode == 2
    assert done.stderr.startswith("lab: this machine's clock shows a year after 2262: set it")
    assert done.stderr.count("\n") == 1
