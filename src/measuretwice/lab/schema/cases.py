"""[[pitfalls]], [[recordings]] and [first_try]: mistakes that can be made for real, what a case's page shows of one, the
runs that sample-data/ holds, and what one would like to believe of them.

How a kind of symptom is drawn stands in measuretwice.figures.symptoms; a test holds the two together.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from measuretwice.lab.schema.parameters import Name, Strict, Value
from measuretwice.lab.schema.results import Samples

Unit = Literal["", "packets", "segments", "losses", "rows", "times", "0 to 1", "B", "%"]


class SymptomOf(Strict):
    """A panel of the figure that shows a case's symptom, on its page, once the prediction stands.

    Kinds: `against-model` (the run's goodput against the model's, the recorded steps' last trials behind it), `over-time` (`of`: the
    run's cwnd, rtt, queue, losses or goodput), `values` (`bars`, one below the other), `runs` (`value` of each run, by the parameter
    `by`), `flows` (`value` of each flow, by a parameter or a flow's own field), `ecdf` (the share of
    the `samples` in a raw file up to each value), `rows` (of a raw `file`: column `y` against column `x`, counted from 0; without `x` against the row's number, and where that column
    holds words, as bars; a word as `y` stands for what follows it, as in `cwnd:10` and `time=40.0`, in the lines that have it). No label, and no line, may have a word in it that gives the cause away.
    """

    kind: str


class AgainstModelSymptom(SymptomOf):
    kind: Literal["against-model"]


class OverTimeSymptom(SymptomOf):
    kind: Literal["over-time"]
    of: Literal["cwnd", "rtt", "queue", "losses", "goodput"]


class Bar(Strict):
    """One bar: a `value`, multiplied by `times`. Each is a measured value, `"=name"` for a parameter's, `"model_bps"`, or a number.
    Or a bar shows how much a node's nstat `counter` grew."""

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


class EcdfSymptom(SymptomOf):
    kind: Literal["ecdf"]
    label: str
    samples: Samples
    x_label: str


AnySymptom = Annotated[
    AgainstModelSymptom
    | OverTimeSymptom
    | ValuesSymptom
    | RunsSymptom
    | FlowsSymptom
    | RowsSymptom
    | EcdfSymptom,
    Field(discriminator="kind"),
]


class Again(Strict):
    """Run once more what came out odd: runs whose `measured` value lies outside min..max.

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

    `both` is set in both stages, `broken` only in the broken one. `make checker-matrix` proves each
    over several seeds.
    """

    trial: int
    broken: dict[Name, Value]
    both: dict[Name, Value] = {}


class Asked(Strict):
    """A question whose answer is a number that a case's runs give: the measured `value` of a run.

    `name` and `unit` stand at the field for the answer, and where it is compared with what was measured; the unit only
    where the value's name doesn't end in it.
    Of several runs it is their mean, of those alone that have the settings in `of`; divided by the mean of the runs with
    those in `over`, where there are some. `spread_by` names a parameter with two values in these runs: then `value` is a
    family (`*_goodput_bps`), all of its values are taken, and the answer is the ratio of their variances for the one
    and the other, the larger over the smaller (F); with `upper`, the upper end of that ratio's 95 % interval.
    """

    ask: str
    value: str
    name: str
    unit: Unit = ""
    of: dict[Name, Value] = {}
    over: dict[Name, Value] = {}
    spread_by: Name | None = None
    upper: bool = False

    @property
    def is_ratio(self) -> bool:
        """Return whether the answer is a ratio of what runs measured, without their unit."""
        return bool(self.over or self.spread_by)

    @property
    def parameters(self) -> set[str]:
        """Return the parameters by which it tells runs apart."""
        return {*self.of, *self.over, *([self.spread_by] if self.spread_by else [])}

    @property
    def is_of_several(self) -> bool:
        """Return whether the question says how several runs answer it."""
        return bool(self.of or self.is_ratio)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.spread_by and (self.of or self.over):
            raise ValueError("spread_by takes all runs: leave of and over out")
        if bool(self.spread_by) != ("*" in self.value):
            raise ValueError("spread_by and a family of values (with a *) go together")
        if self.over and not self.of:
            raise ValueError("over: it divides the mean of which runs? of is missing")
        if self.upper and not self.spread_by:
            raise ValueError("upper: the end of which interval? spread_by is missing")
        return self


class Predict(Asked):
    """What a case asks before its first run: a question, and the measured `value` that answers it.

    Where the answer is none of the measured values, `compared` is false: then `value` only says what
    the fix did. `beside` are further measured values that are printed with the answer, each with its name.
    `of` and `over` pick runs by their settings: the answer is the mean of the first, divided by that of the second, if there
    is one. `spread_by` compares variances instead, by a parameter with two values; `upper` takes the upper end of their ratio's interval.
    `of_trial` says which of a case's several trials the prediction is compared with, by its number, or as the one with the
    `least` or the `most` in the mean. What became of the others is still said trial by trial, unlike with `of`.
    """

    ask: str = "How many Mbit/s will you measure?"
    value: str = "goodput_bps"
    name: str = "goodput"
    compared: bool = True
    beside: dict[str, str] = {}
    of_trial: int | Literal["least", "most"] | None = None

    @model_validator(mode="after")
    def _of_one_trial(self) -> Self:
        if self.of_trial is not None and self.is_of_several:
            raise ValueError("of_trial: of, over and spread_by say already which runs answer")
        return self


class Choice(Strict):
    """An answer that may be chosen: what it `says`, and for each wrong one `why_not`, a line that doesn't give the
    right one away."""

    says: str
    why_not: str = ""


class NumberAsked(Asked):
    """A number that a student works out from their own runs, and by what share it may be off; Predict explains the other keys."""

    tolerance_ratio: float = Field(default=0.02, gt=0, lt=1)


class Judgement(Strict):
    """What a case asks where the mistake is in what is said about runs, and no other run is needed: it is solved by an answer.

    A question (`ask`) with `choices`, of which the one without `why_not` is right, and, where that fits, a `number` that the
    student's own runs give. It is asked once there is a diagnosis, because choices tell causes.
    """

    ask: str
    choices: list[Choice] = Field(min_length=2, max_length=6)
    number: NumberAsked | None = None

    @property
    def letters(self) -> str:
        """Return the letters by which choices are named, in order."""
        return "abcdef"[: len(self.choices)]

    @property
    def right(self) -> str:
        """Return the letter of the right choice."""
        return next(
            letter
            for letter, choice in zip(self.letters, self.choices, strict=True)
            if not choice.why_not
        )

    def choice(self, letter: str) -> Choice | None:
        """Return the choice with a letter; None where there is none."""
        place = self.letters.find(letter) if len(letter) == 1 else -1
        return self.choices[place] if place >= 0 else None

    @model_validator(mode="after")
    def _one_is_right(self) -> Self:
        if sum(not choice.why_not for choice in self.choices) != 1:
            raise ValueError("choices: each but the right one needs why_not, and one is right")
        return self


class Pitfall(Strict):
    """A mistake that can be made for real: in which trial, how, and how it is fixed.

    To a student it is a case with a number, its place in lab.toml counted from 1, and a `symptom`:
    what is seen, without the cause. Menus, pages, commands and folders say no more. `title` and
    `id` name the cause; `key_words` are the words that would give it away, and stand nowhere
    before the last hint.
    `trials`, where given, names more of them than `trial`: the mistake is in the set, and the
    checker must be given all of its runs.
    `predict` is the question that is asked before the first run. `figure` shows on the case's page what is seen of that run.
    `finding` is what the checker must raise on `broken` and must not raise on `fixed`;
    `follows` are findings that the same mistake brings along. `hints` lead from where to look,
    by what to compare, to the cause.

    For the instructors' map: `minutes` that its page takes, the pitfalls of this lab that it `needs`
    first, and what it `teaches`: a skill, in words that don't give the cause away.
    `enough` names the settings in `broken` that each fix it alone; without it, all have to change.
    `hides` are settings that make the finding go away without fixing the mistake, such as how often a tool samples: a run with
    no other change doesn't solve the case.
    `settled_by` is the parameter that the deciding experiment changes, where a claim that merely fits what
    was measured would raise no finding. `judgement` is the question that solves it, where only what is said about the runs is
    wrong.
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
    enough: list[Name] = []
    hides: list[Name] = []
    judgement: Judgement | None = None
    elsewhere: list[Elsewhere] = []
    vary: dict[Name, Factors] = {}
    figure: list[AnySymptom] = []
    place: list[str] = []

    @property
    def settings(self) -> set[str]:
        """The parameters that it is about: those of both stages, and the one that decides."""
        decides = {self.settled_by} if self.settled_by else set()
        return {*self.broken.set, *self.fixed.set, *decides}

    @model_validator(mode="after")
    def _of_its_settings(self) -> Self:
        if unknown := [name for name in self.enough if name not in self.broken.set]:
            raise ValueError(f"enough: broken sets no {unknown[0]}")
        if ways := [name for name in self.hides if name in self.enough]:
            raise ValueError(f"hides: {ways[0]} is enough to fix it")
        return self

    def is_named_in(self, text: str) -> bool:
        """Return whether one of the words that give the cause away stands in a text, as a word of its own."""
        return any(
            re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE)
            for word in self.key_words
        )

    def stage(self, name: Literal["broken", "fixed"]) -> Stage:
        return self.broken if name == "broken" else self.fixed


class Recording(Strict):
    """A set of runs that sample-data/ holds, besides both stages of each pitfall.

    Each of `trials` is run `repeat` times, with `set` over its own parameters (`"=name"` as in a
    stage). With `losses`, each trial lasts until the model expects that many losses. With `case` they are runs as a student
    makes them, of the case's own trials, from `seed` on.
    `keep` says what is kept of each run: the tools' own output (`raw`), its numbers and a digest of that output (`digests`), or only
    what several flows did together (`totals`).
    `for_students`: a students' release has the set, because it tells no cause.
    `step`: the set is a panel in the figure that tells how the result came to be, in order.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    trials: str = "all"
    repeat: int = Field(default=1, gt=0)
    set: dict[Name, Value] = {}
    losses: int | None = Field(default=None, gt=0)
    case: int | None = Field(default=None, gt=0)
    seed: int = Field(default=1, ge=0)
    keep: Literal["raw", "digests", "totals"] = "raw"
    step: bool = False
    for_students: bool = False


class Shown(Strict):
    """What runs are counted by: the measured `value`, called `label`, and when it supports the claim.

    With `min`, `max` or both: in each run it lies between them. With `most`: its mean is highest in the
    runs whose parameter `by` has that value, and by more than chance. With `alike_ratio`: the means of all values of `by`
    differ by no more than that share; beside `most` it says which means are level in any case. `names` say what a value of `by` is called. With none of these the range is the one that the lab's own `[[expect]]`
    has for the value.
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
            bool(self.most or self.alike_ratio),
        ]
        if sum(ways) > 1:
            raise ValueError("either min and max, or most and alike_ratio")
        if (self.most or self.alike_ratio) and not self.by:
            raise ValueError("most and alike_ratio compare by a parameter: by is missing")
        return self


class TryStep(Strict):
    """A state of the first try: its recorded set (`of`), reached once the pitfalls in `after` are solved.

    The first step is the first try itself, after none. A student's own state is the first one's
    settings with the changes of each step whose pitfalls are all solved, in any order. What a step
    changes is the difference between its set and the one before. `shown` is what it is counted by, if
    that is another value than the first try's. `repeat` is how many runs of each trial a student makes, where the recorded
    set has fewer.
    """

    of: str
    after: list[str] = []
    repeat: int | None = Field(default=None, gt=0)
    shown: Shown | None = None


class FirstTry(Strict):
    """What `./lab start` runs: a `claim` that one would like to believe, a question to predict
    (`ask`), what is counted (`shown`), and the `steps` from the first try on.

    Claim, question and labels are read before any case is solved, so they tell no cause. `found` is what
    there is to say of the claim once the last step is reached.
    """

    claim: str
    ask: str
    shown: Shown
    found: str
    steps: list[TryStep] = Field(min_length=1)
