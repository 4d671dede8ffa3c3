"""What pages show besides text: figures, rubrics, files for testbeds, the solutions' notebooks."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuretwice.base.paths import PACKAGE
from measuretwice.figures.files import write_figure
from measuretwice.grading import rubric
from measuretwice.lab import FigureOf, Lab, after_cases, step_cases
from measuretwice.runs.recorded import SET_FILE, read_set, results_of
from measuretwice.site.folder import Folder
from measuretwice.site.notebooks import notebook_pages
from measuretwice.site.words.replays import replays, script_of
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.symptoms import symptom_pictures
from measuretwice.testbeds import files as testbed_files


def add_figures(words: LabWords, pages: Folder) -> None:
    """Draw a lab's figures from its recorded runs, unless the kept ones are of just these."""
    lab = words.lab
    steps = sorted(words.samples / name for name in words.steps)
    declared = []
    for figure in lab.file.figures:
        folders = [words.samples / name for name in figure.sets]
        if recorded := [folder for folder in folders if _can_show(folder, figure)]:
            declared.append((figure, recorded))
    if not steps and not declared:
        return
    used = [
        folder / SET_FILE
        for folder in (*steps, *(folder for _, folders in declared for folder in folders))
    ]
    sources = [*used, *sorted((PACKAGE / "figures").glob("*.py")), Path(__file__), lab.path]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    kept = pages.path.parent / "figures" / lab.folder.name / digest[:16]
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Another site may be made of the same checkout meanwhile: each draws in a folder of its own.
        with tempfile.TemporaryDirectory(dir=kept.parents[1]) as folder:
            part = Path(folder) / "part"
            part.mkdir()
            _draw(words, steps, declared, part)
            with contextlib.suppress(OSError):
                part.rename(kept)
        for old in kept.parent.iterdir():
            if old != kept:
                shutil.rmtree(old, ignore_errors=True)
    for path in kept.iterdir():
        pages.copy(path, f"assets/figures/{lab.folder.name}/{path.name}")


def add_symptoms(words: LabWords, pages: Folder) -> None:
    """What is seen of each case, drawn from its recorded runs."""
    for pitfall in words.lab.file.pitfalls:
        for path in sorted(symptom_pictures(words, pitfall).glob("*.svg")):
            pages.copy(path, f"assets/figures/{words.lab.folder.name}/{path.name}")


def add_replays(words: LabWords, pages: Folder) -> None:
    """The recorded runs that pages replay, as scripts that they fetch when they are asked for."""
    for name, path in replays(words).items():
        pages.copy(path, f"assets/{script_of(words, name)}")


def _can_show(folder: Path, figure: FigureOf) -> bool:
    """Is the set recorded, and since the lab has the figure's parameters?"""
    if not (folder / SET_FILE).is_file():
        return False
    return set(figure.parameters()) <= set(read_set(folder).runs[0].result.params)


def _draw(
    words: LabWords, steps: list[Path], declared: Sequence[tuple[FigureOf, list[Path]]], out: Path
) -> None:
    if steps:
        _draw_steps(words.lab, steps, out)
        _draw_spread(words, out)
    for figure, folders in declared:
        results = [result for folder in folders for result in results_of(words.lab, folder)]
        write_figure(words.lab, figure.id, [(figure.id, results)], out)


def _draw_steps(lab: Lab, steps: list[Path], out: Path) -> None:
    """All steps side by side; the first beside the last; and the last in full."""
    # Titles tell what was wrong: pages call a step by the cases that lead to it, where it has some.
    sets = []
    for step in steps:
        cases = step_cases(lab, step.name)
        title = after_cases(cases) if cases else read_set(step).title
        sets.append((title, results_of(lab, step)))
    ends = [sets[0], sets[-1]] if len(sets) > 1 else sets
    write_figure(lab, "stages", ends, out)
    for kind in ("svg", "csv"):
        (out / f"stages.{kind}").rename(out / f"first-and-last.{kind}")
    write_figure(lab, "stages", sets, out)
    for name in ("measured-against-model", "window-against-loss"):
        write_figure(lab, name, sets[-1:], out)


def _draw_spread(words: LabWords, out: Path) -> None:
    """What chance does to the runs of the last two steps: many have few losses, others many."""
    # matplotlib takes half a second to import, and figures are drawn seldom.
    from measuretwice.figures.spread import spread
    from measuretwice.figures.style import save_svg

    last_two = [words.results_of(step) for step in words.steps[-2:]]
    figure = spread(last_two[0], last_two[-1], words.bounds.max_loss_ratio)
    if figure is not None:
        save_svg(figure, out / "spread.svg")


def add_rubric(words: LabWords, pages: Folder) -> None:
    """A lab's rubric as CSV, for a learning management system."""
    if words.rubric:
        name = f"assets/rubrics/{words.lab.folder.name}.csv"
        pages.write(name, rubric.csv_text(words.rubric))


def add_testbed_files(lab: Lab, pages: Folder) -> None:
    """What `./lab testbed` makes of a lab, to be fetched where there is no checkout."""
    name = f"assets/testbeds/{lab.name}"
    pages.write(f"{name}-fabric.ipynb", testbed_files.fabric_notebook(lab))
    pages.write(f"{name}-cloudlab.py", testbed_files.cloudlab_profile(lab))


def answer_keys(root: Path, labs: list[Lab]) -> dict[str, str]:
    """The solution notebooks as pages, by their names, with what their cells say of the recorded runs."""
    sources = [root / "solutions" / f"{lab.folder.name}.py" for lab in labs]
    sources = [source for source in sources if source.is_file()]
    keys = notebook_pages(root, sources, root / "build/keys")
    return {name: content.decode() for name, content in keys.items()}
