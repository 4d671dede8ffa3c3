"""What both ends of a test wrote down of it: iperf3's own sums, and when samples were taken.

It is there to hold the files of a run against each other: are they of one run? What a file doesn't say is left out, and a file
that can't be read is somebody else's to name (measure/raw.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.measure.raw import name_of, text_of


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

    `sent_bytes` is what a client handed to its sockets.
    """

    node: str
    source: str
    is_server: bool
    cookie: str | None
    sums: tuple[Sum, ...]
    sent_bytes: float | None


@dataclass(frozen=True)
class Span:
    """When a sampler took its first and its last sample (Unix times, s)."""

    node: str
    source: str
    first_s: float
    last_s: float


def ends_of(folders: Sequence[Path]) -> Iterator[End]:
    """Yield what each file of iperf3 in these nodes' folders says."""
    for folder in folders:
        for path in sorted(folder.glob("iperf3*.json")):
            try:
                document = json.loads(text_of(path))
                yield _end(folder.name, name_of(path), document)
            except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
                continue


def _end(node: str, source: str, document: Mapping[str, Any]) -> End:
    start, end = document["start"], document["end"]
    sums = tuple(
        Sum(name, float(one["bits_per_second"]), float(one["bytes"]), float(one["seconds"]))
        for name in ("sum_sent", "sum_received")
        if (one := end.get(name)) and one.get("seconds")
    )
    is_server = "accepted_connection" in start
    sent = end.get("sum_sent", {}).get("bytes")
    cookie = start.get("cookie")
    return End(node, source, is_server, cookie, sums, None if is_server else sent)


def span_of(path: Path) -> Span | None:
    """When the samples in a file were taken; None without a file, or without two times in it."""
    if not path.is_file():
        return None
    times = [line[4:].split()[0] for line in text_of(path).splitlines() if line.startswith("# t=")]
    if len(times) < 2:
        return None
    try:
        return Span(path.parent.name, name_of(path), float(times[0]), float(times[-1]))
    except ValueError:
        return None
