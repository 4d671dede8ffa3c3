"""C of a table of flows, by losses and by halvings: what the rates are of the Mathis model's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.audit.rules import Row
from measuretwice.audit.table import Given
from measuretwice.stats.intervals import slope_through_zero
from measuretwice.tcp.model import mathis_bandwidth_bps

# By what C is counted: its title, the model's rate, the ratio, and the count of a table of flows.
WAYS = (
    ("C by losses", "model_by_losses", "loss_ratio", "losses"),
    ("C by halvings", "model_by_halvings", "halving_ratio", "halvings"),
)


@dataclass(frozen=True)
class Fit:
    """C of goodput = C * model by regression through zero over flows, and its 95 % interval, which a single flow
    doesn't have."""

    title: str
    value: float
    low: float | None
    high: float | None
    flows: int
    left_out: int


def fits(rows: Sequence[Row], given: Given) -> tuple[list[Fit], list[tuple[str, bool]]]:
    """Return the constants that a table of flows gives; why it gives no others, and whether an option would help.

    Flows without a loss, or a halving, have no place in the model and are left out.
    """
    fitted, missing = [], []
    for title, model, ratio, count in WAYS:
        points = [
            (expected, row["goodput"].value)
            for row in rows
            if row.has("goodput")
            and row["goodput"].value >= 0
            and (expected := _model(row, model, ratio, count, given))
        ]
        if points:
            slope, low, high = slope_through_zero(points)
            has = math.isfinite(low) and math.isfinite(high)
            ends = (low, high) if has else (None, None)
            left_out = len(rows) - len(points)
            fitted.append(Fit(title, slope, ends[0], ends[1], len(points), left_out))
        else:
            lacking = _lacks(rows, ratio, count, given)
            why = (
                f"it has no {', '.join(lacking)}"
                if lacking
                else f"no flow has {model} or {ratio} above 0"
            )
            by_option = bool(lacking) and all(name.endswith(")") for name in lacking)
            missing.append((f"{title}: not recomputed, {why}", by_option))
    return fitted, missing


def _model(row: Row, model: str, ratio: str, count: str, given: Given) -> float | None:
    """Return what the model gives a flow with C = 1; None where it gives nothing finite."""
    if row.has(model):
        return row[model].value if row[model].value > 0 else None
    mss = row["mss"].value if row.has("mss") else given.mss_bytes
    rtt_s = row["rtt"].value if row.has("rtt") else given.rtt_s
    if row.has(ratio):
        p = row[ratio].value
    elif row.has(count, "segments") and row["segments"].value > 0:
        p = row[count].value / row["segments"].value
    else:
        return None
    if mss is None or rtt_s is None or not 0 < p <= 1 or rtt_s <= 0 or mss <= 0:
        return None
    return mathis_bandwidth_bps(mss, rtt_s * 1e3, p)


def _lacks(rows: Sequence[Row], ratio: str, count: str, given: Given) -> list[str]:
    """Return what a table lacks for it, with the option that gives it, where one does."""

    def has(name: str) -> bool:
        return any(row.has(name) for row in rows)

    lacking = [] if has("goodput") else ["goodput"]
    if not has("rtt") and given.rtt_s is None:
        lacking.append("rtt (or --rtt)")
    if not has(ratio):
        lacking += [name for name in (count, "segments") if not has(name)]
    if not has("mss") and given.mss_bytes is None:
        lacking.append("mss (or --mss)")
    return lacking
