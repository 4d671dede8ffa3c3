"""Which prepared pages are still right since the last time, and need not be made again.

A page follows from its template and from all that words may read: labs, recorded runs, the pages'
includes, which pages there are, and this package. Whether those are as they were is told as make
tells it, by time and size.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from measuretwice.base.paths import PACKAGE

READ_BY_WORDS = ("labs", "sample-data", "docs/includes", "docs/layouts", "mkdocs.yml")
NAMED_BY_WORDS = ("docs", "solutions")


class KeptPages:
    """The pages that the last time's note names, each with a digest of what it followed from."""

    def __init__(self, root: Path, before: dict[str, str], also: bytes) -> None:
        self._inputs, self._before = _digest_of_inputs(root) + also, before
        self.now: dict[str, str] = {}

    def still_right(self, page: str, template: Path) -> bool:
        """Is `page` the one that was made of just this? It is noted for the next time."""
        digest = hashlib.sha256(self._inputs + template.read_bytes()).hexdigest()[:16]
        self.now[page] = digest
        return self._before.get(page) == digest


@contextmanager
def kept_pages(root: Path, note: Path, *, also: str = "") -> Iterator[KeptPages]:
    """Read the note, and write it anew where all went well: a failure makes every page again.

    `also` is what pages follow from besides files: whether they can run trials themselves.
    """
    try:
        before = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        before = {}
    note.unlink(missing_ok=True)
    kept = KeptPages(root, before, also.encode())
    yield kept
    note.write_text(json.dumps(kept.now, indent=0), encoding="utf-8")


def _digest_of_inputs(root: Path) -> bytes:
    lines = [
        f"{path}\0{status.st_mtime_ns}\0{status.st_size}"
        for path in _files([PACKAGE, *(root / name for name in READ_BY_WORDS)])
        if path.suffix != ".pyc" and (status := path.stat())
    ]
    lines += map(str, _files(root / name for name in NAMED_BY_WORDS))
    return hashlib.sha256("\n".join(lines).encode()).digest()


def _files(folders: Iterable[Path]) -> list[Path]:
    """Those in folders, and what is named itself."""
    found = (path for folder in folders for path in (folder, *folder.rglob("*")))
    return sorted(path for path in found if path.is_file())
