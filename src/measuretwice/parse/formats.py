"""Every format that a person's file may have: which tool prints it, how it is known, how it is read.

A file is known by its content. What a terminal or sudo may put before a document is skipped here, as
no tool prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from measuretwice.parse import wrapping
from measuretwice.parse._reading import ParseError
from measuretwice.parse.iperf2 import Iperf2Connection, parse_iperf2_csv, parse_iperf2_text
from measuretwice.parse.iperf3 import Iperf3Run, parse_iperf3_json
from measuretwice.parse.iperf3_text import parse_iperf3_server_text, parse_iperf3_text
from measuretwice.parse.ping import PingRun, parse_ping
from measuretwice.parse.ss import SsSample, parse_ss_samples
from measuretwice.parse.ss_log import as_sampled
from measuretwice.parse.tc import QdiscSample, parse_qdisc_samples
from measuretwice.parse.tc_fields import Qdisc, TcClass
from measuretwice.parse.tc_log import as_snapshots, classes_of, parse_classes, parse_snapshots
from measuretwice.parse.tcpdump import Frames, parse_frames
from measuretwice.parse.wrapping import unwrapped

# Several runs: a server's text has each that it served.
Content = (
    Iperf3Run
    | tuple[Iperf3Run, ...]
    | tuple[Iperf2Connection, ...]
    | tuple[SsSample, ...]
    | tuple[Qdisc, ...]
    | tuple[TcClass, ...]
    | tuple[QdiscSample, ...]
    | PingRun
    | Frames
)


NO_TOOL = "none of iperf3, iperf 2, ss, tc, ping or tcpdump -e printed this"


@dataclass(frozen=True)
class Format:
    """What one tool prints in one way.

    `recognises` takes a file's text, `parse` the text and the file's name; it raises ParseError. `tidied` makes the
    text of it that the labs' own scripts would have written, where that may differ. `tests` are the texts of the
    tests in it, where a file may have several.
    """

    tool: str
    recognises: Callable[[str], bool]
    parse: Callable[[str, str], Content]
    tidied: Callable[[str, str], str] = lambda text, _: text
    tests: Callable[[str], list[str]] = lambda text: [text]


# How lines begin by which what a logger put before them is told from them. The logs of other tools need their times.
_BEGINNINGS = (
    "Connecting to host ", "Server listening on ", "Accepted connection from ", "Client connecting to ",
    "iperf3: error", "iperf3: interrupt",
)  # fmt: skip
_MARKS = re.compile(
    r'\{[ \t]*\n[^\n"]*"start"[ \t]*:|\{\s*"(?:start|event|error)"[ \t]*:|\[ *ID\] |'
    + "|".join(_BEGINNINGS)
)


def plain(text: str) -> str:
    """Return a file's text without what loggers and scripts put around a tool's output."""
    if "ID]" in text or "start" in text or any(words in text for words in _BEGINNINGS):
        return unwrapped(text, _MARKS)
    return text


def format_of(text: str, source: str) -> Format:
    """Return the format of a file's text; ParseError where it is none of these."""
    for known in FORMATS:
        if known.recognises(text):
            return known
    raise ParseError(source, "file", NO_TOOL)


def _holds(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.M)
    return lambda text: compiled.search(text) is not None


def _from_first(text: str, marks: str) -> str:
    """The text from the first line on that begins with one of `marks`."""
    match = re.search(rf"^[ \t]*[{re.escape(marks)}]", text, re.M)
    return text[match.start() :] if match else text


def _ss(text: str, source: str) -> tuple[SsSample, ...]:
    return parse_ss_samples(as_sampled(text, source), source, allow_truncated_tail=True)


def _queue(text: str, source: str) -> tuple[QdiscSample, ...]:
    return parse_qdisc_samples(text, source, allow_truncated_tail=True)


def _ping(text: str, source: str) -> PingRun:
    begin = re.search(r"^PING6?[ (]", text, re.M)
    return parse_ping(text[begin.start() :] if begin else text, source)


TC_CLASSES = Format(
    "tc classes",
    _holds(r'"class"\s*:\s*"\w+"|(?:^|[ \t\],])class \w+ [0-9a-f]*:'),
    parse_classes,
    lambda text, _: classes_of(text) or text,
)
# The first that recognises a text has it.
FORMATS = (
    Format("queue", _holds(r"^# t=.*\n\["), _queue),
    Format("ss", _holds(r"^# t="), _ss, as_sampled),
    Format("iperf3", wrapping.is_json, parse_iperf3_json, tests=wrapping.json_tests),
    Format("iperf2", _holds(r"\A\s*\d{14}[\d.]*,[^,\n]*,\d+,"), parse_iperf2_csv),
    Format(
        "iperf2",
        _holds(r"^(?:Client connecting to|Server listening on (?:TCP|UDP))"),
        parse_iperf2_text,
    ),
    Format("iperf3", wrapping.is_server, parse_iperf3_server_text),
    Format(
        "iperf3",
        _holds(r"\[ *ID\]|^iperf3: (?:error|parameter error|interrupt - the client)"),
        parse_iperf3_text,
        tests=wrapping.client_tests,
    ),
    Format(
        "tc",
        _holds(r'"kind"\s*:|(?:^|[ \t\],])qdisc \w+ [0-9a-f]*:'),
        parse_snapshots,
        as_snapshots,
    ),
    TC_CLASSES,
    Format("ping", _holds(r"^PING6?[ (]|ping6? statistics"), _ping),
    Format("tcpdump", _holds(r"\blength \d+: \d+\.\d+"), parse_frames),
    Format("ss", _holds(r" cwnd:|\bRecv-Q +Send-Q +Local Address:"), _ss, as_sampled),
)
