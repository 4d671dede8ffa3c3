"""What a tool says by itself: each check fires where a file shows it, and is silent where it nearly does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_line import ROOT, call_lab

from measuretwice.checks import causes, limits
from measuretwice.checks.registry import RunUnderTest
from measuretwice.measure.connections import WINDOW
from measuretwice.measure.fields import Measured
from measuretwice.measure.host_state import HostState, Socket
from measuretwice.measure.transfers import Amount, Row, Transfer
from measuretwice.parse import PingRun, Qdisc, parse_ping, parse_tc_qdiscs

SECOND_BYTES = 1_100_000  # 8.8 Mbit/s


def rows(amounts: list[int], **columns: int | float) -> tuple[Row, ...]:
    """Rows of a second each."""
    return tuple(
        Row(float(start), start + 1.0, amount, **columns) for start, amount in enumerate(amounts)
    )


def transfer(amounts: list[int] | None = None, **changes: object) -> Transfer:
    """A test of twenty seconds that is as it should be, but for what is changed."""
    amounts = amounts if amounts is not None else [SECOND_BYTES] * 20
    total = Amount(sum(amounts), float(len(amounts)))
    whole = Transfer(
        "iperf3", "romeo", "iperf3.json", rows(amounts, cwnd_bytes=60_000, rtt_ms=40.2),
        1, True, total, total, retransmits=30, asked_s=float(len(amounts)),
    )  # fmt: skip
    return replace(whole, **changes)  # type: ignore[arg-type]


def found(
    *transfers: Transfer,
    measured: Measured | None = None,
    qdiscs: tuple[Qdisc, ...] = (),
    pings: tuple[PingRun, ...] = (),
    **params: float,
) -> dict[str, str]:
    """What is found in files that were brought, by the findings' ids."""
    state = HostState(
        {}, transfers=transfers, pings=tuple(("ping.txt", ping) for ping in pings),
        qdiscs=tuple(("router", qdisc) for qdisc in qdiscs),
    )  # fmt: skip
    settings = {"rate_mbit": 100, "duration_s": 20, "rtt_ms": 40, **params}
    run = RunUnderTest(
        dict(settings), measured or {}, max_loss_ratio=0.01, host_state=state, brought=True
    )
    return {finding.id: finding.measured for finding in causes(run)}


def test_an_honest_test_is_silent() -> None:
    assert found(transfer()) == {}


# Rows ----------------------------------------------------------------------------------------

STOPPED = [SECOND_BYTES] * 5 + [0] * 15


@pytest.mark.parametrize(
    ("amounts", "cwnd_bytes", "stalls"),
    [
        # Timeouts on end; the test of a fast link; and both silent for a shorter time.
        (STOPPED, 1448, True),
        ([12_000_000] * 5 + [0] * 15, None, True),
        ([SECOND_BYTES] * 17 + [0] * 3, 1448, False),
        ([12_000_000] * 17 + [0] * 3, None, False),
        # A slow link: iperf3 hands over a whole buffer at once, and then waits for seconds.
        ([1_400_000, *[0] * 9] * 2, 200_000, False),
        ([131_072, *[0] * 5] * 3 + [131_072, 0], 20_000, False),
    ],
)
def test_a_flow_that_stops(amounts: list[int], cwnd_bytes: int | None, stalls: bool) -> None:
    silent = tuple(replace(row, cwnd_bytes=cwnd_bytes) for row in rows(amounts))
    assert ("stalled" in found(transfer(amounts, rows=silent))) is stalls


def test_where_timeouts_rule_a_pause_is_none() -> None:
    shut = tuple(replace(row, cwnd_bytes=1448) for row in rows(STOPPED))
    assert "stalled" in found(transfer(STOPPED, rows=shut), loss_ratio=0.001)
    assert "stalled" not in found(transfer(STOPPED, rows=shut), loss_ratio=0.05)


@pytest.mark.parametrize(
    ("changes", "impossible"),
    [
        ({"sent": Amount(30_000_000, 20.0)}, "30 MB in its total, 22 MB in its rows"),
        ({"sent": Amount(22_100_000, 20.0)}, None),  # within a block
        ({"rows": rows([SECOND_BYTES] * 10)}, None),  # rows of a half of it say nothing
        ({"rows": ()}, None),
        ({"received": Amount(30_000_000, 20.0)}, "30 MB received, of 22 MB sent"),
        ({"received": Amount(22_200_000, 20.0)}, None),
        ({"received": Amount(30_000_000, 20.0), "omit_s": 5.0}, None),  # what came before counts
        ({"retransmits": 2_000_000_000}, "2000000000 segments retransmitted, of 22 MB sent"),
        ({"retransmits": 14_000}, None),
        ({"rows": rows([SECOND_BYTES] * 20, cwnd_bytes=6)}, "a congestion window of 6 B"),
        ({"rows": rows([SECOND_BYTES] * 20, cwnd_bytes=88)}, None),
        ({"rows": rows([SECOND_BYTES] * 20, rate_bps=8.8e3)}, "0.0088 Mbit/s from 0 to 1 s"),
        ({"rows": rows([SECOND_BYTES] * 20, rate_bps=8.78e6)}, None),
    ],
)  # fmt: skip
def test_arithmetic_within_a_test(changes: dict[str, object], impossible: str | None) -> None:
    said = found(transfer(**changes)).get("impossible")
    assert said == (f"iperf3.json: {impossible}" if impossible else None)


# Both ends, length, what was asked for -------------------------------------------------------


@pytest.mark.parametrize(("received", "apart"), [(2_100_000, True), (18_000_000, False)])
def test_what_was_handed_over_and_what_arrived(received: int, apart: bool) -> None:
    assert (
        "ends-apart" in found(transfer(received=Amount(received, 20.1)))
    ) is apart  # fmt: skip


def test_what_a_slow_sender_still_holds_is_in_no_result_of_the_kit() -> None:
    """In an odd but honest run of Mathis, 38.8 s over 154.5 ms with segments of 577 bytes, iperf3 had 2.3 MB left to send."""
    slow = transfer(sent=Amount(5_510_000, 38.8), received=Amount(3_198_000, 38.9))
    state = HostState({}, transfers=(slow,))
    settings = {"rate_mbit": 3000, "duration_s": 38.8, "rtt_ms": 154.5}
    for brought in (False, True):
        run = RunUnderTest(
            dict(settings), {"goodput_bps": 659e3}, max_loss_ratio=0.01, host_state=state, brought=brought
        )  # fmt: skip
        assert ("ends-apart" in {finding.id for finding in causes(run)}) is brought


@pytest.mark.parametrize(("deviation_bps", "another_run"), [(4.6188e6, False), (4.0e6, True)])
def test_rows_taken_from_a_file_spread_as_its_seconds_do(
    deviation_bps: float, another_run: bool
) -> None:
    one = transfer([1_000_000, 2_000_000] * 2)
    # A last row without a length says nothing.
    one = replace(one, node="host-1", rows=(*one.rows, Row(4.0, 4.0, 0)))
    run = RunUnderTest(
        {"rate_mbit": 100}, {"host_1_seconds_deviation_bps": deviation_bps}, host_state=HostState({}, transfers=(one,))
    )  # fmt: skip
    assert ("two-runs" in {finding.id for finding in causes(run)}) is another_run


@pytest.mark.parametrize(
    ("goodput_bps", "ids"),
    [(11.4e6, {"ends-apart"}), (21.9e9, {"link-rate"}), (9.9e6, set())],
)
def test_a_senders_number_above_the_link(goodput_bps: float, ids: set[str]) -> None:
    """A little above the link is what the sender's buffer holds; far above is another path."""
    sent = Amount(int(goodput_bps * 20 / 8), 20.0)
    alone = transfer(received=None, sent=sent, rows=())
    measured: Measured = {"goodput_bps": goodput_bps, "duration_s": 20.0}
    assert {*found(alone, measured=measured, rate_mbit=10)} == ids


@pytest.mark.parametrize(
    ("wanted", "asked", "off"),
    [(20, 20, False), (60, 20, True), (20, 30, True), (20.5, 20, False), (19, None, False), (10, None, True)],
)  # fmt: skip
def test_how_long_a_test_lasted(wanted: float, asked: float | None, off: bool) -> None:
    assert ("length" in found(transfer(asked_s=asked), duration_s=wanted)) is off


def test_a_receiver_is_done_later() -> None:
    served = transfer(sent=None, received=Amount(22_000_000, 26.0), rows=(), asked_s=None)
    assert "length" not in found(served)
    assert "length" in found(replace(served, received=Amount(22_000_000, 11.0)))


@pytest.mark.parametrize(
    ("bitrate_bps", "rate_mbit", "limited"),
    [(9e6, 100, True), (50e6, 100, False), (9e6, 9, False), (None, 100, False)],
)
def test_a_rate_that_iperf3_was_told(
    bitrate_bps: float | None, rate_mbit: float, limited: bool
) -> None:
    ids = found(
        transfer(options_bps={"-b": bitrate_bps} if bitrate_bps else {}), rate_mbit=rate_mbit
    )
    assert ("application-limited" in ids) is limited


@pytest.mark.parametrize(
    ("window", "cwnd", "params", "limited"),
    [
        (45_000, 90_000, {}, True),
        (45_000, 40_000, {}, False),  # the congestion window is smaller
        (90_000, 95_000, {}, False),  # half of it is used
        (45_000, 90_000, {"rate_mbit": 9.4}, False),  # the link is full
        (45_000, 90_000, {"rmem_max_bytes": 65_536}, False),  # asked for
    ],
)
def test_a_window_by_iperf3(
    window: int, cwnd: int, params: dict[str, float], limited: bool
) -> None:
    columns = rows([SECOND_BYTES] * 20, window_bytes=window, cwnd_bytes=cwnd, rtt_ms=40.2)
    assert ("receive-window" in found(transfer(rows=columns), **params)) is limited


@pytest.mark.parametrize(
    ("own", "other", "params", "busy"),
    [
        (99.8, 60.0, {}, "the sender's"),
        (60.0, 99.1, {}, "the receiver's"),
        (90.0, 90.0, {}, None),
        (99.8, 60.0, {"rate_mbit": 9.4}, None),
        (99.8, 60.0, {"loss_ratio": 0.001}, None),
    ],
)
def test_a_busy_processor(
    own: float, other: float, params: dict[str, float], busy: str | None
) -> None:
    ids = found(transfer(own_cpu_percent=own, other_cpu_percent=other), **params)
    assert ids.get("processor", "")[: len(busy or "")] == (busy or "")


# ping ----------------------------------------------------------------------------------------

REPLIES = "".join(
    f"64 bytes from 10.0.0.2: icmp_seq={n} ttl=63 time=40.{n} ms\n" for n in range(1, 4)
)


def ping(summary: str = "40.100/40.200/40.300/0.082", warning: str = "") -> PingRun:
    """Three replies, with that summary."""
    return parse_ping(
        f"PING b (10.0.0.2) 56(84) bytes of data.\n{REPLIES}{warning}\n--- b ping statistics ---\n"
        f"3 packets transmitted, 3 received, 0% packet loss, time 402ms\nrtt min/avg/max/mdev = {summary} ms\n",
        "ping.txt",
    )


@pytest.mark.parametrize(
    ("changes", "impossible"),
    [
        ({}, None),
        ({"warning": "Warning: time of day goes back (-17749us), taking countermeasures.\n"}, "its clock went back 1 times"),
        ({"summary": "0.000/40.200/40.300/0.082"}, "a smallest round-trip time of 0 ms"),
        ({"summary": "40.100/91.200/40.300/0.082"}, "a mean round-trip time of 91.2 ms"),
        ({"summary": "10.100/10.200/10.300/0.082"}, "a reply after 40.1 ms"),
    ],
)  # fmt: skip
def test_arithmetic_within_a_ping(changes: dict[str, str], impossible: str | None) -> None:
    said = found(pings=(ping(**changes),)).get("impossible")
    assert said == (f"ping.txt: {impossible}" if impossible else None)


# tc ------------------------------------------------------------------------------------------


def tc(words: str, drops: int = 0) -> tuple[Qdisc, ...]:
    """Two interfaces' qdiscs, as tc prints them; the second one is described."""
    counters = (
        " Sent {} bytes {} pkt (dropped {}, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
    )
    return parse_tc_qdiscs(
        "qdisc netem 10: dev eth1 root refcnt 2 limit 1000 delay 20ms\n"
        + counters.format(5000, 50, 0)
        + f"qdisc {words}\n"
        + counters.format(50_000_000, 40_000, drops),
        "tc.txt",
    )


NETEM = "netem 3: dev eth2 root refcnt 2 limit 1000 delay 20ms"


@pytest.mark.parametrize(
    ("words", "params", "finding"),
    [
        (NETEM, {"loss_ratio": 0.005}, "loss-ratio"),
        (f"{NETEM} loss 0.5%", {"loss_ratio": 0.005}, None),
        (f"{NETEM} loss 0.005%", {"loss_ratio": 0.005}, "loss-percent"),
        (f"{NETEM} loss 2%", {"loss_ratio": 0.005}, "loss-ratio"),
        (f"{NETEM} loss 0.5%", {"loss_ratio": 0}, "loss-ratio"),
        (NETEM, {"loss_ratio": 0}, None),
        (f"{NETEM} rate 10Mbit", {"rate_mbit": 100}, "configuration"),
        (f"{NETEM} rate 100Mbit", {"rate_mbit": 100}, None),
        ("tbf 1: dev eth2 root refcnt 2 rate 20Mbit burst 5Kb lat 50ms", {"rate_mbit": 10, "cable_mbit": 20}, None),
        (NETEM, {"rtt_ms": 20}, "configuration"),  # all of it in both directions
        ("netem 3: dev eth2 root refcnt 2 limit 1000 delay 300ms", {"rtt_ms": 40}, "configuration"),
    ],
)  # fmt: skip
def test_what_tc_prints_is_compared_with_the_settings(
    words: str, params: dict[str, float], finding: str | None
) -> None:
    assert {*found(qdiscs=tc(words), **params)} == ({finding} if finding else set())


def test_where_the_round_trip_was_measured_delays_are_not_added_up() -> None:
    assert not found(qdiscs=tc(NETEM), measured={"ping_rtt_min_ms": 20.1}, rtt_ms=20)


@pytest.mark.parametrize(
    ("drops", "goodput_bps", "overflows"), [(3900, 20e6, True), (3, 20e6, False), (3900, 93e6, False)]
)  # fmt: skip
def test_a_netem_that_draws_no_losses_and_drops(
    drops: int, goodput_bps: float, overflows: bool
) -> None:
    """Before a link that is full that is what a queue does."""
    ids = found(qdiscs=tc(NETEM, drops), measured={"goodput_bps": goodput_bps})
    assert ("netem-limit" in ids) is overflows


@pytest.mark.parametrize(
    ("drops", "again", "off"), [(2459, 9, True), (228, 230, False), (120, 40, False), (45, 0, False)]
)  # fmt: skip
def test_drops_that_nobody_resends(drops: int, again: int, off: bool) -> None:
    measured: Measured = {"qdisc_drops": drops, "retransmits": again, "retrans_total": again}
    assert ("drops-not-resent" in found(measured=measured)) is off


# No more than the files show -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("drops", "printed", "finding"),
    [(95, None, "loss-percent"), (0, None, "loss-ratio"), (95, "loss 0.5%", "loss-ratio")],
)
def test_a_hundredth_is_said_where_there_is_one(
    drops: int, printed: str | None, finding: str
) -> None:
    """No drop at all is no hundredth, and what tc prints as it was meant isn't called per cent."""
    measured: Measured = {"qdisc_drops": drops, "qdisc_offered_packets": 1_900_000}
    qdiscs = tc(f"{NETEM} {printed}") if printed else ()
    assert finding in found(measured=measured, qdiscs=qdiscs, loss_ratio=0.005)


@pytest.mark.parametrize(
    ("limit_bytes", "finding"),
    [
        (250_000, None),
        (250_000 * 1.024**2, "size-suffix"),
        (250_000 / 8, "size-suffix"),
        (250_000_000, "size-suffix"),
        (335_000, "configuration"),  # as with a peak rate
    ],
)
def test_a_suffix_is_blamed_for_factors_that_it_makes(
    limit_bytes: float, finding: str | None
) -> None:
    ids = found(measured={"queue_limit_bytes": limit_bytes}, buffer_bytes=250_000)
    assert {*ids} == ({finding} if finding else set())


@pytest.mark.parametrize(("flows", "words"), [(9, "never ran"), (11, "nobody asked for")])
def test_one_flow_too_many_is_no_flow_that_never_ran(flows: int, words: str) -> None:
    run = RunUnderTest({"flows": 10}, {"flows": flows, "segments": 10_000})
    (why,) = [finding.why for finding in causes(run) if finding.id == "missing-flows"]
    assert words in why


@pytest.mark.parametrize(("tested_s", "idle"), [(20, False), (50, True)])
def test_a_samplers_clock_that_jumps_makes_no_sender_idle(tested_s: float, idle: bool) -> None:
    """ss has the flow for 50 s, of which it sent 20: iperf3 knows how long it was to send."""
    flow = Socket(
        "romeo", 40968, "10.0.0.2:5201", "reno", alive_s=50.0, busy_s=19.8, rwnd_limited_ratio=0.0,
        sndbuf_limited_ratio=0.0, window_max_bytes=None, bytes_sent=22_000_000, bytes_acked=22_000_000,
    )  # fmt: skip
    test = transfer([SECOND_BYTES * 20 // tested_s] * int(tested_s))
    state = HostState({}, (flow,), transfers=(test,))
    run = RunUnderTest({"rate_mbit": 100, "duration_s": tested_s}, {}, host_state=state)
    assert ("application-limited" in {finding.id for finding in causes(run)}) is idle


@pytest.mark.parametrize(
    ("rtt_ms", "off"), [(3300.0, True), (48.0, False)]
)  # fmt: skip
def test_nobody_waits_longer_than_a_queue_takes_to_drain(rtt_ms: float, off: bool) -> None:
    """Ten packets before 10 Mbit/s are 12 ms."""
    counters = (
        " Sent 5000 bytes 50 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
    )
    fifo = parse_tc_qdiscs("qdisc pfifo 1: dev eth2 root refcnt 2 limit 10p\n" + counters, "tc.txt")
    ids = found(qdiscs=fifo, measured={"rtt_mean_ms": rtt_ms}, rate_mbit=10)
    assert ("unexplained" in ids) is off
    assert not off or "where path and full queues make 52 (tc)" in ids["unexplained"]


@pytest.mark.parametrize(
    ("again", "rate_mbit", "params", "off"),
    [
        (1400, 100, {}, True),
        (60, 100, {}, False),
        (1400, 10, {}, False),
        (1400, 100, {"loss_ratio": 0.002}, False),
    ],
)
def test_much_resent_and_most_of_the_link_unused(
    again: int, rate_mbit: float, params: dict[str, float], off: bool
) -> None:
    ids = found(transfer(retransmits=again), rate_mbit=rate_mbit, **params)
    assert ("unexplained" in ids) is off


def test_advice_for_files_from_elsewhere_names_what_they_have() -> None:
    """./lab show and ./lab diff know runs of ./lab only; and nothing is called right that wasn't looked at."""
    for brought in (True, False):
        state = HostState({}, transfers=(transfer(retransmits=1400),))
        run = RunUnderTest({"rate_mbit": 100}, {}, host_state=state, brought=brought)
        (finding,) = causes(run)
        assert ("tc -s qdisc" in finding.why, "./lab diff" in finding.why) == (brought, not brought)
        assert "the sender's bytes against the receiver's" in finding.why
        assert "segment size" not in finding.why


# What limits the flow ------------------------------------------------------------------------


def test_what_limits_a_flow_is_said_with_its_share_and_what_would_tell_more() -> None:
    """The largest share first: by ss of the time, by iperf3 of each bound that it tells of."""
    columns = rows([SECOND_BYTES] * 20, window_bytes=45_000, cwnd_bytes=90_000, rtt_ms=40.0)
    state = HostState({}, transfers=(transfer(rows=columns, options_bps={"-b": 20e6}),))
    by_iperf3 = limits(RunUnderTest({"rate_mbit": 100}, {}, host_state=state, brought=True))
    assert by_iperf3[0].startswith(
        "romeo: 8.8 Mbit/s, 98 % of the 9 Mbit/s that the receiver's window of 45000 B"
    )
    assert (
        "romeo: 8.8 Mbit/s, 44 % of the 20 Mbit/s that iperf3 was told (-b) (iperf3)" in by_iperf3
    )
    assert "romeo: 8.8 Mbit/s, 9 % of the link's 100 Mbit/s, less headers (iperf3)" in by_iperf3
    assert sum(line.startswith("not told: ") for line in by_iperf3) == 2
    flow = Socket(
        "romeo", 40968, "10.0.0.2:5201", "reno", alive_s=20.0, busy_s=16.0, rwnd_limited_ratio=0.75,
        sndbuf_limited_ratio=0.0, window_max_bytes=62_000, bytes_sent=22_000_000, bytes_acked=22_000_000,
        window_usual_bytes=45_000, held_up_by={WINDOW: 1.0},
    )  # fmt: skip
    by_ss = limits(
        RunUnderTest(
            {}, {"rtt_min_ms": 40.0, "rtt_mean_ms": 50.0}, host_state=HostState({}, (flow,))
        )
    )
    assert [line.split(" % ")[0].split()[-1] for line in by_ss[:4]] == ["60", "20", "20", "20"]
    assert "60 % of the time the receiver's window of 45000 B" in by_ss[0]
    assert "not told: how busy the processors were (iperf3 -J, or -V)" in by_ss


def test_of_a_run_it_is_said_where_it_is_asked_for() -> None:
    """It may be a case's cause, so that nobody is told unasked."""
    run = "sample-data/01-mathis/step-7-offloads/trial-07-seed1"
    assert "what limits the flow" not in call_lab("check", run, cwd=ROOT).stdout
    said = call_lab("check", run, "--limits", cwd=ROOT).stdout
    assert "  what limits the flow:\n    romeo:" in said
    assert "% of the time the congestion window" in said
