"""Files that were brought, laid out as a run's raw folder, so that they are read as a run's are.

What a run has and these files don't is taken out of the lab's [collect]; `Layout.missing` says what
can't be looked at then.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.network import Collect
from measuretwice.measure.delays import read_streams, read_transfers
from measuretwice.measure.host_state import CLASSES
from measuretwice.measure.imported.clients import Client, Sockets, Tests, find_sockets
from measuretwice.measure.imported.counters import (
    Snapshots,
    find_policed,
    find_snapshots,
    node_of_host,
    place_counters,
)
from measuretwice.measure.imported.files import Piece, Pieces
from measuretwice.measure.imported.others import find_host_words
from measuretwice.parse import Frames, ParseError, PingRun, QdiscSample, TcClass
from measuretwice.parse.formats import TC_CLASSES
from measuretwice.parse.ping import NOT_ENDED


@dataclass
class Layout:
    """`raw` is the folder; `collect` what of the lab's own can be read there. `used` are the files by what
    each was taken for; `missing` what isn't looked at, with the file that isn't there; `idle_pings` the files of
    those of the idle path, `by_host` what the hosts' own counters and settings say, `other_captures` the files of those that
    have no bulk test."""

    raw: Path
    collect: Collect
    used: dict[Path, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    sockets: Sockets = field(default_factory=Sockets)
    snapshots: Snapshots = field(default_factory=Snapshots)
    idle_pings: set[str] = field(default_factory=set)
    by_host: tuple[str, ...] = ()
    other_captures: set[str] = field(default_factory=set)

    def put(self, node: str, name: str, text: str) -> None:
        """Write a file of a node."""
        folder = self.raw / node
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    def without(self, **parts: object) -> None:
        """Take parts of [collect] away, or replace them."""
        self.collect = self.collect.model_copy(update=parts)

    def within(self, part: str, **keys: object) -> None:
        """Replace keys in a part of [collect]."""
        self.without(**{part: getattr(self.collect, part).model_copy(update=keys)})

    def reduced(self, lab: Lab) -> Lab:
        """Return the lab with what can be read here as its [collect]."""
        return replace(lab, file=lab.file.model_copy(update={"collect": self.collect}))


def lay_out(
    lab: Lab, found: Pieces, tests: Tests, raw: Path, params: Mapping[str, Value]
) -> Layout:
    """Lay all pieces out under `raw`, as far as it is known whose they are."""
    layout = Layout(raw, lab.file.collect)
    _own_names(lab, found, layout)
    place_counters(found, layout.put, layout.used)
    _tests(tests, layout)
    layout.sockets = find_sockets(found, tests, lab.file.collect)
    _sockets(layout)
    _pings(lab, found, tests, layout)
    _others_who_waited(found, layout)
    _queue(found, layout)
    layout.snapshots = find_snapshots(lab, found)
    _snapshots(lab, found, layout)
    layout.by_host = (
        *find_policed(found, layout.used),
        *find_host_words(found, layout.used, params),
    )
    _capture(found, tests, layout)
    return layout


def _own_names(lab: Lab, found: Pieces, layout: Layout) -> None:
    """Files that are known by their names: on their node, or on the one that the lab has them of."""
    how = lab.file.collect
    places: dict[str, str] = {}
    if how.ss_last:
        places[how.ss_last.file] = how.ss_last.node
    if how.queue and how.queue.node and how.queue.lengths:
        places[how.queue.lengths] = how.queue.node
    if how.one_sender and how.one_sender.table:
        places[how.one_sender.table] = how.one_sender.node
    for piece in found.pieces:
        if piece.content is not None:
            continue
        node = piece.node or places.get(piece.tool)
        if node is None and how.crowd and piece.tool in (how.crowd.summary, how.crowd.groups):
            node = "results"
        if node is None:
            found.left_out.append(f"{piece.path}: {piece.tool}, but of which node?")
        else:
            layout.put(node, piece.tool, piece.text)
            layout.used[piece.path] = f"{node}'s {piece.tool}"
    for lone in layout.raw.glob("*/softnet_stat.*.txt"):
        # What one snapshot counts may be of any time.
        if len([*lone.parent.glob("softnet_stat.*.txt")]) == 1:
            lone.unlink()
    sender = how.one_sender
    if sender and sender.table and not (layout.raw / sender.node / sender.table).is_file():
        layout.within("one_sender", table=None)


def _tests(tests: Tests, layout: Layout) -> None:
    """Clients as iperf3-N.json or .txt, JSON servers as iperf3-server-N.json."""
    numbers: dict[str, int] = defaultdict(int)
    for client in tests.clients:
        numbers[client.node] += 1
        text = client.piece.text
        begin = re.search(r"^[ \t]*\{", text, re.M) if '"start"' in text else None
        ending = "json" if begin else "txt"
        layout.put(
            client.node,
            f"iperf3-{numbers[client.node]}.{ending}",
            text[begin.start() :] if begin else text,
        )
        turned = " (its server sent: -R)" if client.turned else ""
        layout.used[client.piece.path] = f"{client.node}'s iperf3{turned}"
    for number, (piece, run) in enumerate(tests.servers):
        if '"start"' in piece.text and not run.reverse:
            layout.put(piece.node or "receiver", f"iperf3-server-{number}.json", piece.text)
        layout.used[piece.path] = f"iperf3's server{f' on {piece.node}' if piece.node else ''}"
    for part in ("flows", "crowd"):
        if getattr(layout.collect, part):
            layout.within(part, iperf3="iperf3-[0-9]*")


def _sockets(layout: Layout) -> None:
    name = layout.collect.ss_name
    for node, text in layout.sockets.texts.items():
        layout.put(node, name or "ss.txt", text)
    for path, node in layout.sockets.used.items():
        layout.used[path] = f"{node}'s ss"


def _pings(lab: Lab, found: Pieces, tests: Tests, layout: Layout) -> None:
    """A ping each of every sender: by its node, or by the address that it went to."""
    few, crowd, ping_at = lab.file.collect.flows, lab.file.collect.crowd, lab.file.collect.ping
    files = few or crowd
    busy_name = few.ping_busy if few else None
    idle_name = (files.ping if files else None) or (ping_at.file if ping_at else None)
    begin_s = min((client.span_s[0] for client in tests.clients if client.span_s), default=None)
    idle, busy = _idle_and_busy(found, begin_s, want_busy=busy_name is not None)
    for name, pieces, key in ((idle_name, idle, "ping"), (busy_name, busy, "ping_busy")):
        if name is None:
            _leave_out(found, pieces, "this lab looks at no such ping")
            continue
        taken = _by_sender(found, pieces, tests.clients, ping_at.node if ping_at else None)
        for node, piece in taken.items():
            layout.put(node, name, piece.text)
            layout.used[piece.path] = f"{node}'s ping" + (
                " beside the flows" if key != "ping" else ""
            )
            if remarks := _remarks(_ping(piece)):
                layout.used[piece.path] += f" ({'; '.join(remarks)})"
            if key == "ping":
                layout.idle_pings.add(piece.path.name)
        what = (
            "the idle path's round-trip time" if key == "ping" else "round trips beside the flows"
        )
        senders = {ping_at.node} if ping_at else {client.node for client in tests.clients}
        # Beside the flows anybody may ping, not only those who send them.
        lacking = sorted(senders - {*taken}) if key == "ping" or not taken else []
        if lacking:
            whose = f"of {', '.join(lacking)}" if key == "ping" else "that was sent meanwhile"
            why = f"there is no ping {whose}"
            layout.missing.append(found.lacks(what, why, "ping"))
            if ping_at:
                layout.without(ping=None)
            elif few:
                layout.within("flows", **{key: None})


def _others_who_waited(pieces: Pieces, layout: Layout) -> None:
    """A stream or short transfers whose file can't be read hide nothing of the flows beside them."""
    files = layout.collect.flows
    readers: dict[str, tuple[str, Callable[[], object]]] = {}
    if files and (stream := files.delays):
        readers["delays"] = (
            "how a stream's packets fared",
            partial(read_streams, stream, layout.raw),
        )
    if files and (name := files.transfers):
        readers["transfers"] = "short transfers", partial(read_transfers, layout.raw, name)
    for key, (what, read) in readers.items():
        try:
            read()
        except ParseError as error:
            layout.missing.append(f"{what}, since {error}")
            pieces.unread.append(layout.missing[-1])
            layout.within("flows", **{key: None})


def _idle_and_busy(
    found: Pieces, begin_s: float | None, *, want_busy: bool
) -> tuple[list[Piece], list[Piece]]:
    """By their names; where none says so, by ping's own times, of which a busy one's last comes after the flows' `begin_s`
    (Unix time). Of two that don't say, of one node to one address, the slower one was beside flows."""
    pings = found.of("ping")
    busy = [piece for piece in pings if piece.busy]
    if not busy and want_busy and begin_s is not None:
        busy = [piece for piece in pings if (_ping(piece).last_s or 0.0) > begin_s]
        busy = busy if len(busy) < len(pings) else []
    rest = [piece for piece in pings if piece not in busy]
    if not busy and want_busy:
        ends: dict[tuple[str | None, str], list[Piece]] = defaultdict(list)
        for piece in rest:
            ends[piece.node, _ping(piece).address].append(piece)
        for same in ends.values():
            same.sort(key=lambda piece: _ping(piece).rtt_avg_ms or 0.0)
            busy += same[len(same) // 2 :] if len(same) % 2 == 0 else []
        rest = [piece for piece in rest if piece not in busy]
    return rest, busy


def _ping(piece: Piece) -> PingRun:
    assert isinstance(piece.content, PingRun)  # the tool is ping
    return piece.content


# What a router or the host itself says of a ping that went nowhere.
_WHY_NOT = re.compile(
    r"Destination \w+ Unreachable|[Mm]essage too long, mtu=\d+|Time to live exceeded|Packet filtered"
    r"|Network is unreachable|Operation not permitted"
)


def _remarks(ping: PingRun) -> list[str]:
    """Return what of a ping is always said: that it has no statistics, what it lost, what came twice, damaged or short."""
    return [
        *([] if ping.ended else [NOT_ENDED]),
        *([f"{ping.lost} of {ping.transmitted} lost"] if ping.lost > 0 else []),
        *(
            [f"{ping.in_flight} of {ping.transmitted} still in flight as it ended"]
            if ping.in_flight
            else []
        ),
        *([f"{ping.duplicates} came twice"] if ping.duplicates else []),
        *([f"{ping.errors} answered by an error"] if ping.errors else []),
        *(
            [
                f"{ping.damaged} answered with other data than was sent: damaged, or another program's"
            ]
            if ping.damaged
            else []
        ),
        *([f"{ping.cut} answers cut short (truncated), without a time"] if ping.cut else []),
    ]


def _by_sender(
    found: Pieces, pieces: list[Piece], clients: list[Client], only: str | None
) -> dict[str, Piece]:
    """Which ping is which sender's; what is nobody's is left out."""
    taken: dict[str, Piece] = {}
    rest = []
    for piece in pieces:
        if _ping(piece).is_of_many:
            answered = f", of which {_ping(piece).answerers} answered" * (
                _ping(piece).answerers > 1
            )
            _leave_out(
                found,
                [piece],
                f"a ping to several hosts at once ({_ping(piece).address}){answered}, and of no path; bring one to the receiver's own address",
            )
            found.unread.append(found.left_out[-1])
        elif _ping(piece).received == 0:
            found.failed.append(
                f"{piece.path.name}: none of {_ping(piece).transmitted} pings came back"
                + (f" ({reason[0]})" if (reason := _WHY_NOT.search(piece.text)) else "")
            )
            _leave_out(found, [piece], "no ping came back")
        elif piece.node and piece.node not in taken:
            taken[piece.node] = piece
        else:
            rest.append(piece)
    wanted = [(client.node, client.peer) for client in clients]
    if only:
        wanted = [(only, next((peer for _, peer in wanted), None))]
    for node, peer in wanted:
        if node in taken:
            continue
        fits = [piece for piece in rest if peer is None or _ping(piece).address == peer]
        if not fits and len(wanted) == 1:
            ends = {end for client in clients for end in client.ends}
            fits = [piece for piece in rest if piece.node is None and _may_be_between(piece, ends)]
        if fits:
            taken[node] = fits[0]
            rest.remove(fits[0])
    for piece in rest:
        names = ", ".join(sorted(other.path.name for other in taken.values()))
        why = "one ping of each sender counts as the path's" + (f", here {names}" if names else f", and this is to {_ping(piece).address}")  # fmt: skip
        _leave_out(found, [piece], why)
    return taken


def _may_be_between(piece: Piece, ends: set[str]) -> bool:
    """Return whether a ping may be of the path between iperf3's ends: one to another address than theirs isn't."""
    address = _ping(piece).address
    return not ends or address in ends or re.fullmatch(r"[\d.]+|[0-9a-f:]*:[0-9a-f:]*", address) is None  # fmt: skip


def _leave_out(found: Pieces, pieces: Iterable[Piece], why: str) -> None:
    found.left_out += [f"{piece.path}: {why}" for piece in pieces]


def _queue(found: Pieces, layout: Layout) -> None:
    """Samples of a queue: those of the kind that the lab looks at, and of these the fullest."""
    place, pieces = layout.collect.queue, found.of("queue")
    if place is None:
        _leave_out(found, pieces, "this lab samples no queue")
        return
    of_kind = [piece for piece in pieces if not place.kind or place.kind in _kinds(piece)]
    _leave_out(
        found, (piece for piece in pieces if piece not in of_kind), f"no {place.kind} is in it"
    )
    of_kind.sort(key=lambda piece: (piece.node == place.node, _fullest(piece)))
    if not of_kind:
        layout.without(queue=None)
        layout.missing.append(
            "the queue, since there are no samples of it (tc -j -s qdisc, again and again)"
        )
        return
    piece = of_kind.pop()
    _leave_out(found, of_kind, f"the queue is taken from {piece.path}")
    node = place.node or piece.node or "queue"
    layout.put(node, place.file, piece.text)
    layout.used[piece.path] = f"{node}'s queue"
    if place.setup and not (layout.raw / node / place.setup).is_file():
        layout.within("queue", setup=None)


def _samples(piece: Piece) -> list[QdiscSample]:
    content = piece.content if isinstance(piece.content, tuple) else ()
    return [sample for sample in content if isinstance(sample, QdiscSample)]


def _kinds(piece: Piece) -> set[str]:
    return {qdisc.kind for sample in _samples(piece) for qdisc in sample.qdiscs}


def _fullest(piece: Piece) -> int:
    return max(
        (qdisc.backlog_bytes or 0 for sample in _samples(piece) for qdisc in sample.qdiscs),
        default=0,
    )


def _classes(lab: Lab, found: Pieces, layout: Layout) -> None:
    """tc's classes, on their node or on that of the qdiscs beside them: of two files those that have sent more."""

    def sent(piece: Piece) -> int:
        content = piece.content if isinstance(piece.content, tuple) else ()
        return sum(entry.sent_bytes or 0 for entry in content if isinstance(entry, TcClass))

    place = lab.file.collect.bottleneck
    for piece in sorted(found.of(TC_CLASSES.tool), key=sent):
        node = node_of_host(found, piece) or piece.host or (place.node if place else "node-1")
        layout.put(node, CLASSES, piece.text)
        layout.used.setdefault(piece.path, f"{node}'s tc classes")


def _snapshots(lab: Lab, found: Pieces, layout: Layout) -> None:
    """tc's counters before and after, and which interface the lab's bottleneck is."""
    shots = layout.snapshots
    for node, pair in shots.pairs.items():
        for when, text in pair.items():
            layout.put(node, f"qdisc.{when}.json", text)
    for path, words in shots.used.items():
        layout.used[path] = words
    _classes(lab, found, layout)
    place = lab.file.collect.bottleneck
    if place is None:
        return
    if shots.node is None or shots.device is None:
        layout.without(bottleneck=None)
        why = f"there is no tc -s qdisc of {place.node} with a {place.kind}"
        tools = () if shots.lacking else ("tc",)
        layout.missing.append(found.lacks("drops", shots.lacking or why, *tools))
    elif not (layout.raw / place.node / "addr.json").is_file():
        link = {"ifname": shots.device, "addr_info": [{"local": place.address}]}
        layout.put(place.node, "addr.json", json.dumps([link]))


def _capture(found: Pieces, tests: Tests, layout: Layout) -> None:
    """The router's capture, where one may be of the test; of another it is said what it holds."""
    place, pieces = layout.collect.capture, found.of("tcpdump")
    ports = {str(port) for client in tests.clients for port in client.ports}
    others = [piece for piece in pieces if not _frames(piece).may_be_of_a_test(ports)]
    layout.other_captures = {piece.path.name for piece in others}
    rest = [piece for piece in pieces if piece not in others]
    alone = not (rest or tests.clients or tests.servers or found.of("ss"))
    if place and rest:
        frames, name = _frames(rest[0]), rest[0].path.name
        layout.put(place.node, place.file, rest[0].text)
        layout.used[rest[0].path] = f"{place.node}'s tcpdump"
        if frames.kernel_drops:
            layout.used[rest[0].path] += (
                f" (not whole: {frames.kernel_drops} packets dropped by the kernel)"
            )
        if not frames.packet_bytes:
            why = f"no line of {name} shows how long its packet is (tcpdump -e does)"
            layout.missing.append(f"packets' sizes, since {why}")
        _leave_out(found, rest[1:], "one capture is looked at")
    elif place:
        layout.without(capture=None)
        for piece in others:
            layout.used[piece.path] = "tcpdump"
        held = [f"{piece.path.name} has {_frames(piece).holds}" for piece in others]
        why = "; ".join(held) or "there is no tcpdump -e of the router"
        layout.missing.append(found.lacks("packets' sizes", why, "tcpdump"))
        found.unread += layout.missing[-1:] if held and alone else []
        others = []
    else:
        _leave_out(found, rest, "this lab looks at no capture")
    for piece in others:
        _leave_out(found, [piece], f"it has {_frames(piece).holds}")
        found.unread += found.left_out[-1:] if alone else []


def _frames(piece: Piece) -> Frames:
    assert isinstance(piece.content, Frames)  # the tool is tcpdump
    return piece.content
