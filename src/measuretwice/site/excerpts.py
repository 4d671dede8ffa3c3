"""Lines of recorded output for pages: verbatim, with what they come from beneath.

Nothing here is written by hand: a page that wants other lines asks for other lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.parse import parse_nstat
from measuretwice.report.report import fence
from measuretwice.runs import archive
from measuretwice.site.filters import day

WRAPPED_FROM = 160
UNSEARCHED = 'data-search-exclude="true"'


class Block(str):
    """Markdown of several lines. It takes on the indentation of the place where it stands."""

    __slots__ = ()


@dataclass(frozen=True)
class Cut:
    """Which lines of a file: matching `grep`, `between` two patterns, the `first` or `last` few."""

    first: int | None = None
    last: int | None = None
    grep: str | None = None
    between: tuple[str, str] | None = None

    def apply(self, lines: list[str]) -> list[str]:
        if self.between:
            lines = _between(lines, *self.between)
        if self.grep is not None:
            lines = [line for line in lines if re.search(self.grep, line)]
        if self.first is not None:
            lines = lines[: self.first]
        return lines[-self.last :] if self.last else lines


def _between(lines: list[str], start: str, end: str) -> list[str]:
    """From the first line that matches `start` to the next that matches `end`, both included."""
    begins = next((n for n, line in enumerate(lines) if re.search(start, line)), None)
    if begins is None:
        return []
    ends = next(
        (n for n, line in enumerate(lines[begins + 1 :], begins + 1) if re.search(end, line)),
        len(lines) - 1,
    )
    return lines[begins : ends + 1]


@lru_cache(maxsize=4)
def _raw_files(run: Path) -> dict[str, str]:
    """All raw files of a run as text: a page cuts several excerpts out of one archive."""
    with archive.raw_folder(run) as raw:
        return {
            name: path.read_text(encoding="utf-8", errors="replace")
            for name, path in archive.files_of(raw).items()
        }


def raw_text(run: Path, file: str) -> str:
    """A recorded run's raw file; UserError names the files that there are."""
    files = _raw_files(run)
    if not files:
        raise UserError(f"{run.parent.name}/{run.name} is not recorded with its raw files")
    if file not in files:
        raise UserError(f"{run.name} has no {file}; it has {', '.join(files)}")
    return files[file]


def excerpt(run: Path, file: str, cut: Cut) -> Block:
    """Some lines of a raw file as a fenced block, with a line on their origin."""
    lines = raw_text(run, file).rstrip("\n").split("\n")
    kept = cut.apply(lines)
    if not kept:
        raise UserError(f"{run.parent.name}: no line of {file} is left to show")
    whole = len(kept) == len(lines)
    what = "" if whole else f", {len(kept)} of its {len(lines)} lines"
    return _block("\n".join(kept), file, f"`{file}`{what}", run)


def json_object(run: Path, file: str, where: dict[str, Any]) -> dict[str, Any]:
    """Of the objects in a raw JSON file the first that has these values."""
    try:
        items = json.loads(raw_text(run, file))
    except ValueError as error:
        raise UserError(f"{run.parent.name}: {file} is no JSON ({error})") from None
    if isinstance(items, dict):
        # nstat's counters stand in one object under one name.
        items = list(items.values())
    for one in items:
        if all(one.get(key) == value for key, value in where.items()):
            return dict(one)
    raise UserError(f"{run.parent.name}: nothing in {file} has {where}")


def json_excerpt(run: Path, file: str, where: dict[str, Any], keys: Sequence[str]) -> Block:
    """Of the objects in a JSON file the first that has these values, and of that these keys.

    The values are as recorded; only their layout is ours.
    """
    found = json_object(run, file, where)
    missing = [key for key in keys if key not in found]
    if missing:
        raise UserError(f"{run.parent.name}: {file} has no {missing[0]}; it has {', '.join(found)}")
    kept = {key: found[key] for key in keys} if keys else found
    what = f"`{file}`, one object laid out for reading"
    return _block(json.dumps(kept, indent=2), file, what, run)


def counters_excerpt(run: Path, node: str, names: Sequence[str]) -> Block:
    """A node's counters before and after a run, and what they grew by. nstat counts since boot."""
    said = [f"{node}/nstat.{when}.json" for when in ("before", "after")]
    before, after = (parse_nstat(raw_text(run, file), file) for file in said)
    missing = [name for name in names if name not in after]
    if missing:
        raise UserError(f"{run.parent.name}: {said[1]} has no {missing[0]}")
    rows = [("counter", "before", "after", "difference")]
    for name in names:
        was, now = before.get(name, 0), after[name]
        rows.append((name, str(was), str(now), str(now - was)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    what = f"`{said[0]}` and `{said[1]}`, {len(names)} counters laid out for reading"
    return _block("\n".join(lines), f"{node}: nstat -az", what, run)


def seen(run: Path, file: str, pattern: str, cut: Cut) -> str:
    """What stands in the first line that `pattern` is found in: its group, as it was printed."""
    for line in cut.apply(raw_text(run, file).rstrip("\n").split("\n")):
        if found := re.search(pattern, line):
            return found[1] if found.re.groups else found[0]
    raise UserError(f"{run.parent.name}: no line of {file} has {pattern!r}")


def _block(text: str, file: str, what: str, run: Path) -> Block:
    said = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
    origin = (
        f"{what} · `{said['command']}` · Linux {said['kernel']['version']} · {day(said['started'])}"
    )
    # A line of ss is far longer than a page is wide, and all of it is to be read.
    long = max(map(len, text.split("\n"))) > WRAPPED_FROM
    wrapped = " .wrapped" if long else ""
    # Who searches wants the page on cwnd, not every line of ss; and the index is in each page's weight.
    head = f'{{ .text{wrapped} title="{file}" {UNSEARCHED} }}'
    block = str(fence(text)).replace("text\n", f"{head}\n", 1)
    return Block(f"{block}\n\n{origin}\n{{ .recorded {UNSEARCHED} }}\n")
