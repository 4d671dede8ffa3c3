"""Figures as files: each as SVG, with the rows that it shows beside it as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from measuretwice.base.errors import UserError
from measuretwice.figures.registry import draw_against_model, draw_declared
from measuretwice.figures.rows import (
    ModelRuns,
    NamedSet,
    ParameterNames,
    Published,
    Row,
    csv_text,
    read_published,
    rows_for_table,
)
from measuretwice.lab import Lab

if TYPE_CHECKING:
    from measuretwice.figures.style import DescribedFigure


def write_figure(
    lab: Lab, name: str, sets: Sequence[NamedSet], out: Path, heading: str | None = None
) -> list[Row]:
    """Write one of `figures_of(lab)` to out/name.svg and out/name.csv; return its rows.

    A `heading` stands above the panels of a figure that lab.toml declares.

    A figure that lab.toml declares is of all sets' runs together; one against the model has a row
    for each run of each set, with the set's title. UserError where it can't be drawn or written.
    """
    declared = next((figure for figure in lab.file.figures if figure.id == name), None)
    if declared is not None:
        results = [result for _, results in sets for result in results]
        drawn, rows = draw_declared(lab, declared, results)
        if heading:
            drawn.suptitle(heading, fontsize=10)
            drawn.title = f"{heading}: {drawn.title}"
    else:
        runs = ModelRuns(sets, published_values(lab), ParameterNames.of(lab))
        drawn = draw_against_model(name, runs)
        rows = [
            {"set": title, **row}
            for title, results in sets
            for row in rows_for_table(results, runs.names)
        ]
    write_files(drawn, rows, out, name)
    return rows


def write_files(drawn: DescribedFigure, rows: Sequence[Row], out: Path, name: str) -> None:
    """Write a picture to out/name.svg and its rows to out/name.csv; UserError where that can't be."""
    # matplotlib takes half a second to import.
    from measuretwice.figures.style import save_svg

    try:
        save_svg(drawn, out / f"{name}.svg")
        (out / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{out}: can't be written to ({error.strerror}): choose another folder with --out"
        ) from None


def published_values(lab: Lab) -> list[Published]:
    """Return the values in a lab's published.csv, where it has one."""
    path = lab.folder / "published.csv"
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return read_published(text, f"{lab.folder.name}/{path.name}")
