"""Those who wait beside the flows, by files made by hand: were they sent where, as often and for as long as they were to?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from measuretwice.checks import RunUnderTest, causes
from measuretwice.lab.schema.network import FlowFiles, StreamFiles
from measuretwice.measure.delays import Probes, Stream, read_probes
from measuretwice.measure.host_state import HostState, Interface, Node, Span
from measuretwice.parse import PingRun, parse_ping

BEGIN_S = 1.7e9
FLOWS_S = 10.0
PATH_MS = 40.0
PARAMS = {"call_interval_ms": 20, "call_bytes": 172, "page_bytes": 100_000}


def stream(
    node: str, *, every_ms: float = 20, late_s: float = 0.0, for_s: float = FLOWS_S, took_ms: float = 20
) -> Stream:  # fmt: skip
    """A stream of which every tenth packet is lost."""
    sent = round(1e3 * for_s / every_ms)
    numbers = tuple(number for number in range(sent) if number % 10)
    sent_s = tuple(BEGIN_S + late_s + number * every_ms / 1e3 for number in numbers)
    return Stream(node, sent, sent_s, tuple(time_s + took_ms / 1e3 for time_s in sent_s), numbers)


def pings(*, least_ms: float = PATH_MS, for_s: float = FLOWS_S, answered: bool = True) -> PingRun:
    count = round(50 * for_s)
    answers = [
        f"[{BEGIN_S + number / 50:.6f}] 64 bytes from 10.6.5.2: icmp_seq={number + 1} ttl=61 time={least_ms + number % 7} ms"
        for number in range(count if answered else 0)
    ]
    came = len(answers)
    sums = (
        f"rtt min/avg/max/mdev = {least_ms}/{least_ms + 3}/{least_ms + 6}/2.000 ms" if came else ""
    )
    lines = [
        "PING 10.6.5.2 (10.6.5.2) 56(84) bytes of data.", *answers, "", "--- 10.6.5.2 ping statistics ---",
        f"{count} packets transmitted, {came} received, {100 - 100 * came // count}% packet loss, time {1000 * for_s:.0f}ms", sums,
    ]  # fmt: skip
    return parse_ping("\n".join(lines) + "\n", "ping-busy.txt")


def run_with(
    probes: Probes, *, received_bytes: int = 1_250_000, flows_s: float = FLOWS_S, **params: Any
) -> RunUnderTest:
    """A run whose flows were there for ten seconds, and whose phone received so much."""
    phone = Node(
        "phone", {"eth0": Interface("eth0", (), {}, received_bytes=received_bytes)}, {}, ()
    )
    sampled = (Span("laptop", "laptop/ss.txt", BEGIN_S, BEGIN_S + flows_s),)
    state = HostState({"phone": phone}, flows_sampled=sampled, probes=probes)
    return RunUnderTest({**PARAMS, **params}, {"path_rtt_ms": PATH_MS}, host_state=state)


def said(run: RunUnderTest) -> list[str]:
    return [finding.id for finding in causes(run)]


HONEST = Probes(
    {"phone": pings(), "server": pings()},
    (stream("phone"), stream("server")),
    {"phone": [(BEGIN_S + second, 500.0) for second in range(10)]},
)


def test_an_honest_run_is_not_blamed() -> None:
    assert said(run_with(HONEST)) == []
    assert said(run_with(Probes())) == []


@pytest.mark.parametrize(
    ("every_ms", "found"), [(2, True), (14, True), (16, False), (24, False), (26, True)]
)
def test_a_stream_of_another_interval(every_ms: float, found: bool) -> None:
    streams = (stream("phone", every_ms=every_ms), stream("server"))
    assert said(run_with(replace(HONEST, streams=streams))) == (["probes"] if found else [])


@pytest.mark.parametrize(("sent", "found"), [(500, True), (19, False)])
def test_a_stream_of_which_nothing_came(sent: int, found: bool) -> None:
    streams = (Stream("phone", sent, (), ()), stream("server"))
    assert said(run_with(replace(HONEST, streams=streams))) == (["probes"] if found else [])


@pytest.mark.parametrize(
    ("for_s", "flows_s", "params", "found"),
    [
        (3.9, 10, {}, True),
        (4.1, 10, {}, False),
        # Of short flows little can be said; and whoever asks for less gets less.
        (1, 2.9, {}, False),
        (3, 10, {"watch_s": 3}, False),
    ],
)
def test_pings_and_streams_that_end_early(
    for_s: float, flows_s: float, params: dict[str, Any], found: bool
) -> None:
    expected = ["probes"] if found else []
    early = {"phone": pings(for_s=for_s), "server": pings()}
    assert said(run_with(replace(HONEST, pings=early), flows_s=flows_s, **params)) == expected
    streams = (stream("phone", for_s=for_s), stream("server"))
    assert said(run_with(replace(HONEST, streams=streams), flows_s=flows_s, **params)) == expected


@pytest.mark.parametrize(("least_ms", "found"), [(0.1, True), (17.9, True), (18.1, False)])
def test_pings_to_a_nearer_host(least_ms: float, found: bool) -> None:
    nearer = {"phone": pings(least_ms=least_ms), "server": pings()}
    assert said(run_with(replace(HONEST, pings=nearer))) == (["probes"] if found else [])


def test_pings_without_an_answer() -> None:
    run = run_with(replace(HONEST, pings={"phone": pings(answered=False)}))
    assert said(run) == ["probes"]


@pytest.mark.parametrize(
    ("received_bytes", "found"),
    [(890_000, True), (910_000, False), (1_550_000, False), (1_700_000, True)],
)
def test_transfers_of_another_size(received_bytes: int, found: bool) -> None:
    """Ten of 100 kB, beside 140 kB of a stream and of pings."""
    assert said(run_with(HONEST, received_bytes=received_bytes)) == (["probes"] if found else [])


def test_a_host_without_a_single_transfer() -> None:
    assert said(run_with(replace(HONEST, transfers={"phone": []}))) == ["probes"]


@pytest.mark.parametrize(
    ("late_s", "found"), [(10.1, True), (9.6, True), (9.4, False), (-9.4, False), (-9.6, True)]
)
def test_a_stream_that_the_load_never_met(late_s: float, found: bool) -> None:
    """One packet in twenty must meet the flows; of one that meets hardly any of them, that is said in other words."""
    streams = (stream("phone", late_s=late_s), stream("server"))
    names = said(run_with(replace(HONEST, streams=streams)))
    assert names == (["idle-probe"] if found else ["probes"])


@pytest.mark.parametrize(("count", "found"), [(5, True), (4, False)])
def test_transfers_that_the_load_never_met(count: int, found: bool) -> None:
    """Of a few it is chance when they begin."""
    later = [(BEGIN_S + FLOWS_S + 1 + second, 80.0) for second in range(count)]
    run = run_with(replace(HONEST, transfers={"phone": later}), page_bytes=250_000)
    assert said(run) == (["idle-probe"] if found else [])


@pytest.mark.parametrize(
    ("took_ms", "found"),
    [
        ((20, 20), False),
        # Two clocks that are apart; and one that was set while the run was on.
        ((-3580, 3620), False),
        ((20, 14.9), True),
        ((20, 15.1), False),
        ((20, -130), True),
    ],
)
def test_a_clock_that_was_set(took_ms: Sequence[float], found: bool) -> None:
    up, down = took_ms
    streams = (stream("phone", took_ms=down), stream("server", took_ms=up))
    assert said(run_with(replace(HONEST, streams=streams))) == (["samples"] if found else [])


def test_probes_are_read_from_the_files_of_a_run() -> None:
    raw = Path(__file__).parents[1] / "data/delays/codel"
    files = FlowFiles(
        iperf3="iperf3.json", ss="ss.txt", ping_busy="ping-busy.txt",
        delays=StreamFiles(file="call.txt"), transfers="pages.txt",
    )  # fmt: skip
    read = read_probes(files, raw)
    assert list(read.pings) == ["laptop"]
    assert [(each.node, each.sent) for each in read.streams] == [("phone", 500), ("server", 500)]
    assert [each.interval_ms for each in read.streams] == [pytest.approx(20, abs=0.1)] * 2
    assert len(read.transfers["phone"]) == 12
    assert read_probes(FlowFiles(iperf3="iperf3.json", ss="ss.txt"), raw) == Probes()
