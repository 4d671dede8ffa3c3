"""Cases: numbers for students, values that vary with the seed, plans without the cause."""

from pathlib import Path
from statistics import fmean

import pytest
from all_cases import CASES

from measuretwice.backends.browser import fitted
from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import LabBook
from measuretwice.book.prediction import how_far_off, number_text, quantity_of
from measuretwice.course.case import CaseRun, changes_of, read_changes, set_already
from measuretwice.course.lab_books import TrialsMissing
from measuretwice.course.wording import (
    measured_of_case,
    model_answer,
    outcome_lines,
    outcomes_in_page,
)
from measuretwice.lab import (
    Lab,
    Plan,
    Toolchain,
    Value,
    load_lab,
    make_plan,
    published_labs,
    trial_params,
)
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.measure import fields
from measuretwice.runs.result import Result, read_result
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.cases import dealt
from measuretwice.site.macros.lab import finding

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
MTU = LAB.pitfall("mtu")
CASE = LAB.case_number(MTU)


def plan(**settings: object) -> Plan:
    toolchain = Toolchain("virtual", "k", {}, {})
    return make_plan(LAB, MTU.trial, toolchain=toolchain, **{"seed": 1, **settings})  # type: ignore[arg-type]


def test_a_case_is_its_place_in_the_file() -> None:
    assert LAB.case(CASE) is MTU
    for wrong in (0, len(LAB.file.pitfalls) + 1):
        with pytest.raises(UserError, match="mathis has cases 1 to 13"):
            LAB.case(wrong)
    with pytest.raises(UserError, match="calibrate has no cases"):
        load_lab(ROOT, "calibrate").case(1)


def test_no_prediction_asks_for_the_quantity_that_solves_the_case() -> None:
    """Where an answer solves a case, and its number divides one kind of run's value by another's."""
    for lab in published_labs(ROOT).values():
        for pitfall in lab.file.pitfalls:
            number = pitfall.judgement.number if pitfall.judgement else None
            if number and number.over:
                assert pitfall.predict.value != number.value, f"{lab.name}: {pitfall.id}"


def test_a_cases_plan_is_the_mistake_without_its_name() -> None:
    broken = plan(pitfall="mtu", stage="broken")
    first = plan(case=CASE)
    assert first.params == broken.params
    assert first.kernel_seed == broken.kernel_seed
    assert first.folder_name.startswith(f"case-{CASE:02d}-trial-09-seed1-")
    assert "mtu" not in first.folder_name
    assert "broken" not in str(first.to_json())
    shown = plan(case=CASE, stage="fixed")
    assert shown.params == plan(pitfall="mtu", stage="fixed").params
    assert shown.folder_name.startswith(f"case-{CASE:02d}-shown-")


def test_plans_without_a_case_keep_their_digests() -> None:
    assert "case" not in plan().to_json()
    assert plan().digest != plan(case=CASE).digest


def test_a_students_own_change_goes_over_the_first_try() -> None:
    own = plan(case=CASE, changes={"mtu_bytes": 4352})
    assert own.params == plan(case=CASE, stage="fixed").params
    assert own.digest != plan(case=CASE, stage="fixed").digest


def test_a_setting_that_has_no_default_is_taken_away() -> None:
    queues = load_lab(ROOT, "queues")
    number = queues.case_number(queues.pitfall("copied-cell"))

    def params(**settings: object) -> dict[str, object]:
        return dict(trial_params(queues, 6, case=number, **settings))  # type: ignore[arg-type]

    assert params()["destination"] == "host-3"
    changes = read_changes(queues, ["destination="])
    assert "destination" not in params(changes=changes)
    assert params(changes=changes) == params(stage="fixed")
    for change in ("duration_s=", "discipline=", "nosuch="):
        with pytest.raises(UserError, match=change.rstrip("=")):
            read_changes(queues, [change])


def test_other_seeds_have_other_values_and_the_same_each_time() -> None:
    base = plan(case=CASE).params
    values = {}
    for seed in range(2, 40):
        params = plan(case=CASE, seed=seed).params
        assert params == plan(case=CASE, seed=seed).params
        changed = {name for name in params if params[name] != base[name]}
        assert changed <= {*MTU.vary}
        for name, (low, high) in LAB.varied(MTU).items():
            assert low <= float(params[name]) <= high
        values[seed] = tuple(params[name] for name in MTU.vary)
    assert len(set(values.values())) == len(values)
    # Both stages of one seed have the same: what differs between them is the mistake alone.
    first, shown = plan(case=CASE, seed=7).params, plan(case=CASE, seed=7, stage="fixed").params
    assert {name for name in first if first[name] != shown[name]} == {"mtu_bytes"}


@pytest.mark.parametrize("lab", ["mathis", "buffers", "scale", "variants", "queues"])
def test_what_is_asked_is_measured(lab: str) -> None:
    for pitfall in load_lab(ROOT, lab).file.pitfalls:
        asked = pitfall.predict
        assert asked.ask.endswith("?")
        number = pitfall.judgement.number if pitfall.judgement else None
        names = {asked.value, *asked.beside, *([number.value] if number else [])}
        fields.require(names - {"ratio"}, pitfall.id)


@pytest.mark.parametrize("lab", ["mathis", "buffers", "scale", "variants", "queues"])
def test_a_question_has_a_line_for_each_wrong_answer_that_keeps_the_right_one(lab: str) -> None:
    for pitfall in load_lab(ROOT, lab).file.pitfalls:
        if not (judgement := pitfall.judgement):
            continue
        right = judgement.choice(judgement.right)
        assert right is not None
        for choice in judgement.choices:
            assert choice.says.endswith("."), choice.says
            assert right.says.casefold() not in choice.why_not.casefold()
        assert judgement.ask.rstrip(".)").endswith("?") or "?" in judgement.ask


def test_the_right_answers_are_not_all_the_same() -> None:
    rights = {
        pitfall.judgement.right
        for lab in ("mathis", "buffers", "scale", "variants", "queues")
        for pitfall in load_lab(ROOT, lab).file.pitfalls
        if pitfall.judgement
    }
    assert len(rights) > 2


@pytest.mark.parametrize(
    ("predicted", "value", "unit", "says"),
    [
        ("16 percent, as ping shows", 0.08, "(1 = all)", "0.5"),
        ("0.16", 0.08, "(1 = all)", "0.5"),
        ("30 Mbit/s, since nothing else is different", 45.0, "Mbit/s", "1.5"),
        ("30", 45.0, "Mbit/s", "1.5"),
        ("25.7*0.93 is 23.9, but I write 31", 38.75, "Mbit/s", "1.25"),
        ("30 Mbit/s, since 0.93 of it were 28", 45.0, "Mbit/s", "1.5"),
        ("the model says 25, so 30 Mbit/s by 2 reasons", 45.0, "Mbit/s", "1.5"),
        ("2 packets", 31.0, "packets", "16"),
        # Words that only say how sure one is don't keep a number from being the first.
        ("about 120 ms: 1000 packets at 100 Mbit/s are 118 ms, and 2 ms", 60.0, "ms", "0.5"),
        ("I think it will be roughly 30, a bit less than the 40 of before", 45.0, "Mbit/s", "1.5"),
        ("5 times less, so 30 Mbit/s", 45.0, "Mbit/s", "1.5"),
        # Other units of the same dimension are converted.
        ("1600 kbit/s", 2.4, "Mbit/s", "1.5"),
        ("4 MB/s, as scp says", 48.0, "Mbit/s", "1.5"),
        ("2 s", 3000.0, "ms", "1.5"),
        ("1.25 MB", 1_875_000, "B", "1.5"),
        ("12", 93, "packets", "7.75"),
        ("3 x", 6, "times", "2"),
        ("90 %", 0.45, "", "0.5"),
        # A factor of thousands, or thousandths, says nothing.
        ("1", 4752.0, "packets", None),
        ("1e6 packets", 31.0, "packets", None),
        ("16", 0.12, "(1 = all)", None),
        ("as before", 45.0, "packets", None),
    ],
)
def test_a_prediction_is_compared_in_one_unit(
    predicted: str, value: float, unit: str, says: str | None
) -> None:
    off = how_far_off(predicted, value, unit)
    assert off == (f", {says} times that" if says else "")


def test_a_page_names_no_command_where_trials_are_missing() -> None:
    missing = TrialsMissing(6, (2,), "runs/buffers/case-06-*")
    assert (
        "trial 2. Check them together, with ./lab check runs/buffers/case-06-*"
        in outcome_lines(missing)[0]
    )
    assert "./lab" not in outcomes_in_page([missing])


def test_a_number_that_came_out_is_as_predicted() -> None:
    assert how_far_off("1 times", 1.002, "times") == ", as predicted"
    assert [number_text(value) for value in (160484, 160484.2, 0.97912, 1250.04)] == [
        "160484", "160484", "0.9791", "1250",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "finding", "which"),
    [("buffers", "one-run", 1), ("variants", "one-server", "least"), ("queues", "copied-cell", 6)],
)
def test_a_prediction_is_compared_with_the_trial_that_it_is_about(
    name: str, finding: str, which: int | str, tmp_path: Path
) -> None:
    lab = load_lab(ROOT, name)
    pitfall, book = lab.pitfall(finding), LabBook(tmp_path, lab)
    place = ROOT / "sample-data" / lab.folder.name / lab.set_name(f"{finding}-fixed")
    read = [read_result(plan.parent, lab) for plan in sorted(place.glob("*/plan.json"))]
    runs = [run for run in read if run is not None]
    case = CaseRun(lab, lab.case_number(pitfall), None, {}, book)
    quantity = quantity_of(pitfall.predict)
    values: dict[int, list[float]] = {}
    for run in runs:
        value = run.value(pitfall.predict.value)
        assert value is not None
        values.setdefault(run.trial, []).append(value * quantity.scale)
    means = {trial: fmean(of_trial) for trial, of_trial in values.items()}
    trial = which if isinstance(which, int) else min(means, key=lambda trial: means[trial])
    compared = case.compare("5", runs)
    assert compared
    assert compared.measured.startswith(f"{means[trial]:.4g}")
    assert f"trial {trial})" in compared.measured
    [said] = measured_of_case(case, runs)
    assert all(f"trial {trial})" in said for trial in values)
    if len(values[trial]) > 1:
        assert f"({min(values[trial]):.4g}" in compared.measured
        assert f"in {len(values[trial])} runs of trial {trial})" in compared.measured
    # Without that trial nothing answers.
    others = [run for run in runs if run.trial != trial]
    assert (case.compare("5", others) is None) == isinstance(which, int)


@pytest.mark.parametrize(
    ("predicted", "value", "unit", "asks"),
    [
        ("1448 bytes", 45.0, "Mbit/s", "Mbit/s"),
        ("20 %", 45.0, "packets", "packets"),
        ("100 %", 1154, "packets", "packets"),
        ("1.6 Mbit/s", 0.12, "(1 = all)", "0 to 1, or in %"),
        ("10 packets", 2.136, "ms", "ms"),
        ("10 ms", 0.9, "", "a number without a unit"),
    ],
)
def test_no_factor_stands_between_two_quantities(
    predicted: str, value: float, unit: str, asks: str
) -> None:
    off = how_far_off(predicted, value, unit)
    assert off == f". The question asks for {asks}, so the two can't be compared"


@pytest.mark.parametrize("lab", ["mathis", "buffers", "scale", "variants", "queues"])
def test_every_question_names_what_it_asks_for(lab: str) -> None:
    """A count's name ends in no unit: the case says what is counted, and what a share or a rate is of."""
    for pitfall in load_lab(ROOT, lab).file.pitfalls:
        asked = quantity_of(pitfall.predict)
        if not asked.unit:
            assert pitfall.predict.value in ("jains_index", "own_jain", "own_c_by_halvings")
        if "Mbit/s" in pitfall.predict.ask:
            assert asked.unit == "Mbit/s"
        assert asked.name != "goodput" or asked.unit == "Mbit/s", pitfall.id


def test_what_the_model_says_of_ones_own_numbers_stands_at_the_question(tmp_path: Path) -> None:
    book = LabBook(tmp_path, LAB)
    book.open(7)
    own = CaseRun(LAB, CASE, None, {}, book, seed=7).model_answer()
    assert own
    params = trial_params(LAB, MTU.trial, case=CASE, seed=7)
    value = (
        float(params["mss_bytes"])
        * 8e3
        / float(params["rtt_ms"])
        / float(params["loss_ratio"]) ** 0.5
    )
    assert model_answer(own).endswith(f"the model with C = 1 predicts {value / 1e6:.4g} Mbit/s.")
    # Neither where no model is asked for, nor of a set of trials.
    for name in ("netem-limit", "cherry-picking"):
        number = LAB.case_number(LAB.pitfall(name))
        assert CaseRun(LAB, number, None, {}, book, seed=7).model_answer() is None


def test_a_page_says_whose_its_numbers_are() -> None:
    """Where the seed deals values, with their range; a set of trials has values of its own."""
    text = dealt(LabContext(ROOT, LAB), "loss-percent")
    assert "These are the recorded run's values." in text
    assert "`loss_ratio` 0.125 to 0.196, `rtt_ms` 4.8 to 7.5" in text
    assert "My run’s values" not in text
    assert "My run’s values" in dealt(LabContext(ROOT, LAB, runs_here=True), "loss-percent")
    assert dealt(LabContext(ROOT, LAB), "cherry-picking") == ""


def test_a_page_has_the_finding_that_only_raw_files_show() -> None:
    """As the command has, whose words stand above it: ss's line is no measured value."""
    shown = finding(LabContext(ROOT, load_lab(ROOT, "latency")), "dctcp-without-ecn-broken")
    assert shown.found
    assert shown.measured.startswith("laptop's flow: dctcp-reno")
    assert not finding(LabContext(ROOT, load_lab(ROOT, "latency")), "dctcp-without-ecn-fixed").found


def test_no_count_is_printed_that_no_tool_has() -> None:
    """tc doesn't know dualpi2, so that of what it marked it says nothing."""
    lab = load_lab(ROOT, "latency")
    for pitfall in lab.file.pitfalls:
        kind = trial_params(lab, pitfall.trial)["discipline"]
        assert kind != "dualpi2" or "queue_marks" not in pitfall.predict.beside


@pytest.mark.parametrize(
    ("name", "hides"),
    [
        ("dctcp-without-ecn", {"congestion_control", "up_flows", "classic_flows"}),
        ("large-burst", {"router_up_mbit", "link_up_mbit", "modem_fifo_bytes", "warmup_s"}),
    ],
)
def test_a_setting_that_only_hides_a_mistake_solves_nothing(name: str, hides: set[str]) -> None:
    """Runs with these were made: nothing is off in them, and the mistake is there still."""
    pitfall = load_lab(ROOT, "latency").pitfall(name)
    assert hides <= {*pitfall.hides}
    assert not pitfall.settings & {*pitfall.hides}


def test_a_value_that_a_trial_has_already_is_said(tmp_path: Path) -> None:
    """But of what a case is about nothing, before its cause is known."""
    lab = load_lab(ROOT, "variants")
    assert set_already(lab, {"rival": "none", "hop": "radio"}, [2, 4]) == ["rival is none already"]
    assert set_already(lab, {"congestion_control": "bbr"}, [2, 4]) == []
    book = LabBook(tmp_path, lab)
    book.open(3)
    number = lab.case_number(lab.pitfall("ten-seconds"))
    case = CaseRun(lab, number, None, {}, book)
    asked = {"rival": "none", "duration_s": 10}
    assert set_already(lab, asked, [3], case) == ["rival is none already"]
    book.add(number, "Diagnosis", "it was still rising when the test ended")
    assert set_already(lab, asked, [3], case) == [
        "rival is none already",
        "duration_s is 10 already",
    ]


@pytest.mark.parametrize(("lab", "pitfall"), CASES)
def test_what_a_pages_machine_adapts_is_no_change_of_a_students(lab: Lab, pitfall: Pitfall) -> None:
    """It has less memory than Scale asks for, and samples a long run less often; pages hide first runs that were changed."""
    number, trial = lab.case_number(pitfall), pitfall.trial

    def changes(**chosen: Value) -> dict[str, Value]:
        params = {**trial_params(lab, trial, case=number, seed=3), **chosen}
        made = {**params, **fitted(lab, params)}
        return changes_of(lab, Result(lab.name, trial, "", None, None, 3, made, {}, case=number))

    assert changes() == {}
    assert changes(duration_s=20000) == {"duration_s": 20000}
    if memory := lab.file.run.memory:
        assert changes(**{memory: 300_000_000}) == {memory: 300_000_000}


def test_a_run_that_was_broken_off_is_noted_once(tmp_path: Path) -> None:
    """What a student says again before the run is there stands in the book once; after it, again."""
    book = LabBook(tmp_path, LAB)
    book.open(3)
    case = CaseRun(LAB, CASE, None, {"mtu_bytes": 4352}, book)

    def begin() -> None:
        case.note_begun()
        case.note_prediction("")

    begin()
    begin()
    book.add(CASE, "Run", "some-run: 81 Mbit/s")
    begin()
    kinds = [(entry.kind, entry.text) for entry in book.notes(CASE).entries]
    changed = ("Changed", "mtu_bytes=4352")
    assert kinds == [
        changed,
        ("Prediction", "none"),
        ("Run", "some-run: 81 Mbit/s"),
        changed,
    ]
    # Nor is it noted beside a prediction that was made.
    other = CASE + 1
    again = CaseRun(LAB, other, None, {}, book)
    again.note_prediction("30 Mbit/s")
    book.add(other, "Run", "some-run: 81 Mbit/s")
    again.note_prediction("")
    assert [entry.kind for entry in book.notes(other).entries] == ["Prediction", "Run"]
