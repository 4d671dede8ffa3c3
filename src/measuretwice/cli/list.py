"""`lab list`: the labs of this checkout, and of one its trials, settings and cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measuretwice.cli.edition import refuse
from measuretwice.lab import Lab, find_labs, load_lab, read_lab
from measuretwice.lab.schema import Parameter


def list_command(root: Path, lab_name: str | None, *, causes: bool, as_json: bool) -> int:
    """Print each lab, or one with its trials and settings; return 0.

    `causes` are for instructors: ids and titles of the mistakes.
    """
    if causes:
        refuse("what is wrong in each case")
    if lab_name:
        labs = [load_lab(root, lab_name)]
    else:
        labs = [read_lab(folder) for folder in find_labs(root).values()]
    if as_json:
        print(json.dumps([_document(lab, causes) for lab in labs], indent=2))
        return 0
    for lab in labs:
        about = lab.file.lab
        size = f"{about.minutes} min, {len(lab.trials)} trials{', draft' if about.draft else ''}"
        print(f"{lab.name}: {about.title} ({size})")
        if lab_name:
            for trial in lab.trials.values():
                print(f"  {trial.number:3d}  {trial.title}")
            print("  settings, with what they are unless --set NAME=VALUE says otherwise:")
            for name, parameter in lab.file.parameters.items():
                print(f"  {name}{_values(parameter)}: {parameter.help}")
        for number, pitfall in enumerate(lab.file.pitfalls, start=1):
            print(f"  --case {number}: {pitfall.symptom} (trial {pitfall.trials or pitfall.trial})")
            if causes:
                print(f"             {pitfall.id}: {pitfall.title}")
    if not lab_name:
        print("\nOne lab's trials and settings: ./lab list LAB, as in ./lab list mathis")
    return 0


def _values(parameter: Parameter) -> str:
    """A setting's default, and what else there is to choose."""
    if parameter.default is None:
        return ""
    default = f"{parameter.default:.10g}" if parameter.numeric else str(parameter.default)
    others = [choice for choice in parameter.choices or [] if choice != default]
    return f" = {default}" + (f" (or {', '.join(others)})" if others else "")


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
