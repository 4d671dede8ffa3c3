"""Intervals, fits and tests of two samples: against scipy, tabled and published values, and data made with known truth."""

import math
import random

import pytest

from measuretwice.stats.intervals import (
    binomial_interval,
    effective_count,
    fit_constant,
    jains_index,
    loss_interval,
    losses_needed,
    mean_and_deviation,
    mean_interval,
    mean_interval_within,
    median_interval,
    percentile,
    percentile_interval,
    ratio_bounds,
    ratio_of_means,
    relative_error_of_loss,
    relative_error_of_ratio,
    relative_spread,
    values_for_percentile,
)
from measuretwice.stats.two_samples import (
    MOST_EXACT_PAIRS,
    difference_interval,
    equivalence,
    holm,
    noticeable_spread,
    power_of_spread,
    rank_sum,
    spread,
    spread_of,
    values_for_spread,
    welch,
    welch_of,
)


@pytest.mark.slow
def test_binomial_interval_holds_its_confidence() -> None:
    """Against the sum of exact probabilities."""
    from scipy.stats import binom

    count, p = 5000, 0.0057
    low, high = binomial_interval(count, p, 0.99)
    inside = binom.cdf(round(high * count), count, p) - binom.cdf(round(low * count) - 1, count, p)
    assert 0.99 <= inside < 0.995


def test_a_binomial_interval_knows_no_largest_count() -> None:
    """More packets than 32 bits count: by the normal approximation, which is exact enough there."""
    count, p = 5 * 10**9, 0.001
    half = 2.5758 * math.sqrt(p * (1 - p) / count)
    low, high = binomial_interval(count, p, 0.99)
    assert low == pytest.approx(p - half, rel=1e-6)
    assert high == pytest.approx(p + half, rel=1e-6)


def test_no_loss_expected_means_none_allowed() -> None:
    assert binomial_interval(1000, 0.0, 0.99) == (0.0, 0.0)


def test_loss_interval_is_clopper_and_pearsons() -> None:
    from scipy.stats import binomtest

    for drops, offered in ((0, 50), (2, 1000), (1000, 1000), (57, 10_000)):
        theirs = binomtest(drops, offered).proportion_ci(0.95, method="exact")
        assert loss_interval(drops, offered) == pytest.approx((theirs.low, theirs.high))
    with pytest.raises(ValueError):
        loss_interval(2, 1)


def test_a_hundred_losses_are_ten_percent_of_p_and_five_of_the_ratio() -> None:
    assert relative_error_of_loss(100) == pytest.approx(0.1)
    assert relative_error_of_ratio(100) == pytest.approx(0.05)
    assert losses_needed(0.05) == pytest.approx(100)
    assert relative_error_of_ratio(0) == math.inf
    assert ratio_bounds(100) == pytest.approx((math.exp(-0.098), math.exp(0.098)), rel=1e-4)
    assert ratio_bounds(0) is None


def test_mean_interval_is_students() -> None:
    from scipy.stats import t

    values = [1.2, 1.31, 1.25, 1.28]
    mean, low, high = mean_interval(values)
    error = (sum((v - mean) ** 2 for v in values) / 3 / 4) ** 0.5
    assert (low, high) == pytest.approx(t.interval(0.95, 3, mean, error))
    assert mean_interval([2.0]) == (2.0, -math.inf, math.inf)
    with pytest.raises(ValueError):
        mean_interval([])


def test_fit_finds_the_constant_that_made_the_data() -> None:
    """Of 400 samples with a known C, its 95 % interval holds it about 95 times in 100."""
    draw = random.Random(1997)
    held = slope_held = 0
    for _ in range(400):
        model = [10 ** draw.uniform(-1, 3) for _ in range(12)]
        measured = [1.31 * x * math.exp(draw.gauss(0, 0.05)) for x in model]
        fit = fit_constant(model, measured)
        held += fit.low <= 1.31 <= fit.high
        assert fit.slope_low is not None
        assert fit.slope_high is not None
        slope_held += fit.slope_low <= 1 <= fit.slope_high
    assert 365 <= held <= 395
    assert 365 <= slope_held <= 395


def test_fit_says_what_it_cannot_use() -> None:
    fit = fit_constant([2.0], [2.5])
    assert (fit.constant, fit.slope) == (pytest.approx(1.25), None)
    assert fit.high == math.inf
    for model, measured in (([], []), ([1.0], [1.0, 2.0]), ([1.0, 0.0], [1.0, 1.0])):
        with pytest.raises(ValueError):
            fit_constant(model, measured)


def test_jains_index() -> None:
    assert jains_index([5.0, 5.0, 5.0]) == pytest.approx(1)
    assert jains_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    # (3 + 1)^2 / (2 (9 + 1))
    assert jains_index([3.0, 1.0]) == pytest.approx(0.8)
    assert jains_index([0.0, 0.0]) == 1
    for wrong in ([], [1.0, -1.0]):
        with pytest.raises(ValueError, match="rates"):
            jains_index(wrong)


def test_median_interval_is_the_sign_tests() -> None:
    # Conover's table for n = 30: the 10th and the 21st value; for n = 10 the 2nd and the 9th.
    assert median_interval(range(1, 31)) == (15.5, 10, 21)
    assert median_interval(range(1, 11)) == (5.5, 2, 9)
    assert median_interval([1, 2, 3, 4, 5, math.inf]) == (3.5, 1, math.inf)
    assert median_interval([1, 2, 3]) == (2, -math.inf, math.inf)
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])


def test_a_percentile_is_one_of_the_values() -> None:
    """Nearest rank: of a hundred values the 99th is the 99th, of ten the largest."""
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile(range(1, 101), 0.07) == 7
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(1, 11), 0.99) == percentile(range(1, 11), 1) == 10
    for values, share in (([], 0.5), ([1.0], 0.0), ([1.0], 99)):
        with pytest.raises(ValueError, match="at least one value"):
            percentile(values, share)


@pytest.mark.parametrize(("count", "share"), [(30, 0.5), (100, 0.9), (500, 0.99), (5000, 0.999)])
def test_percentile_interval_is_that_of_order_statistics(count: int, share: float) -> None:
    """Against scipy's test of a quantile."""
    from scipy.stats import quantile_test

    values = range(1, count + 1)
    theirs = quantile_test(values, p=share).confidence_interval(0.95)
    assert percentile_interval(values, share)[1:] == (theirs.low, theirs.high)


@pytest.mark.parametrize(("share", "needed"), [(0.95, 72), (0.99, 368), (0.999, 3688), (0.05, 72)])
def test_a_high_percentile_needs_many_values(share: float, needed: int) -> None:
    assert values_for_percentile(share) == needed
    _, low, high = percentile_interval(range(needed), share)
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert math.inf in map(abs, percentile_interval(range(needed - 1), share))


def test_percentile_interval_holds_its_confidence() -> None:
    """Of exponential waits, whose 99th percentile is known."""
    dice, held = random.Random(7), 0
    for _ in range(500):
        _, low, high = percentile_interval([dice.expovariate(1) for _ in range(600)], 0.99)
        held += low <= math.log(100) <= high
    assert 0.94 < held / 500 < 0.995


def test_median_interval_holds_its_confidence() -> None:
    dice = random.Random(5)
    held = 0
    for _ in range(2000):
        _, low, high = median_interval([dice.expovariate(1) for _ in range(30)])
        held += low <= math.log(2) <= high
    assert 0.945 < held / 2000 < 0.975


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ((0.97, 0.99, 1.0), 0, 1),
        ((0.5, 0.51, 0.9), 0.5, 1),
        ((0.01, 0.02, 0.3), 0, 1),
        ((40.1, 40.2, 130.0), 40, math.inf),
        ((0.001, 5.0, 9.0), 0, math.inf),
    ],
)
def test_an_interval_stays_within_what_can_be(
    values: tuple[float, ...], low: float, high: float
) -> None:
    mean, least, most = mean_interval_within(values, low, high)
    assert mean == mean_interval(values)[0]
    assert low < least < mean < most <= high
    assert most < high or high == math.inf


def test_far_from_its_ends_it_is_the_usual_interval() -> None:
    values = (0.50, 0.51, 0.49)
    for bounds in ((0, 1), (-1e6, math.inf)):
        within = mean_interval_within(values, *bounds)
        assert within == pytest.approx(mean_interval(values), rel=1e-3)


def test_an_interval_of_equal_values_is_one_value_and_of_one_value_all() -> None:
    assert mean_interval_within((1.0, 1.0), 0, 1) == (1.0, 1.0, 1.0)
    assert mean_interval_within((0.3,), 0, 1) == (0.3, 0, 1)
    for values in ((), (0.5, 1.1)):
        with pytest.raises(ValueError, match="all within 0 to 1"):
            mean_interval_within(values, 0, 1)


def test_relative_spread() -> None:
    assert relative_spread([9, 10, 11]) == pytest.approx(0.1)


def test_ratio_of_means() -> None:
    ratio, low, high = ratio_of_means([2, 8], [1, 2])
    assert ratio == pytest.approx(math.sqrt(8))
    assert low * high == pytest.approx(8)
    assert low < ratio < high


def test_the_published_table_recomputes() -> None:
    """FIFO 51.56 with deviation 1.61, RED 50.82 with 2.49, eight pairs each."""
    means = welch_of(51.56, 1.61, 8, 50.82, 2.49, 8)
    assert (round(means.statistic, 2), round(means.p, 2)) == (0.71, 0.49)
    spreads = spread_of(1.61, 8, 2.49, 8)
    assert spreads.freedom == (7, 7)
    assert round(spreads.statistic, 2) == 2.39
    # Both sides; the one side alone has half of it, 0.14.
    assert round(spreads.p / 2, 2) == 0.14


def test_tabled_values() -> None:
    # F(0.975; 7, 7) = 4.99 and t(0.975; 14) = 2.145 in any textbook's tables.
    assert spread_of(math.sqrt(4.9949), 8, 1, 8).p == pytest.approx(0.05, abs=1e-4)
    assert welch([1, 2, 3], [1, 2, 3]).p == pytest.approx(1)


def test_samples_without_any_spread() -> None:
    assert welch([2, 2], [2, 2]).p == 1
    assert welch([2, 2], [3, 3]).p == 0
    assert spread([1, 1], [1, 1]).p == 1
    assert spread([1, 2], [1, 1]).p == 0
    with pytest.raises(ValueError, match="at least two"):
        mean_and_deviation([1])


def test_power_of_spread_is_what_a_simulation_finds() -> None:
    chance = random.Random(5)
    for ratio, count in ((1.0, 8), (2.0, 8), (1.5, 50)):
        found = sum(
            spread(
                [chance.gauss(0, 1) for _ in range(count)],
                [chance.gauss(0, ratio) for _ in range(count)],
            ).p
            < 0.05
            for _ in range(2000)
        )
        assert found / 2000 == pytest.approx(power_of_spread(ratio, count), abs=0.035)


def test_how_many_and_how_much_fit_each_other() -> None:
    for ratio in (1.5, 2.0, 3.0):
        count = values_for_spread(ratio)
        assert noticeable_spread(count) <= ratio < noticeable_spread(count - 1)
    with pytest.raises(ValueError, match="ratio > 1"):
        values_for_spread(1)


def test_the_interval_of_a_difference() -> None:
    """Welch by hand: means 2 and 5, variances 1 and 4, three values each."""
    low, high = difference_interval([1, 2, 3], [3, 5, 7])
    assert (low + high) / 2 == pytest.approx(-3)
    # Standard error sqrt(1/3 + 4/3), degrees of freedom 2.941; t = 3.2180.
    assert high - low == pytest.approx(2 * 3.218 * math.sqrt(5 / 3), rel=0.001)
    assert difference_interval([1], [2, 3]) == (-math.inf, math.inf)
    assert difference_interval([1, 1], [2, 2]) == (-1, -1)


def some_samples(seed: int, sizes: tuple[int, int], *, tied: bool) -> tuple[list[float], ...]:
    chance = random.Random(seed)
    values = [[chance.lognormvariate(0.2 * n, 0.5) for _ in range(size)] for n, size in enumerate(sizes)]  # fmt: skip
    return tuple([round(x, 1) for x in sample] if tied else sample for sample in values)


@pytest.mark.parametrize("sizes", [(4, 4), (10, 10), (30, 30), (5, 40), (60, 60)])
@pytest.mark.parametrize("tied", [False, True])
def test_rank_sum_is_scipys(sizes: tuple[int, int], tied: bool) -> None:
    from scipy.stats import mannwhitneyu

    for seed in range(5):
        a, b = some_samples(seed, sizes, tied=tied)
        exact = len(set(a + b)) == len(a + b) and len(a) * len(b) <= MOST_EXACT_PAIRS
        theirs = mannwhitneyu(a, b, method="exact" if exact else "asymptotic")
        ours = rank_sum(a, b)
        assert ours.statistic == theirs.statistic
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)


def test_rank_sum_of_equal_values_tells_nothing() -> None:
    assert rank_sum([1.0, 1.0], [1.0, 1.0]).p == 1
    with pytest.raises(ValueError, match="at least one value"):
        rank_sum([], [1.0])


def test_equivalence_is_the_larger_of_two_one_sided_tests() -> None:
    from scipy.stats import ttest_ind

    a, b = some_samples(3, (20, 25), tied=False)
    sides = [
        ttest_ind([x + shift for x in a], b, equal_var=False, alternative=alternative).pvalue
        for shift, alternative in ((1.0, "greater"), (-1.0, "less"))
    ]  # fmt: skip
    assert equivalence(a, b, 1.0) == pytest.approx(max(sides), rel=1e-9)
    assert equivalence([1.0, 1.0], [1.0, 1.0], 0.1) == 0
    assert equivalence([1.0, 1.0], [2.0, 2.0], 0.1) == 1
    with pytest.raises(ValueError, match="margin > 0"):
        equivalence(a, b, 0.0)


def test_holm_takes_the_least_as_one_of_all() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_values_that_keep_a_part_of_the_last_are_worth_fewer() -> None:
    chance = random.Random(1)
    alone = [chance.gauss(0, 1) for _ in range(4000)]
    kept = [0.0]
    for value in alone:
        kept.append(0.6 * kept[-1] + value)
    assert effective_count(alone) == pytest.approx(4000, rel=0.1)
    assert effective_count(kept) == pytest.approx(1000, rel=0.15)
    assert effective_count([2.0, 2.0, 2.0]) == 3
    assert effective_count([1.0, -1.0, 1.0, -1.0]) == 4
    with pytest.raises(ValueError, match="three values"):
        effective_count([1.0, 2.0])
