"""Ratios that a table gives as per cent without saying so: by what they add up to, by what they follow from, and by size."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from measuretwice.audit.columns import Column
from measuretwice.audit.rules import Row

# How near a sum of shares, or a quotient, must be to the whole that it is compared with.
NEAR = 0.02
# A ratio of more than this is per cent, or wrong; utilisation of a little over 1 is wrong.
LARGEST_UTILISATION = 1.5
# What each ratio follows from: counted things, and what they are of.
QUOTIENTS = {
    "loss_ratio": (("losses",), ("segments",)),
    "halving_ratio": (("halvings",), ("segments",)),
    "utilisation": (("total", "goodput"), ("link",)),
}


def as_ratios(
    rows: Sequence[Row], without_unit: Mapping[str, Column]
) -> tuple[list[Row], list[str]]:
    """The rows with each column of ratios from 0 to 1, and a remark on those that were read as per cent.

    A column whose heading may mean a share as well as a count is a count where it can be no share.
    """
    notes: list[str] = []
    for name in ("loss_ratio", "halving_ratio", "share", "fair_share", "index", "utilisation"):
        column = without_unit.get(name)
        values = [row[name].value for row in rows if row.has(name) and row[name].value >= 0]
        if (
            column is None
            or not values
            or ((max(values) < 1 or max(values) > 100) and name != "loss_ratio")
        ):
            continue
        counts = all(value % 1 == 0 for value in values) and max(values) > 1
        if (
            name == "loss_ratio"
            and counts
            and _is_bare(column)
            and (max(values) > 100 or _has(rows, "segments", "halvings"))
        ):
            if not _has(rows, "losses"):
                rows = [_renamed(row, name, "losses") for row in rows]
        elif 1 <= max(values) <= 100 and (why := _percent(rows, name, values)):
            rows = [_scaled(row, name) for row in rows]
            notes.append(f"{column.heading} was read as per cent: {why}")
    return list(rows), notes


def _is_bare(column: Column) -> bool:
    """Return whether a heading says no more than `loss`."""
    return not any(
        word in column.heading.lower() for word in ("rate", "ratio", "prob", "frac", "share")
    )


def _has(rows: Sequence[Row], *names: str) -> bool:
    return any(row.has(name) for row in rows for name in names)


def _renamed(row: Row, name: str, other: str) -> Row:
    if not row.has(name):
        return row
    numbers = {other if key == name else key: number for key, number in row.numbers.items()}
    return replace(row, numbers=numbers, texts={**row.texts, other: row.texts.get(name, "")})


def _scaled(row: Row, name: str) -> Row:
    return replace(row, numbers={**row.numbers, name: row[name] * 0.01}) if row.has(name) else row


def _percent(rows: Sequence[Row], name: str, values: Sequence[float]) -> str:
    """Return why a column without a unit is per cent; empty where it isn't."""
    if name == "share":
        sums: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            if row.has(name):
                sums[row.texts.get("group", "")].append(row[name].value)
        hundreds = [abs(math.fsum(shares) / 100 - 1) < NEAR for shares in sums.values()]
        if sum(hundreds) * 2 > len(hundreds):
            return "it adds up to 100"
        return "all of it is more than 1" if min(values) > 1 else ""
    votes = [vote for row in rows if row.has(name) and (vote := _vote(row, name)) is not None]
    if votes:
        return "100 times what it follows from" if sum(votes) * 2 > len(votes) else ""
    if name == "loss_ratio":
        return "a loss of 1 would leave nothing" if max(values) >= 1 else ""
    if name == "utilisation":
        return "it is far more than 1" if max(values) > LARGEST_UTILISATION else ""
    return "all of it is more than 1" if min(values) > 1 and len(values) > 1 else ""


def _vote(row: Row, name: str) -> bool | None:
    """Return whether a ratio is 100 times what it follows from; None where it follows from nothing, or from something else."""
    if name == "index" and row.has("total", "squares", "flows"):
        below = row["flows"].value * row["squares"].value
        again = row["total"].value ** 2 / below if below > 0 else 0.0
    elif name in QUOTIENTS:
        above, under = QUOTIENTS[name]
        numerator = next((row[key].value for key in above if row.has(key)), 0.0)
        denominator = next((row[key].value for key in under if row.has(key)), 0.0)
        again = numerator / denominator if denominator > 0 else 0.0
    else:
        return None
    if again <= 0 or row[name].value <= 0:
        return None
    return abs(math.log(row[name].value / again / 100)) < abs(math.log(row[name].value / again))
