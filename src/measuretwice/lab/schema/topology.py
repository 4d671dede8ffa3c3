"""[topology]: the lab's nodes and the links between them."""

from __future__ import annotations

from ipaddress import IPv4Interface

from pydantic import field_validator, model_validator

from measuretwice.lab.schema.base import Name, NodeName, Strict


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


class Topology(Strict):
    art: str
    nodes: list[Node]
    links: list[Link]
    edges: Edges | None = None

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
        return self
