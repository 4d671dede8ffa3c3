"""Which recorded sets were made a second time and came out the same: sample-data/NN-<lab>/verified.json.

A note is of the very bytes that were recorded: a set that is recorded anew has none.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.runs.folder import PLAN, PROVENANCE
from measuretwice.runs.provenance import Machine
from measuretwice.runs.recorded import RecordedSet

VERIFIED_FILE = "verified.json"


@dataclass(frozen=True)
class Verification:
    """A set's second run: of which bytes, on which day, where, and how long its runs took together.

    `real_s` is in seconds by the clock on the wall, added up over the runs, of which several may have
    run at a time. `scripts` are the digests of those of the runs' scripts that had changed since the set was
    recorded: what came out the same shows that no byte follows from the change.
    """

    raw_sha256: str
    day: str
    system: str
    processor: str
    real_s: int
    scripts: dict[str, str] = field(default_factory=dict)


def digest_of_set(recorded: RecordedSet) -> str:
    """One digest of all raw files of a set's runs."""
    lines = sorted(f"{run.name} {run.raw_sha256}\n" for run in recorded.runs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def verifications(samples: Path) -> dict[str, Verification]:
    """Return a lab's notes by set, none where there is no file; UserError where it is damaged."""
    path = samples / VERIFIED_FILE
    if not path.is_file():
        return {}
    try:
        return {name: Verification(**row) for name, row in read_object(path).items()}
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: is damaged ({error}); remove it and verify again") from None


def stands(
    noted: Mapping[str, Verification],
    recorded: RecordedSet,
    scripts: Mapping[str, str] | None = None,
) -> bool:
    """Was this set, as it is recorded now, found the same; with these scripts, if they are named?"""
    found = noted.get(recorded.name)
    if found is None or found.raw_sha256 != digest_of_set(recorded):
        return False
    return scripts is None or scripts in (recorded.scripts, {**recorded.scripts, **found.scripts})


def note(samples: Path, recorded: RecordedSet, runs: Iterable[Path]) -> None:
    """Note that a set came out the same from `runs`, which are the folders of its second run."""
    places = list(runs)
    scripts = read_object(places[0] / PLAN)["scripts"]
    found = Verification(
        digest_of_set(recorded),
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        Machine.here().system,
        processor(),
        round(sum(map(_real_s, places))),
        dict(scripts.items() - recorded.scripts.items()),
    )
    kept = {**verifications(samples), recorded.name: found}
    rows = {name: asdict(kept[name]) for name in sorted(kept)}
    for row in rows.values():
        if not row["scripts"]:
            del row["scripts"]
    write_json(samples / VERIFIED_FILE, rows)


def processor() -> str:
    """What Linux calls the processor; "unknown" where it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _real_s(run: Path) -> float:
    provenance = read_object(run / PROVENANCE)
    began, ended = (
        datetime.datetime.fromisoformat(provenance[key]) for key in ("started", "ended")
    )
    return (ended - began).total_seconds()
