"""`lab deal`: a seed for each student, and the commands that go with it."""

from __future__ import annotations

import json
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_text
from measuretwice.grading.deal import dealt_rows
from measuretwice.grading.roster import SEEDS_EACH, csv_text, deal, read_roster
from measuretwice.lab import load_lab


def deal_command(
    root: Path, path: Path, *, lab_name: str, term: str, out: Path | None, as_json: bool
) -> int:
    """Write the roster with a seed and commands for each student; return 0."""
    lab = load_lab(root, lab_name)
    roster = read_roster(path)
    if not term.strip():
        raise UserError("--term: expected a word of yours, another each term")
    seeds = deal(roster.students, lab.name, term)
    out = out or path.with_name(f"{path.stem}-{lab.name}-seeds.csv")
    if out.resolve() == path.resolve():
        raise UserError(f"--out {out}: is the roster itself; name another file")
    write_text(out, csv_text(dealt_rows(roster, lab, seeds)))
    if as_json:
        dealt = [{"student": s.id, "lab": lab.name, "seed": seeds[s.id]} for s in roster.students]
        print(json.dumps(dealt, indent=2))
    else:
        print(
            f"{len(seeds)} students, {SEEDS_EACH} seeds each: {out}. "
            "The same word deals the same seeds again; keep it to yourself."
        )
    return 0
