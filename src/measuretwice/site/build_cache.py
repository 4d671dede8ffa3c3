"""What is made once and kept: the folder of prepared pages, which of them are still right, and what takes long to make.

A page follows from its template and from all that macros may read: labs, recorded runs, the pages' includes, which
pages there are, and this package. Whether those are as they were is told as make tells it, by time and size.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.paths import PACKAGE
from measuretwice.site.markup import with_formulas

READ_BY_MACROS = ("labs", "sample-data", "docs/includes", "docs/layouts", "mkdocs.yml")
NAMED_BY_MACROS = ("docs", "solutions")


def digest_of(*sources: Path | bytes) -> str:
    """Return sixteen hex digits for the content of files, and for bytes."""
    parts = (part.read_bytes() if isinstance(part, Path) else part for part in sources)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def made_once(folder: Path, make: Callable[[Path], None], *, replaces: str = "*") -> Path:
    """Return a folder that is named by the digest of what it follows from; `make` fills it, unless it is there.

    Those beside it whose names match `replaces` are of other sources, and go.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Another site may be made of the same checkout meanwhile: each works in a folder of its own, and one is first.
    with tempfile.TemporaryDirectory(dir=folder.parents[1]) as temporary:
        part = Path(temporary) / "part"
        part.mkdir()
        make(part)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    for other in folder.parent.glob(replaces):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder


@dataclass
class PageFolder:
    """The folder of prepared pages, which mkdocs reads, and the files that this time are put there."""

    path: Path
    written: set[Path] = field(default_factory=set)

    def write(self, name: str, text: str) -> None:
        """Write a page with its formulas, if it is another than the one there: mkdocs watches these files."""
        # A path from the site's root, as macros give it, is made one from this page.
        text = re.sub(r"(?<=\]\()/(?=assets/)", "../" * name.count("/"), text)
        text = with_formulas(name, text) if name.endswith(".md") else text
        self.write_bytes(text.encode(), name)

    def write_bytes(self, content: bytes, name: str) -> None:
        """Write a file, if it is another than the one there."""
        path = self.path / name
        self.written.add(path)
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def copy(self, source: Path, name: str) -> None:
        """Put a copy of a file there, if it is another than the one there."""
        self.write_bytes(source.read_bytes(), name)

    def keep(self, name: str) -> bool:
        """Leave the page as it is there; return whether there is one."""
        path = self.path / name
        if path.is_file():
            self.written.add(path)
        return path.is_file()

    def pages(self, folder: str, names: list[str]) -> dict[str, str]:
        """Return the text of those pages NAME.md below `folder` that were written, by name."""
        paths = {name: self.path / folder / f"{name}.md" for name in names}
        return {
            name: path.read_text(encoding="utf-8")
            for name, path in paths.items()
            if path in self.written
        }

    def sweep(self) -> None:
        """Remove what was not written this time, and folders that are empty then."""
        for path in sorted(self.path.rglob("*"), reverse=True):
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


class BuildCache:
    """The pages that the last time's note names, each with a digest of what it followed from."""

    def __init__(self, root: Path, before: dict[str, str], also: bytes) -> None:
        self._inputs, self._before = _digest_of_inputs(root) + also, before
        self.now: dict[str, str] = {}

    def is_fresh(self, page: str, template: Path, *also: Path) -> bool:
        """Return whether the page is up to date, which follows from its template and `also` from those; note its digest for the
        next time."""
        self.now[page] = digest_of(self._inputs, template, *also)
        return self._before.get(page) == self.now[page]


@contextlib.contextmanager
def build_cache(root: Path, note: Path, *, also: str = "") -> Iterator[BuildCache]:
    """Read the note, and write it anew where all went well: a failure makes every page again.

    `also` is what pages follow from besides files: whether they can run trials themselves.
    """
    try:
        before = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        before = {}
    note.unlink(missing_ok=True)
    cache = BuildCache(root, before, also.encode())
    yield cache
    note.write_text(json.dumps(cache.now, indent=0), encoding="utf-8")


def _digest_of_inputs(root: Path) -> bytes:
    lines = [
        f"{path}\0{status.st_mtime_ns}\0{status.st_size}"
        for path in _files([PACKAGE, *(root / name for name in READ_BY_MACROS)])
        if path.suffix != ".pyc" and (status := path.stat())
    ]
    lines += map(str, _files(root / name for name in NAMED_BY_MACROS))
    return hashlib.sha256("\n".join(lines).encode()).digest()


def _files(folders: Iterable[Path]) -> list[Path]:
    """Those in folders, and what is named itself."""
    paths = (path for folder in folders for path in (folder, *folder.rglob("*")))
    return sorted(path for path in paths if path.is_file())
