"""Raw is kept, derived is recomputed: a run's result from its raw files, by today's code."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_json
from measuretwice.base.paths import digest_of_packages
from measuretwice.lab import Plan, read_lab
from measuretwice.measure.run import measure
from measuretwice.parse import ParseError
from measuretwice.runs.folder import RESULT
from measuretwice.runs.result import Result, make_result, read_result

# The packages that turn raw files into a result: what this layer may import, and of it what has to do with results.
DERIVING = ("base", "stats", "parse", "tcp", "lab", "measure", "checks", "runs")


@cache
def code_digest(lab_folder: Path) -> str:
    """Return eight hex digits of all that turns raw files into a result: the code, and the lab's facts."""
    facts = (lab_folder / "lab.toml").read_bytes()
    return hashlib.sha256(facts + digest_of_packages(*DERIVING)).hexdigest()[:8]


def derive(lab_folder: Path, plan: Plan, raw: Path) -> Result:
    """Return the result that a run's raw files hold, without findings: these are for who asks for them, and
    then from all files (runs.remeasure). ParseError or OSError where they don't hold one."""
    lab = read_lab(lab_folder)
    measured, flows = measure(lab, raw, plan.params)
    result = make_result(lab, plan, measured, flows)
    return replace(result, derived_by=code_digest(lab_folder))


def finished_result(run: Path, lab_folder: Path, plan: Plan) -> Result | None:
    """Return a finished run's result, derived anew (and written) where other code had derived it.

    None where the run never finished, UserError where it can't be read.
    """
    result = read_result(run, read_lab(lab_folder))
    if result is None:
        return None
    if result.derived_by == code_digest(lab_folder):
        return result
    try:
        result = derive(lab_folder, plan, run / "raw")
        write_json(run / RESULT, result.to_json())
    except (ParseError, OSError) as error:
        raise UserError(
            f"{run}: its raw files can't be read again ({error}); --fresh measures again"
        ) from None
    return replace(result, folder=run)
