"""A dealt roster: behind each student their lab, their first seed, and the commands that go with it."""

from __future__ import annotations

from collections.abc import Mapping

from measuretwice.grading.roster import COMMANDS_COLUMN, LAB_COLUMN, SEED_COLUMN, Roster
from measuretwice.lab import Lab

COLUMNS = (LAB_COLUMN, SEED_COLUMN, COMMANDS_COLUMN)


def dealt_rows(roster: Roster, lab: Lab, seeds: Mapping[str, int]) -> list[list[str]]:
    """Return the roster as it is, with each student's lab, seed and commands behind; `seeds` by id."""
    columns = [column for column in roster.columns if column not in COLUMNS]
    rows = [[*columns, *COLUMNS]]
    for student in roster.students:
        seed = seeds[student.id]
        cells = [student.row[column] for column in columns]
        rows.append([*cells, lab.name, str(seed), "\n".join(commands(lab, seed))])
    return rows


def commands(lab: Lab, seed: int) -> list[str]:
    """Return what a student with this seed runs: each case, or else all trials.

    The first run writes the seed into the lab book, so that it holds for all that is run of the case
    after it, too.
    """
    cases = [
        f"./lab run {lab.name} --case {number} --seed {seed}"
        for number in range(1, len(lab.file.pitfalls) + 1)
    ]
    return cases or [f"./lab run {lab.name} --seed {seed}"]
