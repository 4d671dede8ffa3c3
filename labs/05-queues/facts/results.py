"""What became of the source's claims, and what is beyond them."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Judgement,
    Number,
    Numbers,
    Probability,
    RecordedSets,
    Table,
    agreed,
    by_trial,
    column,
    judge,
    mbit,
    mean,
    mean_interval,
    measured,
    ms,
    param,
    percent,
    size,
    table,
    us,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.runs.series import STEP_S
from measuretwice.stats import two_samples
from measuretwice.tcp.model import USUAL_FRAME_BYTES, drain_ms, shaped_goodput_bps

from .runs import (
    DROP_TAIL,
    FIFO,
    FQ_CODEL,
    PUBLISHED_FIFO_MEAN,
    PUBLISHED_RED_MEAN,
    RED,
    flow_rates,
    published_spread,
)

SIGNIFICANT = 0.05
# Of the link's use, what counts as no difference.
NO_DIFFERENCE_RATIO = 0.01
# FIFOs with room for so many packets: as many as RED has waiting on average, and a hundred.
SHORT_FIFOS = ("short-fifo-66", "short-fifo-100")
# Two disciplines before one receiver, by how long a host may let a packet wait.
TWO_ARMS = ("two-arms", "two-arms-wait-1-ms")
# The same with 100 Mbit/s on every link; and over a round trip of 100 ms.
EQUAL_LINKS, LONG_PATH = "equal-links", "two-arms-100-ms"
# When a run's start is over there, as far as series of ten seconds tell.
START_S = 20
WITH_FLOW_QUEUES = ("fq", "fq_codel", "cake")


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what results.md and its slides quote, of the sets no-queue, two-arms, disciplines and packets-*."""
    _published(f)
    _as_the_source_had_it(f, sets)
    _by_their_senders(f, sets)
    _with_a_queue(f, sets)
    _at_each_wait(f, sets)
    _in_use_today(f, sets)
    _packet_by_packet(f, sets)


def _published(f: Facts) -> None:
    """The F test of the source's two deviations."""
    spread = published_spread()
    f.red_spreads_more_published = spread.p < 0.05
    f.printed_f = Number(spread.statistic)
    f.printed_p = Number(spread.p, digits=2)


def _as_the_source_had_it(f: Facts, sets: RecordedSets) -> None:
    """Two disciplines where no queue forms, four receivers, five runs each: the set no-queue."""
    runs = sets.runs("no-queue")
    red = [measured(run, "queue_drops") for run in sets.runs("no-queue", discipline="red")]
    waiting = statistics.fmean(measured(run, "queue_mean_packets") for run in runs)
    f.access_mbit = whole(param(runs[0], "access_mbit"))
    f.trunk_mbit = whole(param(runs[0], "rate_mbit"))
    narrow, equal = (
        [measured(run, "queue_drops") for run in sets.runs(name, discipline="red")]
        for name in ("two-arms", "equal-links")
    )
    f.red_drops_at_random = agreed(max(drops) > 0 for drops in (red, narrow, equal))
    f.red_drops_equal = whole(sum(equal), "packets")
    f.equal_arms = _arms(sets.runs("equal-links"))
    f.red_drops_nothing = max(red) == 0
    f.red_drops_where_it_rules = mean_interval(
        sets.runs("two-arms", discipline="red"), "queue_drops"
    )
    f.red_runs = whole(len(red))
    f.red_drops = whole(sum(red), "packets")
    f.waiting = Number(waiting, "packets", 2)
    f.hardly_any_waits = waiting < 1
    f.arms_no_queue = _arms(runs)


def _by_their_senders(f: Facts, sets: RecordedSets) -> None:
    """One run of either discipline, the set two-arms-once: the sum of what both senders' programs count, beside that of
    what was acknowledged; and twice the source's means."""
    rate_mbit = param(sets.run("two-arms-once", trial=FIFO), "rate_mbit")
    limit_bps = shaped_goodput_bps(rate_mbit)
    sums = []
    for trial in (FIFO, RED):
        run = sets.run("two-arms-once", trial=trial)
        files = [f"{host}/iperf3.json" for host in ("host-1", "host-2")]
        tests = [json.loads(sets.raw_text(run, file)) for file in files]
        sums.append(sum(test["end"]["sum_sent"]["bits_per_second"] for test in tests))
    f.senders_count = Numbers.of([mbit(total) for total in sums])
    f.link_carries, f.link_carries_share = mbit(limit_bps), percent(limit_bps / rate_mbit / 1e6)
    f.senders_count_more = min(sums) > limit_bps
    published = [2e6 * mean_mbit for mean_mbit in (PUBLISHED_FIFO_MEAN, PUBLISHED_RED_MEAN)]
    f.source_sums = Numbers.of([mbit(total, 4) for total in published])
    f.source_sums_are_too_large = min(published) > limit_bps


def _with_a_queue(f: Facts, sets: RecordedSets) -> None:
    """The same forty trials, the narrow link between the routers: the set two-arms."""
    fifo = sets.runs("two-arms", discipline="pfifo_fast")
    red = sets.runs("two-arms", discipline="red")
    f.two_arms = _arms(sets.runs("two-arms"))
    f.arm_runs = whole(len(fifo))

    sums = two_samples.welch(column(fifo, "goodput_bps"), column(red, "goodput_bps"))
    waits = two_samples.welch(column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms"))
    even = two_samples.welch(column(fifo, "jains_index"), column(red, "jains_index"))
    tests = (sums, waits, even)
    corrected = two_samples.holm([test.p for test in tests])
    f.welch_tests = table(
        ("question", "Welch's t", "p", "p, corrected for three (Holm)"),
        (
            (question, Number(test.statistic), Probability(test.p), Probability(p))
            for question, test, p in zip(
                (
                    "Does the sum of both goodputs differ?",
                    "Does delay under load differ?",
                    "Does Jain's index differ?",
                ),
                tests,
                corrected,
                strict=True,
            )
        ),
    )
    ranks = two_samples.rank_sum(column(fifo, "jains_index"), column(red, "jains_index"))
    f.sharing_p, f.sharing_p_ranks = Probability(corrected[2]), Probability(ranks.p)
    f.fifo_jain = Number(mean(fifo, "jains_index"))
    f.red_jain = Number(mean(red, "jains_index"))

    low_bps, high_bps = two_samples.difference_interval(
        column(fifo, "goodput_bps"), column(red, "goodput_bps")
    )
    margin_bps = NO_DIFFERENCE_RATIO * 1e6 * param(fifo[0], "rate_mbit")
    alike = two_samples.equivalence(
        column(fifo, "goodput_bps"), column(red, "goodput_bps"), margin_bps
    )
    f.sums_alike_p = Probability(alike)
    f.fifo_minus_red = Interval.around((low_bps * 1e-3, high_bps * 1e-3), "kbit/s", 2)
    f.fifo_sum = mbit(mean(fifo, "goodput_bps"), 4)
    f.red_sum = mbit(mean(red, "goodput_bps"), 4)

    shorter_ms = two_samples.difference_interval(
        column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms")
    )
    f.wait_less = Interval.around(shorter_ms, "ms")
    f.wait_less_about = ms(sum(shorter_ms) / 2, 2)
    f.fifo_ping = ms(mean(fifo, "busy_ping_mean_ms"))
    f.red_ping = ms(mean(red, "busy_ping_mean_ms"))
    f.fifo_queue = size(mean(fifo, "queue_mean_bytes"))
    f.red_queue = size(mean(red, "queue_mean_bytes"))

    used_less = two_samples.difference_interval(
        column(fifo, "utilisation"), column(red, "utilisation")
    )
    used_alike = two_samples.equivalence(
        column(fifo, "utilisation"), column(red, "utilisation"), NO_DIFFERENCE_RATIO
    )
    f.used_alike_p = Probability(used_alike)
    f.use_less_most = percent(used_less[1], 1)
    f.fifo_use = percent(mean(fifo, "utilisation"))
    f.red_use = percent(mean(red, "utilisation"))

    short = [sets.runs(name) for name in SHORT_FIFOS]
    f.short_fifos = table(
        ("queue", "runs", "ping under load (ms)", "link in use (%)", "queue, mean",
         "drops per run", "Jain's index"),
        (
            (
                name,
                whole(len(runs)),
                mean_interval(runs, "busy_ping_mean_ms"),
                Interval.of_mean([100 * use for use in column(runs, "utilisation")]),
                size(mean(runs, "queue_mean_bytes")),
                Number(mean(runs, "queue_drops"), digits=2),
                mean_interval(runs, "jains_index", within=(0, 1)),
            )
            for name, runs in (
                ("pfifo_fast", fifo),
                ("RED", red),
                *((f"pfifo for {runs[0].params['fifo_packets']} packets", runs) for runs in short),
            )
        ),
    )  # fmt: skip
    f.short_ping_66 = mean_interval(short[0], "busy_ping_mean_ms", "ms")
    f.short_fifo_is_as_short = f.short_ping_66.high_value <= 1.1 * mean(red, "busy_ping_mean_ms")
    f.short_fifos_fill_the_link = min(mean(runs, "utilisation") for runs in short) > 0.99

    once = "two-arms-once"
    f.fifo_once = size(measured(sets.run(once, trial=FIFO), "queue_mean_bytes"))
    f.red_once = size(measured(sets.run(once, trial=RED), "queue_mean_bytes"))


def _at_each_wait(f: Facts, sets: RecordedSets) -> None:
    """The verdicts on the two arms, judged at each of the hosts' waits and over a long path: one that differs can't be told."""
    arms = [_of_each(sets, name) for name in TWO_ARMS]
    equal, far = _of_each(sets, EQUAL_LINKS), _of_each(sets, LONG_PATH)
    verdicts = [_verdicts(fifo, red) for fifo, red in (*arms, far)]
    with_equal_links = _verdicts(*equal)
    f.fifo_is_faster, f.red_keeps_the_queue_short, f.red_uses_the_link_as_well = (
        agreed(of_setting[name] for of_setting in verdicts)
        for name in ("fifo_is_faster", "red_keeps_the_queue_short", "red_uses_the_link_as_well")
    )
    f.red_shares_less_evenly = agreed(
        of["red_shares_less_evenly"] for of in (*verdicts, with_equal_links)
    )
    # Where hosts wait RED is more even, with equal links less, both surely; over a long path it can't be told.
    f.evenness_turns = [
        of["red_shares_less_evenly"] for of in (*verdicts[1:], with_equal_links)
    ] == [False, None, True]
    _over_a_long_path(f, sets, *far)
    f.jains_waiting, f.jains_equal, f.jains_far = (
        Numbers(
            tuple(
                mean(sets.runs(name, discipline=which), "jains_index")
                for which in ("pfifo_fast", "red")
            )
        )
        for name in (TWO_ARMS[1], EQUAL_LINKS, LONG_PATH)
    )
    f.two_arms_by_wait = table(
        ("a host waits up to", "discipline", "runs", "goodput of both (Mbit/s)", "ping under load (ms)",
         "drops per run", "Jain's index"),
        (
            (
                str(us(param(runs[0], "processing_us"))),
                str(runs[0].params["discipline"]),
                whole(len(runs)),
                Interval.of_mean([rate / 1e6 for rate in column(runs, "goodput_bps")], digits=4),
                mean_interval(runs, "busy_ping_mean_ms"),
                mean_interval(runs, "queue_drops"),
                mean_interval(runs, "jains_index", within=(0, 1)),
            )
            for pair in arms
            for runs in pair
        ),
    )  # fmt: skip


def _of_each(sets: RecordedSets, name: str) -> tuple[Sequence[Result], Sequence[Result]]:
    """Return the runs of a set with FIFO, and those with RED."""
    return sets.runs(name, discipline="pfifo_fast"), sets.runs(name, discipline="red")


def _late_use(sets: RecordedSets, run: Result) -> float:
    """Return which part of the link, 0 to 1, a run's flows had acknowledged per second once its start is over."""
    flows = [flow.acked_bytes for flow in sets.series(LONG_PATH, run.trial, run.seed)]
    steps = range(START_S // STEP_S, min(map(len, flows)))
    bits = 8 * sum(flow[step] for flow in flows for step in steps)
    return bits / (STEP_S * len(steps)) / (1e6 * param(run, "rate_mbit"))


def _over_a_long_path(
    f: Facts, sets: RecordedSets, fifo: Sequence[Result], red: Sequence[Result]
) -> None:
    """Set what RED's short queue costs where a round trip takes long, with the start and without it."""
    late = [[_late_use(sets, run) for run in runs] for runs in (fifo, red)]
    late_fifo, late_red = ([100 * part for part in parts] for parts in late)
    paid = Interval.of_difference(late_fifo, late_red, "%", 2)
    f.far_paid_late = paid
    f.red_pays_after_the_start = paid.low_value > 100 * NO_DIFFERENCE_RATIO
    f.far_rtt = ms(param(fifo[0], "rtt_ms"))
    f.far_use_fifo, f.far_use_red = (percent(mean(runs, "utilisation"), 3) for runs in (fifo, red))
    f.far_arms = table(
        (
            "discipline",
            "link in use",
            f"acknowledged data, share of the link, after {START_S} s",
            "ping under load",
            "Jain's index",
        ),
        (
            (
                str(runs[0].params["discipline"]),
                percent(mean(runs, "utilisation"), 3),
                percent(sum(parts) / len(parts), 4),
                ms(mean(runs, "busy_ping_mean_ms")),
                Number(mean(runs, "jains_index")),
            )
            for runs, parts in zip((fifo, red), late, strict=True)
        ),
    )
    f.far_sum_fifo, f.far_sum_red = (mbit(mean(runs, "goodput_bps")) for runs in (fifo, red))
    bdp_bytes = param(red[0], "rate_mbit") * 1e6 / 8 * param(red[0], "rtt_ms") / 1e3
    use = two_samples.difference_interval(column(fifo, "utilisation"), column(red, "utilisation"))
    f.red_pays_over_a_long_path = use[0] > NO_DIFFERENCE_RATIO
    f.red_least_in_far_bdp = Number(param(red[0], "red_min_bytes") / bdp_bytes, digits=2)


def _verdicts(fifo: Sequence[Result], red: Sequence[Result]) -> dict[str, Judgement]:
    """Return what twenty runs of either discipline say of the four claims (rules.toml)."""
    sums, waits, even = (
        two_samples.welch(column(fifo, name), column(red, name))
        for name in ("goodput_bps", "busy_ping_mean_ms", "jains_index")
    )
    p_sums, _, p_even = two_samples.holm([test.p for test in (sums, waits, even)])
    p_ranks = two_samples.rank_sum(column(fifo, "jains_index"), column(red, "jains_index")).p
    margin_bps = NO_DIFFERENCE_RATIO * 1e6 * param(fifo[0], "rate_mbit")
    equal = two_samples.equivalence(
        column(fifo, "goodput_bps"), column(red, "goodput_bps"), margin_bps
    )
    use = column(fifo, "utilisation"), column(red, "utilisation")
    used_alike = two_samples.equivalence(*use, NO_DIFFERENCE_RATIO)
    shorter_ms = two_samples.difference_interval(
        column(fifo, "busy_ping_mean_ms"), column(red, "busy_ping_mean_ms")
    )
    return {
        "fifo_is_faster": sums.statistic > 0 if p_sums < SIGNIFICANT else False if equal < SIGNIFICANT else None,
        "red_shares_less_evenly": even.statistic > 0 if max(p_even, p_ranks) < SIGNIFICANT else None,
        "red_keeps_the_queue_short": judge(shorter_ms, least=0),
        "red_uses_the_link_as_well": True if used_alike < SIGNIFICANT
        else judge(two_samples.difference_interval(*use), most=NO_DIFFERENCE_RATIO),
    }  # fmt: skip


def _in_use_today(f: Facts, sets: RecordedSets) -> None:
    """Nine disciplines, and five with ECN, one receiver: the set disciplines."""
    runs = sets.runs("disciplines")
    trials = list(by_trial(runs).values())
    f.each_runs = whole(len(runs) / len(trials))
    f.disciplines = table(
        (
            "discipline", "ECN", "link in use", "ping under load", "RTT of the flows",
            "queue, mean", "drops per run", "marks per run", "Jain's index",
        ),
        ((
                str(tries[0].params["discipline"]),
                str(tries[0].params["ecn"]),
                percent(mean(tries, "utilisation")),
                mean_interval(tries, "busy_ping_mean_ms"),
                mean_interval(tries, "rtt_mean_ms"),
                size(mean(tries, "queue_mean_bytes")),
                Number(mean(tries, "queue_drops"), digits=2),
                Number(mean(tries, "queue_marks"), digits=2),
                mean_interval(tries, "jains_index", within=(0, 1)),
            )
            for tries in trials),
    )  # fmt: skip
    least_used = min(mean(tries, "utilisation") for tries in trials)
    f.all_fill_the_link = least_used > 0.99

    by_flow = [run for run in runs if run.params["discipline"] in WITH_FLOW_QUEUES]
    f.fq_ping = ms(mean(by_flow, "busy_ping_mean_ms"))
    f.fq_rtt = ms(mean(by_flow, "rtt_mean_ms"))
    f.path_rtt = ms(param(by_flow[0], "rtt_ms"))

    marked = sets.runs("disciplines", ecn="on")
    f.ecn_marks = Number(mean(marked, "queue_marks"), digits=2)
    f.ecn_drops = Number(mean(marked, "queue_drops"), digits=2)
    changes = [
        mean(of_discipline, "busy_ping_mean_ms") / mean(without, "busy_ping_mean_ms") - 1
        for of_discipline in by_trial(marked).values()
        for without in [
            sets.runs("disciplines", ecn="off", discipline=of_discipline[0].params["discipline"])
        ]
    ]
    f.ecn_ping_change = percent(max(map(abs, changes)), 2)


def _packet_by_packet(f: Facts, sets: RecordedSets) -> None:
    """One flow before drop-tail (trial 41) or fq_codel (44), its queue looked at every few milliseconds."""
    reno, bbr = sets.run("packets-reno", trial=DROP_TAIL), sets.run("packets-bbr", trial=DROP_TAIL)
    fq_codel = sets.run("packets-reno", trial=FQ_CODEL)
    room_bytes = param(reno, "fifo_packets") * USUAL_FRAME_BYTES
    f.one_flow_rate = whole(param(reno, "rate_mbit"), "Mbit/s")
    f.one_flow_path = ms(param(reno, "rtt_ms"))
    f.tail_room = whole(param(reno, "fifo_packets"))
    f.tail_waiting = Number(measured(reno, "queue_mean_packets"), "packets", 2)
    f.tail_rtt = ms(measured(reno, "rtt_mean_ms"), 3)
    f.tail_goodput = mbit(measured(reno, "goodput_bps"))
    f.slow_start_fills_the_room = measured(reno, "queue_max_bytes") == room_bytes
    f.fq_codel_longest = whole(measured(fq_codel, "queue_max_bytes") / USUAL_FRAME_BYTES, "packets")
    f.fq_codel_starts_longer = measured(fq_codel, "queue_max_bytes") > 2 * room_bytes
    f.fq_codel_ping = ms(measured(fq_codel, "busy_ping_mean_ms"), 3)
    f.bbr_waiting = Number(measured(bbr, "queue_mean_packets"), "packets", 2)
    f.bbr_goodput = mbit(measured(bbr, "goodput_bps"))
    f.bbr_fills_the_link = measured(bbr, "goodput_bps") > 0.99 * measured(reno, "goodput_bps")
    interval_s = param(reno, "sample_interval_s")
    packet_ms = drain_ms(USUAL_FRAME_BYTES, param(reno, "rate_mbit"))
    f.sampled_every = ms(1e3 * interval_s)
    f.packet_takes = ms(packet_ms, 2)
    f.packets_a_sample = whole(math.floor(1 + 1e3 * interval_s / packet_ms))
    f.pings_a_second = whole(1 / param(reno, "ping_interval_s"))


def _arms(runs: Sequence[Result]) -> Table:
    """Each discipline's flows: goodput in Mbit/s, ping in ms, drops in packets a run."""
    rows = []
    for name in sorted({str(run.params["discipline"]) for run in runs}):
        arm = [run for run in runs if run.params["discipline"] == name]
        rates = [rate / 1e6 for rate in flow_rates(arm)]
        rows.append(
            (
                name,
                whole(len(arm)),
                whole(len(rates)),
                Number(statistics.fmean(rates), "Mbit/s"),
                Number(statistics.median(rates), "Mbit/s"),
                Number(statistics.stdev(rates), "Mbit/s"),
                mean_interval(arm, "busy_ping_mean_ms"),
                mean_interval(arm, "queue_drops"),
            )
        )
    headings = (
        "discipline", "runs", "flows", "goodput of a flow: mean", "median", "standard deviation",
        "ping under load (ms)", "drops per run",
    )  # fmt: skip
    return table(headings, rows)
