"""`lab deal`: a seed for each student, and the commands that go with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_bytes
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, PATH, root_folder
from measuretwice.grading.roster import (
    SEEDS_EACH,
    deal_seeds,
    dealt_file,
    read_roster,
    refuse_other_seeds,
)
from measuretwice.grading.rubric import read_rubric
from measuretwice.lab import load_lab


@click.command()
@click.argument("path", metavar="ROSTER.csv", type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", required=True, help="The lab.")
@click.option(
    "--term", metavar="WORD", required=True, help="A word of your own that students don't know."
)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.csv",
    help="Where to write.  [default: ROSTER-LAB-seeds.csv beside the roster]",
)
@AS_JSON
def deal(path: Path, lab_name: str, term: str, out: Path | None, as_json: bool) -> int:
    """Deal each student of a class a seed of their own, with the commands to run.

    ROSTER.csv is what your learning management system exports: a heading, then a line for each
    student. The same word deals the same seeds again. ./lab grade compares runs with them.
    """
    root = root_folder()
    lab = load_lab(root, lab_name)
    roster = read_roster(path)
    if not term.strip():
        raise UserError("--term: expected a word of yours, another each term")
    seeds = deal_seeds(roster.students, lab.name, term)
    out = out or path.with_name(f"{path.stem}-{lab.name}-seeds{path.suffix or '.csv'}")
    if out.resolve() == path.resolve():
        raise UserError(f"--out {out}: is the roster itself; name another file")
    gone = refuse_other_seeds(out, lab, seeds)
    write_bytes(out, dealt_file(roster, lab, seeds))
    says = list(roster.says)
    if gone:
        names = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        says.append(f"no longer in the file: {names}; the same word gives them their seeds again")
    if read_rubric(lab) is None:
        says.append(f"{lab.name} has no rubric.toml: ./lab grade can't mark it until it has one")
    if as_json:
        dealt = [{"student": s.id, "lab": lab.name, "seed": seeds[s.id]} for s in roster.students]
        print(json.dumps(dealt, indent=2))
        return 0
    printer = terminal.console(sys.stdout)
    for line in (
        f"{len(seeds)} students, {SEEDS_EACH} seeds each: {out}. "
        "The same word deals the same seeds again; keep it to yourself.",
        *says,
    ):
        printer.print(line, markup=False, soft_wrap=True)
    return 0
