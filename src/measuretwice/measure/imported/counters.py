"""What nstat and ip -s link printed under any name, before a test and after it: the counters of each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuretwice.measure.imported.files import Piece, Pieces
from measuretwice.parse.formats import LINKS, NSTAT

# The beginning of each tool's names in a node's folder.
NAMES = {NSTAT.tool: "nstat", LINKS.tool: "link"}
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
            by_node[piece.node].append(piece)
        named = {piece.node for piece in found.pieces if piece.tool.startswith(f"{name}.")}
        for node, pieces in by_node.items():
            if problem := _problem(tool, node, pieces, has_own=node in named):
                found.left_out += [f"{piece.path}: {problem}" for piece in pieces]
                continue
            pieces.sort(key=lambda piece: (_when(piece), sum(_counts(piece).values())))
            for when, piece in (("before", pieces[0]), ("after", pieces[-1])):
                put(str(node), f"{name}.{when}.json", piece.text)
                used[piece.path] = f"{node}'s {tool} {when}"


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
        return f"{said} of one moment, which says nothing of the test; bring one of before it and one of after it"
    if len(pieces) > 2:
        return f"{said} of {node}, {len(pieces)} times; bring one of before the test and one of after it"
    first, last = sorted(pieces, key=lambda piece: (_when(piece), sum(_counts(piece).values())))
    later = _counts(last)
    if any(later.get(name, 0) < count for name, count in _counts(first).items()):
        return f"{said}: what it counted became less, so these are no two readings of one host; nstat needs -a"
    return None


def _when(piece: Piece) -> int:
    """What sorts two files by their names."""
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
