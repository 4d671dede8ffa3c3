"""Names, and what several of the lab's facts need."""

from __future__ import annotations

from collections.abc import Sequence

from measuretwice.facts import cell, ms
from measuretwice.runs.result import Result
from measuretwice.stats import two_samples

# As the source printed them, in Mbit/s: of eight values each.
PUBLISHED_FIFO_DEVIATION, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS = 1.61, 2.49, 8
PUBLISHED_FIFO_MEAN, PUBLISHED_RED_MEAN = 51.56, 50.82
# Trials by number: two flows before pfifo_fast or RED, and one flow before drop-tail or fq_codel.
FIFO, RED, DROP_TAIL, FQ_CODEL = 1, 21, 41, 44
PING, COUNTERS = "host-1/ping-busy.txt", "router-1/qdisc.after.json"
# What tables show of a run.
PING_UNDER_LOAD = cell("busy_ping_mean_ms", ms)


def published_spread() -> two_samples.Comparison:
    """Return the F test of both published deviations."""
    return two_samples.spread_of(
        PUBLISHED_FIFO_DEVIATION, PUBLISHED_RUNS, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS
    )


def flow_rates(runs: Sequence[Result]) -> list[float]:
    """The goodput of each flow of each run, in bit/s."""
    return [flow.goodput_bps for run in runs for flow in run.flows]
