"""What the recorded runs of this lab say, by name, for its pages (measuretwice.facts)."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from measuretwice.facts import (
    Facts,
    Interval,
    Judgement,
    Number,
    Numbers,
    RecordedSets,
    cell,
    column,
    excerpt,
    judge,
    mbit,
    measured,
    ms,
    param,
    percent,
    runs_as_columns,
    runs_as_rows,
    seconds,
    table,
    whole,
)
from measuretwice.measure.queue import Queue
from measuretwice.runs.result import Result
from measuretwice.stats import two_samples
from measuretwice.stats.intervals import mean_interval
from measuretwice.tcp.model import CUBIC_KEPT_RATIO, bdp_bytes, payload_limit

NAMES = {"reno": "Reno", "cubic": "CUBIC", "vegas": "Vegas", "bbr": "BBR"}
# Trials 1 to 4 are the four by cable, 5 to 8 over radio, 9 to 12 behind a gateway that ends TCP.
CABLE, RADIO, RELAYED = range(1, 5), range(5, 9), range(9, 13)
GOODPUT, RTT = "steady_goodput_bps", "steady_rtt_ms"
# As the source printed them, in Mbit/s: by cable, and behind the NAT.
PUBLISHED = {13: (238.0, 114.0), 14: (217.0, 141.0), 15: (18.3, 182.0), 16: (273.0, 155.0)}
PUBLISHED_CUBIC_KEPT = 0.8
FRAME_BYTES = 1514
# RFC 9438: C, what CUBIC gives up of its window, and how much of a segment its Reno-friendly window grows a round trip.
CUBIC_C, CUBIC_CUT, CUBIC_RENO_STEP = 0.4, 0.3, 0.9 / 1.7
TABLE, SS, LINK = "client/table.txt", "client/ss.txt", "gateway/qdisc.after.json"
LAST_LINE = {"grep": "ESTAB.*bytes_sent:[0-9]{7}", "last": 1}
SECONDS_END = "^[0-9]+[.]9"


def facts(sets: RecordedSets) -> Facts:
    """Return the facts of the pages in docs/modules/04-variants/."""
    f = Facts()
    _settings(f, sets)
    _first_try(f, sets)
    _config_comment(f.case("config-comment"), sets)
    _terminated_tcp(f.case("terminated-tcp"), sets)
    _ten_seconds(f.case("ten-seconds"), sets)
    _averages_hide(f.case("averages-hide"), sets)
    _mixed_runs(f.case("mixed-runs"), sets)
    _one_server(f.case("one-server"), sets)
    _paths(f, sets)
    _as_the_source_had_it(f, sets)
    _buffers(f, sets)
    _rivals(f, sets)
    _traces(f, sets)
    _reno_and_cubic(f, sets)
    _cubic_elsewhere(f, sets)
    _vegas(f, sets)
    _bbr(f, sets)
    return f


def _settings(f: Facts, sets: RecordedSets) -> None:
    """What trials 1 (cable) and 5 (radio) are set to, and all trials by fours."""
    one, radio = sets.trial(1), sets.trial(5)
    f.rate = whole(one["rate_mbit"], "Mbit/s")
    f.wire_rtt = ms(one["wire_rtt_ms"])
    f.one_way = ms(one["wire_rtt_ms"] / 2)
    f.buffer = whole(one["buffer_bytes"], "B")
    f.buffer_takes = ms(8e3 * one["buffer_bytes"] / (one["rate_mbit"] * 1e6))
    f.bdp = Number(_bdp_bytes(one) / 1e3, "kB")
    f.path_holds = whole(_bdp_bytes(one) / FRAME_BYTES, "segments")
    f.buffer_holds = whole(one["buffer_bytes"] / FRAME_BYTES, "segments")
    f.start_spread = ms(one["start_spread_ms"])
    f.duration = seconds(one["duration_s"])
    f.average_from = whole(one["average_from_s"])
    f.air_low, f.air_high = ms(radio["air_low_ms"]), ms(radio["air_high_ms"])
    f.air_fewest, f.air_most = whole(radio["air_low_packets"]), whole(radio["air_high_packets"])
    f.air_change = seconds(radio["air_change_s"])
    f.air_loss = percent(radio["air_loss_ratio"])
    f.air_room = whole(radio["air_limit_packets"])
    relay = next(
        n for n, each in enumerate(sets.lab.file.pitfalls, 1) if each.id == "terminated-tcp"
    )
    f.trials = table(
        ("trials", "path", "rate", "RTT of the wire", "buffer", "of the BDP", "rival"),
        ((
                f"{number} to {number + 3}",
                _path(trial, f"see case {relay}"),
                whole(trial["rate_mbit"], "Mbit/s"),
                ms(trial["wire_rtt_ms"]),
                whole(trial["buffer_bytes"], "B"),
                percent(trial["buffer_bytes"] / _bdp_bytes(trial)),
                str(trial["rival"]),
            )
            for number, trial in ((n, sets.trial(n)) for n in sorted(sets.lab.trials)[::4])),
    )  # fmt: skip


def _first_try(f: Facts, sets: RecordedSets) -> None:
    f.first_try = runs_as_rows(
        sets.runs("first-try"), {"algorithm": _name, "goodput over the radio": _goodput}
    )


def _of_first_try(f: Facts, run: Result) -> None:
    """What most cases' pages say of their first stage: how long it lasts, and what was measured from when on."""
    f.lasts, f.average_from = _duration(run), whole(param(run, "average_from_s"))
    f.goodput, f.rtt = _goodput(run), _rtt(run)
    f.resent = whole(measured(run, "steady_retransmits"))


def _config_comment(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("config-comment-broken"), sets.run("config-comment-fixed")
    runs = (broken, fixed)
    _of_first_try(f, broken)
    f.file = excerpt("config-comment-broken", "client/sysctl.conf")
    f.sysctl_says = excerpt("config-comment-broken", "client/sysctl-p.txt")
    f.card = excerpt("config-comment-broken", "client/tc.txt")
    f.ss = excerpt("config-comment-broken", SS, **LAST_LINE)
    f.ss_fixed = excerpt("config-comment-fixed", SS, grep="ESTAB.*bbr.*bytes_sent:[0-9]{7}", last=1)
    f.stages = runs_as_rows(
        runs,
        {
            "stage": _stage,
            "algorithm by ss": lambda run: str(run.flows[0].congestion_control),
            "goodput": _goodput,
            "mean round-trip time": _rtt,
        },
    )
    f.mended = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {"goodput": _goodput, "round-trip time": _rtt},
    )
    in_short = {"first try": broken, "BBR": fixed}
    f.in_short = runs_as_columns("value", in_short, {"mean round trip": _rtt, "goodput": _goodput})
    ratio = measured(fixed, GOODPUT) / measured(broken, GOODPUT)
    f.goodput_hardly_differs = abs(ratio - 1) < 0.05
    f.delay_tells = measured(broken, RTT) > 1.2 * measured(fixed, RTT)


def _terminated_tcp(f: Facts, sets: RecordedSets) -> None:
    name = "terminated-tcp-broken"
    broken, fixed = sets.run(name), sets.run("terminated-tcp-fixed")
    runs = (broken, fixed)
    _of_first_try(f, broken)
    f.window = whole(measured(broken, "steady_cwnd_segments"))
    path_rtt_ms = measured(broken, "sender_path_rtt_ms")
    f.path_rtt = ms(path_rtt_ms)
    f.window_needed = whole(
        measured(broken, GOODPUT) * path_rtt_ms / 8e3 / measured(broken, "mss_bytes")
    )
    f.cwnd_over_rate = ms(measured(broken, "cwnd_over_rate_ms"))
    f.tcp_min_rtt = ms(measured(broken, "tcp_min_rtt_ms"))
    f.answers_come_too_soon = measured(broken, "tcp_min_rtt_ms") < 0.5 * path_rtt_ms
    listed = sets.raw_text(broken, "gateway/ss-gateway.txt")
    f.gateways_algorithm = re.findall(r"(cubic|reno|bbr|vegas) wscale", listed)[0]
    f.ping = excerpt(name, "client/ping.txt", last=1)
    f.ss = excerpt(name, SS, grep="ESTAB.*vegas.*bytes_sent:[0-9]{7}", last=1)
    f.connections = excerpt(name, "gateway/ss-gateway.txt", first=4)
    division, least = cell("cwnd_over_rate_ms", ms), cell("tcp_min_rtt_ms", ms)
    f.stages = runs_as_rows(
        runs,
        {
            "stage": _stage,
            "goodput": _goodput,
            "window": cell("steady_cwnd_segments", whole),
            "cwnd over rate": division,
            "smallest RTT, TCP": least,
            "smallest RTT, ping": cell("sender_path_rtt_ms", ms),
        },
    )
    f.mended = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {"goodput": _goodput, "cwnd over rate": division, "smallest RTT by TCP": least},
    )
    f.in_short = runs_as_columns(
        "value",
        {"first try": broken, "to the server": fixed},
        {"cwnd over rate": division, "smallest round trip, by TCP": least, "goodput": _goodput},
    )
    f.smaller_by = Number(measured(broken, GOODPUT) / measured(fixed, GOODPUT))
    f.far_smaller = measured(fixed, GOODPUT) < 0.5 * measured(broken, GOODPUT)


def _ten_seconds(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("ten-seconds-broken"), sets.run("ten-seconds-fixed")
    runs = (broken, fixed)
    _of_first_try(f, broken)
    f.rows = excerpt("ten-seconds-broken", TABLE, grep=SECONDS_END)
    printed = [line.split() for line in sets.raw_text(broken, TABLE).splitlines()]
    windows = [int(row[3]) for row in printed if re.match(SECONDS_END, " ".join(row))]
    # In the first two seconds somebody else sends, too.
    growth = [after - before for before, after in pairwise(windows[2:])]
    f.window_grows_evenly = max(growth) < 1.15 * min(growth)
    f.still_rising = measured(broken, "rising_ratio") > 1.2
    f.has_settled_when_fixed = abs(measured(fixed, "rising_ratio") - 1) < 0.02
    rounds_a_second = 1e3 / param(broken, "wire_rtt_ms")
    pipe = _bdp_bytes(broken.params) / FRAME_BYTES
    f.rounds_a_second, f.path_holds = whole(rounds_a_second), whole(pipe)
    f.fill_takes = seconds(pipe / rounds_a_second, 2)
    rising = cell("rising_ratio", Number)
    f.stages = runs_as_rows(
        runs,
        {
            "run": _stage,
            "averaged from": lambda run: seconds(param(run, "average_from_s")),
            "to": _duration,
            "mean": _goodput,
            "last fifth over the first": rising,
            "mean round-trip time": _rtt,
        },
    )
    f.mended = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {"goodput, averaged": _goodput, "last fifth over the first": rising},
    )
    f.in_short = runs_as_rows(
        runs,
        {
            "averaged": lambda run: "second {average_from_s} to {duration_s}".format(**run.params),
            "goodput": _goodput,
            "last fifth over the first": rising,
        },
    )
    f.link_used = percent(measured(fixed, GOODPUT) / _most_bps(fixed.params))
    f.link_is_full = measured(fixed, GOODPUT) > 0.98 * _most_bps(fixed.params)
    f.queue_adds = ms(measured(fixed, RTT) - param(fixed, "wire_rtt_ms"), 2)
    theirs = sets.run("as-the-source-disturbed", trial=15)
    f.their_rate = whole(param(theirs, "rate_mbit"), "Mbit/s")
    f.their_rtt = ms(param(theirs, "wire_rtt_ms"))
    f.their_goodput = mbit(measured(theirs, "goodput_bps"))
    their_pipe = _bdp_bytes(theirs.params) / FRAME_BYTES
    f.their_fill_takes = seconds(their_pipe * param(theirs, "wire_rtt_ms") / 1e3)


def _averages_hide(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.run("averages-hide-broken"), sets.run("averages-hide-fixed")
    f.path_rtt = ms(param(broken, "wire_rtt_ms"))
    f.small_buffer = whole(param(broken, "buffer_bytes"), "B")
    _of_first_try(f, broken)
    half_pipe = _bdp_bytes(broken.params) / FRAME_BYTES / 2
    f.rounds_back = whole(half_pipe)
    f.grows_back_within_half_a_second = half_pipe * param(broken, "wire_rtt_ms") < 500
    f.rows = excerpt("averages-hide-broken", TABLE, first=16)
    f.rows_fixed = excerpt("averages-hide-fixed", TABLE, between=["5.000", "7.000"])
    teeth = measured(fixed, "client_decreases") / measured(fixed, "duration_s")
    f.two_or_three_teeth = 1.7 < teeth < 3.5
    shown = [line.split() for line in sets.raw_text(fixed, TABLE).splitlines()]
    windows = [float(row[3]) for row in shown if 5 <= float(row[0]) < 7]
    f.the_saw_is_seen = min(after / before for before, after in pairwise(windows)) < 0.65
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "rows of": cell("table_interval_s", seconds),
            "lowest row": cell("table_lowest_bps", mbit),
            "lowest tenth of a second by ss": cell("lowest_tenth_bps", mbit),
            "mean": _goodput,
        },
    )


def _mixed_runs(f: Facts, sets: RecordedSets) -> None:
    name = "mixed-runs-broken"
    broken, fixed = sets.run(name), sets.run("mixed-runs-fixed")
    runs = (broken, fixed)
    _of_first_try(f, broken)
    f.rows = excerpt(name, TABLE, first=20)
    f.last_row = excerpt(name, TABLE, last=1)
    f.ss = excerpt(name, SS, grep="ESTAB.*cubic.*bytes_sent:[0-9]{7}", last=1)
    foreign = cell("table_rows_foreign", whole)
    f.stages = runs_as_rows(
        runs,
        {
            "stage": _stage,
            "rows": cell("table_rows", whole),
            "with a window that this connection didn't have at that time": foreign,
        },
    )


def _one_server(f: Facts, sets: RecordedSets) -> None:
    name = "one-server-broken"
    first = sets.runs(name)
    f.lasts, f.average_from = _duration(first[0]), whole(param(first[0], "average_from_s"))
    f.pair = runs_as_rows(
        first,
        {
            "trial": lambda run: Number(run.trial),
            "algorithm": _algorithm,
            "goodput": _goodput,
            "mean round-trip time": _rtt,
        },
    )
    f.ss_cubic, f.ss_bbr = (excerpt(name, SS, trial=trial, **LAST_LINE) for trial in (2, 4))
    f.link_cubic, f.link_bbr = (
        excerpt(
            name, LINK, trial=trial, where={"kind": "tbf"},
            keys=["kind", "packets", "bytes", "drops"],
        )
        for trial in (2, 4)
    )  # fmt: skip
    bbr_run = sets.run(name, trial=4)
    passed = sets.raw_object(bbr_run, LINK, kind="tbf")["packets"]
    sent = re.findall(r"data_segs_out:(\d+)", sets.raw_text(bbr_run, SS))[-1]
    f.far_more_passed_than_bbr_sent = passed > 1.1 * int(sent)

    cubic, bbr = (
        {run.seed: measured(run, GOODPUT) for run in sets.runs("one-server-fixed") if run.trial == trial}
        for trial in (2, 4)
    )  # fmt: skip
    ahead = [seed for seed in cubic if cubic[seed] > bbr[seed]]
    f.repeat = whole(len(cubic))
    f.cubic_ahead = whole(len(ahead))
    f.pairs_contradict_each_other = 0 < len(ahead) < len(cubic)
    f.pairs = table(
        ("seed", "CUBIC", "BBR", "a person with this pair would say"),
        ((
                Number(seed),
                mbit(cubic[seed]),
                mbit(bbr[seed]),
                f"{'CUBIC' if seed in ahead else 'BBR'} is faster",
            )
            for seed in sorted(cubic)),
    )  # fmt: skip
    rates = (("CUBIC", list(cubic.values())), ("BBR", list(bbr.values())))
    f.many = table(
        ("algorithm", "runs", "mean, and its 95 % interval", "least", "most"),
        (
            (algorithm, whole(len(each)), _mbit_interval(each), mbit(min(each)), mbit(max(each)))
            for algorithm, each in rates
        ),
    )
    f.cubic_rates, f.bbr_rates = (Numbers.of([mbit(rate) for rate in each]) for _, each in rates)
    low, high = two_samples.difference_interval(list(bbr.values()), list(cubic.values()))
    f.difference = Interval((low + high) / 2e6, low / 1e6, high / 1e6, "Mbit/s")
    f.bbr_is_faster = low > 0
    f.bbr_does_not_share = min(bbr.values()) > 0.5e6 * param(first[0], "rate_mbit") and (
        max(cubic.values()) / min(cubic.values()) > 2 * max(bbr.values()) / min(bbr.values())
    )


def _paths(f: Facts, sets: RecordedSets) -> None:
    """The four by cable, over radio, and behind a gateway that ends TCP, by trial."""
    runs = sets.runs("paths")
    goodput, rtt = _by_trial(runs, GOODPUT), _by_trial(runs, RTT)
    f.paths_runs = whole(len(runs))
    f.paths = runs_as_rows(
        _one_of_each_trial(runs),
        {
            "path": lambda run: _path(run.params, "TCP ended"),
            "algorithm": _algorithm,
            "goodput": lambda run: _mbit_interval(goodput[run.trial]),
            "round-trip time": lambda run: Interval.of_mean(rtt[run.trial], "ms"),
        },
    )
    f.reno_cable = mbit(_mean(goodput[1]))
    f.vegas_cable, f.bbr_cable, f.bbr_radio = (
        _mbit_interval(goodput[trial]) for trial in (3, 4, 8)
    )
    f.next_radio = mbit(max(_mean(goodput[trial]) for trial in (5, 6)))
    f.reno_radio_rtt = ms(_mean(rtt[5]), 3)
    f.vegas_cable_rtt, f.bbr_cable_rtt, f.vegas_radio_rtt, f.bbr_radio_rtt = (
        Interval.of_mean(rtt[trial], "ms") for trial in (3, 4, 7, 8)
    )

    f.bbr_is_fastest_over_radio = _has_so_many_above(goodput, RADIO, 8, 0)
    f.bbr_is_fastest_by_cable = _has_so_many_above(goodput, CABLE, 4, 0)
    f.vegas_is_slowest_by_cable = _has_so_many_above(goodput, CABLE, 3, 3)
    f.vegas_waits_least_by_cable = _has_so_many_above(rtt, CABLE, 3, 3)
    f.vegas_waits_least_over_radio = _has_so_many_above(rtt, RADIO, 7, 3)
    idle_ms = param(runs[0], "wire_rtt_ms")
    f.bbr_keeps_the_buffer_empty_by_cable, f.bbr_keeps_the_buffer_empty_over_radio = (
        judge(mean_interval(rtt[trial])[1:], most=1.25 * idle_ms) for trial in (4, 8)
    )

    f.cable_apart = percent(_most_over_least(goodput, CABLE) - 1, 2)
    f.cable_goodput_tells_little = _most_over_least(goodput, CABLE) < 1.05
    f.radio_apart = Number(_most_over_least(goodput, RADIO), "times", 2)
    f.relayed_apart = Number(_most_over_least(goodput, RELAYED), "times", 2)
    f.cable_by_goodput, f.radio_by_goodput = (_order(goodput, path) for path in (CABLE, RADIO))
    f.cable_by_rtt, f.radio_by_rtt = (_order(rtt, path) for path in (CABLE, RADIO))
    f.bbr_has_least_by_cable = _order(goodput, CABLE).startswith("BBR")
    f.bbr_waits_longest_over_radio = _order(rtt, RADIO).endswith("BBR")


def _as_the_source_had_it(f: Facts, sets: RecordedSets) -> None:
    """Ten seconds on a path with the source's three numbers, undisturbed and disturbed, a run of each."""
    calm, disturbed = (
        {run.trial: run for run in sets.runs(name)}
        for name in ("as-the-source", "as-the-source-disturbed")
    )
    f.as_the_source = table(
        (
            "algorithm", "published, cable (Mbit/s)", "published, behind the NAT",
            "ours over all ten seconds, undisturbed", "the same, disturbed",
            "our mean RTT, undisturbed",
        ),
        ((
                _name(calm[trial]),
                Number(wired),
                Number(nat),
                mbit(measured(calm[trial], "goodput_bps")),
                mbit(measured(disturbed[trial], "goodput_bps")),
                ms(measured(calm[trial], RTT)),
            )
            for trial, (wired, nat) in PUBLISHED.items()),
    )  # fmt: skip
    rates = column(list(calm.values()), "goodput_bps")
    f.calm_apart = percent(max(rates) / min(rates) - 1, 2)
    f.calm_rtts = Numbers.of([ms(measured(run, RTT)) for run in calm.values()])
    f.vegas_is_last_where_disturbed = measured(disturbed[15], "goodput_bps") == min(
        column(list(disturbed.values()), "goodput_bps")
    )
    vegas, bbr = calm[15], calm[16]
    f.vegas_waits_long_undisturbed = measured(vegas, RTT) > 1.5 * param(vegas, "wire_rtt_ms")
    f.calm_bbr_cwnd_over_rate = ms(measured(bbr, "cwnd_over_rate_ms"))
    f.calm_bbr_rtt = ms(measured(bbr, RTT))


def _buffers(f: Facts, sets: RecordedSets) -> None:
    """Each of the four by cable, with seven buffers."""
    runs = sets.runs("buffers")
    goodput, rtt, resent = (_by_trial(runs, name) for name in (GOODPUT, RTT, "retransmits"))
    f.buffers_runs = whole(len(runs))
    filling: dict[str, list[float]] = {name: [] for name in NAMES}
    for run in _one_of_each_trial(runs):
        if _mean(goodput[run.trial]) >= 0.99 * _most_bps(run.params):
            share = param(run, "buffer_bytes") / _bdp_bytes(run.params)
            filling[_algorithm(run)].append(share)
    f.reno_fills, f.cubic_fills, f.vegas_fills = (
        percent(min(filling[name])) for name in ("reno", "cubic", "vegas")
    )
    f.bbr_never_fills = not filling["bbr"]
    f.reno_smallest_resent, f.bbr_smallest_resent = (whole(_mean(resent[n])) for n in (17, 20))
    f.bbr_loses_far_more = _mean(resent[20]) > 10 * _mean(resent[17])
    f.reno_tenth = mbit(_mean(goodput[21]))
    tenth, deep = sets.trial(21), sets.trial(37)
    f.tenth_of_bdp = percent(tenth["buffer_bytes"] / _bdp_bytes(tenth))
    f.deepest_bdp = Number(deep["buffer_bytes"] / _bdp_bytes(deep), digits=2)
    f.reno_deepest_rtt, f.cubic_deepest_rtt, f.vegas_deepest_rtt = (
        ms(_mean(rtt[trial])) for trial in (37, 38, 39)
    )


def _rivals(f: Facts, sets: RecordedSets) -> None:
    """Each of the four beside one flow of CUBIC."""
    runs = sets.runs("rivals")
    rtt = _by_trial(runs, RTT)
    share = {
        trial: [100 * each for each in shares]
        for trial, shares in _by_trial(runs, "client_share").items()
    }
    f.rivals = runs_as_rows(
        _one_of_each_trial(runs),
        {
            "the client's algorithm": _algorithm,
            "its share of the goodput": lambda run: Interval.of_mean(share[run.trial], "%"),
            "its round-trip time": lambda run: Interval.of_mean(rtt[run.trial], "ms"),
        },
    )
    f.vegas_gives_way = _mean(share[43]) < 40
    f.bbr_does_the_opposite = _mean(share[44]) > 60
    f.bbr_leaves = Number(100 - _mean(share[44]), "%")


def _traces(f: Facts, sets: RecordedSets) -> None:
    """The four, each alone on the cable, looked at many times a second: delay beside window."""
    runs = sets.runs("signatures")
    fast = sets.run("signature-of-highspeed")
    f.traces_last = seconds(param(runs[0], "duration_s"))
    f.samples_a_second = whole(1 / param(runs[0], "sample_interval_s"))
    f.highspeed_samples_a_second = whole(1 / param(fast, "sample_interval_s"))
    f.buffer_bdp = Number(param(runs[0], "buffer_bytes") / _bdp_bytes(runs[0].params), digits=2)
    rows, delays, windows = [], {}, {}
    for run in runs:
        spread = sets.signature(run).spread
        assert spread
        delays[_name(run)], windows[_name(run)] = spread.rtt_ms, spread.cwnd_segments
        rows.append(
            (
                _name(run),
                ms(measured(run, RTT)),
                ms(spread.rtt_ms, 2),
                whole(measured(run, "steady_cwnd_segments"), "segments"),
                Number(spread.cwnd_segments, digits=2),
            )
        )
    f.delay_and_window = table(
        (
            "algorithm", "mean round trip", "its standard deviation", "mean window",
            "its standard deviation",
        ),
        rows,
    )  # fmt: skip
    f.window_varies_most = max(windows, key=lambda name: windows[name])
    f.delay_varies_most = max(delays, key=lambda name: delays[name])
    f.bbrs_window_varies_most_and_its_delay_does_not = (
        f.window_varies_most == "BBR" != f.delay_varies_most
    )
    waiting = {_name(run): _settled_queue(sets.sender_files(run).queue) for run in runs}
    average = {name: statistics.fmean(packets) for name, packets in waiting.items()}
    f.queues_look_as_described = (
        average["Vegas"] < average["BBR"] < average["Reno"] < average["CUBIC"]
        and average["Vegas"] < 15
        and min(waiting["Reno"]) < 5
        and min(waiting["CUBIC"]) > 50
    )


def _settled_queue(samples: Queue | None) -> list[int]:
    """How many packets waited at each sample from second 20 to 38."""
    assert samples
    return [
        packets
        for when, packets in zip(samples.time_s, samples.backlog_packets, strict=True)
        if 20 < when - samples.time_s[0] < 38
    ]


def _reno_and_cubic(f: Facts, sets: RecordedSets) -> None:
    reno, cubic = sets.run("signatures", trial=1), sets.run("signatures", trial=2)
    f.reno_kept = Number(measured(reno, "client_kept_ratio"))
    f.reno_rtt, f.cubic_rtt = ms(measured(reno, RTT), 3), ms(measured(cubic, RTT), 3)
    f.cubic_waits_longer_than_reno = measured(cubic, RTT) > measured(reno, RTT)
    kept = measured(cubic, "client_kept_ratio")
    f.cubic_kept, f.cubic_kept_by_rfc = Number(kept), Number(CUBIC_KEPT_RATIO)
    f.cubic_keeps_as_published = abs(kept - PUBLISHED_CUBIC_KEPT) < abs(kept - CUBIC_KEPT_RATIO)

    epochs = sets.signature(cubic).epochs
    reno_like = [
        each.kept_ratio * each.window_segments
        + CUBIC_RENO_STEP * each.lasted_s / (measured(cubic, RTT) / 1e3)
        for each in epochs
    ]
    f.epochs = table(
        (
            "from", "window at the loss", "kept", "curve heads for", "K", "lasted",
            "came past K?", "$W_{TCP}$ at the end", "window at the end",
        ),
        ((
                seconds(each.start_s),
                whole(each.window_segments),
                Number(each.kept_ratio),
                whole(each.target_segments),
                seconds(each.k_s),
                seconds(each.lasted_s),
                "yes, convex" if each.convex else "no",
                whole(line),
                whole(each.end_segments),
            )
            for each, line in zip(epochs, reno_like, strict=True)),
    )  # fmt: skip
    f.some_end_before_k_and_some_after = {each.convex for each in epochs} == {True, False}
    f.never_reno_friendly = all(
        line < each.end_segments for each, line in zip(epochs, reno_like, strict=True)
    )
    # From 600 segments on, after a loss, by the formulas alone; Reno over 70 ms.
    f.cubic_back, f.cubic_doubles = seconds(_cubic_s(CUBIC_CUT * 600)), seconds(_cubic_s(600))
    f.reno_back, f.reno_doubles = seconds(300 * 0.07), seconds(600 * 0.07)


def _cubic_elsewhere(f: Facts, sets: RecordedSets) -> None:
    """CUBIC over a short path (lab queues), and two flows with unlike paths (lab buffers)."""
    near = sets.other("queues").run("two-arms-once", trial=21)
    window = measured(near, "host_1_decrease_window_segments")
    rtt_ms = measured(near, "host_1_rtt_mean_ms")
    between_s = param(near, "duration_s") / measured(near, "host_1_decreases")
    f.near_rtt, f.near_window = ms(rtt_ms), whole(window)
    f.near_curve = seconds(_cubic_s(CUBIC_CUT * window))
    f.near_line = seconds(CUBIC_CUT * window * rtt_ms / 1e3 / CUBIC_RENO_STEP)
    f.near_between = seconds(between_s)
    f.near_is_reno_friendly = between_s < _cubic_s(CUBIC_CUT * window) / 2

    sweep = sets.other("buffers").runs("buffer-sweep")
    shares = {
        (algorithm, size): _mean(column(list(those), "s1_share"))
        for (algorithm, size), those in groupby(sorted(sweep, key=_arm), _arm)
    }
    sizes = sorted({size for _, size in shares})
    nearer = [
        size for size in sizes if abs(shares["cubic", size] - 0.5) < abs(shares["reno", size] - 0.5)
    ]
    less = [size for size in sizes if shares["cubic", size] < 0.5]
    f.unlike_buffers = whole(len(sizes))
    f.unlike_runs = whole(sum(_algorithm(run) == "cubic" for run in sweep) / len(sizes))
    f.cubic_is_nearer, f.shorter_has_more = whole(len(nearer)), whole(len(less))
    f.cubic_is_fairer_and_not_fair = len(nearer) > 0.75 * len(sizes) and len(less) > len(sizes) / 2


def _arm(run: Result) -> tuple[str, float]:
    return _algorithm(run), param(run, "buffer_bytes")


def _vegas(f: Facts, sets: RecordedSets) -> None:
    vegas, rising = sets.run("signatures", trial=3), sets.run("ten-seconds-fixed")
    settled, risen = sets.signature(vegas).band, sets.signature(rising).band
    assert settled
    assert risen
    f.vegas_least, f.vegas_least_risen = whole(settled.least_packets), whole(risen.least_packets)
    f.both_keep_some_packets = min(settled.least_packets, risen.least_packets) > 0
    f.vegas_waiting = Number(settled.mean_packets)
    f.vegas_goodput = mbit(measured(vegas, GOODPUT))
    reno = sets.run("signatures", trial=1)
    f.vegas_fills_the_link = measured(vegas, GOODPUT) > 0.99 * measured(reno, GOODPUT)


def _bbr(f: Facts, sets: RecordedSets) -> None:
    bbr = sets.run("signatures", trial=4)
    cycle = sets.signature(bbr).cycle
    assert cycle
    assert cycle.cycle_s
    path_ms, up_ms, down_ms = param(bbr, "wire_rtt_ms"), cycle.phase_ms[1.25], cycle.phase_ms[0.75]
    f.gains = table(
        ("pacing gain", "share of the time"),
        ((Number(gain), percent(share)) for gain, share in cycle.gain_share.items()),
    )
    f.bbr_cycle, f.eight_rounds = seconds(cycle.cycle_s), ms(8 * path_ms)
    f.bbr_up, f.bbr_down = ms(up_ms, 3), ms(down_ms, 3)
    f.bbr_up_waits_for_its_bdp = up_ms > 1.1 * path_ms
    f.bbr_down_takes_a_round = 0.9 * path_ms <= down_ms <= 1.1 * path_ms
    first_s = cycle.probe_rtt_s[0]
    f.probe_rtt_at = ", ".join(str(seconds(when)) for when in cycle.probe_rtt_s)
    f.probe_rtt_takes = ", ".join(str(ms(lasted)) for lasted in cycle.probe_rtt_ms)
    f.first_probe_rtt = seconds(first_s)
    f.before_probe_rtt, f.after_probe_rtt = (Number(round(first_s + s, 1)) for s in (-3, 1))
    f.bbr_resent = whole(measured(bbr, "steady_retransmits"))
    f.bbr_reacts_to_loss = measured(bbr, "steady_retransmits") > 0
    f.bbr_cwnd_over_rate = ms(measured(bbr, "cwnd_over_rate_ms"))
    f.bbr_rtt = ms(measured(bbr, RTT))


def _name(run: Result) -> str:
    return NAMES[_algorithm(run)]


def _algorithm(run: Result) -> str:
    return str(run.params["congestion_control"])


def _stage(run: Result) -> str:
    # A case's first run doesn't say what it is.
    return str(run.stage or "broken")


def _duration(run: Result) -> Number:
    return seconds(param(run, "duration_s"))


def _path(params: Mapping[str, Any], relayed: str) -> str:
    return f"{params['hop']}, {relayed}" if params["relay"] == "on" else str(params["hop"])


def _goodput(run: Result) -> Number:
    return mbit(measured(run, GOODPUT))


def _rtt(run: Result) -> Number:
    return ms(measured(run, RTT))


def _one_of_each_trial(runs: Sequence[Result]) -> list[Result]:
    return list({run.trial: run for run in sorted(runs, key=lambda run: run.trial)}.values())


def _by_trial(runs: Sequence[Result], name: str) -> dict[int, list[float]]:
    """A measured value of each run, by trial."""
    return {
        one.trial: column([run for run in runs if run.trial == one.trial], name)
        for one in _one_of_each_trial(runs)
    }


def _mean(values: Sequence[float]) -> float:
    return mean_interval(list(values))[0]


def _mbit_interval(rates_bps: Sequence[float]) -> Interval:
    return Interval.of_mean([rate / 1e6 for rate in rates_bps], "Mbit/s")


def _has_so_many_above(
    values: Mapping[int, Sequence[float]], path: range, trial: int, wanted: int
) -> Judgement:
    """Whether exactly `wanted` of a path's other three surely have more than this trial, and all others less: their
    intervals don't touch. False once more are above it, or below it, than that; None where it can't be told."""
    ends = {each: mean_interval(list(values[each]))[1:] for each in path}
    above = sum(ends[each][0] > ends[trial][1] for each in path)
    below = sum(ends[each][1] < ends[trial][0] for each in path)
    if above > wanted or below > 3 - wanted:
        return False
    return True if above + below == 3 else None


def _most_over_least(values: Mapping[int, Sequence[float]], path: range) -> float:
    means = [_mean(values[trial]) for trial in path]
    return max(means) / min(means)


def _order(values: Mapping[int, Sequence[float]], path: range) -> str:
    """The four's names, from the least mean to the most."""
    ranked = sorted(zip(path, NAMES.values(), strict=True), key=lambda each: _mean(values[each[0]]))
    return ", ".join(name for _, name in ranked)


def _bdp_bytes(params: Mapping[str, Any]) -> float:
    return bdp_bytes(float(params["rate_mbit"]), float(params["wire_rtt_ms"]))


def _most_bps(params: Mapping[str, Any]) -> float:
    """The most goodput that a trial's link allows."""
    return payload_limit(1e6 * float(params["rate_mbit"]), wire=False)


def _cubic_s(segments: float) -> float:
    """How long CUBIC's curve takes for so many segments up to its W_max, or away from it."""
    return float((segments / CUBIC_C) ** (1 / 3))
