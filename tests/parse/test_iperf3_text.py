"""iperf3's text output. The expected values were read from the files by eye."""

from __future__ import annotations

import pytest
from tool_outputs import read

from measuretwice.parse import (
    Iperf3Connection,
    ParseError,
    TruncatedError,
    parse_iperf3_server_text,
    parse_iperf3_text,
)

MIB = 1024 * 1024


def test_one_flow() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.9-one-flow.txt"), "a.txt")
    assert run.connections == (Iperf3Connection(5, "10.10.1.100", 59950, "10.10.2.100", 5201),)
    first, second = run.intervals
    assert (first.start_s, first.end_s, first.bytes) == (0, 1, round(3.96 * MIB))
    assert (first.rate_bps, first.retransmits, first.snd_cwnd_bytes) == (33.2e6, 23, 8755)
    assert (second.retransmits, second.snd_cwnd_bytes) == (13, round(18.5 * 1024))
    assert (run.sent_bytes, run.sent_seconds) == (round(7.70 * MIB), 2.0)
    assert (run.sent_rate_bps, run.retransmits) == (32.3e6, 36)
    assert (run.received_bytes, run.received_seconds) == (round(7.36 * MIB), 2.03)
    assert run.received_rate_bps == 30.4e6
    assert (run.protocol, run.reverse, run.bidirectional) == ("TCP", False, False)
    assert (run.version, run.error, first.rtt_us) == (None, None, None)


def test_verbose() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.12-verbose.txt"), "a.txt")
    assert (run.version, run.start_time_s) == ("3.12", 1795212903)
    assert (run.protocol, run.num_streams, run.omit_s, run.duration_s) == ("TCP", 1, 0, 2)
    assert (run.mss_default_bytes, run.mss_requested_bytes) == (1460, None)
    assert run.congestion_control == "cubic"
    assert (run.retransmits, run.sent_rate_bps) == (38, 42.3e6)


def test_damaged_shares_of_processors_are_left_out() -> None:
    text = read("iperf3/iperf3-3.12-verbose.txt")
    line = next(line for line in text.splitlines() if "CPU Utilization" in line)
    damaged = text.replace(line, "CPU Utilization: local/sender 1.2.3% (u), remote/receiver .% (u)")
    assert parse_iperf3_text(damaged, "a.txt").own_cpu_percent is None


def test_two_flows_with_omitted_seconds() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.18-two-flows-omit.txt"), "a.txt")
    assert [i.stream_id for i in run.intervals] == [5, 7] * 3
    assert [i.omitted for i in run.intervals] == [True] * 2 + [False] * 4
    assert [(s.stream_id, s.retransmits) for s in run.streams] == [(5, 31), (7, 30)]
    assert [s.receiver_rate_bps for s in run.streams] == [29.8e6, 29.3e6]
    assert (run.sent_bytes, run.retransmits) == (round(13.4 * MIB), 61)
    assert (run.received_seconds, run.received_rate_bps) == (2.01, 59.1e6)


def test_reverse() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.18-reverse.txt"), "a.txt")
    assert run.reverse is True
    assert [i.rate_bps for i in run.intervals] == [3.03e9, 3.18e9]
    assert all(i.retransmits is None and i.is_sender is False for i in run.intervals)
    assert (run.sent_seconds, run.retransmits, run.received_bytes) == (2.01, 0, 740 * MIB)


def test_bidirectional() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.18-bidir.txt"), "a.txt")
    assert run.bidirectional is True
    assert [(s.stream_id, s.is_sender) for s in run.streams] == [(5, True), (7, False)]
    assert (run.sent_rate_bps, run.received_rate_bps, run.retransmits) == (31.5e6, 30.8e6, 27)
    assert run.streams[1].receiver_rate_bps == 3.10e9


def test_timestamps_and_kbit() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.18-timestamps-kbit.txt"), "a.txt")
    assert [i.rate_bps for i in run.intervals] == [42949e3, 27263e3]
    assert (run.sent_rate_bps, run.retransmits) == (35110e3, 34)


def test_megabytes_per_second_are_of_1024() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.18-mbyte.txt"), "a.txt")
    assert run.sent_rate_bps == 6.19 * 8 * MIB
    assert run.sent_bytes == round(12.4 * MIB)


@pytest.mark.parametrize("version", ["3.9", "3.22"])
def test_udp(version: str) -> None:
    run = parse_iperf3_text(read(f"iperf3/iperf3-{version}-udp.txt"), "a.txt")
    assert (run.protocol, run.retransmits) == ("UDP", None)
    assert len(run.intervals) == 1
    assert (run.sent_bytes, run.sent_rate_bps) == (245 * 1024, 2.01e6)
    assert (run.received_bytes, run.received_seconds) == {
        "3.9": (241 * 1024, 1.05),
        "3.22": (244 * 1024, 1.01),
    }[version]


def test_udp_of_3_1_has_unmarked_totals() -> None:
    run = parse_iperf3_text(read("iperf3/derived-iperf3-3.1-udp.txt"), "a.txt")
    assert len(run.intervals) == 1
    assert (run.sent_bytes, run.received_bytes) == (245 * 1024, None)


def test_errors_are_kept() -> None:
    run = parse_iperf3_text(read("iperf3/iperf3-3.12-refused.txt"), "a.txt")
    assert run.error == "unable to connect to server: Connection refused"
    assert (run.sent_bytes, run.intervals) == (None, ())
    run = parse_iperf3_text(read("iperf3/iperf3-3.12-interrupted.txt"), "a.txt")
    assert run.error == "interrupt - the client has terminated"
    assert (run.sent_bytes, run.retransmits) == (256 * 1024, 5)
    assert (run.received_bytes, run.received_rate_bps) == (None, None)


def test_nan_is_none() -> None:
    text = read("iperf3/iperf3-3.9-one-flow.txt").replace("33.2 Mbits", "-nan bits")
    assert parse_iperf3_text(text, "a.txt").intervals[0].rate_bps is None


def test_killed_before_the_end() -> None:
    text = read("iperf3/iperf3-3.9-one-flow.txt")
    with pytest.raises(TruncatedError, match=r"^a\.txt, line 9: .*'iperf Done\.'"):
        parse_iperf3_text(text.replace("iperf Done.\n", ""), "a.txt")


def test_unreadable_numbers_and_second_runs() -> None:
    text = read("iperf3/iperf3-3.9-one-flow.txt")
    for old, new in [("3.96 MB", "3.9.6 MB"), ("33.2 M", "33,2 M"), ("   23   8.55", "   23 x")]:
        with pytest.raises(ParseError, match="line 4: found"):
            parse_iperf3_text(text.replace(old, new), "a.txt")
    with pytest.raises(ParseError, match="line 12: a second run"):
        parse_iperf3_text(text + text, "a.txt")


def test_a_servers_tests() -> None:
    """One after another: one flow, two, one the other way round, one over UDP; then it waits."""
    text = read("iperf3/iperf3-3.12-server-several.txt")
    one, two, reverse, udp = parse_iperf3_server_text(text, "server.txt")
    assert all(run.server for run in (one, two, reverse, udp))
    assert (one.received_bytes, one.received_rate_bps, one.sent_bytes) == (2_621_440, 21e6, None)
    assert [c.remote_port for c in one.connections] == [52368]
    assert (two.received_bytes, len(two.streams), two.reverse) == (5_242_880, 2, False)
    assert (reverse.sent_bytes, reverse.reverse, reverse.retransmits) == (2_621_440, True, 0)
    assert (udp.protocol, udp.received_bytes) == ("UDP", 262_144)


def test_a_server_that_waits_and_one_that_was_killed() -> None:
    assert parse_iperf3_server_text(read("iperf3/iperf3-3.12-server-idle.txt"), "a.txt") == ()
    (run,) = parse_iperf3_server_text(read("iperf3/iperf3-3.12-server-verbose.txt"), "a.txt")
    assert (run.version, run.start_time_s) == ("3.12", 1795431566)
    with pytest.raises(TruncatedError, match="was it killed"):
        parse_iperf3_server_text(read("iperf3/iperf3-3.12-server-killed.txt"), "a.txt")
