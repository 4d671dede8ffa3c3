"""ss's logs among the files: whose each is, and each in the one form that a run's has."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.lab import Collect
from measuretwice.measure.brought.clients import Client, Tests
from measuretwice.measure.brought.pieces import Piece, Pieces
from measuretwice.parse import SsSample
from measuretwice.parse.ss import one_line_each


@dataclass
class Sockets:
    """A node's samples by its name; `all` are all of them. `foreign` says of logs in which no connection is
    that iperf3 names, where one of those is missing; `unseen` are the clients whose it is."""

    texts: dict[str, str] = field(default_factory=dict)
    used: dict[Path, str] = field(default_factory=dict)
    all: tuple[SsSample, ...] = ()
    foreign: list[str] = field(default_factory=list)
    unseen: list[Client] = field(default_factory=list)


def seen_by_ss(found: Pieces, tests: Tests) -> frozenset[Path]:
    """Return the files of the clients whose connection is in some log of ss."""
    logs = [_ends(piece) for piece in found.of("ss")]
    return frozenset(
        client.piece.path for client in tests.clients if any(_has(ends, client) for ends in logs)
    )


def find_sockets(found: Pieces, tests: Tests, how: Collect) -> Sockets:
    """Return ss's logs by their nodes. What is left out is said in `found.left_out`."""
    result = Sockets()
    by_node: dict[str, list[Piece]] = defaultdict(list)
    seen = seen_by_ss(found, tests)
    result.unseen = [one for one in tests.clients if one.ports and one.piece.path not in seen]
    ports = {port for client in tests.clients for port in client.ports}
    named = ", ".join(str(port) for port in sorted(ports)[:3])
    one = how.ss.node if how.ss else None
    for piece in found.of("ss"):
        ends = _ends(piece)
        client = next((one for one in tests.clients if _has(ends, one)), None)
        if client is None and ports:
            found.left_out.append(
                f"{piece.path}: nothing of iperf3's connection (port {named}) is in it"
            )
            if result.unseen:
                result.foreign.append(
                    f"{piece.path.name} has nothing of iperf3's connection (port {named})"
                )
            continue
        by_node[
            piece.node or (client.node if client else _node_of(found, tests, piece, one))
        ].append(piece)
    for node, pieces in by_node.items():
        timed = [piece for piece in pieces if _begin_s(piece)]
        for piece in pieces:
            if timed and piece not in timed:
                found.left_out.append(
                    f"{piece.path}: a single look without its time, beside samples"
                )
        kept = sorted(timed or pieces, key=_begin_s)
        result.texts[node] = "".join(one_line_each(piece.text) for piece in kept)
        result.used |= {piece.path: node for piece in kept}
        result.all += tuple(sample for piece in kept for sample in _samples(piece))
    return result


def _samples(piece: Piece) -> list[SsSample]:
    content = piece.content if isinstance(piece.content, tuple) else ()
    return [sample for sample in content if isinstance(sample, SsSample)]


def _begin_s(piece: Piece) -> float:
    return next((sample.time_s for sample in _samples(piece)), 0.0)


def _ends(piece: Piece) -> frozenset[tuple[str, int | None]]:
    """The own ends of all connections in a log."""
    return frozenset(
        (socket.local_address.removeprefix("::ffff:"), socket.local_port)
        for sample in _samples(piece)
        for socket in sample.sockets
    )


def _has(ends: frozenset[tuple[str, int | None]], client: Client) -> bool:
    """Is a connection of this client in it? By address and port; behind a NAT by its port alone."""
    named = {
        (one.local_host.removeprefix("::ffff:"), one.local_port) for one in client.run.connections
    }
    return bool(named & ends) or bool(client.ports & {port for _, port in ends})


def _node_of(found: Pieces, tests: Tests, piece: Piece, one: str | None) -> str:
    """The node of a log where iperf3 names no ports: by its addresses, or the one that sends."""
    known = {found.owners[address] for address, _ in _ends(piece) if address in found.owners}
    senders = {client.node for client in tests.clients}
    for nodes in (known, senders):
        if len(nodes) == 1:
            return nodes.pop()
    return one or "client"
