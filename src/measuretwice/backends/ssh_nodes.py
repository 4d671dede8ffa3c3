"""The nodes of a nodes.toml: reached, asked whether they can run a lab, and let go again.

Before the first trial all is asked, of all nodes at once, and nothing is changed. A node's side
is scripts/remote/guard.sh; it undoes what a trial changed there, whatever ends us.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Interface

from measuretwice.backends.backend import BackendLost
from measuretwice.backends.needs import needs
from measuretwice.backends.node_list import NodeList
from measuretwice.backends.ssh_channel import GREETING, GREETING_S, Channel
from measuretwice.base.errors import UserError
from measuretwice.base.paths import REMOTE_GUARD
from measuretwice.lab import Lab, Plan

# Files of two nodes are put side by side by their clocks.
CLOCKS_S = 1.0
ASK_S = 60.0


class NodeLost(BackendLost):
    """A node doesn't answer any more; what comes after on these nodes is in vain."""


class Nodes:
    """Connections to all nodes of a lab, by name, and what was found out about them."""

    def __init__(self, listed: NodeList) -> None:
        """Begin to connect, to all at once."""
        guard = REMOTE_GUARD.read_bytes()
        # ssh's far end knows by which of its addresses it was reached; sudo would hide it.
        command = f'{"sudo -n " if listed.sudo else ""}bash -s -- "$SSH_CONNECTION"'
        self.channels = {
            node: Channel(listed.ssh(node), command, guard) for node in listed.destinations
        }
        self.destinations = listed.destinations
        self.stopping = threading.Event()
        # What could not be put back, a line each.
        self.remarks: list[str] = []
        self.kernels: dict[str, str] = {}
        self.tools: dict[str, str] = {}
        # What is wrong, a line each.
        self._problems: list[str] = []

    @property
    def kernel_name(self) -> str:
        """What a plan calls the nodes' kernels."""
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
        self.tools = {name: "; ".join(sorted(found)) for name, found in versions.items()}

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
