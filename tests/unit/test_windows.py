"""Windows over time: decreases, convergence, and traces that a person took from text."""

import math

import pytest

from measuretwice.measure.student_tables import over_truth, read_rows
from measuretwice.stats.two_samples import difference_interval
from measuretwice.tcp import model
from measuretwice.tcp.traces import convergence_s, decreases, interpolate


def test_a_decrease_is_a_change_of_ssthresh_against_the_window_before() -> None:
    found = decreases([0, 1, 2, 3, 4, 5], [10, 80, 100, 50, 120, 84], [None, None, 70, 70, 70, 84])
    assert [(one.time_s, one.window_segments, one.kept_ratio) for one in found] == [(5, 120, 0.7)]


def test_the_end_of_the_first_slow_start_is_no_decrease() -> None:
    assert decreases([0, 1, 2], [10, 400, 100], [None, 200, 200]) == []


@pytest.mark.parametrize(
    ("window", "given_up"), [(38, 0.50), (118, 0.44), (221, 0.41), (495, 0.37), (851, 0.34), (1284, 0.32), (83000, 0.10)],
)  # fmt: skip
def test_highspeed_gives_up_what_the_rfcs_table_says(window: int, given_up: float) -> None:
    """RFC 3649, Table 12 in appendix B, whose second digit is rounded."""
    assert model.highspeed_decrease_ratio(window) == pytest.approx(given_up, abs=0.006)


def test_below_its_low_window_highspeed_is_reno() -> None:
    assert model.highspeed_decrease_ratio(10) == 0.5


@pytest.mark.parametrize(
    ("window", "part"), [(1, 128), (38, 128), (39, 112), (851, 86), (852, 83), (905, 83), (89053, 24), (1e6, 24)],
)  # fmt: skip
def test_linux_highspeed_gives_up_a_steps_part(window: float, part: int) -> None:
    assert model.linux_highspeed_decrease_ratio(window) == part / 256


def test_the_steps_of_linux_keep_near_the_rfcs_curve() -> None:
    for until, part in model.HIGHSPEED_STEPS[:-2]:
        assert part / 256 == pytest.approx(model.highspeed_decrease_ratio(until), abs=0.006)


def test_a_bdp() -> None:
    assert model.bdp_bytes(100, 100) == 1_250_000


def flow(*rates: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Times and bytes of a flow with one rate until a time, then the next."""
    times, acked = [0.0], [0.0]
    for until, rate in rates:
        while times[-1] < until:
            times.append(times[-1] + 1)
            acked.append(acked[-1] + rate)
    return times, acked


def test_convergence_counts_from_the_start_to_the_first_even_ten_seconds() -> None:
    first, second = flow((20, 90), (60, 50)), flow((20, 10), (60, 50))
    found = convergence_s([first, second], 0, 60)
    # At 28 s the second has had 2 s of 10 and 8 s of 50: 420 of 1000, its fair share less 16 %.
    assert found == 28
    assert convergence_s([flow((60, 90)), flow((60, 10))], 0, 60) is None
    assert convergence_s([flow((60, 5)), flow((60, 5))], 0, 60) == 10
    assert convergence_s([flow((60, 0)), flow((60, 0))], 0, 60) is None


def test_a_value_between_samples() -> None:
    assert interpolate([0, 10], [0, 100], 2.5) == 25
    assert interpolate([0, 10], [0, 100], -1) == 0
    assert interpolate([0, 10], [0, 100], 11) == 100


def test_rows_count_what_is_wrong_in_them() -> None:
    rows = read_rows("0.1 10\n0.2 20\n0.1 30\n0.2\nhello\n\n0.3 1.5\n")
    assert rows.values == [10, 20, 30, 1.5]
    assert rows.backwards == 1
    assert rows.unreadable == 3
    assert read_rows("").values == []


def test_a_wrong_unit_shows_in_the_large_values() -> None:
    times = [float(n) for n in range(100)]
    truth = [500.0 + 20 * n for n in range(100)]
    told = [value if value < 1024 else value / 1024 * 1000 for value in truth]
    text = "\n".join(f"{n} {value}" for n, value in zip(times, told, strict=True))
    assert over_truth(read_rows(text), 0.0, times, truth) == pytest.approx(1000 / 1024, abs=1e-4)
    right = "\n".join(f"{n} {value}" for n, value in zip(times, truth, strict=True))
    assert over_truth(read_rows(right), 0.0, times, truth) == 1
    assert over_truth(read_rows(""), 0.0, times, truth) is None


def test_a_step_of_the_window_is_no_wrong_unit() -> None:
    times = [float(n) for n in range(10)]
    late = "\n".join(f"{n} 81.4" for n in range(10))
    assert over_truth(read_rows(late), 0.0, times, [80.0] * 10) == 1.0175
    assert over_truth(read_rows(late), 0.0, times, [80.0] * 10, grain=2.8) == 1
    large = "\n".join(f"{n} 1000" for n in range(10))
    assert over_truth(read_rows(large), 0.0, times, [1024.0] * 10, grain=2.8) == pytest.approx(
        0.979, abs=1e-3
    )


def test_the_interval_of_a_difference() -> None:
    """Welch by hand: means 2 and 5, variances 1 and 4, three values each."""
    low, high = difference_interval([1, 2, 3], [3, 5, 7])
    assert (low + high) / 2 == pytest.approx(-3)
    # Standard error sqrt(1/3 + 4/3), degrees of freedom 2.941; t = 3.2180.
    assert high - low == pytest.approx(2 * 3.218 * math.sqrt(5 / 3), rel=0.001)
    assert difference_interval([1], [2, 3]) == (-math.inf, math.inf)
    assert difference_interval([1, 1], [2, 2]) == (-1, -1)
