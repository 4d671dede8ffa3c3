"""What an audit found: how each table was read, what was looked at and recomputed, which rows can't be true and why; and
all of it as lines of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from measuretwice.audit.columns import Column

# More of one kind are told by example.
MOST_OF_A_KIND = 12
EXAMPLES = 3
MOST_RECOMPUTED = 24
MOST_UNSEEN = 12


@dataclass(frozen=True)
class Problem:
    """What can't be true: of which lines, what they are called, the kind of it, and why."""

    lines: tuple[int, ...]
    label: str
    kind: str
    text: str


@dataclass(frozen=True)
class Recomputed:
    """A value computed from the table's rows: of which run, over how many rows, with its 95 %
    interval where it has one. `unit` is empty for a ratio, `?` where the table names none."""

    name: str
    value: float
    unit: str
    of: str
    rows: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class TableReport:
    """What an audit found in one table, or in one way to read it. `kind` is what a row is: `flow`, `run` or `quantity`. Notes aren't
    off. `looked_at` has what was compared, with the number of rows; `row_of` the row's line for each line that has but a value."""

    title: str
    place: str
    kind: str
    rows: int
    columns: tuple[Column, ...]
    unused: tuple[str, ...]
    looked_at: tuple[tuple[str, int], ...]
    recomputed: tuple[Recomputed, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    unused_rates: tuple[str, ...] = ()
    row_of: Mapping[int, int] = field(default_factory=dict)

    @property
    def compared(self) -> bool:
        """Return whether a column was compared with another, or with an option."""
        return any("within" not in text for text, _ in self.looked_at)

    @property
    def lines_off(self) -> int:
        """Return how many rows something is off in; a row's values may stand in several lines."""
        return len({self.row_of.get(line, line) for p in self.problems for line in p.lines})


@dataclass(frozen=True)
class Report:
    """All that an audit found in a file. `unseen` says what was asked for and not looked at, or couldn't be read;
    `skipped` counts the file's other tables, of which no column is known; `rate_bps` is what --rate said."""

    source: str
    tables: tuple[TableReport, ...]
    unseen: tuple[str, ...]
    skipped: int
    rate_bps: float | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what can't be true, of all tables."""
        return tuple(problem for table in self.tables for problem in table.problems)


def read_in_any(
    audited: list[tuple[TableReport, list[str], set[str]]],
) -> list[tuple[TableReport, list[str], set[str]]]:
    """The ways to read a table; what another way reads isn't unread."""
    read = {column.heading for report, _, _ in audited for column in report.columns}
    return [
        (replace(report, unused=tuple(h for h in report.unused if h not in read)), unread, effects)
        for report, unread, effects in audited
    ]


def lines_of(report: Report) -> Iterator[str]:
    """Return the audit as lines of text: what wasn't looked at, then of each table how it was read, what was
    recomputed, what is off."""
    if report.unseen:
        yield "not looked at"
        yield from (f"  {text}" for text in report.unseen[:MOST_UNSEEN])
        if len(report.unseen) > MOST_UNSEEN:
            yield f"  and {len(report.unseen) - MOST_UNSEEN} more: --json has all"
        yield ""
    for number, table in enumerate(report.tables):
        if number:
            yield ""
        yield from _table(report, table)
    if report.skipped:
        yield ""
        yield f"of {report.skipped} other table{'s' * (report.skipped > 1)} in it no column is known"


def _table(report: Report, table: TableReport) -> Iterator[str]:
    row_is = {"flow": "a flow", "quantity": "a quantity"}.get(table.kind, "a run, or a part of one")
    title = f" ({table.title})" if table.title else ""
    yield f"{report.source}{title}: {table.rows} row{'s' * (table.rows != 1)}, each {row_is}"
    if table.columns:
        yield f"  read: {', '.join(column.description for column in table.columns)}"
    if table.unused:
        yield f"  not read: {', '.join(map(repr, table.unused))}"
    if table.looked_at:
        yield f"  looked at: {'; '.join(f'{text} ({count})' for text, count in table.looked_at)}"
    if table.recomputed:
        yield ""
        yield "recomputed"
        yield from _recomputed(table.recomputed)
    yield ""
    if table.problems:
        of_all = f" of {table.rows} rows" if table.lines_off <= table.rows else " lines"
        yield f"can't be true: {table.lines_off}{of_all}"
        yield from _problems(table.problems, table.place)
    elif table.looked_at:
        several = len(report.tables) > 1
        read = "that was read" if table.unused else "in these columns" if several else "in it"
        yield f"nothing {read} is impossible"
    else:
        no_rate = ", and no --rate was given" if report.rate_bps is None else ""
        yield f"nothing was compared: by what was read, no row can be checked{no_rate}"
    if table.notes:
        yield ""
        yield "to look at"
        yield from (f"  {note}" for note in table.notes)


def _recomputed(values: Sequence[Recomputed]) -> Iterator[str]:
    wide = max(len(value.name) for value in values)
    for value in values[:MOST_RECOMPUTED]:
        interval = "" if value.low is None else f" ({value.low:.4g} to {value.high:.4g})"
        unit = {"": "", "?": " in the table's unit"}.get(value.unit, f" {value.unit}")
        shown = f"{value.value:.12g}" if value.name == "sum" else f"{value.value:.4g}"
        if value.name == "Jain's index":
            shown = f"{value.value:.6f}"
        of = f", {value.of}" if value.of else ""
        yield f"  {value.name:<{wide}}  {shown}{unit}{interval}, {value.rows} flow{'s' * (value.rows != 1)}{of}"
    if len(values) > MOST_RECOMPUTED:
        yield f"  and {len(values) - MOST_RECOMPUTED} more: --json has all"


def _problems(problems: Sequence[Problem], place: str) -> Iterator[str]:
    kinds: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        kinds[problem.kind].append(problem)
    shown = [
        problem
        for alike in kinds.values()
        for problem in (alike if len(alike) <= MOST_OF_A_KIND else alike[:EXAMPLES])
    ]
    for problem in sorted(shown, key=lambda problem: problem.lines):
        label = f" ({problem.label})" if problem.label else ""
        yield f"  {place} {_ranges(problem.lines)}{label}: {problem.text}"
    for alike in kinds.values():
        if len(alike) > MOST_OF_A_KIND:
            lines = [line for problem in alike[EXAMPLES:] for line in problem.lines]
            yield f"  and so {len(alike) - EXAMPLES} more, {place} {_ranges(lines)}: such as {alike[-1].text}"


def _ranges(lines: Sequence[int], most: int = 10) -> str:
    """Numbers in brief: 2-11, 14."""
    parts: list[list[int]] = []
    for line in sorted(set(lines)):
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    some = [str(a) if a == b else f"{a}-{b}" for a, b in parts[:most]]
    return ", ".join(some) + (", ..." if len(parts) > most else "")
