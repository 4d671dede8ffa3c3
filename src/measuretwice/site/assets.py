"""What pages show besides text: figures, rubrics, files for testbeds, the solutions' notebooks."""

from __future__ import annotations

from pathlib import Path

from measuretwice import testbeds
from measuretwice.grading import rubric
from measuretwice.lab import Lab
from measuretwice.site.folder import Folder
from measuretwice.site.notebooks import notebook_pages
from measuretwice.site.words.drawn import drawn_figures
from measuretwice.site.words.replays import replays, script_of
from measuretwice.site.words.subjects import LabWords
from measuretwice.site.words.symptoms import symptom_pictures


def add_figures(words: LabWords, pages: Folder) -> None:
    """A lab's figures, drawn from its recorded runs."""
    if folder := drawn_figures(words):
        for path in sorted(folder.iterdir()):
            pages.copy(path, f"assets/figures/{words.lab.folder.name}/{path.name}")


def add_symptoms(words: LabWords, pages: Folder) -> None:
    """What is seen of each case, drawn from its recorded runs."""
    for pitfall in words.lab.file.pitfalls:
        for path in sorted(symptom_pictures(words, pitfall).glob("*.svg")):
            pages.copy(path, f"assets/figures/{words.lab.folder.name}/{path.name}")


def add_replays(words: LabWords, pages: Folder) -> None:
    """The recorded runs that pages replay, as scripts that they fetch when they are asked for."""
    for name, path in replays(words).items():
        pages.copy(path, f"assets/{script_of(words, name)}")


def add_rubric(words: LabWords, pages: Folder) -> None:
    """A lab's rubric as CSV, for a learning management system."""
    if words.rubric:
        name = f"assets/rubrics/{words.lab.folder.name}.csv"
        pages.write(name, rubric.csv_text(words.rubric))


def add_testbed_files(lab: Lab, pages: Folder) -> None:
    """What `./lab testbed` makes of a lab, to be fetched where there is no checkout."""
    name = f"assets/testbeds/{lab.name}"
    pages.write(f"{name}-fabric.ipynb", testbeds.fabric_notebook(lab))
    pages.write(f"{name}-cloudlab.py", testbeds.cloudlab_profile(lab))


def answer_keys(root: Path, labs: list[Lab]) -> dict[str, str]:
    """The solution notebooks as pages, by their names, with what their cells say of the recorded runs."""
    sources = [root / "solutions" / f"{lab.folder.name}.py" for lab in labs]
    sources = [source for source in sources if source.is_file()]
    keys = notebook_pages(root, sources, root / "build/keys")
    return {name: content.decode() for name, content in keys.items()}
