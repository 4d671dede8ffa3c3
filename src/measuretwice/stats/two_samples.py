"""Two samples compared: do their means differ, do their spreads, and could that many
values have shown it? Pure functions; deviations are sample deviations (n - 1).

Sources: Welch, "The generalization of 'Student's' problem when several different population
variances are involved", Biometrika 34, 1947; for F and its power any textbook. All of these
assume independent values, near enough to a normal distribution; the rank-sum test alone needs
no such distribution.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from measuretwice.stats.distributions import (
    f_cdf,
    f_quantile,
    f_tail,
    student_cdf,
    student_quantile,
)
from measuretwice.stats.intervals import mean_and_deviation

# Of more, the normal distribution is as good for three digits.
MOST_EXACT_PAIRS = 2500
# Nobody runs more.
MOST_VALUES = 1_000_000
# As many degrees of freedom as the distributions take: in place of infinitely many.
CROWD = 10_000_000
# How far, in its own deviations, a sample's deviation is followed, and in how many steps.
SPAN, STEPS = 10.0, 400


@dataclass(frozen=True)
class Comparison:
    """A test's statistic, its degrees of freedom, and the two-sided probability of one as large."""

    statistic: float
    freedom: tuple[float, ...]
    p: float


def _welch_error(
    deviation_a: float, count_a: int, deviation_b: float, count_b: int
) -> tuple[float, float]:
    """The standard error of the difference of two means, and its degrees of freedom."""
    part_a, part_b = deviation_a**2 / count_a, deviation_b**2 / count_b
    if part_a + part_b == 0:
        return 0.0, count_a + count_b - 2
    below = part_a**2 / (count_a - 1) + part_b**2 / (count_b - 1)
    return math.sqrt(part_a + part_b), (part_a + part_b) ** 2 / below


def welch_of(
    mean_a: float, deviation_a: float, count_a: int, mean_b: float, deviation_b: float, count_b: int
) -> Comparison:
    """Return Welch's t of two means, from what papers print: mean, deviation, count of each."""
    error, freedom = _welch_error(deviation_a, count_a, deviation_b, count_b)
    if error == 0:
        p = 1.0 if mean_a == mean_b else 0.0
        return Comparison(0.0 if p else math.inf, (freedom,), p)
    t = (mean_a - mean_b) / error
    return Comparison(t, (freedom,), 2 * student_cdf(freedom, -abs(t)))


def difference_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = 0.95
) -> tuple[float, float]:
    """Return Welch's interval of the difference of two means, `a` less `b`.

    Infinite where either has a single value. ValueError for no values.
    """
    if not a or not b:
        raise ValueError("expected at least one value of each")
    if min(len(a), len(b)) == 1:
        return -math.inf, math.inf
    (mean_a, deviation_a), (mean_b, deviation_b) = mean_and_deviation(a), mean_and_deviation(b)
    error, freedom = _welch_error(deviation_a, len(a), deviation_b, len(b))
    half = student_quantile(freedom, 0.5 + confidence / 2) * error
    return mean_a - mean_b - half, mean_a - mean_b + half


def welch(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Return Welch's t of two samples' means."""
    return welch_of(*mean_and_deviation(a), len(a), *mean_and_deviation(b), len(b))


def spread_of(deviation_a: float, count_a: int, deviation_b: float, count_b: int) -> Comparison:
    """Return the F test of two deviations, the larger over the smaller; p counts both sides."""
    (large, n), (small, m) = sorted(
        ((deviation_a, count_a), (deviation_b, count_b)), key=lambda pair: -pair[0]
    )
    if small == 0:
        return Comparison(math.inf, (n - 1, m - 1), 0.0 if large else 1.0)
    f = (large / small) ** 2
    return Comparison(f, (n - 1, m - 1), min(1.0, 2 * f_tail(n - 1, m - 1, f)))


def spread(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Return the F test of two samples' deviations."""
    return spread_of(mean_and_deviation(a)[1], len(a), mean_and_deviation(b)[1], len(b))


def power_of_spread(ratio: float, count: int, significance: float = 0.05) -> float:
    """Return how often an F test of two samples of `count` would notice a true `ratio` of deviations."""
    freedom = count - 1
    high = f_quantile(freedom, freedom, 1 - significance / 2)
    scaled = high / ratio**2
    low = 1 / high / ratio**2
    return f_tail(freedom, freedom, scaled) + f_cdf(freedom, freedom, low)


def values_for_spread(ratio: float, power: float = 0.8, significance: float = 0.05) -> int:
    """Return how many values a sample needs for that power; ValueError unless ratio > 1."""
    if ratio <= 1:
        raise ValueError("expected ratio > 1")
    count = 3
    while power_of_spread(ratio, count, significance) < power:
        count += 1
    return count


def noticeable_spread(count: int, power: float = 0.8, significance: float = 0.05) -> float:
    """Return the least ratio of deviations that two samples of `count` notice with that power."""
    low, high = 1.0, 2.0
    while power_of_spread(high, count, significance) < power:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if power_of_spread(middle, count, significance) >= power
            else (middle, high)
        )
    return high


def power_of_difference(
    difference: float, deviations: Sequence[float], count: int, confidence: float = 0.95
) -> float:
    """Return how likely the interval of a mean, or of a difference of two, lies wholly on the right side of a limit.

    `difference` is how far the truth is from the limit, `deviations` are those of one sample or of two, each of `count`
    values. It is the power of Student's or Welch's two-sided test, without the chance of being significantly wrong.
    ValueError for fewer than two values.

    Source: Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed., chapter 2; the noncentral t by its
    integral over the sample's deviation.
    """
    error, freedom = _error_of(deviations, count)
    if error == 0:
        return float(difference > 0)
    t = student_quantile(freedom, 0.5 + confidence / 2)
    return _over_deviation(freedom, lambda u: _normal(difference / error - t * u))


def power_of_equivalence(
    margin: float, deviations: Sequence[float], count: int, confidence: float = 0.95
) -> float:
    """Return how likely the interval lies within `margin` of zero on both sides, where the truth is zero; the rest as
    power_of_difference. Source: Schuirmann, as for `equivalence`."""
    error, freedom = _error_of(deviations, count)
    if error == 0:
        return float(margin > 0)
    t = student_quantile(freedom, 0.5 + confidence / 2)
    return _over_deviation(freedom, lambda u: max(0.0, 2 * _normal(margin / error - t * u) - 1))


def values_for_power(of_count: Callable[[int], float], power: float) -> int | None:
    """Return of how many values, two or more, a power that grows with them is `power`; None above `MOST_VALUES`."""
    low, high = 1, 2
    while of_count(high) < power:
        low, high = high, 2 * high
        if low > MOST_VALUES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if of_count(middle) < power else (low, middle)
    return high


def deviation_limit(deviation: float, count: int, confidence: float = 0.8) -> float:
    """Return what the deviation behind a sample's is below, with this confidence; ValueError for fewer than two values.

    Few values know their own scatter badly: a study that is planned by this limit is as large as it must be in four of
    five cases. Source: Browne, "On the use of a pilot sample for sample size determination", Statistics in Medicine 14,
    1995. (Chi-square over its degrees of freedom is F with a crowd of others.)
    """
    if count < 2:
        raise ValueError("expected at least two values")
    return deviation / math.sqrt(f_quantile(count - 1, CROWD, 1 - confidence))


def _error_of(deviations: Sequence[float], count: int) -> tuple[float, float]:
    """The standard error of one mean, or of the difference of two, and its degrees of freedom."""
    if count < 2:
        raise ValueError("expected at least two values")
    if len(deviations) == 1:
        return deviations[0] / math.sqrt(count), count - 1
    return _welch_error(deviations[0], count, deviations[1], count)


def _normal(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def _over_deviation(freedom: float, probability: Callable[[float], float]) -> float:
    """Return the mean of `probability` over what a sample's deviation is of the true one: the root of chi-square over
    its degrees of freedom. By Simpson's rule, to eight digits."""
    half = SPAN / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - half), 1 + half
    scale = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)

    def weighted(u: float) -> float:
        if u == 0:
            return 0.0 if freedom > 1 else math.exp(scale) * probability(u)
        log = scale + (freedom - 1) * math.log(u) - freedom / 2 * u * u
        return math.exp(log) * probability(u)

    step = (high - low) / STEPS
    inner = math.fsum((4 if i % 2 else 2) * weighted(low + i * step) for i in range(1, STEPS))
    return min(1.0, (weighted(low) + inner + weighted(high)) * step / 3)


def rank_sum(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Return the rank-sum test of two samples, which asks if either tends to have the larger values.

    For values that are far from a normal distribution. `statistic` is U: in how many of all pairs the value of `a` is
    the larger, where a tie counts as half. Of at most `MOST_EXACT_PAIRS` pairs without a tie, p is exact; else it
    follows from the normal distribution that U tends to, corrected for ties and for U's steps.
    ValueError for no values.

    Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the
    other", Annals of Mathematical Statistics 18, 1947.
    """
    if not a or not b:
        raise ValueError("expected at least one value of each")
    u = sum((x > y) + 0.5 * (x == y) for x in a for y in b)
    pairs, count = len(a) * len(b), len(a) + len(b)
    ties = [times for times in Counter([*a, *b]).values() if times > 1]
    if not ties and pairs <= MOST_EXACT_PAIRS:
        ways = _ways_by_u(len(a), len(b))
        least = round(min(u, pairs - u))
        p = min(1.0, 2 * sum(ways[: least + 1]) / math.comb(count, len(a)))
        return Comparison(u, (len(a), len(b)), p)
    spared = sum(times**3 - times for times in ties) / (count * (count - 1))
    deviation = math.sqrt(pairs / 12 * (count + 1 - spared))
    if deviation == 0:
        return Comparison(u, (len(a), len(b)), 1.0)
    z = max(0.0, abs(u - pairs / 2) - 0.5) / deviation
    return Comparison(u, (len(a), len(b)), math.erfc(z / math.sqrt(2)))


def _ways_by_u(n: int, m: int) -> list[int]:
    """Return in how many orders of n and m values U is 0, 1, … n m: the coefficients of a Gaussian binomial."""
    ways = [1] + [0] * (n * m)
    for k in range(1, n + 1):
        for u in range(n * m, m + k - 1, -1):
            ways[u] -= ways[u - m - k]
        for u in range(k, n * m + 1):
            ways[u] += ways[u - k]
    return ways


def equivalence(a: Sequence[float], b: Sequence[float], margin: float) -> float:
    """Return p of the claim that two means differ by `margin` or more, in the samples' unit: the larger of two
    one-sided Welch tests. If it is small, the means are equal for whoever calls less than `margin` nothing.

    ValueError for fewer than two values of either, or a margin that isn't positive.

    Source: Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.
    """
    if min(len(a), len(b)) < 2 or margin <= 0:
        raise ValueError("expected at least two values of each, and margin > 0")
    (mean_a, deviation_a), (mean_b, deviation_b) = mean_and_deviation(a), mean_and_deviation(b)
    error, freedom = _welch_error(deviation_a, len(a), deviation_b, len(b))
    inside = margin - abs(mean_a - mean_b)
    if error == 0:
        return 0.0 if inside > 0 else 1.0
    return student_cdf(freedom, -inside / error)


def holm(ps: Sequence[float]) -> list[float]:
    """Return the probabilities of several tests, in their order, each as large as it must be taken so that all of
    them together err as seldom as one alone.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.
    """
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = largest
    return adjusted
