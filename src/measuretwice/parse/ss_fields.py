"""What ss says of one socket: the table of its fields, and the reading of what follows a socket's addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from measuretwice.parse._reading import excerpt
from measuretwice.parse.fields import meanings_of, printed, printed_by, readers_of

# Words without a value that stand before the numbers: flags, the algorithm last. Newer versions of ss have flags that
# this table doesn't know, and kernels algorithms: so it is found by its place, and by its name where a flag follows it.
_FLAGS = frozenset("ts usec_ts sack ecn ecnseen accecn fastopen fastopen_child".split())
_ALGORITHMS = frozenset(
    "balia bbr bbr1 bbr2 bbr3 bbrplus bic bpf_cubic bpf_dctcp brutal cdg copa cubic dctcp dctcp-reno highspeed htcp "
    "hybla illinois ledbat lia lp nv olia pcc prague reno scalable vegas veno westwood wvegas yeah".split()
)
# What says that flags and algorithm are over.
_NUMBERS_BEGIN = frozenset({"wscale", "rto_ms", "rtt_ms", "mss_bytes", "cwnd_segments"})
# How ss -e shows which directions of a socket are open.
_SHUTDOWN = frozenset({"<->", "-->", "<--", "---"})
_USER = re.compile(r'\("([^"]*)",pid=(\d+),fd=(\d+)\)')
_TIMER = re.compile(
    r"\((?P<name>\w+),(?:(?P<minutes>\d+)min)?(?:(?P<seconds>\d+)(?:sec|\.))?"
    r"(?:(?P<milliseconds>\d{3})ms)?,(?P<retransmits>\d+)\)"
)
_SKMEM = re.compile(r"([a-z]+)(\d+)")
_RATE = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d+)?)([KMGT]?)bps")
_SCALE = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# One word of ss, two fields of this table.
PAIRS = {"rtt": ("rtt", "rttvar"), "retrans": ("retrans now", "retrans total")}


def _milliseconds(text: str) -> int:
    # A share of the busy time may follow: 60ms(3.1%).
    number, unit, _ = text.partition("ms")
    if not unit:
        raise ValueError(text)
    return int(number)


def _window_scales(text: str) -> tuple[int, int]:
    received, _, sent = text.partition(",")
    return int(received), int(sent)


_printed = partial(printed, default=None)


@dataclass(frozen=True)
class SsUser:
    """A process that holds the socket (option -p)."""

    name: str
    pid: int
    fd: int


@dataclass(frozen=True, kw_only=True)
class SsSocket:
    """One socket: its row, and what the kernel's struct tcp_info says of it (option -i).

    What ss prints is declared in the order in which ./lab show has it. A field that ss didn't print is
    None; ss leaves out most counters while they are 0. Rates are in bit/s; ss without -n rounds them to
    three digits. `wscale` is (received from the peer, sent to it).

    `state` is None where ss drops the column (one state asked for); a port is None for `*`.
    `skmem` (option -m) is in bytes, except `d`, which counts dropped packets. `algorithm` is the
    congestion control's own group, such as bbr:(bw:…,mrtt:…) or dctcp:(…), as text. What has
    no field of its own is in `other`, by ss's name for it.
    """

    # fmt: off
    cwnd_segments: int | None = _printed("cwnd", "segments", "congestion window: how many may be in flight", int)
    ssthresh_segments: int | None = _printed("ssthresh", "segments", "where slow start ends; not printed before it is first set", int)
    unacked_segments: int | None = _printed("unacked", "segments", "sent, and not yet acknowledged", int)
    rtt_ms: float | None = _printed("rtt", "ms", "smoothed round-trip time, as this connection's ACKs show it")
    rttvar_ms: float | None = _printed("rttvar", "ms", "mean deviation of the round-trip time")
    minrtt_ms: float | None = _printed("minrtt", "ms", "smallest round-trip time of the last 300 s (tcp_min_rtt_wlen)", float)
    mss_bytes: int | None = _printed("mss", "bytes", "data in a full segment, after headers and options", int)
    pmtu_bytes: int | None = _printed("pmtu", "bytes", "largest IP packet that the path is assumed to carry", int)
    rcvmss_bytes: int | None = _printed("rcvmss", "bytes", "size of the segments that arrive, as estimated", int)
    advmss_bytes: int | None = _printed("advmss", "bytes", "segment size that this side announced", int)
    retrans_now: int | None = _printed("retrans now", "segments", "retransmitted and still in flight: the first number of retrans")
    retrans_total: int | None = _printed("retrans total", "segments", "retransmitted since the start: the second number of retrans")
    lost_segments: int | None = _printed("lost", "segments", "assumed lost at this moment", int)
    sacked_segments: int | None = _printed("sacked", "segments", "received out of order, as the receiver reported", int)
    dsack_dups: int | None = _printed("dsack_dups", "segments", "retransmitted though the receiver had them, as it reported", int)
    reordering: int | None = _printed("reordering", "segments", "how far out of order packets may come before one counts as lost", int)
    bytes_sent: int | None = _printed("bytes_sent", "bytes", "data sent, including retransmissions", int)
    bytes_retrans: int | None = _printed("bytes_retrans", "bytes", "data retransmitted", int)
    bytes_acked: int | None = _printed("bytes_acked", "bytes", "data acknowledged", int)
    bytes_received: int | None = _printed("bytes_received", "bytes", "data received", int)
    segs_out: int | None = _printed("segs_out", "segments", "sent, including ACKs without data", int)
    segs_in: int | None = _printed("segs_in", "segments", "received, including ACKs without data", int)
    data_segs_out: int | None = _printed("data_segs_out", "segments", "sent with data, including retransmissions", int)
    data_segs_in: int | None = _printed("data_segs_in", "segments", "received with data", int)
    delivered_segments: int | None = _printed("delivered", "segments", "that arrived, according to ACKs and SACKs", int)
    delivered_ce_segments: int | None = _printed("delivered_ce", "segments", "that arrived with a congestion mark (ECN)", int)
    send_rate_bps: float | None = _printed("send", "bit/s", "computed by ss: mss * cwnd / rtt")
    pacing_rate_bps: float | None = _printed("pacing_rate", "bit/s", "how fast the sender lets segments out, where it paces")
    max_pacing_rate_bps: float | None = _printed("max_pacing_rate", "bit/s", "bound on the pacing rate, set by the program")
    delivery_rate_bps: float | None = _printed("delivery_rate", "bit/s", "how fast data arrived recently, according to ACKs")
    busy_ms: int | None = _printed("busy", "ms", "time with data in flight, since the start", _milliseconds)
    rwnd_limited_ms: int | None = _printed("rwnd_limited", "ms", "of the busy time, held up by the receiver's window", _milliseconds)
    sndbuf_limited_ms: int | None = _printed("sndbuf_limited", "ms", "of the busy time, held up by the send buffer", _milliseconds)
    app_limited: bool | None = _printed("app_limited", "", "less than a full segment was waiting to be sent, though cwnd had room, when this was measured")
    recv_q_bytes: int = _printed("Recv-Q", "bytes", "received, and not yet read by the program")
    send_q_bytes: int = _printed("Send-Q", "bytes", "handed over by the program, and not yet acknowledged")
    notsent_bytes: int | None = _printed("notsent", "bytes", "in the send buffer, and not yet sent", int)
    snd_wnd_bytes: int | None = _printed("snd_wnd", "bytes", "the peer's receive window", int)
    rcv_space_bytes: int | None = _printed("rcv_space", "bytes", "what tunes the receive buffer: data read in a round trip", int)
    rcv_ssthresh_bytes: int | None = _printed("rcv_ssthresh", "bytes", "bound on the receive window at present", int)
    rcv_rtt_ms: float | None = _printed("rcv_rtt", "ms", "round-trip time as the receiving side estimates it", float)
    rto_ms: float | None = _printed("rto", "ms", "retransmission timeout: after a silence of this length it retransmits", float)
    ato_ms: float | None = _printed("ato", "ms", "how long an ACK may be delayed", float)
    timestamps: bool | None = _printed("ts", "", "timestamps are on (RFC 7323)")
    wscale: tuple[int, int] | None = _printed("wscale", "bits", "window scale: the peer's, this side's", _window_scales)
    lastsnd_ms: int | None = _printed("lastsnd", "ms", "since data was last sent", int)
    lastrcv_ms: int | None = _printed("lastrcv", "ms", "since data last came in", int)
    lastack_ms: int | None = _printed("lastack", "ms", "since an ACK last came in", int)
    congestion_control: str | None = _printed("algorithm", "", "congestion control of this connection")
    state: str | None = _printed("state", "", "state of the connection (tcp(7))")
    # fmt: on
    netid: str | None
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
    algorithm: dict[str, str] | None = None
    other: dict[str, str] = field(default_factory=dict)


# By ss's name for each: the field, and what it means.
FIELDS = printed_by(SsSocket)
SS = meanings_of(SsSocket, "ss(8), struct tcp_info in linux/tcp.h")
_NUMBERS = readers_of(SsSocket)
# Names that a blank, not a colon, parts from their value.
RATES = {name: field for name, field in FIELDS.items() if SS[name].unit == "bit/s"}


class BadToken(Exception):
    """A word that is not what it should be; the text says both."""

    def __init__(self, token: str, expected: str) -> None:
        super().__init__(f"found {excerpt(token)}; expected {expected}")


def read_details(tokens: Iterator[str], values: dict[str, Any]) -> None:
    """Read what follows the addresses. Every word is looked at once."""
    words: list[str] = []
    other: dict[str, str] = values["other"]
    for token in tokens:
        key, colon, text = token.partition(":")
        try:
            known = _NUMBERS.get(key)
            if known is not None and colon:
                values[known[0]] = known[1](text)
            elif colon and key in _SPECIAL:
                _SPECIAL[key](text, values)
            elif not colon:
                if token in RATES:
                    _read_rate(token, next(tokens), values)
                elif token == "app_limited":
                    values["app_limited"] = True
                elif token in _SHUTDOWN:
                    other["shutdown"] = token
                elif _NUMBERS_BEGIN.isdisjoint(values):
                    words.append(token)
                else:
                    other[token] = ""
            elif key == "dctcp" or (key in words and text[:1] == "("):
                # A dctcp that fell back calls itself dctcp-reno, and its group dctcp.
                values["algorithm"] = _group(text)
            else:
                other[key] = text
        except (ValueError, StopIteration):
            raise BadToken(token, "a number as ss prints it") from None
    algorithm = _algorithm(words)
    if algorithm is not None:
        values["congestion_control"] = algorithm
        words.remove(algorithm)
    values["flags"] = tuple(words)
    if "rto_ms" in values:
        # There is a struct tcp_info, so that what ss doesn't mention is off.
        values["timestamps"] = "ts" in words
        values.setdefault("app_limited", False)


def _algorithm(words: list[str]) -> str | None:
    """The congestion control among the words before the numbers; None where ss prints none."""
    known = [word for word in words if word in _ALGORITHMS]
    found = known or [word for word in words[-1:] if word not in _FLAGS]
    return found[-1] if found else None


def _rate_bps(text: str) -> float:
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError(text)
    return float(match[1]) * _SCALE[match[2]]


def _group(text: str) -> dict[str, str]:
    """A group such as (bw:1bps,mrtt:3), or a single word such as fallback_mode."""
    pairs = (item.partition(":") for item in text.strip("()").split(","))
    return {key: value for key, _, value in pairs}


def _read_rate(name: str, text: str, values: dict[str, Any]) -> None:
    if name == "pacing_rate":
        text, slash, limit = text.partition("/")
        if slash:
            values["max_pacing_rate_bps"] = _rate_bps(limit)
    values[RATES[name]] = _rate_bps(text)


def _read_rtt(text: str, values: dict[str, Any]) -> None:
    rtt, _, rttvar = text.partition("/")
    values["rtt_ms"], values["rttvar_ms"] = float(rtt), float(rttvar)


def _read_retrans(text: str, values: dict[str, Any]) -> None:
    now, _, total = text.partition("/")
    values["retrans_now"], values["retrans_total"] = int(now), int(total)


def _read_timer(text: str, values: dict[str, Any]) -> None:
    # "1.234ms" is ss's way of writing 1 s and 234 ms.
    match = _TIMER.fullmatch(text)
    if not match:
        raise ValueError(text)
    minutes, seconds, milliseconds = (
        int(match[part] or 0) for part in ("minutes", "seconds", "milliseconds")
    )
    values["timer_name"] = match["name"]
    values["timer_expires_ms"] = (minutes * 60 + seconds) * 1000 + milliseconds
    values["timer_retransmits"] = int(match["retransmits"])


def _read_users(text: str, values: dict[str, Any]) -> None:
    values["users"] = tuple(SsUser(u[1], int(u[2]), int(u[3])) for u in _USER.finditer(text))


def _read_skmem(text: str, values: dict[str, Any]) -> None:
    values["skmem"] = {m[1]: int(m[2]) for m in _SKMEM.finditer(text)}


_SPECIAL: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "rtt": _read_rtt,
    "retrans": _read_retrans,
    "timer": _read_timer,
    "users": _read_users,
    "skmem": _read_skmem,
}
