"""TCP sockets as ss prints them (iproute2; see ss(8)), once or again and again as the labs' sampler does, and as people
keep them in logs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from measuretwice.parse._reading import (
    SAMPLE_MARK,
    UNIX_TIME_S,
    ParseError,
    TruncatedError,
    clean,
    cut_off,
    excerpt,
    foreign,
    stamp_of,
    time_in,
)
from measuretwice.parse.ss_fields import BadToken, SsSocket, read_details
from measuretwice.parse.wrapping import unwrapped

_EXPECTED = "the text output of ss (`ss -tin`)"
_EXPECTED_SAMPLES = "samples of ss, each after a line '# t=SECONDS'"
_HEADER = re.compile(r"(?:Netid +)?(?:State +)?Recv-Q +Send-Q +Local Address")
_STATE = re.compile(r"[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)*")
_NETIDS = frozenset({"tcp", "udp", "mptcp", "sctp", "dccp"})
# A number, or as /etc/services has it: targus-getdata1 is 5201, iperf3's own.
_PORT = re.compile(r"\d{1,5}|[A-Za-z][\w+.-]*")
# Process names may hold blanks: users:(("my server",pid=7,fd=3)).
_QUOTED_TOKEN = re.compile(r'(?:[^\s"]|"[^"]*"|")+')

# Of logs, as people keep them.
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
_NAMED = re.compile(r"\b[a-z_]+:\d")
# In fewer numbers with their names there is no socket, but words about one.
DETAILS = 4
_WRAPPED = re.compile(r"(?:tcp +)?[A-Z][A-Z0-9-]+ +\d+ +\d+ +\S+:\d+ +\S+:\d+")
_COUNT = re.compile(r" (bytes_acked|segs_out):(\d+)")
_BEGINS_SOCKET = re.compile(
    r"(?:tcp +)?(?:ESTAB|SYN-|FIN-WAIT|TIME-WAIT|CLOSE|LAST-ACK|LISTEN|CLOSING)"
)


def parse_ss(text: str, source: str) -> tuple[SsSocket, ...]:
    """Read the TCP (and UDP) sockets that ss printed, in its order.

    With or without header, `-H`, `-n`, `-i`, `-m`, `-e`, `-o`, `-p`, `-t`, `-u`, `-a`, and each
    socket on one line (`-O`) or on two. A port that is a service's name (without `-n`) isn't known:
    None. A header alone gives ().

    Raises ParseError for another tool's text, for other kinds of socket, and for a text that is
    cut off: ss ends every line, and prints a second line either for every socket or for none.
    """
    text = clean(text, source, _EXPECTED)
    lines = text.split("\n")
    if lines.pop():
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    if not _HEADER.match(text) and not _begins_row(lines[0]):
        raise foreign(text, source, _EXPECTED)
    return _read_sockets(enumerate(lines, start=1), source, _has_second_lines(text))


@dataclass(frozen=True)
class SsSample:
    """The sockets at one time. `time_s` is Unix time on the sampled node's clock; a float holds
    it to about a quarter of a microsecond."""

    time_s: float
    sockets: tuple[SsSocket, ...]


def parse_ss_samples(
    text: str,
    source: str,
    *,
    allow_truncated_tail: bool = False,
    local_ports: Collection[int] | None = None,
) -> tuple[SsSample, ...]:
    """Read lines '# t=1795213564.741568000', each followed by what ss printed then.

    A sample may have no sockets. A sampler that was killed may leave its last sample cut off:
    with `allow_truncated_tail` that sample is left out, without it that is a ParseError, as is
    anything else that isn't ss's text. With `local_ports`, and where ss printed a line a socket,
    the sockets of other ports are left out unread: reading is what takes the time.
    """
    text = clean(text, source, _EXPECTED_SAMPLES)
    if not "# t=".startswith(text[:4]):
        raise foreign(text, source, _EXPECTED_SAMPLES)
    lines = text.split("\n")
    # After the last line's end stands nothing, unless the last line is cut off.
    tail = lines.pop()
    if tail and not allow_truncated_tail:
        raise cut_off(source, len(lines) + 1, "a whole line at the end")
    starts = [i for i, line in enumerate(lines) if line.startswith("#")]
    ends = [*starts[1:], len(lines)]
    if tail and not tail.startswith("#"):
        # The last sample's last socket is what is cut off.
        del starts[-1:]
    second_lines = _has_second_lines(text)
    marks = None if local_ports is None or second_lines else [f":{port} " for port in local_ports]
    samples: list[SsSample] = []
    for start, end in zip(starts, ends, strict=False):
        mark = SAMPLE_MARK.fullmatch(lines[start])
        if not mark:
            raise ParseError(
                source,
                f"line {start + 1}",
                f"found {excerpt(lines[start])}; expected '# t=SECONDS' with nine decimals",
            )
        numbered: Iterable[tuple[int, str]] = enumerate(lines[start + 1 : end], start=start + 2)
        if marks is not None:
            numbered = [
                (number, line) for number, line in numbered if any(mark in line for mark in marks)
            ]
        try:
            sockets = _read_sockets(numbered, source, second_lines)
        except TruncatedError:
            if allow_truncated_tail and end == len(lines):
                break
            raise
        samples.append(SsSample(float(f"{mark[1]}.{mark[2]}"), sockets))
    return tuple(samples)


def _has_second_lines(text: str) -> bool:
    """Does ss print two lines for each socket here?"""
    return "\n\t" in text or "\n " in text


def _read_sockets(
    lines: Iterable[tuple[int, str]], source: str, second_lines: bool
) -> tuple[SsSocket, ...]:
    """The sockets of numbered, whole lines of ss's text.

    Raises TruncatedError if there are second lines, but not for the last socket.
    """
    sockets: list[SsSocket] = []
    row: list[str] | None = None
    row_number = 0
    second = False
    for number, line in lines:
        if line[:1] in (" ", "\t"):
            if row is None:
                raise _unreadable(source, number, line)
            row += _tokens(line)
            second = True
        elif line and not _HEADER.match(line):
            if row is not None:
                sockets.append(_socket(row, source, row_number))
            row, row_number, second = _tokens(line), number, False
    if row is not None:
        if second_lines and not second:
            raise cut_off(source, row_number, "the last socket's second line")
        sockets.append(_socket(row, source, row_number))
    return tuple(sockets)


def _begins_row(line: str) -> bool:
    tokens = line.split(None, 3)
    queues = tokens[:2] if tokens[:1] and tokens[0].isdigit() else tokens[1:3]
    return len(tokens) > 2 and (tokens[0] in _NETIDS or all(map(str.isdigit, queues)))


def _tokens(line: str) -> list[str]:
    return _QUOTED_TOKEN.findall(line) if '"' in line else line.split()


def _socket(tokens: list[str], source: str, number: int) -> SsSocket:
    try:
        netid = tokens.pop(0) if tokens[0] in _NETIDS else None
        state = None if tokens[0].isdigit() else tokens.pop(0)
        if state is not None and not _STATE.fullmatch(state):
            raise _unreadable(source, number, " ".join([state, *tokens]))
        recv_q, send_q, local, peer = tokens[:4]
        values: dict[str, Any] = {"other": {}}
        read_details(iter(tokens[4:]), values)
        local_address, local_interface, local_port = _address(local)
        peer_address, peer_interface, peer_port = _address(peer)
        return SsSocket(
            netid=netid,
            state=state,
            recv_q_bytes=int(recv_q),
            send_q_bytes=int(send_q),
            local_address=local_address,
            local_interface=local_interface,
            local_port=local_port,
            peer_address=peer_address,
            peer_interface=peer_interface,
            peer_port=peer_port,
            **values,
        )
    except BadToken as bad:
        raise ParseError(source, f"line {number}", str(bad)) from None
    except ParseError:
        raise
    except (ValueError, IndexError):
        raise _unreadable(source, number, " ".join(tokens)) from None


def _address(text: str) -> tuple[str, str | None, int | None]:
    """Address, interface and port of 10.0.0.1:80, [fe80::1]%eth0:22, *%eth0:68, *:* or ::1:80."""
    address, colon, port = text.rpartition(":")
    if not colon or not address:
        raise BadToken(text, "ADDRESS:PORT")
    address, _, interface = address.partition("%")
    if port != "*" and not _PORT.fullmatch(port):
        raise BadToken(text, "a port")
    return (
        address.removeprefix("[").removesuffix("]"),
        interface or None,
        int(port) if port.isdecimal() else None,
    )


def _unreadable(source: str, number: int, line: str) -> ParseError:
    return ParseError(
        source,
        f"line {number}",
        f"found {excerpt(line)}; expected a TCP or UDP socket: state, queues, two addresses",
    )


# Logs as people keep them: `ts '%.s'` of moreutils, `date`, `watch`, NeST, a loop without any times.


class _Line(NamedTuple):
    """What a line is (row, details, heading, time, another protocol's row, or text), its own time (s), the rest."""

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
        elif line.kind == "text":
            words = None
        elif line.kind == "time" or (line.kind == "heading" and (not looks or looks[-1].sockets)):
            looks.append(_look(looks, time_s))
            words = None
        elif line.kind == "details" and words is not None and not _has_begun(words, line.text):
            words += line.text.split()
            second_lines = whole = True
        elif line.kind == "row" or (line.kind == "details" and _is_details(line.text)):
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
    if not any(look.sockets.keys() - {NO_ADDRESSES.strip()} for look in looks):
        # A logger may have put more before each line than a time.
        without = unwrapped(text, _WRAPPED)
        if without != text:
            return as_sampled(without, source)
        if not any(look.sockets for look in looks) and not _HEADING.search(text):
            problem = "no line of it is as ss prints it; bring what ss -tin itself printed"
            raise ParseError(source, "file", problem)
    _refuse_several(looks, source)
    return _whole("".join(look.text() for look in looks), source)


def _whole(text: str, source: str) -> str:
    """Samples without a last line that can't be read, as of a sampler that was killed."""
    before, _, last = text.rstrip("\n").rpartition("\n")
    try:
        if before and not last.startswith("#"):
            parse_ss(f"{last}\n", source)
    except ParseError:
        if "\n" not in before:
            # Nothing would be left.
            raise
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
        elif _is_details(line):
            yield _Line("details", None, line)
        elif _BEGINS_SOCKET.match(line):
            if number == last:
                return
            problem = f"found {excerpt(line)}; expected a socket: state, queues, two addresses"
            raise ParseError(source, f"line {number}", problem)
        elif (time_s := time_in(line)) is not None:
            yield _Line("time", time_s, "")
        elif any(map(str.isalpha, line)):
            yield _Line("text", None, line)


def _is_details(line: str) -> bool:
    """Return whether a line by itself is what ss says of a socket."""
    return _DETAILS.search(line) is not None and len(_NAMED.findall(line)) >= DETAILS


def _kind_of(text: str) -> str | None:
    """What a line is by its beginning; None where that doesn't tell."""
    if _ROW.match(text):
        return "row"
    if text[:1] in ("\t", " ") and text.strip():
        return "details"
    if _HEADING.match(text):
        return "heading"
    return "other" if _NO_TCP.match(text) else None
