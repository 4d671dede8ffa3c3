"""One trial: its plan run on a backend, in a folder of its own, to its result.

What is finished stays finished: each trial has a folder named by its plan's digest, worked on
under a hidden name and renamed when DONE stands in it. The same command again skips those.
"""

from __future__ import annotations

import datetime
import errno
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measuretwice import __version__
from measuretwice.backends.backend import Backend
from measuretwice.backends.script import EDITED, environment, hide_exports, plain_exports
from measuretwice.base.errors import UserError, without_controls
from measuretwice.base.files import hold, is_held, read_object, remove_folder, tail_of, write_json
from measuretwice.lab import Lab, OwnScripts, Plan, hide_unlisted, read_lab, with_unlisted
from measuretwice.parse import ParseError
from measuretwice.runs.first_try_history import START
from measuretwice.runs.folder import (
    DONE,
    EDIT_DIFF,
    PLAN,
    PROVENANCE,
    Machine,
    Provenance,
    command_again,
    git_commit,
    give_back,
    is_finished,
)
from measuretwice.runs.result import Result, derive, finished_result, write_result

# A trial's folder is some MB of text; less than this free and a run isn't begun.
DISK_NEEDED_BYTES = 50 * 2**20
DISK_RESERVE_BYTES = 2**20
# Before the name of an own script, in what bash says of it: a place that is gone after the run.
_OWN_PLACE = re.compile(rf"\S*/{EDITED}/labs/[^/\s]+/nodes/")

# What of a plan besides its settings decides what is sent.
DECIDING_KEYS = ("lab", "trial", "seed", "where", "kernel", "scripts", "tools", "recipe", "edited")
SCRIPT = "experiment.sh"
MAX_SCRIPT_BYTES = 2**20


class Busy(UserError):
    """Somebody else works on this trial."""


@dataclass(frozen=True)
class Job:
    """All that is needed to run one plan; where its backend is portable, in another process too."""

    plan: Plan
    lab_folder: Path
    root: Path
    out: Path
    backend: Backend
    wall_limit_s: float
    own: OwnScripts | None = None
    # Where it was measured before it comes here, as a page's machine does.
    begun: datetime.datetime | None = None

    @property
    def folder(self) -> Path:
        return self.out / self.plan.lab / self.plan.folder_name

    @property
    def lock(self) -> Path:
        """The file that is locked while somebody works on it."""
        return self.folder.with_name(f".{self.folder.name}.lock")

    def is_busy(self) -> bool:
        """Return whether somebody works on it now."""
        return is_held(self.lock)

    def same_packets(self) -> Path | None:
        """Return a finished run beside it whose raw files are this one's, too, byte for byte; None where it has to be
        measured.

        A setting that no script reads changes no packet: where time is virtual, equal scripts, kernel and seed make
        equal bytes, and a student who changes a claim of a case waits for nothing.
        """
        plan = self.plan
        if self.backend.real_time or plan.case is None:
            return None
        beside = self.folder.parent.glob(f"*-seed{plan.seed}-*/{PLAN}")
        runs = [file.parent for file in sorted(beside)]
        others = [run for run in runs if run != self.folder and is_finished(run)]
        if not others:
            return None
        lab = read_lab(self.lab_folder)
        read = _read_settings(lab, plan, _script_texts(lab, self.root, self.own))
        return next((run for run in others if _sends_the_same(_plan_of(run), plan, read)), None)


def _script_texts(lab: Lab, root: Path, own: OwnScripts | None) -> list[str]:
    """The texts of the scripts that take part in a run, a student's own among them."""
    paths = [
        path
        for folder in (lab.folder / "nodes", root / "scripts")
        for path in folder.glob("*")
        if path.suffix in (".sh", ".py")
    ]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    return [*texts, *(text.decode("utf-8", "replace") for _, text in (own.files if own else ()))]


def _read_settings(lab: Lab, plan: Plan, scripts: Iterable[str]) -> set[str]:
    """The settings that scripts or the set-up of the network read."""
    words = set(re.findall(r"[A-Z][A-Z0-9_]+", "\n".join(scripts)))
    topology = lab.file.topology
    tables = " ".join(map(str, (lab.file.run, topology.edges, topology.links)))
    named = set(re.findall(r"[a-z][a-z0-9_]+", tables))
    return {name for name in plan.params if name.upper() in words or name in named}


def _plan_of(run: Path) -> dict[str, Any]:
    try:
        return with_unlisted(read_object(run / PLAN))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def _sends_the_same(other: Mapping[str, Any], plan: Plan, read: set[str]) -> bool:
    document, params = plan.to_json(), other.get("params")
    if any(other.get(key) != document.get(key) for key in DECIDING_KEYS):
        return False
    if not isinstance(params, dict):
        return False
    differ = {
        name for name in {**params, **plan.params} if params.get(name) != plan.params.get(name)
    }
    return not differ & (read | (params.keys() - plan.params.keys()))


def _copy_raw_files(run: Path, work: Path, plan: Plan) -> None:
    """Copy a run's raw files into the folder `work`, and its script with this plan's settings."""
    shutil.copytree(run / "raw", work / "raw", dirs_exist_ok=True)
    for name in (SCRIPT, "experiment.log", "console.txt"):
        if (run / name).is_file():
            shutil.copy2(run / name, work / name)
    script = work / SCRIPT
    if script.is_file():
        exports = {
            f"export {name}": f"export {name}={shlex.quote(value)}"
            for name, value in environment(plan).items()
        }
        lines = plain_exports(script.read_text(encoding="utf-8")).split("\n")
        lines = [exports.get(line.partition("=")[0], line) for line in lines]
        script.write_text("\n".join(lines), encoding="utf-8")


def _hide_settings(lab: Lab, script: Path) -> None:
    """Pack the settings that no list has in the script that ran; whatever else stands in its place stays."""
    if script.is_symlink() or not script.is_file() or script.stat().st_size > MAX_SCRIPT_BYTES:
        return
    text = script.read_text(encoding="utf-8", errors="replace")
    script.unlink()
    script.write_text(hide_exports(lab, text), encoding="utf-8")


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


def sweep(folder: Path) -> None:
    """Remove what killed runs left behind in a lab's folder of runs: locks that nobody holds."""
    for path in folder.glob(".*.lock"):
        with suppress(OSError), hold(path, remove=True) as lock:
            if lock is not None:
                remove_folder(path.with_suffix(".work"))


def finished(jobs: list[Job]) -> dict[Path, Result]:
    """Return the results that already stand in their folders, by folder."""
    results = {job.folder: finished_result(job.folder, job.lab_folder, job.plan) for job in jobs}
    return {folder: result for folder, result in results.items() if result is not None}


@contextmanager
def _work_folder(job: Job) -> Iterator[Path]:
    """A hidden folder beside the final one, held by a lock while somebody works in it."""
    final = job.folder
    final.parent.mkdir(parents=True, exist_ok=True)
    work = final.with_name(f".{final.name}.work")
    with hold(job.lock, remove=True) as lock:
        if lock is None:
            raise Busy(f"{final}: another ./lab run is working on this trial; wait for it")
        remove_folder(work)
        work.mkdir()
        yield work


def run_job(job: Job) -> Result:
    """Run one plan and return its result; UserError says what failed, Busy that somebody else runs it now."""
    label = f"trial {job.plan.trial}"
    try:
        with _work_folder(job) as work:
            # Somebody else may have finished it since it was last looked for. What was measured already, elsewhere, is
            # this job's own.
            if job.begun is None and (done := finished([job])):
                remove_folder(work)
                return done[job.folder]
            try:
                result = _run_in(work, job)
            except (UserError, ParseError, OSError):
                if work.exists():
                    raise
                raise UserError(
                    f"{label}: {work.parent} was removed while it ran: run it again", 1
                ) from None
            if job.folder.exists():
                remove_folder(job.folder)
            os.rename(work, job.folder)
            give_back(job.folder, job.out)
    except Busy:
        raise
    except UserError as error:
        raise _of_damage(job) or error from None
    except ParseError as error:
        raise _of_damage(job) or UserError(f"{label}: {error}", 1) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(job) from None
        raise _of_damage(job) or UserError(
            f"{label}: {error.filename or job.folder}: {error.strerror}", 1
        ) from None
    return replace(result, folder=job.folder)


def _run_in(work: Path, job: Job) -> Result:
    """Measure, and write all that a finished run has."""
    plan, backend, lab = job.plan, job.backend, read_lab(job.lab_folder)
    started = job.begun or datetime.datetime.now(datetime.UTC)
    (work / "raw").mkdir()
    shown_plan = hide_unlisted(lab, plan.to_json())
    write_json(work / PLAN, shown_plan)
    if job.own:
        job.own.lay_out(lab, job.root / "scripts", work / EDITED)
    same = job.same_packets()
    try:
        if same:
            _copy_raw_files(same, work, plan)
        else:
            backend.measure(lab, plan, job.root, work, job.wall_limit_s)
    except TimeoutError:
        raise UserError(
            f"trial {plan.trial}: not finished after {job.wall_limit_s:.0f} s of wall time; "
            "give it more with --wall-limit, or less to do with --duration",
            1,
        ) from None
    if shutil.disk_usage(work).free < DISK_RESERVE_BYTES:
        # What the guest wrote last may be lost without a word: its kernel wrote it later.
        raise _disk_full(job)
    if not same:
        check_finished(work, f"trial {plan.trial}", backend, lab)
    # Root inside could write in this folder: what it may say of itself is ours.
    _make_room(work / PLAN)
    write_json(work / PLAN, shown_plan)
    _hide_settings(lab, work / SCRIPT)
    if job.own:
        remove_folder(work / EDITED)
        (work / EDIT_DIFF).write_text(job.own.diff(lab), encoding="utf-8")
    for ready in (work / "raw").glob("*/*.ready"):
        ready.unlink()
    result = derive(job.lab_folder, plan, work / "raw")
    provenance = Provenance(
        measuretwice=__version__,
        git_commit=git_commit(job.root),
        started=started.isoformat(timespec="seconds"),
        ended=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=Machine.of_host(),
        kernel=backend.kernel_facts(),
        virtual_start_ns=backend.start_ns,
        command=_command(job, lab),
        plan_digest=plan.digest,
        edited=plan.edited,
        raw_of=same.name if same else None,
        confined=backend.confined_by(),
    )
    write_json(work / PROVENANCE, provenance.to_json())
    write_result(work, lab, result)
    (work / DONE).touch()
    return result


def _command(job: Job, lab: Lab) -> str:
    """The command that does it again: of a first try's run the one that chose its settings, which may tell a cause."""
    if job.out.name == START:
        return f"./lab start {job.plan.lab} --seed {job.plan.seed}"
    return command_again(job.plan, lab, job.backend.option)


def _of_damage(job: Job) -> UserError | None:
    """The error of a damaged place: what a trial's programs say there is of no use."""
    damage = job.backend.damage()
    return UserError(f"trial {job.plan.trial}: {damage}", 1) if damage else None


def _disk_full(job: Job) -> UserError:
    return UserError(
        f"trial {job.plan.trial}: the disk with {job.out} is full; make room and run again", 1
    )


def _make_room(path: Path) -> None:
    """Remove whatever stands there."""
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def check_finished(work: Path, label: str, backend: Backend, lab: Lab) -> None:
    """Raise UserError where the script didn't come to its end: with the last words of the step that failed."""
    if (work / "raw" / "finished").exists():
        (work / "raw" / "finished").unlink()
        return
    reason = backend.why_failed(work)
    because = f"; {reason}" if reason else ""
    failed = work / "raw" / "failed"
    if failed.exists():
        words = tail_of(failed).split()
        if not words:
            raise UserError(
                f"{label}: {backend.runner} had no room left for what the tools printed: make the run shorter, or let it sample "
                "less often",
                1,
            )
        node, phase = _step(lab, words)
        log = work / "raw" / node / f"{phase}.log"
        lines = _lines(log)
        raise UserError(
            f"{label}: {node}'s step '{phase}' failed{because}: "
            f"{_OWN_PLACE.sub('', lines[-1]) if lines else 'it said nothing'} (see {log})",
            1,
        )
    ended = f"{label}: {backend.runner} ended early{because}"
    for name in ("experiment.log", "console.txt"):
        lines = [line for line in _lines(work / name) if "Power down" not in line]
        if lines:
            raise UserError(f"{ended}: {lines[-1]} (see {work / name})", 1)
    raise UserError(f"{ended} and said nothing (see {work})", 1)


def _step(lab: Lab, words: list[str]) -> tuple[str, str]:
    """The step that a guest says has failed, where the lab has it: its words become a path."""
    run = lab.file.run
    steps = {(step.node, step.phase) for step in (*run.prepare, *run.measure, *run.conclude)}
    steps |= {(node.name, "snapshot") for node in lab.file.topology.nodes}
    named = (words[0], words[1] if len(words) > 1 else "?")
    return named if named in steps else ("?", "?")


def _lines(log: Path) -> list[str]:
    return [without_controls(line) for line in tail_of(log).strip().split("\n") if line.strip()]
