"""Round-trip times as ping prints them: iputils' (see ping(8)), that of macOS and the BSDs, busybox's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from measuretwice.parse._reading import ParseError, clean, cut_off, excerpt, foreign
from measuretwice.parse.fields import meanings_of, printed, table

_EXPECTED = "the output of ping"
# Of IPv6 iputils has a name's address in brackets of its own: NAME(NAME (ADDRESS)) 56 data bytes.
_HEADER = re.compile(
    r"PING (?P<target>\S.*?) ?\((?:[^()]* \((?P<named>[^()]*)\)|(?P<address>[^()]*))\)"
    r"(?: from .+:)? (?P<payload>\d+)(?:\(\d+\))? (?:data bytes|bytes of data\.)"
)
# ping6 of macOS and FreeBSD, of KAME's stack: headers of 40 and 8 bytes, then the payload.
_HEADER6 = re.compile(
    r"PING6\(\d+=40\+8\+(?P<payload>\d+) bytes\) \S+ --> (?P<target>(?P<address>\S+))"
)
_REPLY = re.compile(
    r"(?:\[(?P<timestamp>\d+\.\d+)\] )?(?P<bytes>\d+) bytes from .+?[:,] (?:icmp_)?seq=(?P<seq>\d+)"
    r"(?: (?:ttl|hlim)=(?P<ttl>\d+))?(?: time[=<](?P<rtt>\d+(?:\.\d+)?) ms)?"
    r"(?P<remarks>(?: ?\([^)]*\))*)\s*"
)
_COUNTS = re.compile(
    r"(?P<transmitted>\d+) packets transmitted, (?P<received>\d+) (?P<bsd>packets )?received"
    r"(?:, \+?(?P<duplicates>\d+) duplicates)?(?:, \+(?P<corrupted>\d+) corrupted)?"
    r"(?:, \+(?P<errors>\d+) errors)?"
    r"(?:, (?P<lost>-?[\d.e+]+)% packet loss(?:, time (?P<time>\d+)ms)?)?"
)
_RTT = re.compile(
    r"(?:rtt|round-trip) min/avg/max(?:/(?:mdev|std-?dev))? = (?P<min>\d+\.\d+)/(?P<avg>\d+\.\d+)"
    r"/(?P<max>\d+\.\d+)(?:/(?P<mdev>\d+\.\d+))? ms(?:, .*)?"
)
# What macOS and the BSDs print of a router's word that it can't get there.
_ERROR = re.compile(r"\d+ bytes from [^:]+: (?!icmp_seq|seq)[A-Z][\w ]+\s*")
# ping measures time only if its 16-byte timestamp fits into the payload (ping(8), option -s).
_TIMESTAMP_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class PingReply:
    """One echo reply. `timestamp_s` (Unix time, option -D) and `rtt_ms` (payload of less than
    16 bytes) may be None."""

    seq: int = printed("icmp_seq", "", "which packet this is the answer to, counted from 1")
    ttl: int | None = printed(
        "ttl", "routers", "that the answer may still pass; Linux begins at 64"
    )
    rtt_ms: float | None = printed("time of one", "ms", "round-trip time of this packet")
    timestamp_s: float | None
    duplicate: bool


@dataclass(frozen=True, kw_only=True)
class PingRun:
    """A finished ping.

    `duplicates` and `errors` are 0 where ping doesn't mention them, which is how it says none.
    `loss_ratio` is recomputed from the two counts, since ping rounds its percentage; it is None if
    nothing was sent. The rtt fields (over all replies, duplicates too) are None if no reply
    carried a time; only iputils prints `time_ms`, and busybox no `rtt_mdev_ms` (of macOS and the BSDs
    that is the standard deviation). `replies` is empty with option -q.
    """

    target: str = printed("target", "", "whom it asked")
    address: str
    payload_bytes: int = printed(
        "payload", "bytes", "data in a packet; 28 less than its IPv4 packet"
    )
    transmitted: int = printed("transmitted", "packets", "asked")
    received: int = printed("received", "packets", "answers")
    loss_ratio: float | None = printed("loss", "0 to 1", "share without an answer")
    duplicates: int = printed("duplicates", "packets", "answers that came twice")
    errors: int = printed("errors", "packets", "answers that said no")
    time_ms: int | None = printed("time", "ms", "from the first to the last")
    rtt_min_ms: float | None = printed("min", "ms", "smallest round-trip time")
    rtt_avg_ms: float | None = printed("avg", "ms", "mean round-trip time")
    rtt_max_ms: float | None = printed("max", "ms", "largest round-trip time")
    rtt_mdev_ms: float | None = printed("mdev", "ms", "standard deviation, as ping reckons it")
    replies: tuple[PingReply, ...]


_SOURCE = "ping(8)"
PING = (
    meanings_of(PingRun, _SOURCE)
    | meanings_of(PingReply, _SOURCE)
    | table(_SOURCE, {"pipe": ("packets", "most that were in flight at once")})
)


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
        if line.startswith(("PING ", "PING6(")):
            if header:
                raise ParseError(
                    source, f"line {number}", "a second ping begins here; expected one run a file"
                )
            header = (_HEADER6 if line[4] == "6" else _HEADER).fullmatch(
                _without_colon(line.rstrip())
            )
            if not header:
                raise _unreadable(source, number, line, "PING TARGET (ADDRESS) SIZE")
        elif " bytes from " in line and not _ERROR.fullmatch(line):
            replies.append(_reply(source, number, line))
        elif " packets transmitted, " in line:
            counts = _COUNTS.fullmatch(line.rstrip())
            if not counts:
                raise _unreadable(source, number, line, "the counts of packets")
        elif line.startswith(("rtt ", "round-trip ")):
            rtt = _RTT.fullmatch(line.rstrip())
            if not rtt:
                raise _unreadable(source, number, line, "min/avg/max/mdev and the unit ms")
    if not header:
        raise foreign(text, source, _EXPECTED)
    if not counts:
        raise cut_off(source, len(lines), "ping's statistics (was it killed?)")
    transmitted, received = int(counts["transmitted"]), int(counts["received"])
    if transmitted and (counts["lost" if counts["bsd"] else "time"]) is None:
        raise cut_off(source, len(lines), "the loss and the time after the counts of packets")
    timed = any(reply.rtt_ms is not None for reply in replies)
    if received and not rtt and (timed or int(header["payload"]) >= _TIMESTAMP_BYTES):
        raise cut_off(source, len(lines), "the line with the least, mean and largest rtt")
    return PingRun(
        target=header["target"],
        address=header.groupdict().get("named") or header["address"],
        payload_bytes=int(header["payload"]),
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


def _without_colon(header: str) -> str:
    """busybox prints "PING 10.0.0.1 (10.0.0.1): 56 data bytes", as macOS and the BSDs do."""
    return header.replace("): ", ") ", 1)


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
    return None if rtt is None or rtt[name] is None else float(rtt[name])


def _unreadable(source: str, number: int, line: str, expected: str) -> ParseError:
    return ParseError(source, f"line {number}", f"found {excerpt(line)}; expected {expected}")
