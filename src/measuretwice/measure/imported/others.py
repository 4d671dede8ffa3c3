"""Tests of other tools than iperf3 among the files that were brought: each once, and of one run; and what hosts say of
themselves."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from measuretwice.lab import Value
from measuretwice.measure.imported.clients import Tests
from measuretwice.measure.imported.files import Piece, Pieces
from measuretwice.measure.transfers import instead_of
from measuretwice.parse import Iperf2Connection, PingRun, Qdisc, SsSample, TcClass
from measuretwice.parse.formats import DRIVER, SETTINGS, TC_CLASSES
from measuretwice.parse.host import Setting
from measuretwice.parse.netperf import BulkTest
from measuretwice.parse.ss_fields import SsSocket

# Tools whose tests are looked at where there is none of iperf3.
_SSH_PORT = 22
OTHERS = ("iperf2", "netperf", "flent")


def iperf2_connections(
    pieces: Pieces, tests: Tests, seconds: float
) -> tuple[list[Iperf2Connection], int]:
    """Return iperf 2's connections of one test, each once, by their receivers' word where there is one; and how
    many stood in two of the senders' files. Of several tests in a file, one after the other, the last one counts.
    `seconds` are how long a test was meant to last: one of rows alone is whole if they are of so many, which is said."""
    by_ends: dict[tuple[object, ...], Iperf2Connection] = {}
    sent: set[tuple[object, ...]] = set()
    copied = 0
    for piece in pieces.of("iperf2"):
        for connection in _last_of_several(pieces, tests, piece):
            lasts_s = connection.total.end_s
            if not (connection.has_total or connection.udp):
                pieces.say_of_rows(piece, lasts_s, seconds)
            if connection.udp or not connection.total.bytes:
                why = "a test of UDP" if connection.udp else "nothing was sent or received"
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


# A connection that carried less transferred nothing; nor did one whose window is as it began, where ss counts no bytes.
_DATA_BYTES = 100_000
_FIRST_WINDOW_SEGMENTS = 10


def set_idle_aside(pieces: Pieces, tests: Tests) -> None:
    """Leave out logs of ss in which no connection carried data, where no file is of a test."""
    if tests.clients or tests.broken or tests.servers or pieces.of("iperf3", *OTHERS):
        return
    for piece in pieces.of("ss"):
        content = piece.content if isinstance(piece.content, tuple) else ()
        sockets = [socket for sample in content if isinstance(sample, SsSample) for socket in sample.sockets]  # fmt: skip
        if not sockets or not all(map(_is_idle, sockets)):
            continue
        counts = [count for socket in sockets for count in _bytes(socket)]
        ssh = all(_SSH_PORT in (socket.local_port, socket.peer_port) for socket in sockets)
        whose = "these connections, which are ssh's" if ssh else "these connections"
        shown = (
            f"no data of a test flowed in {whose} ({max(counts)} B at most, by ss's own counts)"
            if counts
            else f"nothing shows that data flowed in {whose} (ss counts no bytes here)"
        )
        line = f"{piece.path}: {shown}: bring ss -tin of the sender while the test runs"
        pieces.pieces.remove(piece)
        pieces.left_out.append(line)
        pieces.unread.append(line)
        pieces.refused_as.append(("ss", piece.path.name))


def _bytes(socket: SsSocket) -> list[int]:
    counts = (socket.bytes_sent, socket.bytes_acked, socket.bytes_received)
    return [count for count in counts if count is not None]


def _is_idle(socket: SsSocket) -> bool:
    """Return whether a connection carried next to nothing, lost nothing and waited for no buffer."""
    troubles = (
        socket.retrans_total, socket.lost_segments, socket.rwnd_limited_ms, socket.sndbuf_limited_ms, socket.algorithm,
    )  # fmt: skip
    is_ssh = _SSH_PORT in (socket.local_port, socket.peer_port)
    counts = _bytes(socket)
    small = max(counts) < _DATA_BYTES if counts else (socket.cwnd_segments or 0) <= _FIRST_WINDOW_SEGMENTS  # fmt: skip
    waits = (socket.unacked_segments or 0) > _FIRST_WINDOW_SEGMENTS or "mptcp" in str(socket.flags)
    return (small or (is_ssh and not counts)) and not waits and not any(troubles)


# Features that make several segments one packet, as ethtool names them.
_BUNDLING = (
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
)
# A buffer that makes less than this part of the link's rate is too small for it.
ENOUGH = 0.9
# Of a host's settings these are told, since a program may have asked for others.
_TOLD = ("net.ipv4.tcp_congestion_control", "net.core.default_qdisc")
# What TCP's own settings must be for what a lab means, and what follows where they aren't.
_SWITCHES = {
    "net.ipv4.tcp_window_scaling": "no window is above 64 KiB (RFC 7323)",
    "net.ipv4.tcp_sack": "after several losses in a window TCP sends again what had arrived",
}


def whose(piece: Piece) -> str:
    """Return how the host of a file is named before what is its; nothing where nobody knows it."""
    host = piece.node or piece.host
    return f"{host}'s " if host else ""


def find_host_words(
    pieces: Pieces, used: dict[Path, str], params: Mapping[str, Value]
) -> Iterator[str]:
    """Yield what drivers' counts and hosts' settings say, as a finding's words; what is no finding is noted."""
    _note_odd_settings(pieces, params)
    drivers: dict[str | None, list[Piece]] = defaultdict(list)
    for piece in pieces.of(DRIVER.tool):
        if not any(map(int, re.findall(r": (\d+)[ \t]*$", piece.text, re.M))):
            pieces.left_out.append(
                f"{piece.path}: ethtool -S with each counter at 0: the card carried nothing since they began; bring ethtool -S of "
                "an interface of the path, before the test and after it"
            )
            pieces.unread.append(pieces.left_out[-1])
            continue
        drivers[piece.node or piece.host].append(piece)
        used[piece.path] = f"{whose(piece)}ethtool -S"
    for host, looks in drivers.items():
        yield from _by_driver(pieces, host, looks)
    for piece in pieces.of(SETTINGS.tool):
        used[piece.path] = f"{whose(piece)}settings"
        content = piece.content if isinstance(piece.content, tuple) else ()
        settings = [entry for entry in content if isinstance(entry, Setting)]
        on: dict[str, list[str]] = defaultdict(list)
        for setting in settings:
            if setting.name in _BUNDLING and setting.value.startswith("on"):
                on[setting.interface].append(setting.name)
        values = [f"{s.name} is {s.value}" for s in settings if s.name in _TOLD]
        pieces.notes += [f"{piece.path}: {', '.join(values)}"] * bool(values)
        pieces.notes += [
            f"{piece.path}: {', '.join(names)} on at {interface}: what tc and tcpdump show as one packet there may be several segments"
            for interface, names in on.items()
        ]
        yield from _by_settings(whose(piece), settings, params)


# No path of a test has a delay of as long.
_ABSURD_S = 10.0


def _note_odd_settings(pieces: Pieces, params: Mapping[str, Value]) -> None:
    """Note what tc prints and what can't be what the packets met, or limits nothing."""
    pings = [piece for piece in pieces.of("ping") if isinstance(piece.content, PingRun)]
    longest = [
        (run.rtt_max_ms, piece.path.name)
        for piece in pings
        if isinstance(run := piece.content, PingRun) and run.rtt_max_ms
    ]
    for piece in pieces.of("tc", TC_CLASSES.tool):
        for entry in piece.content if isinstance(piece.content, tuple) else ():
            for words in _odd(entry, max(longest, default=None), params.get("rate_mbit")):
                if (note := f"{piece.path}: {words}") not in pieces.notes:
                    pieces.notes.append(note)


def _odd(entry: object, longest: tuple[float, str] | None, rate: Value | None) -> Iterator[str]:
    """Yield what is odd about a qdisc or a class; `longest` is the longest time of any ping (ms), with its file."""
    if isinstance(entry, Qdisc):
        delay_s, table = entry.delay_s or 0, str(entry.options.get("linklayer"))
        if longest and delay_s > _ABSURD_S and longest[0] < 1e3 * delay_s:
            yield (
                f"tc prints a delay of {delay_s:g} s for {entry.kind}, and no answer in {longest[1]} took more than "
                f"{longest[0]:g} ms"
            )
        if table.startswith(("atm", "adsl")):
            yield (
                f"{entry.kind} on {entry.dev or 'its interface'} counts whole cells of ATM (linklayer {table}), of which at "
                "most 48 bytes in 53 are a packet's"
            )
    elif isinstance(entry, TcClass) and isinstance(rate, int | float):
        most_bps = max(entry.rate_bps or 0, entry.ceil_bps or 0)
        if most_bps > 1.05e6 * rate:
            yield (
                f"the class {entry.handle} may send up to {most_bps / 1e6:g} Mbit/s (tc), more than the {rate:g} that were "
                "set, so that it isn't what limits"
            )


def _by_driver(pieces: Pieces, host: str | None, looks: list[Piece]) -> Iterator[str]:
    """Yield what a card lost while the test was on; of one look alone it is noted."""
    counts = sorted(
        (look.content for look in looks if isinstance(look.content, dict)),
        key=lambda content: sum(content.values()),
    )
    first, last = counts[0] if len(counts) > 1 else {}, counts[-1]
    grown = {name: count - first.get(name, 0) for name, count in last.items()}
    words = ", ".join(f"{name} {count}" for name, count in grown.items() if count > 0)
    if len(counts) == 1:
        since = "since these counters began, which may be long before the test"
        pieces.notes.append(f"{looks[0].path}: {words or 'no error and no drop'} {since}")
    elif words:
        card = f"{host}'s card" if host else "a card"
        yield (
            f"interface-drops\t{card} lost packets while the test was on: {words} (ethtool -S)\tnone\t"
            "No qdisc's counters have these losses."
        )


def _by_settings(
    of_host: str, settings: list[Setting], params: Mapping[str, Value]
) -> Iterator[str]:
    """Yield where a buffer is too small for rate times round-trip time, a switch is off, or a link is slower than was meant."""
    rate, rtt_ms = params.get("rate_mbit"), params.get("rtt_ms")
    named = {setting.name: setting.value for setting in settings}
    for name, follows in _SWITCHES.items():
        if named.get(name) == "0":
            yield f"configuration\t{of_host}{name} is 0 (sysctl)\t1\tThen {follows}."
    speed = named.get("Speed", "").removesuffix("Mb/s")
    if isinstance(rate, int | float) and speed.isdecimal() and int(speed) < ENOUGH * rate:
        yield (
            f"configuration\t{of_host}link has {speed} Mbit/s (ethtool)\t{rate:g} Mbit/s\t"
            "The card and its switch agreed on less than was meant: look at the cable, and at what both may do."
        )
    if named.get("Duplex") == "Half":
        yield (
            f"configuration\t{of_host}link is half duplex (ethtool)\tfull duplex\t"
            "Data and acknowledgements then wait for each other, and collide."
        )
    if not isinstance(rate, int | float) or not isinstance(rtt_ms, int | float) or not rtt_ms:
        return
    for name, set_bytes in (
        ("net.ipv4.tcp_rmem", params.get("rmem_max_bytes")),
        ("net.ipv4.tcp_wmem", params.get("wmem_max_bytes")),
    ):
        words = named.get(name, "").split()
        if len(words) != 3 or not words[2].isdecimal() or words[2] == str(set_bytes):
            continue
        most_mbit = 8e-3 * int(words[2]) / rtt_ms
        if most_mbit < ENOUGH * rate:
            yield (
                f"receive-window\t{of_host}{name} is at most {words[2]} B (sysctl), which at {rtt_ms:g} ms is "
                f"{most_mbit:.3g} Mbit/s or less\troom for {rate:g} Mbit/s times {rtt_ms:g} ms, "
                f"{1e3 * rate * rtt_ms / 8:.0f} B\tThe buffer, not the link, limits a flow then."
            )
