"""One trial worked through, the design, and what became of the claims."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    RecordedSets,
    Table,
    agreed,
    column,
    excerpt,
    factor,
    judge,
    mbit,
    measured,
    ms,
    param,
    percent,
    seconds,
    size,
    table,
    whole,
)
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp import model

from .runs import (
    DROPS,
    DURATION_STEP,
    FEWEST_LOSSES,
    GOODPUT,
    LASTS,
    LONG,
    LONG_WAIT,
    MOST_LOSSES,
    MTU_STEP,
    RANDOM,
    RANDOM_DELAYED,
    RATE_STEP,
    RATIO,
    RECEIVED,
    REGULAR,
    SEVEN,
    TIMESTAMPS_STEP,
    USUAL,
    WORKED,
    acked_over_time,
    both_ends,
    chance_of,
    count_within,
    expected_losses,
    expected_ratio,
    mathis_bps,
    model_bps,
    netem_excerpt,
    over_pftk,
    pftk_bps,
    set_measured,
    step_names,
)

# The design's corners, as it was published.
MSS_BYTES, RTTS_MS, LOSS_RATIOS = (536, 1460, 4312), (6, 154.5, 600), (0.00003, 0.3)
# How far from a claim's own value a result may lie.
SLOPE_TOLERANCE, CONSTANT_TOLERANCE = 0.02, 0.05
# The share of runs that have to lie along the line for the claim that the trials do.
WITHIN = 0.95
# The trials in which losses are neither rare nor frequent, and from when on they have many.
MIDDLE_P, MANY_LOSSES = (0.0001, 0.001), 600


def set_results(f: Facts, sets: RecordedSets) -> None:
    """Set what the pages on one trial, on the design and on results quote, and the slides."""
    _one_trial(f.case("worked"), sets)
    _one_trial_read(f.case("worked"), sets)
    _design(f, sets)
    _whole_figure(f, sets)
    _what_holds(f, sets)
    _published(f, sets)


def _one_trial(f: Facts, sets: RecordedSets) -> None:
    """Trial 8: what is asked of it, and what the model makes of that."""
    run = sets.run(USUAL, trial=WORKED)
    mss, rtt_ms, p, time_s = (
        param(run, n) for n in ("mss_bytes", "rtt_ms", "loss_ratio", "duration_s")
    )
    f.asked = table(("setting", "value", "set by"), (
        ("segment size", size(mss), "iperf3 on romeo"),
        ("round-trip time", ms(rtt_ms), "netem, half in each direction"),
        ("loss ratio $p$", Number(p, digits=4), "netem, towards juliet"),
        ("rate", mbit(1e6 * param(run, "rate_mbit")), "HTB, towards juliet"),
        ("duration", LASTS(run), "iperf3"),
    ))  # fmt: skip
    bps, losses, rtt_s = model_bps(run), expected_losses(run), Number(rtt_ms / 1e3, digits=1)
    f.by_hand = table(("step", "value"), (
        (f"one segment, in bits: {mss} · 8", whole(8 * mss, "bit")),
        (f"one segment each round trip: divided by {rtt_s} s", mbit(8e3 * mss / rtt_ms)),
        ("the window: $1/\\sqrt{p}$", Number(1 / math.sqrt(p), "segments")),
        ("both multiplied", f"**{mbit(bps)}**"),
    ))  # fmt: skip
    f.segments_per_s, f.s = whole(bps / 8 / mss), Number(time_s)
    f.losses = whole(losses)
    f.chance_by_p = percent(intervals.relative_error_of_ratio(losses), 1)


def _one_trial_read(f: Facts, sets: RecordedSets) -> None:
    """Trial 8's run with all mistakes fixed, as each tool tells of it."""
    name = USUAL
    run = sets.run(name, trial=WORKED)
    rtt_ms, p, bps = param(run, "rtt_ms"), param(run, "loss_ratio"), model_bps(run)
    f.ping = excerpt(name, "romeo/ping.txt", last=3, trial=WORKED, explained="ping")
    f.ss = excerpt(name, "romeo/ss-last.txt", last=1, trial=WORKED, explained="ss")
    f.tc = netem_excerpt(name, "kind", "options", "packets", "drops", trial=WORKED, explained="tc")
    sent = ["TcpOutSegs", "TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPDSACKRecv"]
    received = ["TcpInSegs", "TcpOutSegs", "TcpExtTCPOFODrop", "TcpExtPruneCalled"]
    f.romeo, f.juliet = (
        excerpt(name, f"{node}/nstat.after.json", where={}, keys=keys, trial=WORKED)
        for node, keys in (("romeo", sent), ("juliet", received))
    )
    f.tcpdump = excerpt(name, "router/tcpdump.txt", last=3, trial=WORKED, explained="tcpdump")
    f.iperf3 = excerpt(
        name, "romeo/iperf3.json", between=RECEIVED, trial=WORKED, explained="iperf3"
    )
    set_measured(
        f, run, ms, ping_min="ping_rtt_min_ms", rtt_min="rtt_min_ms", rtt_mean="rtt_mean_ms"
    )
    f.delay_is_as_asked = abs(measured(run, "ping_rtt_min_ms") / rtt_ms - 1) < 0.01
    f.has_no_queue = measured(run, "rtt_mean_ms") < 1.05 * measured(run, "rtt_min_ms")
    set_measured(f, run, size, mss="mss_bytes", largest="largest_packet_bytes")
    set_measured(
        f, run, whole, drops="qdisc_drops", sent="qdisc_sent_packets", resent="retransmits"
    )
    set_measured(f, run, whole, twice="spurious_retransmits", timeouts="timeouts")
    set_measured(f, run, whole, refused="receiver_ofo_drops", bytes="bytes_received")
    counted = measured(run, "loss_ratio")
    expected = next(verdict for verdict in run.expectations if verdict.measured == "loss_ratio")
    f.loss = Interval(counted, *both_ends(expected.low, expected.high), digits=4)
    f.p_exactly, f.loss_is_inside = Number(p, digits=4), expected.ok
    goodput_bps = measured(run, "goodput_bps")
    f.goodput, f.sender_rate = mbit(goodput_bps, 4), mbit(measured(run, "sender_rate_bps"), 4)
    counted_bps = model_bps(run, loss_ratio=counted)
    constants = (("1", 1), ("\\sqrt{3/2}", REGULAR), (Number(RANDOM), RANDOM))
    f.compared = table(("model", "goodput", "measured over it"), (
        ("$C = 1$, $p$ as set", mbit(bps, 4), f"**{Number(goodput_bps / bps, digits=4)}**"),
        *(
            (
                f"$C = {shown}$, $p$ as counted", mbit(c * counted_bps, 4),
                Number(goodput_bps / (c * counted_bps), digits=4),
            )
            for shown, c in constants
        ),
    ))  # fmt: skip
    f.chance, f.ratio = chance_of(run, 2), RATIO(run)


def _design(f: Facts, sets: RecordedSets) -> None:
    """The sixty trials, and how long they take; the trials with which the model is tried by hand."""
    ratios = (0.01, 0.001, LOSS_RATIOS[0])
    f.time_for_100_losses = table(
        ("RTT", "$p$ = 0.01", "$p$ = 0.001", "$p$ = 0.00003"),
        (
            (ms(rtt), *(seconds(model.mathis_time_for_losses_s(rtt, p, 100)) for p in ratios))
            for rtt in RTTS_MS
        ),
    )
    usual = sets.runs(USUAL)
    f.comparable, f.usual_runs = whole(sum(run.comparable for run in usual)), whole(len(usual))
    f.longest = seconds(max(param(run, "duration_s") for run in sets.runs(LONG)))
    seven, rare, heavy = (sets.trial(number) for number in (SEVEN, FEWEST_LOSSES, MOST_LOSSES))
    f.trial_7_mss, f.trial_7_rtt = size(seven["mss_bytes"]), ms(seven["rtt_ms"])
    f.trial_7_p, f.trial_5_p = Number(seven["loss_ratio"]), percent(heavy["loss_ratio"])
    rare_losses = model.mathis_expected_losses(rare["rtt_ms"], rare["loss_ratio"], 60)
    f.trial_53_losses_a_minute = Number(rare_losses)


def _whole_figure(f: Facts, sets: RecordedSets) -> None:
    """What the sixty trials do from step to step."""
    low, high = expected_ratio(sets)
    steps = step_names(sets)
    first, last = sets.runs(steps[0]), sets.runs(steps[-1])
    f.buffer_limits_from, f.link_limits_at = (ms(sets.trial(n)["rtt_ms"]) for n in (13, 2))
    f.first_send_buffer = size(param(sets.run(steps[0], trial=13), "wmem_max_bytes"))
    f.first_try_has_rows = _has_rows(first)
    slow, fast = (measured(sets.run(step, trial=12), "ratio") for step in steps[2:4])
    f.trial_12_slow, f.trial_12_fast = Number(slow), Number(fast)
    f.trial_12_moved_away = fast > slow > 1
    after = {run.trial: measured(run, "ratio") for run in sets.runs(TIMESTAMPS_STEP)}
    f.timestamps_move_what_no_eye_sees = all(
        abs(after[run.trial] / measured(run, "ratio") - 1) < 0.25
        for run in sets.runs(RATE_STEP)
        if measured(run, "qdisc_drops") > 200
    )
    small, large = (measured(sets.run(step, trial=9), "ratio") for step in steps[4:6])
    f.trial_9_before, f.trial_9_after = Number(small), Number(large)
    f.trial_9_was_in_the_range = low <= small <= high
    f.last_least, f.last_most = (Number(pick(column(last, "ratio"))) for pick in (min, max))
    p = [param(run, "loss_ratio") for run in last]
    f.last_p_least, f.last_p_most = Number(min(p), digits=2), Number(max(p), digits=2)
    windows = [
        measured(run, "goodput_bps") * param(run, "rtt_ms") / 8e3 / param(run, "mss_bytes")
        for run in last
    ]
    f.last_window_least, f.last_window_most = Number(min(windows)), Number(max(windows))
    rare, frequent = LOSS_RATIOS
    f.design_window_least = Number(1 / math.sqrt(frequent), digits=2)
    f.design_window_most = Number(1 / math.sqrt(rare))
    f.design_slowest = mbit(model.mathis_bandwidth_bps(MSS_BYTES[0], RTTS_MS[-1], frequent), 2)
    f.design_fastest = mbit(model.mathis_bandwidth_bps(MSS_BYTES[-1], RTTS_MS[0], rare))
    f.trial_11_model = mbit(mathis_bps(sets, 11))


def _what_holds(f: Facts, sets: RecordedSets) -> None:
    """What became of the claims, by runs with all mistakes fixed: as designed (step-7-offloads), or until each has lost
    enough (step-8-long)."""
    low, high = expected_ratio(sets)
    long, usual = sets.runs(LONG), sets.runs(USUAL)
    used = [run for run in long if run.comparable]
    fit = intervals.fit_constant(list(map(model_bps, used)), column(used, "goodput_bps"))
    slope, ends = fit.slope or 0, both_ends(fit.slope_low, fit.slope_high)
    f.slope = Interval(slope, *ends, digits=4, n=fit.points)
    f.constant = Interval(fit.constant, fit.low, fit.high, digits=4, n=fit.points)
    f.constant_about = Interval(fit.constant, fit.low, fit.high, n=fit.points)
    f.fitted, f.fitted_losses = whole(fit.points), whole(sum(column(long, "qdisc_drops")))
    f.slope_wait = _slope_where_hosts_wait(sets.runs(LONG_WAIT))
    f.slope_is_one = agreed(
        judge(of_wait, least=1 - SLOPE_TOLERANCE, most=1 + SLOPE_TOLERANCE)
        for of_wait in (ends, f.slope_wait.both_ends)
    )
    f.one_is_inside_the_slopes = ends[0] <= 1 <= ends[1]
    # C falls with p, so one fit over all would hang on how many trials there are of each p.
    by_p = [
        Interval.of_mean([measured(run, "ratio") for run in used if (param(run, "loss_ratio") < MIDDLE_P[1]) == is_small])
        for is_small in (True, False)
    ]  # fmt: skip
    f.c_small_p, f.c_large_p = by_p
    f.c_is_random, f.c_is_delayed, f.c_is_one = (
        agreed(
            judge([end / c for end in of.both_ends], least=1 - CONSTANT_TOLERANCE, most=1 + CONSTANT_TOLERANCE)
            for of in by_p
        )
        for c in (RANDOM, RANDOM_DELAYED, 1)
    )  # fmt: skip
    f.random_is_inside, f.delayed_is_inside = (
        fit.low <= c <= fit.high for c in (RANDOM, RANDOM_DELAYED)
    )
    claimed = {run.trial for run in long}
    at_its_length = [run for run in usual if run.trial in claimed]
    f.trials_lie_along_the_line = agreed(
        count_within(sets, runs) >= WITHIN * len(runs) for runs in (at_its_length, long)
    )
    bound = (sets.lab.file.model and sets.lab.file.model.max_loss_ratio) or 1
    f.model_bound = str(bound)
    lossy = [run.ratio for run in usual if run.ratio and param(run, "loss_ratio") >= bound]
    f.lossy_runs, f.lossy_least, f.lossy_most = (
        whole(len(lossy)), Number(min(lossy)), Number(max(lossy)),
    )  # fmt: skip
    f.lossy_lie_along_the_line = low <= min(lossy) and max(lossy) <= high
    f.lossy_trials = whole(sum(sets.trial(n)["loss_ratio"] >= bound for n in sets.lab.trials))
    f.long_least, f.long_most = (mbit(pick(column(long, "goodput_bps")), 2) for pick in (min, max))
    f.constant_by_p = _constant_by_p(long)
    _start(f, sets, long)
    five = sets.run(USUAL, trial=MOST_LOSSES)
    f.trial_5_p_ratio, f.trial_5_ratio = Number(param(five, "loss_ratio")), RATIO(five)
    f.trial_5_pftk, f.trial_5_goodput = mbit(pftk_bps(five)), GOODPUT(five)
    f.trial_5_over_pftk = Number(over_pftk(five), digits=2)
    fewest = min(long, key=lambda run: measured(run, "qdisc_drops"))
    f.fewest_losses, f.chance_of_one = DROPS(fewest), chance_of(fewest, 1)
    rare = sets.trial(FEWEST_LOSSES)
    f.usual_s = Number(rare["duration_s"], "s")
    f.all_trials_take = seconds(len(sets.lab.trials) * rare["duration_s"], 1)
    rare_losses = model.mathis_expected_losses(600, rare["loss_ratio"], rare["duration_s"])
    f.trial_53_losses = Number(rare_losses, digits=2)


def _slope_where_hosts_wait(runs: Sequence[Result]) -> Interval:
    """Return the slope against the model with the round trip that was measured: with a wait it isn't the one that was set."""
    used = [run for run in runs if run.comparable]
    fit = intervals.fit_constant(
        [model_bps(run, rtt_ms=measured(run, "rtt_mean_ms")) for run in used],
        column(used, "goodput_bps"),
    )
    return Interval(
        fit.slope or 0, *both_ends(fit.slope_low, fit.slope_high), digits=4, n=fit.points
    )


def _published(f: Facts, sets: RecordedSets) -> None:
    """The reproduction's ten values beside ours."""
    rows = (
        (17, "loss in per cent, timestamps on", 0.6, DURATION_STEP),
        (17, "timestamps off", 0.561, TIMESTAMPS_STEP),
        (5, "loss in per cent", 1.68, TIMESTAMPS_STEP),
        (3, "offloads on", 104, MTU_STEP),
        (3, "offloads off", 20.9, USUAL),
        (9, "MTU 1500, offloads on", 68.5, TIMESTAMPS_STEP),
        (9, "MTU 4352, offloads on", 161, MTU_STEP),
        (11, "1 Gbit/s, offloads on", 964, "queue-1-gbit-offloads-on"),
        (11, "3 Gbit/s, offloads on", 1570, "queue-3-gbit-offloads-on"),
        (53, "240 s, offloads on", 14.4, TIMESTAMPS_STEP),
    )
    runs = [sets.run(name, trial=trial) for trial, _, _, name in rows]
    # The model's value stands once a trial.
    first = {trial: n for n, (trial, *_) in reversed(list(enumerate(rows)))}
    f.published = table(("trial", "state", "model", "published", "ours"), (
        (
            Number(trial), state, mbit(mathis_bps(sets, trial)) if first[trial] == n else "",
            Number(theirs), GOODPUT(runs[n]),
        )
        for n, (trial, state, theirs, _) in enumerate(rows)
    ))  # fmt: skip
    f.all_go_their_way = all(
        (factor(runs[first[trial] + 1], runs[first[trial]], "goodput_bps") > 1)
        == (rows[first[trial] + 1][2] > rows[first[trial]][2])
        for trial in (3, 9, 11)
    )


def _start(f: Facts, sets: RecordedSets, long: Sequence[Result]) -> None:
    """Set how much of C is the connection's start: of the long runs with p from 0.0001 to 0.001 those with some losses, and those
    with many; and of one run of hours, of the case duration, its goodput over the model with its first minute and without."""
    middle = [run for run in long if MIDDLE_P[0] <= param(run, "loss_ratio") < MIDDLE_P[1]]
    few, many = (
        [run for run in middle if (measured(run, "qdisc_drops") >= MANY_LOSSES) == is_many]
        for is_many in (False, True)
    )
    f.few_losses_c, f.many_losses_c = (
        Interval.of_mean(column(runs, "ratio")) for runs in (few, many)
    )
    f.few_losses = whole(statistics.fmean(column(few, "qdisc_drops")))
    f.many_losses = whole(MANY_LOSSES)
    f.middle_simulated = Number(model.sack_reno_constant(0.0003), digits=4)
    f.many_fit_the_simulation = f.middle_simulated.value in f.many_losses_c
    f.few_lie_above = f.few_losses_c.low_value > f.middle_simulated.value

    run = sets.run("duration-fixed")
    acked = acked_over_time(sets, run)
    (begun_s, _), (end_s, all_bytes) = acked[0], acked[-1]
    minute_s, minute_bytes = next(pair for pair in acked if pair[0] >= begun_s + 60)
    bps = 8 * (all_bytes - minute_bytes) / (end_s - minute_s)
    f.with_start = Number(measured(run, "ratio"), digits=4)
    f.without_start = Number(bps / model_bps(run), digits=4)
    f.start_lasts = seconds(param(run, "duration_s"), 2)
    f.start_biases = f.without_start.value < measured(run, "ratio")


def _constant_by_p(long: Sequence[Result]) -> Table:
    """C of the trials in each range of p, beside a simulation's at a p amid it."""
    rows = []
    for low, high, typical in ((0, 0.0001, 0.00005), (0.0001, 0.001, 0.0003), (0.001, 0.02, 0.005)):
        c = Interval.of_mean(
            [measured(run, "ratio") for run in long if low <= param(run, "loss_ratio") < high],
            digits=4,
        )
        simulated = model.sack_reno_constant(typical)
        begin = f"{Number(low, digits=1)} to " if low else "below "
        rows.append((
            f"{begin}{Number(high, digits=1)}", whole(c.n or 0), Number(c.middle_value), c.ends,
            f"{Number(simulated, digits=4)} at {Number(typical, digits=1)}",
            "yes" if simulated in c else "no",
        ))  # fmt: skip
    headings = ("trials", "mean ratio", "95 % interval", "simulated, at $p$", "inside the interval")
    return table(("loss ratio $p$", *headings), rows)


def _has_rows(runs: Sequence[Result]) -> bool:
    """Whether most runs lost nothing, and those of one RTT have nearly one goodput, that of the buffer or the link, though
    the model's bandwidths differ."""
    unhindered = [run for run in runs if not run.measured["qdisc_drops"]]
    rows = []
    for rtt_ms in {param(run, "rtt_ms") for run in runs}:
        row = [run for run in unhindered if param(run, "rtt_ms") == rtt_ms]
        rates, predicted = column(row, "goodput_bps"), list(map(model_bps, row))
        buffer_bps = param(row[0], "wmem_max_bytes") * 8e3 / rtt_ms
        allowed_bps = min(buffer_bps, 1e6 * param(row[0], "rate_mbit"))
        one_goodput = max(rates) < 1.1 * min(rates) and max(rates) > 0.8 * allowed_bps
        rows.append(one_goodput and max(predicted) > 3 * min(predicted))
    return len(unhindered) > 0.5 * len(runs) and all(rows)
