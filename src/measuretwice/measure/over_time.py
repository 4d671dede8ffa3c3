"""A run over time as lines to be drawn: windows, round-trip times, a queue's length, losses.

What is drawn knows no folder; measuretwice.view reads one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from measuretwice.lab import Value
from measuretwice.measure.connections import Trace
from measuretwice.measure.queue import Queue
from measuretwice.parse import PingRun


@dataclass(frozen=True)
class Line:
    """One line of a panel: parallel lists; `time_s` counts from the run's first sample of ss.

    A `steady` line is a level that has no times of its own, such as the mean of a ping before.
    """

    label: str
    unit: str
    time_s: Sequence[float]
    values: Sequence[float]
    steady: bool = False


@dataclass(frozen=True)
class Panel:
    """One quantity over time: its name, its axis's label with the unit."""

    name: str
    label: str


PANELS = (
    Panel("cwnd", "congestion window\n(segments)"),
    Panel("rtt", "round-trip time\n(ms)"),
    Panel("queue", "queue\n(packets)"),
    Panel("losses", "losses so far\n(segments, packets)"),
)
# Beside the panels: what a figure may ask for by itself.
GOODPUT = Panel("goodput", "goodput\n(Mbit/s)")
SENT_AGAIN, DROPPED = "sent again", "dropped"
# A rate is a mean over so many equal parts of a run.
RATES = 60


@dataclass
class OverTime:
    """A run over time: what it is, its settings (the subtitle has those that make its trial), each
    panel's lines by the panel's name.

    `called` has words and unit of each setting that its reader may be told of. `notes` say what is left out or isn't there.
    """

    title: str
    settings: dict[str, Value]
    subtitle: str = ""
    called: dict[str, tuple[str, str]] = field(default_factory=dict)
    lines: dict[str, list[Line]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, panel: str, line: Line) -> None:
        self.lines.setdefault(panel, []).append(line)


def add_trace(run: OverTime, trace: Trace, label: str, start_s: float) -> None:
    """Add a connection's window, its smoothed round-trip time and its retransmissions."""
    times = [round(time_s - start_s, 3) for time_s in trace.time_s]
    run.add("cwnd", Line(label, "segments", times, trace.cwnd_segments))
    run.add("rtt", Line(f"{label}, ss", "ms", times, trace.rtt_ms))
    run.add("losses", Line(f"{label}, {SENT_AGAIN}", "segments", times, trace.retransmits))
    run.add(GOODPUT.name, _goodput(trace, label, start_s))


def _goodput(trace: Trace, label: str, start_s: float) -> Line:
    """What was acknowledged, as a rate over equal parts of a connection's life; at each part's middle."""
    first, last = trace.time_s[0], trace.time_s[-1]
    part_s = (last - first) / RATES
    if not part_s:
        return Line(label, "Mbit/s", [], [])
    ends = [first + number * part_s for number in range(RATES + 1)]
    acked = [trace.acked_at(end) for end in ends]
    times = [round(end + part_s / 2 - start_s, 3) for end in ends[:-1]]
    rates = [
        round(8e-6 * (after - before) / part_s, 3) for before, after in itertools.pairwise(acked)
    ]
    return Line(label, "Mbit/s", times, rates)


def add_queue(run: OverTime, name: str, queue: Queue, start_s: float, end_s: float) -> None:
    """Add a queue's length and its drops, from and up to two Unix times."""
    inside = [n for n, time_s in enumerate(queue.time_s) if start_s <= time_s <= end_s]
    times = [round(queue.time_s[n] - start_s, 3) for n in inside]
    run.add("queue", Line(name, "packets", times, [queue.backlog_packets[n] for n in inside]))
    drops = [queue.drops[n] - queue.drops[0] for n in inside]
    run.add("losses", Line(f"{name}, {DROPPED}", "packets", times, drops))


def add_ping(run: OverTime, label: str, ping: PingRun, start_s: float, end_s: float) -> None:
    """Add a ping with times (option -D) as a line; of one without, its mean as a level."""
    timed = [
        (round(reply.timestamp_s - start_s, 3), reply.rtt_ms)
        for reply in ping.replies
        if reply.timestamp_s is not None and reply.rtt_ms is not None
    ]
    within = [(t, rtt) for t, rtt in timed if 0 <= t <= end_s - start_s]
    if within:
        run.add("rtt", Line(label, "ms", [t for t, _ in within], [rtt for _, rtt in within]))
    elif ping.rtt_avg_ms is not None:
        ends = [0.0, round(end_s - start_s, 3)]
        run.add("rtt", Line(f"{label}, mean", "ms", ends, [ping.rtt_avg_ms] * 2, steady=True))
