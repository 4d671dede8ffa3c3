"""Recorded sets of runs, as sample-data/ holds them: read, never written, here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.checks.engine import diagnose
from measuretwice.lab import Lab
from measuretwice.runs.result import Result, from_json, judged

SET_FILE = "results.json"


def short_name(trial: int, seed: int) -> str:
    """A recorded run's folder: its set's name says the rest."""
    return f"trial-{trial:02d}-seed{seed}"


def read_set(folder: Path) -> dict[str, Any]:
    """Return a recorded set's results.json; UserError where it isn't there or is damaged."""
    path = folder / SET_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(run["raw_sha256"], str) for run in document["runs"]):
            raise ValueError("no digests")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: record it first with ./lab record") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: is damaged ({error}); record it anew") from None
    return dict(document)


def results_of(lab: Lab, folder: Path) -> list[Result]:
    """Return a recorded set's runs as results, by their measured values: the verdicts are those of
    today's lab.toml, the findings today's checker's."""
    return [
        judged(
            lab,
            from_json(
                row,
                title=lab.trials[row["trial"]].title,
                findings=diagnose(lab, row["params"], row["measured"]),
                folder=folder / short_name(row["trial"], row["seed"]),
            ),
        )
        for row in read_set(folder)["runs"]
    ]
