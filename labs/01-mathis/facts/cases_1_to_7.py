"""The lab's first seven cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    RecordedSets,
    cell,
    column,
    excerpt,
    factor,
    mbit,
    mean,
    measured,
    ms,
    param,
    per,
    percent,
    runs_as_rows,
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
    ETHERNET_BYTES,
    FEWEST_LOSSES,
    FIRST_TRY,
    GOODPUT,
    HEADER_BYTES,
    LASTS,
    LONG,
    MOST_LOSSES,
    PUBLISHED_DIFFERENCE,
    QDISC,
    RATE_STEP,
    RATIO,
    SHARE_RESENT,
    TIMEOUTS,
    TIMESTAMPS_STEP,
    USUAL,
    WORKED,
    at_largest_window,
    chance_of,
    expected_losses,
    mathis_bps,
    model_bps,
    netem_excerpt,
    ratio_range,
    set_both,
    set_case,
    set_measured,
)


def set_cases_1_to_7(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    _loss_percent(f.case("loss-percent"), sets)
    _duration(f.case("duration"), sets)
    _queueing(f.case("queueing"), sets)
    _timestamps(f.case("timestamps"), sets)
    _mtu(f.case("mtu"), sets)
    _offload(f.case("offload"), sets)
    _rtt_doubling(f.case("rtt-doubling"), sets)


def _loss_percent(f: Facts, sets: RecordedSets) -> None:
    name = "loss-percent"
    quoted = (
        "trial mss rtt p p_percent lasts model goodput goodput_fixed ratio_fixed "
        "packets_fixed times factor goodput_fell iperf3 ping ss tc"
    )
    both = broken, fixed = set_case(
        f, sets, name, quoted, [("share of packets dropped", cell("loss_ratio", percent))]
    )
    p, set_ratio = param(broken, "loss_ratio"), param(broken, "loss_percent") / 100
    set_both(f, both, percent, dropped="loss_ratio")
    f.p_set, f.resent = Number(set_ratio, digits=4), percent(per(broken, *SHARE_RESENT))
    f.a_hundred_times_too_small = round(p / set_ratio) == 100
    pings = param(broken, "ping_count")
    all_back = (1 - p) ** pings
    f.pings, f.all_back, f.all_back_about = whole(pings), percent(all_back), percent(all_back, 2)
    f.all_back_as_set = percent((1 - set_ratio) ** pings)
    as_set_bps = model_bps(broken, loss_ratio=set_ratio)
    over = measured(broken, "goodput_bps") / as_set_bps
    f.model_as_set, f.over_model_as_set = mbit(as_set_bps), Number(over)
    f.usual_for_what_was_set = 1.1 <= over <= 1.4
    f.ping_fixed = excerpt(f"{name}-fixed", "romeo/ping.txt", last=3)
    f.tc_counts = netem_excerpt(f"{name}-broken", "packets", "drops")
    f.tc_fixed = netem_excerpt(f"{name}-fixed", "options", "packets", "drops")
    f.loss_is_right_now = abs(measured(fixed, "loss_ratio") / p - 1) < 0.05
    pings_lost = round(measured(fixed, "ping_loss_ratio") * pings)
    f.pings_lost, f.several_pings_were_lost = whole(pings_lost), pings_lost > 1
    f.pings_lost_expected = Number(p * pings, digits=2)
    f.model_factor = Number(math.sqrt(p / set_ratio))
    f.factor_times = Number(f.factor.value, "times")
    f.far_below_the_model = measured(fixed, "ratio") < 0.7
    f.window_fixed = Number(measured(fixed, "cwnd_mean_segments"))
    f.timeouts_fixed = TIMEOUTS(fixed)
    f.goodput_with_all_mistakes = GOODPUT(sets.run(FIRST_TRY, trial=MOST_LOSSES))


def _duration(f: Facts, sets: RecordedSets) -> None:
    name = "duration"
    quoted = (
        "trial mss rtt p lasts model goodput goodput_fixed ratio_fixed drops packets "
        "drops_fixed times iperf3 ping ss tc"
    )
    broken, fixed = set_case(
        f, sets, name, quoted, [("losses", DROPS), ("length", LASTS)], p_digits=3
    )
    p, rtt_ms = param(broken, "loss_ratio"), param(broken, "rtt_ms")
    drops, peak = measured(broken, "qdisc_drops"), measured(broken, "cwnd_max_segments")
    short_s, long_s, usual_s = (
        *(param(run, "duration_s") for run in (broken, fixed)),
        sets.trial(broken.trial)["duration_s"],
    )

    def expected(time_s: float) -> float:
        return model.mathis_expected_losses(rtt_ms, p, time_s)

    f.p_in_a_million = Number(1e6 * p)
    f.loss, f.loss_fixed = loss, _ = _loss_interval(broken), _loss_interval(fixed)
    f.loss_ends_apart = Number(loss.high_value / loss.low_value, digits=2)
    f.p_is_inside = 1e6 * p in loss
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
    f.ratio_without_start = Number(later_bps / model_bps(fixed))
    usual, longest = (sets.run(step, trial=FEWEST_LOSSES) for step in (USUAL, LONG))
    f.by_duration = runs_as_rows(
        (broken, usual, fixed, longest),
        {"duration": LASTS, "losses": DROPS, "goodput over model": RATIO},
    )
    f.losses_expected_usual = Number(expected(usual_s), digits=2)
    f.losses_usual, f.goodput_usual = DROPS(usual), GOODPUT(usual)


def _queueing(f: Facts, sets: RecordedSets) -> None:
    name = "queueing"
    quoted = (
        "trial mss rtt p p_percent lasts model goodput goodput_fixed ratio ratio_fixed "
        "drops_fixed factor loss_is_right iperf3 ping ss tc"
    )

    def over_least(run: Result) -> Number:
        return Number(per(run, "rtt_mean_ms", "rtt_min_ms"))

    both = broken, fixed = set_case(
        f, sets, name, quoted, [("mean RTT over smallest", over_least)], p_digits=3
    )
    rtt_ms, frame_bytes = param(broken, "rtt_ms"), param(broken, "mtu_bytes") + ETHERNET_BYTES
    bdp, bdp_fixed = (
        model.bdp_bytes(param(run, "rate_mbit"), rtt_ms) / frame_bytes for run in both
    )
    rtt_mean_ms = measured(broken, "rtt_mean_ms")
    f.ss_at_largest = at_largest_window(broken, name, last=1)
    f.loss = percent(measured(broken, "loss_ratio"))
    f.agrees_by_accident = 0.85 < measured(broken, "ratio") < 1.15
    set_measured(f, broken, ms, ping_min="ping_rtt_min_ms", rtt_min="rtt_min_ms")
    set_both(f, both, lambda value: ms(value, 3), rtt_mean="rtt_mean_ms")
    f.waits = rtt_mean_ms > 1.1 * rtt_ms
    f.rate_mbit, f.rtt_s = whole(param(broken, "rate_mbit")), str(rtt_ms / 1000)
    f.rate, f.frame_bytes = mbit(1e6 * param(broken, "rate_mbit")), whole(frame_bytes)
    f.bdp, f.bdp_fixed = whole(bdp), whole(bdp_fixed)
    f.window_exceeds_bdp = measured(broken, "cwnd_mean_segments") > bdp
    set_measured(f, broken, whole, window="cwnd_mean_segments")
    set_measured(f, fixed, whole, peak_fixed="cwnd_max_segments")
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    off, off_fixed = (abs(measured(run, "ratio") - 1) for run in both)
    f.farther_from_one, f.chance = off_fixed > off, chance_of(fixed, 2)
    one_on, one_off = (sets.run(f"queue-1-gbit-offloads-{state}") for state in ("on", "off"))
    three_on = sets.run("queue-3-gbit-offloads-on")
    three_off = sets.run(USUAL, trial=11)
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
    f.each_lasts = LASTS(one_on)
    f.no_queue_without_the_other = measured(one_off, "rtt_mean_ms") < 1.05 * rtt_ms
    f.by_mean_rtt = Number(measured(broken, "ratio") * rtt_mean_ms / rtt_ms)
    f.model_trial_8 = mbit(mathis_bps(sets, WORKED))


def _timestamps(f: Facts, sets: RecordedSets) -> None:
    name = "timestamps"
    quoted = (
        "trial mss rtt p lasts model goodput goodput_fixed ratio drops packets "
        "drops_fixed loss_is_right iperf3 ping ss tc"
    )
    broken, fixed = set_case(
        f, sets, name, quoted, [("MSS that ss prints", cell("mss_bytes", size))]
    )
    asked, got = param(broken, "mss_bytes"), measured(broken, "mss_bytes")
    smaller_by = 1 - got / asked
    f.tcpdump = excerpt(f"{name}-broken", "router/tcpdump.txt", last=3)
    f.path_mtu = size(param(broken, "mtu_bytes"))
    set_measured(f, broken, size, mss_got="mss_bytes", largest="largest_packet_bytes")
    f.missing, f.smaller_by = whole(asked - got), percent(smaller_by, 2)
    f.chance, f.chance_about = chance_of(broken, 2), chance_of(broken, 1)
    f.needed = whole(intervals.losses_needed(smaller_by))
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", grep="^ESTAB", last=1)
    f.grew_by = Number(factor(fixed, broken, "goodput_bps"), digits=4)
    f.mss_factor = Number(asked / got, digits=4)
    f.chance_two = chance_of(fixed, 2, of=2)
    theirs = expected_losses(fixed)
    chance = intervals.relative_error_of_ratio(theirs)
    chance_of_two = math.sqrt(2) * chance
    f.their_losses = whole(theirs)
    f.their_chance, f.their_chance_two = percent(chance, 2), percent(chance_of_two, 2)
    f.their_difference = Number(PUBLISHED_DIFFERENCE / chance_of_two, digits=2)
    f.their_difference_is_chance = 2 * chance_of_two > PUBLISHED_DIFFERENCE
    f.before, f.after = (GOODPUT(sets.run(step, trial=17)) for step in (RATE_STEP, TIMESTAMPS_STEP))


def _mtu(f: Facts, sets: RecordedSets) -> None:
    name = "mtu"
    quoted = (
        "trial mss rtt p lasts model goodput goodput_fixed drops packets drops_fixed "
        "factor loss_is_right iperf3 ping ss tc"
    )
    broken, fixed = set_case(f, sets, name, quoted, [
        ("MSS that ss prints", cell("mss_bytes", size)),
        ("largest packet", cell("largest_packet_bytes", size)),
    ])  # fmt: skip
    asked, got = param(broken, "mss_bytes"), measured(broken, "mss_bytes")
    f.iperf3_mss = excerpt(f"{name}-broken", "romeo/iperf3.json", grep='"tcp_mss"')
    f.ss_lines = excerpt(f"{name}-broken", "romeo/ss-last.txt", last=3)
    f.tcpdump = excerpt(f"{name}-broken", "router/tcpdump.txt", last=4)
    set_measured(f, broken, size, mss_got="mss_bytes", largest="largest_packet_bytes")
    f.pmtu, f.path_mtu = (size(param(run, "mtu_bytes")) for run in (broken, fixed))
    f.ss_fixed = excerpt(f"{name}-fixed", "romeo/ss-last.txt", last=1)
    f.segments_grew = asked > got
    faster = factor(fixed, broken, "goodput_bps")
    f.grew_by, f.mss_factor = Number(faster, digits=4), Number(asked / got, digits=4)
    f.mss_ratio = Number(asked / got)
    f.factors_agree = abs(faster / (asked / got) - 1) < 0.05
    f.drops_agree = abs(factor(fixed, broken, "qdisc_drops") - 1) < 0.05
    f.by_true_mss = Number(measured(broken, "ratio") * asked / got)


def _offload(f: Facts, sets: RecordedSets) -> None:
    name = "offload"
    quoted = (
        "trial mss rtt p p_percent lasts model goodput goodput_fixed ratio_fixed drops "
        "drops_fixed times factor goodput_fell iperf3 ss tc"
    )

    def resent_for_each(run: Result) -> Number:
        return Number(per(run, "retransmits", "qdisc_drops"))

    differences = [
        ("largest packet", cell("largest_packet_bytes", size)),
        ("segments retransmitted for each drop", resent_for_each),
    ]
    both = broken, fixed = set_case(f, sets, name, quoted, differences)
    f.on_and_off = table(
        ("value", "first try", "offloads off"),
        (
            (what, *map(show, both))
            for what, show in (*differences, ("goodput over the formula's", RATIO))
        ),
    )
    p, bundle = param(broken, "loss_ratio"), resent_for_each(broken).value
    f.path_mtu = size(param(broken, "mtu_bytes"))
    set_measured(f, broken, size, mss_got="mss_bytes", largest="largest_packet_bytes")
    set_measured(f, broken, ms, rtt_got="rtt_min_ms")
    f.tcpdump = excerpt(f"{name}-broken", "router/tcpdump.txt", last=4)
    f.packets_seen = excerpt(f"{name}-broken", "router/tcpdump.txt", last=3)
    f.resent_share = percent(per(broken, *SHARE_RESENT))
    f.loss_seems_right = 0.5 < per(broken, *SHARE_RESENT) / p < 2
    f.dropped = percent(measured(broken, "loss_ratio"))
    f.packet = whole(param(broken, "mss_bytes") + HEADER_BYTES)
    set_both(f, both, whole, resent="retrans_total")
    f.drops_expected = whole(p * measured(broken, "qdisc_offered_packets"))
    f.bundle, f.bundle_about = Number(bundle), Number(bundle, digits=2)
    f.bundle_root = Number(math.sqrt(bundle), digits=2)
    f.tcpdump_fixed = excerpt(f"{name}-fixed", "router/tcpdump.txt", last=2)
    f.tc_fixed = netem_excerpt(f"{name}-fixed", "packets", "drops")
    still = per(fixed, "retrans_total", "qdisc_drops")
    f.resent_as_dropped = abs(still - 1) < 0.03
    on, off = sets.runs("offloads-on"), sets.runs("offloads-off")
    f.ten_runs = table(
        (
            f"ten runs each, {on[0].params['duration_s']} s", "goodput over model, mean",
            "smallest to largest", "standard deviation", "drops per run",
        ),
        ((
            title, Number(mean(runs, "ratio")), ratio_range(runs),
            percent(_relative_deviation(column(runs, "ratio")), 2), whole(mean(runs, "qdisc_drops")),
        ) for title, runs in (("with offloads", on), ("without", off))),
    )  # fmt: skip
    f.kinds_are_apart = min(column(on, "ratio")) > max(column(off, "ratio"))


def _rtt_doubling(f: Facts, sets: RecordedSets) -> None:
    name = "rtt-doubling"
    quoted = (
        "trial mss rtt p lasts model goodput goodput_fixed ratio ratio_fixed drops "
        "packets drops_fixed loss_is_right iperf3 ping ss tc"
    )
    both = broken, fixed = set_case(
        f, sets, name, quoted, [("smallest RTT", cell("rtt_min_ms", ms))]
    )
    rtt_ms, rtt_fixed_ms = (measured(run, "rtt_min_ms") for run in both)
    set_measured(f, broken, ms, ping_min="ping_rtt_min_ms", rtt_min="rtt_min_ms")
    f.to_juliet = netem_excerpt(f"{name}-broken", "dev", "options")
    f.to_romeo = excerpt(
        f"{name}-broken", QDISC, where={"kind": "netem", "dev": "eth0"}, keys=["dev", "options"]
    )
    f.delay, f.delay_twice = ms(param(broken, "delay_ms")), ms(2 * param(broken, "delay_ms"))
    of_path_bps = model_bps(broken, rtt_ms=rtt_ms)
    f.model_of_path = mbit(of_path_bps)
    f.over_model = Number(measured(broken, "goodput_bps") / of_path_bps)
    f.twice_as_long = 1.9 < rtt_ms / param(broken, "rtt_ms") < 2.1
    f.ping_fixed = excerpt(f"{name}-fixed", "romeo/ping.txt", last=2)
    f.grew_by = Number(factor(fixed, broken, "goodput_bps"), digits=4)
    f.rtt_was, f.rtt_is, f.rtt_factor = map(Number, (rtt_ms, rtt_fixed_ms, rtt_ms / rtt_fixed_ms))
    f.rtt_fell = rtt_fixed_ms < rtt_ms
    f.drops_grew = factor(fixed, broken, "qdisc_drops") > 1
    f.twice_as_many = 1.7 < factor(fixed, broken, "qdisc_offered_packets") < 2.3
    set_both(f, both, Number, window="cwnd_mean_segments")
    f.window_stayed = abs(factor(fixed, broken, "cwnd_mean_segments") - 1) < 0.1


def _relative_deviation(values: Sequence[float]) -> float:
    average, deviation = intervals.mean_and_deviation(values)
    return deviation / average


def _loss_interval(run: Result) -> Interval:
    """The loss ratio behind the drops that were counted, in a million."""
    drops, packets = measured(run, "qdisc_drops"), measured(run, "qdisc_offered_packets")
    low, high = intervals.loss_interval(int(drops), int(packets))
    return Interval(1e6 * measured(run, "loss_ratio"), 1e6 * low, 1e6 * high)
