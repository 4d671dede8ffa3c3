"""The lab's cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

import re
from itertools import pairwise

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    Numbers,
    RecordedSets,
    cell,
    excerpt,
    mbit,
    measured,
    ms,
    param,
    param_cell,
    percent,
    runs_as_columns,
    runs_as_rows,
    seconds,
    size,
    stage_cell,
    table,
    trial_cell,
    whole,
)
from measuretwice.stats import two_samples
from measuretwice.tcp.model import USUAL_FRAME_BYTES, shaped_goodput_bps

from .runs import (
    BBR,
    CUBIC,
    GOODPUT,
    RTT,
    SHOWN_GOODPUT,
    SHOWN_RTT,
    VEGAS_OF_SOURCE,
    algorithm_of,
    mbit_interval,
    path_bdp_bytes,
)

LASTS = param_cell("duration_s", seconds)
AVERAGED_FROM = param_cell("average_from_s", whole)
TABLE, SS, LINK = "client/table.txt", "client/ss.txt", "gateway/qdisc.after.json"
LAST_LINE = {"grep": "ESTAB.*bytes_sent:[0-9]{7}", "last": 1}
SECONDS_END = "^[0-9]+[.]9"


def set_cases(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    _config_comment(f.case("config-comment"), sets)
    _terminated_tcp(f.case("terminated-tcp"), sets)
    _ten_seconds(f.case("ten-seconds"), sets)
    _averages_hide(f.case("averages-hide"), sets)
    _mixed_runs(f.case("mixed-runs"), sets)
    _one_server(f.case("one-server"), sets)


def _config_comment(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("config-comment")
    runs = (broken, fixed)
    f.average_from = AVERAGED_FROM(broken)
    f.goodput, f.rtt = SHOWN_GOODPUT(broken), SHOWN_RTT(broken)
    f.file = excerpt("config-comment-broken", "client/sysctl.conf")
    f.sysctl_says = excerpt("config-comment-broken", "client/sysctl-p.txt")
    f.card = excerpt("config-comment-broken", "client/tc.txt")
    f.ss = excerpt("config-comment-broken", SS, **LAST_LINE)
    f.ss_fixed = excerpt("config-comment-fixed", SS, grep="ESTAB.*bbr.*bytes_sent:[0-9]{7}", last=1)
    f.stages = runs_as_rows(
        runs,
        {
            "run": stage_cell,
            "algorithm by ss": lambda run: str(run.flows[0].congestion_control),
            "goodput": SHOWN_GOODPUT,
            "mean round-trip time": SHOWN_RTT,
        },
    )
    f.fixed = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {"goodput": SHOWN_GOODPUT, "round-trip time": SHOWN_RTT},
    )
    in_short = {"first try": broken, "BBR": fixed}
    f.in_short = runs_as_columns(
        "value", in_short, {"mean round trip": SHOWN_RTT, "goodput": SHOWN_GOODPUT}
    )
    ratio = measured(fixed, GOODPUT) / measured(broken, GOODPUT)
    f.goodput_hardly_differs = abs(ratio - 1) < 0.05
    f.delay_tells = measured(broken, RTT) > 1.2 * measured(fixed, RTT)


def _terminated_tcp(f: Facts, sets: RecordedSets) -> None:
    name = "terminated-tcp-broken"
    broken, fixed = sets.stages("terminated-tcp")
    runs = (broken, fixed)
    f.average_from = AVERAGED_FROM(broken)
    f.goodput = SHOWN_GOODPUT(broken)
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
            "run": stage_cell,
            "goodput": SHOWN_GOODPUT,
            "window (segments)": cell("steady_cwnd_segments", whole),
            "cwnd over rate": division,
            "smallest RTT, TCP": least,
            "smallest RTT, ping": cell("sender_path_rtt_ms", ms),
        },
    )
    f.fixed = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {"goodput": SHOWN_GOODPUT, "cwnd over rate": division, "smallest RTT by TCP": least},
    )
    f.in_short = runs_as_columns(
        "value",
        {"first try": broken, "to the server": fixed},
        {
            "cwnd over rate": division,
            "smallest round trip, by TCP": least,
            "goodput": SHOWN_GOODPUT,
        },
    )
    f.smaller_by = Number(measured(broken, GOODPUT) / measured(fixed, GOODPUT))
    f.far_smaller = measured(fixed, GOODPUT) < 0.5 * measured(broken, GOODPUT)


def _ten_seconds(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("ten-seconds")
    runs = (broken, fixed)
    f.lasts, f.average_from = LASTS(broken), AVERAGED_FROM(broken)
    f.goodput, f.rtt = SHOWN_GOODPUT(broken), SHOWN_RTT(broken)
    f.resent = whole(measured(broken, "steady_retransmits"))
    f.rows = excerpt("ten-seconds-broken", TABLE, grep=SECONDS_END)
    printed = [line.split() for line in sets.raw_text(broken, TABLE).splitlines()]
    windows = [int(row[3]) for row in printed if re.match(SECONDS_END, " ".join(row))]
    # In the first two seconds somebody else sends, too.
    growth = [after - before for before, after in pairwise(windows[2:])]
    f.window_grows_evenly = max(growth) < 1.15 * min(growth)
    f.still_rising = measured(broken, "rising_ratio") > 1.2
    f.has_settled_when_fixed = abs(measured(fixed, "rising_ratio") - 1) < 0.02
    rounds_a_second = 1e3 / param(broken, "wire_rtt_ms")
    pipe = path_bdp_bytes(broken.params) / USUAL_FRAME_BYTES
    f.rounds_a_second, f.path_holds = whole(rounds_a_second), whole(pipe)
    then = windows[1] / measured(broken, "mss_bytes")
    f.window_then = whole(then, "segments")
    f.fill_takes = seconds((pipe - then) / rounds_a_second, 2)
    f.time_left = seconds(param(broken, "duration_s") - param(broken, "average_from_s"))
    f.is_not_full_by_then = f.fill_takes.value > f.time_left.value
    rising = cell("rising_ratio", Number)
    f.stages = runs_as_rows(
        runs,
        {
            "run": stage_cell,
            "averaged from": param_cell("average_from_s", seconds),
            "to": LASTS,
            "mean": SHOWN_GOODPUT,
            "last fifth over the first": rising,
            "mean round-trip time": SHOWN_RTT,
        },
    )
    f.fixed = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {"goodput, averaged": SHOWN_GOODPUT, "last fifth over the first": rising},
    )
    f.in_short = runs_as_rows(
        runs,
        {
            "averaged": lambda run: "second {average_from_s} to {duration_s}".format(**run.params),
            "goodput": SHOWN_GOODPUT,
            "last fifth over the first": rising,
        },
    )
    f.link_used = percent(measured(fixed, GOODPUT) / shaped_goodput_bps(param(fixed, "rate_mbit")))
    f.link_is_full = measured(fixed, GOODPUT) > 0.98 * shaped_goodput_bps(param(fixed, "rate_mbit"))
    f.queue_adds = ms(measured(fixed, RTT) - param(fixed, "wire_rtt_ms"), 2)
    theirs = sets.run("as-the-source-disturbed", trial=VEGAS_OF_SOURCE)
    f.their_rate = whole(param(theirs, "rate_mbit"), "Mbit/s")
    f.their_rtt = ms(param(theirs, "wire_rtt_ms"))
    f.their_goodput = mbit(measured(theirs, "goodput_bps"))
    their_pipe = path_bdp_bytes(theirs.params) / USUAL_FRAME_BYTES
    f.their_fill_takes = seconds(their_pipe * param(theirs, "wire_rtt_ms") / 1e3)


def _averages_hide(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("averages-hide")
    f.path_rtt = ms(param(broken, "wire_rtt_ms"))
    f.small_buffer = size(param(broken, "buffer_bytes"))
    f.lasts, f.average_from = LASTS(broken), AVERAGED_FROM(broken)
    f.resent = whole(measured(broken, "steady_retransmits"))
    half_pipe = path_bdp_bytes(broken.params) / USUAL_FRAME_BYTES / 2
    f.rounds_back = whole(half_pipe)
    f.grows_back_within_half_a_second = half_pipe * param(broken, "wire_rtt_ms") < 500
    f.rows = excerpt("averages-hide-broken", TABLE, first=16)
    f.rows_fixed = excerpt("averages-hide-fixed", TABLE, grep="^5[.]")
    teeth = measured(fixed, "client_decreases") / measured(fixed, "duration_s")
    f.about_two_teeth = 1.5 < teeth < 2.5
    shown = [line.split() for line in sets.raw_text(fixed, TABLE).splitlines()]
    windows = [float(row[3]) for row in shown if 5 <= float(row[0]) < 6]
    f.the_saw_is_seen = min(after / before for before, after in pairwise(windows)) < 0.65
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "length of a row": cell("table_interval_s", seconds),
            "lowest row after the first second": cell("table_lowest_bps", mbit),
            "lowest tenth of a second by ss": cell("lowest_tenth_bps", mbit),
            "mean": SHOWN_GOODPUT,
        },
    )


def _mixed_runs(f: Facts, sets: RecordedSets) -> None:
    name = "mixed-runs-broken"
    broken, fixed = sets.stages("mixed-runs")
    runs = (broken, fixed)
    f.lasts, f.average_from = LASTS(broken), AVERAGED_FROM(broken)
    f.goodput = SHOWN_GOODPUT(broken)
    f.rows = excerpt(name, TABLE, first=20)
    f.last_row = excerpt(name, TABLE, last=1)
    f.ss = excerpt(name, SS, grep="ESTAB.*cubic.*bytes_sent:[0-9]{7}", last=1)
    foreign = cell("table_rows_foreign", whole)
    f.stages = runs_as_rows(
        runs,
        {
            "run": stage_cell,
            "rows": cell("table_rows", whole),
            "with a window that this connection didn't have at that time": foreign,
        },
    )


def _one_server(f: Facts, sets: RecordedSets) -> None:
    name = "one-server-broken"
    first = sets.runs(name)
    f.lasts, f.average_from = LASTS(first[0]), AVERAGED_FROM(first[0])
    f.pair = runs_as_rows(
        first,
        {
            "trial": trial_cell,
            "algorithm": algorithm_of,
            "goodput": SHOWN_GOODPUT,
            "mean round-trip time": SHOWN_RTT,
        },
    )
    f.ss_cubic, f.ss_bbr = (excerpt(name, SS, trial=trial, **LAST_LINE) for trial in (CUBIC, BBR))
    f.link_cubic, f.link_bbr = (
        excerpt(
            name, LINK, trial=trial, where={"kind": "tbf"},
            keys=["kind", "packets", "bytes", "drops"],
        )
        for trial in (CUBIC, BBR)
    )  # fmt: skip
    passed_for_each = []
    for trial in (CUBIC, BBR):
        run = sets.run(name, trial=trial)
        sent = re.findall(r"data_segs_out:(\d+)", sets.raw_text(run, SS))[-1]
        passed_for_each.append(sets.raw_object(run, LINK, kind="tbf")["packets"] / int(sent))
    f.passed_for_cubics, f.passed_for_bbrs = (
        Number(passed, digits=2) for passed in passed_for_each
    )
    f.more_passed_than_sent = min(passed_for_each) > 1.1

    cubic, bbr = (
        {run.seed: measured(run, GOODPUT) for run in sets.runs("one-server-fixed") if run.trial == trial}
        for trial in (CUBIC, BBR)
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
            (
                algorithm,
                whole(len(rates_bps)),
                mbit_interval(rates_bps),
                mbit(min(rates_bps)),
                mbit(max(rates_bps)),
            )
            for algorithm, rates_bps in rates
        ),
    )
    f.cubic_rates, f.bbr_rates = (
        Numbers.of([mbit(rate) for rate in rates_bps]) for _, rates_bps in rates
    )
    low_bps, high_bps = two_samples.difference_interval(list(bbr.values()), list(cubic.values()))
    f.difference = Interval.around((low_bps / 1e6, high_bps / 1e6), "Mbit/s")
    f.bbr_is_faster = low_bps > 0
    f.bbr_does_not_share = min(bbr.values()) > 0.5e6 * param(first[0], "rate_mbit") and (
        max(cubic.values()) / min(cubic.values()) > 2 * max(bbr.values()) / min(bbr.values())
    )
