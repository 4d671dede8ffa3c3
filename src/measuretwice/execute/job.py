"""Running plans: one virtual kernel a trial, one CPU a kernel, as many as there are CPUs.

What is finished stays finished: each trial has a folder named by its plan's digest, worked on
under a hidden name and renamed when DONE stands in it. The same command again skips those.
"""

from __future__ import annotations

import ctypes
import datetime
import errno
import fcntl
import hashlib
import math
import multiprocessing
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from measuretwice import __version__
from measuretwice.backends import host
from measuretwice.backends import script as nodes
from measuretwice.backends.ssh import NodeLost, Nodes
from measuretwice.backends.ssh_trial import run_trial
from measuretwice.backends.virtual import (
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    START_NS,
    Kernel,
    run_inside,
)
from measuretwice.base.errors import UserError
from measuretwice.base.files import write_json
from measuretwice.base.paths import PACKAGE
from measuretwice.checks.engine import check_run
from measuretwice.lab import Lab, Plan, read_lab, trial_params
from measuretwice.measure import one_flow as collect
from measuretwice.parse import ParseError
from measuretwice.runs.result import DONE, Result, make_result, read_result

TOOLS = {
    "iperf3": ["iperf3", "--version"],
    "iproute2": ["ip", "-V"],
    "ethtool": ["ethtool", "--version"],
    "tcpdump": ["tcpdump", "--version"],
    "ping": ["ping", "-V"],
    "bash": ["bash", "--version"],
}
# A trial's folder is some MB of text; less than this free and a run isn't begun.
DISK_NEEDED_BYTES = 50 * 2**20
DISK_RESERVE_BYTES = 2**20


class Busy(UserError):
    """Somebody else works on this trial."""


@dataclass(frozen=True)
class Job:
    """All that a worker needs to run one plan; without `nodes` it can be sent to another process."""

    plan: Plan
    lab_folder: Path
    root: Path
    out: Path
    kernel: Kernel | None  # or the machine's own, or that of `nodes`
    wall_limit_s: float
    nodes: Nodes | None = None

    @property
    def folder(self) -> Path:
        return self.out / self.plan.lab / self.plan.folder_name


def tool_versions() -> dict[str, str]:
    """Return each tool's own word for its version; UserError names a tool that is missing."""
    versions = {}
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    for name, command in TOOLS.items():
        program = shutil.which(command[0], path=path)
        if program is None:
            raise UserError(f"{command[0]} is missing: run ./lab doctor to see what to install")
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
        versions[name] = ((done.stdout or done.stderr).strip().splitlines() or ["unknown"])[0]
    return versions


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def check_writable(out: Path) -> None:
    """Make the folder for runs; UserError where it can't be written to or has no room."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
        free = shutil.disk_usage(out).free
    except OSError as error:
        raise UserError(
            f"--out {out}: can't be written to ({error.strerror}); choose another folder"
        ) from None
    if free < DISK_NEEDED_BYTES:
        raise UserError(
            f"--out {out}: {free >> 20} MB free, a run needs {DISK_NEEDED_BYTES >> 20}; choose another folder"
        )


def finished(jobs: list[Job]) -> dict[Path, Result]:
    """Return the results that already stand in their folders, by folder."""
    results = {}
    for job in jobs:
        result = read_result(job.folder)
        if result is None:
            continue
        if result.derived_by != code_digest(job.lab_folder):
            result = _derive_again(job)
        results[job.folder] = result
    return results


@cache
def code_digest(lab_folder: Path) -> str:
    """Eight hex digits of all that turns raw files into a result: this package and the lab's facts.

    Raw is kept, derived is recomputed: a result derived by other code is derived anew.
    """
    digest = hashlib.sha256((lab_folder / "lab.toml").read_bytes())
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def derive(job: Job, raw: Path) -> Result:
    """Return the result that a run's raw files hold, by today's code."""
    lab = read_lab(job.lab_folder)
    measured, flows = collect.measure(lab, raw, job.plan.params)
    findings = check_run(lab, job.plan.params, measured)
    result = make_result(lab, job.plan, measured, flows, findings)
    return replace(result, derived_by=code_digest(job.lab_folder))


def _derive_again(job: Job) -> Result:
    try:
        result = derive(job, job.folder / "raw")
        write_json(job.folder / "result.json", result.to_json())
    except (ParseError, OSError) as error:
        raise UserError(
            f"{job.folder}: its raw files can't be read again ({error}); --fresh measures anew"
        ) from None
    return replace(result, folder=job.folder)


def likely_seconds(plan: Plan) -> float:
    """Guess how long a trial takes one CPU: a fixed part, and some microseconds a packet.

    From parameters that a lab may have (a Reno flow sends t/(RTT sqrt(p)) packets). It decides
    only in what order work is begun and what is said beforehand.
    """

    def number(name: str, default: float) -> float:
        value = plan.params.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    duration_s = number("duration_s", 1.0)
    rtt_s = max(number("rtt_ms", 1.0), 0.1) / 1e3
    loss_ratio = max(number("loss_ratio", 1e-5), 1e-6)
    packets = 1.25 * duration_s / rtt_s / math.sqrt(loss_ratio)
    at_line_rate = number("rate_mbit", 1e4) * 1e6 / 8 / number("mss_bytes", 1460) * duration_s
    if "loss_ratio" not in plan.params:
        # Only the link limits these flows, and they fill it.
        return 0.9 + 7e-6 * at_line_rate
    return 0.9 + 3.5e-6 * min(packets, at_line_rate)


def longest_first(jobs: list[Job]) -> list[Job]:
    """Order jobs so that no CPU waits for a long one at the end."""
    return sorted(jobs, key=lambda job: likely_seconds(job.plan), reverse=True)


def sweep(folder: Path) -> None:
    """Remove what killed runs left behind in a lab's folder of runs: locks that nobody holds."""
    for lock_path in folder.glob(".*.lock"):
        try:
            with open(lock_path, "w", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock_path.with_suffix(".work"), ignore_errors=True)
                lock_path.unlink(missing_ok=True)
        except OSError:
            continue


def run_all(jobs: list[Job], parallel: int) -> Iterator[tuple[Job, Result | UserError]]:
    """Run the jobs, `parallel` at a time, and yield each with its result as it ends.

    A trial that fails yields its error; the others go on. However the caller ends, nothing is
    left running.
    """
    if nodes := jobs[0].nodes:
        yield from _run_in_turn(jobs, nodes)
        return
    cpus = usable_cpus()
    context = multiprocessing.get_context("fork")
    slots = context.Queue()
    for slot in range(parallel):
        slots.put(cpus[slot % len(cpus)])
    with interrupts_noted() as interrupted:
        pool = ProcessPoolExecutor(
            max_workers=parallel,
            mp_context=context,
            initializer=_begin_worker,
            initargs=(slots, os.getpid()),
        )
        try:
            yield from run_on(lambda job: pool.submit(run_job, job), jobs, interrupted)
        finally:
            _end_pool(pool)
            host.wait_until_undone(os.getpid())


def _run_in_turn(jobs: list[Job], nodes: Nodes) -> Iterator[tuple[Job, Result | UserError]]:
    """The same on machines of their own: one trial at a time, none more once a node is lost."""
    nodes.stopping.clear()
    with interrupts_noted() as interrupted:
        pool = ThreadPoolExecutor(1)
        try:
            for one in jobs:
                for job, outcome in run_on(
                    lambda job: pool.submit(run_job, job), [one], interrupted
                ):
                    yield job, outcome
                    if isinstance(outcome, NodeLost):
                        return
        finally:
            nodes.stopping.set()
            # The trial that runs ends now, and undoes on the nodes that are there.
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C and SIGTERM instead of raising them anywhere; yields 'was there one?'.

    A KeyboardInterrupt in the middle of starting a worker would leave half a pool behind.
    """
    seen: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, lambda number, _: seen.append(number)) for n in numbers}
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_on(
    submit: Callable[[Job], Future[Result]], jobs: list[Job], interrupted: Callable[[], bool]
) -> Iterator[tuple[Job, Result | UserError]]:
    """Submit the jobs, in this order, to whatever runs them.

    Raises KeyboardInterrupt soon after `interrupted` has become true.
    """
    waiting = {submit(job): job for job in jobs}
    while waiting:
        ended, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
        if interrupted():
            raise KeyboardInterrupt
        for future in ended:
            job = waiting.pop(future)
            try:
                yield job, future.result()
            except UserError as error:
                yield job, error
            except BrokenProcessPool:  # the worker was killed, from outside or for lack of memory
                said = f"trial {job.plan.trial}: its process was killed (out of memory?)"
                yield job, UserError(said, 1)


def _begin_worker(slots: Any, parent: int) -> None:
    """A worker keeps to one CPU, leaves Ctrl-C to its parent, and dies with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.sched_setaffinity(0, {slots.get()})


def _end_pool(pool: ProcessPoolExecutor) -> None:
    """Stop the workers at once; their kernels are told to die with them.

    Then wait for the pool's own thread, which finds them gone: left to itself it would
    complain on stderr when the interpreter ends.
    """
    for worker in list((pool._processes or {}).values()):
        worker.kill()
    pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _work_folder(final: Path) -> Iterator[Path]:
    """A hidden folder beside the final one, held by a lock while somebody works in it."""
    final.parent.mkdir(parents=True, exist_ok=True)
    work = final.with_name(f".{final.name}.work")
    with open(final.with_name(f".{final.name}.lock"), "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                f"{final}: another ./lab run is working on this trial; wait for it"
            ) from None
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            yield work
        finally:
            os.unlink(lock.name)


def run_job(job: Job) -> Result:
    """Run one plan in its virtual kernel and return its result; UserError says what failed."""
    plan, label = job.plan, f"trial {job.plan.trial}"
    lab = read_lab(job.lab_folder)
    started = datetime.datetime.now(datetime.UTC)
    try:
        with _work_folder(job.folder) as work:
            (work / "raw").mkdir()
            write_json(work / "plan.json", plan.to_json())
            try:
                _measure(job, lab, work)
            except TimeoutError:
                raise UserError(
                    f"{label}: not finished after {job.wall_limit_s:.0f} s of wall time; "
                    "give it more with --wall-limit, or less to do with --duration",
                    1,
                ) from None
            if shutil.disk_usage(work).free < DISK_RESERVE_BYTES:
                # What the guest wrote last may be lost without a word: its kernel wrote it later.
                raise _disk_full(job)
            _check_finished(work, label, "the virtual kernel" if job.kernel else "its script")
            for ready in (work / "raw").glob("*/*.ready"):
                ready.unlink()
            result = derive(job, work / "raw")
            write_json(work / "provenance.json", _provenance(job, lab, started))
            write_json(work / "result.json", result.to_json())
            (work / DONE).touch()
            if job.folder.exists():
                shutil.rmtree(job.folder)
            os.rename(work, job.folder)
            host.give_back(job.folder, job.out)
    except ParseError as error:
        raise UserError(f"{label}: {error}", 1) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(job) from None
        raise UserError(f"{label}: {error.filename or job.folder}: {error.strerror}", 1) from None
    return replace(result, folder=job.folder)


def _disk_full(job: Job) -> UserError:
    return UserError(
        f"trial {job.plan.trial}: the disk with {job.out} is full; make room and run again", 1
    )


def _measure(job: Job, lab: Lab, work: Path) -> None:
    """Run the plan: on nodes, as root on the machine's own kernel, or in the virtual one."""
    plan = job.plan
    if job.nodes:
        run_trial(job.nodes, lab, plan, job.root, work, job.wall_limit_s)
        return
    if job.kernel is None:
        own = host.prefix(os.getppid())
        script = nodes.experiment_script(lab, plan, job.root, str(work / "raw"), None, own)
        (work / "experiment.sh").write_text(script, encoding="utf-8")
        host.run_script(job.root, work, os.getppid(), job.wall_limit_s)
        return
    script = nodes.experiment_script(
        lab, plan, Path(INSIDE_ROOT), f"{INSIDE_RUN}/raw", INSIDE_SAMPLER
    )
    (work / "experiment.sh").write_text(script, encoding="utf-8")
    run_inside(
        job.kernel, job.root, work, plan.kernel_seed, job.wall_limit_s,
        memory_mb=nodes.memory_mb(lab, plan),
    )  # fmt: skip


def _check_finished(work: Path, label: str, what: str) -> None:
    if (work / "raw" / "finished").exists():
        (work / "raw" / "finished").unlink()
        return
    failed = work / "raw" / "failed"
    if failed.exists():
        node, phase = [*failed.read_text().split(), "?", "?"][:2]
        log = work / "raw" / node / f"{phase}.log"
        said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        console = work / "console.txt"
        starved = console.exists() and "Out of memory: Killed" in console.read_text(
            errors="replace"
        )
        why = "; the virtual kernel's memory had run out" if starved else ""
        raise UserError(
            f"{label}: {node}'s step '{phase}' failed{why}: "
            f"{said[-1] if said else 'it said nothing'} (see {log})",
            1,
        )
    for name in ("experiment.log", "console.txt"):
        text = (work / name).read_text(errors="replace").strip() if (work / name).exists() else ""
        lines = [line for line in text.splitlines() if "Power down" not in line]
        if lines:
            raise UserError(f"{label}: {what} ended early: {lines[-1]} (see {work / name})", 1)
    raise UserError(f"{label}: {what} ended early and said nothing (see {work})", 1)


def _provenance(job: Job, lab: Lab, started: datetime.datetime) -> dict[str, Any]:
    """Who, what, when: all of this may differ between two runs with the same result."""
    return {
        "measuretwice": __version__,
        "git_commit": _git_commit(job.root),
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"architecture": platform.machine(), "system": _os_name()},
        "kernel": _kernel_facts(job),
        "virtual_start_ns": START_NS if job.kernel else None,
        "command": _command(job.plan, lab),
        "plan_digest": job.plan.digest,
    }


def _kernel_facts(job: Job) -> dict[str, Any]:
    if job.nodes:
        return {"version": job.plan.kernel, "nodes": job.nodes.kernels}
    return job.kernel.facts if job.kernel else {"version": platform.release()}


def _command(plan: Plan, lab: Lab) -> str:
    """The command that does this run again."""
    staged = f" --pitfall {plan.pitfall} --stage {plan.stage}" if plan.pitfall else ""
    meant = trial_params(lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage)
    changed = "".join(
        f" --set {name}={value}" for name, value in plan.params.items() if meant.get(name) != value
    )
    there = {"virtual": "", "nodes": " --on nodes.toml"}.get(plan.where, f" --on {plan.where}")
    return f"./lab run {plan.lab} --trial {plan.trial}{staged} --seed {plan.seed}{changed}{there}"


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _git_commit(root: Path) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
