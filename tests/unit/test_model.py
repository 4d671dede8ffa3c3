"""The model against numbers that others published or that follow from it by hand."""

import math

import numpy as np
import pytest

from measuretwice.tcp.model import (
    HIGHSPEED_STEPS,
    MATHIS_CONSTANTS,
    bdp_bytes,
    drain_ms,
    highspeed_decrease_ratio,
    linux_highspeed_decrease_ratio,
    mathis_bandwidth_bps,
    mathis_expected_losses,
    mathis_time_for_losses_s,
    pftk_bandwidth_bps,
    pftk_expected_losses,
    pftk_segments_per_s,
    sack_reno_constant,
    shaped_goodput_bps,
)

# Published beside the trials of the reproduction: model bandwidth in Mbit/s with C = 1.
PUBLISHED = [
    (1460, 6, 0.1566283969, 4.92),
    (1460, 600, 0.0000559121270201603, 2.60),
    (4312, 6, 0.000233840647, 376),
    (1460, 154.5, 0.03774108797, 0.389),
    (4312, 6, 0.006217314741, 72.9),
    (536, 6, 0.001591398645, 17.9),
]


@pytest.mark.parametrize(("mss_bytes", "rtt_ms", "loss_ratio", "mbit"), PUBLISHED)
def test_published_model_values(
    mss_bytes: int, rtt_ms: float, loss_ratio: float, mbit: float
) -> None:
    assert mathis_bandwidth_bps(mss_bytes, rtt_ms, loss_ratio) / 1e6 == pytest.approx(
        mbit, rel=0.005
    )


def test_scaling() -> None:
    base = mathis_bandwidth_bps(1000, 10, 0.01)
    assert base == pytest.approx(1000 * 8 / 0.01 / 0.1)
    assert mathis_bandwidth_bps(2000, 10, 0.01) == pytest.approx(2 * base)
    assert mathis_bandwidth_bps(1000, 20, 0.01) == pytest.approx(base / 2)
    assert mathis_bandwidth_bps(1000, 10, 0.04) == pytest.approx(base / 2)
    assert mathis_bandwidth_bps(1000, 10, 0.01, math.sqrt(1.5)) == pytest.approx(
        base * math.sqrt(1.5)
    )


def test_expected_losses_are_packets_times_p() -> None:
    packets = mathis_bandwidth_bps(1460, 6, 0.005730706937) * 240 / 8 / 1460
    assert mathis_expected_losses(6, 0.005730706937, 240) == pytest.approx(packets * 0.005730706937)


def test_one_loss_at_600_ms_takes_over_a_minute() -> None:
    """p = 3e-5 and 600 ms: some 110 s a loss."""
    assert 1 / mathis_expected_losses(600, 3e-5, 1) == pytest.approx(109.5, rel=0.01)


def test_edges() -> None:
    assert mathis_bandwidth_bps(1460, 6, 0) == math.inf
    assert mathis_expected_losses(6, 0, 240) == 0
    with pytest.raises(ValueError):
        mathis_bandwidth_bps(1460, 6, 1.5)


def test_time_for_losses_undoes_expected_losses() -> None:
    seconds = mathis_time_for_losses_s(600, 3e-5, 100, 1.31)
    assert mathis_expected_losses(600, 3e-5, seconds, 1.31) == pytest.approx(100)
    assert mathis_time_for_losses_s(600, 0, 1) == math.inf


def random_loss_constant(loss_ratio: float, segments_per_window_step: int) -> float:
    """The C of an ideal Reno sender when each packet is lost with probability p, by simulating what Mathis 1997, Table 1
    assumes: a round trip without loss adds 1/`segments_per_window_step` segment, one with any loss halves the window,
    once, and no timeouts happen. C is mean goodput in segments a round trip, times sqrt(p)."""
    window, sent, rounds = 1.0 / math.sqrt(loss_ratio), 0.0, 400_000
    for value in np.random.default_rng(1997).random(rounds):
        sent += window
        if value < -math.expm1(math.floor(window) * math.log1p(-loss_ratio)):
            window = max(window / 2, 1.0)
        else:
            window += 1 / segments_per_window_step
    return sent * (1 - loss_ratio) / rounds * math.sqrt(loss_ratio)


@pytest.mark.parametrize(
    ("name", "step"), [("1.31", 1), ("0.93", 2)], ids=["each segment", "each second segment"]
)
def test_ideal_reno_under_random_loss_has_the_papers_constant(name: str, step: int) -> None:
    """Table 1 of Mathis 1997, found again by simulating what it assumes."""
    assert MATHIS_CONSTANTS[name].segments_per_window_step == step
    simulated = random_loss_constant(2e-4, step)
    assert simulated == pytest.approx(MATHIS_CONSTANTS[name].value, rel=0.015)


def test_todays_reno_is_the_ideal_one_where_loss_is_rare() -> None:
    """Noticing and repairing a loss takes a few round trips of many hundred."""
    for step in (1, 2):
        rare = sack_reno_constant(2e-5, step, cycles=4000)
        assert rare == pytest.approx(random_loss_constant(2e-4, step), rel=0.025)
        often = sack_reno_constant(0.01, step)
        assert 0.85 * rare < often < 0.95 * rare
    with pytest.raises(ValueError):
        sack_reno_constant(0.0)


def test_pftk_becomes_mathis_where_loss_is_rare() -> None:
    """Without timeouts PFTK is sqrt(3/2b): Padhye 1998, equation 20."""
    for per_ack, name in ((1, "sqrt(3/2)"), (2, "sqrt(3/4)")):
        rate = pftk_segments_per_s(100, 1e-7, segments_per_ack=per_ack)
        constant = rate * 0.1 * math.sqrt(1e-7)
        assert constant == pytest.approx(MATHIS_CONSTANTS[name].value, rel=0.005)


@pytest.mark.parametrize("loss_ratio", [1e-4, 1e-3, 1e-2, 0.05])
@pytest.mark.parametrize("per_ack", [1, 2])
def test_pftk_short_and_full_form_agree(loss_ratio: float, per_ack: int) -> None:
    """The short form: Padhye 1998, equation 31 (33 in the journal's version)."""
    full = pftk_segments_per_s(200, loss_ratio, rto_ms=1000, segments_per_ack=per_ack)
    p, b = loss_ratio, per_ack
    timeouts = 1.0 * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    short = 1 / (0.2 * math.sqrt(2 * b * p / 3) + timeouts)
    assert short == pytest.approx(full, rel=0.35)
    assert full < math.sqrt(1.5 / per_ack) / 0.2 / math.sqrt(loss_ratio) * 1.1


def test_pftk_window_limit_and_edges() -> None:
    limited = pftk_segments_per_s(100, 1e-6, max_window_segments=20)
    assert limited == pytest.approx(20 / 0.1, rel=0.01)
    assert pftk_segments_per_s(100, 0, max_window_segments=20) == pytest.approx(200)
    assert pftk_segments_per_s(100, 0) == math.inf
    assert pftk_bandwidth_bps(1460, 6, 1) == 0
    assert pftk_bandwidth_bps(1460, 0, 0.1) == math.inf
    assert pftk_expected_losses(6, 0, 240) == 0
    sent = pftk_segments_per_s(6, 0.1)
    assert pftk_bandwidth_bps(1460, 6, 0.1) == pytest.approx(sent * 0.9 * 1460 * 8)
    for wrong in (-0.1, 1.0):
        with pytest.raises(ValueError):
            pftk_segments_per_s(100, wrong)


@pytest.mark.parametrize(
    ("window", "given_up"), [(38, 0.50), (118, 0.44), (221, 0.41), (495, 0.37), (851, 0.34), (1284, 0.32), (83000, 0.10)],
)  # fmt: skip
def test_highspeed_gives_up_what_the_rfcs_table_says(window: int, given_up: float) -> None:
    """RFC 3649, Table 12 in appendix B, whose second digit is rounded."""
    assert highspeed_decrease_ratio(window) == pytest.approx(given_up, abs=0.006)


def test_below_its_low_window_highspeed_is_reno() -> None:
    assert highspeed_decrease_ratio(10) == 0.5


@pytest.mark.parametrize(
    ("window", "part"), [(1, 128), (38, 128), (39, 112), (851, 86), (852, 83), (905, 83), (89053, 24), (1e6, 24)],
)  # fmt: skip
def test_linux_highspeed_gives_up_a_steps_part(window: float, part: int) -> None:
    assert linux_highspeed_decrease_ratio(window) == part / 256


def test_the_steps_of_linux_keep_near_the_rfcs_curve() -> None:
    for until, part in HIGHSPEED_STEPS[:-2]:
        assert part / 256 == pytest.approx(highspeed_decrease_ratio(until), abs=0.006)


def test_a_bdp() -> None:
    assert bdp_bytes(100, 100) == 1_250_000
    assert drain_ms(1_250_000, 100) == 100


def test_what_a_shaped_link_carries() -> None:
    assert shaped_goodput_bps(1.514) == pytest.approx(1.448e6)
