"""The algorithms on one clock: a recorded flow of each, to be gone through in time.

What an algorithm is doing at each moment is told from its own state: ss's pacing gain, ssthresh,
or the window a round trip before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.measure.connections import Trace
from measuretwice.measure.signatures import (
    BBR_LEAST_WINDOW_SEGMENTS,
    Epoch,
    bbr_states,
    cubic_epochs,
)
from measuretwice.parse import SsSample
from measuretwice.runs.result import Result
from measuretwice.site.words.subjects import LabWords

NAMES = {"reno": "Reno", "cubic": "CUBIC", "vegas": "Vegas", "bbr": "BBR", "highspeed": "HighSpeed"}
SLOW_START = "slow start: doubles in a round trip"


def traces_data(words: LabWords, results: Sequence[Result]) -> dict[str, Any]:
    """Each run's time (ms), window, queue and RTT (tenths of a ms) as `deltas`, and what it is doing as
    numbers into `says`."""
    runs = [_run(words, result) for result in results]
    says = sorted({text for run in runs for text in run["doing"]})
    for run in runs:
        run["doing"] = deltas([says.index(text) for text in run["doing"]])
    return {"says": says, "runs": runs}


def _run(words: LabWords, result: Result) -> dict[str, Any]:
    files = words.sets.sender_files(result)
    trace, queue = files.trace, files.queue
    if queue is None:
        raise UserError(f"{words.lab.name}: its lab.toml samples no queue")
    start_s, algorithm = trace.time_s[0], str(result.params["congestion_control"])
    # The queue's sampler has a clock of its own: its last sample before each of ss's.
    backlog = [
        queue.backlog_packets[max(0, bisect_right(queue.time_s, when) - 1)] for when in trace.time_s
    ]
    return {
        "trial": result.trial,
        "algorithm": algorithm,
        "name": NAMES.get(algorithm, algorithm),
        "time": deltas([round(1e3 * (when - start_s)) for when in trace.time_s]),
        "cwnd": deltas(trace.cwnd_segments),
        "queue": deltas(backlog),
        "rtt": deltas([round(10 * rtt) for rtt in trace.rtt_ms]),
        "doing": doing(algorithm, trace, files.samples),
    }


def deltas(values: Sequence[int]) -> list[int]:
    """Return the first value, and then by how much each is more than the one before it."""
    return [values[0], *(after - before for before, after in pairwise(values))]


def doing(algorithm: str, trace: Trace, samples: Sequence[SsSample]) -> list[str]:
    """What the flow is doing at each of its samples, in words."""
    count = len(trace.time_s)
    if algorithm == "bbr":
        states = bbr_states(samples, trace.local_port)
        return [_bbr(*states[when]) if when in states else "begins" for when in trace.time_s]
    epochs: list[Epoch] = []
    if algorithm == "cubic":
        epochs = cubic_epochs(trace.time_s, trace.cwnd_segments, trace.ssthresh_segments)
    activities = []
    for n in range(count):
        cwnd, threshold = trace.cwnd_segments[n], trace.ssthresh_segments[n]
        if threshold is None or cwnd < threshold:
            activities.append(SLOW_START)
        elif algorithm == "cubic":
            activities.append(_cubic(trace.time_s[n] - trace.time_s[0], epochs))
        elif algorithm == "vegas":
            activities.append(_vegas(trace, n))
        elif algorithm == "highspeed":
            activities.append("adds to its window, by more the larger it is")
        else:
            activities.append("adds one segment a round trip")
    return activities


def _bbr(gain: float, window_segments: int) -> str:
    if window_segments <= BBR_LEAST_WINDOW_SEGMENTS:
        return "ProbeRTT: four segments, to see the path without its queue"
    if gain > 2:
        return "Startup: 2.89 times the rate"
    if gain < 0.5:
        return "Drain: until the queue is gone"
    return {1.25: "ProbeBW: 1.25 times the rate, is there more?", 0.75: "ProbeBW: 0.75 times the rate, lets the queue drain"}.get(
        gain, "ProbeBW: at the rate"
    )  # fmt: skip


def _cubic(time_s: float, epochs: Sequence[Epoch]) -> str:
    inside = [epoch for epoch in epochs if epoch.start_s <= time_s < epoch.start_s + epoch.lasted_s]
    if not inside:
        return "follows the curve"
    if time_s - inside[0].start_s <= inside[0].k_s:
        return "concave: back towards the window that failed"
    return "convex: past it, and looking for more"


def _vegas(trace: Trace, n: int) -> str:
    """By what the window did in the round trip before."""
    before = bisect_right(trace.time_s, trace.time_s[n] - trace.rtt_ms[n] / 1e3) - 1
    change = trace.cwnd_segments[n] - trace.cwnd_segments[max(0, before)]
    if change > 0:
        return "fewer than α in the queue: adds one"
    if change < 0:
        return "more than β in the queue: takes away"
    return "between α and β: leaves it"
