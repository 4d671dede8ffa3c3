"""iperf 2's CSV: nine columns, and a last row that is no second of its own; and its text, of client and server."""

from __future__ import annotations

import pytest
from tool_outputs import read

from measuretwice.parse import ParseError, TruncatedError, parse_iperf2_csv, parse_iperf2_text

ROW = "20150215191215,10.1.1.1,38878,10.1.1.2,5001,3,{},27131904,217055232\n"


def test_the_last_row_is_the_total() -> None:
    (connection,) = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-one-flow.csv"), "OUTPUT.txt")
    assert (connection.from_address, connection.from_port) == ("127.0.0.1", 43300)
    assert connection.to_port == 5601
    assert [row.start_s for row in connection.intervals] == [0, 1, 2, 3]
    assert [row.end_s for row in connection.intervals] == [1, 2, 3, 4]
    assert connection.intervals[0].rate_bps == 20_972_000
    assert connection.total.end_s == 4
    assert connection.total.bytes == 10_616_892


def test_connections_are_told_apart() -> None:
    first, second = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-two-flows.csv"), "OUTPUT.txt")
    assert (first.from_port, second.from_port) == (43314, 43326)
    assert [len(flow.intervals) for flow in (first, second)] == [3, 3]
    assert (first.total.bytes, second.total.rate_bps) == (7_995_452, 21_293_573)


def test_without_intervals_there_is_a_total_alone() -> None:
    (connection,) = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-total-only.csv"), "OUTPUT.txt")
    assert connection.intervals == ()
    # The year is what iperf printed.
    assert (connection.total.time, connection.total.bytes) == ("19700101000000", 1_441_852)


def test_udp_has_more_columns() -> None:
    (connection,) = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-udp.csv"), "OUTPUT.txt")
    assert [row.bytes for row in connection.intervals] == [133_770, 130_830, 130_830]


def test_old_versions_number_their_sums_minus_one() -> None:
    text = ROW.format("0.0-1.0") + ROW.format("0.0-1.0").replace(",3,", ",-1,")
    (connection,) = parse_iperf2_csv(text + ROW.format("0.0-1.0"), "OUTPUT.txt")
    assert len(connection.intervals) == 1


def test_a_killed_run_lacks_its_total() -> None:
    lines = read("iperf2/iperf2-2.1.8-one-flow.csv").splitlines(keepends=True)
    for count in range(2, len(lines)):
        with pytest.raises(TruncatedError, match=r"expected a last row for the whole test"):
            parse_iperf2_csv("".join(lines[:count]), "OUTPUT.txt")
    with pytest.raises(TruncatedError, match="line 1: the file ends here, cut off; expected a "):
        parse_iperf2_csv(lines[0][:-5], "OUTPUT.txt")


@pytest.mark.parametrize(
    "line",
    [
        "20150215191215,10.1.1.1,38878,10.1.1.2,5001,3,0.0-1.0,27131904\n",  # eight columns
        "time,srcip,srcport,dstip,dstport,id,interval,data,tput\n",
        ROW.format("1.0-0.0"),
        ROW.format("0.0-1.0").replace("10.1.1.1,", "host-1,"),
    ],
)
def test_what_is_no_row(line: str) -> None:
    with pytest.raises(ParseError, match=r"^OUTPUT\.txt, line 1: "):
        parse_iperf2_csv(line, "OUTPUT.txt")


# --- its text ---


@pytest.mark.parametrize(
    ("name", "ends", "counts", "seconds", "rate_bps"),
    [
        ("iperf2-2.1.8-one-flow", ("127.0.0.1", 33408, 5401), (3, 8_000_635), 3.0268, 21_100_000),
        ("iperf2-2.1.8-enhanced", ("127.0.0.1", 56440, 5401), (2, 5_379_195), 2.0287, 21_200_000),
        ("iperf2-2.1.8-total-only", ("127.0.0.1", 56430, 5401), (0, 5_379_195), 2.0271, 21_200_000),
        ("iperf2-2.1.8-kbytes", ("127.0.0.1", 56454, 5401), (0, 2_752_512), 1.0279, 21_424_000),
        ("derived-iperf2-2.0", ("10.10.1.100", 33408, 5001), (2, 5_242_880), 2.0, 20_900_000),
    ],
)
def test_a_clients_one_connection(
    name: str,
    ends: tuple[str, int, int],
    counts: tuple[int, int],
    seconds: float,
    rate_bps: int,
) -> None:
    (flow,) = parse_iperf2_text(read(f"iperf2/{name}.txt"), "a.txt")
    assert (flow.from_address, flow.from_port, flow.to_port) == ends
    assert (len(flow.intervals), flow.total.bytes) == counts
    assert (flow.total.end_s, flow.total.rate_bps) == (seconds, rate_bps)
    assert (flow.udp, flow.server) == (False, False)


def test_connections_may_be_named_before_the_banner() -> None:
    first, second = parse_iperf2_text(read("iperf2/iperf2-2.1.8-two-flows.txt"), "a.txt")
    assert (first.from_port, first.total.end_s) == (33418, 2.0211)
    assert (second.from_port, second.total.end_s) == (33422, 2.005)


def test_a_server_names_the_sender_as_its_client_does() -> None:
    served = parse_iperf2_text(read("iperf2/iperf2-2.1.8-server.txt"), "a.txt")
    assert [flow.from_port for flow in served] == [33408, 33418, 33422, 56430, 56440, 56454, 56470]
    assert all(flow.server and flow.to_port == 5401 for flow in served)
    (client,) = parse_iperf2_text(read("iperf2/iperf2-2.1.8-one-flow.txt"), "b.txt")
    assert (served[0].total.bytes, served[0].total.end_s) == (client.total.bytes, 3.0019)


@pytest.mark.parametrize("name", ["udp", "udp-server"])
def test_udp_is_said(name: str) -> None:
    """The server's report, which a client repeats, isn't counted twice."""
    (flow,) = parse_iperf2_text(read(f"iperf2/iperf2-2.1.8-{name}.txt"), "a.txt")
    assert (flow.udp, flow.from_port, flow.total.bytes) == (True, 51324, 267_264)


def test_killed_and_refused() -> None:
    with pytest.raises(TruncatedError, match="was it killed"):
        parse_iperf2_text(read("iperf2/iperf2-2.1.8-killed.txt"), "a.txt")
    with pytest.raises(ParseError, match="iperf says: tcp connect failed: Connection refused"):
        parse_iperf2_text(read("iperf2/iperf2-2.1.8-refused.txt"), "a.txt")
    lines = read("iperf2/iperf2-2.1.8-one-flow.txt").splitlines(keepends=True)
    for kept in range(6, len(lines)):
        with pytest.raises(TruncatedError):
            parse_iperf2_text("".join(lines[:kept]), "a.txt")


ENHANCED = "-0700:20240509154620.629,10.0.0.1,40968,10.0.0.2,5001,1,"


def test_enhanced_csv_has_a_zone_and_more_columns() -> None:
    text = f"{ENHANCED}0.0-1.0,1000,8000,-1,-1,0,1\n{ENHANCED}0.0-1.0,1000,8000,-1,-1,-1,-1,0,0\n"
    (connection,) = parse_iperf2_csv(text, "a file")
    assert (connection.total.bytes, connection.udp, connection.server) == (1000, False, False)


def test_csv_with_a_heading_has_the_interval_in_two_columns() -> None:
    heading = "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,"
    rows = f"{ENHANCED}0.0,1.0,1000,8000,0,0\n{ENHANCED}1.0,2.0,1000,8000,0,0\n{ENHANCED}0.0,2.0,2000,8000,0,0\n"
    (connection,) = parse_iperf2_csv(f"{heading}writecnt,writeerr\n{rows}", "a file")
    assert (connection.total.end_s, len(connection.intervals), connection.udp) == (2.0, 2, False)
    (connection,) = parse_iperf2_csv(f"{heading}jitter,datagrams\n{rows}", "a file")
    assert connection.udp


def test_jitter_says_that_it_was_udp() -> None:
    text = f"{ENHANCED}0.0-1.0,1000,8000,0.031,0,10,0.000,0\n"
    assert parse_iperf2_csv(text, "a file")[0].udp


def test_a_servers_csv_names_itself_first() -> None:
    text = "20240509154620,10.0.0.2,5001,10.0.0.1,40968,4,0.0-10.1,1000,8000\n"
    (connection,) = parse_iperf2_csv(text, "a file")
    assert (connection.server, connection.from_port, connection.to_port) == (True, 40968, 5001)


def test_tests_one_after_another_have_spans_that_dont_overlap() -> None:
    row = "10.0.0.1,{},10.0.0.2,5001,3,0.0-10.0,1000,8000\n"
    text = f"20240509154620,{row.format(1)}20240509154620,{row.format(2)}20240509154631,{row.format(3)}"
    first, second, third = (connection.span for connection in parse_iperf2_csv(text, "a file"))
    assert first == second
    assert first is not None
    assert third is not None
    assert third[0] > first[1]
    plain = text.replace("20240509154620", "19700101000000")
    assert parse_iperf2_csv(plain, "a file")[0].span is None
