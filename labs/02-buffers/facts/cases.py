"""The lab's cases: of each the first try, set `<case>-broken`, and the fixed run, set `<case>-fixed`."""

from __future__ import annotations

import re
import statistics

from measuretwice.facts import (
    Facts,
    Interval,
    Number,
    RecordedSets,
    apart_by,
    cell,
    column,
    excerpt,
    mbit,
    measured,
    ms,
    param,
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
from measuretwice.tcp import model

from .runs import BUFFER, CUBIC_LARGE, HIGHSPEED_LARGE, HIGHSPEED_SMALL, first_rtt_ms

# What the source meant by its large buffer, and what tc makes of it after each suffix.
LARGE_MB, SMALL_MB = 1.25, 0.125
# The buffer at 1 Gbit/s of the reproduction that lab 03 follows, by its text.
SCALE_BUFFER_MB = 25
MB_BYTES = 1024 * 1024
TBF, TBF_FILE = {"kind": "tbf"}, "g1/qdisc.after.json"
# In one file of a run on g1: which rows of it are shown.
ROWS = {"first": 110, "last": 8}


def set_cases(f: Facts, sets: RecordedSets) -> None:
    """Set each case's facts below its name."""
    _size_suffix(f.case("size-suffix"), sets)
    _whose_bdp(f.case("whose-bdp"), sets)
    _hidden_queue(f.case("hidden-queue"), sets)
    _field_number(f.case("field-number"), sets)
    _units(f.case("units"), sets)
    _one_run(f.case("one-run"), sets)
    _thirty_runs(f.case("one-run"), sets)


def _size_suffix(f: Facts, sets: RecordedSets) -> None:
    broken, fixed = sets.stages("size-suffix")
    trial = sets.trial(HIGHSPEED_LARGE)
    f.command = (
        f'sudo tc qdisc add dev "$to_g2" root tbf rate {trial["rate_mbit"]}mbit '
        f"burst {trial['burst_bytes']} limit {broken.params['buffer_text']}"
    )
    f.rtt = ms(first_rtt_ms(trial))
    f.lasts = seconds(param(broken, "duration_s"))
    keys = ["kind", "options", "packets", "drops"]
    f.qdisc = excerpt("size-suffix-broken", TBF_FILE, where=TBF, keys=keys)
    f.qdisc_after = excerpt("size-suffix-fixed", TBF_FILE, where=TBF, keys=keys)
    f.longest = size(measured(broken, "queue_max_bytes"))
    f.longest_after = size(measured(fixed, "queue_max_bytes"))
    # tc's `lat` is the limit without the burst, over the rate.
    counted_by_lat = measured(fixed, "queue_limit_bytes") - trial["burst_bytes"]
    f.longest_exceeds_lat = measured(fixed, "queue_max_bytes") > counted_by_lat
    f.goodput = mbit(measured(broken, "goodput_bps"))
    # The case's title.
    f.link_is_not_full = measured(broken, "utilisation") < 0.95 < measured(fixed, "utilisation")
    f.room = size(measured(broken, "queue_limit_bytes"))
    times = trial["buffer_bytes"] / measured(broken, "queue_limit_bytes")
    f.meant_over_room = Number(times)
    f.room_is_about_an_eighth = 7 < times < 9
    f.as_mbit = whole(LARGE_MB * MB_BYTES / 8)
    f.as_mb = whole(LARGE_MB * MB_BYTES)
    f.small_as_mb = whole(SMALL_MB * MB_BYTES)
    f.scale_buffer_as_mb = size(SCALE_BUFFER_MB * MB_BYTES)
    f.mb_over_million = percent(MB_BYTES / 1e6 - 1, 2)
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "run": stage_cell,
            "buffer": cell("queue_limit_bytes", size),
            "longest queue": cell("queue_max_bytes", size),
            "mean delay in the queue": cell("queue_delay_mean_ms", ms),
            "dropped": cell("queue_drops", whole),
        },
    )
    f.in_short = runs_as_columns(
        "recorded runs",
        {"broken": broken, "fixed": fixed},
        {
            "buffer by the qdisc": cell("queue_limit_bytes", size),
            "link in use": cell("utilisation", percent),
        },
    )
    f.longest_drains_in = ms(
        model.drain_ms(measured(fixed, "queue_max_bytes"), trial["rate_mbit"]), 3
    )
    f.jain = Number(measured(broken, "jains_index"))
    f.jain_after = Number(measured(fixed, "jains_index"))


def _whose_bdp(f: Facts, sets: RecordedSets) -> None:
    name = "whose-bdp-broken"
    broken, fixed = sets.stages("whose-bdp")
    trial = sets.trial(HIGHSPEED_LARGE)
    f.lasts = seconds(param(broken, "duration_s"))
    f.ss_1, f.ss_2 = (
        excerpt(name, f"{node}/ss.txt", grep="data_segs_out:[0-9]{4,}", last=1)
        for node in ("s1", "s2")
    )
    f.ping_1, f.ping_2 = (excerpt(name, f"{node}/ping.txt", last=2) for node in ("s1", "s2"))
    f.qdisc = excerpt(name, TBF_FILE, where=TBF, keys=["kind", "options", "packets", "drops"])
    rtt_ms = [measured(broken, f"{node}_path_rtt_ms") for node in ("s1", "s2")]
    f.idle_rtt = ms(rtt_ms[1])
    f.rtt = ms(measured(broken, "s2_rtt_mean_ms"))
    f.rtt_after = ms(measured(fixed, "s2_rtt_mean_ms"))
    f.bdps = table(
        ("flow", "round-trip time", "its path's BDP", "the buffer in such BDPs"),
        (
            (
                flow,
                ms(path_ms),
                size(model.bdp_bytes(trial["rate_mbit"], path_ms)),
                Number(measured(broken, f"buffer_bdp_ratio_{end}")),
            )
            for flow, path_ms, end in zip(
                ("s1 to d1", "s2 to d2"), rtt_ms, ("min", "max"), strict=True
            )
        ),
    )
    full_ms = model.drain_ms(measured(broken, "queue_limit_bytes"), trial["rate_mbit"])
    f.room = size(measured(broken, "queue_limit_bytes"))
    f.room_after = size(measured(fixed, "queue_limit_bytes"))
    f.room_delays = ms(full_ms)
    f.rtts_apart = Number(rtt_ms[0] / rtt_ms[1])
    f.rtts_apart_when_full = Number((rtt_ms[0] + full_ms) / (rtt_ms[1] + full_ms))
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "buffer": cell("queue_limit_bytes", size),
            "s2's mean round trip": cell("s2_rtt_mean_ms", ms),
            "divided by its idle one": lambda run: Number(
                measured(run, "s2_rtt_mean_ms") / measured(run, "s2_path_rtt_ms")
            ),
            "s1's mean round trip": cell("s1_rtt_mean_ms", ms),
            "goodput of both": cell("goodput_bps", mbit),
        },
    )
    f.stays_below_twice = measured(fixed, "s2_rtt_mean_ms") < 2 * measured(fixed, "s2_path_rtt_ms")
    f.goodput_change = apart_by(fixed, broken, "goodput_bps", 1)
    f.small_of_short = percent(
        sets.trial(HIGHSPEED_SMALL)["buffer_bytes"] / model.bdp_bytes(trial["rate_mbit"], rtt_ms[1])
    )


def _hidden_queue(f: Facts, sets: RecordedSets) -> None:
    name = "hidden-queue-broken"
    broken, fixed = sets.stages("hidden-queue")
    trial = sets.trial(33)
    f.delay = ms(trial["first_delay_ms"])
    f.back_delay = ms(trial["back_delay_ms"])
    f.rtt = ms(measured(broken, "s1_path_rtt_ms"))
    f.buffer = size(trial["buffer_bytes"])
    f.lasts = seconds(param(broken, "duration_s"))
    f.qdisc = excerpt(name, TBF_FILE, where=TBF, keys=["kind", "packets", "drops"])
    f.resent_1 = whole(measured(broken, "s1_retransmits"))
    f.resent_2 = whole(measured(broken, "s2_retransmits"))
    f.resent = whole(measured(broken, "retransmits"))
    f.drops = whole(measured(broken, "queue_drops"))
    apart = abs(measured(broken, "retransmits") - measured(broken, "queue_drops"))
    f.they_agree_within_a_hundredth = apart < 0.01 * measured(broken, "queue_drops")
    netem = {
        node: sets.raw_object(broken, f"{node}/qdisc.after.json", kind="netem")
        for node in ("s1", "s2", "d1", "d2")
    }
    f.hosts = table(
        ("node", "passes through its qdisc", "packets", "dropped"),
        (
            (node, what, whole(netem[node]["packets"]), whole(netem[node]["drops"]))
            for node, what in (
                ("s1", "s1's data"), ("s2", "s2's data"), ("d1", "ACKs for s1"), ("d2", "ACKs for s2"),
            )
        ),
    )  # fmt: skip
    f.drops_elsewhere = whole(measured(broken, "other_qdisc_drops"))
    f.acks_lost = whole(netem["d1"]["drops"] + netem["d2"]["drops"])
    f.data_lost = whole(netem["s1"]["drops"] + netem["s2"]["drops"])
    f.limit = whole(param(broken, "host_limit_packets"))
    packets_s = trial["rate_mbit"] * 1e6 / 8 / model.USUAL_FRAME_BYTES
    f.packets_a_second = Number(packets_s, digits=2)
    f.in_a_queue = Number(packets_s * trial["first_delay_ms"] / 1e3, digits=2)
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "run": stage_cell,
            "dropped by g1": cell("queue_drops", whole),
            "dropped elsewhere": cell("other_qdisc_drops", whole),
            "retransmitted": cell("retransmits", whole),
            "s1's share": cell("s1_share", percent),
            "goodput": cell("goodput_bps", mbit),
        },
    )
    f.goodput_change = apart_by(fixed, broken, "goodput_bps", 1)
    f.nothing_is_lost_elsewhere = measured(fixed, "other_qdisc_drops") == 0
    theirs = sets.runs("hosts-limit-as-the-source")
    f.in_their_queue = Number(
        packets_s * sets.trial(HIGHSPEED_LARGE)["first_delay_ms"] / 1e3, digits=2
    )
    f.their_drops = whole(sum(column(theirs, "other_qdisc_drops")), "packets")


def _field_number(f: Facts, sets: RecordedSets) -> None:
    name = "field-number-broken"
    broken, fixed = sets.stages("field-number")
    f.lasts = seconds(param(broken, "duration_s"))
    f.rows = excerpt(name, "g1/queue-length.txt", **ROWS)
    f.rows_after = excerpt("field-number-fixed", "g1/queue-length.txt", **ROWS)
    f.line = excerpt(name, "g1/queue-text.txt", first=110, last=1)
    f.goodput = mbit(measured(broken, "goodput_bps"))
    f.drops = whole(measured(broken, "queue_drops"))
    f.length_rows = whole(measured(broken, "length_rows"))
    f.all_rows_say_nothing_waits = measured(broken, "length_rows_mean_packets") == 0
    words = sets.raw_text(broken, "g1/queue-text.txt").splitlines()[-1].split()
    f.words = Number(len(words))
    f.word_of_the_length = Number(words.index("backlog") + 3)
    f.there_is_no_word_31 = len(words) < 31
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "run": stage_cell,
            "rows": cell("length_rows", whole),
            "mean of the rows": cell("length_rows_mean_packets", Number),
            "mean by JSON": cell("length_rows_true_packets", Number),
        },
    )
    f.in_short = table(
        ("by the file", "mean queue"),
        (
            (what, Number(measured(run, "length_rows_mean_packets"), "packets"))
            for what, run in (("word 31", broken), ("the word after its name", fixed))
        ),
    )


def _units(f: Facts, sets: RecordedSets) -> None:
    name = "units-broken"
    broken, fixed = sets.stages("units")
    f.lasts = seconds(param(broken, "duration_s"))
    f.buffer = size(sets.trial(CUBIC_LARGE)["buffer_bytes"])
    f.iperf3 = excerpt(name, "s2/iperf3.txt", first=6)
    f.begins = excerpt(name, "s2/cwnd.txt", first=9)
    f.ends = excerpt(name, "s2/cwnd.txt", last=5)
    times = [row.split()[0] for row in sets.raw_text(broken, "s2/cwnd.txt").splitlines()]
    jump = next(n for n in range(3, len(times)) if float(times[n]) < float(times[n - 1]))
    f.middle = excerpt(
        name, "s2/cwnd.txt", between=[f"^{re.escape(times[n])} " for n in (jump - 3, jump + 2)]
    )
    f.begins_after = excerpt("units-fixed", "s2/cwnd.txt", first=9)
    f.rows_of_a_sender = whole(measured(broken, "window_rows") / 2)
    f.over_ss = Number(measured(broken, "window_rows_ratio"), digits=4)
    f.too_small_by = percent(1 - 1000 / 1024, 2)
    f.mbyte_segments = whole(MB_BYTES / model.USUAL_MSS_BYTES)
    f.seems_to_fall = whole(MB_BYTES / model.USUAL_MSS_BYTES * (1 - 1000 / 1024), "segments")
    f.stages = runs_as_rows(
        (broken, fixed),
        {
            "run": stage_cell,
            "rows, both senders": cell("window_rows", whole),
            "jumps back in time": cell("window_rows_backwards", whole),
            "rows divided by ss's, in the larger half": lambda run: Number(
                measured(run, "window_rows_ratio"), digits=4
            ),
        },
    )


def _one_run(f: Facts, sets: RecordedSets) -> None:
    once = sets.runs("one-run-broken")
    f.lasts = seconds(param(once[0], "duration_s"))
    f.one_of_each = runs_as_rows(
        once,
        {
            "trial": trial_cell,
            "buffer": BUFFER,
            "s1": cell("s1_goodput_bps", mbit),
            "s2": cell("s2_goodput_bps", mbit),
            "Jain's index": cell("jains_index", Number),
        },
    )
    f.jain_large, f.jain_small = (Number(measured(run, "jains_index")) for run in once)
    f.least_packets = whole(min(column(once, "qdisc_offered_packets")), "packets")


def _thirty_runs(f: Facts, sets: RecordedSets) -> None:
    """Of the case one-run: thirty runs with each buffer."""
    large, small = (
        sorted(sets.runs("one-run-fixed", trial), key=lambda run: run.seed)
        for trial in (HIGHSPEED_LARGE, HIGHSPEED_SMALL)
    )
    f.repeats = Number(len(large))
    f.ten_pairs = table(
        (
            "seed", "Jain's index, large buffer", "small buffer", "a person with this pair would say",
            "s1's share, large buffer", "and would say",
        ),
        (
            (
                Number(in_large.seed),
                Number(measured(in_large, "jains_index")),
                Number(measured(in_small, "jains_index")),
                "the large buffer is fairer"
                if measured(in_large, "jains_index") > measured(in_small, "jains_index")
                else "the small buffer is fairer",
                percent(measured(in_large, "s1_share")),
                "the long path wins" if measured(in_large, "s1_share") > 0.5 else "the short path wins",
            )
            for in_large, in_small in zip(large[:10], small[:10], strict=True)
        ),
    )  # fmt: skip
    shares = column(large, "s1_share")
    f.share_least, f.share_most = percent(min(shares)), percent(max(shares))
    f.either_path_could_win = min(shares) < 0.5 < max(shares)

    a, b = column(large, "jains_index"), column(small, "jains_index")
    f.thirty = table(
        ("trial", "buffer", "runs", "mean, and its 95 % interval", "least", "most"),
        (
            (
                Number(runs[0].trial),
                size(param(runs[0], "buffer_bytes")),
                Number(len(runs)),
                Interval.of_mean(values),
                Number(min(values)),
                Number(max(values)),
            )
            for runs, values in ((large, a), (small, b))
        ),
    )
    f.mean_large, f.mean_small = (Number(statistics.fmean(values)) for values in (a, b))
    f.difference = Interval.of_difference(a, b)
    f.zero_is_in_thirty = 0 in f.difference
    f.ten_1, f.ten_2, f.ten_3 = tens = [
        Interval.of_difference(a[start : start + 10], b[start : start + 10])
        for start in (0, 10, 20)
    ]
    f.zero_is_in_each_ten = all(0 in ten for ten in tens)
    f.quarter_below = Number(sorted(a)[len(a) // 4], digits=2)
    f.quarter_above = Number(sorted(a)[3 * len(a) // 4], digits=2)
