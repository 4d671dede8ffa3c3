"""Files that are written whole or not at all, the time that is written into them, and locks between processes.

A lock is gone with the last process that holds it, however that ends. Of a file (flock): held by whoever has it open and
locked. Of a CPU: a name in Linux's abstract namespace.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError

# The largest of ours, a recorded set's results, has some MB.
MAX_OBJECT_BYTES = 64 * 2**20
# What is read of a log's end.
TAIL_BYTES = 64 * 2**10


def write_json(path: Path, content: Any) -> None:
    """Write `content` as JSON. OSError where that can't be."""
    text = json.dumps(content, indent=2, sort_keys=False) + "\n"
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def tail_of(path: Path) -> str:
    """Return the last part of a log's text; nothing where there is no such plain file.

    Root inside a guest may have written it: it may be a pipe, or say that it has more bytes than the disk.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return ""
    with open(descriptor, "rb") as file:
        file.seek(max(0, status.st_size - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode("utf-8", errors="replace")


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it, however deep; where there is none, nothing."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", path], check=False)


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    OSError where it can't be read, ValueError where it is no plain file (a pipe would wait for ever), isn't JSON that
    can be read or is too large, TypeError where that isn't an object.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("no plain file")
        data = file.read(MAX_OBJECT_BYTES + 1)
    if len(data) > MAX_OBJECT_BYTES:
        raise ValueError(f"larger than {MAX_OBJECT_BYTES >> 20} MiB")
    try:
        content = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(content, dict):
        raise TypeError("not a JSON object")
    return content


def write_text(path: Path, text: str) -> None:
    """Write what a person asked for; UserError where that can't be."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes that a person asked for; UserError where that can't be."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(
            f"{path}: can't be written ({error.strerror}); choose another place with --out"
        ) from None


def unpack_tar(path: Path, into: Path, *, plain: bool = False) -> None:
    """Unpack a tar file of our own making, by tarfile's "data" filter where Python has it: Debian 12's doesn't.

    With `plain` only files and folders: no links and pipes, which a person may have made.
    """
    with tarfile.open(path) as tar:
        # https://docs.python.org/3/library/tarfile.html#supporting-older-python-versions
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        members = [entry for entry in tar if not plain or entry.isfile() or entry.isdir()]
        for entry in members:
            # Whoever unpacks it may look into it.
            entry.mode |= 0o700 if entry.isdir() else 0o600
        tar.extractall(into, members)


def pack_zip(files: Mapping[str, Path | bytes]) -> bytes:
    """Return a zip file of `files` by name, in order and with one date: the same files are the same bytes."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            given = content.read_bytes() if isinstance(content, Path) else content
            archive.writestr(entry, given, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def now() -> datetime:
    """Return the time in UTC, or that in SOURCE_DATE_EPOCH (reproducible-builds.org/specs/source-date-epoch).

    UserError where that is no number of seconds.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise UserError(
            f"SOURCE_DATE_EPOCH={given}: expected seconds since 1970; unset it"
        ) from None


MOST_ON_ONE_CPU = 100


@contextmanager
def hold(path: Path, *, remove: bool = False) -> Iterator[int | None]:
    """Hold a lock while the context lasts, and remove its file at the end where asked to.

    Yields the lock's descriptor, or None where somebody else holds it. OSError where the file can't
    be made.
    """
    descriptor = _open_lock(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if not _is_at(descriptor, path):
            yield None
            return
        try:
            yield descriptor
        finally:
            if remove:
                path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether somebody holds this lock now. Whoever wants it at this very moment may fail to get it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def wait_for(path: Path, busy: Callable[[], None]) -> Iterator[None]:
    """Hold a lock that nobody removes, as soon as it is free; `busy` is called where that isn't now."""
    descriptor = _open_lock(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether the open file is still the one at this path: its last holder may have removed that after we
    opened it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


def take_cpu(name: str = "measuretwice-cpu") -> socket.socket:
    """Keep this process to a CPU that no other trial on this machine has, as long as the returned socket is open.

    Where all are taken, one is shared with as few others as can be.
    """
    cpus = usable_cpus()
    name_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for sharing in range(MOST_ON_ONE_CPU):
        for cpu in cpus:
            try:
                name_socket.bind(f"\0{name}-{cpu}-{sharing}")
            except OSError:
                continue
            os.sched_setaffinity(0, {cpu})
            return name_socket
    os.sched_setaffinity(0, {cpus[os.getpid() % len(cpus)]})
    return name_socket
