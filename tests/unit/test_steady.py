"""A sender that has steady_state, and a table that is held against its trace."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from measuretwice.measure.student_tables import TableRow, compare_rows, read_table
from measuretwice.tcp.traces import lowest_tenth_bps, steady_state


@dataclass(frozen=True)
class Trace:
    time_s: list[float]
    cwnd_segments: list[int]
    rtt_ms: list[float]
    min_rtt_ms: list[float | None]
    acked_bytes: list[int]
    retransmits: list[int]
    mss_bytes: int | None = 1000


def trace_of(rates_bps: list[float], cwnd: list[int] | None = None, step_s: float = 0.1) -> Trace:
    """A sample each `step_s`, with so many bits a second acknowledged since the one before."""
    acked = [0]
    for rate in rates_bps:
        acked.append(acked[-1] + round(rate * step_s / 8))
    count = len(acked)
    return Trace(
        [100 + n * step_s for n in range(count)],
        cwnd or [50] * count,
        [40.0] * count,
        [40.0] * count,
        acked,
        [0] * count,
    )


def test_a_steady_flow() -> None:
    values = steady_state(trace_of([10e6] * 100), 102, 110)
    assert values["steady_goodput_bps"] == pytest.approx(10e6)
    assert values["rising_ratio"] == pytest.approx(1)
    # 50 segments of 1000 bytes at 10 Mbit/s.
    assert values["cwnd_over_rate_ms"] == pytest.approx(40)


def test_a_rising_flow_rises_in_each_fifth() -> None:
    values = steady_state(trace_of([1e6 * n for n in range(1, 101)]), 100, 110)
    assert values["rising_steps"] == 4
    assert (values["rising_ratio"] or 0) > 5


def test_too_short_a_time_says_nothing() -> None:
    assert steady_state(trace_of([10e6] * 100), 109.8, 110) == {}


def test_the_lowest_tenth() -> None:
    rates = [10e6] * 100
    rates[50] = 1e6
    assert lowest_tenth_bps(trace_of(rates)) == pytest.approx(1e6, rel=0.01)
    # The first second is slow start's.
    rates[50], rates[3] = 10e6, 1e6
    assert lowest_tenth_bps(trace_of(rates)) == pytest.approx(10e6, rel=0.01)


def test_samples_too_far_apart_know_no_tenth() -> None:
    assert lowest_tenth_bps(trace_of([10e6] * 20, step_s=0.5)) is None


SAW = [40 + n % 40 for n in range(101)]


def rows_of(cwnd: list[int], every: int, offset_s: float = 0.0) -> list[TableRow]:
    """A table as iperf3 would make it of this trace, its clock `offset_s` late."""
    late = round(offset_s * 10)
    return [
        TableRow(end / 10 - every / 10, end / 10, 10e6, 1000 * cwnd[end + late], 0)
        for end in range(every, 100 - late, every)
    ]


@pytest.mark.parametrize("offset_s", [0.0, 0.2])
def test_a_table_of_the_same_run_has_no_foreign_row(offset_s: float) -> None:
    trace = trace_of([10e6] * 100, SAW)
    assert compare_rows(rows_of(SAW, 1, offset_s), trace)["table_rows_foreign"] == 0


def test_a_table_of_another_run_has_many() -> None:
    other = [40 + (7 * n) % 60 for n in range(101)]
    values = compare_rows(rows_of(other, 1), trace_of([10e6] * 100, SAW))
    assert (values["table_rows_foreign"] or 0) > 50


def test_the_lowest_row_leaves_out_the_first_second_and_a_cut_off_last_one() -> None:
    rows = [TableRow(n, n + 1, rate, 50_000, 0) for n, rate in enumerate((1e6, 9e6, 8e6, 9e6))]
    rows.append(TableRow(4, 4.1, 0, 50_000, 0))
    assert compare_rows(rows, trace_of([10e6] * 100))["table_lowest_bps"] == 8e6


def test_a_table_is_read_whole_or_not_at_all() -> None:
    assert read_table("0 1 5 6 7\n") == [TableRow(0, 1, 5, 6, 7)]
    with pytest.raises(ValueError, match="line 2"):
        read_table("0 1 5 6 7\n1 2 x\n")


def test_a_coarse_trace_does_not_judge_a_table() -> None:
    trace = trace_of([10e6] * 20, step_s=0.5)
    assert compare_rows(rows_of(SAW, 1), trace)["table_rows_foreign"] is None
