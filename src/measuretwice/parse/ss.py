"""TCP sockets as ss prints them (iproute2; see ss(8))."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from measuretwice.parse._text import clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError

_EXPECTED = "the text output of ss (`ss -tin`)"


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


def parse_ss(text: str, source: str) -> tuple[SsSocket, ...]:
    """Read the TCP (and UDP) sockets that ss printed, in its order.

    With or without header, `-H`, `-n`, `-i`, `-m`, `-e`, `-o`, `-p`, `-t`, `-u`, `-a`, and each
    socket on one line (`-O`) or on two. Ports must be numbers (`-n`). A header alone gives ().

    Raises ParseError for another tool's text, for other kinds of socket, and for a text that is
    cut off: ss ends every line, and prints a second line either for every socket or for none.
    """
    text = clean(text, source, _EXPECTED)
    lines = text.split("\n")
    if lines.pop():
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    if not _HEADER.match(text) and not _begins_row(lines[0]):
        raise foreign(text, source, _EXPECTED)
    return read_sockets(enumerate(lines, start=1), source, has_second_lines(text))


def has_second_lines(text: str) -> bool:
    """Does ss print two lines for each socket here?"""
    return "\n\t" in text or "\n " in text


def read_sockets(
    lines: Iterable[tuple[int, str]], source: str, second_lines: bool
) -> tuple[SsSocket, ...]:
    """The sockets of numbered, whole lines of ss's text.

    Raises TruncatedError if there are second lines, but not for the last socket.
    """
    sockets: list[SsSocket] = []
    row: list[str] | None = None
    row_number = 0
    second = False
    for number, line in lines:
        if line[:1] in (" ", "\t"):
            if row is None:
                raise _unreadable(source, number, line)
            row += _tokens(line)
            second = True
        elif line and not _HEADER.match(line):
            if row is not None:
                sockets.append(_socket(row, source, row_number))
            row, row_number, second = _tokens(line), number, False
    if row is not None:
        if second_lines and not second:
            raise cut_off(source, row_number, "the last socket's second line")
        sockets.append(_socket(row, source, row_number))
    return tuple(sockets)


_HEADER = re.compile(r"(?:Netid +)?(?:State +)?Recv-Q +Send-Q +Local Address")
_STATE = re.compile(r"[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)*")
_NETIDS = frozenset({"tcp", "udp", "mptcp", "sctp", "dccp"})
_FLAGS = frozenset({"ts", "sack", "ecn", "ecnseen", "fastopen"})
# Process names may hold blanks: users:(("my server",pid=7,fd=3)).
_QUOTED_TOKEN = re.compile(r'(?:[^\s"]|"[^"]*"|")+')
_USER = re.compile(r'\("([^"]*)",pid=(\d+),fd=(\d+)\)')
_TIMER = re.compile(
    r"\((?P<name>\w+),(?:(?P<minutes>\d+)min)?(?:(?P<seconds>\d+)(?:sec|\.))?"
    r"(?:(?P<milliseconds>\d{3})ms)?,(?P<retransmits>\d+)\)"
)
_SKMEM = re.compile(r"([a-z]+)(\d+)")
_RATE = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d+)?)([KMGT]?)bps")
_SCALE = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# ss's name for a number, this field, and its type.
_NUMBERS: dict[str, tuple[str, Callable[[str], float]]] = {
    "rto": ("rto_ms", float),
    "ato": ("ato_ms", float),
    "mss": ("mss_bytes", int),
    "pmtu": ("pmtu_bytes", int),
    "rcvmss": ("rcvmss_bytes", int),
    "advmss": ("advmss_bytes", int),
    "cwnd": ("cwnd_segments", int),
    "ssthresh": ("ssthresh_segments", int),
    "bytes_sent": ("bytes_sent", int),
    "bytes_retrans": ("bytes_retrans", int),
    "bytes_acked": ("bytes_acked", int),
    "bytes_received": ("bytes_received", int),
    "segs_out": ("segs_out", int),
    "segs_in": ("segs_in", int),
    "data_segs_out": ("data_segs_out", int),
    "data_segs_in": ("data_segs_in", int),
    "delivered": ("delivered_segments", int),
    "delivered_ce": ("delivered_ce_segments", int),
    "lastsnd": ("lastsnd_ms", int),
    "lastrcv": ("lastrcv_ms", int),
    "lastack": ("lastack_ms", int),
    "unacked": ("unacked_segments", int),
    "lost": ("lost_segments", int),
    "sacked": ("sacked_segments", int),
    "dsack_dups": ("dsack_dups", int),
    "reordering": ("reordering", int),
    "rcv_rtt": ("rcv_rtt_ms", float),
    "rcv_space": ("rcv_space_bytes", int),
    "rcv_ssthresh": ("rcv_ssthresh_bytes", int),
    "notsent": ("notsent_bytes", int),
    "minrtt": ("minrtt_ms", float),
    "snd_wnd": ("snd_wnd_bytes", int),
}


def _begins_row(line: str) -> bool:
    tokens = line.split(None, 3)
    queues = tokens[:2] if tokens[:1] and tokens[0].isdigit() else tokens[1:3]
    return len(tokens) > 2 and (tokens[0] in _NETIDS or all(map(str.isdigit, queues)))


def _tokens(line: str) -> list[str]:
    return _QUOTED_TOKEN.findall(line) if '"' in line else line.split()


def _socket(tokens: list[str], source: str, number: int) -> SsSocket:
    try:
        netid = tokens.pop(0) if tokens[0] in _NETIDS else None
        state = None if tokens[0].isdigit() else tokens.pop(0)
        if state is not None and not _STATE.fullmatch(state):
            raise _unreadable(source, number, " ".join([state, *tokens]))
        recv_q, send_q, local, peer = tokens[:4]
        values: dict[str, Any] = {"other": {}}
        _read_details(iter(tokens[4:]), values)
        local_address, local_interface, local_port = _address(local)
        peer_address, peer_interface, peer_port = _address(peer)
        return SsSocket(
            netid=netid,
            state=state,
            recv_q_bytes=int(recv_q),
            send_q_bytes=int(send_q),
            local_address=local_address,
            local_interface=local_interface,
            local_port=local_port,
            peer_address=peer_address,
            peer_interface=peer_interface,
            peer_port=peer_port,
            **values,
        )
    except _BadToken as bad:
        raise ParseError(source, f"line {number}", str(bad)) from None
    except ParseError:
        raise
    except (ValueError, IndexError):
        raise _unreadable(source, number, " ".join(tokens)) from None


class _BadToken(Exception):
    """A word that is not what it should be; the text says both."""

    def __init__(self, token: str, expected: str) -> None:
        super().__init__(f"found {excerpt(token)}; expected {expected}")


def _address(text: str) -> tuple[str, str | None, int | None]:
    """Address, interface and port of 10.0.0.1:80, [fe80::1]%eth0:22, *%eth0:68, *:* or ::1:80."""
    address, colon, port = text.rpartition(":")
    if not colon or not address:
        raise _BadToken(text, "ADDRESS:PORT")
    address, _, interface = address.partition("%")
    if port != "*" and not port.isdecimal():
        raise _BadToken(text, "a port number (run ss with -n)")
    return (
        address.removeprefix("[").removesuffix("]"),
        interface or None,
        None if port == "*" else int(port),
    )


def _read_details(tokens: Iterator[str], values: dict[str, Any]) -> None:
    """Read what follows the addresses. Every word is looked at once."""
    flags: list[str] = []
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
                if token in _RATES:
                    _RATES[token](next(tokens), values)
                elif token == "app_limited":
                    values["app_limited"] = True
                elif token in _FLAGS:
                    flags.append(token)
                elif token in _SHUTDOWN:
                    other["shutdown"] = token
                elif "congestion_control" not in values:
                    # The one word without a name: it stands after the flags, before the numbers.
                    values["congestion_control"] = token
                else:
                    other[token] = ""
            elif key == "dctcp" or (key == values.get("congestion_control") and text[:1] == "("):
                # A dctcp that fell back calls itself dctcp-reno, and its group dctcp.
                values["algorithm"] = _group(text)
            else:
                other[key] = text
        except (ValueError, StopIteration):
            raise _BadToken(token, "a number as ss prints it") from None
    values["flags"] = tuple(flags)
    if "rto_ms" in values:
        # There is a struct tcp_info, so that what ss doesn't mention is off.
        values["timestamps"] = "ts" in flags
        values.setdefault("app_limited", False)


# How ss -e shows which directions of a socket are open.
_SHUTDOWN = frozenset({"<->", "-->", "<--", "---"})


def _rate_bps(text: str) -> float:
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError(text)
    return float(match[1]) * _SCALE[match[2]]


def _group(text: str) -> dict[str, str]:
    """A group such as (bw:1bps,mrtt:3), or a single word such as fallback_mode."""
    pairs = (item.partition(":") for item in text.strip("()").split(","))
    return {key: value for key, _, value in pairs}


def _read_rtt(text: str, values: dict[str, Any]) -> None:
    rtt, _, rttvar = text.partition("/")
    values["rtt_ms"], values["rttvar_ms"] = float(rtt), float(rttvar)


def _read_retrans(text: str, values: dict[str, Any]) -> None:
    now, _, total = text.partition("/")
    values["retrans_now"], values["retrans_total"] = int(now), int(total)


def _read_wscale(text: str, values: dict[str, Any]) -> None:
    received, _, sent = text.partition(",")
    values["wscale"] = (int(received), int(sent))


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


def _read_pacing_rate(text: str, values: dict[str, Any]) -> None:
    rate, slash, limit = text.partition("/")
    values["pacing_rate_bps"] = _rate_bps(rate)
    if slash:
        values["max_pacing_rate_bps"] = _rate_bps(limit)


def _rate_into(name: str) -> Callable[[str, dict[str, Any]], None]:
    def read(text: str, values: dict[str, Any]) -> None:
        values[name] = _rate_bps(text)

    return read


def _milliseconds_into(name: str) -> Callable[[str, dict[str, Any]], None]:
    def read(text: str, values: dict[str, Any]) -> None:
        # A share of the busy time may follow: 60ms(3.1%).
        number, unit, _ = text.partition("ms")
        if not unit:
            raise ValueError(text)
        values[name] = int(number)

    return read


_SPECIAL: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "rtt": _read_rtt,
    "retrans": _read_retrans,
    "wscale": _read_wscale,
    "timer": _read_timer,
    "users": _read_users,
    "skmem": _read_skmem,
    "busy": _milliseconds_into("busy_ms"),
    "rwnd_limited": _milliseconds_into("rwnd_limited_ms"),
    "sndbuf_limited": _milliseconds_into("sndbuf_limited_ms"),
}
# Names that a blank, not a colon, parts from their value.
_RATES: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "send": _rate_into("send_rate_bps"),
    "pacing_rate": _read_pacing_rate,
    "delivery_rate": _rate_into("delivery_rate_bps"),
}


def _unreadable(source: str, number: int, line: str) -> ParseError:
    return ParseError(
        source,
        f"line {number}",
        f"found {excerpt(line)}; expected a TCP or UDP socket: state, queues, two addresses",
    )
