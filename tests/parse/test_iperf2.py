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
