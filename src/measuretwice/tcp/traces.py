"""Traces of connections over time: a window's decreases, convergence, the steady state, and sequence numbers of a capture. Pure functions."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from measuretwice.parse.tcpdump import TcpPacket, parse_tcpdump

# Flows share evenly where each has its fair share to within this much of it...
FAIR_WITHIN_RATIO = 0.2
# ... on average over this long.
FAIR_OVER_S = 10.0
STEP_S = 1.0
# Evenness lasts if so much of the time that is left is even, and if at least so much is left.
LASTS_SHARE = 0.9
LASTS_S = 30.0
Values = dict[str, float | int | None]
# The interval is cut into so many parts, to see whether the rate still rises.
PARTS = 5
# A flow begins with ten segments (RFC 6928), and in slow start each window is twice the one before.
WINDOWS = (10, 20, 40)
# A tenth of a second is the shortest interval of iperf3.
TENTH_S = 0.1


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
    cuts = []
    for n in range(1, len(time_s)):
        was, now = ssthresh_segments[n - 1], ssthresh_segments[n]
        if was is None or now is None or now == was or cwnd_segments[n - 1] <= 0:
            continue
        cuts.append(Decrease(time_s[n], cwnd_segments[n - 1], now))
    return cuts


def convergence_s(
    acked: Sequence[tuple[Sequence[float], Sequence[float]]], start_s: float, end_s: float
) -> float | None:
    """Return how long after `start_s` flows first share evenly; None where they never do.

    `acked` are each flow's times and bytes acknowledged till then. Evenly: over the ten seconds
    before, each had its fair share to within a fifth. After the delta-fair convergence time of
    Bansal, Balakrishnan, Floyd, Shenker, "Dynamic Behavior of Slowly-Responsive Congestion Control
    Algorithms", ACM SIGCOMM 2001, there for the shares of two flows, with delta = 0.2.
    """
    return next((at_s for at_s, even in _even(acked, start_s, end_s) if even), None)


def sustained_convergence_s(
    acked: Sequence[tuple[Sequence[float], Sequence[float]]], start_s: float, end_s: float
) -> float | None:
    """Return how long after `start_s` flows share evenly and go on to; None where they never do.

    As `convergence_s`, but not the first moment of evenness, by which flows that only began alike have converged: the
    first after which nine in ten of all later moments are even, with half a minute left at least.
    """
    moments = [*_even(acked, start_s, end_s)]
    lasts_from_s, evens = None, 0
    for later, (at_s, even) in enumerate(reversed(moments), start=1):
        evens += even
        if even and evens >= LASTS_SHARE * later and start_s + at_s + LASTS_S <= end_s:
            lasts_from_s = at_s
    return lasts_from_s


def _even(
    acked: Sequence[tuple[Sequence[float], Sequence[float]]], start_s: float, end_s: float
) -> Iterator[tuple[float, bool]]:
    """Yield each moment, as seconds since `start_s`, and whether the ten seconds before it were even."""
    at_s = start_s + FAIR_OVER_S
    while at_s <= end_s:
        got = [
            interpolate(*counts, at_s) - interpolate(*counts, at_s - FAIR_OVER_S)
            for counts in acked
        ]
        fair = sum(got) / len(got)
        within = FAIR_WITHIN_RATIO * fair
        yield round(at_s - start_s, 6), fair > 0 and all(abs(g - fair) <= within for g in got)
        at_s += STEP_S


def interpolate(times: Sequence[float], values: Sequence[float], time_s: float) -> float:
    """Return the value at `time_s` on the line between two samples; before and after all, the first or the last."""
    n = bisect.bisect_left(times, time_s)
    if n == 0:
        return values[0]
    if n == len(times):
        return values[-1]
    part = (time_s - times[n - 1]) / (times[n] - times[n - 1])
    return values[n - 1] + part * (values[n] - values[n - 1])


class TraceLike(Protocol):
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


def rate_bps(trace: TraceLike, start_s: float, end_s: float) -> float:
    """Return the bits acknowledged a second, between two Unix times."""
    first, last = (
        interpolate(trace.time_s, trace.acked_bytes, time_s) for time_s in (start_s, end_s)
    )
    return 8 * (last - first) / (end_s - start_s)


def steady_state(trace: TraceLike, start_s: float, end_s: float) -> Values:
    """Return measured values of a connection from `start_s` to `end_s` (Unix times); none where too few samples lie there.

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


def sampled_each_tenth(trace: TraceLike) -> bool:
    """Return whether there is a sample in each tenth of a second, or nearly."""
    return (trace.time_s[-1] - trace.time_s[0]) / len(trace.time_s) <= 1.5 * TENTH_S


def lowest_tenth_bps(trace: TraceLike) -> float | None:
    """Return the least rate in any tenth of a second, from the second second on; None where the trace has
    no sample in each."""
    start_s, end_s = trace.time_s[0] + 1, trace.time_s[-1]
    count = int((end_s - start_s) / TENTH_S)
    if count < 1 or not sampled_each_tenth(trace):
        return None
    return min(
        rate_bps(trace, start_s + n * TENTH_S, start_s + (n + 1) * TENTH_S) for n in range(count)
    )


@dataclass(frozen=True)
class TimeSequence:
    """Times count in seconds from the first data packet, sequence numbers in bytes.

    `sent` and `again` are (time, first byte, end); `again` repeats bytes that were sent before.
    `acked` are (time, bytes acknowledged), each higher than the one before.
    """

    sent: list[tuple[float, int, int]]
    again: list[tuple[float, int, int]]
    acked: list[tuple[float, int]]


def data_connection(packets: Sequence[TcpPacket]) -> tuple[str, int]:
    """Return the address and port from which most bytes came; ValueError where there are none."""
    sent: Counter[tuple[str, int]] = Counter()
    for packet in packets:
        sent[packet.from_address, packet.from_port] += packet.data_bytes
    if not sent or not max(sent.values()):
        raise ValueError("no data in this capture")
    return sent.most_common(1)[0][0]


def time_sequence(packets: Sequence[TcpPacket]) -> TimeSequence:
    """Return the time-sequence record of the connection with most data; ValueError where there is none."""
    sender = data_connection(packets)
    result = TimeSequence([], [], [])
    start_s: float | None = None
    highest = acked = 0
    for packet in packets:
        if (packet.from_address, packet.from_port) == sender:
            if packet.seq_first is None or packet.seq_last is None:
                continue
            start_s = packet.time_s if start_s is None else start_s
            time_s = round(packet.time_s - start_s, 6)
            # A SYN's number is absolute, so it is none of these: it has no data.
            kind = result.again if packet.seq_first < highest else result.sent
            kind.append((time_s, packet.seq_first, packet.seq_last))
            highest = max(highest, packet.seq_last)
            continue
        ours = (packet.to_address, packet.to_port) == sender and start_s is not None
        if ours and packet.ack is not None and acked < packet.ack <= highest:
            acked = packet.ack
            result.acked.append((round(packet.time_s - (start_s or 0), 6), acked))
    return result


def window_arrivals(acks: str, name: str) -> list[list[int]]:
    """Return of each of the first windows when its packets came, in microseconds from its first. `acks` is what tcpdump
    printed, of a receiver that acknowledges each packet; ParseError, with the file's `name`, where it can't be read."""
    packets = parse_tcpdump(acks, name)
    data = Counter(packet.to_port for packet in packets).most_common(1)[0][0]
    times = [
        packet.time_s
        for packet in packets
        if packet.to_port == data and "S" not in packet.flags and not packet.data_bytes
    ]
    # The first acknowledges iperf3's greeting.
    windows, begin = [], 1
    for size in WINDOWS:
        window = times[begin : begin + size]
        windows.append([round(1e6 * (when - window[0])) for when in window])
        begin += size
    return windows
