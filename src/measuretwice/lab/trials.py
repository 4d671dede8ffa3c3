"""A lab's trials: reading them from lab.toml or its table, and choosing among them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.text import has_controls
from measuretwice.lab.lab import Lab, Trial, short_path
from measuretwice.lab.schema import TrialTable, Value

# More numbers than any lab has trials: a typing error.
MOST_NUMBERS = 100_000


def read_trials(lab: Lab) -> dict[int, Trial]:
    """Return the trials that `lab`'s file has, or the table that it names, by number."""
    listed = lab.file.trials
    if isinstance(listed, TrialTable):
        rows = _read_table(lab, lab.folder / listed.file)
    else:
        rows = [Trial(trial.trial, trial.title, dict(trial.set), {}) for trial in listed]
    trials: dict[int, Trial] = {}
    for row in rows:
        if row.number in trials:
            raise lab.problem("trials", f"trial {row.number} stands twice")
        where = f"{lab.place}: trials: trial {row.number}"
        values = {name: lab.read_value(name, value, where) for name, value in row.set.items()}
        trials[row.number] = replace(row, set=values)
    return trials


def _read_table(lab: Lab, path: Path) -> list[Trial]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise lab.problem("trials.file", f"{path.name} can't be read: {error.strerror}") from None
    for line, written in enumerate(text.split("\n"), start=1):
        if has_controls(written):
            raise UserError(
                f"{short_path(path)}, line {line}: control characters, which a terminal would obey, in {written!r}"
            )
    rows: list[Trial] = []
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        number = row.pop("trial", None) or ""
        if not number.isdigit():
            raise UserError(
                f"{short_path(path)}, line {line}: trial: expected a number, got {number!r}"
            )
        if None in row or None in row.values():
            raise UserError(
                f"{short_path(path)}, line {line}: expected as many columns as the first line has"
            )
        values: dict[str, Value] = {k: v for k, v in row.items() if k in lab.file.parameters}
        notes = {k: v for k, v in row.items() if k not in lab.file.parameters}
        title = ", ".join(f"{k} {v}" for k, v in values.items())
        rows.append(Trial(number=int(number), title=title, set=values, notes=notes))
    return rows


def select_trials(lab: Lab, text: str) -> list[int]:
    """Read `all`, `7` or `1-12,20` as trial numbers of `lab`, in order, each once."""
    if text == "all":
        return sorted(lab.trials)
    chosen: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", part)
        if match is None:
            raise UserError(f"--trial {text}: expected numbers such as 7, 1-12,20, or all")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise UserError(f"--trial {text}: {part.strip()} runs backwards; write {last}-{first}")
        if last - first > MOST_NUMBERS:
            raise UserError(f"--trial {text}: {lab.name} has trials {spans(lab.trials)}")
        chosen.update(range(first, last + 1))
    unknown = sorted(chosen - set(lab.trials))
    if unknown:
        raise UserError(
            f"--trial {text}: {lab.name} has no trial {unknown[0]}; it has {spans(lab.trials)}"
        )
    return sorted(chosen)


def spans(numbers: Iterable[int]) -> str:
    """Trial numbers for a person: 1-60, or 1-4,7."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
