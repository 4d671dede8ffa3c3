"""Archives in place of folders: what a page saves, or a student hands in, is unpacked for one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from measuretwice.base.errors import UserError
from measuretwice.runs.archive import ARCHIVE, is_archive
from measuretwice.runs.folder import runs_in


@dataclass(frozen=True)
class Unpacked:
    """The folders to look into, in place of archives where these lay; `hidden` begin the paths of what was unpacked."""

    targets: tuple[Path, ...]
    hidden: tuple[str, ...] = ()

    def named(self, text: str) -> str:
        """A path, or a line with paths, as it was asked for: from the archive's name on."""
        for prefix in self.hidden:
            text = text.replace(prefix, "")
        return text

    @property
    def archives(self) -> bool:
        """Is any of it an archive's? What is written there is gone with the command."""
        return bool(self.hidden)


@contextmanager
def unpacked(targets: Sequence[Path]) -> Iterator[Unpacked]:
    """Lay archives open in a temporary folder, as grading does, within its limits. What is refused is said."""
    if not any(map(_is_archive, targets)):
        yield Unpacked(tuple(targets))
        return
    with TemporaryDirectory(prefix="measuretwice-") as scratch:
        folders: list[Path] = []
        hidden: list[str] = []
        for number, target in enumerate(targets):
            if not _is_archive(target):
                folders.append(target)
                continue
            # Each in a folder of its own, so that two of one name don't mix.
            into = Path(scratch).resolve() / str(number)
            into.mkdir()
            hidden += [f"{into}{os.sep}", f"{os.path.relpath(into)}{os.sep}"]
            folders += _open(target, into)
        opened = Unpacked(tuple(folders), tuple(hidden))
        try:
            yield opened
        except UserError as error:
            raise UserError(opened.named(str(error))) from None


def _is_archive(target: Path) -> bool:
    # A run's own raw files are no hand-in.
    return is_archive(target.name) and target.name != ARCHIVE and target.is_file()


def _open(archive: Path, into: Path) -> list[Path]:
    """The folders with runs of an archive; where it holds none, all of it. UserError where nothing can be taken."""
    from measuretwice.grading.unpack import Opened

    opened = Opened(into)
    opened.take(archive)
    runs = runs_in(into)
    if not any(path.is_file() for path in into.rglob("*")):
        raise UserError("; ".join(opened.summed) or f"{archive}: nothing is in it")
    for line in opened.summed:
        print(f"lab: {line}; the rest is taken", file=sys.stderr)
    return sorted({run.parent for run in runs}) or [into / archive.name]
