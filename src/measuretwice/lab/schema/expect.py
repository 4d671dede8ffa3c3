"""[model], [[expect]] and [checks]: what a run is held against, and what isn't said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from measuretwice.lab.schema.base import Name, Strict

Meaning = Literal["rate-varies", "others-send", "tcp-split"]


class ModelUse(Strict):
    """Which model a lab holds its measurement against, and which parameters feed it."""

    name: str
    constant: float
    mss: str
    rtt: str
    loss: str
    max_loss_ratio: float = Field(gt=0, le=1)
    min_expected_losses: float = Field(gt=0)


class Expectation(Strict):
    """A measured value held against a parameter, a range, or a probability.

    Exactly one of: `param` with `tolerance_ratio` (relative), `param` with `binomial_of`
    (the count whose share the parameter is) and `confidence`, or `min`/`max`. Instead of one `param`, `params` are several, whose
    sum is meant; one that counts twice stands there twice.
    """

    label: str
    measured: str
    param: str | None = None
    params: list[str] | None = None
    scale: float = 1.0
    tolerance_ratio: float | None = Field(default=None, ge=0)
    binomial_of: str | None = None
    confidence: float | None = Field(default=None, gt=0, lt=1)
    min: float | int | None = None
    max: float | int | None = None
    only_comparable: bool = False
    trials: list[int] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Expectation:
        by_param = (self.param is None) != (self.params is None)
        kinds = (
            by_param and self.tolerance_ratio is not None,
            by_param and self.binomial_of is not None and self.confidence is not None,
            self.param is None
            and self.params is None
            and (self.min is not None or self.max is not None),
        )
        if sum(kinds) != 1:
            raise ValueError(
                "expected param with tolerance_ratio, or param with binomial_of and confidence, "
                "or min and/or max"
            )
        return self

    @property
    def held_against(self) -> tuple[str, ...]:
        """The parameters whose sum is meant."""
        return tuple(self.params or ([self.param] if self.param else []))


class Checks(Strict):
    """What the checker must not say of this lab's runs, because they are meant to be so.

    A path that was made to have a queue, for one, is no sign of a mistake (`queueing`). `means` says of a parameter's
    words what they are meant to do: `rate-varies` makes a link's rate change all the time, `others-send` lets others send
    over the same link, `tcp-split` lets a node end connections and open its own.
    """

    leave_out: list[str] = []
    means: dict[Meaning, dict[Name, list[str]]] = {}

    def meant(self, params: Mapping[str, object]) -> frozenset[Meaning]:
        """Return what a run's settings mean, beyond their values."""
        return frozenset(
            meaning
            for meaning, settings in self.means.items()
            if any(str(params.get(name)) in words for name, words in settings.items())
        )
