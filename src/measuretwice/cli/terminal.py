"""Results for a person: one line a trial, and the progress of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
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

from measuretwice.lab import Lab
from measuretwice.report.markdown import clean
from measuretwice.report.tables import NO_CLAIM
from measuretwice.runs.goodput import BY_ACKS, goodput_means, goodput_of
from measuretwice.runs.result import Result, what_chance_does

# Wide enough for a row where the output is no terminal: a file must not lose columns.
FILE_WIDTH = 150
# From here on a row has room for the whole path of its run's folder.
ROOMY_WIDTH = 120
HEADINGS = (
    "trial",
    "min RTT\nms",
    "MSS\nB",
    "p\nset",
    "p\nmeasured",
    "goodput\nMbit/s",
    "over",
    "model\nMbit/s",
    "ratio",
)


class _Plain(Console):
    """A console to which text is text: what a terminal would obey in a name or a value is replaced."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(clean(each) for each in objects), **options)


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
        run = result.place
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
        folder = relative(results[0].place.parent)
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


def row_of(lab: Lab, result: Result) -> list[str]:
    """Return a result's values in words, one for each of HEADINGS."""
    goodput = goodput_of(lab, result)
    return [
        str(result.trial),
        _number(result.value("rtt_min_ms"), "{:.4g}"),
        _number(result.value("mss_bytes"), "{:.0f}"),
        _number(result.number("loss_ratio"), "{:.3g}"),
        _number(result.value("loss_ratio"), "{:.3g}"),
        _number(goodput.bps, "{:.4g}", 1e-6),
        goodput.time or "-",
        _number(result.model_bps, "{:.4g}", 1e-6),
        _number(result.ratio, "{:.2f}") + _without_claim(result),
    ]


def _without_claim(result: Result) -> str:
    """What stands beside a case's ratio where the model says nothing of such a run, once the case is shown fixed.

    Before that, whether the model holds may be the question. Runs of no case have a verdict.
    """
    if result.ratio is None or result.comparable or not result.case:
        return ""
    return NO_CLAIM if result.stage == "fixed" else ""


def verdict(result: Result) -> str:
    """The expectations in a word or two: what was off, or whether the model has a say."""
    wrong = [e.measured for e in result.expectations if e.ok is False]
    if wrong:
        return f"off: {', '.join(wrong)}"
    return "ok" if result.comparable else "ok, no model"


def _by_reason(results: list[Result]) -> dict[str, list[int]]:
    """Trials by the kind of their reason: what differs between them stands before the colon."""
    kinds: dict[str, list[int]] = {}
    for result in results:
        reason = str(result.not_comparable_because)
        kinds.setdefault(reason.split(": ", 1)[-1], []).append(result.trial)
    return kinds


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else form.format(value * scale)


def relative(folder: Path) -> str:
    """A folder as it is reached from here, or in full where that is shorter."""
    return min(os.path.relpath(folder), str(folder), key=len)


def print_expectations(result: Result) -> None:
    """Print each expectation of one trial: what was measured, what was expected, the verdict."""
    out = console(sys.stdout)
    out.print(f"{result.lab}, trial {result.trial}: {result.title}", style="bold")
    for mark, what in expectation_rows(result):
        out.print(f"  {mark} {what}")


def expectation_rows(result: Result) -> list[tuple[str, str]]:
    """Return each expectation of a trial in words, and a mark: as expected, off, or nothing can be said."""
    rows = []
    for e in result.expectations:
        mark = {True: "ok ", False: "OFF", None: " - "}[e.ok]
        low, high = (_number(bound, "{:.6g}") for bound in (e.low, e.high))
        span = low if low == high else f"{low} to {high}"
        rows.append(
            (mark, f"{e.label}: {e.measured} {_number(e.value, '{:.6g}')}, expected {span}")
        )
    return rows


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


def in_brief(lab: Lab, result: Result) -> str:
    """A finished trial in some words."""
    goodput = _number(goodput_of(lab, result).bps, "{:.4g} Mbit/s", 1e-6)
    ratio = f", {result.ratio:.2f} of the model" if result.ratio is not None else ""
    return goodput + ratio


def default_out(root: Path) -> Path:
    return root / "runs"
