"""What theory says a TCP flow should reach. Pure functions; nothing here touches the system.

Sources, cited by name below:

- Mathis 1997: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion
  Avoidance Algorithm", ACM SIGCOMM CCR 27(3).
- Padhye 1998: Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput: A Simple Model and its
  Empirical Validation", ACM SIGCOMM. Called PFTK after its authors.
- RFC 6298: computing TCP's retransmission timer.
- RFC 3649: HighSpeed TCP for large congestion windows, section 5 and its Table 1 (appendix B).
- RFC 9438: CUBIC, section 4.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# RFC 3649, section 5: up to the low window HighSpeed TCP is Reno; at the high one it gives up a tenth.
HIGHSPEED_LOW_WINDOW_SEGMENTS = 38
HIGHSPEED_HIGH_WINDOW_SEGMENTS = 83000
HIGHSPEED_HIGH_DECREASE_RATIO = 0.1
# What a flow keeps of its window: RFC 5681, and RFC 9438 (Linux has 717/1024).
RENO_KEPT_RATIO = 0.5
CUBIC_KEPT_RATIO = 0.7
# Linux adds at least this to the smoothed round-trip time before it times out (TCP_RTO_MIN).
LINUX_RTO_MARGIN_MS = 200.0


@dataclass(frozen=True)
class Constant:
    """One value of the Mathis constant and what it takes for granted.

    `segments_per_window_step`: how many segments must be acknowledged, in windows, before the
    window grows by one: 1 where each segment counts, 2 where each ACK counts and a delayed ACK
    stands for two.
    """

    name: str
    value: float
    losses: str
    segments_per_window_step: int | None
    assumes: str


# Mathis 1997, section 2 and Table 1.
MATHIS_CONSTANTS: dict[str, Constant] = {
    constant.name: constant
    for constant in (
        Constant("1", 1.0, "any", None, "the plain form MSS/(RTT sqrt(p)), for comparison"),
        Constant("sqrt(3/2)", math.sqrt(3 / 2), "periodic", 1,
                 "a loss every 1/p packets exactly; the window grows for every segment"),
        Constant("sqrt(3/4)", math.sqrt(3 / 4), "periodic", 2,
                 "a loss every 1/p packets exactly; the window grows for every second segment"),
        Constant("1.31", 1.31, "random", 1,
                 "each packet is lost with probability p; the window grows for every segment"),
        Constant("0.93", 0.93, "random", 2,
                 "each packet is lost with probability p; the window grows for every second segment"),
    )
}  # fmt: skip


def mathis_bandwidth_bps(
    mss_bytes: float, rtt_ms: float, loss_ratio: float, constant: float = 1.0
) -> float:
    """Return the model's bandwidth in bit/s: C * MSS / (RTT * sqrt(p)), Mathis 1997, equation 3.

    Infinite where nothing is lost or nothing delays: the model has no other limit.
    ValueError for a negative argument or a loss ratio above 1.
    """
    if mss_bytes < 0 or rtt_ms < 0 or not 0 <= loss_ratio <= 1 or constant <= 0:
        raise ValueError("expected mss_bytes, rtt_ms >= 0, loss_ratio in 0..1, constant > 0")
    if loss_ratio == 0 or rtt_ms == 0:
        return math.inf
    return constant * mss_bytes * 8 / (rtt_ms / 1e3) / math.sqrt(loss_ratio)


def constant_by_regression(points: Sequence[tuple[float, float]]) -> float:
    """Return C of measured = C * model, by least squares over flows and through zero.

    `points` are model bandwidth (C = 1) and measured bandwidth, in one unit. Large flows weigh
    more than in `statistics.fit_constant`. ValueError without points.
    """
    squares = math.fsum(x * x for x, _ in points)
    if not squares:
        raise ValueError("expected at least one point whose model bandwidth is not zero")
    return math.fsum(x * y for x, y in points) / squares


def mathis_expected_losses(
    rtt_ms: float, loss_ratio: float, duration_s: float, constant: float = 1.0
) -> float:
    """Return how many losses the model expects in a run: C * t * sqrt(p) / RTT.

    The flow sends C/(RTT sqrt(p)) segments a second, and a share p of them is lost.
    """
    if rtt_ms <= 0:
        return math.inf if loss_ratio > 0 else 0.0
    return constant * duration_s * math.sqrt(loss_ratio) / (rtt_ms / 1e3)


def mathis_time_for_losses_s(
    rtt_ms: float, loss_ratio: float, losses: float, constant: float = 1.0
) -> float:
    """Return how many seconds the model needs for `losses` losses: N * RTT / (C sqrt(p)).

    Infinite where nothing is lost.
    """
    if loss_ratio <= 0:
        return math.inf
    return losses * (rtt_ms / 1e3) / (constant * math.sqrt(loss_ratio))


def linux_rto_ms(rtt_ms: float) -> float:
    """Return the first retransmission timeout where the round-trip time hardly varies.

    RFC 6298 takes SRTT + 4 RTTVAR, at least a second; Linux keeps the second term at 200 ms or
    more and has no other minimum.
    """
    return rtt_ms + LINUX_RTO_MARGIN_MS


def pftk_segments_per_s(
    rtt_ms: float,
    loss_ratio: float,
    *,
    rto_ms: float | None = None,
    segments_per_ack: int = 1,
    max_window_segments: float = math.inf,
) -> float:
    """Return PFTK's full model: how many segments a second leave, those sent again included.

    Padhye 1998, equation 30 (in the journal's version 32). `segments_per_ack` is the paper's b:
    how many segments must be acknowledged for the window to grow as by one ACK. `rto_ms` is its
    T_0, by default what Linux has. Infinite where nothing is lost and no window limits.
    ValueError outside loss_ratio 0..1 (1 excluded), rtt_ms > 0.
    """
    rtt_s, rto_s = _pftk_times_s(rtt_ms, rto_ms, loss_ratio, segments_per_ack, max_window_segments)
    p, b = loss_ratio, segments_per_ack
    if p == 0:
        return max_window_segments / rtt_s
    part = (2 + b) / (3 * b)
    unlimited = part + math.sqrt(8 * (1 - p) / (3 * b * p) + part * part)
    window = min(unlimited, max_window_segments)
    timeout_share = _pftk_timeout_share(p, window)
    backoff = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    segments = (1 - p) / p + window + timeout_share / (1 - p)
    if unlimited < max_window_segments:
        rounds = b / 2 * window + 1
    else:
        rounds = b / 8 * window + (1 - p) / (p * window) + 2
    return segments / (rtt_s * rounds + timeout_share * rto_s * backoff / (1 - p))


def _pftk_times_s(
    rtt_ms: float, rto_ms: float | None, loss_ratio: float, per_ack: int, window_segments: float
) -> tuple[float, float]:
    """The round-trip time and the timeout in seconds; ValueError where PFTK is not defined."""
    if not 0 <= loss_ratio < 1 or rtt_ms <= 0 or per_ack < 1 or window_segments < 1:
        raise ValueError("expected loss_ratio in 0..1, rtt_ms > 0, segments and window >= 1")
    return rtt_ms / 1e3, (linux_rto_ms(rtt_ms) if rto_ms is None else rto_ms) / 1e3


def _pftk_timeout_share(p: float, window: float) -> float:
    """Q of Padhye 1998, equation 24: the share of losses that end in a timeout."""
    if window <= 3:
        return 1.0
    kept: float = (1 - p) ** 3
    share: float = (1 - kept) * (1 + kept * (1 - (1 - p) ** (window - 3))) / (1 - (1 - p) ** window)
    return min(1.0, share)


def pftk_approximate_segments_per_s(
    rtt_ms: float,
    loss_ratio: float,
    *,
    rto_ms: float | None = None,
    segments_per_ack: int = 1,
    max_window_segments: float = math.inf,
) -> float:
    """Return PFTK's short form, Padhye 1998, equation 31 (33 in the journal's version).

    Near the full model up to p of some 0.05; at p = 0.3 a third of it.

    Units, defaults and errors as `pftk_segments_per_s`.
    """
    rtt_s, rto_s = _pftk_times_s(rtt_ms, rto_ms, loss_ratio, segments_per_ack, max_window_segments)
    p, b = loss_ratio, segments_per_ack
    window_limit = max_window_segments / rtt_s
    if p == 0:
        return window_limit
    timeouts = rto_s * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    return min(window_limit, 1 / (rtt_s * math.sqrt(2 * b * p / 3) + timeouts))


def pftk_bandwidth_bps(
    mss_bytes: float, rtt_ms: float, loss_ratio: float, constant: float = 1.0
) -> float:
    """Return PFTK's goodput in bit/s with Linux's timeout: the full model's rate, less the lost.

    Infinite without loss or delay, as `mathis_bandwidth_bps`; `constant` scales it likewise.
    ValueError for a negative argument or a loss ratio above 1.
    """
    if mss_bytes < 0 or rtt_ms < 0 or not 0 <= loss_ratio <= 1 or constant <= 0:
        raise ValueError("expected mss_bytes, rtt_ms >= 0, loss_ratio in 0..1, constant > 0")
    if loss_ratio == 1:
        return 0.0
    if loss_ratio == 0 or rtt_ms == 0:
        return math.inf
    sent = pftk_segments_per_s(rtt_ms, loss_ratio)
    return constant * mss_bytes * 8 * (1 - loss_ratio) * sent


def pftk_expected_losses(
    rtt_ms: float, loss_ratio: float, duration_s: float, constant: float = 1.0
) -> float:
    """Return how many losses PFTK expects in a run: p times the segments sent."""
    if rtt_ms <= 0 or loss_ratio >= 1:
        return math.inf if loss_ratio > 0 else 0.0
    if loss_ratio <= 0:
        return 0.0
    return constant * duration_s * loss_ratio * pftk_segments_per_s(rtt_ms, loss_ratio)


def random_loss_constant(
    loss_ratio: float, segments_per_window_step: int = 1, rounds: int = 400_000, seed: int = 1997
) -> float:
    """Return the C that an ideal Reno sender has when each packet is lost with probability p.

    A simulation of the assumptions behind Mathis 1997, Table 1, kept to the essentials: per round
    trip one window is sent; a round without loss adds 1/`segments_per_window_step` segment; a
    round with any loss halves the window, once, and no timeouts happen. C is mean goodput
    in segments a round trip, times sqrt(p). It needs no network, and says what to expect of a
    sender that does exactly this. Exact to about 1/sqrt(rounds * sqrt(p)).
    """
    import numpy as np

    draw = np.random.default_rng(seed)
    window, sent = 1.0 / math.sqrt(loss_ratio), 0.0
    no_loss_log = math.log1p(-loss_ratio)
    for value in draw.random(rounds):
        sent += window
        if value < -math.expm1(math.floor(window) * no_loss_log):
            window = max(window / 2, 1.0)
        else:
            window += 1 / segments_per_window_step
    return float(sent * (1 - loss_ratio) / rounds * math.sqrt(loss_ratio))


def sack_reno_constant(
    loss_ratio: float, segments_per_window_step: int = 1, cycles: int = 20_000, seed: int = 1997
) -> float:
    """Return the C of a Reno sender as it is built today, under random loss: a prediction.

    Computed cycle by cycle, from one recovery to the next, in round trips:

    - the window grows by one segment a window acknowledged (RFC 5681), of which each segment
      counts as 1/`segments_per_window_step`;
    - a loss is noticed one round trip after it was sent, and that round trip's window, which may
      lose more, still goes out;
    - recovery takes a round trip at half the window and without growth (RFC 6675, RFC 6937), one
      more for each time that a segment sent again is lost again (RFC 8985), and never a timeout.

    C is goodput in segments a round trip, times sqrt(p). Chance leaves it an error of about
    1/(2 sqrt(cycles)). ValueError where the loss ratio is not between 0 and 1.
    """
    if not 0 < loss_ratio < 1:
        raise ValueError("expected 0 < loss_ratio < 1")
    import numpy as np

    draw = np.random.default_rng(seed)
    grow = 1 / segments_per_window_step
    window, rounds, segments, lost = max(2.0, 1 / math.sqrt(loss_ratio)), 0.0, 0.0, 1
    for until_loss in draw.geometric(loss_ratio, cycles):
        half = max(int(window) // 2, 2)
        fresh, again = max(half - lost, 0), lost
        rounds += 1
        while again := int(draw.binomial(again, loss_ratio)):
            rounds += 1
            fresh += max(half - again, 0)
        segments += fresh
        left, window = float(max(until_loss - fresh, 0)), float(half)
        # Whole round trips before the loss's own: the most k with k half + k(k-1) grow/2 < left.
        part = half - grow / 2
        whole = int((math.sqrt(part * part + 2 * grow * max(left - 0.5, 0.0)) - part) / grow)
        window += whole * grow
        segments, rounds = segments + left, rounds + whole
        rounds += (left - whole * half - whole * (whole - 1) * grow / 2) / window
        segments, rounds = segments + window, rounds + 1
        lost = 1 + int(draw.binomial(int(window), loss_ratio))
        window += grow
    return segments / rounds * math.sqrt(loss_ratio)


def highspeed_decrease_ratio(window_segments: float) -> float:
    """Return which share of its window HighSpeed TCP gives up after a loss: RFC 3649's b(w).

    0.5 up to a window of 38 segments, then down with the window's logarithm to 0.1 at 83000.
    """
    low, high = HIGHSPEED_LOW_WINDOW_SEGMENTS, HIGHSPEED_HIGH_WINDOW_SEGMENTS
    if window_segments <= low:
        return 0.5
    part = math.log(window_segments / low) / math.log(high / low)
    return 0.5 + (HIGHSPEED_HIGH_DECREASE_RATIO - 0.5) * part


def bdp_bytes(rate_mbit: float, rtt_ms: float) -> float:
    """Return a path's bandwidth-delay product: what is in flight when its link is just full."""
    return rate_mbit * 1e6 / 8 * rtt_ms / 1e3


# Models by the name that lab.toml gives: each takes MSS (bytes), RTT (ms), p, and its constant.
BANDWIDTH_BPS: dict[str, Callable[[float, float, float, float], float]] = {
    "mathis": mathis_bandwidth_bps,
    "pftk": pftk_bandwidth_bps,
}
EXPECTED_LOSSES: dict[str, Callable[[float, float, float, float], float]] = {
    "mathis": mathis_expected_losses,
    "pftk": pftk_expected_losses,
}
