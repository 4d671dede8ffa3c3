"""Recorded runs to look at, unpacked as ./lab run leaves them, so that a test may damage its copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from measuretwice.runs.folder import ARCHIVE, raw_folder

SAMPLES = Path(__file__).parents[2] / "sample-data"
# What a test damages: one flow through netem, in a folder whose name says nothing.
RUN = SAMPLES / "01-mathis/case-05-broken/trial-09-seed1"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a run with its raw files in a folder."""
    copy = tmp_path / "a-run"
    shutil.copytree(RUN, copy)
    with raw_folder(RUN) as raw:
        shutil.copytree(raw, copy / "raw")
    (copy / ARCHIVE).unlink()
    return copy
