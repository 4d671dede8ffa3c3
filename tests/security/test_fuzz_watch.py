"""The watch over readers sees what they may not do."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import hostile
import pytest
from hostile import watched

from measuretwice.base.errors import UserError


def a_link(folder: Path) -> None:
    (folder / "link").symlink_to("/tmp")
    (folder / "link" / "mt-outside").write_text("x")


def a_swallowed_process(folder: Path) -> None:
    try:
        subprocess.run(["true"], check=True)
    except Exception:
        return


FORBIDDEN: dict[str, Callable[[Path], object]] = {
    "a process": lambda _: subprocess.run(["true"], check=True),
    "one that is hushed up": a_swallowed_process,
    "a command": lambda _: os.system("true"),
    "a fork": lambda _: os.fork(),
    "a file elsewhere": lambda _: Path("/tmp/mt-outside").write_text("x"),
    "a file above": lambda folder: (folder / ".." / "outside").write_text("x"),
    "a file by a link": a_link,
    "a secret": lambda _: Path("/etc/passwd").read_text(),
    "a removed file": lambda folder: (folder.parent / "kept").unlink(),
    "a moved file": lambda folder: (folder.parent / "kept").rename(folder / "x"),
    "a folder elsewhere": lambda folder: (folder.parent / "new").mkdir(),
    "a connection": lambda _: socket.create_connection(("127.0.0.1", 9)),
    "a hang": lambda _: all(True for _ in iter(int, 1)),
    "another error": lambda _: {}["x"],
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_no_reader_may_do_is_seen(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile, "MOST_S", 0.2)
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "kept").write_text("x")
    with pytest.raises((AssertionError, KeyError)), watched(folder, UserError):
        FORBIDDEN[what](folder)
    assert (tmp_path / "kept").is_file()
    assert not Path("/tmp/mt-outside").exists()


def test_what_a_reader_may_do_passes(tmp_path: Path) -> None:
    with watched(tmp_path, UserError):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "b").write_text("x")
        assert Path(__file__).read_text()
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "c").write_text("x")
        raise UserError("a line")
    # And after it, everything: a watch ends.
    assert subprocess.run(["true"], check=False).returncode == 0


def test_an_error_in_several_lines_is_none(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="several lines"), watched(tmp_path, ValueError):
        raise ValueError("a\nb")
