"""What the kernel's process may reach decides no byte of a run: so it is no part of the kernel's name in plans."""

from __future__ import annotations

from pathlib import Path

import pytest
from outside import ROOT

from measuretwice.backends import uml
from measuretwice.backends.virtual import Virtual
from measuretwice.execute.batch import open_batch
from measuretwice.lab import load_lab
from measuretwice.runs.archive import digest_of


@pytest.mark.kernel
@pytest.mark.slow
def test_with_the_wall_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = uml.find_kernel()
    if kernel is None:
        pytest.skip("the virtual kernel is not built: run scripts/kernel/build.sh")
    lab = load_lab(ROOT, "mathis")
    batch = open_batch(ROOT, lab, tmp_path, Virtual(kernel))
    job = batch.job(7, seed=3, changes={"duration_s": 10})
    digests = []
    for name in ("with", "without"):
        if name == "without":
            monkeypatch.setattr(uml, "_wall", lambda folders: "MT_NO_WALL=1")
        work = tmp_path / name
        (work / "raw").mkdir(parents=True)
        job.backend.measure(lab, job.plan, ROOT, work, 120)
        assert (work / "raw/finished").exists()
        digests.append(digest_of(work / "raw"))
    assert digests[0] == digests[1]
