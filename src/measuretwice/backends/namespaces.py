"""A lab's topology as commands: namespaces, veth pairs, addresses, routes, neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Interface

from measuretwice.lab import Edges, Topology


@dataclass(frozen=True)
class Interface:
    """One end of a link. MAC addresses are fixed: they are part of what makes runs repeat."""

    node: str
    name: str
    address: IPv4Interface
    mac: str
    peer_mac: str
    peer_address: IPv4Interface


def interfaces(topology: Topology) -> list[Interface]:
    """Return both ends of every link, named eth0, eth1 ... on each node in order of links."""
    used: dict[str, int] = {}
    result: list[Interface] = []
    for number, link in enumerate(topology.links, start=1):
        macs = [f"02:00:00:00:{number:02x}:{end:02x}" for end in (1, 2)]
        addresses = [IPv4Interface(link.a.address), IPv4Interface(link.b.address)]
        for end, (node, other) in enumerate(((link.a.node, 1), (link.b.node, 0))):
            index = used.get(node, 0)
            used[node] = index + 1
            result.append(
                Interface(
                    node, f"eth{index}", addresses[end], macs[end], macs[other], addresses[other]
                )
            )
    return result


def build_commands(topology: Topology, prefix: str = "") -> list[str]:
    """Return shell lines that make the topology. `prefix` goes before each namespace's name.

    Neighbours are static: address resolution would add packets whose time varies.
    """
    ends = interfaces(topology)
    made = [f"netns add {prefix}{node.name}" for node in topology.nodes]
    for a, b in zip(ends[::2], ends[1::2], strict=True):
        made.append(
            f"link add {a.name} netns {prefix}{a.node} address {a.mac} type veth "
            f"peer name {b.name} netns {prefix}{b.node} address {b.mac}"
        )
    lines = [*topology.art.strip("\n").splitlines()]
    lines = [f"# {line}".rstrip() for line in lines]
    lines += _batch("ip -batch -", made)
    for node in topology.nodes:
        inside = ["link set lo up"]
        for end in (end for end in ends if end.node == node.name):
            inside += [
                f"addr add {end.address} dev {end.name}",
                f"link set {end.name} up",
                f"neigh add {end.peer_address.ip} lladdr {end.peer_mac} dev {end.name} nud permanent",
            ]
        inside += [f"route add {route}" for route in node.routes]
        lines += _batch(f"ip -n {prefix}{node.name} -batch -", inside)
        if node.forward:
            lines.append(f"ip netns exec {prefix}{node.name} sysctl -qw net.ipv4.ip_forward=1")
    return lines


def edge_commands(
    edges: Edges, topology: Topology, speed_mbit: int, processing_us: int
) -> list[str]:
    """Return shell lines that give the hosts' cables their speed, and the hosts their processing.

    They are for the virtual kernel, whose cables can have both: a cable's two ends have one speed,
    and what ethtool calls rx-usecs is the most that a packet waits for its host.
    """
    lines = []
    for end in interfaces(topology):
        if end.node not in edges.hosts:
            continue
        at = f"ip netns exec {end.node} ethtool"
        if speed_mbit:
            lines.append(f"{at} -s {end.name} speed {speed_mbit} duplex full autoneg off")
        if processing_us:
            lines.append(f"{at} -C {end.name} rx-usecs {processing_us}")
    return lines


def _batch(command: str, lines: list[str]) -> list[str]:
    return [f"{command} <<'END'", *lines, "END"]
