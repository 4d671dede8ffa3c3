"""Where there is something to look at: a run's folder, a recorded one, a live lab's, or any files.

Folders come from anywhere. What isn't a plain file is never opened: a pipe would wait for ever, a
device never end, and a link lead elsewhere.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.lab import with_unlisted
from measuretwice.live.session import FACTS
from measuretwice.measure.imported import MAX_FILE_BYTES
from measuretwice.runs.folder import (
    DONE,
    EDIT_DIFF,
    MAX_FILES,
    PLAN,
    PROVENANCE,
    RESULT,
    is_finished,
    raw_folder,
    runs_in,
)
from measuretwice.runs.recorded import SET_FILE

# A run's own documents, beside its raw files.
OWN = (
    PLAN, RESULT, PROVENANCE, EDIT_DIFF, FACTS, "experiment.sh", "experiment.log", "console.txt"
)  # fmt: skip
Sort = Literal["run", "live lab", "files"]


@dataclass(frozen=True)
class RawFile:
    """A plain file: its name as it is called here (NODE/FILE), its node (empty where none is known)."""

    name: str
    node: str
    path: Path
    size_bytes: int

    @property
    def base(self) -> str:
        """Its own name, without the node's."""
        return self.name.rsplit("/", 1)[-1]

    def read(self) -> str:
        """Return its text; what is no UTF-8 shows as such. UserError where it can't be read."""
        return read_plain(self.path, self.name)


@dataclass(frozen=True)
class Source:
    """What was named: its folder, what sort it is, its raw files, and the files beside these.

    `plan` is what decided the run, all that plan.json or live.json holds; empty for files from elsewhere.
    `left_out` names what is there and no plain file.
    """

    target: Path
    sort: Sort
    raw: Path
    files: tuple[RawFile, ...]
    plan: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[str]:
        """The nodes that have files, in order."""
        return sorted({file.node for file in self.files if file.node})

    @property
    def finished(self) -> bool:
        """Whether a run of ours was finished; what isn't a run counts as finished."""
        return self.sort != "run" or is_finished(self.target)

    @property
    def title(self) -> str:
        """The run's lab, trial and seed in a few words, else its folder's name."""
        if self.sort == "files":
            return self.target.resolve().name
        parts = [str(self.plan.get("lab", "?"))]
        if "trial" in self.plan:
            parts.append(f"trial {self.plan['trial']}")
        if self.sort == "live lab":
            parts.append("live")
        elif "seed" in self.plan:
            parts.append(f"seed {self.plan['seed']}")
        return ", ".join(parts)

    def of_node(self, node: str | None) -> list[RawFile]:
        """The raw files, all or one node's; UserError where there is no such node."""
        if node is None:
            return list(self.files)
        if node not in self.nodes:
            nodes = f"it has {', '.join(self.nodes)}" if self.nodes else "it names no nodes"
            raise UserError(f"--node {node}: {self.target} has no files of such a node; {nodes}")
        return [file for file in self.files if file.node == node]


def printable(text: str) -> str:
    """Return a name as a figure can hold it: without control characters, which no SVG may have."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def read_plain(path: Path, name: str) -> str:
    """Return a plain file's text. UserError for anything else, and for one that is too large."""
    try:
        # Without O_NONBLOCK, to open a pipe waits until somebody writes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise UserError(f"{name}: {_sort_of(facts.st_mode)}, no plain file")
            if facts.st_size > MAX_FILE_BYTES:
                raise UserError(
                    f"{name}: larger than {MAX_FILE_BYTES >> 20} MiB; look at a part of it"
                )
            return file.read(MAX_FILE_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{name}: can't be read ({error.strerror})") from None


def _sort_of(mode: int) -> str:
    sorts = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a link"),
    )
    return next((word for matches, word in sorts if matches(mode)), "a device")


@contextmanager
def opened(target: Path) -> Iterator[Source]:
    """Open what a person named; recorded runs are unpacked for as long as the context lasts.

    UserError where there is nothing to look at, or several runs.
    """
    try:
        mode = target.stat().st_mode
    except OSError as error:
        raise UserError(f"{target}: {error.strerror}; name a run's folder or a file") from None
    if stat.S_ISREG(mode):
        file = RawFile(target.name, "", target, target.stat().st_size)
        yield Source(target, "files", target.parent, (file,))
        return
    if not stat.S_ISDIR(mode):
        raise UserError(f"{target}: {_sort_of(mode)}; name a run's folder or a plain file")
    if (target / FACTS).is_file():
        yield _source(target, "live lab", target / "raw", _document(target / FACTS))
        return
    run = _only_run(target)
    if run is None:
        yield _source(target, "files", target, {})
        return
    with raw_folder(run) as raw:
        yield _source(run, "run", raw, _document(run / PLAN))


def _only_run(target: Path) -> Path | None:
    """The one run that a folder is or holds; None where it holds none."""
    runs = runs_in(target)
    if len(runs) > 1:
        some = ", ".join(str(run.relative_to(target)) for run in runs[:3])
        raise UserError(
            f"{target}: holds {len(runs)} runs; name one of them: {some}{', ...' * (len(runs) > 3)}"
        )
    if not runs and (target / SET_FILE).is_file():
        raise UserError(
            f"{target}: a recorded set that keeps digests only, no raw files; run its trials yourself"
        )
    return runs[0] if runs else None


def _document(path: Path) -> dict[str, Any]:
    try:
        return with_unlisted(read_object(path))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: can't be read ({error}); run it again") from None


def _source(target: Path, sort: Sort, raw: Path, plan: dict[str, Any]) -> Source:
    files: list[RawFile] = []
    left_out: list[str] = []
    for path in _walk(raw):
        name = path.relative_to(raw).as_posix()
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            node = name.split("/", 1)[0] if "/" in name else ""
            files.append(RawFile(name, node, path, path.lstat().st_size))
        else:
            left_out.append(f"{name}: {_sort_of(mode)}, not looked at")
    if sort != "files":
        for name in OWN:
            path = target / name
            if path.is_file() and not path.is_symlink():
                files.append(RawFile(name, "", path, path.stat().st_size))
    if not files:
        word = f"{DONE} but no files" if (target / DONE).exists() else "no files"
        raise UserError(f"{target}: there are {word} in it")
    return Source(target, sort, raw, tuple(files), plan, tuple(left_out))


def _walk(folder: Path) -> list[Path]:
    """Return the files below a folder, by name; no link is followed, and what is hidden is left."""
    paths: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if Path(parent, name).is_symlink()]
        plain = [name for name in names if not name.startswith(".")]
        paths += [Path(parent, name) for name in [*plain, *links]]
        if len(paths) > MAX_FILES:
            raise UserError(f"{folder}: more than {MAX_FILES} files; name a run's own folder")
    return sorted(paths)


_WHEN = re.compile(r"(?<![a-z])(before|after)(?![a-z])")


@dataclass(frozen=True)
class SnapshotPair:
    """One node's file, taken before, after, or (as `after` alone) at some time."""

    node: str
    before: RawFile | None
    after: RawFile | None

    @property
    def both(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def names(self) -> str:
        """The files' names."""
        return ", ".join(file.name for file in (self.before, self.after) if file)


def pairs(files: Sequence[RawFile]) -> list[SnapshotPair]:
    """Return the files in pairs whose names differ by `before` and `after` only, in order."""
    by_state: dict[str, dict[str, RawFile]] = {}
    for file in files:
        when = _WHEN.search(file.base)
        key = _WHEN.sub("*", file.name) if when else file.name
        by_state.setdefault(key, {})[when[1] if when else "after"] = file
    return [
        SnapshotPair(next(iter(files.values())).node, files.get("before"), files.get("after"))
        for files in by_state.values()
    ]
