"""Trials on a machine's own kernel: proven in the real-time virtual kernel, a Linux with everything."""

import json
import os
import sys
from pathlib import Path

import pytest
from command_line import LAB, run_program
from inside import seen_inside

from measuretwice.backends.script import INSIDE_ROOT, INSIDE_RUN
from measuretwice.backends.virtual import ensure_kernel, run_inside
from measuretwice.runs.folder import give_back

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.kernel


def inside(folder: Path, script: str) -> None:
    """Run a bash script as root on the guest's own kernel, in real time, until it ends."""
    head = f"""
    set -uo pipefail
    cd {INSIDE_RUN}
    export MEASURETWICE_ROOT={INSIDE_ROOT} PYTHONPATH={INSIDE_ROOT}/src PYTHONDONTWRITEBYTECODE=1
    lab="{seen_inside(Path(sys.executable))} -P -m measuretwice"
    # All that belongs to the machine.
    state() {{
      ip netns list
      ip link
      tc qdisc
      sysctl -a 2>/dev/null | grep -E '^net\\.' | sort
      ls /sys/kernel/tracing/instances 2>/dev/null
    }}
    # Of the lab, nothing may run any more.
    processes() {{ ps ax -o args | grep -E '[i]perf3|[/]guard.sh|[.]work/|[m]easuretwice run'; }}
    """
    (folder / "experiment.sh").write_text(head + script)
    run_inside(ensure_kernel(), ROOT, folder, 1, 240, as_machine=True)
    assert (folder / "ended").exists(), (folder / "experiment.log").read_text()


@pytest.mark.nightly(
    "a quarter of a minute of real time, and CI runs it: by day what --on host refuses; the same scripts in the virtual kernel"
)
@pytest.mark.slow
@pytest.mark.user
def test_it_measures_and_leaves_the_machine_as_it_was(tmp_path: Path) -> None:
    # Who is root here can give files away in there, as sudo has it done.
    sudo = "SUDO_UID=65534 SUDO_GID=65534" if os.geteuid() == 0 else ""
    inside(
        tmp_path,
        f"""
        # In memory: what is given away in there on this machine's folders stays there.
        mkdir /tmp/given && out=/tmp/given/runs
        {"chown 65534 /tmp/given" if sudo else ""}
        state >before
        env {sudo} $lab run mathis --trial 7 --set duration_s=6 --on host --out "$out" >said 2>&1
        echo $? >status
        find "$out" "$out"/mathis/trial-07* -printf '%U\\n' | sort -u >owners
        cp -r "$out" .
        state >after
        processes >left
        touch ended
        """,
    )
    output = (tmp_path / "said").read_text()
    assert (tmp_path / "status").read_text() == "0\n", output
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()
    assert (tmp_path / "left").read_text() == ""
    (run,) = (tmp_path / "runs/mathis").glob("trial-07-*")
    if sudo:
        assert (tmp_path / "owners").read_text().split() == ["65534"]
    plan = json.loads((run / "plan.json").read_text())
    assert plan["where"] == "host"
    assert plan["kernel"].startswith("host linux ")
    result = json.loads((run / "result.json").read_text())
    # In real time, and at p = 0.57 % for 6 s: some hundred losses.
    assert 5.9 < result["measured"]["rtt_min_ms"] < 9
    assert 0.6 < result["ratio"] < 2
    assert "--on host" in json.loads((run / "provenance.json").read_text())["command"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_that_is_roots_stays_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with --out /tmp: the run is given to the caller, and nothing above it."""
    run = tmp_path / "mathis/trial-07"
    run.mkdir(parents=True)
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65534")
    give_back(run, tmp_path)
    assert (run.stat().st_uid, run.parent.stat().st_uid, tmp_path.stat().st_uid) == (65534, 0, 0)


OTHERS = pytest.mark.nightly(
    "measured and undone: the test above; ended by signals, in a virtual kernel: test_run.py"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "kill"),
    [
        pytest.param("Ctrl-C", "kill -INT $process", marks=OTHERS),
        pytest.param("SIGTERM", "kill -TERM $process", marks=OTHERS),
        pytest.param("killed", "kill -KILL $process", marks=OTHERS),
        pytest.param(
            "killed with its worker",
            "kill -KILL $(pgrep -f 'measuretwice run')",
            marks=OTHERS,
        ),
        pytest.param(
            "killed with its guard",
            "kill -KILL $process $(pgrep -f guard.sh); "
            "$lab run mathis --trial 1 --set duration_s=1 --on host --out other >said2 2>&1",
            marks=OTHERS,
        ),
    ],
)  # fmt: skip
def test_whatever_ends_it_it_is_undone(tmp_path: Path, what: str, kill: str) -> None:
    inside(
        tmp_path,
        f"""
        state >before
        set -m
        $lab run variants --trial 1 --set host_qdisc=fq --set duration_s=60 --on host --out runs \\
          >said 2>&1 &
        process=$!
        for try in $(seq 300); do
          sleep 0.1
          ls runs/variants/.*.work/raw/client/ss.txt >/dev/null 2>&1 && break
        done
        sleep 1
        state >during
        {kill}
        for try in $(seq 100); do
          sleep 0.1
          [[ -n $(processes) ]] || break
        done
        processes >left
        state >after
        touch ended
        """,
    )
    before, after = (tmp_path / "before").read_text(), (tmp_path / "after").read_text()
    assert "mt-" in (tmp_path / "during").read_text(), (tmp_path / "said").read_text()
    assert (tmp_path / "left").read_text() == ""
    assert after == before
    assert "Traceback" not in (tmp_path / "said").read_text()


def test_what_this_kernel_lacks_is_said_before_anything_is_changed(tmp_path: Path) -> None:
    inside(
        tmp_path,
        """
        state >before
        $lab run mathis --trial 7 --set congestion_control=cdg --on host --out runs >said 2>&1
        echo $? >status
        state >after
        touch ended
        """,
    )
    output = (tmp_path / "said").read_text()
    assert output.count("\n") == 1
    assert "the congestion control cdg (tcp_cdg)" in output
    assert (tmp_path / "status").read_text() == "2\n"
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user")
def test_without_root_it_says_so(tmp_path: Path) -> None:
    done = run_program(
        *("setpriv", "--reuid", "65534", "--clear-groups", *LAB, "run", "mathis"),
        *("--trial", "7", "--on", "host", "--out", tmp_path / "runs"),
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
