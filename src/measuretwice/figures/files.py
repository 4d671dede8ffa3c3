"""Figures as files: each as SVG, with the rows that it shows beside it as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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


def write_figure(lab: Lab, name: str, sets: Sequence[NamedSet], out: Path) -> list[Row]:
    """Write one of `figures_of(lab)` to out/name.svg and out/name.csv; return its rows.

    A figure that lab.toml declares is of all sets' runs together; one against the model has a row
    for each run of each set, with the set's title. UserError where it can't be drawn or written.
    """
    # matplotlib takes half a second to import.
    from measuretwice.figures.style import save_svg

    declared = next((figure for figure in lab.file.figures if figure.id == name), None)
    if declared is not None:
        results = [result for _, results in sets for result in results]
        drawn, rows = draw_declared(lab, declared, results)
    else:
        runs = ModelRuns(sets, published_values(lab), ParameterNames.of(lab))
        drawn = draw_against_model(name, runs)
        rows = [
            {"set": title, **row}
            for title, results in sets
            for row in rows_for_table(results, runs.names)
        ]
    try:
        save_svg(drawn, out / f"{name}.svg")
        (out / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{out}: can't be written to ({error.strerror}): choose another folder with --out"
        ) from None
    return rows


def published_values(lab: Lab) -> list[Published]:
    """Return the values in a lab's published.csv, where it has one."""
    path = lab.folder / "published.csv"
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return read_published(text, f"{lab.folder.name}/{path.name}")
