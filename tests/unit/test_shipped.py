"""What ./lab doctor says of the machines that come with the checkout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from measuretwice.backends import shipped


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped, "MACHINES", tmp_path)
    (tmp_path / "kernel.tar.xz").write_bytes(b"stands for an archive")
    digest = hashlib.sha256(b"stands for an archive").hexdigest()
    (tmp_path / "kernel.json").write_text(json.dumps({"sha256": digest}))
    return tmp_path


def test_a_whole_archive(machines: Path) -> None:
    assert shipped.damaged_archive("kernel") is None


def test_the_real_archives() -> None:
    assert [shipped.damaged_archive(kind) for kind in ("kernel", "browser")] == [None, None]


def test_another_archive(machines: Path) -> None:
    (machines / "kernel.tar.xz").write_bytes(b"stands for anything else")
    assert "isn't what its manifest names: git checkout" in str(shipped.damaged_archive("kernel"))


def test_no_archive(machines: Path) -> None:
    (machines / "kernel.tar.xz").unlink()
    assert "is missing: git checkout" in str(shipped.damaged_archive("kernel"))


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_a_damaged_manifest(machines: Path, text: str) -> None:
    (machines / "kernel.json").write_text(text)
    assert "can't be compared with its manifest" in str(shipped.damaged_archive("kernel"))
