"""[[pitfalls]] figure: what a case's page shows of its first try, a panel each, without its cause.

How a kind is drawn stands in measuretwice.figures.symptoms; a test holds the two together.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from measuretwice.lab.schema.base import Name, Strict


class SymptomOf(Strict):
    """A panel of the figure that shows a case's symptom, on its page, once the prediction stands.

    Kinds: `against-model` (the run's goodput against the model's, the recorded steps' last trials behind it), `over-time` (`of`: the
    run's cwnd, rtt, queue, losses or goodput), `values` (`bars`, one below the other), `runs` (`value` of each run, by the parameter
    `by`), `flows` (`value` of each flow, by a parameter or a flow's own field), `rows` (of a raw
    `file`: column `y` against column `x`, counted from 0; without `x` against the row's number, and where `x` is
    a word as bars; a word as `y` is what stands behind it, as in `cwnd:10`). No label, and no line, may have a word in it that gives the cause away.
    """

    kind: str


class AgainstModelSymptom(SymptomOf):
    kind: Literal["against-model"]


class OverTimeSymptom(SymptomOf):
    kind: Literal["over-time"]
    of: Literal["cwnd", "rtt", "queue", "losses", "goodput"]


class Bar(Strict):
    """One bar: a measured `value`, `"=name"` for a parameter's, `"model_bps"`, or a number, `times` that
    of another; or by how much a node's nstat `counter` grew."""

    label: str
    value: float | str | None = None
    times: float | str = 1
    node: str = ""
    counter: str = ""


class ValuesSymptom(SymptomOf):
    kind: Literal["values"]
    label: str
    unit: float = Field(default=1, gt=0)
    bars: list[Bar] = Field(min_length=1)


class RunsSymptom(SymptomOf):
    kind: Literal["runs"]
    label: str
    unit: float = Field(default=1, gt=0)
    value: str
    by: str
    by_label: str = ""
    from_zero: bool = True


class FlowsSymptom(SymptomOf):
    kind: Literal["flows"]
    label: str
    unit: float = Field(default=1, gt=0)
    value: str = "goodput_bps"
    by: Name
    by_label: str = ""


class RowsSymptom(SymptomOf):
    kind: Literal["rows"]
    file: Annotated[str, Field(pattern=r"^[^/]+/[^/]+$")]
    x: int | None = Field(default=None, ge=0)
    y: int | str
    x_label: str = ""
    label: str
    unit: float = Field(default=1, gt=0)


AnySymptom = Annotated[
    AgainstModelSymptom
    | OverTimeSymptom
    | ValuesSymptom
    | RunsSymptom
    | FlowsSymptom
    | RowsSymptom,
    Field(discriminator="kind"),
]
# Each kind's table, by its name in lab.toml.
SYMPTOM_TABLES: dict[str, type[SymptomOf]] = {
    get_args(table.model_fields["kind"].annotation)[0]: table
    for table in get_args(get_args(AnySymptom)[0])
}
