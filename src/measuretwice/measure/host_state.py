"""The state of a run's hosts: each node's settings, and what limited each sender.

`measured` says what came out; this says what the network and the hosts were while it did, from the
snapshots that every node writes and from ss. It is read when a run is checked and kept nowhere.
What a folder doesn't have is left out, never guessed.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from measuretwice.measure.connections import SsHistory, histories_of
from measuretwice.measure.delays import Probes
from measuretwice.measure.node_state import (
    STATE,
    damaged_segments,
    ecn_packets,
    event_ports,
    packets_by_ip,
    state_of,
)
from measuretwice.measure.queue import backlogs_of
from measuretwice.measure.raw import name_of, text_of
from measuretwice.measure.transfers import Transfer, transfers_in
from measuretwice.parse import (
    Frames,
    ParseError,
    PingRun,
    Qdisc,
    SsSocket,
    TcClass,
    parse_iperf3_json,
    parse_tc_classes,
    parse_tc_qdiscs,
)
from measuretwice.parse.host import parse_assignments, parse_ethtool, parse_ip

# The file of tc's classes in a node's folder, of what was brought; and that of the kernel's events, of labs with many flows.
CLASSES = "class.txt"
EVENTS = "events.txt"


@dataclass(frozen=True)
class Socket:
    """One connection of a sender, by its last line in ss; ratios are 0 to 1.

    `rwnd_limited_ratio` and `sndbuf_limited_ratio` are parts of the time with data in flight, which
    is `busy_s`; `alive_s` is the time between its first and its last line. `window_max_bytes` is the largest
    window that the receiver ever offered, `stalled_s` the longest time in which nothing new was acknowledged while
    some of it was sampled at least three times. `is_named` says whether an iperf3 client of that node names it;
    None where its files don't say. `busy_s` and the two counts are None where ss is too old to print them, and
    what was sent is at least what was acknowledged; `is_multipath` says that it is one of several of one MPTCP connection.
    `rtt_min_ms` is TCP's own smallest round-trip time, `seen` the numbers of the first and the last sample that have it.
    `held_up_by` is, of all samples, the part in which each thing held it up (connections.WINDOW and so on). `last` is all
    that its last line says, `rtts` all round-trip times that were sampled (ms), with their Unix times.
    """

    node: str
    port: int
    peer: str
    congestion_control: str | None
    alive_s: float
    busy_s: float | None
    rwnd_limited_ratio: float
    sndbuf_limited_ratio: float
    window_max_bytes: int | None
    bytes_sent: int | None
    bytes_acked: int | None
    is_named: bool | None = None
    stalled_s: float = 0.0
    is_multipath: bool = False
    rtt_min_ms: float | None = None
    seen: tuple[int, int] = (0, 0)
    window_usual_bytes: int | None = None
    held_up_by: Mapping[str | None, float] = field(default_factory=dict)
    last: SsSocket | None = None
    rtts: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Interface:
    """One interface of a node: how it was set before the run, and what it counted while it ran.

    `settings` are words by their names, as `mtu` or `generic-segmentation-offload`. `qdiscs` stood there
    before the run, `qdiscs_after` when it had ended (None where only one of the two is known).
    """

    name: str
    addresses: tuple[str, ...]
    settings: Mapping[str, str]
    qdiscs: tuple[Qdisc, ...] = ()
    drops: Mapping[str, int] = field(default_factory=dict)
    received_packets: int | None = None
    received_bytes: int | None = None
    sent_packets: int | None = None
    sent_bytes: int | None = None
    errors_and_drops: int | None = None
    qdiscs_after: tuple[Qdisc, ...] | None = None


@dataclass(frozen=True)
class Node:
    """One node's interfaces by name, its sysctls, and its routes; and its `state` after the run, as node_state.state_of
    says it, empty where it isn't known. `ip_received` and `ip_sent` are packets while it ran, by the protocols' own counts, and
    `event_ports` are the ports of the connections in the kernel's events, `damaged_segments` came with a wrong checksum, and
    `ecn_packets` with ECN; None where these weren't kept."""

    name: str
    interfaces: Mapping[str, Interface]
    sysctls: Mapping[str, str]
    routes: tuple[str, ...]
    state: Mapping[str, str] = field(default_factory=dict)
    ip_received: int | None = None
    ip_sent: int | None = None
    event_ports: frozenset[int] = frozenset()
    damaged_segments: int | None = None
    ecn_packets: int | None = None


@dataclass(frozen=True)
class Sum:
    """One of iperf3's sums: its rate (bit/s), its bytes and its time."""

    name: str
    rate_bps: float
    bytes: float
    seconds: float


@dataclass(frozen=True)
class End:
    """One end of an iperf3 test, from its JSON. Both ends of a test have the same cookie.

    `sent_bytes` is what a client handed to its sockets; `begin_s` and `end_s` are when the test was on (Unix times);
    `unfit` says why nothing can be concluded from such a test, None where it is one of TCP from sender to receiver.
    """

    node: str
    source: str
    is_server: bool
    cookie: str | None
    sums: tuple[Sum, ...]
    sent_bytes: float | None
    begin_s: float | None = None
    end_s: float | None = None
    unfit: str | None = None


@dataclass(frozen=True)
class Span:
    """When a sampler took its first and its last sample (Unix times, s); how often its clock `went_back` between two; and of a
    queue the `last` of its samples, and how many bytes waited in each, with its time: `backlogs`."""

    node: str
    source: str
    first_s: float
    last_s: float
    went_back: int = 0
    last: tuple[Qdisc, ...] = ()
    backlogs: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True)
class HostState:
    """All that is known of a run's nodes and its senders' connections; `received_bytes` is what iperf3's
    servers say that they got, where each flow's has said it in JSON. `ends` are iperf3's files, one by one, and the
    spans are when flows and queues were sampled. `classes` are tc's, each with its node, where somebody printed them.
    `transfers` are the tests as their clients tell them, `pings` those that were brought, by their files, of which
    `other_pings` aren't of the idle path, and `qdiscs` all that tc prints, by node, as they were last, and as
    they were before; `captures` are what tcpdump printed, by its files, of which `other_captures` have no bulk test; `probes` waited beside the flows."""

    nodes: Mapping[str, Node]
    sockets: tuple[Socket, ...] = ()
    received_bytes: int | None = None
    ends: tuple[End, ...] = ()
    flows_sampled: tuple[Span, ...] = ()
    queues_sampled: tuple[Span, ...] = ()
    classes: tuple[tuple[str, TcClass], ...] = ()
    transfers: tuple[Transfer, ...] = ()
    pings: tuple[tuple[str, PingRun], ...] = ()
    qdiscs: tuple[tuple[str, Qdisc], ...] = ()
    qdiscs_before: tuple[tuple[str, Qdisc], ...] = ()
    other_pings: frozenset[str] = frozenset()
    captures: tuple[tuple[str, Frames], ...] = ()
    other_captures: frozenset[str] = frozenset()
    probes: Probes = field(default_factory=Probes)


def read_host_state(raw: Path, ss_file: str | None, queue_file: str | None = None) -> HostState:
    """Return the state of the hosts from `raw`/<node>/; the files are the names of the samples of ss and of a queue there.

    ParseError names the file that can't be read. Files that aren't there are left out.
    """
    folders = sorted(folder for folder in raw.iterdir() if folder.is_dir())
    nodes = {folder.name: _node(folder) for folder in folders}
    sockets = [
        socket
        for folder in folders
        if ss_file and (folder / ss_file).is_file()
        for socket in sockets_of(text_of(folder / ss_file), folder.name, _named_ports(folder))
    ]
    return HostState(
        nodes, tuple(sockets), _received(folders), tuple(ends_of(folders)),
        _spans(folders, ss_file), _spans(folders, queue_file, of_queue=True),
        tuple((folder.name, entry) for folder in folders for entry in _classes(folder / CLASSES)),
        tuple(transfers_in(folders)), (),
        tuple((folder.name, qdisc) for folder in folders for qdisc in _last_qdiscs(folder)),
        tuple((folder.name, qdisc) for folder in folders for qdisc in _qdiscs(folder / "qdisc.before.json")),
    )  # fmt: skip


def _last_qdiscs(folder: Path) -> tuple[Qdisc, ...]:
    return _qdiscs(folder / "qdisc.after.json") or _qdiscs(folder / "qdisc.before.json")


def _spans(
    folders: Sequence[Path], name: str | None, *, of_queue: bool = False
) -> tuple[Span, ...]:
    paths = [folder / name for folder in folders] if name else []
    spans = [(path, span) for path in paths if (span := span_of(path))]
    return tuple(
        replace(span, last=_last(path), backlogs=tuple(backlogs_of(text_of(path))))
        if of_queue
        else span
        for path, span in spans
    )


def _last(path: Path) -> tuple[Qdisc, ...]:
    """Return the last sample of a queue; none where it was cut off."""
    _, _, sample = text_of(path).rpartition("# t=")
    try:
        return parse_tc_qdiscs(sample.partition("\n")[2], name_of(path))
    except ParseError:
        return ()


def _received(folders: Sequence[Path]) -> int | None:
    """What iperf3's servers got; None where one says no sum, as one that has met no client."""
    paths = [path for folder in folders for path in sorted(folder.glob("iperf3-server*.json"))]
    runs = [
        parse_iperf3_json(text_of(path), name_of(path)) for path in paths if path.stat().st_size
    ]
    bytes_received = [
        None if None in (run.received_bytes, run.omitted_bytes)
        else (run.received_bytes or 0) + (run.omitted_bytes or 0)
        for run in runs
    ]  # fmt: skip
    return (
        sum(map(int, filter(None, bytes_received))) if runs and None not in bytes_received else None
    )


def _named_ports(folder: Path) -> set[int]:
    """The ports of the connections that iperf3's clients on a node name."""
    return {
        int(port)
        for path in folder.glob("iperf3*.*")
        for port in re.findall(r'(?:"local_port"\s*:\s*|\blocal \S+ port )(\d+)', text_of(path))
    }


def sockets_of(text: str, node: str, named: Set[int] = frozenset()) -> list[Socket]:
    """Return each connection that sent data, from samples of `ss -ti` with their times.

    `named` are the ports that iperf3 names, if it says any. ParseError where a line isn't one of ss.
    """
    return [_socket(node, history, named) for history in histories_of(text, "ss.txt")]


def _socket(node: str, history: SsHistory, named: Set[int]) -> Socket:
    socket = history.last
    busy_ms = socket.busy_ms or 0
    # Of what is 0 a newer ss says nothing.
    says_all = socket.bytes_sent is not None
    looks = sum(history.held_up_by.values())
    return Socket(
        node=node,
        port=socket.local_port or 0,
        peer=f"{socket.peer_address}:{socket.peer_port}",
        congestion_control=socket.congestion_control,
        alive_s=history.alive_s,
        busy_s=busy_ms / 1e3 if busy_ms or says_all else None,
        rwnd_limited_ratio=(socket.rwnd_limited_ms or 0) / busy_ms if busy_ms else 0.0,
        sndbuf_limited_ratio=(socket.sndbuf_limited_ms or 0) / busy_ms if busy_ms else 0.0,
        window_max_bytes=history.window_max_bytes,
        bytes_sent=socket.bytes_sent if says_all else socket.bytes_acked,
        bytes_acked=socket.bytes_acked or (0 if says_all else None),
        is_named=socket.local_port in named if named else None,
        stalled_s=history.stalled_s,
        is_multipath="tcp-ulp-mptcp" in socket.other,
        rtt_min_ms=socket.minrtt_ms,
        seen=history.seen,
        window_usual_bytes=history.window_usual_bytes,
        held_up_by={what: count / looks for what, count in history.held_up_by.items()},
        last=socket,
        rtts=history.rtts,
    )


def _node(folder: Path) -> Node:
    names: dict[str, dict[str, Any]] = {}
    for when in ("before", "after"):
        for link in _links(folder / f"link.{when}.json"):
            names.setdefault(str(link.get("ifname")), {})[when] = link
    names.pop("lo", None)
    addresses = {
        str(link.get("ifname")): tuple(
            str(info.get("local")) for info in link.get("addr_info") or [] if isinstance(info, dict)
        )
        for link in _links(folder / "addr.json")
    }
    features = _features(folder / "offloads.txt")
    speeds = _assignments(folder / "speed_mbit.txt")
    qdiscs = {when: _qdiscs(folder / f"qdisc.{when}.json") for when in ("before", "after")}
    interfaces = {
        name: _interface(
            name,
            addresses.get(name, ()),
            links,
            {**features.get(name, {}), "speed": speeds.get(name, "unknown")},
            {
                when: [qdisc for qdisc in found if qdisc.dev == name]
                for when, found in qdiscs.items()
            },
        )
        for name, links in names.items()
    }
    route = folder / "route.txt"
    routes = tuple(sorted(text_of(route).split("\n"))) if route.is_file() else ()
    return Node(
        folder.name,
        interfaces,
        _assignments(folder / "sysctl.txt"),
        tuple(line.strip() for line in routes if line.strip()),
        state_of(text_of(folder / STATE)) if (folder / STATE).is_file() else {},
        *packets_by_ip(folder),
        frozenset(event_ports(folder / EVENTS)),
        damaged_segments(folder),
        ecn_packets(folder),
    )


def _interface(
    name: str,
    addresses: tuple[str, ...],
    links: Mapping[str, Any],
    settings: dict[str, str],
    qdiscs: Mapping[str, Sequence[Qdisc]],
) -> Interface:
    link = links.get("before") or links.get("after") or {}
    for key in ("mtu", "txqlen"):
        if key in link:
            settings[key] = str(link[key])
    settings["state"] = "up" if "UP" in (link.get("flags") or []) else "down"
    before = qdiscs["before"] or qdiscs["after"]
    counted = {
        f"{way}.{what}": _grown(links, way, what)
        for way in ("rx", "tx")
        for what in ("packets", "bytes", "errors", "dropped")
    }
    lost = [counted[f"{way}.{what}"] for way in ("rx", "tx") for what in ("errors", "dropped")]
    earlier = {place_of(qdisc): qdisc.drops or 0 for qdisc in qdiscs["before"]}
    return Interface(
        name,
        addresses,
        settings,
        tuple(before),
        {
            place_of(qdisc): (qdisc.drops or 0) - earlier.get(place_of(qdisc), 0)
            for qdisc in qdiscs["after"]
            if qdiscs["before"]
        },
        counted["rx.packets"],
        counted["rx.bytes"],
        counted["tx.packets"],
        counted["tx.bytes"],
        None if None in lost else sum(count or 0 for count in lost),
        tuple(qdiscs["after"]) if qdiscs["before"] and qdiscs["after"] else None,
    )


def place_of(qdisc: Qdisc) -> str:
    """Return where a qdisc stands on its interface, as a key of `Interface.drops`: handles that the kernel gave
    by itself differ from run to run."""
    return f"{qdisc.kind} {'root' if qdisc.root else qdisc.parent}"


def _grown(links: Mapping[str, Any], way: str, what: str) -> int | None:
    try:
        before, after = (links[when]["stats64"][way][what] for when in ("before", "after"))
        return int(after) - int(before)
    except (KeyError, TypeError, ValueError):
        return None


def _qdiscs(path: Path) -> tuple[Qdisc, ...]:
    return parse_tc_qdiscs(text_of(path), name_of(path)) if path.is_file() else ()


def _classes(path: Path) -> tuple[TcClass, ...]:
    return parse_tc_classes(text_of(path), name_of(path)) if path.is_file() else ()


def _links(path: Path) -> list[dict[str, Any]]:
    return parse_ip(text_of(path), name_of(path)) if path.is_file() else []


def _assignments(path: Path) -> dict[str, str]:
    """Lines of NAME = VALUE."""
    settings = parse_assignments(text_of(path)) if path.is_file() else ()
    return {setting.name: " ".join(setting.value.split()) for setting in settings}


def _features(path: Path) -> dict[str, dict[str, str]]:
    """Each interface's features, on or off."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for setting in parse_ethtool(text_of(path)) if path.is_file() else ():
        value = setting.value.removesuffix("[fixed]").strip()
        found[setting.interface][setting.name] = value
    return found


def ends_of(folders: Sequence[Path]) -> Iterator[End]:
    """Yield what each file of iperf3 in these nodes' folders says."""
    for folder in folders:
        for path in sorted(folder.glob("iperf3*.json")):
            try:
                document = json.loads(text_of(path))
                yield _end(folder.name, name_of(path), document)
            except (
                ValueError, RecursionError, AttributeError, KeyError, TypeError, ArithmeticError
            ):  # fmt: skip
                continue


def _end(node: str, source: str, document: Mapping[str, Any]) -> End:
    start, end = document["start"], document["end"]
    sums = tuple(
        Sum(name, float(total["bits_per_second"]), float(total["bytes"]), float(total["seconds"]))
        for name in ("sum_sent", "sum_received")
        if (total := end.get(name)) and total.get("seconds")
    )
    is_server = "accepted_connection" in start
    sent = end.get("sum_sent", {}).get("bytes")
    if sent and start.get("test_start", {}).get("omit"):
        sent = _with_omitted(sent, document)
    cookie = start.get("cookie")
    test, begin_s = start.get("test_start", {}), start.get("timestamp", {}).get("timesecs")
    lasted_s = max((total.seconds for total in sums), default=None)
    return End(
        node, source, is_server, cookie, sums, None if is_server else sent,
        begin_s=begin_s if lasted_s else None,
        end_s=begin_s + lasted_s if begin_s and lasted_s else None,
        unfit=why_unfit(test.get("protocol"), bool(test.get("bidir")), bool(test.get("reverse"))),
    )  # fmt: skip


def _with_omitted(sent: float, document: Mapping[str, Any]) -> float | None:
    """The bytes with those of the seconds that were left out of the sum (-O); None where no row has these."""
    rows = [interval["sum"] for interval in document.get("intervals", ())]
    omitted = [row["bytes"] for row in rows if row.get("omitted")]
    return sent + sum(omitted) if omitted else None


def why_unfit(
    protocol: str | None, bidirectional: bool | None, reverse: bool | None = None
) -> str | None:
    """Return why nothing can be concluded from a test of that kind; None where it is one of TCP, from sender to receiver."""
    if protocol == "UDP":
        return "a test of UDP, which has neither window nor recovery"
    if protocol not in (None, "TCP"):
        return f"a test of {protocol}, not of TCP"
    if bidirectional:
        return "a test in both directions at once (--bidir): each is in the other's way"
    if reverse:
        return "a test in which the server sent (-R): its data went the other way"
    return None


def span_of(path: Path) -> Span | None:
    """When the samples in a file were taken; None without a file, or without two different times in it."""
    if not path.is_file():
        return None
    times = [line[4:].split()[0] for line in text_of(path).splitlines() if line.startswith("# t=")]
    if len({*times}) < 2:
        return None
    try:
        moments = [float(time) for time in times]
    except ValueError:
        return None
    went_back = sum(later < earlier for earlier, later in pairwise(moments))
    return Span(path.parent.name, name_of(path), moments[0], moments[-1], went_back)
