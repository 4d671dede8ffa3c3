"""tc's counters among the files: which two are of one node before and after, and where the bottleneck is.

Counters only grow. So of two snapshots of the same qdiscs the one with the smaller counters is the
earlier, whatever their names say.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.lab import Lab, QdiscAt
from measuretwice.measure.brought.pieces import Piece, Pieces
from measuretwice.parse import Qdisc, parse_tc_qdiscs

# What tc's JSON and text call an interface where tc was asked for one, and so doesn't name it.
UNNAMED = "the-interface"
# Less is no test's data.
DATA_BYTES = 100_000
COUNTERS = ("bytes", "packets", "drops", "overlimits", "requeues")
_SENT = re.compile(r"Sent \d+ bytes \d+ (pkts?) \(dropped \d+, overlimits \d+ requeues \d+\)")


@dataclass
class Snapshots:
    """Each node's snapshots before and after, as text. `node` and `device` are the bottleneck's, None where
    it isn't there; `misplaced` says where what belongs there stands instead, `idle` that nothing was sent
    between the two snapshots."""

    pairs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: dict[Path, str] = field(default_factory=dict)
    node: str | None = None
    device: str | None = None
    misplaced: str | None = None
    idle: bool = False


def find_snapshots(lab: Lab, found: Pieces) -> Snapshots:
    """Return the snapshots by node. What is left out is said in `found.left_out`."""
    shots, place = Snapshots(), lab.file.collect.bottleneck
    groups: dict[tuple[object, ...], list[Piece]] = defaultdict(list)
    for piece in found.of("tc"):
        groups[piece.node, _places(_qdiscs(piece))].append(piece)
    best = _bottleneck(groups, place)
    for number, (key, pieces) in enumerate(groups.items()):
        node = str(key[0] or (place.node if place and key == best else f"node-{number + 1}"))
        pieces.sort(key=_age)
        earlier, later = pieces[0], pieces[-1]
        for piece in pieces[1:-1]:
            found.left_out.append(
                f"{piece.path}: between {earlier.path.name} and {later.path.name}"
            )
        if node in shots.pairs:
            found.left_out += [f"{piece.path}: another snapshot of {node}" for piece in pieces]
            continue
        if earlier is not later:
            shots.pairs[node] = {"before": _named(earlier.text), "after": _named(later.text)}
            shots.used[earlier.path] = f"{node}'s tc before"
            shots.used[later.path] = f"{node}'s tc after" + _swapped(earlier, later)
        elif later.when == "before" or key != best:
            found.left_out.append(
                f"{later.path}: one snapshot alone; its counters may be of any time"
            )
        else:
            kinds = frozenset(name for name in lab.file.run.qdiscs if not name.startswith("="))
            text = _named(later.text)
            shots.pairs[node] = {"before": at_first(text, kinds), "after": text}
            shots.used[later.path] = f"{node}'s tc since it was set up"
    if best is not None and place is not None:
        _place(shots, place)
    return shots


def _qdiscs(piece: Piece) -> list[Qdisc]:
    content = piece.content if isinstance(piece.content, tuple) else ()
    return [one for one in content if isinstance(one, Qdisc)]


def _age(piece: Piece) -> tuple[int, int]:
    """What sorts snapshots of a node by their time: the packets counted, and their names where these are equal."""
    packets = sum(one.sent_packets or 0 for one in _qdiscs(piece))
    return packets, {"before": 0, None: 1, "after": 2}[piece.when]


def _places(qdiscs: list[Qdisc]) -> frozenset[tuple[object, ...]]:
    return frozenset((one.dev, one.kind, one.root, one.parent) for one in qdiscs)


def _bottleneck(
    groups: dict[tuple[object, ...], list[Piece]], place: QdiscAt | None
) -> tuple[object, ...] | None:
    """The snapshots of the bottleneck's node: by the node's name, else those with most bytes in a
    qdisc of its kind."""
    if place is None:
        return None
    named = [key for key in groups if key[0] == place.node]
    fits = named or [key for key in groups if key[0] is None]

    def most(key: tuple[object, ...]) -> int:
        qdiscs = [one for piece in groups[key] for one in _qdiscs(piece) if one.kind == place.kind]
        return max((one.sent_bytes or 0 for one in qdiscs), default=-1)

    best = max(fits, key=most, default=None)
    return best if best is not None and most(best) >= 0 else None


def _place(shots: Snapshots, place: QdiscAt) -> None:
    """The interface that the data leaves by, if the bottleneck's qdisc stands there."""
    pair = shots.pairs.get(place.node)
    if pair is None:
        return
    before = {(one.dev, one.handle): one for one in parse_tc_qdiscs(pair["before"], "tc")}
    after = parse_tc_qdiscs(pair["after"], "tc")

    def sent(one: Qdisc) -> int:
        earlier = before.get((one.dev, one.handle))
        return (one.sent_bytes or 0) - ((earlier.sent_bytes or 0) if earlier else 0)

    busiest = max((one for one in after if one.root), key=sent, default=None)
    of_kind = [one for one in after if one.kind == place.kind]
    if busiest is None or not of_kind:
        return
    if sent(busiest) < DATA_BYTES:
        shots.idle = True
        return
    here = [one for one in of_kind if one.dev == busiest.dev]
    if here:
        shots.node, shots.device = place.node, here[0].dev
    else:
        shots.misplaced = (
            f"a {place.kind} on {', '.join(sorted({str(one.dev) for one in of_kind}))}; most bytes "
            f"left by {busiest.dev}, which has none"
        )


def _swapped(earlier: Piece, later: Piece) -> str:
    if earlier.when == "after" or later.when == "before":
        return f", by its counters, whatever {earlier.path.name} is called"
    return ""


def _named(text: str) -> str:
    """tc's output from its first qdisc on, with a name for the interface where tc gives none."""
    if '"kind"' in text:
        begin = re.search(r"^[ \t]*\[", text, re.M)
        qdiscs = json.loads(text[begin.start() :] if begin else text)
        return json.dumps([{**one, "dev": one.get("dev", UNNAMED)} for one in qdiscs])
    text = text[text.index("qdisc ") :]
    return re.sub(r"^(qdisc \S+ \S+: )(?!dev )", rf"\1dev {UNNAMED} ", text, flags=re.M)


def at_first(text: str, kinds: frozenset[str]) -> str:
    """A snapshot as it was when its qdiscs of these kinds had counted nothing yet; of other kinds, which
    a lab doesn't set up, nobody knows since when they count: they stay as they are."""
    if text.startswith("["):
        return json.dumps(
            [
                {**one, **dict.fromkeys(COUNTERS, 0)} if one.get("kind") in kinds else one
                for one in json.loads(text)
            ]
        )
    parts = re.split(r"^(?=qdisc )", text, flags=re.M)
    nothing = r"Sent 0 bytes 0 \1 (dropped 0, overlimits 0 requeues 0)"
    return "".join(
        _SENT.sub(nothing, part) if part.split(" ")[1:2] and part.split(" ")[1] in kinds else part
        for part in parts
    )
