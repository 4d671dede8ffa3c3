"""The checks of queues and of claims about them, on cases made by hand."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from measuretwice.checks import Member, RunUnderTest, causes
from measuretwice.checks.queue_discipline import cell_log, small_n
from measuretwice.checks.shared_queue import same_numbers
from measuretwice.lab import load_lab
from measuretwice.measure import imported

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "queues")
WANTED: dict[str, Any] = {
    "discipline": "red",
    "receiver": "host-3",
    "parallel_flows": 2,
    "rate_mbit": 100,
    "rtt_ms": 2,
    "red_avpkt_bytes": 1000,
    "red_burst_packets": 141,
    "judged_by": "delay",
}
HONEST: dict[str, Any] = {
    "flows": 2,
    "goodput_bps": 95.6e6,
    "rtt_min_ms": 2.0,
    "utilisation": 0.999,
    "queue_mean_packets": 71.0,
    "queue_drops": 60,
    "queue_marks": 0,
    "queue_delay_mean_ms": 9.1,
    "queue_kind": "red",
    "red_limit_bytes": 366000,
    "red_max_bytes": 225000,
    "red_ewma_log": 6,
    "red_cell_log": 13,
    "rate_rows": 20,
    "rate_rows_spanning": 0,
    "host_3_received_flows": 2,
}


def raised(wanted: dict[str, Any] | None = None, **measured: Any) -> list[str]:
    return [
        f.id for f in causes(RunUnderTest({**WANTED, **(wanted or {})}, {**HONEST, **measured}))
    ]


def test_an_honest_run_raises_nothing() -> None:
    assert raised() == []


@pytest.mark.parametrize(
    ("measured", "finding"),
    [
        ({"red_limit_bytes": 346000}, "red-limits"),
        ({"red_cell_log": 16}, "red-bandwidth"),
        ({"red_cell_log": 12}, "red-bandwidth"),
        ({"rate_rows": 22, "rate_rows_spanning": 2}, "summary-row"),
        ({"host_3_received_flows": 0, "host_4_received_flows": 2}, "copied-cell"),
        ({"host_3_received_flows": 1, "host_4_received_flows": 1}, "copied-cell"),
        (
            {"utilisation": 0.1, "queue_mean_packets": 0.0, "queue_drops": 0},
            "no-bottleneck",
        ),
    ],
)
def test_each_symptom_raises_its_own_finding(measured: dict[str, Any], finding: str) -> None:
    assert raised(**measured) == [finding]


def test_iperf2_csv_that_a_person_brings(tmp_path: Path) -> None:
    """Two senders' files, then one of them copied under a third name."""
    corpus = Path(__file__).parents[1] / "data" / "parse" / "iperf2"
    first, second = tmp_path / "fifo-run1-h1-h3.txt", tmp_path / "fifo-run1-h2-h3.txt"
    shutil.copyfile(corpus / "iperf2-2.1.8-one-flow.csv", first)
    shutil.copyfile(corpus / "iperf2-2.1.8-two-flows.csv", second)
    brought = imported.read_files([tmp_path])
    assert brought.measured["flows"] == 3
    assert brought.measured["goodput_bps"] == pytest.approx(
        8 * (10_616_892 / 4 + 2 * 7_995_452 / 3)
    )
    assert causes(RunUnderTest({"parallel_flows": 3}, brought.measured)) == []
    shutil.copyfile(first, tmp_path / "fifo-run1-h2-h4.txt")
    brought = imported.read_files([tmp_path])
    found = causes(RunUnderTest({"parallel_flows": 3}, brought.measured))
    assert [finding.id for finding in found] == ["copied-cell"]
    assert brought.measured["flows"] == 3


def test_findings_that_depend_on_what_was_wanted() -> None:
    assert raised({"discipline": "pfifo_fast"}) == ["default-qdisc"]
    assert raised({"judged_by": "throughput"}) == ["wrong-metric"]
    # A link with room to spare may well differ in throughput.
    assert raised({"judged_by": "throughput"}, utilisation=0.7) == []
    # A short queue alone is what good disciplines are for.
    assert raised(queue_mean_packets=0.5, queue_drops=0) == []
    assert raised({"receiver": None, "discipline": None}) == []


def test_what_tc_gives_red_for_a_link() -> None:
    """tc's own numbers, printed for avpkt 1000 and burst 141 (ewma 6)."""
    assert cell_log(20, 1000, 6) == 15
    assert cell_log(10, 1000, 6) == 16


def member(trial: int, discipline: str, **changed: Any) -> Member:
    measured = {**HONEST, "host_1_goodput_bps": 47e6, "host_2_goodput_bps": 48e6}
    params = {**WANTED, "discipline": discipline, "claim": changed.pop("claim", "none")}
    return Member(trial, (), 1, params, {**measured, **changed})


def test_a_file_read_twice() -> None:
    twice = [member(1, "red"), member(2, "red")]
    finding = same_numbers(LAB, twice)
    assert finding is not None
    assert (finding.id, finding.measured[:24]) == ("copied-cell", "trials 1 and 2 agree in ")
    assert same_numbers(LAB, [twice[0], member(2, "red", goodput_bps=95.7e6)]) is None
    # The same trial twice may be the same run twice.
    assert same_numbers(LAB, [twice[0], twice[0]]) is None


def arms(count: int, claim: str, delay_ms: float = 100.0) -> list[Member]:
    return [
        member(
            n,
            discipline,
            claim=claim,
            host_1_goodput_bps=1e6 * (47 + n % 3),
            busy_ping_mean_ms=(delay_ms if discipline == "red" else 100.0) + n % 3,
        )
        for discipline in ("red", "pfifo_fast")
        for n in range(count)
    ]


def test_claims_need_enough_values() -> None:
    finding = small_n(LAB, arms(4, "spread"))
    assert finding is not None
    assert finding.id == "small-n"
    assert finding.measured.startswith("8 values an arm")
    assert small_n(LAB, arms(30, "spread")) is None
    assert small_n(LAB, arms(4, "none")) is None
    assert small_n(LAB, arms(4, "delay", delay_ms=10.0)) is None
    assert small_n(LAB, arms(4, "delay")) is not None
