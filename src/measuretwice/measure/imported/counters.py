"""What tc, nstat and ip -s link printed under any name, before a test and after it: the counters of each node."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from measuretwice.lab import Lab
from measuretwice.lab.schema.network import QdiscAt
from measuretwice.measure.imported.files import Piece, Pieces
from measuretwice.measure.imported.others import whose
from measuretwice.parse import Qdisc, parse_tc_qdiscs
from measuretwice.parse.formats import LINKS, NSTAT, TC_FILTERS
from measuretwice.parse.tc import Policer, readable
from measuretwice.parse.tc_log import snapshots_of

# The beginning of each tool's names in a node's folder.
NAMES = {NSTAT.tool: "nstat", LINKS.tool: "link"}
# Of data and its acknowledgements so much more goes the data's way, in segments and in bytes.
MOSTLY = 1.6
LINK_OF_PATH = "ip -s link of an interface of the path, before the test and after it"
# What of an interface's counters is compared.
_LINK_COUNTS = ("bytes", "packets", "errors", "dropped")


def place_counters(
    found: Pieces, put: Callable[[str, str, str], None], used: dict[Path, str]
) -> None:
    """Put each node's counters into its folder where they are there twice; `found` says of the others why not.

    What stands there under scripts/snapshot.sh's names is kept.
    """
    for tool, name in NAMES.items():
        by_node: dict[str | None, list[Piece]] = defaultdict(list)
        for piece in found.of(tool):
            if piece.node is None and (nothing := _of_no_path(piece)):
                found.left_out.append(f"{piece.path}: {nothing}")
                found.unread.append(found.left_out[-1])
                continue
            by_node[node_of_host(found, piece)].append(piece)
        named = {piece.node for piece in found.pieces if piece.tool.startswith(f"{name}.")}
        for node, pieces in by_node.items():
            if len(pieces) == 1 and node not in named:
                found.notes.append(f"{pieces[0].path}: {_of_one_moment(pieces[0])}")
                used[pieces[0].path] = (
                    f"{whose(replace(pieces[0], node=node))}counters of one moment"
                )
                continue
            if node is None:
                node = _by_direction(found.lab, pieces)
            if problem := _problem(tool, node, pieces, has_own=node in named):
                found.left_out += [f"{piece.path}: {problem}" for piece in pieces]
                continue
            pieces.sort(key=lambda piece: (_when(piece), sum(_counts(piece).values())))
            for when, piece in (("before", pieces[0]), ("after", pieces[-1])):
                put(str(node), f"{name}.{when}.json", piece.text)
                used[piece.path] = f"{node}'s {tool} {when}"


def node_of_host(pieces: Pieces, piece: Piece) -> str | None:
    """Return the node that a file is of: the one that it names, or the sender where that host's iperf3 sent, or by a role
    in its name in a lab of one sender and one receiver; None elsewhere."""
    if piece.node or piece.host is None or pieces.lab is None:
        return piece.node
    how = pieces.lab.file.collect
    sends = {other.host: not run.reverse for other, run in pieces.iperf3(server=False)}
    if (sent := sends.get(piece.host)) is not None:
        return how.sender if sent else how.receiver
    for node, words in ((how.sender, "sender|client|clnt"), (how.receiver, "receiver|server|srv")):
        if re.fullmatch(rf"(?:{words})", piece.host):
            return node
    return None


def _of_no_path(piece: Piece) -> str | None:
    """Say why an interface's counters can be of no test: they are a loopback's alone, or nothing was carried yet."""
    if not isinstance(piece.content, list):
        return None
    counts = _counts(piece)
    names = [str(link["ifname"]) for link in piece.content]
    others = [name for name in names if name != "lo" and not re.fullmatch(r"lo\d*", name)]
    if not others:
        return f"{', '.join(names)} alone, the host's own loopback, over which no path goes; bring {LINK_OF_PATH}"
    if not any(counts[f"{name} {way} packets"] for name in others for way in ("rx", "tx")):
        return f"{', '.join(others)} carried nothing since these counters began: 0 packets in, 0 out; bring {LINK_OF_PATH}"
    return None


def _of_one_moment(piece: Piece) -> str:
    """Say what counters of one moment say of all that the host did until then."""
    counts = _counts(piece)
    since = "since these counters began, which may be long before the test"
    if isinstance(piece.content, dict):
        sent, again = counts.get("TcpOutSegs"), counts.get("TcpRetransSegs")
        if not sent or again is None:
            return "counters of one moment, which say nothing of the test by itself"
        return (
            f"{again} of {sent} TCP segments ({100 * again / sent:.2g} %) were sent again {since}"
        )
    lost = [
        f"{place} {what} {counts[f'{place} {what}']} of {counts[f'{place} packets']}"
        for place, _, what in (name.rpartition(" ") for name in counts)
        if what in ("errors", "dropped") and counts[f"{place} {what}"] and place[:3] != "lo "
    ]
    counted = ", ".join(lost) or "no errors and no drops"
    return f"{counted} {since}"


def _by_direction(lab: Lab | None, pieces: list[Piece]) -> str | None:
    """Return the node whose counters two looks are, in a lab of one sender and one receiver: what the sender counts more of
    went out, and what the receiver counts more of came in."""
    if lab is None or len(pieces) != 2:
        return None
    first, last = sorted(map(_counts, pieces), key=lambda counts: sum(counts.values()))
    ways = [
        sum(last[name] - first.get(name, 0) for name in last if re.search(pattern, name))
        for pattern in (
            r"ExtOutOctets$| tx bytes$|^TcpOutSegs$",
            r"ExtInOctets$| rx bytes$|^TcpInSegs$",
        )
    ]
    how = lab.file.collect
    if ways[0] > MOSTLY * ways[1] >= 0:
        return how.sender
    return how.receiver if ways[1] > MOSTLY * ways[0] >= 0 else None


def counters_of(raw: Path, node: str | None) -> bool:
    """Say whether a node's nstat.*.json are there, both."""
    return node is not None and all(
        (raw / node / f"nstat.{when}.json").is_file() for when in ("before", "after")
    )


def _problem(tool: str, node: str | None, pieces: list[Piece], *, has_own: bool) -> str | None:
    """Say why a node's counters are of no use; None where they are of use."""
    said = "nstat -az" if tool == NSTAT.tool else "ip -s link"
    if node is None:
        return f"{said}, but of which node? Bring it with the node's name in the file's, before the test and after it"
    if has_own:
        return f"{node} has the counters of its own snapshots"
    if len(pieces) == 1:
        return f"{said} of one moment, which tells nothing about the test; bring one from before it and one from after it"
    if len(pieces) > 2:
        return f"{said} of {node}, {len(pieces)} times; bring one of before the test and one of after it"
    first, last = sorted(pieces, key=lambda piece: (_when(piece), sum(_counts(piece).values())))
    later = _counts(last)
    if any(later.get(name, 0) < count for name, count in _counts(first).items()):
        return f"{said}: what it counted became less, so these are no two readings of one host; nstat needs -a"
    return None


def _when(piece: Piece) -> int:
    """Return what sorts two files by their names."""
    return {"before": 0, None: 1, "after": 2}[piece.when]


def _counts(piece: Piece) -> dict[str, int]:
    content: Any = piece.content
    if isinstance(content, dict):
        return content
    return {
        f"{link['ifname']} {way} {name}": int(link["stats64"][way][name])
        for link in content
        for way in ("rx", "tx")
        for name in _LINK_COUNTS
    }


# Of tc.

# What tc's JSON and text call an interface where tc was asked for one, and so doesn't name it.
UNNAMED = "the-interface"
# Less is no test's data.
DATA_BYTES = 100_000
# Among a qdisc's options, and counted all the same.
CHANGING = ("direct_packets_stat",)
COUNTERS = ("bytes", "packets", "drops", "overlimits", "requeues")
_SENT = re.compile(r"Sent \d+ bytes \d+ (pkts?) \(dropped \d+, overlimits \d+ requeues \d+\)")


@dataclass
class Snapshots:
    """Each node's snapshots before and after, as text. `node` and `device` are the bottleneck's, None where
    it isn't there; `misplaced` says where what belongs there stands instead, `lacking` why its counters say
    nothing, `idle` how little they counted."""

    pairs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: dict[Path, str] = field(default_factory=dict)
    node: str | None = None
    device: str | None = None
    misplaced: str | None = None
    idle: str | None = None
    lacking: str | None = None


def find_snapshots(lab: Lab, found: Pieces) -> Snapshots:
    """Return the snapshots by node. What is left out is said in `found.left_out`."""
    shots, place = Snapshots(), lab.file.collect.bottleneck
    groups: Groups = defaultdict(list)
    for piece in found.of("tc"):
        looks = [_look(piece, snapshot.text) for snapshot in snapshots_of(piece.text)]
        place_of = node_of_host(found, piece) or piece.host, _places(_qdiscs(looks[0]))
        groups[place_of] += [looks[0], *looks[1:][-1:]]
    for key, other in _looks_at_a_part(groups):
        paths = dict.fromkeys(piece.path for piece in groups.pop(key))
        whole = groups[other][-1].path.name
        found.left_out += [
            f"{path}: tc of some of the qdiscs that are in {whole}, too" for path in paths
        ]
    best = _bottleneck(groups, place, lab.file.topology.node_names)
    for number, (key, pieces) in enumerate(groups.items()):
        node = str(place.node if place and key == best else key[0] or f"node-{number + 1}")
        pieces.sort(key=_age)
        earlier, later = pieces[0], pieces[-1]
        found.left_out += [
            f"{piece.path}: between {earlier.path.name} and {later.path.name}"
            for piece in pieces[1:-1]
            if piece.path not in (earlier.path, later.path)
        ]
        if node in shots.pairs:
            found.left_out += [f"{piece.path}: another snapshot of {node}" for piece in pieces]
            continue
        if earlier is not later:
            shots.pairs[node] = {"before": _named(earlier.text), "after": _named(later.text)}
            shots.used[earlier.path] = f"{node}'s tc before"
            both = " before and after" if later.path == earlier.path else " after"
            shots.used[later.path] = f"{node}'s tc{both}" + _swapped(earlier, later)
        elif later.when == "before" or key != best:
            # Of its settings alone: its counters may be of any time.
            shots.pairs[node] = dict.fromkeys(("before", "after"), _named(later.text))
            shots.used[later.path] = f"{node}'s tc, for its settings"
            if key == best:
                shots.lacking = f"there is one snapshot alone of {node}'s qdiscs, before the test"
        else:
            kinds = frozenset(name for name in lab.file.run.qdiscs if not name.startswith("="))
            text = _named(later.text)
            shots.pairs[node] = {"before": at_first(text, kinds), "after": text}
            shots.used[later.path] = f"{node}'s tc since it was set up"
    if best is not None and place is not None:
        _place(shots, place)
    return shots


def find_policed(pieces: Pieces, used: dict[Path, str]) -> Iterator[str]:
    """Yield what policers dropped while the test was on, or since they were set up, as a finding's words."""
    by_host: dict[str | None, list[tuple[Policer, ...]]] = defaultdict(list)
    for piece in pieces.of(TC_FILTERS.tool):
        host = piece.node or piece.host
        content = piece.content if isinstance(piece.content, tuple) else ()
        by_host[host].append(tuple(entry for entry in content if isinstance(entry, Policer)))
        used[piece.path] = f"{host}'s tc filters" if host else "tc filters"
    for host, looks in by_host.items():
        looks.sort(key=lambda look: sum(entry.packets for entry in look))
        last = looks[-1]
        before = looks[0] if len(looks) > 1 and len(looks[0]) == len(last) else ()
        drops = sum(entry.drops for entry in last) - sum(entry.drops for entry in before)
        rates = " and ".join(f"{entry.rate_bps / 1e6:g}" for entry in last if entry.drops)
        since = "" if before else " since it was set up"
        if drops > 0:
            policer = f"{host}'s policer" if host else "a policer"
            yield (
                f"other-drops\t{policer} of {rates} Mbit/s dropped {drops} packets{since} (tc -s filter)\t"
                "none: no setting asks for a policer\tA policer drops what is above its rate at once, without a queue. "
                "No qdisc counts these losses."
            )


Groups = dict[tuple[object, ...], list[Piece]]


def _looks_at_a_part(groups: Groups) -> Iterator[tuple[tuple[object, ...], tuple[object, ...]]]:
    """Yield which looks are at a part of what others have, and these: as `tc -s qdisc show dev DEVICE` in a loop, beside
    snapshots of all. They have the same handles and options there, and counters between the others' first and last."""
    for key, pieces in [*groups.items()]:
        for other, wholes in [*groups.items()]:
            if (
                key != other
                and {key, other} <= groups.keys()
                and (key[0] is None or other[0] in (None, key[0]))
                and _is_part(pieces, wholes)
            ):
                yield key, other
                break


def _is_part(pieces: list[Piece], wholes: list[Piece]) -> bool:
    devices = {qdisc.dev for qdisc in _qdiscs(wholes[0])}
    least, most = _counted(pieces), _counted(wholes)
    if len(_qdiscs(pieces[0])) >= len(_qdiscs(wholes[0])):
        return False
    unnamed = all(qdisc.dev is None for qdisc in _qdiscs(pieces[0]))
    for device in devices if unnamed else {None}:
        places = {(device or dev, *place) for dev, *place in least}
        if len(places) == len(least) and places <= most.keys():
            spans = [(least[span], most[(device or span[0], *span[1:])]) for span in least]
            if all(low[0] <= high[1] and high[0] <= low[1] for low, high in spans):
                return True
    return False


def _counted(pieces: list[Piece]) -> dict[tuple[object, ...], tuple[int, int]]:
    """The least and the most packets that each qdisc has counted, by its place, handle and options."""
    counts: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for piece in pieces:
        for qdisc in _qdiscs(piece):
            options = tuple(
                sorted(
                    (name, str(value))
                    for name, value in qdisc.options.items()
                    if name not in CHANGING
                )
            )
            place = qdisc.dev, qdisc.kind, qdisc.handle, qdisc.root, qdisc.parent, options
            counts[place].append(qdisc.sent_packets or 0)
    # Before the first look it had counted nothing.
    return {
        place: (min(packets) if len(packets) > 1 else 0, max(packets))
        for place, packets in counts.items()
    }


def _look(piece: Piece, text: str) -> Piece:
    """One of the looks at the qdiscs in a file."""
    return replace(piece, text=text, content=parse_tc_qdiscs(text, piece.path.name))


def _qdiscs(piece: Piece) -> list[Qdisc]:
    content = piece.content if isinstance(piece.content, tuple) else ()
    return [qdisc for qdisc in content if isinstance(qdisc, Qdisc)]


def _age(piece: Piece) -> tuple[int, int]:
    """What sorts snapshots of a node by their time: the packets counted, and their names where these are equal."""
    packets = sum(qdisc.sent_packets or 0 for qdisc in _qdiscs(piece))
    return packets, {"before": 0, None: 1, "after": 2}[piece.when]


def _places(qdiscs: list[Qdisc]) -> frozenset[tuple[object, ...]]:
    return frozenset((qdisc.dev, qdisc.kind, qdisc.root, qdisc.parent) for qdisc in qdiscs)


def _bottleneck(
    groups: dict[tuple[object, ...], list[Piece]], place: QdiscAt | None, nodes: list[str]
) -> tuple[object, ...] | None:
    """The snapshots of the bottleneck's node: by the node's name, else those with most bytes in a
    qdisc of its kind."""
    if place is None:
        return None
    named = [key for key in groups if key[0] == place.node]
    fits = named or [key for key in groups if key[0] not in nodes]

    def most(key: tuple[object, ...]) -> int:
        qdiscs = [
            qdisc for piece in groups[key] for qdisc in _qdiscs(piece) if qdisc.kind == place.kind
        ]
        return max((qdisc.sent_bytes or 0 for qdisc in qdiscs), default=-1)

    best = max(fits, key=most, default=None)
    return best if best is not None and most(best) >= 0 else None


def _place(shots: Snapshots, place: QdiscAt) -> None:
    """The interface that the data leaves by, if the bottleneck's qdisc stands there."""
    pair = shots.pairs.get(place.node)
    if pair is None:
        return
    before = {(qdisc.dev, qdisc.handle): qdisc for qdisc in parse_tc_qdiscs(pair["before"], "tc")}
    after = parse_tc_qdiscs(pair["after"], "tc")

    def sent(qdisc: Qdisc) -> int:
        earlier = before.get((qdisc.dev, qdisc.handle))
        return (qdisc.sent_bytes or 0) - ((earlier.sent_bytes or 0) if earlier else 0)

    busiest = max((qdisc for qdisc in after if qdisc.root), key=sent, default=None)
    of_kind = [qdisc for qdisc in after if qdisc.kind == place.kind]
    if busiest is None or not of_kind:
        return
    if sent(busiest) < DATA_BYTES:
        if any(qdisc.sent_bytes is not None for qdisc in after):
            few = f"{place.node}'s qdiscs sent only {max(sent(busiest), 0)} B during the test"
            shots.idle = few if sent(busiest) >= 0 and not shots.lacking else None
        else:
            few = f"tc printed no counters of {place.node}'s qdiscs: it needs -s"
        shots.lacking = shots.lacking or few
        return
    here = [qdisc for qdisc in of_kind if qdisc.dev == busiest.dev]
    if here:
        shots.node, shots.device = place.node, here[0].dev
    else:
        shots.misplaced = (
            f"a {place.kind} on {', '.join(sorted({str(qdisc.dev) for qdisc in of_kind}))}; most bytes "
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
        qdiscs = json.loads(readable(text[begin.start() :] if begin else text))
        return json.dumps([{**qdisc, "dev": qdisc.get("dev", UNNAMED)} for qdisc in qdiscs])
    text = text[text.index("qdisc ") :]
    return re.sub(r"^(qdisc \S+ \S+: )(?!dev )", rf"\1dev {UNNAMED} ", text, flags=re.M)


def at_first(text: str, kinds: frozenset[str]) -> str:
    """A snapshot as it was when its qdiscs of these kinds had counted nothing yet; of other kinds, which
    a lab doesn't set up, nobody knows since when they count: they stay as they are."""
    qdiscs = parse_tc_qdiscs(text, "tc")
    inside = {
        (qdisc.dev, str(qdisc.parent).partition(":")[0]) for qdisc in qdiscs if qdisc.kind in kinds
    }
    # What such a qdisc stands in was set up before it, by the same hand.
    set_up = [
        qdisc.kind in kinds or (qdisc.dev, qdisc.handle.partition(":")[0]) in inside
        for qdisc in qdiscs
    ]
    if text.startswith("["):
        entries = zip(json.loads(text), set_up, strict=True)
        nothing = dict.fromkeys(COUNTERS, 0)
        return json.dumps([{**qdisc, **nothing} if own else qdisc for qdisc, own in entries])
    parts = re.split(r"^(?=qdisc )", text, flags=re.M)
    parts = parts if parts[0] else parts[1:]
    none = r"Sent 0 bytes 0 \1 (dropped 0, overlimits 0 requeues 0)"
    return "".join(
        _SENT.sub(none, part) if own else part for part, own in zip(parts, set_up, strict=True)
    )
