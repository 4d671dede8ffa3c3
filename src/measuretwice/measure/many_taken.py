"""What a person worked out of a run of many flows, read from where it stands, and held against it.

Each name that is measured so begins with `own_`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from measuretwice.lab import CrowdFiles
from measuretwice.measure.raw import rows_of
from measuretwice.measure.values import Measured


def results_taken(
    files: CrowdFiles,
    raw: Path,
    ports: set[tuple[str, int]],
    sums_bps: Mapping[str, float],
    interval_s: tuple[float, float],
    rival: str,
) -> Measured:
    """Return a person's counts, sums and groups.

    `ports` are the flows by node and port, `sums_bps` their goodputs' sums by algorithm,
    `interval_s` the time that all flows share, `rival` the rivals' algorithm.
    """
    values: Measured = {}
    if files.counted and (paths := sorted(raw.glob(f"*/{files.counted}"))):
        values["own_counted_halvings"] = _counted(paths, ports, interval_s)
    for path in raw.glob(f"*/{files.summary}") if files.summary else ():
        for name, number in rows_of(path, _name_and_number, "a name and a number"):
            # awk prints what has no value as nan.
            if math.isfinite(number):
                values[f"own_{name}"] = number
    for path in raw.glob(f"*/{files.groups}") if files.groups else ():
        groups = rows_of(path, _algorithm_and_sum, "an algorithm, its flows and their sum")
        values["own_groups_error_ratio"] = _groups_error_ratio(groups, sums_bps)
        if (share := _share_of(rival, groups)) is not None:
            values["own_rival_share"] = share
    return values


def _time_and_port(line: str) -> tuple[float, int]:
    time_text, port_text = line.split()
    return float(time_text), int(port_text)


def _counted(
    paths: Sequence[Path], ports: set[tuple[str, int]], interval_s: tuple[float, float]
) -> int:
    """How many halvings were counted in the interval, of all the flows of `ports`."""
    start_s, end_s = interval_s
    return sum(
        (path.parent.name, port) in ports and start_s <= time_s <= end_s
        for path in paths
        for time_s, port in rows_of(path, _time_and_port, "time and port")
    )


def _name_and_number(line: str) -> tuple[str, float]:
    name, _, text = line.partition(" ")
    return name, float(text)


def _algorithm_and_sum(line: str) -> tuple[str, float]:
    name, _, text = line.split()
    return name, float(text)


def _share_of(rival: str, groups: Sequence[tuple[str, float]]) -> float | None:
    """The rivals' part of a person's sums; None where they have no row, or nothing has a rate."""
    total = sum(sum_bps for _, sum_bps in groups)
    of_rival = [sum_bps for name, sum_bps in groups if name == rival]
    return round(sum(of_rival) / total, 6) if of_rival and total else None


def _groups_error_ratio(
    groups: Sequence[tuple[str, float]], sums_bps: Mapping[str, float]
) -> float:
    """How far a person's sums, by algorithm, are from those of the flows: the worst of them."""
    worst = 0.0
    for name, sum_bps in groups:
        true_bps = sums_bps.get(name, 0.0)
        worst = max(worst, abs(sum_bps - true_bps) / max(sum_bps, true_bps, 1.0))
    return round(worst, 6)
