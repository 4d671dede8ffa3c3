"""The kinds of figures and the tables of lab.toml that declare them are the same list."""

import sys
from pathlib import Path

from command_line import run_program

from measuretwice.figures.files import declared_kinds, figures_of, model_figures
from measuretwice.lab import find_labs, load_lab
from measuretwice.lab.schema.results import FIGURE_TABLES, FigureOf

ROOT = Path(__file__).parents[2]
LABS = [load_lab(ROOT, name) for name in find_labs(ROOT)]


def test_each_kind_that_a_lab_can_declare_is_drawn_and_described() -> None:
    assert set(declared_kinds()) == set(FIGURE_TABLES.values())
    for table, kind in declared_kinds().items():
        assert kind.draw.__doc__, table.__name__
    for name in FIGURE_TABLES:
        assert f"`{name}`" in (FigureOf.__doc__ or ""), "the page on lab.toml has each kind"


def test_figures_that_read_raw_files_are_of_sets_that_keep_them() -> None:
    needs = {table: kind.needs for table, kind in declared_kinds().items()}
    recorded = {
        (lab.name, figure.id): recording.keep
        for lab in LABS
        for figure in lab.file.figures
        for recording in lab.file.recordings
        if recording.id == figure.of and needs[type(figure)] == "raw files"
    }
    assert len(recorded) >= 4
    assert set(recorded.values()) == {"raw"}


def test_a_lab_with_a_model_has_the_models_figures() -> None:
    assert list(model_figures()) == ["measured-against-model", "window-against-loss", "stages"]
    assert [name for name, kind in model_figures().items() if kind.of_several_sets] == ["stages"]
    for lab in LABS:
        declared = [figure.id for figure in lab.file.figures]
        assert figures_of(lab) == declared + (list(model_figures()) if lab.file.model else [])


def test_who_draws_nothing_imports_no_matplotlib() -> None:
    program = (
        "import sys\n"
        "import measuretwice.cli.plot, measuretwice.cli.report, measuretwice.figures.files\n"
        "sys.exit('matplotlib' in sys.modules)"
    )
    done = run_program(sys.executable, "-P", "-c", program, PATH="")
    assert done.returncode == 0
