"""The lab's cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from typing import Any

from measuretwice import parse
from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    cell,
    excerpt,
    factor,
    mbit,
    measured,
    ms,
    param,
    percent,
    runs_as_columns,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.stats.intervals import effective_count, percentile
from measuretwice.tcp.model import drain_ms

from .runs import (
    BAD_DOWN,
    BAD_UP,
    FLOWS_RTT,
    IN_USE,
    ISP,
    MODEM,
    PING,
    PING_UNDER_LOAD,
    ROUTER,
    ROUTERS_WAIT,
    SS,
    call_mbit,
    set_mbit,
    stream_to,
)

ECN_COUNTERS = ("IpExtInNoECTPkts", "IpExtInECT0Pkts", "IpExtInCEPkts")
KEYS = ["kind", "packets", "drops", "backlog"]
# A line of ss about a flow upwards that has sent something.
UPLOAD = "10.6.5.2:5201 .*bytes_sent:[0-9]{6}"


def set_cases(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    cases: dict[str, Callable[[Facts, RecordedSets, Result, Result], None]] = {
        "wrong-side": _wrong_side,
        "dctcp-without-ecn": _dctcp_without_ecn,
        "shaped-above": _shaped_above,
        "after-the-load": _after_the_load,
        "probe-apart": _probe_apart,
        "mean-hides": _mean_hides,
        "large-burst": _large_burst,
    }
    for case, set_case in cases.items():
        if sets.is_recorded(f"{case}-broken") and sets.is_recorded(f"{case}-fixed"):
            of_case, (broken, fixed) = f.case(case), sets.stages(case)
            _of_both(of_case, case, broken, fixed)
            set_case(of_case, sets, broken, fixed)


def _of_both(f: Facts, case: str, broken: Result, fixed: Result) -> None:
    """What every case says of its two runs."""
    f.trial = Number(broken.trial)
    f.lasts = seconds(param(broken, "duration_s"))
    f.rtt = ms(param(broken, "rtt_ms"))
    f.ping_mean, f.ping_after = (ms(measured(run, "busy_ping_mean_ms")) for run in (broken, fixed))
    f.pings_factor = Number(factor(broken, fixed, "busy_ping_mean_ms"), digits=2)
    f.queue_mean, f.queue_mean_after = (
        ms(measured(run, "queue_delay_mean_ms"), 3) for run in (broken, fixed)
    )
    f.late_up, f.late_down = (
        percent(measured(broken, f"{node}_late_ratio")) for node in ("server", "phone")
    )
    f.late_up_after, f.late_down_after = (
        percent(measured(fixed, f"{node}_late_ratio")) for node in ("server", "phone")
    )
    f.drops = whole(measured(broken, "queue_drops"))
    f.ping, f.ping_fixed = (excerpt(f"{case}-{stage}", PING, last=2) for stage in ("broken", "fixed"))  # fmt: skip


def _goodputs(f: Facts, broken: Result) -> None:
    """What a case's flows got in its first try, by direction."""
    f.goodput_up = mbit(measured(broken, "laptop_goodput_bps"))
    f.goodput_down = mbit(measured(broken, "server_goodput_bps"))


def _counters(case: str, stage: str, file: str, **where: Any) -> Any:
    """A queue's own counters after a run."""
    return excerpt(f"{case}-{stage}", file, where=where, keys=KEYS)


def _waits(broken: Result, fixed: Result) -> Any:
    """What was waited in a case's two runs."""
    return runs_as_columns(
        "value",
        {"broken": broken, "fixed": fixed},
        {
            "ping under load": PING_UNDER_LOAD,
            "mean wait in the sampled queue": ROUTERS_WAIT,
            "link in use": IN_USE,
            "late or lost, to the server": BAD_UP,
            "late or lost, to the phone": BAD_DOWN,
        },
    )


def _wrong_side(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    case = "wrong-side"
    _goodputs(f, broken)
    router = sets.raw_object(broken, ROUTER, kind="fq_codel", handle="10:")
    modem, isp = (sets.raw_object(broken, file, kind="tbf") for file in (MODEM, ISP))
    f.packets = whole(router["packets"])
    f.waiting = Number(measured(broken, "queue_mean_packets"), digits=2)
    f.router_rate = set_mbit(param(broken, "router_up_mbit"))
    f.in_use = percent(measured(broken, "utilisation"), 2)
    f.modem_drops, f.isp_drops = whole(modem["drops"]), whole(isp["drops"])
    f.decides_nothing = measured(broken, "queue_mean_packets") < 1 and measured(
        broken, "queue_drops"
    ) == 0 < measured(fixed, "queue_drops")
    f.modem_drops_instead = router["drops"] == 0 < modem["drops"]
    f.pings_wait = factor(broken, fixed, "busy_ping_mean_ms") > 3
    f.qdiscs = excerpt(f"{case}-broken", "router/tc.txt", grep="qdisc (tbf|fq_codel)")
    f.counters = _counters(case, "broken", ROUTER, kind="fq_codel", parent="1:1")
    f.counters_fixed = _counters(case, "fixed", ROUTER, kind="fq_codel", parent="1:1")
    f.modem_counters = _counters(case, "broken", MODEM, kind="tbf")
    f.modem_counters_fixed = _counters(case, "fixed", MODEM, kind="tbf")
    f.stages = _waits(broken, fixed)
    f.both = runs_as_columns(
        "value",
        {"first try": broken, "fq_codel in front of the narrow link": fixed},
        {
            "packets that the router's fq_codel dropped": cell("queue_drops", whole),
            "mean wait there": ROUTERS_WAIT,
            "ping under load": PING_UNDER_LOAD,
        },
    )


def _dctcp_without_ecn(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    case = "dctcp-without-ecn"
    f.rate = set_mbit(param(broken, "router_up_mbit"))
    f.goodput, f.goodput_after = (mbit(measured(run, "goodput_bps")) for run in (broken, fixed))
    f.rtt_mean, f.rtt_after = (ms(measured(run, "rtt_mean_ms")) for run in (broken, fixed))
    waited_ms, after_ms = (
        measured(run, "rtt_mean_ms") - measured(run, "path_rtt_ms") for run in (broken, fixed)
    )
    f.waited, f.waited_after = ms(waited_ms, 3), ms(after_ms, 3)
    # Near the classic queue's target of 15 ms; and then below a millisecond or two.
    f.waits_as_classic_do = 15 / 2 <= waited_ms <= 2 * 15
    f.waits_little_after = after_ms <= 2
    before, after = (sets.counters_grown(run, "server") for run in (broken, fixed))
    none, some = ([grown[name] for name in ECN_COUNTERS[1:]] for grown in (before, after))
    f.marks_after = whole(after["IpExtInCEPkts"])
    f.nothing_was_marked = max(none) == 0 < min(some)
    f.retransmits, f.retransmits_after = (
        whole(measured(run, "retransmits")) for run in (broken, fixed)
    )
    for name, stage in (("ss", "broken"), ("ss_fixed", "fixed")):
        setattr(f, name, excerpt(f"{case}-{stage}", SS, grep=UPLOAD, last=1))
    f.nstat, f.nstat_fixed = (
        excerpt(f"{case}-{stage}", "server/nstat.after.json", counters=list(ECN_COUNTERS))
        for stage in ("broken", "fixed")
    )
    marks = {id(broken): before, id(fixed): after}
    f.stages = runs_as_columns(
        "value",
        {"broken": broken, "fixed": fixed},
        {
            "the flows' mean round trip": FLOWS_RTT,
            "goodput": cell("goodput_bps", mbit),
            "retransmissions": cell("retransmits", whole),
            "packets that came marked": lambda run: whole(marks[id(run)]["IpExtInCEPkts"]),
        },
    )


def _shaped_above(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    case = "shaped-above"
    _goodputs(f, broken)
    f.router_up_set, f.router_down_set = (
        set_mbit(param(broken, f"router_{way}_mbit")) for way in ("up", "down")
    )
    f.above = percent(param(broken, "router_up_mbit") / param(broken, "link_up_mbit") - 1)
    f.up_in_use = percent(measured(broken, "utilisation"))
    f.call = table(
        ("packets of the call", "half of them waited at most", "slowest hundredth", "late or lost"),
        (
            (
                f"to the {node}",
                ms(measured(broken, f"{node}_delay_p50_ms"), 3),
                ms(measured(broken, f"{node}_delay_p99_ms"), 3),
                percent(measured(broken, f"{node}_late_ratio")),
            )
            for node in ("server", "phone")
        ),
    )
    down, isp = (
        sets.raw_object(broken, ROUTER, kind="fq_codel", dev="from-modem"),
        sets.raw_object(broken, ISP, kind="tbf"),
    )
    f.down_drops, f.isp_drops = whole(down["drops"]), whole(isp["drops"])
    f.down_waits_at_the_provider = (
        down["drops"] == 0 < isp["drops"] and factor(broken, fixed, "busy_ping_mean_ms") > 2
    )
    f.up_is_not_full = measured(broken, "utilisation") < 0.95
    f.hardly_any_is_late_up = measured(broken, "server_late_ratio") < 0.05
    f.down_counters, f.down_counters_fixed = (
        _counters(case, stage, ROUTER, kind="fq_codel", dev="from-modem")
        for stage in ("broken", "fixed")
    )
    f.isp_counters = _counters(case, "broken", ISP, kind="tbf")
    f.isp_counters_fixed = _counters(case, "fixed", ISP, kind="tbf")
    f.stages = _waits(broken, fixed)


def _after_the_load(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    case = "after-the-load"
    _goodputs(f, broken)
    f.home_fifo = size(param(broken, "fifo_bytes"))
    text = sets.raw_text(broken, SS)
    last_of = [line for line in text.splitlines() if re.search(UPLOAD, line)][-1]
    f.ss_rtt = ms(float(re.findall(r" rtt:([0-9.]+)/", last_of)[0]), 3)
    last_s = float(re.findall(r"(?m)^# t=([0-9.]+)", text)[-1])
    answers = parse.parse_ping(sets.raw_text(broken, PING), PING).replies
    times_s = [reply.timestamp_s for reply in answers if reply.timestamp_s is not None]
    f.last_sample = f"{last_s:.3f}"
    f.pings_after = seconds(times_s[0] - last_s, 2)
    f.beside = percent(measured(broken, "busy_ping_beside_ratio"))
    f.pings_came_after = times_s[0] > last_s
    path_ms = measured(broken, "path_rtt_ms")
    f.pings_are_as_on_the_idle_path = measured(broken, "busy_ping_mean_ms") <= 1.02 * path_ms
    f.flows_wait = measured(broken, "rtt_mean_ms") > 3 * path_ms
    f.flows_rtt = ms(measured(broken, "rtt_mean_ms"))
    f.ss = excerpt(f"{case}-broken", SS, grep=UPLOAD, last=1)
    f.ping_first = excerpt(f"{case}-broken", PING, grep="icmp_seq", first=1)
    f.ping_last = excerpt(f"{case}-broken", PING, grep="icmp_seq", last=1)
    f.stages = runs_as_columns(
        "value",
        {"broken": broken, "fixed": fixed},
        {
            "ping": PING_UNDER_LOAD,
            "answers that came beside the flows": cell("busy_ping_beside_ratio", percent),
            "the flows' mean round trip": FLOWS_RTT,
            "late or lost, to the server": BAD_UP,
        },
    )


def _probe_apart(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    case = "probe-apart"
    f.up_flows = whole(param(broken, "up_flows"))
    f.call_rate = Number(call_mbit(broken), "Mbit/s")
    f.call_bytes, f.call_interval = (
        size(param(broken, "call_bytes")),
        ms(param(broken, "call_interval_ms")),
    )
    share = param(broken, "router_up_mbit") / (param(broken, "up_flows") + 1)
    f.even_share = Number(share, "Mbit/s")
    f.call_wants_more = call_mbit(broken) > share
    f.ping_p50 = ms(measured(broken, "busy_ping_p50_ms"), 3)
    f.call_p50 = ms(measured(broken, "server_delay_p50_ms"), 3)
    f.lost_up = percent(measured(broken, "server_lost_ratio"))
    f.late_of_judged = percent(sets.judged_number(case)) if _asks(sets, case) else f.late_up
    waited_ms = measured(broken, "busy_ping_p50_ms") - measured(broken, "path_rtt_ms")
    f.pings_hardly_wait = waited_ms < 5
    f.most_of_the_call_is_late = measured(broken, "server_late_ratio") > 0.5
    f.probe = runs_as_columns(
        "value",
        {"recorded run": broken},
        {
            "ping under load": PING_UNDER_LOAD,
            "half of the pings took at most": cell("busy_ping_p50_ms", ms),
            "half of the call's packets to the server waited at most": cell(
                "server_delay_p50_ms", ms
            ),
            "of these packets lost": cell("server_lost_ratio", percent),
            "late or lost": BAD_UP,
        },
    )


def _asks(sets: RecordedSets, case: str) -> bool:
    """Whether a case asks for a number of the student's own."""
    judgement = sets.lab.pitfall(case).judgement
    return bool(judgement and judgement.number)


def _mean_hides(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    f.watched = seconds(param(broken, "watch_s"))
    f.ping_p50, f.ping_p99 = (
        ms(measured(broken, f"busy_ping_{which}_ms"), 3) for which in ("p50", "p99")
    )
    delays = stream_to(sets, broken, "server").delays_ms
    f.packets = whole(len(delays))
    f.delay_mean = ms(statistics.fmean(delays), 3)
    f.delay_p50, f.delay_p95, f.delay_p99 = (
        ms(percentile(delays, share), 3) for share in (0.5, 0.95, 0.99)
    )
    f.delays = table(
        ("of the call's packets to the server", "waited"),
        (
            ("mean", f.delay_mean),
            ("median", f.delay_p50),
            ("95th percentile", f.delay_p95),
            ("99th percentile", f.delay_p99),
        ),
    )
    f.worth = Number(effective_count(delays), digits=2)
    near = [delay for delay in delays if 0.5 <= delay / statistics.fmean(delays) <= 2]
    f.near_the_mean = percent(len(near) / len(delays), 2)
    f.few_are_near_the_mean = len(near) < 0.1 * len(delays)
    f.median_is_idle = percentile(delays, 0.5) < 1
    f.tail_is_far_from_the_mean = percentile(delays, 0.99) > 3 * statistics.fmean(delays)
    f.many_are_late = measured(broken, "server_late_ratio") > 0.05


def _large_burst(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    case = "large-burst"
    _goodputs(f, broken)
    f.burst, f.burst_after = (size(param(run, "router_burst_bytes")) for run in (broken, fixed))
    f.burst_takes = ms(
        drain_ms(param(broken, "router_burst_bytes"), param(broken, "link_up_mbit")), 3
    )
    f.burst_takes_after = ms(
        drain_ms(param(fixed, "router_burst_bytes"), param(fixed, "link_up_mbit")), 2
    )
    f.by_second = table(
        ("second", "broken", "fixed"),
        (
            (Number(second), *(ms(pings, 3) for pings in both))
            for second, both in enumerate(
                zip(_by_second(sets, broken), _by_second(sets, fixed), strict=False), 1
            )
        ),
    )
    f.pings_wait = factor(broken, fixed, "busy_ping_mean_ms") > 1.5
    f.waits_elsewhere = measured(broken, "busy_ping_mean_ms") - measured(
        broken, "path_rtt_ms"
    ) > 2 * measured(broken, "queue_delay_mean_ms")
    f.tc = excerpt(f"{case}-broken", "router/tc.txt", grep="qdisc tbf")
    f.tc_fixed = excerpt(f"{case}-fixed", "router/tc.txt", grep="qdisc tbf")
    f.stages = _waits(broken, fixed)


def _by_second(sets: RecordedSets, run: Result) -> list[float]:
    """The phone's pings, their mean in each second from the first answer on, in ms."""
    answers = parse.parse_ping(sets.raw_text(run, PING), PING).replies
    timed = [
        (reply.timestamp_s - reply.rtt_ms / 1e3, reply.rtt_ms)
        for reply in answers
        if reply.timestamp_s is not None and reply.rtt_ms is not None
    ]
    begin_s = min(sent_s for sent_s, _ in timed)
    by_second: dict[int, list[float]] = {}
    for sent_s, rtt_ms in timed:
        by_second.setdefault(int(sent_s - begin_s), []).append(rtt_ms)
    return [statistics.fmean(by_second[second]) for second in sorted(by_second)]
