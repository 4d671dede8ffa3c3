"""Files that are made anew each time, and what a person wrote into them in the meantime.

Beside them stands a list of their digests. A file that isn't as it was written was edited: it is moved
out of the way under another name, and never written over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json

LIST = ".written.json"


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write files, by their path below the folder; return lines on edited ones that were kept.

    Files of an earlier time that aren't made any more go, unless they were edited. UserError where
    something can't be written.
    """
    known = _known(folder)
    said = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(known.keys() - files.keys()):
            path = folder / name
            if path.is_file() and _digest(path.read_bytes()) == known[name]:
                path.unlink()
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and _digest(path.read_bytes()) not in (
                known.get(name),
                _digest(content),
            ):
                kept = _free(path)
                path.rename(kept)
                where = kept.relative_to(folder).as_posix()
                said.append(f"{name} was edited since it was written: kept as {where}")
            _put(path, content)
        write_json(folder / LIST, {name: _digest(content) for name, content in files.items()})
    except OSError as error:
        raise UserError(
            f"--out {error.filename or folder}: can't be written ({error.strerror})"
        ) from None
    return said


def _known(folder: Path) -> dict[str, str]:
    try:
        known = read_object(folder / LIST)
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    # A name from that list is only ever one that lies below the folder.
    return {
        name: str(digest)
        for name, digest in known.items()
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }


def _put(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _free(path: Path) -> Path:
    number = 1
    while (other := path.with_name(f"{path.stem}.yours-{number}{path.suffix}")).exists():
        number += 1
    return other
