"""Boxes: what is drawn is what the runs hold."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import draw_declared
from measuretwice.figures.style import svg_text
from measuretwice.lab import load_lab
from measuretwice.lab.schema.results import BoxesFigure
from measuretwice.runs import recorded
from measuretwice.runs.result import Result

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "queues")
SAMPLES = ROOT / "sample-data" / LAB.folder.name
FIGURE = next(one for one in LAB.file.figures if one.id == "disciplines")


def run(trial: int, seed: int, **measured: Any) -> Result:
    values = {
        "goodput_bps": 95e6 + 1e5 * seed,
        "busy_ping_mean_ms": 10.0,
        "rtt_mean_ms": 10.0,
        "queue_drops": 60,
        "queue_marks": 0,
    }
    params = {**LAB.defaults(), **LAB.trials[trial].set}
    flow = recorded.results_of(LAB, SAMPLES / "two-arms")[0].flows[0]
    flows = tuple(replace(flow, goodput_bps=goodput_bps) for goodput_bps in (47e6, 48e6))
    return Result(
        "queues", trial, "", None, None, seed, params, {**values, **measured}, flows=flows
    )


def test_a_box_for_each_setting_in_order_of_trials() -> None:
    results = [run(trial, seed) for trial in (48, 1, 21) for seed in range(1, 6)]
    figure, rows = draw_declared(LAB, FIGURE, results)
    # One panel after the other, in each the settings in order.
    assert list(dict.fromkeys(row["by"] for row in rows)) == ["pfifo_fast", "red", "red, ECN"]
    assert len(rows) == 15 * len(FIGURE.panels)
    assert [row["value"] for row in rows[:5]] == [95.1, 95.2, 95.3, 95.4, 95.5]
    assert "goodput of both (Mbit/s), medians: pfifo_fast 95.3, red 95.3" in figure.description
    assert svg_text(figure) == svg_text(draw_declared(LAB, FIGURE, results)[0])


def test_each_flow_is_a_value() -> None:
    two_arms = next(one for one in LAB.file.figures if one.id == "two-arms")
    _, rows = draw_declared(LAB, two_arms, [run(1, 1), run(21, 1)])
    assert [row["value"] for row in rows if row["flow"] is not None] == [47, 48, 47, 48]


def test_what_can_not_be_drawn() -> None:
    with pytest.raises(UserError, match="none of 1 runs has a rtt_mean_ms"):
        draw_declared(LAB, FIGURE, [run(1, 1, rtt_mean_ms=None)])
    with pytest.raises(ValueError, match=r"panels\n.*at least 1 item"):
        BoxesFigure(id="x", kind="boxes", title="x", of="x", by="y", panels=[])
