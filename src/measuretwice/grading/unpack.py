"""What a student handed in, laid open: a folder or archive, however nested, as plain files.

All of it is data from outside. Files are copied into a folder of ours, under names that are
checked, within limits of size and number; nothing is executed, no link followed. What is refused
is said in words, and the rest is taken.
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
MAX_ARCHIVES_DEEP = 3
MAX_FOLDERS_DEEP = 30
MAX_NAME_BYTES = 200
# Text of ss packs to a fiftieth; deflate can't do more than a thousandth.
MAX_RATIO = 500
RATIO_FROM_BYTES = 2**20
MAX_WORDS = 100
# Of how many the name is said, where several are refused for one reason.
MAX_NAMED = 3
CHUNK = 2**16
OPENERS: dict[str, Callable[[Path], Any]] = {
    "tar": io.FileIO,
    "gz": gzip.GzipFile,
    "tgz": gzip.GzipFile,
    "xz": lzma.LZMAFile,
    "txz": lzma.LZMAFile,
    "bz2": bz2.BZ2File,
}
UNREAD_ARCHIVE = re.compile(r"\.(7z|rar|zst|lz|lzma|cab|iso|gz|xz|bz2)$", re.IGNORECASE)
BROKEN = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError,
    ValueError, ArithmeticError, NotImplementedError, RuntimeError, MemoryError, LookupError,
)  # fmt: skip


class Refused(Exception):
    """One thing that is not taken, and why."""


class Full(Exception):
    """The submission is over a limit: nothing more of it is taken."""


def shown(name: object) -> str:
    """A name as it can be printed: short, and without what a terminal would obey."""
    text = without_controls(str(name))
    return text if len(text) <= 120 else f"{text[:60]} … {text[-50:]}"


def parts_of(name: str) -> tuple[str, ...]:
    """Return an entry's path as names below the folder it goes into; Refused where it leads out."""
    path = name.replace("\\", "/")
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        raise Refused("an absolute path")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Refused("its path leads out of the archive (..)")
    if not parts:
        raise Refused("it has no name")
    for part in parts:
        check_name(part)
    return parts


def check_name(part: str) -> None:
    """Refused where a name isn't one that every system can have."""
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        raise Refused("its name isn't UTF-8") from None
    if size > MAX_NAME_BYTES:
        raise Refused("its name is too long")
    if any(unicodedata.category(sign) == "Cc" for sign in part):
        raise Refused("control characters in its name")


def is_hidden(parts: tuple[str, ...]) -> bool:
    """What systems leave behind and no student means to hand in."""
    return any(part.startswith(".") or part in ("__MACOSX", "Thumbs.db") for part in parts)


class Opened:
    """A submission laid open in the folder `into`, with what was `refused`, in words; `summed` has one line
    for each source, however much of it was."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self.refused: list[str] = []
        self.summed: list[str] = []
        self._reasons: dict[str, list[str]] = defaultdict(list)
        self._left_bytes = MAX_BYTES
        self._left_files = MAX_FILES
        self._spooled = 0
        self._more = 0

    def take(self, source: Path) -> None:
        """Take a file, folder or archive of a submission; several may be taken, one by one."""
        try:
            if stat.S_ISDIR(source.lstat().st_mode):
                self._folder(source, ())
            else:
                self._file(source, (), source.name)
        except Full as error:
            self._refuse(source.name, f"{error}: what comes after is not read")
        except OSError as error:
            self._refuse(source.name, error.strerror or "can't be read")
        if self._more:
            self.refused.append(f"and {self._more} more refused")
            self._more = 0
        if self._reasons:
            self.summed.append(self._sum(shown(source.name)))
            self._reasons.clear()

    def _sum(self, source: str) -> str:
        """What was refused of a source, in one line: each reason with some names."""
        total = sum(map(len, self._reasons.values()))
        parts = []
        for why, names in self._reasons.items():
            if len(names) == total == 1:
                return f"{names[0]}: {why}"
            names = [name.removeprefix(f"{source}/") for name in names]
            more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
            parts.append(f"{why} ({', '.join(names[:MAX_NAMED])}{more})")
        return f"{total} of {source}: {'; '.join(parts)}"

    def _refuse(self, name: object, why: object) -> None:
        self._reasons[shown(why)].append(shown(name))
        if len(self.refused) < MAX_WORDS:
            self.refused.append(f"{shown(name)}: {shown(why)}")
        else:
            self._more += 1

    def _folder(self, folder: Path, parts: tuple[str, ...]) -> None:
        if len(parts) > MAX_FOLDERS_DEEP:
            self._refuse("/".join(parts), f"more than {MAX_FOLDERS_DEEP} folders deep")
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
                    self._folder(path, (*parts, name))
                else:
                    self._file(path, parts, name)
            except Refused as error:
                self._refuse("/".join((*parts, name)), error)
            except OSError as error:
                self._refuse("/".join((*parts, name)), error.strerror or "can't be read")

    def _file(self, path: Path, parts: tuple[str, ...], name: str) -> None:
        """A file of the submission's folder. What isn't a plain file isn't opened at all."""
        where = "/".join((*parts, name))
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return self._refuse(where, "a symbolic link")
        if not stat.S_ISREG(status.st_mode):
            return self._refuse(where, "neither a file nor a folder")
        if status.st_nlink > 1:
            return self._refuse(where, "a hard link: the same file stands elsewhere, too; copy it")
        # Between the look and this, nobody puts a pipe in its place that would hold us up.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as content:
            try:
                self._entry(content, (*parts, name), status.st_size, 1)
            except Refused as error:
                self._refuse(where, error)
        return None

    def _entry(self, content: BinaryIO, parts: tuple[str, ...], size: int, deep: int) -> None:
        """Store a file's content, or, if it is an archive, what is in it."""
        name = parts[-1]
        if is_archive(name):
            if deep > MAX_ARCHIVES_DEEP:
                raise Refused(f"archives in archives, more than {MAX_ARCHIVES_DEEP} deep")
            self._spooled += 1
            spool = self.into.with_name(f"{self.into.name}.spool{self._spooled}")
            try:
                self._write(content, spool, size, MAX_BYTES)
                # As `raw` a run knows its files; any other archive is a folder of its own name.
                self._archive(spool, (*parts[:-1], "raw") if name == ARCHIVE else parts, deep)
            finally:
                spool.unlink(missing_ok=True)
        elif UNREAD_ARCHIVE.search(name):
            raise Refused("an archive that isn't read here; ask for a zip or tar.gz")
        else:
            target = self.into.joinpath(*parts)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._write(content, target, size, MAX_FILE_BYTES)
            except (FileExistsError, NotADirectoryError):
                raise Refused("this name stands twice; the first is taken") from None

    def _write(self, content: BinaryIO, target: Path, size: int, most: int) -> None:
        """Copy at most `most` bytes and what is left of the limits; what was said of it is no proof."""
        if size > most:
            raise Refused(f"larger than {most >> 20} MiB")
        self._left_files -= 1
        if self._left_files < 0:
            raise Full(f"more than {MAX_FILES} files")
        written = 0
        with open(target, "xb") as file:
            while piece := content.read(CHUNK):
                written += len(piece)
                self._left_bytes -= len(piece)
                if written > most or self._left_bytes < 0:
                    break
                file.write(piece)
        if self._left_bytes < 0:
            target.unlink()
            raise Full(f"more than {MAX_BYTES >> 20} MiB, unpacked")
        if written > most:
            target.unlink()
            raise Refused(f"larger than {most >> 20} MiB")

    def _archive(self, path: Path, parts: tuple[str, ...], deep: int) -> None:
        try:
            if parts[-1].lower().endswith(".zip"):
                self._zip(path, parts, deep)
            else:
                self._tar(path, parts, deep)
        except Full:
            raise
        except MemoryError:
            raise Refused("needs more memory than a submission may have") from None
        except BROKEN as error:
            raise Refused(f"is damaged, or no archive ({type(error).__name__})") from None

    def _zip(self, path: Path, parts: tuple[str, ...], deep: int) -> None:
        with zipfile.ZipFile(path) as packed:
            for info in packed.infolist():
                where = f"{'/'.join(parts)}/{info.filename}"
                try:
                    below = parts_of(info.filename)
                    if info.is_dir() or is_hidden(below):
                        continue
                    _check_entry(info)
                    self._check_depth((*parts, *below))
                    with packed.open(info) as content:
                        self._entry(
                            cast(BinaryIO, content), (*parts, *below), info.file_size, deep + 1
                        )
                except Refused as error:
                    self._refuse(where, error)
                except Full:
                    raise
                except BROKEN as error:
                    self._refuse(where, f"can't be unpacked ({type(error).__name__})")

    def _tar(self, path: Path, parts: tuple[str, ...], deep: int) -> None:
        suffix = parts[-1].lower().rsplit(".", 1)[-1] if parts[-1] != "raw" else "xz"
        with (
            OPENERS[suffix](path) as packed,
            tarfile.open(fileobj=cast(BinaryIO, _Bounded(packed)), mode="r|") as tar,
        ):
            for entry in tar:
                where = f"{'/'.join(parts)}/{entry.name}"
                try:
                    below = parts_of(entry.name)
                    if entry.isdir() or is_hidden(below):
                        continue
                    if not entry.isreg():
                        kind = "a link" if entry.issym() or entry.islnk() else "no plain file"
                        raise Refused(f"{kind}, not a file")
                    self._check_depth((*parts, *below))
                    content = tar.extractfile(entry)
                    assert content is not None  # what isreg() makes sure of
                    self._entry(cast(BinaryIO, content), (*parts, *below), entry.size, deep + 1)
                except Refused as error:
                    self._refuse(where, error)

    def _check_depth(self, parts: tuple[str, ...]) -> None:
        if len(parts) > MAX_FOLDERS_DEEP:
            raise Refused(f"more than {MAX_FOLDERS_DEEP} folders deep")


def _check_entry(info: zipfile.ZipInfo) -> None:
    """A zip's entry that is a plain file, packed in the usual way, and no bomb."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise Refused("a symbolic link")
    if kind not in (0, stat.S_IFREG):
        raise Refused("neither a file nor a folder")
    if info.flag_bits & 1:
        raise Refused("encrypted; ask for it without a password")
    # Of other methods, a few bytes can unpack to any number at once.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused("packed by a method that isn't read here; ask for a usual zip")
    if (
        info.file_size > RATIO_FROM_BYTES
        and info.file_size > MAX_RATIO * max(info.compress_size, 1)
    ):  # fmt: skip
        raise Refused(f"unpacks to more than {MAX_RATIO} times its size, as a zip bomb does")


class _Bounded:
    """A stream that ends in Full after MAX_BYTES: what a tar says of its sizes is no proof."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = MAX_BYTES

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(piece)
        if self._left < 0:
            raise Full(f"more than {MAX_BYTES >> 20} MiB, unpacked")
        return piece
