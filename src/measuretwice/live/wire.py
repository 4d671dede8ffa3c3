"""The protocol between a terminal and a shell on a node of a live lab: frames over one byte stream.

A frame is four bytes, its kind (one letter), its shell's number and its length, then the payload.
This module and agent.py run inside the virtual kernel too: they need the standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import termios
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TypeVar

# To the node: OPEN (with an Opening), DATA, SIZE (with a Size), CLOSE. From it: DATA, EXIT (with an
# Exit), READY. OFF, to the kernel, ends all; TAKEN, from it, says how much was read (with a Taken).
OPEN, DATA, SIZE, CLOSE, EXIT, READY, OFF, TAKEN = b"o", b"d", b"s", b"c", b"x", b"r", b"q", b"t"
HEADER = struct.Struct(">cBH")
MAX_SHELLS = 255
PORTION_BYTES = 4096
# User-Mode Linux' console stops for good once its input buffer of 4096 bytes has been nearly full:
# no more than this is on its way at a time.
WINDOW_BYTES = 2048


@dataclass(frozen=True)
class Opening:
    """The shell that is asked for: on which node, for a terminal of which kind and size, with which
    command ("" is none: a person types)."""

    node: str
    term: str
    command: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Size:
    """A terminal's size in characters."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Exit:
    """A shell's exit status, as bash would give it."""

    status: int


@dataclass(frozen=True)
class Taken:
    """The number of bytes that were read."""

    bytes: int


Message = Opening | Size | Exit | Taken
AMessage = TypeVar("AMessage", Opening, Size, Exit, Taken)


@dataclass(frozen=True)
class Frame:
    kind: bytes
    shell: int
    payload: bytes

    def read(self, message: type[AMessage]) -> AMessage:
        """Return the payload as the message that frames of this kind hold."""
        return message(**json.loads(self.payload))


def pack(kind: bytes, shell: int, payload: bytes | Message = b"") -> bytes:
    """Return a frame's bytes; longer data than fits in one are cut into several."""
    if not isinstance(payload, bytes):
        payload = json.dumps(asdict(payload)).encode()
    parts = [payload[at : at + PORTION_BYTES] for at in range(0, len(payload), PORTION_BYTES)]
    return b"".join(HEADER.pack(kind, shell, len(part)) + part for part in parts or [b""])


class Reader:
    """Puts frames together again from whatever portions arrive."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes, and yield each frame that is whole."""
        self._kept += data
        while len(self._kept) >= HEADER.size:
            kind, shell, length = HEADER.unpack_from(self._kept)
            if len(self._kept) < HEADER.size + length:
                return
            payload = self._kept[HEADER.size : HEADER.size + length]
            self._kept = self._kept[HEADER.size + length :]
            yield Frame(kind, shell, payload)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to a file descriptor that blocks."""
    while data:
        data = data[os.write(fd, data) :]


def set_size(fd: int, rows: int, columns: int) -> None:
    """Tell a terminal how large its window is."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
