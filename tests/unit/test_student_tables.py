"""Tables that a person took from a tool's text, compared with the samples of the same run."""

from __future__ import annotations

import pytest
from made_traces import trace_of

from measuretwice.measure.student_tables import (
    TableRow,
    compare_rows,
    over_truth,
    read_rows,
    read_table,
)


def test_rows_count_what_is_wrong_in_them() -> None:
    rows = read_rows("0.1 10\n0.2 20\n0.1 30\n0.2\nhello\n\n0.3 1.5\n")
    assert rows.values == [10, 20, 30, 1.5]
    assert rows.backwards == 1
    assert rows.unreadable == 3
    assert read_rows("").values == []


def test_a_wrong_unit_shows_in_the_large_values() -> None:
    times = [float(n) for n in range(100)]
    truth = [500.0 + 20 * n for n in range(100)]
    wrong = [value if value < 1024 else value / 1024 * 1000 for value in truth]
    text = "\n".join(f"{n} {value}" for n, value in zip(times, wrong, strict=True))
    assert over_truth(read_rows(text), 0.0, times, truth) == pytest.approx(1000 / 1024, abs=1e-4)
    right = "\n".join(f"{n} {value}" for n, value in zip(times, truth, strict=True))
    assert over_truth(read_rows(right), 0.0, times, truth) == 1
    assert over_truth(read_rows(""), 0.0, times, truth) is None


def test_a_step_of_the_window_is_no_wrong_unit() -> None:
    times = [float(n) for n in range(10)]
    late = "\n".join(f"{n} 81.4" for n in range(10))
    assert over_truth(read_rows(late), 0.0, times, [80.0] * 10) == 1.0175
    assert over_truth(read_rows(late), 0.0, times, [80.0] * 10, grain=2.8) == 1
    large = "\n".join(f"{n} 1000" for n in range(10))
    assert over_truth(read_rows(large), 0.0, times, [1024.0] * 10, grain=2.8) == pytest.approx(
        0.979, abs=1e-3
    )


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
