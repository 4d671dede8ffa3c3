"""What the solution notebooks share: a lab's recorded runs and facts, and how to show them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from IPython.display import SVG, Markdown, display

ROOT = Path(__file__).resolve().parents[1]
# A notebook may be run by another Python than the checkout's own.
sys.path.insert(0, str(ROOT / "src"))

from measuretwice.facts import RecordedSets, read_facts
from measuretwice.figures import files, style
from measuretwice.lab import load_lab
from measuretwice.runs.folder import raw_folder
from measuretwice.runs.result import Result


def say(text: str) -> None:
    """Show Markdown with computed numbers in it."""
    display(Markdown(text))


class Recordings(RecordedSets):
    """The sets that sample-data/ holds of one lab, its facts as the pages quote them, and its figures."""

    def __init__(self, lab: str) -> None:
        super().__init__(ROOT, load_lab(ROOT, lab))
        self.facts = read_facts(ROOT, self.lab)

    @contextlib.contextmanager
    def raw(self, name: str, run: int = 0) -> Iterator[Path]:
        """The raw files of one run of a set: what the tools printed."""
        with raw_folder(self.runs(name)[run].run_dir) as folder:
            yield folder

    def figure(self, name: str, results: list[Result]) -> None:
        """Show one of the lab's own figures, of these runs."""
        declared = next(figure for figure in self.lab.file.figures if figure.id == name)
        drawn, _ = files.draw_declared(self.lab, declared, results)
        display(SVG(style.svg_text(drawn)))
