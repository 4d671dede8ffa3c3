"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from measuretwice.facts import (
    Facts,
    Number,
    Numbers,
    RecordedSets,
    column,
    excerpt,
    mbit,
    measured,
    ms,
    param,
    percent,
    seconds,
    table,
    whole,
)
from measuretwice.measure.expectations import Verdict
from measuretwice.runs.result import Result
from measuretwice.stats import intervals

# What a frame has besides a segment's data: TCP, IP, Ethernet, without options.
HEADER_BYTES = 20 + 20 + 14
# A ping goes there and comes back, over two cables each way.
PASSES = 4
# The set in which each trial stands once, and what its last connection is in ss.
READINGS, CONNECTION = "readings", {"grep": " reno ", "last": 1}


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/00-calibrate/: a name says whose trial it is of."""
    f = Facts()
    _delay(f, sets.run(READINGS, trial=1))
    _rate(f, sets, sets.run(READINGS, trial=2))
    _loss(f, sets.run(READINGS, trial=3))
    _loss_again(f, sets.runs("loss-again"))
    _mtu(f, sets, sets.run(READINGS, trial=4))
    _offloads(f, sets.run(READINGS, trial=5), sets.run(READINGS, trial=6))
    _cables(f, sets.run(READINGS, trial=7), sets.run(READINGS, trial=8))
    return f


def _delay(f: Facts, run: Result) -> None:
    rtt_ms = param(run, "rtt_ms")
    f.delay = ms(rtt_ms / 2)
    f.delay_one_percent = ms(0.01 * rtt_ms, 1)
    f.delay_ping = excerpt(READINGS, "romeo/ping.txt", trial=1, last=2)
    f.delay_ss = excerpt(READINGS, "romeo/ss.txt", trial=1, **CONNECTION)
    f.delay_compared = table(
        ("reading", "set", "read", "may differ by"),
        (
            *(
                (verdict.label, ms(rtt_ms), ms(value, 5), ms((high - low) / 2, 1))
                for verdict, value, low, high in _expected(run, "ping_rtt_min_ms", "rtt_min_ms")
            ),
            (
                "mean of TCP's samples",
                "",
                ms(measured(run, "rtt_mean_ms")),
                "not an instrument for the path",
            ),
        ),
    )
    f.delay_ping_least = ms(measured(run, "ping_rtt_min_ms"))
    f.delay_tcp_least = ms(measured(run, "rtt_min_ms"))
    f.delay_tcp_mean = ms(measured(run, "rtt_mean_ms"))
    f.delay_queue = ms(measured(run, "rtt_mean_ms") - measured(run, "rtt_min_ms"), 2)


def _rate(f: Facts, sets: RecordedSets, run: Result) -> None:
    rate_bps, mss_bytes = param(run, "rate_mbit") * 1e6, param(run, "mss_bytes")
    frame_bytes = mss_bytes + HEADER_BYTES
    most_bps = rate_bps * mss_bytes / frame_bytes
    goodput_bps = measured(run, "goodput_bps")
    f.rate = mbit(rate_bps)
    f.rate_lasts = seconds(param(run, "duration_s"))
    f.rate_room = whole(param(run, "limit_packets"))
    f.rate_rtt = ms(param(run, "rtt_ms"))
    f.mss, f.frame = whole(mss_bytes, "B"), whole(frame_bytes, "B")
    f.rate_iperf3 = excerpt(READINGS, "romeo/iperf3.json", trial=2, between=['"sum_received"', "}"])
    f.rate_ss = excerpt(READINGS, "romeo/ss.txt", trial=2, **CONNECTION)
    f.rate_most, f.rate_read = mbit(most_bps, 4), mbit(goodput_bps, 4)
    f.goodput = mbit(goodput_bps)
    delivery_bps = re.findall(r" reno .*delivery_rate (\d+)bps", sets.raw_text(run, "romeo/ss.txt"))
    f.rate_compared = table(
        ("what", "how much"),
        (
            ("set", mbit(rate_bps)),
            (
                f"the most that it can carry: × {f.mss.bare} / {f.frame.bare}",
                mbit(most_bps, 4),
            ),
            ("goodput, by iperf3's receiver", mbit(goodput_bps, 4)),
            ("below the most", percent(1 - goodput_bps / most_bps, 2)),
            ("the moment's rate, by ss (`delivery_rate`)", mbit(int(delivery_bps[-1]), 4)),
        ),
    )
    f.rate_missing = percent(1 - goodput_bps / rate_bps, 2)
    f.most_of_it_are_headers = 1 - most_bps / rate_bps > 0.5 * (1 - goodput_bps / rate_bps)
    f.queue_takes = ms(param(run, "limit_packets") * frame_bytes * 8e3 / rate_bps, 3)
    f.rate_rtt_least = ms(measured(run, "rtt_min_ms"))
    f.rate_rtt_mean = ms(measured(run, "rtt_mean_ms"))
    f.rate_drops = whole(measured(run, "qdisc_drops"), "packets")
    f.sender_above = percent(measured(run, "sender_rate_bps") / goodput_bps - 1, 2)


def _loss(f: Facts, run: Result) -> None:
    ratio, pings = param(run, "loss_ratio"), int(measured(run, "ping_sent_packets"))
    f.loss = percent(ratio)
    f.pings = whole(pings)
    f.loss_ping = excerpt(READINGS, "romeo/ping.txt", trial=3, last=3)
    f.loss_counter = excerpt(
        READINGS, "router/qdisc.after.json", trial=3,
        where={"kind": "netem", "parent": "1:3"}, keys=["kind", "options", "packets", "drops"],
    )  # fmt: skip
    offered = measured(run, "qdisc_offered_packets")
    f.loss_compared = table(
        ("reading", "of", "read", "99 % of honest readings"),
        (
            (
                verdict.label,
                whole(pings if verdict.measured == "ping_loss_ratio" else offered),
                percent(value),
                f"{percent(low)} to {percent(high)}",
            )
            for verdict, value, low, high in _expected(run, "ping_loss_ratio", "loss_ratio")
        ),
    )
    f.pings_expected = whole(pings * ratio)
    f.pings_scatter = whole((pings * ratio * (1 - ratio)) ** 0.5)
    low, high = intervals.binomial_interval(pings, ratio, 0.99)
    f.pings_least, f.pings_most = whole(low * pings), whole(high * pings)
    f.pings_lost = whole(measured(run, "ping_loss_ratio") * pings)
    f.expected_known_to = percent(1 / (pings * ratio) ** 0.5, 1)
    low, high = intervals.loss_interval(2, 100)
    f.two_of_100_least, f.two_of_100_most = percent(low, 2), percent(high, 2)


def _loss_again(f: Facts, runs: Sequence[Result]) -> None:
    by_ping = column(runs, "ping_loss_ratio")
    f.again_by_ping = Numbers(tuple(100 * ratio for ratio in by_ping), "%")
    f.again = table(
        ("reading", "smallest", "middle", "largest", "outside of 99 %"),
        (
            (
                what,
                percent(min(ratios)),
                percent(sorted(ratios)[len(ratios) // 2]),
                percent(max(ratios)),
                Number(sum(verdict.ok is False for run in runs for verdict, *_ in _expected(run, name))),
            )
            for what, name, ratios in (
                ("by ping", "ping_loss_ratio", by_ping),
                ("by the counter", "loss_ratio", column(runs, "loss_ratio")),
            )
        ),
    )  # fmt: skip


def _mtu(f: Facts, sets: RecordedSets, run: Result) -> None:
    lengths = re.findall(r"length (\d+)", sets.raw_text(run, "router/tcpdump.txt").splitlines()[-1])
    f.mtu = whole(param(run, "mtu_bytes"), "B")
    f.mtu_mss = whole(param(run, "mss_bytes"), "B")
    f.mtu_ping_data = whole(param(run, "mtu_bytes") - 28)
    f.mtu_mss_read = whole(measured(run, "mss_bytes"), "B")
    f.mtu_packet = whole(measured(run, "largest_packet_bytes"), "B")
    f.mtu_frame = whole(int(lengths[0]), "B")
    f.mtu_ss = excerpt(READINGS, "romeo/ss.txt", trial=4, **CONNECTION)
    f.mtu_tcpdump = excerpt(READINGS, "router/tcpdump.txt", trial=4, last=1)


def _offloads(f: Facts, off: Result, on: Result) -> None:
    f.offloads_mtu = whole(param(on, "mtu_bytes"), "B")
    f.offloads_room = whole(param(on, "limit_packets"))
    f.off_tcpdump, f.on_tcpdump = (
        excerpt(READINGS, "router/tcpdump.txt", trial=trial, last=3) for trial in (5, 6)
    )

    def row(what: str, name: str, show: Callable[[float], Number]) -> tuple[str, Number, Number]:
        return what, show(measured(off, name)), show(measured(on, name))

    largest = row("largest packet, by tcpdump", "largest_packet_bytes", _bytes)
    mss = row("`mss`, by ss", "mss_bytes", _bytes)
    goodput = row("goodput, by iperf3", "goodput_bps", _mbit_4)
    per_ack = (
        Number(measured(run, "data_segs_out") / measured(run, "receiver_acks_out"), digits=2)
        for run in (off, on)
    )
    f.offloads = table(
        ("reading", "off", "on"),
        (
            largest,
            mss,
            row("segments sent, by ss", "data_segs_out", whole),
            row("ACKs that juliet sent, by nstat", "receiver_acks_out", whole),
            ("segments for one ACK", *per_ack),
            goodput,
        ),
    )
    f.offloads_in_short = table(("value", "off", "on"), (largest, mss, goodput))
    f.off_goodput, f.on_goodput = (mbit(measured(run, "goodput_bps")) for run in (off, on))
    apart = abs(measured(off, "goodput_bps") / measured(on, "goodput_bps") - 1)
    f.goodputs_apart = percent(apart, 1)
    f.neither_ss_nor_iperf3_tells = (
        measured(off, "mss_bytes") == measured(on, "mss_bytes") and apart < 0.01
    )


def _cables(f: Facts, small: Result, large: Result) -> None:
    count = param(small, "ping_count")
    f.cables_rtt = ms(param(small, "rtt_ms"))
    f.cable_pings = whole(count)
    f.ping_small = whole(param(small, "ping_bytes"), "B")
    f.ping_large = whole(param(large, "ping_bytes"), "B")
    f.ping_small_read, f.ping_large_read = (
        excerpt(READINGS, "romeo/ping.txt", trial=trial, last=2) for trial in (7, 8)
    )
    f.cable_speeds = excerpt(READINGS, "router/speed_mbit.txt", trial=7)
    f.small_least = ms(measured(small, "ping_rtt_min_ms"))
    f.large_least = ms(measured(large, "ping_rtt_min_ms"))
    more_bytes = param(large, "ping_bytes") - param(small, "ping_bytes")
    more_ms = measured(large, "ping_rtt_min_ms") - measured(small, "ping_rtt_min_ms")
    f.more_bytes, f.more_time = whole(more_bytes, "B"), ms(more_ms, 3)
    f.more_time_us = whole(1000 * more_ms, "µs")
    f.cable_resolution = percent(1 / (1000 * more_ms), 1)
    f.cable = whole(param(small, "cable_mbit"), "Mbit/s")
    f.cable_read = Number(PASSES * 8 * more_bytes / more_ms / 1000, "Mbit/s")
    f.cable_by_one_pass = Number(8 * more_bytes / more_ms / 1000)
    spread_ms = measured(small, "ping_rtt_mean_ms") - measured(small, "ping_rtt_min_ms")
    f.waits, f.waits_us = ms(spread_ms, 2), Number(1000 * spread_ms, "µs", 2)
    # A moment anywhere in 0..wait has a variance of wait**2 / 12, and there are two.
    wait_us = param(small, "processing_us")
    f.wait = whole(wait_us, "µs")
    f.waits_spread = Number(wait_us / 6**0.5, "µs", 2)
    f.mean_good_to = Number(1.96 * wait_us / (6 * count) ** 0.5, "µs", 2)
    f.mean_of_ten_good_to = Number(1.96 * wait_us / 60**0.5, "µs", 2)


def _expected(run: Result, *names: str) -> list[tuple[Verdict, float, float, float]]:
    """What these values of a run were expected to be: the verdict, what was read, and the range's ends."""
    found = []
    for verdict in run.expectations:
        if verdict.measured in names:
            assert verdict.value is not None
            assert verdict.low is not None
            assert verdict.high is not None
            found.append((verdict, verdict.value, verdict.low, verdict.high))
    return found


def _bytes(size: float) -> Number:
    return whole(size, "B")


def _mbit_4(rate_bps: float) -> Number:
    return mbit(rate_bps, 4)
