"""The virtual kernel itself: what works inside, and that nothing of the host shows in results.

Each test boots the kernel that build.sh has made (`make test` runs it first), as a small machine
of its own: guest-init runs a script, whose words and files come back.
"""

import contextlib
import functools
import itertools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_program, until
from inside import built_kernel

from measuretwice.backends.script import kernel_settings
from measuretwice.backends.virtual import HUGE_FROM_MB, open_huge_memory
from measuretwice.backends.virtual import run_inside as run_in_kernel

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "scripts" / "kernel" / "build.sh"
pytestmark = pytest.mark.kernel

MEMORY_MB = 256
START_S = 1_700_000_000
VIRTUAL = ("time-travel=inf-cpu", f"time-travel-start={START_S}000000000")

# kind: what `tc qdisc add` needs besides it
QDISCS = {
    "netem": "delay 10ms loss 1%",
    "red": "limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.1 bandwidth 10mbit",
    "htb": "default 1",
    "tbf": "rate 1mbit burst 10kb latency 70ms",
    "fq": "",
    "fq_codel": "",
    "codel": "",
    "cake": "bandwidth 10mbit",
    "pie": "",
    "sfq": "",
    "prio": "",
    "pfifo": "limit 10",
    "bfifo": "limit 10000",
    "pfifo_fast": "",
}
CONGESTION_CONTROLS = [
    "reno", "cubic", "bbr", "bic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "scalable",
    "vegas", "veno", "westwood", "yeah",
]  # fmt: skip


@pytest.fixture(scope="module")
def kernel() -> Path:
    return built_kernel().folder


@contextlib.contextmanager
def running(
    kernel: Path, folder: Path, parameters: tuple[str, ...], prefix: tuple[str, ...] = ()
) -> Iterator["subprocess.Popen[bytes]"]:
    """A started kernel; ended with all its processes when the block is left."""
    # One CPU: unpinned, kernel and guest programs wake each other across CPUs.
    cpu = min(os.sched_getaffinity(0))
    with (folder / "console.txt").open("wb") as console:
        process = subprocess.Popen(
            [
                *prefix, str(kernel / "linux"), f"mem={MEMORY_MB}M", "seccomp=on", "panic=-1",
                "rootfstype=hostfs", f'rootflags="{kernel}/root"', "ro", "con=null", "con0=null,fd:1",
                "init=/sbin/guest-init", f'MT_FOLDER="{folder}"', f'MT_ROOT="{ROOT}"', *parameters,
            ],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            env={"HOME": str(folder), "PATH": os.defpath},
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_inside(
    kernel: Path,
    folder: Path,
    script: str,
    *,
    seed: int = 1,
    virtual: bool = True,
    prefix: tuple[str, ...] = (),
    extra: tuple[str, ...] = (),
    limit_s: float = 60,
) -> str:
    """Run a bash script inside; return what it said. `folder`, made where it isn't there, is /run/measuretwice in there."""
    folder.mkdir(exist_ok=True)
    (folder / "experiment.sh").write_text(script)
    parameters = (*VIRTUAL, f"random-seed={seed}") if virtual else ()
    with running(kernel, folder, ("quiet", *parameters, *extra), prefix) as process:
        process.wait(timeout=limit_s)
    return (folder / "experiment.log").read_text()


Inside = Callable[..., str]


@pytest.fixture
def inside(kernel: Path, tmp_path: Path) -> Inside:
    """run_inside with the test's own folder."""
    return functools.partial(run_inside, kernel, tmp_path)


# Two nodes and a router; 10 ms there and back, 1 % loss on the way there.
TOPOLOGY = """
set -e
sleep 0.05
for n in romeo router juliet; do ip netns add $n; ip -n $n link set lo up; done
ip link add r0 netns romeo address 02:00:00:00:01:01 type veth peer name x0 netns router address 02:00:00:00:01:02
ip link add x1 netns router address 02:00:00:00:02:01 type veth peer name j0 netns juliet address 02:00:00:00:02:02
ip -n romeo addr add 10.10.1.100/24 dev r0; ip -n romeo link set r0 up
ip -n router addr add 10.10.1.1/24 dev x0; ip -n router link set x0 up
ip -n router addr add 10.10.2.1/24 dev x1; ip -n router link set x1 up
ip -n juliet addr add 10.10.2.100/24 dev j0; ip -n juliet link set j0 up
ip -n romeo route add default via 10.10.1.1
ip -n juliet route add default via 10.10.2.1
ip netns exec router sysctl -qw net.ipv4.ip_forward=1
tc -n router qdisc add dev x0 root netem delay 5ms limit 10000
tc -n router qdisc add dev x1 root handle 1: netem delay 5ms loss 1% limit 10000
tc -n router qdisc add dev x1 parent 1: handle 2: tbf rate 50mbit burst 10kb limit 100kb
set +e
"""


# --- what there is inside -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def qdiscs_seen(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    lines = [
        f"echo '\"{kind}\":' $(tc qdisc add dev d0 root handle 1: {kind} {options} 2>&1 >&2;"
        " tc -j qdisc show dev d0; tc qdisc del dev d0 root) ,"
        for kind, options in QDISCS.items()
    ]
    script = (
        "ip link add d0 type dummy\nip link set d0 up\necho {\n"
        + "\n".join(lines)
        + "\necho '\"\": 0}'\n"
    )
    return dict(json.loads(run_inside(kernel, tmp_path_factory.mktemp("qdiscs"), script)))


@pytest.mark.parametrize("kind", QDISCS)
def test_qdisc(qdiscs_seen: dict[str, Any], kind: str) -> None:
    assert [qdisc["kind"] for qdisc in qdiscs_seen[kind] if qdisc["handle"] == "1:"] == [kind]


def test_filters_and_redirection(inside: Inside) -> None:
    output = inside("""ip link add d0 type dummy; ip link set d0 up
ip link add ifb0 type ifb; ip link set ifb0 up
tc qdisc add dev d0 handle ffff: ingress
tc filter add dev d0 parent ffff: matchall action mirred egress redirect dev ifb0
tc qdisc add dev d0 root handle 1: htb
tc class add dev d0 parent 1: classid 1:5 htb rate 1mbit
tc filter add dev d0 parent 1: protocol ip u32 match ip dport 5201 0xffff flowid 1:5
tc filter show dev d0 parent ffff:; tc filter show dev d0 parent 1:
""")
    assert "mirred (Egress Redirect to device ifb0)" in output
    assert "flowid 1:5" in output


@pytest.fixture(scope="module")
def controls_seen(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    script = f"""python3 - <<'END'
import json, socket
seen = {{}}
for name in {CONGESTION_CONTROLS}:
    with socket.socket() as s:
        try:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            seen[name] = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
        except OSError as error:
            seen[name] = str(error)
print(json.dumps(seen))
END
"""
    output = run_inside(kernel, tmp_path_factory.mktemp("controls"), script)
    return dict(json.loads(output))


@pytest.mark.parametrize("name", CONGESTION_CONTROLS)
def test_congestion_control(controls_seen: dict[str, str], name: str) -> None:
    assert controls_seen[name] == name


def test_tools_work_inside(inside: Inside) -> None:
    output = inside(
        TOPOLOGY
        + """
ok() { "${@:2}" >/tmp/said 2>&1 && echo "ok $1" || { echo "failed $1"; cat /tmp/said; }; }
in_romeo="ip netns exec romeo"
ok ping $in_romeo ping -c 3 -i 0.2 10.10.2.100
$in_romeo sysctl -qw net.ipv4.ping_group_range="0 2147483647"
ok unprivileged-ping $in_romeo python3 -c "import os; os.setgid(65534); os.setuid(65534); os.execlp('ping', 'ping', '-c', '1', '127.0.0.1')"
ip netns exec juliet iperf3 -s -1 >/dev/null 2>&1 & sleep 0.2
$in_romeo tcpdump -i r0 -w /tmp/cap -c 50 tcp >/dev/null 2>&1 & tcpdump=$!
sleep 0.2
ok iperf3 $in_romeo iperf3 -c 10.10.2.100 -t 2 -J
wait $tcpdump
ok tcpdump test "$(tcpdump -r /tmp/cap 2>/dev/null | wc -l)" = 50
ok ss $in_romeo ss -tiemnoa
ok nstat $in_romeo nstat -az TcpOutSegs
ok ethtool $in_romeo ethtool -K r0 tso off gso off gro off
ok ethtool-k bash -c "$in_romeo ethtool -k r0 | grep 'tcp-segmentation-offload: off'"
ok ethtool-S $in_romeo ethtool -S r0
ok ip-json bash -c "ip -j -n romeo route | python3 -m json.tool"
ok tc-json bash -c "tc -n router -j -s qdisc | python3 -m json.tool"
ok sort test "$(printf '3\\n1\\n2\\n' | sort | head -n 1)" = 1
ok sleep sleep 0.01
ok null dd if=/dev/zero of=/dev/null bs=1M count=1
ok sysctl test "$(cat /proc/sys/net/ipv4/ip_forward)" = 0
ok shm test -w /dev/shm
ok threads python3 -c "import threading; t = threading.Thread(target=int); t.start(); t.join()"
ok asyncio python3 -c "import asyncio; asyncio.run(asyncio.sleep(0.01))"
ok procs test "$(ps ax | wc -l)" -gt 5
"""
    )
    lines = output.splitlines()
    assert [line for line in lines if not line.startswith("ok ")] == [], output
    assert len(lines) == 19


def test_more_programs_at_a_time_than_are_kept(inside: Inside) -> None:
    """256 processes of this machine's are kept for the next program (faster/0008); others end with theirs."""
    output = inside("""
        for round in 1 2; do
          pids=()
          for i in {1..300}; do sleep 1 & pids+=($!); done
          for pid in "${pids[@]}"; do wait "$pid" && echo ended; done
          for i in {1..20}; do awk 'BEGIN { s = "x"; while (length(s) < 300000) s = s s; print length(s) }'; done
        done
        """)
    assert output.split() == (["ended"] * 300 + ["524288"] * 20) * 2


def test_clock_is_fine_and_exact(inside: Inside) -> None:
    output = inside("""sleep 0.05
python3 - <<'END'
import ctypes, time
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # no timer slack
print(time.clock_getres(time.CLOCK_MONOTONIC))
before = time.monotonic_ns()
time.sleep(0.0012345)
print(time.monotonic_ns() - before)
END""")
    resolution, slept = output.split()
    assert float(resolution) == 1e-9
    # The price of some reads of the clock, and no more.
    assert 1_234_500 <= int(slept) < 1_237_000


def test_spinning_on_the_clock_ends_soon(inside: Inside) -> None:
    output = inside("""python3 - <<'END'
import time
def spin(seconds):
    reads, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        reads += 1
    return reads
time.sleep(0.01)
print(spin(1))
time.sleep(0.01)
# After a pause the price is the base price again.
before = time.monotonic_ns()
for _ in range(100):
    time.monotonic_ns()
print(time.monotonic_ns() - before)
END""")
    reads, price = map(int, output.split())
    assert reads < 25_000
    assert 101 * 32 <= price < 103 * 32


def test_who_writes_and_looks_at_the_clock_is_not_waiting(inside: Inside) -> None:
    """As a sender of many flows does that always have room; it is held up by neither."""
    output = inside("""python3 - <<'END'
import os, time
null = os.open("/dev/null", os.O_WRONLY)
def looks(number, write):
    began = time.monotonic()
    for _ in range(number):
        if write:
            os.write(null, b"x")
        time.monotonic()
    return time.monotonic() - began
print(looks(20_000, True), looks(20_000, False))
END""")
    writing_s, waiting_s = map(float, output.split())
    # 32 ns a look, and 2^8 times that for the last thousands; else it would be 2^13 times
    assert 20_000 * 32e-9 <= writing_s < 0.12
    assert waiting_s > 1


READ_IN_ALL_WAYS = """
ip link set lo mtu 1500 up
ethtool -K lo tso off gso off gro off
tc qdisc add dev lo root tbf rate 20mbit burst 3100 limit 1000000
python3 - <<'END'
import hashlib, os, random, select, socket, time
data = random.Random(7).randbytes(3_000_000)
listener = socket.create_server(("127.0.0.1", 5000))
if os.fork() == 0:
    sender = socket.create_connection(("127.0.0.1", 5000))
    sender.sendall(data[:2_900_000])
    sender.sendall(data[2_900_000:])
    os._exit(0)
source, got, waits = listener.accept()[0], bytearray(), 0
def more(part):
    got.extend(part)
    return part
for _ in range(5):
    assert len(more(source.recv(70_001, socket.MSG_WAITALL))) == 70_001
for _ in range(20):
    seen = source.recv(5000, socket.MSG_PEEK)
    assert more(source.recv(len(seen), socket.MSG_WAITALL)) == seen
for _ in range(50):
    assert more(source.recv(700))
source.setblocking(False)
start = time.monotonic()
while len(got) < 2_000_000:
    select.select([source], [], [])
    waits += 1
    more(source.recv(200_000))
print("waits", waits, "seconds", time.monotonic() - start, flush=True)
source.setblocking(True)
while more(source.recv(100_000)):
    pass
print("same", hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), flush=True)
os.wait()

# Who doesn't read lets the window close, and loses nothing.
if os.fork() == 0:
    sender = socket.create_connection(("127.0.0.1", 5000))
    sender.setblocking(False)
    sent = 0
    for _ in range(40):
        time.sleep(0.1)
        try:
            sent += sender.send(data[sent:])
        except BlockingIOError:
            pass
    print("sent", sent, flush=True)
    sender.setblocking(True)
    sender.sendall(data[sent:])
    os._exit(0)
source, got = listener.accept()[0], bytearray()
source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50_000)
time.sleep(5)
while more(source.recv(100_000)):
    pass
print("same", bytes(got) == data)
END
"""


@pytest.mark.parametrize("interval_us", [0, 10_000])
def test_reading_ahead(inside: Inside, interval_us: int) -> None:
    """All ways to read give the data that were sent; a program is woken once in an interval."""
    output = inside(READ_IN_ALL_WAYS, extra=(f"tcp_reader_interval_us={interval_us}",))
    words = output.split()
    assert words[4:6] == words[8:] == ["same", "True"], output
    waits, seconds, sent = int(words[1]), float(words[3]), int(words[7])
    if interval_us:
        assert 0.9 * seconds < waits * interval_us / 1e6 < 1.1 * seconds
    else:
        assert waits > 1000
    assert 50_000 < sent < 2_900_000


def test_splice_of_what_was_read_ahead_is_refused(inside: Inside) -> None:
    output = inside(
        """ip link set lo mtu 1500 up
tc qdisc add dev lo root tbf rate 20mbit burst 3100 limit 1000000
python3 - <<'END'
import os, select, socket
listener = socket.create_server(("127.0.0.1", 5000))
if os.fork() == 0:
    socket.create_connection(("127.0.0.1", 5000)).sendall(bytes(1_000_000))
    os._exit(0)
source, (out, into), refused = listener.accept()[0], os.pipe(), set()
for _ in range(30):
    select.select([source], [], [])
    try:
        os.splice(source.fileno(), into, 1000)
        os.read(out, 1000)
    except OSError as error:
        refused.add(error.strerror)
        source.recv(100_000)
print(*refused)
END""",
        extra=("tcp_reader_interval_us=10000",),
    )
    assert output.strip() == "Operation not supported"


def test_real_time(inside: Inside) -> None:
    script = "date +%s; sleep 0.5; cat /proc/sys/kernel/random/uuid\n"
    began = time.monotonic()
    first = inside(script, virtual=False).split()
    assert time.monotonic() - began > 0.5
    assert abs(int(first[0]) - time.time()) < 60
    # Here random numbers are random.
    assert inside(script, virtual=False).split()[1] != first[1]


def test_live_terminal(kernel: Path, tmp_path: Path) -> None:
    """con1=pts: a shell inside, on a terminal of the host."""
    (tmp_path / "experiment.sh").write_text(
        'setsid bash -c "exec bash --norc -i </dev/tty1 >/dev/tty1 2>&1"\n'
    )
    with running(kernel, tmp_path, ("con1=pts",)):
        console, assigned = tmp_path / "console.txt", "Virtual console 1 assigned device '([^']+)'"
        until(lambda: re.search(assigned, console.read_text()), 20)
        terminal = re.findall(assigned, console.read_text())[0]
        fd = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
        try:
            assert "answer 42" in converse(fd, b"echo answer $((6 * 7))\n", "answer 42")
            os.write(fd, b"exit\n")
        finally:
            os.close(fd)


def converse(fd: int, line: bytes, expected: str) -> str:
    """Say the line, again every second until the answer has come: the shell may not be up yet."""
    heard = ""
    deadline = time.monotonic() + 20
    while expected not in heard and time.monotonic() < deadline:
        os.write(fd, line)
        while select.select([fd], [], [], 1)[0] and expected not in heard:
            heard += os.read(fd, 4096).decode(errors="replace")
    return heard


@pytest.mark.user
def test_nothing_is_left_in_the_home_folder(inside: Inside, tmp_path: Path) -> None:
    inside("true\n")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["console.txt", "experiment.log", "experiment.sh"]


def test_smoke_option() -> None:
    built_kernel()
    done = run_program(BUILD, "--smoke")
    assert done.returncode == 0, done.stderr
    assert "boots" in done.stderr


# --- the same seed, the same results ------------------------------------------------------------

DRAW = "cat /proc/sys/kernel/random/uuid; head -c 64 /dev/urandom | od -An -tx1"
# As every trial does: what Linux chooses by itself follows from its memory (see the last test here).
LIMITS = "\n".join(
    f"echo {value!r} >/proc/sys/net/{name}" for name, value in kernel_settings(MEMORY_MB).items()
)
EXPERIMENT = f"""{DRAW}
{LIMITS}
{TOPOLOGY}
ip netns exec juliet iperf3 -s -1 >/run/measuretwice/server.txt 2>&1 & sleep 0.2
ip netns exec romeo iperf3 -c 10.10.2.100 -t 5 -C bbr -J >/run/measuretwice/client.json
wait
{DRAW}
tc -n router -s -j qdisc
ip netns exec juliet nstat -az
sleep 100
{DRAW}
python3 -c 'import os; print(hash("salted"), os.urandom(8))'
"""


def outcome(kernel: Path, folder: Path, **how: Any) -> str:
    folder.mkdir(mode=0o777, exist_ok=True)
    folder.chmod(0o777)
    output = run_inside(kernel, folder, EXPERIMENT, **how)
    assert output.count("-") >= 12, output
    return output + (folder / "client.json").read_text() + (folder / "server.txt").read_text()


@pytest.fixture(scope="module")
def reference(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return outcome(kernel, tmp_path_factory.mktemp("reference"))


@pytest.mark.user
def test_same_seed(kernel: Path, reference: str, tmp_path: Path) -> None:
    assert outcome(kernel, tmp_path / "a folder with another name") == reference


def test_other_seed(kernel: Path, reference: str, tmp_path: Path) -> None:
    assert outcome(kernel, tmp_path / "other", seed=2) != reference


# Longer than any path of a person's that a page of memory more or less could hang on.
LONG_PATH = ("SOMETHING=/" + "x" * 3000,)


@pytest.mark.user
def test_command_line_and_environment_do_not_matter(
    kernel: Path, reference: str, tmp_path: Path
) -> None:
    prefix = ("env", "LONG=" + "x" * 2000)
    assert outcome(kernel, tmp_path / "other", extra=LONG_PATH, prefix=prefix) == reference


def test_same_seed_on_a_busy_machine(kernel: Path, reference: str, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    busy = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"],
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )
    try:
        assert outcome(kernel, tmp_path / "busy", limit_s=120) == reference
    finally:
        busy.kill()
        busy.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_same_seed_as_another_user(kernel: Path, reference: str) -> None:
    # Neither pytest's folders nor root's cache are open to others.
    with tempfile.TemporaryDirectory() as name:
        public = Path(name)
        public.chmod(0o755)
        shutil.copytree(kernel, public / "kernel")
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        assert outcome(public / "kernel", public / "run", prefix=nobody) == reference


@pytest.mark.user
def test_what_linux_makes_of_its_memory_does_not_depend_on_the_place(tmp_path: Path) -> None:
    """Linux keeps two copies of its command line, so a long path on it would cost memory, and TCP's
    limits follow from that: virtual.start tells it no path at all."""
    deep = tmp_path.joinpath(*["a folder with a long name" * 6] * 12)
    deep.mkdir(parents=True)
    chosen = "cat /proc/sys/net/ipv4/tcp_{mem,rmem,wmem} /proc/cmdline; grep MemTotal /proc/meminfo"
    logs = []
    for folder in (tmp_path, deep):
        (folder / "experiment.sh").write_text(chosen)
        run_in_kernel(built_kernel(), ROOT, folder, 1, 60, memory_mb=MEMORY_MB)
        logs.append((folder / "experiment.log").read_text())
    assert logs[0] == logs[1]
    assert "MemTotal" in logs[0]


@pytest.mark.user
def test_a_large_guests_huge_pages_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = Path("/proc/self/mounts").read_text()
    logs = []
    for place in (None, "/tmp"):
        if place:
            monkeypatch.setenv("TMPDIR", place)
        else:
            monkeypatch.delenv("TMPDIR", raising=False)
        folder = tmp_path / str(place).strip("/")
        folder.mkdir()
        (folder / "experiment.sh").write_text(EXPERIMENT)
        run_in_kernel(built_kernel(), ROOT, folder, 1, 120, memory_mb=HUGE_FROM_MB)
        logs.append((folder / "experiment.log").read_text() + (folder / "client.json").read_text())
    assert logs[0] == logs[1]
    assert logs[0].count("-") >= 12, logs[0]
    assert Path("/proc/self/mounts").read_text() == mounts


@pytest.mark.user
def test_huge_pages_are_had_or_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = open_huge_memory(64)
    # A container may forbid it.
    if huge is not None:
        try:
            name = f"/proc/self/fd/{huge}/guest"
            with open(name, "wb") as memory:
                memory.truncate(64 * 2**20)
            assert os.stat(name).st_dev != Path("/dev/shm").stat().st_dev
            assert not os.statvfs(name).f_flag & os.ST_NOEXEC
        finally:
            os.close(huge)
    monkeypatch.setenv("PATH", "/nowhere")
    assert open_huge_memory(64) is None


# --- ss-sampler ---------------------------------------------------------------------------------

SAMPLED = (
    TOPOLOGY
    + """
cd /run/measuretwice
ip netns exec juliet iperf3 -s -1 >/dev/null 2>&1 & sleep 0.2
ip netns exec romeo iperf3 -c 10.10.2.100 -t 10 -C vegas -P 3 >/dev/null 2>&1 &
sleep 0.2
ip netns exec romeo ss-sampler --interval 0.1 --dst 10.10.2.100 --out a.diag --times a.times & sampler=$!
ip netns exec romeo python3 - <<'END'
# ss itself, at the very moments of the samples
import ctypes, subprocess, time
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)
time.sleep(0.05)
first = float(open("a.times").readline().split()[0])
with open("live.txt", "w") as out:
    for n in range(1, 60):
        time.sleep(first + 0.1 * n - time.time())
        subprocess.run(["ss", "-tinOH", "dst 10.10.2.100"], stdout=out)
END
"""
)


def sockets(text: str) -> list[list[str]]:
    """ss pads its lines to one width, which depends on what else it prints: words count."""
    return [line.split() for line in text.splitlines()]


def test_sampler_prints_what_ss_prints(inside: Inside, tmp_path: Path) -> None:
    output = inside(
        SAMPLED
        + """kill -TERM $sampler; wait $sampler; echo exit $?
TCPDIAG_FILE=a.diag ss -tinOH >sampled.txt 2>errors.txt; echo ss $?
"""
    )
    assert output.split() == ["exit", "0", "ss", "0"]
    assert (tmp_path / "errors.txt").read_text() == ""
    times = [line.split() for line in (tmp_path / "a.times").read_text().splitlines()]
    sampled = sockets((tmp_path / "sampled.txt").read_text())
    live = sockets((tmp_path / "live.txt").read_text())
    assert sum(int(count) for _, count in times) == len(sampled)
    first = int(times[0][1])
    assert len(live) == 59 * 4
    same = [s == ss for s, ss in zip(sampled[first:], live, strict=False)]
    # ss starts a microsecond after its sample was taken: now and then a packet comes in between.
    assert sum(same) >= 0.98 * len(live), sum(same)
    gaps = {
        round(float(after[0]) - float(before[0]), 6) for before, after in itertools.pairwise(times)
    }
    # Another program that is ready at the same moment may go first, for some reads of the clock.
    assert all(abs(gap - 0.1) < 5e-6 for gap in gaps), gaps


def test_killed_sampler_leaves_what_it_had(inside: Inside, tmp_path: Path) -> None:
    inside(
        SAMPLED + "kill -KILL $sampler; TCPDIAG_FILE=a.diag ss -tinOH >sampled.txt 2>errors.txt\n",
    )
    times = [line.split() for line in (tmp_path / "a.times").read_text().splitlines()]
    sampled = sockets((tmp_path / "sampled.txt").read_text())
    assert len(sampled) == sum(int(count) for _, count in times) > 59 * 4


def test_sampler_filters_and_follows_a_process(inside: Inside) -> None:
    output = inside(
        TOPOLOGY
        + """cd /run/measuretwice
for port in 5201 5202; do ip netns exec juliet iperf3 -s -1 -p $port >/dev/null 2>&1 & done; sleep 0.2
for port in 5201 5202; do ip netns exec romeo iperf3 -c 10.10.2.100 -p $port -t 2 >/dev/null 2>&1 & last=$!; done
sleep 0.2
sample() { ip netns exec romeo ss-sampler --interval 0.5 --until-pid $last --out $1.diag --times $1.times "${@:2}" & }
sample all; sample port --dport 5202; sample nobody --dst 10.10.1.1; sample memory --memory --tos
wait
for f in all port nobody memory; do echo $f $(cut -d' ' -f2 $f.times | sort -u | head -n 1) $(TCPDIAG_FILE=$f.diag ss -tinOH | grep -c skmem); done
"""
    )
    found = {
        name: (int(count), int(skmem)) for name, count, skmem in map(str.split, output.splitlines())
    }
    assert found["all"] == (4, 0)
    assert found["port"] == (2, 0)
    assert found["nobody"] == (0, 0)
    assert found["memory"][0] == 4
    assert found["memory"][1] >= 4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "usage:"),
        (["--interval", "fast", "--out", "x", "--times", "y"], "--interval fast"),
        (["--interval", "1", "--out", "x", "--times", "y", "--dst", "romeo"], "not an IP address"),
        (["--interval", "1", "--out", "x", "--times", "y", "--dport", "70000"], "--dport 70000"),
    ],
)
def test_sampler_wrong_usage(
    kernel: Path, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    done = run_program(kernel / "root/usr/bin/ss-sampler", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- cables with a speed, hosts that take their time ----------------------------------------------

CABLE = """
sleep 0.05
ip netns add a; ip netns add b
ip link add va netns a address 02:00:00:00:01:01 type veth peer name vb netns b address 02:00:00:00:01:02
ip -n a addr add 10.0.0.1/24 dev va; ip -n a link set va up
ip -n b addr add 10.0.0.2/24 dev vb; ip -n b link set vb up
ip -n a neigh add 10.0.0.2 lladdr 02:00:00:00:01:02 dev va nud permanent
ip -n b neigh add 10.0.0.1 lladdr 02:00:00:00:01:01 dev vb nud permanent
ethtool() { ip netns exec $1 ethtool "${@:2}"; }
"""
PING_RTTS = (
    "ip netns exec a ping -n -c 200 -i 0.01 10.0.0.2 | sed -n 's/.*time=\\([0-9.]*\\) ms/\\1/p'\n"
)


def with_speed(mbit: int) -> str:
    return f"{CABLE}ethtool a -s va speed {mbit} duplex full autoneg off\n"


def test_both_ends_of_a_cable_have_its_speed(inside: Inside) -> None:
    """A frame takes its bits (with checksum, preamble and gap) over the speed, there and back."""
    output = inside(
        with_speed(10)
        + "ethtool a va | grep Speed; ethtool b vb | grep Speed\n"
        + "ethtool a -s va speed 0 duplex full autoneg off 2>/dev/null || echo refused\n"
        + PING_RTTS,
    )
    words, rtts = output.split("refused\n")
    assert words.split() == ["Speed:", "10Mb/s"] * 2
    frame_bytes = 14 + 20 + 8 + 56 + 4 + 8 + 12
    there_and_back_ms = 2 * 8 * frame_bytes / 10e6 * 1e3
    assert [float(rtt) for rtt in rtts.split()] == pytest.approx(
        [there_and_back_ms] * 200, abs=0.001
    )


def test_a_host_looks_at_a_packet_at_a_random_moment(
    inside: Inside, kernel: Path, tmp_path: Path
) -> None:
    script = (
        CABLE + "ethtool b -C vb rx-usecs 500\nethtool b -c vb | grep '^rx-usecs:'\n" + PING_RTTS
    )
    first, *rtts = inside(script).splitlines()
    assert first.split() == ["rx-usecs:", "500"]
    waits_ms = [float(rtt) for rtt in rtts]
    assert len(waits_ms) == 200
    assert 0 <= min(waits_ms) < 0.03
    assert 0.47 < max(waits_ms) <= 0.502
    # uniform: the mean of 200 is within four of its standard errors, 0.5/sqrt(12)/sqrt(200) ms each
    assert abs(sum(waits_ms) / 200 - 0.25) < 4 * 0.0102
    assert run_inside(kernel, tmp_path / "again", script).splitlines()[1:] == rtts
    assert run_inside(kernel, tmp_path / "other", script, seed=2).splitlines()[1:] != rtts


# Eight datagrams, a tenth of a millisecond apart: when each is sent, then when each is at the other host, in ns.
DATAGRAMS = """
ip netns exec b tcpdump --nano -tt -n -i vb -c 8 udp >/tmp/arrived 2>/dev/null & sleep 0.2
ip netns exec a python3 -c '
import socket, time
to_b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(8):
    print(time.time_ns())
    to_b.sendto(b"x", ("10.0.0.2", 9))
    time.sleep(0.00005)  # and 50 us more, by which timers may be late
'
wait; sed 's/ .*//; s/[.]//' /tmp/arrived
"""


def sent_and_arrived(kernel: Path, folder: Path, batches: str) -> tuple[list[int], list[int]]:
    output = run_inside(kernel, folder, f"{CABLE}ethtool b -C vb {batches}\n{DATAGRAMS}")
    times = [int(line) for line in output.splitlines()]
    assert len(times) == 16
    return times[:8], times[8:]


def test_a_host_takes_packets_in_batches(kernel: Path, tmp_path: Path) -> None:
    """All that comes within a millisecond of the first at that millisecond's end; a full batch at once."""
    near_ns = 20_000
    sent, arrived = sent_and_arrived(kernel, tmp_path / "late", "rx-usecs 1000 rx-frames 64")
    assert 600_000 < sent[-1] - sent[0] < 1_000_000
    assert len(set(arrived)) == 1
    assert arrived[0] - sent[0] == pytest.approx(1_000_000, abs=near_ns)
    sent, arrived = sent_and_arrived(kernel, tmp_path / "full", "rx-usecs 1000 rx-frames 4")
    assert [arrived.index(time) for time in arrived] == [0] * 4 + [4] * 4
    assert arrived[0] - sent[3] == pytest.approx(0, abs=near_ns)
    assert arrived[4] - sent[7] == pytest.approx(0, abs=near_ns)


def test_without_batches_each_packet_waits_by_itself(kernel: Path, tmp_path: Path) -> None:
    waits = "ethtool b -C vb rx-usecs 500"
    outputs = []
    for words in (waits, f"{waits} rx-frames 0", f"{waits} rx-frames 2"):
        folder = tmp_path / str(len(outputs))
        outputs.append(run_inside(kernel, folder, f"{CABLE}{words}\n{PING_RTTS}"))
    assert outputs[0] == outputs[1] != outputs[2]
    assert len(outputs[0].splitlines()) == 200


def test_packets_keep_their_order_on_a_cable(inside: Inside) -> None:
    """Chance longer than a packet's time on the wire, and still none overtakes another."""
    output = inside(
        with_speed(1000)
        + "ethtool a -C va rx-usecs 200; ethtool b -C vb rx-usecs 200\n"
        + "for n in a b; do ethtool $n -K v$n tso off gso off gro off; done\n"
        + "ip netns exec b iperf3 -s -1 >/dev/null & sleep 0.2\n"
        + "ip netns exec a iperf3 -c 10.0.0.2 -t 1 | grep receiver\n"
        + "for n in a b; do ip netns exec $n nstat -asz TcpExtTCPSACKReorder TcpExtTCPOFOQueue TcpRetransSegs; done\n",
    )
    counters = re.findall(r"^Tcp\w+ +(\d+)", output, flags=re.MULTILINE)
    assert counters == ["0"] * 6, output
    found = re.search(r"([\d.]+) Mbits/sec", output)
    # of each 1538 B on the wire 1448 are data
    assert found is not None
    assert 900 < float(found[1]) <= 1000 * 1448 / 1538
