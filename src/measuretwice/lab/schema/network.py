"""[topology], [run] and [collect]: nodes and links, the steps of a run, and the files that nodes write in it."""

from __future__ import annotations

import re
from ipaddress import IPv4Interface
from typing import Literal

from pydantic import Field, field_validator, model_validator

from measuretwice.lab.schema.parameters import Name, NodeName, Strict, Value

IN_BRACES = re.compile(r"\{([a-z0-9_]+)\}")


class Node(Strict):
    """A host or router. Nodes that differ only in their addresses may share a `script`: the name of
    a file in nodes/, without its ending. Without one, the script has the node's own name."""

    name: NodeName
    script: NodeName | None = None
    routes: list[str] = []
    forward: bool = False


class End(Strict):
    """An end of a link: its `node`, and its `address` with the prefix's length, as in `10.10.1.100/24`."""

    node: NodeName
    address: str

    @field_validator("address")
    @classmethod
    def _is_interface(cls, text: str) -> str:
        IPv4Interface(text)
        return text


class Link(Strict):
    """A cable between two interfaces."""

    a: End
    b: End


class Edges(Strict):
    """What real hosts do to packets before and after the network, by parameters' names.

    The cables of `hosts` have the `speed` (Mbit/s, in both directions), and a host looks at a packet
    at a random moment within `processing` (microseconds) after it came. Packets keep their order.
    With a `batch` (packets), it waits until that many have come, or until `processing` after the first of them,
    and then looks at all of them at once, as behind a card that gathers packets.
    A value of 0 turns each of these off.
    """

    hosts: list[NodeName]
    speed: Name
    processing: Name
    batch: Name | None = None

    @property
    def parameters(self) -> tuple[Name, ...]:
        """The names of those it has, in that order."""
        return tuple(name for name in (self.speed, self.processing, self.batch) if name)


class Act(Strict):
    """What a drawing of the network says about a place, and which parameter decides it.

    `at` lists the places: `router/juliet` is the router's interface towards juliet, `romeo` the node
    itself; where several nodes share a `script`, its name stands for all of them. `by` is the queue
    discipline that does it, or `=name`, a parameter that says which. `says` is what stands there, with
    parameters in braces, as in `delay {rtt_ms}`; with `half`, half of their values. `queue` draws packets waiting. `role` says who sends and who receives.
    An act is drawn only if each parameter in `when` has one of the values listed there, and each one in braces has a value.
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


class Emulated(Strict):
    """A link that an emulator can stand in for, where the kernel that runs the hosts can't shape it (`--emulate`).

    One `link`, as in `router/juliet`, has the whole path's `rate` (Mbit/s), and before it a drop-tail `buffer` (bytes) and
    random losses (`loss`, a share), all on the way to the second node. Of the path's `rtt` (ms) the share `there_ratio` is delay
    on that way, and the rest on the way back. `burst` (bytes) goes at once, before the rate applies. All of these but `link` and
    `there_ratio` are names of parameters. `only` lists the values that other parameters may have, because our emulator can't do
    the rest; an empty list means that the parameter must not be set. The emulator does what the lab's scripts ask of tc, so they
    are told that it is done.
    """

    link: str
    rate: Name
    burst: Name | None = None
    buffer: Name | None = None
    loss: Name | None = None
    rtt: Name
    there_ratio: float = Field(ge=0, le=1)
    only: dict[Name, list[Value]] = {}

    @property
    def parameters(self) -> tuple[Name, ...]:
        """The names of those it has."""
        named = (self.rate, self.burst, self.buffer, self.loss, self.rtt)
        return (*filter(None, named), *self.only)


class Topology(Strict):
    """The network: its nodes, the links between them, and `art`, a drawing of it in plain text."""

    art: str
    nodes: list[Node]
    links: list[Link]
    edges: Edges | None = None
    emulated: Emulated | None = None
    acts: list[Act] = []

    @property
    def node_names(self) -> list[str]:
        """The nodes' names, in their order."""
        return [node.name for node in self.nodes]

    def nodes_at(self, place: str) -> list[tuple[str, str]]:
        """Return the nodes that a `place` stands for, each with the node towards which it is, or "".

        ValueError where there is no such node or no such link.
        """
        name, _, neighbour = place.partition("/")
        links = {(link.a.node, link.b.node) for link in self.links}
        nodes = [
            (node, towards)
            for node in self._nodes_named(name)
            for towards in (self._nodes_named(neighbour) if neighbour else [""])
            if not towards or links & {(node, towards), (towards, node)}
        ]
        if not nodes:
            raise ValueError(f"{place!r}: no link joins these")
        return nodes

    def _nodes_named(self, name: str) -> list[str]:
        nodes = [node.name for node in self.nodes if name in (node.name, node.script)]
        if not nodes:
            raise ValueError(f"there is no node {name!r}")
        return nodes

    @model_validator(mode="after")
    def _links_join_nodes(self) -> Topology:
        names = {node.name for node in self.nodes}
        for host in self.edges.hosts if self.edges else ():
            if host not in names:
                raise ValueError(f"edges: {host!r} is no node; nodes are {sorted(names)}")
        for link in self.links:
            for end in (link.a, link.b):
                if end.node not in names:
                    raise ValueError(f"link end {end.node!r} is no node; nodes are {sorted(names)}")
        for act in self.acts:
            for place in act.at:
                self.nodes_at(place)
        if self.emulated and len(self.nodes_at(self.emulated.link)) != 1:
            raise ValueError(f"emulated: {self.emulated.link!r} isn't one link")
        return self


class Step(Strict):
    """One phase of one node's script.

    A background step tells when it is ready. Once all has been measured, the run waits for its end, or,
    with `stop`, tells it to end.
    """

    node: NodeName
    phase: Name
    background: bool = False
    stop: bool = False


class Run(Strict):
    """The steps of a run, in order. `conclude` comes when all is measured: what a person works out
    from the nodes' files.

    `memory` names the parameter with the virtual kernel's memory in bytes, where 512 MB aren't
    enough. Then TCP may use most of it, and the backlog between drivers and IP holds 100 000
    packets instead of 1000. `reader_interval` names the one that says how often a receiving program
    gets its data there, in ms, where 10 ms are too often.

    `too_much_for_browser` lists choices of parameters for which the browser's machine has too little time or memory,
    such as a program in Python that every packet passes through.

    `qdiscs` and `algorithms` are the queue disciplines and congestion controls that the kernel must
    have; `=name` stands for what that parameter says. The virtual kernel has them all; other kernels
    are asked before a run.
    """

    prepare: list[Step]
    measure: list[Step]
    conclude: list[Step] = []
    memory: Name | None = None
    reader_interval: Name | None = None
    too_much_for_browser: dict[Name, list[str]] = {}
    qdiscs: list[str] = []
    algorithms: list[str] = []

    @property
    def steps(self) -> list[Step]:
        """All steps, in order."""
        return [*self.prepare, *self.measure, *self.conclude]


class NodeFile(Strict):
    """A file in the raw folder of a node."""

    node: NodeName
    file: str


class QdiscAt(Strict):
    """A qdisc, found by its node, its interface's address and its kind."""

    node: NodeName
    address: str
    kind: str


class StreamFiles(Strict):
    """What a node received of a stream of packets, such as a call's: a `file` of the same name on each node that has one.

    It has a line for each packet that came: its number, counted from 0, when it was sent and when it came (Unix times,
    each by its own host's clock); and one line `# sent N`, the number that was sent to it. `deadline` names the parameter that says
    how many ms longer than the fastest one a packet may take without being late.
    """

    file: str
    deadline: Name | None = None


class FlowFiles(Strict):
    """Files that every node with a flow has, by the same name; `iperf3` may be a pattern.

    A flow belongs to the node that started it, where its iperf3 client wrote its JSON and ss was
    sampled. Which nodes these are may differ from trial to trial.
    `ping` was taken on the idle path, `ping_busy` beside the flows. `windows`, where a node has it,
    is what a person took from iperf3's text: lines of seconds and KBytes. `rates` are the rows that
    a node's average was taken from: start, end (seconds) and bit/s, a line each.

    Any node may have `ping_busy`, `delays` (of a stream beside the flows) and `transfers` (short fetches beside the flows:
    a line each, with the Unix time at which it began and how many ms it took until its last byte). `summary`, on one node, is a
    person's own result: lines of a name and a number.
    """

    iperf3: str
    ss: str
    ping: str | None = None
    ping_busy: str | None = None
    delays: StreamFiles | None = None
    transfers: str | None = None
    summary: str | None = None
    rates: str | None = None
    windows: str | None = None


class QueueAt(Strict):
    """Samples of a node's queue: `file` has one interface's qdiscs, of which `kind` is the one meant.

    Without `node`, it is the node that has such a file, because which queue fills may differ from trial to
    trial. Without `kind`, it is the innermost qdisc, which is no other's parent.
    `rate` names the parameter with the link's rate in Mbit/s. `setup` is a file with what
    `tc -s -d qdisc show` said of the same interface before the run. `lengths`, where the node has
    it, is what a person took from tc's text: lines of Unix time and packets.
    """

    node: NodeName | None = None
    file: str
    kind: str | None = None
    rate: Name
    setup: str | None = None
    lengths: str | None = None


class SenderAt(Strict):
    """One sender that is looked at closely: the flow of `node`.

    `average_from` names the parameter with the time, in seconds from the flow's start, from which
    its rate is averaged. `table`, where the node has it, is what a person took from iperf3: lines of
    start, end (s), rate (bit/s), cwnd (bytes) and segments retransmitted. `queue`, where it has it, is what
    `tc qdisc show` said of the host's own queue. `capture` is what `tcpdump -n -tt` printed, where
    there is one.
    """

    node: NodeName
    average_from: Name
    table: str | None = None
    queue: str | None = None
    capture: str | None = None


class CrowdFiles(Strict):
    """Files of runs with up to thousands of flows. Each node with flows has all but `summary` and `groups`.

    `ss` is sampled; `events` are lines of Unix time, port and TCP's congestion state (a number, as
    in include/uapi/linux/tcp.h) whenever that changed. Nothing is counted until `warmup`, a parameter in
    seconds, after the last flow's start. `asked` is the parameter with the number of
    flows, `rival` the one with the algorithm of those that differ.
    `counted`, where there is one, has lines of Unix time and port, a halving each, by the person's own
    counter. `summary` and `groups` stand on one node and are a person's own results: lines of a
    name and a number, and lines of an algorithm, its flows and their sum in bit/s.
    """

    iperf3: str
    ss: str
    events: str
    warmup: Name
    asked: Name
    rival: Name
    ping: str | None = None
    counted: str | None = None
    summary: str | None = None
    groups: str | None = None


class Collect(Strict):
    """Where a result's numbers come from: one flow with its sender and its receiver, a few
    `flows`, or a `crowd`."""

    sender: NodeName | None = None
    receiver: NodeName | None = None
    flows: FlowFiles | None = None
    crowd: CrowdFiles | None = None
    queue: QueueAt | None = None
    one_sender: SenderAt | None = None
    ping: NodeFile | None = None
    iperf3: NodeFile | None = None
    ss: NodeFile | None = None
    ss_last: NodeFile | None = None
    capture: NodeFile | None = None
    bottleneck: QdiscAt | None = None

    @property
    def flow_files(self) -> FlowFiles | CrowdFiles | None:
        """The files of each flow, where a lab has several."""
        return self.flows or self.crowd

    @property
    def ss_name(self) -> str | None:
        """The name of the file with samples of ss, the same on each node that has one."""
        if self.ss:
            return self.ss.file
        return self.flow_files.ss if self.flow_files else None
