"""Tests of other tools than iperf3 among the files that were brought: each once, and of one run."""

from __future__ import annotations

import math
from dataclasses import replace

from measuretwice.measure.imported.clients import Tests
from measuretwice.measure.imported.files import Piece, Pieces
from measuretwice.measure.transfers import instead_of
from measuretwice.parse import Iperf2Connection
from measuretwice.parse.iperf3_text import NO_TOTALS, WHOLE_RATIO
from measuretwice.parse.netperf import BulkTest

# Tools whose tests are looked at where there is none of iperf3.
OTHERS = ("iperf2", "netperf", "flent")


def iperf2_connections(
    pieces: Pieces, tests: Tests, seconds: float
) -> tuple[list[Iperf2Connection], int]:
    """Return iperf 2's connections of one test, each once, by their receivers' word where there is one; and how
    many stood in two of the senders' files. Of several tests in a file, one after the other, the last one counts.
    `seconds` are how long a test was meant to last: one of rows alone is whole if they are of so many."""
    by_ends: dict[tuple[object, ...], Iperf2Connection] = {}
    sent: set[tuple[object, ...]] = set()
    copied = 0
    for piece in pieces.of("iperf2"):
        for connection in _last_of_several(pieces, tests, piece):
            lasts_s = connection.total.end_s
            is_part = not connection.has_total and lasts_s < WHOLE_RATIO * seconds
            if not (connection.has_total or is_part or connection.udp):
                note = f"{piece.path}: {NO_TOTALS}, so that its rows are summed"
                pieces.notes += [note] if note not in pieces.notes else []
            if connection.udp or not connection.total.bytes or is_part:
                why = "a test of UDP" if connection.udp else "nothing was sent or received"
                if is_part and not connection.udp:
                    why = f"{NO_TOTALS}; its rows end after {lasts_s:g} s"
                line = f"{piece.path}: {why}{instead_of(why)}"
                if line not in pieces.left_out:
                    tests.unfit.append(f"{piece.path.name}: {why}")
                    pieces.left_out.append(line)
                continue
            ends = (
                connection.from_address,
                connection.from_port,
                connection.to_address,
                connection.to_port,
            )
            if not connection.server:
                sent.add(ends)
            other = by_ends.get(ends)
            if other is not None and other.server == connection.server:
                copied += 1
            elif other is None or connection.server:
                by_ends[ends] = connection
    # Other tests that the server served.
    return [by_ends[ends] for ends in by_ends if not sent or ends in sent], copied


def _last_of_several(pieces: Pieces, tests: Tests, piece: Piece) -> list[Iperf2Connection]:
    """Return a file's connections, of its senders' only those of the last test where it has several."""
    content = piece.content if isinstance(piece.content, tuple) else ()
    connections = _one_way(
        pieces, tests, piece, [ends for ends in content if isinstance(ends, Iperf2Connection)]
    )
    senders = [ends for ends in connections if not ends.server]
    alone = len(pieces.of("iperf2", "iperf3")) == 1
    groups: list[list[Iperf2Connection]] = [[]]
    end = math.inf
    for ends in senders or (connections if alone else []):
        begin, last = ends.span or (-math.inf, math.inf)
        if groups[-1] and begin >= end:
            groups.append([])
            end = math.inf
        groups[-1].append(ends)
        end = min(end, last)
    if len(groups) == 1:
        return connections
    tests.sequences.append(f"{len(groups)} tests, one after another, in {piece.path.name}")
    pieces.notes.append(
        f"{piece.path}: of the {len(groups)} tests in it only the last is looked at"
    )
    return groups[-1] + [ends for ends in connections if ends.server and senders]


def _one_way(
    pieces: Pieces, tests: Tests, piece: Piece, connections: list[Iperf2Connection]
) -> list[Iperf2Connection]:
    """Return a file's connections without those back to its own client (-r, -d): there the same host sends and serves."""
    senders = [ends for ends in connections if not ends.server]
    hosts = {
        (ends.from_address, ends.to_address)
        for ends in senders
        if ends.from_address != ends.to_address
    }
    back = [
        ends
        for ends in connections
        if ends.server and (ends.to_address, ends.from_address) in hosts
    ]
    if not back:
        return connections
    last = max((ends.span[1] for ends in senders if ends.span), default=math.inf)
    if any(ends.span and ends.span[0] < last for ends in back):
        why = "a test in both directions at once (-d): each is in the other's way"
        tests.unfit.append(f"{piece.path.name}: {why}")
        pieces.left_out.append(f"{piece.path}: {why}{instead_of('both directions')}")
        return []
    rate = sum(
        8 * ends.total.bytes / max(ends.total.end_s - ends.total.start_s, 1e-3) for ends in back
    )
    pieces.notes.append(
        f"{piece.path}: a test of two directions, one after the other (-r): the client's way is looked at, the way back "
        f"({rate / 1e6:.4g} Mbit/s) isn't"
    )
    return [ends for ends in connections if ends not in back]


def bulk_tests(pieces: Pieces, tests: Tests) -> list[BulkTest]:
    """Return the tests of netperf and flent, of several in a file the last."""
    fit: list[BulkTest] = []
    parts: list[BulkTest] = []
    for piece in pieces.of("netperf", "flent"):
        content = piece.content if isinstance(piece.content, tuple) else ()
        bulk = [test for test in content if isinstance(test, BulkTest)]
        good = [test for test in bulk if not test.unfit and test.rate_bps]
        if len(good) > 1:
            tests.sequences.append(f"{len(good)} tests, one after another, in {piece.path.name}")
            pieces.notes.append(
                f"{piece.path}: of the {len(good)} tests in it only the last is looked at"
            )
        if good and not all(test.is_part for test in good):
            fit.append(good[-1])
        elif good:
            parts.append(good[-1])
        elif bulk:
            problem = bulk[-1].unfit or "0 bit/s: nothing was sent"
            tests.unfit.append(f"{piece.path.name}: {problem}")
            pieces.left_out.append(f"{piece.path}: {problem}{instead_of(problem)}")
    if len(fit) == len(parts) == 1 and not fit[0].rows:
        return [replace(fit[0], rows=parts[0].rows)]
    return fit or parts
