"""A run's folder: its files, its raw ones packed or not, and where it comes from.

A folder is a run's if it has a plan.json, and DONE once all of it is there. A run that is worked on has a hidden
folder beside its place, which becomes it by being renamed. Recorded runs keep their raw files in one compressed
archive: of the same files it has the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import platform
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.lab import KernelFacts, Lab, Plan, trial_params
from measuretwice.measure.node_state import STATE

# Empty: the last file that a run is given.
DONE = "DONE"
PLAN = "plan.json"
RESULT = "result.json"
PROVENANCE = "provenance.json"
# What a student changed in the node scripts, where a run used their own.
EDIT_DIFF = "edit.diff"
ARCHIVE = "raw.tar.xz"
# How the names of files end that hold others, and can be unpacked.
ENDS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
# A run's raw files are some MB; an archive that says more than this is no run's.
MAX_BYTES = 512 * 2**20
MAX_FILES = 10_000


def is_finished(run: Path) -> bool:
    return (run / DONE).is_file()


def runs_in(target: Path) -> list[Path]:
    """Return the run folders that `target` is or holds, finished or not."""
    if (target / PLAN).is_file():
        return [target]
    if not target.is_dir():
        return []
    return sorted(
        plan.parent for plan in target.glob(f"**/{PLAN}") if not plan.parent.name.startswith(".")
    )


def finished_in(folder: Path) -> list[Path]:
    """Return the finished runs that a folder is or holds; hidden folders are at work still."""
    if is_finished(folder):
        return [folder]
    runs = (done.parent for done in folder.glob(f"**/{DONE}"))
    return sorted(
        run
        for run in runs
        if not any(part.startswith(".") for part in run.relative_to(folder).parts)
    )


def give_back(run: Path, out: Path) -> None:
    """Under sudo, give a run's folder to whoever called it.

    The folders that it is in, up to `out`, too, where they lie in one of theirs: /tmp stays root's.
    """
    owner, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if not owner or not group or os.geteuid() != 0:
        return
    above = [path for path in (out, run.parent) if path.parent.stat().st_uid == int(owner)]
    if out in above:
        above.append(run.parent)
    for path in [*above, run, *run.rglob("*")]:
        os.chown(path, int(owner), int(group), follow_symlinks=False)


def is_archive(name: str) -> bool:
    """Return whether a file is, by its name, an archive that can be unpacked."""
    return name.lower().endswith(ENDS)


def pack(raw: Path, archive: Path) -> None:
    """Write `raw`'s files to `archive`: by name in order, without owner, mode or time."""
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, path in files_of(raw).items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            with open(path, "rb") as content:
                tar.addfile(entry, content)


def files_of(raw: Path) -> dict[str, Path]:
    """Return what was measured: the files below `raw` by their name there, in order. What only says how a node stood
    afterwards (node_state.STATE) isn't among them: recordings and digests are without it."""
    files = {
        path.relative_to(raw).as_posix(): path
        for path in raw.rglob("*")
        if path.is_file() and path.name != STATE
    }
    return dict(sorted(files.items()))


def digest_of(raw: Path) -> str:
    """Return digest_of_files of what lies below `raw`."""
    return digest_of_files((name, path.read_bytes()) for name, path in files_of(raw).items())


def digest_of_files(files: Iterable[tuple[str, bytes]]) -> str:
    """Return one SHA-256 for all files, in order of their names: of a line 'digest  name' for each."""
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextmanager
def raw_folder(run: Path) -> Iterator[Path]:
    """Yield the folder with a run's raw files, unpacked for as long as it is needed.

    UserError where the archive is damaged, or holds anything but plain files of its own.
    """
    archive = run / ARCHIVE
    if (run / "raw").exists() or not archive.exists():
        yield run / "raw"
        return
    with tempfile.TemporaryDirectory(prefix="measuretwice-") as folder:
        try:
            for name, content in _files_in(archive):
                target = Path(folder) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        except OSError as error:
            raise UserError(f"{archive}: can't be unpacked in {folder}: {error.strerror}") from None
        yield Path(folder)


def raw_files(run: Path) -> dict[str, bytes]:
    """Return a run's raw files by name, all of them in memory; errors as raw_folder's.

    A folder of small files takes as long to write as the archive to read.
    """
    archive = run / ARCHIVE
    if (run / "raw").exists() or not archive.exists():
        return {name: path.read_bytes() for name, path in files_of(run / "raw").items()}
    return dict(sorted(_files_in(archive)))


def _files_in(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Plain files only, with names inside it only: no more than MAX_FILES, MAX_BYTES together."""
    left = MAX_BYTES
    if not archive.is_file():  # a pipe would wait for ever
        raise UserError(f"{archive}: not a plain file; get it or record it again")
    try:
        with lzma.open(archive, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            for count, entry in enumerate(tar, 1):
                if count > MAX_FILES:
                    raise tarfile.TarError(f"more than {MAX_FILES} files")
                name = PurePosixPath(entry.name)
                left -= entry.size
                if not entry.isreg() or name.is_absolute() or ".." in name.parts or left < 0:
                    raise tarfile.TarError(f"{entry.name!r} doesn't belong in it")
                content = tar.extractfile(entry)
                yield name.as_posix(), (content or io.BytesIO()).read()
            while packed.read(2**20):  # to the end: only there does a cut-off archive show
                pass
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise UserError(f"{archive}: is damaged ({error}); get it or record it again") from None


@dataclass(frozen=True)
class Machine:
    """A processor's architecture, and the operating system's name for people."""

    architecture: str
    system: str

    @classmethod
    def of_host(cls) -> Machine:
        try:
            system = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
        except OSError:
            system = "unknown"
        return cls(platform.machine(), system)

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Provenance:
    """The content of provenance.json.

    Times are in UTC, to the second. `git_commit` is the checkout's, where it is one;
    `virtual_start_ns` is the moment, in ns since 1970, that the virtual kernel's clock began at;
    `command` makes the run again. `edited` are the digests of the node scripts that were the student's own;
    what was changed in them stands in edit.diff. `raw_of` is the run whose raw files these are, where
    nothing differs but how they are judged. `confined` says by what means a virtual kernel's process was kept to its
    own folders; None where it ran on a machine itself.
    """

    measuretwice: str
    git_commit: str | None
    started: str
    ended: str
    machine: Machine
    kernel: KernelFacts
    virtual_start_ns: int | None
    command: str
    plan_digest: str
    edited: dict[str, str] | None = None
    raw_of: str | None = None
    confined: str | None = None

    def to_json(self) -> dict[str, Any]:
        content = {**asdict(self), "kernel": self.kernel.to_json()}
        if self.edited is None:
            del content["edited"]
        for name in ("raw_of", "confined"):
            if content[name] is None:
                del content[name]
        return content


def command_again(plan: Plan, lab: Lab, option: str) -> str:
    """Return the command that does a run again."""
    what = f"--trial {plan.trial}"
    if plan.pitfall:
        what += f" --pitfall {plan.pitfall} --stage {plan.stage}"
    if plan.case:
        what = f"--case {plan.case}{' --show-me' if plan.stage else ''}"
    own = trial_params(
        lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage, case=plan.case, seed=plan.seed
    )
    changed = "".join(
        f" --set {shlex.quote(f'{name}={value}')}"
        for name, value in plan.params.items()
        if own.get(name) != value
    )
    return f"./lab run {plan.lab} {what} --seed {plan.seed}{changed}{option}"


def git_commit(root: Path) -> str | None:
    """Return the checkout's commit; None where it is none, or there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git here, or, in a browser, no other programs at all
        return None
    return done.stdout.strip() or None
