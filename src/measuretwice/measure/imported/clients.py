"""The tests that were brought: each iperf3 client once, on its node, fit or not, of one run or of several; and the
logs of ss, each to the client whose connections it has."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from measuretwice.lab.schema.network import Collect
from measuretwice.measure.host_state import why_unfit
from measuretwice.measure.imported.files import Piece, Pieces
from measuretwice.measure.transfers import instead_of
from measuretwice.parse import (
    UNIX_TIME_S,
    Iperf3Run,
    SsSample,
    parse_iperf3_json,
    parse_ss_samples,
)
from measuretwice.parse.iperf3_text import NO_TOTALS, from_rows, left_out_of, parse_abridged
from measuretwice.parse.ss import NO_ADDRESSES
from measuretwice.parse.wrapping import complaints, is_json, turned_round

# Zones of time differ by whole quarters of an hour; whoever starts ss and iperf3 by hand does so within two minutes.
ZONE_S = 900.0
SAME_BEGIN_S = 120.0
# Two clients' clocks may differ by so much.
SAME_TIME_S = 1.0
# iperf3's control connection carries less: some hundred bytes at its begin, and a JSON of results at its end.
CONTROL_BYTES = 20_000
MOST_RATES = 6
_TWO_PORTS = re.compile(r"\S+:(\d+)\s+\S+:(\d+)\b")


@dataclass(frozen=True)
class Client:
    """One test as its client tells it, and the node that is taken for the sender's. Of a test in which the server
    sent (-R) both ends are `turned`: text, ports and addresses are as if the sender had been the client."""

    piece: Piece
    run: Iperf3Run
    node: str
    turned: bool = False

    @property
    def ports(self) -> set[int]:
        return {connection.local_port for connection in self.run.connections}

    @property
    def peer(self) -> str | None:
        """The address that it sent to."""
        return next((connection.remote_host for connection in self.run.connections), None)

    @property
    def ends(self) -> set[str]:
        """The addresses that it sent from and to."""
        return {
            end for connection in self.run.connections for end in (connection.local_host, connection.remote_host) if end
        }  # fmt: skip

    @property
    def span_s(self) -> tuple[float, float] | None:
        """When it was on, as Unix times; None where it doesn't say."""
        begin_s = self.run.start_time_s
        if begin_s is None:
            return None
        ends = [interval.end_s for interval in self.run.intervals]
        return begin_s, begin_s + max(ends, default=self.run.sent_seconds or 0.0)


@dataclass
class Tests:
    """`clients` are those that are checked, `broken` those that broke off after some rows; `unfit` says of others why they can't be, `runs` which runs
    are in the files where these are several, `sequences` which of iperf 2's files have several."""

    clients: list[Client] = field(default_factory=list)
    broken: list[Client] = field(default_factory=list)
    servers: list[tuple[Piece, Iperf3Run]] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    runs: list[list[Client]] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)


def find_tests(found: Pieces, sender: str | None, seconds: float) -> Tests:
    """Return the tests among the files. `sender` is the one node that sends, where a lab has only one; `seconds` are how
    long they were meant to last.

    What is left out is said in `found.left_out`.
    """
    tests = Tests(unfit=list(found.failed))
    seen: dict[tuple[object, ...], Client] = {}
    clients = sorted(found.iperf3(server=False), key=lambda pair: pair[1].start_time_s is None)
    for piece, run in clients:
        whole = from_rows(run)
        if problem := problem_of(whole):
            tests.unfit.append(f"{piece.path.name}: {problem}")
            found.left_out.append(f"{piece.path}: {problem}{instead_of(problem)}")
            if run.error and run.intervals and not why_unfit(run.protocol, run.bidirectional):
                tests.broken.append(_client(found, piece, run, sender, math.inf))
            continue
        if whole is not run:
            found.say_of_rows(piece, whole.sent_seconds or 0.0, seconds)
        found.notes += [f"{piece.path}: {lacks}" for lacks in left_out_of(piece.text, run)]
        client = _client(found, piece, run, sender, seconds)
        run = client.run
        ends = tuple(
            (named.local_host, named.local_port, named.remote_host, named.remote_port)
            for named in run.connections
        )
        if ends and ends in seen:
            why = f"the same connections as in {seen[ends].piece.path}; they count once"
            found.left_out.append(f"{piece.path}: {why}")
            continue
        seen[ends or (piece.path,)] = client
        tests.clients.append(client)
    tests.clients.sort(key=lambda client: (client.node, str(client.piece.path)))
    return tests


def _client(
    pieces: Pieces, piece: Piece, run: Iperf3Run, sender: str | None, seconds: float
) -> Client:
    turned = bool(run.reverse)
    if turned:
        text = turned_round(piece.text)
        run = (parse_iperf3_json if is_json(text) else parse_abridged)(text, piece.path.name)
        # Its folder is of the node on which the client ran, which received; and the lab's sender is whoever sends.
        piece = replace(piece, text=text, node=sender)
    return Client(piece, from_rows(run), node_of(pieces, piece, run, sender), turned=turned)


def keep_one_run(
    found: Pieces, tests: Tests, seen: Set[Path], pattern: str | None, seconds: float
) -> None:
    """Leave out what is of another run, or no flow of the lab's, and find the servers' word on the rest.

    `seen` are the clients whose connections are in some log of ss, by their files; `pattern` is how the
    lab calls its flows' files. A client that neither is called so, while others are, nor was looked at by
    ss was never one of the lab's flows.
    """
    _one_run(found, tests, seen)
    ours = [client for client in tests.clients if _is_called(client, pattern)]
    for client in [*tests.clients] if ours else []:
        if client not in ours and client.piece.path not in seen:
            tests.clients.remove(client)
            found.left_out.append(
                f"{client.piece.path}: no ss looked at its connection, and this lab's flows are "
                f"called {pattern}"
            )
    tests.servers = _served(found, tests, seconds)


def _is_called(client: Client, pattern: str | None) -> bool:
    return pattern is not None and fnmatchcase(client.piece.path.name, f"*{pattern}")


def problem_of(run: Iperf3Run) -> str | None:
    """Say why nothing can be concluded from a test; None where it is one of TCP, run to its end."""
    if problem := (run.error in (None, NO_TOTALS) and why_unfit(run.protocol, run.bidirectional)):
        return problem
    if run.error:
        end_s = max((row.end_s for row in run.intervals), default=0.0)
        early = end_s < (run.duration_s or math.inf) and (end_s > 0 or "interrupt" in run.error)
        asked = f" of {run.duration_s:g} s" if run.duration_s else ""
        rows = f"; its rows end after {end_s:.4g} s{asked}" if end_s else "; no row was printed"
        rows = rows if early else ""
        who = "" if run.error == NO_TOTALS else "iperf3 says: "
        return f"{who}{run.error.rstrip(': ')}{rows}"
    if run.sent_bytes == 0:
        before = run.omitted_bytes or 0
        omit_s = max((row.end_s for row in run.intervals if row.omitted), default=run.omit_s or 0)
        left_out = f", after {before / 1e6:.4g} MB in the {omit_s:g} s that -O leaves out"
        nothing = f"0 bit/s: nothing was sent in the {run.sent_seconds or 0:.4g} s that count"
        return nothing + (left_out if before else "")
    known = run.sent_bytes if run.received_bytes is None or run.server else 0
    if not (run.received_bytes or known):
        return "no line reports anything received"
    if (run.received_rate_bps if run.received_bytes else run.sent_rate_bps) is None:
        return "iperf3 has no number for the rate (nan)"
    return None


def node_of(found: Pieces, piece: Piece, run: Iperf3Run, sender: str | None) -> str:
    """The client's node: by its folder, its name, its address; else a name of its own, by its address."""
    if piece.node:
        return piece.node
    local = run.connections[0].local_host if run.connections else ""
    # It becomes a folder's name: what is in a file from outside may not say where.
    own = re.sub(r"[^\w.:-]", "_", local or piece.path.stem)
    return found.owners.get(local) or sender or f"client-{own}"


def _served(found: Pieces, tests: Tests, seconds: float) -> list[tuple[Piece, Iperf3Run]]:
    """The servers' word on the tests that are checked; on others where there is no client's at all."""
    ports = {port for client in tests.clients for port in _both_ports(client.run)}
    served = []
    for piece in found.of("iperf3"):
        if piece.content == () and (words := complaints(piece.text)):
            never = f"no test took place; iperf3's server says: {words[-1]}"
            tests.unfit.append(f"{piece.path.name}: {never}")
            found.left_out.append(f"{piece.path}: {never}")
        elif piece.content == ():
            found.left_out.append(f"{piece.path}: an iperf3 server to which nobody came")
    for piece, run in found.iperf3(server=True):
        whole = from_rows(run)
        if whole is not run and not tests.clients:
            found.say_of_rows(piece, whole.sent_seconds or whole.received_seconds or 0.0, seconds)
        run = whole
        if (
            tests.clients
            and not _both_ports(run) & ports
            and any(client.ports for client in tests.clients)
        ):
            found.left_out.append(f"{piece.path}: a test that no client's file here speaks of")
        elif not tests.clients and (problem := problem_of(run)):
            tests.unfit.append(f"{piece.path.name}: {problem}")
            found.left_out.append(f"{piece.path}: {problem}")
        else:
            served.append((piece, run))
    return served if tests.clients else _last_served(found, tests, served)


def _last_served(
    pieces: Pieces, tests: Tests, served: list[tuple[Piece, Iperf3Run]]
) -> list[tuple[Piece, Iperf3Run]]:
    """A server has one test after the other: of those in its file the last, where no client's file says which."""
    by_file: dict[Path, list[tuple[Piece, Iperf3Run]]] = defaultdict(list)
    for piece, run in served:
        by_file[piece.file or piece.path].append((piece, run))
    for path, several in by_file.items():
        if len(several) > 1:
            rates = [(run.received_rate_bps or run.sent_rate_bps or 0) / 1e6 for _, run in several]
            shown = ", ".join(f"{rate:.4g}" for rate in rates[-MOST_RATES:])
            tests.sequences.append(
                f"{len(several)} tests, one after another, in {path.name} ({shown} Mbit/s), of which the last is looked at"
            )
            only = f"of the {len(several)} tests in it only the last is looked at"
            pieces.notes.append(f"{path}: {only}")
    return [several[-1] for several in by_file.values()]


def _both_ports(run: Iperf3Run) -> set[frozenset[int]]:
    return {frozenset((ends.local_port, ends.remote_port)) for ends in run.connections}


def _one_run(found: Pieces, tests: Tests, seen: Set[Path]) -> None:
    """Where the clients never were there at once, the files are of several runs: the one that ss looked
    at is kept, or the last.

    A client that doesn't say when it began is taken for one of the run that is kept.
    """
    groups: list[list[Client]] = []
    timed = [client for client in tests.clients if client.span_s]
    timed.sort(key=lambda client: client.span_s or ())
    end_s = 0.0
    for client in timed:
        begin_s, last_s = client.span_s or (0.0, 0.0)
        if not groups or begin_s > end_s - SAME_TIME_S:
            groups.append([])
            end_s = last_s
        groups[-1].append(client)
        end_s = min(end_s, last_s)
    files = [client.piece.file for client in tests.clients if client.span_s is None]
    # One file has one test after the other, also where nothing says when.
    groups += [
        [client]
        for client in tests.clients
        if client.span_s is None and client.piece.file and files.count(client.piece.file) > 1
    ]
    if len(groups) < 2:
        return
    tests.runs = groups
    kept = max(
        reversed(groups), key=lambda group: sum(client.piece.path in seen for client in group)
    )
    others = [client for group in groups if group is not kept for client in group]
    for client in others:
        found.left_out.append(f"{client.piece.path}: of another run than {kept[0].piece.path}")
    tests.clients = [client for client in tests.clients if client not in others]


def name_ends(found: Pieces, tests: Tests) -> None:
    """Give a log of ss that was kept without its addresses those of the one connection that iperf3 names."""
    ends = [ends for client in tests.clients for ends in client.run.connections]
    if len(ends) != 1:
        return
    (named,) = ends
    pair = f" {named.local_host}:{named.local_port} {named.remote_host}:{named.remote_port} "
    for index, piece in enumerate(found.pieces):
        if piece.tool == "ss" and (text := piece.text.replace(NO_ADDRESSES, pair)) != piece.text:
            content = parse_ss_samples(text, piece.path.name)
            found.pieces[index] = replace(piece, text=text, content=content)


@dataclass
class Sockets:
    """A node's samples by its name; `all` are all of them. `foreign` says of logs in which no connection is
    that iperf3 names, where one of those is missing; `unseen` are the clients whose it is. `timeless` are the logs of
    which no line says when."""

    texts: dict[str, str] = field(default_factory=dict)
    used: dict[Path, str] = field(default_factory=dict)
    all: tuple[SsSample, ...] = ()
    foreign: list[str] = field(default_factory=list)
    unseen: list[Client] = field(default_factory=list)
    timeless: list[str] = field(default_factory=list)


def seen_by_ss(found: Pieces, tests: Tests) -> frozenset[Path]:
    """Return the files of the clients whose connection is in some log of ss."""
    logs = [_ends(piece) for piece in found.of("ss")]
    return frozenset(
        client.piece.path
        for client in tests.clients
        if any(any(_in_common(ends, client)) for ends in logs)
    )


def find_sockets(found: Pieces, tests: Tests, how: Collect) -> Sockets:
    """Return ss's logs by their nodes. What is left out is said in `found.left_out`."""
    result = Sockets()
    by_node: dict[str, list[Piece]] = defaultdict(list)
    seen = seen_by_ss(found, tests)
    result.unseen = [
        client for client in tests.clients if client.ports and client.piece.path not in seen
    ]
    ports = {port for client in tests.clients for port in client.ports}
    named = ", ".join(str(port) for port in sorted(ports)[:3])
    begin = len(found.left_out)
    sender = how.ss.node if how.ss else None
    for piece in (_without_control(piece, tests) for piece in found.of("ss")):
        samples = _samples(piece)
        if not any(socket.rtt_ms for sample in samples for socket in sample.sockets):
            found.left_out.append(
                f"{piece.path}: ss without -i, so that it has addresses and queues alone: bring ss -tin"
                if any(sample.sockets for sample in samples)
                else f"{piece.path}: ss found no connection of TCP"
            )
            continue
        ends = _ends(piece)
        client = _client_of(ends, tests)
        if client is None and _client_of(_ends(piece, far=True), tests):
            found.left_out.append(
                f"{piece.path}: the receiver's end of iperf3's connection (port {named}); windows, round trips and "
                "retransmitted segments are the sender's: bring ss -tin of the sender"
            )
            continue
        if client is None and ports:
            what = _what_else(piece, tests, named)
            found.left_out.append(f"{piece.path}: it {what}")
            if result.unseen:
                result.foreign.append(f"{piece.path.name} {what}")
            continue
        node = client.node if client and client.turned else piece.node
        node = node or (client.node if client else _node_of(found, tests, piece, sender))
        by_node[node].append(piece)
    if not by_node:
        # Brought in vain.
        found.unread += found.left_out[begin:]
    for node, pieces in by_node.items():
        timed = [piece for piece in pieces if _begin_s(piece)]
        for piece in pieces:
            if timed and piece not in timed:
                found.left_out.append(
                    f"{piece.path}: a single look without its time, beside samples"
                )
        kept = sorted(timed or pieces, key=_begin_s)
        result.timeless += [
            piece.path.name for piece in kept if len(_samples(piece)) > 1 and not _begin_s(piece)
        ]
        result.texts[node] = "".join(_text(piece, tests) for piece in kept)
        result.used |= {piece.path: node for piece in kept}
        result.all += tuple(sample for piece in kept for sample in _samples(piece))
    return result


def _what_else(piece: Piece, tests: Tests, named: str) -> str:
    """Say of a log that lacks iperf3's connection what it has: another one to the same server that carried next to
    nothing is the one for control."""
    servers = {
        (client.peer, ends.remote_port)
        for client in tests.clients
        for ends in client.run.connections
    }
    sockets = [
        socket
        for sample in _samples(piece)
        for socket in sample.sockets
        if (socket.peer_address.removeprefix("::ffff:"), socket.peer_port) in servers
    ]
    least = max((socket.bytes_acked or 0 for socket in sockets), default=CONTROL_BYTES)
    if least < CONTROL_BYTES:
        others = ", ".join(sorted({str(socket.local_port) for socket in sockets})[:3])
        return (
            f"has only iperf3's control connection (port {others}), and not the one with the data (port {named}): "
            "let ss print all that goes to the server's port"
        )
    return f"has nothing of iperf3's connection (port {named})"


def _without_control(piece: Piece, tests: Tests) -> Piece:
    """A log without iperf3's control connection, where that has the port of a server that sent (-R)."""
    pairs = {
        (ends.local_port, ends.remote_port)
        for client in tests.clients
        if client.turned
        for ends in client.run.connections
    }
    ports = {local for local, _ in pairs}
    content = tuple(
        replace(
            sample,
            sockets=tuple(
                socket
                for socket in sample.sockets
                if socket.local_port not in ports or (socket.local_port, socket.peer_port) in pairs
            ),
        )
        for sample in _samples(piece)
    )
    if content == piece.content:
        return piece

    def is_data(line: str) -> bool:
        ends = _TWO_PORTS.search(line)
        return ends is None or int(ends[1]) not in ports or (int(ends[1]), int(ends[2])) in pairs

    lines = piece.text.splitlines(keepends=True)
    return replace(piece, content=content, text="".join(filter(is_data, lines)))


def _text(piece: Piece, tests: Tests) -> str:
    """A log's text; where its times are of no day, as near to its client's as whole quarters of an hour (time zones)
    bring them, and where these don't, as if it had begun with the client."""
    client = _client_of(_ends(piece), tests)
    if client is None or client.span_s is None or not 0 < _begin_s(piece) < UNIX_TIME_S:
        return piece.text
    late_s = client.span_s[0] - _begin_s(piece)
    zone_s = round(late_s / ZONE_S) * ZONE_S
    # So early a time is no time of day, but one since the log's own start.
    of_day = _begin_s(piece) > SAME_BEGIN_S and abs(late_s - zone_s) <= SAME_BEGIN_S
    shift_s = zone_s if of_day else late_s
    began = re.compile(r"^# t=([\d.]+)", re.MULTILINE)
    return began.sub(lambda mark: f"# t={float(mark[1]) + shift_s:.9f}", piece.text)


def _samples(piece: Piece) -> list[SsSample]:
    content = piece.content if isinstance(piece.content, tuple) else ()
    return [sample for sample in content if isinstance(sample, SsSample)]


def _begin_s(piece: Piece) -> float:
    """When a log begins; 0 where no line says when."""
    return next((sample.time_s for sample in _samples(piece) if sample.time_s), 0.0)


def _ends(piece: Piece, *, far: bool = False) -> frozenset[tuple[str, int | None]]:
    """The own ends of all connections in a log, or their far ends."""
    ends = (
        (socket.peer_address if far else socket.local_address, socket.peer_port if far else socket.local_port)
        for sample in _samples(piece)
        for socket in sample.sockets
    )  # fmt: skip
    return frozenset((address.removeprefix("::ffff:"), port) for address, port in ends)


def _client_of(ends: frozenset[tuple[str, int | None]], tests: Tests) -> Client | None:
    """The client that has the most of these connections: two hosts may have the same port by chance."""
    client = max(tests.clients, key=lambda client: _in_common(ends, client), default=None)
    return client if client and any(_in_common(ends, client)) else None


def _in_common(ends: frozenset[tuple[str, int | None]], client: Client) -> tuple[int, int]:
    """How many connections of this client are in it: by address and port; and, behind a NAT, by port alone."""
    named = {
        (connection.local_host.removeprefix("::ffff:"), connection.local_port)
        for connection in client.run.connections
    }
    return len(named & ends), len(client.ports & {port for _, port in ends})


def _node_of(found: Pieces, tests: Tests, piece: Piece, sender: str | None) -> str:
    """The node of a log where iperf3 names no ports: by its addresses, or the one that sends."""
    known = {found.owners[address] for address, _ in _ends(piece) if address in found.owners}
    senders = {client.node for client in tests.clients}
    for nodes in (known, senders):
        if len(nodes) == 1:
            return nodes.pop()
    return sender or "client"
