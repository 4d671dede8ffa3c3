"""Distributions against SciPy's, over far more than intervals and tests ask of them."""

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import special

from measuretwice.stats.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    f_cdf,
    f_quantile,
    f_tail,
    student_cdf,
    student_quantile,
)

# Below it SciPy has fewer digits, too: subnormal numbers begin at 2e-308.
LEAST = 1e-250


def from_to(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of any magnitude between the two."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


PARAMETER = from_to(0.1, 1e7)
FREEDOM = from_to(0.5, 1e6)
SHARE = st.one_of(st.floats(1e-6, 1 - 1e-6), from_to(1e-12, 0.5))


def ten_digits(got: float, wanted: float) -> bool:
    return (got < 2 * LEAST) if wanted < LEAST else got == pytest.approx(wanted, rel=1e-10)


@settings(deadline=None)
@given(PARAMETER, PARAMETER, st.one_of(st.floats(1e-300, 1), from_to(1e-300, 1)))
@example(411.14654916138545, 30.61493425630825, 0.25)
@example(4312025.925526342, 0.6868477757900845, 0.9999995662154249)
@example(0.1, 0.1, 1e-300)
def test_beta_wherever_it_is_asked(a: float, b: float, x: float) -> None:
    assert ten_digits(beta_cdf(a, b, x), float(special.betainc(a, b, x)))


@given(PARAMETER, PARAMETER, st.floats(-30, 30))
@example(1e7, 1e7, 0.0)
def test_beta_about_its_mean(a: float, b: float, deviations: float) -> None:
    """Where the fraction has most terms, thirty standard deviations to either side."""
    x = (a + deviations * math.sqrt(a * b / (a + b + 1))) / (a + b)
    assume(0 < x < 1)
    assert ten_digits(beta_cdf(a, b, x), float(special.betainc(a, b, x)))


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), SHARE)
def test_binomial(k_of_n: tuple[int, int], p: float) -> None:
    """Against the beta distribution's other tail: SciPy's binomial takes 1 - p, with fewer digits of a small p."""
    k, n = k_of_n
    wanted = 1.0 if k == n else float(special.betaincc(k + 1, n - k, p))
    assert ten_digits(binomial_cdf(k, n, p), wanted)


@given(FREEDOM, from_to(1e-2, 1e6), st.sampled_from((-1, 1)))
def test_student(freedom: float, t: float, sign: int) -> None:
    assert ten_digits(student_cdf(freedom, sign * t), float(special.stdtr(freedom, sign * t)))


@given(st.one_of(st.just(0.0), from_to(1e-12, 1e6)), st.sampled_from((-1, 1)))
def test_student_in_closed_form(t: float, sign: int) -> None:
    """Also near zero, where SciPy has eight digits."""
    assert student_cdf(1, sign * t) == pytest.approx(0.5 + math.atan(sign * t) / math.pi, abs=1e-15)
    wanted = 0.5 + sign * t / (2 * math.sqrt(2 + t * t))
    assert student_cdf(2, sign * t) == pytest.approx(wanted, abs=1e-15)


@given(FREEDOM, FREEDOM, from_to(1e-6, 1e6))
def test_f(n: float, m: float, x: float) -> None:
    assert ten_digits(f_cdf(n, m, x), float(special.fdtr(n, m, x)))
    assert ten_digits(f_tail(n, m, x), float(special.fdtrc(n, m, x)))


@given(FREEDOM, FREEDOM, PARAMETER, PARAMETER, SHARE)
def test_quantiles(n: float, m: float, a: float, b: float, share: float) -> None:
    """Up to the number before a quantile SciPy's distribution has no more than was asked for, up to the next no less."""
    low, high = share * (1 - 1e-9) - 1e-15, share * (1 + 1e-9) + 1e-15
    x, t, f = beta_quantile(a, b, share), student_quantile(n, share), f_quantile(n, m, share)
    assert special.betainc(a, b, math.nextafter(x, 0)) < high
    assert special.betainc(a, b, math.nextafter(x, 1)) > low
    assert special.stdtr(n, math.nextafter(t, -math.inf)) < high
    assert special.stdtr(n, math.nextafter(t, math.inf)) > low
    assert special.fdtr(n, m, math.nextafter(f, 0)) < high
    assert special.fdtr(n, m, math.nextafter(f, math.inf)) > low


def test_ends() -> None:
    assert (beta_cdf(2, 3, -1), beta_cdf(2, 3, 0), beta_cdf(2, 3, 1), beta_cdf(2, 3, 2)) == (0, 0, 1, 1)  # fmt: skip
    assert (binomial_cdf(5, 5, 0.5), binomial_cdf(2, 5, 0.0), binomial_cdf(2, 5, 1.0)) == (1, 1, 0)
    assert (student_cdf(3, -math.inf), student_cdf(3, 0), student_cdf(3, math.inf)) == (0, 0.5, 1)
    assert (f_cdf(3, 4, 0), f_tail(3, 4, 0), f_cdf(3, 4, math.inf), f_tail(3, 4, math.inf)) == (0, 1, 1, 0)  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: beta_cdf(0, 1, 0.5),
        lambda: beta_cdf(1, -1, 0.5),
        lambda: beta_cdf(1, 1, math.nan),
        lambda: student_cdf(3, math.nan),
        lambda: student_quantile(3, 1.0),
        lambda: f_quantile(3, 3, 0.0),
    ],
)
def test_what_has_no_answer_is_refused(wrong: Callable[[], float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        wrong()
