"""`lab progress`: where a student is, by their lab books."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import click

from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, OUT, root_folder
from measuretwice.course.progress import LabProgress, read_progress

PREDICTION_WIDTH = 40


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
        _print(lab)
    if rest := [lab for lab in labs if lab not in begun]:
        first = rest[0]
        command = f"start {first.lab}" if first.first_try else f"run {first.lab} --case 1"
        print(f"not begun: {', '.join(lab.lab for lab in rest)} (./lab {command})")
    return 0


def _print(lab: LabProgress) -> None:
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
