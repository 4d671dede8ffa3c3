"""What a page's Python is here: the archive that pages load, in a process of its own."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_worker import ROOT, Worker

from measuretwice.site.machine import kit_archive


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit")
    with zipfile.ZipFile(io.BytesIO(kit_archive(ROOT))) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def worker(kit: Path, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(kit, tmp_path / "runs")
    yield worker
    worker.process.communicate(timeout=60)
