"""A lab's topology as a testbed builds it: networks, one interface a node on each, static routes.

In the virtual kernel every link is a cable of its own. Where several cables end at one address of
one node, as the hosts of one side at their router, they are one network here: a testbed's Ethernet
joins them, and the router needs one card instead of ten. An address is then on one interface only,
so that it can be found by it.

Delays, rates and queues aren't here: the lab's node scripts set them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab

# What a node gets where the testbed gives virtual machines: what FABRIC's library asks for by
# itself. It keeps a small project within what it may have.
CORES = 2
MEMORY_GB = 8
DISK_GB = 10


@dataclass(frozen=True)
class Network:
    """One Ethernet: its subnet, and each member's node and address."""

    name: str
    subnet: IPv4Network
    members: tuple[tuple[str, IPv4Interface], ...]


@dataclass(frozen=True)
class Route:
    """Packets for `subnet` go to `gateway`, a neighbour's address."""

    subnet: IPv4Network
    gateway: IPv4Address


@dataclass(frozen=True)
class Machine:
    """One node: what it needs besides its interfaces."""

    name: str
    forward: bool
    routes: tuple[Route, ...]


@dataclass(frozen=True)
class Layout:
    """A lab's nodes and networks, as a testbed has them."""

    lab: str
    title: str
    machines: tuple[Machine, ...]
    networks: tuple[Network, ...]

    @property
    def interfaces(self) -> int:
        return sum(len(network.members) for network in self.networks)

    @property
    def most_interfaces(self) -> int:
        """Return how many cards the node with most of them needs."""
        ends = [node for network in self.networks for node, _ in network.members]
        return max((ends.count(machine.name) for machine in self.machines), default=0)

    @property
    def cores(self) -> int:
        return CORES * len(self.machines)

    @property
    def memory_gb(self) -> int:
        return MEMORY_GB * len(self.machines)

    @property
    def disk_gb(self) -> int:
        return DISK_GB * len(self.machines)


def layout_of(lab: Lab) -> Layout:
    """Return what a testbed has to build for `lab`; UserError where it couldn't."""
    where = f"{lab.place}: topology"
    networks = _networks(lab, where)
    machines = tuple(
        Machine(node.name, node.forward, tuple(_routes(node.name, node.routes, networks, where)))
        for node in lab.file.topology.nodes
    )
    return Layout(lab.name, lab.file.lab.title, machines, networks)


def _networks(lab: Lab, where: str) -> tuple[Network, ...]:
    """Links that share an end, a node with one address, are one network."""
    groups: list[dict[tuple[str, IPv4Interface], None]] = []
    for link in lab.file.topology.links:
        ends = {(end.node, IPv4Interface(end.address)): None for end in (link.a, link.b)}
        touching = [group for group in groups if ends.keys() & group.keys()]
        joined: dict[tuple[str, IPv4Interface], None] = {}
        for group in touching:
            joined |= group
            groups.remove(group)
        groups.append(joined | ends)
    networks = []
    for number, group in enumerate(groups, 1):
        subnets = {address.network for _, address in group}
        if len(subnets) > 1:
            raise UserError(f"{where}: one link has ends in {_list(subnets)}: give both one subnet")
        networks.append(Network(f"net-{number}", subnets.pop(), tuple(group)))
    for network in networks:
        for other in networks:
            if network is not other and network.subnet.overlaps(other.subnet):
                raise UserError(
                    f"{where}: {network.subnet} and {other.subnet} are separate networks: a testbed's "
                    "routes couldn't tell them apart; give each a subnet of its own"
                )
    return tuple(networks)


def _routes(
    node: str, lines: list[str], networks: tuple[Network, ...], where: str
) -> Iterable[Route]:
    """A route to each of the lab's networks that isn't the node's own.

    Never a default route: on a testbed that one leads to whoever logs in.
    """
    subnets = [
        network.subnet for network in networks for name, _ in network.members if name == node
    ]
    known: list[Route] = []
    for line in lines:
        try:
            match line.split():
                case ["default", "via", via]:
                    known.append(Route(IPv4Network("0.0.0.0/0"), IPv4Address(via)))
                case [to, "via", via]:
                    known.append(Route(IPv4Network(to), IPv4Address(via)))
                case [to, "dev", _] if any(IPv4Address(to) in subnet for subnet in subnets):
                    pass  # on a network of its own: no route is needed
                case _:
                    raise ValueError
        except ValueError:
            raise UserError(
                f"{where}: {node}: no testbed can be told the route {line!r}; "
                "expected SUBNET via ADDRESS"
            ) from None
    for network in networks:
        if network.subnet in subnets:
            continue
        fitting = [route for route in known if network.subnet.subnet_of(route.subnet)]
        if not fitting:
            continue
        best = max(fitting, key=lambda route: route.subnet.prefixlen)
        if not any(best.gateway in subnet for subnet in subnets):
            raise UserError(f"{where}: {node}: {best.gateway} is no neighbour of it")
        yield Route(network.subnet, best.gateway)


def _list(subnets: Iterable[IPv4Network]) -> str:
    return " and ".join(sorted(map(str, subnets)))
