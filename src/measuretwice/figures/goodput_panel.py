"""What the figures of runs against a model share: panels of goodput, limits of axes, words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from measuretwice.base.errors import UserError
from measuretwice.figures import marks
from measuretwice.figures.rows import ModelRuns, Published, Row, complete, rows_for_table
from measuretwice.figures.style import logarithmic

# What a run must have to stand in a panel of goodput against the model.
KEYS = ("rtt_ms", "mss_bytes", "model_mbit", "goodput_mbit")


def usable_rows(runs: ModelRuns, keys: Sequence[str]) -> tuple[list[Row], int]:
    """Return the rows that have all of `keys`, and how many runs have none; UserError for no row."""
    results = runs.results
    if not results:
        raise UserError("nothing to plot: there is no finished run; run ./lab run LAB first")
    rows = complete(rows_for_table(results, runs.names), keys)
    if not rows:
        raise UserError(f"nothing to plot: none of {len(results)} runs has {', '.join(keys)}")
    return rows, len(results) - len(rows)


def goodput_panel(
    axes: Axes,
    rows: Sequence[Row],
    all_rows: Sequence[Row],
    limits: tuple[float, float],
    size: float | None = None,
) -> None:
    """Draw the trials of one panel; `all_rows` are those that shapes and colours are shared with."""
    look = marks.looks(all_rows)
    logarithmic(axes)
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.set_aspect("equal")
    for row in rows:
        marks.goodput_bar(axes, row, row["model_mbit"], row["goodput_mbit"])
        axes.plot(
            row["model_mbit"],
            row["goodput_mbit"],
            **look(row) | ({"markersize": size} if size else {}),
        )


def limits_of(values: Sequence[float], room: float) -> tuple[float, float]:
    """Return the ends of an axis for these values, `room` times beyond them, so that at least two
    powers of ten stand at it."""
    low, high = min(values) / room, max(values) * room
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return (low, high) if last - first > 2 else (10.0**first, 10.0**last)


def square_limits(rows: Sequence[Row], published: Sequence[Published] = ()) -> tuple[float, float]:
    """Return the ends of both axes of goodput against the model, in Mbit/s."""
    values = [row[key] for row in rows for key in ("model_mbit", "goodput_mbit")]
    values += [mbit for value in published for mbit in (value.model_mbit, value.measured_mbit)]
    return limits_of(values, 1.6)


def left_out_in_words(left_out: int) -> list[str]:
    """Return a line on the runs that have no place in the figure; none where all have."""
    if not left_out:
        return []
    return [f"{left_out} trial{'' if left_out == 1 else 's'} left out: a value is missing"]


def in_words(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Return a figure's description: how many trials, and what its notes say."""
    applies = sum(row["comparable"] for row in rows)
    words = f"{len(rows)} trials; the model applies to {applies}."
    return f"{words} {' '.join(notes)}." if notes else words


def caption(rows: Sequence[Row], notes: Sequence[str] = (), bars: bool = True) -> str:
    """Return what stands below a figure: how many trials, what its notes say, what bars mean."""
    said = f"{len(rows)} trials, a mark each; {in_words(rows, notes).split('; ', 1)[1]}"
    if bars and any(row["losses"] is not None for row in rows):
        return f"{said} Bars: 95 % interval by the number of losses"
    return said.removesuffix(".")
