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
from collections.abc import Callable
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
# Linux' steps, of RFC 3649's appendix B (net/ipv4/tcp_highspeed.c of Linux 7.2): up to which window (segments), and which part of it, in 1/256, a loss takes.
HIGHSPEED_STEPS = (
    (38, 128), (118, 112), (221, 104), (347, 98), (495, 93), (663, 89), (851, 86), (1058, 83),
    (1284, 81), (1529, 78), (1793, 76), (2076, 74), (2378, 72), (2699, 71), (3039, 69),
    (3399, 68), (3778, 66), (4177, 65), (4596, 64), (5036, 62), (5497, 61), (5979, 60),
    (6483, 59), (7009, 58), (7558, 57), (8130, 56), (8726, 55), (9346, 54), (9991, 53),
    (10661, 52), (11358, 52), (12082, 51), (12834, 50), (13614, 49), (14424, 48), (15265, 48),
    (16137, 47), (17042, 46), (17981, 45), (18955, 45), (19965, 44), (21013, 43), (22101, 43),
    (23230, 42), (24402, 41), (25618, 41), (26881, 40), (28193, 39), (29557, 39), (30975, 38),
    (32450, 38), (33986, 37), (35586, 36), (37253, 36), (38992, 35), (40808, 35), (42707, 34),
    (44694, 33), (46776, 33), (48961, 32), (51258, 32), (53677, 31), (56230, 30), (58932, 30),
    (61799, 29), (64851, 28), (68113, 28), (71617, 27), (75401, 26), (79517, 26), (84035, 25),
    (89053, 24),
)  # fmt: skip

IP_TCP_HEADERS_BYTES = 40
IPV4_HEADER_BYTES = 20
TIMESTAMP_OPTION_BYTES = 12
ETHERNET_HEADER_BYTES = 14
# A frame's check sequence, preamble and gap: on the wire, but not in what Linux' shapers count.
ETHERNET_WIRE_BYTES = 24
# An MTU of 1500 with TCP's timestamps.
USUAL_MSS_BYTES = 1448
# The frame that carries it, as Linux' shapers and queues count it.
USUAL_FRAME_BYTES = 1514


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
    p, b = loss_ratio, segments_per_ack
    if not 0 <= p < 1 or rtt_ms <= 0 or b < 1 or max_window_segments < 1:
        raise ValueError("expected loss_ratio in 0..1, rtt_ms > 0, segments and window >= 1")
    rtt_s = rtt_ms / 1e3
    rto_s = (linux_rto_ms(rtt_ms) if rto_ms is None else rto_ms) / 1e3
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


def _pftk_timeout_share(p: float, window: float) -> float:
    """Q of Padhye 1998, equation 24: the share of losses that end in a timeout."""
    if window <= 3:
        return 1.0
    no_loss_in_three: float = (1 - p) ** 3
    share: float = (
        (1 - no_loss_in_three)
        * (1 + no_loss_in_three * (1 - (1 - p) ** (window - 3)))
        / (1 - (1 - p) ** window)
    )
    return min(1.0, share)


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


def linux_highspeed_decrease_ratio(window_segments: float) -> float:
    """Return which share of its window Linux' HighSpeed TCP gives up after a loss.

    That of the first step that isn't below the window. The loss that ends slow start takes the
    first step's half instead: Linux looks for the step as the window grows in congestion avoidance.
    """
    parts = (part for until, part in HIGHSPEED_STEPS if window_segments <= until)
    return next(parts, HIGHSPEED_STEPS[-1][1]) / 256


def largest_packet_bytes(mss_bytes: float, *, timestamps: bool = True) -> float:
    """Return the most that an IP packet with a segment of `mss_bytes` holds."""
    return mss_bytes + IP_TCP_HEADERS_BYTES + (TIMESTAMP_OPTION_BYTES if timestamps else 0)


def payload_limit(
    link: float, mss_bytes: float = USUAL_MSS_BYTES, *, wire: bool = True, timestamps: bool = True
) -> float:
    """Return the most goodput that a link allows, in the link's own unit.

    With `wire`, all that a frame takes on Ethernet counts; else only what Linux' shapers count.
    Each segment of `mss_bytes` carries TCP's timestamps, unless there are none.
    """
    frame = largest_packet_bytes(mss_bytes, timestamps=timestamps) + ETHERNET_HEADER_BYTES
    return link * mss_bytes / (frame + (ETHERNET_WIRE_BYTES if wire else 0))


def shaped_goodput_bps(rate_mbit: float) -> float:
    """Return the most goodput, in bit/s, of a link whose rate a Linux shaper keeps, with TCP's timestamps."""
    return payload_limit(rate_mbit * 1e6, wire=False)


def bdp_bytes(rate_mbit: float, rtt_ms: float) -> float:
    """Return a path's bandwidth-delay product: what is in flight when its link is just full."""
    return rate_mbit * 1e6 / 8 * rtt_ms / 1e3


def drain_ms(size_bytes: float, rate_mbit: float) -> float:
    """Return how long a link takes to send so many bytes, in milliseconds."""
    return 8e3 * size_bytes / (rate_mbit * 1e6)


# Models by the name that lab.toml gives: each takes MSS (bytes), RTT (ms), p, and its constant.
BANDWIDTH_BPS: dict[str, Callable[[float, float, float, float], float]] = {
    "mathis": mathis_bandwidth_bps,
    "pftk": pftk_bandwidth_bps,
}
EXPECTED_LOSSES: dict[str, Callable[[float, float, float, float], float]] = {
    "mathis": mathis_expected_losses,
    "pftk": pftk_expected_losses,
}
