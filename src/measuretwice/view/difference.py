"""Two runs compared: settings, measured values, raw files. Nothing is judged."""

from __future__ import annotations

import difflib
import filecmp
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from measuretwice.base.errors import UserError
from measuretwice.measure import imported
from measuretwice.measure.fields import Measured, unit_of
from measuretwice.measure.imported import MAX_FILE_BYTES
from measuretwice.runs.remeasure import remeasure
from measuretwice.view import Cell
from measuretwice.view.documents import (
    OF_PLAN,
    lab_of,
    listed_of,
    parameter_meaning,
    params_of,
    plain,
    settings_of,
    values_not_due,
)
from measuretwice.view.source import OWN, RawFile, Source

# Of files with more lines than that, only how many differ is told: to pair them takes too long.
MOST_LINES = 400
# So many differing lines or values of a file are shown.
MOST_SHOWN = 8
# Where more differ than that, the file is another one: no list helps.
MOST_TOLD = 40
LINE_WIDTH = 120
State = Literal["same", "differs", "only A", "only B"]


@dataclass(frozen=True)
class ValuePair:
    """A setting or a measured value that differs; `ratio` is B over A, of numbers only."""

    name: str
    unit: str
    a: Cell
    b: Cell
    ratio: float | None = None


@dataclass(frozen=True)
class FilePair:
    """A raw file of one run or both: sizes in bytes, None where it isn't there.

    `what` is what was counted in it: lines, or of JSON values; `changed` have the same place in both,
    `only_a` and `only_b` stand in one. `shown` are the first of them in words, where they are few.
    """

    name: str
    state: State
    bytes_a: int | None
    bytes_b: int | None
    what: str = ""
    changed: int = 0
    only_a: int = 0
    only_b: int = 0
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """What differs between two runs; `notes` are what could not be compared, in words."""

    title_a: str
    title_b: str
    settings: tuple[ValuePair, ...]
    measured: tuple[ValuePair, ...]
    files: tuple[FilePair, ...]
    notes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Return whether settings and raw files are the same. Measured values follow from these."""
        return not self.settings and all(file.state == "same" for file in self.files)

    def to_json(self) -> dict[str, Any]:
        return {"same": self.same, **asdict(self)}


def compare(root: Path, a: Source, b: Source) -> Difference:
    """Compare two opened runs, or folders of raw files."""
    notes: list[str] = []
    if not a.plan or not b.plan:
        notes.append("no settings: files from elsewhere don't say them")
    for source in (a, b):
        notes += settings_of(root, source)[1]
    measured = [_measured(root, source, notes) for source in (a, b)]
    hidden: Collection[str] = ()
    if not _of_one_case(a, b):
        hidden = values_not_due(root, {*measured[0], *measured[1]}, a, b)
    return Difference(
        a.title,
        b.title,
        tuple(_settings(root, a, b)),
        tuple(pair for pair in _measured_pairs(*measured) if pair.name not in hidden),
        tuple(_files(a, b)),
        tuple(notes),
    )


def _settings(root: Path, a: Source, b: Source) -> Iterator[ValuePair]:
    """Yield the settings in which the plans differ: the run's own facts, then the parameters."""
    if not a.plan or not b.plan:
        return
    for name in OF_PLAN:
        yield from _pair(name, "", a.plan.get(name), b.plan.get(name))
    params = [params_of(source) for source in (a, b)]
    lab = lab_of(root, a.plan)
    listed = None if _of_one_case(a, b) else listed_of(root, lab, a, b)
    for name in dict.fromkeys([*params[0], *params[1]]):
        if listed is not None and name not in listed:
            continue
        unit = parameter_meaning(lab, name).unit
        yield from _pair(name, unit, params[0].get(name), params[1].get(name))
    for what in ("tools", "scripts"):
        both = [
            values if isinstance(values := source.plan.get(what), dict) else {} for source in (a, b)
        ]
        for name in dict.fromkeys([*both[0], *both[1]]):
            yield from _pair(
                f"{what.removesuffix('s')} {name}", "", both[0].get(name), both[1].get(name)
            )


def _of_one_case(a: Source, b: Source) -> bool:
    """Return whether both runs are of one case: then their differences are what somebody changed, or asked to see."""
    cases = [
        (source.plan.get("case"), source.plan.get("pitfall"), _recorded_case(source))
        for source in (a, b)
    ]
    return cases[0] == cases[1] and any(cases[0]) and a.plan.get("lab") == b.plan.get("lab")


def _recorded_case(source: Source) -> str:
    """Return the case that a run in sample-data/ is of, by its set's folder."""
    match = re.match(r"case-\d+(?=-)", source.target.absolute().parent.name) or re.match(
        r"case-\d+(?=-)", source.target.absolute().name
    )
    return match[0] if match else ""


def _pair(name: str, unit: str, a: object, b: object, ratio: bool = False) -> Iterator[ValuePair]:
    if a == b and type(a) is type(b):
        return
    values = [plain(value) for value in (a, b)]
    first, second = values
    factor = None
    if ratio and isinstance(first, int | float) and isinstance(second, int | float) and first:
        factor = float(f"{second / first:.6g}")
    yield ValuePair(name, unit, first, second, factor)


def _measured(root: Path, source: Source, notes: list[str]) -> Measured:
    """A run's values, made anew from its raw files; none, with a note, where that can't be."""
    try:
        if source.sort == "run":
            return remeasure(root, source.target).measured
        return imported.read_files(
            [file.path for file in source.files if file.base not in OWN]
        ).measured
    except UserError as error:
        notes.append(f"no measured values: {error}")
        return {}


def _measured_pairs(a: Measured, b: Measured) -> Iterator[ValuePair]:
    for name in dict.fromkeys([*a, *b]):
        yield from _pair(name, unit_of(name), a.get(name), b.get(name), ratio=True)


def _files(a: Source, b: Source) -> Iterator[FilePair]:
    """The raw files of both, by name. A run's own documents aren't: they name place and day."""
    of_a, of_b = (
        {file.name: file for file in source.files if source.sort == "files" or file.node}
        for source in (a, b)
    )
    if len(of_a) == len(of_b) == 1:
        # Two files of any names, as diff(1) takes them.
        file = next(iter(of_b.values()))
        of_b = {next(iter(of_a)): file}
    for name in sorted({*of_a, *of_b}):
        first, second = of_a.get(name), of_b.get(name)
        if first and second:
            yield _both(name, first, second)
        elif first:
            yield FilePair(name, "only A", first.size_bytes, None)
        elif second:
            yield FilePair(name, "only B", None, second.size_bytes)


def _both(name: str, first: RawFile, second: RawFile) -> FilePair:
    sizes = (first.size_bytes, second.size_bytes)
    if filecmp.cmp(first.path, second.path, shallow=False):
        return FilePair(name, "same", *sizes)
    if max(sizes) > MAX_FILE_BYTES:
        return FilePair(name, "differs", *sizes)
    texts = (first.read(), second.read())
    values = [_values_of(text) for text in texts]
    if values[0] is not None and values[1] is not None:
        what, counts, shown = "values", *_of_values(values[0], values[1])
    else:
        what, counts, shown = "lines", *_of_lines(texts[0].splitlines(), texts[1].splitlines())
    if sum(counts) > MOST_TOLD:
        shown = []
    elif len(shown) > MOST_SHOWN:
        shown = [*shown[:MOST_SHOWN], f"... {len(shown) - MOST_SHOWN} more"]
    changed, only_a, only_b = counts
    return FilePair(
        name, "differs", *sizes, what, changed, only_a, only_b, tuple(shown)
    )  # fmt: skip


def _of_lines(a: list[str], b: list[str]) -> tuple[tuple[int, int, int], list[str]]:
    """Lines that stand in one only: how many, and as diff(1) prints them."""
    counts = [Counter(lines) for lines in (a, b)]
    only = [sum((counts[side] - counts[1 - side]).values()) for side in (0, 1)]
    shown: list[str] = []
    if max(len(a), len(b)) <= MOST_LINES:
        lines = difflib.unified_diff(a, b, n=0, lineterm="")
        shown = [_cut(line) for line in lines if not line.startswith(("---", "+++", "@@"))]
    return (0, only[0], only[1]), shown


def _of_values(
    a: Mapping[str, str], b: Mapping[str, str]
) -> tuple[tuple[int, int, int], list[str]]:
    """Values of JSON by their path: changed, in A only, in B only; and the first in words."""
    differ = [path for path in dict.fromkeys([*a, *b]) if a.get(path) != b.get(path)]
    both = sum(path in a and path in b for path in differ)
    only_a = sum(path not in b for path in differ)
    shown = [_cut(f"{path}: {a.get(path, '-')} | {b.get(path, '-')}") for path in differ]
    return (both, only_a, len(differ) - both - only_a), shown


def _cut(line: str) -> str:
    return line if len(line) <= LINE_WIDTH else f"{line[: LINE_WIDTH - 3]}..."


def _values_of(text: str) -> dict[str, str] | None:
    """Each value of a JSON document by its path, as JSON; None where it is none."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return dict(_values(json.loads(text), "$"))
    except (ValueError, RecursionError):
        return None


def _values(content: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _values(value, f"{path}.{name}")
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield from _values(value, f"{path}[{index}]")
    else:
        yield path, json.dumps(content)
