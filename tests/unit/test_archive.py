"""Raw files in an archive: the same bytes each time, and nothing but plain files out of it."""

import io
import lzma
import os
import tarfile
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.runs.folder import ARCHIVE, digest_of, files_of, pack, raw_folder


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    for name, text in (("romeo/ss.txt", "a\n" * 1000), ("juliet/empty.log", ""), ("top", "x")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_packed_and_unpacked_is_the_same(raw: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    pack(raw, run / ARCHIVE)
    with raw_folder(run) as unpacked:
        assert digest_of(unpacked) == digest_of(raw)
        assert list(files_of(unpacked)) == ["juliet/empty.log", "romeo/ss.txt", "top"]
    assert not unpacked.exists()


def test_dates_and_modes_do_not_matter(raw: Path, tmp_path: Path) -> None:
    pack(raw, tmp_path / "one")
    os.utime(raw / "top", (0, 0))
    (raw / "top").chmod(0o600)
    pack(raw, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_digest_knows_names_and_bytes(raw: Path) -> None:
    before = digest_of(raw)
    (raw / "top").rename(raw / "other")
    renamed = digest_of(raw)
    (raw / "other").write_text("y")
    assert len({before, renamed, digest_of(raw)}) == 3


def bad(name: str, kind: bytes = tarfile.REGTYPE, size: int = 1) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.linkname = (
            kind,
            0 if kind != tarfile.REGTYPE else size,
            "/etc",
        )
        tar.addfile(entry, io.BytesIO(b"x" * size))
    return lzma.compress(out.getvalue())


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        b"",
        bad("../outside"),
        bad("/absolute"),
        bad("link", tarfile.SYMTYPE),
        bad("fifo", tarfile.FIFOTYPE),
        bad("whole")[:-20],
    ],
    ids=["text", "empty", "dots", "absolute", "link", "fifo", "cut off"],
)
def test_a_damaged_or_hostile_archive_is_refused_in_words(content: bytes, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / ARCHIVE).write_bytes(content)
    with pytest.raises(UserError, match="is damaged"), raw_folder(run):
        pass
    assert not (tmp_path / "outside").exists()


def test_more_than_a_run_holds_is_refused(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("measuretwice.runs.folder.MAX_BYTES", 100)
    pack(raw, tmp_path / ARCHIVE)
    raw.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="doesn't belong in it"), raw_folder(tmp_path):
        pass


def test_more_files_than_a_run_has_are_refused(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(raw, tmp_path / ARCHIVE)
    there = len(files_of(raw))
    raw.rename(tmp_path / "elsewhere")
    monkeypatch.setattr("measuretwice.runs.folder.MAX_FILES", there)
    with raw_folder(tmp_path) as folder:
        assert len(files_of(folder)) == there
    monkeypatch.setattr("measuretwice.runs.folder.MAX_FILES", there - 1)
    says = f"more than {there - 1} files"
    with pytest.raises(UserError, match=says), raw_folder(tmp_path):
        pass
