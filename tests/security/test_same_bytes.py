"""What the kernel's process may reach decides no byte of a run: so it is no part of the kernel's name in plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from inside import built_kernel
from outside import ROOT

from measuretwice.backends import virtual
from measuretwice.backends.virtual import Virtual
from measuretwice.execute.batch import open_batch
from measuretwice.lab import load_lab
from measuretwice.runs.folder import digest_of

WALL = virtual._wall


# Trial 17 of buffers: two programs begin together, and which comes first follows from all that the guest does.
@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize(
    "other", [lambda folders: "MT_NO_WALL=1", lambda folders: WALL(folders, "ro")],
    ids=["no wall", "the host is asked each time"],
)  # fmt: skip
@pytest.mark.parametrize(("name", "trial"), [("mathis", 7), ("buffers", 17)])
def test_the_same_whatever_the_wall(
    name: str,
    trial: int,
    other: Callable[[tuple[str, ...]], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = load_lab(ROOT, name)
    batch = open_batch(ROOT, lab, tmp_path, Virtual(built_kernel()))
    job = batch.job(trial, seed=3, changes={"duration_s": 10})
    digests = []
    for wall in (WALL, other):
        monkeypatch.setattr(virtual, "_wall", wall)
        work = tmp_path / str(len(digests))
        (work / "raw").mkdir(parents=True)
        job.backend.measure(lab, job.plan, ROOT, work, 120)
        assert (work / "raw/finished").exists()
        digests.append(digest_of(work / "raw"))
    assert digests[0] == digests[1]
