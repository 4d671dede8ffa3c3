"""What gives an algorithm away in a run's traces: CUBIC's curve, BBR's cycle, Vegas' band.

Pure functions, but for `read_sender`. CUBIC: RFC 9438. BBR: version 1, as in Linux' tcp_bbr (Cardwell et al., ACM Queue
14(5), 2016). Vegas: Brakmo and Peterson, IEEE JSAC 13(8), 1995, with Linux' alpha and beta.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab
from measuretwice.measure.connections import Trace, traces
from measuretwice.measure.queue import Queue, queue
from measuretwice.measure.raw import text_of
from measuretwice.parse import SsSample, parse_ss_samples
from measuretwice.tcp.model import CUBIC_KEPT_RATIO
from measuretwice.tcp.traces import decreases

CUBIC_C = 0.4
# The last sample before a loss misses a segment or two. Where a link and its buffer stay as they are, a
# curve that ends on its way up to W_max ends just below it.
SAMPLED_WITHIN_RATIO = 0.003
BBR_LEAST_WINDOW_SEGMENTS = 4


@dataclass(frozen=True)
class Epoch:
    """The time from one loss of a CUBIC flow to the next.

    `window_segments` is the window at the loss it begins with, `kept_ratio` what was kept of it,
    `target_segments` the W_max that the curve heads for: that window, or less where the window was
    smaller than at the loss before (fast convergence, RFC 9438, section 4.7). `k_s` is how long the curve
    takes to W_max, `lasted_s` how long it took to the next loss, at `end_segments`.
    """

    start_s: float
    window_segments: int
    kept_ratio: float
    target_segments: float
    k_s: float
    lasted_s: float
    end_segments: int

    @property
    def convex(self) -> bool:
        """Did it come past W_max, into the part of the curve that looks for more?"""
        return self.lasted_s > self.k_s

    def window(self, time_s: float) -> float:
        """RFC 9438, section 4.2: W_cubic(t) = C (t - K)^3 + W_max, in segments."""
        return float(CUBIC_C * (time_s - self.k_s) ** 3 + self.target_segments)


def cubic_k_s(target_segments: float, start_segments: float) -> float:
    """RFC 9438, section 4.2: K, the cube root of (W_max - cwnd_epoch) / C."""
    return float((max(0.0, target_segments - start_segments) / CUBIC_C) ** (1 / 3))


def cubic_epochs(
    time_s: Sequence[float], cwnd_segments: Sequence[int], ssthresh_segments: Sequence[int | None]
) -> list[Epoch]:
    """Every time between two decreases of a window, the first decrease's own target taken as its window."""
    cuts = decreases(time_s, cwnd_segments, ssthresh_segments)
    found = []
    before = 0.0
    for cut, after in itertools.pairwise(cuts):
        window = cut.window_segments
        smaller = window <= (1 + SAMPLED_WITHIN_RATIO) * before
        target = window * (1 + CUBIC_KEPT_RATIO) / 2 if smaller else float(window)
        before = target
        found.append(
            Epoch(
                start_s=round(cut.time_s - time_s[0], 3),
                window_segments=window,
                kept_ratio=cut.kept_ratio,
                target_segments=target,
                k_s=cubic_k_s(target, cut.ssthresh_segments),
                lasted_s=round(after.time_s - cut.time_s, 6),
                end_segments=after.window_segments,
            )
        )
    return found


@dataclass(frozen=True)
class BbrCycle:
    """How a BBR flow spent its time: `gain_share` is the share of samples by pacing gain, `cycle_s`
    the median time from one probe for bandwidth (gain 1.25) to the next, `phase_ms` the mean time of
    a probe (1.25) and of the phase behind it (0.75), `probe_rtt_s` when its window was cut to four
    segments, counted from the first sample, and `probe_rtt_ms` how long that took each time."""

    gain_share: dict[float, float]
    cycle_s: float | None
    phase_ms: dict[float, float]
    probe_rtt_s: list[float]
    probe_rtt_ms: list[float]


def bbr_states(samples: Sequence[SsSample], port: int) -> dict[float, tuple[float, int]]:
    """A connection's pacing gain and window (segments) by the samples' Unix times; without those in
    which ss prints no gain, as before the connection stands."""
    return {when: (gain, window) for when, gain, window in _bbr_samples(samples, port)}


def _bbr_samples(samples: Sequence[SsSample], port: int) -> list[tuple[float, float, int]]:
    return [
        (sample.time_s, float(socket.algorithm["pacing_gain"]), socket.cwnd_segments or 0)
        for sample in samples
        for socket in sample.sockets
        if socket.local_port == port and socket.algorithm and "pacing_gain" in socket.algorithm
    ]


def bbr_cycle(samples: Sequence[SsSample], port: int) -> BbrCycle | None:
    """Read BBR's own state out of ss; None where the connection has none."""
    states = _bbr_samples(samples, port)
    if not states:
        return None
    times, gains, windows = zip(*states, strict=True)
    starts = [
        times[n] for n in range(1, len(times)) if gains[n] == 1.25 and gains[n - 1] != gains[n]
    ]
    between = [b - a for a, b in itertools.pairwise(starts)]
    low = [0, *(int(w <= BBR_LEAST_WINDOW_SEGMENTS) for w in windows), 0]
    begins = [n for n in range(len(windows)) if low[n + 1] > low[n]]
    ends = [n for n in range(len(windows)) if low[n + 1] > low[n + 2]]
    return BbrCycle(
        {gain: count / len(gains) for gain, count in sorted(Counter(gains).items())},
        statistics.median(between) if between else None,
        _phase_ms(times, gains),
        [round(times[n] - times[0], 3) for n in begins],
        [round(1e3 * (times[b] - times[a]), 3) for a, b in zip(begins, ends, strict=True)],
    )


def _phase_ms(times_s: Sequence[float], gains: Sequence[float]) -> dict[float, float]:
    """The mean time of phases with gain 1.25 and 0.75, of those whose end was seen."""
    changes = [0, *(n for n in range(1, len(gains)) if gains[n] != gains[n - 1])]
    lasted: dict[float, list[float]] = {1.25: [], 0.75: []}
    for begin, end in itertools.pairwise(changes):
        if gains[begin] in lasted:
            lasted[gains[begin]].append(1e3 * (times_s[end] - times_s[begin]))
    return {gain: statistics.fmean(each) for gain, each in lasted.items() if each}


@dataclass(frozen=True)
class VegasBand:
    """What a Vegas flow keeps in the queue, in packets: the least, on which it decides (it takes the
    smallest of a round's round-trip times), and the mean, which its bursts make larger."""

    least_packets: int
    mean_packets: float


def vegas_band(
    time_s: Sequence[float], backlog_packets: Sequence[int], from_s: float, to_s: float
) -> VegasBand | None:
    """From one Unix time to another; None where there is no sample."""
    inside = [n for when, n in zip(time_s, backlog_packets, strict=True) if from_s <= when <= to_s]
    return VegasBand(min(inside), statistics.fmean(inside)) if inside else None


@dataclass(frozen=True)
class Spread:
    """The standard deviations of what a flow's samples say of its round-trip time and its window."""

    rtt_ms: float
    cwnd_segments: float


def spread(trace: Trace, from_s: float) -> Spread | None:
    """From `from_s` seconds after the flow's start on; None where there are no two samples."""
    inside = [n for n, when in enumerate(trace.time_s) if when - trace.time_s[0] >= from_s]
    if len(inside) < 2:
        return None
    return Spread(
        statistics.stdev(trace.rtt_ms[n] for n in inside),
        statistics.stdev(trace.cwnd_segments[n] for n in inside),
    )


@dataclass(frozen=True)
class Signature:
    """What is found of each algorithm in one run's flow; empty or None where it isn't that one."""

    epochs: list[Epoch]
    cycle: BbrCycle | None
    band: VegasBand | None
    spread: Spread | None


@dataclass(frozen=True)
class SenderFiles:
    """What is known over time of the one sender that a lab looks at closely."""

    trace: Trace
    queue: Queue | None
    samples: Sequence[SsSample]


def read_sender(lab: Lab, raw: Path) -> SenderFiles:
    """Read that sender's flow from a run's raw files. UserError where the lab names none, ParseError
    where the files can't be read."""
    sender, files = lab.file.collect.one_sender, lab.file.collect.flows
    if sender is None or files is None:
        raise UserError(f"{lab.name}: its lab.toml has no collect.one_sender")
    trace = next(trace for trace in traces(lab, raw) if trace.node == sender.node)
    text = text_of(raw / sender.node / files.ss)
    samples = parse_ss_samples(text, files.ss, local_ports={trace.local_port})
    return SenderFiles(trace, queue(lab, raw), samples)


def signature_of(
    trace: Trace, queue: Queue | None, samples: Sequence[SsSample], from_s: float
) -> Signature:
    """A flow's own marks; Vegas' band and the spread from `from_s` seconds after its start on."""
    start_s, end_s = trace.time_s[0], trace.time_s[-1]
    return Signature(
        cubic_epochs(trace.time_s, trace.cwnd_segments, trace.ssthresh_segments),
        bbr_cycle(samples, trace.local_port),
        vegas_band(queue.time_s, queue.backlog_packets, start_s + from_s, end_s) if queue else None,
        spread(trace, from_s),
    )
