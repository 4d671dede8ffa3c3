"""Results for a person: one line a trial, and the progress of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from measuretwice.result import Result

# Wide enough for a row where the output is no terminal: a file must not lose columns.
FILE_WIDTH = 150


def console(stream: TextIO) -> Console:
    """A console that wraps only on a terminal; NO_COLOR is honoured by rich."""
    return Console(file=stream, width=None if stream.isatty() else FILE_WIDTH, highlight=False)


def print_table(results: list[Result], stream: TextIO = sys.stdout) -> None:
    """Print the trials as a table: what was set, what was measured, the model, the ratio."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "trial",
        "RTT ms",
        "MSS B",
        "loss p",
        "measured p",
        "goodput Mbit/s",
        "model Mbit/s",
        "ratio",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("run", overflow="fold")
    for result in results:
        measured, params = result["measured"], result["params"]
        model = result["model"] or {}
        table.add_row(
            str(result["trial"]),
            _number(measured.get("rtt_min_ms"), "{:.4g}"),
            _number(measured.get("mss_bytes"), "{:.0f}"),
            _number(params.get("loss_ratio"), "{:.3g}"),
            _number(measured.get("loss_ratio"), "{:.3g}"),
            _number(measured.get("goodput_bps"), "{:.4g}", 1e-6),
            _number(model.get("bandwidth_bps"), "{:.4g}", 1e-6),
            _number(result["ratio"], "{:.2f}"),
            verdict(result),
            _relative(result["run_dir"]),
        )
    out = console(stream)
    out.print(table)
    apart = [result for result in results if not result["comparable"]]
    if apart:
        out.print(
            f"\n{len(apart)} of {len(results)} can't be held against the model:", style="bold"
        )
        for reason, trials in _by_reason(apart).items():
            out.print(f"  trial {', '.join(map(str, trials))}: {reason}")


def verdict(result: Result) -> str:
    """One word for the expectations, and what was off."""
    wrong = [e["measured"] for e in result["expectations"] if e["ok"] is False]
    if wrong:
        return f"off: {', '.join(wrong)}"
    return "as expected" if result["comparable"] else "as expected, no model"


def _by_reason(results: list[Result]) -> dict[str, list[int]]:
    """Trials by the kind of their reason: what differs between them stands before the colon."""
    kinds: dict[str, list[int]] = {}
    for result in results:
        reason = str(result["not_comparable_because"])
        kinds.setdefault(reason.split(": ", 1)[-1], []).append(result["trial"])
    return kinds


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else form.format(value * scale)


def _relative(folder: str) -> str:
    relative = os.path.relpath(folder)
    return relative if len(relative) < len(folder) else folder


def print_expectations(result: Result, stream: TextIO = sys.stdout) -> None:
    """Print each expectation of one trial: what was measured, what was expected, the verdict."""
    out = console(stream)
    out.print(f"{result['lab']}, trial {result['trial']}: {result['title']}", style="bold")
    for e in result["expectations"]:
        mark = {True: "ok ", False: "OFF", None: " - "}[e["ok"]]
        low, high = (_number(e[key], "{:.6g}") for key in ("low", "high"))
        span = low if low == high else f"{low} to {high}"
        out.print(
            f"  {mark} {e['label']}: {e['measured']} {_number(e['value'], '{:.6g}')}, expected {span}"
        )


Advance = Callable[[int, str], None]


class Lines:
    """Progress where there is no terminal: a line for each trial that ends."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0

    def advance(self, trial: int, said: str) -> None:
        self.done += 1
        print(f"[{self.done}/{self.total}] trial {trial}: {said}", file=sys.stderr, flush=True)


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

    def advance(self, trial: int, said: str) -> None:
        self.progress.update(self.task, advance=1, description=f"trial {trial}: {said}")


def progress(total: int, quiet: bool) -> tuple[AbstractContextManager[object], Advance]:
    """Return a context to run in and the function that is told of each trial that ended."""
    if quiet:
        return nullcontext(), lambda trial, said: None
    if sys.stderr.isatty():
        bar = Bar(total)
        return bar.progress, bar.advance
    return nullcontext(), Lines(total).advance


def in_brief(result: Result) -> str:
    """A finished trial in some words."""
    goodput = _number(result["measured"].get("goodput_bps"), "{:.4g} Mbit/s", 1e-6)
    ratio = f", {result['ratio']:.2f} of the model" if result["ratio"] is not None else ""
    return goodput + ratio


def default_out(root: Path) -> Path:
    return root / "runs"
