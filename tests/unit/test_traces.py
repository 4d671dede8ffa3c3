"""Traces over time: decreases, convergence, the steady state, and sequence numbers of a capture."""

from __future__ import annotations

import pytest
from made_traces import trace_of

from measuretwice.parse import ParseError
from measuretwice.parse.tcpdump import parse_tcpdump
from measuretwice.tcp.traces import (
    convergence_s,
    data_connection,
    decreases,
    interpolate,
    lowest_tenth_bps,
    steady_state,
    sustained_convergence_s,
    time_sequence,
)

OURS, THEIRS = "10.4.1.2.58422", "10.4.3.2.5201"
TEXT = f"""\
1700000006.884614 IP {OURS} > {THEIRS}: Flags [S], seq 3214369442, win 64240, options [mss 1460,sackOK,TS val 3881712492 ecr 0,nop,wscale 7], length 0
1700000006.924614 IP {THEIRS} > {OURS}: Flags [S.], seq 21391623, ack 3214369443, win 65160, options [mss 1460], length 0
1700000006.924700 IP {OURS} > {THEIRS}: Flags [.], seq 1:1001, ack 1, win 502, options [nop,nop,TS val 1 ecr 2], length 1000
1700000006.924800 IP {OURS} > {THEIRS}: Flags [.], seq 1001:2001, ack 1, win 502, length 1000
1700000006.924900 IP {OURS} > {THEIRS}: Flags [P.], seq 2001:3001, ack 1, win 502, length 1000
1700000006.964700 IP {THEIRS} > {OURS}: Flags [.], ack 1001, win 501, length 0
1700000006.964900 IP {THEIRS} > {OURS}: Flags [.], ack 1001, win 501, options [nop,nop,sack 1 {{2001:3001}}], length 0
1700000006.965000 IP {OURS} > {THEIRS}: Flags [.], seq 1001:2001, ack 1, win 502, length 1000
1700000007.005000 IP {THEIRS} > {OURS}: Flags [.], ack 3001, win 501, length 0
1700000007.006000 IP 10.4.1.2.58400 > {THEIRS}: Flags [P.], seq 1:38, ack 1, win 502, length 37
"""


def test_a_decrease_is_a_change_of_ssthresh_against_the_window_before() -> None:
    found = decreases([0, 1, 2, 3, 4, 5], [10, 80, 100, 50, 120, 84], [None, None, 70, 70, 70, 84])
    assert [(cut.time_s, cut.window_segments, cut.kept_ratio) for cut in found] == [(5, 120, 0.7)]


def test_the_end_of_the_first_slow_start_is_no_decrease() -> None:
    assert decreases([0, 1, 2], [10, 400, 100], [None, 200, 200]) == []


def flow(*rates: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Times and bytes of a flow with one rate until a time, then the next."""
    times, acked = [0.0], [0.0]
    for until, rate in rates:
        while times[-1] < until:
            times.append(times[-1] + 1)
            acked.append(acked[-1] + rate)
    return times, acked


def test_convergence_counts_from_the_start_to_the_first_even_ten_seconds() -> None:
    first, second = flow((20, 90), (60, 50)), flow((20, 10), (60, 50))
    found = convergence_s([first, second], 0, 60)
    # At 28 s the second has had 2 s of 10 and 8 s of 50: 420 of 1000, its fair share less 16 %.
    assert found == 28
    assert convergence_s([flow((60, 90)), flow((60, 10))], 0, 60) is None
    assert convergence_s([flow((60, 5)), flow((60, 5))], 0, 60) == 10
    assert convergence_s([flow((60, 0)), flow((60, 0))], 0, 60) is None


def test_convergence_that_lasts_is_no_lucky_start() -> None:
    alike_at_first = [flow((15, 50), (120, 90)), flow((15, 50), (120, 10))]
    assert convergence_s(alike_at_first, 0, 120) == 10
    assert sustained_convergence_s(alike_at_first, 0, 120) is None
    late = [flow((20, 90), (120, 50)), flow((20, 10), (120, 50))]
    assert sustained_convergence_s(late, 0, 120) == 28
    # One swing of ten seconds makes some twenty moments uneven: too many of 83, but not of 293.
    swing = [(40, 50), (50, 90), (330, 50)], [(40, 50), (50, 10), (330, 50)]
    assert sustained_convergence_s([flow(*rates) for rates in swing], 0, 120) == 58
    assert sustained_convergence_s([flow(*rates) for rates in swing], 0, 330) == 10
    # With less than half a minute left, nobody can say that it lasts.
    at_the_end = [flow((100, 90), (120, 50)), flow((100, 10), (120, 50))]
    assert convergence_s(at_the_end, 0, 120) == 108
    assert sustained_convergence_s(at_the_end, 0, 120) is None


def test_a_value_between_samples() -> None:
    assert interpolate([0, 10], [0, 100], 2.5) == 25
    assert interpolate([0, 10], [0, 100], -1) == 0
    assert interpolate([0, 10], [0, 100], 11) == 100


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


def test_sent_again_and_acknowledged() -> None:
    seen = time_sequence(parse_tcpdump(TEXT, "capture.txt"))
    assert [first for _, first, _ in seen.sent] == [1, 1001, 2001]
    assert seen.again == [(0.0403, 1001, 2001)]
    assert seen.acked == [(0.04, 1001), (0.0803, 3001)]


def test_the_connection_with_most_data_is_meant() -> None:
    assert data_connection(parse_tcpdump(TEXT, "capture.txt")) == ("10.4.1.2", 58422)


def test_a_line_cut_off_at_the_end_is_left_out() -> None:
    assert len(parse_tcpdump(TEXT[:-40], "capture.txt")) == 9


def test_another_tools_text_is_refused() -> None:
    with pytest.raises(ParseError, match="ping output"):
        parse_tcpdump("PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n", "capture.txt")


def test_a_capture_without_data() -> None:
    with pytest.raises(ValueError, match="no data"):
        data_connection(parse_tcpdump(TEXT.splitlines(keepends=True)[0], "capture.txt"))
