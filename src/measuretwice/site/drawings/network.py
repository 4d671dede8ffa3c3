"""A network drawn from left to right, and from top to bottom for a phone; and small, without words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from measuretwice.site.drawings.svg import box, drawing, label, path, width_of
from measuretwice.site.drawings.topology import Box, Lane, Sketch, Wire

WIDE, TALL = 700.0, 320.0
# Sizes of text and distances from line to line. Wide ones shrink to a column of 660 px (extra.css) and stay over 11 px.
SIZE, LINE, NAME = 13.0, 17.0, 14.0
PAD = 9.0
QUEUE = (24.0, 14.0)


def wide(drawn: Sketch, *, title: str, addresses: bool = True) -> str:
    """Return the drawing from left to right."""
    columns = drawn.columns
    widths = [max(_width(node, addresses) for node in column) for column in columns]
    needs = [_gap(drawn, number) for number in range(len(columns) - 1)]
    spare = max(0.0, WIDE - 2 - sum(widths) - sum(needs)) / len(needs)
    lefts, x = [], 1.0
    for width, need in zip(widths, [*needs, 0], strict=True):
        lefts.append(x)
        x += width + need + spare
    total = max(WIDE, x - spare + 1)
    pitch, first, last = _pitch(drawn, addresses)
    parts: list[str] = []
    for wire in drawn.wires:
        y = first + pitch * wire.row
        left = lefts[wire.a.column] + widths[wire.a.column]
        parts += _wire_across(wire, left, lefts[wire.b.column], y)
    for node in drawn.boxes:
        height = _height(node, addresses)
        top = first + pitch * node.rows[0] - height / 2
        tall = height + pitch * (node.rows[1] - node.rows[0])
        parts += _boxed(node, lefts[node.column], top, widths[node.column], tall, addresses)
    bottom = first + pitch * (drawn.rows - 1) + last
    parts.append(
        label(total / 2, bottom + 14, " · ".join(drawn.notes), kind="note", anchor="middle")
    )
    height = bottom + (22 if drawn.notes else 0)
    return drawing(total, height, parts, kind="wide", title=title, description=drawn.in_words())


def _width(node: Box, addresses: bool) -> float:
    return 2 * PAD + max(
        width_of(line, NAME if n == 0 else SIZE) for n, line in enumerate(node.lines(addresses))
    )


def _height(node: Box, addresses: bool) -> float:
    return LINE * len(node.lines(addresses)) + PAD + (6 if len(node.names) > 1 else 0)


def _gap(drawn: Sketch, column: int) -> float:
    """Return the width of the gap behind a column, with room for the words on its wires."""
    lanes = [
        lane for wire in drawn.wires if wire.a.column == column for lane in (wire.there, wire.back)
    ]
    return max([36.0, *(24 + width_of(f"→ {line}", SIZE) for lane in lanes for line in lane.lines)])


def _pitch(drawn: Sketch, addresses: bool) -> tuple[float, float, float]:
    """The distance from row to row, and of the first and the last from the edge."""
    above = max([0, *(len(wire.there.lines) for wire in drawn.wires)]) * LINE + 12
    below = max([0, *(len(wire.back.lines) for wire in drawn.wires)]) * LINE + 12
    halves = max(_height(node, addresses) for node in drawn.boxes) / 2 + 5
    return max(above + below, 2 * halves + 6), max(above, halves), max(below, halves)


def _wire_across(wire: Wire, left: float, right: float, y: float) -> Iterator[str]:
    yield path([(left, y), (right, y)], "wire cable" if wire.cable else "wire")
    there, back = wire.there, wire.back
    if there.marked:
        yield _mark(
            left + 2,
            y - LINE * len(there.lines) - 12,
            right - left - 4,
            LINE * len(there.lines) + 20,
        )
    if back.marked:
        yield _mark(left + 2, y - 8, right - left - 4, LINE * len(back.lines) + 20)
    if there.queue:
        yield from _queue(left + 4, y, forward=True)
    if back.queue:
        yield from _queue(right - 4 - QUEUE[0], y, forward=False)
    for number, line in enumerate(there.lines):
        up = y - 11 - LINE * (len(there.lines) - 1 - number)
        yield label(left + 7, up, f"→ {line}" if number == 0 else line, kind=_kind(there, number))
    for number, line in enumerate(back.lines):
        down = y + 21 + LINE * number
        text = f"{line} ←" if number == 0 else line
        yield label(right - 7, down, text, kind=_kind(back, number), anchor="end")


def _kind(lane: Lane, number: int) -> str:
    return "by" if number == 0 and lane.disciplines else ""


def _mark(x: float, y: float, width: float, height: float) -> str:
    return box(x, y, width, height, "mark", 8)


def _queue(x: float, y: float, *, forward: bool, width: float = QUEUE[0]) -> Iterator[str]:
    """Packets in a row, where they wait: full towards the link, open where they come from."""
    height, room = QUEUE[1], int((width - 4) / 5)
    yield box(x, y - height / 2, width, height, "queue", 2)
    for packet in range(max(1, room - 1)):
        index = packet if not forward else max(0, room - 1 - packet)
        yield box(x + 2.5 + 5 * index, y - height / 2 + 3, 3.5, height - 6, "packet", 0.5)


def _boxed(
    node: Box, x: float, y: float, width: float, height: float, addresses: bool
) -> Iterator[str]:
    if node.marked:
        yield _mark(x - 5, y - 5, width + 10, height + 10)
    if len(node.names) > 1:
        # The others of the bundle stand behind.
        for behind in (6, 3):
            yield box(x + behind, y + 6 - behind, width - 6, height - 6, f"node {node.role}")
        y, width, height = y + 6, width - 6, height - 6
    yield box(x, y, width, height, f"node {node.role}")
    lines = node.lines(addresses)
    top = y + (height - LINE * len(lines)) / 2 + 13
    for number, line in enumerate(lines):
        kind = "name" if number == 0 else "says" if line in node.says else "address"
        yield label(x + width / 2, top + LINE * number, line, kind=kind, anchor="middle")


def tall(drawn: Sketch, *, title: str, addresses: bool = True) -> str:
    """Return the drawing from top to bottom, as wide as a phone."""
    parts: list[str] = []
    y = 6.0
    tops: list[tuple[float, float]] = []
    for number, column in enumerate(drawn.columns):
        height = max(_height(node, addresses) for node in column)
        tops.append((y, height))
        lanes = [lane for w in drawn.wires if w.a.column == number for lane in (w.there, w.back)]
        y += height + max(
            [22.0, *(LINE * len(lane.lines) + 18 + 12 * lane.queue for lane in lanes)]
        )
    total = _tall_enough(drawn)
    slot = total / drawn.rows
    for wire in drawn.wires:
        above = tops[wire.a.column]
        parts += _wire_down(
            wire, slot * (wire.row + 0.5), above[0] + above[1], tops[wire.b.column][0]
        )
    for node in drawn.boxes:
        top, height = tops[node.column]
        width = max(_width(node, addresses), 90) + slot * (node.rows[1] - node.rows[0])
        x = slot * (sum(node.rows) / 2 + 0.5) - width / 2
        parts += _boxed(node, x, top, width, height, addresses)
    bottom = tops[-1][0] + tops[-1][1]
    for number, note in enumerate(drawn.notes):
        parts.append(
            label(total / 2, bottom + 22 + LINE * number, note, kind="note", anchor="middle")
        )
    height = bottom + 8 + (10 + LINE * len(drawn.notes) if drawn.notes else 0)
    return drawing(total, height, parts, kind="tall", title=title, description=drawn.in_words())


def _tall_enough(drawn: Sketch) -> float:
    """Return the least width at which no label beside a wire is cut off or runs into another."""

    def long(lane: Lane) -> float:
        lines = [f"↓ {line}" if number == 0 else line for number, line in enumerate(lane.lines)]
        return max([0.0, *(11 + width_of(line, SIZE) for line in lines)])

    slot = TALL / drawn.rows
    for column in range(len(drawn.columns)):
        wires = sorted((w for w in drawn.wires if w.a.column == column), key=lambda w: w.row)
        for wire in wires:
            room = min(wire.row, drawn.rows - 1 - wire.row) + 0.5
            slot = max(slot, max(long(wire.there), long(wire.back)) / room)
        for upper, lower in pairwise(wires):
            if lower.row > upper.row:
                room = long(upper.there) + long(lower.back)
                slot = max(slot, room / (lower.row - upper.row))
    return slot * drawn.rows


def _wire_down(wire: Wire, x: float, top: float, bottom: float) -> Iterator[str]:
    yield path([(x, top), (x, bottom)], "wire cable" if wire.cable else "wire")
    there, back = wire.there, wire.back
    for lane, side in ((there, 1), (back, -1)):
        if lane.marked:
            wide_as = 18 + max([40.0, *(width_of(f"{line} ↓", SIZE) for line in lane.lines)])
            yield _mark(
                x - 10 if side > 0 else x + 10 - wide_as, top + 2, wide_as, bottom - top - 4
            )
    if there.queue:
        yield from _queue_down(x, top + 4, forward=True)
    if back.queue:
        yield from _queue_down(x, bottom - 4 - QUEUE[0], forward=False)
    middle = (top + bottom) / 2 + 5
    for lane, arrow, side in ((there, "↓", 1), (back, "↑", -1)):
        for number, line in enumerate(lane.lines):
            down = middle + LINE * (number - (len(lane.lines) - 1) / 2)
            text = line if number else f"↓ {line}" if side > 0 else f"{line} {arrow}"
            anchor = "start" if side > 0 else "end"
            yield label(x + 11 * side, down, text, kind=_kind(lane, number), anchor=anchor)


def _queue_down(x: float, y: float, *, forward: bool) -> Iterator[str]:
    height, width = QUEUE
    yield box(x - width / 2, y, width, height, "queue", 2)
    for packet in range(3):
        index = 3 - packet if forward else packet
        yield box(x - width / 2 + 3, y + 2.5 + 5 * index, width - 6, 3.5, "packet", 0.5)


def thumbnail(drawn: Sketch) -> str:
    """Return the network without words, 160 by 90."""
    columns = drawn.columns
    step = 128 / (len(columns) - 1)
    pitch = 40 if drawn.rows > 1 else 0
    parts = []

    def at(column: int, row: float) -> tuple[float, float]:
        return 13 + step * column, 45 + pitch * (row - (drawn.rows - 1) / 2)

    queues: list[str] = []
    for wire in drawn.wires:
        (x1, y), (x2, _) = at(wire.a.column, wire.row), at(wire.b.column, wire.row)
        parts.append(path([(x1, y), (x2, y)], "wire"))
        # Where two have no room between the nodes, one is drawn.
        if wire.there.queue or wire.back.queue:
            width = min(QUEUE[0], step - 20)
            queues += _queue((x1 + x2 - width) / 2, y, forward=wire.there.queue, width=width)
    for node in drawn.boxes:
        x, top = at(node.column, node.rows[0])
        bottom = at(node.column, node.rows[1])[1]
        for behind in (6, 3, 0) if len(node.names) > 1 else (0,):
            kind = f"node {node.role}"
            parts.append(box(x - 9 + behind, top - 8 - behind, 18, bottom - top + 16, kind))
    return drawing(160, 90, parts + queues, kind="network-thumbnail", title="")
