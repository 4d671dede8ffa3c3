"""Names of the trials and sets that several of the lab's facts are of, and claims."""

from __future__ import annotations

import math

from measuretwice.facts import measured
from measuretwice.runs.result import Result

# Trials by number: three algorithms alone, then three mixes, the first half of CUBIC and half of Reno.
RENO, CUBIC, BBR, CUBIC_IN_RENO, BBR_IN_RENO, BBR_IN_CUBIC, ONE_FLOW = range(1, 8)
HALF_HOUR = ("edge-long", "edge-long-30", "edge-long-50")
# CUBIC and BBR for half an hour where hosts wait longer; and three hundred BBR flows.
OTHERS_WAIT = ("edge-long-others-wait-1-ms", "edge-long-50-others-wait-1-ms")
# Offloads on all along the path.
OFFLOADS_ON = ("edge-offloads-on", "core-offloads-on")
CROWD_WAIT = "intermediate-300-bbr-wait-1-ms"
# One BBR flow at core where hosts wait longer, by the hosts' largest buffers.
DEFAULT_WAIT, LARGE_WAIT = "core-default-windows-wait-1-ms", "core-large-windows-wait-1-ms"
HALVES = ("core-half", "core-half-100-ms", "core-half-200-ms")
BY_BUFFER = ("core-default-windows", "core", "core-large-windows")
RENO_RUNS = (
    "edge-once", *HALF_HOUR, "edge-100-ms", "edge-200-ms", "intermediate", "intermediate-300",
    "intermediate-500", "core", "core-long",
)  # fmt: skip
# Losses for each halving, as they were published.
LOSSES_AT_EDGE, LOSSES_AT_CORE = 1.7, (6, 9)


def pooled_c(run: Result) -> float:
    """Return C by halvings of all flows together: their mean goodput, and the halvings and segments of all. Unlike the slope
    of a line through the flows' points it isn't biased where flows have few halvings."""
    goodput_bps = sum(flow.goodput_bps for flow in run.flows) / len(run.flows)
    p = sum(flow.halvings or 0 for flow in run.flows) / sum(
        flow.segments or 0 for flow in run.flows
    )
    rtt_s = measured(run, "rtt_mean_ms") / 1e3
    return goodput_bps * rtt_s * math.sqrt(p) / (8 * measured(run, "mss_bytes"))
