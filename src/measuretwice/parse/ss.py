"""TCP sockets as ss prints them (iproute2; see ss(8))."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from measuretwice.parse._ss_fields import BadToken, read_details
from measuretwice.parse._text import clean, cut_off, excerpt, foreign
from measuretwice.parse.errors import ParseError
from measuretwice.parse.ss_socket import SsSocket

_EXPECTED = "the text output of ss (`ss -tin`)"
_HEADER = re.compile(r"(?:Netid +)?(?:State +)?Recv-Q +Send-Q +Local Address")
_STATE = re.compile(r"[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)*")
_NETIDS = frozenset({"tcp", "udp", "mptcp", "sctp", "dccp"})
# A number, or as /etc/services has it: targus-getdata1 is 5201, iperf3's own.
_PORT = re.compile(r"\d{1,5}|[A-Za-z][\w+.-]*")
# Process names may hold blanks: users:(("my server",pid=7,fd=3)).
_QUOTED_TOKEN = re.compile(r'(?:[^\s"]|"[^"]*"|")+')


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
    return read_sockets(enumerate(lines, start=1), source, has_second_lines(text))


def has_second_lines(text: str) -> bool:
    """Does ss print two lines for each socket here?"""
    return "\n\t" in text or "\n " in text


def read_sockets(
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
