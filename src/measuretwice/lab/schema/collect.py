"""[collect]: the files that nodes write in a run, from which the measured values are taken."""

from __future__ import annotations

from measuretwice.lab.schema.base import Name, NodeName, Strict


class NodeFile(Strict):
    node: NodeName
    file: str


class QdiscAt(Strict):
    """A qdisc, found by its node, its interface's address and its kind."""

    node: NodeName
    address: str
    kind: str


class FlowFiles(Strict):
    """Files that every node with a flow has, by the same name; `iperf3` may be a pattern.

    A flow belongs to the node that started it, where its iperf3 client wrote its JSON and ss was
    sampled. Which nodes these are may differ from trial to trial.
    `ping` was taken on the idle path, `ping_busy` beside the flows. `windows`, where a node has it,
    is what a person took from iperf3's text: lines of seconds and KBytes. `rates` are the rows that
    a node's average was taken from: start, end (seconds) and bit/s, a line each.
    """

    iperf3: str
    ss: str
    ping: str | None = None
    ping_busy: str | None = None
    rates: str | None = None
    windows: str | None = None


class QueueAt(Strict):
    """Samples of a node's queue: `file` has one interface's qdiscs, `kind` is the one meant.

    Without `node`, it is the one that has such a file: which queue fills may differ from trial to
    trial. Without `kind`, the qdisc is the innermost: no other's parent.
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
    on it is averaged. `table`, where the node has it, is what a person took from iperf3: lines of
    start, end (s), rate (bit/s), cwnd (bytes) and segments sent again. `queue`, where it has it, is what
    `tc qdisc show` said of the host's own queue. `capture` is what `tcpdump -n -tt` printed, where
    there is one.
    """

    node: NodeName
    average_from: Name
    table: str | None = None
    queue: str | None = None
    capture: str | None = None


class CrowdFiles(Strict):
    """Files of runs with up to thousands of flows. All but the last have each node with flows.

    `ss` is sampled, `events` are lines of Unix time, port and TCP's congestion state (a number, as
    in include/uapi/linux/tcp.h) whenever that changed. Nothing before `warmup`, a parameter in
    seconds, after the last flow's start is counted. `asked` is the parameter with the number of
    flows, `rival` the one with the algorithm of those that differ.
    `counted`, where there is one: lines of Unix time and port, a halving each, by the person's own
    counter. `summary` and `groups` stand on one node and are a person's own results: lines of a
    name and a number; and of an algorithm, its flows and their sum in bit/s.
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
    """Where a result's numbers come from: of one flow with its sender and its receiver, of a few
    (`flows`), or of a `crowd`."""

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
