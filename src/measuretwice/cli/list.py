"""`lab list`: the labs of this checkout, their trials and pitfalls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measuretwice.cli.edition import refuse
from measuretwice.lab import Lab, find_labs, read_lab


def list_command(root: Path, *, causes: bool, as_json: bool) -> int:
    """Print each lab; return 0. `causes` are for instructors: ids and titles of the mistakes."""
    if causes:
        refuse("what is wrong in each case")
    labs = [read_lab(folder) for folder in find_labs(root).values()]
    if as_json:
        print(json.dumps([_document(lab, causes) for lab in labs], indent=2))
        return 0
    for lab in labs:
        about = lab.file.lab
        size = f"{about.minutes} min, {len(lab.trials)} trials{', draft' if about.draft else ''}"
        print(f"{lab.name}: {about.title} ({size})")
        for trial in lab.trials.values():
            print(f"  {trial.number:3d}  {trial.title}")
        for number, pitfall in enumerate(lab.file.pitfalls, start=1):
            print(f"  --case {number}: {pitfall.symptom} (trial {pitfall.trials or pitfall.trial})")
            if causes:
                print(f"             {pitfall.id}: {pitfall.title}")
    return 0


def _document(lab: Lab, causes: bool) -> dict[str, Any]:
    return {
        "lab": lab.name,
        "title": lab.file.lab.title,
        "minutes": lab.file.lab.minutes,
        "needs": lab.file.lab.needs,
        "parameters": lab.defaults(),
        "cases": [
            {
                "case": number,
                "symptom": pitfall.symptom,
                "trial": pitfall.trial,
                **({"id": pitfall.id, "title": pitfall.title} if causes else {}),
            }
            for number, pitfall in enumerate(lab.file.pitfalls, start=1)
        ],
        "trials": [
            {"trial": trial.number, "title": trial.title, "set": trial.set}
            for trial in lab.trials.values()
        ],
    }
