"""The kinds of figures. Each registers itself where it is drawn; its docstring is its help.

There are two sorts. A declared figure is one of the [[figures]] in a lab.toml; each kind has a table
of its own there (measuretwice.lab), whose keys it takes. A model figure is one that every lab with
a [model] has. A module of this package that holds a kind needs to be named nowhere else.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from measuretwice.base.errors import UserError
from measuretwice.figures.rows import ModelRuns
from measuretwice.lab import Lab, select_trials
from measuretwice.lab.schema.results import FigureOf
from measuretwice.runs.result import Result

if TYPE_CHECKING:
    # matplotlib takes half a second to import: only what draws does so.
    from measuretwice.figures.style import DescribedFigure, Drawn

    Table = TypeVar("Table", bound=FigureOf)
    DrawDeclared = Callable[[Lab, Table, Sequence[Result]], Drawn]
    DrawAgainstModel = Callable[[ModelRuns], DescribedFigure]

# What a kind reads of a run: result.json, or the tools' own output, which not every set keeps.
Needs = Literal["measured values", "raw files"]


@dataclass(frozen=True)
class DeclaredKind:
    """A kind of figure that labs declare: `table` is its schema in lab.toml."""

    table: type[FigureOf]
    help: str
    needs: Needs
    draw: DrawDeclared[Any]


@dataclass(frozen=True)
class ModelFigure:
    """A figure of runs against their lab's model, over one set of runs or `of_several_sets` only."""

    name: str
    help: str
    of_several_sets: bool
    draw: DrawAgainstModel


_declared: dict[type[FigureOf], DeclaredKind] = {}
_of_model: dict[str, ModelFigure] = {}


def figure(
    table: type[Table], *, needs: Needs
) -> Callable[[DrawDeclared[Table]], DrawDeclared[Table]]:
    """Register what draws the figures that `table` describes.

    It is given the lab, the figure as lab.toml declares it, and at least one run, ordered by trial
    and seed; it returns the figure and the rows that it shows. UserError where it can't be drawn.
    """

    def register(draw: DrawDeclared[Table]) -> DrawDeclared[Table]:
        assert table not in _declared, f"{table.__name__} is drawn twice"
        _declared[table] = DeclaredKind(table, inspect.getdoc(draw) or "", needs, draw)
        return draw

    return register


def model_figure(
    name: str, *, of_several_sets: bool = False
) -> Callable[[DrawAgainstModel], DrawAgainstModel]:
    """Register what draws runs against their model, as `--figure name`; UserError where it can't."""

    def register(draw: DrawAgainstModel) -> DrawAgainstModel:
        assert name not in _of_model, f"{name} is drawn twice"
        _of_model[name] = ModelFigure(name, inspect.getdoc(draw) or "", of_several_sets, draw)
        return draw

    return register


@cache
def _load() -> None:
    """Import every module beside this one, so that each kind has registered."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


def declared_kinds() -> dict[type[FigureOf], DeclaredKind]:
    """Return the kinds that labs declare, by their table in lab.toml."""
    _load()
    return dict(_declared)


def model_figures() -> dict[str, ModelFigure]:
    """Return the figures against a model by name, in the order in which they are drawn."""
    _load()
    ordered = sorted(_of_model.values(), key=lambda kind: (kind.of_several_sets, kind.name))
    return {kind.name: kind for kind in ordered}


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
    known = model_figures()
    if name not in known:
        raise UserError(f"--figure {name}: expected one of {', '.join(known)}")
    return known[name].draw(runs)
