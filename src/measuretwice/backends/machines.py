"""Ready machines to run trials in: found in the cache, unpacked from the checkout, or built (scripts/machines/).

Whether one is still what its builder made is asked after a failure, and by ./lab doctor: it takes a fraction of a
second, which no trial that succeeds shall pay.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.base.paths import CHECKOUT, cache_folder
from measuretwice.lab import KernelFacts

SHIPPED = CHECKOUT / "machines"
# What scripts/machines/verify.py found, beside the machines that were unpacked.
VERIFIED_FILE = "verified.json"
# What a builder writes beside its files: a line each, as sha256sum(1) has them. Older folders have none.
SUMS = "SHA256SUMS"
MOST_NAMED = 3


def run_builder(
    script: Path, *options: str, quiet: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a builder. Its stdout is the machine's folder, its stderr goes to ours or, `quiet`, into the result."""
    return subprocess.run(
        ["bash", str(script), *options],
        # It unpacks with a Python that is here: this one.
        env={**os.environ, "MEASURETWICE_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )


@dataclass(frozen=True)
class CachedMachine(ABC):
    """A ready machine: its folder in the cache and what its builder says of it."""

    folder: Path
    facts: KernelFacts

    @classmethod
    def read(cls, folder: Path, facts_file: str, kind: str) -> Self:
        """Return the machine in a builder's folder; UserError where its facts are damaged."""
        try:
            machine = cls(folder, KernelFacts.from_json(read_object(folder / facts_file)))
            # What is asked of it later, is asked for here once.
            if not isinstance(machine.facts.others["programs"], Mapping) or not machine.name:
                raise TypeError("its programs are no table")
            return machine
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"{facts_file} lacks {error}" if isinstance(error, KeyError) else error
            raise UserError(
                f"{folder}: the cached {kind} is broken ({reason}); delete that folder and run again",
                1,
            ) from None

    @property
    @abstractmethod
    def name(self) -> str:
        """Return what a plan calls its kernel."""

    @property
    def programs(self) -> dict[str, str]:
        """The versions of the programs inside, by name, as their packages have them."""
        programs = self.facts.others["programs"]
        assert isinstance(programs, Mapping)
        return dict(programs)


def changed_files(folder: Path, more_sums: Mapping[str, str]) -> list[str]:
    """Return the files below `folder` that are gone or not what their sums say; `more_sums` are further ones, by name."""
    sums = dict(more_sums)
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


def shortened(files: list[str]) -> str:
    """Return some files' names, as many as a line has room for."""
    more = len(files) - MOST_NAMED
    return ", ".join(files[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def damage(kind: str, folder: Path, more_sums: Mapping[str, str]) -> str | None:
    """Say what is damaged of a machine of this kind in `folder`; None where nothing is.

    A damaged folder is set aside, so that the next run has it made anew; its builder then removes the old one.
    """
    if not folder.is_dir():
        return f"the cached {kind} is gone from {folder}: run again, and it will be made again"
    changed = changed_files(folder, more_sums)
    if not changed:
        return None
    problem = f"the cached {kind} is damaged ({shortened(changed)})"
    aside = folder.with_name(f".damaged-{folder.name}")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(folder, aside)
    except OSError:
        return f"{problem}: delete {folder}, then run again, and it will be made again"
    return f"{problem}: it is set aside; run again, and it will be made again"


def damaged_archive(kind: str) -> str | None:
    """Say what is wrong with the archive of the shipped machine of this kind; None where it is its manifest's."""
    name = f"machines/{kind}.tar.xz"
    try:
        with open(SHIPPED / f"{kind}.tar.xz", "rb") as archive:
            digest = hashlib.file_digest(archive, "sha256").hexdigest()
        same = digest == read_object(SHIPPED / f"{kind}.json")["sha256"]
    except FileNotFoundError:
        return f"{name} is missing: git checkout machines, or download the kit again"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{name} can't be compared with its manifest ({error}): git checkout machines"
    return None if same else f"{name} isn't what its manifest names: git checkout machines"


def verification(kind: str) -> str:
    """Say whether the shipped machine of this kind was built again here, and what came out."""
    try:
        shipped_now = read_object(SHIPPED / f"{kind}.json")["sha256"]
        noted = read_object(cache_folder() / VERIFIED_FILE)[kind]
        if noted["sha256"] != shipped_now:
            raise KeyError(kind)
        day, files, runs = noted["day"], list(noted["files"]), noted["runs"]
    except (OSError, ValueError, KeyError, TypeError):
        return "not built again from source on this machine; make machines-verify does it, and compares"
    if not files:
        return f"built again from source here on {day}: the same byte for byte"
    if not runs:
        return f"built again from source here on {day} by another compiler: the same runs, byte for byte"
    return f"built again from source here on {day}: its runs come out otherwise"
