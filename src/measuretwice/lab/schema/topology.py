"""[topology]: the lab's nodes and the links between them."""

from __future__ import annotations

import re
from ipaddress import IPv4Interface
from typing import Literal

from pydantic import field_validator, model_validator

from measuretwice.lab.schema.base import Name, NodeName, Strict

IN_BRACES = re.compile(r"\{([a-z0-9_]+)\}")


class Node(Strict):
    """A host or router. Nodes that differ by their addresses only may share a `script`: the name of
    a file in nodes/, without its ending. Without one, it is the node's own name."""

    name: NodeName
    script: NodeName | None = None
    routes: list[str] = []
    forward: bool = False


class End(Strict):
    node: NodeName
    address: str

    @field_validator("address")
    @classmethod
    def _is_interface(cls, text: str) -> str:
        IPv4Interface(text)
        return text


class Link(Strict):
    a: End
    b: End


class Edges(Strict):
    """What real hosts do to packets before and after the network, by parameters' names.

    The cables of `hosts` have the `speed` (Mbit/s, in both directions), and a host looks at a packet
    at a random moment within `processing` (microseconds) after it came. Packets keep their order.
    A value of 0 leaves that out.
    """

    hosts: list[NodeName]
    speed: Name
    processing: Name


class Act(Strict):
    """What a drawing of the network says of a place, and which parameter decides it.

    `at` lists the places: `router/juliet` is the router's interface towards juliet, `romeo` the node
    itself; where several nodes share a `script`, its name stands for all of them. `by` is the queue
    discipline that does it, or `=name`, a parameter that says which. `says` is what stands there, with
    parameters in braces: `delay {rtt_ms}`, or half of it. `queue` draws packets waiting. `role` says who sends and who receives.
    It is drawn only `when` each parameter named there has one of these values, and each in braces has any.
    """

    at: list[str]
    by: str = ""
    says: str = ""
    half: bool = False
    queue: bool = False
    role: Literal["sender", "receiver"] | None = None
    when: dict[Name, list[str]] = {}

    @property
    def parameters(self) -> list[str]:
        """The names of all parameters that decide what is drawn."""
        chosen = [self.by[1:]] if self.by.startswith("=") else []
        return [*self.when, *chosen, *IN_BRACES.findall(self.says)]


class Topology(Strict):
    art: str
    nodes: list[Node]
    links: list[Link]
    edges: Edges | None = None
    acts: list[Act] = []

    @property
    def node_names(self) -> list[str]:
        """The nodes' names, in their order."""
        return [node.name for node in self.nodes]

    def nodes_at(self, place: str) -> list[tuple[str, str]]:
        """Return the nodes that a place stands for, each with the node towards which it is, or "".

        ValueError where there is no such node or no such link.
        """
        named, _, beyond = place.partition("/")
        joined = {(link.a.node, link.b.node) for link in self.links}
        found = [
            (node, towards)
            for node in self._called(named)
            for towards in (self._called(beyond) if beyond else [""])
            if not towards or joined & {(node, towards), (towards, node)}
        ]
        if not found:
            raise ValueError(f"{place!r}: no link joins these")
        return found

    def _called(self, name: str) -> list[str]:
        nodes = [node.name for node in self.nodes if name in (node.name, node.script)]
        if not nodes:
            raise ValueError(f"there is no node {name!r}")
        return nodes

    @model_validator(mode="after")
    def _links_join_nodes(self) -> Topology:
        known = {node.name for node in self.nodes}
        for host in self.edges.hosts if self.edges else ():
            if host not in known:
                raise ValueError(f"edges: {host!r} is no node; nodes are {sorted(known)}")
        for link in self.links:
            for end in (link.a, link.b):
                if end.node not in known:
                    raise ValueError(f"link end {end.node!r} is no node; nodes are {sorted(known)}")
        for act in self.acts:
            for place in act.at:
                self.nodes_at(place)
        return self
