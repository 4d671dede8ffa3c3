"""What each text is: which tool printed it, on which of the lab's nodes, before or after the run.

A file is known by its content, its node by the folder it stands in, by a word of its name, or by the
addresses in it. Files that no tool printed, as a table that a person made, are known by the names that
they have in a run's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from measuretwice.lab import Lab
from measuretwice.measure.brought.texts import TextFile
from measuretwice.parse import Iperf3Run, ParseError
from measuretwice.parse.formats import Content, format_of

# What scripts/snapshot.sh writes on every node, beside qdisc.*.json, which is known by its content.
SNAPSHOT = (
    "addr.json", "link.before.json", "link.after.json", "nstat.before.json", "nstat.after.json",
    "offloads.txt", "route.txt", "softnet_stat.before.txt", "softnet_stat.after.txt",
    "speed_mbit.txt", "sysctl.txt",
)  # fmt: skip
_BEFORE = re.compile(r"(?<![a-z])(before|start|pre)(?![a-z])", re.I)
_AFTER = re.compile(r"(?<![a-z])(after|end|post)(?![a-z])", re.I)
_BUSY = re.compile(r"(?<![a-z])(busy|load|loaded|during)(?![a-z])", re.I)


@dataclass(frozen=True)
class Piece:
    """One file: `tool` as its format says, `content` what the parser makes of it, `node` of the lab's.

    Of a file that is known by its name `content` is None, and `tool` is that name.
    """

    path: Path
    tool: str
    text: str
    content: Content | None
    node: str | None

    @property
    def when(self) -> str | None:
        """Before or after the run, where its name says so."""
        name = self.path.name
        before, after = _BEFORE.search(name), _AFTER.search(name)
        return None if bool(before) == bool(after) else "before" if before else "after"

    @property
    def busy(self) -> bool:
        """Does its name say that something else ran meanwhile?"""
        return _BUSY.search(self.path.name) is not None


@dataclass
class Pieces:
    """All files that were brought: what was made of them, and what wasn't used, with the reason.

    `failed` are those in which a tool says that a test failed, or which end before it did.
    """

    lab: Lab | None
    pieces: list[Piece] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def of(self, *tools: str) -> list[Piece]:
        """Return the pieces of these tools, in the order in which they were found."""
        return [piece for piece in self.pieces if piece.tool in tools]

    @cached_property
    def owners(self) -> Mapping[str, str]:
        """The lab's nodes by their addresses."""
        if self.lab is None:
            return {}
        return {
            end.address.split("/")[0]: end.node
            for link in self.lab.file.topology.links
            for end in (link.a, link.b)
        }

    def iperf3(self, *, server: bool) -> Iterator[tuple[Piece, Iperf3Run]]:
        """Yield what iperf3's clients said, or its servers."""
        for piece in self.of("iperf3"):
            runs = (piece.content,) if isinstance(piece.content, Iperf3Run) else piece.content
            for run in runs if isinstance(runs, tuple) else ():
                if isinstance(run, Iperf3Run) and run.server is server:
                    yield piece, run


def read_pieces(lab: Lab | None, texts: list[TextFile], left_out: list[str]) -> Pieces:
    """Return what each of the texts is; the rest is named in `left_out`."""
    found = Pieces(lab, left_out=left_out)
    nodes = [node.name for node in lab.file.topology.nodes] if lab else []
    names = own_names(lab) if lab else frozenset()
    for text in texts:
        _read(found, text, nodes, names)
    return found


def own_names(lab: Lab) -> frozenset[str]:
    """The names of files that no tool prints, or that look like another's, in this lab's runs."""
    how = lab.file.collect
    few, crowd, queue, one = how.flows, how.crowd, how.queue, how.one_sender
    named = [
        *SNAPSHOT,
        how.ss_last and how.ss_last.file,
        *((few.rates, few.windows) if few else ()),
        *((crowd.events, crowd.counted, crowd.summary, crowd.groups) if crowd else ()),
        *((queue.lengths, queue.setup) if queue else ()),
        *((one.table, one.queue, one.capture) if one else ()),
    ]
    return frozenset(name for name in named if name)


def _read(found: Pieces, file: TextFile, nodes: list[str], names: frozenset[str]) -> None:
    node = _node_of(file, nodes)
    for name in names:
        if re.search(rf"(?:^|[^a-z0-9]){re.escape(name)}$", file.path.name, re.I):
            found.pieces.append(Piece(file.path, name, file.text, None, node))
            return
    if not file.text.strip():
        if file.path.suffix != ".log":
            found.left_out.append(f"{file.path}: empty")
        return
    try:
        known = format_of(file.text, file.path.name)
    except ParseError as error:
        found.left_out.append(f"{file.path}: {error.problem}")
        return
    try:
        content = known.parse(file.text, file.path.name)
    except ParseError as error:
        said = f"{file.path}: {error.where}: {error.problem}"
        found.left_out.append(said)
        if known.tool in ("iperf2", "iperf3"):
            found.failed.append(f"{file.path.name}: {error.problem.split(';')[0]}")
        return
    found.pieces.append(Piece(file.path, known.tool, file.text, content, node))


def _node_of(file: TextFile, nodes: list[str]) -> str | None:
    """The node whose name its folder has, or the only one that stands in its name."""
    inside = file.path.parent
    for folder in (inside, *inside.parents):
        if folder.name in nodes:
            return folder.name
        if folder == file.folder:
            break
    name = file.path.name.lower()
    said = {node for node in nodes if _word(node).search(name)}
    return said.pop() if len(said) == 1 else None


@cache
def _word(node: str) -> re.Pattern[str]:
    """A node's name as a word: host-1 may be written host_1 or host1."""
    parts = "[-_ ]?".join(map(re.escape, node.split("-")))
    return re.compile(rf"(?<![a-z0-9]){parts}(?![a-z0-9])")
