"""Pairs of runs, the same experiment in two kernels: ratios of what was measured, and their mean by lab. Values in, values out.

Not to be run: against_stock.py uses it, and tests/unit/test_pairs.py holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from measuretwice.stats.intervals import mean_interval


@dataclass(frozen=True)
class Pair:
    """One setting with one seed in both kernels: each value's (stock, virtual), None where it wasn't measured."""

    lab: str
    trial: int
    params: dict[str, Any]
    seed: int
    values: dict[str, tuple[float | None, float | None]]

    @property
    def ratios(self) -> dict[str, float]:
        """Stock over virtual, of the values that both have; one that is 0 in both is the same, in one only tells no ratio."""
        found = {}
        for name, (stock, ours) in self.values.items():
            if stock is None or ours is None or (not ours and stock):
                continue
            found[name] = stock / ours if ours else 1.0
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as it is kept."""
        return {
            "lab": self.lab,
            "trial": self.trial,
            "params": self.params,
            "seed": self.seed,
            "values": {name: list(both) for name, both in self.values.items()},
            "ratios": self.ratios,
        }


def summed_up(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return for each lab and value the mean of its pairs' ratios, and the mean's interval of 95 % (None of one pair)."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        for name, ratio in pair.ratios.items():
            ratios.setdefault((pair.lab, name), []).append(ratio)
    rows = []
    for (lab, name), found in sorted(ratios.items()):
        mean, low, high = mean_interval(found) if len(found) > 1 else (found[0], None, None)
        rows.append(
            {
                "lab": lab,
                "value": name,
                "pairs": len(found),
                "mean_ratio": mean,
                "low": low,
                "high": high,
                "least": min(found),
                "most": max(found),
            }
        )
    return rows
