"""An audit in words: as a terminal and a page show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from measuretwice.audit.report import Problem, Recomputed, Report

# More of one kind are told by example.
MOST_OF_A_KIND = 12
EXAMPLES = 3
MOST_RECOMPUTED = 24


def lines_of(report: Report) -> Iterator[str]:
    """Return the audit as lines of text: how the table was read, what was recomputed, what is off."""
    each = "a flow" if report.kind == "flow" else "a run, or a part of one"
    yield f"{report.source}: {report.rows} row{'s' * (report.rows != 1)}, each {each}"
    yield f"  read: {', '.join(column.told for column in report.columns)}"
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
    wide = max(len(one.name) for one in values)
    for one in values[:MOST_RECOMPUTED]:
        interval = "" if one.low is None else f" ({one.low:.4g} to {one.high:.4g})"
        unit = {"": "", "?": " in the table's unit"}.get(one.unit, f" {one.unit}")
        shown = f"{one.value:.12g}" if one.name == "sum" else f"{one.value:.4g}"
        if one.name == "Jain's index":
            shown = f"{one.value:.6f}"
        of = f", {one.of}" if one.of else ""
        yield f"  {one.name:<{wide}}  {shown}{unit}{interval}, {one.rows} flows{of}"
    if len(values) > MOST_RECOMPUTED:
        yield f"  and {len(values) - MOST_RECOMPUTED} more: --json has all"


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
    kinds: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        kinds[problem.kind].append(problem)
    told = [
        problem
        for those in kinds.values()
        for problem in (those if len(those) <= MOST_OF_A_KIND else those[:EXAMPLES])
    ]
    for problem in sorted(told, key=lambda one: one.lines):
        label = f" ({problem.label})" if problem.label else ""
        yield f"  line {_ranges(problem.lines)}{label}: {problem.text}"
    for those in kinds.values():
        if len(those) > MOST_OF_A_KIND:
            lines = [line for problem in those[EXAMPLES:] for line in problem.lines]
            yield f"  and so {len(those) - EXAMPLES} more, line {_ranges(lines)}: {_like(those)}"


def _like(problems: Sequence[Problem]) -> str:
    return f"such as {problems[-1].text}"


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
