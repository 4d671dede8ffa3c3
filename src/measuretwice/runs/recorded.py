"""Recorded sets of runs, as sample-data/ holds them: read here, made by execute/record.py, and which of them were made
a second time and came out the same.

sample-data/NN-<lab>/<set>/results.json     every run's numbers and its raw files' digest
sample-data/NN-<lab>/<set>/<run>/           plan, provenance, result, raw.tar.xz (if kept)
sample-data/NN-<lab>/verified.json          the notes of second runs
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object, write_json
from measuretwice.checks import diagnose, run_under_test
from measuretwice.lab import Lab
from measuretwice.runs.folder import PLAN, PROVENANCE, Machine, digest_of
from measuretwice.runs.result import Result, check_of_lab, from_json, judged

SET_FILE = "results.json"
VERIFIED_FILE = "verified.json"
# Which code derived a result, and where it stood, is no part of it; the verdicts follow from it.
LEFT_OUT = ("derived_by", "run_dir", "expectations", "title")


def short_name(trial: int, seed: int) -> str:
    """A recorded run's folder: its set's name says the rest."""
    return f"trial-{trial:02d}-seed{seed}"


@dataclass(frozen=True)
class RecordedRun:
    """A run's numbers in short.

    `result` has neither title nor verdicts nor findings. `run` is the folder's name that it was
    measured in, `raw_sha256` one digest of all its raw files.
    """

    result: Result
    run: str
    raw_sha256: str

    @classmethod
    def of(cls, result: Result) -> RecordedRun:
        """Return what is recorded of a run that stands in its folder."""
        run = result.run_dir
        return cls(result, run.name, digest_of(run / "raw"))

    @property
    def name(self) -> str:
        """Its folder's name below the set's."""
        return short_name(self.result.trial, self.result.seed)

    def to_json(self) -> dict[str, Any]:
        fields = {key: value for key, value in self.result.to_json().items() if key not in LEFT_OUT}
        return {**fields, "run": self.run, "raw_sha256": self.raw_sha256}

    @classmethod
    def from_json(cls, row: Mapping[str, Any], folder: Path) -> RecordedRun:
        """Return the run of a set in `folder`; KeyError, TypeError or ValueError where it is none."""
        if not isinstance(row["raw_sha256"], str):
            raise ValueError("no digests")
        place = folder / short_name(row["trial"], row["seed"])
        result = from_json(row, title="", findings=(), folder=place)
        return cls(result, str(row["run"]), row["raw_sha256"])


@dataclass(frozen=True)
class RecordedSet:
    """The content of results.json: with what its runs were measured, when (the day), and the runs.

    A `step` is one of those that lead from the first try to the result.
    """

    name: str
    title: str
    step: bool
    kernel: str
    tools: dict[str, str]
    scripts: dict[str, str]
    recorded: str
    machine: Machine
    runs: tuple[RecordedRun, ...]

    def to_text(self) -> str:
        """Return results.json: a line a run, so that a difference shows which."""
        about = {
            "set": self.name,
            "title": self.title,
            "step": self.step,
            "kernel": self.kernel,
            "tools": self.tools,
            "scripts": self.scripts,
            "recorded": self.recorded,
            "machine": self.machine.to_json(),
        }
        head = json.dumps(about, indent=1).removesuffix("\n}")
        lines = ",\n".join(json.dumps(run.to_json()) for run in self.runs)
        return f'{head},\n "runs": [\n{lines}\n]}}\n'


def set_folders(samples: Path) -> list[Path]:
    """Return the folders of a lab's recorded sets, by name.

    One that is being recorded, or was broken off, has a name that begins with a dot, and is none.
    """
    return sorted(path.parent for path in samples.glob(f"[!.]*/{SET_FILE}"))


def read_set(folder: Path) -> RecordedSet:
    """Return a recorded set; UserError where its results.json isn't there or is damaged."""
    path = folder / SET_FILE
    try:
        document = read_object(path)
        return RecordedSet(
            name=document["set"],
            title=document["title"],
            step=document["step"],
            kernel=document["kernel"],
            tools=document["tools"],
            scripts=document["scripts"],
            recorded=document["recorded"],
            machine=Machine(**document["machine"]),
            runs=tuple(RecordedRun.from_json(row, folder) for row in document["runs"]),
        )
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: record it first with ./lab record") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UserError(f"{path}: is damaged ({what}); record it again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: is damaged ({error}); record it again") from None


def results_of(lab: Lab, folder: Path) -> list[Result]:
    """Return a recorded set's runs as results, by their measured values: the verdicts are those of
    today's lab.toml, the findings today's checker's. UserError where they can't be those of runs of this lab."""
    path = folder / SET_FILE
    results = [recorded.result for recorded in read_set(folder).runs]
    for result in results:
        check_of_lab(lab, result, str(path))
    try:
        return [_judged(lab, result) for result in results]
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        what = f"{type(error).__name__}: {error}"
        raise UserError(f"{path}: is damaged ({what}); record it again") from None


def _judged(lab: Lab, result: Result) -> Result:
    findings = diagnose(lab, run_under_test(lab, result.params, result.measured))
    titled = replace(result, title=lab.trials[result.trial].title, findings=tuple(findings))
    return judged(lab, titled)


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


def still_verified(
    noted: Mapping[str, Verification],
    recorded: RecordedSet,
    scripts: Mapping[str, str] | None = None,
) -> bool:
    """Return whether this set, as it is recorded now, was found the same; with these scripts, if they are given."""
    verification = noted.get(recorded.name)
    if verification is None or verification.raw_sha256 != digest_of_set(recorded):
        return False
    return scripts is None or scripts in (
        recorded.scripts,
        {**recorded.scripts, **verification.scripts},
    )


@cache
def same_bytes(samples: Path, name: str, before: str, now: str) -> bool:
    """Return whether a set of a lab's was recorded with one version of a script and came out the same with another, by
    their digests."""
    for set_name, found in verifications(samples).items():
        if found.scripts.get(name) == now and (samples / set_name / SET_FILE).is_file():
            recorded = read_object(samples / set_name / SET_FILE).get("scripts")
            if isinstance(recorded, Mapping) and recorded.get(name) == before:
                return True
    return False


def note_verification(samples: Path, recorded: RecordedSet, runs: Iterable[Path]) -> None:
    """Note that a set came out the same from `runs`, which are the folders of its second run."""
    places = list(runs)
    scripts = read_object(places[0] / PLAN)["scripts"]
    verification = Verification(
        digest_of_set(recorded),
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        Machine.of_host().system,
        processor(),
        round(sum(map(_real_s, places))),
        dict(scripts.items() - recorded.scripts.items()),
    )
    by_name = {**verifications(samples), recorded.name: verification}
    rows = {name: asdict(by_name[name]) for name in sorted(by_name)}
    for row in rows.values():
        if not row["scripts"]:
            del row["scripts"]
    write_json(samples / VERIFIED_FILE, rows)


def processor() -> str:
    """Return Linux' name of the processor, or "unknown"."""
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
