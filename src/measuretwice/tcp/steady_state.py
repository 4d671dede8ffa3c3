"""One sender looked at closely: what it does once it has settled. Pure functions on traces.

A flow's mean over its whole life mixes its beginning with what comes after. So rates here are taken
from a moment that the experiment names.
"""

from __future__ import annotations

import itertools
from typing import Protocol

from measuretwice.tcp.window import at

Values = dict[str, float | int | None]
# The interval is cut into so many parts, to see whether the rate still rises.
PARTS = 5
# A tenth of a second is the shortest interval of iperf3.
TENTH_S = 0.1


class Traced(Protocol):
    """What is needed of a connection's trace: parallel lists, one entry a sample."""

    @property
    def mss_bytes(self) -> int | None: ...
    @property
    def time_s(self) -> list[float]: ...
    @property
    def cwnd_segments(self) -> list[int]: ...
    @property
    def rtt_ms(self) -> list[float]: ...
    @property
    def min_rtt_ms(self) -> list[float | None]: ...
    @property
    def acked_bytes(self) -> list[int]: ...
    @property
    def retransmits(self) -> list[int]: ...


def rate_bps(trace: Traced, start_s: float, end_s: float) -> float:
    """Bits acknowledged a second, between two Unix times."""
    first, last = (at(trace.time_s, trace.acked_bytes, time_s) for time_s in (start_s, end_s))
    return 8 * (last - first) / (end_s - start_s)


def settled(trace: Traced, start_s: float, end_s: float) -> Values:
    """A connection from `start_s` to `end_s` (Unix times).

    `rising_ratio` is the rate of the last fifth of this time over that of the first, and
    `rising_steps` how many of the four steps between fifths go up. `cwnd_over_rate_ms` is the round-trip time
    that window and rate would make if the window were always full.
    """
    inside = [n for n, time_s in enumerate(trace.time_s) if start_s <= time_s <= end_s]
    if len(inside) < PARTS or end_s <= start_s:
        return {}
    ends = [start_s + (end_s - start_s) * n / PARTS for n in range(PARTS + 1)]
    parts = [rate_bps(trace, a, b) for a, b in itertools.pairwise(ends)]
    goodput = rate_bps(trace, start_s, end_s)
    rtts = sorted(trace.rtt_ms[n] for n in inside)
    cwnd = sum(trace.cwnd_segments[n] for n in inside) / len(inside)
    values: Values = {
        "steady_goodput_bps": goodput,
        "steady_rtt_ms": round(sum(rtts) / len(rtts), 6),
        "steady_rtt_p95_ms": rtts[int(0.95 * (len(rtts) - 1))],
        "steady_cwnd_segments": round(cwnd, 6),
        "steady_retransmits": trace.retransmits[inside[-1]] - trace.retransmits[inside[0]],
        "rising_ratio": parts[-1] / parts[0] if parts[0] > 0 else None,
        "rising_steps": sum(b > a for a, b in itertools.pairwise(parts)),
        "tcp_min_rtt_ms": min((ms for ms in trace.min_rtt_ms if ms is not None), default=None),
    }
    if trace.mss_bytes and goodput > 0:
        values["cwnd_over_rate_ms"] = 8e3 * cwnd * trace.mss_bytes / goodput
    return values


def sampled_each_tenth(trace: Traced) -> bool:
    """Is there a sample in each tenth of a second, or nearly?"""
    return (trace.time_s[-1] - trace.time_s[0]) / len(trace.time_s) <= 1.5 * TENTH_S


def lowest_tenth_bps(trace: Traced) -> float | None:
    """The least rate in any tenth of a second, from the second second on; None where the trace has
    no sample in each."""
    start_s, end_s = trace.time_s[0] + 1, trace.time_s[-1]
    count = int((end_s - start_s) / TENTH_S)
    if count < 1 or not sampled_each_tenth(trace):
        return None
    return min(
        rate_bps(trace, start_s + n * TENTH_S, start_s + (n + 1) * TENTH_S) for n in range(count)
    )
