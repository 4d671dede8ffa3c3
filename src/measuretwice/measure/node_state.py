"""What scripts/after/state.sh wrote of a node: queues with their overheads, classes, filters, routes, rules, and the
settings of the whole machine. Two runs by the same scripts have the same words for it, whatever they measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuretwice.measure.raw import counters_grown, text_of

# Beside a node's snapshots, and no part of a run's digest: nothing measured follows from it.
STATE = "state.txt"
# Counters of nstat whose sum is all packets that a node received, and sent. TCP's count leaves out what it sends again.
RECEIVED = ("IpInReceives", "Ip6InReceives")
SENT = (
    "TcpOutSegs", "TcpRetransSegs", "IcmpOutMsgs", "UdpOutDatagrams", "IpForwDatagrams", "Icmp6OutMsgs",
)  # fmt: skip
# Packets that ECN may mark (RFC 3168), and those that it has marked.
ECN = ("IpExtInECT0Pkts", "IpExtInECT1Pkts", "IpExtInCEPkts")
# What tc and ip count, or number by themselves: it differs from run to run, or from one version to another.
_NUMBERED = re.compile(
    r" (?:refcnt|direct_packets_stat|ref|bind|index|seed|expires|used|installed|packets|bytes) [\w.]+| r2q \d+|\b8[0-9a-f]{3}:(?!\d)"
)
# Classes that nobody makes: those of flows come and go.
_CLASSES = re.compile(r"class (?:htb|hfsc|prio|drr|qfq|ets|cbq) ")
_ROUTES = ("unicast ", "throw ", "blackhole ", "prohibit ", "unreachable ")
_SIZES = ("qlen", "numtxqueues", "gso_max_size", "gso_max_segs", "gro_max_size")
_PARTS = {"tc": "tc -d qdisc", "ip": "ip -d link", "settings": "settings", "nft": "nft list"}


def state_of(text: str) -> dict[str, str]:
    """Return what is set on a node, by what it is: `eth1: qdisc htb root`, `route default`, `tcp_cubic.beta`.

    Lines that aren't known are left out.
    """
    settings: dict[str, str] = {}
    part = ""
    for line in _whole_lines(text):
        if line.startswith("# "):
            part = next((name for name, begin in _PARTS.items() if line[2:].startswith(begin)), "")
        elif part == "nft":
            settings[f"nftables: {line.strip()}"] = "set"
        elif part:
            settings.update(_READERS[part](line))
    return settings


def _whole_lines(text: str) -> Iterator[str]:
    """Yield each line with those that go on with it: of a filter, and of a queue with a size table."""
    whole = ""
    for line in text.splitlines():
        if line[:1].isspace() and whole.startswith(("filter ", "qdisc ")):
            whole += f" {line.strip()}"
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole


def _queue(line: str) -> Iterator[tuple[str, str]]:
    words = " ".join(_NUMBERED.sub("", line).split())
    if match := re.match(
        r"qdisc (\S+) (?:\S+: )?dev (\S+) (root|ingress|clsact|parent \S+)(.*)", words
    ):
        kind, device, place, options = match.groups()
        yield f"{device}: qdisc {kind} {place}", options.strip()
    elif _CLASSES.match(line):
        # A class's device isn't said; what it is, and where, tells it from others.
        kind, name, options = words.removeprefix("class ").split(" ", 2)
        yield f"class {kind} {name}", options
    elif line.startswith("filter "):
        yield words, "set"


def _path(line: str) -> Iterator[tuple[str, str]]:
    words = " ".join(line.replace("\\", " ").split())
    if match := re.match(r"\d+: ([^@:\s]+)[@:]", words):
        device = match[1]
        for name in _SIZES if device != "lo" else ():
            if size := re.search(rf" {name} (\d+)", words):
                yield f"{device}: {name}", size[1]
    elif match := re.match(r"(\d+): (.*)", words):
        yield f"rule {match[1]}: {match[2]}", "set"
    elif words.startswith(_ROUTES) and " table local " not in f"{words} ":
        yield f"route {_NUMBERED.sub('', words)}", "set"


def _setting(line: str) -> Iterator[tuple[str, str]]:
    path, colon, value = line.partition(":")
    if colon and path.startswith("/proc/sys/"):
        yield path.removeprefix("/proc/sys/").replace("/", "."), " ".join(value.split())
    elif match := re.fullmatch(r"/sys/module/(\w+)/parameters/(\w+)", path):
        yield f"{match[1]}.{match[2]}", value


_READERS = {"tc": _queue, "ip": _path, "settings": _setting}


def damaged_segments(folder: Path) -> int | None:
    """Return how many segments came to a node with a wrong checksum while the run was on; None where nstat doesn't say."""
    if not all((folder / f"nstat.{when}.json").is_file() for when in ("before", "after")):
        return None
    return counters_grown(folder).get("TcpInCsumErrors")


def ecn_packets(folder: Path) -> int | None:
    """Return how many packets came to a node, while the run was on, that ECN may mark or had marked; None where nstat doesn't
    say."""
    if not all((folder / f"nstat.{when}.json").is_file() for when in ("before", "after")):
        return None
    grown = counters_grown(folder)
    return _sum_where_known([grown.get(name) for name in ECN])


def packets_by_ip(folder: Path) -> tuple[int | None, int | None]:
    """Return how many packets a node received and sent while the run was on, by its protocols' own counts; None where nstat
    doesn't say, and for the second where it passed on others' packets."""
    if not all((folder / f"nstat.{when}.json").is_file() for when in ("before", "after")):
        return None, None
    grown = counters_grown(folder)
    received, sent = ([grown.get(name) for name in names] for names in (RECEIVED, SENT))
    return _sum_where_known(received), _sum_where_known(sent)


def _sum_where_known(counts: Sequence[int | None]) -> int | None:
    """The sum; None where the first one isn't known."""
    return None if counts[0] is None else sum(count or 0 for count in counts)


def event_ports(path: Path) -> Iterator[int]:
    """Yield the port in each line of time, port and state."""
    for line in text_of(path).splitlines() if path.is_file() else ():
        words = line.split()
        if len(words) == 3 and words[1].isdecimal():
            yield int(words[1])
