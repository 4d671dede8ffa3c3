"""Figures as files: each as SVG, with the rows that it shows beside it as CSV.

For pages each is drawn for a desk and for a phone, in the light and in the dark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuretwice.base.errors import UserError
from measuretwice.figures.palette import in_the_dark
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

# What a file's name ends in, by layout and scheme.
DESK, PHONE, DARK = "", "-phone", "-dark"
Facts = dict[str, Any]
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
    drawn, rows = draw_figure(lab, name, sets, heading)
    write_files(drawn, rows, out, name)
    return rows


def draw_figure(
    lab: Lab, name: str, sets: Sequence[NamedSet], heading: str | None = None
) -> tuple[DescribedFigure, list[Row]]:
    """Return one of `figures_of(lab)` as `write_figure` writes it, and its rows."""
    declared = next((figure for figure in lab.file.figures if figure.id == name), None)
    if declared is not None:
        results = [result for _, results in sets for result in results]
        drawn, rows = draw_declared(lab, declared, results)
        if heading:
            drawn.suptitle(heading)
            drawn.title = f"{heading}: {drawn.title}"
    else:
        runs = ModelRuns(sets, published_values(lab), ParameterNames.of(lab))
        drawn = draw_against_model(name, runs)
        rows = [
            {"set": title, **row}
            for title, results in sets
            for row in rows_for_table(results, runs.names)
        ]
    return drawn, rows


def write_for_pages(draw: Callable[[], DescribedFigure], out: Path, name: str) -> Facts:
    """Write out/name.svg and its variants: name-dark.svg, name-phone.svg, name-phone-dark.svg.

    Return what a page says of it: its title, its caption, and the sizes of both layouts.
    """
    from measuretwice.figures.style import phone, size_of, svg_text
    from measuretwice.figures.traces import read_once

    facts: Facts = {"sizes": {}}
    with read_once():
        for layout, context in ((DESK, nullcontext()), (PHONE, phone())):
            with context:
                drawn = draw()
                text = svg_text(drawn)
            (out / f"{name}{layout}.svg").write_text(text, encoding="utf-8")
            (out / f"{name}{layout}{DARK}.svg").write_text(in_the_dark(text), encoding="utf-8")
            facts["sizes"][layout] = size_of(drawn)
            facts |= {"title": drawn.title, "caption": drawn.caption}
    return facts


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
