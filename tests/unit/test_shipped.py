"""What ./lab doctor says of the machines that come with the checkout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from measuretwice.backends import machines


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machines, "SHIPPED", tmp_path)
    (tmp_path / "kernel.tar.xz").write_bytes(b"stands for an archive")
    digest = hashlib.sha256(b"stands for an archive").hexdigest()
    (tmp_path / "kernel.json").write_text(json.dumps({"sha256": digest}))
    return tmp_path


def test_a_whole_archive(archives: Path) -> None:
    assert machines.damaged_archive("kernel") is None


def test_the_real_archives() -> None:
    assert [machines.damaged_archive(kind) for kind in ("kernel", "browser")] == [None, None]


def test_another_archive(archives: Path) -> None:
    (archives / "kernel.tar.xz").write_bytes(b"stands for anything else")
    assert "isn't what its manifest names: git checkout" in str(machines.damaged_archive("kernel"))


def test_no_archive(archives: Path) -> None:
    (archives / "kernel.tar.xz").unlink()
    assert "is missing: git checkout" in str(machines.damaged_archive("kernel"))


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_a_damaged_manifest(archives: Path, text: str) -> None:
    (archives / "kernel.json").write_text(text)
    assert "can't be compared with its manifest" in str(machines.damaged_archive("kernel"))
