"""What theory says a TCP flow should reach. Pure functions; nothing here touches the system.

Sources: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion
Avoidance Algorithm", ACM SIGCOMM CCR 27(3), 1997.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# Constants of the Mathis model and what each assumes (section 2 of the paper).
MATHIS_CONSTANTS = {
    1.0: "C = 1: the plain form MSS/(RTT sqrt(p)), as the reproduction's author used it",
    math.sqrt(3 / 2): "sqrt(3/2) = 1.22: periodic loss, an ACK for every segment",
    math.sqrt(3 / 4): "sqrt(3/4) = 0.87: periodic loss, an ACK for every second segment",
}


def mathis_bandwidth_bps(
    mss_bytes: float, rtt_ms: float, loss_ratio: float, constant: float = 1.0
) -> float:
    """Return the model's bandwidth in bit/s: C * MSS / (RTT * sqrt(p)), equation 3.

    Infinite where nothing is lost or nothing delays: the model has no other limit.
    ValueError for a negative argument or a loss ratio above 1.
    """
    if mss_bytes < 0 or rtt_ms < 0 or not 0 <= loss_ratio <= 1 or constant <= 0:
        raise ValueError("expected mss_bytes, rtt_ms >= 0, loss_ratio in 0..1, constant > 0")
    if loss_ratio == 0 or rtt_ms == 0:
        return math.inf
    return constant * mss_bytes * 8 / (rtt_ms / 1e3) / math.sqrt(loss_ratio)


def mathis_expected_losses(
    rtt_ms: float, loss_ratio: float, duration_s: float, constant: float = 1.0
) -> float:
    """Return how many losses the model expects in a run: C * t * sqrt(p) / RTT.

    The flow sends C/(RTT sqrt(p)) segments a second, and a share p of them is lost.
    """
    if rtt_ms <= 0:
        return math.inf if loss_ratio > 0 else 0.0
    return constant * duration_s * math.sqrt(loss_ratio) / (rtt_ms / 1e3)


# Models by the name that lab.toml gives: each takes MSS (bytes), RTT (ms), p, and its constant.
BANDWIDTH_BPS: dict[str, Callable[[float, float, float, float], float]] = {
    "mathis": mathis_bandwidth_bps,
}
EXPECTED_LOSSES: dict[str, Callable[[float, float, float, float], float]] = {
    "mathis": mathis_expected_losses,
}
