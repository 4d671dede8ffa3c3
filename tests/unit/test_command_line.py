"""Wrong usage: one line that says what and how to fix it, exit 2, nothing on stdout."""

import re
from pathlib import Path

import click
import pytest
from command_line import ROOT, call_lab, start_lab

from measuretwice.cli.main import cli


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "nosuchlab"], "there is no lab 'nosuchlab'; there are: calibrate, mathis"),
        (["run", "mathis", "--trial", "99"], "has no trial 99; it has 1-60"),
        (["run", "mathis", "--trial", "x"], "expected numbers such as 7, 1-12,20, or all"),
        (["run", "mathis", "--duration", "-5"], "expected 1 to 864000 (seconds), got -5"),
        (["run", "mathis", "--set", "loss_ratio=x"], "expected a ratio between 0 and 1, got 'x'"),
        (["run", "mathis", "--duration", "soon"], "expected a number in seconds, got 'soon'"),
        (["run", "mathis", "--duration", "nan"], "expected 1 to 864000"),
        (["run", "mathis", "--set", "rtt_ms"], "expected KEY=VALUE"),
        (["run", "mathis", "--set", "rtt=5"], "has no parameter 'rtt'; near it is rtt_ms"),
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
    done = call_lab(*arguments)
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
    done = call_lab(*arguments, MEASURETWICE_USAGE_ONLY="1")
    assert done.returncode == status
    assert bool(done.stderr) == bool(status)


def test_missing_tool_is_one_line(tmp_path: Path) -> None:
    """On the machine's own kernel, PATH without iperf3: named, with what to do."""
    for tool in ("bash", "ip", "ethtool", "tcpdump", "ping", "git"):
        (tmp_path / tool).symlink_to("/bin/true")
    # The look-up adds /usr/sbin and /sbin, where iperf3 never is.
    done = start_lab(
        "run", "mathis", "--trial", "7", "--on", "host", "--out", tmp_path, PATH=str(tmp_path)
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "lab: iperf3 is missing: run ./lab doctor to see what to install"


SAMPLES = ROOT / "sample-data"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 0),
        (["--help"], 0),
        (["--version"], 0),
        (["nonsense"], 2),
        (["list"], 0),
        (["start", "calibrate", "--out", "runs"], 2),
        (["run", "mathis", "--trial", "99"], 2),
        (["up", "mathis", "--pitfall", "mtu"], 2),
        (["status"], 0),
        (["check", SAMPLES / "01-mathis/case-05-broken", "--hint", "3"], 1),
        (["show", SAMPLES / "01-mathis/case-05-broken", "qdisc", "--node", "router"], 0),
        (["diff", SAMPLES / "01-mathis/case-05-broken", SAMPLES / "01-mathis/case-05-fixed"], 1),
        (["report", ROOT / "labs", "--out", "report.html"], 2),
        (["plot", "nosuch"], 2),
        (["plot", SAMPLES / "01-mathis/case-05-fixed", "--out", "figures", "--json"], 0),
        (["record", "mathis", "--only", "nosuch"], 2),
        (["deal", "nosuch.csv", "--lab", "mathis", "--term", "one"], 2),
        (["grade", "nosuch"], 2),
        (["testbed", "mathis", "--fabric", "--out", "-"], 0),
        (["docs", "--port", "abc"], 2),
    ],
)
def test_called_and_started_it_says_the_same(
    arguments: list[str | Path], status: int, tmp_path: Path
) -> None:
    """Tests call the command line in their own process: it must be what a person starts."""
    called = call_lab(*arguments, cwd=tmp_path)
    started = start_lab(*arguments, cwd=tmp_path)
    assert called.returncode == started.returncode == status, called.stderr
    assert called.stdout == started.stdout
    assert called.stderr == started.stderr
    assert called.stdout or called.stderr


def test_the_list_of_commands_says_what_their_helps_say() -> None:
    """It is there without importing them: the first lines stand in a table."""
    top = click.Context(cli, info_name="./lab")
    for name, stub in cli.commands.items():
        command = cli.get_command(top, name)
        assert command
        assert command.name in (name, f"{name}-labs")
        assert command.get_short_help_str(200) == stub.get_short_help_str(200)


def test_help_imports_no_command() -> None:
    done = start_lab("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert "measuretwice.cli.options" in done.stderr
    for heavy in ("measuretwice.cli.run", "measuretwice.lab", "rich", "pydantic"):
        assert not re.search(rf"\| +{re.escape(heavy)}$", done.stderr, re.MULTILINE), heavy


def test_help_and_list() -> None:
    assert "run" in call_lab("--help").stdout
    assert "mathis" in call_lab("list").stdout
    assert call_lab().returncode == 0


def test_one_lab_is_listed_with_its_trials_and_settings() -> None:
    """As cases' pages have it: `./lab list LAB` names the lab's settings."""
    output = call_lab("list", "mathis").stdout
    assert "\n   53  rtt_ms 600" in output
    assert "\n  rate_mbit = 3000: " in output
    assert "\n  congestion_control = reno: " in output
    assert "buffers" not in output
    assert (
        call_lab("list", "01-mathis", "--json").stdout
        == call_lab("list", "mathis", "--json").stdout
    )
    refused = call_lab("list", "nosuch")
    assert refused.returncode == 2
    assert "there is no lab 'nosuch'" in refused.stderr
