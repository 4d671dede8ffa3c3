"""Which edition of the kit this is: the whole checkout, or a students' release without answers."""

from __future__ import annotations

from pathlib import Path

# What `./lab release` writes at the top of a release, and no checkout has.
RELEASE_FILE = "release.json"


def is_release(root: Path) -> bool:
    """Is the kit in `root` a students' release?"""
    return (root / RELEASE_FILE).is_file()
