"""What ss says of one socket."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SsUser:
    """A process that holds the socket (option -p)."""

    name: str
    pid: int
    fd: int


@dataclass(frozen=True)
class SsSocket:
    """One socket: its row, and what the kernel's struct tcp_info says of it (option -i).

    A field that ss didn't print is None; ss leaves out most counters while they are 0.
    Congestion windows, `unacked`, `lost`, `sacked`, `delivered` and the retransmissions count
    segments, as in struct tcp_info (linux/tcp.h). Rates are in bit/s; ss without -n rounds them to
    three digits. `busy_ms` is the time with data in flight, and two parts of it are
    `rwnd_limited_ms` and `sndbuf_limited_ms`. `retrans_now` are retransmitted segments in flight,
    `retrans_total` those since the beginning. `wscale` is (received from the peer, sent to it).

    `state` is None where ss drops the column (one state asked for); a port is None for `*`.
    `skmem` (option -m) is in bytes, except `d`, which counts dropped packets. `algorithm` is the
    congestion control's own group, such as bbr:(bw:…,mrtt:…) or dctcp:(…), as text. What has
    no field of its own is in `other`, by ss's name for it.
    """

    netid: str | None
    state: str | None
    recv_q_bytes: int
    send_q_bytes: int
    local_address: str
    local_interface: str | None
    local_port: int | None
    peer_address: str
    peer_interface: str | None
    peer_port: int | None
    users: tuple[SsUser, ...] = ()
    timer_name: str | None = None
    timer_expires_ms: int | None = None
    timer_retransmits: int | None = None
    skmem: dict[str, int] | None = None
    flags: tuple[str, ...] = ()
    timestamps: bool | None = None
    app_limited: bool | None = None
    congestion_control: str | None = None
    algorithm: dict[str, str] | None = None
    wscale: tuple[int, int] | None = None
    rto_ms: float | None = None
    rtt_ms: float | None = None
    rttvar_ms: float | None = None
    ato_ms: float | None = None
    mss_bytes: int | None = None
    pmtu_bytes: int | None = None
    rcvmss_bytes: int | None = None
    advmss_bytes: int | None = None
    cwnd_segments: int | None = None
    ssthresh_segments: int | None = None
    bytes_sent: int | None = None
    bytes_retrans: int | None = None
    bytes_acked: int | None = None
    bytes_received: int | None = None
    segs_out: int | None = None
    segs_in: int | None = None
    data_segs_out: int | None = None
    data_segs_in: int | None = None
    send_rate_bps: float | None = None
    pacing_rate_bps: float | None = None
    max_pacing_rate_bps: float | None = None
    delivery_rate_bps: float | None = None
    delivered_segments: int | None = None
    delivered_ce_segments: int | None = None
    lastsnd_ms: int | None = None
    lastrcv_ms: int | None = None
    lastack_ms: int | None = None
    busy_ms: int | None = None
    rwnd_limited_ms: int | None = None
    sndbuf_limited_ms: int | None = None
    unacked_segments: int | None = None
    retrans_now: int | None = None
    retrans_total: int | None = None
    lost_segments: int | None = None
    sacked_segments: int | None = None
    dsack_dups: int | None = None
    reordering: int | None = None
    rcv_rtt_ms: float | None = None
    rcv_space_bytes: int | None = None
    rcv_ssthresh_bytes: int | None = None
    notsent_bytes: int | None = None
    minrtt_ms: float | None = None
    snd_wnd_bytes: int | None = None
    other: dict[str, str] = field(default_factory=dict)
