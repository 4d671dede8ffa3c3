"""Seeds for a class, and the dealt roster: behind each student their lab, first seed, and commands."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError
from measuretwice.grading.roster import (
    COMMANDS_COLUMN,
    LAB_COLUMN,
    SEED_COLUMN,
    SEEDS_EACH,
    Roster,
    Student,
    read_roster,
)
from measuretwice.grading.text_table import Line
from measuretwice.lab import Lab

COLUMNS = (LAB_COLUMN, SEED_COLUMN, COMMANDS_COLUMN)
# Not the first block: recorded runs have their seeds there, and so has who sets none.
FIRST_BLOCK, LAST_BLOCK = 1, LAST_SEED // SEEDS_EACH - 1


def deal(students: list[Student], lab: str, word: str) -> dict[str, int]:
    """Return each student's first seed by id: from the word, the lab and the id alone.

    Where two ids would meet (rarely: there are 21 million places), the one that comes later in
    the alphabet takes another. The word keeps students from working out who has which seed.
    """
    taken: set[int] = set()
    seeds = {}
    for student in sorted(students, key=lambda student: student.id):
        for attempt in range(1000):
            text = f"{lab}\n{student.id}\n{attempt}"
            made = hmac.new(word.encode(), text.encode(), hashlib.sha256).digest()
            block = FIRST_BLOCK + int.from_bytes(made[:8], "big") % (LAST_BLOCK - FIRST_BLOCK + 1)
            if block not in taken:
                break
        taken.add(block)
        seeds[student.id] = block * SEEDS_EACH
    return seeds


def refuse_other_seeds(path: Path, lab: Lab, seeds: Mapping[str, int]) -> list[str]:
    """Refuse to write over a file of seeds that students may already have; `seeds` are the new ones.

    The same seeds, and those of who joined since, may be written. Returns who isn't among the new.
    """
    if not path.exists():
        return []
    advice = f"give another file with --out, or move {path.name} away"
    try:
        before = read_roster(path)
    except UserError:
        raise UserError(f"{path}: is there already, and is no dealt roster; {advice}") from None
    if not before.by_seed:
        raise UserError(f"{path}: is there already, without seeds; {advice}")
    if before.lab != lab.name:
        raise UserError(f"{path}: has the seeds of {before.lab}, not of {lab.name}; {advice}")
    other = [one for one in before.students if one.id in seeds and seeds[one.id] != one.seed]
    if other:
        raise UserError(
            f"{path}: has other seeds for {len(other)} of {len(seeds)} students (the first in line "
            f"{other[0].line}), dealt with another word or another id; students may have them. Nothing is "
            f"written: {advice}"
        )
    return [one.name for one in before.students if one.id not in seeds]


def dealt_file(roster: Roster, lab: Lab, seeds: Mapping[str, int]) -> bytes:
    """Return the roster as it is, in its own form, with each student's lab, seed and commands behind."""
    by_line = {student.line: seeds[student.id] for student in roster.students}
    old = {place for place, text in enumerate(roster.heading.cells) if text in COLUMNS}
    width = len(roster.heading.cells) - len(old)
    lines = []
    for line in roster.table.lines:
        cells = _without(line, old)
        seed = by_line.get(line.number)
        if line is roster.heading:
            added = list(COLUMNS)
        elif seed is not None:
            added = [lab.name, str(seed), "\n".join(commands(lab, seed))]
        else:
            added = []
        if added:
            cells = [*cells[:width], *[""] * (width - len(cells)), *added]
        lines.append(cells)
    return roster.table.to_bytes(lines)


def _without(line: Line, places: set[int]) -> list[str]:
    return [text for place, text in enumerate(line.cells) if place not in places]


def without_deal(roster: Roster) -> list[tuple[Line, list[str]]]:
    """Every line of a roster with its cells, less those that ./lab deal put there."""
    places = {place for place, text in enumerate(roster.heading.cells) if text in COLUMNS}
    if SEED_COLUMN not in roster.heading.cells:
        places = set()
    return [(line, _without(line, places)) for line in roster.table.lines]


def commands(lab: Lab, seed: int) -> list[str]:
    """Return what a student with this seed runs: each case by its number, which tells no cause, or else
    all trials.

    The first run writes the seed into the lab book, so that it holds for all that is run of the case
    after it, too.
    """
    cases = [
        f"./lab run {lab.name} --case {number} --seed {seed}"
        for number in range(1, len(lab.file.pitfalls) + 1)
    ]
    return cases or [f"./lab run {lab.name} --seed {seed}"]
