"""[[recordings]]: the runs that sample-data/ holds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from measuretwice.lab.schema.base import Name, Strict
from measuretwice.lab.schema.parameters import Value


class Recording(Strict):
    """A set of runs that sample-data/ holds, besides both stages of each pitfall.

    Each of `trials` is run `repeat` times, with `set` over its own parameters (`"=name"` as in a
    stage). With `losses`, each trial lasts until the model expects that many losses.
    `keep`: the tools' own output of each run, or its numbers and a digest of that output.
    `for_students`: a students' release has it; it says no cause.
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
    for_students: bool = False
