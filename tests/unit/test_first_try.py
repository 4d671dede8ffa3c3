"""The first try: what is set in it as cases are solved, what is said of it, and its file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from edited_labs import refusal

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import LabBook
from measuretwice.cli import start, terminal
from measuretwice.course import progress
from measuretwice.course.progress import changes_by_cases, open_try
from measuretwice.lab import (
    Lab,
    first_try_cases,
    first_try_of,
    load_lab,
    movers_of_first_try,
    plan_try,
    published_labs,
    recorded_steps,
    select_trials,
    step_cases,
    supporting_range,
)
from measuretwice.lab.schema.cases import Shown
from measuretwice.measure import fields
from measuretwice.runs.first_try_history import (
    Try,
    outcome_of,
    read_tries,
    results_of_try,
    so_far,
    with_try,
    write_tries,
)
from measuretwice.runs.recorded import results_of
from measuretwice.runs.result import Result

ROOT = Path(__file__).parents[2]
LABS = [lab for lab in published_labs(ROOT).values() if lab.file.pitfalls]
MATHIS, QUEUES = (load_lab(ROOT, name) for name in ("mathis", "queues"))


def recorded(lab: Lab, name: str) -> list[Result]:
    return results_of(lab, ROOT / "sample-data" / lab.folder.name / name)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_in_the_recorded_order_each_state_is_the_recorded_one(lab: Lab) -> None:
    solved: set[int] = set()
    for recording in recorded_steps(lab):
        solved |= set(step_cases(lab, recording.id))
        plan = plan_try(lab, solved)
        assert dict(plan.changes) == recording.set
        assert list(plan.trials) == select_trials(lab, recording.trials)
        step = next(step for step in first_try_of(lab).steps if step.of == recording.id)
        assert plan.repeat == (step.repeat or recording.repeat)
        assert plan.losses == recording.losses
    assert plan.last
    assert solved == first_try_cases(lab)


def test_in_any_other_order_only_what_was_found_is_changed() -> None:
    steps = recorded_steps(MATHIS)
    for case in range(1, 7):
        plan = plan_try(MATHIS, {case})
        [(before, after)] = [
            pair for pair in pairwise(steps) if step_cases(MATHIS, pair[1].id) == (case,)
        ]
        assert dict(plan.changes) == {
            name: value
            for name, value in steps[0].set.items()
            if name not in before.set.keys() - after.set.keys()
        }
        assert len(plan.changes) < len(steps[0].set)
        assert plan.cases == (case,)
        assert not plan.last
    # Cases that no step waits for change nothing, nor does the last step come before all of its cases.
    assert plan_try(MATHIS, {7, 8, 10}) == plan_try(MATHIS, set())


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_what_is_said_tells_no_cause_and_what_is_counted_is_measured(lab: Lab) -> None:
    about = first_try_of(lab)
    values = {about.shown.value, *(step.shown.value for step in about.steps if step.shown)}
    assert about.ask.endswith("?")
    assert about.found.endswith(".")
    fields.require(sorted(values - {"ratio"}), lab.name)
    for pitfall in lab.file.pitfalls:
        for word in [*pitfall.key_words, pitfall.id]:
            for text in (about.claim, about.ask, about.shown.label):
                assert not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE)


def test_the_question_names_the_labs_own_range() -> None:
    about = first_try_of(MATHIS)
    low, high = supporting_range(MATHIS, about.shown)
    assert f"{low:g} to {high:g} times" in about.ask


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_recorded_runs_turn_the_claim_round(lab: Lab) -> None:
    about = first_try_of(lab)
    supports = [
        outcome_of(lab, step.shown or about.shown, recorded(lab, step.of)).supports
        for step in (about.steps[0], about.steps[-1])
    ]
    # The model's first try is wrong and the last is right; the other claims look right at first.
    assert supports == ([False, True] if lab is MATHIS else [True, False])


def test_the_buffers_claim_holds_in_most_runs_of_one_buffer_only() -> None:
    """What lab.toml says in words once the cases are solved, over thirty seeds of the same settings."""
    lab = load_lab(ROOT, "buffers")
    low, _ = supporting_range(lab, first_try_of(lab).shown)
    assert low is not None
    large, small = (
        [run.value("jains_index") or 0 for run in recorded(lab, "thirty-times") if run.trial == n]
        for n in (3, 4)
    )
    assert len(large) == len(small) == 30
    assert sum(index >= low for index in small) > 27
    assert sum(index >= low for index in large) < 15
    second_look = recorded(lab, "second-look")
    assert [run.params for run in second_look[:5]] == [recorded(lab, "thirty-times")[60].params] * 5


def test_what_runs_come_to_in_words() -> None:
    first = outcome_of(MATHIS, first_try_of(MATHIS).shown, recorded(MATHIS, "step-1-first-try"))
    within = sum(1 <= (r.ratio or 0) <= 1.45 for r in recorded(MATHIS, "step-1-first-try"))
    assert first.brief == f"{within} of 60"
    assert (
        f"{within} of 60 are in the range (goodput over the model from 1 to 1.45)." in first.counted
    )
    queues = load_lab(ROOT, "queues")
    runs = recorded(queues, "two-arms-once")
    wait = Shown(
        value="busy_ping_mean_ms",
        label="ping",
        by="discipline",
        alike_ratio=0.02,
        names={"red": "RED"},
    )
    apart = outcome_of(queues, wait, runs)
    assert re.fullmatch(r"\d\d % apart", apart.brief)
    assert [line.split(":")[0] for line in apart.lines] == ["pfifo_fast", "RED"]
    most = Shown(value="busy_ping_mean_ms", label="ping", by="discipline", most="pfifo_fast")
    assert outcome_of(queues, most, runs).supports
    nothing = Shown(value="no_such_value", label="none", by="discipline", most="red")
    assert outcome_of(queues, nothing, runs).brief == "not measured"
    assert not outcome_of(MATHIS, first_try_of(MATHIS).shown, []).supports


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('{ of = "second-look", after', '{ of = "third-look", after', "steps.1: of: there is no recording"),
        ('after = ["one-run"]', "after = []", "steps.1: after: the first step is after no"),
        ('after = ["one-run"]', 'after = ["who"]', "steps.1: after: there is no pitfall 'who'"),
        ('by = "buffer_bytes", min = 0.95', 'by = "buffer", min = 0.95', "'buffer' is no parameter"),
        ("min = 0.95, ", "", "shown: no range, and no [[expect]]"),
        ('by = "buffer_bytes", min = 0.95', 'most = "cubic"', "by is missing"),
        ("min = 0.95,", 'min = 0.95, most = "cubic",', "either min and max, or most"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_lab_toml_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert says in refusal(tmp_path, old, new, "02-buffers")


def test_a_lab_without_a_first_try_says_so() -> None:
    with pytest.raises(UserError, match="calibrate has no first try of its own"):
        first_try_of(load_lab(ROOT, "calibrate"))


def test_states_are_kept_in_the_students_order(tmp_path: Path) -> None:
    assert read_tries(tmp_path) == []
    first = Try((), 77, ("a",), "0 of 60", supports=False, predicted="50")
    tries = with_try([first], Try((4,), 77, ("b",), "3 of 60", supports=False))
    tries = with_try(tries, Try((1, 4), 77, ("c",), "9 of 60", supports=False))
    # The same state again takes its own place, and what was predicted stays.
    tries = with_try(tries, Try((), 77, ("d",), "1 of 60", supports=False))
    assert [known.after for known in tries] == ["first try", "after case 4", "after cases 1 and 4"]
    assert tries[0] == Try((), 77, ("d",), "1 of 60", supports=False, predicted="50")
    write_tries(tmp_path, tries)
    assert read_tries(tmp_path) == tries
    assert so_far(tries).startswith(
        "first try: 1 of 60 · after case 4: 3 of 60 · after cases 1 and 4: "
    )
    # Runs that are no more are left out; a name leads nowhere else.
    assert (
        results_of_try(tmp_path, Try((), 1, ("../../etc", "gone"), "", supports=False), MATHIS)
        == []
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"steps": 1}', json.dumps({"steps": [{"seed": 1}]})]
)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "steps.json").write_text(text)
    with pytest.raises(UserError, match=r"steps\.json: can't be read .*move it away") as caught:
        read_tries(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_that_is_broken_off_keeps_the_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = open_try(MATHIS, tmp_path, 7)
    book = state.book
    book.add(5, "Prediction", "80 Mbit/s")
    asked: list[str] = []
    answers = iter(["", "all sixty, the model is old and proven"])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr(terminal, "ask_person", answer)
    assert [start._ask(state, measures=True) for _ in range(3)] == [
        "",
        *2 * ["all sixty, the model is old and proven"],
    ]
    assert len(asked) == 2
    text = book.text
    assert text.index("- Seed: 7") < text.index("## First try") < text.index("## Case 5")
    assert book.notes(5).prediction == "80 Mbit/s"
    book.add_first_try("Run", "first try: 0 of 60")
    book.add_first_try("Run", "first try: 0 of 60")
    assert book.first_try().of("Run") == ["first try: 0 of 60"]
    assert LabBook(tmp_path / MATHIS.name, MATHIS).open() == 7


def test_it_says_which_fixes_were_used() -> None:
    assert changes_by_cases(MATHIS, plan_try(MATHIS, ())) == ""
    number = MATHIS.case_number(MATHIS.pitfall("offload"))
    words = changes_by_cases(MATHIS, plan_try(MATHIS, {*range(1, number + 1)}))
    assert "With what you found in cases 1" in words
    assert "offloads off instead of on" in words
    assert "mtu_bytes each trial's own instead of 1500" in words
    assert "loss_percent, which was loss_ratio, no longer set" in words


def test_it_says_which_trials_it_has_now_and_which_case_changed_a_setting() -> None:
    lab = load_lab(ROOT, "variants")
    words = changes_by_cases(lab, plan_try(lab, {3, 4, 6}))
    assert "duration_s 60 instead of 20 (case 3)" in words
    assert "report_interval_s 0.1 instead of 1 (case 4)" in words
    # A case that taught that one run can't tell has the repeated first try run several times.
    assert "each trial 5 times instead of 1 (case 6)" in words
    assert words.endswith(
        "The trials are others, too: 1-4 instead of 5-8; hop cable instead of radio."
    )
    # The nightly test of the command line reads this line of Queues, too.
    assert changes_by_cases(QUEUES, plan_try(QUEUES, {1, 2})) == (
        "With what you found in cases 1 and 2: rate_mbit 100 instead of 1000 (case 1); "
        "access_mbit, which was 100, no longer set (case 1); "
        "what counts is ping under load instead of goodput of both flows."
    )
    # No case's setting is named before that case is solved.
    assert changes_by_cases(lab, plan_try(lab, {3, 6})) == ""
    mathis = changes_by_cases(MATHIS, plan_try(MATHIS, {*range(1, len(MATHIS.file.pitfalls) + 1)}))
    assert re.search(r"The trials are others, too: \d+ of them instead of 1-60\.", mathis)
    # Other trials, but as many of them: the two numbers alone would say that nothing changed.
    first, last = plan_try(MATHIS, ()), plan_try(MATHIS, {*range(1, len(MATHIS.file.pitfalls) + 1)})
    odd, even = (
        replace(plan, trials=trials)
        for plan, trials in ((first, (*range(1, 60, 2),)), (last, (*range(2, 61, 2),)))
    )
    assert progress._other_trials(MATHIS, odd, even)[0].startswith(
        "The trials are others, too: as many as before"
    )


def test_nobody_wins_whose_lead_is_no_more_than_chance() -> None:
    lab = load_lab(ROOT, "variants")
    shown = first_try_of(lab).shown
    once = outcome_of(lab, shown, recorded(lab, "second-look"))
    assert once.brief == "Reno, CUBIC and Vegas are level, with one run each"
    assert not once.supports
    radio = outcome_of(lab, shown, recorded(lab, "first-try"))
    assert radio.brief == "BBR has the most, with one run each"
    paths = recorded(lab, "paths")
    eight = outcome_of(lab, shown, [run for run in paths if run.trial in range(5, 9)])
    assert eight.brief == "BBR has the most, with 8 runs each"
    assert re.search(
        r"^BBR has the most, with 8 runs each, [\d.]+ Mbit/s to [\d.]+ Mbit/s more than CUBIC \(95 % interval",
        eight.counted,
    )
    assert re.search(
        r"^BBR: goodput [\d.]+ Mbit/s \(mean of 8 runs, [\d.]+ Mbit/s to [\d.]+ Mbit/s\)$",
        eight.lines[-1],
    )
    # By cable three are equal to a hundredth of a per cent, which eight runs tell apart: that is no lead.
    cable = outcome_of(lab, shown, [run for run in paths if run.trial in range(1, 5)])
    assert cable.brief == "Reno, CUBIC and Vegas are level, with 8 runs each"
    assert cable.counted.endswith(
        "they differ by 2 % or less, which is too little to name one of them."
    )
    # Reno and CUBIC over the radio: eight runs of each don't tell them apart.
    two = outcome_of(lab, shown, [run for run in paths if run.trial in (5, 6)])
    assert two.brief == "Reno and CUBIC are level, with 8 runs each"


def test_it_says_which_cases_can_move_it() -> None:
    assert movers_of_first_try(QUEUES) == "cases 1 and 2"
    assert movers_of_first_try(QUEUES, {1, 3}) == "case 2"
    assert movers_of_first_try(QUEUES, {1, 2}) == ""
