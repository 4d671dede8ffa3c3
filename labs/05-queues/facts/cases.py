"""The lab's cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from measuretwice.facts import (
    Facts,
    Number,
    Probability,
    RecordedSets,
    apart_by,
    cell,
    column,
    excerpt,
    factor,
    mbit,
    measured,
    ms,
    param,
    percent,
    runs_as_columns,
    size,
    table,
    whole,
)
from measuretwice.facts.values import WHOLE
from measuretwice.stats import intervals, two_samples
from measuretwice.tcp.model import USUAL_FRAME_BYTES, USUAL_MSS_BYTES, drain_ms

from .runs import (
    COUNTERS,
    FIFO,
    PING,
    PING_UNDER_LOAD,
    PUBLISHED_FIFO_DEVIATION,
    PUBLISHED_FIFO_MEAN,
    PUBLISHED_RED_DEVIATION,
    PUBLISHED_RED_MEAN,
    PUBLISHED_RUNS,
    RED,
    flow_rates,
    published_spread,
)


def set_cases(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    _no_bottleneck(f.case("no-bottleneck"), sets)
    _wrong_metric(f.case("wrong-metric"), sets)
    _shorter_fifo(f.case("wrong-metric"), sets)
    _default_qdisc(f.case("default-qdisc"), sets)
    _red_limits(f.case("red-limits"), sets)
    _summary_row(f.case("summary-row"), sets)
    _copied_cell(f.case("copied-cell"), sets)
    _small_n(f.case("small-n"), sets)


def _no_bottleneck(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("no-bottleneck")
    f.access = whole(param(broken, "access_mbit"), "Mbit/s")
    f.trunk = whole(param(broken, "rate_mbit"), "Mbit/s")
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.goodput_after = mbit(measured(fixed, "goodput_bps"))
    f.ping_mean = ms(measured(broken, "busy_ping_mean_ms"))
    f.ping_after = ms(measured(fixed, "busy_ping_mean_ms"))
    f.drops = whole(measured(broken, "queue_drops"))
    f.waiting = Number(measured(broken, "queue_mean_packets"), digits=2)
    f.red_decides_nothing = measured(broken, "queue_mean_packets") < 1 and measured(
        broken, "queue_drops"
    ) == 0 < measured(fixed, "queue_drops")
    f.packets_wait = factor(broken, fixed, "busy_ping_mean_ms") > 5
    f.in_use = percent(measured(broken, "utilisation"))
    f.packets = whole(sets.raw_object(broken, COUNTERS, kind="red")["packets"])
    counters = {
        "where": {"kind": "red"},
        "keys": ["kind", "packets", "drops", "marked", "early", "backlog"],
    }
    in_use, drops = cell("utilisation", percent), cell("queue_drops", whole)
    f.both = runs_as_columns(
        "value",
        {"first try": broken, "RED before the narrow link": fixed},
        {
            "RED's link in use": in_use,
            "packets that RED dropped": drops,
            "ping under load": PING_UNDER_LOAD,
        },
    )
    f.ping = excerpt("no-bottleneck-broken", PING, last=2)
    f.pings_after = excerpt("no-bottleneck-fixed", PING, last=2)
    f.qdiscs = excerpt("no-bottleneck-broken", "router-1/tc.txt", grep="qdisc")
    f.counters = excerpt("no-bottleneck-broken", COUNTERS, **counters)
    f.red_after = excerpt("no-bottleneck-fixed", COUNTERS, **counters)


def _wrong_metric(f: Facts, sets: RecordedSets) -> None:
    name = "wrong-metric-broken"
    fifo, red = sets.run(name, trial=FIFO), sets.run(name, trial=RED)
    f.goodputs = table(
        ("trial", "discipline", "host-1", "host-2", "mean"),
        (
            (
                Number(run.trial),
                str(run.params["discipline"]),
                mbit(measured(run, "host_1_goodput_bps")),
                mbit(measured(run, "host_2_goodput_bps")),
                mbit(measured(run, "goodput_bps") / 2),
            )
            for run in sets.runs(name)
        ),
    )
    two = sorted(measured(run, "goodput_bps") for run in (fifo, red))
    f.above = percent((two[1] / two[0] - 1), 2)
    f.rates_are_alike = two[1] <= 1.02 * two[0]
    f.waits_differ = factor(fifo, red, "busy_ping_mean_ms") > 3
    room_bytes = USUAL_FRAME_BYTES * param(fifo, "fifo_packets")
    f.fifo_fills_its_room = measured(fifo, "queue_max_bytes") > 0.95 * room_bytes
    f.data_rate = Number(param(fifo, "rate_mbit") * USUAL_MSS_BYTES / USUAL_FRAME_BYTES, "Mbit/s")
    f.ss_fifo, f.ss_red = (
        excerpt(name, "host-1/ss.txt", grep="ESTAB.*bytes_sent:[0-9]{7}", last=1, trial=trial)
        for trial in (FIFO, RED)
    )
    f.ping_fifo, f.ping_red = (excerpt(name, PING, last=2, trial=trial) for trial in (FIFO, RED))
    both = {"pfifo_fast": fifo, "RED": red}
    in_use, waiting = cell("utilisation", percent), cell("queue_mean_bytes", size)
    f.differences = runs_as_columns(
        "value",
        both,
        {
            "link in use": in_use,
            "ping under load, mean of both senders": PING_UNDER_LOAD,
            "queue, mean": waiting,
            "drops": cell("queue_drops", whole),
        },
    )
    f.in_short = runs_as_columns(
        "value",
        both,
        {
            "goodput of both": cell("goodput_bps", mbit),
            "link in use": in_use,
            "**ping under load**": PING_UNDER_LOAD,
            "queue, mean": waiting,
        },
    )
    f.apart = apart_by(red, fifo, "goodput_bps", 2)
    f.wait_fifo = ms(measured(fifo, "queue_delay_mean_ms"))
    f.wait_red = ms(measured(red, "queue_delay_mean_ms"))
    f.in_use_red = percent(measured(red, "utilisation"))
    f.goodput_1, f.goodput_2 = (
        mbit(measured(run, "goodput_bps")) for run in sets.runs("wrong-metric-fixed")
    )


def _shorter_fifo(f: Facts, sets: RecordedSets) -> None:
    """The first try's two runs of the case wrong-metric, and one of a FIFO with less room: the set short-fifo."""
    name = "wrong-metric-broken"
    fifo, red, short = sets.run(name, trial=FIFO), sets.run(name, trial=RED), sets.run("short-fifo")
    f.short_room = whole(param(short, "fifo_packets"))
    f.three = table(
        ("discipline", "room", "goodput", "ping under load"),
        (
            (
                discipline,
                Number(param(run, room), unit, WHOLE),
                mbit(measured(run, "goodput_bps")),
                ms(measured(run, "busy_ping_mean_ms")),
            )
            for discipline, run, room, unit in (
                ("pfifo_fast", fifo, "fifo_packets", "packets"),
                ("pfifo", short, "fifo_packets", "packets"),
                ("RED", red, "red_limit_bytes", "B"),
            )
        ),
    )
    f.goodput_change = apart_by(short, fifo, "goodput_bps", 2)
    f.ping_factor = Number(factor(fifo, short, "busy_ping_mean_ms"), digits=2)


def _default_qdisc(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("default-qdisc")
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.ping_longest = ms(measured(fixed, "busy_ping_max_ms"))
    f.ping_mean = ms(measured(fixed, "busy_ping_mean_ms"))
    f.packets_hardly_wait = factor(broken, fixed, "busy_ping_mean_ms") < 0.3
    rates = column((broken, fixed), "goodput_bps")
    f.rates_are_alike = max(rates) <= 1.02 * min(rates)
    f.ping = excerpt("default-qdisc-broken", PING, last=2)
    f.qdisc = excerpt("default-qdisc-broken", "router-1/tc.txt")
    f.ping_fixed = excerpt("default-qdisc-fixed", PING, last=2)
    f.qdisc_fixed = excerpt("default-qdisc-fixed", "router-1/tc.txt", grep="qdisc")


def _red_limits(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("red-limits")
    f.typed = _red_as_typed(broken.params)
    f.limit = size(param(broken, "red_limit_bytes"))
    f.limit_takes = ms(drain_ms(param(broken, "red_limit_bytes"), param(broken, "rate_mbit")))
    f.lasts = Number(param(broken, "duration_s"), "s")
    f.longest = size(measured(broken, "queue_max_bytes"))
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.ping_mean = ms(measured(broken, "busy_ping_mean_ms"))
    f.cell_log = whole(measured(broken, "red_cell_log"))
    f.cell_log_fixed = whole(measured(fixed, "red_cell_log"))
    before, after = (
        sets.raw_object(broken, COUNTERS, kind="red"),
        sets.raw_object(fixed, COUNTERS, kind="red"),
    )
    f.pdrop = whole(before["pdrop"])
    f.early = whole(before["early"])
    counters = {"where": {"kind": "red"}, "keys": ["kind", "packets", "drops", "early", "pdrop"]}
    f.red = excerpt("red-limits-broken", "router-1/tc.txt", grep="red")
    f.counters = excerpt("red-limits-broken", COUNTERS, **counters)
    f.counters_fixed = excerpt("red-limits-fixed", COUNTERS, **counters)
    f.stages = table(
        (
            "run", "dropped", "at random", "for lack of room", "longest queue", "ping under load", "goodput",
        ),
        ((
                stage,
                whole(measured(run, "queue_drops")),
                whole(counted["early"]),
                whole(counted["pdrop"]),
                size(measured(run, "queue_max_bytes")),
                ms(measured(run, "busy_ping_mean_ms")),
                mbit(measured(run, "goodput_bps")),
            )
            for stage, run, counted in (("first try", broken, before), ("with room", fixed, after))),
    )  # fmt: skip
    f.fixed = runs_as_columns(
        "value",
        {"first try": broken, "with room": fixed},
        {
            "dropped": cell("queue_drops", whole),
            "longest queue": cell("queue_max_bytes", size),
            "Scell_log": cell("red_cell_log", whole),
        },
    )
    f.with_room = table(
        ("value", "first try", "with room"),
        (
            ("limit", *(size(param(run, "red_limit_bytes")) for run in (broken, fixed))),
            ("dropped at random", whole(before["early"]), whole(after["early"])),
            ("dropped for lack of room", whole(before["pdrop"]), whole(after["pdrop"])),
            ("ping under load", *map(PING_UNDER_LOAD, (broken, fixed))),
        ),
    )
    f.longer = ms(measured(fixed, "busy_ping_mean_ms") - measured(broken, "busy_ping_mean_ms"), 3)
    f.random_drops_are_fewer = measured(fixed, "queue_drops") < measured(broken, "queue_drops")


def _red_as_typed(params: Mapping[str, Any]) -> str:
    """RED's parameters as a command has them, but for its rate."""
    return (
        "limit {red_limit_bytes} min {red_min_bytes} max {red_max_bytes} avpkt {red_avpkt_bytes} "
        "burst {red_burst_packets} probability {red_probability_ratio}"
    ).format(**params)


def _summary_row(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("summary-row")
    f.rows = whole(measured(broken, "rate_rows"))
    f.spanning = whole(measured(broken, "rate_rows_spanning"))
    rows = [line.split() for line in sets.raw_text(broken, "host-1/rates.txt").splitlines()]
    last_s = max(float(end) for _, end, _ in rows)
    totals = [
        float(rate) for start, end, rate in rows if float(start) == 0 and float(end) == last_s
    ]
    seconds = [
        float(rate) for start, end, rate in rows if not (float(start) == 0 and float(end) == last_s)
    ]
    f.averaged = table(
        ("host-1's rates", "rows", "mean", "standard deviation"),
        (
            (
                what,
                Number(len(rates)),
                mbit(statistics.fmean(rates)),
                mbit(intervals.mean_and_deviation(rates)[1]),
            )
            for what, rates in (("as averaged", seconds + totals), ("seconds only", seconds))
        ),
    )
    f.same_rates = measured(fixed, "host_1_goodput_bps") == measured(broken, "host_1_goodput_bps")
    # The case's title.
    f.looks_steadier = statistics.stdev(seconds + totals) < statistics.stdev(seconds)
    f.rates = excerpt("summary-row-broken", "host-1/rates.txt")
    f.average = excerpt("summary-row-broken", "host-1/average.txt")
    f.average_fixed = excerpt("summary-row-fixed", "host-1/average.txt")


def _copied_cell(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("copied-cell", trial=6)
    f.lasts = Number(param(broken, "duration_s"), "s")
    f.rows, f.rows_fixed = (
        table(
            ("trial", "receiver", "host-1", "host-2"),
            (
                (
                    Number(run.trial),
                    str(run.params["receiver"]),
                    mbit(measured(run, "host_1_goodput_bps")),
                    mbit(measured(run, "host_2_goodput_bps")),
                )
                for run in sets.runs(name)
            ),
        )
        for name in ("copied-cell-broken", "copied-cell-fixed")
    )
    before, after = (
        measured(run, "host_1_goodput_bps") + measured(run, "host_2_goodput_bps")
        for run in (broken, fixed)
    )
    f.change = percent(abs(after / before - 1), 2)
    f.nobody_notices = abs(after / before - 1) < 0.05
    f.connected_1, f.connected_6 = (
        excerpt(
            "copied-cell-broken", "host-1/iperf3.json", trial=trial, between=['"connected"', "}"]
        )
        for trial in (1, 6)
    )


def _small_n(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("small-n-broken")
    f.lasts = Number(param(runs[0], "duration_s"), "s")
    f.flows = table(
        ("discipline", "receiver", "flows, Mbit/s"),
        (
            (
                str(run.params["discipline"]),
                str(run.params["receiver"]),
                ", ".join(Number(flow.goodput_bps / 1e6, digits=4).bare for flow in run.flows),
            )
            for run in runs
        ),
    )
    f.deviation_fifo, f.deviation_red = (
        mbit(statistics.stdev(flow_rates(sets.runs("small-n-broken", discipline=discipline))))
        for discipline in ("pfifo_fast", "red")
    )
    theirs = published_spread()
    f.theirs_p = percent(theirs.p)
    f.p_one_way = Number(theirs.p / 2, digits=2)
    f.theirs_one_way = Number(50 * theirs.p, "%")
    f.noticeable = table(
        ("values in each sample", "ratio of deviations that is noticed four times in five"),
        ((Number(n), Number(two_samples.noticeable_spread(n), digits=2)) for n in (8, 16, 40, 100)),
    )
    f.values_needed = whole(two_samples.values_for_spread(1.5))
    f.power = percent(two_samples.power_of_spread(1.5, PUBLISHED_RUNS))
    fifo, red = (
        column(sets.runs("small-n-fixed", discipline=discipline), "busy_ping_mean_ms")
        for discipline in ("pfifo_fast", "red")
    )
    f.delays = table(
        ("discipline", "runs", "ping under load, mean", "standard deviation"),
        (
            (
                discipline,
                Number(len(waits)),
                ms(statistics.fmean(waits)),
                ms(intervals.mean_and_deviation(waits)[1]),
            )
            for discipline, waits in (("pfifo_fast", fifo), ("red", red))
        ),
    )
    welch = two_samples.welch(fifo, red)
    f.delays_differ = welch.p < 0.001
    f.welch_t, f.welch_p = Number(welch.statistic), Probability(welch.p)
    means = two_samples.welch_of(
        PUBLISHED_FIFO_MEAN, PUBLISHED_FIFO_DEVIATION, PUBLISHED_RUNS,
        PUBLISHED_RED_MEAN, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS,
    )  # fmt: skip
    f.means_t, f.means_p = Number(means.statistic, digits=2), Number(means.p, digits=2)
    f.means_hardly_differ = means.p > 0.05
