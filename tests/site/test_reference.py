"""The reference pages: what they say of files, held against recorded runs."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_raw_file_is_explained() -> None:
    page = (ROOT / "docs/reference/run-folder.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([^`/ ]+)`", page))
    archives = sorted(ROOT.glob("sample-data/*/*-broken/*/raw.tar.xz"))
    assert archives
    for archive in archives:
        with tarfile.open(archive) as packed:
            for name in packed.getnames():
                file = Path(name).name
                # A step's own log has the step's name: they are explained together.
                assert file in explained or file.endswith(".log"), name
