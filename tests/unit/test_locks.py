"""Locks between processes: one holder, gone with it, and never on a file that isn't there any more."""

import subprocess
import sys
from pathlib import Path

from measuretwice.base.files import hold, wait_for

HOLD = """
import sys
from pathlib import Path
from measuretwice.base.files import hold
with hold(Path(sys.argv[1])) as lock:
    print(lock is not None, flush=True)
    input()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    source = Path(__file__).parents[2] / "src"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(path)],
        env={"PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "True\n"
    return process


def test_a_lock_has_one_holder_and_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = holder(path)
    with hold(path) as lock:
        assert lock is None
    other.kill()
    other.wait()
    with hold(path, remove=True) as lock:
        assert lock is not None
    assert not path.exists()


def test_a_file_that_its_holder_removed_is_no_lock(tmp_path: Path) -> None:
    """As where a run ends just when another opened its lock: a third would make a new file."""
    path = tmp_path / "lock"
    with hold(path, remove=True) as first:
        assert first is not None
        path.unlink()
        with hold(path) as second:
            assert second is not None


def test_who_waits_is_told_so_and_gets_it_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = holder(path)
    calls = []

    def busy() -> None:
        calls.append("busy")
        other.communicate("\n", timeout=20)

    with wait_for(path, busy):
        assert calls == ["busy"]
        with hold(path) as lock:
            assert lock is None
    with wait_for(path, busy):
        assert calls == ["busy"]
