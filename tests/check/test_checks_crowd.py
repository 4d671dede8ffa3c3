"""The checks of runs with many flows, on cases made by hand."""

from pathlib import Path
from typing import Any

import pytest

from measuretwice.checks import RunUnderTest, causes
from measuretwice.lab import load_lab

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "scale")
WANTED: dict[str, Any] = {**LAB.defaults(), **LAB.trials[1].set}
HONEST: dict[str, Any] = {
    "flows": 10,
    "duration_s": 150.0,
    "goodput_bps": 95.6e6,
    "own_goodput_bps": 97.9e6,
    "mss_bytes": 1448,
    "rtt_min_ms": 20.0,
    "rtt_mean_ms": 225.0,
    "segments": 1_200_000,
    "retransmits": 160,
    "queue_drops": 162,
    "halvings": 60,
    "queue_packet_bytes": 1514.0,
    "queue_delay_mean_ms": 205.0,
    "own_flows": 10,
    "own_sum_bps": 95.5e6,
    "own_rtt_ms": 225.0,
    "own_jain": 0.95,
    "own_groups_error_ratio": 0.002,
}


def raised(wanted: dict[str, Any] | None = None, **measured: Any) -> list[str]:
    case = RunUnderTest({**WANTED, **(wanted or {})}, {**HONEST, **measured})
    return [one.id for one in causes(case) if one.id not in LAB.file.checks.leave_out]


def test_an_honest_run_raises_nothing() -> None:
    assert raised() == []


def test_the_path_is_as_long_as_its_smallest_round_trip_by_ping_or_tcp() -> None:
    """Half an hour behind a full queue: TCP's own smallest is of its last five minutes."""
    assert raised(rtt_min_ms=128.266, path_rtt_ms=20.0) == []
    assert raised(rtt_min_ms=128.266, path_rtt_ms=128.1) == ["round-trip-time"]
    assert raised(rtt_min_ms=128.266) == ["round-trip-time"]
    assert raised(rtt_min_ms=9.0, path_rtt_ms=20.0) == ["round-trip-time"]


@pytest.mark.parametrize(
    ("counted", "events", "found"),
    [
        (62, 60, False),
        (79, 60, False),
        (300, 60, True),
        (10, 60, True),
        (3, 0, False),
        (9, 0, True),
    ],
)
def test_counted_halvings(counted: int, events: int, found: bool) -> None:
    assert raised(own_counted_halvings=counted, halvings=events) == ["halving-counter"] * found


@pytest.mark.parametrize(
    ("by", "retransmits", "found"),
    [
        ("retransmissions", 164, False),
        ("retransmissions", 320, True),
        ("drops", 320, False),
    ],
)
def test_what_is_called_a_loss(by: str, retransmits: int, found: bool) -> None:
    assert raised({"loss_by": by}, retransmits=retransmits) == ["loss-definition"] * found


@pytest.mark.parametrize(
    ("said", "found"), [(95.4e6, False), (97.0e6, False), (100.5e6, True), (80e6, True)]
)
def test_sums_over_unequal_times(said: float, found: bool) -> None:
    assert raised(own_sum_bps=said) == ["unequal-intervals"] * found


def test_what_the_ends_of_a_short_interval_may_make() -> None:
    """Eighteen seconds, a sample a second: 5.6 % on top. With finer samples it isn't excused."""
    short: dict[str, Any] = {"own_sum_bps": 92.0e6, "own_groups_error_ratio": 0.07}
    assert raised(duration_s=18.0, **short) == []
    assert raised({"sample_interval_s": 0.1}, duration_s=18.0, **short) == ["unequal-intervals"]
    assert raised(duration_s=150.0, **short) == ["unequal-intervals"]
    assert raised(duration_s=18.0, own_groups_error_ratio=0.19) == ["mislabelled-row"]
    assert raised(duration_s=18.0, own_sum_bps=104.8e6) == ["unequal-intervals"]


def test_the_base_delay_in_the_model() -> None:
    assert raised(own_rtt_ms=20.0) == ["standing-queue"]
    assert raised(own_rtt_ms=212.0) == []


def test_flows_that_are_missing_explain_the_rest() -> None:
    assert raised(flows=9, own_flows=9) == ["missing-flows"]
    assert raised(own_flows=9) == ["missing-flows"]
    assert raised(flows=9, own_flows=10, own_sum_bps=80e6, own_groups_error_ratio=0.2) == [
        "missing-flows"
    ]
    assert raised({"flows": 9}, flows=9, own_flows=9) == []


def test_rows_under_another_name() -> None:
    assert raised(own_groups_error_ratio=0.13) == ["mislabelled-row"]
    assert raised(own_groups_error_ratio=0.02) == []


@pytest.mark.parametrize(
    ("judged_by", "share", "found"),
    [("percent", 0.0096, True), ("fair-share", 0.0096, False), ("percent", 0.0011, False)],
)
def test_shares_of_a_thousand(judged_by: str, share: float, found: bool) -> None:
    seen = {"rival_share": share, "rival_fair_share": 0.001, "rivals_found": 1}
    assert raised({"judged_by": judged_by, "rival_flows": 1}, **seen) == ["fair-share"] * found


def test_segments_together_explain_what_their_drops_are() -> None:
    large = {"queue_packet_bytes": 2988.0, "retransmits": 500}
    assert raised({"loss_by": "retransmissions"}, **large) == ["offload"]
    assert raised(queue_packet_bytes=1514.4) == []


def test_other_labs_are_not_judged_by_what_they_lack() -> None:
    other = load_lab(ROOT, "queues")
    case = RunUnderTest(
        {**other.defaults(), **other.trials[1].set}, {"flows": 2, "goodput_bps": 95e6}
    )
    ids = {one.id for one in causes(case)}
    assert not ids & {"missing-flows", "unequal-intervals", "standing-queue", "fair-share"}
