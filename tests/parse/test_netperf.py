"""What netperf prints, and flent's data files."""

import pytest
from tool_outputs import read

from measuretwice.parse import ParseError
from measuretwice.parse.netperf import parse_flent, parse_netperf

STREAM = read("netperf/derived-netperf-2.7-stream-interim-cpu.txt")
PAIRS = read("netperf/derived-netperf-2.7-omni-pairs.txt")
FLENT = read("flent/derived-flent-2.1-tcp-upload.json")


def test_a_classic_test_has_its_rate_its_time_its_intervals_and_the_processors() -> None:
    (test,) = parse_netperf(STREAM, "a file")
    assert (test.rate_bps, test.seconds, test.unfit) == (10.80e6, 3.01, None)
    assert (test.own_cpu_percent, test.other_cpu_percent) == (1.25, 0.93)
    assert test.rows[0] == (0.0, 1.002, round(10.48e6 * 1.002 / 8))
    assert len(test.rows) == 3


def test_megabytes_are_powers_of_1024() -> None:
    (test,) = parse_netperf(STREAM.replace("10^6bits/s  % S", "MBytes  /s  % S"), "a file")
    assert test.rate_bps == 10.80 * 8 * 1024**2


@pytest.mark.parametrize("text", [PAIRS, read("netperf/derived-netperf-2.7-omni-csv.txt")])
def test_an_omni_test_is_read_as_pairs_and_as_csv(text: str) -> None:
    (test,) = parse_netperf(text, "a file")
    assert (test.rate_bps, test.seconds, test.retransmits) == (10.98e6, 240.02, 228)


def test_pairs_name_algorithm_and_segment_size() -> None:
    (test,) = parse_netperf(PAIRS, "a file")
    assert (test.congestion_control, test.mss_bytes) == ("reno", 1448)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (STREAM.replace("TCP STREAM", "UDP STREAM"), "a test of UDP"),
        (PAIRS.replace("PROTOCOL=TCP", "PROTOCOL=UDP"), "a test of UDP"),
        (read("netperf/derived-netperf-2.6-requests.txt"), "requests and responses"),
        (PAIRS.replace("DIRECTION=Send", "DIRECTION=Send|Recv"), "requests and responses"),
    ],
)
def test_what_is_no_bulk_transfer_of_tcp_says_so(text: str, problem: str) -> None:
    (test,) = parse_netperf(text, "a file")
    assert problem in str(test.unfit)


def test_a_test_without_its_result_was_killed() -> None:
    with pytest.raises(ParseError, match="cut off"):
        parse_netperf(STREAM[: STREAM.index("131072")], "a file")


def test_two_tests_are_two() -> None:
    assert [test.seconds for test in parse_netperf(STREAM + PAIRS, "a file")] == [3.01, 240.02]


def test_flent_has_what_its_tools_said_at_their_end() -> None:
    (test,) = parse_flent(FLENT, "a file")
    assert (test.rate_bps, test.seconds, test.flows) == (10.94e6, 10.02, 1)
    assert (test.retransmits, test.congestion_control, test.mss_bytes) == (9, "reno", 1448)
    assert test.ping_min_ms is not None
    assert 40.0 <= test.ping_min_ms <= 40.6


def test_flent_without_words_of_its_tools_has_the_mean_of_the_series() -> None:
    (test,) = parse_flent(FLENT.replace("SERIES_META", "OTHER"), "a file")
    assert test.rate_bps == pytest.approx(10.9e6, rel=0.05)
    assert (test.seconds, test.retransmits) == (10, None)


def test_flent_in_both_directions_is_unfit() -> None:
    (test,) = parse_flent(
        FLENT.replace('"TCP upload": [', '"TCP download": [1, 2], "TCP upload": ['), "a file"
    )
    assert "both directions" in str(test.unfit)


def test_flent_without_a_flow_is_refused() -> None:
    with pytest.raises(ParseError, match="no series is of TCP"):
        parse_flent(FLENT.replace('"TCP upload', '"UDP upload'), "a file")
