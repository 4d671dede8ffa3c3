"""Landlock, by which a program's process gives up what it doesn't need of this machine: landlock(7), Linux 5.13 and later.

The virtual kernel confines itself (scripts/kernel/confine/). Here is the same for other programs that are started
for a run, and whether this machine has it at all.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

# linux/landlock.h and asm-generic/unistd.h; the numbers are those of all architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
REFER, TRUNCATE = 1 << 13, 1 << 14
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER | TRUNCATE
# What only makes sense of a folder, and is refused for a file.
OF_FOLDERS = READ_DIR | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER
# How many kinds of access to files each version knows, from version 1 on.
FILE_RIGHTS = (13, 14, 15, 15, 16)
NET_FROM, BIND_AND_CONNECT_TCP = 4, 3
SCOPED_FROM, ABSTRACT_SOCKETS_AND_SIGNALS = 6, 3
PR_SET_NO_NEW_PRIVS = 38


@cache
def version() -> int:
    """Return the version of Landlock that this machine's kernel has in use; 0 where it has none."""
    with suppress(ImportError, OSError, AttributeError):
        return max(0, _syscall(CREATE_RULESET, None, 0, VERSION))
    return 0


def describe() -> str:
    """Return what of Landlock this machine has, in words for `./lab doctor` and a run's provenance."""
    abi = version()
    if not abi:
        return "none"
    reach = ["files"]
    reach += ["TCP"] * (abi >= NET_FROM) + ["signals"] * (abi >= SCOPED_FROM)
    return f"version {abi}: {', '.join(reach)}"


@contextmanager
def confined(read: Iterable[Path], write: Iterable[Path]) -> Iterator[Callable[[], None] | None]:
    """Lend what a new process calls before its program (subprocess' preexec_fn), to reach no files but those below
    `read` and `write`, no TCP, and no processes but its own children; None where this machine has no Landlock.

    OSError where a rule can't be made.
    """
    abi = version()
    if not abi:
        yield None
        return
    rights = (1 << FILE_RIGHTS[min(abi, len(FILE_RIGHTS)) - 1]) - 1
    # A structure's length says which version its reader must know.
    words = [rights]
    if abi >= NET_FROM:
        words.append(BIND_AND_CONNECT_TCP)
    if abi >= SCOPED_FROM:
        words.append(ABSTRACT_SOCKETS_AND_SIGNALS)
    attr = struct.pack(f"={len(words)}Q", *words)
    ruleset = _syscall(CREATE_RULESET, attr, len(attr), 0)
    try:
        for paths, allowed in ((read, READ), (write, WRITE)):
            for path in paths:
                with suppress(FileNotFoundError):
                    _add(ruleset, path, allowed & rights)

        def confine() -> None:
            _libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            _syscall(RESTRICT_SELF, ruleset, 0)

        yield confine
    finally:
        os.close(ruleset)


def _add(ruleset: int, path: Path, allowed: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not path.is_dir():
            allowed &= ~OF_FOLDERS
        _syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", allowed, parent), 0)
    finally:
        os.close(parent)


@cache
def _libc() -> ctypes.CDLL:
    # Here, since a page's Python comes without it.
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _syscall(*words: int | bytes | None) -> int:
    import ctypes

    done: int = _libc().syscall(
        *(ctypes.c_long(word) if isinstance(word, int) else word for word in words)
    )
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
