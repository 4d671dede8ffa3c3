"""ping's and nstat's output. The expected values were read from the files by eye."""

from __future__ import annotations

import pytest
from tool_outputs import read

from measuretwice.parse import ParseError, PingReply, TruncatedError, parse_nstat, parse_ping


def test_timestamps() -> None:
    run = parse_ping(read("ping/ping-20221126-timestamps.txt"), "ping.txt")
    assert (run.target, run.address, run.payload_bytes) == ("10.10.2.100", "10.10.2.100", 56)
    assert (run.transmitted, run.received, run.loss_ratio, run.time_ms) == (3, 3, 0, 401)
    assert (run.rtt_min_ms, run.rtt_avg_ms, run.rtt_max_ms) == (8.371, 9.573, 10.238)
    assert run.rtt_mdev_ms == 0.851
    assert run.replies[1] == PingReply(
        seq=2, ttl=63, rtt_ms=8.37, timestamp_s=1795213785.468299, duplicate=False
    )


def test_loss_and_duplicates() -> None:
    run = parse_ping(read("ping/ping-20221126-loss-dup.txt"), "ping.txt")
    assert (run.transmitted, run.received, run.duplicates, run.errors) == (8, 5, 3, 0)
    assert run.loss_ratio == 0.375
    assert [r.seq for r in run.replies] == [1, 1, 4, 4, 5, 6, 7, 7]
    assert [r.seq for r in run.replies if r.duplicate] == [1, 4, 7]
    assert run.replies[1] == PingReply(seq=1, ttl=63, rtt_ms=50.3, timestamp_s=None, duplicate=True)


def test_missing_answers_named_by_ping() -> None:
    run = parse_ping(read("ping/ping-20250605-loss-dup-O.txt"), "ping.txt")
    assert (run.received, run.duplicates, run.loss_ratio) == (6, 2, 0.25)
    assert len(run.replies) == 8


def test_quiet() -> None:
    run = parse_ping(read("ping/ping-20221126-quiet.txt"), "ping.txt")
    assert (run.received, run.replies, run.rtt_avg_ms) == (5, (), 9.567)


@pytest.mark.parametrize(
    ("name", "transmitted", "errors"),
    [
        ("20221126-all-lost", 3, 0),
        ("20250605-all-lost-quiet", 3, 0),
        ("20221126-unreachable", 4, 4),
        ("20210202-nonet", 2, 2),
        ("20240905-nonet", 2, 0),
        ("20250605-ttl", 2, 2),
    ],
)
def test_nothing_came_back(name: str, transmitted: int, errors: int) -> None:
    run = parse_ping(read(f"ping/ping-{name}.txt"), "ping.txt")
    assert (run.transmitted, run.received, run.errors) == (transmitted, 0, errors)
    assert (run.loss_ratio, run.rtt_min_ms, run.replies) == (1, None, ())


def test_too_short_to_be_timed() -> None:
    run = parse_ping(read("ping/ping-20221126-short.txt"), "ping.txt")
    assert (run.payload_bytes, run.received, run.rtt_avg_ms) == (8, 2, None)
    assert run.replies[0] == PingReply(
        seq=1, ttl=63, rtt_ms=None, timestamp_s=None, duplicate=False
    )


@pytest.mark.parametrize("version", ["20210202", "20250605"])
def test_ipv6(version: str) -> None:
    run = parse_ping(read(f"ping/ping-{version}-ipv6.txt"), "ping.txt")
    assert (run.target, run.address, run.payload_bytes) == ("fd00:2::100", "fd00:2::100", 56)
    assert len(run.replies) == 2


@pytest.mark.parametrize(
    ("name", "target", "address", "payload_bytes", "counts", "rtts_ms"),
    [
        ("busybox-1.35-clean", "127.0.0.1", "127.0.0.1", 56, (3, 3, 3), (0.062, 0.145, 0.309, None)),
        ("busybox-1.35-quiet-ipv6", "::1", "::1", 56, (2, 2, 0), (0.039, 0.049, 0.06, None)),
        ("busybox-1.35-short", "127.0.0.1", "127.0.0.1", 0, (2, 2, 2), (None, None, None, None)),
        (
            "derived-ping-macos", "juliet.example.net", "10.10.2.100", 56, (3, 2, 2),
            (6.104, 6.157, 6.211, 0.053),
        ),
        (
            "derived-ping-macos-unreachable", "10.10.2.99", "10.10.2.99", 56, (2, 0, 0),
            (None, None, None, None),
        ),
        (
            "derived-ping6-freebsd-dup", "fd00:2::100", "fd00:2::100", 8, (2, 2, 3),
            (6.036, 6.042, 6.048, 0.005),
        ),
        (
            "derived-ping-ipv6-name", "juliet.example.net", "fd00:2::100", 56, (2, 2, 2),
            (6.092, 6.106, 6.121, 0.014),
        ),
    ],
)  # fmt: skip
def test_other_pings(
    name: str,
    target: str,
    address: str,
    payload_bytes: int,
    counts: tuple[int, int, int],
    rtts_ms: tuple[float | None, ...],
) -> None:
    """busybox's own words; macOS and FreeBSD in the form that jc's stored outputs have (kellyjonbrazil/jc,
    tests/fixtures/osx-10.14.6 and freebsd12: ping-hostname, ping-ip-unreachable, ping6-hostname), and
    iputils' of IPv6 names (centos-7.7: ping6-hostname-O-p)."""
    run = parse_ping(read(f"ping/{name}.txt"), "ping.txt")
    assert (run.target, run.address, run.payload_bytes) == (target, address, payload_bytes)
    assert (run.transmitted, run.received, len(run.replies)) == counts
    assert (run.rtt_min_ms, run.rtt_avg_ms, run.rtt_max_ms, run.rtt_mdev_ms) == rtts_ms


def test_other_pings_that_were_killed_or_cut() -> None:
    for name, lines in (
        ("busybox-1.35-killed", None), ("busybox-1.35-clean", -1), ("busybox-1.35-clean", -2),
        ("derived-ping-macos", -1), ("derived-ping6-freebsd-dup", -1),
    ):  # fmt: skip
        text = "".join(read(f"ping/{name}.txt").splitlines(keepends=True)[:lines])
        with pytest.raises(TruncatedError):
            parse_ping(text, "ping.txt")


def test_names_and_interfaces() -> None:
    run = parse_ping(read("ping/ping-20221126-hostname.txt"), "ping.txt")
    assert (run.target, run.address, len(run.replies)) == ("localhost", "127.0.0.1", 2)
    text = read("ping/ping-20221126-quiet.txt").replace(") 56", ") from 10.10.1.100 eth0: 56")
    assert parse_ping(text, "a").payload_bytes == 56


def test_summaries_with_more_to_say() -> None:
    assert parse_ping(read("ping/ping-20221126-pipe.txt"), "a").rtt_max_ms == 54.129
    assert parse_ping(read("ping/ping-20240905-adaptive.txt"), "a").received == 4
    assert parse_ping(read("ping/ping-20221126-flood.txt"), "a").transmitted == 20
    assert parse_ping(read("ping/ping-20250605-quit.txt"), "a").received == 5
    assert parse_ping(read("ping/ping-20240905-interrupted.txt"), "a").transmitted == 3


def test_killed() -> None:
    with pytest.raises(TruncatedError, match=r"^ping\.txt, line 4: .*statistics"):
        parse_ping(read("ping/ping-20221126-killed.txt"), "ping.txt")


def test_ping_errors_are_named() -> None:
    text = read("ping/ping-20221126-timestamps.txt")
    for old, new, line in [
        ("56(84) bytes of data.", "", 1),
        ("time=8.37 ms", "time=eight", 3),
        ("3 received", "three received", 7),
        ("8.371/", "/", 8),
    ]:
        with pytest.raises(ParseError, match=f"^a, line {line}: found"):
            parse_ping(text.replace(old, new), "a")
    with pytest.raises(ParseError, match="line 9: a second ping"):
        parse_ping(text + text, "a")


@pytest.mark.parametrize("name", ["nstat-5.9.txt", "nstat-6.1.json", "nstat-7.2.txt"])
def test_nstat(name: str) -> None:
    counters = parse_nstat(read(f"nstat/{name}"), name)
    assert counters["TcpActiveOpens"] == 2
    assert counters["TcpPassiveOpens"] == 2
    assert counters["TcpRetransSegs"] == 0
    assert "TcpExtTCPOFODrop" in counters


def test_nstat_forms_agree() -> None:
    names = set(parse_nstat(read("nstat/nstat-7.2.txt"), "a"))
    assert names == set(parse_nstat(read("nstat/nstat-7.2.json"), "a"))


def test_nstat_with_nothing_new() -> None:
    assert parse_nstat(read("nstat/nstat-6.1-history.txt"), "a") == {}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("#kernel\nTcpInSegs 1 0.0\nTcpOutSegs one 0.0\n", "line 3"),
        ("#kernel\nTcpInSegs 1\n", "line 2"),
        ("#kernel\nTcpInSegs 1 0.0", "line 2"),
        ('{"kernel":{"TcpInSegs":"1"}}', "$.kernel.TcpInSegs"),
        ('{"other":{"TcpInSegs":1}}', "line 1"),
        ('{"kernel":{"TcpInSegs":1', "line 1 column 25"),
    ],
)
def test_nstat_errors_are_named(text: str, where: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_nstat(text, "nstat.txt")
    assert caught.value.where == where
