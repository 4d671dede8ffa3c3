"""`lab show`: one raw file readable, the right object of many, with what each field is. `lab note`: keep a line of one.
`lab diff`: settings, measured values and raw files that differ between two runs, side by side."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from measuretwice.base.errors import UserError
from measuretwice.cli.options import AS_JSON, NODE, PATH, root_folder
from measuretwice.cli.terminal import FILE_WIDTH
from measuretwice.course.lab_books import CaseBooks
from measuretwice.report.markdown import clean
from measuretwice.view import Block, Cell, Shown, words
from measuretwice.view.difference import Difference, FilePair, ValuePair, compare
from measuretwice.view.source import RawFile, Source, opened

# Without --node, so many nodes' files are shown; qdiscs and links are short, and all count.
MOST_NODES = 4
SHORT = ("qdisc", "queue", "link", "addr", "speed", "softnet")
MOST_IN_LIST = 4
# No more of a line is kept, as on a page.
MOST_KEPT = 200
# With less room than that beside the values, meanings stand below them.
LEAST_ROOM = 24


@click.command()
@click.argument("target", metavar="RUN", type=PATH)
@click.argument("what", metavar="[WHAT]", required=False)
@NODE
@click.option("--text", "as_text", is_flag=True, help="Print the file word for word.")
@AS_JSON
def show(target: Path, what: str | None, node: str | None, as_text: bool, as_json: bool) -> int:
    """Make one raw file readable: its values, what each field means, and where it is.

    RUN is a folder that ./lab run made, one in sample-data/, a live lab's, or files of your own.
    Without WHAT, this lists what there is. WHAT is a word from that list, such as qdisc, ss, ping
    or nstat, or the name of a file.
    """
    root = root_folder()
    with opened(target) as source:
        if what is None and len(source.files) == 1 and source.sort == "files":
            what = source.files[0].name
        if what is None:
            _print_listing(source, node, as_json)
        elif what in words.BY_NAME:
            if as_text:
                raise UserError(f"--text takes a file's name, as in {_example(source)}")
            _print_word(root, source, words.BY_NAME[what], node, as_json)
        else:
            _print_file(root, source, _named(source, what, node), as_text, as_json)
    return 0


@click.command()
@click.argument("target", metavar="RUN", type=PATH)
@click.argument("parts", metavar="FILE:LINE|WORDS", nargs=-1, required=True)
def note(target: Path, parts: tuple[str, ...]) -> int:
    """Keep what you know so far about a case in your lab book.

    RUN is one of the case's runs, or its live lab. FILE:LINE keeps that line of a raw file, as in romeo/ss.txt:3; anything
    else is kept as your own words.
    """
    root = root_folder()
    with opened(target) as source:
        words = _line_named(source, parts[0]) if len(parts) == 1 else ""
        run = source.target
    # A stranger's output may hold what steers a terminal.
    words = str(clean(words or " ".join(" ".join(parts).split())[:MOST_KEPT]))
    case = CaseBooks(root, [run], [run]).note_known(words) if words else None
    if case is None:
        raise UserError(
            f"{target}: of no case that you have begun; name a run in runs/LAB/case-NN-*"
        )
    print(f"case {case}: {words}")
    return 0


def _line_named(source: Source, named: str) -> str:
    """The line of a raw file that FILE:LINE names, with the file's name; empty where it names no line."""
    match = re.fullmatch(r"([^\s:]+):([0-9]{1,7})", named)
    if not match:
        return ""
    file = _named(source, match[1], None)
    lines, number = file.read().splitlines(), int(match[2])
    if not 1 <= number <= len(lines):
        raise UserError(f"{named}: {file.name} has {len(lines)} lines")
    text = " ".join(lines[number - 1].split())
    return f"{file.name}: {f'{text[:MOST_KEPT]} …' if len(text) > MOST_KEPT else text}"


def _example(source: Source) -> str:
    return f"./lab show {source.target} {source.files[0].name} --text"


def _named(source: Source, what: str, node: str | None) -> RawFile:
    """The one file that a name means: NODE/FILE, or FILE where one node has it or --node says which."""
    files = source.of_node(node)
    matching = (
        [file for file in files if file.name == what]
        or [file for file in files if file.base == what]
        or [file for file in files if words.text_name(file) == what]
    )
    if len(matching) > 1:
        nodes = ", ".join(file.name for file in matching)
        raise UserError(f"{what}: {len(matching)} files have this name: {nodes}; name one of them")
    if not matching:
        word_names = {
            word.name if word else words.text_name(file): None
            for file in files
            if (word := words.word_of(file, source)) or words.text_name(file)
        }
        raise UserError(
            f"{what}: neither a file of {source.target} nor one of the words {', '.join(word_names)}; "
            "./lab show RUN lists all"
        )
    return matching[0]


def _print_word(
    root: Path, source: Source, word: words.Word, node: str | None, as_json: bool
) -> None:
    files = words.files_of(word, source, node)
    nodes = list(dict.fromkeys(file.node for file in files))
    note = ""
    if len(nodes) > MOST_NODES and word.name not in SHORT and not as_json:
        files = [file for file in files if file.node in nodes[:MOST_NODES]]
        note = f"{len(nodes) - MOST_NODES} more nodes have it: {', '.join(nodes[MOST_NODES:])}; --node NODE"
    _print_shown(source, words.show(word, files, source, root), note, as_json)


def _print_file(root: Path, source: Source, file: RawFile, as_text: bool, as_json: bool) -> None:
    word = None if as_text else words.word_of(file, source)
    if word is not None:
        shown = words.show(word, [file], source, root)
        _print_shown(source, shown, "word for word: --text", as_json)
        return
    text = file.read()
    if as_json:
        print(json.dumps({"run": str(source.target), "file": file.name, "text": text}, indent=2))
    else:
        _page(str(clean(text)))


def _print_shown(source: Source, shown: Shown, note: str, as_json: bool) -> None:
    for problem in shown.problems:
        print(f"not shown: {clean(problem)}", file=sys.stderr)
    if as_json:
        document = {
            "run": str(source.target),
            "blocks": [block.to_json() for block in shown.blocks],
            "problems": shown.problems,
        }
        print(json.dumps(document, indent=2, allow_nan=False))
        return

    def lay_out(out: Console) -> None:
        _head(out, source)
        for block in shown.blocks:
            _print_block(out, block)
        if note:
            out.print(plain_text(note))

    print_paged(lay_out)


def _head(out: Console, source: Source) -> None:
    out.print(plain_text(f"{source.target}: {source.title}", "bold"))
    if not source.finished:
        out.print(plain_text("this run was never finished: some of it may be missing"))


def _print_block(out: Console, block: Block) -> None:
    out.print()
    out.print(plain_text(block.title, "bold").append(plain_text(f"   {block.place}", "dim")))
    if block.rows:
        _print_rows(out, block)
    for line in block.notes:
        out.print(plain_text(f"  ({line})"))
    if block.sources:
        out.print(plain_text(f"  meanings: {'; '.join(block.sources)}", "dim"))


def _print_rows(out: Console, block: Block) -> None:
    """A table of values; what they mean beside them, or on a narrow terminal below."""
    cells = [[formatted(value) for value in row.values] for row in block.rows]
    units = [row.meaning.unit for row in block.rows]
    columns = list(zip(*cells, strict=True))
    widths = [
        max(map(len, (heading, *column)))
        for heading, column in zip(block.columns, columns, strict=True)
    ]
    names = max(len(row.name) for row in block.rows) + 2
    room = out.width - names - sum(widths) - len(widths) - max(map(len, units)) - 2
    explained = [row for row in block.rows if row.meaning.text]
    beside = bool(explained) and room >= LEAST_ROOM
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("", no_wrap=True)
    for place, heading in enumerate(block.columns):
        numeric = _numeric([row.values[place] for row in block.rows])
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(plain_text(heading), justify=justify, overflow="fold")
    for heading in [*(["unit"] if any(units) else []), *(["meaning"] if beside else [])]:
        table.add_column(heading)
    for row, values in zip(block.rows, cells, strict=True):
        more = [
            *([row.meaning.unit] if any(units) else []),
            *([row.meaning.text] if beside else []),
        ]
        table.add_row(*map(plain_text, (f"  {row.name}", *values, *more)))
    out.print(table)
    for row in [] if beside else explained:
        out.print(plain_text(f"  {row.name}: {row.meaning.text}", "dim"))


def _numeric(values: Sequence[Cell]) -> bool:
    """Return whether most of a column's values are numbers, so that digits stand below each other."""
    cells = [value for value in values if value is not None and not isinstance(value, bool)]
    numbers = sum(isinstance(value, int | float) for value in cells)
    return 2 * numbers > len(cells) or not cells


def formatted(value: Cell) -> str:
    """A value as text: whole numbers with commas between thousands, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:,.9g}"
    return value


def plain_text(text: object, style: str = "") -> Text:
    """Text that a terminal prints and doesn't obey."""
    return Text(str(clean(str(text))), style=style)


def _print_listing(source: Source, node: str | None, as_json: bool) -> None:
    """Print the list of files: those of a name together, with their nodes and sizes, and the word for them."""
    files = source.of_node(node)
    if as_json:
        print(json.dumps(words.listing(source, files), indent=2))
        return
    word_by_file = {file.name: words.word_of(file, source) for file in files}
    groups: dict[str, list[RawFile]] = {}
    for file in files:
        groups.setdefault(file.base if file.node else file.name, []).append(file)
    order = {word.name: place for place, word in enumerate(words.WORDS)}

    def place(item: tuple[str, list[RawFile]]) -> tuple[int, str]:
        word = word_by_file[item[1][0].name]
        return (order[word.name] if word else len(order), item[0])

    def lay_out(out: Console) -> None:
        _head(out, source)
        if source.nodes:
            out.print(plain_text(f"nodes: {', '.join(source.nodes)}"))
        table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
        for heading in ("WHAT", "file", "on, bytes", "what it is"):
            table.add_column(heading)
        for name, alike in sorted(groups.items(), key=place):
            word = word_by_file[alike[0].name]
            table.add_row(
                *map(
                    plain_text,
                    (
                        word.name if word else words.text_name(alike[0]),
                        name,
                        _sizes(alike),
                        words.about(alike[0], word),
                    ),
                )
            )
        out.print(table)
        for line in source.left_out:
            out.print(plain_text(f"left out: {line}"))
        out.print(
            plain_text(
                f"./lab show {source.target} WHAT, or the name of a file; --node NODE for one node's"
            )
        )

    print_paged(lay_out)


def _sizes(files: Sequence[RawFile]) -> str:
    """Each node with its file's size; of many nodes their number and the sizes' range."""
    if len(files) > MOST_IN_LIST:
        sizes = [file.size_bytes for file in files]
        return f"{len(files)} nodes: {min(sizes):,} to {max(sizes):,}"
    return ", ".join(f"{file.node} {file.size_bytes:,}".strip() for file in files)


def print_paged(lay_out: Callable[[Console], None]) -> None:
    """Print what `lay_out` prints; on a terminal that it is too long for, by a pager."""
    if not sys.stdout.isatty():
        lay_out(Console(file=sys.stdout, width=FILE_WIDTH, highlight=False))
        return
    text = io.StringIO()
    lay_out(
        Console(
            file=text,
            width=shutil.get_terminal_size().columns,
            highlight=False,
            force_terminal=True,
        )
    )
    _page(text.getvalue())


def _page(text: str) -> None:
    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")


@click.command()
@click.argument("a", metavar="RUN", type=PATH)
@click.argument("b", metavar="RUN", type=PATH)
@AS_JSON
def diff(a: Path, b: Path, as_json: bool) -> int:
    """Compare two runs: the settings, measured values and raw files that differ, side by side.

    RUN is a folder that ./lab run made, one in sample-data/, a live lab's, or files of your own.
    Exit status, as for diff(1): 0 if settings and raw files are the same, 1 if something
    differs, 2 for unusable input.
    """
    root = root_folder()
    with opened(a) as source_a, opened(b) as source_b:
        difference = compare(root, source_a, source_b)
        named = (str(source_a.target), str(source_b.target))
    if as_json:
        document = {"a": named[0], "b": named[1], **difference.to_json()}
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        print_paged(lambda out: _print_difference(out, difference, named))
    return 0 if difference.same else 1


def _print_difference(out: Console, difference: Difference, named: tuple[str, str]) -> None:
    for letter, place, title in zip(
        "AB", named, (difference.title_a, difference.title_b), strict=True
    ):
        out.print(plain_text(f"{letter}: {place}: {title}", "bold"))
    for note in difference.notes:
        out.print(plain_text(f"({note})"))
    _print_pairs(out, "settings", difference.settings, ratio=False)
    _print_pairs(out, "measured values", difference.measured, ratio=True)
    _print_files(out, difference)


def _print_pairs(out: Console, what: str, pairs: tuple[ValuePair, ...], ratio: bool) -> None:
    out.print()
    if not pairs:
        out.print(plain_text(f"{what}: none differ", "bold"))
        return
    out.print(plain_text(f"{what} that differ: {len(pairs)}", "bold"))
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("")
    for heading in ("A", "B", *(["B/A"] if ratio else [])):
        table.add_column(heading, justify="right" if ratio else "left", overflow="fold")
    table.add_column("unit")
    for pair in pairs:
        values = [formatted(value) if value is not None else "-" for value in (pair.a, pair.b)]
        if ratio:
            values.append("" if pair.ratio is None else f"{pair.ratio:.4g}")
        table.add_row(plain_text(f"  {pair.name}"), *map(plain_text, values), plain_text(pair.unit))
    out.print(table)


def _print_files(out: Console, difference: Difference) -> None:
    out.print()
    same = [file for file in difference.files if file.state == "same"]
    if len(same) == len(difference.files):
        out.print(plain_text(f"raw files: all {len(same)} are the same bytes", "bold"))
        return
    out.print(
        plain_text(
            f"raw files: {len(difference.files)}, of which {len(same)} are the same bytes", "bold"
        )
    )
    for file in difference.files:
        if file.state != "same":
            out.print(plain_text(f"  {file.name}: {_pair_in_words(file)}"))
            for line in file.shown:
                out.print(plain_text(f"      {line}"))
    if same:
        out.print(plain_text(f"  the same: {', '.join(file.name for file in same)}"))


def _pair_in_words(file: FilePair) -> str:
    if file.state != "differs":
        size = file.bytes_a if file.state == "only A" else file.bytes_b
        return f"{file.state.replace('only', 'only in')}, {size:,} bytes"
    counts = {"differ": file.changed, "in A only": file.only_a, "in B only": file.only_b}
    if not file.what:
        return f"{file.bytes_a:,} bytes in A, {file.bytes_b:,} in B: too large to compare by line"
    parts = [f"{count:,} {how}" for how, count in counts.items() if count]
    return f"{file.what}: {', '.join(parts) or 'the same in another order or form'}"
