"""The machine's own kernel, in network namespaces: for `--on host`, as root, and for `--on host --emulate`.

Before anything is changed it is asked whether the kernel has what the trials need. What a trial
makes is undone when it ends and when whoever started it dies (scripts/host/guard.sh). With an emulator
(scripts/host/emulator.c) the kernel needs no netem, and nobody needs to be root.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from measuretwice.backends.backend import Backend, algorithms_of, needs, tool_versions
from measuretwice.backends.script import Emulation, Interface, experiment_script, interfaces
from measuretwice.base.errors import UserError
from measuretwice.base.paths import (
    EMULATED_EVENTS,
    EMULATED_STAY_ROOT,
    EMULATED_TOOLS,
    EMULATOR,
    HOST_GUARD,
    cache_folder,
)
from measuretwice.lab import KernelFacts, Lab, Plan
from measuretwice.lab.schema.network import Emulated

NAMESPACES = Path("/run/netns")
PREFIX = re.compile(r"mt-(\d+)-")
UNDO_SECONDS = 15
# In the run, whose /run is its own.
COUNTERS, STAND_INS = "/run/emulator-counters.json", "/run/stand-ins"
INSIDE = ["--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
# More than any lab's buffer: where a lab names none, none is filled.
ENDLESS_BYTES = 10**12


class Host(Backend):
    """Trials in this machine's own namespaces, one at a time.

    `owner` is the process that namespaces are named after: what it leaves is undone when it is gone.
    """

    name = "host"
    accepts = "host"
    option = " --on host"
    real_time = True
    location = "on this machine's own kernel"

    def __init__(self, tools: dict[str, str], owner: int) -> None:
        self.kernel, self.tools = f"host linux {platform.release()}", tools
        self._owner = owner

    @classmethod
    def matches(cls, where: str) -> bool:
        return where == cls.name

    @classmethod
    @contextmanager
    def open(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        tools = tool_versions()
        sweep()
        yield cls(tools, os.getpid())

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        if os.geteuid() != 0:
            return ["--on host makes network namespaces, which only root may: sudo ./lab run ..."]
        if not shutil.which("unshare"):
            return ["unshare is missing: install util-linux"]
        if not _works("true"):
            return ["--on host: this machine doesn't let you make network namespaces, even as root"]
        missing = [words for words, command in needs(lab, plans).items() if not _works(command)]
        if missing:
            return [
                f"--on host: this machine's kernel lacks {', '.join(missing)}; "
                "without --on host the virtual kernel has all of it"
            ]
        return []

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        script = experiment_script(lab, plan, root, str(work / "raw"), None, prefix(self._owner))
        (work / "experiment.sh").write_text(script, encoding="utf-8")
        run_script(work, self._owner, wall_limit_s)

    @contextmanager
    def serving(self) -> Iterator[None]:
        try:
            yield
        finally:
            wait_until_undone(self._owner)

    def kernel_facts(self) -> KernelFacts:
        return KernelFacts(platform.release())


class _Programs(NamedTuple):
    """What is compiled for emulated runs; `events` and `stay_root` (a library) where a user needs them."""

    emulator: Path
    events: Path | None
    stay_root: Path | None


class EmulatedHost(Host):
    """Trials on this machine's own kernel, with an emulator of ours in the place of one link: in real time.

    It lives in namespaces that end with it, so an ordinary user may. Only root may have the kernel's events: for others the
    states that these would tell of are sampled.
    """

    name = "emulated"
    option = " --on host --emulate"
    location = "on this machine's own kernel, with an emulator for the path, in real time"
    differs = (
        "this machine's own kernel in real time, with an emulator in the place of the path: no two results are alike, "
        "and emulator_late_mean_us shows how late packets were"
    )

    def __init__(self, tools: dict[str, str], owner: int) -> None:
        super().__init__(tools, owner)
        self._programs = _Programs(
            ensure_program(EMULATOR),
            None if _sees_events() else ensure_program(EMULATED_EVENTS),
            ensure_program(EMULATED_STAY_ROOT, "-shared", "-fPIC") if os.geteuid() else None,
        )
        digest = hashlib.sha256(EMULATOR.read_bytes()).hexdigest()[:8]
        sampled = ", events sampled" if self._programs.events else ""
        self.kernel = f"{self.kernel}, emulator {digest}{sampled}"

    @classmethod
    def matches(cls, where: str) -> bool:
        return False

    @classmethod
    @contextmanager
    def open(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        if lab.file.topology.emulated is None:
            raise UserError(
                f"--emulate: {lab.name} doesn't name what an emulator can replace (topology.emulated in its lab.toml)"
            )
        sweep()
        yield cls(tool_versions(), os.getpid())

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        plans = list(plans)
        emulated = lab.file.topology.emulated
        assert emulated
        if not shutil.which("unshare"):
            return ["unshare is missing: install util-linux"]
        try_out = (
            "mount -t tmpfs none /run && mkdir /run/netns && ip netns add a && ip netns exec a true"
        )
        command = [*_unshare(), "bash", "-c", try_out]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return [
                "--emulate: this machine doesn't let you make namespaces"
                + (": try it as root" if os.geteuid() else ", even as root")
            ]
        if missing := _missing_algorithms(algorithms_of(lab, plans)):
            return [
                f"--emulate: this machine's kernel has no {', '.join(missing)}: "
                "without --on host the virtual kernel has all of them"
            ]
        return list(dict.fromkeys(why for plan in plans if (why := cannot_emulate(emulated, plan))))

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        if Path("/run") in (*root.parents, *work.parents):
            raise UserError(
                "--emulate: neither the kit nor --out may be in /run, which a run has for itself"
            )
        emulation = _emulation(lab, plan, self._programs, str(work / "raw"))
        script = experiment_script(lab, plan, root, str(work / "raw"), None, emulation=emulation)
        (work / "experiment.sh").write_text(script, encoding="utf-8")
        run_script(work, self._owner, wall_limit_s)


def cannot_emulate(emulated: Emulated, plan: Plan) -> str:
    """Return why the emulator can't do what a plan wants of the path, in a line; "" where it can."""
    for name, allowed in emulated.only.items():
        value = plan.params.get(name)
        if value is None or value in allowed:
            continue
        if plan.case is not None:
            return f"--emulate: case {plan.case} needs more of the path than the emulator does: leave --on host out"
        wanted = " or ".join(map(str, allowed)) or "left alone"
        return f"--emulate: trial {plan.trial} has {name}={value}; with the emulator it can only be {wanted}"
    return ""


def ensure_program(source: Path, *more: str) -> Path:
    """Return the program of a C `source`, compiled into the cache where it isn't yet; UserError where that can't be done.

    `more` are further options of the compiler.
    """
    folder = cache_folder() / "emulator"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    program = folder / f"{source.stem}-{digest}-{platform.machine()}"
    if program.is_file():
        return program
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise UserError(
            "--emulate compiles its emulator once, and there is no C compiler: install gcc"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            built = Path(beside) / source.stem
            options = ["-O2", "-Wall", "-Wextra", *more, "-o", str(built), str(source)]
            done = subprocess.run([compiler, *options], capture_output=True, text=True, check=False)
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if "error" in line]
                raise UserError(
                    f"--emulate: {compiler} can't compile {source}: {(errors or ['it gives no reason'])[0]}"
                )
            built.rename(program)
    except OSError as error:
        raise UserError(f"--emulate: {folder} can't be written to ({error.strerror})") from None
    return program


def _sees_events() -> bool:
    """Return whether this process may have the kernel's tracing, and the kernel has one."""
    kinds = Path("/proc/filesystems").read_text(encoding="utf-8").split()
    return os.geteuid() == 0 and "tracefs" in kinds


def _unshare() -> list[str]:
    """The command that starts another in namespaces that end with it; an ordinary user is root in them."""
    return ["unshare", *(["--map-root-user"] if os.geteuid() else []), *INSIDE]


def _missing_algorithms(names: Iterable[str]) -> list[str]:
    """Those of the congestion controls that this kernel hasn't, though whoever asks may load them."""
    missing = []
    for name in names:
        with socket.socket() as probe:
            try:
                probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except PermissionError:
                # It is there, but not for everybody; in their own namespaces everybody may.
                continue
            except OSError:
                missing.append(name)
    return missing


def _emulation(lab: Lab, plan: Plan, programs: _Programs, out: str) -> Emulation:
    """Return what a trial's script does for the emulator in it; raw files go to `out`/NODE/."""
    emulated = lab.file.topology.emulated
    assert emulated
    node, towards = emulated.link.split("/")
    near, far = (
        next(end for end in interfaces(lab.file.topology) if end.node == a and _peer(lab, end) == b)
        for a, b in ((node, towards), (towards, node))
    )
    words = " ".join(shlex.quote(word) for word in _arguments(lab, plan, near.name))
    tc = shutil.which("tc", path=_path()) or "tc"
    tcpdump = programs.stay_root and shutil.which("tcpdump", path=_path())
    events = programs.events
    links = [(EMULATED_TOOLS / "tc", "tc")]
    links += [(EMULATED_TOOLS / "tracing", name) for name in ("mount", "mkdir", "rmdir") if events]
    links += (
        [(EMULATED_TOOLS / "tcpdump", "tcpdump"), (Path(tcpdump), "copies/tcpdump")]
        if tcpdump
        else []
    )
    counters, lateness = COUNTERS, f"{out}/{node}/emulator.json"
    start = [
        f"# The emulator, between to-{node} and to-{towards}: all checksums are computed before it, and no packet is larger than an MTU.",
        f"export EMULATED_NODE={node} EMULATED_DEV={near.name} EMULATED_COUNTERS={counters} EMULATED_TC={shlex.quote(tc)}",
        f"mkdir -p {STAND_INS}/copies",
        *(f"install -m 755 {shlex.quote(str(tool))} {STAND_INS}/{name}" for tool, name in links),
        *([f"export EMULATED_EVENTS={shlex.quote(str(events))}"] if events else []),
        *([f"export EMULATED_STAY_ROOT={shlex.quote(str(programs.stay_root))}"] if tcpdump else []),
        f"export PATH={STAND_INS}:$PATH:/usr/sbin:/sbin",
        *(
            f"ip netns exec {end.node} ethtool -K {end.name} tx off tso off gso off gro off >/dev/null"
            for end in (near, far)
        ),
        f"for end in to-{node} to-{towards}; do ethtool -K $end tx off tso off gso off gro off >/dev/null; done",
        f"{shlex.quote(str(programs.emulator))} to-{node} to-{towards} {words} {counters} {shlex.quote(lateness)} &",
        "emulator=$!",
        f"until [[ -e {counters} ]]; do kill -0 $emulator; sleep 0.01; done",
        "",
    ]
    return Emulation(_enter(), start, ["kill -TERM $emulator", "wait $emulator"])


def _enter() -> list[str]:
    return [
        "# In namespaces of its own, which end with it; its /run, where names of network namespaces stand, is its own, too.",
        "if [[ -z ${IN_NAMESPACES:-} ]]; then",
        f'  IN_NAMESPACES=yes exec {shlex.join(_unshare())} bash "$0"',
        "fi",
        "mount -t tmpfs none /run",
        "mkdir /run/netns",
        "# nstat's own file in /tmp may be another root's.",
        "export NSTAT_HISTORY=/run/nstat-history",
        "mount -t proc none /proc 2>/dev/null || true",
        "sysctl -qw net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || true",
    ]


def _arguments(lab: Lab, plan: Plan, device: str) -> list[str]:
    """The emulator's arguments from the rate to the head of its counters."""
    emulated = lab.file.topology.emulated
    assert emulated

    def value(name: str | None, default: float = 0.0) -> float:
        return float(plan.params[name]) if name else default

    rtt_ns = value(emulated.rtt) * 1e6
    there_ns = round(rtt_ns * emulated.there_ratio)
    buffer_bytes, loss_ratio = int(value(emulated.buffer, ENDLESS_BYTES)), value(emulated.loss)
    collect = lab.file.collect
    place = collect.bottleneck or collect.queue
    kind = (place and place.kind) or "bfifo"
    options: dict[str, object] = {"limit": buffer_bytes}
    if kind == "netem":
        delay = {"delay": there_ns / 1e9, "jitter": 0, "correlation": 0}
        options = {
            "limit": 0,
            "delay": delay,
            "loss-random": {"loss": loss_ratio, "correlation": 0},
        }
    # As a child of another: what it drops comes after the interface has counted it.
    head = {"kind": kind, "handle": "10:", "dev": device, "parent": "1:1", "options": options}
    numbers = (
        round(value(emulated.rate) * 1e6), int(value(emulated.burst)), buffer_bytes,
        there_ns, round(rtt_ns) - there_ns,
    )  # fmt: skip
    text = json.dumps(head, separators=(",", ":"))[1:-1]
    return [*map(str, numbers), f"{loss_ratio:.12f}", str(plan.kernel_seed), text]


def _peer(lab: Lab, end: Interface) -> str:
    return next(other.node for other in interfaces(lab.file.topology) if other.mac == end.peer_mac)


def _path() -> str:
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def _works(command: str) -> bool:
    """Try a command in a network namespace of its own, which ends with it."""
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", command], capture_output=True, check=False
    )
    return done.returncode == 0


def prefix(owner: int) -> str:
    """Return the prefix of all namespaces that the process `owner` has made."""
    return f"mt-{owner}-"


def run_script(work: Path, owner: int, wall_limit_s: float) -> None:
    """Run `work`/experiment.sh, and undo what it made. TimeoutError past `wall_limit_s` seconds."""
    # A worker keeps to one CPU, for the virtual kernel's sake.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    process = subprocess.Popen(
        [
            "bash", str(HOST_GUARD), prefix(owner),
            str(work / "experiment.sh"), str(work / "experiment.log"),
        ],
        # It ends when this process does, too.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin
    try:
        process.wait(timeout=wall_limit_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        process.stdin.close()
        process.wait()


def wait_until_undone(owner: int) -> None:
    """Wait until nothing is left of what `owner` had made. UserError where something stays."""
    until = time.monotonic() + UNDO_SECONDS
    pattern = f"{prefix(owner)}*"
    while left := [
        path.name for where in (NAMESPACES, NAMESPACES.parent) for path in where.glob(pattern)
    ]:
        if time.monotonic() > until:
            raise UserError(
                f"these could not be removed from /run/netns or /run: {', '.join(left)}", 1
            )
        time.sleep(0.05)


def sweep() -> None:
    """Remove what runs left whose process and guard were both killed."""
    left = [path for where in (NAMESPACES, NAMESPACES.parent) for path in where.glob("mt-*")]
    owners = {int(match[1]) for path in left if (match := PREFIX.match(path.name))}
    for owner in sorted(owners):
        if not Path(f"/proc/{owner}").exists():
            undo = ["bash", str(HOST_GUARD), "--undo", prefix(owner)]
            subprocess.run(undo, check=False)
