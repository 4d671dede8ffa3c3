"""How long trials are likely to take: for the order that they are begun in, and what is said first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from measuretwice.execute.job import Job
from measuretwice.lab import Plan

# In real time a trial takes as long as it says, and so much for what comes before and after.
REAL_TIME_EXTRA_S = 5


def likely_seconds(plan: Plan) -> float:
    """Guess how long a trial takes one CPU: a fixed part, and some microseconds a packet.

    From parameters that a lab may have (a Reno flow sends t/(RTT sqrt(p)) packets). It decides
    only in what order work is begun and what is said beforehand.
    """

    def number(name: str, default: float) -> float:
        value = plan.params.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    duration_s = number("duration_s", 1.0)
    rtt_s = max(number("rtt_ms", 1.0), 0.1) / 1e3
    loss_ratio = max(number("loss_ratio", 1e-5), 1e-6)
    packets = 1.25 * duration_s / rtt_s / math.sqrt(loss_ratio)
    at_line_rate = number("rate_mbit", 1e4) * 1e6 / 8 / number("mss_bytes", 1460) * duration_s
    if "loss_ratio" not in plan.params:
        # Only the link limits these flows, and they fill it.
        return 0.9 + 7e-6 * at_line_rate
    return 0.9 + 3.5e-6 * min(packets, at_line_rate)


def longest_first(jobs: list[Job]) -> list[Job]:
    """Order jobs so that no CPU waits for a long one at the end."""
    return sorted(jobs, key=lambda job: likely_seconds(job.plan), reverse=True)


def expected_seconds(jobs: Sequence[Job], at_once: int) -> float:
    """Guess how long these jobs take together, `at_once` at a time."""
    if jobs[0].backend.real_time:
        return sum(float(job.plan.params.get("duration_s", 0)) + REAL_TIME_EXTRA_S for job in jobs)
    return sum(likely_seconds(job.plan) for job in jobs) / at_once
