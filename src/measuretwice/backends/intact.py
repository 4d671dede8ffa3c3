"""Is what a builder left in the cache still what it made? Asked after a failure, and by ./lab doctor: it takes a
fraction of a second, which no trial that succeeds shall pay.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

# What a builder writes beside its files: a line each, as sha256sum(1) has them. Older folders have none.
SUMS = "SHA256SUMS"
MOST_NAMED = 3


def changed_files(folder: Path, known: Mapping[str, str]) -> list[str]:
    """Return the files below `folder` that are gone or not what their sums say; `known` are further sums, by name."""
    sums = dict(known)
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    for line in lines:
        digest, _, name = line.partition("  ")
        if name:
            sums[name] = digest
    return [name for name, digest in sums.items() if _digest(folder / name) != digest]


def _digest(path: Path) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def named(files: list[str]) -> str:
    """Some files' names, as a line has room for them."""
    more = len(files) - MOST_NAMED
    return ", ".join(files[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def damage(what: str, folder: Path, known: Mapping[str, str]) -> str | None:
    """Say what is damaged of `what`, which is kept in `folder`; None where nothing is.

    A damaged folder is set aside, so that the next run has it made anew; its builder then removes the old one.
    """
    if not folder.is_dir():
        return f"the cached {what} is gone from {folder}: run again to have it made anew"
    changed = changed_files(folder, known)
    if not changed:
        return None
    aside = folder.with_name(f".damaged-{folder.name}")
    said = f"the cached {what} is damaged ({named(changed)})"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(folder, aside)
    except OSError:
        return f"{said}: delete {folder}, then run again to have it made anew"
    return f"{said}: it is set aside; run again to have it made anew"
