"""C of a table of flows, by losses and by halvings, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.audit.rows import Row
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


def fits(rows: Sequence[Row], mss_bytes: float | None) -> tuple[list[Fit], list[str]]:
    """Return the constants that a table of flows gives, and why it gives no others.

    Flows without a loss, or a halving, have no place in the model and are left out.
    """
    found, missing = [], []
    for title, model, ratio, count in WAYS:
        points = [
            (expected, row["goodput"].value)
            for row in rows
            if row.has("goodput")
            and row["goodput"].value >= 0
            and (expected := _model(row, model, ratio, count, mss_bytes))
        ]
        if points:
            slope, low, high = slope_through_zero(points)
            known = math.isfinite(low) and math.isfinite(high)
            ends = (low, high) if known else (None, None)
            left_out = len(rows) - len(points)
            found.append(Fit(title, slope, ends[0], ends[1], len(points), left_out))
        else:
            missing.append(
                f"{title}: not recomputed, {_lacks(rows, model, ratio, count, mss_bytes)}"
            )
    return found, missing


def _model(row: Row, model: str, ratio: str, count: str, mss_bytes: float | None) -> float | None:
    """What the model gives a flow with C = 1; None where it gives nothing finite."""
    if row.has(model):
        return row[model].value if row[model].value > 0 else None
    mss = row["mss"].value if row.has("mss") else mss_bytes
    if row.has(ratio):
        p = row[ratio].value
    elif row.has(count, "segments") and row["segments"].value > 0:
        p = row[count].value / row["segments"].value
    else:
        return None
    if mss is None or not row.has("rtt") or not 0 < p <= 1 or row["rtt"].value <= 0 or mss <= 0:
        return None
    return mathis_bandwidth_bps(mss, row["rtt"].value * 1e3, p)


def _lacks(rows: Sequence[Row], model: str, ratio: str, count: str, mss_bytes: float | None) -> str:
    """What a table lacks for it."""

    def known(name: str) -> bool:
        return any(row.has(name) for row in rows)

    lacking = [name for name in ("goodput", "rtt") if not known(name)]
    if not known(ratio):
        lacking += [name for name in (count, "segments") if not known(name)]
    if not known("mss") and mss_bytes is None:
        lacking.append("mss (or --mss)")
    return (
        f"it has no {', '.join(lacking)}" if lacking else f"no flow has {model} or {ratio} above 0"
    )
