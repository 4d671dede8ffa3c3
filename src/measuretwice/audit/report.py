"""A table audited: how it was read, what was recomputed, which rows can't be true and why; and the same as text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from measuretwice.audit.columns import OF_RUNS, Choice, Column, known_columns
from measuretwice.audit.rules import (
    Row,
    copied,
    fits,
    groups_of,
    implied_segments,
    missing_shares,
    off_in,
    parts_of_one,
    shares_recomputed,
    shares_together,
)
from measuretwice.audit.table import Reading, read_rows, read_table
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.model import MATHIS_CONSTANTS, payload_limit

# The audit

# A C this many times beyond all of theory's is worth a remark; less is what queues and timeouts do.
FAR_FROM_THEORY = 2.0


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
class Report:
    """All that an audit found. `kind` is what a row is: `flow` or `run`. Notes aren't off."""

    source: str
    kind: str
    rows: int
    columns: tuple[Column, ...]
    unused: tuple[str, ...]
    recomputed: tuple[Recomputed, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def lines_off(self) -> int:
        """How many lines something is off in."""
        return len({line for problem in self.problems for line in problem.lines})


def audit_table(
    content: bytes,
    source: str,
    choices: Sequence[Choice] = (),
    *,
    rate_bps: float | None = None,
    mss_bytes: float | None = None,
) -> Report:
    """Audit a table: a file's bytes, its name, what a person says of its columns, the link's rate.

    UserError, in one line, where it can't be read or isn't clear: what was found, and which option
    says it.
    """
    table = read_table(content, source)
    known = known_columns(table.headings, choices, source)
    kind = "run" if OF_RUNS & set(known) - {"share"} or "goodput" not in known else "flow"
    reading = read_rows(table, known, rate_bps, mss_bytes)
    rows = reading.rows
    if not any(row.numbers for row in rows) and not reading.problems:
        raise UserError(f"{source}: no row has a number in the columns that are known")
    problems = [Problem(*problem) for problem in reading.problems]
    for row in rows:
        problems += [Problem((row.line,), row.label, kind, text) for kind, text in off_in(row)]
    problems += _together(rows)
    notes = [*reading.notes]
    recomputed: list[Recomputed] = []
    if kind == "flow":
        for group in groups_of(rows):
            recomputed += _of_flows(group, reading, notes)
            problems += _over_link(group, reading)
    notes += _remarks(rows, reading, problems, recomputed)
    columns = [column for known_as in reading.columns.values() for column in known_as]
    indices = {column.place for column in columns}
    return Report(
        source, kind, len(rows),
        tuple(columns),
        tuple(heading for index, heading in enumerate(table.headings) if index not in indices and heading),
        tuple(recomputed),
        tuple(sorted(problems, key=lambda problem: problem.lines)),
        tuple(notes),
    )  # fmt: skip


def _together(rows: Sequence[Row]) -> Iterator[Problem]:
    for row, earlier, names in copied(rows):
        whose = f" ({earlier.label})" if earlier.label else ""
        under = ", under another name" if row.label != earlier.label else ""
        yield Problem(
            (row.line,), row.label, "copied",
            f"the same {', '.join(names)} as line {earlier.line}{whose}: a copied row{under}",
        )  # fmt: skip
    for row, text in implied_segments(rows):
        yield Problem((row.line,), row.label, "model", text)
    for group in parts_of_one(rows):
        total, low, _ = shares_together(group)
        lines = tuple(row.line for row in group)
        if low > 1 and all(row["share"].low <= 1 for row in group):
            yield Problem(lines, _of(group), "share", f"shares add up to {total:.4g}, more than 1")
        elif abs(total - 1) < 0.01:
            rate = "total" if group[0].has("total") else "goodput"
            for row, again in shares_recomputed(group, rate):
                text = f"share {row.shown('share')}; recomputed {again:.4g}"
                yield Problem((row.line,), row.label, "share", text)


def _of(group: Sequence[Row]) -> str:
    return group[0].texts.get("group", "")


def _of_flows(group: Sequence[Row], reading: Reading, notes: list[str]) -> Iterator[Recomputed]:
    """Sum, Jain's index and both constants of the flows of one run."""
    rates = [row["goodput"].value for row in group if row.has("goodput")]
    unit = reading.unit_of("goodput")
    if rates and min(rates) >= 0:
        factor = unit.factor if unit else 1.0
        total = math.fsum(rates) / factor
        yield Recomputed("sum", total, unit.name if unit else "?", _of(group), len(rates))
        if max(rates) > 0:
            yield Recomputed("Jain's index", jains_index(rates), "", _of(group), len(rates))
    elif rates:
        notes.append("sum and Jain's index: not recomputed, a rate is negative")
    found, missing = fits(group, reading.mss_bytes)
    for fit in found:
        yield Recomputed(fit.title, fit.value, "", _of(group), fit.flows, fit.low, fit.high)
        if fit.left_out:
            notes.append(f"{fit.title}: {fit.left_out} of {len(group)} flows have no place in it")
    notes += [text for text in missing if text not in notes]


def _over_link(group: Sequence[Row], reading: Reading) -> Iterator[Problem]:
    """The flows of one run carry together no more than the link does."""
    linked = [row for row in group if row.has("link", "goodput")]
    if not linked or reading.unit_of("goodput") is None:
        return
    total, link = math.fsum(row["goodput"].low for row in linked), linked[0]["link"].value
    if len(linked) > 1 and total > link > 0:
        text = f"together {100 * total / link:.2f} % of the link"
        yield Problem(tuple(row.line for row in linked), _of(group), "link", text)


def _remarks(
    rows: Sequence[Row],
    reading: Reading,
    problems: Sequence[Problem],
    recomputed: Sequence[Recomputed],
) -> Iterator[str]:
    """What isn't impossible, and worth to be looked at."""
    wrong = {line for problem in problems if problem.kind == "index" for line in problem.lines}
    for flows, share in missing_shares(rows, wrong).items():
        yield (
            f"all rows with {flows} flows stay below an index of {1 - share:.4g}, which others exceed: "
            f"as if {100 * share:.1f} % of the flows were counted and never ran"
        )
    above = [
        row.line
        for row in rows
        if row.has("total", "link")
        and payload_limit(row["link"].value) < row["total"].low <= row["link"].high
    ]
    if above:
        yield (
            f"{len(above)} of {len(rows)} totals are more than {100 * payload_limit(1):.1f} % of the link: "
            "not to be had in Ethernet frames of an MTU of 1500 with TCP's timestamps"
        )
    for group in parts_of_one(rows):
        total, _, high = shares_together(group)
        if high < 1:
            whose = f" ({_of(group)})" if _of(group) else ""
            yield (
                f"the shares of lines {group[0].line} to {group[-1].line}{whose} add up to {total:.4g}: a row "
                "is missing, or they are shares of the link"
            )
    theory = [constant.value for constant in MATHIS_CONSTANTS.values() if constant.name != "1"]
    for constant in recomputed:
        if constant.name == "C by halvings" and not (
            min(theory) / FAR_FROM_THEORY < constant.value < max(theory) * FAR_FROM_THEORY
        ):
            yield (
                f"C by halvings is {constant.value:.4g}, where theory has {min(theory):.2g} to {max(theory):.3g} "
                "for Reno: look at how halvings were counted"
            )


# As text

# More of one kind are told by example.
MOST_OF_A_KIND = 12
EXAMPLES = 3
MOST_RECOMPUTED = 24


def lines_of(report: Report) -> Iterator[str]:
    """Return the audit as lines of text: how the table was read, what was recomputed, what is off."""
    each = "a flow" if report.kind == "flow" else "a run, or a part of one"
    yield f"{report.source}: {report.rows} row{'s' * (report.rows != 1)}, each {each}"
    yield f"  read: {', '.join(column.description for column in report.columns)}"
    if report.unused:
        yield f"  not read: {', '.join(map(repr, report.unused))}"
    if report.recomputed:
        yield ""
        yield "recomputed"
        yield from _recomputed(report.recomputed)
    yield ""
    if report.problems:
        yield f"can't be true: {report.lines_off} of {report.rows} rows"
        yield from _problems(report.problems)
    else:
        yield "nothing in it is impossible"
    if report.notes:
        yield ""
        yield "to look at"
        yield from (f"  {note}" for note in report.notes)


def _recomputed(values: Sequence[Recomputed]) -> Iterator[str]:
    wide = max(len(value.name) for value in values)
    for value in values[:MOST_RECOMPUTED]:
        interval = "" if value.low is None else f" ({value.low:.4g} to {value.high:.4g})"
        unit = {"": "", "?": " in the table's unit"}.get(value.unit, f" {value.unit}")
        shown = f"{value.value:.12g}" if value.name == "sum" else f"{value.value:.4g}"
        if value.name == "Jain's index":
            shown = f"{value.value:.6f}"
        of = f", {value.of}" if value.of else ""
        yield f"  {value.name:<{wide}}  {shown}{unit}{interval}, {value.rows} flows{of}"
    if len(values) > MOST_RECOMPUTED:
        yield f"  and {len(values) - MOST_RECOMPUTED} more: --json has all"


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
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
        yield f"  line {_ranges(problem.lines)}{label}: {problem.text}"
    for alike in kinds.values():
        if len(alike) > MOST_OF_A_KIND:
            lines = [line for problem in alike[EXAMPLES:] for line in problem.lines]
            yield f"  and so {len(alike) - EXAMPLES} more, line {_ranges(lines)}: such as {alike[-1].text}"


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
