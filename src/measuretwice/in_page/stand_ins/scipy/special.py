"""Stands in for scipy.special in a browser, where SciPy would be 15 MB more: what checks and reports need of it.

All of it follows from the incomplete beta function, computed by its continued fraction (NIST Digital Library of
Mathematical Functions, 8.17.22), and its inverse, by halving. A test holds each function against SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

TINY = 1e-300
CLOSE = 1e-15
MOST_TERMS = 200_000


def betainc(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if a == 0 or b == 0:
        return float(a == 0)
    # Where the fraction would converge slowly, the other tail's does not.
    if x > (a + 1) / (a + b + 2):
        return 1 - betainc(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return front / a / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1/(1 + d2/(1 + ...)), by Lentz' method as Thompson and Barnett have it."""
    value, upper, lower = 1.0, 1.0, 0.0
    for term in range(1, MOST_TERMS):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        upper = 1 + d / upper or TINY
        lower = 1 / (1 + d * lower or TINY)
        value *= upper * lower
        if abs(upper * lower - 1) < CLOSE:
            break
    return value


def _where(rises: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a function that rises from `low` to `high` has the wanted value."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if rises(middle) < wanted:
            low = middle
        else:
            high = middle


def _largest(rises: Callable[[float], float], wanted: float) -> float:
    """An argument from which on such a function is above the wanted value."""
    high = 1.0
    while rises(high) < wanted and high < 1e300:
        high *= 2
    return high


def betaincinv(a: float, b: float, y: float) -> float:
    """x with I_x(a, b) = y."""
    return _where(lambda x: betainc(a, b, x), y, 0.0, 1.0)


def bdtr(k: float, n: int, p: float) -> float:
    """The probability of at most k successes of n."""
    return 1.0 if k >= n else betainc(n - math.floor(k), math.floor(k) + 1, 1 - p)


def stdtr(df: float, t: float) -> float:
    """Student's t distribution up to t."""
    tail = betainc(df / 2, 0.5, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def stdtrit(df: float, p: float) -> float:
    """t with stdtr(df, t) = p."""
    if p < 0.5:
        return -stdtrit(df, 1 - p)
    high = _largest(lambda t: stdtr(df, t), p)
    return _where(lambda t: stdtr(df, t), p, 0.0, high)


def fdtr(dfn: float, dfd: float, x: float) -> float:
    """The F distribution up to x."""
    return betainc(dfn / 2, dfd / 2, dfn * x / (dfn * x + dfd)) if x > 0 else 0.0


def fdtrc(dfn: float, dfd: float, x: float) -> float:
    """The F distribution from x on."""
    return betainc(dfd / 2, dfn / 2, dfd / (dfn * x + dfd)) if x > 0 else 1.0


def fdtri(dfn: float, dfd: float, p: float) -> float:
    """x with fdtr(dfn, dfd, x) = p."""
    high = _largest(lambda x: fdtr(dfn, dfd, x), p)
    return _where(lambda x: fdtr(dfn, dfd, x), p, 0.0, high)


def ndtri(p: float) -> float:
    """x up to which the normal distribution has p."""
    return NormalDist().inv_cdf(p)
