"""What a host says of itself: nstat's counters, ip's interfaces, sysctls, ethtool's features, softnet_stat.

Each tool's table of meanings stands first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from measuretwice.parse._reading import (
    JsonObject,
    ParseError,
    clean,
    cut_off,
    excerpt,
    foreign,
    load,
)
from measuretwice.parse.fields import table

_EXPECTED = "the output of `nstat -az` or `nstat -az -j`"
_ROW = re.compile(r"([A-Za-z]\w*)\s+(-?\d+)\s+-?\d+(?:\.\d+)?\s*")
_EMULATOR = ("late_mean_us", "late_p99_us", "late_max_us", "packets", "lost_packets")
_COLUMN = re.compile("[0-9a-f]{1,8}")

_SNMP = "nstat(8), Documentation/networking/snmp_counter.rst"
NSTAT = table(
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
        "TcpOutSegs": ("segments", "sent, without retransmissions"),
        "TcpRetransSegs": ("segments", "retransmitted"),
        "TcpOutRsts": ("segments", "resets sent"),
        "TcpExtTCPTimeouts": ("times", "a retransmission timeout ran out"),
        "TcpExtTCPLostRetransmit": ("segments", "retransmitted, and taken for lost again"),
        "TcpExtTCPFastRetrans": ("segments", "retransmitted in fast recovery"),
        "TcpExtTCPSlowStartRetrans": ("segments", "retransmitted in slow start, after a timeout"),
        "TcpExtTCPSackRecovery": ("times", "fast recovery began, with SACK"),
        "TcpExtTCPLossProbes": ("segments", "tail loss probes sent (RFC 8985)"),
        "TcpExtTCPDSACKRecv": (
            "segments",
            "that the receiver had already, according to its DSACKs",
        ),
        "TcpExtTCPDSACKOldSent": ("segments", "came again, which a DSACK reported"),
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
        "TcpExtTCPOrigDataSent": ("segments", "sent with data, without retransmissions"),
        "TcpExtTCPHystartTrainDetect": ("times", "CUBIC ended slow start by a train of ACKs"),
        "TcpExtTCPHystartDelayDetect": ("times", "CUBIC ended slow start by the delay"),
    },
)

# By the names in `ip -j -s link`; the counters are of struct rtnl_link_stats64.
LINK = table(
    "ip-link(8), linux/if_link.h",
    {
        "mtu": ("bytes", "largest IP packet that may leave"),
        "qdisc": ("", "the queueing discipline at its root"),
        "operstate": ("", "is it up?"),
        "txqlen": ("packets", "the length that some qdiscs use as their limit"),
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

SYSCTL = table(
    "tcp(7), Documentation/networking/ip-sysctl.rst",
    {
        "net.ipv4.tcp_congestion_control": ("", "algorithm of connections that don't ask"),
        "net.ipv4.tcp_timestamps": ("", "1: announces timestamps (RFC 7323)"),
        "net.ipv4.tcp_sack": ("", "1: selective acknowledgements"),
        "net.ipv4.tcp_ecn": ("", "0 never, 1 asks for it, 2 if asked"),
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
        "net.core.netdev_max_backlog": ("packets", "may wait between driver and IP, per CPU"),
        "net.core.netdev_budget": ("packets", "taken from drivers in one turn"),
    },
)

ETHTOOL = table(
    "ethtool(8), Documentation/networking/segmentation-offloads.rst",
    {
        "tcp-segmentation-offload": ("", "tso: the interface cuts bundles into segments"),
        "generic-segmentation-offload": ("", "gso: the kernel cuts them, just before the driver"),
        "generic-receive-offload": ("", "gro: segments that arrive are put into bundles"),
        "large-receive-offload": ("", "lro: the interface does so"),
        "tx-checksumming": ("", "the interface computes checksums"),
        "scatter-gather": ("", "a packet may lie in several places of memory"),
    },
)

# The first three columns of /proc/net/softnet_stat, in hexadecimal.
SOFTNET = table(
    "net/core/net-procfs.c",
    {
        "processed": ("packets", "taken from drivers: column 1"),
        "dropped": ("packets", "lost between driver and IP: column 2"),
        "time_squeeze": ("times", "work was left when its turn ended: column 3"),
    },
)


def parse_nstat(text: str, source: str) -> dict[str, int]:
    """Counter names (`TcpRetransSegs`, `TcpExtTCPOFODrop`, ...) and their values.

    Accepts the JSON (`-j`) and the text form. Whether a value counts since boot or since the last
    call is nstat's own (`-a`); the rate in the third column is left out. The counters are
    explained in the kernel's Documentation/networking/snmp_counter.rst.

    Raises ParseError for anything else.
    """
    text = clean(text, source, _EXPECTED)
    if text.lstrip().startswith("{"):
        return _from_json(text, source)
    lines = text.split("\n")
    if not lines[0].startswith("#"):
        raise foreign(text, source, _EXPECTED)
    if lines.pop():
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    counters: dict[str, int] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        row = _ROW.fullmatch(line)
        if not row:
            raise ParseError(
                source, f"line {number}", f"found {excerpt(line)}; expected NAME VALUE RATE"
            )
        counters[row[1]] = int(row[2])
    return counters


def _from_json(text: str, source: str) -> dict[str, int]:
    document = JsonObject.of(load(text, source, _EXPECTED), "$", source)
    kernel = document.child("kernel")
    if kernel is None:
        raise foreign(text, source, _EXPECTED)
    return {name: kernel.need_integer(name) for name in kernel.data}


# How netstat -s of Linux words nstat's counters; those that it doesn't word it prints by their names.
_NETSTAT = {
    "total packets received": "IpInReceives",
    "segments received": "TcpInSegs",
    "segments sent out": "TcpOutSegs",
    "segments send out": "TcpOutSegs",
    "segments retransmitted": "TcpRetransSegs",
    "bad segments received": "TcpInErrs",
    "fast retransmits": "TcpExtTCPFastRetrans",
    "other TCP timeouts": "TcpExtTCPTimeouts",
    "DSACKs received": "TcpExtTCPDSACKRecv",
}


def parse_netstat(text: str, source: str) -> dict[str, int]:
    """Return nstat's counters of what `netstat -s` of Linux printed; ParseError where it has none of TCP."""
    # Its own spelling was corrected in 2017.
    text = text.replace("mited\n", "mitted\n")
    counters = {
        _NETSTAT[words]: int(count)
        for count, words in re.findall(r"^ +(\d+) ([a-zA-Z ]+?)[ \t]*$", text, re.M)
        if words in _NETSTAT
    }
    named = re.findall(r"^ +((?:TCP|Tcp)\w+): (\d+)[ \t]*$", text, re.M)
    counters |= {f"TcpExt{name}": int(count) for name, count in named}
    if "TcpOutSegs" not in counters:
        raise ParseError(source, "file", "netstat -s without a count of TCP's segments")
    return counters


# ethtool -S: what a driver calls what it lost.
_LOSING = re.compile(
    r"err|drop|miss|discard|no_?buf|fifo|crc|overrun|overflow|out_of_buffer|no_dma", re.I
)


def parse_driver(text: str, source: str) -> dict[str, int]:
    """Return the counts of what a card or its driver lost, of all that `ethtool -S` printed."""
    rows = re.findall(r"^ +([^:\n]+): (\d+)[ \t]*$", text, re.M)
    if not rows:
        raise ParseError(source, "file", "ethtool -S without any count")
    return {name.strip(): int(count) for name, count in rows if _LOSING.search(name)}


_IFCONFIG = re.compile(r"^(?P<name>[^\s:]+(?::\d+)?):? +(?:flags=|Link encap)", re.M)
_IFCONFIG_WAY = re.compile(
    r"\b(?P<way>RX|TX) packets[: ](?P<packets>\d+)(?:\s+bytes (?P<bytes>\d+)[^\n]*\n\s+(?P=way))?"
    r"\s+errors[: ](?P<errors>\d+)\s+dropped[: ](?P<dropped>\d+)"
)


def parse_ifconfig(text: str, source: str) -> list[dict[str, Any]]:
    """Return the interfaces of Linux' ifconfig as `ip -j -s link` has them; ParseError where one has no counters."""
    begins = [match.start() for match in _IFCONFIG.finditer(text)]
    links: list[dict[str, Any]] = []
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        part = text[begin:end]
        head = _IFCONFIG.match(part)
        counts = {
            way["way"].lower(): {
                name: int(way[name] or (total[1] if total else 0))
                for name in ("bytes", "packets", "errors", "dropped")
            }
            for way in _IFCONFIG_WAY.finditer(part)
            for total in [re.search(rf"{way['way']} bytes:(\d+)", part)]
        }
        mtu = re.search(r"\b(?:mtu |MTU:)(\d+)", part)
        if head and counts.keys() == {"rx", "tx"}:
            mtu_bytes = int(mtu[1]) if mtu else 0
            links.append({"ifname": head["name"], "flags": [], "mtu": mtu_bytes, "stats64": counts})
    if not links:
        raise ParseError(source, "file", "ifconfig without counters of both ways")
    return links


def parse_ip(text: str, source: str) -> list[dict[str, Any]]:
    """Return the objects that `ip -j` printed, a link each; ParseError for anything else."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "file"
        raise ParseError(source, where, "cut off or no JSON; expected what ip -j prints") from None
    if not isinstance(content, list) or not all(isinstance(link, dict) for link in content):
        raise ParseError(source, "$", "expected an array of objects, as ip -j prints it")
    return content


_LINK = re.compile(
    r"\d+: (?P<name>[^@:\s]+)(?:@[^:]*)?: <(?P<flags>[^>]*)> mtu (?P<mtu>\d+)(?: qdisc (?P<qdisc>\S+))?"
    r"(?:.* state (?P<state>\S+))?(?:.* qlen (?P<qlen>\d+))?.*"
)
_LINK_COLUMNS = re.compile(r" +(?P<way>RX|TX): +bytes +packets +errors +dropped\b.*")


def parse_ip_links(text: str, source: str) -> list[dict[str, Any]]:
    """Return the interfaces of `ip -s link` or `ip -s addr`, text or JSON, as `ip -j` has them.

    ParseError for anything else, and where an interface has no counters.
    """
    if text.lstrip().startswith("["):
        links = parse_ip(text, source)
        counted = [link for link in links if "stats64" in link]
        if len(counted) < len(links) or not links:
            raise ParseError(
                source, "$", "an interface without its counters; expected ip -j -s link"
            )
        return links
    found: list[dict[str, Any]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if head := _LINK.fullmatch(line):
            found.append(
                {
                    "ifname": head["name"],
                    "flags": head["flags"].split(","),
                    "mtu": int(head["mtu"]),
                    "qdisc": head["qdisc"],
                    "operstate": head["state"],
                    "stats64": {},
                }
            )
            if head["qlen"]:
                found[-1]["txqlen"] = int(head["qlen"])
        elif found and (columns := _LINK_COLUMNS.fullmatch(line)):
            counts = lines[number + 1].split() if number + 1 < len(lines) else []
            if len(counts) < 4 or not all(map(str.isdecimal, counts[:4])):
                raise ParseError(source, f"line {number + 2}", "expected an interface's counters")
            names = ("bytes", "packets", "errors", "dropped")
            found[-1]["stats64"][columns["way"].lower()] = dict(
                zip(names, map(int, counts), strict=False)
            )
    if not found:
        problem = "ip -s link without the lines that name its interfaces; bring all that it prints"
        raise ParseError(source, "file", problem)
    for link in found:
        if link["stats64"].keys() != {"rx", "tx"}:
            raise ParseError(
                source, link["ifname"], "has no counters of both ways; expected ip -s link"
            )
    return found


class Setting(NamedTuple):
    """A line's name and value, and its number. `interface` is whose it is, where a line above says that."""

    name: str
    value: str
    line: int
    interface: str = ""


def parse_assignments(text: str) -> Iterator[Setting]:
    """Yield lines of NAME = VALUE, as of sysctl; others are left out."""
    for number, line in enumerate(text.splitlines(), start=1):
        name, sign, value = line.partition("=")
        if sign and name.strip():
            yield Setting(name.strip(), value.strip(), number)


def parse_ethtool(text: str) -> Iterator[Setting]:
    """Yield each interface's features as `ethtool -k` prints them: on or off, and [fixed] where it can't change."""
    interface = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("Features for "):
            interface = line.removeprefix("Features for ").rstrip(":")
            continue
        name, sign, value = line.strip().partition(":")
        if sign:
            yield Setting(name, value.strip(), number, interface)


def parse_settings(text: str, source: str) -> tuple[Setting, ...]:
    """Return how a host or a card is set, by sysctl, `ethtool -k` or ethtool's own words; ParseError where nothing is said."""
    if re.search(r"^Features for ", text, re.M):
        settings = tuple(parse_ethtool(text))
    elif card := re.search(r"^Settings for ([^:\s]+):$", text, re.M):
        rows = re.findall(r"^\s+(Speed|Duplex): (\S+)", text, re.M)
        settings = tuple(Setting(name, value, 0, card[1]) for name, value in rows)
    else:
        settings = tuple(parse_assignments(text))
    if not settings:
        raise ParseError(source, "file", "nothing of how a host is set")
    return settings


def parse_softnet(text: str, source: str) -> dict[str, int]:
    """Return the sums over all CPUs of the columns that SOFTNET has; ParseError for other text."""
    sums = dict.fromkeys(SOFTNET, 0)
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()[: len(sums)]
        if not line.strip():
            continue
        if len(words) < len(sums) or not all(map(_COLUMN.fullmatch, words)):
            expected = "expected the columns of /proc/net/softnet_stat"
            raise ParseError(source, f"line {number}", expected)
        for name, word in zip(SOFTNET, words, strict=True):
            sums[name] += int(word, 16)
    return sums


def parse_emulator(text: str, source: str) -> dict[str, float]:
    """Return what scripts/host/emulator.c says at its end: how late packets were (us), how many there were, and how many it lost
    itself. ParseError for anything else."""
    expected = "what the emulator prints at its end"
    document = JsonObject.of(load(clean(text, source, expected), source, expected), "$", source)
    return {name: document.need_number(name) for name in _EMULATOR}
