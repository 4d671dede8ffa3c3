"""Trials on this machine's own kernel with an emulator for the path: as root, as anybody, against known truth."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import LAB, begin_lab, run_program

from measuretwice.backends.host import ensure_program
from measuretwice.base.paths import EMULATED_EVENTS, EMULATOR

NOBODY = 65534
BY_DAY = pytest.mark.nightly(
    "another test of this file, whose run is as long: one lab as an ordinary user, the other as root, one killed"
)
UNSHARE = ["unshare", "--map-root-user", "--net", "--mount"]
# Whoever may make no namespaces can't run any of this, and is told so: test_backends.py.
pytestmark = pytest.mark.skipif(
    subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0,
    reason="user namespaces are forbidden here",
)


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A folder that an ordinary user may write to and reach; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory(prefix="measuretwice-anybody-") as folder:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


def machine() -> str:
    """Return what belongs to the whole machine and a run might leave changed."""
    asked = "ip netns list; ip -br link; sysctl net.core.default_qdisc net.ipv4.tcp_rmem; ls -d /run/mt-*"
    # Traces are the kernel's, wherever their file system is mounted; who isn't root has none.
    traces = 'mount -t tracefs none "$0" && ls "$0/instances"'
    return "".join(
        subprocess.run(words, capture_output=True, text=True, check=False).stdout
        for words in (
            ["bash", "-c", asked],
            ["unshare", "--mount", "bash", "-c", traces, "/sys/kernel/tracing"],
        )
    )


def left_running(folder: Path) -> list[str]:
    """Return the processes that have this folder in their command, or are its emulator."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and int(path.parent.name) != os.getpid():
            found.append(command)
    return found


def emulated(
    out: Path, *words: str, user: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ./lab run on the emulated host, as another user where one is given."""
    command = [*LAB, "run", *words, "--on", "host", "--emulate", "--out", str(out)]
    if user is not None:
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        if run_program(*become, *LAB, "--help").returncode:
            pytest.skip(
                "root's Python and checkout are closed to others here; .ci/as-user runs this"
            )
        command = [*become, *command]
        environment = {
            "HOME": str(out.parent),
            "MEASURETWICE_CACHE": str(out.parent / "cache"),
            **environment,
        }
    return run_program(*command, **environment)


def logs(out: Path) -> str:
    """What the steps and tools of unfinished trials printed last."""
    return "".join(
        f"\n{path.name}: {path.read_text(errors='replace')[-500:]}"
        for path in sorted(out.glob("*/.*.work/raw/*/*.log"))
    )


def the_run(out: Path) -> tuple[Path, dict[str, float]]:
    (run,) = (path.parent for path in out.glob("*/trial-*/DONE"))
    measured = json.loads((run / "result.json").read_text())["measured"]
    print(
        {name: measured[name] for name in measured if name.startswith(("emulator", "rtt", "loss"))}
    )
    return run, measured


@pytest.mark.slow
@pytest.mark.user
@pytest.mark.parametrize("who", [pytest.param("whoever tests", marks=BY_DAY), "an ordinary user"])
def test_mathis_is_measured_and_nothing_stays(anybodys: Path, who: str) -> None:
    user = NOBODY if who == "an ordinary user" and os.geteuid() == 0 else None
    before = machine()
    done = emulated(
        anybodys / "runs",
        "mathis",
        "--trial",
        "7",
        "--set",
        "rtt_ms=20",
        "--set",
        "duration_s=6",
        user=user,
    )
    assert done.returncode == 0, done.stderr + logs(anybodys / "runs")
    assert "in real time: about 15 seconds" in done.stderr
    assert "late" in done.stdout
    assert machine() == before
    assert left_running(anybodys / "runs") == []
    run, measured = the_run(anybodys / "runs")
    plan = json.loads((run / "plan.json").read_text())
    assert plan["where"] == "emulated"
    assert ", emulator " in plan["kernel"]
    assert "--on host --emulate" in json.loads((run / "provenance.json").read_text())["command"]
    # Never early; and late by as much as a busy machine may be.
    assert 20 <= measured["rtt_min_ms"] < 25
    assert 0 < measured["emulator_late_mean_us"] <= measured["emulator_late_max_us"]
    assert measured["emulator_packets"] > 2000
    assert measured["emulator_lost_packets"] == 0
    # p = 0.57 % of some three thousand packets.
    assert 0.002 < measured["loss_ratio"] < 0.012


@pytest.mark.slow
@pytest.mark.user
@pytest.mark.parametrize("who", ["whoever tests", pytest.param("an ordinary user", marks=BY_DAY)])
def test_a_queue_fills_and_halvings_are_seen(anybodys: Path, who: str) -> None:
    """Halvings are the kernel's events, or, for whoever may not have these, the states that they would tell of."""
    user = NOBODY if who == "an ordinary user" and os.geteuid() == 0 else None
    settings = (
        "flows=4",
        "rate_mbit=10",
        "buffer_bytes=60000",
        "duration_s=10",
        "warmup_s=1",
        "sample_interval_s=0.2",
        "start_spread_ms=500",
    )
    words = [word for setting in settings for word in ("--set", setting)]
    before = machine()
    done = emulated(anybodys / "runs", "scale", "--trial", "1", *words, user=user)
    assert done.returncode == 0, done.stderr
    assert machine() == before
    run, measured = the_run(anybodys / "runs")
    print(measured)
    assert measured["flows"] == 4
    # More than the rate can be counted in a window, by two things. Tokens that were saved before it let BURST_BYTES through at
    # once: 70 kB, or 56 ms at this rate. And the counters are up to 10 ms old (COUNT_EVERY_NS in emulator.c), so the first
    # sample may count what left 10 ms before its time, and the last may be read late: as late as the emulator's own frames are.
    params = json.loads((run / "plan.json").read_text())["params"]
    saved_s = 8 * params["burst_bytes"] / (1e6 * params["rate_mbit"])
    late_s = 0.010 + measured["emulator_late_max_us"] / 1e6
    assert 0.7 < measured["utilisation"] <= 1 + (saved_s + late_s) / measured["duration_s"]
    assert 0 < measured["queue_mean_bytes"] <= 60000
    assert measured["queue_drops"] > 0
    # Of each ten drops some halve a window, and none is halved more often than packets are dropped.
    assert measured["queue_drops"] / 20 < measured["halvings"] <= measured["queue_drops"]
    sampled = "events sampled" in json.loads((run / "plan.json").read_text())["kernel"]
    assert sampled == (user is not None or os.geteuid() != 0)
    assert 19.9 < measured["path_rtt_ms"] < 26


@pytest.mark.slow
@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=BY_DAY), signal.SIGKILL])
def test_whatever_ends_it_nothing_stays(tmp_path: Path, how: signal.Signals) -> None:
    """The lab is one whose senders note the kernel's events."""
    before = machine()
    words = ("run", "scale", "--trial", "1", "--set", "flows=2", "--on", "host", "--emulate")
    process = begin_lab(*words, "--out", tmp_path)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("scale/.*.work/raw/sender-0/ss.txt")):
        assert time.monotonic() < until, process.communicate(timeout=5)
        time.sleep(0.1)
    if os.geteuid() == 0:
        assert "sender-0" in machine()
    process.send_signal(how)
    process.wait(timeout=30)
    until = time.monotonic() + 30
    while left := left_running(tmp_path):
        assert time.monotonic() < until, left
        time.sleep(0.1)
    # The guard ends a moment after what it undoes.
    while (now := machine()) != before:
        assert time.monotonic() < until, now
        time.sleep(0.1)


# Frames of 1000 bytes into one end, and when they come out of the other; then one the other way.
PROBE = textwrap.dedent(
    """
    import json, socket, subprocess, sys, threading, time
    emulator, folder, frames, pause_s, *words = sys.argv[1:]
    def run(text): subprocess.run(text.split(), check=True)
    for name in "ab":
        run(f"ip link add {name}0 type veth peer name {name}1")
        for end in "01":
            open(f"/proc/sys/net/ipv6/conf/{name}{end}/disable_ipv6", "w").write("1")
            run(f"ip link set {name}{end} up")
    # Until the kernel has noticed that a cable is plugged in, what is sent into it is lost.
    while subprocess.run("ip -br link show type veth".split(), capture_output=True, text=True).stdout.count(" UP ") < 4:
        time.sleep(0.01)
    program = subprocess.Popen([emulator, "a1", "b1", *words, '"kind":"bfifo"', f"{folder}/counters", f"{folder}/late"])
    ends = []
    for name in ("a0", "b0"):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        end.bind((name, 0x88b5))
        end.settimeout(1.5)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        ends.append(end)
    while True:
        try:
            open(f"{folder}/counters").close()
            break
        except OSError:
            time.sleep(0.01)
    def passes(there, back, count):
        sent, came = [], []
        def listen():
            try:
                while len(came) < count:
                    data = back.recv(2000)
                    came.append((int.from_bytes(data[14:18], "big"), time.time()))
            except TimeoutError:
                pass
        listener = threading.Thread(target=listen)
        listener.start()
        for number in range(count):
            frame = bytes.fromhex("020000000001" "020000000002" "88b5") + number.to_bytes(4, "big")
            sent.append(time.time())
            there.send(frame.ljust(1000, b"x"))
            if float(pause_s): time.sleep(float(pause_s))
        listener.join()
        return {"sent": sent, "came": came}
    there, back = passes(ends[0], ends[1], int(frames)), passes(ends[1], ends[0], 1)
    program.terminate()
    assert program.wait(timeout=10) == 0
    print(json.dumps({"there": there, "back": back, "counters": json.load(open(f"{folder}/counters")), "late": json.load(open(f"{folder}/late"))}))
    """
)


def probe(folder: Path, frames: int, *words: str | float, pause_s: float = 0) -> dict:
    """Send frames through the emulator: rate (bit/s), burst, buffer (bytes), delays (ns), loss, seed."""
    done = subprocess.run(
        [
            *UNSHARE,
            sys.executable,
            "-c",
            PROBE,
            str(ensure_program(EMULATOR)),
            str(folder),
            str(frames),
            str(pause_s),
            *map(str, words),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict = json.loads(done.stdout)
    return found


def test_rate_buffer_and_delays_are_as_told(tmp_path: Path) -> None:
    """A millisecond a frame, twenty frames of room, 30 ms there and 50 back."""
    found = probe(tmp_path, 60, 8_000_000, 0, 20_000, 30_000_000, 50_000_000, 0, 1)
    sent, came = found["there"]["sent"], found["there"]["came"]
    took_ms = 1000 * (sent[-1] - sent[0])
    print(len(came), "of 60 came; sent in", took_ms, "ms")
    # Who sends at once fills the room; each millisecond that it took makes room for one more.
    assert 20 <= len(came) <= 20 + math.ceil(took_ms) + 1
    numbers = [number for number, _ in came]
    assert numbers == sorted(numbers)
    assert numbers[:20] == list(range(20))
    # Never early, whatever the machine does: the n-th leaves n ms after the first came.
    for place, (_, time_s) in enumerate(came, start=1):
        assert time_s - sent[0] >= (30 + place) / 1000 - 0.0005
    assert came[-1][1] - sent[0] < (30 + took_ms + 20) / 1000 + 0.5
    assert found["back"]["came"][0][1] - found["back"]["sent"][0] >= 0.0495
    counters = found["counters"]
    assert (counters["packets"], counters["drops"], counters["backlog"], counters["qlen"]) == (
        len(came),
        60 - len(came),
        0,
        0,
    )
    assert counters["bytes"] == 1000 * len(came)
    assert found["late"]["packets"] == len(came) + 1
    assert 0 <= found["late"]["late_mean_us"] <= found["late"]["late_max_us"]
    assert found["late"]["late_p99_us"] <= found["late"]["late_max_us"]


def test_a_burst_goes_at_once(tmp_path: Path) -> None:
    """Ten frames of tokens, then one frame in 100 ms."""
    found = probe(tmp_path, 12, 80_000, 10_000, 100_000, 0, 0, 0, 1)
    sent, came = found["there"]["sent"], found["there"]["came"]
    assert len(came) == 12
    after_s = [time_s - sent[0] for _, time_s in came]
    print(after_s)
    assert after_s[9] < 0.09
    assert after_s[10] >= 0.0995
    assert after_s[11] >= 0.1995


def test_losses_are_the_seeds(tmp_path: Path) -> None:
    """A fifth of a thousand, which the same seed picks again and another doesn't."""
    came = []
    for seed in (7, 7, 8):
        (tmp_path / "counters").unlink(missing_ok=True)
        found = probe(tmp_path, 1000, 0, 0, 0, 0, 0, 0.2, seed, pause_s=0.001)
        came.append([number for number, _ in found["there"]["came"]])
        assert found["counters"]["drops"] == 1000 - len(came[-1])
    print([len(numbers) for numbers in came])
    assert came[0] == came[1] != came[2]
    # Four standard deviations of 12.6 frames.
    assert all(abs(1000 - len(numbers) - 200) < 51 for numbers in came)


def test_late_frames_are_noted(tmp_path: Path) -> None:
    """A program that is stopped for 0.2 s sends what was due then that late."""
    script = PROBE.replace(
        "def passes(", "import os, signal\nthreading.Timer(0.3, lambda: os.kill(program.pid, signal.SIGCONT)).start()\nos.kill(program.pid, signal.SIGSTOP)\ndef passes(", 1
    )  # fmt: skip
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", script, str(ensure_program(EMULATOR)), str(tmp_path), "5", "0", *"0 0 0 1000000 0 0 1".split()],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    late = json.loads(done.stdout)["late"]
    print(late)
    assert late["late_max_us"] > 100_000
    assert late["late_mean_us"] > 100_000 * 5 / 6


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("mathis", "--emulate"), "--emulate is for this machine's own kernel: add --on host"),
        (("buffers", "--on", "host", "--emulate"), "buffers doesn't name what an emulator can replace"),
        (("mathis", "--trial", "7", "--set", "offloads=on", "--on", "host", "--emulate"), "trial 7 has offloads=on; with the emulator it can only be off"),
        (("mathis", "--trial", "7", "--set", "delay_ms=4", "--on", "host", "--emulate"), "trial 7 has delay_ms=4; with the emulator it can only be left alone"),
        (("mathis", "--trial", "7", "--set", "congestion_control=unheard", "--on", "host", "--emulate"), "this machine's kernel has no unheard"),
        (("mathis", "--case", "8", "--on", "host", "--emulate"), "needs more of the path than the emulator does"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    done = run_program(*LAB, "run", *words, "--out", tmp_path)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("lab: ")]
    assert says in line
    assert not list(tmp_path.glob("*/trial-*"))


def test_without_a_compiler_it_says_so(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in (
        "bash",
        "iperf3",
        "ping",
        "ip",
        "ethtool",
        "tcpdump",
        "unshare",
        "nsenter",
        "mount",
        "git",
    ):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    done = run_program(
        *LAB, "run", "mathis", "--trial", "7", "--on", "host", "--emulate", "--out", tmp_path / "runs",
        PATH=str(tools), MEASURETWICE_CACHE=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no C compiler: install gcc" in done.stderr


@pytest.mark.parametrize("source", [EMULATOR, EMULATED_EVENTS], ids=lambda path: path.name)
def test_it_compiles_without_a_warning(tmp_path: Path, source: Path) -> None:
    options = ["-O2", "-Wall", "-Wextra", "-Werror", "-o", str(tmp_path / "program"), str(source)]
    done = subprocess.run(["gcc", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(source.read_text().splitlines()) < 200
