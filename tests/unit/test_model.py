"""The model against numbers that others published or that follow from it by hand."""

import math

import pytest

from measuretwice.model import MATHIS_CONSTANTS, mathis_bandwidth_bps, mathis_expected_losses

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
    assert set(MATHIS_CONSTANTS) == {1.0, math.sqrt(1.5), math.sqrt(0.75)}
