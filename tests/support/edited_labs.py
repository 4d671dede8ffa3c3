"""Copies of labs with one thing changed in lab.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.lab import read_lab

LABS = Path(__file__).parents[2] / "labs"


def edited_lab(tmp_path: Path, old: str, new: str, lab: str = "01-mathis") -> Path:
    """Copy a lab below `tmp_path`, with `new` for the first `old` in its lab.toml; return the copy's folder."""
    folder = tmp_path / "labs" / lab
    shutil.copytree(LABS / lab, folder, dirs_exist_ok=True)
    text = (LABS / lab / "lab.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "lab.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def refusal(tmp_path: Path, old: str, new: str, lab: str = "01-mathis") -> str:
    """Return what is said of such a copy, which can't be read."""
    with pytest.raises(UserError) as raised:
        read_lab(edited_lab(tmp_path, old, new, lab))
    return str(raised.value)
