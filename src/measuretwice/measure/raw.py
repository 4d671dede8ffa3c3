"""A run's raw files as text: `raw`/<node>/<file>, each as its tool printed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from measuretwice.lab import Lab
from measuretwice.lab.schema.network import NodeFile
from measuretwice.lab.schema.results import Samples
from measuretwice.parse import ParseError, parse_nstat

Row = TypeVar("Row")


def text_of(path: Path) -> str:
    """Return a raw file's text; what is no UTF-8 shows as such."""
    return path.read_text(encoding="utf-8", errors="replace")


def text_at(raw: Path, file: NodeFile) -> str:
    """Return the text of a node's file."""
    return text_of(raw / file.node / file.file)


def name_of(path: Path) -> str:
    """Return a raw file's name as errors say it: its node's folder and its own."""
    return f"{path.parent.name}/{path.name}"


def key_of(node: str) -> str:
    """Return a node's name as part of a measured value's name."""
    return node.replace("-", "_")


def node_of_address(lab: Lab) -> dict[str, str]:
    """Return a lab's nodes by their addresses."""
    links = lab.file.topology.links
    return {end.address.split("/")[0]: end.node for link in links for end in (link.a, link.b)}


def rows_of(path: Path, read: Callable[[str], Row], expected: str) -> list[Row]:
    """Return what `read` makes of each line.

    ParseError, with the line's number and what was `expected`, where it raises ValueError.
    """
    rows = []
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        try:
            rows.append(read(line))
        except ValueError:
            raise ParseError(name_of(path), f"line {number}", f"expected {expected}") from None
    return rows


def lines_with(text: str, which: int | str) -> list[list[str]]:
    """Return each line's words: of those that have such a word before a number, or of all where a column is asked for; comments
    are left out."""
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    if isinstance(which, int):
        return lines
    return [line for line in lines if any(word.startswith(_before(which)) for word in line)]


def number_in(words: Sequence[str], which: int | str) -> float:
    """Return a line's number in a column, counted from 0, or behind a word, as in `cwnd:10` and `time=40.0`; a time of ping's may
    stand in brackets. ValueError or IndexError where there is none."""
    if isinstance(which, int):
        return float(words[which].strip("[]"))
    word = next((word for word in words if word.startswith(_before(which))), "")
    return float(word[len(which) + 1 :])


def _before(word: str) -> tuple[str, str]:
    return f"{word}:", f"{word}="


def samples_in(raw: Path, samples: Samples) -> list[float]:
    """Return the numbers in one of a run's raw files that a figure is of. ParseError for other lines, OSError without the file."""
    rows = lines_with(text_of(raw / samples.file), samples.y)
    try:
        values = [number_in(row, samples.y) for row in rows]
        if samples.less is not None:
            values = [
                value - number_in(row, samples.less)
                for value, row in zip(values, rows, strict=True)
            ]
    except (ValueError, IndexError):
        raise ParseError(samples.file, "file", "lacks one of these columns") from None
    least = min(values, default=0.0) if samples.above_least else 0.0
    return [(value - least) / samples.unit for value in values]


def counters_grown(folder: Path) -> dict[str, int]:
    """Return by how much each of a node's kernel counters grew from before the run to after it."""
    before, after = (
        parse_nstat(text_of(folder / f"nstat.{when}.json"), f"nstat.{when}.json")
        for when in ("before", "after")
    )
    return {name: after[name] - before.get(name, 0) for name in after}
