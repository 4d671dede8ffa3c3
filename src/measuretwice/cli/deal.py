"""`lab deal`: a seed for each student, and the commands that go with it."""

from __future__ import annotations

import json
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_text
from measuretwice.grading.roster import (
    COMMANDS_COLUMN,
    LAB_COLUMN,
    SEED_COLUMN,
    SEEDS_EACH,
    Roster,
    csv_text,
    deal,
    read_roster,
)
from measuretwice.lab import Lab, load_lab

OURS = (LAB_COLUMN, SEED_COLUMN, COMMANDS_COLUMN)


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


def dealt_rows(roster: Roster, lab: Lab, seeds: dict[str, int]) -> list[list[str]]:
    """The roster as it is, with each student's lab, seed and commands behind."""
    columns = [column for column in roster.columns if column not in OURS]
    rows = [[*columns, *OURS]]
    for student in roster.students:
        seed = seeds[student.id]
        own = [student.row[column] for column in columns]
        rows.append([*own, lab.name, str(seed), "\n".join(commands(lab, seed))])
    return rows


def commands(lab: Lab, seed: int) -> list[str]:
    """What a student with this seed runs: each mistake broken and fixed, or else all trials."""
    staged = [
        f"./lab run {lab.name} --pitfall {pitfall.id} --stage {stage} --seed {seed}"
        for pitfall in lab.file.pitfalls
        for stage in ("broken", "fixed")
    ]
    return staged or [f"./lab run {lab.name} --seed {seed}"]
