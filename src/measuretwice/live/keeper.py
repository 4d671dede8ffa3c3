"""Keeps a live lab's kernel, in the background: carries bytes between terminals and their shells.

    python3 -m measuretwice.live.keeper STATE-FOLDER (started by session.py, which prepared the folder)

It ends with its kernel, and the kernel with it, however either ends.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from measuretwice.backends import virtual
from measuretwice.live import wire

# Where the kernel's second console is: its first is for the kernel's own messages.
CONSOLE = 1
START_SECONDS = 60
OFF_SECONDS = 5
# A terminal that doesn't read for so long loses what is shown meanwhile.
MOST_KEPT_BYTES = 4 * 2**20


@dataclass
class Client:
    """A terminal; `number` is its shell's, `waiting` what it hasn't read yet."""

    link: socket.socket
    reader: wire.Reader = field(default_factory=wire.Reader)
    number: int | None = None
    waiting: bytes = b""


@dataclass
class Keeper:
    listener: socket.socket
    console: socket.socket
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    clients: dict[int, Client] = field(default_factory=dict)
    off_at: float | None = None
    unsent: bytes = b""
    on_its_way_bytes: int = 0

    def tell(self, kind: bytes, shell: int, payload: bytes | wire.Message = b"") -> None:
        """Say something to the agent inside, as soon as it has room."""
        self.unsent += wire.pack(kind, shell, payload)
        self._send()

    def taken(self, count: int) -> None:
        """The agent has read so many bytes."""
        self.on_its_way_bytes -= count
        self._send()

    def _send(self) -> None:
        part = self.unsent[: wire.WINDOW_BYTES - self.on_its_way_bytes]
        self.unsent = self.unsent[len(part) :]
        self.on_its_way_bytes += len(part)
        with contextlib.suppress(OSError):  # the kernel has gone: its end is noticed elsewhere
            self.console.sendall(part)

    def switch_off(self) -> None:
        self.tell(wire.OFF, 0)
        self.off_at = self.off_at or time.monotonic()

    def accept(self, _: int) -> None:
        link, _ = self.listener.accept()
        link.setblocking(False)
        client = Client(link)
        self.selector.register(link, selectors.EVENT_READ, partial(self._serve, client))

    def _serve(self, client: Client, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._show(client, b"")
        if not events & selectors.EVENT_READ:
            return
        try:
            data = client.link.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave(client)
            return
        for frame in client.reader.feed(data):
            self._obey(client, frame)

    def _obey(self, client: Client, frame: wire.Frame) -> None:
        if frame.kind == wire.OFF:
            self.switch_off()
        elif frame.kind == wire.OPEN and client.number is None:
            free = (n for n in range(1, wire.MAX_SHELLS + 1) if n not in self.clients)
            number = next(free, None)
            if number is None:
                self._show(client, wire.pack(wire.EXIT, 0, wire.Exit(1)))
                return
            client.number = number
            self.clients[number] = client
            self.tell(wire.OPEN, number, frame.payload)
        elif client.number is not None:
            self.tell(frame.kind, client.number, frame.payload)

    def _leave(self, client: Client) -> None:
        """A terminal has gone, its window closed or its process killed: so has its shell."""
        self.selector.unregister(client.link)
        client.link.close()
        if client.number is not None:
            del self.clients[client.number]
            self.tell(wire.CLOSE, client.number)

    def _show(self, client: Client, data: bytes) -> None:
        if len(client.waiting) < MOST_KEPT_BYTES:
            client.waiting += data
        with contextlib.suppress(OSError):
            client.waiting = client.waiting[client.link.send(client.waiting) :]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.waiting else 0)
        self.selector.modify(client.link, wanted, partial(self._serve, client))

    def pass_on(self, frame: wire.Frame) -> None:
        """Give what a shell says to its terminal."""
        client = self.clients.get(frame.shell)
        if client is None:
            return
        if frame.kind == wire.EXIT:
            # Its number is free again; the terminal closes the connection when it has read this.
            del self.clients[frame.shell]
            client.number = None
        self._show(client, wire.pack(frame.kind, frame.shell, frame.payload))


def keep(state: Path, folder: Path, root: Path, memory_mb: int, tells: int) -> None:
    """Start the kernel and serve until it ends. Writes one line to the descriptor `tells`: ready,
    or why not."""
    listener = socket.socket(socket.AF_UNIX)
    # A socket's whole path may have only 107 characters; from within its folder it is short.
    os.chdir(state)
    listener.bind("socket")
    listener.listen(64)
    console, far_end = socket.socketpair()
    keeper = Keeper(listener, console)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: keeper.switch_off())
    kernel = virtual.find_kernel()
    assert kernel is not None  # session.py has seen to it
    process = virtual.start(
        kernel, root, folder, f"con{CONSOLE}=fd:{far_end.fileno()}",
        memory_mb=memory_mb, pass_fd=far_end.fileno(), folders=virtual.LIVE_FOLDERS,
    )  # fmt: skip
    far_end.close()
    try:
        _serve(keeper, os.pidfd_open(process.pid), tells)
    finally:
        virtual.end(process, folder)


def _serve(keeper: Keeper, kernel: int, tells: int) -> None:
    """Until the kernel ends, or doesn't in spite of being tells."""
    chosen = keeper.selector
    chosen.register(kernel, selectors.EVENT_READ)
    chosen.register(keeper.console, selectors.EVENT_READ)
    chosen.register(keeper.listener, selectors.EVENT_READ, keeper.accept)
    reader, ready, began = wire.Reader(), False, time.monotonic()
    while True:
        late = not ready and time.monotonic() - began > START_SECONDS
        if late or (keeper.off_at and time.monotonic() - keeper.off_at > OFF_SECONDS):
            return
        for key, events in chosen.select(timeout=1):
            if key.fd == kernel:
                return
            if key.fd != keeper.console.fileno():
                key.data(events)
                continue
            data = keeper.console.recv(65536)
            if not data:
                return
            for frame in reader.feed(data):
                if frame.kind == wire.READY:
                    if ready:
                        continue
                    ready = True
                    os.write(tells, b"ready\n")
                    os.close(tells)
                elif frame.kind == wire.TAKEN:
                    keeper.taken(frame.read(wire.Taken).bytes)
                else:
                    keeper.pass_on(frame)


def main() -> None:
    state, folder, root, memory_mb, tells = sys.argv[1:]
    try:
        keep(Path(state), Path(folder), Path(root), int(memory_mb), int(tells))
    finally:
        # The lock, which our caller handed down and which goes with this process, is still held.
        shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main()
