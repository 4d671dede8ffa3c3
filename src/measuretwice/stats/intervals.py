"""How far a measurement can be trusted: intervals and fits. Pure functions.

Sources: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case
of the binomial", Biometrika 26, 1934; for the rest any textbook's chapter on regression.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from measuretwice.stats.distributions import beta_quantile, binomial_cdf, student_quantile


@functools.cache
def loss_interval(drops: int, offered: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of the loss ratio behind `drops` of `offered` packets.

    Ratios in 0..1. The interval holds the true ratio in at least `confidence` of all runs.
    ValueError where there are no packets or more drops than packets.
    """
    if offered <= 0 or not 0 <= drops <= offered:
        raise ValueError("expected 0 <= drops <= offered and offered > 0")
    tail = (1 - confidence) / 2
    low = 0.0 if drops == 0 else beta_quantile(drops, offered - drops + 1, tail)
    high = 1.0 if drops == offered else beta_quantile(drops + 1, offered - drops, 1 - tail)
    return low, high


def binomial_interval(count: int, probability: float, confidence: float) -> tuple[float, float]:
    """Return the central interval, as ratios, in which `confidence` of binomial shares lie.

    The other way round than `loss_interval`: here the probability is known. Each tail holds at
    most (1 - confidence)/2.
    """

    def quantile(share: float) -> int:
        """The least k with P(X <= k) >= share."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if binomial_cdf(middle, count, probability) >= share:
                high = middle
            else:
                low = middle + 1
        return low

    tail = (1 - confidence) / 2
    return quantile(tail) / count, quantile(1 - tail) / count


def relative_error_of_loss(losses: float) -> float:
    """Return the standard error of a measured loss ratio, relative to it: 1/sqrt(n)."""
    return math.inf if losses <= 0 else 1 / math.sqrt(losses)


def relative_error_of_ratio(losses: float) -> float:
    """Return the standard error of goodput over model, relative to it: 1/(2 sqrt(n)).

    Goodput goes with 1/sqrt(p), so what chance does to p it does by half to the ratio. A rough
    rule: one run's losses are not spread evenly, and that shows too.
    """
    return relative_error_of_loss(losses) / 2


def ratio_bounds(losses: float, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return what a ratio's interval is of it, by its number of losses: exp(-+z/(2 sqrt(n))).

    The error is relative, so the interval is symmetrical on a logarithmic axis. None where no
    loss was counted: then nothing bounds it.
    """
    if losses <= 0:
        return None
    half = statistics.NormalDist().inv_cdf(0.5 + confidence / 2) * relative_error_of_ratio(losses)
    return math.exp(-half), math.exp(half)


def losses_needed(relative_error: float) -> float:
    """Return how many losses bring the ratio's standard error down to `relative_error`."""
    if relative_error <= 0:
        raise ValueError("expected relative_error > 0")
    return 1 / (2 * relative_error) ** 2


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and sample deviation; ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError("expected at least two values")
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of independent values and its interval (Student's t): mean, low, high.

    With a single value the interval is infinite. ValueError for no values.
    """
    if not values:
        raise ValueError("expected at least one value")
    count = len(values)
    if count == 1:
        return float(values[0]), -math.inf, math.inf
    mean, deviation = mean_and_deviation(values)
    half = student_quantile(count - 1, 0.5 + confidence / 2) * deviation / math.sqrt(count)
    return mean, mean - half, mean + half


def relative_spread(values: Sequence[float]) -> float:
    """Return the standard deviation over the mean; ValueError for fewer than two values."""
    mean, deviation = mean_and_deviation(values)
    return deviation / mean


def ratio_of_means(
    upper: Sequence[float], lower: Sequence[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the ratio of the geometric means of values in pairs, and its interval.

    On a logarithmic scale a ratio is a difference, and that of pairs has a mean and an interval.
    """
    logs = [math.log(a / b) for a, b in zip(upper, lower, strict=True)]
    mean, low, high = mean_interval(logs, confidence)
    return math.exp(mean), math.exp(low), math.exp(high)


def mean_interval_within(
    values: Sequence[float], low: float, high: float = math.inf, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the mean of independent values that lie in low..high, and its interval within these.

    Student's t on the mean's logit (its logarithm where high is infinite), by the delta method: near
    the middle of a wide range it is `mean_interval`, and at its ends it doesn't leave what can be. With a
    single value it is the whole range. ValueError for no values or one outside. Source: Agresti,
    "Categorical Data Analysis", 3rd ed., 16.1.
    """
    if not values or min(values) < low or max(values) > high:
        raise ValueError(f"expected at least one value, and all within {low:g} to {high:g}")
    mean, least, _ = mean_interval(values, confidence)
    if len(values) == 1:
        return mean, low, high
    half = mean - least
    if half == 0:
        return mean, mean, mean
    below = mean - low
    if high == math.inf:
        factor = math.exp(half / below)
        return mean, low + below / factor, low + below * factor
    above, span = high - mean, high - low
    factor = math.exp(half * span / (below * above))
    return (
        mean,
        low + span * below / (below + above * factor),
        low + span * below / (below + above / factor),
    )


def median_interval(
    values: Sequence[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the median of independent values and its interval: median, low, high.

    That of `percentile_interval`, which is the sign test's. Below six values it is infinite. ValueError for no values.
    """
    _, low, high = percentile_interval(values, 0.5, confidence)
    return statistics.median(values), low, high


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least of the values that at least `share` of them don't exceed (nearest rank); ValueError for no values.

    Source: Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996, definition 1.
    """
    if not values or not 0 < share <= 1:
        raise ValueError("expected at least one value, and a share above 0 and at most 1")
    # 0.07 of 100 is 7.000000000000001 to a machine.
    return sorted(values)[math.ceil(round(share * len(values), 9)) - 1]


def percentile_interval(
    values: Sequence[float], share: float, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the percentile of independent values that `share` (0.99 for the 99th) names, and its interval: percentile, low, high.

    The interval is that of two order statistics: as many values as chance may put below the true percentile, by the binomial
    distribution, each tail with at most (1 - confidence) / 2. So it assumes nothing of how the values are distributed, and some
    may be infinite, for what did not end while it was watched. Where no value is far enough out, an end is infinite: a high
    percentile needs many (`values_for_percentile`). Packets of one queue aren't independent: see `effective_count`, or take
    each run's percentile for one value. ValueError for no values.

    Source: David and Nagaraja, "Order statistics", 3rd ed., 7.1; Conover, "Practical nonparametric statistics".
    """
    if not values or not 0 < share < 1:
        raise ValueError("expected at least one value, and a share between 0 and 1")
    ordered, count, tail = sorted(values), len(values), (1 - confidence) / 2
    below = _most_in_tail(count, share, tail)
    above = _most_in_tail(count, 1 - share, tail)
    return (
        percentile(ordered, share),
        ordered[below] if below >= 0 else -math.inf,
        ordered[count - 1 - above] if above >= 0 else math.inf,
    )


def _most_in_tail(count: int, probability: float, tail: float) -> int:
    """Return the largest k with P(X <= k) <= `tail`, X being binomial; -1 where 0 is already too many."""
    low, high = -1, count - 1
    while low < high:
        middle = (low + high + 1) // 2
        if binomial_cdf(middle, count, probability) <= tail:
            low = middle
        else:
            high = middle - 1
    return low


def values_for_percentile(share: float, confidence: float = 0.95) -> int:
    """Return how many independent values a percentile's interval needs, so that both of its ends are finite.

    For a confidence of 0.95 that are 72 for the 95th percentile, 368 for the 99th and 3688 for the 99.9th.
    """
    if not 0 < share < 1:
        raise ValueError("expected a share between 0 and 1")
    return math.ceil(math.log((1 - confidence) / 2) / math.log(max(share, 1 - share)))


@dataclass(frozen=True)
class ConstantFit:
    """The constant C of measured = C * model, and its interval.

    `slope` and its interval are of the free line log(measured) = a + slope * log(model): 1 where
    measurement and model go together over their whole range. None below three points.
    """

    points: int
    constant: float
    low: float
    high: float
    slope: float | None
    slope_low: float | None
    slope_high: float | None


def fit_constant(
    model: Sequence[float], measured: Sequence[float], confidence: float = 0.95
) -> ConstantFit:
    """Fit measured = C * model on logarithmic axes; any unit, the same for both.

    C is the geometric mean of measured/model: the line of slope one that is nearest on paper
    with logarithmic axes, where each point weighs the same however large its bandwidth.
    ValueError for no points, different lengths, or values that aren't positive.
    """
    if len(model) != len(measured) or not model:
        raise ValueError("expected as many measured values as model values, and at least one")
    if min(*model, *measured) <= 0:
        raise ValueError("expected positive values")
    logs = [math.log(value / expected) for expected, value in zip(model, measured, strict=True)]
    mean, low, high = mean_interval(logs, confidence)
    slope = _slope([math.log(x) for x in model], [math.log(y) for y in measured], confidence)
    return ConstantFit(
        len(logs),
        math.exp(mean),
        math.exp(low),
        math.inf if high == math.inf else math.exp(high),
        *(slope or (None, None, None)),
    )


def _slope(x: list[float], y: list[float], confidence: float) -> tuple[float, float, float] | None:
    """Least squares of y on x: slope and its interval; None where it is not defined."""
    count = len(x)
    middle_x, middle_y = math.fsum(x) / count, math.fsum(y) / count
    spread = math.fsum((value - middle_x) ** 2 for value in x)
    if count < 3 or spread == 0:
        return None
    slope = math.fsum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread
    residuals = math.fsum(
        (b - middle_y - slope * (a - middle_x)) ** 2 for a, b in zip(x, y, strict=True)
    )
    error = math.sqrt(residuals / (count - 2) / spread)
    half = student_quantile(count - 2, 0.5 + confidence / 2) * error
    return slope, slope - half, slope + half


def jains_index(rates: Sequence[float]) -> float:
    """Return how evenly `rates` (any one unit, none negative) are shared: 1/n to 1.

    (sum x)^2 / (n sum x^2); all zero counts as even. ValueError without rates or with a negative
    one. Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource
    Allocation in Shared Computer Systems", DEC-TR-301, 1984.
    """
    if not rates or min(rates) < 0:
        raise ValueError("expected rates, none of them negative")
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0


def slope_through_zero(
    points: Sequence[tuple[float, float]], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the slope of y = slope * x by least squares, and its interval: slope, low, high.

    The interval doesn't take for granted that all points scatter alike (the sandwich estimator), but
    that each is independent of the others. Infinite for a single point; ValueError without any whose
    x is not zero. White, "A Heteroskedasticity-Consistent Covariance Matrix Estimator and a Direct
    Test for Heteroskedasticity", Econometrica 48, 1980.
    """
    squares = math.fsum(x * x for x, _ in points)
    if not squares:
        raise ValueError("expected at least one point whose x is not zero")
    slope = math.fsum(x * y for x, y in points) / squares
    count = len(points)
    if count == 1:
        return slope, -math.inf, math.inf
    spread = math.fsum((x * (y - slope * x)) ** 2 for x, y in points)
    error = math.sqrt(spread * count / (count - 1)) / squares
    half = student_quantile(count - 1, 0.5 + confidence / 2) * error
    return slope, slope - half, slope + half


def effective_count(values: Sequence[float]) -> float:
    """Return to how many independent values these are worth, which were measured one after another in a run.

    Each is taken to keep a part of the one before, by their correlation r: n (1 - r) / (1 + r), and at most n.
    ValueError for fewer than three values.

    Source: Bayley and Hammersley, "The effective number of independent observations in an autocorrelated time
    series", Supplement to the Journal of the Royal Statistical Society 8, 1946.
    """
    if len(values) < 3:
        raise ValueError("expected at least three values")
    mean = statistics.fmean(values)
    squares = sum((value - mean) ** 2 for value in values)
    if squares == 0:
        return float(len(values))
    correlation = sum((x - mean) * (y - mean) for x, y in itertools.pairwise(values)) / squares
    correlation = min(max(correlation, 0.0), 1.0)
    return max(1.0, len(values) * (1 - correlation) / (1 + correlation))
