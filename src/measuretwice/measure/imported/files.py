"""The files that a person brings: their texts, and what each is: which tool printed it, on which of the lab's nodes.

Plain files only are read, and at once: a pipe would wait for ever, a device never end, a link lead elsewhere. What
a terminal adds (a byte-order mark, CRLF, a last line cut off) is taken away; what is packed by gzip or written in
UTF-16, as Windows' PowerShell does, is read. A file is known by its content, its node by the folder it stands in, by a
word of its name, or by the addresses in it. Files that no tool printed, as a table that a person made, are known by
the names that they have in a run's folder.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab import Lab
from measuretwice.measure.node_state import STATE
from measuretwice.measure.raw import node_of_address
from measuretwice.parse import Iperf3Run, ParseError, parse_qdisc_samples
from measuretwice.parse.formats import (
    TC_CLASSES,
    Content,
    Format,
    blocks_of,
    format_of,
    instead_of_which,
    measures_nothing,
    others_in,
    plain,
)
from measuretwice.parse.iperf2 import LAST_ALONE
from measuretwice.parse.iperf3_text import NO_TOTALS, WHOLE_RATIO
from measuretwice.parse.tc_log import classes_of, parse_classes, samples_in
from measuretwice.parse.wrapping import complaints

MAX_FILE_BYTES = 64 * 2**20
MAX_FILES = 2000
# How files begin that hold no text, and what to do with them.
_OFFICE = "a workbook or a document of an office program; save its table as CSV for ./lab audit, or bring what the tool printed, as text"
_NOTEBOOK = "a Jupyter notebook; copy what the tool printed out of its cell into a text file, and bring that"
BY_NAME = {
    **dict.fromkeys((".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp"), _OFFICE),
    ".ipynb": _NOTEBOOK,
}
NO_TEXT = {
    rb"PK\x03\x04.{26,80}(?:mimetypeapplication/|\[Content_Types\]|_rels/)": _OFFICE,
    rb'\s*\{\s*"cells"\s*:\s*\[': _NOTEBOOK,
    rb"PK\x03\x04": "packed (zip): unpack it first, or name it by itself (./lab check FILE.zip)",
    rb"7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|\x1f\x9d|.{257}ustar": "packed: unpack it first",
    rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF.{4}WEBP|%PDF-|\{\\rtf": "a picture or a printed page; bring what the tool printed, copied into a text file",
    rb"\x7fELF|MZ\x90|PERFILE2|SQLite format 3": "a program's own file, which isn't text; bring what the tool printed",
}
# How files begin that are packed: the module that unpacks them, and the program that does.
PACKED = {
    b"\x1f\x8b": ("gzip", "zcat"),
    b"\xfd7zXZ": ("lzma", "xzcat"),
    b"BZh": ("bz2", "bzcat"),
}
# Of a thousand bytes so many below 7 are no text's.
MOST_ZEROS = 10
CAPTURE = "a capture, which isn't text"
EMPTY = "empty: what was to be written into it never came"
# pcap with micro- and nanoseconds, in either order of bytes; pcap-ng; snoop.
CAPTURES = (
    b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a", b"snoop\0\0\0",
)  # fmt: skip


@dataclass(frozen=True)
class TextFile:
    """A file's text; `folder` is the one that was named, or the file's own."""

    path: Path
    folder: Path
    text: str


class NotRead(Exception):
    """Why a file isn't read, in words."""


def read_texts(paths: list[Path]) -> tuple[list[TextFile], list[str]]:
    """Return the texts of files and of folders' files, by name, and what was left out with the reason.

    UserError where something named isn't there, can't be read or is neither a file nor a folder, and
    where there are more than MAX_FILES.
    """
    texts: list[TextFile] = []
    left_out: list[str] = []
    for named in paths:
        if problem := unreadable(named):
            raise UserError(f"{named}: {problem}")
        for count, path in enumerate(_files(named, left_out), start=1):
            if count > MAX_FILES:
                raise UserError(f"{named}: more than {MAX_FILES} files; give a run's own folder")
            try:
                folder = named if named.is_dir() else named.parent
                texts.append(TextFile(path, folder, tidy(_content(path))))
            except NotRead as reason:
                if path == named and len(paths) == 1:
                    raise UserError(f"{path}: {reason}") from None
                left_out.append(f"{path}: {reason}")
    return texts, left_out


def unreadable(path: Path) -> str | None:
    """Say why this can't be read, without opening it; None where it is a file or a folder that can."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return (
                f"{_sort(mode)}, neither a file nor a folder; save what it gives into a file first"
            )
        if stat.S_ISDIR(mode):
            os.scandir(path).close()
    except FileNotFoundError:
        return "there is no such file or folder"
    except (OSError, ValueError) as error:
        return f"can't be read ({getattr(error, 'strerror', None) or error})"
    return None


def _sort(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _files(named: Path, left_out: list[str]) -> Iterator[Path]:
    """A file itself, or a folder's files in order; what is neither is said in `left_out`."""
    if not named.is_dir():
        yield named
        return

    def refuse(error: OSError) -> None:
        left_out.append(f"{error.filename}: can't be read ({error.strerror})")

    for folder, folders, names in os.walk(named, onerror=refuse):
        for name in [*folders]:
            if (path := Path(folder, name)).is_symlink():
                folders.remove(name)
                left_out.append(f"{path}: a link; give the folder itself")
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink():
                left_out.append(f"{path}: a link; give the file itself")
            else:
                yield path


def _content(path: Path) -> bytes:
    if (problem := unreadable(path)) is not None:
        raise NotRead(problem)
    try:
        # Should it have become a pipe since, opening it doesn't wait.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise NotRead(f"can't be read ({error.strerror})") from None
    module, program = next(
        (how for begin, how in PACKED.items() if data.startswith(begin)), (None, None)
    )
    if module:
        data = _unpacked(data, module)
    if data and (why := BY_NAME.get(path.suffix.lower())):
        raise NotRead(why)
    for signature, reason in NO_TEXT.items():
        if re.match(signature, data, re.S):
            raise NotRead(reason)
    if data.startswith(CAPTURES):
        name = shlex.quote(path.name)
        command = (
            f"{program} {name} | tcpdump -n -e -r -" if program else f"tcpdump -n -e -r {name}"
        )
        raise NotRead(f"{CAPTURE}; print it first: {command} > capture.txt")
    if sum(byte < 7 for byte in data[:1000]) > MOST_ZEROS and _encoding(data) == "utf-8-sig":
        raise NotRead("no text, but bytes that a program reads; bring what the tool printed")
    if len(data) > MAX_FILE_BYTES:
        raise NotRead(f"larger than {MAX_FILE_BYTES >> 20} MiB")
    return data


def _unpacked(data: bytes, module: str) -> bytes:
    """Return what is packed, but for what is beyond the largest file; NotRead where it is damaged."""
    try:
        with import_module(module).open(io.BytesIO(data)) as packed:
            return bytes(packed.read(MAX_FILE_BYTES + 1))
    # Each module has errors of its own.
    except Exception as error:
        raise NotRead(f"packed by {module}, and damaged ({error})") from None


def tidy(data: bytes) -> str:
    """Text without what terminals and editors add; undecodable bytes become U+FFFD."""
    text = data.decode(_encoding(data), errors="replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return text if text.endswith("\n") or not text else text + "\n"


# Colours, and what watch moves the cursor with.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][0-9A-B]|[=>])")


def _encoding(data: bytes) -> str:
    """UTF-16 with its mark, or without it: then every other byte of plain English is 0."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    head = data[:400]
    if len(head) >= 8 and b"\0" in head:
        if not any(head[1::2]):
            return "utf-16-le"
        if not any(head[::2]):
            return "utf-16-be"
    return "utf-8-sig"


# How files are called beside measurements that no tool's output is: notes, programs, pictures.
NO_TOOLS = re.compile(
    r"(?:^|/)(?:readme|notes?|todo|changelog|licen[cs]e|makefile|\.[^/]*)[^/]*$"
    r"|\.(?:md|rst|docx?|html?|pdf|png|jpe?g|gif|svg|py|pyc|ipynb|r|m|c|h|sh|toml|ya?ml|xlsx?|ods|p4|gitignore)$",
    re.I,
)
# What scripts/snapshot.sh writes on every node, beside qdisc.*.json, which is known by its content.
SNAPSHOT = (
    "addr.json", "link.before.json", "link.after.json", "nstat.before.json", "nstat.after.json",
    "offloads.txt", "route.txt", "softnet_stat.before.txt", "softnet_stat.after.txt",
    "speed_mbit.txt", "sysctl.txt", STATE,
)  # fmt: skip
# Of these, where nothing says of which node they are, the content is looked at all the same.
OF_ANY_HOST = ("sysctl.txt", "offloads.txt")
_BEFORE = re.compile(r"(?<![a-z])(before|start|pre)(?![a-z])", re.I)
_AFTER = re.compile(r"(?<![a-z])(after|end|post)(?![a-z])", re.I)
_BUSY = re.compile(r"(?<![a-z])(busy|load|loaded|during)(?![a-z])", re.I)


@dataclass(frozen=True)
class Piece:
    """One file: `tool` as its format says, `content` what the parser makes of it, `node` of the lab's.

    Of a file that is known by its name `content` is None, and `tool` is that name. Of a file with several tests each
    is a piece by itself, and `file` is the file of all. `host` is what another testbed calls the node, as folder or name say.
    """

    path: Path
    tool: str
    text: str
    content: Content | None
    node: str | None
    file: Path | None = None
    host: str | None = None

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

    `failed` are those in which a tool says that a test failed, or which end before it did; `unread` are the lines of
    `left_out` on files that a tool may have printed and that can't be read; `refused_as` are the tools of refused files,
    or those that would say what the files were brought for, each with the file's name; `notes` are lines on files that are
    used.
    """

    lab: Lab | None
    pieces: list[Piece] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    refused_as: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of(self, *tools: str) -> list[Piece]:
        """Return the pieces of these tools, in the order in which they were found."""
        return [piece for piece in self.pieces if piece.tool in tools]

    def lacks(self, what: str, lacking: str, *tools: str) -> str:
        """Say that something isn't looked at, and why: which files of these tools were brought and aren't used, else what
        is `lacking`."""
        refused = {line.split(": ", 1)[0] for line in self.left_out}
        names = [name for tool, name in self.refused_as if tool in tools]
        names += [piece.path.name for piece in self.of(*tools) if str(piece.path) in refused]
        return f"{what}, since " + (
            f"{', '.join(dict.fromkeys(names))} can't be used" if names else lacking
        )

    def say_of_rows(self, piece: Piece, lasted_s: float, meant_s: float) -> None:
        """Note that a test's rows stand for its totals, which are missing; and, where they are of less time than was
        meant, that the rest can't be read."""
        line = f"{piece.path}: {NO_TOTALS}, so that its rows are summed"
        if lasted_s < WHOLE_RATIO * meant_s:
            line += f"; they end after {lasted_s:.4g} s, and what came then isn't told"
            self.unread.append(line)
        if line not in self.notes:
            self.notes.append(line)

    @cached_property
    def owners(self) -> Mapping[str, str]:
        """The lab's nodes by their addresses."""
        return node_of_address(self.lab) if self.lab else {}

    def iperf3(self, *, server: bool) -> Iterator[tuple[Piece, Iperf3Run]]:
        """Yield what iperf3's clients said, or its servers."""
        for piece in self.of("iperf3"):
            runs = (piece.content,) if isinstance(piece.content, Iperf3Run) else piece.content
            for run in runs if isinstance(runs, tuple) else ():
                if isinstance(run, Iperf3Run) and run.server is server:
                    yield piece, run


def read_pieces(lab: Lab | None, texts: list[TextFile], left_out: list[str]) -> Pieces:
    """Return what each of the texts is; the rest is named in `left_out`."""
    found = Pieces(lab, left_out=left_out, unread=list(filter(_may_be_a_tools, left_out)))
    captures = [line.split(": ", 1)[0] for line in left_out if CAPTURE in line]
    found.refused_as += [("tcpdump", Path(path).name) for path in captures]
    nodes = lab.file.topology.node_names if lab else []
    names = own_names(lab) if lab else frozenset()
    for text in texts:
        _read(found, text, nodes, names)
    return found


def own_names(lab: Lab) -> frozenset[str]:
    """The names of files that no tool prints, or that look like another's, in this lab's runs."""
    how = lab.file.collect
    few, crowd, queue, sender = how.flows, how.crowd, how.queue, how.one_sender
    named = [
        *SNAPSHOT,
        how.ss_last and how.ss_last.file,
        *((few.rates, few.windows, few.transfers) if few else ()),
        few and few.delays and few.delays.file,
        *((crowd.events, crowd.counted, crowd.summary, crowd.groups) if crowd else ()),
        *((queue.lengths, queue.setup) if queue else ()),
        *((sender.table, sender.queue, sender.capture) if sender else ()),
    ]
    return frozenset(name for name in named if name)


def _read(
    found: Pieces,
    file: TextFile,
    nodes: list[str],
    names: frozenset[str],
    whole: Path | None = None,
) -> None:
    """Add what is in a text; `whole` is the file of which it is a part."""
    node = _node_of(file, nodes)
    host = None if node else _host_of(file)
    for name in names:
        if node is None and name in OF_ANY_HOST:
            continue
        if re.search(rf"(?:^|[^a-z0-9]){re.escape(name)}$", file.path.name, re.I):
            found.pieces.append(Piece(file.path, name, file.text, None, node, host=host))
            return
    if not file.text.strip():
        # A log without a line, or what keeps a folder (.gitkeep).
        if file.path.suffix != ".log" and not file.path.name.startswith("."):
            _refuse(found, file.path, EMPTY, "")
        return
    if blocks := blocks_of(file.text):
        for number, block in enumerate(blocks, start=1):
            place = file.path.with_name(f"part {number} of {file.path.name}")
            _read(found, replace(file, path=place, text=block), nodes, names, file.path)
        return
    text = plain(file.text)
    try:
        known = format_of(text, file.path.name)
    except ParseError as error:
        _refuse(found, file.path, error.problem, instead_of_which(error.problem))
        return
    tests = known.tests(text)
    for number, test in enumerate(tests, start=1):
        several = len(tests) > 1
        path = file.path.with_name(f"test {number} of {file.path.name}") if several else file.path
        of_all = whole or (file.path if several else None)
        _read_test(found, known, Piece(path, known.tool, test, None, node, of_all, host))
    read = [piece.content for piece in found.pieces if file.path in (piece.path, piece.file)]
    if (
        known.tool == "iperf3"
        and any(read)
        and not any(run.error for server in (False, True) for _, run in found.iperf3(server=server))
    ):
        found.notes += [
            f"{file.path}: besides its results iperf3 reports: {words}"
            for words in complaints(text)
        ]
    for other, part in others_in(text, known):
        path = file.path.with_name(f"{other.tool} in {file.path.name}")
        _read_test(found, other, Piece(path, other.tool, part, None, node, file.path, host))


def _read_test(pieces: Pieces, known: Format, piece: Piece) -> None:
    """Add a test's text, and what it says; what can't be read is refused."""
    name = piece.path.name
    try:
        text = known.tidied(piece.text, name)
        content = known.parse(text, name)
        classes = classes_of(piece.text) if known.tool == "tc" else None
        of_classes = parse_classes(classes, name) if classes else ()
        samples = samples_in(piece.text) if known.tool == "tc" else None
        of_queue = parse_qdisc_samples(samples, name) if samples else ()
    except ParseError as error:
        place = "" if error.where == "file" else f"{error.where}: "
        _refuse(pieces, piece.path, f"{place}{error.problem}", known.tool)
        if known.tool in ("iperf2", "iperf3", "netperf") and LAST_ALONE not in error.problem:
            pieces.failed.append(f"{name}: {error.problem.split(';')[0]}")
        return
    pieces.pieces.append(replace(piece, text=text, content=content))
    if samples:
        path = piece.path.with_name(f"queue in {name}")
        pieces.pieces.append(
            replace(piece, path=path, tool="queue", text=samples, content=of_queue)
        )
    if classes:
        pieces.pieces.append(replace(piece, tool=TC_CLASSES.tool, text=classes, content=of_classes))


def _refuse(found: Pieces, path: Path, why: str, tool: str) -> None:
    line = f"{path}: {why}"
    found.left_out.append(line)
    found.refused_as.append((tool, path.name))
    if _may_be_a_tools(line) and not measures_nothing(why):
        found.unread.append(line)


def _may_be_a_tools(line: str) -> bool:
    """Return whether the file that a line begins with may be a tool's output, and is no text, program or picture."""
    return NO_TOOLS.search(line.split(": ", 1)[0]) is None


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


# What people call hosts; of one letter and a number only folders, since a file's name may count its looks so.
_HOST = re.compile(
    r"(?<![a-z0-9])((?:host|router|gw|gateway|switch|node|vm|pc|ns|client|clnt|server|srv|sender|receiver)[-_]?\d*|h\d+)"
    r"(?![a-z0-9])",
    re.I,
)


def _host_of(file: TextFile) -> str | None:
    """Return what a folder, or the file's own name, says of the host, where it is a word for one."""
    folders = file.path.parent.relative_to(file.folder).parts
    hosts = [
        name for name in folders if _HOST.fullmatch(name) or re.fullmatch(r"[a-z]\d{1,2}", name)
    ]
    names = [match[1].lower() for match in _HOST.finditer(file.path.name)]
    return hosts[-1] if hosts else names[0] if len({*names}) == 1 else None


@cache
def _word(node: str) -> re.Pattern[str]:
    """A node's name as a word: host-1 may be written host_1 or host1."""
    parts = "[-_ ]?".join(map(re.escape, node.split("-")))
    return re.compile(rf"(?<![a-z0-9]){parts}(?![a-z0-9])")
