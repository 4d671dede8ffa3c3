"""The words that ./lab show takes: which files each means, and what makes them readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from measuretwice.base.errors import UserError
from measuretwice.parse import ParseError
from measuretwice.parse.formats import format_of
from measuretwice.view import Block, Shown, documents, host, programs
from measuretwice.view.source import RawFile, SnapshotPair, Source, pairs

Blocks = Iterator[list[Block]]
# What is read of a file to tell by its content what it is.
_HEAD_CHARACTERS = 2**16


@dataclass(frozen=True)
class Word:
    """A word for a tool's files: `patterns` are their names in a run's folder, `kind` is what
    content of any name has. `view` makes blocks of these files; of the source it knows the others.
    """

    name: str
    help: str
    patterns: tuple[str, ...]
    kind: str
    view: Callable[[SnapshotPair, Source, Path], list[Block]]
    in_pairs: bool = False


def _of_file(
    view: Callable[[RawFile], list[Block]],
) -> Callable[[SnapshotPair, Source, Path], list[Block]]:
    return lambda pair, source, root: view(_file(pair))


def _of_pair(
    view: Callable[[SnapshotPair], list[Block]],
) -> Callable[[SnapshotPair, Source, Path], list[Block]]:
    return lambda pair, source, root: view(pair)


def _file(pair: SnapshotPair) -> RawFile:
    file = pair.after or pair.before
    assert file is not None
    return file


WORDS = (
    Word("settings", "what was set: trial, seed, parameters", ("plan.json", "live.json"), "",
        lambda pair, source, root: documents.settings_blocks(_file(pair), source, root)),
    Word("measured", "the values made from the raw files", ("result.json",), "",
        lambda pair, source, root: documents.measured_blocks(_file(pair), source, root)),
    Word("ping", "round-trip times: ping", ("ping*.txt",), "ping", _of_file(programs.ping_blocks)),
    Word("iperf3", "what was sent and received: iperf3", ("iperf3*.json", "iperf3.txt", "others.json"),
        "iperf3", _of_file(programs.iperf3_blocks)),
    Word("ss", "each connection's state, again and again: ss -tinO", ("ss*.txt",), "ss",
        lambda pair, source, root: programs.ss_blocks(_file(pair), source.files)),
    Word("qdisc", "queueing disciplines: tc -s qdisc show", ("qdisc.*.json", "tc.txt"), "tc",
        lambda pair, source, root: host.qdisc_blocks(pair, source), in_pairs=True),
    Word("queue", "a queue over time: tc -s qdisc show, again and again", ("queue.txt",), "queue",
        _of_file(host.queue_blocks)),
    Word("nstat", "the kernel's counters: nstat -az", ("nstat.*.json",), "nstat",
        _of_pair(host.nstat_blocks), in_pairs=True),
    Word("link", "interfaces and what they counted: ip -s link", ("link.*.json",), "",
        _of_pair(host.link_blocks), in_pairs=True),
    Word("addr", "addresses: ip addr", ("addr.json",), "", _of_file(host.address_blocks)),
    Word("ethtool", "offloads: ethtool -k", ("offloads.txt",), "", _of_file(host.offload_blocks)),
    Word("speed", "speeds of interfaces: /sys/class/net", ("speed_mbit.txt",), "",
        _of_file(host.speed_blocks)),
    Word("sysctl", "the kernel's settings: /proc/sys/net", ("sysctl.txt",), "",
        _of_file(host.sysctl_blocks)),
    Word("softnet", "between driver and IP: /proc/net/softnet_stat", ("softnet_stat.*.txt",), "",
        _of_pair(host.softnet_blocks), in_pairs=True),
)  # fmt: skip
BY_NAME = {word.name: word for word in WORDS}
# Files that are shown as text, by a pattern of their names.
TEXTS = {
    "iperf3-server*.txt": "what was received: iperf3, as text",
    "route.txt": "where packets go: ip route",
    "state.txt": "how a node was set in the end: tc -d, ip -d, /proc/sys/net/core, /sys/module/tcp_*",
    "tcpdump.txt": "packets on the wire: tcpdump -e",
    "acks.txt": "acknowledgements on the wire: tcpdump",
    "capture.txt": "packets at the sender: tcpdump",
    "events.txt": "changes of TCP's state: Unix time, port, new state",
    "cwnd.txt": "windows, as a script took them",
    "table.txt": "iperf3's rows: start and end (s), rate (bit/s), window (bytes), segments sent again",
    "experiment.sh": "the script that the run was",
    "experiment.log": "what that script said",
    "emulator.json": "how late packets left the emulator, in microseconds",
    "console.txt": "what the virtual kernel said",
    "provenance.json": "how it was run, when, and with what",
    "*.log": "what a step's programs said besides: tcpdump and iperf3's server always say a little",
}


def text_name(file: RawFile) -> str:
    """Return the short name of a tool's text that has no word: tcpdump of tcpdump.txt; empty for other files."""
    stem, dot, ending = file.base.rpartition(".")
    is_text = any(fnmatchcase(file.base, pattern) for pattern in TEXTS)
    return stem if dot and ending == "txt" and is_text else ""


def word_of(file: RawFile, source: Source) -> Word | None:
    """Return the word that means a file: by its name, or of files from elsewhere by what is in it."""
    for word in WORDS:
        if any(fnmatchcase(file.base, pattern) for pattern in word.patterns):
            return word
    if source.sort == "run":
        return None
    kind = kind_of(file)
    return next((word for word in WORDS if word.kind and word.kind == kind), None)


@lru_cache(maxsize=1000)
def kind_of(file: RawFile) -> str:
    """Return which tool printed a file, by its content; empty where that can't be told."""
    try:
        text = file.read()
        head = text[:_HEAD_CHARACTERS].lstrip("\ufeff \n")
        if head.startswith("# t="):
            second = head.split("\n", 2)[1:2]
            return "queue" if second and second[0].startswith("[") else "ss"
        if head.startswith(('{"kernel"', "#kernel")):
            return "nstat"
        return format_of(text, file.name).tool
    except (UserError, ParseError):
        return ""


def about(file: RawFile, word: Word | None) -> str:
    """Return what a file is, in some words."""
    if word:
        return word.help
    return next((what for name, what in TEXTS.items() if fnmatchcase(file.base, name)), "text")


class ListedFile(TypedDict):
    """A raw file: its node, its size in bytes, the word for it (None where there is none), what it is."""

    file: str
    node: str | None
    bytes: int
    what: str | None
    about: str


class Listing(TypedDict):
    """What there is to look at in a run's folder; `left_out` are lines about what is no plain file."""

    run: str
    sort: str
    title: str
    nodes: list[str]
    files: list[ListedFile]
    left_out: list[str]


def listing(source: Source, files: Sequence[RawFile]) -> Listing:
    """Return what these files of a source are, each with the word for it."""
    words = [(file, word_of(file, source)) for file in files]
    return {
        "run": str(source.target),
        "sort": source.sort,
        "title": source.title,
        "nodes": source.nodes,
        "files": [
            {
                "file": file.name,
                "node": file.node or None,
                "bytes": file.size_bytes,
                "what": word.name if word else None,
                "about": about(file, word),
            }
            for file, word in words
        ],
        "left_out": list(source.left_out),
    }


def files_of(word: Word, source: Source, node: str | None) -> list[RawFile]:
    """Return the files that a word means; UserError where there is none."""
    files = source.of_node(node)
    matching = [file for file in files if word_of(file, source) is word]
    if not matching:
        at = f" of node {node}" if node else ""
        names = " or ".join(word.patterns)
        raise UserError(f"{source.target}: no file{at} is for '{word.name}' (such as {names})")
    return matching


def show(word: Word, files: Sequence[RawFile], source: Source, root: Path) -> Shown:
    """Make blocks of a word's files; what can't be read is a problem in words. UserError for all."""
    shown = Shown()
    units = (
        pairs(files) if word.in_pairs else [SnapshotPair(file.node, None, file) for file in files]
    )
    for pair in units:
        try:
            shown.blocks += word.view(pair, source, root)
        except (ParseError, UserError) as error:
            shown.problems.append(str(error))
    shown.blocks.sort(key=lambda block: block.rank)
    if not shown.blocks:
        names = ", ".join(file.name for file in files)
        raise UserError(shown.problems[0] if shown.problems else f"{names}: nothing to show in it")
    return shown
