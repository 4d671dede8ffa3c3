"""Experiments in the virtual kernel, as a student runs them: whole, repeated, broken off."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import LAB, begin_lab, run_program, start_lab, until
from processes import command_lines

from measuretwice.backends.virtual import find_kernel, run_inside

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.kernel

MEASURED_BY_DESIGN = {
    "goodput_bps",
    "retransmits",
    "data_segs_out",
    "loss_ratio",
    "rtt_min_ms",
    "rtt_mean_ms",
    "mss_bytes",
    "largest_packet_bytes",
    "duration_s",
    "qdisc_sent_packets",
    "qdisc_drops",
    "flows",
}


def run_lab(*arguments: str, **more: str) -> list[dict[str, Any]]:
    done = start_lab("run", *arguments, "--json", **more)
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def own_processes(out: Path) -> list[str]:
    """The command lines of kernels that work for runs under `out`."""
    lines = command_lines().values()
    return [line for line in lines if str(out) in line and "seccomp" in line]


@pytest.fixture(scope="module")
def trial_7(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Trial 7 as it was published, all 240 s of it."""
    out = tmp_path_factory.mktemp("trial 7 with spaces")
    return run_lab("mathis", "--trial", "7", "--out", str(out))[0]


def test_trial_7_is_a_mathis_case(trial_7: dict[str, Any]) -> None:
    measured = trial_7["measured"]
    assert measured["rtt_min_ms"] == pytest.approx(6, rel=0.01)
    assert measured["mss_bytes"] == 1460
    assert measured["largest_packet_bytes"] == 1500
    assert measured["flows"] == 1
    assert measured["duration_s"] == pytest.approx(240, abs=0.5)
    assert 1.1 <= trial_7["ratio"] <= 1.4
    assert trial_7["comparable"] is True
    for expectation in trial_7["expectations"]:
        assert expectation["ok"] is True, expectation


def test_losses_are_accounted_for(trial_7: dict[str, Any]) -> None:
    """Every retransmission is explained by a drop of the router's, or was spurious."""
    measured = trial_7["measured"]
    assert measured["receiver_ofo_drops"] == 0
    assert measured["receiver_prune_calls"] == 0
    assert measured["softnet_drops"] == 0
    unexplained = measured["retransmits"] - measured["qdisc_drops"]
    assert abs(unexplained) <= measured["spurious_retransmits"] + 20


def test_result_has_what_the_design_promises(trial_7: dict[str, Any]) -> None:
    assert set(trial_7["measured"]) >= MEASURED_BY_DESIGN
    assert None not in [trial_7["measured"][key] for key in MEASURED_BY_DESIGN]
    assert {"name", "constant", "bandwidth_bps"} <= set(trial_7["model"])
    assert {"lab", "trial", "stage", "seed", "params", "ratio", "run_dir"} <= set(trial_7)


def test_run_folder_is_complete(trial_7: dict[str, Any]) -> None:
    run = Path(trial_7["run_dir"])
    assert {path.name for path in run.iterdir()} >= {
        "DONE",
        "plan.json",
        "provenance.json",
        "result.json",
        "experiment.sh",
        "raw",
    }
    raw = {
        str(path.relative_to(run / "raw")) for path in (run / "raw").rglob("*") if path.is_file()
    }
    for node in ("romeo", "router", "juliet"):
        for name in ("qdisc", "link", "nstat"):
            assert {f"{node}/{name}.before.json", f"{node}/{name}.after.json"} <= raw
        assert {f"{node}/offloads.txt", f"{node}/sysctl.txt", f"{node}/addr.json"} <= raw
    assert {"romeo/iperf3.json", "romeo/ss.txt", "romeo/ping.txt", "router/tcpdump.txt"} <= raw
    provenance = json.loads((run / "provenance.json").read_text())
    assert provenance["kernel"]["version"]
    # The state of the connection every 0.1 s of virtual time.
    assert trial_7["measured"]["ss_samples"] >= 2400


@pytest.mark.nightly(
    "CI runs it: by day recorded runs come out again, byte for byte (test_record.py)"
)
@pytest.mark.slow
def test_same_seed_same_bytes(tmp_path: Path) -> None:
    """Alone, and with its CPU busy: the same measured values and the same raw files."""
    first = run_lab("mathis", "--trial", "7", "--duration", "8", "--out", str(tmp_path / "a"))[0]
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    try:
        second = run_lab("mathis", "--trial", "7", "--duration", "8", "--out", str(tmp_path / "b"))[
            0
        ]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert second["measured"] == first["measured"]
    assert raw_files(first) == raw_files(second)
    other = run_lab(
        "mathis", "--trial", "7", "--duration", "8", "--seed", "2", "--out", str(tmp_path / "c")
    )[0]
    assert other["measured"] != first["measured"]


# What trials used to take from the machine.
TOOLS = "iperf3 ip tc ss nstat ethtool tcpdump ping sysctl awk mawk gawk od grep sort tail".split()


@pytest.mark.nightly("CI runs it: by day an ordinary user gets the same bytes")
@pytest.mark.slow
@pytest.mark.user
def test_a_machine_with_other_tools_gives_the_same_bytes(tmp_path: Path) -> None:
    """Another userland: in place of each tool that this machine has stands one that only fails."""
    options = ["mathis", "--trial", "7", "--duration", "10"]
    ours = run_lab(*options, "--out", str(tmp_path / "a"))[0]
    other = tmp_path / "other tool"
    other.write_text("#!/bin/sh\necho another version >&2\nexit 1\n")
    other.chmod(0o755)
    there = sorted({os.path.realpath(found) for tool in TOOLS if (found := shutil.which(tool))})
    assert there
    replace = "".join(f"mount --bind {shlex.quote(str(other))} {tool}\n" for tool in there)
    script = f"set -e\n{replace}! {there[0]} 2>/dev/null\nexec {shlex.join((*LAB, 'run', *options))} --json --out theirs"
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may make no namespace of mounts here")
    done = run_program(*namespace, "bash", "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)[0]
    theirs["run_dir"] = str(tmp_path / theirs["run_dir"])
    assert raw_files(theirs) == raw_files(ours)
    assert Path(theirs["run_dir"]).name == Path(ours["run_dir"]).name


# Programs that can't use these go other ways: other variants of memcpy, and of what the loader looks for.
POORER = ["-AVX512F", "-AVX512F,-AVX2,-AVX", "-ERMS,-FSRM,-BMI2"]


@pytest.mark.nightly(
    "CI runs it: by day recorded runs come out again, byte for byte (test_record.py)"
)
@pytest.mark.slow
def test_another_processor_gives_the_same_bytes(tmp_path: Path) -> None:
    """Programs inside that are told of a poorer processor, as an older machine would have it."""
    ours = run_lab("mathis", "--trial", "7", "--duration", "10", "--out", str(tmp_path / "a"))[0]
    kernel = find_kernel()
    assert kernel is not None
    run = Path(ours["run_dir"])
    shebang, script = (run / "experiment.sh").read_text().split("\n", 1)
    for features in POORER:
        folder = tmp_path / features
        (folder / "raw").mkdir(parents=True)
        (folder / "experiment.sh").write_text(
            f"{shebang}\nexport GLIBC_TUNABLES=glibc.cpu.hwcaps={features}\n{script}"
        )
        seed = json.loads((run / "plan.json").read_text())["kernel_seed"]
        assert run_inside(kernel, ROOT, folder, seed, 120) == 0
        theirs = files_below(folder / "raw")
        assert {name: theirs[name] for name in raw_files(ours)} == raw_files(ours), features


@pytest.mark.nightly("CI runs it: rare")
@pytest.mark.slow
def test_pings_closer_than_ping_can_sleep_come_to_an_end(tmp_path: Path) -> None:
    """ping waits by yielding where less than 10 ms are left until the next one is due."""
    done = run_lab(
        *("calibrate", "--trial", "3", "--set", "rtt_ms=8", "--set", "ping_count=1000"),
        *("--duration", "2", "--wall-limit", "60", "--out", str(tmp_path)),
    )[0]
    assert done["measured"]["ping_sent_packets"] == 1000
    assert done["measured"]["ping_rtt_min_ms"] == pytest.approx(8, abs=0.01)


def raw_files(result: dict[str, Any]) -> dict[str, bytes]:
    return files_below(Path(result["run_dir"]) / "raw")


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user")
def test_an_ordinary_user_gets_the_same_and_leaves_no_trace(tmp_path: Path) -> None:
    by_root = run_lab(
        "mathis", "--trial", "17", "--duration", "20", "--out", str(tmp_path / "root")
    )[0]
    # /tmp/pytest-of-root is closed to others.
    home = Path("/var/tmp") / f"measuretwice-test-{os.getpid()}"
    try:
        shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("labs", "scripts"):
            shutil.copytree(ROOT / name, home / name)
        kernel = subprocess.run(
            ["bash", str(ROOT / "scripts/kernel/build.sh"), "--path"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        shutil.copytree(kernel, home / "cache" / "kernel" / Path(kernel).name)
        subprocess.run(["chown", "-R", "nobody", str(home)], check=True)
        before = machine_state()
        files_before = set(home.iterdir())
        done = subprocess.run(
            [
                *("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"),
                *(find_python(), "-m", "measuretwice", "run", "mathis", "--trial", "17"),
                *("--duration", "20", "--json", "--out", str(home / "runs")),
            ],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "PYTHONPATH": f"{home / 'src'}:{site_packages()}",
                "MEASURETWICE_CACHE": str(home / "cache"),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        by_nobody = json.loads(done.stdout)[0]
        assert by_nobody["measured"] == by_root["measured"]
        assert raw_files(by_nobody) == raw_files(by_root)
        assert machine_state() == before
        assert set(home.iterdir()) - files_before == {home / "runs"}
    finally:
        shutil.rmtree(home, ignore_errors=True)


def find_python() -> str:
    """An interpreter that everybody may run: the virtual environment's base, outside /root."""
    return os.path.realpath("/usr/bin/python3")


def site_packages() -> str:
    """Copies nothing: the packages of this interpreter, if others may read them."""
    import click

    return str(Path(click.__file__).parents[1])


def machine_state() -> dict[str, str]:
    """What a run could leave behind: namespaces, qdiscs, interfaces, sysctls, temporary files."""

    def said(*arguments: str) -> str:
        return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout

    return {
        "namespaces": said("ip", "netns"),
        "qdiscs": said("tc", "qdisc"),
        "links": said("ip", "-br", "link"),
        "sysctls": said(
            "sysctl",
            "-n",
            "net.ipv4.tcp_congestion_control",
            "net.ipv4.tcp_timestamps",
            "net.ipv4.ip_forward",
        ),
        "memory": " ".join(sorted(os.listdir("/dev/shm"))),
        "uml": str(Path("~/.uml").expanduser().exists()),
    }


@pytest.mark.slow
def test_killed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """kill -9 in the middle: nothing is left running, what was finished counts, the rest is
    measured by the same command, and all of it is as if nothing had happened."""
    out = tmp_path / "out"
    choice = ("mathis", "--trials", "5,17,21", "--duration", "30", "--jobs", "1")
    whole = run_lab(*choice, "--out", str(tmp_path / "whole"))
    process = begin_lab("run", *choice, "--json", "--out", out)
    until(lambda: list(out.glob("mathis/trial-*/DONE")))
    until(lambda: own_processes(out) or process.poll() is not None)
    process.kill()
    process.communicate()
    until(lambda: not own_processes(out), 10)
    finished = {
        path.parent.name: path.stat().st_mtime_ns for path in out.glob("mathis/trial-*/DONE")
    }
    assert 1 <= len(finished) < 3
    again = run_lab(*choice, "--out", str(out))
    assert [r["measured"] for r in again] == [r["measured"] for r in whole]
    for name, made in finished.items():
        assert (out / "mathis" / name / "DONE").stat().st_mtime_ns == made
    assert not [path.name for path in (out / "mathis").iterdir() if path.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_interrupted_run_says_so_in_one_line(
    all_cpus: set[int], tmp_path: Path, number: signal.Signals
) -> None:
    process = begin_lab("run", "mathis", "--trials", "1-4", "--out", tmp_path)
    until(lambda: own_processes(tmp_path))
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1].startswith("lab: stopped; finished trials are kept")
    assert "Traceback" not in errors
    until(lambda: not own_processes(tmp_path), 10)


def test_wall_limit_is_one_line(tmp_path: Path) -> None:
    done = start_lab("run", "mathis", "--trial", "11", "--wall-limit", "0.5", "--out", tmp_path)
    assert done.returncode == 1
    assert "trial 11: not finished after 0 s of wall time" in done.stderr.replace(
        "after 1 s", "after 0 s"
    )
    assert not own_processes(tmp_path)


def test_broken_folder_is_reported_and_not_measured_over(tmp_path: Path) -> None:
    choice = ("mathis", "--trial", "54", "--duration", "5", "--out", str(tmp_path))
    run = Path(run_lab(*choice)[0]["run_dir"])
    whole = (run / "result.json").read_text()
    (run / "result.json").write_text(whole[: len(whole) // 2])
    done = start_lab("run", *choice, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "delete the folder and run again" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def failing_run(*arguments: str, **more: str) -> str:
    """Run what must fail; return its last line."""
    done = start_lab("run", *arguments, **more)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_what_iperf3_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    choice = ("mathis", "--trial", "7", "--set", "congestion_control=nosuch")
    line = failing_run(*choice, "--out", str(tmp_path))
    assert line.startswith("lab: trial 7: iperf3.json, error: iperf3 says: ")
    assert "congestion control" in line


def test_failing_step_names_node_step_and_what_was_said(tmp_path: Path) -> None:
    """In a copy of the kit whose router script has a typing error."""
    for name in ("labs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    script = tmp_path / "labs/01-mathis/nodes/router.sh"
    script.write_text(script.read_text().replace("netem delay", "netem dealy"))
    line = failing_run(
        "mathis", "--trial", "7", "--out", str(tmp_path / "runs"), MEASURETWICE_ROOT=str(tmp_path)
    )
    assert line.startswith("lab: trial 7: router's step 'prepare' failed: ")
    assert "dealy" in (Path(line.split("(see ")[1].rstrip(")"))).read_text()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_disk_that_fills_up_is_one_line_and_nothing_counts(tmp_path: Path) -> None:
    """A disk of 53 MB in a mount namespace of its own, filled while the trial runs."""
    script = """
        mount -t tmpfs -o size=53m small "$1"
        "$2" -m measuretwice run mathis --trial 2 --out "$1/runs" &
        until ls "$1"/runs/mathis/.*.work/raw/romeo/ping.txt >/dev/null 2>&1; do
          kill -0 $! || exit 3
          sleep 0.05
        done
        dd if=/dev/zero of="$1/fill" bs=64k 2>/dev/null
        wait $!
        echo "exit $?" >&2
        ls "$1"/runs/mathis >&2
    """
    done = run_program("unshare", "-m", "bash", "-c", script, "bash", tmp_path, sys.executable)
    assert "Traceback" not in done.stderr
    assert f"lab: trial 2: the disk with {tmp_path / 'runs'} is full" in done.stderr
    # The last line would be a finished trial's folder.
    assert done.stderr.strip().splitlines()[-1] == "exit 1"


@pytest.mark.user
@pytest.mark.recorded("calibrate", "readings")
@pytest.mark.slow
def test_calibrate_reads_back_what_it_sets(all_cpus: set[int], tmp_path: Path) -> None:
    results = run_lab("calibrate", "--out", str(tmp_path))
    assert len(results) == 8
    for result in results:
        assert result["expectations"]
        for expectation in result["expectations"]:
            assert expectation["ok"] is True, (result["trial"], expectation)


def test_calibrate_notices_a_wrong_setting(tmp_path: Path) -> None:
    """An instrument check that can't fail checks nothing: timestamps on, 12 bytes are missing."""
    result = run_lab("calibrate", "--trial", "1", "--set", "timestamps=on", "--out", str(tmp_path))[
        0
    ]
    off = {e["measured"]: e["value"] for e in result["expectations"] if not e["ok"]}
    assert off == {"mss_bytes": 1448}


@pytest.mark.nightly("events that were lost, in a report: tests/unit/test_flows_report.py")
@pytest.mark.slow
def test_a_buffer_too_small_for_the_events_is_named(tmp_path: Path) -> None:
    """Two hundred flows' first losses overrun it: without its beginning nothing would count as a halving."""
    done = start_lab(
        *("run", "scale", "--trial", "1", "--set", "flows=200", "--set", "trace_bytes=65536"),
        *("--set", "start_spread_ms=1000", "--set", "warmup_s=1", "--set", "duration_s=15"),
        *("--out", tmp_path),
    )
    assert done.returncode == 1
    assert "the first events were lost" in done.stderr
    assert "--set trace_bytes=" in done.stderr
    assert "Traceback" not in done.stderr
