"""`lab list`: the labs of this checkout, and of one its trials, settings and cases. `lab progress`: where a student is in
them, by their lab books."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from measuretwice.book.lab_book import LabBook
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, OUT, refuse, root_folder
from measuretwice.course.progress import LabProgress, read_progress
from measuretwice.lab import Lab, Trial, find_labs, load_lab, read_lab
from measuretwice.lab.schema.parameters import Parameter

PREDICTION_WIDTH = 40


@click.command("list")
@click.argument("lab_name", metavar="[LAB]", required=False)
@click.option(
    "--causes",
    is_flag=True,
    help="For instructors: also each case's id, for --pitfall, and its cause.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="For instructors: also the settings that give a case's cause away.",
)
@AS_JSON
def list_labs(lab_name: str | None, causes: bool, every: bool, as_json: bool) -> int:
    """List the labs and their cases by symptom. For one LAB, list its trials and settings too."""
    root = root_folder()
    if causes:
        refuse("what is wrong in each case")
    if every:
        refuse("the list of the settings that tell causes")
    if lab_name:
        labs = [load_lab(root, lab_name)]
    else:
        labs = [read_lab(folder) for folder in find_labs(root).values()]
    if as_json:
        print(json.dumps([_document(root, lab, causes, every) for lab in labs], indent=2))
        return 0
    for lab in labs:
        about = lab.file.lab
        size = f"{about.minutes} min, {len(lab.trials)} trials{', draft' if about.draft else ''}"
        print(f"{lab.name}: {about.title} ({size})")
        if lab_name:
            settings = _settings(root, lab, every)
            for trial in lab.trials.values():
                print(f"  {trial.number:3d}  {_title(trial, lab, settings)}")
            print("  settings and their values; --set NAME=VALUE changes one:")
            for name, parameter in settings.items():
                print(f"  {name}{_values(parameter)}: {parameter.help}")
        for number, pitfall in enumerate(lab.file.pitfalls, start=1):
            print(
                f"  --case {number}: {pitfall.symptom} ({f'trials {pitfall.trials}' if pitfall.trials else f'trial {pitfall.trial}'})"
            )
            if causes:
                print(f"             {pitfall.id}: {pitfall.title}")
    if not lab_name:
        print("\nOne lab's trials and settings: ./lab list LAB, as in ./lab list mathis")
    return 0


def _title(trial: Trial, lab: Lab, settings: Mapping[str, Parameter]) -> str:
    """A trial's title; of one that is made of its settings, those that are listed."""
    parts = trial.title.split(", ")
    hidden = lab.file.parameters.keys() - settings.keys()
    return ", ".join(part for part in parts if part.split(" ")[0] not in hidden)


def _settings(root: Path, lab: Lab, every: bool) -> dict[str, Parameter]:
    """The settings to list: those that tell a cause only once the lab book has it."""
    if every:
        return lab.file.parameters
    return lab.visible_settings(LabBook(terminal.default_out(root) / lab.name, lab).known_cases())


def _values(parameter: Parameter) -> str:
    """A setting's default, and what else there is to choose."""
    if parameter.default is None:
        return ""
    default = f"{parameter.default:.10g}" if parameter.numeric else str(parameter.default)
    others = [choice for choice in parameter.choices or [] if choice != default]
    return f" = {default}" + (f" (or {', '.join(others)})" if others else "")


def _document(root: Path, lab: Lab, causes: bool, every: bool) -> dict[str, Any]:
    settings = _settings(root, lab, every)
    return {
        "lab": lab.name,
        "title": lab.file.lab.title,
        "minutes": lab.file.lab.minutes,
        "needs": lab.file.lab.needs,
        "parameters": {
            name: parameter.default
            for name, parameter in settings.items()
            if parameter.default is not None
        },
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
            {
                "trial": trial.number,
                "title": _title(trial, lab, settings),
                "set": {name: value for name, value in trial.set.items() if name in settings},
            }
            for trial in lab.trials.values()
        ],
    }


@click.command()
@click.argument("lab_name", metavar="[LAB]", required=False)
@OUT
@AS_JSON
def progress(lab_name: str | None, out: Path | None, as_json: bool) -> int:
    """Show where you are: which cases are solved in your lab books, and what is left."""
    root = root_folder()
    labs = read_progress(root, lab_name, out or terminal.default_out(root))
    if as_json:
        print(json.dumps([lab.to_json() for lab in labs], indent=2))
        return 0
    begun = [lab for lab in labs if lab.book or lab_name]
    for lab in begun:
        _print_progress(lab)
    if rest := [lab for lab in labs if lab not in begun]:
        first = rest[0]
        command = f"start {first.lab}" if first.first_try else f"run {first.lab} --case 1"
        print(f"not begun: {', '.join(lab.lab for lab in rest)} (./lab {command})")
    return 0


def _print_progress(lab: LabProgress) -> None:
    out = terminal.console(sys.stdout)
    left = f", about {lab.minutes_left} minutes left" if lab.minutes_left else ": all are solved"
    out.print(f"{lab.lab}: {lab.solved} of {len(lab.cases)} cases{left}", style="bold")
    rows = [
        [
            str(case.case),
            case.symptom,
            case.step,
            str(case.hints or ""),
            # All of it stands in the lab book.
            textwrap.shorten(case.predicted or "", PREDICTION_WIDTH, placeholder=" …"),
        ]
        for case in lab.cases
    ]
    terminal.print_rows(out, ["case", "what is seen", "so far", "hints", "predicted"], rows, {0, 3})
    if lab.first_try:
        out.print(f"\n{lab.first_try}", markup=False, soft_wrap=True)
    if lab.book:
        out.print(f"\nYour lab book: {terminal.relative(lab.book)}\n", soft_wrap=True)
