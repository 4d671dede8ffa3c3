"""A finished run read back: measured anew from its raw files, whatever its result.json says.

A run's folder may come from anywhere. Whatever in it isn't what ./lab run writes becomes a
UserError: one line that names the file and what to do.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.checks import check_run, run_under_test
from measuretwice.lab import Lab, Plan, load_lab, read_plan
from measuretwice.lab.schema.network import NodeFile
from measuretwice.measure.delays import read_probes
from measuretwice.measure.fields import Measured
from measuretwice.measure.host_state import HostState, read_host_state
from measuretwice.measure.run import measure
from measuretwice.parse import ParseError
from measuretwice.runs.folder import PLAN, PROVENANCE, files_of, is_finished, raw_folder
from measuretwice.runs.result import Result, make_result

# What reading a file can raise where somebody has written into it.
BROKEN = (ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError)
# A run of thousands of flows has some hundred MB.
MAX_RAW_BYTES = 2**31
PING_SUMMARY = "ping statistics ---"


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a raw file, verbatim; `source` is its path below the run's folder."""

    label: str
    source: str
    text: str


@dataclass(frozen=True)
class RunData:
    """One run: its lab and plan, the result derived today, and what its folder says of itself.

    `provenance` is the document as it stands there, whatever that holds; None where it can't be read. `digests` are the SHA-256 of each raw file by
    its path below the run's folder.
    """

    name: str
    lab: Lab
    plan: Plan
    result: Result
    provenance: Mapping[str, object] | None
    excerpts: list[Excerpt]
    digests: dict[str, str]


@dataclass(frozen=True)
class Remeasured:
    """A finished run's lab and plan, what its raw files say by today's code, and its provenance, if that can be read."""

    lab: Lab
    plan: Plan
    measured: Measured
    host_state: HostState
    provenance: Mapping[str, object] | None


def remeasure(root: Path, run: Path) -> Remeasured:
    """Return a finished run's lab, its plan, and what its raw files hold.

    These may stand in a folder or, as recorded runs have them, in an archive. UserError where
    the run was never finished, a file can't be read, plan.json was changed after the run, or is
    of another run than provenance.json.
    """
    with raw_folder(run) as raw:
        return _measure(root, run, raw)


def plan_in(root: Path, path: Path) -> tuple[Lab, Plan]:
    """Return what a file says a run was, a plan.json or a live lab's: its lab, and a plan that the lab can have.

    UserError where it can't be read, or isn't one of the lab's (lab.read_plan).
    """
    document = _read_object(path)
    name = document.get("lab")
    if not isinstance(name, str):
        raise UserError(f"{path}: names no lab; run it again")
    try:
        lab = load_lab(root, name)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return lab, read_plan(lab, document, str(path))


def _measure(root: Path, run: Path, raw: Path) -> Remeasured:
    lab, plan = plan_in(root, run / PLAN)
    if not is_finished(run):
        raise UserError(f"{run}: this run was never finished; run it again")
    try:
        _refuse_links(raw)
        _refuse_endless(run, raw)
        measured, _ = measure(lab, raw, plan.params)
        how = lab.file.collect
        host_state = read_host_state(raw, how.ss_name, how.queue.file if how.queue else None)
        if how.flows:
            host_state = replace(host_state, probes=read_probes(how.flows, raw))
    except ParseError as error:
        raise UserError(f"{run}: {error}; run it again") from None
    except OSError as error:
        raise _not_there(error, run, f"{error.filename or run}: {error.strerror}") from None
    except (*BROKEN, RecursionError) as error:
        raise UserError(
            f"{run}: its raw files are broken ({_words(error)}); run it again"
        ) from None
    if any(isinstance(value, float) and not math.isfinite(value) for value in measured.values()):
        raise UserError(f"{run}: holds a number that isn't finite; run it again")
    provenance = _read_provenance(run)
    if provenance and provenance.get("plan_digest", plan.digest) != plan.digest:
        raise UserError(f"{run}: plan.json and provenance.json are of two runs; run it again")
    return Remeasured(lab, plan, measured, host_state, provenance)


def read_run(root: Path, run: Path, name: str) -> RunData:
    """Read a finished run of ours whole; `name` is what the report calls it. UserError as remeasure."""
    with raw_folder(run) as raw:
        return _read_run(root, run, raw, name)


def _read_run(root: Path, run: Path, raw: Path, name: str) -> RunData:
    again = _measure(root, run, raw)
    lab, plan, measured, host_state = again.lab, again.plan, again.measured, again.host_state
    try:
        findings = check_run(
            lab, run_under_test(lab, plan.params, measured, plan.trial, host_state)
        )
        result = make_result(lab, plan, measured, findings=findings)
    except BROKEN as error:
        raise UserError(
            f"{run / 'plan.json'}: not the settings of this lab ({_words(error)}); run it again"
        ) from None
    return RunData(
        name, lab, plan, result, again.provenance, _excerpts(lab, raw), _digests(raw)
    )  # fmt: skip


def _read_object(path: Path) -> dict[str, Any]:
    try:
        _refuse_links(path)
        return read_object(path)
    except OSError as error:
        raise _not_there(error, path, f"{path}: can't be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: can't be read ({_words(error)}); run it again") from None
    except TypeError as error:
        raise UserError(f"{path}: can't be read ({error}); run it again") from None


def _read_provenance(run: Path) -> dict[str, Any] | None:
    try:
        return _read_object(run / PROVENANCE)
    except UserError:
        return None


def _not_there(error: OSError, path: Path, says: str) -> UserError:
    """Return the error of a file that isn't there, or isn't for this user: only the first is fixed by another run."""
    if isinstance(error, PermissionError):
        return UserError(
            f"{error.filename or path}: can't be read ({error.strerror}); it belongs to another user"
        )
    return UserError(f"{says}; run it again")


def _refuse_links(path: Path) -> None:
    """Nothing but files and folders: a link would bring a file of the reader's into the report."""
    for file in (path, *path.rglob("*")) if path.is_dir() else (path,):
        if file.is_symlink() or (file.exists() and not (file.is_file() or file.is_dir())):
            raise UserError(f"{file}: neither a file nor a folder; remove it, or run it again")


def _refuse_endless(run: Path, raw: Path) -> None:
    """A file may say that it has more bytes than the disk: who reads it has no memory left."""
    if sum(path.stat().st_size for path in raw.rglob("*")) > MAX_RAW_BYTES:
        raise UserError(
            f"{run}: its raw files are larger than {MAX_RAW_BYTES >> 20} MiB; run it again"
        )


def _digests(raw: Path) -> dict[str, str]:
    """Return each raw file's SHA-256 by its path from the run's folder on."""
    digests = {}
    for name, path in files_of(raw).items():
        with open(path, "rb") as file:
            digests[f"raw/{name}"] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _excerpts(lab: Lab, raw: Path) -> list[Excerpt]:
    """Return the excerpts that a person would look at first: the last line of ss, and ping's summary."""
    how, excerpts = lab.file.collect, []
    if lines := _lines(raw, how.ss_last or how.ss):
        excerpts.append(("The last line of ss", how.ss_last or how.ss, lines[-1:]))
    if lines := _lines(raw, how.ping):
        starts = [n for n, line in enumerate(lines) if line.endswith(PING_SUMMARY)]
        if starts:
            excerpts.append(("What ping says in the end", how.ping, lines[starts[-1] :]))
    return [
        Excerpt(label, f"raw/{file.node}/{file.file}", "\n".join(shown))
        for label, file, shown in excerpts
        if file is not None
    ]


def _lines(raw: Path, file: NodeFile | None) -> list[str]:
    """The lines of a raw file that were printed by its tool; none where there is no such file."""
    path = raw / file.node / file.file if file else None
    if path is None or not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
