"""Packets as tcpdump prints them: TCP's own fields (`tcpdump -n -tt`), and frames' sizes (`-e`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from measuretwice.parse._reading import clean, foreign
from measuretwice.parse.fields import table

_EXPECTED_FRAMES = "the text output of tcpdump (`tcpdump -e`)"
_EXPECTED = "the text output of tcpdump (`tcpdump -n -tt`)"
# 1700000006.884614 IP 10.4.1.2.58422 > 10.4.3.2.5201: Flags [P.], seq 1:38, ack 1, win 502, ...
_PACKET = re.compile(
    r"(?P<time>\d+\.\d+) .*?\b(?P<from>\d+\.\d+\.\d+\.\d+)\.(?P<from_port>\d+) > "
    r"(?P<to>\d+\.\d+\.\d+\.\d+)\.(?P<to_port>\d+): Flags \[(?P<flags>[^\]]*)\]"
    r"(?:, seq (?P<first>\d+)(?::(?P<last>\d+))?)?(?:, ack (?P<ack>\d+))?.*?, length (?P<length>\d+)"
)
# ... > 52:54:00:00:02:01, ethertype IPv4 (0x0800), length 1514: 10.4.1.2.58422 > 10.4.3.2.5201: ...
_FRAME = re.compile(r"\blength (\d{1,9}): \d+\.\d+\.\d+\.\d+\.\d+ > ")
# What a line has, by names of its parts.
TCPDUMP = table(
    "tcpdump(1), with -e and -q",
    {
        "ethernet": ("", "Ethernet addresses: from, to"),
        "length": ("bytes", "the whole frame, with Ethernet's header of 14"),
        "from": ("", "sender's address, and behind the last point its port"),
        "to": ("", "receiver's address, and its port"),
        "tcp": ("bytes", "data in the packet, without headers"),
    },
)


@dataclass(frozen=True)
class TcpPacket:
    """One packet. Sequence numbers are as printed: relative to the connection's start, but for the
    SYNs' own. `seq_first` to `seq_last` (exclusive) are its data, None where it has none."""

    time_s: float
    from_address: str
    from_port: int
    to_address: str
    to_port: int
    flags: str
    seq_first: int | None
    seq_last: int | None
    ack: int | None
    data_bytes: int


def parse_tcpdump(text: str, source: str) -> tuple[TcpPacket, ...]:
    """Read the TCP packets over IPv4 that tcpdump printed, in its order; other lines are left out.

    Raises ParseError for another tool's text. A last line that is cut off is left out too: a
    capture ends when it is told to.
    """
    text = clean(text, source, _EXPECTED)
    packets = [_packet(match) for line in text.splitlines() if (match := _PACKET.match(line))]
    if not packets:
        raise foreign(text, source, _EXPECTED)
    return tuple(packets)


def _packet(match: re.Match[str]) -> TcpPacket:
    length = int(match["length"])
    first = int(match["first"]) if match["first"] and length else None
    return TcpPacket(
        time_s=float(match["time"]),
        from_address=match["from"],
        from_port=int(match["from_port"]),
        to_address=match["to"],
        to_port=int(match["to_port"]),
        flags=match["flags"],
        seq_first=first,
        seq_last=None if first is None else first + length,
        ack=int(match["ack"]) if match["ack"] else None,
        data_bytes=length,
    )


@dataclass(frozen=True)
class Frames:
    """The sizes of the frames with IPv4 in them, in bytes, Ethernet's header included."""

    bytes: tuple[int, ...]


def parse_frames(text: str, source: str) -> Frames:
    """Read what `tcpdump -e` printed of each frame; other lines are left out, so there may be none.

    Raises ParseError for a text that says something, and nothing of any frame.
    """
    lengths = tuple(int(length) for length in _FRAME.findall(text))
    if not lengths and text.strip() and "ethertype" not in text:
        raise foreign(text, source, _EXPECTED_FRAMES)
    return Frames(lengths)
