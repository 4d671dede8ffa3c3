"""What pages say of chance."""

import math
from pathlib import Path

import pytest

from measuretwice.figures.spread import spread
from measuretwice.runs.result import Prediction, Result, Verdict
from measuretwice.stats import intervals


def run(trial: int, seed: int, ratio: float, ok: bool | None = True) -> Result:
    judged = Verdict("", "loss_ratio", 0.005, 0.0, 1.0, 0.99, ok)
    unjudged = Verdict("", "ratio", ratio, 1.0, 1.45, None, False)
    measured = {"goodput_bps": ratio * 1e6, "qdisc_drops": 200, "qdisc_offered_packets": 40_000}
    return Result(
        lab="mathis",
        trial=trial,
        title="",
        pitfall=None,
        stage=None,
        seed=seed,
        params={"rtt_ms": 6, "mss_bytes": 1460, "loss_ratio": 0.005},
        measured=measured,
        model=Prediction("mathis", 1.0, 1e6, 200.0),
        ratio=ratio,
        expectations=(judged, unjudged),
        folder=Path(f"run-{trial}-{seed}"),
    )


def test_relative_spread() -> None:
    assert intervals.relative_spread([9, 10, 11]) == pytest.approx(0.1)


def test_ratio_of_means() -> None:
    ratio, low, high = intervals.ratio_of_means([2, 8], [1, 2])
    assert ratio == pytest.approx(math.sqrt(8))
    assert low * high == pytest.approx(8)
    assert low < ratio < high


def test_the_spread_figure_says_what_it_shows() -> None:
    runs = [run(n, n, 1.2 + n / 100) for n in range(4)]
    figure = spread(runs[:2], runs, 0.02)
    assert figure is not None
    assert "4 runs" in figure.description
    assert spread(runs, runs, 0.001) is None
    assert spread(runs, runs[:2], 0.02) is None
