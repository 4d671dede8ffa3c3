"""benchmarks/pairs.py: ratios of the same experiment in two kernels, and their means."""

import pytest
from benchmark_modules import load

pairs = load("pairs")


def test_pairs_ratios_are_averaged_by_lab_and_value() -> None:
    made = [
        pairs.Pair("mathis", 7, {}, seed, {"goodput_bps": (stock, 10.0), "drops": (None, 3)})
        for seed, stock in ((1, 9.0), (2, 11.0))
    ]
    (row,) = pairs.summed_up(made)
    assert row["value"] == "goodput_bps"
    assert row["pairs"] == 2
    assert row["mean_ratio"] == pytest.approx(1.0)
    assert row["low"] < 1 < row["high"]


def test_a_value_of_zero_in_both_is_the_same_and_in_one_tells_no_ratio() -> None:
    pair = pairs.Pair("queues", 1, {}, 1, {"marks": (0, 0), "drops": (4, 0), "queue": (0, 4)})
    assert pair.ratios == {"marks": 1.0, "queue": 0.0}
