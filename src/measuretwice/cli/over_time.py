"""`lab plot RUN... --over-time`: one run over time, or up to three beside each other, drawn and as text."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.figures.files import write_files
from measuretwice.measure.over_time import PANELS, Line, OverTime
from measuretwice.report.markdown import clean
from measuretwice.runs.folder import runs_in
from measuretwice.view.over_time import read_over_time
from measuretwice.view.source import printable

MOST_RUNS = 3
# Where the output is no terminal.
TEXT_WIDTH = 100
# With so much for each, runs stand beside each other.
LEAST_WIDTH = 49
PANEL_ROWS = 9
_NO_NAME = re.compile(r"[^A-Za-z0-9.+-]+")
# A file's name has 255 bytes at most.
MOST_IN_NAME = 220
MARKS = "*o+x"
SHARED = "#"
# A braille character has two by four dots; their bits, by row and column (U+2800 and on).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800
_LABEL_WIDTH = 8
Points = tuple[Sequence[float], Sequence[float]]


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
        raise UserError(
            f"--over-time takes one run, or up to {MOST_RUNS} beside each other; not {len(targets)}"
        )
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
    name = "-beside-".join(_name(folder, MOST_IN_NAME // len(folders)) for folder in folders)
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


def _name(folder: Path, most: int) -> str:
    """Return the name of a run's figure, at most so long: the run's folder's; of a recorded one, its set's too."""
    run = next(iter(runs_in(folder)), folder).absolute()
    parts = [run.name]
    if (run / "raw.tar.xz").is_file():
        parts.insert(0, run.parent.name)
    return _NO_NAME.sub("-", "-".join(parts))[-most:].strip("-") or "run"


def text_plot(runs: Sequence[OverTime], titles: Sequence[str]) -> str:
    """Return the panels as text, as wide as the terminal; all runs' panels to the same scale."""
    width = (
        shutil.get_terminal_size((TEXT_WIDTH, 24)).columns if sys.stdout.isatty() else TEXT_WIDTH
    )
    beside = (width - 2 * (len(runs) - 1)) // len(runs)
    together = len(runs) > 1 and beside >= LEAST_WIDTH
    room = beside if together else width
    headings = [
        [part for line in title.split("\n") for part in textwrap.wrap(line, room) or [""]]
        for title in titles
    ]
    deepest = max(map(len, headings))
    columns = [
        [f"{line[:room]:<{room}}" for line in [*heading, *[""] * (deepest - len(heading))]]
        for heading in headings
    ]
    for panel in PANELS:
        lines_by_run = [run.lines.get(panel.name, []) for run in runs]
        if not any(lines_by_run):
            continue
        most = max(max(line.values, default=0) for lines in lines_by_run for line in lines)
        for column, run, lines in zip(columns, runs, lines_by_run, strict=True):
            column += _panel(panel.label, lines, (_end_s(run), most), room)
    if together:
        return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))
    return "\n".join(line.rstrip() for column in columns for line in [*column, ""])


def _end_s(run: OverTime) -> float:
    """Return the time of a run's last sample, in seconds since its first."""
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


def text_panel(
    heading: str, lines: Sequence[Points], spans: tuple[float, float], width: int, height: int
) -> list[str]:
    """Return a panel of `width` characters: its heading, `height` rows with the y axis, the x axis.

    `spans` are the largest x and y; both axes begin at 0. Every line of the result is as wide.
    """
    columns = max(10, width - _LABEL_WIDTH - 2)
    most_x, most_y = (span if span > 0 else 1.0 for span in spans)
    draw = _braille if len(lines) == 1 else _marks
    rows = draw(lines, (most_x, most_y), columns, height)
    labels = [""] * height
    labels[0], labels[-1] = _short(most_y), "0"
    if height % 2:
        labels[height // 2] = _short(most_y / 2)
    body = [f"{label:>{_LABEL_WIDTH}} ┤{row}" for label, row in zip(labels, rows, strict=True)]
    end = f"{most_x:.4g} s"
    axis = f"{'':>{_LABEL_WIDTH}} └{'─' * columns}"
    foot = f"{'':>{_LABEL_WIDTH}}  0{'':{columns - 1 - len(end)}}{end}"
    return [f"{line[:width]:<{width}}" for line in (heading, *body, axis, foot)]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _cells(
    line: Points, most: tuple[float, float], columns: int, rows: int
) -> set[tuple[int, int]]:
    """The cells that a line goes through: column, and row counted from below.

    Every sample is on it, so that a short peak isn't lost, and a straight line between each two.
    """
    cells: set[tuple[int, int]] = set()
    before: tuple[int, int] | None = None
    for x, y in zip(*line, strict=True):
        if not 0 <= x <= most[0]:
            continue
        column = min(columns - 1, int(x / most[0] * columns))
        row = max(0, min(rows - 1, round(y / most[1] * (rows - 1))))
        from_column, from_row = before or (column, row)
        steps = max(abs(column - from_column), abs(row - from_row), 1)
        for step in range(steps + 1):
            share = step / steps
            cells.add((
                round(from_column + (column - from_column) * share),
                round(from_row + (row - from_row) * share),
            ))  # fmt: skip
        before = column, row
    return cells


def _braille(
    lines: Sequence[Points], most: tuple[float, float], columns: int, height: int
) -> list[str]:
    grid = [[0] * columns for _ in range(height)]
    for column, row in _cells(lines[0], most, 2 * columns, 4 * height):
        from_top = 4 * height - 1 - row
        grid[from_top // 4][column // 2] |= _DOTS[from_top % 4][column % 2]
    return ["".join(chr(_BRAILLE + dots) if dots else " " for dots in row) for row in grid]


def _marks(
    lines: Sequence[Points], most: tuple[float, float], columns: int, height: int
) -> list[str]:
    grid = [[" "] * columns for _ in range(height)]
    for number, line in enumerate(lines):
        mark = MARKS[number % len(MARKS)]
        for column, row in _cells(line, most, columns, height):
            cell = grid[height - 1 - row][column]
            grid[height - 1 - row][column] = mark if cell in (" ", mark) else SHARED
    return ["".join(row) for row in grid]
