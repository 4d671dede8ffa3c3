"""The lab's other six cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from measuretwice.facts import (
    Excerpt,
    Facts,
    Interval,
    Number,
    RecordedSets,
    by_trial,
    cell,
    column,
    excerpt,
    factor,
    mbit,
    mean,
    measured,
    ms,
    param,
    param_cell,
    per,
    percent,
    runs_as_rows,
    seconds,
    size,
    table,
    trial_cell,
    whole,
)
from measuretwice.parse import parse_ss
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp import model

from .runs import (
    DROPS,
    ETHERNET_BYTES,
    GOODPUT,
    HEADER_BYTES,
    LASTS,
    LONG,
    PUBLISHED_TRIAL_5_BPS,
    RANDOM,
    RANDOM_DELAYED,
    RATIO,
    SEGMENTS_AN_ACK,
    SEVEN,
    SHARE_RESENT,
    TIMEOUTS,
    USUAL,
    at_largest_window,
    both_ends,
    chance_of,
    expected_losses,
    model_bps,
    netem_excerpt,
    over_pftk,
    pftk_bps,
    ratio_range,
    set_both,
    set_case,
    set_measured,
)

ROMEO_COUNTERS = ["TcpOutSegs", "TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPLostRetransmit"]
JULIET_COUNTERS = ["TcpInSegs", "TcpExtTCPOFOQueue", "TcpExtTCPOFODrop", "TcpExtPruneCalled"]


def set_cases_8_to_13(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    _netem_limit(f.case("netem-limit"), sets)
    _receiver_drops(f.case("receiver-drops"), sets)
    _model_domain(f.case("model-domain"), sets)
    _wrong_socket(f.case("wrong-socket"), sets)
    _ack_policy(f.case("ack-policy"), sets)
    _ten_runs_each_way(f.case("ack-policy"), sets)
    _cherry_picking(f.case("cherry-picking"), sets)


def _netem_limit(f: Facts, sets: RecordedSets) -> None:
    name = "netem-limit"
    quoted = (
        "trial mss rtt p lasts model goodput ratio ratio_fixed drops packets drops_fixed "
        "packets_fixed ping tc"
    )

    def by_chance(run: Result) -> Number:
        return Number(param(run, "loss_ratio") * measured(run, "qdisc_offered_packets"), digits=2)

    both = broken, fixed = set_case(
        f, sets, name, quoted, [("drops", DROPS), ("p times packets", by_chance)], p_digits=3
    )
    p, rtt_ms, time_s, mss = (
        param(broken, n) for n in ("loss_ratio", "rtt_ms", "duration_s", "mss_bytes")
    )
    f.one_in = whole(1 / p)
    f.model_segments = whole(model_bps(broken) * time_s / 8 / mss)
    f.ratio_as_usual = 1.15 < measured(broken, "ratio") < 1.35
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.nstat_romeo = _counters(name, "romeo", ROMEO_COUNTERS)
    f.ss_at_largest = at_largest_window(broken, name, first=1)
    f.drops_by_chance, f.drops_by_chance_fixed = map(by_chance, both)
    set_both(f, both, whole, peak="cwnd_max_segments")
    f.half_of_peak = whole(measured(broken, "cwnd_max_segments") / 2)
    f.limit, f.limit_fixed = (whole(param(run, "limit_packets")) for run in both)
    f.waits, f.losses_expected = ms(rtt_ms / 2), Number(expected_losses(broken), digits=2)
    buffer_bytes = param(broken, "wmem_max_bytes")
    f.send_buffer, f.send_buffer_segments = size(buffer_bytes), whole(buffer_bytes / mss)
    f.limit_is_safe = param(fixed, "limit_packets") > 1.5 * buffer_bytes / mss
    f.tc_fixed = netem_excerpt(f"{name}-fixed", "options", "packets", "drops")
    packets = measured(fixed, "qdisc_offered_packets")
    low, high = intervals.binomial_interval(int(packets), p, 0.999)
    f.chance_allows = low <= measured(fixed, "loss_ratio") <= high
    f.drops_least, f.drops_most = whole(low * packets), whole(high * packets)
    set_measured(f, fixed, whole, resent_fixed="retrans_total")
    f.resent_as_dropped = measured(fixed, "retrans_total") == measured(fixed, "qdisc_drops")
    f.both = table(
        ("run", "dropped", "largest window", "goodput", "over the model"),
        (
            (stage, DROPS(run), whole(measured(run, "cwnd_max_segments"), "segments"), GOODPUT(run), RATIO(run))
            for stage, run in zip(("broken", "fixed"), both, strict=True)
        ),
    )  # fmt: skip
    off, off_fixed = (abs(measured(run, "ratio") - 1.2) for run in both)
    f.ratio_moved_away = off_fixed > off


def _receiver_drops(f: Facts, sets: RecordedSets) -> None:
    name = "receiver-drops"
    quoted = "trial mss rtt p lasts goodput_fixed drops drops_fixed tc"
    broken, fixed = set_case(f, sets, name, quoted, [
        ("router's drops", DROPS),
        ("retransmissions", cell("retransmits", whole)),
        ("receiver's own drops (TCPOFODrop)", cell("receiver_ofo_drops", whole)),
    ], p_digits=1)  # fmt: skip
    usual = sets.trial(broken.trial)
    p, rmem, wmem = (usual[n] for n in ("loss_ratio", "rmem_max_bytes", "wmem_max_bytes"))
    romeo, juliet = (sets.counters_grown(broken, node) for node in ("romeo", "juliet"))
    f.one_in = whole(1 / param(broken, "loss_ratio"))
    f.wmem, f.rmem = (size(param(broken, n)) for n in ("wmem_max_bytes", "rmem_max_bytes"))
    f.iperf3_sent = excerpt(f"{name}-broken", "romeo/iperf3.json", between=['"sum_sent"', "}"])
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.nstat_romeo = _counters(name, "romeo", ROMEO_COUNTERS)
    f.nstat_juliet = _counters(name, "juliet", JULIET_COUNTERS)
    set_measured(
        f, broken, whole, refused="receiver_ofo_drops", timeouts="timeouts", resent="retransmits"
    )
    f.pruned, f.reneged = whole(juliet["TcpExtOfoPruned"]), whole(romeo["TcpExtTCPSACKReneging"])
    f.prune_calls = whole(juliet["TcpExtPruneCalled"])
    f.resent_nstat = whole(romeo["TcpRetransSegs"])
    drops, resent = measured(broken, "qdisc_drops"), measured(broken, "retransmits")
    f.few_drops = drops < 5
    f.resent_far_more = resent > 10 * drops and measured(broken, "receiver_ofo_drops") > 0
    f.ss_full_window = at_largest_window(broken, name, " .*unacked:", last=1)
    f.memory_pressures = whole(juliet["TcpExtTCPMemoryPressures"])
    f.stored_is_thrown_away = juliet["TcpExtOfoPruned"] > 0
    f.usual_p = Number(p)
    f.model_window_mib = Number(RANDOM / math.sqrt(p) * usual["mss_bytes"] / 2**20)
    f.wmem_mib, f.rmem_mib, f.receiver_has_more = (
        Number(wmem / 2**20), Number(rmem / 2**20), rmem > 1.5 * wmem,
    )  # fmt: skip
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    allowed_bps = wmem * 8e3 / usual["rtt_ms"]
    f.wmem_fixed, f.allowed = size(wmem), mbit(allowed_bps)
    f.share_of_allowed = percent(measured(fixed, "goodput_bps") / allowed_bps)
    f.faster = Number(1 / factor(fixed, broken, "goodput_bps"), digits=2)
    f.too_few_for_the_model = measured(fixed, "qdisc_drops") < 100
    long = sets.run(LONG, trial=broken.trial)
    f.long_lasts, f.long_ratio = LASTS(long), RATIO(long)
    set_measured(f, long, whole, long_drops="qdisc_drops", long_resent="retrans_total")
    f.resent_share = percent(resent / measured(broken, "data_segs_out"), 2)
    f.p_percent_short = percent(param(broken, "loss_ratio"), 1)


def _model_domain(f: Facts, sets: RecordedSets) -> None:
    name = "model-domain"
    quoted = "trial mss rtt p lasts model goodput ratio ratio_fixed drops ping tc"
    broken, fixed = set_case(f, sets, name, quoted)
    p, p_fixed = (param(run, "loss_ratio") for run in (broken, fixed))
    rtt_ms, time_s = param(broken, "rtt_ms"), param(broken, "duration_s")
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.nstat_romeo = _counters(name, "romeo", ROMEO_COUNTERS)
    f.model_window = Number(1 / math.sqrt(p), digits=2)
    f.model_window_fixed = Number(1 / math.sqrt(p_fixed), digits=2)
    f.window_by_p = Number(1 / math.sqrt(p))
    f.window = Number(measured(broken, "cwnd_mean_segments"), digits=2)
    timeouts, rto_ms = measured(broken, "timeouts"), model.linux_rto_ms(rtt_ms)
    f.timeouts, f.rto, f.rto_rounds = whole(timeouts), ms(rto_ms), Number(rto_ms / rtt_ms, digits=2)
    waited_s = timeouts * rto_ms / 1e3
    f.waited, f.waited_share = seconds(waited_s, 2), percent(waited_s / time_s, 2)
    f.one_timeout_in = whole(measured(broken, "qdisc_drops") / timeouts)
    over = over_pftk(broken)
    f.pftk, f.over_pftk = mbit(pftk_bps(broken)), Number(over, digits=2)
    f.neither_describes_linux = over > 1.2 and measured(broken, "ratio") < 0.8
    f.p_fixed, f.p_fixed_3 = Number(p_fixed, digits=2), Number(p_fixed)
    f.both = runs_as_rows(
        (broken, fixed),
        {"loss ratio $p$": _p_short, "goodput": GOODPUT, "over Mathis": RATIO, "losses": DROPS, "timeouts": TIMEOUTS},
    )  # fmt: skip
    trials = [run for run in sets.runs(USUAL) if run.trial in (3, 7, 4, 1, 10, 5, 59, 54)]
    trials.sort(key=lambda run: param(run, "loss_ratio"))
    f.by_p = runs_as_rows(trials, {
        "trial": trial_cell,
        "RTT": param_cell("rtt_ms", ms),
        "loss ratio $p$": _p_short,
        "losses": DROPS,
        "timeouts": TIMEOUTS,
        "over Mathis": RATIO,
        "over PFTK": lambda run: Number(over_pftk(run)),
    })  # fmt: skip
    short_path = [measured(run, "ratio") for run in trials if param(run, "rtt_ms") == rtt_ms]
    rare, frequent = statistics.fmean(short_path[:2]), statistics.fmean(short_path[-2:])
    f.ratio_falls_steeply = frequent < 0.75 * rare
    long_rtt_ms = sets.trial(54)["rtt_ms"]
    f.rto_rounds_on_long_path = Number(model.linux_rto_ms(long_rtt_ms) / long_rtt_ms, digits=2)
    five = sets.run("loss-percent-fixed")
    f.p_trial_5, f.goodput_trial_5 = Number(param(five, "loss_ratio")), GOODPUT(five)
    f.not_far_from_theirs = 0.75 < measured(five, "goodput_bps") / PUBLISHED_TRIAL_5_BPS < 1.33


def _wrong_socket(f: Facts, sets: RecordedSets) -> None:
    name, file = "wrong-socket", "romeo/ss-last.txt"
    quoted = "mss rtt p p_percent model goodput goodput_fixed ratio_fixed iperf3"
    both = broken, fixed = set_case(f, sets, name, quoted)
    lines = parse_ss(sets.raw_text(broken, file), file)
    f.algorithm = str(broken.params["congestion_control"])
    f.sampled_every = seconds(param(broken, "sample_interval_s"))
    f.ss_lines = excerpt(f"{name}-broken", file, last=6)
    f.connected = excerpt(f"{name}-broken", "romeo/iperf3.json", between=['"connected"', "]"])
    f.near_the_model = 0.75 < measured(broken, "ratio") < 1.33
    # Of each line: bytes sent, segments sent, and those of them that were resent.
    counts = [
        (line.bytes_sent or 0, line.data_segs_out or 0, line.retrans_total or 0) for line in lines
    ]
    f.sockets = table(
        ("from port", "`bytes_sent`", "`data_segs_out`", "retransmitted", "share retransmitted"),
        (
            (str(line.local_port), *map(whole, numbers), percent(numbers[2] / numbers[1]))
            for line, numbers in list(zip(lines, counts, strict=True))[-6:]
        ),
    )
    control, data = sorted(counts[-2:])
    f.resent_control, f.resent_data = (percent(line[2] / line[1]) for line in (control, data))
    f.control_segments = whole(control[1])
    f.last_line_is_right = counts[-1] == data
    f.data_port = str(fixed.measured["data_port"])
    f.ss_fixed = excerpt(f"{name}-fixed", file, last=3)
    set_both(f, both, whole, connections="picked_connections")
    f.resent_fixed = percent(per(fixed, *SHARE_RESENT))
    f.goodput_is_the_same = measured(fixed, "goodput_bps") == measured(broken, "goodput_bps")


def _and(numbers: Iterable[int]) -> str:
    """Return trials as a sentence has them: `1, 4 and 7`."""
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}" if others else last


def _ack_policy(f: Facts, sets: RecordedSets) -> None:
    name = "ack-policy"
    quoted = "mss rtt p model ratio iperf3 ss"

    def shown(run: Result) -> Number:
        return Number(per(run, *SEGMENTS_AN_ACK), digits=2)

    broken, fixed = set_case(f, sets, name, quoted, [("segments per ACK", shown)])
    p, mss, per_ack = (
        param(broken, "loss_ratio"),
        param(broken, "mss_bytes"),
        per(broken, *SEGMENTS_AN_ACK),
    )
    expected_bps = RANDOM_DELAYED * model_bps(broken)
    f.over_expected = Number(measured(broken, "goodput_bps") / expected_bps)
    f.expected = mbit(expected_bps)
    acks = rf"\.{broken.measured['data_port']}: Flags \[\.\]"
    f.acks_early = excerpt(f"{name}-broken", "router/acks.txt", grep=acks, first=5)
    f.acks_later = excerpt(f"{name}-broken", "router/acks.txt", grep=acks, last=5)
    f.nstat_juliet = excerpt(
        f"{name}-broken", "juliet/nstat.after.json", where={}, keys=["TcpInSegs", "TcpOutSegs"]
    )
    f.per_ack, f.per_ack_root = Number(per_ack, digits=2), Number(math.sqrt(per_ack), digits=2)
    f.wrong_twice = per_ack > 2.5
    set_measured(f, broken, whole, segments="data_segs_out", acks="receiver_acks_out")
    burst = param(broken, "burst_bytes")
    f.captured, f.burst = whole(param(broken, "capture_acks_packets")), size(burst)
    f.burst_packets = whole(burst / (mss + HEADER_BYTES + ETHERNET_BYTES))
    f.simulated = table(("the window grows by one segment for each window of", "constant $C$"), (
        ("segments", Number(model.sack_reno_constant(p, 1))),
        *(
            (f"ACKs, each for {n} segments", Number(model.sack_reno_constant(p, n)))
            for n in (2, round(per_ack))
        ),
        ("**measured**", f"**{f.ratio}**"),
    ))  # fmt: skip
    f.one_run = table(
        ("one run", "segments per ACK", "goodput", "over the model"),
        (
            (stage, shown(run), GOODPUT(run), RATIO(run))
            for stage, run in (("Linux's own ACKs", broken), ("one ACK per segment", fixed))
        ),
    )
    f.below_random = measured(broken, "ratio") < RANDOM
    f.window = whole(measured(broken, "ratio") / math.sqrt(p))
    f.simulated_at_low_p = Number(model.sack_reno_constant(0.0001))


def _ten_runs_each_way(f: Facts, sets: RecordedSets) -> None:
    """Of the case ack-policy: as Linux acknowledges, and with an ACK for each segment."""
    delayed, every = kinds = sets.runs("acks-delayed"), sets.runs("acks-every-segment")
    per_ack = [statistics.fmean(per(run, *SEGMENTS_AN_ACK) for run in runs) for runs in kinds]
    ratios = [mean(runs, "ratio") for runs in kinds]
    constants = [Interval.of_mean(list(map(_c_by_count, runs)), digits=4) for runs in kinds]
    f.ten_runs = table(
        (
            f"{len(delayed)} runs each, {LASTS(delayed[0])}",
            "Linux's own ACKs",
            "one ACK per segment",
        ),
        (
            ("segments per ACK, mean", *map(Number, per_ack)),
            ("goodput over the model, mean", *(Number(ratio, digits=4) for ratio in ratios)),
            ("$C$ with $p$ as counted, mean", *(c.middle for c in constants)),
            ("its 95 % interval", *(c.ends for c in constants)),
        ),
    )
    more_acks, change = per_ack[0] / per_ack[1], ratios[1] / ratios[0]
    f.more_acks = Number(more_acks, digits=2)
    f.more_acks_root = Number(math.sqrt(more_acks), digits=2)
    f.ratio_change = Number(change)
    f.segments_count = more_acks > 1.5 and abs(change - 1) < 0.05
    twins = {run.seed: measured(run, "ratio") for run in every}
    apart = Interval.of_mean(
        [measured(run, "ratio") - twins[run.seed] for run in delayed], digits=2
    )
    f.apart, f.a_little_lower = apart, apart.low_value > 0
    f.useless, f.useless_every = (whole(mean(runs, "spurious_retransmits")) for runs in kinds)
    f.delayed, f.every = map(ratio_range, kinds)


def _cherry_picking(f: Facts, sets: RecordedSets) -> None:
    (pitfall,) = (
        candidate for candidate in sets.lab.file.pitfalls if candidate.id == "cherry-picking"
    )
    again = pitfall.broken.again
    assert again
    low, high = both_ends(again.min, again.max)
    broken, fixed = sets.runs("cherry-picking-broken"), sets.runs("cherry-picking-fixed")
    tried, honest = _ratios_by_trial(broken), _ratios_by_trial(fixed)
    seven, time_s = sets.trial(SEVEN), param(broken[0], "duration_s")
    expected = model.mathis_expected_losses(seven["rtt_ms"], seven["loss_ratio"], time_s)
    f.picked_trials = _and(tried)
    f.rtt, f.lasts, f.losses_expected = ms(seven["rtt_ms"]), seconds(time_s), whole(expected)
    f.low, f.high = Number(low), Number(high)
    first, last = ([tries[n] for tries in tried.values()] for n in (0, -1))
    f.report = table(("trial", "goodput over the model"), (
        *((Number(trial), Number(tries[-1])) for trial, tries in tried.items()),
        ("**mean**", _bold_mean(last)),
    ))  # fmt: skip
    f.all_runs = runs_as_rows(broken, {
        "trial": trial_cell, "seed": lambda run: Number(run.seed),
        "losses": DROPS, "goodput": GOODPUT, "over the model": RATIO,
    })  # fmt: skip
    once = [trial for trial, tries in tried.items() if len(tries) == 1]
    twice = [trial for trial, tries in tried.items() if len(tries) > 1]
    f.run_again, f.run_once = (_and(trials) for trials in (twice, once))
    f.once, f.several_of_both = whole(len(once)), len(once) > 1 and len(twice) > 1
    f.means = table(("mean over", "ratio"), (
        ("the first tries", _mean_ratio(first)),
        ("the last tries, as in the report", _mean_ratio(last)),
        ("all tries", _mean_ratio(column(broken, "ratio"))),
    ))  # fmt: skip
    f.runs, f.runs_fixed = whole(len(broken)), whole(len(fixed))
    f.chance = percent(intervals.relative_error_of_ratio(expected), 1)
    p = {trial: sets.trial(trial)["loss_ratio"] for trial in honest}
    f.p_trial_1, f.p_trial_4, f.p_1 = percent(p[1], 2), percent(p[4], 2), percent(p[1])
    f.have_the_highest_losses = min(p[1], p[4]) > max(p[3], p[7], p[9])
    odd, others = ([r for n in group for r in honest[n]] for group in ((1, 4), (3, 7, 9)))
    f.are_lower = statistics.fmean(odd) < statistics.fmean(others)
    f.most_tries, f.repeat = whole(1 + again.tries), whole(pitfall.fixed.repeat or 1)
    runs = {run.trial: run for run in reversed(fixed)}
    f.each_as_often = table(
        ("trial", "losses, first try", "chance alone (standard error)", "first try", "second try", "in the range"),
        (
            *(
                (Number(trial), DROPS(runs[trial]), f"± {chance_of(runs[trial], 2)}", *map(Number, tries),
                 f"{sum(low <= ratio <= high for ratio in tries)} of {len(tries)}")
                for trial, tries in honest.items()
            ),
            ("**mean**", "", "", *map(_bold_mean, zip(*honest.values(), strict=True)), ""),
        ),
    )  # fmt: skip
    first_try, second_try = honest[SEVEN]
    f.trial_7_first, f.trial_7_second = (Number(r, digits=4) for r in honest[SEVEN])
    f.trial_7_is_in_once = not low <= first_try <= high and low <= second_try <= high
    f.trial_7_apart = percent(abs(first_try - second_try) / first_try, 2)
    f.trial_7_chance = chance_of(runs[SEVEN], 2, of=2)
    f.trial_1_alone_is_below = [n for n, tries in honest.items() if max(tries) < low] == [1]
    f.mean_of_all = _mean_ratio(column(fixed, "ratio"))
    f.trial_1_tries = " and ".join(str(Number(ratio)) for ratio in honest[1])
    least, most = ([pick(column(r, "ratio")) for r in (broken, fixed)] for pick in (min, max))
    f.stages = table(("recorded set", "broken", "fixed"), (
        ("runs", f.runs, f.runs_fixed),
        ("smallest ratio", *map(Number, least)),
        ("largest", *map(Number, most)),
    ))  # fmt: skip


def _p_short(run: Result) -> Number:
    """The loss ratio that a run was set to, in two digits."""
    return Number(param(run, "loss_ratio"), digits=2)


def _c_by_count(run: Result) -> float:
    """C by the losses that were counted, instead of by those that were asked for."""
    return measured(run, "ratio") * math.sqrt(
        measured(run, "loss_ratio") / param(run, "loss_ratio")
    )


def _mean_ratio(values: Iterable[float]) -> Number:
    return Number(statistics.fmean(values), digits=4)


def _bold_mean(values: Iterable[float]) -> str:
    return f"**{_mean_ratio(values)}**"


def _ratios_by_trial(runs: Sequence[Result]) -> dict[int, list[float]]:
    """The ratios of each trial's runs, by seed."""
    ordered = by_trial(sorted(runs, key=lambda run: run.seed))
    return {trial: column(tries, "ratio") for trial, tries in ordered.items()}


def _counters(name: str, node: str, names: list[str]) -> Excerpt:
    return excerpt(f"{name}-broken", f"{node}/nstat.after.json", counters=names)
