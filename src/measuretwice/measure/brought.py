"""Files that a person brings, from any testbed: what is each, and what does it say?

Names and order don't matter: a file is known by its content. What a terminal adds (a byte-order
mark, CRLF, sudo's banner before the JSON, a last line cut off) is taken away first. What can't
be read is named, and the rest is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.measure import one_flow as collect
from measuretwice.measure.one_flow import Measured
from measuretwice.parse import (
    Iperf2Connection,
    Iperf3Run,
    ParseError,
    Qdisc,
    SsSample,
    parse_iperf2_csv,
    parse_iperf3_json,
    parse_iperf3_text,
    parse_ping,
    parse_ss,
    parse_ss_samples,
    parse_tc_qdiscs,
)

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
    """What was found: parsed content by kind, and what couldn't be used, in words."""

    iperf3: Iperf3Run | None = None
    iperf2: tuple[Iperf2Connection, ...] = ()
    samples: tuple[SsSample, ...] = ()
    qdiscs: tuple[Qdisc, ...] = ()
    measured: Measured = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """Which kinds of files would allow more checks."""
        return [what for kind, what in WANTED.items() if kind not in self.used]


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
            kind = read_text(tidy(data), path.name, brought)
            brought.used[kind] = str(path)
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
    """Read one file into `brought` and return its kind; ParseError where it is none of ours."""
    readers: list[tuple[str, Callable[[str], bool], Callable[[str], None]]] = [
        ("ss", _has_marks, lambda t: _take_samples(t, name, brought)),
        ("iperf3", lambda t: '"start"' in t and '"intervals"' in t, lambda t: _take_iperf3(t, name, brought)),
        ("iperf2", lambda t: re.match(r"\s*\d{14}[\d.]*,[^,\n]*,\d+,", t) is not None, lambda t: _take_iperf2(t, name, brought)),
        ("iperf3", lambda t: "[ ID]" in t, lambda t: _take_iperf3_text(t, name, brought)),
        ("tc", lambda t: '"kind"' in t or re.search(r"^qdisc ", t, re.M) is not None, lambda t: _take_tc(t, name, brought)),
        ("ping", lambda t: "bytes of data" in t or "ping statistics" in t, lambda t: _take_ping(t, name, brought)),
        ("tcpdump", lambda t: re.search(r"\blength \d+: \d+\.\d+", t) is not None, lambda t: brought.measured.update(collect.from_capture(t))),
        ("ss", lambda t: " cwnd:" in t, lambda t: _take_ss(t, name, brought)),
    ]  # fmt: skip
    for kind, fits, take in readers:
        if fits(text):
            take(text)
            return kind
    raise ParseError(
        name, "file", "none of iperf3, iperf 2 (CSV), ss, tc, ping or tcpdump -e printed this"
    )


def _from_first(text: str, marks: str) -> str:
    """The text from the first line on that begins with one of `marks`."""
    match = re.search(rf"^[ \t]*[{re.escape(marks)}]", text, re.M)
    return text[match.start() :] if match else text


def _take_iperf3(text: str, name: str, brought: Brought) -> None:
    run = parse_iperf3_json(_from_first(text, "{"), name)
    if run.error:
        raise ParseError(name, "error", f"iperf3 says: {run.error}")
    # The sender's own file knows the retransmissions; a server's is second best.
    if brought.iperf3 is None or brought.iperf3.retransmits is None:
        brought.iperf3 = run


def _take_iperf3_text(text: str, name: str, brought: Brought) -> None:
    if brought.iperf3 is None:
        brought.iperf3 = parse_iperf3_text(text, name)


def _take_iperf2(text: str, name: str, brought: Brought) -> None:
    """A sender's CSV. What stands in an earlier file too was read twice: it counts once."""
    known = set(brought.iperf2)
    mine = parse_iperf2_csv(text, name)
    brought.measured["copied_flows"] = (brought.measured.get("copied_flows") or 0) + sum(
        one in known for one in mine
    )
    brought.iperf2 += tuple(one for one in mine if one not in known)


def _has_marks(text: str) -> bool:
    return re.search(r"^# t=", text, re.M) is not None


def _take_samples(text: str, name: str, brought: Brought) -> None:
    brought.samples += parse_ss_samples(text, name, allow_truncated_tail=True)


def _take_ss(text: str, name: str, brought: Brought) -> None:
    brought.samples += (SsSample(0.0, parse_ss(text, name)),)


def _take_tc(text: str, name: str, brought: Brought) -> None:
    whole = _from_first(text, "[") if '"kind"' in text else text[text.index("qdisc ") :]
    brought.qdiscs += parse_tc_qdiscs(whole, name)


def _take_ping(text: str, name: str, brought: Brought) -> None:
    start = text.find("PING ")
    brought.measured |= collect.from_ping(parse_ping(text[max(start, 0) :], name))


def _put_together(brought: Brought) -> None:
    """Measured values from all files: which connection is the data's needs iperf3 and ss both."""
    if brought.iperf3:
        brought.measured |= collect.from_iperf3(brought.iperf3)
    elif brought.iperf2:
        brought.measured |= collect.from_iperf2(brought.iperf2)
    if brought.samples:
        ports = None
        if brought.iperf3 and brought.iperf3.connections:
            ports = {connection.local_port for connection in brought.iperf3.connections}
        brought.measured |= collect.from_samples(
            brought.samples, ports or busiest_port(brought.samples)
        )
    losing = [q for q in brought.qdiscs if q.kind == "netem" and q.loss_ratio]
    losing = losing or [q for q in brought.qdiscs if q.drops]
    if losing:
        # Snapshots before and after a run: the later one has counted more.
        last = max(losing, key=lambda q: q.sent_packets or 0)
        brought.measured |= collect.from_counts(
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
