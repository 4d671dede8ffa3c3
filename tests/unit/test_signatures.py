"""What gives an algorithm away: on curves made by its own formula, and on the recorded runs."""

from __future__ import annotations

import pytest

from measuretwice.measure.connections import Trace
from measuretwice.measure.signatures import bbr_cycle, cubic_epochs, cubic_k_s, spread, vegas_band
from measuretwice.parse import parse_ss_samples

STEP_S = 0.1


def cubic_trace(target: float, start: float, seconds: float) -> list[int]:
    """RFC 9438's curve from `start` towards `target` segments."""
    k_s = ((target - start) / 0.4) ** (1 / 3)
    return [
        round(0.4 * (n * STEP_S - k_s) ** 3 + target) for n in range(round(seconds / STEP_S) + 1)
    ]


def test_k_is_the_time_to_where_it_was() -> None:
    # RFC 9438: 0.4 K^3 = W_max - cwnd_epoch.
    assert cubic_k_s(1000, 700) == pytest.approx(9.0856, abs=1e-3)
    assert cubic_k_s(700, 700) == 0


def test_epochs_with_and_without_fast_convergence() -> None:
    first = cubic_trace(1000, 700, 8)  # ends below 1000, concave
    second = cubic_trace(first[-1] * 0.85, first[-1] * 0.7, 14)  # the target is lowered
    third = cubic_trace(second[-1], second[-1] * 0.7, 5)
    windows = [1000, *first, *second, *third, 600]
    ssthresh = [900, *[700] * len(first), *[round(0.7 * first[-1])] * len(second)]
    ssthresh += [round(0.7 * second[-1])] * len(third) + [400]
    times = [n * STEP_S for n in range(len(windows))]
    first_epoch, second_epoch, _ = cubic_epochs(times, windows, ssthresh)
    assert (first_epoch.target_segments, first_epoch.convex) == (1000, False)
    assert second_epoch.target_segments == pytest.approx(0.85 * first[-1], rel=0.01)
    assert second_epoch.convex
    assert second_epoch.window(second_epoch.lasted_s) == pytest.approx(
        second_epoch.end_segments, rel=0.02
    )


def sample(number: int, gain: float, cwnd: int) -> str:
    return (
        f"# t=17000000{number // 50:02d}.{number % 50 * 20:03d}000000\n"
        "ESTAB 0 0 10.0.0.1:5000 10.0.0.2:5201 bbr wscale:7,7 rto:240 rtt:40/1 mss:1448 "
        f"cwnd:{cwnd} bbr:(bw:9bps,mrtt:40,pacing_gain:{gain},cwnd_gain:2)\n"
    )


def test_bbr_probes_and_cuts_its_window_for_a_moment() -> None:
    gains = ([1.25] * 2 + [0.75] * 2 + [1] * 12) * 5
    lines = [sample(n, gain, 600) for n, gain in enumerate(gains)]
    lines += [sample(80 + n, 1, 4) for n in range(10)] + [sample(90, 1, 600)]
    cycle = bbr_cycle(parse_ss_samples("".join(lines), "ss"), 5000)
    assert cycle is not None
    assert cycle.cycle_s == pytest.approx(16 * 0.02)
    # The first sample begins a phase; each lasts until the first sample of the next.
    assert cycle.phase_ms == {1.25: pytest.approx(40), 0.75: pytest.approx(40)}
    assert cycle.gain_share[1.25] == pytest.approx(10 / 91)
    assert cycle.probe_rtt_s == [pytest.approx(1.6)]
    assert cycle.probe_rtt_ms == [pytest.approx(180)]


def test_another_algorithm_has_no_cycle() -> None:
    text = sample(0, 1, 9).replace("bbr:(bw:9bps,mrtt:40,pacing_gain:1,cwnd_gain:2)", "")
    assert bbr_cycle(parse_ss_samples(text.replace("bbr", "reno"), "ss"), 5000) is None


def test_vegas_band_is_of_the_time_that_is_asked_for() -> None:
    band = vegas_band([0, 1, 2, 3], [99, 4, 6, 5], 1, 3)
    assert band is not None
    assert (band.least_packets, band.mean_packets) == (4, 5)
    assert vegas_band([0, 1], [1, 1], 5, 6) is None


def test_spread_is_of_the_settled_part() -> None:
    rtts = [900.0, 40.0, 42.0, 44.0]
    trace = Trace("client", 1, 1448, [5.0, 6.0, 7.0, 8.0], [9, 10, 10, 10], [None] * 4, rtts,
                  [None] * 4, [0] * 4, [0] * 4)  # fmt: skip
    settled = spread(trace, 1)
    assert settled is not None
    assert (settled.rtt_ms, settled.cwnd_segments) == (2, 0)
    assert spread(trace, 3) is None
