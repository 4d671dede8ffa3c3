"""One sender looked at closely: what it does once it has settled, and what a person's table keeps
of it. Pure functions on traces and rows.

A flow's mean over its whole life mixes its beginning with what comes after. So rates here are taken
from a moment that the experiment names.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from measuretwice.tcp.window import at

Values = dict[str, float | int | None]
# The interval is cut into so many parts, to see whether the rate still rises.
PARTS = 5
# A tenth of a second is the shortest interval of iperf3.
TENTH_S = 0.1
# The table's clock starts when iperf3 begins to send, the trace's with the connection.
LARGEST_OFFSET_S = 0.6
OFFSET_STEP_S = 0.02
WINDOW_TOLERANCE_RATIO = 0.02


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


def _often(trace: Traced) -> bool:
    """Is there a sample in each tenth of a second, or nearly?"""
    return (trace.time_s[-1] - trace.time_s[0]) / len(trace.time_s) <= 1.5 * TENTH_S


def lowest_tenth_bps(trace: Traced) -> float | None:
    """The least rate in any tenth of a second, from the second second on; None where the trace has
    no sample in each."""
    start_s, end_s = trace.time_s[0] + 1, trace.time_s[-1]
    count = int((end_s - start_s) / TENTH_S)
    if count < 1 or not _often(trace):
        return None
    return min(
        rate_bps(trace, start_s + n * TENTH_S, start_s + (n + 1) * TENTH_S) for n in range(count)
    )


@dataclass(frozen=True)
class TableRow:
    """A line of the table that a report prints; cwnd in bytes at the row's end."""

    start_s: float
    end_s: float
    rate_bps: float
    cwnd_bytes: float
    retransmits: float


def read_table(text: str) -> list[TableRow]:
    """Read lines of five numbers: start, end (s), rate (bit/s), cwnd (bytes), segments sent again."""
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            start, end, rate, cwnd, again = map(float, line.split())
        except ValueError:
            raise ValueError(f"line {number}: expected five numbers") from None
        rows.append(TableRow(start, end, rate, cwnd, again))
    return rows


def of_table(rows: Sequence[TableRow], trace: Traced) -> Values:
    """A table against the trace of the run that it is said to be of.

    `table_rows_foreign` counts rows with a window that the connection did not have at that time.
    """
    if not rows:
        return {}
    # The last row may be a fraction of an interval.
    interval_s = statistics.median(row.end_s - row.start_s for row in rows)
    whole = [row for row in rows if row.start_s >= 1 and row.end_s - row.start_s > interval_s / 2]
    offsets = [n * OFFSET_STEP_S for n in range(int(LARGEST_OFFSET_S / OFFSET_STEP_S) + 1)]
    return {
        "table_rows": len(rows),
        "table_interval_s": round(interval_s, 3),
        "table_lowest_bps": min((row.rate_bps for row in whole), default=None),
        # A trace that looks no more often than the window changes can't say which it had.
        "table_rows_foreign": min(_foreign(rows, trace, offset) for offset in offsets)
        if _often(trace)
        else None,
    }


def _foreign(rows: Sequence[TableRow], trace: Traced, offset_s: float) -> int:
    """Rows whose window is none of the trace's around their end, if the clocks are so far apart."""
    mss = trace.mss_bytes or 1
    times = trace.time_s
    step_s = (times[-1] - times[0]) / max(1, len(times) - 1)
    count = first = 0
    for row in rows:
        end_s = times[0] + offset_s + row.end_s
        while first < len(times) and times[first] < end_s - 1.5 * step_s:
            first += 1
        near = []
        n = first
        while n < len(times) and times[n] <= end_s + 1.5 * step_s:
            near.append(trace.cwnd_segments[n] * mss)
            n += 1
        low, high = min(near, default=0), max(near, default=float("inf"))
        slack = WINDOW_TOLERANCE_RATIO * row.cwnd_bytes + mss
        count += not low - slack <= row.cwnd_bytes <= high + slack
    return count
