"""The course's own runs of a lab, as far as a class's runs are held against them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.grading.likeness import Sketch, sketches
from measuretwice.grading.read import COOKIE
from measuretwice.lab import Lab, kernel_seed
from measuretwice.runs.folder import ARCHIVE, raw_files
from measuretwice.runs.recorded import RecordedRun, read_set, set_folders


@dataclass(frozen=True)
class RecordedTrace:
    """What a recorded run is known by: its set and name, the kernel's seed, its raw files' digests and sketches."""

    name: str
    kernel_seed: int
    files: dict[str, str]
    sketches: dict[str, Sketch]


@dataclass(frozen=True)
class Recorded:
    """Recorded runs: their raw files' digests, of each test's cookie the trial and seed, and those whose raw
    files are kept."""

    digests: frozenset[str]
    cookies: dict[str, tuple[int, int]]
    traces: tuple[RecordedTrace, ...] = field(default=())


def read_recorded(root: Path, lab: Lab) -> Recorded:
    """Read what sample-data/ has of a lab; nothing where it has none."""
    digests: set[str] = set()
    cookies: dict[str, tuple[int, int]] = {}
    traces = []
    samples = root / "sample-data" / lab.folder.name
    for folder in set_folders(samples):
        for recorded in read_set(folder).runs:
            digests.add(recorded.raw_sha256)
            result = recorded.result
            if (result.run_dir / ARCHIVE).is_file():
                raw = raw_files(result.run_dir)
                found = {c.decode() for text in raw.values() for c in COOKIE.findall(text)}
                cookies |= dict.fromkeys(found, (result.trial, result.seed))
                traces.append(_trace(lab, folder.name, recorded, raw))
    return Recorded(frozenset(digests), cookies, tuple(traces))


def _trace(lab: Lab, name: str, recorded: RecordedRun, raw: dict[str, bytes]) -> RecordedTrace:
    result = recorded.result
    return RecordedTrace(
        f"{name}/{recorded.name}",
        kernel_seed(lab.name, result.trial, result.seed),
        {file: hashlib.sha256(content).hexdigest() for file, content in raw.items()},
        sketches(lab, result.params, raw),
    )
