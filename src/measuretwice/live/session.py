"""A live lab: a topology in the virtual kernel in real time, up until it is told to go down.

    runs/<lab>/.live/            while it is up: lock, socket, what it is
    runs/<lab>/live-<time>/      its own folder: live.json, raw/<node>/, what its shells remember

One a lab in one folder of runs. The lock is held by the keeper, a process in the background that carries bytes between
terminals and their shells:

    python3 -m measuretwice.live.session STATE-FOLDER ...

It ends with its kernel, and the kernel with it, however either ends.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from measuretwice.backends import virtual
from measuretwice.backends.live_script import live_script
from measuretwice.backends.script import (
    EDITED,
    INSIDE_PYTHON,
    INSIDE_ROOT,
    INSIDE_RUN,
    INSIDE_SAMPLER,
    memory_mb,
)
from measuretwice.backends.virtual import Virtual, find_kernel
from measuretwice.base.errors import UserError, without_controls
from measuretwice.base.files import hold, read_object, remove_folder, tail_of, write_json
from measuretwice.base.paths import SOURCE
from measuretwice.lab import Lab, OwnScripts, Plan, hide_unlisted
from measuretwice.live import wire
from measuretwice.runs.folder import EDIT_DIFF

# What a live lab's own folder says of it.
FACTS = "live.json"
# In its state's folder; the lock is there for as long as that is.
LOCK = "lock"
DOWN_SECONDS = 15
# Where the kernel's second console is: its first is for the kernel's own messages.
CONSOLE = 1
START_SECONDS = 60
OFF_SECONDS = 5
# A terminal that doesn't read for so long loses what is shown meanwhile.
MOST_KEPT_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Live:
    """A lab that is up: where its state is, its own folder, and the trial that it is of."""

    state: Path
    folder: Path
    lab: str
    trial: int
    keeper: int
    since: str

    @contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A connection to its keeper. UserError where nobody answers."""
        link = socket.socket(socket.AF_UNIX)
        # A socket's whole path may have only 107 characters.
        place = os.open(self.state, os.O_PATH)
        try:
            link.connect(f"/proc/self/fd/{place}/socket")
            yield link
        except (ConnectionRefusedError, FileNotFoundError):
            raise UserError(
                f"{self.lab}: its network doesn't answer: ./lab down, then up", 1
            ) from None
        finally:
            os.close(place)
            link.close()


def all_up(out: Path) -> list[Live]:
    """Return the labs that are up. What a killed one left behind is removed on the way."""
    lives = []
    for state in filter(_is_ours, sorted(out.glob("*/.live"))):
        with hold(state / LOCK) as lock:
            if lock is not None:
                _sweep(state)
                shutil.rmtree(state, ignore_errors=True)
            elif live := _read(state):
                lives.append(live)
    return lives


def _is_ours(state: Path) -> bool:
    """Return whether this is a folder of our own: another user's isn't followed."""
    status = state.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _make_state(state: Path) -> None:
    """Make a state's folder, or narrow one that is there: whoever may enter it may enter the nodes."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _is_ours(state):
        raise UserError(
            f"{state}: belongs to someone else, who could enter your nodes by it: have it removed, then run this again"
        )
    if stat.S_IMODE(state.stat().st_mode) & 0o077:
        state.chmod(0o700)


def _read(state: Path) -> Live | None:
    """Return the lab of a state's folder; None where it is just coming up or going down."""
    try:
        facts = read_object(state / "state.json")
        return Live(state, Path(facts.pop("folder")), **facts)
    except (OSError, ValueError, TypeError):
        return None


def _sweep(state: Path) -> None:
    """Remove what a killed keeper left, but for the lock, which we hold."""
    if live := _read(state):
        remove_folder(live.folder / ".uml")
    for name in ("socket", "state.json"):
        (state / name).unlink(missing_ok=True)


def bring_up(
    root: Path, lab: Lab, plan: Plan, out: Path, cpu: int, *, own: OwnScripts | None = None
) -> Live:
    """Start a lab's network and return when its nodes can be entered.

    UserError where it is up already, or doesn't come up: with the reason.
    """
    state = out / lab.name / ".live"
    _make_state(state)
    with hold(state / LOCK) as lock:
        if lock is None:
            raise UserError(f"{lab.name} is up already: ./lab enter NODE, or ./lab down first")
        _sweep(state)
        now = datetime.datetime.now().astimezone()
        script = live_script(
            lab, plan, Path(INSIDE_ROOT), INSIDE_RUN, INSIDE_SAMPLER, INSIDE_PYTHON, CONSOLE
        )
        folder = make_folder(lab, plan, out, now, script)
        if own:
            own.lay_out(lab, root / "scripts", folder / EDITED)
            (folder / EDIT_DIFF).write_text(own.diff(lab), encoding="utf-8")
        facts = {"lab": lab.name, "trial": plan.trial, "since": now.isoformat(timespec="seconds")}
        try:
            keeper = _start_keeper(root, state, folder, memory_mb(lab, plan), lock, cpu)
        except BaseException:
            shutil.rmtree(state, ignore_errors=True)
            raise
        write_json(state / "state.json", {**facts, "folder": str(folder), "keeper": keeper})
    live = _read(state)
    assert live is not None
    return live


def make_folder(lab: Lab, plan: Plan, out: Path, now: datetime.datetime, script: str) -> Path:
    """Make the own folder of a live lab that this script brings up, and return it."""
    folder = out / lab.name / f"live-{now:%Y%m%d-%H%M%S}"
    # What a person types in its shells stands in it.
    folder.mkdir(parents=True, mode=0o700)
    (folder / "raw").mkdir()
    write_json(folder / FACTS, hide_unlisted(lab, plan.to_json()))
    (folder / "experiment.sh").write_text(script, encoding="utf-8")
    return folder


def _start_keeper(
    root: Path, state: Path, folder: Path, memory_mb: int, lock: int, cpu: int
) -> int:
    """Start the keeper, wait for its word, and return its process's number."""
    hears, tells = os.pipe()
    with open(folder / "keeper.log", "wb") as log:
        process = subprocess.Popen(
            [
                sys.executable, "-P", "-m", "measuretwice.live.session",
                str(state), str(folder), str(root), str(memory_mb), str(tells),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock, tells),
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
    os.close(tells)
    try:
        os.sched_setaffinity(process.pid, {cpu})
        with open(hears, "rb") as word:
            if word.readline() == b"ready\n":
                return process.pid
    except BaseException:
        process.kill()  # its kernel dies with it
        process.wait()
        raise
    process.wait()
    kernel = find_kernel()
    damage = Virtual(kernel).damage() if kernel else None
    raise UserError(
        f"the network doesn't come up: {damage or _last_words(folder)} (see {folder})", 1
    )


def _last_words(folder: Path) -> str:
    for name in ("keeper.log", "experiment.log", "console.txt"):
        path = folder / name
        lines = [
            without_controls(line) for line in tail_of(path).strip().split("\n") if line.strip()
        ]
        lines = [line for line in lines if "Power down" not in line]
        if lines:
            return lines[-1]
    return "for no known reason"


def bring_down(live: Live) -> bool:
    """End a live lab; return, when nothing of it runs any more, whether there is a file to keep."""
    with contextlib.suppress(UserError, OSError), live.connected() as link:
        link.sendall(wire.pack(wire.OFF, 0))
    until = time.monotonic() + DOWN_SECONDS
    while time.monotonic() < until and live.state.exists():
        time.sleep(0.05)
    if live.state.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(live.keeper, signal.SIGKILL)
        time.sleep(0.2)
        all_up(live.state.parents[1])
    has_files = any(path.is_file() for path in (live.folder / "raw").rglob("*"))
    if not has_files:
        shutil.rmtree(live.folder, ignore_errors=True)
    return has_files


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
    unread_bytes: int = 0

    def tell(self, kind: bytes, shell: int, payload: bytes | wire.Message = b"") -> None:
        """Say something to the agent inside, as soon as it has room."""
        self.unsent += wire.pack(kind, shell, payload)
        self._send()

    def acknowledge(self, count: int) -> None:
        """Note that the agent has read so many bytes, and send what now has room."""
        self.unread_bytes -= count
        self._send()

    def _send(self) -> None:
        part = self.unsent[: wire.WINDOW_BYTES - self.unread_bytes]
        self.unsent = self.unsent[len(part) :]
        self.unread_bytes += len(part)
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
    kernel = find_kernel()
    assert kernel is not None  # bring_up has seen to it
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
    """Serve until the kernel exits, or ignores being told to."""
    selector = keeper.selector
    selector.register(kernel, selectors.EVENT_READ)
    selector.register(keeper.console, selectors.EVENT_READ)
    selector.register(keeper.listener, selectors.EVENT_READ, keeper.accept)
    reader, ready, began = wire.Reader(), False, time.monotonic()
    while True:
        late = not ready and time.monotonic() - began > START_SECONDS
        if late or (keeper.off_at and time.monotonic() - keeper.off_at > OFF_SECONDS):
            return
        for key, events in selector.select(timeout=1):
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
                    keeper.acknowledge(frame.read(wire.Taken).bytes)
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
