"""Wrong usage: one line that says what and how to mend it, exit 2, nothing on stdout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lab(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "measuretwice", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "nosuchlab"], "there is no lab 'nosuchlab'; there are: calibrate, mathis"),
        (["run", "mathis", "--trial", "99"], "has no trial 99; it has 1-60"),
        (["run", "mathis", "--trial", "x"], "expected numbers such as 7, 1-12,20, or all"),
        (["run", "mathis", "--duration", "-5"], "expected 1 to 864000 (seconds), got -5"),
        (["run", "mathis", "--duration", "soon"], "expected a number in seconds, got 'soon'"),
        (["run", "mathis", "--duration", "nan"], "expected 1 to 864000"),
        (["run", "mathis", "--set", "rtt_ms"], "expected KEY=VALUE"),
        (["run", "mathis", "--set", "rtt=5"], "has no parameter 'rtt'; it has rtt_ms"),
        (["run", "mathis", "--set", "offloads=maybe"], "expected one of off, on, got 'maybe'"),
        (["run", "mathis", "--set", "mss_bytes=1000.5"], "expected a whole number of bytes"),
        (["run", "mathis", "--set", "congestion_control=a;b"], "expected a name like 'reno'"),
        (["run", "mathis", "--seed", "-1"], "seed"),
        (["run", "mathis", "--jobs", "0"], "jobs"),
        (["run", "mathis", "--on", "moon"], "expected virtual"),
        (["run", "mathis", "--out", "/proc/nowhere"], "can't be written to"),
        (["run", "mathis", "--nonsense"], "--nonsense"),
        (["run"], "LAB"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str) -> None:
    done = lab(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["docs", "--port", "abc"], 2), (["docs", "--nosuch"], 2), (["nosuch"], 2),
        (["docs", "--port", "8001", "--serve"], 0), (["docs", "--help"], 0), (["docs"], 0),
    ],
)  # fmt: skip
def test_usage_can_be_asked_for_alone(arguments: list[str], status: int) -> None:
    """./lab asks so before it installs what a command needs."""
    done = lab(*arguments, MEASURETWICE_USAGE_ONLY="1")
    assert done.returncode == status
    assert bool(done.stderr) == bool(status)


def test_missing_tool_is_one_line(tmp_path: Path) -> None:
    """PATH without iperf3: named, with what to do."""
    for tool in ("bash", "ip", "ethtool", "tcpdump", "ping", "git"):
        (tmp_path / tool).symlink_to("/bin/true")
    # The look-up adds /usr/sbin and /sbin, where iperf3 never is.
    done = lab("run", "mathis", "--trial", "7", "--out", str(tmp_path / "out"), PATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.strip() == "lab: iperf3 is missing: run ./lab doctor to see what to install"


def test_help_and_list() -> None:
    assert "run" in lab("--help").stdout
    assert "mathis" in lab("list").stdout
    assert lab().returncode == 0
