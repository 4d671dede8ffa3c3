"""A worker of a page: the archive that pages load, answering as it does there, without any library of this machine's.

The machine prints what recorded runs did.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuretwice.runs.folder import DONE, raw_folder

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample-data"
FACTS = json.dumps({"version": "7.2", "programs": {"bash": "5.2"}})
# A worker of a page: requests come a line each, and so do answers. -I and -S: nothing of this machine's is found.
WORKER = """
import json, sys
sys.path[:0] = [f"{sys.argv[1]}/{name}" for name in ("src/measuretwice/in_page/shims", "src", "libraries")]
from measuretwice.in_page.api import PageApi
api = PageApi(sys.argv[1], sys.argv[2], "0123456789abcdef", sys.argv[3])
for line in sys.stdin:
    what, request = json.loads(line)
    print(api.ask(what, json.dumps(request)), flush=True)
"""


class Worker:
    def __init__(self, kit: Path, runs: Path) -> None:
        self.runs = runs
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", WORKER, str(kit), str(runs), FACTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def book(self) -> str:
        """The lab book of mathis."""
        return (self.runs / "mathis/lab-book.md").read_text(encoding="utf-8")

    def whole(self, work: str, /, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([work, request]), file=self.process.stdin, flush=True)
        return dict(json.loads(self.process.stdout.readline()))

    def ask(self, work: str, /, **request: Any) -> Any:
        reply = self.whole(work, **request)
        assert "answer" in reply, reply
        return reply["answer"]

    def problem(self, work: str, /, **request: Any) -> str:
        return str(self.whole(work, **request)["problem"])

    def run(self, lab: str, given: str, **request: Any) -> str:
        """A run as a page makes it, where the machine prints what a recorded run did; return its folder's name."""
        [job] = self.ask("plan", lab=lab, **request)["jobs"]
        self.ask("begin", folder=job["folder"])
        self.ask("conclude", folder=job["folder"], given=give(self, given), said="")
        return str(job["folder"])

    def run_all(self, lab: str, *given: str, **request: Any) -> list[str]:
        """All runs of a task, where the machine prints for each what a run of these recorded sets did: that of its trial and
        seed, or of the trial's last seed before that; return the folders' names in the task's order."""
        jobs = self.ask("plan", lab=lab, **request)["jobs"]
        folders = []
        while jobs:
            for job in jobs:
                folders.append(str(job["folder"]))
                if not job["finished"]:
                    self.ask("begin", folder=job["folder"])
                    tar = give(self, nearest(given, job["trial"], job["seed"]))
                    self.ask("conclude", folder=job["folder"], given=tar, said="")
            jobs = self.ask("finish").get("jobs", [])
        return folders


def nearest(sets: Sequence[str], trial: int, seed: int) -> str:
    """The recorded run of a trial in one of these sets, with this seed or the last before it."""
    names = (f"{name}/trial-{trial:02d}-seed{n}" for n in range(seed, 0, -1) for name in sets)
    return next(name for name in names if (SAMPLES / name).is_dir())


def add_recorded(packed: tarfile.TarFile, recorded: str) -> None:
    """Put a recorded run's raw files into a tar file."""
    [run] = (path.parent for path in (SAMPLES / recorded).rglob(DONE))
    with raw_folder(run) as raw:
        packed.add(raw, "raw")


def give(worker: Worker, recorded: str) -> str:
    """What a machine would have given: the raw files of a recorded run, as a tar file."""
    tar = worker.runs.with_name("given.tar")
    with tarfile.open(tar, "w") as packed:
        add_recorded(packed, recorded)
        packed.addfile(tarfile.TarInfo("raw/finished"), io.BytesIO())
    return str(tar)
