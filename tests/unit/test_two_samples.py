"""Tests of two samples, against published and tabled values."""

import math
import random

import pytest

from measuretwice.stats import two_samples


def test_the_published_table_recomputes() -> None:
    """FIFO 51.56 with deviation 1.61, RED 50.82 with 2.49, eight pairs each."""
    means = two_samples.welch_of(51.56, 1.61, 8, 50.82, 2.49, 8)
    assert (round(means.statistic, 2), round(means.p, 2)) == (0.71, 0.49)
    spreads = two_samples.spread_of(1.61, 8, 2.49, 8)
    assert spreads.freedom == (7, 7)
    assert round(spreads.statistic, 2) == 2.39
    # Both sides; the one side alone has half of it, 0.14.
    assert round(spreads.p / 2, 2) == 0.14


def test_tabled_values() -> None:
    # F(0.975; 7, 7) = 4.99 and t(0.975; 14) = 2.145 in any textbook's tables.
    assert two_samples.spread_of(math.sqrt(4.9949), 8, 1, 8).p == pytest.approx(0.05, abs=1e-4)
    assert two_samples.welch([1, 2, 3], [1, 2, 3]).p == pytest.approx(1)


def test_samples_without_any_spread() -> None:
    assert two_samples.welch([2, 2], [2, 2]).p == 1
    assert two_samples.welch([2, 2], [3, 3]).p == 0
    assert two_samples.spread([1, 1], [1, 1]).p == 1
    assert two_samples.spread([1, 2], [1, 1]).p == 0
    with pytest.raises(ValueError, match="at least two"):
        two_samples.mean_and_deviation([1])


def test_power_of_spread_is_what_a_simulation_finds() -> None:
    chance = random.Random(5)
    for ratio, count in ((1.0, 8), (2.0, 8), (1.5, 50)):
        found = sum(
            two_samples.spread(
                [chance.gauss(0, 1) for _ in range(count)],
                [chance.gauss(0, ratio) for _ in range(count)],
            ).p
            < 0.05
            for _ in range(2000)
        )
        assert found / 2000 == pytest.approx(two_samples.power_of_spread(ratio, count), abs=0.035)


def test_how_many_and_how_much_fit_each_other() -> None:
    for ratio in (1.5, 2.0, 3.0):
        count = two_samples.values_for_spread(ratio)
        assert (
            two_samples.noticeable_spread(count) <= ratio < two_samples.noticeable_spread(count - 1)
        )
    with pytest.raises(ValueError, match="ratio > 1"):
        two_samples.values_for_spread(1)
