"""Round-trip times as iputils' ping prints them (see ping(8))."""

from __future__ import annotations

import re
from dataclasses import dataclass

from measuretwice.parse._text import clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError

_EXPECTED = "the output of ping (iputils)"
_HEADER = re.compile(
    r"PING (?P<target>\S.*?) ?\((?P<address>[^()]*)\)(?: from .+:)? "
    r"(?P<payload>\d+)(?:\(\d+\))? (?:data bytes|bytes of data\.)"
)
_REPLY = re.compile(
    r"(?:\[(?P<timestamp>\d+\.\d+)\] )?(?P<bytes>\d+) bytes from .+?: icmp_seq=(?P<seq>\d+)"
    r"(?: ttl=(?P<ttl>\d+))?(?: time[=<](?P<rtt>\d+(?:\.\d+)?) ms)?(?P<remarks>(?: \([^)]*\))*)\s*"
)
_COUNTS = re.compile(
    r"(?P<transmitted>\d+) packets transmitted, (?P<received>\d+) received"
    r"(?:, \+(?P<duplicates>\d+) duplicates)?(?:, \+(?P<corrupted>\d+) corrupted)?"
    r"(?:, \+(?P<errors>\d+) errors)?(?:, -?[\d.e+]+% packet loss, time (?P<time>\d+)ms)?"
)
_RTT = re.compile(
    r"rtt min/avg/max/mdev = (?P<min>\d+\.\d+)/(?P<avg>\d+\.\d+)"
    r"/(?P<max>\d+\.\d+)/(?P<mdev>\d+\.\d+) ms(?:, .*)?"
)
# ping measures time only if its 16-byte timestamp fits into the payload (ping(8), option -s).
_TIMESTAMP_BYTES = 16


@dataclass(frozen=True)
class PingReply:
    """One echo reply. `timestamp_s` (Unix time, option -D) and `rtt_ms` (payload of less than
    16 bytes) may be None."""

    seq: int
    ttl: int | None
    rtt_ms: float | None
    timestamp_s: float | None
    duplicate: bool


@dataclass(frozen=True)
class PingRun:
    """A finished ping.

    `duplicates` and `errors` are 0 where ping doesn't mention them, which is how it says none.
    `loss_ratio` is recomputed from the two counts, since ping rounds its percentage; it is None if
    nothing was sent. The rtt fields (over all replies, duplicates too) are None if no reply
    carried a time. `replies` is empty with option -q.
    """

    target: str
    address: str
    payload_bytes: int
    transmitted: int
    received: int
    loss_ratio: float | None
    duplicates: int
    errors: int
    time_ms: int | None
    rtt_min_ms: float | None
    rtt_avg_ms: float | None
    rtt_max_ms: float | None
    rtt_mdev_ms: float | None
    replies: tuple[PingReply, ...]


def parse_ping(text: str, source: str) -> PingRun:
    """Read the output of one ping, IPv4 or IPv6, up to its statistics.

    Raises ParseError for another tool's text, for two runs in one file, and for a ping that was
    killed before it printed its statistics.
    """
    text = clean(text, source, _EXPECTED)
    header: re.Match[str] | None = None
    counts: re.Match[str] | None = None
    rtt: re.Match[str] | None = None
    replies: list[PingReply] = []
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        if line.startswith("PING "):
            if header:
                raise ParseError(
                    source, f"line {number}", "a second ping begins here; expected one run a file"
                )
            header = _HEADER.fullmatch(line.rstrip())
            if not header:
                raise _unreadable(source, number, line, "PING TARGET (ADDRESS) SIZE")
        elif " bytes from " in line:
            replies.append(_reply(source, number, line))
        elif " packets transmitted, " in line:
            counts = _COUNTS.fullmatch(line.rstrip())
            if not counts:
                raise _unreadable(source, number, line, "the counts of packets")
        elif line.startswith("rtt "):
            rtt = _RTT.fullmatch(line.rstrip())
            if not rtt:
                raise _unreadable(source, number, line, "min/avg/max/mdev and the unit ms")
    if not header:
        raise foreign(text, source, _EXPECTED)
    if not counts:
        raise cut_off(source, len(lines), "ping's statistics (was it killed?)")
    transmitted, received = int(counts["transmitted"]), int(counts["received"])
    payload_bytes = int(header["payload"])
    if transmitted and counts["time"] is None:
        raise cut_off(source, len(lines), "the loss and the time after the counts of packets")
    if received and payload_bytes >= _TIMESTAMP_BYTES and not rtt:
        raise cut_off(source, len(lines), "the line that begins with 'rtt'")
    return PingRun(
        target=header["target"],
        address=header["address"],
        payload_bytes=payload_bytes,
        transmitted=transmitted,
        received=received,
        loss_ratio=1 - received / transmitted if transmitted else None,
        duplicates=int(counts["duplicates"] or 0),
        errors=int(counts["errors"] or 0),
        time_ms=None if counts["time"] is None else int(counts["time"]),
        rtt_min_ms=_ms(rtt, "min"),
        rtt_avg_ms=_ms(rtt, "avg"),
        rtt_max_ms=_ms(rtt, "max"),
        rtt_mdev_ms=_ms(rtt, "mdev"),
        replies=tuple(replies),
    )


def _reply(source: str, number: int, line: str) -> PingReply:
    match = _REPLY.fullmatch(line)
    if not match:
        raise _unreadable(source, number, line, "SIZE bytes from ADDRESS: icmp_seq=N ttl=N time=N")
    return PingReply(
        seq=int(match["seq"]),
        ttl=None if match["ttl"] is None else int(match["ttl"]),
        rtt_ms=None if match["rtt"] is None else float(match["rtt"]),
        timestamp_s=None if match["timestamp"] is None else float(match["timestamp"]),
        duplicate="(DUP!)" in match["remarks"],
    )


def _ms(rtt: re.Match[str] | None, name: str) -> float | None:
    return None if rtt is None else float(rtt[name])


def _unreadable(source: str, number: int, line: str, expected: str) -> ParseError:
    return ParseError(source, f"line {number}", f"found {excerpt(line)}; expected {expected}")
