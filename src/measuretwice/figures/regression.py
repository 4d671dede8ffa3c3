"""Goodput against the Mathis model, a point a flow: by its losses, and by its halvings.

The two plots of Philip et al. (2021) and of its reproduction: the slope of the line through zero is C.
"""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import figure
from measuretwice.figures.rows import Row, counted_runs
from measuretwice.figures.style import (
    INK,
    MODEL,
    PAPER,
    Drawn,
    in_style,
    on_phone,
    plain_axes,
    sized,
)
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import RegressionFigure
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import slope_through_zero
from measuretwice.tcp.model import mathis_bandwidth_bps

PANELS = (("retransmits", "by retransmissions"), ("halvings", "by halvings"))


def points(result: Result, counted: str) -> list[tuple[float, float]]:
    """Each flow's model bandwidth with C = 1 and its goodput, in bit/s; flows that have none of what
    is counted, retransmits or halvings, are left out."""
    mss_bytes = result.value("mss_bytes")
    if not mss_bytes:
        return []
    return [
        (
            mathis_bandwidth_bps(
                mss_bytes, flow.rtt_mean_ms, getattr(flow, counted) / flow.segments
            ),
            flow.goodput_bps,
        )
        for flow in result.flows
        if getattr(flow, counted) and flow.segments
    ]


@figure(RegressionFigure, needs="measured values")
def regression(lab: Lab, declared: RegressionFigure, results: Sequence[Result]) -> Drawn:
    """Each flow's goodput against what the model with C = 1 gives, by its losses and by its halvings.

    The flows of all these runs together. A row is a flow: by (retransmits or halvings), model_mbit,
    goodput_mbit. UserError where no flow has a loss or a halving.
    """
    rows: list[Row] = []
    notes = []
    with in_style():
        drawn = sized(540 if on_phone() else 320)
        axes = drawn.subplots(*((len(PANELS), 1) if on_phone() else (1, len(PANELS))), sharey=True)
        for place, (counted, title) in zip(axes, PANELS, strict=True):
            found = [point for result in results for point in points(result, counted)]
            if not found:
                raise UserError(f"--figure {declared.id}: no flow of these runs has {counted}")
            constant, _, _ = slope_through_zero(found)
            xs, ys = [x / 1e6 for x, _ in found], [y / 1e6 for _, y in found]
            rows += [
                {"by": counted, "model_mbit": round(x, 4), "goodput_mbit": round(y, 4)}
                for x, y in zip(xs, ys, strict=True)
            ]
            place.plot([0, max(xs)], [0, constant * max(xs)], color=MODEL, linewidth=1.6)
            place.plot(
                xs, ys, linestyle="none", marker="o", markersize=4.6 if len(xs) < 200 else 2.4,
                markerfacecolor=PAPER, markeredgecolor=INK, markeredgewidth=0.8,
            )  # fmt: skip
            place.set_title(f"{title}: C = {constant:.2f}", loc="left")
            place.set_xlabel("MSS / (RTT · √p), Mbit/s")
            place.set_xlim(left=0)
            place.set_ylim(bottom=0)
            plain_axes(place)
            notes.append(f"{title}: {len(xs)} flows, C = {constant:.2f}.")
            if on_phone() or place is axes[0]:
                place.set_ylabel("goodput of a flow (Mbit/s)")
    drawn.description = " ".join(notes)
    drawn.caption = f"{counted_runs([len(results)])}, a mark a flow; line: least squares through zero, its slope is C"
    return drawn, rows
