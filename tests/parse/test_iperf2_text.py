"""iperf 2's text: the last row of a connection is the whole test's, and a server has several."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from measuretwice.parse import ParseError, TruncatedError, parse_iperf2_text

Read = Callable[[str], str]


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
    read: Read,
    name: str,
    ends: tuple[str, int, int],
    counts: tuple[int, int],
    seconds: float,
    rate_bps: int,
) -> None:
    (one,) = parse_iperf2_text(read(f"iperf2/{name}.txt"), "a.txt")
    assert (one.from_address, one.from_port, one.to_port) == ends
    assert (len(one.intervals), one.total.bytes) == counts
    assert (one.total.end_s, one.total.rate_bps) == (seconds, rate_bps)
    assert (one.udp, one.server) == (False, False)


def test_connections_may_be_named_before_the_banner(read: Read) -> None:
    first, second = parse_iperf2_text(read("iperf2/iperf2-2.1.8-two-flows.txt"), "a.txt")
    assert [(one.from_port, one.total.end_s) for one in (first, second)] == [
        (33418, 2.0211), (33422, 2.005),
    ]  # fmt: skip


def test_a_server_names_the_sender_as_its_client_does(read: Read) -> None:
    served = parse_iperf2_text(read("iperf2/iperf2-2.1.8-server.txt"), "a.txt")
    assert [one.from_port for one in served] == [33408, 33418, 33422, 56430, 56440, 56454, 56470]
    assert all(one.server and one.to_port == 5401 for one in served)
    (client,) = parse_iperf2_text(read("iperf2/iperf2-2.1.8-one-flow.txt"), "b.txt")
    assert (served[0].total.bytes, served[0].total.end_s) == (client.total.bytes, 3.0019)


@pytest.mark.parametrize("name", ["udp", "udp-server"])
def test_udp_is_said(read: Read, name: str) -> None:
    """The server's report, which a client repeats, isn't counted twice."""
    (one,) = parse_iperf2_text(read(f"iperf2/iperf2-2.1.8-{name}.txt"), "a.txt")
    assert (one.udp, one.from_port, one.total.bytes) == (True, 51324, 267_264)


def test_killed_and_refused(read: Read) -> None:
    with pytest.raises(TruncatedError, match="was it killed"):
        parse_iperf2_text(read("iperf2/iperf2-2.1.8-killed.txt"), "a.txt")
    with pytest.raises(ParseError, match="iperf says: tcp connect failed: Connection refused"):
        parse_iperf2_text(read("iperf2/iperf2-2.1.8-refused.txt"), "a.txt")
    lines = read("iperf2/iperf2-2.1.8-one-flow.txt").splitlines(keepends=True)
    for kept in range(6, len(lines)):
        with pytest.raises(TruncatedError):
            parse_iperf2_text("".join(lines[:kept]), "a.txt")
