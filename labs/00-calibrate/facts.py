"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from measuretwice.base.errors import UserError
from measuretwice.facts import (
    Excerpt,
    Facts,
    Number,
    Numbers,
    RecordedSets,
    column,
    excerpt,
    factor,
    mbit,
    measured,
    ms,
    param,
    per,
    percent,
    percents,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.measure.expectations import Verdict
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp.model import ETHERNET_HEADER_BYTES, IP_TCP_HEADERS_BYTES, drain_ms

# What a frame has besides a segment's data, without options.
HEADER_BYTES = IP_TCP_HEADERS_BYTES + ETHERNET_HEADER_BYTES
# A ping goes there and comes back, over two cables each way.
PASSES = 4
# Trials by number: what each is to read.
DELAY, RATE, LOSS, MTU, OFFLOADS_OFF, OFFLOADS_ON, SMALL_PINGS, LARGE_PINGS = range(1, 9)
# The set in which each trial stands once, and what its last connection is in ss.
READINGS, CONNECTION = "readings", {"grep": " reno ", "last": 1}


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/00-calibrate/, where a name says whose trial it is of, and of the tools'
    pages in docs/start/, where it begins with the tool's."""
    f = Facts()
    _delay(f, sets.run(READINGS, trial=DELAY))
    _rate(f, sets, sets.run(READINGS, trial=RATE))
    _loss(f, sets.run(READINGS, trial=LOSS))
    _loss_again(f, sets.runs("loss-again"))
    _mtu(f, sets, sets.run(READINGS, trial=MTU))
    _offloads(f, sets.run(READINGS, trial=OFFLOADS_OFF), sets.run(READINGS, trial=OFFLOADS_ON))
    _cables(f, sets.run(READINGS, trial=SMALL_PINGS), sets.run(READINGS, trial=LARGE_PINGS))
    _ping(f, sets, sets.run(READINGS, trial=LOSS))
    _iperf3(f, sets, sets.run(READINGS, trial=RATE))
    _ss(f, sets)
    _tc(f, sets, sets.run(READINGS, trial=LOSS))
    _nstat(f, sets, sets.run(READINGS, trial=LOSS))
    _tcpdump(f, sets)
    return f


def _delay(f: Facts, run: Result) -> None:
    """The reading of an idle path with delay."""
    rtt_ms = param(run, "rtt_ms")
    f.delay = ms(rtt_ms / 2)
    f.delay_one_percent = ms(0.01 * rtt_ms, 1)
    f.delay_ping = excerpt(READINGS, "romeo/ping.txt", trial=DELAY, last=2)
    f.delay_ss = excerpt(READINGS, "romeo/ss.txt", trial=DELAY, **CONNECTION)
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
    """The reading whose link has a rate."""
    rate_bps, mss_bytes = param(run, "rate_mbit") * 1e6, param(run, "mss_bytes")
    frame_bytes = mss_bytes + HEADER_BYTES
    most_bps = rate_bps * mss_bytes / frame_bytes
    goodput_bps = measured(run, "goodput_bps")
    f.rate = mbit(rate_bps)
    f.rate_lasts = seconds(param(run, "duration_s"))
    f.rate_room = whole(param(run, "limit_packets"))
    f.rate_rtt = ms(param(run, "rtt_ms"))
    f.mss, f.frame = size(mss_bytes), size(frame_bytes)
    f.rate_iperf3 = excerpt(
        READINGS, "romeo/iperf3.json", trial=RATE, between=['"sum_received"', "}"]
    )
    f.rate_ss = excerpt(READINGS, "romeo/ss.txt", trial=RATE, **CONNECTION)
    f.rate_most, f.rate_read = mbit(most_bps, 4), mbit(goodput_bps, 4)
    f.goodput = mbit(goodput_bps)
    delivery_bps = re.findall(r" reno .*delivery_rate (\d+)bps", sets.raw_text(run, "romeo/ss.txt"))
    f.rate_compared = table(
        ("what", "how much"),
        (
            ("set", mbit(rate_bps)),
            (
                f"the most that the link can carry: × {f.mss.bare} / {f.frame.bare}",
                mbit(most_bps, 4),
            ),
            ("goodput, by iperf3's receiver", mbit(goodput_bps, 4)),
            ("the goodput is below that by", percent(1 - goodput_bps / most_bps, 2)),
            ("the latest rate, by ss (`delivery_rate`)", mbit(int(delivery_bps[-1]), 4)),
        ),
    )
    f.rate_missing = percent(1 - goodput_bps / rate_bps, 2)
    f.most_of_it_are_headers = 1 - most_bps / rate_bps > 0.5 * (1 - goodput_bps / rate_bps)
    f.queue_takes = ms(
        drain_ms(param(run, "limit_packets") * frame_bytes, param(run, "rate_mbit")), 3
    )
    f.rate_rtt_least = ms(measured(run, "rtt_min_ms"))
    f.rate_rtt_mean = ms(measured(run, "rtt_mean_ms"))
    f.rate_drops = whole(measured(run, "qdisc_drops"), "packets")
    f.sender_above = percent(measured(run, "sender_rate_bps") / goodput_bps - 1, 2)


def _loss(f: Facts, run: Result) -> None:
    """The trial with loss, one run."""
    ratio, pings = param(run, "loss_ratio"), int(measured(run, "ping_sent_packets"))
    f.loss = percent(ratio)
    f.pings = whole(pings)
    f.loss_ping = excerpt(READINGS, "romeo/ping.txt", trial=LOSS, last=3)
    f.loss_counter = excerpt(
        READINGS, "router/qdisc.after.json", trial=LOSS,
        where={"kind": "netem", "parent": "1:3"}, keys=["kind", "options", "packets", "drops"],
    )  # fmt: skip
    offered = measured(run, "qdisc_offered_packets")
    f.loss_compared = table(
        ("reading", "of packets", "lost", "99 % of honest readings"),
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
    f.pings_apart = whole(2.6 * (2 * pings * ratio * (1 - ratio)) ** 0.5)
    low, high = intervals.binomial_interval(pings, ratio, 0.99)
    f.pings_least, f.pings_most = whole(low * pings), whole(high * pings)
    f.pings_lost = whole(measured(run, "ping_loss_ratio") * pings)
    f.expected_known_to = percent(1 / (pings * ratio) ** 0.5, 1)
    low, high = intervals.loss_interval(2, 100)
    f.two_of_100_least, f.two_of_100_most = percent(low, 2), percent(high, 2)


def _loss_again(f: Facts, runs: Sequence[Result]) -> None:
    """The trial with loss, with several seeds."""
    by_ping = column(runs, "ping_loss_ratio")
    f.again_by_ping = Numbers(tuple(percents(runs, "ping_loss_ratio")), "%")
    f.again = table(
        ("reading", "smallest", "middle", "largest", "outside the 99 %"),
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
    """The trial with an MTU of its own."""
    lengths = re.findall(r"length (\d+)", sets.raw_text(run, "router/tcpdump.txt").splitlines()[-1])
    f.mtu = size(param(run, "mtu_bytes"))
    f.mtu_mss = size(param(run, "mss_bytes"))
    f.mtu_ping_data = whole(param(run, "mtu_bytes") - 28)
    f.mtu_mss_read = size(measured(run, "mss_bytes"))
    f.mtu_packet = size(measured(run, "largest_packet_bytes"))
    f.mtu_frame = size(int(lengths[0]))
    f.mtu_ss = excerpt(READINGS, "romeo/ss.txt", trial=MTU, **CONNECTION)
    f.mtu_tcpdump = excerpt(READINGS, "router/tcpdump.txt", trial=MTU, last=1)


def _offloads(f: Facts, off: Result, on: Result) -> None:
    """Two trials, offloads off and on."""
    f.offloads_mtu = size(param(on, "mtu_bytes"))
    f.offloads_room = whole(param(on, "limit_packets"))
    f.off_tcpdump, f.on_tcpdump = (
        excerpt(READINGS, "router/tcpdump.txt", trial=trial, last=3)
        for trial in (OFFLOADS_OFF, OFFLOADS_ON)
    )

    def row(what: str, name: str, show: Callable[[float], Number]) -> tuple[str, Number, Number]:
        return what, show(measured(off, name)), show(measured(on, name))

    largest = row("largest packet, by tcpdump", "largest_packet_bytes", size)
    mss = row("`mss`, by ss", "mss_bytes", size)
    goodput = row("goodput, by iperf3", "goodput_bps", _mbit_4)
    per_ack = (
        Number(per(run, "data_segs_out", "receiver_acks_out"), digits=2) for run in (off, on)
    )
    f.offloads = table(
        ("reading", "off", "on"),
        (
            largest,
            mss,
            row("segments sent, by ss", "data_segs_out", whole),
            row("ACKs that juliet sent, by nstat", "receiver_acks_out", whole),
            ("segments per ACK", *per_ack),
            goodput,
        ),
    )
    f.offloads_in_short = table(("value", "off", "on"), (largest, mss, goodput))
    f.off_goodput, f.on_goodput = (mbit(measured(run, "goodput_bps")) for run in (off, on))
    apart = abs(factor(off, on, "goodput_bps") - 1)
    f.goodputs_apart = percent(apart, 1)
    f.neither_ss_nor_iperf3_tells = (
        measured(off, "mss_bytes") == measured(on, "mss_bytes") and apart < 0.01
    )


def _cables(f: Facts, small: Result, large: Result) -> None:
    """Two trials, small packets and large ones over the same cables."""
    count = param(small, "ping_count")
    f.cables_rtt = ms(param(small, "rtt_ms"))
    f.cable_pings = whole(count)
    f.ping_small = size(param(small, "ping_bytes"))
    f.ping_large = size(param(large, "ping_bytes"))
    f.ping_small_read, f.ping_large_read = (
        excerpt(READINGS, "romeo/ping.txt", trial=trial, last=2)
        for trial in (SMALL_PINGS, LARGE_PINGS)
    )
    f.cable_speeds = excerpt(READINGS, "router/speed_mbit.txt", trial=SMALL_PINGS)
    f.small_least = ms(measured(small, "ping_rtt_min_ms"))
    f.large_least = ms(measured(large, "ping_rtt_min_ms"))
    more_bytes = param(large, "ping_bytes") - param(small, "ping_bytes")
    more_ms = measured(large, "ping_rtt_min_ms") - measured(small, "ping_rtt_min_ms")
    f.more_bytes, f.more_time = size(more_bytes), ms(more_ms, 3)
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


def _ping(f: Facts, sets: RecordedSets, run: Result) -> None:
    """What ping printed in the reading that its page explains."""
    text = sets.raw_text(run, "romeo/ping.txt")
    f.ping_begins = excerpt(READINGS, "romeo/ping.txt", trial=LOSS, first=4, explained="ping")
    f.ping_ends = excerpt(READINGS, "romeo/ping.txt", trial=LOSS, last=3, explained="ping")
    f.ping_seq = _found(r"icmp_seq=(\d+)", text)
    f.ping_ttl = _found(r"ttl=(\d+)", text)
    f.ping_time = _found(r"time=([\d.]+)", text)
    f.ping_count = whole(param(run, "ping_count"))
    f.ping_received = _found(r"(\d+) received", text)
    f.ping_loss = _found(r"([\d.]+%) packet", text)
    f.ping_whole_time = _found(r"time (\d+)ms", text)
    f.ping_interval = ms(int(f.ping_whole_time) / measured(run, "ping_sent_packets"), 3)
    f.ping_interval_set = ms(1000 * param(run, "ping_interval_s"))
    rtts = _found(r"= ([\d./]+) ms", text).split("/")
    f.ping_min, f.ping_avg, f.ping_max, f.ping_mdev = rtts
    f.ping_pipe = _found(r"pipe (\d+)", text)


def _iperf3(f: Facts, sets: RecordedSets, run: Result) -> None:
    """What iperf3 printed in the reading that its page explains."""
    report = json.loads(sets.raw_text(run, "romeo/iperf3.json"))
    sent, received = report["end"]["sum_sent"], report["end"]["sum_received"]
    second = report["intervals"][0]["streams"][0]

    def lines(**which: object) -> Excerpt:
        return excerpt(READINGS, "romeo/iperf3.json", trial=RATE, explained="iperf3", **which)

    f.iperf3_end = lines(between=['"sum_sent"', '"cpu_utilization_percent"'])
    f.iperf3_second = lines(between=['"intervals"', '"omitted"'])
    f.iperf3_ports = lines(grep='"(local_port|tcp_mss)"')
    f.iperf3_sent, f.iperf3_got = str(sent["bytes"]), str(received["bytes"])
    f.iperf3_sent_s, f.iperf3_got_s = str(sent["seconds"]), str(received["seconds"])
    f.iperf3_bps = str(received["bits_per_second"])
    f.resent = str(sent["retransmits"])
    f.sender_rate = mbit(measured(run, "sender_rate_bps"))
    f.cwnd = str(second["snd_cwnd"])
    f.cwnd_mss = whole(measured(run, "mss_bytes"))
    f.cwnd_segments = Number(second["snd_cwnd"] / measured(run, "mss_bytes"), digits=4)
    f.iperf3_us, f.iperf3_ms = str(second["rtt"]), ms(second["rtt"] / 1000)
    f.first_resent = str(second["retransmits"])


def _ss(f: Facts, sets: RecordedSets) -> None:
    """What ss printed in three readings."""
    of_trial = {trial: sets.run(READINGS, trial=trial) for trial in (DELAY, RATE, LOSS)}
    lines = {
        trial: [line for line in sets.raw_text(run, "romeo/ss.txt").splitlines() if " reno " in line][-1]
        for trial, run in of_trial.items()
    }  # fmt: skip
    full, free = lines[RATE], lines[LOSS]
    f.ss_line, f.ss_held = (
        excerpt(READINGS, "romeo/ss.txt", trial=trial, explained="ss", **CONNECTION)
        for trial in (RATE, DELAY)
    )
    f.ss_samples = excerpt(READINGS, "romeo/ss.txt", trial=RATE, grep="^# t=", first=2)
    f.ss_port = _found(r"10.10.1.100:(\d+)", full)
    f.ss_mss = _found(r" mss:(\d+)", full)
    f.ss_minrtt, f.ss_minrtt_free = (_found(r"minrtt:([\d.]+)", line) for line in (full, free))
    f.ss_rtt_var = _found(r" rtt:([^ ]+)", full)
    f.ss_rtt, f.ss_rtt_free = (_found(r" rtt:([\d.]+)", line) for line in (full, free))
    f.ss_rto = _found(r" rto:(\d+)", full)
    f.ss_cwnd = _found(r"cwnd:(\d+)", full)
    f.ss_ssthresh = _found(r"ssthresh:(\d+)", full)
    f.ss_segs = _found(r"data_segs_out:(\d+)", full)
    f.ss_retrans = _found(r" retrans:([^ ]+)", full)
    f.ss_acked = _found(r"bytes_acked:(\d+)", full)
    f.ss_delivery = _found(r"delivery_rate (\d+bps)", full)
    f.ss_unacked = _found(r"unacked:(\d+)", full)
    bits = 8 * int(f.ss_cwnd) * int(f.ss_mss)
    f.ss_rate = mbit(1000 * bits / float(f.ss_rtt))
    f.ss_queue = ms(float(f.ss_rtt) - float(f.ss_minrtt), 2)
    f.ss_goodput_free = mbit(measured(of_trial[LOSS], "goodput_bps"))
    f.ss_held_rtt = ms(param(of_trial[DELAY], "rtt_ms"))
    f.ss_sndbuf = _found(r"sndbuf_limited:([^ ]+)", lines[DELAY])


def _tc(f: Facts, sets: RecordedSets, run: Result) -> None:
    """What tc printed in the reading that its page explains."""
    losing, shaping = {"kind": "netem", "parent": "1:3"}, {"kind": "htb"}
    before, after = (
        sets.raw_object(run, f"router/qdisc.{when}.json", **losing) for when in ("before", "after")
    )
    htb = sets.raw_object(run, "router/qdisc.after.json", **shaping)
    f.tc_netem, f.tc_htb = (
        excerpt(READINGS, "router/qdisc.after.json", trial=LOSS, explained="tc", **which)
        for which in (
            {"where": losing},
            {"where": shaping, "keys": ["kind", "handle", "packets", "drops", "overlimits"]},
        )
    )
    options = after["options"]
    f.tc_dev, f.tc_parent = str(after["dev"]), str(after["parent"])
    f.tc_delay = str(options["delay"]["delay"])
    f.tc_loss = str(options["loss-random"]["loss"])
    f.tc_limit, f.tc_qlen = str(options["limit"]), str(after["qlen"])
    f.tc_overlimits = str(after["overlimits"])
    f.tc_packets, f.tc_drops = str(after["packets"]), str(after["drops"])

    def lost(counted: Mapping[str, int]) -> tuple[Number, Number, Number]:
        packets, drops = counted["packets"], counted["drops"]
        return whole(packets), whole(drops), percent(drops / (packets + drops))

    f.tc_before_and_after = table(
        ("when", "packets", "drops", "drops / (packets + drops)"),
        (
            ("before TCP: the pings", *lost(before)),
            ("after", *lost(after)),
            (
                "TCP alone",
                whole(measured(run, "qdisc_sent_packets")),
                whole(measured(run, "qdisc_drops")),
                percent(measured(run, "loss_ratio")),
            ),
        ),
    )
    f.tc_drops_of_htb = str(htb["drops"])
    f.htb_counts_the_same_drops = htb["drops"] == after["drops"]


def _nstat(f: Facts, sets: RecordedSets, run: Result) -> None:
    """nstat's counters around the reading that its page explains."""
    shown = {
        "romeo": {
            "TcpOutSegs": "romeo_out",
            "TcpRetransSegs": "romeo_resent",
            "TcpExtTCPFastRetrans": "fast_resent",
            "TcpExtTCPSackRecovery": "recoveries",
            "TcpExtTCPTimeouts": "timeouts",
            "TcpExtTCPLossProbes": "probes",
            "TcpExtTCPDSACKRecv": "needless",
        },
        "juliet": {
            "TcpInSegs": "juliet_in",
            "TcpOutSegs": "juliet_out",
            "TcpExtTCPOFOQueue": "out_of_order",
            "TcpExtTCPOFODrop": "ofo_drops",
            "TcpExtPruneCalled": "pruned",
        },
    }
    counted = {}
    for node, names in shown.items():
        file = f"{node}/nstat.after.json"
        counted[node] = json.loads(sets.raw_text(run, file))["kernel"]
        lines = {"trial": LOSS, "where": {}, "keys": list(names), "explained": "nstat"}
        setattr(f, f"nstat_{node}", excerpt(READINGS, file, **lines))
        for counter, name in names.items():
            setattr(f, name, str(counted[node][counter]))
    sent, resent = (counted["romeo"][name] for name in ("TcpOutSegs", "TcpRetransSegs"))
    arrived, needless = counted["juliet"]["TcpInSegs"], counted["romeo"]["TcpExtTCPDSACKRecv"]
    given, dropped, passed = (
        measured(run, name)
        for name in ("qdisc_offered_packets", "qdisc_drops", "qdisc_sent_packets")
    )
    f.nstat_counts = table(
        ("who", "counted", "where"),
        (
            ("romeo: sent, and retransmitted", f"{sent} + {resent} = {sent + resent}", "nstat"),
            ("the router: was given", whole(given), "tc, packets + drops"),
            ("the router: dropped", whole(dropped), "tc"),
            ("the router: passed on", whole(passed), "tc"),
            ("juliet: got", str(arrived), "nstat"),
        ),
    )
    f.counts_agree = sent + resent == given and arrived == passed
    f.nstat_drops = whole(dropped)
    f.resent_for_a_drop = str(resent - needless)


def _tcpdump(f: Facts, sets: RecordedSets) -> None:
    """What tcpdump printed, with offloads off and on."""
    off, on = (sets.run(READINGS, trial=trial) for trial in (OFFLOADS_OFF, OFFLOADS_ON))
    f.tcpdump_off, f.tcpdump_on = (
        excerpt(READINGS, "router/tcpdump.txt", trial=trial, last=2, explained="tcpdump")
        for trial in (OFFLOADS_OFF, OFFLOADS_ON)
    )
    line = sets.raw_text(off, "router/tcpdump.txt").splitlines()[-1]
    f.tcpdump_length, f.tcpdump_tcp = (_found(rf"{name} (\d+)", line) for name in ("length", "tcp"))
    f.tcpdump_port = _found(r"10.10.1.100.(\d+)", line)
    f.tcpdump_headers = whole(int(f.tcpdump_length) - 14 - int(f.tcpdump_tcp), "bytes")
    bundle = re.findall(r"tcp (\d{5})", sets.raw_text(on, "router/tcpdump.txt"))[-1]
    f.tcpdump_bundle = bundle
    f.tcpdump_segments = Number(int(bundle) / measured(on, "mss_bytes"))
    f.tcpdump_mtu = size(param(on, "mtu_bytes"))
    f.tcpdump_mss = size(measured(on, "mss_bytes"))
    f.tcpdump_kept = whole(param(off, "capture_packets"))


def _found(pattern: str, text: str) -> str:
    """What a tool printed, as it printed it; UserError where it didn't."""
    if (match := re.search(pattern, text)) is None:
        raise UserError(f"no tool printed {pattern!r}")
    return match[1]


def _expected(run: Result, *names: str) -> list[tuple[Verdict, float, float, float]]:
    """What these values of a run were expected to be: the verdict, what was read, and the range's ends."""
    expected = []
    for verdict in run.expectations:
        if verdict.measured in names:
            assert verdict.value is not None
            assert verdict.low is not None
            assert verdict.high is not None
            expected.append((verdict, verdict.value, verdict.low, verdict.high))
    return expected


def _mbit_4(rate_bps: float) -> Number:
    return mbit(rate_bps, 4)
