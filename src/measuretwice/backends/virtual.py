"""The virtual kernel: finding or building it, running one experiment inside it, and a backend of such runs.

User-Mode Linux, built by scripts/kernel/build.sh. In virtual time its clock jumps over idle
moments and stands still while it computes, so a run is exact whatever the machine does.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from measuretwice.backends.backend import Backend
from measuretwice.backends.machines import CachedMachine, damage, run_builder
from measuretwice.backends.script import (
    GUEST_MEMORY_MB,
    READER_INTERVAL_US,
    START_NS,
    guest_script,
    memory_mb,
    reader_interval_us,
)
from measuretwice.base import landlock
from measuretwice.base.errors import UserError
from measuretwice.base.files import remove_folder, tail_of
from measuretwice.base.paths import KERNEL_BUILDER
from measuretwice.lab import KernelFacts, Lab, Plan

FACTS = "kernel.json"
# From here on a guest's memory stands in huge pages where it can: a thousand flows take a tenth less time
# (benchmarks/core.py). A small guest gains less than asking for them takes.
HUGE_FROM_MB = 2048
IN_MEMORY = Path("/dev/shm")
# Of the checkout a guest sees these folders and no others; a live lab's agent is Python of the package's.
INSIDE_FOLDERS = ("labs", "scripts")
LIVE_FOLDERS = (*INSIDE_FOLDERS, "src")
# Another machine like this one, as tests of the other backends need it, sees all of the checkout.
ALL_FOLDERS = (".",)
# What a guest may write to its run's folder, create there, and run at a time: many times what any run of the
# labs needs, and an end to one that fills disks or begins processes without end.
MOST_BYTES = 8 * 2**30
MOST_FILES = 100_000
MOST_PROCESSES = 2_000

# The kernel is told its folders by numbers: Linux keeps two copies of its command line, so a longer path
# there would leave it less memory, and what TCP makes of its memory would differ with the place.
# The process still goes by its run's folder, so that a person can tell it from others (ps).
_FOLDERS = "/proc/self/fd"
_OPEN_FOLDERS = 'exec 90<"$1" 91<"$2" 92<"$3" 93<"$4" 94<"$5"; exec -a "linux $2" "${@:6}"'


@dataclass(frozen=True)
class Kernel(CachedMachine):
    """A ready virtual kernel."""

    @property
    def name(self) -> str:
        """Return what a plan calls it: version, and the digest of its source, configuration and patches and
        of the programs that run inside.

        Not the binary's: compilers differ, and results don't follow from them. Nor do they from what the
        kernel's process may reach on this machine (scripts/kernel/confine/) or how fast it is (faster/, profile.tar.xz).
        """
        return f"linux {self.facts.version} {str(self.facts.others['results_key'])[:16]}"

    @property
    def sums(self) -> dict[str, str]:
        """The SHA-256 of its files that kernel.json has; a newer one has all in a file of their own (machines.SUMS)."""
        linux = self.facts.others.get("linux_sha256")
        return {"linux": linux} if isinstance(linux, str) else {}


def ensure_kernel() -> Kernel:
    """Return the virtual kernel: from the cache, else the one that comes with the checkout, else built.

    The build script says on stderr what it does. UserError where it can't be had.
    """
    done = run_builder(KERNEL_BUILDER)
    if done.returncode != 0:
        raise UserError(
            "without the virtual kernel nothing can run; its builder's last line tells you what to fix",
            1,
        )
    return Kernel.read(Path(done.stdout.strip()), FACTS, "kernel")


def find_kernel() -> Kernel | None:
    """Return the virtual kernel if the cache or the checkout has it, without building it; a page's kit has no builder."""
    if not KERNEL_BUILDER.is_file():
        return None
    done = run_builder(KERNEL_BUILDER, "--no-build", quiet=True)
    return Kernel.read(Path(done.stdout.strip()), FACTS, "kernel") if done.returncode == 0 else None


def memory_folder(memory_mb: int = GUEST_MEMORY_MB) -> Path:
    """Return a folder that can hold the guest's memory: room for it, and executable.

    UML keeps its memory in a file that is deleted as soon as it is open. UserError where
    neither TMPDIR nor /dev/shm nor /tmp will do, or TMPDIR is no folder at all.
    """
    problems = []
    chosen = os.environ.get("TMPDIR")
    if chosen and os.path.exists(chosen) and not os.path.isdir(chosen):
        raise UserError(f"TMPDIR={chosen}: is no folder; set it to one, or unset it")
    for name in (chosen, IN_MEMORY, "/tmp"):
        if not name:
            continue
        folder = Path(name)
        try:
            stat = os.statvfs(folder)
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
            continue
        free_mb = stat.f_bavail * stat.f_frsize // 2**20
        if not os.access(folder, os.W_OK):
            problems.append(f"{name} is not writable")
        elif stat.f_flag & os.ST_NOEXEC:
            problems.append(f"{name} is mounted noexec")
        elif free_mb < memory_mb:
            problems.append(f"{name} has {free_mb} MB free")
        else:
            return folder
    raise UserError(
        f"the virtual kernel's memory needs {memory_mb} MB in a folder that allows exec: "
        f"{'; '.join(problems)}. Set TMPDIR to such a folder."
    )


def open_huge_memory(memory_mb: int) -> int | None:
    """Open a folder in memory whose files stand in huge pages (tmpfs(5), huge=), and return its descriptor.

    The file system is mounted where nobody else sees it, in another process' own namespaces, and is gone
    when the last descriptor of it and of its files is closed. None where this machine doesn't let its
    user do that.
    """
    # The guest's file is its memory and some more.
    mount = f"mount -t tmpfs -o huge=within_size,size={memory_mb + 64}m tmpfs /tmp"
    hold = f"{mount} && echo && read -r _"
    try:
        with subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hold],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as helper:
            assert helper.stdout is not None
            if helper.stdout.readline():
                return os.open(f"/proc/{helper.pid}/root/tmp", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        pass
    return None


def start(
    kernel: Kernel,
    root: Path,
    folder: Path,
    *options: str,
    memory_mb: int,
    pass_fd: int | None = None,
    machines_programs: bool = False,
    folders: tuple[str, ...] = INSIDE_FOLDERS,
) -> subprocess.Popen[bytes]:
    """Start the kernel with `folder`/experiment.sh, the programs of its own root file system, and these
    `folders` of the checkout `root`; what an experiment writes goes to `folder`. With `machines_programs` it
    sees this machine's files instead: so the other backends are tested in it.

    It confines itself before its first program: of this machine it reaches these folders, and no network
    (SECURITY.md; scripts/kernel/confine/).

    `options` are words for its command line. The process inherits the caller's CPU affinity (pin
    it to one: unpinned it is ten times slower) and dies with the caller's thread, however that
    ends. The console's text is in `folder`/console.txt.
    """
    _refuse_links(root, folders)
    init = kernel.folder / "root/sbin/guest-init"
    memory = memory_folder(memory_mb)
    huge = None
    # Another folder than that in memory is a person's choice, or there is no room for more.
    if memory == IN_MEMORY and memory_mb >= HUGE_FROM_MB:
        huge = open_huge_memory(memory_mb)
    if huge is not None:
        memory = Path(_FOLDERS, str(huge))
    command = [
        "setpriv", "--pdeathsig", "KILL",
        "bash", "-c", _OPEN_FOLDERS, "bash",
        str(kernel.folder), str(folder), str(root), str(memory),
        "/" if machines_programs else str(kernel.folder / "root"),
        f"{_FOLDERS}/90/linux",
        f"mem={memory_mb}M", "seccomp=on", "quiet", "panic=-1",
        "rootfstype=hostfs", f"rootflags={_FOLDERS}/94", "ro", "con=null", "con0=null,fd:1",
        f'init="{init}"' if machines_programs else "init=/sbin/guest-init",
        f"MT_FOLDER={_FOLDERS}/91", f"MT_ROOT={_FOLDERS}/92",
        _wall(folders, "ro") if machines_programs else _wall(folders),
        *options,
    ]  # fmt: skip
    try:
        with open(folder / "console.txt", "wb") as console:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                # Nothing of the person's environment reaches the experiment.
                env={"TMPDIR": f"{_FOLDERS}/93", "HOME": "/", "PATH": os.defpath},
                start_new_session=True,
                pass_fds=[fd for fd in (pass_fd, huge) if fd is not None],
            )
    finally:
        if huge is not None:
            os.close(huge)


def _refuse_links(root: Path, folders: tuple[str, ...]) -> None:
    """Somebody else's checkout may have a link in a folder's place, which would be followed on this machine."""
    for name in folders:
        if (root / name).is_symlink() or not (root / name).is_dir():
            raise UserError(
                f"{root / name}: isn't a folder; the virtual kernel shows no link to a run"
            )


def _wall(folders: tuple[str, ...], programs: str = "as") -> str:
    """Return what of this machine the kernel's process may reach, in the words of its command line, which holds no path.

    `as` are folders in which nothing changes meanwhile, so that this machine is asked once for each of their
    files: the guest's own programs. For others (`ro`) it is asked each time.
    """
    words = [
        f"{programs}:{_FOLDERS}/94",
        f"rw:{_FOLDERS}/91",
        f"at:{_FOLDERS}/92",
        *(f"ro:{_FOLDERS}/92/{name}".removesuffix("/.") for name in folders),
        "close:90",
        "close:93",
        f"bytes:{MOST_BYTES}",
        f"files:{MOST_FILES}",
        f"processes:{MOST_PROCESSES}",
    ]
    return f"wall={','.join(words)}"


def end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End a kernel and whatever it has begun, and remove what it kept of itself in `folder`."""
    # Also where it has ended itself: all that it began is of its group, which the filter lets none of them leave.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    remove_folder(folder / ".uml")


def run_inside(
    kernel: Kernel,
    root: Path,
    folder: Path,
    seed: int,
    wall_limit_s: float,
    *,
    memory_mb: int = GUEST_MEMORY_MB,
    reader_interval_us: int = READER_INTERVAL_US,
    as_machine: bool = False,
) -> int:
    """Run `folder`/experiment.sh inside the kernel (see `start`) until it ends.

    With `as_machine` it is another machine like this one: in real time, with this one's programs.
    Returns UML's exit status. TimeoutError past `wall_limit_s` seconds.
    """
    options = []
    if not as_machine:
        options = [
            "time-travel=inf-cpu", f"time-travel-start={START_NS}", f"random-seed={seed}",
            f"tcp_reader_interval_us={reader_interval_us}",
        ]  # fmt: skip
    process = start(
        kernel, root, folder, *options, memory_mb=memory_mb, machines_programs=as_machine,
        folders=ALL_FOLDERS if as_machine else INSIDE_FOLDERS,
    )  # fmt: skip
    try:
        return process.wait(timeout=wall_limit_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        end(process, folder)


class Virtual(Backend):
    """Trials each in a kernel of their own, which ends with them: there is nothing to undo."""

    name = "virtual"
    accepts = "virtual"
    real_time = False
    repeats = True
    has_edges = True
    start_ns = START_NS
    location = "each in a virtual kernel of its own"
    runner = "the virtual kernel"

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.kernel, self.tools = kernel.name, kernel.programs

    @classmethod
    def ready(cls) -> Self:
        """Return it with its kernel, built first where this machine has none yet.

        UserError names what is missing.
        """
        memory_folder()
        return cls(ensure_kernel())

    @classmethod
    def matches(cls, where: str) -> bool:
        return where == cls.name

    @classmethod
    @contextmanager
    def open(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        yield cls.ready()

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        (work / "experiment.sh").write_text(guest_script(lab, plan), encoding="utf-8")
        run_inside(
            self._kernel,
            root,
            work,
            plan.kernel_seed,
            wall_limit_s,
            memory_mb=memory_mb(lab, plan),
            reader_interval_us=reader_interval_us(lab, plan),
        )

    def why_failed(self, work: Path) -> str | None:
        # Its memory is a file: where no more of it can be had, kernel and programs get SIGBUS.
        console = work / "console.txt"
        if "Out of memory: Killed" in tail_of(console):
            return "the virtual kernel's memory had run out"
        logs = (console, work / "experiment.log", *work.glob("raw/*/*.log"))
        if any("Bus error" in tail_of(path) for path in logs):
            return (
                "the folder of the virtual kernel's memory had run full, $TMPDIR or /dev/shm: "
                "make room there, or set TMPDIR to another folder"
            )
        return None

    def damage(self) -> str | None:
        return damage("virtual kernel", self._kernel.folder, self._kernel.sums)

    def confined_by(self) -> str:
        return f"its own folders alone, few system calls; Landlock {landlock.describe()}"

    def kernel_facts(self) -> KernelFacts:
        return self._kernel.facts
