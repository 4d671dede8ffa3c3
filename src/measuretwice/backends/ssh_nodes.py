"""The nodes of a nodes.toml: on which machines they are, the ssh connection to each, and what is asked of them.

    ssh_config = "ssh_config"     # optional: what ssh is told with -F; else it reads its own files
    sudo = false                  # optional: who logs in is root already. Default: true

    [nodes.romeo]
    ssh = "ubuntu@192.0.2.7"      # as typed after ssh: user@host, ssh://user@host:port, or a Host
                                  # alias of that configuration

Every node of the lab stands in it, and no other. Jump hosts, keys and ports belong into ssh's
configuration. Interfaces aren't named: they are found by the addresses that lab.toml has.
A path is meant from the folder of the file that names it.

At the far end of a connection runs scripts/remote/guard.sh; it undoes what a trial changed there, whatever ends us.
"""

from __future__ import annotations

import os
import queue
import re
import statistics
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from measuretwice.backends.backend import BackendLost, needs
from measuretwice.base.errors import UserError
from measuretwice.base.paths import REMOTE_GUARD
from measuretwice.lab import Lab, Plan

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
# Files of two nodes are put side by side by their clocks.
CLOCKS_S = 1.0
ASK_S = 60.0
# What ssh takes for a destination, and nothing that it would take for an option. An address of
# version 6 stands in brackets only after ssh://.
_DESTINATION = re.compile(
    r"(?:[\w.+-]+@)?[A-Za-z0-9_][\w.:%-]*"
    r"|ssh://(?:[\w.+-]+@)?(?:[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?",
    re.ASCII,
)


class _Node(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    ssh: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    ssh_config: Annotated[str, Field(min_length=1)] | None = None
    sudo: bool = True
    nodes: dict[str, _Node]


@dataclass(frozen=True)
class NodeList:
    """A nodes.toml that fits its lab: what ssh calls each node, by the lab's names in their order.

    `ssh_config` is a file that exists, by its absolute path.
    """

    path: Path
    destinations: Mapping[str, str]
    ssh_config: Path | None
    sudo: bool

    def ssh(self, node: str) -> list[str]:
        """Return the command that reaches a node, up to and with its destination.

        What goes before the destination (ssh's options) can be put in after the first word.
        """
        configured = ["-F", str(self.ssh_config)] if self.ssh_config else []
        return ["ssh", *configured, "--", self.destinations[node]]


def read_node_list(path: Path, names: Sequence[str]) -> NodeList:
    """Read a nodes.toml for the lab whose nodes are `names`.

    UserError names the file, the key and what to do.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{path}: {_first_problem(error)}") from None
    missing = [name for name in names if name not in file.nodes]
    unknown = [name for name in file.nodes if name not in names]
    if missing or unknown:
        what = f"it has no [nodes.{missing[0]}]" if missing else f"{unknown[0]!r} is no node"
        raise UserError(f"{path}: nodes: {what} of this lab; its nodes are {', '.join(names)}")
    destinations: dict[str, str] = {}
    for name in names:
        destination = file.nodes[name].ssh
        if not _DESTINATION.fullmatch(destination):
            raise UserError(
                f"{path}: nodes.{name}.ssh: expected what you type after ssh, as user@host or an "
                f"alias; options belong into ssh_config; got {destination!r}"
            )
        for other, used in destinations.items():
            if used == destination:
                raise UserError(
                    f"{path}: nodes.{name}.ssh: {destination} is {other} already; each node is a machine of its own"
                )
        destinations[name] = destination
    return NodeList(path, destinations, _config(path, file.ssh_config), file.sudo)


def node_list_text(destinations: Mapping[str, str], comment: str) -> str:
    """Return a nodes.toml, with a first line that says where it comes from."""
    parts = [f"# {' '.join(comment.split())}\n"]
    parts += [
        f'\n[nodes.{name}]\nssh = "{destination}"\n' for name, destination in destinations.items()
    ]
    return "".join(parts)


def _config(path: Path, named: str | None) -> Path | None:
    if named is None:
        return None
    try:
        config = (path.parent / Path(named).expanduser()).resolve()
    except (RuntimeError, OSError, ValueError):  # ~somebody who isn't here, or no name of a file
        config = path.parent / named
    try:
        exists = config.is_file()
    except (OSError, ValueError):  # a name that no file can have
        exists = False
    if not exists:
        raise UserError(f"{path}: ssh_config: there is no file {str(config)[:200]}")
    return config


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        fields = _Node.model_fields if key.startswith("nodes.") else _File.model_fields
        return f"{key}: no such key; expected one of {', '.join(fields)}"
    if first["type"] == "missing":
        return f'{key}: this is missing; each node has [nodes.NAME] with ssh = "user@host"'
    return f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}, got {first['input']!r}"


class Channel:
    """One ssh process to a node, from the first question to the end: orders go into its standard input, a line
    each, and answers come out.

    A beat goes there every few seconds and is answered. So the node notices a cut link, and so do we, whatever ssh's
    own configuration says. Two threads serve a channel; all methods return at once or take a `watch`.
    """

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
        messages = [text for text, _ in self._unread if text.startswith(f"{word} ")]
        self._unread = [message for message in self._unread if message[0] not in messages]
        return [text.removeprefix(f"{word} ") for text in messages]

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
        """Return the last line that ssh, sudo or the shell wrote to stderr."""
        self._errors.seek(self._errors_begin)
        text = self._errors.read().decode(errors="replace")
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return lines[-1].rstrip(".") if lines else "the connection ended"


class NodeLost(BackendLost):
    """A node doesn't answer any more; what comes after on these nodes is in vain."""


class Nodes:
    """Connections to all nodes of a lab, by name, and what was found out about them."""

    def __init__(self, node_list: NodeList) -> None:
        """Begin to connect, to all at once."""
        guard = REMOTE_GUARD.read_bytes()
        # ssh's far end knows by which of its addresses it was reached; sudo would hide it.
        command = f'{"sudo -n " if node_list.sudo else ""}bash -s -- "$SSH_CONNECTION"'
        self.channels = {
            node: Channel(node_list.ssh(node), command, guard) for node in node_list.destinations
        }
        self.destinations = node_list.destinations
        self.stopping = threading.Event()
        # What could not be put back, a line each.
        self.remarks: list[str] = []
        self.kernels: dict[str, str] = {}
        self.tools: dict[str, str] = {}
        # What is wrong, a line each.
        self._problems: list[str] = []

    @property
    def kernel_name(self) -> str:
        """Return what a plan calls the nodes' kernels."""
        return f"nodes linux {', '.join(sorted(set(self.kernels.values())))}"

    def greet(self, tools: Mapping[str, list[str]]) -> None:
        """Wait until each node answers or surely doesn't; note its kernel, and its tools' versions."""
        versions: dict[str, set[str]] = {name: set() for name in tools}
        for node, channel in self.channels.items():
            try:
                channel.answer(GREETING, watch=_limit(node, channel, GREETING_S))
                for name, command in tools.items():
                    channel.order(f"tool {name} {' '.join(command)}")
                channel.order("tell")
                channel.answer("told", watch=_limit(node, channel, ASK_S))
            except NodeLost as error:
                refused = channel.take("wrong")
                self._problems.append(
                    f"{node}: {refused[0]}" if refused else self._hint(node, error)
                )
                continue
            facts = dict(fact.partition(" ")[::2] for fact in channel.take("fact"))
            self.kernels[node] = facts.get("kernel", "unknown")
            for name in tools:
                versions[name].add(facts.get(name, "unknown"))
        self.tools = {name: "; ".join(sorted(texts)) for name, texts in versions.items()}

    def _hint(self, node: str, error: NodeLost) -> str:
        reason = str(error)
        if "sudo" in reason:
            return f"{reason}: sudo must work there without a password; or log in as root, with sudo = false"
        return f"{reason}: try ssh {self.destinations[node]} by hand"

    def problems(self, lab: Lab, plans: Iterable[Plan]) -> list[str]:
        """Ask each node whether these plans can run there; nothing is changed.

        Returns a line for each node that can't, with all that is wrong there.
        """
        problems = list(self._problems)
        topology = lab.file.topology
        ends = [end for link in topology.links for end in (link.a, link.b)]
        needed = needs(lab, plans)
        offsets: dict[str, float] = {}
        asked = [node for node in self.channels if node in self.kernels]
        for node in topology.nodes:
            if node.name not in asked:
                continue
            channel = self.channels[node.name]
            for end in ends:
                what = "address" if end.node == node.name else "peer"
                channel.order(f"{what} {IPv4Interface(end.address).ip}")
            if node.forward:
                channel.order("forward")
            for words, command in needed.items():
                channel.order(f"need {words}\t{command}")
            channel.order("ask")
        for name in asked:
            channel = self.channels[name]
            watch = _limit(name, channel, ASK_S)
            try:
                channel.answer("asked", watch=watch)
                before = time.time()
                channel.order("clock")
                answer, _ = channel.answer("clock", watch=watch)
                offsets[name] = float(answer.split()[1]) - (before + time.time()) / 2
            except NodeLost as error:
                problems.append(str(error))
            if wrong := channel.take("wrong"):
                problems.append(f"{name}: {'; '.join(wrong)}")
        return problems + clock_problems(offsets)

    def watch(self) -> None:
        """Raise NodeLost where a node is, UserError where everything shall end."""
        if self.stopping.is_set():
            raise UserError("stopped", 1)
        for node, channel in self.channels.items():
            if why := channel.lost():
                raise NodeLost(f"lost {node}: {why}", 1)

    def close(self) -> None:
        """End all connections, at once."""
        ends = [threading.Thread(target=channel.close) for channel in self.channels.values()]
        for end in ends:
            end.start()
        for end in ends:
            end.join()


def _limit(node: str, channel: Channel, seconds: float) -> Callable[[], None]:
    """A watch over one node that raises NodeLost when it is lost, or after so many seconds."""
    until = time.monotonic() + seconds

    def watch() -> None:
        why = channel.lost()
        if why is None and time.monotonic() > until:
            why = f"not done after {seconds:.0f} s"
        if why:
            raise NodeLost(f"{node}: {why}", 1)

    return watch


def clock_problems(offsets: Mapping[str, float]) -> list[str]:
    """Return a line for each node whose clock is apart from most others'. Offsets in seconds."""
    if not offsets:
        return []
    middle = statistics.median_low(offsets.values())
    return [
        f"{node}: its clock is {abs(offset - middle):.1f} s {'ahead' if offset > middle else 'behind'}: "
        "let NTP set it (timedatectl set-ntp true)"
        for node, offset in offsets.items()
        if abs(offset - middle) > CLOCKS_S
    ]
