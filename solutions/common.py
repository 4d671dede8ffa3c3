"""What the solution notebooks share: a lab's recorded runs, and how to show them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from IPython.display import SVG, Markdown, display

from measuretwice.figures import registry, style
from measuretwice.lab import Lab
from measuretwice.runs import archive
from measuretwice.runs import recorded as samples
from measuretwice.runs.result import Result


def say(text: str) -> None:
    """Show Markdown with computed numbers in it."""
    display(Markdown(text))


class Recordings:
    """The sets that sample-data/ holds of one lab."""

    def __init__(self, root: Path, lab: Lab) -> None:
        self._lab, self._folder = lab, root / "sample-data" / lab.folder.name

    def recorded(self, name: str) -> bool:
        """Is this set recorded?"""
        return (self._place(name) / samples.SET_FILE).is_file()

    def runs(self, name: str) -> list[Result]:
        """A set's runs, as results."""
        return samples.results_of(self._lab, self._place(name))

    def _place(self, name: str) -> Path:
        return self._folder / self._lab.set_name(name)

    @contextlib.contextmanager
    def raw(self, name: str, run: int = 0) -> Iterator[Path]:
        """The raw files of one run of a set: what the tools printed."""
        chosen = self.runs(name)[run]
        short = samples.short_name(chosen.trial, chosen.seed)
        with archive.raw_folder(self._place(name) / short) as folder:
            yield folder

    def figure(self, name: str, results: list[Result]) -> None:
        """Show one of the lab's own figures, of these runs."""
        declared = next(figure for figure in self._lab.file.figures if figure.id == name)
        drawn, _ = registry.draw_declared(self._lab, declared, results)
        display(SVG(style.svg_text(drawn)))
