"""Raw files in one compressed file: recorded runs keep theirs so. The same files, the same bytes."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from measuretwice.base.errors import UserError

ARCHIVE = "raw.tar.xz"
# How the names of files end that hold others, and can be unpacked.
ENDS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
# A run's raw files are some MB; an archive that says more than this is no run's.
MAX_BYTES = 512 * 2**20
MAX_FILES = 10_000


def is_archive(name: str) -> bool:
    """Is it, by its name, a file with others in it that can be unpacked?"""
    return name.lower().endswith(ENDS)


def pack(raw: Path, archive: Path) -> None:
    """Write `raw`'s files to `archive`: by name in order, without owner, mode or time."""
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, path in files_of(raw).items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            with open(path, "rb") as content:
                tar.addfile(entry, content)


def files_of(raw: Path) -> dict[str, Path]:
    """Return the files below `raw` by their name there, in order."""
    found = {path.relative_to(raw).as_posix(): path for path in raw.rglob("*") if path.is_file()}
    return dict(sorted(found.items()))


def digest_of(raw: Path) -> str:
    """Return digest_of_files of what lies below `raw`."""
    return digest_of_files((name, path.read_bytes()) for name, path in files_of(raw).items())


def digest_of_files(files: Iterable[tuple[str, bytes]]) -> str:
    """Return one SHA-256 for all files, in order of their names: of a line 'digest  name' for each."""
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextmanager
def raw_folder(run: Path) -> Iterator[Path]:
    """Yield the folder with a run's raw files, unpacked for as long as it is needed.

    UserError where the archive is damaged, or holds anything but plain files of its own.
    """
    archive = run / ARCHIVE
    if (run / "raw").exists() or not archive.exists():
        yield run / "raw"
        return
    with tempfile.TemporaryDirectory(prefix="measuretwice-") as folder:
        try:
            for name, content in _files_in(archive):
                target = Path(folder) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        except OSError as error:
            raise UserError(f"{archive}: can't be unpacked in {folder}: {error.strerror}") from None
        yield Path(folder)


def raw_files(run: Path) -> dict[str, bytes]:
    """Return a run's raw files by name, all of them in memory; errors as raw_folder's.

    A folder of small files takes as long to write as the archive to read.
    """
    archive = run / ARCHIVE
    if (run / "raw").exists() or not archive.exists():
        return {name: path.read_bytes() for name, path in files_of(run / "raw").items()}
    return dict(sorted(_files_in(archive)))


def _files_in(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Plain files only, with names inside it only: no more than MAX_FILES, MAX_BYTES together."""
    left = MAX_BYTES
    if not archive.is_file():  # a pipe would wait for ever
        raise UserError(f"{archive}: not a plain file; get it or record it again")
    try:
        with lzma.open(archive, "rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            for count, entry in enumerate(tar, 1):
                if count > MAX_FILES:
                    raise tarfile.TarError(f"more than {MAX_FILES} files")
                name = PurePosixPath(entry.name)
                left -= entry.size
                if not entry.isreg() or name.is_absolute() or ".." in name.parts or left < 0:
                    raise tarfile.TarError(f"{entry.name!r} has no place in it")
                content = tar.extractfile(entry)
                yield name.as_posix(), (content or io.BytesIO()).read()
            while packed.read(2**20):  # to the end: only there does a cut-off archive show
                pass
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise UserError(f"{archive}: is damaged ({error}); get it or record it again") from None
