"""The checks of runs in which flows share a link, on cases made by hand."""

from pathlib import Path
from typing import Any

import pytest

from measuretwice.checks import Member, RunUnderTest, causes, check_set
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "buffers")
WANTED: dict[str, Any] = {**LAB.defaults(), **LAB.trials[1].set}
HONEST: dict[str, Any] = {
    "flows": 2,
    "goodput_bps": 95.6e6,
    "mss_bytes": 1448,
    "rtt_min_ms": 50.0,
    "rtt_mean_ms": 150.0,
    "retransmits": 1299,
    "qdisc_drops": 1299,
    "other_qdisc_drops": 0,
    "queue_limit_bytes": 1_250_000,
    "buffer_bdp_ratio_min": 1.0,
    "buffer_bdp_ratio_max": 2.0,
}


def raised(wanted: dict[str, Any] | None = None, **measured: Any) -> list[str]:
    case = RunUnderTest({**WANTED, **(wanted or {})}, {**HONEST, **measured})
    return [one.id for one in causes(case) if one.id not in LAB.file.checks.leave_out]


def test_an_honest_run_raises_nothing() -> None:
    assert raised() == []


@pytest.mark.parametrize(
    ("limit", "found"),
    [(1_310_720, True), (163_840, True), (1_249_990, False), (1_265_000, False), (None, False)],
)
def test_the_buffer_that_the_qdisc_has(limit: int | None, found: bool) -> None:
    assert raised(queue_limit_bytes=limit) == ["size-suffix"] * found


def test_what_a_buffer_is_called_for_whom() -> None:
    assert raised({"buffer_claimed_ratio": 1}) == []
    assert raised({"buffer_claimed_ratio": 1, "buffer_claimed_for": "every flow"}) == ["whose-bdp"]
    assert raised({"buffer_claimed_ratio": 0.1}) == ["whose-bdp"]
    shortest = {"buffer_claimed_for": "shortest path"}
    assert raised({"buffer_claimed_ratio": 1, **shortest}) == ["whose-bdp"]
    assert raised({"buffer_claimed_ratio": 2, **shortest}) == []
    same = {"buffer_bdp_ratio_max": 1.02}
    assert raised({"buffer_claimed_ratio": 1, "buffer_claimed_for": "every flow"}, **same) == []


def test_a_wrong_buffer_explains_what_it_is_called() -> None:
    wrong = {
        "queue_limit_bytes": 163_840,
        "buffer_bdp_ratio_min": 0.13,
        "buffer_bdp_ratio_max": 0.26,
    }
    assert raised({"buffer_claimed_ratio": 1}, **wrong) == ["size-suffix"]


@pytest.mark.parametrize(
    ("mean", "true", "unreadable", "found"),
    [
        (0.0, 500.0, 0, True),
        (508.0, 500.0, 0, False),
        (500.0, 500.0, 3, True),
        (None, None, 200, True),
        (0.0, 3.0, 0, False),
        (250.0, 500.0, 0, True),
    ],
)
def test_lengths_against_json(
    mean: float | None, true: float | None, unreadable: int, found: bool
) -> None:
    seen = {
        "length_rows": 200,
        "length_rows_unreadable": unreadable,
        "length_rows_mean_packets": mean,
        "length_rows_true_packets": true,
    }
    assert raised(**seen) == ["field-number"] * found


@pytest.mark.parametrize(
    ("backwards", "ratio", "found"),
    [(0, 1.003, False), (1, 1.003, True), (0, 0.977, True), (0, 0.9984, False), (0, None, True)],
)
def test_windows_against_ss(backwards: int, ratio: float | None, found: bool) -> None:
    seen = {
        "window_rows": 400,
        "window_rows_backwards": backwards,
        "window_rows_ratio": ratio,
    }
    assert raised(**seen) == ["units"] * found


def test_a_hidden_queue_is_told_before_the_retransmissions_that_it_makes() -> None:
    assert raised(other_qdisc_drops=1500, retransmits=2900) == ["other-drops"]


# Runs taken together


def members(by_trial: dict[int, list[float]], compare_by: str = "jains_index") -> list[Member]:
    params = {**WANTED, "compare_by": compare_by}
    return [
        Member(trial, (), seed, params, {"jains_index": value})
        for trial, values in by_trial.items()
        for seed, value in enumerate(values, start=1)
    ]


def told(by_trial: dict[int, list[float]], compare_by: str = "jains_index") -> list[str]:
    return [one.finding.id for one in check_set(LAB, members(by_trial, compare_by))]


def test_one_run_of_each_is_too_few_to_compare() -> None:
    assert told({1: [0.6], 3: [0.9]}) == ["one-run"]
    assert told({1: [0.6], 3: [0.9]}, "nothing") == []
    assert told({1: [0.6, 0.9]}) == []


def test_enough_runs_are_those_that_tell_the_trials_apart() -> None:
    assert told({1: [0.60, 0.62, 0.61], 3: [0.90, 0.91, 0.89]}) == []
    said = check_set(LAB, members({1: [0.6, 0.9, 0.75], 3: [0.9, 0.7, 0.8]}))[0].finding
    assert said.id == "one-run"
    assert "0.75 in trial 1, 0.8 in trial 3, from 3 runs each" in said.measured


def test_a_value_that_a_run_does_not_have_is_not_compared() -> None:
    nothing = [Member(t, (), 1, {**WANTED, "compare_by": "s1_share"}) for t in (1, 3)]
    assert check_set(LAB, nothing) == []
