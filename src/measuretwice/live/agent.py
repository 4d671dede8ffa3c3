"""Inside the virtual kernel: the shells of a live lab, each on its node and on a terminal of its own.

    python3 -m measuretwice.live.agent CONSOLE RCFILE FOLDER

CONSOLE is the device that leads to the keeper outside (session.py). A shell begins in
FOLDER/<node>/. It ends when told OFF, or when the console ends.
"""

from __future__ import annotations

import contextlib
import os
import pty
import selectors
import signal
import sys
import tty
from dataclasses import dataclass, field
from functools import partial

from measuretwice.live import wire


@dataclass
class Shell:
    """A bash and its terminal; `typed` is what the terminal has not taken yet."""

    number: int
    pid: int
    terminal: int
    typed: bytes = b""


@dataclass
class Agent:
    console: int
    rcfile: str
    folder: str
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    shells: dict[int, Shell] = field(default_factory=dict)

    def say(self, kind: bytes, shell: int, payload: bytes | wire.Message = b"") -> None:
        wire.write_all(self.console, wire.pack(kind, shell, payload))

    def open(self, number: int, wanted: wire.Opening) -> None:
        """Start bash on a node. On one that isn't there it ends at once, with status 127."""
        pid, terminal = pty.fork()
        if pid == 0:
            self._become_bash(wanted)
        os.set_blocking(terminal, False)
        wire.set_size(terminal, wanted.rows, wanted.columns)
        shell = self.shells[number] = Shell(number, pid, terminal)
        # The process, not its terminal, says when a shell has ended: what it left running in the
        # background may hold the terminal open.
        ended = os.pidfd_open(pid)
        self.selector.register(ended, selectors.EVENT_READ, partial(self._end, shell, ended))
        self.selector.register(terminal, selectors.EVENT_READ, partial(self._move, shell))

    def _become_bash(self, wanted: wire.Opening) -> None:
        """In the child; never returns."""
        node = wanted.node
        try:
            os.chdir(f"{self.folder}/{node}")
            os.environ |= {"NODE": node, "TERM": wanted.term}
            how = ["--rcfile", self.rcfile, "-i"]
            if wanted.command:
                how = ["-c", f'. "$0"; {wanted.command}', self.rcfile]
            os.execvp("ip", ["ip", "netns", "exec", node, "bash", *how])
        except OSError as error:
            print(f"{node}: {error.strerror}", file=sys.stderr)
        finally:
            os._exit(127)

    def _move(self, shell: Shell, events: int) -> None:
        """Pass on what a terminal shows, and give it what it hasn't taken yet of what was typed."""
        if self.shells.get(shell.number) is not shell:
            return  # it ended in this round of events: its terminal is closed, its number free again
        if events & selectors.EVENT_WRITE:
            self.type(shell, b"")
        if events & selectors.EVENT_READ and not self._show(shell):
            # All have closed it; _end follows, or has been.
            self.selector.unregister(shell.terminal)

    def _show(self, shell: Shell) -> bool:
        """Pass on a portion; False at the end of what there is."""
        try:
            data = os.read(shell.terminal, wire.PORTION_BYTES)
        except OSError:  # EIO: nobody has it open any more. EAGAIN: nothing there.
            return False
        self.say(wire.DATA, shell.number, data)
        return bool(data)

    def type(self, shell: Shell, data: bytes) -> None:
        """Type on a terminal, without waiting for a program that doesn't read."""
        shell.typed += data
        with contextlib.suppress(BlockingIOError, OSError):
            shell.typed = shell.typed[os.write(shell.terminal, shell.typed) :]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if shell.typed else 0)
        with contextlib.suppress(KeyError):
            self.selector.modify(shell.terminal, wanted, partial(self._move, shell))

    def _end(self, shell: Shell, ended: int, _: int) -> None:
        """A shell has ended: show its last words and say its status, if anybody still listens."""
        self.selector.unregister(ended)
        os.close(ended)
        _, status = os.waitpid(shell.pid, 0)
        if self.shells.get(shell.number) is shell:
            while self._show(shell):
                pass
            self._release(shell)
            code = os.waitstatus_to_exitcode(status)
            status = code if code >= 0 else 128 - code
            self.say(wire.EXIT, shell.number, wire.Exit(status))

    def hang_up(self, shell: Shell) -> None:
        """Its person's terminal has gone: all that runs in it is told so, as on any machine."""
        self._release(shell)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGHUP)

    def _release(self, shell: Shell) -> None:
        del self.shells[shell.number]
        with contextlib.suppress(KeyError):
            self.selector.unregister(shell.terminal)
        os.close(shell.terminal)

    def obey(self, frame: wire.Frame) -> None:
        shell = self.shells.get(frame.shell)
        if frame.kind == wire.OPEN:
            self.open(frame.shell, frame.read(wire.Opening))
        elif shell and frame.kind == wire.CLOSE:
            self.hang_up(shell)
        elif shell and frame.kind == wire.SIZE:
            size = frame.read(wire.Size)
            wire.set_size(shell.terminal, size.rows, size.columns)
        elif shell and frame.kind == wire.DATA:
            self.type(shell, frame.payload)

    def serve(self) -> None:
        """Do what the frames from the console ask for, until OFF."""
        tty.setraw(self.console)
        reader = wire.Reader()
        self.selector.register(self.console, selectors.EVENT_READ)
        self.say(wire.READY, 0)
        while True:
            for key, events in self.selector.select():
                if key.fd != self.console:
                    key.data(events)
                    continue
                data = os.read(self.console, wire.PORTION_BYTES)
                if not data:
                    return
                self.say(wire.TAKEN, 0, wire.Taken(len(data)))
                for frame in reader.feed(data):
                    if frame.kind == wire.OFF:
                        return
                    self.obey(frame)


if __name__ == "__main__":
    Agent(os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY), sys.argv[2], sys.argv[3]).serve()
