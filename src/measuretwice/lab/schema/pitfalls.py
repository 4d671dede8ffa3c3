"""[[pitfalls]]: mistakes that can be made for real, each in a broken and a fixed stage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from measuretwice.lab.schema.base import Name, Strict
from measuretwice.lab.schema.parameters import Value
from measuretwice.lab.schema.symptoms import AnySymptom


class Again(Strict):
    """Run once more what came out odd: whose `measured` value lies outside min..max.

    With the next seed each time, at most `tries` times, and the last try counts: a way to fool
    oneself, staged so that it can be caught.
    """

    measured: str
    min: float | int
    max: float | int
    tries: int = Field(gt=0)


class Stage(Strict):
    """One stage of a pitfall: the parameters that differ from the trial's own.

    A value `"=name"` stands for what parameter `name` has. Each trial is run `repeat` times, with
    seeds that count up; then, with `again`, what came out odd is run once more.
    """

    set: dict[Name, Value] = {}
    repeat: int = Field(default=1, gt=0)
    again: Again | None = None


class Factors(Strict):
    """From which to which factor of its value a parameter may be varied."""

    low: float = Field(gt=0, le=1)
    high: float = Field(ge=1)


class Elsewhere(Strict):
    """A pitfall on another trial than its own, so that not every student has the same numbers.

    `both` is set in both stages, `broken` in that one besides. `make checker-matrix` proves each
    over several seeds.
    """

    trial: int
    broken: dict[Name, Value]
    both: dict[Name, Value] = {}


class Predict(Strict):
    """What a case asks before its first run: a question, and the measured `value` that answers it.

    `name` and `unit` stand at the field for the prediction, and where it is compared with what was measured;
    the unit only where the value's name doesn't end in it.
    Where the answer is none of the measured values, `compared` is false: then `value` only says what
    mending did.
    """

    ask: str = "How many Mbit/s will you measure?"
    value: str = "goodput_bps"
    name: str = "goodput"
    unit: Literal["", "packets", "segments", "losses", "times", "0 to 1", "B", "%"] = ""
    compared: bool = True


class Pitfall(Strict):
    """A mistake that can be made for real: in which trial, how, and how it is fixed.

    To a student it is a case with a number, its place in lab.toml counted from 1, and a `symptom`:
    what is seen, without the cause. Menus, pages, commands and folders say no more. `title` and
    `id` name the cause; `key_words` are the words that would give it away, and stand nowhere
    before the last hint.
    `trials`, where given, names more of them than `trial`: the mistake is in the set, and the
    checker must be given all of its runs.
    `predict` is the question that is asked before the first run. `figure` shows on its page what is seen of that run.
    `finding` is what the checker must raise on `broken` and must not raise on `fixed`;
    `follows` are findings that the same mistake brings along. `hints` lead from where to look,
    by what to compare, to the cause.

    For the instructors' map: `minutes` that its page takes, the pitfalls of this lab that it `needs`
    first, and what it `teaches`: a skill, in words that don't give the cause away.
    `settled_by` is the parameter that the experiment changes which decides, where a claim that merely fits what
    was measured would leave nothing off.
    `place` says where in the network it was, for a drawing that comes after the diagnosis: places as in
    `[topology]` `acts`.
    `elsewhere` are other trials on which it shows as well; `vary` names parameters whose values
    may be multiplied by anything between two factors, all at once.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    symptom: str
    title: str
    key_words: list[str] = Field(min_length=1)
    trial: int
    trials: str | None = None
    finding: str
    follows: list[str] = []
    predict: Predict = Predict()
    broken: Stage
    fixed: Stage
    hints: list[str] = Field(min_length=3, max_length=3)
    minutes: int = Field(default=10, gt=0)
    needs: list[str] = []
    teaches: str | None = None
    settled_by: Name | None = None
    elsewhere: list[Elsewhere] = []
    vary: dict[Name, Factors] = {}
    figure: list[AnySymptom] = []
    place: list[str] = []

    def stage(self, name: Literal["broken", "fixed"]) -> Stage:
        return self.broken if name == "broken" else self.fixed
