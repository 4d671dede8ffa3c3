"""iperf3's JSON. The expected values were read from the files by eye."""

from __future__ import annotations

import re

import pytest
from tool_outputs import read

from measuretwice.parse import Iperf3Connection, ParseError, parse_iperf3_json


def test_one_flow() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.22-one-flow.json"), "a.json")
    assert run.version == "3.22"
    assert (run.protocol, run.duration_s, run.omit_s, run.num_streams) == ("TCP", 2, 0, 1)
    assert (run.interval_s, run.reverse, run.bidirectional) == (1, False, False)
    assert (run.mss_requested_bytes, run.mss_default_bytes) == (1460, None)
    assert run.congestion_control == "reno"
    assert run.error is None
    assert (run.sent_bytes, run.sent_seconds, run.retransmits) == (12320768, 2.000007, 44)
    assert run.sent_rate_bps == 49282899.509851716
    assert (run.received_bytes, run.received_seconds) == (10223616, 2.006009)
    assert run.received_rate_bps == 40771964.632262364
    (stream,) = run.streams
    assert (stream.stream_id, stream.is_sender, stream.max_snd_cwnd_bytes) == (4, True, 24820)
    assert (stream.min_rtt_us, stream.mean_rtt_us, stream.max_rtt_us) == (6001, 6033, 6065)


def test_intervals_of_3_9() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.9-one-flow.json"), "a.json")
    assert run.start_time_s == 1795212779
    assert run.connections == (Iperf3Connection(5, "10.10.1.100", 35878, "10.10.2.100", 5201),)
    first, second = run.intervals
    assert (first.stream_id, first.start_s, first.end_s) == (5, 0, 1.000052)
    assert (first.bytes, first.rate_bps, first.retransmits) == (4613600, 36906881.755585022, 14)
    assert (first.snd_cwnd_bytes, first.rtt_us, first.rttvar_us) == (29200, 6001, 0)
    assert (first.pmtu_bytes, first.omitted, first.is_sender) == (1500, False, True)
    assert (second.start_s, second.end_s, second.rtt_us) == (1.000052, 2.000052, 6071)
    assert (run.interval_s, run.bidirectional) == (None, None)  # 3.9 doesn't write them


def test_a_receivers_time_is_its_own() -> None:
    # `seconds` in the receiver's block is the sender's 2.000052; the rate is over 2.029052.
    (stream,) = parse_iperf3_json(read("iperf3/iperf3-3.9-one-flow.json"), "a.json").streams
    assert stream.receiver_seconds == 2.029052
    assert stream.receiver_bytes == 8952720
    assert stream.receiver_rate_bps == pytest.approx(8952720 * 8 / 2.029052)


def test_start_time_in_milliseconds_where_written() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.22-two-flows-omit.json"), "a.json")
    assert run.start_time_s is not None
    assert run.start_time_s % 1 != 0


def test_two_flows_with_omitted_seconds() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.9-two-flows-omit.json"), "a.json")
    assert (run.num_streams, run.omit_s, run.mss_requested_bytes) == (2, 1, None)
    assert run.mss_default_bytes == 1460
    assert [c.stream_id for c in run.connections] == [5, 7]
    assert [i.stream_id for i in run.intervals] == [5, 7] * 3
    assert [i.omitted for i in run.intervals] == [True] * 2 + [False] * 4
    assert [s.sender_bytes for s in run.streams] == [8479680, 8222720]
    assert [s.retransmits for s in run.streams] == [31, 32]
    assert (run.sent_bytes, run.retransmits) == (16702400, 63)
    assert (run.received_bytes, run.received_seconds) == (17076160, 2.029001)


@pytest.mark.parametrize("version", ["3.9", "3.18"])
def test_reverse_has_no_tcp_info_of_this_host(version: str) -> None:
    run = parse_iperf3_json(read(f"iperf3/iperf3-{version}-reverse.json"), "a.json")
    assert run.reverse is True
    (stream,) = run.streams
    assert stream.is_sender is False
    # iperf3 writes zeros: this host has no sender whose windows and times it could read.
    assert (stream.max_snd_cwnd_bytes, stream.min_rtt_us, stream.max_rtt_us) == (None, None, None)
    assert stream.retransmits == 0
    assert all(i.rtt_us is None and i.retransmits is None for i in run.intervals)
    assert (stream.sender_seconds, stream.receiver_seconds) == {
        "3.9": (2.04105, 2.000051),
        "3.18": (2.007003, 2.001001),
    }[version]


def test_bidirectional_sums_are_of_the_clients_sending() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.18-bidir.json"), "a.json")
    assert run.bidirectional is True
    assert (run.sent_bytes, run.received_bytes, run.retransmits) == (9699328, 8781824, 36)
    forward, back = run.streams
    assert (forward.is_sender, back.is_sender) == (True, False)
    assert (back.sender_bytes, back.receiver_bytes) == (784728064, 781189120)


def test_bytes_instead_of_a_duration() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.12-bytes.json"), "a.json")
    assert run.duration_s is None
    assert (run.sent_bytes, run.sent_seconds, run.received_bytes) == (379600, 0.012007, 102200)


def test_udp() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.22-udp.json"), "a.json")
    assert run.protocol == "UDP"
    assert (run.sent_bytes, run.sent_seconds) == (251120, 1.001004)
    assert (run.received_bytes, run.received_seconds) == (249660, 1.007006)
    assert (run.retransmits, run.congestion_control) == (None, None)


def test_udp_before_separate_sums() -> None:
    # 3.9 has one sum: the sender's bytes and rate beside the receiver's time.
    run = parse_iperf3_json(read("iperf3/iperf3-3.9-udp.json"), "a.json")
    assert (run.sent_bytes, run.sent_seconds) == (251120, 1.000052)
    assert run.sent_rate_bps == pytest.approx(251120 * 8 / 1.000052)
    assert (run.received_bytes, run.received_rate_bps) == (None, None)


def test_3_1_lacks_keys() -> None:
    run = parse_iperf3_json(read("iperf3/derived-iperf3-3.1-one-flow.json"), "a.json")
    assert run.version == "3.1.3"
    assert (run.congestion_control, run.streams[0].is_sender) == (None, None)
    assert (run.intervals[0].rtt_us, run.intervals[0].rttvar_us) == (6001, None)
    assert (run.intervals[0].pmtu_bytes, run.intervals[0].snd_cwnd_bytes) == (None, 29200)
    assert run.sent_bytes == 9303120


def test_nan_is_none() -> None:
    run = parse_iperf3_json(read("iperf3/derived-iperf3-3.12-nan.json"), "a.json")
    assert run.intervals[0].rate_bps is None
    assert run.intervals[1].rate_bps is not None
    assert run.received_rate_bps is None


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("3.12-refused", "unable to connect to server: Connection refused"),
        (
            "3.12-unknown-cc",
            "unable to set TCP_CONGESTION: "
            "Supplied congestion control algorithm not supported on this host",
        ),
    ],
)
def test_error_is_kept(name: str, error: str) -> None:
    run = parse_iperf3_json(read(f"iperf3/iperf3-{name}.json"), "a.json")
    assert run.error == error
    assert (run.sent_bytes, run.received_bytes, run.streams) == (None, None, ())


def test_interrupted_run_knows_nothing_of_the_receiver() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.12-interrupted.json"), "a.json")
    assert run.error == "interrupt - the client has terminated"
    assert (run.duration_s, run.sent_bytes, run.sent_seconds) == (10, 110048, 0.680434)
    # iperf3 writes 0 bytes for them: the peer's results never came.
    assert (run.received_bytes, run.received_seconds, run.received_rate_bps) == (None, None, None)
    assert run.streams[0].receiver_bytes is None


def test_a_servers_document_doesnt_know_what_was_sent() -> None:
    run = parse_iperf3_json(read("iperf3/iperf3-3.12-server.json"), "a.json")
    assert (run.sent_bytes, run.sent_seconds, run.retransmits) == (None, None, None)
    assert (run.received_bytes, run.received_seconds) == (1310720, 1.000205)
    (stream,) = run.streams
    assert (stream.is_sender, stream.sender_bytes, stream.receiver_bytes) == (False, None, 1310720)


def test_failed_run_without_an_error_key() -> None:
    with pytest.raises(ParseError, match=r"^a\.json, \$\.end: .*stopped, or the file cut off"):
        parse_iperf3_json(read("iperf3/iperf3-3.9-refused.json"), "a.json")


def test_end_block_is_needed() -> None:
    text = read("iperf3/iperf3-3.12-one-flow.json")
    cut = text[: text.index('\t"end":\t{\n\t\t"streams"')].rstrip().rstrip(",")
    with pytest.raises(ParseError, match=r"line \d+ column \d+: .*cut off; expected .*`end`"):
        parse_iperf3_json(cut, "a.json")
    with pytest.raises(ParseError, match=r"\$\.end: the totals are missing"):
        parse_iperf3_json(cut + "\n}\n", "a.json")


def test_second_document_is_named_by_line() -> None:
    text = read("iperf3/iperf3-3.12-one-flow.json")
    line = text.count("\n") + 1
    with pytest.raises(ParseError, match=rf"^a\.json, line {line} column 1: a second document"):
        parse_iperf3_json(text + text, "a.json")


def test_a_stream_of_events_is_the_same_document() -> None:
    """--json-stream prints start, each interval and end as a document of its own."""
    text = read("iperf3/iperf3-3.22-json-stream.json")
    run = parse_iperf3_json(text, "a.json")
    assert (run.version, run.sent_bytes, len(run.intervals)) == ("3.22", 262144, 2)
    assert run.connections[0].local_port == 47284
    lines = text.splitlines(keepends=True)
    with pytest.raises(ParseError, match=r"\$\.end: the totals are missing"):
        parse_iperf3_json("".join(lines[:-1]), "a.json")
    with pytest.raises(ParseError, match=r"line 2: the file ends in the middle"):
        parse_iperf3_json(lines[0] + lines[1][:100], "a.json")
    stopped = "".join(lines[:-1]) + '{"event":"error","data":"unable to send"}\n'
    assert parse_iperf3_json(stopped, "a.json").error == "unable to send"


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_that_nobody_counts_to_is_refused(digits: int) -> None:
    text = read("iperf3/iperf3-3.12-one-flow.json")
    for number in ("1" + "0" * digits, f"1e{digits}"):
        damaged = re.sub(r'"bytes":\s*4\d+', f'"bytes": {number}', text, count=1)
        assert damaged != text
        with pytest.raises(ParseError):
            parse_iperf3_json(damaged, "a.json")


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"bytes":\t4613600', '"bytes":\t"many"', "$.intervals[0].streams[0].bytes"),
        ('"bytes":\t4613600', '"bytes":\t1.5', "$.intervals[0].streams[0].bytes"),
        ('"bytes":\t4613600,', "", "$.intervals[0].streams[0].bytes"),
        ('"rtt":\t6071', '"rtt":\t[1]', "$.intervals[1].streams[0].rtt"),
        ('"omitted":\tfalse', '"omitted":\t"no"', "$.intervals[0].streams[0].omitted"),
        ('"local_port":\t35878', '"local_port":\tnull', "$.start.connected[0].local_port"),
        ('"version":\t"iperf 3.9"', '"version":\t3.9', "$.start.version"),
        ('"tcp_mss":\t1460', '"tcp_mss":\t1e999', "$.start.tcp_mss"),
    ],
)
def test_ill_typed_values_are_named_by_path(old: str, new: str, where: str) -> None:
    text = read("iperf3/iperf3-3.9-one-flow.json")
    assert old in text
    with pytest.raises(ParseError) as caught:
        parse_iperf3_json(text.replace(old, new), "a.json")
    assert caught.value.where == where


def test_exponents_windows_line_ends_and_byte_order_mark() -> None:
    text = read("iperf3/iperf3-3.9-one-flow.json")
    same = "\ufeff" + text.replace("\n", "\r\n").replace("9303120", "9.30312e+06")
    assert parse_iperf3_json(same, "a.json") == parse_iperf3_json(text, "a.json")


def test_error_messages_in_full() -> None:
    with pytest.raises(ParseError) as caught:
        parse_iperf3_json('{"start": {}, "end": {"streams": [{}]}}', "run/iperf3.json")
    assert str(caught.value) == (
        "run/iperf3.json, $.end.streams[0].sender: missing; expected a value"
    )
    with pytest.raises(ParseError) as caught:
        parse_iperf3_json('{"start": {},\n "end": {"sum": x', "a.json")
    assert str(caught.value) == (
        "a.json, line 2 column 17: not JSON (Expecting value); "
        "expected iperf3's JSON document (-J) with its `end` block"
    )
