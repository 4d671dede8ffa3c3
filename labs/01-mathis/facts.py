"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from measuretwice.facts import (
    Excerpt,
    Facts,
    Interval,
    Number,
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
    runs_as_rows,
    seconds,
    table,
    whole,
)
from measuretwice.facts.values import Cell
from measuretwice.parse import parse_ss
from measuretwice.runs.result import Result
from measuretwice.stats import intervals
from measuretwice.tcp import model

QDISC, TO_JULIET = "router/qdisc.after.json", {"kind": "netem", "dev": "eth1"}
ROMEO_COUNTERS = ["TcpOutSegs", "TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPLostRetransmit"]
JULIET_COUNTERS = ["TcpInSegs", "TcpExtTCPOFOQueue", "TcpExtTCPOFODrop", "TcpExtPruneCalled"]
RECEIVED = ['"sum_received"', "}"]
# A segment's two headers, and Ethernet's.
HEADER_BYTES, ETHERNET_BYTES = 40, 14
# The design's corners, as it was published.
MSS_BYTES, RTTS_MS, LOSS_RATIOS = (536, 1460, 4312), (6, 154.5, 600), (0.00003, 0.3)
# By this share the reproduction's two goodputs in trial 17 differ; and its goodput in trial 5.
PUBLISHED_DIFFERENCE, PUBLISHED_TRIAL_5_BPS = 0.065, 1.68e6
# How far from a claim's own value a result may lie.
SLOPE_TOLERANCE, CONSTANT_TOLERANCE = 0.02, 0.05
REGULAR, REGULAR_DELAYED, RANDOM, RANDOM_DELAYED = (
    model.MATHIS_CONSTANTS[name].value for name in ("sqrt(3/2)", "sqrt(3/4)", "1.31", "0.93")
)
# What tables show of a run.
GOODPUT, RATIO = cell("goodput_bps", mbit), cell("ratio", Number)
DROPS, TIMEOUTS = cell("qdisc_drops", whole), cell("timeouts", whole)


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/01-mathis/."""
    f = Facts()
    _lab(f, sets)
    _steps(f, sets)
    _loss_percent(f.case("loss-percent"), sets)
    _duration(f.case("duration"), sets)
    _queueing(f.case("queueing"), sets)
    _timestamps(f.case("timestamps"), sets)
    _mtu(f.case("mtu"), sets)
    _offload(f.case("offload"), sets)
    _rtt_doubling(f.case("rtt-doubling"), sets)
    _netem_limit(f.case("netem-limit"), sets)
    _receiver_drops(f.case("receiver-drops"), sets)
    _model_domain(f.case("model-domain"), sets)
    _wrong_socket(f.case("wrong-socket"), sets)
    _ack_policy(f.case("ack-policy"), sets)
    _ten_runs_each_way(f.case("ack-policy"), sets)
    _cherry_picking(f.case("cherry-picking"), sets)
    _one_trial(f.case("worked"), sets)
    _design(f, sets)
    _whole_figure(f, sets)
    _what_holds(f, sets)
    _published(f, sets)
    _half_an_hour(f.case("half-an-hour"), sets)
    _how_sure(f.case("statistics"), sets)
    _other_seeds(f.case("vary"), sets)
    return f


# The lab, and its steps


def _lab(f: Facts, sets: RecordedSets) -> None:
    """What the lab is set to, and the paper's values of C."""
    seven, low, high = sets.trial(7), *_expected(sets)
    f.trials, f.pitfalls = whole(len(sets.lab.trials)), whole(len(sets.lab.file.pitfalls))
    f.expected_low, f.expected_high = Number(low), Number(high)
    f.trial_lasts = seconds(seven["duration_s"])
    f.trial_rate = mbit(1e6 * seven["rate_mbit"])
    f.c_plain = Number(1)
    f.c_regular, f.c_regular_delayed = Number(REGULAR), Number(REGULAR_DELAYED)
    f.c_random, f.c_random_delayed = Number(RANDOM), Number(RANDOM_DELAYED)


def _steps(f: Facts, sets: RecordedSets) -> None:
    """The first try's and the last step's runs, and how many are in the range that lab.toml expects."""
    steps = _step_names(sets)
    within = [_within(sets, sets.runs(name)) for name in steps]
    f.steps = whole(len(steps))
    f.in_range_first, f.in_range_loss, f.in_range_longer = map(whole, within[:3])
    f.in_range_mtu, f.in_range_offloads, f.in_range_last = map(whole, within[5:])
    f.first_runs, f.last_runs = (whole(len(sets.runs(steps[n]))) for n in (0, -1))
    f.offloads_bring_it_to_the_line = within[6] > 2 * within[5]
    ratios = sorted(run.ratio for run in sets.runs(steps[0]) if run.ratio is not None)
    f.first_try = table(("of the sixty", "goodput over the formula's"), (
        ("smallest", Number(ratios[0], digits=2)),
        ("half of them below", Number(ratios[len(ratios) // 2], digits=2)),
        ("largest", Number(ratios[-1])),
    ))  # fmt: skip


# The cases


def _case(
    f: Facts,
    sets: RecordedSets,
    name: str,
    more: Sequence[tuple[str, Callable[[Result], Cell]]] = (),
    p_digits: int = 4,
) -> tuple[Result, Result]:
    """Set what the pages of all cases quote, and return the case's two runs: the first try, and the fixed one.

    `more` are further rows of the table `stages`: what, and what shows it of a run.
    """
    broken, fixed = both = sets.run(f"{name}-broken"), sets.run(f"{name}-fixed")
    p = param(broken, "loss_ratio")
    f.trial = Number(broken.trial)
    f.mss, f.rtt = whole(param(broken, "mss_bytes"), "B"), ms(param(broken, "rtt_ms"))
    f.p, f.p_percent = Number(p, digits=p_digits), percent(p)
    f.lasts, f.model = _lasts(broken), mbit(_model_bps(broken))
    _set_both(f, both, mbit, goodput="goodput_bps")
    _set_both(f, both, Number, ratio="ratio")
    _set_both(f, both, whole, drops="qdisc_drops", packets="qdisc_offered_packets")
    f.times = Number(measured(broken, "ratio"), "times")
    faster = _factor(fixed, broken, "goodput_bps")
    f.factor, f.goodput_fell = Number(max(faster, 1 / faster)), faster < 1
    by_chance = 3.3 / math.sqrt(measured(broken, "qdisc_drops"))
    f.loss_is_right = abs(measured(broken, "loss_ratio") / p - 1) < by_chance
    f.iperf3 = excerpt(f"{name}-broken", "romeo/iperf3.json", between=RECEIVED)
    f.ping = excerpt(f"{name}-broken", "romeo/ping.txt", last=3)
    f.ss = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=1)
    f.tc = _netem(f"{name}-broken", "kind", "dev", "options", "packets", "drops", "backlog")
    rows = (("goodput", GOODPUT), ("over the model with C = 1", RATIO), *more)
    f.stages = table(
        (f"recorded run, trial {broken.trial}", "broken", "fixed"),
        ((what, *map(show, both)) for what, show in rows),
    )
    return both


def _loss_percent(f: Facts, sets: RecordedSets) -> None:
    name = "loss-percent"
    both = broken, fixed = _case(
        f, sets, name, [("share of packets dropped", cell("loss_ratio", percent))]
    )
    p, set_ratio = param(broken, "loss_ratio"), param(broken, "loss_percent") / 100
    _set_both(f, both, percent, dropped="loss_ratio")
    f.p_set, f.resent = Number(set_ratio, digits=4), percent(_share_resent(broken))
    f.a_hundred_times_too_small = round(p / set_ratio) == 100
    pings = param(broken, "ping_count")
    all_back = (1 - p) ** pings
    f.pings, f.all_back, f.all_back_about = whole(pings), percent(all_back), percent(all_back, 2)
    f.all_back_as_set = percent((1 - set_ratio) ** pings)
    as_set_bps = _model_bps(broken, loss_ratio=set_ratio)
    over = measured(broken, "goodput_bps") / as_set_bps
    f.model_as_set, f.over_model_as_set = mbit(as_set_bps), Number(over)
    f.usual_for_what_was_set = 1.1 <= over <= 1.4
    f.ping_fixed = excerpt(f"{name}-fixed", "romeo/ping.txt", last=3)
    f.tc_counts = _netem(f"{name}-broken", "packets", "drops")
    f.tc_fixed = _netem(f"{name}-fixed", "options", "packets", "drops")
    f.loss_is_right_now = abs(measured(fixed, "loss_ratio") / p - 1) < 0.05
    pings_lost = round(measured(fixed, "ping_loss_ratio") * pings)
    f.pings_lost, f.several_pings_were_lost = whole(pings_lost), pings_lost > 1
    f.pings_lost_expected = Number(p * pings, digits=2)
    f.model_factor = Number(math.sqrt(p / set_ratio))
    f.factor_times = Number(f.factor.value, "times")
    f.far_below_the_model = measured(fixed, "ratio") < 0.7
    f.window_fixed = Number(measured(fixed, "cwnd_mean_segments"))
    f.timeouts_fixed = TIMEOUTS(fixed)
    f.goodput_with_all_mistakes = GOODPUT(sets.run("step-1-first-try", trial=5))


def _duration(f: Facts, sets: RecordedSets) -> None:
    name = "duration"
    broken, fixed = _case(f, sets, name, [("losses", DROPS), ("length", _lasts)], p_digits=3)
    p, rtt_ms = param(broken, "loss_ratio"), param(broken, "rtt_ms")
    drops, peak = measured(broken, "qdisc_drops"), measured(broken, "cwnd_max_segments")
    short_s, long_s, usual_s = (
        *(param(run, "duration_s") for run in (broken, fixed)),
        sets.trial(broken.trial)["duration_s"],
    )

    def expected(time_s: float) -> float:
        return model.mathis_expected_losses(rtt_ms, p, time_s)

    f.lasts_s, f.p_in_a_million = Number(short_s, "s"), Number(1e6 * p)
    f.loss, f.loss_fixed = loss, _ = _loss_interval(broken), _loss_interval(fixed)
    f.loss_ends_apart = Number(loss.high_value / loss.low_value, digits=2)
    f.p_is_inside = loss.low_value <= 1e6 * p <= loss.high_value
    f.few_losses = drops < 10
    f.losses_by_p = Number(p * measured(broken, "qdisc_offered_packets"), digits=2)
    f.model_window, f.peak = whole(1 / math.sqrt(p)), whole(peak)
    f.mostly_the_start = drops < 10 and peak > 2 / math.sqrt(p)
    hundred_s = model.mathis_time_for_losses_s(rtt_ms, p, 100)
    f.hundred_take, f.hundred_take_hours = seconds(hundred_s), hundred_s > 7200
    f.losses_expected = table(("duration", "losses expected"), (
        *((seconds(time_s), Number(expected(time_s), digits=2)) for time_s in (short_s, usual_s)),
        (seconds(hundred_s), Number(100)),
    ))  # fmt: skip
    f.hundred_fix_p = percent(intervals.relative_error_of_loss(100))
    f.hundred_fix_goodput = percent(intervals.relative_error_of_ratio(100))
    f.p_known_to = percent(intervals.relative_error_of_loss(measured(fixed, "qdisc_drops")), 1)
    f.duration_s_fixed, f.lasts_fixed = str(fixed.params["duration_s"]), seconds(long_s)
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    f.losses_expected_fixed = whole(expected(long_s))
    first, total = (measured(run, "bytes_received") for run in (broken, fixed))
    f.first_minutes_share = percent(first / total, 2)
    later_bps = (total - first) * 8 / (long_s - short_s)
    f.ratio_without_start = Number(later_bps / _model_bps(fixed))
    usual, longest = (sets.run(step, trial=53) for step in ("step-7-offloads", "step-8-long"))
    f.by_duration = runs_as_rows(
        (broken, usual, fixed, longest),
        {"duration": _lasts, "losses": DROPS, "goodput over model": RATIO},
    )
    f.losses_expected_usual = Number(expected(usual_s), digits=2)
    f.losses_usual, f.goodput_usual = DROPS(usual), GOODPUT(usual)


def _queueing(f: Facts, sets: RecordedSets) -> None:
    name = "queueing"

    def over_least(run: Result) -> Number:
        return Number(measured(run, "rtt_mean_ms") / measured(run, "rtt_min_ms"))

    both = broken, fixed = _case(
        f, sets, name, [("mean RTT over smallest", over_least)], p_digits=3
    )
    rtt_ms, frame_bytes = param(broken, "rtt_ms"), param(broken, "mtu_bytes") + ETHERNET_BYTES
    bdp, bdp_fixed = (
        model.bdp_bytes(param(run, "rate_mbit"), rtt_ms) / frame_bytes for run in both
    )
    rtt_mean_ms = measured(broken, "rtt_mean_ms")
    f.ss_at_largest = _at_largest_window(broken, name, last=1)
    f.loss = percent(measured(broken, "loss_ratio"))
    f.agrees_by_accident = 0.85 < measured(broken, "ratio") < 1.15
    _set(f, broken, ms, ping_min="ping_rtt_min_ms", rtt_min="rtt_min_ms")
    _set_both(f, both, lambda value: ms(value, 3), rtt_mean="rtt_mean_ms")
    f.waits = rtt_mean_ms > 1.1 * rtt_ms
    f.rate_mbit, f.rtt_s = whole(param(broken, "rate_mbit")), str(rtt_ms / 1000)
    f.rate, f.frame_bytes = mbit(1e6 * param(broken, "rate_mbit")), whole(frame_bytes)
    f.bdp, f.bdp_fixed = whole(bdp), whole(bdp_fixed)
    f.window_exceeds_bdp = measured(broken, "cwnd_mean_segments") > bdp
    _set(f, broken, whole, window="cwnd_mean_segments")
    _set(f, fixed, whole, peak_fixed="cwnd_max_segments")
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    off, off_fixed = (abs(measured(run, "ratio") - 1) for run in both)
    f.farther_from_one, f.chance = off_fixed > off, _chance(fixed, 2)
    one_on, one_off = (sets.run(f"queue-1-gbit-offloads-{state}") for state in ("on", "off"))
    three_on = sets.run("queue-3-gbit-offloads-on")
    three_off = sets.run("step-7-offloads", trial=11)
    f.by_link = table(
        ("link", "other mistake", "authors", "here", "mean round-trip time here"),
        (
            (link, mistake, theirs, GOODPUT(run), ms(measured(run, "rtt_mean_ms"), 3))
            for link, mistake, theirs, run in (
                ("1 Gbit/s", "still there", mbit(964e6), one_on),
                ("3 Gbit/s", "still there", mbit(1570e6), three_on),
                ("1 Gbit/s", "fixed", "", one_off),
                ("3 Gbit/s", "fixed", "", three_off),
            )
        ),
    )
    f.each_lasts = _lasts(one_on)
    f.no_queue_without_the_other = measured(one_off, "rtt_mean_ms") < 1.05 * rtt_ms
    f.by_mean_rtt = Number(measured(broken, "ratio") * rtt_mean_ms / rtt_ms)
    f.model_trial_8 = mbit(_mathis_bps(sets, 8))


def _timestamps(f: Facts, sets: RecordedSets) -> None:
    name = "timestamps"
    broken, fixed = _case(f, sets, name, [("MSS that ss prints", cell("mss_bytes", _size))])
    asked, got = param(broken, "mss_bytes"), measured(broken, "mss_bytes")
    smaller_by = 1 - got / asked
    f.tcpdump = excerpt(f"{name}-broken", "router/tcpdump.txt", last=3)
    f.path_mtu = _size(param(broken, "mtu_bytes"))
    _set(f, broken, _size, mss_got="mss_bytes", largest="largest_packet_bytes")
    f.missing, f.smaller_by = whole(asked - got), percent(smaller_by, 2)
    f.chance, f.chance_about = _chance(broken, 2), _chance(broken, 1)
    f.needed = whole(intervals.losses_needed(smaller_by))
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", grep="^ESTAB", last=1)
    f.grew_by = Number(_factor(fixed, broken, "goodput_bps"), digits=4)
    f.mss_factor = Number(asked / got, digits=4)
    f.chance_two = _chance(fixed, 2, of=2)
    theirs = _expected_losses(fixed)
    chance = intervals.relative_error_of_ratio(theirs)
    chance_of_two = math.sqrt(2) * chance
    f.their_losses = whole(theirs)
    f.their_chance, f.their_chance_two = percent(chance, 2), percent(chance_of_two, 2)
    f.their_difference = Number(PUBLISHED_DIFFERENCE / chance_of_two, digits=2)
    f.their_difference_is_chance = 2 * chance_of_two > PUBLISHED_DIFFERENCE
    f.before, f.after = (
        GOODPUT(sets.run(step, trial=17)) for step in ("step-4-rate", "step-5-timestamps")
    )


def _mtu(f: Facts, sets: RecordedSets) -> None:
    name = "mtu"
    broken, fixed = _case(f, sets, name, [
        ("MSS that ss prints", cell("mss_bytes", _size)),
        ("largest packet", cell("largest_packet_bytes", _size)),
    ])  # fmt: skip
    asked, got = param(broken, "mss_bytes"), measured(broken, "mss_bytes")
    f.iperf3_mss = excerpt(f"{name}-broken", "romeo/iperf3.json", grep='"tcp_mss"')
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.tcpdump = excerpt(f"{name}-broken", "router/tcpdump.txt", last=4)
    _set(f, broken, _size, mss_got="mss_bytes", largest="largest_packet_bytes")
    f.pmtu, f.path_mtu = (_size(param(run, "mtu_bytes")) for run in (broken, fixed))
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    f.segments_grew = asked > got
    factor = _factor(fixed, broken, "goodput_bps")
    f.grew_by, f.mss_factor = Number(factor, digits=4), Number(asked / got, digits=4)
    f.mss_ratio = Number(asked / got)
    f.factors_agree = abs(factor / (asked / got) - 1) < 0.05
    f.drops_agree = abs(_factor(fixed, broken, "qdisc_drops") - 1) < 0.05
    f.by_true_mss = Number(measured(broken, "ratio") * asked / got)


def _offload(f: Facts, sets: RecordedSets) -> None:
    name = "offload"

    def resent_for_each(run: Result) -> Number:
        return Number(measured(run, "retransmits") / measured(run, "qdisc_drops"))

    differences = [
        ("largest packet", cell("largest_packet_bytes", _size)),
        ("segments sent again for each drop", resent_for_each),
    ]
    both = broken, fixed = _case(f, sets, name, differences)
    f.on_and_off = table(
        ("value", "first try", "offloads off"),
        (
            (what, *map(show, both))
            for what, show in (*differences, ("goodput over the formula's", RATIO))
        ),
    )
    p, bundle = param(broken, "loss_ratio"), resent_for_each(broken).value
    f.path_mtu = _size(param(broken, "mtu_bytes"))
    _set(f, broken, _size, mss_got="mss_bytes", largest="largest_packet_bytes")
    _set(f, broken, ms, rtt_got="rtt_min_ms")
    f.tcpdump = excerpt(f"{name}-broken", "router/tcpdump.txt", last=4)
    f.packets_seen = excerpt(f"{name}-broken", "router/tcpdump.txt", last=3)
    f.resent_share = percent(_share_resent(broken))
    f.loss_seems_right = 0.5 < _share_resent(broken) / p < 2
    f.dropped = percent(measured(broken, "loss_ratio"))
    f.packet = whole(param(broken, "mss_bytes") + HEADER_BYTES)
    _set_both(f, both, whole, resent="retrans_total")
    f.drops_expected = whole(p * measured(broken, "qdisc_offered_packets"))
    f.bundle, f.bundle_about = Number(bundle), Number(bundle, digits=2)
    f.bundle_root = Number(math.sqrt(bundle), digits=2)
    f.tcpdump_fixed = excerpt(f"{name}-fixed", "router/tcpdump.txt", last=2)
    f.tc_fixed = _netem(f"{name}-fixed", "packets", "drops")
    still = measured(fixed, "retrans_total") / measured(fixed, "qdisc_drops")
    f.resent_as_dropped = abs(still - 1) < 0.03
    on, off = sets.runs("offloads-on"), sets.runs("offloads-off")
    f.ten_runs = table(
        (
            f"ten runs each, {on[0].params['duration_s']} s", "goodput over model, mean",
            "smallest to largest", "standard deviation", "drops a run",
        ),
        ((
            title, Number(mean(runs, "ratio")), _range(runs),
            percent(_relative_deviation(column(runs, "ratio")), 2), whole(mean(runs, "qdisc_drops")),
        ) for title, runs in (("with offloads", on), ("without", off))),
    )  # fmt: skip
    f.kinds_are_apart = min(column(on, "ratio")) > max(column(off, "ratio"))


def _rtt_doubling(f: Facts, sets: RecordedSets) -> None:
    name = "rtt-doubling"
    both = broken, fixed = _case(f, sets, name, [("smallest RTT", cell("rtt_min_ms", ms))])
    rtt_ms, rtt_fixed_ms = (measured(run, "rtt_min_ms") for run in both)
    _set(f, broken, ms, ping_min="ping_rtt_min_ms", rtt_min="rtt_min_ms")
    f.to_juliet = _netem(f"{name}-broken", "dev", "options")
    f.to_romeo = excerpt(
        f"{name}-broken", QDISC, where={"kind": "netem", "dev": "eth0"}, keys=["dev", "options"]
    )
    f.delay, f.delay_twice = ms(param(broken, "delay_ms")), ms(2 * param(broken, "delay_ms"))
    of_path_bps = _model_bps(broken, rtt_ms=rtt_ms)
    f.model_of_path = mbit(of_path_bps)
    f.over_model = Number(measured(broken, "goodput_bps") / of_path_bps)
    f.twice_as_long = 1.9 < rtt_ms / param(broken, "rtt_ms") < 2.1
    f.ping_fixed = excerpt(f"{name}-fixed", "romeo/ping.txt", last=2)
    f.grew_by = Number(_factor(fixed, broken, "goodput_bps"), digits=4)
    f.rtt_was, f.rtt_is, f.rtt_factor = map(Number, (rtt_ms, rtt_fixed_ms, rtt_ms / rtt_fixed_ms))
    f.rtt_fell = rtt_fixed_ms < rtt_ms
    f.drops_grew = _factor(fixed, broken, "qdisc_drops") > 1
    f.twice_as_many = 1.7 < _factor(fixed, broken, "qdisc_offered_packets") < 2.3
    _set_both(f, both, Number, window="cwnd_mean_segments")
    f.window_stayed = abs(_factor(fixed, broken, "cwnd_mean_segments") - 1) < 0.1


def _netem_limit(f: Facts, sets: RecordedSets) -> None:
    name = "netem-limit"

    def by_chance(run: Result) -> Number:
        return Number(param(run, "loss_ratio") * measured(run, "qdisc_offered_packets"), digits=2)

    both = broken, fixed = _case(
        f, sets, name, [("drops", DROPS), ("p times packets", by_chance)], p_digits=3
    )
    p, rtt_ms, time_s, mss = (
        param(broken, n) for n in ("loss_ratio", "rtt_ms", "duration_s", "mss_bytes")
    )
    f.one_in = whole(1 / p)
    f.model_segments = whole(_model_bps(broken) * time_s / 8 / mss)
    f.ratio_as_usual = 1.15 < measured(broken, "ratio") < 1.35
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.nstat_romeo = _counters(name, "romeo", ROMEO_COUNTERS)
    f.ss_at_largest = _at_largest_window(broken, name, first=1)
    f.drops_by_chance, f.drops_by_chance_fixed = map(by_chance, both)
    _set_both(f, both, whole, peak="cwnd_max_segments")
    f.half_of_peak = whole(measured(broken, "cwnd_max_segments") / 2)
    f.limit, f.limit_fixed = (whole(param(run, "limit_packets")) for run in both)
    f.waits, f.losses_expected = ms(rtt_ms / 2), Number(_expected_losses(broken), digits=2)
    buffer_bytes = param(broken, "wmem_max_bytes")
    f.send_buffer, f.send_buffer_segments = _size(buffer_bytes), whole(buffer_bytes / mss)
    f.limit_is_safe = param(fixed, "limit_packets") > 1.5 * buffer_bytes / mss
    f.tc_fixed = _netem(f"{name}-fixed", "options", "packets", "drops")
    packets = measured(fixed, "qdisc_offered_packets")
    low, high = intervals.binomial_interval(int(packets), p, 0.999)
    f.chance_allows = low <= measured(fixed, "loss_ratio") <= high
    f.drops_least, f.drops_most = whole(low * packets), whole(high * packets)
    _set(f, fixed, whole, resent_fixed="retrans_total")
    f.resent_as_dropped = measured(fixed, "retrans_total") == measured(fixed, "qdisc_drops")
    f.both = table(
        ("stage", "dropped", "largest window", "goodput", "over the model"),
        (
            (stage, DROPS(run), whole(measured(run, "cwnd_max_segments"), "segments"), GOODPUT(run), RATIO(run))
            for stage, run in zip(("broken", "fixed"), both, strict=True)
        ),
    )  # fmt: skip
    off, off_fixed = (abs(measured(run, "ratio") - 1.2) for run in both)
    f.ratio_moved_away = off_fixed > off


def _receiver_drops(f: Facts, sets: RecordedSets) -> None:
    name = "receiver-drops"
    broken, fixed = _case(f, sets, name, [
        ("router's drops", DROPS),
        ("retransmissions", cell("retransmits", whole)),
        ("receiver's own drops (TCPOFODrop)", cell("receiver_ofo_drops", whole)),
    ], p_digits=1)  # fmt: skip
    usual = sets.trial(broken.trial)
    p, rmem, wmem = (usual[n] for n in ("loss_ratio", "rmem_max_bytes", "wmem_max_bytes"))
    romeo, juliet = (sets.counters_grown(broken, node) for node in ("romeo", "juliet"))
    f.one_in = whole(1 / param(broken, "loss_ratio"))
    f.wmem, f.rmem = (_size(param(broken, n)) for n in ("wmem_max_bytes", "rmem_max_bytes"))
    f.iperf3_sent = excerpt(f"{name}-broken", "romeo/iperf3.json", between=['"sum_sent"', "}"])
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.nstat_romeo = _counters(name, "romeo", ROMEO_COUNTERS)
    f.nstat_juliet = _counters(name, "juliet", JULIET_COUNTERS)
    _set(f, broken, whole, refused="receiver_ofo_drops", timeouts="timeouts", resent="retransmits")
    f.pruned, f.reneged = whole(juliet["TcpExtOfoPruned"]), whole(romeo["TcpExtTCPSACKReneging"])
    f.resent_nstat = whole(romeo["TcpRetransSegs"])
    drops, resent = measured(broken, "qdisc_drops"), measured(broken, "retransmits")
    f.few_drops = drops < 5
    f.resent_far_more = resent > 10 * drops and measured(broken, "receiver_ofo_drops") > 0
    f.ss_full_window = _at_largest_window(broken, name, " .*unacked:", last=1)
    f.memory_pressures = whole(juliet["TcpExtTCPMemoryPressures"])
    f.stored_is_thrown_away = juliet["TcpExtOfoPruned"] > 0
    f.usual_p = Number(p)
    f.model_window_mib = Number(RANDOM / math.sqrt(p) * usual["mss_bytes"] / 2**20)
    f.wmem_mib, f.rmem_mib, f.receiver_has_more = (
        Number(wmem / 2**20), Number(rmem / 2**20), rmem > 1.5 * wmem,
    )  # fmt: skip
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    allowed_bps = wmem * 8e3 / usual["rtt_ms"]
    f.wmem_fixed, f.allowed = _size(wmem), mbit(allowed_bps)
    f.share_of_allowed = percent(measured(fixed, "goodput_bps") / allowed_bps)
    f.faster = Number(1 / _factor(fixed, broken, "goodput_bps"), digits=2)
    f.too_few_for_the_model = measured(fixed, "qdisc_drops") < 100
    long = sets.run("step-8-long", trial=broken.trial)
    f.long_lasts, f.long_ratio = _lasts(long), RATIO(long)
    _set(f, long, whole, long_drops="qdisc_drops", long_resent="retrans_total")
    f.resent_share = percent(resent / measured(broken, "data_segs_out"), 2)
    f.p_percent_short = percent(param(broken, "loss_ratio"), 1)


def _model_domain(f: Facts, sets: RecordedSets) -> None:
    name = "model-domain"
    broken, fixed = _case(f, sets, name)
    p, p_fixed = (param(run, "loss_ratio") for run in (broken, fixed))
    rtt_ms, time_s = param(broken, "rtt_ms"), param(broken, "duration_s")
    f.lasts_s = Number(time_s, "s")
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
    over_pftk = _over_pftk(broken)
    f.pftk, f.over_pftk = mbit(_pftk_bps(broken)), Number(over_pftk, digits=2)
    f.neither_describes_linux = over_pftk > 1.2 and measured(broken, "ratio") < 0.8
    f.p_fixed, f.p_fixed_3 = Number(p_fixed, digits=2), Number(p_fixed)
    f.both = runs_as_rows(
        (broken, fixed),
        {"loss ratio $p$": _p_short, "goodput": GOODPUT, "over Mathis": RATIO, "losses": DROPS, "timeouts": TIMEOUTS},
    )  # fmt: skip
    trials = [
        run for run in sets.runs("step-7-offloads") if run.trial in (3, 7, 4, 1, 10, 5, 59, 54)
    ]
    trials.sort(key=lambda run: param(run, "loss_ratio"))
    f.by_p = runs_as_rows(trials, {
        "trial": lambda run: Number(run.trial),
        "RTT": lambda run: ms(param(run, "rtt_ms")),
        "loss ratio $p$": _p_short,
        "losses": DROPS,
        "timeouts": TIMEOUTS,
        "over Mathis": RATIO,
        "over PFTK": lambda run: Number(_over_pftk(run)),
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
    both = broken, fixed = _case(f, sets, name)
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
        ("from port", "`bytes_sent`", "`data_segs_out`", "resent", "share resent"),
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
    _set_both(f, both, whole, connections="picked_connections")
    f.resent_fixed = percent(_share_resent(fixed))
    f.goodput_is_the_same = measured(fixed, "goodput_bps") == measured(broken, "goodput_bps")


def _ack_policy(f: Facts, sets: RecordedSets) -> None:
    name = "ack-policy"

    def shown(run: Result) -> Number:
        return Number(_per_ack(run))

    broken, fixed = _case(f, sets, name, [("segments an ACK", shown)])
    p, mss, per_ack = param(broken, "loss_ratio"), param(broken, "mss_bytes"), _per_ack(broken)
    expected_bps = RANDOM_DELAYED * _model_bps(broken)
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
    _set(f, broken, whole, segments="data_segs_out", acks="receiver_acks_out")
    burst = param(broken, "burst_bytes")
    f.captured, f.burst = whole(param(broken, "capture_acks_packets")), _size(burst)
    f.burst_packets = whole(burst / (mss + HEADER_BYTES + ETHERNET_BYTES))
    f.simulated = table(("by one segment a window of", "constant $C$"), (
        ("segments", Number(model.sack_reno_constant(p, 1))),
        *(
            (f"ACKs, each for {n} segments", Number(model.sack_reno_constant(p, n)))
            for n in (2, int(per_ack))
        ),
        ("**measured**", f"**{f.ratio}**"),
    ))  # fmt: skip
    f.one_run = table(
        ("one run", "segments an ACK", "goodput", "over the model"),
        (
            (stage, shown(run), GOODPUT(run), RATIO(run))
            for stage, run in (("Linux's own ACKs", broken), ("an ACK a segment", fixed))
        ),
    )
    f.below_random = measured(broken, "ratio") < RANDOM
    f.window = whole(measured(broken, "ratio") / math.sqrt(p))
    f.simulated_at_low_p = Number(model.sack_reno_constant(0.0001))


def _ten_runs_each_way(f: Facts, sets: RecordedSets) -> None:
    """Of the case ack-policy: as Linux acknowledges, and with an ACK for each segment."""
    delayed, every = kinds = sets.runs("acks-delayed"), sets.runs("acks-every-segment")
    per_ack = [statistics.fmean(map(_per_ack, runs)) for runs in kinds]
    ratios = [mean(runs, "ratio") for runs in kinds]
    constants = [Interval.of_mean(list(map(_c_by_count, runs)), digits=4) for runs in kinds]
    f.ten_runs = table(
        (f"{len(delayed)} runs each, {_lasts(delayed[0])}", "Linux's own ACKs", "an ACK a segment"),
        (
            ("segments an ACK, mean", *map(Number, per_ack)),
            ("goodput over the model, mean", *(Number(ratio, digits=4) for ratio in ratios)),
            ("$C$ by the losses counted, mean", *(c.middle for c in constants)),
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
    f.delayed, f.every = map(_range, kinds)


def _cherry_picking(f: Facts, sets: RecordedSets) -> None:
    (pitfall,) = (each for each in sets.lab.file.pitfalls if each.id == "cherry-picking")
    again = pitfall.broken.again
    assert again
    low, high = _both_ends(again.min, again.max)
    broken, fixed = sets.runs("cherry-picking-broken"), sets.runs("cherry-picking-fixed")
    tried, honest = _by_trial(broken), _by_trial(fixed)
    seven, time_s = sets.trial(7), param(broken[0], "duration_s")
    expected = model.mathis_expected_losses(seven["rtt_ms"], seven["loss_ratio"], time_s)
    f.picked_trials = ", ".join(map(str, tried))
    f.rtt, f.lasts, f.losses_expected = ms(seven["rtt_ms"]), seconds(time_s), whole(expected)
    f.low, f.high = Number(low), Number(high)
    first, last = ([tries[n] for tries in tried.values()] for n in (0, -1))
    f.report = table(("trial", "goodput over the model"), (
        *((Number(trial), Number(tries[-1])) for trial, tries in tried.items()),
        ("**mean**", _bold_mean(last)),
    ))  # fmt: skip
    f.all_runs = runs_as_rows(broken, {
        "trial": lambda run: Number(run.trial), "seed": lambda run: Number(run.seed),
        "losses": DROPS, "goodput": GOODPUT, "over the model": RATIO,
    })  # fmt: skip
    once = [trial for trial, tries in tried.items() if len(tries) == 1]
    twice = [trial for trial, tries in tried.items() if len(tries) > 1]
    f.run_again, f.run_once = (", ".join(map(str, trials)) for trials in (twice, once))
    f.once, f.several_of_both = whole(len(once)), len(once) > 1 and len(twice) > 1
    f.means = table(("mean over", "ratio"), (
        ("the first tries", _mean(first)),
        ("the last tries: the report", _mean(last)),
        ("all tries", _mean(column(broken, "ratio"))),
    ))  # fmt: skip
    f.runs, f.runs_fixed = whole(len(broken)), whole(len(fixed))
    f.chance = percent(intervals.relative_error_of_ratio(expected), 1)
    p = {trial: sets.trial(trial)["loss_ratio"] for trial in honest}
    f.p_trial_1, f.p_trial_4, f.p_1 = percent(p[1], 2), percent(p[4], 2), percent(p[1])
    f.have_the_highest_losses = min(p[1], p[4]) > max(p[3], p[7], p[9])
    odd, others = ([r for n in those for r in honest[n]] for those in ((1, 4), (3, 7, 9)))
    f.are_lower = statistics.fmean(odd) < statistics.fmean(others)
    f.most_tries, f.repeat = whole(1 + again.tries), whole(pitfall.fixed.repeat or 1)
    runs = {run.trial: run for run in reversed(fixed)}
    f.each_as_often = table(
        ("trial", "losses in one run", "chance alone", "first try", "second try", "in the range"),
        (
            *(
                (Number(trial), DROPS(runs[trial]), f"± {_chance(runs[trial], 2)}", *map(Number, tries),
                 f"{sum(low <= ratio <= high for ratio in tries)} of {len(tries)}")
                for trial, tries in honest.items()
            ),
            ("**mean**", "", "", *map(_bold_mean, zip(*honest.values(), strict=True)), ""),
        ),
    )  # fmt: skip
    first_try, second_try = honest[7]
    f.trial_7_first, f.trial_7_second = (Number(r, digits=4) for r in honest[7])
    f.trial_7_is_in_once = not low <= first_try <= high and low <= second_try <= high
    f.trial_7_apart = percent(abs(first_try - second_try) / first_try, 2)
    f.trial_7_chance = _chance(runs[7], 2, of=2)
    f.trial_1_alone_is_below = [n for n, tries in honest.items() if max(tries) < low] == [1]
    f.mean_of_all = _mean(column(fixed, "ratio"))
    f.trial_1_tries = " and ".join(str(Number(ratio)) for ratio in honest[1])
    least, most = ([pick(column(r, "ratio")) for r in (broken, fixed)] for pick in (min, max))
    f.stages = table(("recorded set", "broken", "fixed"), (
        ("runs", f.runs, f.runs_fixed),
        ("smallest ratio", *map(Number, least)),
        ("largest", *map(Number, most)),
    ))  # fmt: skip


# The pages that are of no case


def _one_trial(f: Facts, sets: RecordedSets) -> None:
    """Trial 8, read from start to end."""
    name = "step-7-offloads"
    run = sets.run(name, trial=8)
    mss, rtt_ms, p, time_s = (
        param(run, n) for n in ("mss_bytes", "rtt_ms", "loss_ratio", "duration_s")
    )
    f.asked = table(("setting", "value", "who keeps to it"), (
        ("segment size", _size(mss), "iperf3 on romeo"),
        ("round-trip time", ms(rtt_ms), "netem, half in each direction"),
        ("loss ratio $p$", Number(p, digits=4), "netem, towards juliet"),
        ("rate", mbit(1e6 * param(run, "rate_mbit")), "HTB, towards juliet"),
        ("duration", _lasts(run), "iperf3"),
    ))  # fmt: skip
    bps, losses, rtt_s = _model_bps(run), _expected_losses(run), Number(rtt_ms / 1e3, digits=1)
    f.by_hand = table(("step", "value"), (
        (f"one segment, in bits: {mss} · 8", whole(8 * mss, "bit")),
        (f"one segment each round trip: divided by {rtt_s} s", mbit(8e3 * mss / rtt_ms)),
        ("the window: $1/\\sqrt{p}$", Number(1 / math.sqrt(p), "segments")),
        ("both multiplied", f"**{mbit(bps)}**"),
    ))  # fmt: skip
    f.segments_per_s, f.p, f.s = whole(bps / 8 / mss), Number(p), Number(time_s)
    f.losses = whole(losses)
    f.chance_by_p = percent(intervals.relative_error_of_ratio(losses), 1)
    f.ping = excerpt(name, "romeo/ping.txt", last=3, trial=8, explained="ping")
    f.ss = excerpt(name, "romeo/ss-last.txt", last=1, trial=8, explained="ss")
    f.tc = _netem(name, "kind", "options", "packets", "drops", trial=8, explained="tc")
    sent = ["TcpOutSegs", "TcpRetransSegs", "TcpExtTCPTimeouts", "TcpExtTCPDSACKRecv"]
    received = ["TcpInSegs", "TcpOutSegs", "TcpExtTCPOFODrop", "TcpExtPruneCalled"]
    f.romeo, f.juliet = (
        excerpt(name, f"{node}/nstat.after.json", where={}, keys=keys, trial=8)
        for node, keys in (("romeo", sent), ("juliet", received))
    )
    f.tcpdump = excerpt(name, "router/tcpdump.txt", last=3, trial=8, explained="tcpdump")
    f.iperf3 = excerpt(name, "romeo/iperf3.json", between=RECEIVED, trial=8, explained="iperf3")
    _set(f, run, ms, ping_min="ping_rtt_min_ms", rtt_min="rtt_min_ms", rtt_mean="rtt_mean_ms")
    f.delay_is_as_asked = abs(measured(run, "ping_rtt_min_ms") / rtt_ms - 1) < 0.01
    f.has_no_queue = measured(run, "rtt_mean_ms") < 1.05 * measured(run, "rtt_min_ms")
    _set(f, run, _size, mss="mss_bytes", largest="largest_packet_bytes")
    _set(f, run, whole, drops="qdisc_drops", sent="qdisc_sent_packets", resent="retransmits")
    _set(f, run, whole, twice="spurious_retransmits", timeouts="timeouts")
    _set(f, run, whole, refused="receiver_ofo_drops", bytes="bytes_received")
    counted = measured(run, "loss_ratio")
    expected = next(verdict for verdict in run.expectations if verdict.measured == "loss_ratio")
    f.loss = Interval(counted, *_both_ends(expected.low, expected.high), digits=4)
    f.p_exactly, f.loss_is_inside = Number(p, digits=4), expected.ok
    goodput_bps = measured(run, "goodput_bps")
    f.goodput, f.sender_rate = mbit(goodput_bps, 4), mbit(measured(run, "sender_rate_bps"), 4)
    counted_bps = _model_bps(run, loss_ratio=counted)
    constants = (("1", 1), ("\\sqrt{3/2}", REGULAR), (Number(RANDOM), RANDOM))
    f.compared = table(("model", "goodput", "measured over it"), (
        ("$C = 1$, $p$ as set", mbit(bps, 4), f"**{Number(goodput_bps / bps, digits=4)}**"),
        *(
            (
                f"$C = {said}$, $p$ as counted", mbit(c * counted_bps, 4),
                Number(goodput_bps / (c * counted_bps), digits=4),
            )
            for said, c in constants
        ),
    ))  # fmt: skip
    f.chance, f.ratio = _chance(run, 2), RATIO(run)


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
    usual = sets.runs("step-7-offloads")
    f.comparable, f.usual_runs = whole(sum(run.comparable for run in usual)), whole(len(usual))
    f.longest = seconds(max(param(run, "duration_s") for run in sets.runs("step-8-long")))
    seven, rare, heavy = (sets.trial(number) for number in (7, 53, 5))
    f.trial_7_mss, f.trial_7_rtt = _size(seven["mss_bytes"]), ms(seven["rtt_ms"])
    f.trial_7_p, f.trial_5_p = Number(seven["loss_ratio"]), percent(heavy["loss_ratio"])
    rare_losses = model.mathis_expected_losses(rare["rtt_ms"], rare["loss_ratio"], 60)
    f.trial_53_losses_a_minute = Number(rare_losses)


def _whole_figure(f: Facts, sets: RecordedSets) -> None:
    """What the sixty trials do from step to step."""
    low, high = _expected(sets)
    steps = _step_names(sets)
    first, last = sets.runs(steps[0]), sets.runs(steps[-1])
    f.buffer_limits_from, f.link_limits_at = (ms(sets.trial(n)["rtt_ms"]) for n in (13, 2))
    f.first_send_buffer = _size(param(sets.run(steps[0], trial=13), "wmem_max_bytes"))
    f.first_try_has_rows = _has_rows(first)
    slow, fast = (measured(sets.run(step, trial=12), "ratio") for step in steps[2:4])
    f.trial_12_slow, f.trial_12_fast = Number(slow), Number(fast)
    f.trial_12_moved_away = fast > slow > 1
    after = {run.trial: measured(run, "ratio") for run in sets.runs("step-5-timestamps")}
    f.timestamps_move_what_no_eye_sees = all(
        abs(after[run.trial] / measured(run, "ratio") - 1) < 0.25
        for run in sets.runs("step-4-rate")
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
    f.trial_11_model = mbit(_mathis_bps(sets, 11))


def _what_holds(f: Facts, sets: RecordedSets) -> None:
    """What became of the claims."""
    low, high = _expected(sets)
    long, usual = sets.runs("step-8-long"), sets.runs("step-7-offloads")
    used = [run for run in long if run.comparable]
    fit = intervals.fit_constant(list(map(_model_bps, used)), column(used, "goodput_bps"))
    slope, ends = fit.slope or 0, _both_ends(fit.slope_low, fit.slope_high)
    f.slope = Interval(slope, *ends, digits=4, n=fit.points)
    f.constant = Interval(fit.constant, fit.low, fit.high, digits=4, n=fit.points)
    f.constant_about = Interval(fit.constant, fit.low, fit.high, n=fit.points)
    f.fitted, f.fitted_losses = whole(fit.points), whole(sum(column(long, "qdisc_drops")))
    f.slope_is_one = judge(ends, least=1 - SLOPE_TOLERANCE, most=1 + SLOPE_TOLERANCE)
    f.one_is_inside_the_slopes = ends[0] <= 1 <= ends[1]
    f.c_is_random, f.c_is_delayed, f.c_is_one = (
        judge((fit.low / c, fit.high / c), least=1 - CONSTANT_TOLERANCE, most=1 + CONSTANT_TOLERANCE)
        for c in (RANDOM, RANDOM_DELAYED, 1)
    )  # fmt: skip
    f.random_is_inside, f.delayed_is_inside = (
        fit.low <= c <= fit.high for c in (RANDOM, RANDOM_DELAYED)
    )
    f.trials_lie_along_the_line = _within(sets, long) >= 0.95 * len(long)
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
    five = sets.run("step-7-offloads", trial=5)
    f.trial_5_p_ratio, f.trial_5_ratio = Number(param(five, "loss_ratio")), RATIO(five)
    f.trial_5_pftk, f.trial_5_goodput = mbit(_pftk_bps(five)), GOODPUT(five)
    f.trial_5_over_pftk = Number(_over_pftk(five), digits=2)
    fewest = min(long, key=lambda run: measured(run, "qdisc_drops"))
    f.fewest_losses, f.chance_of_one = DROPS(fewest), _chance(fewest, 1)
    rare = sets.trial(53)
    f.usual_s = Number(rare["duration_s"], "s")
    rare_losses = model.mathis_expected_losses(600, rare["loss_ratio"], rare["duration_s"])
    f.trial_53_losses = Number(rare_losses, digits=2)


def _published(f: Facts, sets: RecordedSets) -> None:
    """The reproduction's ten values beside ours."""
    rows = (
        (17, "loss in percent, timestamps on", 0.6, "step-3-duration"),
        (17, "timestamps off", 0.561, "step-5-timestamps"),
        (5, "loss in percent", 1.68, "step-5-timestamps"),
        (3, "offloads on", 104, "step-6-mtu"),
        (3, "offloads off", 20.9, "step-7-offloads"),
        (9, "MTU 1500, offloads on", 68.5, "step-5-timestamps"),
        (9, "MTU 4352, offloads on", 161, "step-6-mtu"),
        (11, "1 Gbit/s, offloads on", 964, "queue-1-gbit-offloads-on"),
        (11, "3 Gbit/s, offloads on", 1570, "queue-3-gbit-offloads-on"),
        (53, "240 s, offloads on", 14.4, "step-5-timestamps"),
    )
    runs = [sets.run(name, trial=trial) for trial, _, _, name in rows]
    # The model's value stands once a trial.
    first = {trial: n for n, (trial, *_) in reversed(list(enumerate(rows)))}
    f.published = table(("trial", "state", "model", "published", "ours"), (
        (
            Number(trial), state, mbit(_mathis_bps(sets, trial)) if first[trial] == n else "",
            Number(theirs), GOODPUT(runs[n]),
        )
        for n, (trial, state, theirs, _) in enumerate(rows)
    ))  # fmt: skip
    f.all_go_their_way = all(
        (_factor(runs[first[trial] + 1], runs[first[trial]], "goodput_bps") > 1)
        == (rows[first[trial] + 1][2] > rows[first[trial]][2])
        for trial in (3, 9, 11)
    )


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
            "yes" if c.low_value <= simulated <= c.high_value else "no",
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
        rates, predicted = column(row, "goodput_bps"), list(map(_model_bps, row))
        buffer_bps = param(row[0], "wmem_max_bytes") * 8e3 / rtt_ms
        allowed_bps = min(buffer_bps, 1e6 * param(row[0], "rate_mbit"))
        one_goodput = max(rates) < 1.1 * min(rates) and max(rates) > 0.8 * allowed_bps
        rows.append(one_goodput and max(predicted) > 3 * min(predicted))
    return len(unhindered) > 0.5 * len(runs) and all(rows)


# What several of them need


def _set(f: Facts, run: Result, show: Callable[[float], Cell], **names: str) -> None:
    """Set facts to measured values of a run: `_set(f, run, whole, peak="cwnd_max_segments")`."""
    for fact, name in names.items():
        setattr(f, fact, show(measured(run, name)))


def _set_both(
    f: Facts, both: tuple[Result, Result], show: Callable[[float], Cell], **names: str
) -> None:
    """Set facts to measured values of a case's first try, and of the fixed run, as `peak` and `peak_fixed`."""
    _set(f, both[0], show, **names)
    _set(f, both[1], show, **{f"{fact}_fixed": name for fact, name in names.items()})


def _size(count_bytes: float) -> Number:
    return whole(count_bytes, "B")


def _lasts(run: Result) -> Number:
    return seconds(param(run, "duration_s"))


def _p_short(run: Result) -> Number:
    return Number(param(run, "loss_ratio"), digits=2)


def _model_bps(run: Result, **instead: float) -> float:
    """The model's bandwidth for a run, with C = 1, in bit/s; `instead` are other values than the run was set to."""
    values = {name: param(run, name) for name in ("mss_bytes", "rtt_ms", "loss_ratio")}
    return model.mathis_bandwidth_bps(**values | instead)


def _mathis_bps(sets: RecordedSets, number: int) -> float:
    """The model's bandwidth for a trial, with C = 1, in bit/s."""
    trial = sets.trial(number)
    return model.mathis_bandwidth_bps(trial["mss_bytes"], trial["rtt_ms"], trial["loss_ratio"])


def _expected_losses(run: Result) -> float:
    """How many losses the model expects in a run."""
    rtt_ms, p, time_s = (param(run, name) for name in ("rtt_ms", "loss_ratio", "duration_s"))
    return model.mathis_expected_losses(rtt_ms, p, time_s)


def _pftk_bps(run: Result) -> float:
    mss, rtt_ms, p = (param(run, name) for name in ("mss_bytes", "rtt_ms", "loss_ratio"))
    return model.pftk_bandwidth_bps(mss, rtt_ms, p)


def _over_pftk(run: Result) -> float:
    return measured(run, "goodput_bps") / _pftk_bps(run)


def _chance(run: Result, digits: int, of: int = 1) -> Number:
    """The share by which chance moves a run's goodput, judging by its losses; or the difference `of` two."""
    error = intervals.relative_error_of_ratio(measured(run, "qdisc_drops"))
    return percent(math.sqrt(of) * error, digits)


def _factor(run: Result, other: Result, name: str) -> float:
    """How many times the other's a run's measured value is."""
    return measured(run, name) / measured(other, name)


def _share_resent(run: Result) -> float:
    return measured(run, "retrans_total") / measured(run, "data_segs_out")


def _per_ack(run: Result) -> float:
    """How many segments an ACK covers."""
    return measured(run, "data_segs_out") / measured(run, "receiver_acks_out")


def _c_by_count(run: Result) -> float:
    """C by the losses that were counted, instead of by those that were asked for."""
    return measured(run, "ratio") * math.sqrt(
        measured(run, "loss_ratio") / param(run, "loss_ratio")
    )


def _relative_deviation(values: Sequence[float]) -> float:
    average, deviation = intervals.mean_and_deviation(values)
    return deviation / average


def _mean(values: Iterable[float]) -> Number:
    return Number(statistics.fmean(values), digits=4)


def _bold_mean(values: Iterable[float]) -> str:
    return f"**{_mean(values)}**"


def _range(runs: Sequence[Result]) -> str:
    """The smallest and the largest ratio."""
    ratios = column(runs, "ratio")
    return f"{Number(min(ratios))} to {Number(max(ratios))}"


def _by_trial(runs: Sequence[Result]) -> dict[int, list[float]]:
    """The ratios of each trial's runs, by seed."""
    ordered = sorted(runs, key=lambda run: (run.trial, run.seed))
    groups = groupby(ordered, lambda run: run.trial)
    return {trial: column(list(tries), "ratio") for trial, tries in groups}


def _loss_interval(run: Result) -> Interval:
    """The loss ratio behind the drops that were counted, in a million."""
    drops, packets = measured(run, "qdisc_drops"), measured(run, "qdisc_offered_packets")
    low, high = intervals.loss_interval(int(drops), int(packets))
    return Interval(1e6 * measured(run, "loss_ratio"), 1e6 * low, 1e6 * high)


def _netem(of_set: str, *keys: str, **which: object) -> Excerpt:
    """Some of what netem counted on the router's way to juliet."""
    return excerpt(of_set, QDISC, where=TO_JULIET, keys=list(keys), **which)


def _counters(name: str, node: str, names: list[str]) -> Excerpt:
    return excerpt(f"{name}-broken", f"{node}/nstat.after.json", counters=names)


def _at_largest_window(run: Result, name: str, more: str = " ", **lines: int) -> Excerpt:
    """A sample of ss in which the window was largest."""
    grep = f"cwnd:{run.measured['cwnd_max_segments']}{more}"
    return excerpt(f"{name}-broken", "romeo/ss.txt", grep=grep, **lines)


def _step_names(sets: RecordedSets) -> list[str]:
    """The sets that lead from the first try to the result, in order."""
    return [recording.id for recording in sets.lab.file.recordings if recording.step]


def _both_ends(low: float | None, high: float | None) -> tuple[float, float]:
    assert low is not None
    assert high is not None
    return low, high


def _expected(sets: RecordedSets) -> tuple[float, float]:
    """The range in which lab.toml expects goodput over the model's bandwidth."""
    ratio = next(each for each in sets.lab.file.expect if each.measured == "ratio")
    return _both_ends(ratio.min, ratio.max)


def _within(sets: RecordedSets, runs: Sequence[Result]) -> int:
    """How many runs are in that range."""
    low, high = _expected(sets)
    return sum(run.ratio is not None and low <= run.ratio <= high for run in runs)


# The pages of docs/start, docs/reference and docs/instructors that are of this lab


def _half_an_hour(f: Facts, sets: RecordedSets) -> None:
    """Trial 8, as docs/start/half-an-hour.md begins with it."""
    eight = sets.trial(8)
    f.delay, f.p = ms(eight["rtt_ms"] / 2), percent(eight["loss_ratio"])
    f.mss, f.rate = whole(eight["mss_bytes"], "B"), mbit(1e6 * eight["rate_mbit"])
    f.lasts_s = Number(eight["duration_s"], "s")
    f.took = seconds(sets.real_s(sets.run("step-7-offloads", trial=8)))


def _how_sure(f: Facts, sets: RecordedSets) -> None:
    """docs/reference/statistics.md: how much chance there is in runs, and in what follows from them."""
    _counts_of_losses(f, sets)
    _few_losses(f, sets)
    ten, twins = sets.runs("acks-delayed"), sets.runs("acks-every-segment")
    _repeats(f, sets, ten)
    _two_settings(f, ten, twins)
    f.constant, f.slope = f.constant_about, replace(f.slope, digits=3)
    trials = len(sets.lab.trials)
    f.outside_99 = Number(trials * 0.01, digits=1)
    f.one_outside_99, f.one_outside_95 = (percent(1 - ok**trials, 2) for ok in (0.99, 0.95))
    f.outside_95 = whole(trials * 0.05)
    f.bonferroni = percent(0.01 / trials, 2)
    steps = _step_names(sets)
    for name, step in (("fixed", steps[-2]), ("first", steps[0])):
        judged = [
            verdict.ok
            for run in sets.runs(step)
            for verdict in run.expectations
            if verdict.confidence and verdict.ok is not None
        ]
        setattr(f, f"judged_{name}", whole(len(judged)))
        setattr(f, f"outside_{name}", whole(judged.count(False)))
    f.fixed_step = steps[-2]
    picked, kept = sets.runs("cherry-picking-broken"), sets.runs("cherry-picking-fixed")
    f.picked, f.picked_of = whole(len(picked)), whole(len({run.trial for run in picked}))
    f.kept = whole(len(kept))


def _counts_of_losses(f: Facts, sets: RecordedSets) -> None:
    """What a number of losses says: of a ratio, and of the p that was set."""
    f.known_to = table(
        ("losses", "loss ratio known to", "goodput known to", "95&nbsp;% of runs lie between"),
        (
            (
                Number(losses),
                f"± {percent(intervals.relative_error_of_loss(losses))}",
                f"± {percent(intervals.relative_error_of_ratio(losses))}",
                "{} and {} times the mean".format(
                    *map(Number, _both_ends(*intervals.ratio_bounds(losses) or (None, None)))
                ),
            )
            for losses in (4, 25, 100, 400, 2500)
        ),
    )
    f.losses_for_5, f.losses_for_1 = (whole(intervals.losses_needed(e)) for e in (0.05, 0.01))
    for number in (53, 7):
        trial = sets.trial(number)
        time_s = model.mathis_time_for_losses_s(trial["rtt_ms"], trial["loss_ratio"], 100)
        setattr(f, f"hundred_in_{number}", seconds(time_s))
    f.rtt_53 = ms(sets.trial(53)["rtt_ms"])
    short, long = sets.run("duration-broken"), sets.run("duration-fixed")
    f.p_53 = Number(param(short, "loss_ratio"), digits=2)
    for name, run in (("short", short), ("long", long)):
        drops, offered = (int(measured(run, n)) for n in ("qdisc_drops", "qdisc_offered_packets"))
        low, high = intervals.loss_interval(drops, offered)
        setattr(f, f"{name}_lasts", seconds(measured(run, "duration_s")))
        setattr(f, f"{name}_drops", Number(drops))
        setattr(f, f"{name}_loss", Interval(drops / offered, low, high, digits=2))
        setattr(f, f"{name}_factor", Number(high / low, digits=2))
        setattr(f, f"{name}_ratio", Number(measured(run, "ratio"), digits=2))
    f.short_offered = whole(measured(short, "qdisc_offered_packets"))
    f.comes_down = measured(short, "ratio") > 3 and measured(long, "ratio") < 1.5


def _few_losses(f: Facts, sets: RecordedSets) -> None:
    """The trials of the last step but one with fewer than thirty losses, against C."""
    few = [
        run.ratio
        for run in sets.runs(_step_names(sets)[-2])
        if run.ratio and 0 < measured(run, "qdisc_drops") < 30 and param(run, "loss_ratio") < 0.02
    ]
    above = sum(ratio > f.constant_about.middle_value for ratio in few)
    f.few, f.few_above = whole(len(few)), whole(above)
    f.is_not_chance = above > 0.75 * len(few)


def _repeats(f: Facts, sets: RecordedSets, ten: Sequence[Result]) -> None:
    """A trial with ten seeds, and how many runs a difference takes."""
    ratios = column(ten, "ratio")
    spread = intervals.relative_spread(ratios)
    losses = mean(ten, "qdisc_drops")
    f.trial, f.runs = whole(ten[0].trial), whole(len(ten))
    f.ratios = " · ".join(str(Number(ratio, digits=4)) for ratio in sorted(ratios))
    f.mean, f.scatter = Interval.of_mean(ratios, digits=4), percent(spread, 2)
    f.rule, f.losses = percent(intervals.relative_error_of_ratio(losses), 2), whole(losses)
    f.for_5, f.for_1 = (whole(_runs_of_each(spread / part)) for part in (0.05, 0.01))
    indices = column(sets.other("buffers").runs("one-run-fixed", trial=1), "jains_index")
    deviation = statistics.stdev(indices)
    f.jain_scatter = Number(deviation, digits=2)
    f.jain_for, f.jain_runs = whole(_runs_of_each(deviation / 0.1)), whole(len(indices))


def _runs_of_each(scatter: float) -> int:
    """How many runs of each of two settings show a difference about every second time: `scatter` is the standard deviation
    over that difference."""
    return max(2, math.ceil(8 * scatter**2))


def _two_settings(f: Facts, ten: Sequence[Result], twins: Sequence[Result]) -> None:
    """Linux's own ACKs and an ACK a segment: as two samples, and as pairs with the same seed."""
    kinds = {"Linux's own ACKs": column(ten, "ratio"), "an ACK a segment": column(twins, "ratio")}
    both = {name: Interval.of_mean(ratios, digits=4) for name, ratios in kinds.items()}
    f.compared = table(
        ("receiver", "mean ratio", "95&nbsp;% interval"),
        ((name, interval.middle, interval.ends) for name, interval in both.items()),
    )
    own, every = both.values()
    f.overlap = own.low_value <= every.high_value and every.low_value <= own.high_value
    twin = {run.seed: measured(run, "ratio") for run in twins}
    pairs = sorted(measured(run, "ratio") - twin[run.seed] for run in ten)
    f.pairs = " · ".join(str(Number(apart, digits=2)) for apart in pairs)
    f.above_zero, f.pairs_number = whole(sum(apart > 0 for apart in pairs)), whole(len(pairs))
    f.apart = Interval.of_mean(pairs, digits=2)
    f.zero_is_outside = f.apart.low_value > 0
    f.factor = Interval(
        *intervals.ratio_of_means(column(ten, "ratio"), column(twins, "ratio")), digits=4
    )
    f.is_small = f.factor.high_value < 1.05


def _other_seeds(f: Facts, sets: RecordedSets) -> None:
    """docs/instructors/vary.md: what ten seeds change of trial 3."""
    off, on = sets.runs("offloads-off"), sets.runs("offloads-on")

    def row(
        what: str, runs: Sequence[Result], name: str, show: Callable[[float], Cell], changes: str
    ) -> tuple[Cell, ...]:
        values = column(runs, name)
        return what, show(min(values)), show(max(values)), changes

    f.by_seed = table(
        ("value", "smallest of ten", "largest of ten", "with the seed it"),
        (
            row("packets dropped", off, "qdisc_drops", whole, "changes"),
            row("goodput", off, "goodput_bps", mbit, "changes"),
            row("ratio to the model, offloads off", off, "ratio", Number, "changes a little"),
            row(
                "ratio to the model, offloads on",
                on,
                "ratio",
                Number,
                "changes; far from the other in each",
            ),
            row("MSS that `ss` prints", off, "mss_bytes", _size, "never"),
            row("smallest RTT", off, "rtt_min_ms", ms, "hardly"),
        ),
    )
    ratios, mss = (column(off, name) for name in ("ratio", "mss_bytes"))
    f.are_far_apart = min(column(on, "ratio")) > 2 * max(ratios)
    f.mss_never_changes = len(set(mss)) == 1
    rtts = column(off, "rtt_min_ms")
    f.rtt_hardly_changes = max(rtts) < 1.01 * min(rtts)
    f.drops_change = len(set(column(off, "qdisc_drops"))) > len(off) / 2
    ranges = sets.lab.varied(sets.lab.pitfall("mtu"))
    f.longest_rtt, f.least_p = Number(ranges["rtt_ms"][1]), Number(ranges["loss_ratio"][0])
