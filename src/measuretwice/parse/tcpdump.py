"""Packets as tcpdump prints them: TCP's own fields (`tcpdump -n -tt`), and packets' sizes (best with `-e`)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from measuretwice.parse._reading import clean, foreign
from measuretwice.parse.fields import table

_EXPECTED_FRAMES = "the text output of tcpdump (`tcpdump -n -e`)"
_EXPECTED = "the text output of tcpdump (`tcpdump -n -tt`)"
# 1700000006.884614 IP 10.4.1.2.58422 > 10.4.3.2.5201: Flags [P.], seq 1:38, ack 1, win 502, ...
_PACKET = re.compile(
    r"(?P<time>\d+\.\d+) .*?\b(?P<from>\d+\.\d+\.\d+\.\d+)\.(?P<from_port>\d+) > "
    r"(?P<to>\d+\.\d+\.\d+\.\d+)\.(?P<to_port>\d+): Flags \[(?P<flags>[^\]]*)\]"
    r"(?:, seq (?P<first>\d+)(?::(?P<last>\d+))?)?(?:, ack (?P<ack>\d+))?.*?, length (?P<length>\d+)"
)
# Whose packet it is: ADDRESS.PORT > ADDRESS.PORT: (numbers, or names without -n), and what TCP or UDP says of it.
_ENDS = re.compile(
    r"(?<!\S)(?!\d+\.\d+\.\d+\.\d+ > )(?P<from>[^\s,]+)\.[\w-]+ > [^\s,]+\.[\w-]+: +"
    r"(?:Flags \[[^\]]*\](?P<tcp>.*?), length (?P<tcp_data>\d+)|tcp (?P<quick_data>\d+)|UDP, length (?P<udp_data>\d+)"
    r"|(?!ICMP)\S)"
)
_FRAME = re.compile(r"\blength (?P<frame>\d{1,9}): ")
_LONGEST = 2000
_TCP_LINE = re.compile(
    r"(?<!\S)(?P<from>[^\s,]+\.[\w-]+) > (?P<to>[^\s,]+\.[\w-]+): Flags \[(?P<flags>[^\]]*)\]"
    r"(?:, cksum [^,]*)?(?:, seq (?P<first>\d+)(?::\d+)?)?(?:, ack \d+)?(?:, win (?P<win>\d+))?"
    r"(?:.*?options \[(?P<options>[^\]]*)\])?.*?, length (?P<length>\d+)"
)
_CLOCK = re.compile(r"(?:\S+ )?(?:(?P<h>\d\d):(?P<min>\d\d):)?(?P<s>\d+\.\d+) ")
_IS_TCPDUMP = re.compile(
    r"\bethertype \w.*, length \d+: |, length \d+: \S+ > |\bIP6? \S+ > \S+: | > \S+: +(?:Flags \[|tcp \d|UDP, )"
)
# What most captures have alone, quickly: Ethernet, then IPv4 and TCP.
_PLAIN = re.compile(
    r"[\d:. -]*[0-9a-f:]{17} > [0-9a-f:]{17}, (?:ethertype )?IPv4(?: \(0x0800\))?, length (\d{1,9}): "
    r"\d+\.\d+\.\d+\.\d+\.\d+ > [\d.]+: (?:tcp|Flags) "
)
# -v puts the IP header before TCP's, and TCP's on a line of its own.
_NEXT_LINE = re.compile(r"\n[ \t]+(?=\S+ > )")
# Headers between the frame's length and the packet's: tags of VLANs, labels of MPLS, PPPoE's.
_TAGS = (
    (re.compile(r"\bvlan \d+"), 4),
    (re.compile(r"\blabel \d+"), 4),
    (re.compile(r"PPPoE +\["), 8),
)
# A packet in a packet: what its frame holds isn't the flow's own.
_TUNNEL = re.compile(r"\bGREv\d|\bVXLAN\b|\bGeneve\b|\bGTP|\bIP6? \S+ > \S+: IP6? |: IP6? \S+ > ")
# tcpdump -i any has a cooked header: of version 2 with the interface's number, of version 1 with one address alone;
# a loopback device of the BSDs has a family of addresses.
_COOKED_2, _COOKED_1, _FAMILY = (
    re.compile(r"\bifindex \d+ "),
    re.compile(r"(?:^|\s)(?:In|Out|B|M|P)\s+(?:[0-9a-f]{2}:){5}[0-9a-f]{2} "),
    re.compile(r"\bAF IPv"),
)
# Of several devices, which may each have the same packet: as -i any prints them without -e, and ptcpdump.
_DEVICES = re.compile(r" (?:In|Out|B|M|P) +IP6? ")
_COOKED_2_BYTES, _COOKED_1_BYTES, _FAMILY_BYTES, _ETHERNET_BYTES = 20, 16, 4, 14
_IPV4_BYTES, _IPV6_BYTES, _TCP_BYTES, _UDP_BYTES = 20, 40, 20, 8
# How long TCP's options are, by the words that tcpdump has for them (RFC 9293, 7323, 2018).
_OPTIONS = {"nop": 1, "eol": 1, "mss": 4, "wscale": 3, "sackOK": 2, "TS": 10, "sack": 2}
_SACK_BLOCK = re.compile(r"\{\d+:\d+\}")
# The ports of iperf 2, iperf3 and netperf, and their names in /etc/services.
_TEST_PORTS = frozenset(
    {*map(str, (*range(5001, 5011), *range(5201, 5300), 12865)), "commplex-link", "commplex-main", "targus-getdata",
     *(f"targus-getdata{number}" for number in (1, 2, 3))}
)  # fmt: skip
# A page and its pictures may be larger than this; a test is never smaller.
_BULK_BYTES = 100_000
# Of a test's port less is a handshake and what iperf3 agrees on.
_FEW_BYTES = 3000
_MOST_PORTS = 4
_SERVICE = re.compile(
    r"\.(?:53|domain|5353|mdns|67|68|bootp[sc]|123|ntp|13[789]|netbios-\w+|16[12]|snmp|1900|ssdp|5355|hostmon)(?: > |:)"
)
_ASKED_IN_VAIN, _GROWN = 4, 1.5
# What a line has, by names of its parts.
TCPDUMP = table(
    "tcpdump(1), with -e and -q",
    {
        "ethernet": ("", "Ethernet addresses: from, to"),
        "length": ("bytes", "the whole frame, with Ethernet's header of 14 bytes"),
        "from": ("", "sender's address, and after the last dot its port"),
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
class Direction:
    """What a capture shows of one end of a connection: `who` sent to `whom` (address and port, as printed).

    `asked` counts its packets with SYN alone, at the times `asked_s`, and `asked_as` are their numbers; `agreed` counts those with SYN and an acknowledgement,
    `resets` those with RST. Of a packet with SYN `mss_bytes` is the option, and `scales` says whether it
    has that of window scaling; both are None where no options are printed with such a packet, `mss_bytes` also without the option. `segments` had
    data, of which `again` began at a number that had been sent before; `closed` counts windows of 0.
    """

    who: str
    whom: str
    packets: int = 0
    data_bytes: int = 0
    asked: int = 0
    asked_s: tuple[float, ...] = ()
    asked_as: frozenset[str] = frozenset()
    agreed: int = 0
    resets: int = 0
    mss_bytes: int | None = None
    scales: bool | None = None
    has_timestamps: bool = False
    segments: int = 0
    again: int = 0
    closed: int = 0

    @property
    def asks_in_vain(self) -> bool:
        """Return whether it sent one and the same SYN four times or more, after pauses that grow: so TCP does without an answer."""
        pauses = [later - earlier for earlier, later in pairwise(self.asked_s)]
        again = len(self.asked_as) == 1 and self.packets == self.asked >= _ASKED_IN_VAIN
        return again and len(pauses) == self.asked - 1 and pauses[-1] > _GROWN * pauses[0] > 0


@dataclass(frozen=True)
class Frames:
    """The sizes of the IP packets of TCP and UDP, in bytes, without what the link puts before them; and how many packets
    the kernel had no room for, which are missing. `has_flows` says whether a line names a packet of TCP or UDP. `directions` are the
    ends of the connections, in the order in which they come; where they are `doubled`, each packet may be there more than
    once, as at several devices or in a tunnel and out of it. `of_services` says whether all are of small services of UDP, as DNS."""

    packet_bytes: tuple[int, ...]
    kernel_drops: int = 0
    has_flows: bool = True
    directions: tuple[Direction, ...] = field(default=(), compare=False)
    doubled: bool = field(default=False, compare=False)
    of_services: bool = field(default=False, compare=False)

    def may_be_of_a_test(self, ports: Iterable[str]) -> bool:
        """Return whether a bulk test may be in it: by a port of iperf's or netperf's, or one of these, or by how much data one end sent."""
        if not self.directions:
            # Of headers alone, or without TCP's own words (-q).
            return self.has_flows and not self.of_services
        return any(
            way.data_bytes >= _BULK_BYTES
            or (
                way.data_bytes >= _FEW_BYTES
                and {_port(way.who), _port(way.whom)} & {*_TEST_PORTS, *ports}
            )
            for way in self.directions
        )

    @property
    def holds(self) -> str:
        """Return what is in it, where that is no bulk test's, in words."""
        if not self.directions:
            if self.has_flows:
                return "packets of DNS and other services of UDP, and none of TCP"
            return "no packet of TCP or UDP: the test's connection is missing from this capture"
        ends = {(way.who, way.whom) for way in self.directions}
        served = sorted(
            {_served(way) for way in self.directions}, key=lambda port: (len(port), port)
        )
        connections = len({frozenset(pair) for pair in ends})
        most = max(way.data_bytes for way in self.directions)
        packets = sum(way.packets for way in self.directions)
        one_way = not any((whom, who) in ends for who, whom in ends)
        places = f"port{'s' * (len(served) > 1)} {', '.join(served[:_MOST_PORTS])}{', ...' * (len(served) > _MOST_PORTS)}"
        return (
            f"{packets} packet{'s' * (packets > 1)} of {connections} connection{'s' * (connections > 1)} ({places})"
            f"{', of one direction alone' if one_way else ''}, "
            + (f"at most {most} B of data in either direction" if most else "without data")
            + ": no bulk transfer"
        )


def is_tcpdump(text: str) -> bool:
    """Return whether tcpdump printed this: frames of any kind, or packets of TCP or UDP."""
    return _IS_TCPDUMP.search(text) is not None


def parse_frames(text: str, source: str) -> Frames:
    """Read what tcpdump printed of each packet; other lines are left out, so there may be none.

    With -e a packet is its frame less the link's header; without, or in a tunnel, it is its data with TCP's and IP's
    headers. Raises ParseError for a text that says something, and nothing of any frame.
    """
    lines = _NEXT_LINE.sub(" ", text).splitlines()
    sizes = tuple(size for line in lines if (size := _packet_bytes(line)) is not None)
    if not sizes and text.strip() and not is_tcpdump(text):
        raise foreign(text, source, _EXPECTED_FRAMES)
    dropped = re.search(r"^(\d+) packets? dropped by kernel", text, re.M)
    named = [line for line in lines if _ENDS.search(line, 0, _LONGEST)]
    services = bool(named) and all(_SERVICE.search(line, 0, _LONGEST) for line in named)
    flows, drops = bool(sizes) or bool(named), int(dropped[1]) if dropped else 0
    return Frames(sizes, drops, flows, *_directions(lines), of_services=services)


def _port(end: str) -> str:
    return end.rpartition(".")[2]


def _served(way: Direction) -> str:
    """The port of the end that was asked, as far as it can be told: else the one that is a name, or the smaller number."""
    own, far = _port(way.who), _port(way.whom)
    if way.asked or way.agreed:
        return far if way.asked else own
    return min((own, far), key=lambda port: int(port) if port.isdecimal() else 0)


def _clock_s(line: str) -> tuple[float, ...]:
    """The time before a packet (s), of whatever clock; nothing where there is none."""
    clock = _CLOCK.match(line)
    if not clock:
        return ()
    return (3600 * int(clock["h"] or 0) + 60 * int(clock["min"] or 0) + float(clock["s"]),)


def _directions(lines: Sequence[str]) -> tuple[tuple[Direction, ...], bool]:
    """Return what the lines say of TCP's connections, and whether each packet may be there more than once."""
    doubled = False
    seen: dict[tuple[str, str], Direction] = {}
    begins: dict[tuple[str, str], set[int]] = defaultdict(set)
    for line in lines:
        packet = _TCP_LINE.search(line, 0, _LONGEST)
        if packet is None:
            continue
        doubled = doubled or any(
            form.search(line) for form in (_TUNNEL, _COOKED_1, _COOKED_2, _DEVICES)
        )
        ends = packet["from"], packet["to"]
        old = seen.get(ends) or Direction(*ends)
        flags, options = packet["flags"], packet["options"] or ""
        first = int(packet["first"]) if packet["first"] and int(packet["length"]) > 1 else None
        syn, asks = "S" in flags, "S" in flags and "." not in flags
        mss = re.search(r"\bmss (\d+)", options)
        seen[ends] = replace(
            old,
            packets=old.packets + 1,
            data_bytes=old.data_bytes + int(packet["length"]),
            asked=old.asked + asks,
            asked_s=old.asked_s + (_clock_s(line) if asks else ()),
            asked_as=old.asked_as | ({packet["first"]} if asks and packet["first"] else set()),
            agreed=old.agreed + (syn and not asks),
            resets=old.resets + ("R" in flags),
            mss_bytes=int(mss[1]) if syn and mss else old.mss_bytes,
            scales="wscale" in options if syn and options else old.scales,
            has_timestamps=old.has_timestamps or "TS val" in options,
            segments=old.segments + (first is not None),
            again=old.again + (first in begins[ends]),
            closed=old.closed + (packet["win"] == "0" and not {"S", "R", "F"} & {*flags}),
        )
        if first is not None:
            begins[ends].add(first)
    return tuple(seen.values()), doubled


def _packet_bytes(line: str) -> int | None:
    """The size of the IP packet of a line; None where it isn't one of TCP or UDP."""
    if plain := _PLAIN.match(line):
        return int(plain[1]) - _ETHERNET_BYTES
    ends = [*_ENDS.finditer(line, 0, _LONGEST)]
    if not ends:
        return None
    frame = _FRAME.search(line, 0, ends[-1].start())
    if frame and not _TUNNEL.search(line):
        before = line[: ends[-1].start()]
        tags = sum(size * len(pattern.findall(before)) for pattern, size in _TAGS)
        return int(frame["frame"]) - _link_bytes(line[: frame.start()]) - tags
    return _by_its_data(ends[-1])


def _link_bytes(link: str) -> int:
    """The size of the header before IP's, by what -e prints of it."""
    if _COOKED_2.search(link):
        return _COOKED_2_BYTES
    if _COOKED_1.search(link):
        return _COOKED_1_BYTES
    return _FAMILY_BYTES if _FAMILY.search(link) else _ETHERNET_BYTES


def _by_its_data(ends: re.Match[str]) -> int | None:
    """The size of a packet by its data and headers. With -q TCP's options aren't known: at least so large."""
    ip_bytes = _IPV6_BYTES if ":" in ends["from"] else _IPV4_BYTES
    if ends["udp_data"]:
        return ip_bytes + _UDP_BYTES + int(ends["udp_data"])
    data = ends["tcp_data"] or ends["quick_data"]
    return None if data is None else ip_bytes + _TCP_BYTES + _options_bytes(ends["tcp"] or "") + int(data)  # fmt: skip


def _options_bytes(tcp: str) -> int:
    """The size of TCP's options, filled up to whole words."""
    options = re.search(r"\boptions \[([^\]]*)\]", tcp)
    if not options:
        return 0
    words = [part.split()[0] for part in options[1].split(",") if part.split()]
    size = sum(_OPTIONS.get(word, 0) for word in words) + 8 * len(_SACK_BLOCK.findall(options[1]))
    return -4 * (-size // 4)
