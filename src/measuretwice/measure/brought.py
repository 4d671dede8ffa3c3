"""Files that a person brings, from any testbed: what is each, and what does it say?

Names and order don't matter: a file is known by its content. What a terminal adds (a byte-order
mark, CRLF, sudo's banner before the JSON, a last line cut off) is taken away first. What can't
be read is named, and the rest is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from measuretwice.base.errors import UserError
from measuretwice.measure.one_flow import (
    from_counts,
    from_frames,
    from_iperf2,
    from_iperf3,
    from_ping,
    from_samples,
)
from measuretwice.measure.values import Measured, number
from measuretwice.parse import (
    Frames,
    Iperf2Connection,
    Iperf3Run,
    ParseError,
    PingRun,
    Qdisc,
    SsSample,
)
from measuretwice.parse.formats import format_of

MAX_FILE_BYTES = 64 * 2**20
MAX_FILES = 500
WANTED = {
    "iperf3": "iperf3's JSON or text",
    "ss": "ss -ti",
    "tc": "tc -s qdisc show, on the router",
    "ping": "ping",
}


@dataclass
class Brought:
    """What was found: parsed content by tool, and what couldn't be used, in words."""

    iperf3: Iperf3Run | None = None
    iperf2: tuple[Iperf2Connection, ...] = ()
    samples: tuple[SsSample, ...] = ()
    qdiscs: tuple[Qdisc, ...] = ()
    measured: Measured = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """Which files would allow more checks."""
        return [what for tool, what in WANTED.items() if tool not in self.used]


def read_files(paths: list[Path]) -> Brought:
    """Read files and folders of files; UserError where nothing at all can be used."""
    brought = Brought()
    for path in _files(paths):
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                brought.refused.append(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB")
                continue
            data = path.read_bytes()
        except OSError as error:
            brought.refused.append(f"{path}: {error.strerror}")
            continue
        try:
            tool = read_text(tidy(data), path.name, brought)
            brought.used[tool] = str(path)
        except ParseError as error:
            brought.refused.append(str(error))
    if not brought.used:
        reason = brought.refused[0] if brought.refused else "there are no files"
        raise UserError(f"nothing here can be checked: {reason}")
    _put_together(brought)
    return brought


def _files(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: there is no such file or folder")
        found += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        if len(found) > MAX_FILES:
            raise UserError(f"{path}: more than {MAX_FILES} files; give a run's own folder")
    return found


def tidy(data: bytes) -> str:
    """Text without what terminals and editors add; undecodable bytes become U+FFFD."""
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return text if text.endswith("\n") or not text else text + "\n"


def read_text(text: str, name: str, brought: Brought) -> str:
    """Read one file into `brought` and return its tool; ParseError where it is none of ours."""
    known = format_of(text, name)
    content = known.parse(text, name)
    if isinstance(content, Iperf3Run):
        _take_iperf3(content, brought, known.stands_in)
    elif isinstance(content, PingRun):
        brought.measured |= from_ping(content)
    elif isinstance(content, Frames):
        brought.measured |= from_frames(content)
    elif isinstance(content, tuple):
        _take_parts(content, brought)
    else:
        assert_never(content)
    return known.tool


def _take_parts(parts: Sequence[SsSample | Qdisc | Iperf2Connection], brought: Brought) -> None:
    connections = []
    for part in parts:
        if isinstance(part, SsSample):
            brought.samples += (part,)
        elif isinstance(part, Qdisc):
            brought.qdiscs += (part,)
        elif isinstance(part, Iperf2Connection):
            connections.append(part)
        else:
            assert_never(part)
    _take_iperf2(connections, brought)


def _take_iperf3(run: Iperf3Run, brought: Brought, stands_in: bool) -> None:
    # The sender's own file knows the retransmissions; a server's is second best.
    if brought.iperf3 is None or (not stands_in and brought.iperf3.retransmits is None):
        brought.iperf3 = run


def _take_iperf2(connections: Sequence[Iperf2Connection], brought: Brought) -> None:
    """A sender's CSV. What stands in an earlier file too was read twice: it counts once."""
    if not connections:
        return
    earlier = set(brought.iperf2)
    copied = sum(connection in earlier for connection in connections)
    brought.measured["copied_flows"] = (number(brought.measured, "copied_flows") or 0) + copied
    brought.iperf2 += tuple(each for each in connections if each not in earlier)


def _put_together(brought: Brought) -> None:
    """Measured values from all files: which connection is the data's needs iperf3 and ss both."""
    if brought.iperf3:
        brought.measured |= from_iperf3(brought.iperf3)
    elif brought.iperf2:
        brought.measured |= from_iperf2(brought.iperf2)
    if brought.samples:
        ports = None
        if brought.iperf3 and brought.iperf3.connections:
            ports = {connection.local_port for connection in brought.iperf3.connections}
        brought.measured |= from_samples(brought.samples, ports or busiest_port(brought.samples))
    losing = [q for q in brought.qdiscs if q.kind == "netem" and q.loss_ratio]
    losing = losing or [q for q in brought.qdiscs if q.drops]
    if losing:
        # Snapshots before and after a run: the later one has counted more.
        last = max(losing, key=lambda q: q.sent_packets or 0)
        brought.measured |= from_counts(
            last.sent_packets or 0, last.sent_bytes or 0, last.drops or 0
        )
        brought.measured["qdisc_limit_packets"] = last.limit_packets


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
