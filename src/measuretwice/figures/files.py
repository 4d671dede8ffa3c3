"""The kinds of figures; and figures as files, each as SVG, with the rows that it shows beside it as CSV.

A declared figure is one of the [[figures]] in a lab.toml; each kind has a table of its own there
(measuretwice.lab), whose keys it takes. A model figure is one that every lab with a [model] has. For pages each is
drawn for a desk and for a phone, in the light and in the dark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from measuretwice.base.errors import UserError
from measuretwice.figures.palette import in_the_dark
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
from measuretwice.lab import Lab, select_trials
from measuretwice.lab.schema.results import (
    AgainstFigure,
    BoxesFigure,
    EcdfFigure,
    EvennessFigure,
    FigureOf,
    OverTimeFigure,
    RegressionFigure,
    SequenceFigure,
    WindowsFigure,
)
from measuretwice.runs.result import Result

if TYPE_CHECKING:
    # matplotlib takes half a second to import: only what draws does so.
    from measuretwice.figures.style import DescribedFigure, Drawn

# What a kind reads of a run: result.json, what each flow got over time, or the tools' own output. Not every set keeps all.
Needs = Literal["measured values", "series", "raw files"]
# What a file's name ends in, by layout and scheme.
DESK, PHONE, DARK = "", "-phone", "-dark"
Facts = dict[str, Any]


class DeclaredKind(NamedTuple):
    """A kind of figure that labs declare.

    `draw` is given the lab, the figure as lab.toml declares it, and at least one run, ordered by trial and seed; it
    returns the figure and the rows that it shows. UserError where it can't be drawn.
    """

    draw: Callable[[Lab, Any, Sequence[Result]], Drawn]
    needs: Needs


class ModelFigure(NamedTuple):
    """A figure of runs against their lab's model, over one set of runs or `of_several_sets` only."""

    draw: Callable[[ModelRuns], DescribedFigure]
    of_several_sets: bool


@cache
def declared_kinds() -> dict[type[FigureOf], DeclaredKind]:
    """Return the kinds that labs declare, by their table in lab.toml."""
    from measuretwice.figures import by_setting, over_time

    return {
        AgainstFigure: DeclaredKind(by_setting.against, "measured values"),
        BoxesFigure: DeclaredKind(by_setting.boxes, "measured values"),
        RegressionFigure: DeclaredKind(by_setting.regression, "measured values"),
        EcdfFigure: DeclaredKind(by_setting.ecdf, "raw files"),
        OverTimeFigure: DeclaredKind(over_time.over_time, "raw files"),
        WindowsFigure: DeclaredKind(over_time.windows, "raw files"),
        SequenceFigure: DeclaredKind(over_time.sequence, "raw files"),
        EvennessFigure: DeclaredKind(over_time.evenness, "series"),
    }


@cache
def model_figures() -> dict[str, ModelFigure]:
    """Return the figures against a model by name, in the order in which they are drawn."""
    from measuretwice.figures import against_model

    return {
        "measured-against-model": ModelFigure(against_model.measured_against_model, False),
        "window-against-loss": ModelFigure(against_model.window_against_loss, False),
        "stages": ModelFigure(against_model.stages, True),
    }


def figures_of(lab: Lab) -> list[str]:
    """Return the names of the figures that a lab's runs can be drawn as."""
    declared = [figure.id for figure in lab.file.figures]
    return [*declared, *(model_figures() if lab.file.model else ())]


def draw_declared(lab: Lab, declared: FigureOf, results: Sequence[Result]) -> Drawn:
    """Return one of a lab's [[figures]] of these runs, and the rows that it shows.

    UserError where no run is of the figure's trials and settings, or one lacks what it needs.
    """
    wanted = select_trials(lab, declared.trials)
    runs = [result for result in results if result.trial in wanted]
    if not runs:
        raise UserError(
            f"--figure {declared.id}: none of these runs is of trials {declared.trials}"
        )
    needed = declared.settings.items()
    runs = [run for run in runs if all(run.params.get(name) == value for name, value in needed)]
    if not runs:
        words = ", ".join(f"{name} = {value}" for name, value in needed)
        raise UserError(f"--figure {declared.id}: none of these runs has {words}")
    runs.sort(key=lambda result: (result.trial, result.seed))
    drawn, rows = declared_kinds()[type(declared)].draw(lab, declared, runs)
    drawn.title = declared.title
    return drawn, rows


def draw_against_model(name: str, runs: ModelRuns) -> DescribedFigure:
    """Return the model figure of that name; UserError for a name that none has."""
    figures = model_figures()
    if name not in figures:
        raise UserError(f"--figure {name}: expected one of {', '.join(figures)}")
    return figures[name].draw(runs)


# As files


def write_figure(
    lab: Lab, name: str, sets: Sequence[NamedSet], out: Path, heading: str | None = None
) -> list[Row]:
    """Write one of `figures_of(lab)` to out/name.svg and out/name.csv; return its rows.

    A `heading` stands above the panels of a figure that lab.toml declares. A figure that lab.toml declares is of all sets' runs together; one against the model has a row
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
    from measuretwice.figures.over_time import read_once
    from measuretwice.figures.style import phone, size_of, svg_text

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
