"""Submissions laid open: nothing leads out, nothing fills the disk, and the rest is taken."""

import io
import lzma
import os
import random
import stat
import struct
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from measuretwice.runs import unpack
from measuretwice.runs.unpack import Extractor


@pytest.fixture
def extractor(tmp_path: Path) -> Extractor:
    (tmp_path / "session").mkdir()
    tree = tmp_path / "session/files"
    tree.mkdir()
    return Extractor(tree)


def files(extractor: Extractor) -> list[str]:
    found = sorted(path for path in extractor.into.rglob("*") if not path.is_dir())
    assert not any(path.is_symlink() for path in found)
    return [path.relative_to(extractor.into).as_posix() for path in found]


def nothing_else(extractor: Extractor) -> None:
    """No spool left, and nothing beside the folder."""
    assert list(extractor.into.parent.iterdir()) == [extractor.into]


def zipped(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in entries:
            packed.writestr(name, content)
    return path


def special(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (kind | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../x", "leads out"),
        ("a/../../x", "leads out"),
        ("..\\x", "leads out"),
        ("/etc/x", "absolute"),
        ("\\\\server\\x", "absolute"),
        ("C:\\x", "absolute"),
        ("C:x", "absolute"),
        ("a\nb", "control characters"),
        ("a\x1b[31m", "control characters"),
        ("x" * 201, "too long"),
        ("/".join("a" * 40), "folders deep"),
        (special("link", stat.S_IFLNK), "symbolic link"),
        (special("pipe", stat.S_IFIFO), "neither a file"),
        (special("disk", stat.S_IFBLK), "neither a file"),
        ("runs.7z", "isn't read here"),
    ],
)
def test_an_entry_is_refused_and_the_rest_taken(
    extractor: Extractor, tmp_path: Path, name: str | zipfile.ZipInfo, says: str
) -> None:
    extractor.extract(zipped(tmp_path / "a.zip", (name, "/etc/passwd"), ("good/ping.txt", "yes")))
    assert files(extractor) == ["a.zip/good/ping.txt"]
    assert len(extractor.summary) == 1
    assert says in extractor.summary[0]
    assert "\x1b" not in extractor.summary[0]
    assert "\n" not in extractor.summary[0]
    nothing_else(extractor)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice(extractor: Extractor, tmp_path: Path) -> None:
    extractor.extract(zipped(tmp_path / "a.zip", ("x", "first"), ("x", "second"), ("x/y", "third")))
    assert (extractor.into / "a.zip/x").read_text() == "first"
    [line] = extractor.summary
    assert line == "2 of a.zip: this name is there twice; the first is taken (x, x/y)"


def test_a_bomb(extractor: Extractor, tmp_path: Path) -> None:
    extractor.extract(zipped(tmp_path / "a.zip", ("bomb", bytes(20 << 20)), ("good", "yes")))
    assert files(extractor) == ["a.zip/good"]
    assert "zip bomb" in extractor.summary[0]


def test_a_bomb_that_lies_about_its_size(extractor: Extractor, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", ("bomb", bytes(3 << 20)), ("good", "yes"))
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(mark) + offset, 100)
    path.write_bytes(data)
    extractor.extract(path)
    assert "a.zip/good" in files(extractor)
    assert sum(f.stat().st_size for f in extractor.into.rglob("*") if f.is_file()) < 1000
    assert extractor.summary


def test_all_files_together_are_limited(
    extractor: Extractor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MAX_BYTES", 4 << 20)
    extractor = Extractor(extractor.into)
    content = os.urandom(300 << 10)
    extractor.extract(zipped(tmp_path / "a.zip", *((f"{n}", content) for n in range(9))))
    assert sum(f.stat().st_size for f in extractor.into.rglob("*") if f.is_file()) <= 4 << 20
    assert "what comes after is not read" in extractor.summary[-1]
    nothing_else(extractor)


def test_so_many_files(
    extractor: Extractor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MAX_FILES", 100)
    extractor = Extractor(extractor.into)
    extractor.extract(zipped(tmp_path / "a.zip", *((f"{n}", "") for n in range(300))))
    assert len(files(extractor)) == 99  # the archive itself is one
    assert "more than 100 files" in extractor.summary[-1]


def test_a_thousand_files_take_no_time(extractor: Extractor, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", *((f"d{n % 7}/{n}", "x" * 2000) for n in range(1000)))
    began = time.process_time()
    extractor.extract(path)
    assert time.process_time() - began < 5
    assert len(files(extractor)) == 1000
    assert not extractor.summary


def test_archives_in_archives(extractor: Extractor, tmp_path: Path) -> None:
    content = b"yes"
    name = "ping.txt"
    for deep in range(5):
        content = zipped(tmp_path / "x", (name, content), (f"beside{deep}", "x")).read_bytes()
        name = "inner.zip"
    (tmp_path / "a.zip").write_bytes(content)
    extractor.extract(tmp_path / "a.zip")
    assert [name.rsplit("/", 1)[-1] for name in files(extractor)] == [
        "beside4",
        "beside3",
        "beside2",
    ]
    assert "more than 3 deep" in extractor.summary[0]
    nothing_else(extractor)


def test_encrypted_and_unusual(extractor: Extractor, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", ("secret", "x"), ("good", "yes"))
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    extractor.extract(path)
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("odd", "x")
    extractor.extract(tmp_path / "b.zip")
    assert files(extractor) == ["a.zip/good"]
    assert "encrypted" in extractor.summary[0]
    assert "by a method" in extractor.summary[1]


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"no archive at all", pytest.param(random.Random(5).randbytes(5000), id="noise")],
)
@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.bz2"])
def test_damaged(extractor: Extractor, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    extractor.extract(tmp_path / name)
    assert files(extractor) == []
    assert len(extractor.summary) == 1
    nothing_else(extractor)


def test_cut_off(extractor: Extractor, tmp_path: Path) -> None:
    whole = tmp_path / "whole.tar.gz"
    with tarfile.open(whole, "w:gz") as tar:
        for name in ("first", "second"):
            entry = tarfile.TarInfo(name)
            entry.size = 200_000
            tar.addfile(entry, io.BytesIO(os.urandom(200_000)))
    (tmp_path / "a.tar.gz").write_bytes(whole.read_bytes()[:300_000])
    extractor.extract(tmp_path / "a.tar.gz")
    assert "a.tar.gz/first" in files(extractor)
    assert "damaged" in extractor.summary[0]


def tar_of(path: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:" + {"gz": "gz", "xz": "xz"}.get(path.suffix[1:], "")) as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return path


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, size: int = 1, link: str = ""
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, size if kind == tarfile.REGTYPE else 0
    return member


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz"])
def test_a_tar_with_links_and_devices(extractor: Extractor, tmp_path: Path, name: str) -> None:
    extractor.extract(
        tar_of(
            tmp_path / name,
            entry("link", tarfile.SYMTYPE, link="/etc/passwd"),
            entry("hard", tarfile.LNKTYPE, link="/etc/passwd"),
            entry("pipe", tarfile.FIFOTYPE),
            entry("disk", tarfile.BLKTYPE),
            entry("../out"),
            entry("/out"),
            entry("good"),
        )
    )
    assert files(extractor) == [f"{name}/good"]
    assert extractor.summary[0].startswith(f"6 of {name}: ")


def test_a_tar_bomb(extractor: Extractor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MAX_BYTES", 1 << 20)
    extractor = Extractor(extractor.into)
    with (
        lzma.open(tmp_path / "raw.tar.xz", "wb") as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        for n in range(3_000):
            tar.addfile(entry(str(n), size=0))
    began = time.process_time()
    extractor.extract(tmp_path / "raw.tar.xz")
    assert time.process_time() - began < 10
    assert "not read" in extractor.summary[-1]


def test_recorded_raw_files_become_a_folder(extractor: Extractor, tmp_path: Path) -> None:
    run = tmp_path / "mine/run"
    run.mkdir(parents=True)
    tar_of(run / "raw.tar.xz", entry("romeo/ping.txt"))
    extractor.extract(tmp_path / "mine")
    assert files(extractor) == ["run/raw/romeo/ping.txt"]


def test_a_folder_with_what_is_no_file(extractor: Extractor, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "deep").mkdir(parents=True)
    (mine / "good").write_text("yes")
    (mine / "deep/one").write_text("x")
    os.link(mine / "deep/one", mine / "deep/two")
    (mine / "passwd").symlink_to("/etc/passwd")
    (mine / "everything").symlink_to("/")
    os.mkfifo(mine / "pipe")
    (mine / ".hidden").write_text("x")
    with open(os.fsencode(mine) + b"/\xe9t\xe9", "w") as file:
        file.write("x")
    with open(mine / "huge", "w") as file:
        file.truncate(100 << 30)
    extractor.extract(mine)
    assert files(extractor) == ["good"]
    [line] = extractor.summary
    for words in ("hard link", "symbolic link", "neither a file", "UTF-8", "larger than"):
        assert words in line
    assert line.startswith("7 of mine: ")


def test_a_submission_that_is_a_link(extractor: Extractor, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to("/etc")
    extractor.extract(tmp_path / "mine")
    assert files(extractor) == []
    assert "symbolic link" in extractor.summary[0]


def test_two_hundred_refusals_are_one_line(extractor: Extractor, tmp_path: Path) -> None:
    outside = ((f"../x{n}", "x") for n in range(150))
    links = ((special(f"l{n}", stat.S_IFLNK), "x") for n in range(50))
    extractor.extract(zipped(tmp_path / "a.zip", *outside, *links, ("good", "yes")))
    assert extractor.summary == [
        "200 of a.zip: its path leads out of the archive (..) (../x0, ../x1, ../x2 and 147 more); "
        "a symbolic link (l0, l1, l2 and 47 more)"
    ]
    # Of the next, only what was refused of it.
    extractor.extract(zipped(tmp_path / "b.zip", ("../y\x1b[31m", "x")))
    assert extractor.summary[1:] == ["b.zip/../y\ufffd[31m: its path leads out of the archive (..)"]
