"""Files that a person brings, from any testbed: what is each, and what does it say?

Names and order don't matter: a file is known by its content. All that are of one run are laid out as a
run's own raw folder and read as that is. What can't be read is named, what can't be looked at for
lack of a file too, and the rest is used.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.network import Collect
from measuretwice.measure import fields
from measuretwice.measure.fields import Measured
from measuretwice.measure.flows import read_flows
from measuretwice.measure.host_state import HostState, read_host_state
from measuretwice.measure.imported.clients import (
    Tests,
    find_tests,
    keep_one_run,
    name_ends,
    seen_by_ss,
)
from measuretwice.measure.imported.counters import DATA_BYTES, Snapshots, counters_of
from measuretwice.measure.imported.files import MAX_FILE_BYTES as MAX_FILE_BYTES
from measuretwice.measure.imported.files import MAX_FILES as MAX_FILES
from measuretwice.measure.imported.files import (
    SNAPSHOT,
    Pieces,
    TextFile,
    own_names,
    read_pieces,
    read_texts,
    unreadable,
)
from measuretwice.measure.imported.files import tidy as tidy
from measuretwice.measure.imported.layout import Layout, lay_out
from measuretwice.measure.imported.others import (
    OTHERS,
    bulk_tests,
    iperf2_connections,
    set_idle_aside,
)
from measuretwice.measure.run import (
    from_bulk,
    from_counts,
    from_frames,
    from_iperf2,
    from_iperf3,
    from_ping,
    from_samples,
    read_totals,
)
from measuretwice.measure.transfers import all_together, of_bulk, of_iperf2, of_iperf3
from measuretwice.parse import (
    Frames,
    Iperf2Connection,
    Iperf3Run,
    ParseError,
    PingRun,
    Qdisc,
    SsSample,
)
from measuretwice.parse.formats import NO_TOOL
from measuretwice.parse.netperf import BulkTest

# What reading files that somebody has written into can raise.
BROKEN = (
    ParseError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    ArithmeticError,
)
IPV6_HEADER_BYTES = 40
# A ping whose times have longer steps, as Windows' of 1 ms, says no more of a path than that.
FINE_MS = 0.05
# What ss counts, summed over the flows.
OF_ALL = ("bytes_acked", "data_segs_out", "retrans_total")
WANTED = {
    "iperf3": "iperf3's JSON or text",
    "ss": "ss -ti",
    "tc": "tc -s qdisc show, on the router",
    "ping": "ping",
}
__all__ = [
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "ImportedFiles",
    "TextFile",
    "busiest_port",
    "from_texts",
    "read_files",
    "tidy",
    "unreadable",
]


@dataclass
class ImportedFiles:
    """What was found. `used` has each file with what it was taken for, in order, `refused` what was left out
    and why, `missing` what isn't looked at, since there is no file for it; `tools` the files by tool. `unread` are
    those lines of the two by which something was brought in vain, since it can't be read. `notes` are lines on files that
    are used."""

    measured: Measured = field(default_factory=dict)
    host_state: HostState | None = None
    used: dict[str, str] = field(default_factory=dict)
    tools: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_files(
    paths: list[Path], lab: Lab | None = None, params: Mapping[str, Value] | None = None
) -> ImportedFiles:
    """Read files and folders of files, as of a run of `lab` with these settings where one is given.

    UserError where nothing at all can be used.
    """
    texts, left_out = read_texts(paths)
    return from_texts(texts, left_out, lab, params)


def from_texts(
    texts: list[TextFile],
    left_out: list[str],
    lab: Lab | None = None,
    params: Mapping[str, Value] | None = None,
) -> ImportedFiles:
    """As `read_files`, of texts that have been read already."""
    found = read_pieces(lab, texts, left_out)
    seconds = float((params or {}).get("duration_s") or math.inf)
    tests = find_tests(found, _only_sender(lab, len([*found.iperf3(server=False)])), seconds)
    name_ends(found, tests)
    keep_one_run(found, tests, seen_by_ss(found, tests), _flows_name(lab), seconds)
    connections, copied = iperf2_connections(found, tests, seconds)
    bulk = bulk_tests(found, tests)
    if not found.pieces and not tests.unfit:
        reason = left_out[0] if left_out else "there are no files"
        raise UserError(f"nothing here can be checked: {reason}")
    set_idle_aside(found, tests)
    imported = ImportedFiles(refused=found.left_out, unread=found.unread, notes=found.notes)
    for piece in found.pieces:
        imported.tools.setdefault(piece.tool, []).append(str(piece.path))
    if lab is not None and params is not None:
        with tempfile.TemporaryDirectory(prefix="measuretwice-brought-") as folder:
            layout = lay_out(lab, found, tests, Path(folder), params)
            _measure(lab, params, found, tests, layout, imported)
    else:
        _measure_without_lab(found, tests, imported)
    _add_iperf2(found, connections, copied, imported)
    _add_transfers(found, tests, connections, bulk, imported)
    _add_bulk(found, bulk, imported)
    if lab is not None and not any(
        value for name, value in imported.measured.items() if name.endswith("goodput_bps")
    ):
        count = len(tests.clients)
        lacking = (
            f"there are {count} tests, of which each has its own: bring one at a time"
            if count > 1
            else f"there is no {WANTED['iperf3']}"
        )
        imported.missing.insert(0, found.lacks("goodput", lacking, "iperf3", *OTHERS))
    _note_problems(found, tests, imported)
    fields.require(imported.measured, "imported files")
    return imported


def _only_sender(lab: Lab | None, clients: int) -> str | None:
    """Return the node that sends, where a lab has one sender alone, or looks at one and so many `clients` are one."""
    if lab is None:
        return None
    how = lab.file.collect
    if how.one_sender and clients == 1:
        return how.one_sender.node
    return how.iperf3.node if how.iperf3 else None


def _flows_name(lab: Lab | None) -> str | None:
    """How a lab's runs call the files of its flows: a pattern."""
    how = lab.file.collect if lab else None
    if how and how.flow_files:
        return how.flow_files.iperf3
    return how.iperf3.file if how and how.iperf3 else None


def _measure(
    lab: Lab,
    params: Mapping[str, Value],
    found: Pieces,
    tests: Tests,
    layout: Layout,
    imported: ImportedFiles,
) -> None:
    """The lab's own values, as far as the files have them; and the nodes' host_state."""
    measured, how = imported.measured, layout.collect
    imported.used = {str(path): words for path, words in layout.used.items()}
    for name, what in (
        ("ping", "the idle path"), ("ss_last", "the lines of ss that were kept"),
        ("capture", "packets' sizes"), ("bottleneck", "the bottleneck's drops"),
        ("sender", "the sender's counters"), ("receiver", "the receiver's counters"),
    ):  # fmt: skip
        part = getattr(how, name)
        if part is None or (name in ("sender", "receiver") and not counters_of(layout.raw, part)):
            continue
        if name == "ss_last" and not (layout.raw / part.node / part.file).is_file():
            continue
        _add(partial(read_totals, Collect(**{name: part}), layout.raw), what, imported)
    _flows(lab, params, tests, layout, imported)
    host_state: list[HostState] = []
    others = frozenset(piece.path.name for piece in found.of("ping")) - layout.idle_pings
    ss_name = layout.collect.ss_name

    def nodes() -> Measured:
        queue = layout.collect.queue
        state = read_host_state(layout.raw, ss_name, queue.file if queue else None)
        host_state.append(
            replace(state, other_pings=others, other_captures=frozenset(layout.other_captures))
        )
        return {}

    _add(nodes, "how the nodes were set", imported)
    imported.host_state = host_state[0] if host_state else None
    if host_state and any(socket.busy_s is None for socket in host_state[0].sockets):
        imported.missing.append(
            "what the flows waited for, since this ss doesn't say it (iproute2 before 4.19 has no bytes_sent)"
        )
    if not layout.sockets.texts:
        lacking = f"there is no {WANTED['ss']}"
        imported.missing.append(found.lacks("windows and round trips of TCP", lacking, "ss"))
    if layout.sockets.timeless:
        imported.missing.append(
            f"how long anything lasted in {', '.join(layout.sockets.timeless)}, since no line there has a time"
        )
    imported.missing += [*layout.missing, *_missing_files(lab, found)]
    measured |= {name: words for name, words in _noted(tests, layout) if words}
    said = {line.split(": ", 1)[0] for line in imported.refused} | {*imported.used}
    imported.refused += [
        f"{piece.path}: not needed"
        for piece in found.pieces
        if str(piece.path) not in said and piece.tool not in OTHERS
    ]
    # What might have been of use comes first.
    imported.refused.sort(key=lambda line: line.endswith(NO_TOOL))


def _noted(tests: Tests, layout: Layout) -> Iterator[tuple[str, str | None]]:
    """Yield what is noted in words of where things were seen."""
    yield "misplaced", _misplaced(tests, layout.snapshots)
    yield "by_host", "\n".join(layout.by_host)
    yield "foreign_logs", "; ".join(layout.sockets.foreign)


def _misplaced(tests: Tests, shots: Snapshots) -> str | None:
    """Return where the bottleneck's qdisc stands instead, or how little of the tests' data it counted."""
    sent_bytes = sum(client.run.sent_bytes or 0 for client in tests.clients)
    if shots.idle and sent_bytes > 10 * DATA_BYTES:
        return f"{shots.idle} (tc), and the test sent {sent_bytes / 1e6:.3g} MB"
    return shots.misplaced


def _missing_files(lab: Lab, found: Pieces) -> Iterator[str]:
    """Which checks need files that are known by their names, and that nobody brought."""
    imported = {piece.tool for piece in found.pieces}
    if not imported & {*SNAPSHOT}:
        yield "how the nodes were set, since there are no snapshots of them (scripts/snapshot.sh)"
    windows = lab.file.collect.ss_last
    # The last lines of ss are in any log of it.
    own = own_names(lab) - {*SNAPSHOT, windows.file if windows else ""} - imported
    if own:
        yield f"the contents of {', '.join(sorted(own))}, since there is no such file"


def _flows(
    lab: Lab, params: Mapping[str, Value], tests: Tests, layout: Layout, imported: ImportedFiles
) -> None:
    """Each flow by itself, where the lab has several and ss looked at all; else all as one."""
    how = layout.collect
    if tests.clients and how.flow_files:
        reduced = layout.reduced(lab)
        if unseen := layout.sockets.unseen:
            nodes = ", ".join(sorted({client.node for client in unseen}))
            imported.missing.append(
                f"each flow, since there is no ss of the connection from {nodes}"
            )
        elif layout.sockets.texts:
            before = len(imported.missing)
            _add(lambda: read_flows(reduced, layout.raw, params)[1], "each flow", imported)
            if len(imported.missing) == before:
                return
    _all_flows(tests, layout, imported)


def _add(read: Callable[[], Measured], what: str, imported: ImportedFiles) -> None:
    """Add what can be read; what can't is said with the reason."""
    try:
        imported.measured |= read()
    except ParseError as error:
        _in_vain(f"{what}, since {error}", imported)
    except FileNotFoundError as error:
        imported.missing.append(f"{what}, since there is no {Path(error.filename).name}")
    except BROKEN as error:
        _in_vain(f"{what}, since its files can't be read ({type(error).__name__})", imported)


def _in_vain(line: str, imported: ImportedFiles) -> None:
    """Note what isn't looked at although there is a file for it."""
    imported.missing.append(line)
    imported.unread.append(line)


def _all_flows(tests: Tests, layout: Layout, imported: ImportedFiles) -> None:
    """What iperf3 and ss say of all flows as one: of the whole time of each."""
    runs = [client.run for client in tests.clients] or [run for _, run in tests.servers]
    if runs:
        imported.measured |= from_iperf3(all_together(runs))
    ports = {port for client in tests.clients for port in client.ports}
    if samples := layout.sockets.all:
        ports = ports or busiest_port(samples)
        imported.measured |= from_samples(samples, ports)
        # What nstat counts of the whole host, ss does of each connection.
        imported.measured.setdefault("spurious_retransmits", _needless(samples, ports))
        if layout.sockets.unseen:
            # Of some flows alone, and so nothing to compare with what iperf3 says of all.
            imported.measured |= dict.fromkeys(OF_ALL)
    if runs:
        _no_mean_window(runs, imported)


def _no_mean_window(runs: list[Iperf3Run], imported: ImportedFiles) -> None:
    """A mean over several windows isn't what a sum of rates comes from: it is left out."""
    if len(all_together(runs).streams) > 1:
        imported.measured |= {"cwnd_mean_segments": None, "cwnd_max_segments": None}


def _needless(samples: tuple[SsSample, ...], ports: set[int]) -> int:
    """Segments sent again that the receiver said it had, by the last look at each connection."""
    last = {
        socket.local_port: socket.dsack_dups or 0
        for sample in samples
        for socket in sample.sockets
        if socket.local_port in ports
    }
    return sum(last.values())


def _measure_without_lab(found: Pieces, tests: Tests, imported: ImportedFiles) -> None:
    """What the tools say where no lab is named: of one path, as far as it can be told."""
    runs = [client.run for client in tests.clients] or [run for _, run in tests.servers]
    if runs:
        imported.measured |= from_iperf3(all_together(runs))
    ports = {port for client in tests.clients for port in client.ports}
    samples: tuple[SsSample, ...] = ()
    qdiscs: list[Qdisc] = []
    for piece in found.pieces:
        if isinstance(piece.content, PingRun):
            imported.measured |= from_ping(piece.content)
        elif isinstance(piece.content, Frames):
            imported.measured |= from_frames(piece.content)
        elif isinstance(piece.content, tuple):
            samples += tuple(sample for sample in piece.content if isinstance(sample, SsSample))
            qdiscs += [qdisc for qdisc in piece.content if isinstance(qdisc, Qdisc)]
        imported.used[str(piece.path)] = piece.tool
    if samples:
        imported.measured |= from_samples(samples, ports or busiest_port(samples))
    if runs:
        _no_mean_window(runs, imported)
    losing = [qdisc for qdisc in qdiscs if qdisc.kind == "netem" and qdisc.loss_ratio]
    losing = losing or [qdisc for qdisc in qdiscs if qdisc.drops]
    if losing:
        # Snapshots before and after a run: the later one has counted more.
        last = max(losing, key=lambda qdisc: qdisc.sent_packets or 0)
        imported.measured |= from_counts(
            last.sent_packets or 0, last.sent_bytes or 0, last.drops or 0
        )
        imported.measured["qdisc_limit_packets"] = last.limit_packets
    imported.missing = [what for tool, what in WANTED.items() if tool not in imported.tools]


def _add_iperf2(
    found: Pieces, connections: list[Iperf2Connection], copied: int, imported: ImportedFiles
) -> None:
    if not found.of("iperf2"):
        return
    imported.measured["copied_flows"] = copied
    unused = {line.split(": ", 1)[0] for line in found.left_out}
    imported.used |= {
        str(piece.path): "iperf 2" for piece in found.of("iperf2") if str(piece.path) not in unused
    }
    if connections and not found.of("iperf3"):
        imported.measured |= from_iperf2(tuple(connections))


def _add_transfers(
    pieces: Pieces, tests: Tests, connections: list[Iperf2Connection], bulk: list[BulkTest], imported: ImportedFiles
) -> None:  # fmt: skip
    """Add what each test and each ping says of itself, under the names of the files that were brought."""
    named = [(client.node, client.piece, client.run) for client in tests.clients or tests.broken]
    named = named or [(piece.node or "the server", piece, run) for piece, run in tests.servers]
    transfers = [
        of_iperf3(node, piece.path.name, run, exact='"start"' in piece.text)
        for node, piece, run in named
    ]
    if connections and not transfers:
        source = ", ".join(piece.path.name for piece in pieces.of("iperf2"))
        transfers.append(of_iperf2("iperf 2", source, connections))
    transfers = transfers or [of_bulk(test) for test in bulk]
    pings = tuple(
        (piece.path.name, piece.content)
        for piece in pieces.of("ping")
        if isinstance(piece.content, PingRun)
    )
    captures = tuple(
        (piece.path.name, piece.content)
        for piece in pieces.of("tcpdump")
        if isinstance(piece.content, Frames)
    )
    imported.host_state = replace(
        imported.host_state or HostState({}),
        transfers=tuple(transfers),
        pings=pings,
        captures=captures,
    )


def _add_bulk(pieces: Pieces, bulk: list[BulkTest], imported: ImportedFiles) -> None:
    """Add what netperf and flent say, where iperf doesn't say more."""
    files = pieces.of("netperf", "flent")
    if pieces.of("iperf3", "iperf2"):
        imported.refused += [
            f"{piece.path}: {piece.tool}, beside iperf, which reports more" for piece in files
        ]
        return
    unused = {line.split(": ", 1)[0] for line in pieces.left_out}
    imported.used |= {
        str(piece.path): piece.tool for piece in files if str(piece.path) not in unused
    }
    if bulk:
        imported.measured = from_bulk(bulk) | {
            name: value for name, value in imported.measured.items() if value is not None
        }


def _note_problems(found: Pieces, tests: Tests, imported: ImportedFiles) -> None:
    """Note what no number says: tests that are no such test, and files of several runs."""
    if unfit := [*dict.fromkeys([*tests.unfit, *found.failed])]:
        imported.measured["unfit"] = "; ".join(unfit)
    coarse = [
        piece.content.resolution_ms for piece in found.pieces if isinstance(piece.content, PingRun)
    ]
    if coarse and max(coarse) > FINE_MS:
        imported.measured["ping_resolution_ms"] = max(coarse)
    if any(":" in (client.peer or "") for client in tests.clients):
        imported.measured["ip_header_bytes"] = IPV6_HEADER_BYTES
    if several := _several(tests):
        imported.measured["several_runs"] = several
    runs = [client.run for client in tests.clients] or [run for _, run in tests.servers]
    if algorithms := {run.congestion_control for run in runs} - {None}:
        imported.measured["iperf3_algorithms"] = " ".join(sorted(map(str, algorithms)))


def _several(tests: Tests) -> str | None:
    if tests.sequences:
        return "; ".join(tests.sequences)
    if len(tests.runs) < 2:
        return None
    runs = [
        group[0].piece.path.name
        + (f" began at {group[0].span_s[0]:.0f} (Unix time)" if group[0].span_s else "")
        for group in tests.runs
    ]
    return f"files of {len(runs)} runs, one after another: {'; '.join(runs[:3])}"


def busiest_port(samples: tuple[SsSample, ...]) -> set[int]:
    """Without iperf3's word, the connection that sent most is taken for the data's."""
    sent: dict[int, int] = {}
    for sample in samples:
        for socket in sample.sockets:
            if socket.local_port is not None:
                sent[socket.local_port] = max(
                    sent.get(socket.local_port, 0), socket.bytes_acked or socket.data_segs_out or 0
                )
    return {max(sent, key=lambda port: sent[port])} if sent else set()
