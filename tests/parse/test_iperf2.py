"""iperf 2's CSV: nine columns, and a last row that is no second of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from measuretwice.parse import ParseError, TruncatedError, parse_iperf2_csv

Read = Callable[[str], str]
ROW = "20150215191215,10.1.1.1,38878,10.1.1.2,5001,3,{},27131904,217055232\n"


def test_the_last_row_is_the_total(read: Read) -> None:
    (connection,) = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-one-flow.csv"), "OUTPUT.txt")
    assert (connection.from_address, connection.from_port, connection.to_port) == (
        "127.0.0.1",
        43300,
        5601,
    )
    assert [(row.start_s, row.end_s) for row in connection.intervals] == [
        (0, 1), (1, 2), (2, 3), (3, 4),
    ]  # fmt: skip
    assert connection.intervals[0].rate_bps == 20_972_000
    assert connection.total.end_s == 4
    assert connection.total.bytes == 10_616_892


def test_connections_are_told_apart(read: Read) -> None:
    first, second = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-two-flows.csv"), "OUTPUT.txt")
    assert (first.from_port, second.from_port) == (43314, 43326)
    assert [len(one.intervals) for one in (first, second)] == [3, 3]
    assert (first.total.bytes, second.total.rate_bps) == (7_995_452, 21_293_573)


def test_without_intervals_there_is_a_total_alone(read: Read) -> None:
    (connection,) = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-total-only.csv"), "OUTPUT.txt")
    assert connection.intervals == ()
    # The year is what iperf printed.
    assert (connection.total.time, connection.total.bytes) == ("19700101000000", 1_441_852)


def test_udp_has_more_columns(read: Read) -> None:
    (connection,) = parse_iperf2_csv(read("iperf2/iperf2-2.1.8-udp.csv"), "OUTPUT.txt")
    assert [row.bytes for row in connection.intervals] == [133_770, 130_830, 130_830]


def test_old_versions_number_their_sums_minus_one() -> None:
    text = ROW.format("0.0-1.0") + ROW.format("0.0-1.0").replace(",3,", ",-1,")
    (connection,) = parse_iperf2_csv(text + ROW.format("0.0-1.0"), "OUTPUT.txt")
    assert len(connection.intervals) == 1


def test_a_killed_run_lacks_its_total(read: Read) -> None:
    lines = read("iperf2/iperf2-2.1.8-one-flow.csv").splitlines(keepends=True)
    for count in range(2, len(lines)):
        with pytest.raises(TruncatedError, match=r"expected a last row for the whole test"):
            parse_iperf2_csv("".join(lines[:count]), "OUTPUT.txt")
    with pytest.raises(
        TruncatedError, match="line 1: the file ends here, cut off; expected a whole"
    ):
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
