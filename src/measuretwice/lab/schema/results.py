"""[model], [[expect]], [checks] and [[figures]]: what a run is compared with, what isn't said of it, and what is drawn.

How a kind of figure is drawn stands in measuretwice.figures; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from measuretwice.lab.schema.parameters import Name, Strict, Value

Meaning = Literal["rate-varies", "others-send", "tcp-split"]


class ModelUse(Strict):
    """Which model a lab compares its measurement with, and which parameters feed it."""

    name: str
    constant: float
    mss: str
    rtt: str
    loss: str
    max_loss_ratio: float = Field(gt=0, le=1)
    min_expected_losses: float = Field(gt=0)


class Expectation(Strict):
    """A measured value compared with a parameter, a range, or a probability.

    It has exactly one of these: `param` with `tolerance_ratio` (relative), `param` with `binomial_of`
    (the count whose share the parameter is) and `confidence`, or `min`/`max`. Instead of one `param`, `params` names several, whose
    sum is meant; one that counts twice is named twice. `scale` multiplies them.

    `trials` limits it to some trials, and `only_comparable` to runs about which the model makes a claim.
    It applies only while the parameters in `as_trial` have the trial's own values. `coarser` says, for choices of a
    parameter, by how much more the value may be off, as where timestamps make steps of a millisecond.
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
    as_trial: list[str] = []
    coarser: dict[Name, dict[str, float]] = {}

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
    def wanted_parameters(self) -> tuple[str, ...]:
        """The parameters whose sum is meant."""
        return tuple(self.params or ([self.param] if self.param else []))


class Checks(Strict):
    """What the checker must know about this lab. `leave_out` lists findings that are no mistake here, such as `queueing` on a
    path that was made to have a queue. `flows_each` is how many data connections each sender has, where no parameter says it;
    `flows_of` names the parameters that say how many there are in all, such as those of both directions.

    `means` says what choices of a parameter are meant to do: `rate-varies` makes a link's rate change all the time, `others-send` lets others send
    over the same link, `tcp-split` lets a node end connections and open its own.
    """

    leave_out: list[str] = []
    means: dict[Meaning, dict[Name, list[str]]] = {}
    flows_each: int | None = Field(default=None, ge=1)
    flows_of: list[Name] = ["parallel_flows"]

    def meanings(self, params: Mapping[str, object]) -> frozenset[Meaning]:
        """Return what a run's settings mean, beyond their values."""
        return frozenset(
            meaning
            for meaning, settings in self.means.items()
            if any(str(params.get(name)) in words for name, words in settings.items())
        )


class Samples(Strict):
    """Numbers in a raw `file` (node/name), a line each: what stands in column `y`, counted from 0, or behind a word, as in `cwnd:10` and
    `time=40.0`, over `unit`. With `less`, what stands in that column is subtracted first; with `above_least`, the run's smallest
    is subtracted from each.
    """

    file: Annotated[str, Field(pattern=r"^[^/]+/[^/]+$")]
    y: int | str
    less: int | None = Field(default=None, ge=0)
    above_least: bool = False
    unit: float = Field(default=1, gt=0)


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
    """A figure that `./lab plot` draws of a lab's runs, and the site draws of a recorded set (`of`), or of
    several together.

    Kinds: `regression` (each flow's goodput against what the Mathis model with C = 1 gives by its
    losses and by its halvings, a panel each, with the line through zero), `boxes` (a panel for each of `panels`, with a box and every run's point for each value
    of the parameter `by`, or of that and `and_by` together), `over-time` (each flow's window, and `below` it the queue or the round-trip time; a panel a trial), `windows` (one flow's
    window against the other's, a panel a trial), `sequence` (one sender's capture: what it sent and
    what was acknowledged, against time), `evenness` (Jain's index of what flows got in each `step_s` seconds, a line a run), `ecdf` (the share of `samples` in a raw file of each run up to each
    value, by the parameter `by`: a thin line a run, a wide one of all; with `tail` the share from each value up, on a logarithmic axis), and `against` (the mean of the measured value
    `y`, over `y_unit`, against the parameter `x`, over `x_unit`, with its interval; a line for each value of the
    parameter `by`; `y_within` is what `y` over `y_unit` can be, by default anything from 0). It shows the runs of these `trials` that have these `settings`.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    kind: str
    title: str
    of: str | list[str]
    trials: str = "all"
    settings: dict[Name, Value] = {}

    @property
    def sets(self) -> list[str]:
        """The recorded sets that it is of."""
        return [self.of] if isinstance(self.of, str) else self.of

    def parameters(self) -> list[str]:
        """Return the parameters that it names."""
        return []

    def quantities(self) -> list[tuple[str, str, float]]:
        """Return the measured values of a run that it shows: each with its label, and what it is divided by."""
        return []


class OverTimeFigure(FigureOf):
    """`below` the windows stands the queue, or each flow's round-trip time."""

    kind: Literal["over-time"]
    below: Literal["queue", "round-trip"] = "queue"


class WindowsFigure(FigureOf):
    kind: Literal["windows"]


class AgainstFigure(FigureOf):
    kind: Literal["against"]
    x: Name
    x_unit: float = Field(default=1, gt=0)
    y_unit: float = Field(default=1, gt=0)
    x_label: str = ""
    y: str
    y_label: str = ""
    y_within: list[float] = Field(default=[0], min_length=1, max_length=2)
    by: Name

    def parameters(self) -> list[str]:
        return [self.x, self.by]

    def quantities(self) -> list[tuple[str, str, float]]:
        return [(self.y, self.y_label or self.y, self.y_unit)]


class BoxesFigure(FigureOf):
    kind: Literal["boxes"]
    by: Name
    and_by: Name | None = None
    panels: list[Panel] = Field(min_length=1)

    def parameters(self) -> list[str]:
        return [self.by]

    def quantities(self) -> list[tuple[str, str, float]]:
        panels = [panel for panel in self.panels if panel.of == "run"]
        return [(panel.value, panel.label, panel.unit) for panel in panels]


class Rule(Strict):
    """How a claim on a lab's page is judged: a table of its rules.toml, by the name of the judgement.

    `rule` says when the claim holds, when it doesn't, and when it can't be told; it is written down before the runs that
    it judges. `tried` says over which settings, beside those of the claim, the verdict was tried. Both as text.
    """

    rule: str = Field(min_length=1)
    tried: str = Field(min_length=1)


class ClaimSetting(Strict):
    """One of the two settings that a published claim compares: what it is called, and the lab's parameters that make it."""

    name: str = Field(min_length=1)
    set: dict[Name, Value] = {}


class PublishedClaim(Strict):
    """A published claim that a lab's network can test: a table of labs/claims.toml, whose first lines explain each key.

    `set` is of both settings; without `b` the mean of `a` alone is compared with what was `published`. `run_s`: a run of each together, in seconds of one CPU.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    claim: str
    words: str
    by: str
    source: str
    at: str
    read: Annotated[str, Field(pattern=r"^https?://")]
    lab: Name
    trial: Annotated[str, Field(pattern=r"^[0-9]+$")]
    set: dict[Name, Value] = {}
    a: ClaimSetting
    b: ClaimSetting | None = None
    quantity: str
    compare: Literal["ratio", "difference", "mean"]
    published: str
    matters: str
    known: str = ""
    difficulty: Literal[1, 2, 3]
    run_s: float | None = Field(default=None, gt=0)


class SequenceFigure(FigureOf):
    kind: Literal["sequence"]


class EvennessFigure(FigureOf):
    """Jain's index of what the flows got in each `step_s` seconds, a multiple of ten."""

    kind: Literal["evenness"]
    step_s: int = Field(default=60, gt=0, multiple_of=10)


class EcdfFigure(FigureOf):
    """`label` is the samples' axis, `shares` the other one."""

    kind: Literal["ecdf"]
    samples: Samples
    label: str
    shares: str
    by: Name
    tail: bool = False

    def parameters(self) -> list[str]:
        return [self.by]


class RegressionFigure(FigureOf):
    kind: Literal["regression"]


AnyFigure = Annotated[
    OverTimeFigure
    | WindowsFigure
    | AgainstFigure
    | BoxesFigure
    | SequenceFigure
    | EvennessFigure
    | EcdfFigure
    | RegressionFigure,
    Field(discriminator="kind"),
]
# Each kind's table, by its name in lab.toml.
FIGURE_TABLES: dict[str, type[FigureOf]] = {
    get_args(table.model_fields["kind"].annotation)[0]: table
    for table in get_args(get_args(AnyFigure)[0])
}
