"""Time against sequence, from what tcpdump printed."""

from __future__ import annotations

import pytest

from measuretwice.parse import ParseError
from measuretwice.parse.tcpdump import parse_tcpdump
from measuretwice.tcp.traces import data_connection, time_sequence

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
