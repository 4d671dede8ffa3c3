"""Logs of ss in the forms in which people keep them: each is read as the labs' sampler's are."""

from __future__ import annotations

import pytest

from measuretwice.parse import ParseError, TruncatedError, parse_ss_samples
from measuretwice.parse.ss import as_sampled

BEGIN_S = 1731680801.25
ROW = "ESTAB 0      120  10.10.1.100:40968  10.10.2.100:5201 timer:(on,220ms,0)"
HEADING = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process"


def details(second: int) -> str:
    """The second line of a connection's socket, some seconds after its start."""
    return (
        f"\t ts sack reno wscale:7,7 rto:244 rtt:40.3/0.6 mss:1448 cwnd:{10 + second} "
        f"bytes_acked:{1000 * second + 1} segs_out:{10 * second}"
    )


def looks(*lines: str) -> str:
    """Three looks, a second after another, their times, rows and details where `lines` have names in braces."""
    return "".join(
        line.format(
            time=f"{BEGIN_S + second:.6f}", second=41 + second, row=ROW, details=details(second)
        )
        + "\n"
        for second in range(3)
        for line in lines
    )


@pytest.mark.parametrize(
    ("text", "begin_s"),
    [
        (looks("{time} {row}", "{time} {details}"), BEGIN_S),
        (looks("{time} {row}{details}"), BEGIN_S),
        (looks("{time}, {row}{details}"), BEGIN_S),
        (looks("{time};{row}{details}"), BEGIN_S),
        (looks("{time}: {row}{details}"), BEGIN_S),
        (looks("[ {second}.125000] {row}", "[ {second}.125000] {details}"), 41.125),
        (looks("[+{second}.125s] {row}{details}"), 41.125),
        (looks("{time} ESTAB 0 0 10.10.1.100:40960 10.10.2.100:5201", "{time} {details}", "{time} {row}", "{time} {details}"), BEGIN_S),
        (looks("timestamp:{time}", HEADING, "{row}", "{details}", "---"), BEGIN_S),
        (looks("{time}", "{row}", "{details}", ""), BEGIN_S),
        (looks("### {time} ###", "{row}", "{details}"), BEGIN_S),
        (looks("# t={time}", "{row}", "{details}"), BEGIN_S),
        (looks("time:{time}", "0      120  10.10.1.100:40968  10.10.2.100:5201{details}"), BEGIN_S),
        (looks("time:{time}", "tcp   {row}", "{details}", "udp   ESTAB 0 0 10.0.0.1:5 10.0.0.2:6", "\t skmem:(r0)"), BEGIN_S),
        (looks("17316808{second}250000000", "{row}", "{details}"), 1731680841.25),
        (looks("2024-11-15T15:26:{second}.5+01:00 {row}{details}"), 1731680801.5),
        (looks("2024-11-15T14:26:{second}.5Z {row}{details}"), 1731680801.5),
        (looks("[2024-11-15 14:26:{second}] {row}", "[2024-11-15 14:26:{second}] {details}"), 52001.0),
        (looks("Nov 15 14:26:{second} {row}", "Nov 15 14:26:{second} {details}"), 52001.0),
        (looks("Fri Nov 15 14:26:{second} UTC 2024", "{row}", "{details}"), 52001.0),
        (looks("Fri 15 Nov 2024 02:26:{second} PM CET", HEADING, "{row}", "{details}"), 52001.0),
        (looks("Fr 15. Nov 14:26:{second} CET 2024", "{row}", "{details}", "--"), 52001.0),
        (looks("Every 1.0s: ss -tin dst 10.10.2.100    romeo: Fri Nov 15 14:26:{second} 2024", "", HEADING, "{row}", "{details}"), 52001.0),
        (looks("=== 14:26:{second}.500000 ===", "{row}", "{details}"), 52001.5),
        (looks("00:00:{second} {row}{details}"), 41.0),
        (looks("{second}.125000 {row}{details}"), 41.125),
    ],
)  # fmt: skip
def test_a_log_with_times_is_read_as_a_samplers(text: str, begin_s: float) -> None:
    samples = parse_ss_samples(as_sampled(text, "ss.txt"), "ss.txt")
    seconds = 0.01 if "1731680801" in text and "PM" not in text and begin_s == 1731680841.25 else 1
    assert [sample.time_s - begin_s for sample in samples] == pytest.approx(
        [0, seconds, 2 * seconds], abs=1e-3
    )
    data = [socket for sample in samples for socket in sample.sockets if socket.local_port == 40968]
    assert [socket.cwnd_segments for socket in data] == [10, 11, 12]
    assert {socket.congestion_control for socket in data} == {"reno"}
    assert {socket.state for socket in data} == {"ESTAB"}


def test_a_clock_goes_round_midnight() -> None:
    text = "".join(f"{clock} {ROW}{details(1)}\n" for clock in ("23:59:59", "00:00:00"))
    times = [sample.time_s for sample in parse_ss_samples(as_sampled(text, "a"), "a")]
    assert times == [86399, 86400]


def test_a_loop_without_times_has_one_look_after_another() -> None:
    text = looks(HEADING, "{row}", "{details}")
    samples = parse_ss_samples(as_sampled(text, "a"), "a")
    assert [(sample.time_s, len(sample.sockets)) for sample in samples] == [(0, 1)] * 3


def test_details_that_were_kept_alone_are_one_connections() -> None:
    samples = parse_ss_samples(as_sampled(looks("{time} {details}"), "a"), "a")
    assert [sample.time_s for sample in samples] == [BEGIN_S, BEGIN_S + 1, BEGIN_S + 2]
    assert {socket.local_port for sample in samples for socket in sample.sockets} == {0}
    with pytest.raises(ParseError, match="of several connections"):
        as_sampled(looks("{details}", details(0)), "a")


def test_a_last_socket_without_its_second_line_is_left_out() -> None:
    text = looks("{time}", "{row}", "{details}") + f"{BEGIN_S + 3}\n{ROW}\n"
    samples = parse_ss_samples(as_sampled(text, "a"), "a")
    assert [len(sample.sockets) for sample in samples] == [1, 1, 1, 0]
    with pytest.raises(TruncatedError, match="second line"):
        as_sampled(f"{HEADING}\n{ROW}\n\t users:(1)\n\n{ROW.replace('40968', '40969')}\n", "a")


def test_a_last_line_that_is_cut_off_is_left_out() -> None:
    sampled = as_sampled(looks("{time}", "{row}", "{details}"), "a")
    for text in (sampled, looks("{time} {row}{details}")):
        cut = as_sampled(f"{text}# t={BEGIN_S + 3:.9f}\nESTAB 0 12 10.10.1\n", "a")
        assert cut == f"{sampled}# t={BEGIN_S + 3:.9f}\n"


def test_a_mangled_socket_is_no_remark() -> None:
    with pytest.raises(ParseError, match="line 4: found 'ESTAB 0 x'"):
        as_sampled(f"{BEGIN_S}\n{ROW}\n{details(1)}\nESTAB 0 x\n{details(2)}\n", "a")
    text = looks("{time}", "Cannot open netlink socket: Permission denied", "{row}", "{details}")
    assert len(parse_ss_samples(as_sampled(text, "a"), "a")) == 3


@pytest.mark.parametrize(
    ("words", "algorithm", "flags"),
    [
        ("ts sack cubic", "cubic", ("ts", "sack")),
        ("ts usec_ts sack reno", "reno", ("ts", "usec_ts", "sack")),
        ("ts sack ecn ecnseen fastopen some_flag cubic", "cubic", ("ts", "sack", "ecn", "ecnseen", "fastopen", "some_flag")),
        # A flag that is printed behind the name some day.
        ("ts sack cubic some_flag", "cubic", ("ts", "sack", "some_flag")),
        # An algorithm of somebody's own is known by its place.
        ("ts sack my_algorithm", "my_algorithm", ("ts", "sack")),
        ("ts sack", None, ("ts", "sack")),
    ],
)  # fmt: skip
def test_an_algorithm_is_found_by_its_place_and_its_name(
    words: str, algorithm: str | None, flags: tuple[str, ...]
) -> None:
    text = (
        f"# t=1.000000000\nESTAB 0 0 1.1.1.1:1 2.2.2.2:2 {words} wscale:7,7 rto:201 tcp-ulp-mptcp\n"
    )
    ((socket,),) = [sample.sockets for sample in parse_ss_samples(text, "a")]
    assert (socket.congestion_control, socket.flags) == (algorithm, flags)


def test_what_else_a_terminal_showed_is_no_socket() -> None:
    text = (
        f"$ ss -tin\n{HEADING}\n{ROW}\n{details(1)}\n$ tc -s qdisc\nqdisc htb 1: dev eth2 root refcnt 2\n"
        " Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n"
    )
    ((socket,),) = [sample.sockets for sample in parse_ss_samples(as_sampled(text, "a"), "a")]
    assert (socket.local_port, socket.cwnd_segments, socket.other) == (40968, 11, {})


def test_what_a_logger_puts_before_each_line_is_taken_away() -> None:
    text = "".join(f"romeo-1  | {line}\n" for line in (HEADING, ROW, details(1)))
    ((socket,),) = [sample.sockets for sample in parse_ss_samples(as_sampled(text, "a"), "a")]
    assert (socket.local_port, socket.cwnd_segments) == (40968, 11)


def test_prose_about_ss_is_refused() -> None:
    with pytest.raises(ParseError, match="no line of it is as ss prints it; bring"):
        as_sampled("Look at cwnd:10 there.\n", "a")
