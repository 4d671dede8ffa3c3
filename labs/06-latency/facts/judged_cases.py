"""The cases about what is measured, and how it is summed up: which packets, which number of them, and when."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from measuretwice import parse
from measuretwice.facts import (
    Facts,
    Number,
    RecordedSets,
    cell,
    excerpt,
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
from measuretwice.stats.intervals import effective_count, percentile, values_for_percentile
from measuretwice.tcp.model import drain_ms

from .runs import (
    BAD_UP,
    CALL,
    FQ_CODEL,
    PING,
    PING_UNDER_LOAD,
    ROUTERS_WAIT,
    call_mbit,
    set_mbit,
    stream_to,
)

# The largest packet that a sender hands to its card, which cuts it (TSO).
TSO_BYTES = 65536


def probe_apart(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    """A video call beside eight flows: what pings say, and what the call's packets do."""
    case = "probe-apart"
    f.up_flows, f.down_flows = (whole(param(broken, f"{way}_flows")) for way in ("up", "down"))
    f.call_bytes = size(param(broken, "call_bytes"))
    f.call_interval = ms(param(broken, "call_interval_ms"))
    payload = 8e-3 * param(broken, "call_bytes") / param(broken, "call_interval_ms")
    f.call_rate = Number(payload, "Mbit/s")
    f.call_rate_with_headers = Number(call_mbit(broken), "Mbit/s")
    share = param(broken, "router_up_mbit") / (param(broken, "up_flows") + 1)
    f.fair_share = Number(share, "Mbit/s")
    f.call_wants_more_than_its_share = payload > 1.2 * share
    usual = sets.trial(FQ_CODEL)
    f.small_bytes, f.small_interval = size(usual["call_bytes"]), ms(usual["call_interval_ms"])
    f.bad_up, f.lost_up = (
        percent(measured(broken, f"server_{which}_ratio")) for which in ("late", "lost")
    )
    f.ping_p50 = ms(measured(broken, "busy_ping_p50_ms"), 3)
    f.call_p50 = ms(measured(broken, "server_delay_p50_ms"), 3)
    waited_ms = measured(broken, "busy_ping_p50_ms") - measured(broken, "path_rtt_ms")
    f.pings_hardly_wait = waited_ms < 5
    f.most_of_the_call_is_bad = measured(broken, "server_late_ratio") > 0.5
    f.call_lines = excerpt(f"{case}-broken", CALL, last=5)
    f.compared = table(
        ("packets", "half waited at most", "lost", "late or lost"),
        (
            (
                "pings, of both ends",
                ms(waited_ms, 3),
                percent(measured(broken, "busy_ping_loss_ratio")),
                "",
            ),
            (
                "the call's, to the server",
                ms(measured(broken, "server_delay_p50_ms"), 3),
                f.lost_up,
                f.bad_up,
            ),
        ),
    )
    f.stages = table(
        ("judged by", "gives"),
        (
            ("pings, their mean", PING_UNDER_LOAD(broken)),
            ("the call's packets to the server, late or lost", BAD_UP(fixed)),
        ),
    )


def mean_hides(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    """An upload of a few seconds, and pings and a call that go on: the phone's pings, and the call's packets to the server."""
    f.watched, f.load_lasts = (seconds(param(broken, name)) for name in ("watch_s", "duration_s"))
    pings = [rtt_ms for _, rtt_ms in _timed(sets, broken)]
    mean_ms = statistics.fmean(pings)
    path_ms = measured(broken, "path_rtt_ms")
    f.above_idle = ms(measured(broken, "busy_ping_mean_ms") - path_ms, 3)
    f.call_mean = ms(measured(broken, "server_delay_mean_ms"), 3)
    f.call_median = ms(measured(broken, "server_delay_p50_ms"), 3)
    f.call_p99 = ms(measured(broken, "server_delay_p99_ms"), 3)
    f.ping_median, f.ping_p99 = (ms(percentile(pings, share), 3) for share in (0.5, 0.99))
    f.ping_most = ms(max(pings), 3)
    f.pings = whole(len(pings))
    near = sum(abs(rtt_ms / mean_ms - 1) <= 0.1 for rtt_ms in pings) / len(pings)
    f.near_mean = percent(near, 2)
    f.few_are_near_the_mean = near < 0.1
    f.median_is_the_idle_path = percentile(pings, 0.5) < 1.1 * path_ms
    f.some_are_late = measured(broken, "server_late_ratio") > 0.03
    f.effective = Number(effective_count(pings), digits=2)
    rows = [(f"{100 * share:g}th", ms(percentile(pings, share), 3)) for share in (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)]  # fmt: skip
    rows.append(("*mean*", ms(mean_ms, 3)))
    rows.sort(key=lambda row: row[1].value)
    f.quantiles = table(("percentile", "the phone's pings"), [*rows, ("longest", f.ping_most)])
    interval_s = param(broken, "ping_interval_s")
    f.samples_needed = table(
        ("percentile", "samples needed", f"with a ping every {1000 * interval_s:g} ms"),
        (
            (f"{100 * share:g}th", whole(count), seconds(count * interval_s, 2))
            for share, count in (
                (share, values_for_percentile(share)) for share in (0.95, 0.99, 0.999)
            )
        ),
    )
    f.stages = table(
        ("judged by", "gives"),
        (
            ("pings, their mean", PING_UNDER_LOAD(broken)),
            ("pings, their 99th percentile", cell("busy_ping_p99_ms", ms)(broken)),
            ("the call's packets to the server, late or lost", BAD_UP(fixed)),
        ),
    )
    _calls_delays(f, stream_to(sets, broken, "server").delays_ms)


def _calls_delays(f: Facts, delays: Sequence[float]) -> None:
    """Of the first try, the call's packets to the server: how much longer than the fastest of them each took."""
    f.call_packets = whole(len(delays))
    f.call_worth = Number(effective_count(delays), digits=2)
    rows = [(f"{100 * share:g}th percentile", ms(percentile(delays, share), 3)) for share in (0.5, 0.95, 0.99)]  # fmt: skip
    f.call_delays = table(
        ("of the call's packets to the server", "waited"),
        [("mean", ms(statistics.fmean(delays), 3)), *rows],
    )


def large_burst(f: Facts, sets: RecordedSets, broken: Result, fixed: Result) -> None:
    """A router that may send much at once before its rate applies: the phone's pings, second by second."""
    case = "large-burst"
    f.burst, f.burst_fixed = (size(param(run, "router_burst_bytes")) for run in (broken, fixed))
    link, router = param(broken, "link_up_mbit"), param(broken, "router_up_mbit")
    f.link_up, f.router_up = set_mbit(link), set_mbit(router)
    f.burst_takes = ms(drain_ms(param(broken, "router_burst_bytes"), link), 3)
    f.burst_takes_fixed = ms(drain_ms(param(fixed, "router_burst_bytes"), link), 2)
    f.drains_in = seconds(drain_ms(param(broken, "router_burst_bytes"), link - router) / 1e3, 2)
    f.tso_takes = ms(drain_ms(TSO_BYTES, link), 2)
    before, after = _by_second(sets, broken), _by_second(sets, fixed)
    f.by_second, f.by_second_fixed = (
        table(
            ("second of the run", "mean of its pings"),
            ((Number(second), ms(mean_ms, 3)) for second, mean_ms in enumerate(pings, 1)),
        )
        for pings in (before, after)
    )
    f.both_by_second = table(
        ("second of the run", "first try", "fixed"),
        (
            (Number(second), *(ms(mean_ms, 3) for mean_ms in both))
            for second, both in enumerate(zip(before, after, strict=False), 1)
        ),
    )
    f.first_seconds, f.last_seconds = (
        ms(statistics.fmean(part), 3) for part in (before[:2], before[-2:])
    )
    f.waits_at_first = statistics.fmean(before[:2]) > 2 * param(broken, "rtt_ms")
    f.waits_little_later = statistics.fmean(before[-2:]) < 1.5 * param(broken, "rtt_ms")
    f.own_queue_is_short = measured(broken, "queue_delay_mean_ms") < 20
    f.pings_over_time = f.by_second
    f.tc, f.tc_fixed = (
        excerpt(f"{case}-{stage}", "router/tc.txt", grep="^qdisc tbf", first=1)
        for stage in ("broken", "fixed")
    )
    f.stages = runs_as_columns(
        "value",
        {"first try": broken, "with a small burst": fixed},
        {
            "ping under load": PING_UNDER_LOAD,
            "its 99th percentile": cell("busy_ping_p99_ms", ms),
            "mean wait in the sampled queue": ROUTERS_WAIT,
            "packets of the call to the server, late or lost": BAD_UP,
            "goodput up": cell("laptop_goodput_bps", mbit),
        },
    )


def _timed(sets: RecordedSets, run: Result) -> list[tuple[float, float]]:
    """The phone's pings: when each was sent (Unix time, by when its answer came), and how long it took, in ms."""
    answers = parse.parse_ping(sets.raw_text(run, PING), PING).replies
    return [
        (reply.timestamp_s - reply.rtt_ms / 1e3, reply.rtt_ms)
        for reply in answers
        if reply.timestamp_s is not None and reply.rtt_ms is not None
    ]


def _by_second(sets: RecordedSets, run: Result) -> list[float]:
    """The mean of the phone's pings in each second from the first ping on, in ms."""
    timed = _timed(sets, run)
    begin_s = min(sent_s for sent_s, _ in timed)
    by_second: dict[int, list[float]] = {}
    for sent_s, rtt_ms in timed:
        by_second.setdefault(int(sent_s - begin_s), []).append(rtt_ms)
    return [statistics.fmean(by_second[second]) for second in sorted(by_second)]
