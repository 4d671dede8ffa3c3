"""What the fields of each tool's output mean: the words beside the numbers of ./lab show.

A table a tool, by the name that the tool prints. The unit is the one in which the tool prints it, and
the source is where its meaning is written down. No entry judges a value.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """One field: its unit (empty for counts without one, and words), what it is, and who says so."""

    unit: str
    text: str
    source: str


Meanings = dict[str, Meaning]
# Of a field that no table here has.
UNKNOWN = Meaning("", "", "")


def _table(source: str, rows: dict[str, tuple[str, str]]) -> Meanings:
    return {name: Meaning(unit, text, source) for name, (unit, text) in rows.items()}


_TCP_INFO = "ss(8), struct tcp_info in linux/tcp.h"

# By the name that ss prints; where one word holds two numbers, by both, as in rtt and rttvar.
SS = _table(
    _TCP_INFO,
    {
        "Recv-Q": ("bytes", "received, and not yet read by the program"),
        "Send-Q": ("bytes", "handed over by the program, and not yet acknowledged"),
        "rto": ("ms", "retransmission timeout: silence for so long, and it sends again"),
        "rtt": ("ms", "smoothed round-trip time, as this connection's ACKs show it"),
        "rttvar": ("ms", "mean deviation of the round-trip time"),
        "minrtt": ("ms", "smallest round-trip time of the last 300 s (tcp_min_rtt_wlen)"),
        "rcv_rtt": ("ms", "round-trip time as the receiving side reckons it"),
        "ato": ("ms", "how long an ACK may be delayed"),
        "mss": ("bytes", "data in a full segment, after headers and options"),
        "pmtu": ("bytes", "largest IP packet that the path is taken to carry"),
        "rcvmss": ("bytes", "size of the segments that arrive, as it is reckoned"),
        "advmss": ("bytes", "segment size that this side announced"),
        "cwnd": ("segments", "congestion window: how many may be in flight"),
        "ssthresh": ("segments", "where slow start ends; not printed before it is first set"),
        "unacked": ("segments", "sent, and not yet acknowledged"),
        "lost": ("segments", "taken for lost at this moment"),
        "sacked": ("segments", "received out of order, by the receiver's word"),
        "reordering": (
            "segments",
            "how far out of order packets may come before one counts as lost",
        ),
        "retrans now": ("segments", "resent and still in flight: the first number of retrans"),
        "retrans total": ("segments", "sent again since the start: the second number of retrans"),
        "dsack_dups": ("segments", "sent again though the receiver had them, by its word"),
        "bytes_sent": ("bytes", "data sent, what was sent again included"),
        "bytes_retrans": ("bytes", "data sent again"),
        "bytes_acked": ("bytes", "data acknowledged"),
        "bytes_received": ("bytes", "data received"),
        "segs_out": ("segments", "sent, ACKs without data included"),
        "segs_in": ("segments", "received, ACKs without data included"),
        "data_segs_out": ("segments", "with data sent, those sent again included"),
        "data_segs_in": ("segments", "with data received"),
        "delivered": ("segments", "that arrived, by ACKs and SACKs"),
        "delivered_ce": ("segments", "that arrived with a congestion mark (ECN)"),
        "notsent": ("bytes", "in the send buffer, and not yet sent"),
        "send": ("bit/s", "ss's own sum: mss * cwnd / rtt"),
        "pacing_rate": ("bit/s", "how fast the sender lets segments out, where it paces"),
        "max_pacing_rate": ("bit/s", "bound on the pacing rate, set by the program"),
        "delivery_rate": ("bit/s", "how fast data arrived of late, by ACKs"),
        "busy": ("ms", "time with data in flight, since the start"),
        "rwnd_limited": ("ms", "of it, held up by the receiver's window"),
        "sndbuf_limited": ("ms", "of it, held up by the send buffer"),
        "lastsnd": ("ms", "since data was last sent"),
        "lastrcv": ("ms", "since data last came in"),
        "lastack": ("ms", "since an ACK last came in"),
        "rcv_space": ("bytes", "what tunes the receive buffer: data read in a round trip"),
        "rcv_ssthresh": ("bytes", "bound on the receive window at present"),
        "snd_wnd": ("bytes", "the peer's receive window"),
        "app_limited": ("", "the program had nothing more to send when this was measured"),
        "ts": ("", "timestamps are on (RFC 7323)"),
        "wscale": ("bits", "window scale: the peer's, this side's"),
        "algorithm": ("", "congestion control of this connection"),
        "state": ("", "state of the connection (tcp(7))"),
    },
)

# Counters that every qdisc has, by tc's names in JSON.
QDISC = _table(
    "tc(8), gnet_stats in linux/gen_stats.h",
    {
        "bytes": ("bytes", "passed on, link headers included"),
        "packets": ("packets", "passed on"),
        "drops": ("packets", "dropped here"),
        "overlimits": ("times", "a packet had to wait, or was over a bound"),
        "requeues": ("times", "the interface gave a packet back"),
        "backlog": ("bytes", "waiting at that moment"),
        "qlen": ("packets", "waiting at that moment"),
        "marked": ("packets", "marked, or dropped where ECN isn't in use, by chance"),
        "early": ("packets", "dropped by chance, before the queue was full"),
        "pdrop": ("packets", "dropped because the queue was full"),
        "other": ("packets", "dropped on another's behalf"),
        "ecn_mark": ("packets", "marked instead of dropped"),
        "maxpacket": ("bytes", "largest packet so far"),
        "new_flow_count": ("times", "a new flow began"),
        "drop_overlimit": ("packets", "dropped because the limit was reached"),
        "direct_packets_stat": ("packets", "passed on outside of every class"),
    },
)

_NETEM = _table(
    "tc-netem(8)",
    {
        "limit": ("packets", "how many packets it holds at most"),
        "delay.delay": ("s", "added to each packet that leaves here"),
        "delay.jitter": ("s", "by how much that varies"),
        "delay.correlation": ("0 to 1", "how much a packet's delay depends on the one before"),
        "loss-random.loss": ("0 to 1", "chance of each packet to be dropped"),
        "loss-random.correlation": ("0 to 1", "how much a drop depends on the one before"),
        "ecn": ("", "marks packets that allow it, instead of dropping them"),
        "gap": ("packets", "of so many packets one is sent at once, before the delayed ones"),
        "rate.rate": ("bytes/s", "rate at which packets leave"),
        "seed": ("", "where its dice start from"),
    },
)
_TBF = _table(
    "tc-tbf(8)",
    {
        "rate": ("bytes/s", "rate at which packets leave"),
        "peakrate": ("bytes/s", "rate within a burst"),
        "burst": ("bytes", "size of the bucket: what may go at once"),
        "limit": ("bytes", "how much may wait for tokens"),
        "linklayer": ("", "which link's framing the rate is computed for"),
        "lat": ("µs", "how long the last of a full queue waits at that rate, less the burst"),
    },
)
_RED = _table(
    "tc-red(8)",
    {
        "limit": ("bytes", "hard bound on the real queue"),
        "min": ("bytes", "average queue from which on packets are marked or dropped"),
        "max": ("bytes", "average queue at which the chance is largest"),
        "ecn": ("", "marks packets that allow it, instead of dropping them"),
        "Wlog": ("", "weight of the newest length in the average, as a power of 2"),
        "Plog": ("", "chance at max, as a power of 2"),
        "Scell_log": ("", "step of time for which the average decays when idle, as a power of 2"),
        "ewma": ("", "weight of the newest length in the average, as a power of 2"),
        "probability": ("0 to 1", "chance at max"),
    },
)
_PACKETS = {"limit": ("packets", "how many may wait")}
_CODEL = {
    **_PACKETS,
    "target": ("µs", "delay in the queue that is put up with"),
    "interval": ("µs", "how long it may be above target"),
    "ecn": ("", "marks packets that allow it, instead of dropping them"),
}
# Options by the qdisc's kind, then by tc's name in JSON; one in an object as OBJECT.NAME.
QDISC_OPTIONS: dict[str, Meanings] = {
    "netem": _NETEM,
    "tbf": _TBF,
    "red": _RED,
    "pfifo": _table("tc-bfifo(8)", _PACKETS),
    "bfifo": _table("tc-bfifo(8)", {"limit": ("bytes", "how much may wait")}),
    "pfifo_fast": _table("tc-pfifo_fast(8)", {"bands": ("", "queues, by priority")}),
    "fq": _table(
        "tc-fq(8)",
        {
            "limit": ("packets", "how many may wait, of all flows"),
            "flow_limit": ("packets", "how many may wait, of one flow"),
        },
    ),
    "codel": _table("tc-codel(8)", _CODEL),
    "fq_codel": _table(
        "tc-fq_codel(8)",
        {
            **_CODEL,
            "flows": ("", "queues that flows are shared out to"),
            "quantum": ("bytes", "what a queue may send in its turn"),
            "memory_limit": ("bytes", "how much memory packets may take"),
        },
    ),
    "pie": _table(
        "tc-pie(8)",
        {
            **_PACKETS,
            "target": ("µs", "delay in the queue that it aims at"),
            "tupdate": ("µs", "how often the probability is recomputed"),
        },
    ),
    "htb": _table(
        "tc-htb(8)",
        {
            "default": ("", "class of packets that no filter puts elsewhere, hexadecimal"),
            "r2q": ("", "rate over this is a class's turn"),
            "direct_qlen": ("packets", "how many may wait outside of every class"),
        },
    ),
}

PING = _table(
    "ping(8)",
    {
        "target": ("", "whom it asked"),
        "payload": ("bytes", "data in a packet; 28 less than its IPv4 packet"),
        "transmitted": ("packets", "asked"),
        "received": ("packets", "answers"),
        "loss": ("0 to 1", "share without an answer"),
        "duplicates": ("packets", "answers that came twice"),
        "errors": ("packets", "answers that said no"),
        "time": ("ms", "from the first to the last"),
        "min": ("ms", "smallest round-trip time"),
        "avg": ("ms", "mean round-trip time"),
        "max": ("ms", "largest round-trip time"),
        "mdev": ("ms", "standard deviation, as ping reckons it"),
        "icmp_seq": ("", "which packet this is the answer to, counted from 1"),
        "ttl": ("routers", "that the answer may still pass; Linux begins at 64"),
        "time of one": ("ms", "round-trip time of this packet"),
        "pipe": ("packets", "most that were in flight at once"),
    },
)

IPERF3 = _table(
    "iperf3(1), its JSON (-J)",
    {
        "protocol": ("", "what it sent over"),
        "duration": ("s", "how long it was told to send (-t)"),
        "omit": ("s", "at the start, left out of the totals (-O)"),
        "num_streams": ("", "connections with data (-P)"),
        "reverse": ("", "the server sent, and the client received (-R)"),
        "tcp_mss": ("bytes", "segment size asked for (-M)"),
        "tcp_mss_default": ("bytes", "segment size of the control connection"),
        "congestion": ("", "congestion control that the sender used"),
        "bytes": ("bytes", "data; sent: handed to the socket, received: read from it"),
        "seconds": ("s", "the time that this side took"),
        "bits_per_second": ("bit/s", "those bytes over that time"),
        "retransmits": ("segments", "sent again, by the sender's kernel"),
        "snd_cwnd": ("bytes", "congestion window at the interval's end"),
        "rtt": ("ms", "smoothed round-trip time at the interval's end"),
        "interval": ("s", "from when to when"),
    },
)

TCPDUMP = _table(
    "tcpdump(1), with -e and -q",
    {
        "ethernet": ("", "Ethernet addresses: from, to"),
        "length": ("bytes", "the whole frame, with Ethernet's header of 14"),
        "from": ("", "sender's address, and behind the last point its port"),
        "to": ("", "receiver's address, and its port"),
        "tcp": ("bytes", "data in the packet, without headers"),
    },
)

_SNMP = "nstat(8), Documentation/networking/snmp_counter.rst"
NSTAT = _table(
    _SNMP,
    {
        "IpInReceives": ("packets", "IP packets that came in"),
        "IpForwDatagrams": ("packets", "passed on to another network"),
        "IpOutRequests": ("packets", "IP packets that this node wanted to send"),
        "IpInDiscards": ("packets", "came in and were dropped for lack of room"),
        "IpOutDiscards": ("packets", "going out, dropped for lack of room"),
        "IpExtInOctets": ("bytes", "came in by IP"),
        "IpExtOutOctets": ("bytes", "went out by IP"),
        "IcmpInEchoReps": ("packets", "answers to pings that came in"),
        "IcmpInEchos": ("packets", "pings that came in"),
        "TcpActiveOpens": ("connections", "opened from here"),
        "TcpPassiveOpens": ("connections", "taken from elsewhere"),
        "TcpInSegs": ("segments", "received"),
        "TcpOutSegs": ("segments", "sent, those sent again left out"),
        "TcpRetransSegs": ("segments", "sent again"),
        "TcpOutRsts": ("segments", "resets sent"),
        "TcpExtTCPTimeouts": ("times", "a retransmission timeout ran out"),
        "TcpExtTCPLostRetransmit": ("segments", "sent again, and taken for lost again"),
        "TcpExtTCPFastRetrans": ("segments", "sent again in fast recovery"),
        "TcpExtTCPSlowStartRetrans": ("segments", "sent again in slow start, after a timeout"),
        "TcpExtTCPSackRecovery": ("times", "fast recovery began, with SACK"),
        "TcpExtTCPLossProbes": ("segments", "tail loss probes sent (RFC 8985)"),
        "TcpExtTCPDSACKRecv": ("segments", "the receiver had already, by its DSACKs"),
        "TcpExtTCPDSACKOldSent": ("segments", "came again, and a DSACK said so"),
        "TcpExtTCPOFOQueue": ("segments", "came out of order, and were kept"),
        "TcpExtTCPOFODrop": ("segments", "came out of order, and were dropped for lack of room"),
        "TcpExtPruneCalled": ("times", "the receive buffer was tidied for lack of room"),
        "TcpExtOfoPruned": ("times", "all that came out of order was thrown away for lack of room"),
        "TcpExtTCPMemoryPressures": (
            "times",
            "TCP's memory on this host came near its limit (net.ipv4.tcp_mem)",
        ),
        "TcpExtTCPSACKReneging": (
            "times",
            "the receiver had thrown away what it had reported by SACK",
        ),
        "TcpExtTCPRcvCollapsed": ("packets", "merged in the receive buffer to save room"),
        "TcpExtTCPBacklogDrop": ("packets", "dropped before their socket, for lack of room"),
        "TcpExtTCPRcvQDrop": ("segments", "came in order, and were dropped for lack of room"),
        "TcpExtDelayedACKs": ("ACKs", "sent after the delay"),
        "TcpExtTCPPureAcks": ("ACKs", "without data that came in"),
        "TcpExtTCPHPHits": ("packets", "received by the short way"),
        "TcpExtTCPDelivered": ("segments", "that arrived, by ACKs and SACKs"),
        "TcpExtTCPOrigDataSent": ("segments", "with data sent, those sent again left out"),
        "TcpExtTCPHystartTrainDetect": ("times", "CUBIC ended slow start by a train of ACKs"),
        "TcpExtTCPHystartDelayDetect": ("times", "CUBIC ended slow start by the delay"),
    },
)

# By the names in `ip -j -s link`; the counters are of struct rtnl_link_stats64.
LINK = _table(
    "ip-link(8), linux/if_link.h",
    {
        "mtu": ("bytes", "largest IP packet that may leave"),
        "qdisc": ("", "the queueing discipline at its root"),
        "operstate": ("", "is it up?"),
        "txqlen": ("packets", "the length that some qdiscs take for their limit"),
        "rx.bytes": ("bytes", "came in"),
        "rx.packets": ("packets", "came in"),
        "rx.errors": ("packets", "came in damaged"),
        "rx.dropped": ("packets", "came in, and were dropped"),
        "tx.bytes": ("bytes", "went out"),
        "tx.packets": ("packets", "went out"),
        "tx.errors": ("packets", "could not be sent"),
        "tx.dropped": ("packets", "were dropped on the way out"),
    },
)

SYSCTL = _table(
    "tcp(7), Documentation/networking/ip-sysctl.rst",
    {
        "net.ipv4.tcp_congestion_control": ("", "algorithm of connections that don't ask"),
        "net.ipv4.tcp_timestamps": ("", "1: announces timestamps (RFC 7323)"),
        "net.ipv4.tcp_sack": ("", "1: selective acknowledgements"),
        "net.ipv4.tcp_ecn": ("", "0: never, 1: asks for it, 2: if asked"),
        "net.ipv4.tcp_rmem": ("bytes", "receive buffer: least, first, largest"),
        "net.ipv4.tcp_wmem": ("bytes", "send buffer: least, first, largest"),
        "net.ipv4.tcp_mem": ("pages", "memory of all TCP: low, pressure, most"),
        "net.ipv4.tcp_no_metrics_save": ("", "1: forgets a connection when it closes"),
        "net.ipv4.tcp_slow_start_after_idle": ("", "1: an idle connection starts slowly again"),
        "net.ipv4.tcp_moderate_rcvbuf": ("", "1: the kernel tunes the receive buffer"),
        "net.ipv4.tcp_window_scaling": ("", "1: windows over 64 KiB (RFC 7323)"),
        "net.ipv4.ip_forward": ("", "1: passes packets on"),
        "net.ipv4.ip_no_pmtu_disc": ("", "0: path MTU discovery is on"),
        "net.core.default_qdisc": ("", "qdisc that a new interface gets"),
        "net.core.rmem_max": ("bytes", "most that a program may ask for to receive"),
        "net.core.wmem_max": ("bytes", "most that a program may ask for to send"),
        "net.core.netdev_max_backlog": ("packets", "may wait between driver and IP, a CPU"),
        "net.core.netdev_budget": ("packets", "taken from drivers in one turn"),
    },
)

ETHTOOL = _table(
    "ethtool(8), Documentation/networking/segmentation-offloads.rst",
    {
        "tcp-segmentation-offload": ("", "tso: the interface cuts bundles into segments"),
        "generic-segmentation-offload": ("", "gso: the kernel cuts them, just before the driver"),
        "generic-receive-offload": ("", "gro: segments that arrive are put into bundles"),
        "large-receive-offload": ("", "lro: the interface does so"),
        "tx-checksumming": ("", "the interface reckons checksums"),
        "scatter-gather": ("", "a packet may lie in several places of memory"),
    },
)

# The first three columns of /proc/net/softnet_stat, in hexadecimal.
SOFTNET = _table(
    "net/core/net-procfs.c",
    {
        "processed": ("packets", "taken from drivers: column 1"),
        "dropped": ("packets", "lost between driver and IP: column 2"),
        "time_squeeze": ("times", "work was left when its turn ended: column 3"),
    },
)
