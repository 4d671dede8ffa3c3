"""What is drawn of a lab's network: boxes in columns from senders to receivers, and wires between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from measuretwice.facts.values import SPACE
from measuretwice.lab import Lab, Value
from measuretwice.lab.schema.network import IN_BRACES, Act
from measuretwice.site.drawings.svg import short

# Nodes of one script are a bundle from so many on.
BUNDLE = 3


@dataclass
class Box:
    """A node, or a bundle of nodes that differ by their addresses only."""

    names: list[str]
    called: str
    role: str
    addresses: list[str]
    says: list[str] = field(default_factory=list)
    marked: bool = False
    column: int = 0
    # From which row to which it reaches: a router as far as what is joined to it.
    rows: tuple[float, float] = (0, 0)

    def lines(self, addresses: bool) -> list[str]:
        """The lines in it, its name first."""
        count = len(self.names)
        among = [f"{self.names[0]} to -{self.names[-1].rpartition('-')[2]}"] if count > 1 else []
        name = f"{count} × {self.called}" if count > 1 else self.called
        return [
            name,
            *(among if addresses else []),
            *(self.addresses if addresses else []),
            *self.says,
        ]


@dataclass
class Lane:
    """What a wire does in one direction: the disciplines by which, what they do, whether packets wait."""

    disciplines: list[str] = field(default_factory=list)
    says: list[str] = field(default_factory=list)
    queue: bool = False
    marked: bool = False

    @property
    def lines(self) -> list[str]:
        return [", ".join(self.disciplines), *self.says] if self.disciplines else self.says


@dataclass
class Wire:
    """What joins two boxes; `there` leads from `a` to `b`, towards the receivers."""

    a: Box
    b: Box
    cable: bool
    there: Lane = field(default_factory=Lane)
    back: Lane = field(default_factory=Lane)

    @property
    def row(self) -> float:
        """The row on which it lies: the middle of those that both boxes reach."""
        low = max(self.a.rows[0], self.b.rows[0])
        return (low + min(self.a.rows[1], self.b.rows[1])) / 2


@dataclass
class Sketch:
    boxes: list[Box]
    wires: list[Wire]
    # What is true of all hosts and cables, a sentence each.
    notes: list[str]

    @property
    def columns(self) -> list[list[Box]]:
        return [
            [box for box in self.boxes if box.column == column]
            for column in range(1 + max(box.column for box in self.boxes))
        ]

    @property
    def rows(self) -> int:
        return 1 + round(max(box.rows[1] for box in self.boxes))

    def in_words(self) -> str:
        """Everything that it shows, for those who can't see it."""
        parts = []
        for box in self.boxes:
            what = ", ".join([*box.addresses, *box.says])
            names = f"{box.names[0]} to {box.names[-1]}" if len(box.names) > 1 else box.called
            parts.append(f"{names}: {what}.")
        for wire in self.wires:
            for lane, a, b in ((wire.there, wire.a, wire.b), (wire.back, wire.b, wire.a)):
                if lane.lines:
                    parts.append(f"{a.called} towards {b.called}: {', '.join(lane.lines)}.")
        return " ".join([*parts, *(f"{note}." for note in self.notes)])


def sketch(lab: Lab, params: Mapping[str, Value], marked: Sequence[str] = ()) -> Sketch:
    """Return what is drawn of a lab's network with these parameters, with the `marked` places marked."""
    boxes = _boxes(lab)
    by_name = {name: box for box in boxes for name in box.names}
    wires: dict[tuple[int, int], Wire] = {}
    hosts = lab.file.topology.edges.hosts if lab.file.topology.edges else []
    for link in lab.file.topology.links:
        a, b = by_name[link.a.node], by_name[link.b.node]
        cable = link.a.node in hosts or link.b.node in hosts
        wires.setdefault((id(a), id(b)), Wire(a, b, cable))
    drawn = Sketch(boxes, list(wires.values()), _notes(lab, params))
    _arrange(drawn)
    _act(lab, params, drawn, by_name)
    for place in marked:
        for node, towards in lab.file.topology.nodes_at(place):
            if towards:
                _lane(drawn, by_name[node], by_name[towards]).marked = True
            else:
                by_name[node].marked = True
    return drawn


def _boxes(lab: Lab) -> list[Box]:
    topology = lab.file.topology
    addresses: dict[str, list[str]] = {}
    for end in (end for link in topology.links for end in (link.a, link.b)):
        of_node = addresses.setdefault(end.node, [])
        if (address := end.address.split("/")[0]) not in of_node:
            of_node.append(address)
    sources = {link.a.node for link in topology.links} - {link.b.node for link in topology.links}
    boxes = []
    for node in topology.nodes:
        alike = [
            other.name for other in topology.nodes if other.script and other.script == node.script
        ]
        names = alike if len(alike) >= BUNDLE else [node.name]
        if names[0] != node.name:
            continue
        role = "router" if node.forward else "sender" if node.name in sources else "receiver"
        of_box = addresses[names[0]]
        if len(names) > 1:
            of_box = [f"{of_box[0]} to .{addresses[names[-1]][0].rpartition('.')[2]}"]
        boxes.append(Box(names, str(node.script) if len(names) > 1 else node.name, role, of_box))
    return boxes


def _arrange(drawn: Sketch) -> None:
    """Give each box its column, senders first, and the rows that it reaches."""
    for _ in drawn.boxes:
        for wire in drawn.wires:
            wire.b.column = max(wire.b.column, wire.a.column + 1)
    # Who only sends stands next to whom it sends to.
    reached = {id(wire.b) for wire in drawn.wires}
    for box in drawn.boxes:
        if id(box) not in reached:
            box.column = min(wire.b.column for wire in drawn.wires if wire.a is box) - 1
    rows = max(map(len, drawn.columns))
    for column in drawn.columns:
        for index, box in enumerate(column):
            alone = len(column) == 1
            row = (rows - 1) / 2 if alone else index * (rows - 1) / (len(column) - 1)
            box.rows = (row, row)
    for wire in reversed(drawn.wires):
        # One beside another on a wire of their own: in one line.
        if sum(w.b is wire.b for w in drawn.wires) == sum(w.a is wire.a for w in drawn.wires) == 1:
            wire.a.rows = wire.b.rows
    for box in drawn.boxes:
        joined = [w.b if w.a is box else w.a for w in drawn.wires if box in (w.a, w.b)]
        if box.role == "router":
            rows_of = [
                row
                for other in joined
                if other.role != "router" or len(joined) > 2
                for row in other.rows
            ]
            box.rows = (min([box.rows[0], *rows_of]), max([box.rows[1], *rows_of]))


def _act(lab: Lab, params: Mapping[str, Value], drawn: Sketch, by_name: Mapping[str, Box]) -> None:
    for act in lab.file.topology.acts:
        if any(str(params.get(name)) not in values for name, values in act.when.items()):
            continue
        if any(name not in params for name in IN_BRACES.findall(act.says)):
            continue
        says = _said(act, params)
        by = str(params[act.by[1:]]) if act.by.startswith("=") else act.by
        for node, towards in (end for place in act.at for end in lab.file.topology.nodes_at(place)):
            box = by_name[node]
            if not towards:
                box.role = act.role or box.role
                _add(box.says, says)
                continue
            lane = _lane(drawn, box, by_name[towards])
            lane.queue |= act.queue
            _add(lane.disciplines, by)
            _add(lane.says, says)


def _add(lines: list[str], line: str) -> None:
    if line and line not in lines:
        lines.append(line)


def _lane(drawn: Sketch, node: Box, towards: Box) -> Lane:
    for wire in drawn.wires:
        if wire.a is node and wire.b is towards:
            return wire.there
        if wire.b is node and wire.a is towards:
            return wire.back
    raise AssertionError(f"no wire joins {node.called} and {towards.called}")


def _said(act: Act, params: Mapping[str, Value]) -> str:
    return IN_BRACES.sub(
        lambda match: with_unit(match[1], params[match[1]], 0.5 if act.half else 1), act.says
    )


def with_unit(name: str, value: Value, times: float = 1) -> str:
    """Return a parameter's value as a drawing says it: its name's ending is its unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    unit = name.rpartition("_")[2]
    value = value * times
    if unit == "mbit":
        giga = value >= 1000
        return f"{short(value / 1000 if giga else value)}{SPACE}{'Gbit/s' if giga else 'Mbit/s'}"
    if unit == "bytes":
        size, of = next(((s, u) for s, u in ((1e6, "MB"), (1e3, "kB")) if value >= s), (1, "B"))
        return f"{short(value / size)}{SPACE}{of}"
    units = {"ms": "ms", "us": "µs", "s": "s", "packets": "packets"}
    if unit in units:
        return f"{short(value)}{SPACE}{units[unit]}"
    return short(value)


def _notes(lab: Lab, params: Mapping[str, Value]) -> list[str]:
    """Return the lines on cables and hosts, where a lab has them: else they take no time, which is no small thing."""
    edges = lab.file.topology.edges
    if edges is None:
        return []
    speed, time = params[edges.speed], params[edges.processing]
    if not speed and not time:
        return ["Cables and hosts take no time"]
    batch = params.get(edges.batch or "")
    return [
        f"Cables of hosts: {with_unit(edges.speed, speed)} each way"
        if speed
        else "Cables take no time",
        f"Hosts look at a packet within {with_unit(edges.processing, time)}"
        + (f", or once {batch} are there" if batch else "")
        if time
        else "Hosts take no time",
    ]
