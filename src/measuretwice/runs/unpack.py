"""Extract what a student handed in, a folder or nested archives, as plain files.

All of it is untrusted. Files are copied into a folder of ours, under checked names, within limits
of size and number; nothing is executed, no link followed. What is refused is said in words, and
the rest is extracted.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from measuretwice.base.errors import without_controls
from measuretwice.measure.imported import MAX_FILE_BYTES
from measuretwice.runs.folder import ARCHIVE, is_archive

# A run is a few MB in some fifty files; a whole lab's are far below these.
MAX_BYTES = 2**30
MAX_FILES = 20_000
# Archives in archives: a system's zip, the student's in it, their runs' in that.
MAX_ARCHIVE_DEPTH = 3
MAX_FOLDER_DEPTH = 30
MAX_NAME_BYTES = 200
# Text of ss packs to a fiftieth; deflate can't do more than a thousandth.
MAX_RATIO = 500
RATIO_FROM_BYTES = 2**20
# Of so many the name is printed, where several are refused for one reason.
MAX_NAMED = 3
CHUNK = 2**16
DECOMPRESSORS: dict[str, Callable[[Path], Any]] = {
    "tar": io.FileIO,
    "gz": gzip.GzipFile,
    "tgz": gzip.GzipFile,
    "xz": lzma.LZMAFile,
    "txz": lzma.LZMAFile,
    "bz2": bz2.BZ2File,
}
UNREAD_ARCHIVE = re.compile(r"\.(7z|rar|zst|lz|lzma|cab|iso|gz|xz|bz2)$", re.IGNORECASE)
UNPACK_ERRORS = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError,
    ValueError, ArithmeticError, NotImplementedError, RuntimeError, MemoryError, LookupError,
)  # fmt: skip
# What the bytes of an entry raise if they aren't those that were packed.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)


class Rejected(Exception):
    """An entry is not extracted; says why."""


class QuotaExceeded(Exception):
    """The submission is over a limit: nothing more of it is extracted."""


def printable(name: object) -> str:
    """Return a name that is safe to print: short, without control characters."""
    text = without_controls(str(name))
    return text if len(text) <= 120 else f"{text[:60]} … {text[-50:]}"


def checked_parts(name: str) -> tuple[str, ...]:
    """Return the parts of an entry's path below the target folder; Rejected where it leads out."""
    path = name.replace("\\", "/")
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        raise Rejected("an absolute path")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Rejected("its path leads out of the archive (..)")
    if not parts:
        raise Rejected("it has no name")
    for part in parts:
        check_name(part)
    return parts


def check_name(part: str) -> None:
    """Raise Rejected where not every system can have a file of this name."""
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        raise Rejected("its name isn't UTF-8") from None
    if size > MAX_NAME_BYTES:
        raise Rejected("its name is too long")
    if any(unicodedata.category(character) == "Cc" for character in part):
        raise Rejected("control characters in its name")


def is_hidden(parts: tuple[str, ...]) -> bool:
    """Return whether a path is what systems leave behind and no student means to hand in."""
    return any(part.startswith(".") or part in ("__MACOSX", "Thumbs.db") for part in parts)


class Extractor:
    """Unpacks a submission into the folder `into`; `summary` has a line for each source of which
    something was refused, however much of it."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self.summary: list[str] = []
        self._names_by_reason: dict[str, list[str]] = defaultdict(list)
        self._bytes_left = MAX_BYTES
        self._files_left = MAX_FILES
        self._spools = 0

    def extract(self, source: Path) -> None:
        """Extract a file, folder or archive of a submission; may be called several times."""
        try:
            if stat.S_ISDIR(source.lstat().st_mode):
                self._add_folder(source, ())
            else:
                self._add_file(source, (), source.name)
        except QuotaExceeded as error:
            self._reject(source.name, f"{error}: what comes after is not read")
        except OSError as error:
            self._reject(source.name, error.strerror or "can't be read")
        if self._names_by_reason:
            self.summary.append(self._summarise(printable(source.name)))
            self._names_by_reason.clear()

    def _summarise(self, source: str) -> str:
        """Return one line on all that was refused of a source: each reason with some names."""
        total = sum(map(len, self._names_by_reason.values()))
        parts = []
        for reason, names in self._names_by_reason.items():
            if len(names) == total == 1:
                return f"{names[0]}: {reason}"
            names = [name.removeprefix(f"{source}/") for name in names]
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            parts.append(f"{reason} ({', '.join(names[:MAX_NAMED])}{more})")
        return f"{total} of {source}: {'; '.join(parts)}"

    def _reject(self, name: object, reason: object) -> None:
        self._names_by_reason[printable(reason)].append(printable(name))

    def _add_folder(self, folder: Path, parts: tuple[str, ...]) -> None:
        if len(parts) > MAX_FOLDER_DEPTH:
            self._reject("/".join(parts), f"more than {MAX_FOLDER_DEPTH} folders deep")
            return
        with os.scandir(folder) as listed:
            names = sorted(entry.name for entry in listed)
        for name in names:
            if is_hidden((name,)):
                continue
            path = folder / name
            try:
                check_name(name)
                if stat.S_ISDIR(path.lstat().st_mode):
                    self._add_folder(path, (*parts, name))
                else:
                    self._add_file(path, parts, name)
            except Rejected as error:
                self._reject("/".join((*parts, name)), error)
            except OSError as error:
                self._reject("/".join((*parts, name)), error.strerror or "can't be read")

    def _add_file(self, path: Path, parts: tuple[str, ...], name: str) -> None:
        """Add a file of the submission's folder; what isn't a plain file isn't opened at all."""
        where = "/".join((*parts, name))
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return self._reject(where, "a symbolic link")
        if not stat.S_ISREG(status.st_mode):
            return self._reject(where, "neither a file nor a folder")
        if status.st_nlink > 1:
            return self._reject(where, "a hard link: the same file is elsewhere, too; copy it")
        # Between the look and this, nobody puts a pipe in its place that would hold us up.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as content:
            try:
                self._store(content, (*parts, name), status.st_size, 1)
            except Rejected as error:
                self._reject(where, error)
        return None

    def _store(self, content: BinaryIO, parts: tuple[str, ...], size: int, depth: int) -> None:
        """Store a file's content, or, if it is an archive, what is in it."""
        name = parts[-1]
        if is_archive(name):
            if depth > MAX_ARCHIVE_DEPTH:
                raise Rejected(f"archives in archives, more than {MAX_ARCHIVE_DEPTH} deep")
            self._spools += 1
            spool = self.into.with_name(f"{self.into.name}.spool{self._spools}")
            try:
                self._write(content, spool, size, MAX_BYTES)
                # As `raw` a run knows its files; any other archive is a folder of its own name.
                self._unpack(spool, (*parts[:-1], "raw") if name == ARCHIVE else parts, depth)
            finally:
                spool.unlink(missing_ok=True)
        elif UNREAD_ARCHIVE.search(name):
            raise Rejected("an archive that isn't read here; ask for a zip or tar.gz")
        else:
            target = self.into.joinpath(*parts)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._write(content, target, size, MAX_FILE_BYTES)
            except (FileExistsError, NotADirectoryError):
                raise Rejected("this name is there twice; the first is taken") from None

    def _write(self, content: BinaryIO, target: Path, size: int, max_bytes: int) -> None:
        """Copy at most `max_bytes` and what is left of the quota: `size` is only what the archive says."""
        if size > max_bytes:
            raise Rejected(f"larger than {max_bytes >> 20} MiB")
        self._files_left -= 1
        if self._files_left < 0:
            raise QuotaExceeded(f"more than {MAX_FILES} files")
        written = 0
        with open(target, "xb") as file:
            try:
                while piece := content.read(CHUNK):
                    written += len(piece)
                    self._bytes_left -= len(piece)
                    if written > max_bytes or self._bytes_left < 0:
                        break
                    file.write(piece)
            except UNPACK_ERRORS:
                # What is damaged isn't taken for what was handed in.
                target.unlink()
                raise
        if self._bytes_left < 0:
            target.unlink()
            raise QuotaExceeded(f"more than {MAX_BYTES >> 20} MiB, unpacked")
        if written > max_bytes:
            target.unlink()
            raise Rejected(f"larger than {max_bytes >> 20} MiB")

    def _unpack(self, path: Path, parts: tuple[str, ...], depth: int) -> None:
        try:
            if parts[-1].lower().endswith(".zip"):
                self._unpack_zip(path, parts, depth)
            else:
                self._unpack_tar(path, parts, depth)
        except QuotaExceeded:
            raise
        except MemoryError:
            raise Rejected("needs more memory than a submission may have") from None
        except UNPACK_ERRORS as error:
            raise Rejected(f"is damaged, or no archive ({type(error).__name__})") from None

    def _unpack_zip(self, path: Path, parts: tuple[str, ...], depth: int) -> None:
        with zipfile.ZipFile(path) as packed:
            for info in packed.infolist():
                where = f"{'/'.join(parts)}/{info.filename}"
                try:
                    below = checked_parts(info.filename)
                    if info.is_dir() or is_hidden(below):
                        continue
                    _check_entry(info)
                    self._check_depth((*parts, *below))
                    with packed.open(info) as content:
                        self._store(
                            cast(BinaryIO, content), (*parts, *below), info.file_size, depth + 1
                        )
                except Rejected as error:
                    self._reject(where, error)
                except QuotaExceeded:
                    raise
                except DAMAGED:
                    self._reject(where, "is damaged, so it is left out")
                except UNPACK_ERRORS as error:
                    self._reject(where, f"can't be unpacked ({type(error).__name__})")

    def _unpack_tar(self, path: Path, parts: tuple[str, ...], depth: int) -> None:
        suffix = parts[-1].lower().rsplit(".", 1)[-1] if parts[-1] != "raw" else "xz"
        with (
            DECOMPRESSORS[suffix](path) as packed,
            tarfile.open(fileobj=cast(BinaryIO, _LimitedStream(packed)), mode="r|") as tar,
        ):
            for entry in tar:
                where = f"{'/'.join(parts)}/{entry.name}"
                try:
                    below = checked_parts(entry.name)
                    if entry.isdir() or is_hidden(below):
                        continue
                    if not entry.isreg():
                        kind = "a link" if entry.issym() or entry.islnk() else "no plain file"
                        raise Rejected(f"{kind}, not a file")
                    self._check_depth((*parts, *below))
                    content = tar.extractfile(entry)
                    assert content is not None  # what isreg() makes sure of
                    self._store(cast(BinaryIO, content), (*parts, *below), entry.size, depth + 1)
                except Rejected as error:
                    self._reject(where, error)

    def _check_depth(self, parts: tuple[str, ...]) -> None:
        if len(parts) > MAX_FOLDER_DEPTH:
            raise Rejected(f"more than {MAX_FOLDER_DEPTH} folders deep")


def _check_entry(info: zipfile.ZipInfo) -> None:
    """Raise Rejected unless a zip's entry is a plain file, packed in a usual way, and no bomb."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise Rejected("a symbolic link")
    if kind not in (0, stat.S_IFREG):
        raise Rejected("neither a file nor a folder")
    if info.flag_bits & 1:
        raise Rejected("encrypted; ask for it without a password")
    # Of other methods, a few bytes can unpack to any number at once.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Rejected("packed by a method that isn't read here; ask for a usual zip")
    if (
        info.file_size > RATIO_FROM_BYTES
        and info.file_size > MAX_RATIO * max(info.compress_size, 1)
    ):  # fmt: skip
        raise Rejected(f"unpacks to more than {MAX_RATIO} times its size, as a zip bomb does")


class _LimitedStream:
    """A stream that raises QuotaExceeded after MAX_BYTES, whatever sizes a tar claims."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(piece)
        if self._left < 0:
            raise QuotaExceeded(f"more than {MAX_BYTES >> 20} MiB, unpacked")
        return piece
