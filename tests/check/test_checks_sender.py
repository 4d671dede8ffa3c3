"""The checks of one sender looked at closely, at and beside their thresholds."""

from __future__ import annotations

from measuretwice.checks import RunUnderTest, causes
from measuretwice.lab import Value

WANTED: dict[str, Value] = {"congestion_control": "vegas", "average_from_s": 30}
GOOD: dict[str, float | int | None] = {
    "congestion_control": "vegas",
    "steady_goodput_bps": 95e6,
    "sender_path_rtt_ms": 40.0,
    "tcp_min_rtt_ms": 40.0,
    "cwnd_over_rate_ms": 41.3,
    "rising_ratio": 1.0,
    "rising_steps": 2,
    "table_rows": 60,
    "table_rows_foreign": 0,
    "table_interval_s": 1.0,
    "table_lowest_bps": 90e6,
    "lowest_tenth_bps": 80e6,
}


def raised(wanted: dict[str, Value], **measured: float | int | None) -> list[str]:
    return [one.id for one in causes(RunUnderTest(WANTED | wanted, GOOD | measured))]


def test_a_sender_as_it_should_be() -> None:
    assert raised({}) == []


def test_another_algorithm_than_was_meant() -> None:
    assert raised({"congestion_control": "bbr"}) == ["wrong-algorithm"]
    # Whether that one has settled is no question then.
    assert raised({"congestion_control": "bbr"}, rising_ratio=3, rising_steps=4) == [
        "wrong-algorithm"
    ]


def test_the_senders_own_queue() -> None:
    assert raised({"host_qdisc": "fq"}, host_queue_kind="pfifo_fast") == ["host-qdisc"]
    assert raised({"host_qdisc": "fq"}, host_queue_kind="fq") == []
    # One thing at a time: first the algorithm.
    wrong = {"host_qdisc": "fq", "congestion_control": "bbr"}
    assert raised(wrong, host_queue_kind="pfifo_fast") == ["wrong-algorithm"]
    # Not looked at: nothing is said.
    assert raised({"host_qdisc": "fq"}) == []


def test_no_answer_comes_sooner_than_the_path_allows() -> None:
    assert raised({}, tcp_min_rtt_ms=1.1) == ["terminated-tcp"]
    assert raised({}, cwnd_over_rate_ms=0.18) == ["terminated-tcp"]
    # A window that isn't full makes the quotient larger, and that is no fault.
    assert raised({}, cwnd_over_rate_ms=83.0) == []
    # A radio's ping may find a longer path than TCP's best packet.
    assert raised({}, sender_path_rtt_ms=45.0) == []
    assert raised({}, sender_path_rtt_ms=None, tcp_min_rtt_ms=1.1) == []


def test_a_rate_that_still_rises() -> None:
    assert raised({}, rising_ratio=1.26, rising_steps=4) == ["ten-seconds"]
    assert raised({}, rising_ratio=1.24, rising_steps=4) == []
    assert raised({}, rising_ratio=2.0, rising_steps=3) == []
    # A saw's tooth rises too.
    assert raised({}, rising_ratio=2.0, rising_steps=4, steady_retransmits=3) == []


def test_rows_that_hide_what_a_loss_did() -> None:
    assert raised({}, lowest_tenth_bps=20e6) == ["averages-hide"]
    assert raised({}, lowest_tenth_bps=20e6, table_interval_s=0.1) == []
    assert raised({}, lowest_tenth_bps=None) == []


def test_a_table_of_two_runs() -> None:
    assert raised({}, table_rows_foreign=19) == ["mixed-runs"]
    assert raised({}, table_rows_foreign=18) == []
