"""What both ends of a test wrote down of it: iperf3's own sums, and when samples were taken.

It is there to hold the files of a run against each other: are they of one run? What a file doesn't say is left out, and a file
that can't be read is somebody else's to name (measure/raw.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    """When a sampler took its first and its last sample (Unix times, s); how often its clock `went_back` between two."""

    node: str
    source: str
    first_s: float
    last_s: float
    went_back: int = 0


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
        Sum(name, float(one["bits_per_second"]), float(one["bytes"]), float(one["seconds"]))
        for name in ("sum_sent", "sum_received")
        if (one := end.get(name)) and one.get("seconds")
    )
    is_server = "accepted_connection" in start
    sent = end.get("sum_sent", {}).get("bytes")
    cookie = start.get("cookie")
    test, begin_s = start.get("test_start", {}), start.get("timestamp", {}).get("timesecs")
    lasted_s = max((one.seconds for one in sums), default=None)
    return End(
        node, source, is_server, cookie, sums, None if is_server else sent,
        begin_s=begin_s if lasted_s else None,
        end_s=begin_s + lasted_s if begin_s and lasted_s else None,
        unfit=why_unfit(test.get("protocol"), bool(test.get("bidir")), bool(test.get("reverse"))),
    )  # fmt: skip


def why_unfit(protocol: str | None, bidirectional: bool | None, reverse: bool | None) -> str | None:
    """Say why nothing can be concluded from a test of that kind; None where it is one of TCP, from sender to receiver."""
    if protocol == "UDP":
        return "a test of UDP, which has neither window nor recovery"
    if bidirectional:
        return "a test in both directions at once (--bidir): each is in the other's way"
    if reverse:
        return "a test in which the server sent (-R): its data went the other way"
    return None


def span_of(path: Path) -> Span | None:
    """When the samples in a file were taken; None without a file, or without two times in it."""
    if not path.is_file():
        return None
    times = [line[4:].split()[0] for line in text_of(path).splitlines() if line.startswith("# t=")]
    if len(times) < 2:
        return None
    try:
        moments = [float(time) for time in times]
    except ValueError:
        return None
    went_back = sum(later < earlier for earlier, later in pairwise(moments))
    return Span(path.parent.name, name_of(path), moments[0], moments[-1], went_back)
