"""What words are about: one lab and its recorded runs, or the whole site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.facts import Facts, RecordedSets, read_facts
from measuretwice.lab import Lab
from measuretwice.lab.schema.results import ModelUse
from measuretwice.runs.result import Result
from measuretwice.site.words.registry import Words, word


class LabWords(Words):
    """A lab as pages know it: every word about labs is an attribute.

    `runs_here`: the site has the browser's machine, and its pages run trials themselves.
    """

    def __init__(self, root: Path, lab: Lab, *, runs_here: bool = False) -> None:
        super().__init__(word, self)
        self.root, self.lab, self.runs_here = root, lab, runs_here
        self.sets = RecordedSets(root, lab)
        self.samples = self.sets.folder

    def results_of(self, name: str) -> list[Result]:
        """Return the runs of a recorded set, read once; UserError where it isn't recorded."""
        return self.sets.runs(name)

    @property
    def model_use(self) -> ModelUse:
        """Which parameters the lab's model takes, and where it ends; UserError for a lab without a model."""
        if self.lab.file.model is None:
            raise UserError(f"{self.lab.name}: its lab.toml has no [model]")
        return self.lab.file.model

    def set_folder(self, name: str) -> Path:
        """Return where a recorded set stands."""
        return self.sets.set_folder(name)

    @cached_property
    def facts(self) -> Facts:
        """The lab's facts, as they were computed last."""
        return read_facts(self.root, self.lab)


@dataclass(frozen=True)
class SiteWords:
    """A site as pages know it: the kit's folder, its labs by name, and who reads.

    `instructor`: with the answers. `release`: a students' release, without any page for instructors.
    """

    root: Path
    labs: dict[str, LabWords]
    instructor: bool
    release: bool = False

    def lab(self, name: str) -> LabWords:
        """Return a lab's words; UserError names the labs that there are."""
        if name not in self.labs:
            raise UserError(f"there is no lab {name!r}; there are {', '.join(self.labs)}")
        return self.labs[name]
