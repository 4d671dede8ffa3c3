"""Runs' folders for tests that damage one of their files: real ones, whole, each file by its path."""

from __future__ import annotations

import hashlib
import json
import shlex
from functools import cache
from pathlib import Path

from hostile import ROOT

from measuretwice.backends.script import environment
from measuretwice.lab import load_lab, read_plan
from measuretwice.measure.run import measure
from measuretwice.runs.folder import raw_files, raw_folder
from measuretwice.runs.result import make_result

REPORTED = ROOT / "tests" / "data" / "report" / "trial-07-seed1-b402df08"


def recorded(lab: str) -> Path:
    """The smallest of a lab's recorded runs that have their raw files."""
    archives = (ROOT / "sample-data").glob(f"[0-9]*-{lab}/*/*/raw.tar.xz")
    return min(archives, key=lambda path: (path.stat().st_size, path)).parent


@cache
def run_files(lab: str | None = None) -> dict[str, bytes]:
    """Return a finished run's files by their paths, with all that `./lab run` writes: a lab's recorded one, or one
    of mathis that was cut short."""
    run = recorded(lab) if lab else REPORTED
    found = {f"raw/{name}": content for name, content in raw_files(run).items()}
    for name in ("plan.json", "provenance.json"):
        found[name] = (run / name).read_bytes()
    document = json.loads(found["plan.json"])
    of_lab = load_lab(ROOT, document["lab"])
    plan = read_plan(of_lab, document, "plan.json")
    with raw_folder(run) as raw:
        measured, flows = measure(of_lab, raw, plan.params)
    result = make_result(of_lab, plan, measured, flows)
    found["result.json"] = json.dumps({**result.to_json(), "derived_by": "0" * 64}).encode()
    # What is looked at of it: its head, and its settings.
    exports = [f"export {name}={shlex.quote(value)}\n" for name, value in environment(plan).items()]
    head = f"#!/bin/bash\n# {plan.lab}, trial {plan.trial}, seed {plan.seed}: made by ./lab\n"
    found["experiment.sh"] = (head + "".join(exports)).encode()
    found["DONE"] = b""
    return found


def lay_out(files: dict[str, bytes], folder: Path) -> Path:
    """Write files below a folder, and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def signed(content: bytes) -> bytes:
    """A plan with the digest that it would have: anybody can compute it."""
    try:
        document = json.loads(content)
        if not isinstance(document, dict):
            return content
        decided = {
            name: document[name] for name in document if name not in ("kernel_seed", "digest")
        }
        text = json.dumps(decided, sort_keys=True)
        document["digest"] = hashlib.sha256(text.encode()).hexdigest()[:8]
        return json.dumps(document).encode()
    except (ValueError, RecursionError, TypeError):
        return content
