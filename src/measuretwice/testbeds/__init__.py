"""A lab on a testbed: its networks as one builds them, what it is given (a FABRIC notebook, a CloudLab profile), and what
it gives back.

All of it is made from lab.toml, so that it can't differ from it. Nothing here reaches a testbed.

In the virtual kernel every link is a cable of its own. Where several cables end at one address of
one node, as the hosts of one side at their router, they are one network here: a testbed's Ethernet
joins them, and the router needs one card instead of ten. An address is then on one interface only,
so that it can be found by it. Delays, rates and queues aren't here: the lab's node scripts set them.
"""

from __future__ import annotations

import json
import pprint
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab

TEMPLATES = Path(__file__).parent / "templates"
# A manifest's elements: GENI's RSpec, version 3.
_RSPEC = "{http://www.geni.net/resources/rspec/3}"
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
    where = f"{lab.shown_path}: topology"
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
    routes: list[Route] = []
    for line in lines:
        try:
            match line.split():
                case ["default", "via", via]:
                    routes.append(Route(IPv4Network("0.0.0.0/0"), IPv4Address(via)))
                case [to, "via", via]:
                    routes.append(Route(IPv4Network(to), IPv4Address(via)))
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
        fitting = [route for route in routes if network.subnet.subnet_of(route.subnet)]
        if not fitting:
            continue
        best = max(fitting, key=lambda route: route.subnet.prefixlen)
        if not any(best.gateway in subnet for subnet in subnets):
            raise UserError(f"{where}: {node}: {best.gateway} is no neighbour of it")
        yield Route(network.subnet, best.gateway)


def _list(subnets: Iterable[IPv4Network]) -> str:
    return " and ".join(sorted(map(str, subnets)))


def fabric_notebook(lab: Lab) -> str:
    """Return a Jupyter notebook that builds the lab's topology with FABRIC's library, as JSON."""
    cells = []
    for number, part in enumerate(_render(lab, "fabric.py.j2").split("# %%")[1:], 1):
        head, _, body = part.partition("\n")
        cell: dict[str, Any] = {"cell_type": "code", "id": f"cell-{number}", "metadata": {}}
        if head.strip() == "[markdown]":
            cell["cell_type"] = "markdown"
            body = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        else:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell | {"source": body.strip("\n").splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return (
        json.dumps(
            {
                "cells": cells,
                "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            },
            ensure_ascii=False,
            indent=1,
            sort_keys=True,
        )
        + "\n"
    )


def cloudlab_profile(lab: Lab) -> str:
    """Return a profile for CloudLab's portal: a geni-lib script, good for Python 2.7 and 3."""
    return _render(lab, "cloudlab.py.j2")


def manifest_logins(text: str, lab: Lab, user: str | None = None) -> dict[str, str]:
    """Return how ssh reaches each of the lab's nodes, from the manifest of a CloudLab experiment.

    `user` chooses among several people's logins. UserError says what is wrong with the manifest.
    """
    if "<!DOCTYPE" in text:
        raise UserError("the manifest has a DOCTYPE, which none from a testbed has")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise UserError(f"the manifest is no XML: {error}") from None
    if root.tag != f"{_RSPEC}rspec" or root.get("type") != "manifest":
        raise UserError(
            "this is no manifest of GENI's version 3: save the text of the tab Manifest"
        )
    logins = _logins_in(root)
    by_node = {}
    for node in lab.file.topology.nodes:
        fitting = [where for name, where in logins.get(node.name, []) if user in (None, name)]
        if not fitting:
            whose = f" for {user}" if user else ""
            raise UserError(
                f"the manifest has no login{whose} on {node.name}: is it of the {lab.name} lab, and all up?"
            )
        if len(set(fitting)) > 1:
            people = sorted({name for name, _ in logins[node.name]})
            raise UserError(
                f"several people can log in: say who you are with --user, one of {', '.join(people)}"
            )
        by_node[node.name] = fitting[0]
    return by_node


def _logins_in(manifest: ET.Element) -> dict[str, list[tuple[str, str]]]:
    """Each node's logins in a manifest: whose each is, and where ssh finds it."""
    logins: dict[str, list[tuple[str, str]]] = {}
    for element in manifest.iter(f"{_RSPEC}node"):
        for login in element.iter(f"{_RSPEC}login"):
            name, host = login.get("username", ""), login.get("hostname", "")
            port = login.get("port", "22")
            where = f"{name}@{host}" if port == "22" else f"ssh://{name}@{host}:{port}"
            logins.setdefault(element.get("client_id", ""), []).append((name, where))
    return logins


def _render(lab: Lab, template: str) -> str:
    layout = layout_of(lab)
    room = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    setup = (TEMPLATES / "node-setup.sh").read_text(encoding="utf-8")
    return room.get_template(template).render(
        lab=lab.name,
        folder=lab.folder.name,
        # Within a docstring, and in a comment.
        title=" ".join(lab.file.lab.title.replace("\\", "").replace('"', "'").split()),
        machines=len(layout.machines),
        networks=len(layout.networks),
        most_interfaces=layout.most_interfaces,
        plan=pprint.pformat(_plan(layout), width=98, sort_dicts=False),
        setup=_literal(setup),
        cores=CORES,
        memory_gb=MEMORY_GB,
        disk_gb=DISK_GB,
    )


def _plan(layout: Layout) -> dict[str, Any]:
    """The layout in numbers and text only: what the files that we make say."""
    return {
        "nodes": [
            {
                "name": machine.name,
                "forward": machine.forward,
                "routes": [(str(route.subnet), str(route.gateway)) for route in machine.routes],
            }
            for machine in layout.machines
        ],
        "networks": [
            {
                "name": network.name,
                "subnet": str(network.subnet),
                "netmask": str(network.subnet.netmask),
                "members": [(node, str(address.ip)) for node, address in network.members],
            }
            for network in layout.networks
        ],
    }


def _literal(text: str) -> str:
    """Text that can be read where it stands, as a Python literal between three quotes."""
    if "'''" in text or text.endswith("'"):
        raise ValueError("this text ends its own literal")
    return "r'''" + text + "'''"
