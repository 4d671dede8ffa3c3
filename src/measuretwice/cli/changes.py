"""What a student changed of a case."""

from __future__ import annotations

from typing import Any

from measuretwice.lab import UNSET, Lab, trial_params
from measuretwice.runs.result import Result


def changes_of(lab: Lab, result: Result) -> dict[str, Any]:
    """Return the settings of a case's run that its student changed, with their values; UNSET for one
    that was taken away."""
    meant = trial_params(lab, result.trial, stage=result.stage, case=result.case, seed=result.seed)
    return {
        name: result.params.get(name, UNSET)
        for name in {**meant, **result.params}
        if meant.get(name) != result.params.get(name)
    }
