"""What a window does over time: its decreases, and when flows come to share evenly. Pure functions."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

# Flows share evenly where each has its fair share to within this much of it...
FAIR_WITHIN_RATIO = 0.2
# ... on average over this long.
FAIR_OVER_S = 10.0
STEP_S = 1.0


@dataclass(frozen=True)
class Decrease:
    """One multiplicative decrease: ssthresh became `ssthresh_segments`, of a window of
    `window_segments`."""

    time_s: float
    window_segments: int
    ssthresh_segments: int

    @property
    def kept_ratio(self) -> float:
        """The share of its window that the flow kept: 1/2 for Reno, about 0.7 for CUBIC."""
        return self.ssthresh_segments / self.window_segments


def decreases(
    time_s: Sequence[float], cwnd_segments: Sequence[int], ssthresh_segments: Sequence[int | None]
) -> list[Decrease]:
    """Return each change of ssthresh with the window of the sample before it.

    ssthresh is set when a loss is noticed, while cwnd comes down over the next round trip. The end
    of the first slow start is left out: the window may double between two samples there. A window
    grows a little between the last sample and the loss, so shares come out slightly high.
    """
    found = []
    for n in range(1, len(time_s)):
        was, now = ssthresh_segments[n - 1], ssthresh_segments[n]
        if was is None or now is None or now == was or cwnd_segments[n - 1] <= 0:
            continue
        found.append(Decrease(time_s[n], cwnd_segments[n - 1], now))
    return found


def convergence_s(
    acked: Sequence[tuple[Sequence[float], Sequence[float]]], start_s: float, end_s: float
) -> float | None:
    """Return how long after `start_s` flows first share evenly; None where they never do.

    `acked` are each flow's times and bytes acknowledged till then. Evenly: over the ten seconds
    before, each had its fair share to within a fifth. After the delta-fair convergence time of
    Bansal, Balakrishnan, Floyd, Shenker, "Dynamic Behavior of Slowly-Responsive Congestion Control
    Algorithms", ACM SIGCOMM 2001, there for the shares of two flows, with delta = 0.2.
    """
    at_s = start_s + FAIR_OVER_S
    while at_s <= end_s:
        got = [at(*counts, at_s) - at(*counts, at_s - FAIR_OVER_S) for counts in acked]
        fair = sum(got) / len(got)
        if fair > 0 and all(abs(share - fair) <= FAIR_WITHIN_RATIO * fair for share in got):
            return round(at_s - start_s, 6)
        at_s += STEP_S
    return None


def at(times: Sequence[float], values: Sequence[float], time_s: float) -> float:
    """A value between two samples, by a straight line; at the ends, the first or the last."""
    n = bisect.bisect_left(times, time_s)
    if n == 0:
        return values[0]
    if n == len(times):
        return values[-1]
    part = (time_s - times[n - 1]) / (times[n] - times[n - 1])
    return values[n - 1] + part * (values[n] - values[n - 1])
