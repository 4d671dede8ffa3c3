"""`lab plot RUN [RUN] --over-time`: one run over time, or two beside each other."""

from __future__ import annotations

import json
import re
import shutil
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.cli.text_plot import MARKS, text_panel
from measuretwice.figures.files import write_files
from measuretwice.measure.over_time import PANELS, Line, OverTime
from measuretwice.report.markdown import clean
from measuretwice.runs.folder import runs_in
from measuretwice.view.over_time import read_over_time
from measuretwice.view.source import printable

MOST_RUNS = 2
# Where the output is no terminal.
TEXT_WIDTH = 100
# From here on two runs stand beside each other, each with half of it.
WIDE = 100
PANEL_ROWS = 9
_NO_NAME = re.compile(r"[^A-Za-z0-9.+-]+")
MOST_IN_NAME = 80


def over_time_command(
    root: Path,
    targets: Sequence[str],
    *,
    node: str | None,
    out: Path | None,
    as_text: bool,
    open_it: bool,
    as_json: bool,
) -> int:
    """Draw, write, print the text plot where that is wanted; return 0."""
    if len(targets) > MOST_RUNS:
        raise UserError(f"--over-time takes one run, or two beside each other; not {len(targets)}")
    named = [titled(target) for target in targets]
    folders = [folder for _, folder in named]
    runs = [
        replace(run, title=f"{printable(title)}: {run.title}") if title else run
        for title, folder in named
        for run in [read_over_time(root, folder, node)]
    ]
    # matplotlib takes half a second to import.
    from measuretwice.figures.run_over_time import run_over_time, titles_of

    drawn, rows = run_over_time(runs)
    out = out or terminal.default_out(root) / "figures" / "over-time"
    name = "-beside-".join(_name(folder) for folder in folders)
    write_files(drawn, rows, out, name)
    files = [str(out / f"{name}.{ending}") for ending in ("svg", "csv")]
    if as_json:
        document = {
            "files": files,
            "title": drawn.title,
            "in_words": drawn.description,
            "rows": rows,
        }
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        if as_text or sys.stdout.isatty():
            print(clean(text_plot(runs, titles_of(runs))))
        for run in runs:
            for note in run.notes:
                print(clean(f"{run.title}: {note}"), file=sys.stderr)
        print("\n".join(files))
    if open_it:
        open_in_browser(out / f"{name}.svg")
    return 0


def titled(target: str) -> tuple[str | None, Path]:
    """TITLE=RUN as both; a folder may have '=' in its own name."""
    title, equals, path = target.partition("=")
    return (title, Path(path)) if equals and not Path(target).exists() else (None, Path(target))


def open_in_browser(path: Path) -> None:
    """Open a file in the person's browser; where there is none, say so in a line."""
    try:
        opened = webbrowser.open(path.absolute().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        print(f"no browser could be opened: open {path} yourself", file=sys.stderr)


def _name(folder: Path) -> str:
    """What a run's figure is called: by the run's folder; of a recorded one, by its set's too."""
    run = next(iter(runs_in(folder)), folder).absolute()
    parts = [run.name]
    if (run / "raw.tar.xz").is_file():
        parts.insert(0, run.parent.name)
    return _NO_NAME.sub("-", "-".join(parts))[-MOST_IN_NAME:].strip("-") or "run"


def text_plot(runs: Sequence[OverTime], titles: Sequence[str]) -> str:
    """Return the panels as text, as wide as the terminal; both runs' panels to the same scale."""
    width = (
        shutil.get_terminal_size((TEXT_WIDTH, 24)).columns if sys.stdout.isatty() else TEXT_WIDTH
    )
    together = len(runs) > 1 and width >= WIDE
    each = (width - 2) // 2 if together else width
    headings = [title.split("\n") for title in titles]
    deepest = max(map(len, headings))
    columns = [
        [f"{line[:each]:<{each}}" for line in [*heading, *[""] * (deepest - len(heading))]]
        for heading in headings
    ]
    for panel in PANELS:
        known = [run.lines.get(panel.name, []) for run in runs]
        if not any(known):
            continue
        most = max(max(line.values, default=0) for lines in known for line in lines)
        for column, run, lines in zip(columns, runs, known, strict=True):
            column += _panel(panel.label, lines, (_end_s(run), most), each)
    if together:
        return "\n".join("  ".join(pair).rstrip() for pair in zip(*columns, strict=True))
    return "\n".join(line.rstrip() for column in columns for line in [*column, ""])


def _end_s(run: OverTime) -> float:
    """When a run's last sample was, in seconds since its first."""
    lines = [line for lines in run.lines.values() for line in lines if line.time_s]
    return max((line.time_s[-1] for line in lines), default=0.0)


def _panel(label: str, lines: Sequence[Line], spans: tuple[float, float], width: int) -> list[str]:
    """A panel with its legend, where a level without times is told by its number."""
    drawn = [line for line in lines if not line.steady]
    marks = MARKS if len(drawn) > 1 else " "
    words = [f"{mark} {line.label}" for line, mark in zip(drawn, marks * len(drawn), strict=False)]
    words += [f"  {line.label} {line.values[0]:.4g} {line.unit}" for line in lines if line.steady]
    points = [(line.time_s, line.values) for line in drawn]
    shown = text_panel(label.replace("\n", " "), points, spans, width, PANEL_ROWS)
    legend = "  " + "  ".join(words or ["not sampled"])
    shown.insert(1, f"{legend:<{width}}"[:width])
    return shown
