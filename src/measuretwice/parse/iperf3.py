"""What a run of iperf3 measured, whichever form it was printed in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Iperf3Connection:
    """One data connection. `stream_id` is iperf3's socket number, by which intervals and totals
    are found; hosts and ports are seen from the end whose output this is."""

    stream_id: int
    local_host: str
    local_port: int
    remote_host: str
    remote_port: int


@dataclass(frozen=True)
class Iperf3Interval:
    """One stream's report over one interval.

    `start_s` and `end_s` count from the start of the measurement (after the omitted seconds, if
    `omitted` is false). The TCP fields are read from the sender's struct tcp_info at the
    interval's end, so they are None where this host received (`is_sender` false), and None where
    this version of iperf3 didn't report them. `is_sender` is None where
    an old version doesn't say.
    """

    stream_id: int
    start_s: float
    end_s: float
    bytes: int
    rate_bps: float | None
    retransmits: int | None
    snd_cwnd_bytes: int | None
    rtt_us: int | None
    rttvar_us: int | None
    pmtu_bytes: int | None
    omitted: bool
    is_sender: bool | None


@dataclass(frozen=True)
class Iperf3Stream:
    """One stream's totals over the measurement (omitted seconds left out by iperf3).

    `is_sender`: did this host send? None where iperf3 doesn't say.
    """

    stream_id: int
    is_sender: bool | None
    sender_bytes: int | None
    sender_seconds: float | None
    sender_rate_bps: float | None
    retransmits: int | None
    max_snd_cwnd_bytes: int | None
    min_rtt_us: int | None
    mean_rtt_us: int | None
    max_rtt_us: int | None
    receiver_bytes: int | None
    receiver_seconds: float | None
    receiver_rate_bps: float | None


@dataclass(frozen=True)
class Iperf3Run:
    """One run of iperf3.

    None means that iperf3 didn't say: the totals of a run that ended with `error`, for example, or
    what the receiver got when the run ended before its results came. `duration_s` is what was
    asked for with -t (None with -n and -k), `mss_requested_bytes` with -M, and
    `congestion_control` is what the sender used. The sums are over all streams; of a bidirectional
    run they are the client's sending direction, and `streams` has both.
    """

    version: str | None
    start_time_s: float | None
    protocol: str | None
    duration_s: float | None
    omit_s: float | None
    interval_s: float | None
    num_streams: int | None
    reverse: bool | None
    bidirectional: bool | None
    mss_requested_bytes: int | None
    mss_default_bytes: int | None
    congestion_control: str | None
    error: str | None
    connections: tuple[Iperf3Connection, ...]
    intervals: tuple[Iperf3Interval, ...]
    streams: tuple[Iperf3Stream, ...]
    sent_bytes: int | None
    sent_seconds: float | None
    sent_rate_bps: float | None
    retransmits: int | None
    received_bytes: int | None
    received_seconds: float | None
    received_rate_bps: float | None
    server: bool = False


@dataclass(frozen=True)
class Total:
    """What one end counted over the whole measurement, of a stream or of all; empty if unknown."""

    bytes: int | None = None
    seconds: float | None = None
    rate_bps: float | None = None
    retransmits: int | None = None
