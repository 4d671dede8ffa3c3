"""What commands print for a person: results, a line a trial; the progress of a run; complaints and questions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.style import Style
from rich.table import Table
from rich.text import Text

from measuretwice.base.errors import without_controls
from measuretwice.course.case import CaseRun
from measuretwice.course.progress import OpenedTry
from measuretwice.course.wording import HEADINGS, expectation_rows, row_of, verdict
from measuretwice.lab import Lab
from measuretwice.report.markdown import clean
from measuretwice.runs.result import BY_ACKS, Result, goodput_means, goodput_of, what_chance_does

# Wide enough for a row where the output is no terminal: a file must not lose columns.
FILE_WIDTH = 150
# From here on a row has room for the whole path of its run's folder.
ROOMY_WIDTH = 120


class _Plain(Console):
    """A console to which text is text: what a terminal would obey in a name or a value is replaced."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(clean(text) for text in objects), **options)


def console(stream: TextIO) -> Console:
    """A console that wraps only on a terminal; NO_COLOR is honoured by rich."""
    return _Plain(file=stream, width=None if stream.isatty() else FILE_WIDTH, highlight=False)


def print_table(lab: Lab, results: list[Result], *, verdicts: bool = True) -> None:
    """Print the trials as a table: what was set, what was measured, the model, the ratio.

    With `verdicts` also what each expectation says, why a run can't be compared with the model, and
    what is called goodput.

    Each row links to its run's folder: by its whole path where there is room, else by the
    digest at the path's end (a hyperlink, in terminals that have them).
    """
    out = console(sys.stdout)
    roomy = out.width >= ROOMY_WIDTH
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    rows = [row_of(lab, result) for result in results]
    used = [place for place in range(len(HEADINGS)) if any(row[place] != "-" for row in rows)]
    for place in used:
        table.add_column(HEADINGS[place], justify="right", no_wrap=True)
    if verdicts:
        table.add_column("verdict", no_wrap=True)
    table.add_column("run", no_wrap=not roomy, overflow="fold" if roomy else "ellipsis")
    for result, row in zip(results, rows, strict=True):
        run = result.run_dir
        table.add_row(
            *(row[place] for place in used),
            *([verdict(result)] if verdicts else []),
            Text(
                relative(run) if roomy else run.name.rsplit("-", 1)[-1],
                style=Style(link=run.absolute().as_uri()),
            ),
        )
    out.print(table)
    if not roomy:
        folder = relative(results[0].run_dir.parent)
        out.print(f"\nRuns are in {folder}, each folder's name ending as its row does.")
    if not verdicts:
        return
    for means in dict.fromkeys(goodput_means(lab, result.params) for result in results):
        out.print(f"\nGoodput: {means}.")
    if any(goodput_of(lab, result).above_link for result in results):
        out.print(BY_ACKS)
    if remark := what_chance_does(results):
        out.print(f"\n{remark}")
    apart = [result for result in results if not result.comparable]
    if apart:
        out.print(
            f"\n{len(apart)} of {len(results)} can't be compared with the model:", style="bold"
        )
        for reason, trials in _by_reason(apart).items():
            out.print(f"  trial {', '.join(map(str, trials))}: {reason}")


def _by_reason(results: list[Result]) -> dict[str, list[int]]:
    """Trials by the kind of their reason: what differs between them stands before the colon."""
    kinds: dict[str, list[int]] = {}
    for result in results:
        reason = str(result.not_comparable_because)
        kinds.setdefault(reason.split(": ", 1)[-1], []).append(result.trial)
    return kinds


def relative(folder: Path) -> str:
    """A folder as it is reached from here, or in full where that is shorter."""
    return min(os.path.relpath(folder), str(folder), key=len)


def print_expectations(lab: Lab, result: Result) -> None:
    """Print each expectation of one trial: what was measured, what was expected, the verdict."""
    out = console(sys.stdout)
    title = lab.listed_title(result.title)
    out.print(f"{result.lab}, trial {result.trial}: {title}", style="bold")
    for mark, what in expectation_rows(result):
        out.print(f"  {mark} {what}")


Advance = Callable[[int, str], None]


class Lines:
    """Progress where there is no terminal: a line for each trial that ends."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def advance(self, trial: int, outcome: str) -> None:
        self.done += 1
        print(f"[{self.done}/{self.total}] trial {trial}: {outcome}", file=sys.stderr, flush=True)


class Bar:
    """Progress on a terminal: a bar with the last trial, elapsed and remaining time."""

    def __init__(self, total: int) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.task = self.progress.add_task("measuring", total=total)

    def advance(self, trial: int, outcome: str) -> None:
        self.progress.update(self.task, advance=1, description=f"trial {trial}: {outcome}")


def progress(total: int, quiet: bool) -> tuple[AbstractContextManager[object], Advance]:
    """Return a context to run in and the function that is told of each trial that ended."""
    if quiet:
        return nullcontext(), lambda trial, outcome: None
    if sys.stderr.isatty():
        bar = Bar(total)
        return bar.progress, bar.advance
    return nullcontext(), Lines(total).advance


def counter(what: str, total: int, quiet: bool) -> tuple[AbstractContextManager[object], Advance]:
    """The same for other work: a bar on a terminal, else nothing. Names of people aren't shown."""
    if quiet or not sys.stderr.isatty():
        return nullcontext(), lambda place, outcome: None
    bar = Bar(total)
    bar.progress.update(bar.task, description=what)
    return bar.progress, lambda place, outcome: bar.progress.advance(bar.task)


def print_rows(
    out: Console, headings: list[str], rows: list[list[str]], numeric: Collection[int]
) -> None:
    """Print a plain table; its text is text, never markup."""
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place in numeric else "left")
    for row in rows:
        table.add_row(*(Text(str(clean(cell))) for cell in row))
    out.print(table)


def default_out(root: Path) -> Path:
    return root / "runs"


def complain(lines: Iterable[object]) -> None:
    """Print lines about what is wrong on standard error, each on one line and without what a terminal would obey."""
    for line in lines:
        print(f"lab: {without_controls(str(line))}", file=sys.stderr)


def is_attended() -> bool:
    """Return whether somebody is at the terminal, who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_person(question: str) -> str:
    """Return what a person answers in one line; nothing where nobody is at the terminal."""
    if not is_attended():
        return ""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def say_new_book(begun: CaseRun | OpenedTry) -> None:
    """Say where a lab book is, and its seed, if it was begun just now."""
    if begun.book_is_new:
        print(f"Your lab book: {relative(begun.book.path)} (seed {begun.seed})", file=sys.stderr)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
