"""Traces of a connection with rates that a test chose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trace:
    """As tcp.traces.TraceLike."""

    time_s: list[float]
    cwnd_segments: list[int]
    rtt_ms: list[float]
    min_rtt_ms: list[float | None]
    acked_bytes: list[int]
    retransmits: list[int]
    mss_bytes: int | None = 1000


def trace_of(rates_bps: list[float], cwnd: list[int] | None = None, step_s: float = 0.1) -> Trace:
    """A sample each `step_s`, with so many bits a second acknowledged since the one before."""
    acked = [0]
    for rate in rates_bps:
        acked.append(acked[-1] + round(rate * step_s / 8))
    count = len(acked)
    return Trace(
        [100 + n * step_s for n in range(count)],
        cwnd or [50] * count,
        [40.0] * count,
        [40.0] * count,
        acked,
        [0] * count,
    )
