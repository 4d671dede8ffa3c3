"""`lab diff`: settings, measured values and raw files that differ between two runs, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from measuretwice.cli.options import AS_JSON, PATH, root_folder
from measuretwice.cli.show import formatted, plain_text, print_paged
from measuretwice.view.difference import Difference, FilePair, ValuePair, compare
from measuretwice.view.source import opened


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
        print_paged(lambda out: _lay_out(out, difference, named))
    return 0 if difference.same else 1


def _lay_out(out: Console, difference: Difference, named: tuple[str, str]) -> None:
    for letter, place, title in zip(
        "AB", named, (difference.title_a, difference.title_b), strict=True
    ):
        out.print(plain_text(f"{letter}: {place}: {title}", "bold"))
    for note in difference.notes:
        out.print(plain_text(f"({note})"))
    _pairs(out, "settings", difference.settings, ratio=False)
    _pairs(out, "measured values", difference.measured, ratio=True)
    _files(out, difference)


def _pairs(out: Console, what: str, pairs: tuple[ValuePair, ...], ratio: bool) -> None:
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


def _files(out: Console, difference: Difference) -> None:
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
            out.print(plain_text(f"  {file.name}: {_in_words(file)}"))
            for line in file.shown:
                out.print(plain_text(f"      {line}"))
    if same:
        out.print(plain_text(f"  the same: {', '.join(file.name for file in same)}"))


def _in_words(file: FilePair) -> str:
    if file.state != "differs":
        size = file.bytes_a if file.state == "only A" else file.bytes_b
        return f"{file.state.replace('only', 'only in')}, {size:,} bytes"
    counts = {"differ": file.changed, "in A only": file.only_a, "in B only": file.only_b}
    if not file.what:
        return f"{file.bytes_a:,} bytes in A, {file.bytes_b:,} in B: too large to compare by line"
    parts = [f"{count:,} {how}" for how, count in counts.items() if count]
    return f"{file.what}: {', '.join(parts) or 'the same in another order or form'}"
