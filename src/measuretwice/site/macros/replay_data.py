"""What replayed figures show of a recorded run: a queue packet by packet, and the algorithms on one clock.

What an algorithm is doing at each moment is told from its own state: ss's pacing gain, ssthresh,
or the window a round trip before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.measure.connections import Trace, traces
from measuretwice.measure.queue import file_of
from measuretwice.measure.raw import name_of, text_of
from measuretwice.measure.signatures import (
    BBR_LEAST_WINDOW_SEGMENTS,
    Epoch,
    bbr_states,
    cubic_epochs,
)
from measuretwice.parse import (
    QdiscSample,
    SsSample,
    parse_ping,
    parse_qdisc_samples,
    parse_ss_samples,
)
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result
from measuretwice.site.macros import LabContext

TENTHS_OF_MS = 1e4
# What is dropped leaves these from the head, not at the tail.
DROPS_AT_HEAD = ("codel", "fq_codel")
ALGORITHMS = {
    "reno": "Reno",
    "cubic": "CUBIC",
    "vegas": "Vegas",
    "bbr": "BBR",
    "highspeed": "HighSpeed",
}
SLOW_START = "slow start: doubles in a round trip"
RECOVERY = "recovering: sends again what was lost, and its window doesn't grow"


def packets_data(context: LabContext, results: Sequence[Result]) -> dict[str, Any]:
    """Each run's queue, sample by sample: what had left, what was dropped, what waited; beside it the flow."""
    return {"runs": [_packets(context, result) for result in results]}


def _packets(context: LabContext, result: Result) -> dict[str, Any]:
    queue_at, files = context.lab.file.collect.queue, context.lab.file.collect.flows
    if queue_at is None or files is None:
        raise UserError(f"{context.lab.name}: its lab.toml samples no queue, or has no flows")
    with raw_folder(result.run_dir) as raw:
        flow = next(iter(traces(context.lab, raw)), None)
        path = file_of(queue_at, raw)
        samples = parse_qdisc_samples(text_of(path), name_of(path))
        if flow is None:
            raise UserError(f"{result.run_dir}: has no flow")
        pings = _pings(raw / flow.node, files.ping_busy, files.ss)
    start, end = flow.time_s[0], flow.time_s[-1]
    samples = tuple(sample for sample in samples if start <= sample.time_s <= end)
    beside = [max(0, bisect_right(flow.time_s, sample.time_s) - 1) for sample in samples]
    counts = [_counted(sample) for sample in samples]
    begin = counts[0]
    return {
        "algorithm": str(result.params["congestion_control"]),
        "discipline": str(result.params["discipline"]),
        "trial": result.trial,
        "head_drops": result.params["discipline"] in DROPS_AT_HEAD,
        "time": deltas([round((sample.time_s - start) * TENTHS_OF_MS) for sample in samples]),
        "sent": deltas([sent - begin[0] for sent, _, _ in counts]),
        "dropped": deltas([dropped - begin[1] for _, dropped, _ in counts]),
        "waiting": deltas([waiting for _, _, waiting in counts]),
        "cwnd": deltas([flow.cwnd_segments[n] for n in beside]),
        "rtt": deltas([round(10 * flow.rtt_ms[n]) for n in beside]),
        "ping": [[round((when - start) * 1e3), rtt] for when, rtt in pings if start <= when <= end],
    }


def _counted(sample: QdiscSample) -> tuple[int, int, int]:
    """Packets that the innermost qdisc has sent, dropped, and holds."""
    inner = sample.qdiscs[-1]
    return inner.sent_packets or 0, inner.drops or 0, inner.qlen_packets or 0


def _pings(node: Path, file: str | None, ss: str) -> list[tuple[float, float]]:
    """Each answered ping's time and RTT (ms). ping prints no times: it began with the first sample of ss, and
    has sent one an interval since."""
    if file is None or not (node / file).is_file():
        return []
    run = parse_ping(text_of(node / file), file)
    began = parse_ss_samples(text_of(node / ss), ss)[0].time_s
    if run.transmitted < 2 or run.time_ms is None:
        return []
    interval_s = run.time_ms / 1e3 / (run.transmitted - 1)
    return [
        (began + (reply.seq - 1) * interval_s, reply.rtt_ms)
        for reply in run.replies
        if reply.rtt_ms is not None
    ]


def traces_data(context: LabContext, results: Sequence[Result]) -> dict[str, Any]:
    """Each run's time (ms), window, queue and RTT (tenths of a ms) as `deltas`, and what it is doing as
    numbers into `says`."""
    runs = [_run(context, result) for result in results]
    says = sorted({text for run in runs for text in run["doing"]})
    for run in runs:
        run["doing"] = deltas([says.index(text) for text in run["doing"]])
    return {"says": says, "runs": runs}


def _run(context: LabContext, result: Result) -> dict[str, Any]:
    files = context.sets.sender_files(result)
    trace, queue = files.trace, files.queue
    if queue is None:
        raise UserError(f"{context.lab.name}: its lab.toml samples no queue")
    start_s, algorithm = trace.time_s[0], str(result.params["congestion_control"])
    # The queue's sampler has a clock of its own: its last sample before each of ss's.
    backlog = [
        queue.backlog_packets[max(0, bisect_right(queue.time_s, when) - 1)] for when in trace.time_s
    ]
    return {
        "trial": result.trial,
        "algorithm": algorithm,
        "name": ALGORITHMS.get(algorithm, algorithm),
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
    repairing = _repairing(samples, trace.local_port)
    activities = []
    for n in range(count):
        cwnd, threshold = trace.cwnd_segments[n], trace.ssthresh_segments[n]
        if trace.time_s[n] in repairing:
            activities.append(RECOVERY)
        elif threshold is None or cwnd < threshold:
            activities.append(SLOW_START)
        elif algorithm == "cubic":
            activities.append(_cubic(trace.time_s[n] - trace.time_s[0], epochs))
        elif algorithm == "vegas":
            activities.append(_vegas(trace, n))
        elif algorithm == "highspeed":
            activities.append("adds to its window, by more the larger it is")
        else:
            activities.append("adds one segment per round trip")
    return activities


def _repairing(samples: Sequence[SsSample], port: int) -> set[float]:
    """Return the samples' times at which a connection has losses that aren't repaired yet: until then its window neither
    doubles nor grows, though it may lie below ssthresh (RFC 6937)."""
    return {
        sample.time_s
        for sample in samples
        for socket in sample.sockets
        if socket.local_port == port and (socket.retrans_now or socket.lost_segments)
    }


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
