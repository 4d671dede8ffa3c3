"""Questions that solve a case: what runs say to them, and what isn't right about an answer."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from measuretwice.base.errors import UserError
from measuretwice.book.prediction import (
    Answer,
    judged_numbers,
    known_units,
    number_of,
    quantity_of,
    why_not,
)
from measuretwice.lab import Value
from measuretwice.lab.schema.cases import Asked, Judgement, Predict
from measuretwice.measure.fields import Measured

PING: dict[str, Any] = {"ask": "Which?", "value": "busy_ping_mean_ms", "name": "ping"}
RED, FIFO = {"discipline": "red"}, {"discipline": "pfifo_fast"}
CHOICES = [
    {"says": "This.", "why_not": "Look at that."},
    {"says": "That."},
    {"says": "Neither.", "why_not": "Look again."},
]


@dataclass(frozen=True)
class Run:
    """What a question needs of a run."""

    params: dict[str, Value]
    values: Measured = field(default_factory=dict)
    seed: int = 1


def ping(discipline: str, ms: float | None, seed: int = 1) -> Run:
    return Run({"discipline": discipline}, {"busy_ping_mean_ms": ms}, seed)


def rates(discipline: str, *mbit: float) -> Run:
    values: Measured = {f"host_{n}_goodput_bps": 1e6 * rate for n, rate in enumerate(mbit)}
    return Run({"discipline": discipline}, values)


def test_several_runs_answer_with_a_mean_or_a_ratio() -> None:
    runs = [ping("pfifo_fast", 90), ping("pfifo_fast", 100), ping("red", 9.5)]
    assert number_of(Predict(**PING), runs) == pytest.approx((90 + 100 + 9.5) / 3)
    assert number_of(Predict(**PING, of=FIFO), runs) == 95
    assert number_of(Predict(**PING, of=FIFO, over=RED, unit="times"), runs) == 10
    assert quantity_of(Predict(**PING, of=FIFO, over=RED, unit="times")).unit == "times"
    # Of runs of which one lacks it, or without such runs, nothing can be said.
    assert number_of(Predict(**PING, of=FIFO), [*runs, ping("pfifo_fast", None)]) is None
    assert number_of(Predict(**PING, of=FIFO, over={"discipline": "cake"}), runs) is None


def test_a_spread_is_compared_whatever_is_larger() -> None:
    asked: dict[str, Any] = {"ask": "F?", "value": "*_goodput_bps", "name": "F", "unit": "times"}
    runs = [
        rates("red", 10, 14),
        rates("red", 12, 12),
        rates("cake", 10, 18),
        rates("cake", 14, 14),
    ]
    assert number_of(Asked(**asked, spread_by="discipline"), runs) == pytest.approx(4)
    assert number_of(Asked(**asked, spread_by="discipline"), runs[2:] + runs[:2]) == pytest.approx(
        4
    )
    # F(3, 3) at 97.5 %: 15.44.
    upper = number_of(Asked(**asked, spread_by="discipline", upper=True), runs)
    assert upper == pytest.approx(4 * 15.44, rel=1e-3)
    assert number_of(Asked(**asked, spread_by="discipline"), runs[:2]) is None


def test_each_way_to_change_a_case_gives_a_number_of_its_own() -> None:
    number = {**PING, "of": FIFO, "over": RED, "unit": "times"}
    judgement = Judgement.model_validate({"ask": "Which?", "choices": CHOICES, "number": number})
    runs = [("", ping("pfifo_fast", 90)), ("", ping("red", 10)), ("x=1", ping("red", 1))]
    runs += [("", ping("pfifo_fast", 70, 2)), ("", ping("red", 10, 2))]
    assert judged_numbers(judgement, runs) == [9, 8, 7]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("b, 9", []),
        ("b, 9.1 times", []),
        ("B, about 9", []),
        ("a, 9", ["a: Look at that."]),
        ("b, 7", ["7: your runs give another number, by more than 2 %. Which?"]),
        ("c", ["c: Look again.", "A number is missing: Which?"]),
        ("b, 9 ms", ["9 ms: the question asks for ping (times)."]),
    ],
)
def test_what_is_not_right_about_an_answer(answer: str, says: list[str]) -> None:
    number = {**PING, "of": FIFO, "over": RED, "unit": "times"}
    judgement = Judgement.model_validate({"ask": "Which?", "choices": CHOICES, "number": number})
    assert why_not(judgement, Answer.read(answer), [9.05]) == says


def test_units_of_an_answer_are_converted() -> None:
    number = {"ask": "How fast?", "value": "goodput_bps", "name": "rate"}
    judgement = Judgement.model_validate({"ask": "Which?", "choices": CHOICES, "number": number})
    assert why_not(judgement, Answer("b", "95600 kbit/s"), [95.6]) == []
    assert why_not(judgement, Answer("b", "95.6"), []) != []


def test_a_page_knows_the_units_that_the_kit_knows() -> None:
    for unit, text, factor in (
        ("Mbit/s", "kbit/s", 1e-3),
        ("times", "%", 0.01),
        ("B", "kB", 1e3),
        ("", "times", 1),
    ):
        units, others = known_units(unit)
        assert units[text] == pytest.approx(factor)
        assert "ms" in others
    units, others = known_units("ms")
    assert units["s"] == 1000
    assert "Mbit" not in units
    assert "mbit" in others


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("c (by the recorded runs)", Answer("c", "", by_recorded=True)),
        ("b, 3.1 times (by the recorded runs)", Answer("b", "3.1 times", by_recorded=True)),
        ("b, 3.1 times", Answer("b", "3.1 times")),
    ],
)
def test_an_answer_says_by_which_runs_it_was_judged(text: str, answer: Answer) -> None:
    assert Answer.read(text) == answer
    assert answer.text == text


@pytest.mark.parametrize("letter", ["d", "", "ab", "7"])
def test_what_cannot_be_chosen_is_refused(letter: str) -> None:
    judgement = Judgement.model_validate({"ask": "Which?", "choices": CHOICES})
    with pytest.raises(UserError, match="choose a to c"):
        why_not(judgement, Answer(letter), [])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"choices": CHOICES[:1]}, "at least 2 items"),
        ({"choices": [CHOICES[0], CHOICES[2]]}, "one is right"),
        ({"choices": [CHOICES[1], CHOICES[1]]}, "one is right"),
        ({"number": {**PING, "over": RED}}, "of is missing"),
        ({"number": {**PING, "spread_by": "discipline"}}, "go together"),
        ({"number": {**PING, "value": "*_goodput_bps"}}, "go together"),
        ({"number": {**PING, "upper": True}}, "spread_by is missing"),
        ({"number": {**PING, "tolerance_ratio": 0.0}}, "greater than 0"),
        ({"right": "b"}, "Extra inputs"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Judgement.model_validate({"ask": "Which?", "choices": CHOICES, **change})
