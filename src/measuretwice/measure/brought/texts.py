"""The texts of files and folders that a person names: plain files only, and at once.

A pipe would wait for ever, a device never end, a link lead elsewhere: none of them is opened.
What a terminal adds (a byte-order mark, CRLF, a last line cut off) is taken away; what is packed
by gzip or written in UTF-16, as Windows' PowerShell does, is read.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuretwice.base.errors import UserError

MAX_FILE_BYTES = 64 * 2**20
MAX_FILES = 2000
# How files begin that hold no text, and what to do with them.
PACKED = {
    b"PK\x03\x04": "packed (zip): unpack it first",
    b"\xfd7zXZ": "packed (xz): unpack it first",
    b"BZh": "packed (bzip2): unpack it first",
    b"\xd4\xc3\xb2\xa1": "a capture: tcpdump -e -r prints it",
    b"\xa1\xb2\xc3\xd4": "a capture: tcpdump -e -r prints it",
    b"\x0a\x0d\x0d\x0a": "a capture: tcpdump -e -r prints it",
}


@dataclass(frozen=True)
class TextFile:
    """A file's text; `folder` is the one that was named, or the file's own."""

    path: Path
    folder: Path
    text: str


class NotRead(Exception):
    """Why a file isn't read, in words."""


def read_texts(paths: list[Path]) -> tuple[list[TextFile], list[str]]:
    """Return the texts of files and of folders' files, by name, and what was left out with the reason.

    UserError where something named isn't there, can't be read or is neither a file nor a folder, and
    where there are more than MAX_FILES.
    """
    texts: list[TextFile] = []
    left_out: list[str] = []
    for named in paths:
        if problem := unreadable(named):
            raise UserError(f"{named}: {problem}")
        for count, path in enumerate(_files(named, left_out), start=1):
            if count > MAX_FILES:
                raise UserError(f"{named}: more than {MAX_FILES} files; give a run's own folder")
            try:
                folder = named if named.is_dir() else named.parent
                texts.append(TextFile(path, folder, tidy(_content(path))))
            except NotRead as reason:
                if path == named and len(paths) == 1:
                    raise UserError(f"{path}: {reason}") from None
                left_out.append(f"{path}: {reason}")
    return texts, left_out


def unreadable(path: Path) -> str | None:
    """Say why this can't be read, without opening it; None where it is a file or a folder that can."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return (
                f"{_sort(mode)}, neither a file nor a folder; save what it gives into a file first"
            )
        if stat.S_ISDIR(mode):
            os.scandir(path).close()
    except FileNotFoundError:
        return "there is no such file or folder"
    except (OSError, ValueError) as error:
        return f"can't be read ({getattr(error, 'strerror', None) or error})"
    return None


def _sort(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _files(named: Path, left_out: list[str]) -> Iterator[Path]:
    """A file itself, or a folder's files in order; what is neither is said in `left_out`."""
    if not named.is_dir():
        yield named
        return

    def refuse(error: OSError) -> None:
        left_out.append(f"{error.filename}: can't be read ({error.strerror})")

    for folder, folders, names in os.walk(named, onerror=refuse):
        for name in [*folders]:
            if (path := Path(folder, name)).is_symlink():
                folders.remove(name)
                left_out.append(f"{path}: a link; give the folder itself")
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink():
                left_out.append(f"{path}: a link; give the file itself")
            else:
                yield path


def _content(path: Path) -> bytes:
    if (problem := unreadable(path)) is not None:
        raise NotRead(problem)
    try:
        # Should it have become a pipe since, opening it doesn't wait.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise NotRead(f"can't be read ({error.strerror})") from None
    if data.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MAX_FILE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise NotRead(f"packed by gzip, and damaged ({error})") from None
    for begin, reason in PACKED.items():
        if data.startswith(begin):
            raise NotRead(reason)
    if len(data) > MAX_FILE_BYTES:
        raise NotRead(f"larger than {MAX_FILE_BYTES >> 20} MiB")
    return data


def tidy(data: bytes) -> str:
    """Text without what terminals and editors add; undecodable bytes become U+FFFD."""
    text = data.decode(_encoding(data), errors="replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") or not text else text + "\n"


def _encoding(data: bytes) -> str:
    """UTF-16 with its mark, or without it: then every other byte of plain English is 0."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    head = data[:400]
    if len(head) >= 8 and b"\0" in head:
        if not any(head[1::2]):
            return "utf-16-le"
        if not any(head[::2]):
            return "utf-16-be"
    return "utf-8-sig"
