"""Archives in place of folders: what a page saves, or a student hands in, is unpacked for as long as it is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.runs.folder import ARCHIVE, is_archive, runs_in


@dataclass(frozen=True)
class Unpacked:
    """The folders to look into, in place of archives where these lay. `instead` is how the paths of what was
    unpacked begin, each with what is said in its place. `refused` are lines about what wasn't taken of archives."""

    targets: tuple[Path, ...]
    instead: tuple[tuple[str, str], ...] = ()
    refused: tuple[str, ...] = ()

    def named(self, text: str) -> str:
        """A path, or a line with paths, as it was asked for: ARCHIVE:path/inside."""
        for begin, name in self.instead:
            text = text.replace(begin, name)
        return text

    def named_in(self, content: Any) -> Any:
        """The same for all texts of what JSON can hold."""
        if isinstance(content, str):
            return self.named(content)
        if isinstance(content, dict):
            return {self.named(name): self.named_in(value) for name, value in content.items()}
        if isinstance(content, list | tuple):
            return [self.named_in(value) for value in content]
        return content

    @property
    def archives(self) -> bool:
        """Return whether any of it is an archive's. What is written there is gone afterwards."""
        return bool(self.instead)


@contextmanager
def unpacked(targets: Sequence[Path]) -> Iterator[Unpacked]:
    """Lay archives open in a temporary folder, as grading does, within its limits.

    UserError where nothing of an archive can be taken.
    """
    if not any(map(is_hand_in, targets)):
        yield Unpacked(tuple(targets))
        return
    with TemporaryDirectory(prefix="measuretwice-") as scratch:
        places = places_for(targets, Path(scratch))
        folders: list[Path] = []
        refused: list[str] = []
        for target, place in zip(targets, places.targets, strict=True):
            if place == target:
                folders.append(target)
                continue
            refused += lay_open(target, place)
            folders += sorted({run.parent for run in runs_in(place)}) or [place]
        try:
            yield Unpacked(tuple(folders), places.instead, tuple(refused))
        except UserError as error:
            raise UserError(places.named(str(error))) from None


def is_hand_in(target: Path) -> bool:
    """Return whether it is an archive of folders. A run's own raw files are none."""
    return is_archive(target.name) and target.name != ARCHIVE and target.is_file()


def places_for(targets: Sequence[Path], scratch: Path) -> Unpacked:
    """Choose a place below `scratch` for what is in each archive among the targets. Nothing is opened yet."""
    scratch = scratch.resolve()
    places: list[Path] = []
    instead: list[tuple[str, str]] = []
    for number, target in enumerate(targets):
        if not is_hand_in(target):
            places.append(target)
            continue
        # Each in a folder of its own, so that two of one name don't mix.
        place = scratch / str(number) / target.name
        place.parent.mkdir()
        places.append(place)
        for path in (str(place), os.path.relpath(place)):
            instead += [(f"{path}{os.sep}", f"{target}:"), (path, str(target))]
    if instead:
        instead += [(path, "archives") for path in (str(scratch), os.path.relpath(scratch))]
    return Unpacked(tuple(places), tuple(instead))


def lay_open(archive: Path, place: Path) -> list[str]:
    """Lay an archive open where places_for meant it to be; return what is refused of it, in words.

    UserError where nothing can be taken.
    """
    # A page's Python has no lzma.
    from measuretwice.runs.unpack import Extractor, printable

    extractor = Extractor(place.parent)
    extractor.extract(archive)
    # Grading knows a submission's files by their names alone, without the folder that they were in.
    name = re.compile(rf"^(\d+ of )?{re.escape(printable(archive.name))}(/?)")
    lines = [
        name.sub(lambda match: f"{match[1] or ''}{archive}{':' if match[2] else ''}", line)
        for line in extractor.summary
    ]
    if not any(path.is_file() for path in place.parent.rglob("*")):
        raise UserError("; ".join(lines) or f"{archive}: nothing is in it")
    return lines
