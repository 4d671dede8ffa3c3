"""[[recordings]] and [[figures]]: the runs that sample-data/ holds, and how they are drawn."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from measuretwice.lab.schema.base import Name, Strict
from measuretwice.lab.schema.parameters import Value


class Recording(Strict):
    """A set of runs that sample-data/ holds, besides both stages of each pitfall.

    Each of `trials` is run `repeat` times, with `set` over its own parameters (`"=name"` as in a
    stage). With `losses`, each trial lasts until the model expects that many losses.
    `keep`: the tools' own output of each run, or its numbers and a digest of that output.
    `step`: this set is a panel in the figure that tells how the result came to be, in order.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    trials: str = "all"
    repeat: int = Field(default=1, gt=0)
    set: dict[Name, Value] = {}
    losses: int | None = Field(default=None, gt=0)
    keep: Literal["raw", "digests"] = "raw"
    step: bool = False


class Panel(Strict):
    """What a panel of boxes shows: a measured value, or one of each flow, over `unit`.

    Its axis begins at zero, so that a small difference doesn't look large, unless `from_zero` is
    false or it is logarithmic.
    """

    value: str
    label: str
    unit: float = Field(default=1, gt=0)
    of: Literal["run", "flow"] = "run"
    logarithmic: bool = False
    from_zero: bool = True


class FigureOf(Strict):
    """A figure that `./lab plot` draws of a lab's runs, and the site of the recorded set `of`.

    Kinds: `regression` (each flow's goodput against what the Mathis model with C = 1 gives by its
    losses and by its halvings, a panel each, in it the line through zero), `boxes` (a panel for each of `panels`, in it a box and every run's point for each value
    of the parameter `by`, or of that and `and_by` together), `over-time` (each flow's window, and the queue; a panel a trial), `windows` (one flow's
    window against the other's, a panel a trial), `sequence` (one sender's capture: what it sent and
    what was acknowledged, against time), and `against` (the mean of the measured value
    `y`, over `y_unit`, against the parameter `x`, over `x_unit`, with its interval; a line for each value of the
    parameter `by`). `trials` are those that it is of.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    kind: Literal["over-time", "windows", "against", "boxes", "sequence", "regression"]
    title: str
    of: str
    trials: str = "all"
    x: Name | None = None
    x_unit: float = Field(default=1, gt=0)
    y_unit: float = Field(default=1, gt=0)
    x_label: str = ""
    y: str | None = None
    y_label: str = ""
    by: Name | None = None
    and_by: Name | None = None
    panels: list[Panel] = []

    @model_validator(mode="after")
    def _has_axes(self) -> FigureOf:
        if self.kind == "boxes" and not (self.panels and self.by):
            raise ValueError("a figure of kind boxes needs panels and by")
        if self.kind == "against" and not (self.x and self.y and self.by):
            raise ValueError("a figure of kind against needs x, y and by")
        return self
