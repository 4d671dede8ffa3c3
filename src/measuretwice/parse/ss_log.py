r"""Logs of ss as people write them: a time before each line or on a line of its own, in any of the usual forms.

`ts '%.s'` of moreutils, `date`, `watch`, NeST, a loop without any times: `as_sampled` makes of each what the labs'
sampler writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from measuretwice.parse._reading import SAMPLE_MARK, ParseError, cut_off, excerpt
from measuretwice.parse.ss import parse_ss
from measuretwice.parse.stamps import UNIX_TIME_S, stamp_of, time_in

DAY_S = 86_400.0
# Stands where ss's lines were kept without their addresses.
NO_ADDRESSES = " *:0 *:0 "
# All lines of one look at the sockets are written at once.
ONE_LOOK_S = 0.05

# Without -H and a state the queues come first.
_ROW = re.compile(r"(?:tcp +)?(?:[A-Z][A-Z0-9-]+ +)?\d+ +\d+ +\S+:\S+ +\S+:\S+")
_NO_TCP = re.compile(r"(?:udp|mptcp|raw|u_\w+|nl|icmp6?|p_\w+|v_\w+|sctp|dccp|xdp) +\S+ +\d+ +\d+ ")
_HEADING = re.compile(r"(?:Netid +)?(?:State +)?Recv-Q +Send-Q +Local")
_DETAILS = re.compile(r"(?:^|[ \t])(?:rto|cwnd|bytes_acked|bytes_sent):\d")
_COUNT = re.compile(r" (bytes_acked|segs_out):(\d+)")
_STATE = re.compile(r"(?:tcp +)?(?:ESTAB|SYN-|FIN-WAIT|TIME-WAIT|CLOSE|LAST-ACK|LISTEN|CLOSING)")


class _Line(NamedTuple):
    """What a line is (row, details, heading, time, other protocol's row, or nothing of ss's), its own time (s), the rest."""

    kind: str
    time_s: float | None
    text: str


@dataclass
class _Look:
    """One look at all sockets: its time (s), and each socket's words by its two ends."""

    time_s: float | None
    sockets: dict[str, list[str]] = field(default_factory=dict)

    def text(self) -> str:
        rows = "".join(f"{' '.join(words)}\n" for words in self.sockets.values())
        return f"# t={self.time_s or 0.0:.9f}\n{rows}"


def as_sampled(text: str, source: str) -> str:
    """Return ss's text with a line of time before each look and a line a socket, as the labs' sampler writes.

    Headings, marks and sockets that aren't of TCP are left out, and so is a last line that is cut off. A look
    without a time has the time 0; times of day and times since a start stay below UNIX_TIME_S. Details without
    the addresses have NO_ADDRESSES: ParseError where they are of several connections. TruncatedError where
    the only look is cut off.
    """
    if _is_sampled(text):
        return _whole(text, source)
    looks: list[_Look] = []
    # The socket whose details follow: none at first, and an empty one where they are of no interest.
    words: list[str] | None = None
    day_s = last_s = 0.0
    # Does any socket have a second line, and has the last one?
    second_lines = whole = False
    for line in _lines(text, source):
        time_s = line.time_s
        if time_s is not None and time_s < UNIX_TIME_S:
            # A clock that went round midnight.
            day_s += DAY_S if last_s - time_s > DAY_S / 2 else 0.0
            last_s, time_s = time_s, time_s + day_s
        if line.kind == "other":
            words = []
        elif line.kind == "time" or (line.kind == "heading" and (not looks or looks[-1].sockets)):
            looks.append(_look(looks, time_s))
            words = None
        elif line.kind == "details" and words is not None and not _has_begun(words, line.text):
            words += line.text.split()
            second_lines = whole = True
        elif line.kind in ("row", "details"):
            words = _row(line)
            ends = " ".join(words[3:5])
            if not looks or ends in looks[-1].sockets or _is_later(time_s, looks[-1].time_s):
                looks.append(_look(looks, time_s))
            if looks[-1].time_s is None:
                looks[-1].time_s = time_s
            looks[-1].sockets[ends] = words
            words, whole = (words, False) if line.kind == "row" else (None, True)
    if second_lines and not whole:
        if len(looks) == 1:
            raise cut_off(source, text.rstrip().count("\n") + 1, "the last socket's second line")
        next(look for look in reversed(looks) if look.sockets).sockets.popitem()
    _refuse_several(looks, source)
    return _whole("".join(look.text() for look in looks), source)


def _whole(text: str, source: str) -> str:
    """Samples without a last line that can't be read, as of a sampler that was killed."""
    before, _, last = text.rstrip("\n").rpartition("\n")
    try:
        if before and not last.startswith("#"):
            parse_ss(f"{last}\n", source)
    except ParseError:
        return f"{before}\n"
    return text


def _is_sampled(text: str) -> bool:
    """Is it in the sampler's form already?"""
    first = text.split("\n", 1)[0]
    others = ("\n\t", "\n ", "\ntcp ", "\nudp ", "Recv-Q")
    return SAMPLE_MARK.fullmatch(first) is not None and not any(mark in text for mark in others)


def _look(looks: list[_Look], time_s: float | None) -> _Look:
    """A new look; what has no time of its own has the one before it."""
    return _Look(looks[-1].time_s if time_s is None and looks else time_s)


def _is_later(time_s: float | None, look_s: float | None) -> bool:
    return time_s is not None and look_s is not None and abs(time_s - look_s) > ONE_LOOK_S


def _has_begun(words: list[str], text: str) -> bool:
    """Has the socket its details already, of which these are others?"""
    return " rto:" in f" {text}" and any(word.startswith("rto:") for word in words)


def _row(line: _Line) -> list[str]:
    """A socket's words: state, queues, its two ends, then the rest."""
    words = line.text.split()
    if line.kind == "details":
        return ["ESTAB", "0", "0", *NO_ADDRESSES.split(), *words]
    if words[0] == "tcp":
        del words[0]
    return ["ESTAB", *words] if words[0].isdigit() else words


def _refuse_several(looks: list[_Look], source: str) -> None:
    """ParseError where details without addresses can't all be of one connection: a count went back."""
    counts: dict[str, int] = {}
    for look in looks:
        row = " ".join(look.sockets.get(NO_ADDRESSES.strip(), ()))
        for name, count in _COUNT.findall(row):
            if int(count) < counts.get(name, 0):
                raise ParseError(
                    source,
                    "file",
                    "ss's lines without the addresses, of several connections: which is whose can't be told; "
                    "keep the line above each (ss -tinO prints both as one)",
                )
            counts[name] = int(count)


def _lines(text: str, source: str) -> Iterator[_Line]:
    """Yield the lines that say something; the last may be cut off. ParseError for another that begins as a socket's
    and goes on otherwise."""
    last = text.rstrip().count("\n") + 1
    for number, line in enumerate(text.split("\n"), start=1):
        kind = _kind_of(line)
        if kind:
            yield _Line(kind, None, line)
        elif (stamp := stamp_of(line)) and (kind := _kind_of(stamp.rest)):
            yield _Line(kind, stamp.time_s, stamp.rest)
        elif _DETAILS.search(line):
            yield _Line("details", None, line)
        elif _STATE.match(line):
            if number == last:
                return
            problem = f"found {excerpt(line)}; expected a socket: state, queues, two addresses"
            raise ParseError(source, f"line {number}", problem)
        elif (time_s := time_in(line)) is not None:
            yield _Line("time", time_s, "")


def _kind_of(text: str) -> str | None:
    """What a line is by its beginning; None where that doesn't tell."""
    if _ROW.match(text):
        return "row"
    if text[:1] in ("\t", " ") and text.strip():
        return "details"
    if _HEADING.match(text):
        return "heading"
    return "other" if _NO_TCP.match(text) else None
