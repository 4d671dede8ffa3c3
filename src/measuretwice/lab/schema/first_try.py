"""[first_try]: what one would like to believe, the runs that seem to show it, and what becomes of them."""

from __future__ import annotations

from pydantic import Field, model_validator

from measuretwice.lab.schema.base import Name, Strict


class Shown(Strict):
    """What runs are counted by: the measured `value`, called `label`, and when it supports the claim.

    With `min`, `max` or both: in each run it lies between them. With `most`: its mean is highest in the
    runs whose parameter `by` has that value. With `alike_ratio`: the means of all values of `by` differ
    by no more than that share. `names` say what a value of `by` is called. With none of these the range is the one that the lab's own `[[expect]]`
    has of the value.
    """

    value: str
    label: str
    by: Name | None = None
    min: float | None = None
    max: float | None = None
    most: str | None = None
    alike_ratio: float | None = Field(default=None, gt=0)
    names: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_way(self) -> Shown:
        ways = [
            self.min is not None or self.max is not None,
            bool(self.most),
            bool(self.alike_ratio),
        ]
        if sum(ways) > 1:
            raise ValueError("one of min and max, most, or alike_ratio")
        if (self.most or self.alike_ratio) and not self.by:
            raise ValueError("most and alike_ratio compare by a parameter: by is missing")
        return self


class TryStep(Strict):
    """A state of the first try: the recorded set `of` it, reached `after` these pitfalls are solved.

    The first one is the first try itself, after none. A student's own state is the first one's
    settings with what each step changes whose pitfalls are all solved, in any order: what a step
    changes is what differs between its set and the one before. `shown` is what it is counted by, if
    that is another value than the first try's.
    """

    of: str
    after: list[str] = []
    shown: Shown | None = None


class FirstTry(Strict):
    """What `./lab start` runs: a `claim` that one would like to believe, a question to predict
    (`ask`), what is counted (`shown`), and the `steps` from the first try on.

    Claim, question and labels are read before any case is solved: they tell no cause. `found` is what
    there is to say of the claim once the last step is reached.
    """

    claim: str
    ask: str
    shown: Shown
    found: str
    steps: list[TryStep] = Field(min_length=1)
