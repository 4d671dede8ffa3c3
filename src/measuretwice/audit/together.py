"""What can't be true of rows taken together: sums, shares, copied rows, values that don't belong."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from measuretwice.audit.columns import NAMES
from measuretwice.audit.numbers import Number, significant_digits
from measuretwice.audit.rows import Row

# What was measured, where two rows that have it all in common were hardly measured twice.
MEASURED = (
    "goodput", "total", "squares", "index", "share", "rtt", "losses", "halvings", "drops", "sent",
    "segments", "c_by_losses", "c_by_halvings", "loss_ratio", "halving_ratio", "model_by_losses",
    "model_by_halvings",
)  # fmt: skip
# How many equal pairs chance may make in a table before two rows count as one, copied.
CHANCE = 1e-3
# The first digits of results that are alike say nothing.
ALIKE_DIGITS = 2
# How far from the others' a row's segment size may be, as a share, where it follows from rounded values.
MSS_TOLERANCE = 0.01
# From how many rows of one number of flows a common ceiling is told, and how far below the others' best.
CEILING_ROWS = 3
CEILING_GAP = 0.02


def copied(rows: Sequence[Row]) -> Iterator[tuple[Row, Row, list[str]]]:
    """Rows that have all they measured in common with an earlier one: row, the earlier one, names.

    Only where chance would hardly do it: each value's chance to be met again is how often others of
    its column are, or, where none is, what its digits leave open.
    """
    names = [name for name in MEASURED if any(row.has(name) for row in rows)]
    alike: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if sum(row.has(name) for name in names):
            alike[tuple(row.texts.get(name, "") for name in names)].append(row)
    pairs = len(rows) * (len(rows) - 1) / 2
    counts = {name: Counter(row.texts.get(name, "") for row in rows) for name in names}
    for texts, same in alike.items():
        if len(same) < 2:
            continue
        expected = pairs
        for name, text in zip(names, texts, strict=True):
            if not text:
                continue
            ours = len(same) * (len(same) - 1) / 2
            met = sum(count * (count - 1) / 2 for count in counts[name].values()) - ours
            digits = max(significant_digits(text) - ALIKE_DIGITS, 0)
            expected *= min(1.0, max(met / pairs, 10.0**-digits))
        if expected < CHANCE:
            shared = [name for name, text in zip(names, texts, strict=True) if text]
            for row in same[1:]:
                yield row, same[0], shared


def implied_segments(rows: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    """Rows whose model rate isn't MSS/(RTT sqrt(p)) with the segment size that the others have."""
    for model, ratio in (("model_by_losses", "loss_ratio"), ("model_by_halvings", "halving_ratio")):
        sizes = {
            row.line: row[model].value * row["rtt"].value * math.sqrt(row[ratio].value) / 8
            for row in rows
            if row.has(model, ratio, "rtt") and min(row[n].value for n in (model, ratio, "rtt")) > 0
        }
        if len(sizes) < 3:
            continue
        middle = statistics.median(sizes.values())
        for row in rows:
            if abs(sizes.get(row.line, middle) / middle - 1) > MSS_TOLERANCE:
                yield (
                    row,
                    f"{NAMES[model].help}: {row.shown(model)}; by RTT and ratio, with the segment size "
                    f"of the other rows, {row[model].value * middle / sizes[row.line]:.6g}",
                )


def parts_of_one(rows: Sequence[Row]) -> list[list[Row]]:
    """Groups of rows whose shares are parts of one whole: of one run, each of something else."""
    return [
        group
        for group in groups_of([row for row in rows if row.has("share")])
        if len({row.texts.get("who", "") for row in group}) == len(group) > 1
    ]


def shares_together(group: Sequence[Row]) -> tuple[float, float, float]:
    """Return what shares add up to, and the interval that their last digits leave open."""
    ends = ([end(row["share"]) for row in group] for end in (_value, _low, _high))
    total, low, high = (math.fsum(values) for values in ends)
    return total, low, high


def shares_recomputed(group: Sequence[Row], rate: str) -> Iterator[tuple[Row, float]]:
    """Rows of a group whose share isn't their part of all rates: row, the share recomputed."""
    if not all(row.has(rate) and row[rate].low >= 0 for row in group):
        return
    whole = math.fsum(row[rate].value for row in group)
    least, most = (math.fsum(end(row[rate]) for row in group) for end in (_low, _high))
    for row in group:
        if least <= 0:
            return
        low, high = row[rate].low / most, row[rate].high / least
        if row["share"].high < low or row["share"].low > high:
            yield row, row[rate].value / whole


def _value(number: Number) -> float:
    return number.value


def _low(number: Number) -> float:
    return number.low


def _high(number: Number) -> float:
    return number.high


def groups_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that belong to one run: of the same run and settings."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.texts.get("group", "")].append(row)
    return list(groups.values())


def missing_shares(rows: Sequence[Row], wrong: Mapping[int, object]) -> dict[int, float]:
    """Return the share of flows that seem to be missing, by number of flows, where some do.

    A flow that never ran is counted in n and adds nothing: an index can then be no more than the
    share of flows that did run. So where every row of some number of flows, whatever the algorithm,
    stays below one ceiling that other rows exceed, that is what its distance from 1 may say.
    `wrong` has the lines whose index can't be true.
    """
    by_flows: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.has("index", "flows") and row.line not in wrong and 0 < row["index"].value <= 1:
            by_flows[int(row["flows"].value)].append(row["index"].value)
    best = max((max(values) for values in by_flows.values()), default=0.0)
    return {
        flows: 1 - max(values)
        for flows, values in sorted(by_flows.items())
        if len(values) >= CEILING_ROWS and max(values) < best - CEILING_GAP
    }
