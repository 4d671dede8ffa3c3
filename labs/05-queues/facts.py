"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Probability,
    RecordedSets,
    Table,
    cell,
    column,
    excerpt,
    judge,
    mbit,
    mean,
    measured,
    ms,
    param,
    percent,
    runs_as_columns,
    table,
    whole,
)
from measuretwice.facts.values import WHOLE
from measuretwice.runs.result import Result
from measuretwice.stats import intervals, two_samples

# As the source printed them, in Mbit/s: of eight values each.
PUBLISHED_FIFO_DEVIATION, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS = 1.61, 2.49, 8
PUBLISHED_FIFO_MEAN, PUBLISHED_RED_MEAN = 51.56, 50.82
FRAME_BYTES, DATA_BYTES = 1514, 1448
PING, COUNTERS = "host-1/ping-busy.txt", "router-1/qdisc.after.json"
# Three questions are asked of the same runs, so each has a third of the usual limit (Bonferroni).
P_LIMIT = 0.05 / 3
WITH_FLOW_QUEUES = ("fq", "fq_codel", "cake")


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/05-queues/."""
    f = Facts()
    _settings(f, sets)
    _first_try(f, sets)
    _no_bottleneck(f.case("no-bottleneck"), sets)
    _wrong_metric(f.case("wrong-metric"), sets)
    _default_qdisc(f.case("default-qdisc"), sets)
    _red_limits(f.case("red-limits"), sets)
    _summary_row(f.case("summary-row"), sets)
    _copied_cell(f.case("copied-cell"), sets)
    _small_n(f.case("small-n"), sets)
    _published(f)
    _as_the_source_had_it(f, sets)
    _with_a_queue(f, sets)
    _in_use_today(f, sets)
    _packet_by_packet(f, sets)
    return f


def _settings(f: Facts, sets: RecordedSets) -> None:
    """What trials 1 (pfifo_fast) and 21 (RED) are set to."""
    fifo, red = sets.trial(1), sets.trial(21)
    f.rate = whole(fifo["rate_mbit"], "Mbit/s")
    f.duration = Number(fifo["duration_s"], "s")
    f.rtt = ms(fifo["rtt_ms"])
    f.fifo_room = whole(fifo["fifo_packets"])
    f.fifo_room_takes = ms(_drain_ms(FRAME_BYTES * fifo["fifo_packets"], fifo))
    f.burst = whole(fifo["burst_bytes"], "B")
    f.red_min = whole(red["red_min_bytes"], "B")
    f.red_max = whole(red["red_max_bytes"], "B")
    f.red_limit = whole(red["red_limit_bytes"], "B")
    f.red_min_takes = ms(_drain_ms(red["red_min_bytes"], red))
    f.red_max_takes = ms(_drain_ms(red["red_max_bytes"], red))
    f.red_avpkt = whole(red["red_avpkt_bytes"], "B")
    f.red_burst = whole(red["red_burst_packets"])
    f.red_probability = str(red["red_probability_ratio"])
    f.red_one_in = whole(1 / red["red_probability_ratio"])
    least = red["red_min_bytes"] / red["red_avpkt_bytes"]
    k = _ewma_log(red["red_burst_packets"], least)
    f.algorithm = str(fifo["congestion_control"])
    f.burst_guideline = Number(
        (2 * red["red_min_bytes"] + red["red_max_bytes"]) / (3 * red["red_avpkt_bytes"]), digits=4
    )
    f.burst_least = whole(least)
    f.burst_k, f.burst_w = whole(k), whole(2**k)
    tc = sets.raw_text(sets.run("red-limits-fixed"), "router-1/tc.txt")
    f.ewma = whole(int(re.findall(r"ewma (\d+)", tc)[0]))
    f.red_room_needed = whole(
        red["red_max_bytes"] + red["red_burst_packets"] * red["red_avpkt_bytes"], "B"
    )


def _ewma_log(burst_packets: float, least_packets: float) -> int:
    """The smallest k with which an average that follows by 2**-k lets so long a burst pass an empty queue (Linux'
    tc_red_eval_ewma in iproute2)."""
    return next(
        k
        for k in range(1, 32)
        if burst_packets + 1 - least_packets <= (1 - (1 - 0.5**k) ** burst_packets) / 0.5**k
    )


def _first_try(f: Facts, sets: RecordedSets) -> None:
    fifo, red = sets.run("first-try", trial=1), sets.run("first-try", trial=21)
    f.first_try = table(
        ("discipline", "both flows together"),
        (
            ("pfifo_fast", mbit(measured(fifo, "goodput_bps"), 4)),
            ("RED", mbit(measured(red, "goodput_bps"), 4)),
        ),
    )
    f.first_try_apart = _apart(red, fifo)


def _no_bottleneck(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("no-bottleneck-broken"), sets.run("no-bottleneck-fixed")
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
    f.packets_wait = measured(broken, "busy_ping_mean_ms") > 5 * measured(
        fixed, "busy_ping_mean_ms"
    )
    f.in_use = percent(measured(broken, "utilisation"))
    f.packets = whole(_red_counters(sets, broken)["packets"])
    counters = {
        "where": {"kind": "red"},
        "keys": ["kind", "packets", "drops", "marked", "early", "backlog"],
    }
    in_use, drops = cell("utilisation", percent), cell("queue_drops", whole)
    f.stages = runs_as_columns(
        "value",
        {"broken": broken, "fixed": fixed},
        {"RED's link in use": in_use, "RED's drops": drops, "ping under load": _ping},
    )
    f.both = runs_as_columns(
        "value",
        {"first try": broken, "RED before the narrow link": fixed},
        {"RED's link in use": in_use, "packets that RED dropped": drops, "ping under load": _ping},
    )
    f.ping = excerpt("no-bottleneck-broken", PING, last=2)
    f.pings_after = excerpt("no-bottleneck-fixed", PING, last=2)
    f.qdiscs = excerpt("no-bottleneck-broken", "router-1/tc.txt", grep="qdisc")
    f.counters = excerpt("no-bottleneck-broken", COUNTERS, **counters)
    f.red_after = excerpt("no-bottleneck-fixed", COUNTERS, **counters)


def _wrong_metric(f: Facts, sets: RecordedSets) -> None:
    name = "wrong-metric-broken"
    fifo, red, short = sets.run(name, trial=1), sets.run(name, trial=21), sets.run("short-fifo")
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
    f.waits_differ = measured(fifo, "busy_ping_mean_ms") > 3 * measured(red, "busy_ping_mean_ms")
    room_bytes = FRAME_BYTES * param(fifo, "fifo_packets")
    f.fifo_fills_its_room = measured(fifo, "queue_max_bytes") > 0.95 * room_bytes
    f.data_rate = Number(param(fifo, "rate_mbit") * DATA_BYTES / FRAME_BYTES, "Mbit/s")
    f.ss_fifo, f.ss_red = (
        excerpt(name, "host-1/ss.txt", grep="ESTAB.*bytes_sent:[0-9]{7}", last=1, trial=trial)
        for trial in (1, 21)
    )
    f.ping_fifo, f.ping_red = (excerpt(name, PING, last=2, trial=trial) for trial in (1, 21))
    both = {"pfifo_fast": fifo, "RED": red}
    in_use, waiting = cell("utilisation", percent), cell("queue_mean_bytes", _bytes)
    f.differences = runs_as_columns(
        "value",
        both,
        {
            "link in use": in_use,
            "ping under load, mean of both senders": _ping,
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
            "**ping under load**": _ping,
            "queue, mean": waiting,
        },
    )
    f.apart = _apart(red, fifo)
    f.wait_fifo = ms(measured(fifo, "queue_delay_mean_ms"))
    f.wait_red = ms(measured(red, "queue_delay_mean_ms"))
    f.in_use_red = percent(measured(red, "utilisation"))
    f.goodput_1, f.goodput_2 = (
        mbit(measured(run, "goodput_bps")) for run in sets.runs("wrong-metric-fixed")
    )
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
    f.goodput_change = Number(
        abs(100 * (1 - measured(short, "goodput_bps") / measured(fifo, "goodput_bps"))), "%", 2
    )
    f.ping_factor = Number(
        measured(fifo, "busy_ping_mean_ms") / measured(short, "busy_ping_mean_ms"), digits=2
    )


def _default_qdisc(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("default-qdisc-broken"), sets.run("default-qdisc-fixed")
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.ping_longest = ms(measured(fixed, "busy_ping_max_ms"))
    f.ping_mean = ms(measured(fixed, "busy_ping_mean_ms"))
    f.packets_hardly_wait = measured(broken, "busy_ping_mean_ms") < 0.3 * measured(
        fixed, "busy_ping_mean_ms"
    )
    rates = [measured(run, "goodput_bps") for run in (broken, fixed)]
    f.rates_are_alike = max(rates) <= 1.02 * min(rates)
    f.ping = excerpt("default-qdisc-broken", PING, last=2)
    f.qdisc = excerpt("default-qdisc-broken", "router-1/tc.txt")
    f.ping_fixed = excerpt("default-qdisc-fixed", PING, last=2)
    f.qdisc_fixed = excerpt("default-qdisc-fixed", "router-1/tc.txt", grep="qdisc")


def _red_limits(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("red-limits-broken"), sets.run("red-limits-fixed")
    f.typed = _red_as_typed(broken.params)
    f.limit = whole(param(broken, "red_limit_bytes"), "B")
    f.limit_takes = ms(_drain_ms(param(broken, "red_limit_bytes"), broken.params))
    f.lasts = Number(param(broken, "duration_s"), "s")
    f.longest = whole(measured(broken, "queue_max_bytes"), "B")
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.ping_mean = ms(measured(broken, "busy_ping_mean_ms"))
    f.cell_log = whole(measured(broken, "red_cell_log"))
    f.cell_log_fixed = whole(measured(fixed, "red_cell_log"))
    before, after = _red_counters(sets, broken), _red_counters(sets, fixed)
    f.pdrop = whole(before["pdrop"])
    f.early = whole(before["early"])
    counters = {"where": {"kind": "red"}, "keys": ["kind", "packets", "drops", "early", "pdrop"]}
    f.red = excerpt("red-limits-broken", "router-1/tc.txt", grep="red")
    f.counters = excerpt("red-limits-broken", COUNTERS, **counters)
    f.counters_fixed = excerpt("red-limits-fixed", COUNTERS, **counters)
    f.stages = table(
        (
            "stage", "dropped", "at random", "for lack of room", "longest queue", "ping under load", "goodput",
        ),
        ((
                stage,
                whole(measured(run, "queue_drops")),
                whole(counted["early"]),
                whole(counted["pdrop"]),
                whole(measured(run, "queue_max_bytes"), "B"),
                ms(measured(run, "busy_ping_mean_ms")),
                mbit(measured(run, "goodput_bps")),
            )
            for stage, run, counted in (("broken", broken, before), ("fixed", fixed, after))),
    )  # fmt: skip
    f.mended = runs_as_columns(
        "recorded runs",
        {"broken": broken, "mended": fixed},
        {
            "dropped": cell("queue_drops", whole),
            "longest queue": cell("queue_max_bytes", _bytes),
            "Scell_log": cell("red_cell_log", whole),
        },
    )
    f.with_room = table(
        ("value", "first try", "with room"),
        (
            ("limit", *(whole(param(run, "red_limit_bytes"), "B") for run in (broken, fixed))),
            ("dropped at random", whole(before["early"]), whole(after["early"])),
            ("dropped for lack of room", whole(before["pdrop"]), whole(after["pdrop"])),
            ("ping under load", *map(_ping, (broken, fixed))),
        ),
    )
    f.longer = ms(measured(fixed, "busy_ping_mean_ms") - measured(broken, "busy_ping_mean_ms"))
    f.random_drops_are_fewer = measured(fixed, "queue_drops") < measured(broken, "queue_drops")


def _red_as_typed(params: Mapping[str, Any]) -> str:
    """RED's parameters as a command has them, but for its rate."""
    return (
        "limit {red_limit_bytes} min {red_min_bytes} max {red_max_bytes} avpkt {red_avpkt_bytes} "
        "burst {red_burst_packets} probability {red_probability_ratio}"
    ).format(**params)


def _summary_row(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("summary-row-broken"), sets.run("summary-row-fixed")
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
    f.rates = excerpt("summary-row-broken", "host-1/rates.txt")
    f.average = excerpt("summary-row-broken", "host-1/average.txt")
    f.average_fixed = excerpt("summary-row-fixed", "host-1/average.txt")


def _copied_cell(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("copied-cell-broken", trial=6), sets.run("copied-cell-fixed", trial=6)
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
        mbit(statistics.stdev(_flow_rates(sets.runs("small-n-broken", discipline=discipline))))
        for discipline in ("pfifo_fast", "red")
    )
    theirs = two_samples.spread_of(
        PUBLISHED_FIFO_DEVIATION, PUBLISHED_RUNS, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS
    )
    f.theirs_f = Number(theirs.statistic)
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


def _published(f: Facts) -> None:
    spread = two_samples.spread_of(
        PUBLISHED_FIFO_DEVIATION, PUBLISHED_RUNS, PUBLISHED_RED_DEVIATION, PUBLISHED_RUNS
    )
    f.red_spreads_more_published = spread.p < 0.05
    f.printed_f = Number(spread.statistic)
    f.printed_p = Number(spread.p, digits=2)


def _as_the_source_had_it(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("no-queue")
    red = [measured(run, "queue_drops") for run in sets.runs("no-queue", discipline="red")]
    waiting = statistics.fmean(measured(run, "queue_mean_packets") for run in runs)
    f.access_mbit = whole(param(runs[0], "access_mbit"))
    f.trunk_mbit = whole(param(runs[0], "rate_mbit"))
    f.red_drops_at_random = max(red) > 0
    f.red_drops_nothing = max(red) == 0
    f.red_runs = whole(len(red))
    f.red_drops = whole(sum(red), "packets")
    f.waiting = Number(waiting, "packets", 2)
    f.hardly_any_waits = waiting < 1
    f.arms_no_queue = _arms(runs)


def _with_a_queue(f: Facts, sets: RecordedSets) -> None:
    fifo = sets.runs("two-arms", discipline="pfifo_fast")
    red = sets.runs("two-arms", discipline="red")
    f.two_arms = _arms(sets.runs("two-arms"))
    f.arm_runs = whole(len(fifo))
    f.arm_duration = Number(param(fifo[0], "duration_s"), "s")

    sums = two_samples.welch(column(fifo, "goodput_bps"), column(red, "goodput_bps"))
    waits = two_samples.welch(column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms"))
    even = two_samples.welch(column(fifo, "jains_index"), column(red, "jains_index"))
    f.welch_tests = table(
        ("question", "Welch's t", "p"),
        (
            (question, Number(test.statistic), Probability(test.p))
            for question, test in (
                ("Does the sum of both goodputs differ?", sums),
                ("Does delay under load differ?", waits),
                ("Do the flows share less evenly (Jain's index)?", even),
            )
        ),
    )
    f.p_limit = Number(P_LIMIT, digits=2)
    f.sharing_p = Probability(even.p)
    f.red_shares_less_evenly = even.statistic > 0 if even.p < P_LIMIT else None
    f.fifo_jain = Number(mean(fifo, "jains_index"))
    f.red_jain = Number(mean(red, "jains_index"))

    faster_bps = two_samples.difference_interval(
        column(fifo, "goodput_bps"), column(red, "goodput_bps")
    )
    f.fifo_is_faster = judge(faster_bps, least=0)
    f.fifo_minus_red = _interval(faster_bps, 1e-3, "kbit/s", 2)
    f.fifo_sum = mbit(mean(fifo, "goodput_bps"), 4)
    f.red_sum = mbit(mean(red, "goodput_bps"), 4)

    shorter_ms = two_samples.difference_interval(
        column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms")
    )
    f.red_keeps_the_queue_short = judge(shorter_ms, least=0)
    f.wait_less = _interval(shorter_ms, 1, "ms")
    f.wait_less_about = ms(sum(shorter_ms) / 2, 2)
    f.fifo_ping = ms(mean(fifo, "busy_ping_mean_ms"))
    f.red_ping = ms(mean(red, "busy_ping_mean_ms"))
    f.fifo_queue = whole(mean(fifo, "queue_mean_bytes"), "B")
    f.red_queue = whole(mean(red, "queue_mean_bytes"), "B")

    used_less = two_samples.difference_interval(
        column(fifo, "utilisation"), column(red, "utilisation")
    )
    f.red_uses_the_link_as_well = judge(used_less, most=0.01)
    f.use_less_most = percent(used_less[1], 1)
    f.fifo_use = percent(mean(fifo, "utilisation"))
    f.red_use = percent(mean(red, "utilisation"))

    once = "two-arms-once"
    f.fifo_once = whole(measured(sets.run(once, trial=1), "queue_mean_bytes"), "B")
    f.red_once = whole(measured(sets.run(once, trial=21), "queue_mean_bytes"), "B")


def _in_use_today(f: Facts, sets: RecordedSets) -> None:
    runs = sets.runs("disciplines")
    trials = [
        list(those)
        for _, those in groupby(sorted(runs, key=lambda run: run.trial), lambda run: run.trial)
    ]
    f.each_runs = whole(len(runs) / len(trials))
    f.disciplines = table(
        (
            "discipline", "ECN", "link in use", "ping under load", "RTT of the flows",
            "queue, mean", "drops", "marks", "Jain's index",
        ),
        ((
                str(those[0].params["discipline"]),
                str(those[0].params["ecn"]),
                percent(mean(those, "utilisation")),
                Interval.of_mean(column(those, "busy_ping_mean_ms")),
                Interval.of_mean(column(those, "rtt_mean_ms")),
                whole(mean(those, "queue_mean_bytes"), "B"),
                Number(mean(those, "queue_drops"), digits=2),
                Number(mean(those, "queue_marks"), digits=2),
                Interval.of_mean(column(those, "jains_index"), within=(0, 1)),
            )
            for those in trials),
    )  # fmt: skip
    least_used = min(mean(those, "utilisation") for those in trials)
    f.least_used = percent(least_used)
    f.all_fill_the_link = least_used > 0.99

    by_flow = [run for run in runs if run.params["discipline"] in WITH_FLOW_QUEUES]
    f.fq_ping = ms(mean(by_flow, "busy_ping_mean_ms"))
    f.fq_rtt = ms(mean(by_flow, "rtt_mean_ms"))
    f.path_rtt = ms(param(by_flow[0], "rtt_ms"))

    marked = sets.runs("disciplines", ecn="on")
    f.ecn_marks = Number(mean(marked, "queue_marks"), digits=2)
    f.ecn_drops = Number(mean(marked, "queue_drops"), digits=2)
    without = {
        (run.params["discipline"], run.seed): measured(run, "busy_ping_mean_ms")
        for run in sets.runs("disciplines", ecn="off")
    }
    changes = [
        abs(measured(run, "busy_ping_mean_ms") / without[run.params["discipline"], run.seed] - 1)
        for run in marked
    ]
    f.ecn_ping_change = percent(statistics.fmean(changes), 2)


def _packet_by_packet(f: Facts, sets: RecordedSets) -> None:
    """One flow before drop-tail (trial 41) or fq_codel (44), its queue looked at every few milliseconds."""
    reno, bbr = sets.run("packets-reno", trial=41), sets.run("packets-bbr", trial=41)
    fq_codel = sets.run("packets-reno", trial=44)
    room_bytes = param(reno, "fifo_packets") * FRAME_BYTES
    f.one_flow_rate = whole(param(reno, "rate_mbit"), "Mbit/s")
    f.one_flow_path = ms(param(reno, "rtt_ms"))
    f.tail_room = whole(param(reno, "fifo_packets"))
    f.tail_waiting = Number(measured(reno, "queue_mean_packets"), "packets", 2)
    f.tail_rtt = ms(measured(reno, "rtt_mean_ms"), 3)
    f.tail_goodput = mbit(measured(reno, "goodput_bps"))
    f.slow_start_fills_the_room = measured(reno, "queue_max_bytes") == room_bytes
    f.fq_codel_longest = whole(measured(fq_codel, "queue_max_bytes") / FRAME_BYTES, "packets")
    f.fq_codel_starts_longer = measured(fq_codel, "queue_max_bytes") > 2 * room_bytes
    f.fq_codel_ping = ms(measured(fq_codel, "busy_ping_mean_ms"), 3)
    f.bbr_waiting = Number(measured(bbr, "queue_mean_packets"), "packets", 2)
    f.bbr_goodput = mbit(measured(bbr, "goodput_bps"))
    f.bbr_fills_the_link = measured(bbr, "goodput_bps") > 0.99 * measured(reno, "goodput_bps")
    interval_s = param(reno, "sample_interval_s")
    f.sampled_every = ms(1e3 * interval_s)
    f.packet_takes = ms(_drain_ms(FRAME_BYTES, reno.params), 2)
    f.packets_a_sample = whole(1 + 1e3 * interval_s / _drain_ms(FRAME_BYTES, reno.params))
    f.pings_a_second = whole(1 / param(reno, "ping_interval_s"))


def _arms(runs: Sequence[Result]) -> Table:
    """Each discipline's flows: goodput in Mbit/s, ping in ms, drops in packets a run."""
    rows = []
    for name in sorted({str(run.params["discipline"]) for run in runs}):
        those = [run for run in runs if run.params["discipline"] == name]
        rates = [rate / 1e6 for rate in _flow_rates(those)]
        rows.append(
            (
                name,
                whole(len(those)),
                whole(len(rates)),
                Number(statistics.fmean(rates), "Mbit/s"),
                Number(statistics.median(rates), "Mbit/s"),
                Number(statistics.stdev(rates), "Mbit/s"),
                Interval.of_mean(column(those, "busy_ping_mean_ms")),
                Interval.of_mean(column(those, "queue_drops")),
            )
        )
    headings = (
        "discipline", "runs", "flows", "goodput of a flow: mean", "median", "standard deviation",
        "ping under load (ms)", "drops a run",
    )  # fmt: skip
    return table(headings, rows)


def _flow_rates(runs: Sequence[Result]) -> list[float]:
    """The goodput of each flow of each run, in bit/s."""
    return [flow.goodput_bps for run in runs for flow in run.flows]


def _ping(run: Result) -> Number:
    return ms(measured(run, "busy_ping_mean_ms"))


def _bytes(size: float) -> Number:
    return whole(size, "B")


def _apart(run: Result, other: Result) -> Number:
    """By how much two runs' goodputs differ, in percent of the other's."""
    return percent(abs(measured(run, "goodput_bps") / measured(other, "goodput_bps") - 1), 2)


def _drain_ms(size_bytes: float, params: Mapping[str, Any]) -> float:
    """How long a trial's link takes to send so many bytes."""
    return 8e3 * size_bytes / (float(params["rate_mbit"]) * 1e6)


def _red_counters(sets: RecordedSets, run: Result) -> dict[str, Any]:
    """What RED on router-1 counted by the end of a run, by tc's own names."""
    qdiscs = json.loads(sets.raw_text(run, COUNTERS))
    return dict(next(qdisc for qdisc in qdiscs if qdisc["kind"] == "red"))


def _interval(ends: tuple[float, float], scale: float, unit: str, digits: int = 3) -> Interval:
    low, high = (end * scale for end in ends)
    return Interval((low + high) / 2, low, high, unit, digits)
