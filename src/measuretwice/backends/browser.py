"""The browser's machine as a place for trials, in node: the same bytes as the site's pages make.

Linux for i686 with a virtual clock of its own, in v86; built by scripts/browser/build.sh.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from measuretwice.backends.backend import Backend, CostModel, algorithms_of
from measuretwice.backends.machines import CachedMachine, damage, run_builder
from measuretwice.backends.script import (
    EDITED,
    INSIDE_ROOT,
    INSIDE_RUN,
    START_NS,
    STATE_SCRIPT,
    guest_script,
    reader_interval_us,
)
from measuretwice.base import landlock
from measuretwice.base.errors import UserError
from measuretwice.base.files import unpack_tar
from measuretwice.base.landlock import confined
from measuretwice.base.paths import BROWSER_BUILDER, BROWSER_RUNNER
from measuretwice.lab import KernelFacts, Lab, Plan, Value

FACTS = "machine.json"
# What node scripts in Python need besides.
PYTHON = "python"
# What drives the machine, in node as in a page.
MACHINES_SCRIPTS = "docs/assets/machine"
# Node's permission model is there from the one version on, and without "experimental" in its name from the other.
PERMISSIONS_FROM, PERMISSIONS_PLAIN_FROM = 20, 23
# In a run's folder, while it is measured: what the guest gets at its root.
GIVEN = "files"
# As in docs/assets/machine/machine.mjs.
MEMORY_BYTES = 2**28
# What the tools print stays in that memory until the run is over. A sample of ss is a kilobyte; of more than these there is
# no room left beside kernel, programs and iperf3's own report.
MOST_SAMPLES = 15000
SAMPLING, LASTS = "sample_interval_s", "duration_s"
# Those of scripts/kernel/config, and reno, which is always there.
ALGORITHMS = frozenset(
    "bbr bic cubic dctcp highspeed htcp hybla illinois reno scalable vegas veno westwood yeah".split()
)
# Measured: trial 7 of lab 01 takes some 30 s for 60, a trial of few packets 8 s.
COST = CostModel(start_s=8.0, slowness=40.0)


@dataclass(frozen=True)
class BrowserMachine(CachedMachine):
    """A ready machine of the browser's."""

    @property
    def name(self) -> str:
        """Return what a plan calls its kernel: version, processor, and the digest of all that it is built from."""
        return f"linux {self.facts.version} i686 {self.folder.name[:16]}"


def ensure_machine() -> BrowserMachine:
    """Return the browser's machine: from the cache, else the one that comes with the checkout, else built; UserError
    where it can't be had."""
    return _built()


def find_machine() -> BrowserMachine | None:
    """Return the browser's machine if the cache or the checkout has it, without building it."""
    try:
        return _built("--no-build")
    except UserError:
        return None


def _built(*options: str) -> BrowserMachine:
    if not BROWSER_BUILDER.is_file():
        raise UserError("--on browser: this edition of the kit has no browser's machine")
    done = run_builder(BROWSER_BUILDER, *options)
    if done.returncode != 0:
        raise UserError(
            "the browser's machine can't be built; its builder's last line tells you what to fix", 1
        )
    return BrowserMachine.read(Path(done.stdout.strip()), FACTS, "machine")


def fitted(lab: Lab, params: Mapping[str, Value]) -> dict[str, Value]:
    """Return those settings of a trial with other values than `params` have, which nobody chose, that fit it into this machine."""
    return fitted_memory(lab, params) | fitted_sampling(lab, params)


def fitted_memory(lab: Lab, params: Mapping[str, Value]) -> dict[str, Value]:
    """Return the memory that a trial has here, where `params` give it no more than its lab usually does: nobody
    asked for as much."""
    name = lab.file.run.memory
    if name is None or params[name] != lab.defaults()[name]:
        return {}
    return {name: min(MEMORY_BYTES, params[name], key=float)}


def fitted_sampling(lab: Lab, params: Mapping[str, Value]) -> dict[str, Value]:
    """Return how rarely a long trial samples here, where `params` have it sample as its lab usually does."""
    if not {SAMPLING, LASTS} <= params.keys() or params[SAMPLING] != lab.defaults()[SAMPLING]:
        return {}
    least_s = math.ceil(100 * float(params[LASTS]) / MOST_SAMPLES) / 100
    return {SAMPLING: least_s} if float(params[SAMPLING]) < least_s else {}


def guest_files(lab: Lab, root: Path) -> dict[str, Path]:
    """Return the files of the checkout that a trial reads inside, by their places in the guest."""
    nodes = lab.folder / "nodes"
    folder = "/".join(lab.folder.parts[-2:])
    scripts = root / "scripts"
    after = root / STATE_SCRIPT
    paths = {f"scripts/{path.name}": path for path in sorted(scripts.glob("*.sh"))}
    if after.is_file():
        paths[STATE_SCRIPT] = after
    for path in (scripts, after.parent, *paths.values()):
        if path.is_symlink():
            raise UserError(f"{path}: a link, which a run isn't given; put the file itself there")
    paths |= {
        f"{folder}/nodes/{path.relative_to(nodes).as_posix()}": path
        for path in sorted(nodes.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    return {f"{INSIDE_ROOT[1:]}/{name}": path for name, path in paths.items()}


def given_to_guest(lab: Lab, plan: Plan, root: Path) -> dict[str, str]:
    """Return the files that a trial's guest finds at its root, by their paths there."""
    return with_script(lab, root, guest_script(lab, plan))


def with_script(lab: Lab, root: Path, script: str) -> dict[str, str]:
    """Return the files of the checkout that a guest finds at its root, by their paths there, and the script that it runs."""
    files = {
        name: path.read_text(encoding="utf-8") for name, path in guest_files(lab, root).items()
    }
    return {**files, f"{INSIDE_RUN[1:]}/experiment.sh": script}


def guest_words(lab: Lab, plan: Plan, live: Sequence[str] = ()) -> str:
    """Return the words that a guest's first process reads (scripts/browser/guest-init.c); `live` are nodes that get terminals."""
    words = ["live" if live else "run", plan.kernel_seed, reader_interval_us(lab, plan), *live]
    return " ".join(map(str, words))


def lacks_memory(lab: Lab, plans: Iterable[Plan]) -> list[str]:
    """Say in a line, where it is so, that the browser's machine has too little memory for these."""
    memory = lab.file.run.memory
    if memory and any(float(plan.params[memory]) > MEMORY_BYTES for plan in plans):
        return [
            f"{lab.name} needs more memory than the browser's machine has, {MEMORY_BYTES >> 20} MB"
        ]
    return []


def too_much(lab: Lab, params: Mapping[str, Value]) -> list[str]:
    """Return those of a run's settings, as KEY=VALUE, that are too much for the browser's machine."""
    limits = lab.file.run.too_much_for_browser
    return [f"{name}={params[name]}" for name, words in limits.items() if params[name] in words]


def packs_of(lab: Lab) -> list[str]:
    """Return the tar files beside the machine, without their endings, that the lab's guest gets besides."""
    in_python = any(path.suffix == ".py" for path in (lab.folder / "nodes").iterdir())
    return [PYTHON] if in_python else []


class Browser(Backend):
    """Trials each in a machine of their own, which begins where the saved one stood."""

    name = "browser"
    accepts = "browser"
    option = " --on browser"
    real_time = False
    repeats = True
    differs = "the browser's machine: the virtual kernel's source, compiled for 32 bits; so its bytes are others"
    cost = COST
    has_edges = True
    start_ns = START_NS
    location = "each in the browser's machine, in node"
    runner = "the browser's machine"

    def __init__(self, machine: BrowserMachine) -> None:
        self._machine = machine
        self.kernel, self.tools = machine.name, machine.programs

    @classmethod
    def matches(cls, where: str) -> bool:
        return where == cls.name

    @classmethod
    @contextmanager
    def open(cls, where: str, lab: Lab, root: Path) -> Iterator[Self]:
        if shutil.which("node") is None:
            raise UserError("--on browser: needs node (Debian's package nodejs)")
        yield cls(ensure_machine())

    def adapted(
        self, lab: Lab, params: Mapping[str, Value], changes: dict[str, Value]
    ) -> dict[str, Value]:
        return changes | fitted(lab, params)

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        plans = list(plans)
        settings = sorted({setting for plan in plans for setting in too_much(lab, plan.params)})
        return (
            lacks_memory(lab, plans)
            + [
                f"{setting} is too much for the browser's machine: use the virtual kernel, ./lab run in a terminal"
                for setting in settings
            ]
            + [
                f"{name}: the browser's machine has no such congestion control; it has {', '.join(sorted(ALGORITHMS))}"
                for name in algorithms_of(lab, plans)
                if name not in ALGORITHMS
            ]
        )

    def measure(self, lab: Lab, plan: Plan, root: Path, work: Path, wall_limit_s: float) -> None:
        given = work / GIVEN
        for name, path in guest_files(lab, root).items():
            _copy(path, given / name)
        for pack in packs_of(lab):
            unpack_tar(self._machine.folder / f"{pack}.tar.gz", given)
        inside = given / INSIDE_RUN[1:]
        inside.mkdir(parents=True, exist_ok=True)
        (inside / "experiment.sh").write_text(guest_script(lab, plan), encoding="utf-8")
        if (work / EDITED).is_dir():
            shutil.copytree(work / EDITED, inside / EDITED)
        try:
            done = _run_node(self._machine.folder, work, guest_words(lab, plan), wall_limit_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            shutil.rmtree(given, ignore_errors=True)
        if done.returncode:
            (work / "console.txt").write_text(done.stderr, encoding="utf-8")

    def damage(self) -> str | None:
        return damage("browser's machine", self._machine.folder, {})

    def confined_by(self) -> str:
        return f"node's permissions where it has them; Landlock {landlock.describe()}"

    def kernel_facts(self) -> KernelFacts:
        return self._machine.facts


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _run_node(
    machine: Path, work: Path, words: str, wall_limit_s: float
) -> subprocess.CompletedProcess[str]:
    """Run the machine in a node that reaches the files of the machine and of the run, and nothing else.

    What a guest's root could do is done in node's memory: this is for a mistake in the machine or in node. Landlock,
    where this kernel has it, and node's own permissions, where it is new enough.
    """
    node = Path(shutil.which("node") or "node").resolve()
    own = [machine, BROWSER_RUNNER.parent, BROWSER_RUNNER.parents[2] / MACHINES_SCRIPTS]
    # Its libraries and what they are told; and where it is, if not there.
    libraries = [Path(name) for name in ("/usr", "/lib", "/lib64", "/bin", "/etc/ssl", "/dev")]
    # It ends with whoever started it, however that ends.
    command = ["setpriv", "--pdeathsig", "KILL", str(node), *_permissions(node, own, work)]
    with confined([*libraries, *node.parents[1:2], *own], [work]) as confine:
        return subprocess.run(
            [*command, str(BROWSER_RUNNER), str(machine), str(work), words],
            preexec_fn=confine,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(work)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=wall_limit_s,
            check=False,
        )


def _permissions(node: Path, own: Iterable[Path], work: Path) -> list[str]:
    """Node's options for its own permissions; none where it has none, or where a path means several to it."""
    major = _major(node)
    if major < PERMISSIONS_FROM or any(set(str(path)) & set(",*") for path in (*own, work)):
        return []
    reads = [f"--allow-fs-read={path}/*" for path in (*own, work)]
    name = "--permission" if major >= PERMISSIONS_PLAIN_FROM else "--experimental-permission"
    return ["--no-warnings", name, *reads, f"--allow-fs-write={work}/*"]


@cache
def _major(node: Path) -> int:
    """Node's version, as far as it counts here: 0 where it doesn't say."""
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    digits = done.stdout.strip().removeprefix("v").partition(".")[0]
    return int(digits) if digits.isdigit() else 0
