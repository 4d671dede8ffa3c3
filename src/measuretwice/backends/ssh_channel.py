"""The connection to one node: the system's ssh, and at its other end scripts/remote/guard.sh.

One ssh process a node, from the first question to the end: orders go into its standard input, a
line each, and answers come out. A beat goes there every few seconds and is answered. So the node
notices a cut link, and so do we, whatever ssh's own configuration says.
"""

from __future__ import annotations

import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO

BEAT_S = 2.0
# The guard undoes after 20 s without a beat; before that we must have given it up.
SILENCE_S = 12.0
GREETING = "measuretwice"
CONNECT_S = 15
# Jump hosts each take their time.
GREETING_S = 4.0 * CONNECT_S
END_S = 15.0
CHUNK_BYTES = 128 * 1024
IN_MEMORY_BYTES = 2**24
OPTIONS = [
    "-T",
    "-o", "BatchMode=yes",
    "-o", f"ConnectTimeout={CONNECT_S}",
    "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3",
    "-o", "ClearAllForwardings=yes",
    "-o", "RemoteCommand=none",
]  # fmt: skip
Message = tuple[str, IO[bytes] | None]


class Channel:
    """One node's connection. Two threads serve it; all methods return at once or take a `watch`."""

    def __init__(self, ssh: list[str], remote_command: str, guard: bytes) -> None:
        """Connect, and start the guard. `ssh` ends in the destination (NodeList.ssh)."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with us)
        self._process = subprocess.Popen(
            [ssh[0], *OPTIONS, *ssh[1:], remote_command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # A Ctrl-C at the terminal is for us: what is to be undone still needs this connection.
            start_new_session=True,
        )
        self._orders: queue.Queue[bytes | None] = queue.Queue()
        self._messages: queue.Queue[Message] = queue.Queue()
        self._unread: list[Message] = []
        self._ended: str | None = None
        self._greeted = False
        self._heard = time.monotonic()
        # Of what stands in _errors before the greeting nothing matters once it has come.
        self._errors_begin = 0
        self._orders.put(guard)
        for serve in (self._write, self._read):
            threading.Thread(target=serve, daemon=True).start()

    # --- what others call

    def order(self, line: str) -> None:
        """Send an order."""
        self._orders.put(line.encode() + b"\n")

    def send(self, data: bytes, where: str) -> None:
        """Send a packed tar, to be unpacked in a folder of the trial's own folder there."""
        for start in range(0, len(data), CHUNK_BYTES):
            chunk = data[start : start + CHUNK_BYTES]
            self._orders.put(f"put {len(chunk)}\n".encode() + chunk)
        self.order(f"unpack {where}")

    def answer(self, *wanted: str, watch: Callable[[], None]) -> Message:
        """Wait for the first message that begins with one of these words.

        `watch` is called meanwhile, and raises when there is no more point in waiting.
        """
        while True:
            for message in self._unread:
                if any(f"{message[0]} ".startswith(f"{words} ") for words in wanted):
                    self._unread.remove(message)
                    return message
            try:
                self._unread.append(self._messages.get(timeout=0.1))
            except queue.Empty:
                watch()

    def take(self, word: str) -> list[str]:
        """Return what has come so far of messages with this first word, without it."""
        self._unread += [self._messages.get() for _ in range(self._messages.qsize())]
        found = [text for text, _ in self._unread if text.startswith(f"{word} ")]
        self._unread = [message for message in self._unread if message[0] not in found]
        return [text.removeprefix(f"{word} ") for text in found]

    def lost(self) -> str | None:
        """Say why nothing more will come; None while the connection is good."""
        if self._ended is not None:
            return self._ended
        silence_s = SILENCE_S if self._greeted else GREETING_S
        if time.monotonic() - self._heard > silence_s:
            return f"no answer for {silence_s:.0f} s"
        return None

    def close(self) -> None:
        """End the connection. The guard undoes what is not yet undone, and ends."""
        self._orders.put(None)
        try:
            self._process.wait(timeout=0 if self.lost() else END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    # --- the threads

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin
        try:
            with stdin:
                while True:
                    try:
                        data = self._orders.get(timeout=BEAT_S)
                    except queue.Empty:
                        data = b".\n"
                    if data is None:
                        return
                    stdin.write(data)
                    stdin.flush()
        except OSError:
            pass  # it has ended: the reader says so

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout
        why = None
        try:
            while line := stdout.readline():
                self._heard = time.monotonic()
                text = line.decode(errors="replace").strip()
                if text == GREETING:
                    self._greeted = True
                    self._errors_begin = os.fstat(self._errors.fileno()).st_size
                if text.startswith("files "):
                    self._messages.put(("files", self._file(stdout, int(text.split()[1]))))
                elif text != ".":
                    self._messages.put((text, None))
        except (OSError, ValueError) as error:
            why = f"what came could not be kept: {error}"
        self._ended = why or self._last_words()

    def _file(self, stdout: IO[bytes], size: int) -> IO[bytes]:
        file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 (its reader's)
        while size > 0 and (part := stdout.read1(min(size, CHUNK_BYTES))):  # type: ignore[attr-defined]
            self._heard = time.monotonic()
            file.write(part)
            size -= len(part)
        file.seek(0)
        return file

    def _last_words(self) -> str:
        """What ssh, sudo or the shell said last."""
        self._errors.seek(self._errors_begin)
        text = self._errors.read().decode(errors="replace")
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return lines[-1].rstrip(".") if lines else "the connection ended"
