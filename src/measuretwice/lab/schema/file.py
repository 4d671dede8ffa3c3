"""lab.toml as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from measuretwice.lab.schema.base import Name, Strict
from measuretwice.lab.schema.collect import Collect
from measuretwice.lab.schema.expect import Checks, Expectation, ModelUse
from measuretwice.lab.schema.figures import AnyFigure
from measuretwice.lab.schema.first_try import FirstTry
from measuretwice.lab.schema.parameters import InlineTrial, Parameter, TrialTable
from measuretwice.lab.schema.pitfalls import Pitfall
from measuretwice.lab.schema.recordings import Recording
from measuretwice.lab.schema.run import Run
from measuretwice.lab.schema.topology import Topology

# What `format_version` is: raised when a table changes so that an older file would be misread.
FORMAT_VERSION = 1


class About(Strict):
    """What a lab is about. The `question` is what it asks, in a sentence that tells no answer. A `draft` runs as every lab does; no page shows it, and nothing of it
    need be recorded."""

    title: str
    question: str | None = None
    minutes: int = Field(gt=0)
    objectives: list[str]
    needs: list[str] = []
    source: str | None = None
    draft: bool = False


class LabFile(Strict):
    """The whole file. `format_version` is its form: another than this kit reads is refused."""

    format_version: Literal[1]
    lab: About
    topology: Topology
    parameters: dict[Name, Parameter]
    trials: TrialTable | list[InlineTrial]
    run: Run
    collect: Collect
    model: ModelUse | None = None
    checks: Checks = Checks()
    expect: list[Expectation] = []
    pitfalls: list[Pitfall] = []
    recordings: list[Recording] = []
    figures: list[AnyFigure] = []
    first_try: FirstTry | None = None
