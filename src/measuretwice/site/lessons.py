"""A plan for a class: its tables give each row's minutes, from which the clock follows, and a row that is of a case says only
what is that case's own. docs/layouts/lesson.md.j2 words the rest.

| 4 | 4 | case mtu | What else goes into the formula? |       minutes of the long plan and of the short one (– for none)
| 8 | 6 | search | Read one line of ss aloud. |
| 5 | 4 | cause | Who refused the size? |                      for instructors only
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from measuretwice.base.errors import UserError

# What happens in these rows the layout says; a row of any other kind says it itself.
SEARCH, CAUSE = "search", "cause"
# A session's parts besides its cases, in minutes, and after how many cases there is a break.
BEGIN_MIN, COMPARE_MIN, BREAK_MIN, TOGETHER_MIN, END_MIN = 20, 3, 10, 15, 10
CASES_TO_A_BREAK = 3


@dataclass(frozen=True)
class Row:
    """A row of a plan: from when to when, what happens, what to ask. `kind` is "case", "search" or "cause" where the row is
    one of a case, `case` that case."""

    when: str
    when_short: str
    happens: str
    ask: str
    kind: str
    case: str


@dataclass(frozen=True)
class SessionRow:
    """A row of a session: from when to when, and what of: "begin", "case", "break", "together" or "end"."""

    when: str
    kind: str
    case: str = ""


def plan_rows(text: str) -> list[Row]:
    """Return the rows of a plan's table; UserError for one that has no minutes or not four cells."""
    rows, long, short, case = [], 0, 0, ""
    for cells in _cells(text):
        if len(cells) != 4 or not cells[0].isdecimal() or not (cells[1].isdecimal() or cells[1] == "–"):  # fmt: skip
            raise UserError(
                "a row of a plan has four cells, minutes, minutes or –, what happens, what to ask: "
                + " | ".join(cells)
            )
        happens = cells[2]
        kind = happens if happens in (SEARCH, CAUSE) else ""
        if happens.startswith("case "):
            kind, case = "case", happens.removeprefix("case ").strip()
        now, now_short = int(cells[0]), int(cells[1]) if cells[1] != "–" else 0
        when_short = _span(short, now_short) if now_short else "–"
        rows.append(Row(_span(long, now), when_short, happens, cells[3], kind, case))
        long, short = long + now, short + now_short
    return rows


def session_rows(cases: Sequence[str], minutes: Mapping[str, int]) -> tuple[list[SessionRow], int]:
    """Return a session that has so many minutes for each of these cases, and its length in minutes."""
    parts = [("begin", "", BEGIN_MIN)]
    for number, case in enumerate(cases, 1):
        if case not in minutes:
            raise UserError(f"there is no case {case!r}; there are {', '.join(minutes)}")
        parts.append(("case", case, minutes[case] + COMPARE_MIN))
        if number % CASES_TO_A_BREAK == 0 and number < len(cases):
            parts.append(("break", "", BREAK_MIN))
    parts += [("together", "", TOGETHER_MIN), ("end", "", END_MIN)]
    rows, at = [], 0
    for kind, case, length in parts:
        rows.append(SessionRow(_span(at, length), kind, case))
        at += length
    return rows, at


def timed(text: str) -> str:
    """Return a table of minutes and what happens with the clock instead of the minutes, and a last row for all of them."""
    rows, at = [], 0
    for minutes, happens in _cells(text):
        rows.append(f"| {_span(at, int(minutes))} | {happens} |")
        at += int(minutes)
    head = text.strip().splitlines()[:2]
    return "\n".join([*head, *rows, f"| **{at}** | **in all** |"])


def _cells(text: str) -> Iterator[list[str]]:
    """The cells of each row of a Markdown table below its headings."""
    for line in text.strip().splitlines()[2:]:
        if line.strip():
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _span(start: int, minutes: int) -> str:
    return f"{start}&nbsp;to&nbsp;{start + minutes}"
